"""What commands say and what they leave alone: each epoch's line, gnuplots that do not get through, a
run's directory in a file's place, outputs that are there, help of subcommands, records in reports. The short form draws
some of the gnuplots, formats and mistyped options."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys

from harness import DECK, LOCKSTEP, LONG, Scratch, check, checkpoints, records, run, some, train


RANKS = 2 if LONG else 1  # where the number does not matter


def small_set(path):
    images, labels = path.with_suffix(".images"), path.with_suffix(".labels")
    images.write_bytes(struct.pack(">IIII", 0x803, 64, 28, 28) + os.urandom(64 * 784))
    labels.write_bytes(struct.pack(">II", 0x801, 64) + bytes(i % 10 for i in range(64)))
    run(["data", "import", "idx", f"{images},{labels}", path]).expect(0)
    return path


def slip(name):
    """The name with a slip of the hand: two letters in each other's place, or one left out."""
    if LONG or len(name) < 5 or name[1] == name[2]:
        return name[:-1] if len(name) > 3 else name + name[-1]
    return name[0] + name[2] + name[1] + name[3:]


def slips(path):
    """Every name that a command line takes, mistyped: the one that was meant is named."""
    commands = re.findall(r"^  ([a-z-]+) ", run(["--help"]).text, re.M)
    cases = [([slip(name)], name) for name in commands]
    for group in ("data", "checkpoint", "export", "bench", "federate"):
        listed = re.findall(rf"^lockstep {group} ([a-z-]+)", run([group, "--help"]).text, re.M)
        cases += [([group, slip(name)], name) for name in set(listed)]
    for what in ("models", "tasks"):
        names = re.findall(r"^([a-z0-9-]+):", run([what]).text, re.M)
        cases += [([what, slip(name)], name) for name in names]
        key = {"models": "model.name", "tasks": "task.kind"}[what]
        cases += [(["plan", DECK, f"--{key}", slip(name)], name) for name in names]
    kinds = re.search(r"the kinds are (.*?)\.? Usage", run(["data", "import"]).text).group(1)
    cases += [(["data", "import", slip(name), path, path], name) for name in re.split(r", | and ", kinds)]
    for command in ("train", "checkpoint export", "report", "launch", "bench step"):
        told = run([*command.split(), "--help"], env={"COLUMNS": "1000"}).text
        for option, values in re.findall(r"^ +(--[a-z-]+) ([a-z0-9-]+(?:[|,][a-z0-9-]+)+)", told, re.M):
            cases += [([*command.split(), path, path, option, slip(value)], value) for value in re.split(r"[|,]", values)]
    for key, values in re.findall(r"^  ([a-z-]+\.[a-z-]+) \([^)]*\) ([a-z0-9-]+(?: \| [a-z0-9-]+)+)$", run(["train", "--help"], env={"COLUMNS": "1000"}).text, re.M):
        cases += [(["plan", DECK, f"--{key}", slip(value)], value) for value in values.split(" | ") if len(value) > 3]
    check(len(cases) > 150, f"{len(cases)}")
    every = {meant for _, meant in cases}  # a slip may be as near to another name
    for wrong, meant in some(cases, 24):
        told = run(wrong)
        names = re.findall(r"Did you mean ([a-z0-9-]+)\?", told.text)
        check(told.code == 64 and names and (meant in names or names[0] in every), f"{wrong}, not {meant}: {told.text}")

    # Words with one dash, and keys as other programs name them.
    for wrong, meant in some((("-optimizer.learning-rate", "--optimizer.learning-rate"), ("-train.steps", "--train.steps"),
                              ("-optimizer.x", "--optimizer.x"), ("-model.hidden", "--model.hidden"),
                              ("--train.max_epochs", "train.epochs"), ("--train.num_epochs", "train.epochs"),
                              ("--train.max-steps", "train.steps"), ("--train.total_epochs", "train.epochs"),
                              ("--data.batch_size", "data.batch"), ("--optimizer.momentum_decay", "optimizer.momentum"),
                              ("--schedule.warmup", "schedule.warmup-epochs"), ("--checkpoint.save_every", "checkpoint.every-steps"),
                              ("--monitor.log_interval", "monitor.log-every")), 5):
        for command in some((["train"], ["plan"], ["launch", "--yes", "--show"])):
            run([*command, DECK, wrong, 1]).expect(64, f"Did you mean {meant}?")
    run(["train", DECK, "-force"]).expect(64, "options begin with two dashes", "Did you mean --force?")


