"""A requeued job takes its directory over from its older attempt; files written by 4 ranks are read by
1, 2, 3 or 8 (by each, where LOCKSTEP_LONG=1); checkpoint.local."""
import json
import os
import shutil
import signal
import subprocess
import time

from harness import (DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, checkpoints, records, run,
                     some, train)

TWO = 2 if LONG else 1  # where their number does not matter

with Scratch() as scratch:
    # The older attempt, of which the scheduler thinks that it is dead.
    both = scratch / "both"
    words = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", LOCKSTEP, "train", DECK, "--data.train",
             str(DATA / "train.h5"), "--data.validation", "", "--run.directory", str(both),
             "--checkpoint.every-steps", "20", "--train.steps", "0", "--train.epochs", "50"]
    older = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "PBS_JOBID": "5.server"})
    while not (both / "metrics.jsonl").exists() or len(records(both, "checkpoint")) < 2:
        check(older.poll() is None, "still training")
        time.sleep(0.1)
    train(both, "--data.validation", "", "--train.steps", 1, ranks=TWO, env={"PBS_JOBID": "6.server"}).expect(
        73, "another live job is using it (job 5.server")
    newer = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "PBS_JOBID": "5.server"})
    output = older.communicate(timeout=300)[0]
    newer.send_signal(signal.SIGUSR1)
    resumed = newer.communicate(timeout=300)[0]
    check(newer.returncode == 75 and "resumed from" in resumed, f"{newer.returncode}: {resumed}")
    check(older.returncode == 79, f"the older attempt ends with 79, not {older.returncode}: {output}")
    check("a newer attempt of this run has taken it over (job 5.server" in output, output)
    check(not records(both, "failure"), f"how it ended is no part of the newer attempt's records: {records(both, 'failure')}")
    attempts = list(map(json.loads, (both / "history.jsonl").read_text().splitlines()))
    check([attempt["exit_code"] for attempt in attempts] == [None, 75], f"{attempts}")
    run(["checkpoint", "verify", both]).expect(0)

    # Something else in the place of its claim: the run ends, and its records say so.
    taken = scratch / "taken"
    few = {str(both): str(taken), "50": "1"}  # epochs: without checkpoints it trains to its end
    process = subprocess.Popen([few.get(word, word) for word in words],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (taken / "metrics.jsonl").exists() or len(records(taken, "checkpoint")) < 2:
        check(process.poll() is None, "still training")
        time.sleep(0.1)
    (taken / "lease").unlink()
    (taken / "lease").mkdir()
    output = process.communicate(timeout=300)[0]
    check(process.returncode == 74 and "its file lease is damaged" in output, f"{process.returncode}: {output}")
    check(records(taken, "failure")[-1].get("exit_code") == 74, "it is on record")
    run(["watch", taken]).expect(0, "failed")
    train(taken, "--data.validation", "", "--train.steps", 1, ranks=TWO).expect(73, "its lease is not a regular file", "Remove ")

    # Another start within the same attempt of a job is no newer attempt: it is refused, and changes nothing.
    twice, slurm = scratch / "twice", {"SLURM_JOB_ID": "4"}
    first = subprocess.Popen([word.replace(str(both), str(twice)) for word in words],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **slurm})
    while not (twice / "metrics.jsonl").exists() or len(records(twice, "checkpoint")) < 2:
        check(first.poll() is None, "still training")
        time.sleep(0.1)
    train(twice, "--data.validation", "", "--train.steps", 1, ranks=TWO, env=slurm).expect(
        73, "another start within this job is using it (job 4 on ")
    first.send_signal(signal.SIGUSR1)
    output = first.communicate(timeout=300)[0]
    check(first.returncode in (0, 75), f"the first start is not disturbed: {first.returncode}: {output}")
    train(twice, "--data.validation", "", "--train.steps", 1, ranks=TWO, env=slurm).expect(0)

    # What is left of a job's older attempt does not take the directory back from the newer one.
    slurm = {"SLURM_JOB_ID": "8", "SLURM_RESTART_COUNT": "1"}
    train(scratch / "requeued", "--train.steps", 5, ranks=TWO, env=slurm).expect(0)
    train(scratch / "requeued", "--train.steps", 9, ranks=TWO, env={"SLURM_JOB_ID": "8"}).expect(
        79, "a newer attempt of this run has taken it over (job 8")
    train(scratch / "requeued", "--train.steps", 9, ranks=TWO, env=slurm).expect(0)

    # Written by 4 ranks, resumed by others; into a fast directory first.
    local = scratch / "local"
    options = ("--run.replicas", 8, "--data.validation", "", "--checkpoint.keep", 9)
    train(scratch / "whole", *options, "--train.steps", 10, ranks=TWO).expect(0)
    train(scratch / "start", *options, "--checkpoint.local", local, "--train.steps", 5, ranks=4).expect(0)
    check_same(next(local.glob("*/step-00000005.h5")), scratch / "start", "the copy is the original")
    for ranks in some((1, 2, 3, 8)):
        run_directory = scratch / f"on{ranks}"
        shutil.copytree(scratch / "start", run_directory)
        (run_directory / "lease").unlink()
        train(run_directory, *options, "--train.steps", 10, ranks=ranks, env={
            "LOCKSTEP_CHECKPOINT_WRITER": {3: "gather", 8: "hosts"}.get(ranks, "collective")}).expect(0)
        check_same(scratch / "whole", run_directory, f"from 4 ranks to {ranks}")

    # Resume takes from there what the run's own directory lacks.
    checkpoints(scratch / "start")[-1].unlink()
    train(scratch / "start", *options, "--checkpoint.local", local, "--train.steps", 10, ranks=TWO).expect(
        0, "step-00000005.h5")
    check_same(scratch / "whole", scratch / "start", "resumed from the local one")
