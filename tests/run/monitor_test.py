"""What a run shows: event files as TensorBoard's own package reads them, pictures, reports, the live
view, words and records on its output; and that none of it ends a run when it fails. The short form draws what fails,
and how much is said."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import threading
import zlib

from harness import DECK, LOCKSTEP, Scratch, check, check_same, on_terminal, records, run, some

STEPS = 20


def small_set(path, samples):
    """An IDX pair of random images, imported: epochs of a few steps."""
    random.seed(1)
    images, labels = path.with_suffix(".images"), path.with_suffix(".labels")
    images.write_bytes(struct.pack(">IIII", 0x803, samples, 28, 28) + random.randbytes(samples * 784))
    labels.write_bytes(struct.pack(">II", 0x801, samples) + bytes(i % 10 for i in range(samples)))
    run(["data", "import", "idx", f"{images},{labels}", path]).expect(0)
    return path


def words(directory, *options):
    data = directory.parent / "set.h5"
    return [str(word) for word in (
        "train", DECK, "--data.train", data, "--data.validation", data, "--run.directory", directory,
        "--train.steps", STEPS, "--train.epochs", 9, "--data.global-batch", 16, *options)]


def decoded(png):
    """How many grey levels a picture has, as another program reads it."""
    at, packed = 8, b""
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        check(zlib.crc32(name + body) == struct.unpack(">I", png[at + 8 + length:][:4])[0], f"{name}")
        packed += body if name == b"IDAT" else b""
        at += 12 + length
    rows = zlib.decompress(packed)
    check(len(rows) == 28 * 29 and not any(rows[::29]), "rows without filter")
    return len(set(rows))


def whole(line):
    try:
        return bool(json.loads(line))
    except ValueError:
        return False


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def check_event_files(directory):
    try:
        from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    except ImportError as missing:
        print(f"SKIPPED: TensorBoard's package is not here: {missing}")
        return
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(directory))
    multiplexer.Reload()
    check(list(multiplexer.Runs()) == ["tensorboard"], f"one run: {multiplexer.Runs()}")
    accumulator = multiplexer.GetAccumulator("tensorboard")
    losses = {event.step: event.value for event in accumulator.Scalars("loss/training")}
    check(sorted(losses) == list(range(1, STEPS + 1)), f"each step once: {sorted(losses)}")
    check(len(accumulator.Scalars("loss/training")) == STEPS, "no step twice")
    for record in records(directory, "step"):  # of a step that was done twice the bits are the same
        check(abs(losses[record["step"]] - record["loss"]) < 1e-6, f"loss of {record['step']}")
    validations = {event.step: event.value for event in accumulator.Scalars("accuracy/validation")}
    check(validations[STEPS] == records(directory, "validation")[-1]["accuracy"] or
          abs(validations[STEPS] - records(directory, "validation")[-1]["accuracy"]) < 1e-6,
          "validation")
    for tag in ("optimizer/learning_rate", "throughput/samples_per_s", "memory_bytes/host"):
        check(accumulator.Scalars(tag)[-1].value > 0, tag)
    contents = accumulator.PluginTagToContent("hparams")
    start = HParamsPluginData.FromString(contents["_hparams_/session_start_info"])
    parameters = start.session_start_info.hparams
    check(parameters["optimizer.learning-rate"].number_value == 0.003, "hyper-parameters")
    check(parameters["optimizer.name"].string_value == "adamw", "hyper-parameters")
    check(parameters["data.drop-last"].bool_value is False, "hyper-parameters")
    tags = accumulator.Tags()["histograms"]
    check("weights/output.weight" in tags or len(tags) >= 4, f"histograms of weights: {tags}")
    values = accumulator.Histograms(tags[0])[-1].histogram_value
    check(values.num > 0 and values.num == sum(values.bucket), "all values counted")
    gradients = [tag for tag in tags if tag.startswith("gradients/")]
    check(len(gradients) == len(tags) // 2, f"of weights and gradients: {tags}")
    for tag in gradients:
        spread = accumulator.Histograms(tag)[-1].histogram_value
        weights = accumulator.Histograms(tag.replace("gradients", "weights"))[-1].histogram_value
        check(spread.num == sum(spread.bucket) == weights.num, f"{tag}: each element once")
    squares = sum(accumulator.Histograms(tag)[-1].histogram_value.sum_squares for tag in gradients)
    step = accumulator.Histograms(gradients[0])[-1].step
    norm = {event.step: event.value for event in accumulator.Scalars("optimizer/gradient_norm")}[step]
    check(abs(squares ** 0.5 / norm - 1) < 1e-4, f"they are the gradient's: {squares ** 0.5} {norm}")
    pictures = accumulator.Tags()["images"]
    check(sorted(pictures) == [f"samples/{i}" for i in range(4)], f"samples: {pictures}")
    image = accumulator.Images("samples/0")[0]
    check((image.width, image.height) == (28, 28), f"{image.width} x {image.height}")
    check(image.encoded_image_string.startswith(b"\x89PNG\r\n\x1a\n"), "PNG")
    check(decoded(image.encoded_image_string) > 100, "grey levels of a random image")


with Scratch() as scratch:
    small_set(scratch / "set.h5", 200)
    os.chdir(scratch)
    gnuplot = shutil.which("gnuplot") is not None

    # Killed, resumed, finished: event files and pictures are those of one run.
    one = scratch / "one"
    shown = ["--monitor.tensorboard", "true", "--monitor.plots", "true",
             "--monitor.histograms", "gradients", "--monitor.images", 4]
    killed = run(words(one, *shown), 2, {"LOCKSTEP_INJECT": "kill:rank=1:step=13"})
    check(killed.code != 0, "a rank was killed")
    run(words(one, *shown), 2).expect(0, "resumed from", "finished at step 20")
    check(len(list((one / "tensorboard").iterdir())) == 2, "an event file for each attempt")
    check_event_files(one)
    samples = sorted((one / "samples").iterdir())
    check([path.name for path in samples] == [f"{i:04}.png" for i in range(4)], f"samples: {samples}")
    check(all(path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") and decoded(path.read_bytes()) > 100 for path in samples),
          "grey levels of random images")
    plain = scratch / "plain-one"
    run(words(plain, "--monitor.tensorboard", "false"), 1).expect(0)
    check_same(one, plain, "looking at gradients changes no bit")
    check(len(list((plain / "samples").iterdir())) == 4, "all samples of the first batch, without event files")
    if gnuplot:
        pictures = {path.name for path in (one / "plots").glob("*.png")}
        check({"loss.png", "metric.png", "learning_rate.png", "throughput.png", "memory.png",
               "communication.png"} <= pictures, f"pictures: {pictures}")
        check(all(is_png(one / "plots" / name) for name in pictures), "PNG")

    # Reports, with and without gnuplot.
    text = run(["report", one, plain, "--price-per-hour", "2"]).expect(0, "| one | finished |").text
    check("| plain-one | finished | 1 |" in text, text)
    check((scratch / "report/report.md").exists(), "report.md")
    check(not gnuplot or is_png(scratch / "report/plots/speed_up.png"), "speed-up")
    run(["report", one, "--output", "bare"], env={"PATH": "/nowhere"}).expect(
        0, "warning: no pictures were drawn: gnuplot is not installed", "| one | finished |")
    run(["report", "nowhere"]).expect(66, "no metrics")
    run(["report", one, "--price-per-hour", "x"]).expect(64, "--price-per-hour x")

    # The live view: of a run that has ended, of one whose last line is being written.
    run(["watch", one]).expect(0, "one  finished", "100 %  step 20 of 20", "attempts    2")
    run(["watch", "nowhere"]).expect(66, "no metrics")
    for other in some((DECK, one / "log.txt", one / "best.h5", scratch / "set.h5")):
        for command in some(("watch", "report")):
            run([command, other]).expect(65, "holds no records of a run", "metrics.jsonl")
    half = scratch / "half"
    half.mkdir()
    lines = (one / "metrics.jsonl").read_text().splitlines()
    (half / "metrics.jsonl").write_text("\n".join(lines[:9]) + "\n" + lines[9][:30])
    for columns in some((20, 100)):
        text, code = on_terminal([LOCKSTEP, "watch", str(half)], columns, [(b"\033[H", 2, b"q")],
                                 env={"NO_COLOR": "", "LC_ALL": "C.UTF-8"})
        check(code == 0, f"watch ends with {code}: {text}")
        check("\033[?1049h" in text and "\033[?1049l" in text, "the first screen comes back")
        check("half" in text and "running" in text, text)
        plain = re.sub(r"\033\[[?0-9;]*[A-Za-z]", "", re.sub(r"\033\[(H|\?1049l)", "\n", text))
        check(all(len(line) <= columns for line in re.split(r"[\r\n]+", plain)), f"it fits: {text!r}")

    # One whose job still waits is waited for, and shown to its end.
    text, code = on_terminal([LOCKSTEP, "watch", "later"], 40, [(b"has not begun", 2, b"q")])
    check(code == 0 and "waiting for later/metrics.jsonl" in text, f"{code} {text}")
    begins = threading.Timer(1, shutil.copytree, (one, scratch / "later"))
    begins.start()
    text, code = on_terminal([LOCKSTEP, "watch", "later"], 80)
    check(code == 0 and "step 20 of 20" in text, f"{code} {text}")

    def directories_in_the_way():
        """Where pictures and event files cannot be written: one warning, and the run continues."""
        blocked = scratch / "blocked"
        blocked.mkdir()
        (blocked / "tensorboard").write_text("in the way")
        (blocked / "plots").write_text("in the way")
        (blocked / "samples").write_text("in the way")
        result = run(words(blocked, *shown), 1).expect(0, "finished at step 20")
        for name in ("tensorboard", "samples", "plots") if gnuplot else ("tensorboard", "samples"):
            check(result.text.count(f"cannot make directory {blocked / name}") == 1, result.text)
        check("cannot make directory" in (blocked / "log.txt").read_text(), "in the log, too")
        run(["report", blocked, "--output", "of-blocked"]).expect(0, "| blocked | finished | 1 |")

    def closed_pipe():
        """Nobody listens any more."""
        closed = scratch / "closed"
        child = subprocess.Popen([LOCKSTEP, *words(closed)], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.stdout.close()
        check(child.wait(60) == 0, "a closed pipe does not end a run")
        log = (closed / "log.txt").read_text()
        check(log.count("standard output can no longer be written") == 1, log)
        check("finished at step 20" in log, "the log continues")

    def full_disk():
        """No room for records and log: a warning of each, and the run continues."""
        full = scratch / "full"
        full.mkdir()
        for name in ("metrics.jsonl", "log.txt"):
            (full / name).symlink_to("/dev/full")
        text = run(words(full)).expect(0, "finished at step 20").text
        for name in ("metrics.jsonl", "log.txt"):
            warnings = [line for line in text.splitlines() if "warning" in line and name in line]
            check(len(warnings) == 1 and "No space left" in warnings[0], f"{name}: {text}")

    for part in some((directories_in_the_way, closed_pipe, full_disk)):
        part()

    # Few words, many, records; colours on terminals only, and not where they are not welcome.
    def few_words():
        quiet = subprocess.run([LOCKSTEP, *words(scratch / "quiet", "--quiet")], capture_output=True,
                               text=True).stdout.splitlines()
        check(len(quiet) == 2 and quiet[0].startswith("finished at step 20"), f"quiet: {quiet}")

    def records_as_words():
        rows = subprocess.run([LOCKSTEP, *words(scratch / "json", "--json")], capture_output=True,
                              text=True).stdout.splitlines()
        events = [json.loads(row)["event"] for row in rows]
        check(events.count("step") == STEPS and events[0] == "start" and events[-1] == "end", f"{events}")

    for part in some((few_words, records_as_words)):
        part()
    spoken, tools = scratch / "verbose", scratch / "tools"
    tools.mkdir()
    (tools / "gnuplot").write_text("#!/bin/sh\nexit 1\n")
    (tools / "gnuplot").chmod(0o755)
    verbose = run(words(spoken, "--verbose", "--monitor.plots", "true"),
                  env={"PATH": f"{tools}:{os.environ['PATH']}"})\
        .expect(0, "step 7/20  epoch").text
    check("checkpoint " in verbose and "\033" not in verbose, verbose)
    check(verbose.count("gnuplot is not installed") == 1, f"no gnuplot: one warning\n{verbose}")

    # A run that was killed in the middle of a record continues: that line is lost, no other.
    metrics = spoken / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-30])
    run(words(spoken, "--train.steps", STEPS + 4)).expect(0, "finished at step 24")
    lines = metrics.read_text().splitlines()
    check(sum(not whole(line) for line in lines) == 1, f"one half line: {lines}")
    run(["watch", spoken]).expect(0, "step 24 of 24")
    run(["report", spoken]).expect(0, "| verbose | finished |")

    run(words(scratch / "both", "--json", "--quiet")).expect(64, "these options exclude each other")
    bar = ["--monitor.progress", "auto"]

    def colours():
        coloured, code = on_terminal([LOCKSTEP, *words(scratch / "colours", *bar)], 20)
        check(code == 0 and "\033[1mlockstep" in coloured, coloured)
        drawn = re.findall(r"\r\033\[K([#.][^\r]*)", coloured)
        check(drawn and all(len(line) < 20 for line in drawn), f"a bar in 20 columns: {drawn}")
        check("\033" not in (scratch / "colours/log.txt").read_text(), "no colours in the log")

    def no_colours():
        plain, code = on_terminal([LOCKSTEP, *words(scratch / "plain", *bar)], 80, env={"NO_COLOR": "1"})
        check(code == 0 and "\033[1m" not in plain and "finished at" in plain, plain)
        drawn = re.findall(r"\r\033\[K([#.][^\r]*)", plain)
        check(any(line.rstrip().endswith("validation") for line in drawn), f"of a validation: {drawn}")
        check(all(len(line) < 80 for line in drawn) and
              any(" left  " in line and line.rstrip().endswith("samples/s") for line in drawn),
              f"whole words, the time that is left among them: {drawn}")

    for part in some((colours, no_colours)):
        part()