def of_torchrun(scratch):
    """As torchrun, and those that do as it does, start processes: they are no ranks of one run."""
    started = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": "29500"}
    elastic = {**started, "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0"}
    refused = "torchrun does not pass the rank numbers to MPI"
    train_words = ["train", DECK, "--run.directory", scratch / "of-torchrun"]
    for words, env, code, *told in some((
            (train_words, started, 69, "started 2 tasks", refused, "mpirun -n 2"), (train_words, elastic, 69, refused),
            (["plan", DECK], elastic, 69, refused),
            (["train", DECK], {**elastic, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, 69, refused),
            (["launch", "--show", DECK], elastic, 64, "lockstep launch was started by torchrun"))):
        run(words, env=env).expect(code, *told)
    others = run(["train", DECK], env={**elastic, "RANK": "1"}).expect(69).text
    check("lockstep" not in others, f"the first task alone says why: {others}")
    check(not (scratch / "of-torchrun").exists(), "nothing was begun")
    for alone in some(({**elastic, "WORLD_SIZE": "1"}, {"WORLD_SIZE": "4"}, {"RANK": "0", "WORLD_SIZE": "4"})):
        run(["plan", DECK, "--data.train", scratch / "set.h5", "--data.validation", ""], env=alone).expect(0)
    run(["plan", DECK, "--data.train", scratch / "set.h5", "--data.validation", ""], ranks=2, env=elastic).expect(0)


def by_pattern(scratch, data):
    """The pattern of a deck in a checkpoint is compared with the output, and neither a directory nor data are read."""
    sets, run_ = scratch / "sets", scratch / "by-pattern"
    sets.mkdir()
    shutil.copy(data, sets / "set.h5")
    train(run_, "--data.train", sets / "s*.h5", "--data.validation", "", "--data.global-batch", 16, "--train.steps", 1,
          ranks=1).expect(0)
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    check(libc.inotify_add_watch(watch, os.fsencode(sets), 0x20) > 0, "directories that are opened are told")
    os.listdir(sets)
    check(os.read(watch, 4096), "one that the test has opened is")
    for name, format_ in (("out.onnx", "onnx"), ("out.pt", "torchscript"), ("out.safetensors", "safetensors")):
        run(["checkpoint", "export", run_, scratch / f"pattern-{name}", "--format", format_]).expect(0)
    run(["checkpoint", "export", run_, sets / "set.h5", "--format", "hdf5", "--overwrite"]).expect(
        73, "the deck names this file")
    run(["checkpoint", "quantise", run_, scratch / "pattern8.h5"]).expect(64, "data.train is not set")
    try:
        sys.exit(f"failed: the export has read {sets}: {os.read(watch, 4096)}")
    except BlockingIOError:
        os.close(watch)


def with_path(tools, directory, *options, ranks=RANKS):
    """Ranks whose programs are looked for in `tools` first; mpirun puts its own place before."""
    command = [os.environ["LOCKSTEP_MPIEXEC"], "-n", ranks, "env", f"PATH={tools}:{os.environ['PATH']}",
               LOCKSTEP, "train", DECK, *words, "--run.directory", directory, "--train.steps", 2,
               "--monitor.plots", "true", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


with Scratch() as scratch:
    os.chdir(scratch)
    data = small_set(scratch / "set.h5")
    evaluated = ("--data.validation", data)
    words = ("--data.train", data, "--data.validation", data, "--data.global-batch", 16, "--train.validate-every", 0)

    # The console: the last epoch's line, though each was shorter than ten seconds and the model has
    # figures of its own; no advice on intervals that are longer than the run.
    one = scratch / "one"
    text = train(one, *words, "--train.steps", 0, "--train.epochs", 3, ranks=1).expect(0).text
    shown = re.findall(r"^epoch (\d+):", text, re.M)
    check(shown[0] == "1" and shown[-1] == "3", f"first and last epoch: {shown}\n{text}")
    check(len(re.findall(r"^validation at step", text, re.M)) == 3, text)
    check("advice" not in text, text)
    times = re.findall(r"([\d.]+) (m?s)", re.search(r": 6 steps in (.*) with start", text).group(1))
    took, in_all = (float(number) * {"ms": 0.001, "s": 1}[unit] for number, unit in times)
    check(took < in_all, f"steps take less time than all: {took} s, {in_all} s")
    cart = scratch / "cart"

    def slow_epochs():
        slow = train(scratch / "slow", *words, "--data.global-batch", 4, "--optimizer.accumulate", 1, "--train.steps", 0,
                     "--train.epochs", 3, ranks=1, env={"LOCKSTEP_INJECT": "slow:rank=0"}).expect(0).text
        check(re.findall(r"^epoch (\d+):", slow, re.M) == ["1", "2", "3"], f"each epoch that takes a second: {slow}")

    def played_epochs():
        text = run(["train", pathlib.Path(DECK).with_name("cartpole.ini"), "--run.directory", cart,
                    "--train.epochs", 12, "--train.steps", 0]).expect(0).text
        told = [record["epoch"] for record in records(cart, "epoch")]
        shown = [int(epoch) for epoch in re.findall(r"^epoch (\d+):", text, re.M)]
        slow = [record["epoch"] for record in records(cart, "epoch") if record["seconds"] >= 1]
        check(set(slow) | {told[0], told[-1]} <= set(shown), f"{slow} {shown} of {told}")

    for part in some((slow_epochs, played_epochs)):
        part()

    # gnuplot never decides how a run ends.
    tools = scratch / "tools"
    tools.mkdir()
    fake = tools / "gnuplot"
    for number, script in enumerate(some(["sleep 1000", "exec >&-; sleep 1000", "kill -9 $$",
                                          "test \"$1\" = --version || sleep 1000", "echo garbage"])):
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        code, text = with_path(tools, scratch / f"fake{number}", "--communication.timeout-seconds", 6)
        check(code == 0 and "finished at step 2" in text, f"{script}: {code} {text}")
        check(text.count("warning: no pictures") == 1, f"{script}: {text}")
    fake.write_text("#!/bin/sh\ntest \"$1\" = --version || kill -9 $PPID\n")
    code, text = with_path(tools, scratch / "lost", ranks=2)
    check(code != 0 and re.search("root cause: rank 0 .* in the last records and pictures at step 2", text),
          f"a rank that is lost at its pictures: {code} {text}")
    fake.unlink()
    if LONG:
        fake.mkdir()
        code, text = with_path(tools, scratch / "fake")
        check(code == 0 and "finished at step 2" in text, f"a directory: {code} {text}")

    # A run's directory where a file of it is meant.
    best = run(["evaluate", DECK, one / "best.h5", *evaluated]).expect(0).text
    text = run(["evaluate", DECK, one, *evaluated], RANKS).expect(0, f"with {one}/best.h5").text
    check(text.endswith(best), f"{text} {best}")
    # Without a deck, that of the model counts, but not its data sets.
    text = run(["evaluate", one / "best.h5", "--data.test", data], RANKS).expect(0).text
    check(text.partition(":")[2] == best.partition(":")[2], f"{text} {best}")
    run(["evaluate", one / "best.h5"]).expect(64, "there is nothing to evaluate")
    run(["evaluate", DECK]).expect(64, "it is neither a checkpoint, a best.h5 or a safetensors file nor the directory of a run")
    (one / "best.h5").rename(scratch / "kept.h5")
    run(["evaluate", DECK, one, *evaluated]).expect(0, f"with {checkpoints(one)[-1]}")
    run(["evaluate", DECK, tools, *evaluated]).expect(66, "no model in")
    text = run(["checkpoint", "info", one]).expect(0, "model       cnn", "test_small, step 6").text
    check("epoch_count" not in text and "owes_validation" not in text and "cursor" not in text, text)

    # What is there stays there.
    for name in some(("out.safetensors", "out.h5", "out.pt")):
        export = ["checkpoint", "export", one, scratch / name]
        run(export).expect(0)
        before = (scratch / name).stat().st_ino
        run(export).expect(73, "already exists", "--overwrite")
        check((scratch / name).stat().st_ino == before, f"{name} was written again")
        run([*export, "--overwrite"]).expect(0)
    newest = checkpoints(one)[-1]
    kept = scratch / "kept.h5"
    for source, out, why in ((one, newest, "only the checkpoints of runs"), (one, one, "not a regular file"), (kept, kept, "file that is read")):
        run(["checkpoint", "export", source, out, "--format", "hdf5", "--overwrite"]).expect(73, why)
        if source != out:
            run(["evaluate", DECK, source, *evaluated, "--outputs", out, "--overwrite"]).expect(73, why)
    run(["evaluate", DECK, kept, *evaluated, "--outputs", kept, "--overwrite"]).expect(73, "file that is read")
    # Nor are the files that the deck names, or the best model of a run, replaced by others.
    mine = scratch / "mine.h5"
    shutil.copy(data, mine)
    by_deck = ["--data.train", mine, "--overwrite"]
    run(["checkpoint", "export", one, mine, "--format", "onnx", *by_deck]).expect(64, "Name a file that ends in .onnx")
    for wrong in some((["export", one, mine, "--format", "torchscript", *by_deck],
                       ["quantise", one, mine, *by_deck])):
        run(["checkpoint", *wrong]).expect(73, "the deck names this file")
        check(mine.read_bytes() == data.read_bytes(), f"{wrong}: the data")
    by_pattern(scratch, data)
    for wrong in some((["export", one, one / "best.h5", "--format", "hdf5"], ["quantise", one, one / "best.h5"])):
        run(["checkpoint", *wrong, "--overwrite"]).expect(73, "it is the best model of a run")
    run(["checkpoint", "export", one, "", "--format", "hdf5"]).expect(64, "the name of the output file is empty")
    run(["report", one, "--output", "told"]).expect(0)
    run(["report", one, "--output", "told"]).expect(73, "report.md already exists")
    run(["report", one, "--output", "told", "--overwrite"]).expect(0)
    run(["report", one]).expect(0)
    run(["report", one]).expect(0)
    run(["report", one, "--format", "bmp"]).expect(64, "png, pdf, svg")

    # A working directory that is gone is said to be that.
    done = subprocess.run(["sh", "-c", f"mkdir {scratch}/gone && cd {scratch}/gone && rmdir ../gone && exec {LOCKSTEP} train {DECK}"],
                          capture_output=True, text=True)
    check(done.returncode == 66 and "the working directory cannot be used" in done.stderr, f"{done}")

    # Files instead of directories; help of each subcommand by itself.
    os.chdir(one)
    run(["report", "metrics.jsonl"]).expect(0, "| one | finished |")
    os.chdir(scratch)
    run(["report", one / "metrics.jsonl"]).expect(0, "| one | finished |")
    run(["report", data]).expect(65, "holds no records of a run")
    run(["report", DECK]).expect(65, "it is a text file.")
    for command in ("checkpoint prune", "checkpoint info", "checkpoint verify", "checkpoint diff",
                    "checkpoint export", "bench allreduce", "bench loader", "bench step",
                    "bench checkpoint"):
        text = run([*command.split(), "--help"]).expect(0).text
        check(all(line.startswith((" ", f"lockstep {command}")) for line in text.splitlines()), text)
    for command in ("report", "watch", "evaluate", "verify-resume", "plan", "estimate", "check"):
        run([command, "--help"]).expect(0, f"lockstep {command}")
    # What the list of all commands names is an option of the command; what none has is refused in one way.
    listed = re.findall(r"^  ([a-z-]+) (.*)$", run(["--help"], env={"COLUMNS": "1000"}).text, re.M)
    check(len(listed) == 25, f"{listed}")
    for command, usage in listed:
        told = run([command, "--help"]).expect(0).text
        for option in re.findall(r"--[a-z][a-z-]*(?:\.key)?", usage):
            check(option in told, f"{option} of lockstep {command} in {told}")
    for wrong in some((["watch", one, "--onec"], ["report", one, "--formats", "png"], ["data", "info", data, "--input", "x"],
                       ["data", "import", "idx", "--classe", "a", data, "x"], ["checkpoint", "prune", one, "--kep", 1],
                       ["checkpoint", "export", one, "x.h5", "--overwrit"], ["bench", "step", "--step", 2],
                       ["launch", "--show", DECK, "--device", 2], ["plan", DECK, "--rank", 2],
                       ["train", DECK, "--quite"], ["estimate", DECK, "--step", 2], ["check", "--jsn"],
                       ["verify-resume", DECK, "--rank", 1]), 4):
        option = next(word for word in wrong if str(word).startswith("--") and word != "--show")
        run(wrong).expect(64, f"unknown option {option}", f"Did you mean {option[:3]}", "Usage: lockstep")
    run(["verify-resume", DECK, "--ranks", 1, "--resume-ranks", 1, "--kill-at", 1, "--steps", 2],
        ranks=2).expect(64, "this command starts the ranks itself")
    slips(data)
    of_torchrun(scratch)

    # Interrupted, in words; the record keeps the signal.
    cut = scratch / "cut"
    child = subprocess.Popen(
        [LOCKSTEP, *map(str, ("train", DECK, *words, "--run.directory", cut, "--train.steps", 10**6,
                              "--train.epochs", 0, "--monitor.log-every", 1))],
        stdout=subprocess.PIPE, text=True)
    sent, text = False, ""
    for line in child.stdout:
        text += line
        if not sent and line.startswith("step 1/"):
            child.send_signal(signal.SIGUSR1)
            sent = True
    check(child.wait(60) == 75, text)
    check("interrupted at step" in text and not re.search(r"^SIGUSR1", text, re.M), text)
    check(records(cut, "end")[-1]["reason"] == "SIGUSR1", "the record")
    run(["report", cut]).expect(0, "| cut | interrupted |")
    run(["watch", cut, "--once"]).expect(0, "interrupted")
    line = json.loads((cut / "history.jsonl").read_text().splitlines()[-1])
    stalls = sum(record["stall_s"] for record in records(cut, "checkpoint"))
    check(abs(line["checkpoint_s"] - stalls) < 1e-6, f"{line} {stalls}")
    check(line["checkpoint_write_s"] >= line["checkpoint_s"], f"{line}")
