"""Checkpoints in the background: the same files as synchronous ones (on 1, 2 or 3 ranks, on all where
LOCKSTEP_LONG=1); a full disk ends one, not the run."""
import json
import shutil
import subprocess
import threading
import time

from harness import DATA, LONG, Scratch, check, check_same, checkpoints, records, run, some, train

TWO = 2 if LONG else 1  # where their number does not matter

with Scratch() as scratch:
    options = ("--checkpoint.every-steps", 3, "--checkpoint.keep", 100, "--train.steps", 20)
    for ranks in some((1, 2, 3)):
        there, here = scratch / f"background{ranks}", scratch / f"synchronous{ranks}"
        train(there, *options, "--run.replicas", 4, ranks=ranks).expect(0)
        train(here, *options, "--run.replicas", 4, "--checkpoint.asynchronous", "false",
              ranks=ranks).expect(0)
        check([p.name for p in checkpoints(there)] == [p.name for p in checkpoints(here)],
              "the same steps")
        for a, b in zip(checkpoints(there), checkpoints(here)):
            check_same(a, b, f"{a} is {b}")
        run(["checkpoint", "verify", there]).expect(0)
        told = [record["step"] for record in records(there, "checkpoint")]
        check(told == [0, 3, 6, 9, 12, 15, 18, 20], f"each is told when it is durable: {told}")

    # A disk that is slow: training continues meanwhile, where checkpoints are in the background.
    for background in ("true", "false"):
        directory = scratch / f"slow-{background}"
        train(directory, "--train.steps", 20, "--checkpoint.every-steps", 10, "--data.validation", "",
              "--checkpoint.asynchronous", background, ranks=TWO, env={"LOCKSTEP_INJECT": "slow-disk"}).expect(0)
        lines = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
        order = [(line["event"], line["step"]) for line in lines
                 if line["event"] in ("step", "checkpoint")]
        overtaken = order.index(("step", 11)) < order.index(("checkpoint", 10))
        check(overtaken == (background == "true"), f"asynchronous = {background}: {order}")

    # A validation that fails while a checkpoint is written: that is whole first, and told.
    failed, changed = scratch / "failed", scratch / "changed.h5"
    shutil.copy(DATA / "test.h5", changed)

    def change():
        while not (failed / "metrics.jsonl").exists() or not records(failed, "step"):
            time.sleep(0.01)
        changed.touch()
    threading.Thread(target=change, daemon=True).start()
    late = 400 if LONG else 160
    train(failed, "--data.validation", changed, "--train.steps", late + 50, "--train.validate-every", late,
          "--checkpoint.every-steps", late - 1, env={"LOCKSTEP_INJECT": "slow-disk"}).expect(
        65, f" in evaluation at step {late}: ", "the file has changed since the run began")
    check([record["step"] for record in records(failed, "checkpoint")] == [0, late - 1], "told")
    run(["checkpoint", "verify", failed]).expect(0)

    # A disk that is full once.
    full = scratch / "full-once"
    train(full, "--train.steps", 20, "--checkpoint.every-steps", 5, "--data.validation", "", ranks=TWO,
          env={"LOCKSTEP_INJECT": "disk-full:step=10"}).expect(
        0, "warning: no checkpoint of step 10", "no room for", "The run continues")
    check([record["step"] for record in records(full, "checkpoint")] == [0, 5, 15, 20], "but one")

    # A disk that is too small for a second checkpoint: each failure is a warning, the older one
    # stays; the last one's failure is the run's.
    disk = scratch / "disk"
    disk.mkdir()
    size = 640 << 10  # one is claimed as 543 KiB
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)],
                             capture_output=True).returncode == 0
    if mounted:
        try:
            ended = train(disk / "run", *options, "--data.validation", "", ranks=TWO)
            ended.expect(74, "warning: no checkpoint of step 3", "The run continues", "no room for")
            check([p.name for p in checkpoints(disk / "run")] == ["step-00000000.h5"], "kept")
            check(not list((disk / "run/checkpoints").glob("*.partial-*")), "no partial file")
            failures = records(disk / "run", "failure")
            check([f["step"] for f in failures if not f.get("fatal", True)] == [3, 6, 9, 12, 15, 18],
                  f"told in metrics.jsonl: {failures}")
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
    else:
        print("SKIPPED: mounting a small disk is not permitted here")
