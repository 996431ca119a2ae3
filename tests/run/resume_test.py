"""Resuming: from damaged files, with a changed deck, by signal, in a directory that is in use. The short form leaves
the last two to run.signals and run.fencing."""
import os
import shutil
import signal
import subprocess
import time

import harness
from harness import DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, checkpoints, flip, records, run, some


def train(directory, *options, ranks=2 if LONG else 1, env=None):
    return harness.train(directory, *options, ranks=ranks, env=env)


def from_an_earlier_one(scratch):
    """What a run had beyond the checkpoint that it is told to resume from is moved aside, and no later start takes it."""
    keys = ("--checkpoint.every-steps", 2, "--checkpoint.keep", 9, "--train.validate-every", 2)
    late, job = scratch / "late", {"SLURM_JOB_ID": "12"}
    train(late, *keys, "--train.steps", 12).expect(0)
    again = (*keys, "--optimizer.learning-rate", 0.02, "--force")

    def left(run_):
        return sorted(path.name for path in (run_ / "checkpoints").glob("abandoned-*/*"))

    def resumed(name, own, steps, **more):
        """A start in a copy of the run, from its own checkpoint of step 4 or from one of another directory."""
        run_ = scratch / name
        if not run_.exists():
            shutil.copytree(late, run_)
        file = run_ / "checkpoints/step-00000004.h5" if own else shutil.copy(checkpoints(late)[2], scratch / "four.h5")
        return run_, train(run_, "--checkpoint.resume", file, *again, "--train.steps", steps, **more)

    for own in some((True, False)):
        name = "own" if own else "other"
        whole, told = resumed(f"{name}-whole", own, 10)
        told.expect(0, "moved ", " later checkpoints and best.h5 to ", "at step 4", "finished at step 10")
        check("best.h5" in left(whole) and "step-00000012.h5" in left(whole), f"{left(whole)}")
        check((whole / "best.h5").exists(), "a best model of its own")
        # Lost at step 7, and started again: by the job, and by hand without the key.
        lost, told = resumed(name, own, 10, env={**job, "LOCKSTEP_INJECT": "kill:rank=0:step=7"})
        check(told.code != 0, told.text)
        lost, told = resumed(name, own, 10, env={**job, "SLURM_RESTART_COUNT": "1", "LOCKSTEP_INJECT": "kill:rank=0:step=9"})
        check(told.code != 0 and "at step 6" in told.text, told.text)
        train(lost, *again, "--train.steps", 10).expect(0, "at step 8", "finished at step 10")
        check_same(whole, lost, f"{name}: through a lost rank")
        check(len({path.parent for path in (lost / "checkpoints").glob("abandoned-*/*")}) == 1, "moved once")

    # Lost before the first checkpoint of its own.
    soon, told = resumed("soon", False, 10, env={**job, "LOCKSTEP_INJECT": "kill:rank=0:step=5"})
    check(told.code != 0 and checkpoints(soon)[-1].name == "step-00000004.h5", "it has one from the beginning")

    # A best.h5 that is the best model of the checkpoint, too, stays.
    stays = scratch / "stays"
    shutil.copytree(late, stays)
    at = checkpoints(stays)[-1]
    shutil.copy(at, at.with_name("step-00000099.h5"))
    kept = (stays / "best.h5").read_bytes()
    told = train(stays, "--checkpoint.resume", at, *keys, "--train.steps", 13).expect(0, "moved 1 later checkpoint to ").text
    check("best.h5" not in left(stays) and ("new best" in told or (stays / "best.h5").read_bytes() == kept), told)

    # A best.h5 that a later step, or somebody else, has written is not taken for the best model.
    test = ("--data.test", DATA / "test.h5")
    skips = scratch / "skips"
    shutil.copytree(late, skips)
    for path in checkpoints(skips)[2:]:
        flip(path, 5000)
    best = records(late, "end")[-1]["best_step"]

    def not_ended(run_):
        metrics = run_ / "metrics.jsonl"
        metrics.write_text("".join(line for line in metrics.read_text().splitlines(True) if '"end"' not in line))

    not_ended(skips)
    if best > 2:
        train(skips, *keys, *test, "--train.steps", 2).expect(
            0, f"best.h5 is the model of step {best}, not of step 2", "measures the last step's model",
            "at step 2, whose model is not kept")
    foreign = scratch / "foreign"
    shutil.copytree(late, foreign)
    shutil.copy(checkpoints(late)[0], foreign / "best.h5")
    not_ended(foreign)
    train(foreign, *keys, *test, "--train.steps", 12).expect(0, f"best.h5 is the model of step 0, not of step {best}")


