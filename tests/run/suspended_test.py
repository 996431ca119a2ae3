"""A job that is suspended as a whole for longer than its time limits continues where it was: a rank that wakes before
the others has not waited while it was stopped. In waves, as Slurm does it: TSTP to all, then STOP, then CONT, one
process after the other. LOCKSTEP_LONG=1 takes every launcher and every phase."""
import os
import pathlib
import signal
import subprocess
import time

from harness import DATA, DECK, DRAW, LOCKSTEP, Scratch, check, check_same, records, some, together, train

TIMEOUT = 6  # communication.timeout-seconds; the machine may be busy
SUSPENDED = TIMEOUT + 5
STEPS = 40
MPIRUN = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", LOCKSTEP, "train"]
LAUNCH = [LOCKSTEP, "launch", "--yes", "--devices", "2"]
THREADS = [LOCKSTEP, "train"]


def family(first):
    """A process and all that it has started, directly or not."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass  # it has ended meanwhile
    found = [first]
    for each in found:
        found += [process for process, parent in parents.items() if parent == each]
    return found


def signal_each(processes, number, longest_pause_s):
    for process in DRAW.sample(processes, len(processes)):
        time.sleep(DRAW.uniform(0, longest_pause_s))
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def continues(scratch, whole, name, launcher, ready, *options):
    directory = scratch / name
    process = subprocess.Popen(
        [*launcher, DECK, "--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5", "--run.directory",
         directory, "--run.replicas", "2", "--train.steps", str(STEPS), "--communication.timeout-seconds", str(TIMEOUT),
         *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LOCKSTEP_INJECT": "slow:rank=0", "LOCKSTEP_START_SECONDS": str(TIMEOUT)})
    while not ready(directory):
        check(process.poll() is None, f"{name}: it has ended too early\n{process.poll()}")
        time.sleep(0.01)
    time.sleep(DRAW.uniform(0, 0.5))  # anywhere in a step
    suspended = family(process.pid)
    signal_each(suspended, signal.SIGTSTP, 0.05)
    time.sleep(1)
    signal_each(suspended, signal.SIGSTOP, 0.05)
    time.sleep(SUSPENDED)
    signal_each(suspended, signal.SIGCONT, 0.5)
    text = process.communicate(timeout=200)[0]
    check(process.returncode == 0, f"{name}: exit code {process.returncode}\n{text}")
    check_same(whole, directory, f"{name}: the same bits")
    print(f"{name}: {len(suspended)} processes continued")


def trains(directory):
    return (directory / "metrics.jsonl").exists() and len(records(directory, "step")) >= 5


def starts(directory):
    return directory.exists()


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, "--train.steps", STEPS, "--run.replicas", 2, ranks=2).expect(0)
    together([lambda case=case: continues(scratch, whole, *case) for case in some((
        ("mpirun", MPIRUN, trains),
        ("launch", LAUNCH, trains),
        ("mpirun-start", MPIRUN, starts),
        ("launch-start", LAUNCH, starts),
        ("threads", THREADS, trains, "--run.mode", "dp", "--run.threads", "1")), 2)])
