"""What the whole-program tests share: start lockstep under mpirun, look at what came out."""
import concurrent.futures
import errno
import fcntl
import gc
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

gc.set_threshold(100_000)  # what torch.export makes stays; to look through it takes a sixth of Python's time

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", SOURCE / "build"))
DATA = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", BUILD / "tests/data"))
LOCKSTEP = str(BUILD / "lockstep")
DECK = str(SOURCE / "inputs/test_small.ini")
LONG = os.environ.get("LOCKSTEP_LONG") == "1"  # ./bootstrap test --long: the whole of every table
SEED = int(os.environ.get("LOCKSTEP_SEED", "1"))  # of what is drawn at random
DRAW = random.Random(SEED)


def some(cases, count=1):
    """All cases in the long form, else so many of them, drawn by the seed."""
    cases = list(cases)
    return cases if LONG else DRAW.sample(cases, min(count, len(cases)))


class Scratch:
    """A directory that goes with the test."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-run-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Result:
    def __init__(self, code, text, seconds, command=""):
        self.code, self.text, self.seconds, self.command = code, text, seconds, command

    def expect(self, code, *phrases):
        if self.code != code:
            sys.exit(f"exit code {self.code}, expected {code}: {self.command}\n{self.text}")
        for phrase in phrases:
            if phrase not in self.text:
                sys.exit(f"missing in the output: {phrase!r}\n{self.text}")
        return self


def run(words, ranks=0, env=None, limit=300, last_through=()):
    """Runs lockstep with these words; under mpirun for ranks >= 1, the last rank through another command."""
    command = [LOCKSTEP, *map(str, words)]
    if last_through:
        command = ["-n", str(ranks - 1), *command, ":", "-n", "1", *last_through, *command]
    elif ranks:
        command = ["-n", str(ranks), *command]
    if ranks:
        command.insert(0, os.environ["LOCKSTEP_MPIEXEC"])
    env = {**os.environ, **(env or {})}
    if "kill:" in env.get("LOCKSTEP_INJECT", ""):  # mpirun leaves when its ranks are gone, as users have it
        env.pop("OMPI_MCA_odls_base_sigkill_timeout", None)
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env, errors="replace")
    except subprocess.TimeoutExpired as expired:
        sys.exit(f"no end within {limit} s: {' '.join(command)}\n{expired.stdout}{expired.stderr}")
    text = done.stdout + done.stderr
    if "HDF5-DIAG" in text:
        sys.exit(f"HDF5 printed an error stack:\n{text}")
    return Result(done.returncode, text, time.monotonic() - start, " ".join(command))


def on_terminal(command, columns, keys=(), env=None, limit=300):
    """Runs a command on a terminal of so many columns; `keys` are (phrase, times, keys): pressed in
    turn, each once the phrase was written so many times. What it wrote, and its exit code."""
    child, master = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **(env or {})})
    text, start, keys = b"", time.monotonic(), list(keys)
    while time.monotonic() - start < limit:
        if keys and text.count(keys[0][0]) >= keys[0][1]:
            os.write(master, keys.pop(0)[2])
        if select.select([master], [], [], 0.1)[0]:
            try:
                part = os.read(master, 65536)
            except OSError as error:
                check(error.errno == errno.EIO, f"reading a terminal: {error}")
                break
            if not part:
                break
            text += part
    else:
        os.kill(child, 9)
        sys.exit(f"no end within {limit} s on a terminal:\n{text.decode(errors='replace')}")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(master)
    return text.decode(), code


def together(calls, at_once=3):
    """Makes calls that mostly wait, a few at a time; the first that fails ends the test."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def train(directory, *options, ranks=2, env=None, limit=300):
    words = ["train", DECK, "--data.train", DATA / "train.h5", "--data.validation",
             DATA / "test.h5", "--run.directory", directory, *options]
    return run(words, ranks, env, limit)


def records(directory, event):
    lines = (pathlib.Path(directory) / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == event]


def checkpoints(directory):
    return sorted((pathlib.Path(directory) / "checkpoints").glob("step-*.h5"))


def same_state(a, b):
    """Whether two runs, or checkpoints, hold the same state. A comparison that did not come to an end is no
    answer, and ends the test."""
    return compared(a, b).code == 0


def compared(a, b):
    result = run(["checkpoint", "diff", a, b])
    if result.code not in (0, 1):
        sys.exit(f"{a} and {b} could not be compared, exit code {result.code}:\n{result.text}")
    return result


PARTED = "the weights first differ after step"


def check_same(a, b, text):
    """That two runs, or checkpoints, hold the same state, and that their runs' weights were the same after every
    step that both have told of. If not, both runs are kept, and where they part is said."""
    state, runs = compared(a, b), [run_of(a), run_of(b)]
    told = state.text if runs == [a, b] else state.text + compared(*runs).text
    if state.code == 0 and PARTED not in told:
        return
    kept = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-differ-"))
    for name, path in zip("ab", runs):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, kept / name)
    sys.exit(f"failed: {text}\n{told}both are kept in {kept}")


def run_of(path):
    """The run that a checkpoint lies in, if it does."""
    path = pathlib.Path(path)
    return path.parent.parent if (path.parent.parent / "metrics.jsonl").exists() else path


def readme_block(mark):
    """What README.md says to paste where `mark` is."""
    return re.search(rf"```sh {mark}\n(.*?)```", (SOURCE / "README.md").read_text(), re.S)[1]


def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))