def by_signal_and_in_use(scratch):
    """USR1 to mpirun: a checkpoint, exit 75, and the same end after a restart. A directory in use."""
    signalled = scratch / "signalled"
    words = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", LOCKSTEP, "train", DECK, "--data.train",
             str(DATA / "train.h5"), "--data.validation", "", "--run.directory", str(signalled),
             "--train.steps", "0", "--train.epochs", "3"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (signalled / "metrics.jsonl").exists() or len(records(signalled, "step")) < 20:
        check(process.poll() is None, "still training")
        time.sleep(0.1)
    process.send_signal(signal.SIGUSR1)
    output = process.communicate(timeout=300)[0]
    check(process.returncode == 75, f"exit 75, not {process.returncode}: {output}")
    stopped = records(signalled, "signal")[-1]["step"]
    check(checkpoints(signalled)[-1].stem.endswith(f"{stopped:08d}"), "a checkpoint of that step")

    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not records(signalled, "resume"):
        time.sleep(0.1)
    run(words[4:], ranks=1).expect(73, "another live job")
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=300)
    check(process.returncode == 75, "the first job was not disturbed")


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, ranks=2).expect(0)
    run(["checkpoint", "verify", whole]).expect(0, "all bytes are intact")

    # The newest is cut short, the one before has a flipped bit: the third is taken, both are named.
    hurt = scratch / "hurt"
    shutil.copytree(whole, hurt)
    third, second, newest = checkpoints(hurt)
    os.truncate(newest, os.path.getsize(newest) - 100)
    flip(second, os.path.getsize(second) // 2)
    run(["checkpoint", "verify", second]).expect(65, "damaged")
    resumed = train(hurt).expect(0, newest.name, second.name, f"resumed from {third}")
    check_same(whole, hurt, "falling back loses time, not bits")

    # A disk that loses half of a file, or a bit, after it said that all is safe.
    for fault in some(("torn-checkpoint", "corrupt-checkpoint")):
        spoilt = scratch / fault
        train(spoilt, env={"LOCKSTEP_INJECT": f"{fault}:step={int(newest.stem[5:])}"}).expect(0)
        run(["checkpoint", "verify", checkpoints(spoilt)[-1]]).expect(65)
        train(spoilt).expect(0, newest.name, f"resumed from {checkpoints(spoilt)[-2]}")
        check_same(whole, spoilt, f"{fault}: falling back loses time, not bits")

    # None verifies.
    for path in checkpoints(hurt):
        flip(path, 5000)
    for ranks in some((1, 2, 4)):
        train(hurt, ranks=ranks).expect(65, "root cause")
    check(len(checkpoints(hurt)) == 3, "damaged files are left for a person to look at")

    # A key that changes the result needs --force.
    train(whole, "--optimizer.learning-rate", 0.5, "--train.steps", 35).expect(
        64, "optimizer.learning-rate = 0.5 (was 0.003)", "--force")
    train(whole, "--optimizer.learning-rate", 0.005, "--train.steps", 35, "--force").expect(
        0, "changed by --force")
    train(whole, "--monitor.log-every", 2, "--train.steps", 40, "--force").expect(0)

    # Another optimizer begins with none of its state, and counts its own steps.
    own = ("--data.validation", "", "--schedule.name", "constant")
    train(scratch / "sgd", *own, "--optimizer.name", "sgd", "--train.steps", 5).expect(0)
    for name, ranks, stops in (("at-once", 1, (12,)), ("in-two", 2, (8, 12))):
        shutil.copytree(scratch / "sgd", scratch / name)
        force, told = ("--force",), ("start over: exp_avg, exp_avg_sq, ema",)
        for stop in stops:
            train(scratch / name, *own, "--optimizer.ema", 0.9, "--train.steps", stop, *force,
                  ranks=ranks).expect(0, *told)
            force = told = ()
    check_same(scratch / "at-once", scratch / "in-two", "a forced switch is as exact")

    # Of another form, --force does not help: its weights would be of other places.
    train(whole, "--model.hidden", 17, "--train.steps", 45, "--force").expect(
        64, "its shape is [", "in the deck's model it is [")
    # The best model by another metric is chosen again.
    train(whole, "--task.metric", "loss", "--train.steps", 45, "--force").expect(
        0, "the best model is chosen again", "new best loss")

    # resume = none archives, and starts over.
    for name in ("flight", "profile", "samples"):
        (whole / name).mkdir(exist_ok=True)
        (whole / name / "earlier").touch()
    train(whole, "--checkpoint.resume", "none", "--train.steps", 5).expect(0, "finished at step 5")
    archived = [p for p in scratch.iterdir() if p.name.startswith("whole.archived-")]
    check(len(archived) == 1, "archived")
    for name in ("flight", "profile", "samples"):
        check((archived[0] / name / "earlier").exists() and not (whole / name / "earlier").exists(), f"{name} archived")

    # What is not the run's stays where it is.
    for name in ("data.h5", "notes"):
        (whole / name).write_text("mine")
    train(whole, "--checkpoint.resume", "none", "--train.steps", 3).expect(0, "finished at step 3")
    check((whole / "data.h5").read_text() == (whole / "notes").read_text() == "mine", "what is not the run's stays")

    # It was for the first attempt of a job: one that was requeued resumes, or begins from the file.
    fresh = ("--checkpoint.resume", "none", "--data.validation", "", "--checkpoint.every-steps", 2)
    job = {"SLURM_JOB_ID": "9"}
    train(scratch / "fresh", *fresh, "--train.steps", 3).expect(0)
    train(scratch / "fresh", *fresh, "--train.steps", 5, env=job).expect(0, "finished at step 5")
    train(scratch / "fresh", *fresh, "--train.steps", 7, env={**job, "SLURM_RESTART_COUNT": "1"}).expect(
        0, "checkpoint.resume = none was for this job's first attempt", "resumed from", "at step 5")
    check(len([p for p in scratch.iterdir() if p.name.startswith("fresh.archived-")]) == 1, "archived once")
    file = shutil.copy(checkpoints(scratch / "fresh")[-1], scratch / "step-00000007.h5")
    for restart, told in (("0", str(file)), ("1", "step-00000009.h5")):
        train(scratch / "from", "--checkpoint.resume", file, *fresh[2:], "--train.steps", 9 + 2 * int(restart),
              env={**job, "SLURM_RESTART_COUNT": restart}).expect(0, "resumed from", told)

    # A file by name; a model alone cannot be resumed from.
    source = checkpoints(whole)[-1]
    train(scratch / "by-file", "--checkpoint.resume", source, "--train.steps", 6).expect(
        0, f"resumed from {source}")
    from_an_earlier_one(scratch)
    if LONG:
        by_signal_and_in_use(scratch)
