"""Signals and the walltime, in every phase: one signalled rank is enough, the run leaves with 75, and
resumes to the same bits and the same records as if nothing had been. LOCKSTEP_LONG=1 resumes on two ranks, too."""
import os
import pathlib
import signal
import subprocess
import time

import harness
from harness import DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, checkpoints, records, run

SOURCE = os.environ.get("LOCKSTEP_FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def train(directory, *options, ranks=2 if LONG else 1, env=None):
    """What is not signalled."""
    return harness.train(directory, *options, ranks=ranks, env=env)


def start(*words, ranks=2):
    front = [os.environ["LOCKSTEP_MPIEXEC"], "-n", str(ranks)] if ranks else []
    return subprocess.Popen([*front, LOCKSTEP, *map(str, words)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def start_training(directory, *options, ranks=2):
    return start("train", DECK, "--data.train", DATA / "train.h5", "--data.validation",
                 DATA / "test.h5", "--run.directory", directory, *options, ranks=ranks)


def wait_for(process, what, condition):
    deadline = time.monotonic() + 300
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            check(False, f"{what}, before it ended:\n{process.communicate()[0]}")
        time.sleep(0.005)


def signals_of(pid, kind):
    """The signals that a process catches (SigCgt), or that wait for it (ShdPnd)."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith(kind)).split()[1], 16)
    return {number for number in signal.valid_signals() if mask >> (number - 1) & 1}


def ranks_of(launcher):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().rsplit(")", 1)
            if int(rest.split()[1]) == launcher.pid and name.endswith("(lockstep"):
                found.append(int(stat.parent.name))
        except (OSError, ValueError):
            pass  # gone meanwhile
    return found


def has(directory, event, count=1):
    return (directory / "metrics.jsonl").exists() and len(records(directory, event)) >= count


def leaves_with_75(process, directory, reason="SIGUSR1"):
    text = process.communicate(timeout=300)[0]
    check(process.returncode == 75, f"exit 75, not {process.returncode}:\n{text}")
    end = records(directory, "end")[-1]
    check(end["reason"] == reason, f"the reason: {end}")
    check(checkpoints(directory)[-1].stem == f"step-{end['step']:08d}", f"a checkpoint: {end}")
    return end


def during_start_up(scratch, whole):
    """One rank, while LibTorch is loaded: no step is taken."""
    directory = scratch / "start"
    process = start_training(directory)
    wait_for(process, "a rank notes signals",
             lambda: len(ranks_of(process)) == 2
             and signal.SIGUSR1 in signals_of(ranks_of(process)[1], "SigCgt"))
    os.kill(ranks_of(process)[1], signal.SIGUSR1)
    check(leaves_with_75(process, directory)["step"] == 0, "it leaves before the first step")
    check(records(directory, "signal")[0]["rank"] in (0, 1), "the rank is told")
    train(directory).expect(0)
    check_same(whole, directory, "and resumes to the same bits")


def during_validation(scratch):
    """Ends early between batches; the validation is owed, and done first at the resume."""
    options = ("--train.validate-every", 1, "--train.steps", 4)
    whole = scratch / "validated"
    train(whole, *options).expect(0)
    for attempt in range(8):
        directory = scratch / f"validating-{attempt}"
        process = start_training(directory, *options)
        wait_for(process, "the second step", lambda: len(records(directory, "step")) >= 2
                 if has(directory, "step") else False)
        process.send_signal(signal.SIGUSR1)
        step = leaves_with_75(process, directory)["step"]
        owed = step not in [each["step"] for each in records(directory, "validation")]
        train(directory, *options).expect(0)
        check_same(whole, directory, "the same bits, the best metric among them")
        measured = [[(each["step"], each["loss"], each["best"])
                     for each in records(path, "validation")] for path in (whole, directory)]
        check(measured[0] == measured[1], f"the same validations, once each: {measured}")
        if owed:
            return
    check(False, "no signal of eight met a validation")


def during_the_test(scratch):
    directory = scratch / "testing"
    options = ("--train.steps", 2, "--train.validate-every", 1000, "--data.validation", "",
               "--data.test", DATA / "train.h5")
    process = start_training(directory, *options)
    wait_for(process, "the last checkpoint", lambda: has(directory, "checkpoint", 2))
    process.send_signal(signal.SIGUSR1)
    leaves_with_75(process, directory)
    check(not records(directory, "test"), "a test that was cut short is not recorded")
    train(directory, *options).expect(0, "finished at step 2")
    check(len(records(directory, "test")) == 1, "it is made up for")
    train(directory, *options).expect(0, "this run is finished")
    check(len(records(directory, "test")) == 1, "and not done twice")


def before_the_walltime(scratch, whole):
    # A tenth of a second per step, which leaves the processor to others; and as much time as ranks need to
    # start beside others.
    for seconds in (12, 36, 108):
        directory = scratch / f"walltime-{seconds}"
        left = train(directory, "--run.walltime-seconds", seconds, "--train.steps", 0, "--train.epochs", 50, ranks=2,
                     env={"LOCKSTEP_INJECT": "slow:rank=0"})
        if "too little time for its first step" not in left.text:
            break
    left.expect(75, "time is nearly over")
    signalled = records(directory, "signal")[-1]
    check(signalled["signal"] == "walltime" and signalled["rank"] == 0, f"{signalled}")
    slowest = max(record["step_ms"] for record in records(directory, "step")) / 1000
    check(signalled["elapsed_s"] < seconds + slowest, f"it leaves in time: {signalled}, {slowest} s per step")
    check(records(directory, "end")[-1]["reason"] == "walltime", "the reason is told")
    # What the job has used already counts.
    late = scratch / "late"
    train(late, "--run.walltime-seconds", 100,
          env={"LOCKSTEP_JOB_STARTED": str(int(time.time()) - 200)}).expect(75)
    check(not records(late, "step"), "no time is left for a step")
    train(late, "--run.walltime-seconds", 5).expect(64, "too little time for its first step")
    train(late, "--run.walltime-seconds", 1000, env={"LOCKSTEP_JOB_STARTED": "noon"}).expect(
        0, "job ends at 20", " UTC, in 16 min ", "warning: LOCKSTEP_JOB_STARTED = noon is ignored")
    check_same(whole, late, "and the next job resumes to the same bits")


def twice_by_keyboard(scratch):
    """The second SIGINT ends a rank that could not leave at the first: it waits for one that is stopped."""
    directory = scratch / "twice"
    process = start_training(directory, "--train.steps", 0, "--train.epochs", 1000)
    wait_for(process, "a step", lambda: has(directory, "step"))
    first, stopped = ranks_of(process)
    os.kill(stopped, signal.SIGSTOP)
    for _ in range(2):
        os.kill(first, signal.SIGINT)
        # Two that wait are one to the kernel.
        wait_for(process, "the signal is taken",
                 lambda: not pathlib.Path(f"/proc/{first}").exists()
                 or signal.SIGINT not in signals_of(first, "ShdPnd"))
    process.communicate(timeout=300)
    check(process.returncode == 128 + signal.SIGINT, f"{process.returncode}: at once")


def during_an_import(scratch):
    out = scratch / "imported"
    process = start("data", "import", "idx", SOURCE, out, ranks=0)
    wait_for(process, "a file is begun", lambda: list(out.glob("*.partial-*")))
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=300)[0]
    check(process.returncode == 75 and "the import was interrupted" in text, f"{process.returncode}: {text}")
    check(not list(out.glob("*.partial-*")), f"half a file: {list(out.iterdir())}")
    for path in out.glob("*.h5"):
        run(["data", "verify", path]).expect(0)


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole).expect(0)
    during_start_up(scratch, whole)
    during_validation(scratch)
    during_the_test(scratch)
    before_the_walltime(scratch, whole)
    twice_by_keyboard(scratch)
    during_an_import(scratch)
