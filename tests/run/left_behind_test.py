"""A command that a signal ends leaves nothing behind: no process that it has started, directly or not, and no
temporary file or directory; commands that write files are ended while a file is incomplete. LOCKSTEP_LONG=1 takes
every command and every signal, the others at three moments each."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import DATA, DECK, DRAW, LOCKSTEP, LONG, Scratch, check, run, some, together, train
from media import png

ENDS_WITHIN_S = 120
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# mpirun kills its ranks a second after the signal; a disk that stands still makes them wait for longer.
MPIRUN = ["env", "OMPI_MCA_odls_base_sigkill_timeout=10", os.environ["LOCKSTEP_MPIEXEC"], "-n", "2"]
SET = ("--data.train", DATA / "train.h5", "--data.validation", "")
TEMPORARY = re.compile(r"verify-resume-|lockstep-bench-|probe-|^lockstep-\w{6}$|\.partial(-|$)|^arrivals$|\.samples-")
MARK = "LOCKSTEP_LEFT_BEHIND"


def marked(mark):
    """The processes that a command has started, whatever has become of their parents."""
    found = []
    for each in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (each / "environ").read_bytes().split(b"\0") and \
                    "\nState:\tZ" not in (each / "status").read_text():
                found.append((int(each.name), (each / "cmdline").read_bytes().replace(b"\0", b" ")[:100]))
        except OSError:
            pass  # it has ended meanwhile
    return found


def left_in(place):
    return [path for path in place.rglob("*") if TEMPORARY.search(path.name)]


def sees_incomplete(process, place):
    """Waits for an incomplete file; false if the command was done before one was seen."""
    while process.poll() is None:
        if any(".partial-" in file for _, _, files in os.walk(place) for file in files):
            return True
        time.sleep(0.0005)
    return False


def end_while_writing(scratch, name, command, number):
    """Some files are whole so soon that they are not seen every time."""
    for attempt in range(20):
        if end_by_signal(scratch, f"{name}-{attempt}", command, number, None):
            return
    sys.exit(f"{name}: no incomplete file was ever seen")


def end_by_signal(scratch, name, command, number, after_s):
    """What there is of it then; nothing if it was done before. Without `after_s`, while a file is incomplete; whether
    there was one."""
    mark = f"{name}-{number.name}-{after_s}"
    place = scratch / mark
    for folder in ("work", "tmp"):
        (place / folder).mkdir(parents=True)
    with open(place / "output", "w") as output:
        process = subprocess.Popen([str(word) for word in command], cwd=place / "work", start_new_session=True,
                                   env={**os.environ, "TMPDIR": str(place / "tmp"), MARK: mark}, stdout=output,
                                   stderr=output)
        if after_s is None:
            seen = sees_incomplete(process, place / "work")
        else:
            seen = time.sleep(after_s)
        process.send_signal(number)
        ended = time.monotonic() + ENDS_WITHIN_S
        while process.poll() is None or marked(mark):
            check(time.monotonic() < ended, f"{mark}: exit code {process.poll()}, still there: {marked(mark)}\n"
                  f"{(place / 'output').read_text()}")
            time.sleep(0.1)
    left = left_in(place)
    text = (place / "output").read_text()
    check(not left, f"{mark}: exit code {process.returncode}, left behind: {left}\n{text}")
    is_told = "root cause" not in text or "a signal asked it to stop" in text  # an import can be resumed
    check(is_told and "bug" not in text, f"{mark}: nothing has failed\n{text}")
    print(f"{mark}: {process.returncode}", flush=True)
    return seen


def commands(scratch):
    deck = [DECK, *SET]
    model = scratch / "model.c"
    (scratch / "space.ini").write_text("[search]\nstrategy = grid\ngoals = parameters min\n[space]\n"
                                       "run.seed = list(1, 2, 3, 4)\n")
    long = ("--train.epochs", "0", "--train.steps", "100000")
    return {
        "verify-resume": [LOCKSTEP, "verify-resume", *deck, "--ranks", 2, "--resume-ranks", 1, "--kill-at", 20,
                          "--steps", 40],
        "bench": [LOCKSTEP, "bench", "checkpoint", "--mb", 50],
        "bench-ranks": [*MPIRUN, LOCKSTEP, "bench", "checkpoint", "--mb", 50],
        "bench-loader": [LOCKSTEP, "bench", "loader", "--kind", "large"],
        "bench-loader-ranks": [*MPIRUN, LOCKSTEP, "bench", "loader", "--kind", "large"],
        "bench-step": [LOCKSTEP, "bench", "step"],
        "bench-step-ranks": [*MPIRUN, LOCKSTEP, "bench", "step"],
        "check": [LOCKSTEP, "check", *deck],
        "check-ranks": [*MPIRUN, LOCKSTEP, "check", *deck],
        "estimate-ranks": [*MPIRUN, LOCKSTEP, "estimate", *deck],
        "launch": [LOCKSTEP, "launch", "--yes", *deck, "--devices", 2, *long],
        "search": [LOCKSTEP, "search", scratch / "space.ini", *deck, *long],
        "search-ranks": [*MPIRUN, LOCKSTEP, "search", scratch / "space.ini", *deck, *long],
        "simulate": [LOCKSTEP, "federate", "simulate", *deck, "--sites", 3, "--rounds", 50],
        "simulate-ranks": [*MPIRUN, LOCKSTEP, "federate", "simulate", *deck, "--sites", 3, "--rounds", 50],
        "export-check": [LOCKSTEP, "export", "check", model, "--data", DATA / "train.h5"],
        "predict": [LOCKSTEP, "predict", scratch / "run", DATA / "train.h5", "--output", "said.csv"],
        "predict-pictures": [LOCKSTEP, "predict", scratch / "run", scratch / "pictures", "--output", "said.csv"],
        "evaluate": [LOCKSTEP, "evaluate", DECK, scratch / "run", *SET, "--outputs", "outputs.h5"],
        "report": [LOCKSTEP, "report", scratch / "run", "--output", "report"]}


def writers(scratch):
    """Commands that write files, which are large enough to be seen while they are incomplete."""
    set_of = ("--data.train", DATA / "train.h5")
    export = [LOCKSTEP, "checkpoint", "export", scratch / "large"]
    return {
        "export-safetensors": [*export, "model.safetensors"], "export-hdf5": [*export, "model.h5"],
        "export-torchscript": [*export, "model.pt"], "export-onnx": [*export, "model.onnx"],
        "export-c": [*export, "model.c"],
        "quantise": [LOCKSTEP, "checkpoint", "quantise", scratch / "large", "int8.h5", *set_of],
        "predict": [LOCKSTEP, "predict", scratch / "run", DATA / "train.h5", "--output", "said.csv"],
        "predict-hdf5": [LOCKSTEP, "predict", scratch / "run", DATA / "train.h5", "--output", "said.h5"],
        "evaluate": [LOCKSTEP, "evaluate", DECK, scratch / "run", *SET, "--outputs", "outputs.h5"],
        "evaluate-ranks": [*MPIRUN, LOCKSTEP, "evaluate", DECK, scratch / "run", *SET, "--outputs", "outputs.h5"],
        "evaluate-cache": [LOCKSTEP, "evaluate", DECK, scratch / "run", *set_of, "--data.validation",
                           DATA / "test.h5", "--data.cache", "local:cache"],
        "import": [LOCKSTEP, "data", "import", "hdf5", DATA / "train.h5", "imported.h5"],
        "simulate": [LOCKSTEP, "federate", "simulate", DECK, *SET, "--sites", 3, "--rounds", 1]}


with Scratch() as scratch:
    train(scratch / "large", *SET, "--model.name", "mlp", "--model.hidden", "2048, 2048", "--train.steps", 1,
          "--train.epochs", 0, ranks=1).expect(0)
    train(scratch / "run", *SET, "--train.steps", 10, "--train.epochs", 0, ranks=1).expect(0)
    run(["checkpoint", "export", scratch / "run", scratch / "model.c", "--format", "c"]).expect(0)
    (scratch / "pictures").mkdir()
    for number in range(2000):
        (scratch / f"pictures/{number}.png").write_bytes(png([[(number % 256,)] * 28] * 28, 8, 0))
    table = [(name, command, number, DRAW.uniform(0.2, 3)) for name, command in commands(scratch).items()
             for number in SIGNALS for _ in range(3 if LONG else 1)
             if number != signal.SIGHUP or name not in ("search", "simulate")]  # which continue where nobody listens
    writing = [(name, command, number) for name, command in writers(scratch).items() for number in SIGNALS
               if number != signal.SIGHUP or name != "simulate"]
    together([lambda case=case: end_by_signal(scratch, *case) for case in some(table, 5)] +
             [lambda case=case: end_while_writing(scratch, *case) for case in some(writing, 5)])
