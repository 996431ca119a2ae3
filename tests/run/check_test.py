"""check, plan and estimate: what is fit is green, wrong launches are found within seconds, plans and
predictions agree with what training does. The short form draws the wrong launches."""
import json
import os
import re
import shutil
import subprocess
import time

import h5py
import numpy

from harness import BUILD, DATA, DECK, LOCKSTEP, LONG, SOURCE, Scratch, check, checkpoints, run, some, train

MPIRUN = os.environ["LOCKSTEP_MPIEXEC"]
SETS = ["--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5"]


def found(command, code, phrase):
    """A wrong launch is told in time."""
    begin = time.monotonic()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    text = done.stdout + done.stderr
    check(done.returncode == code and phrase in text, f"{phrase}: {done.returncode}\n{text}")
    is_quiet = os.getloadavg()[0] < os.cpu_count()  # else it says nothing
    check(not is_quiet or time.monotonic() - begin < 10, f"{phrase}: within seconds")


with Scratch() as scratch:
    run(["check", "--run.directory", scratch / "run"]).expect(0, "ready:", "libraries", "checkpoint")
    told = run(["check", "--run.directory", scratch / "run"], 2 if LONG else 1).text  # mpirun gives it a terminal
    check("\033" not in told, f"no colours in a log: {told}")
    out = run(["check", DECK, *SETS, "--run.directory", scratch / "run", "--json"], 2).expect(0)
    lines = [json.loads(line) for line in out.text.splitlines() if line.startswith("{")]
    topics = {line["topic"] for line in lines}
    check({"host", "libraries", "program", "deck", "data", "cores", "disk", "checkpoint", "within host",
           "speed", "memory", "training", "checkpoints"} <= topics, f"topics: {topics}")
    check(all(line["colour"] in ("green", "yellow", "red") for line in lines), "colours")
    check(all(line["remedy"] for line in lines if line["colour"] != "green"), "remedies")
    check(not (scratch / "run").exists(), "nothing is left")

    # wrong launches
    def bound():
        if os.cpu_count() > 1:
            found([MPIRUN, "-n", 2, "taskset", "-c", 0, LOCKSTEP, "check"], 69, "are bound to 1 of its ")

    def unlike():
        other = scratch / "other"
        other.mkdir()
        for name in ("lockstep", "liblockstep_core.so", "liblockstep_media.so", "liblockstep_trainer.so"):
            shutil.copy2(BUILD / name, other / name)
        with open(other / "liblockstep_core.so", "ab") as library:
            library.write(b"another build")
        found([MPIRUN, "-n", 1, LOCKSTEP, "check", ":", "-n", 1, other / "lockstep", "check"], 69,
              "different programs")

    def alone():
        run(["check"], env={"SLURM_STEP_NUM_TASKS": "2"}).expect(69, "rank 0 of 1")

    for launch in some((bound, unlike, alone)):
        launch()
    for options, *told in some((([DECK, "--data.train", scratch / "none.h5"], "cannot read the data"),
                                (["--run.directory", "/proc/none"], "not ready:", "disk"),
                                (["--run.devices", 3, "--run.device", "cuda"], "run.devices = 3"),
                                ([DECK, *SETS, "--run.devices", "99"], "run.devices = 99"))):
        run(["check", *options]).expect(69, *told)
    run(["check", DECK, "--run.devicez", 1]).expect(64, "Did you mean")

    # plans
    plan = run(["plan", DECK, *SETS, "--run.replicas", 8, "--run.directory", scratch / "run",
                "--ranks", 4, "--ranks-per-host", 2]).expect(0, "host 1", "6 to 7", "it starts at step 0")
    check(not (scratch / "run").exists(), "a plan writes nothing")
    ranks = 2 if LONG else 1
    if LONG:
        run(["plan", DECK, *SETS, "--run.replicas", 1], 2).expect(64, "replicas")
    train(scratch / "run", ranks=ranks).expect(0)
    plan = run(["plan", DECK, *SETS, "--run.directory", scratch / "run"], ranks).expect(
        0, "it is finished at step 30", "checkpoint")
    parameters = [line.split(":")[1].split()[0] for line in plan.text.splitlines()
                  if line.startswith("model")][0]
    check(f"{parameters} parameters" in (scratch / "run/log.txt").read_text(), "as a run says it")
    planned = float([line.split()[1] for line in plan.text.splitlines()
                     if line.startswith("checkpoint")][0])
    written = checkpoints(scratch / "run")[-1].stat().st_size / 1024
    check(abs(planned - written) < 0.1, f"checkpoint bytes: {planned} KiB, {written} KiB")

    # activations of many classes: the loss holds more than the scores
    classes, batch = 20000, 256
    with h5py.File(scratch / "many.h5", "w") as file:
        file["inputs"] = numpy.zeros((batch, 32), "f4")
        file["targets"] = numpy.arange(batch) + classes - batch
    (scratch / "many.ini").write_text(f"[data]\ntrain = {scratch}/many.h5\nbatch = {batch}\n[train]\nsteps = 1\n"
                                      "[model]\nname = mlp\nhidden = 16\n")
    text = run(["plan", scratch / "many.ini", "--run.directory", scratch / "many"]).expect(0, "samples").text
    planned, unit = re.search(r"activations +([\d.]+) (\w+)", text).groups()
    scores = 4 * classes * batch / 2**20
    check(unit == "MiB" and 2.5 * scores < float(planned) < 6 * scores, f"{scores} MiB of scores:\n{text}")

    # predictions
    words = ["estimate", DECK, *SETS, "--steps", 3, "--max-ranks", 8, "--price-per-hour", 2,
             "--watts", 500, "--run.replicas", 0]
    rows = [json.loads(line) for line in
            run([*words, "--json"], 2).expect(0).text.splitlines() if line.startswith("{")]
    check([row["ranks"] for row in rows] == [1, 2, 4, 8], f"rows: {rows}")
    for row in rows:
        check(row["hosts"] == (row["ranks"] + 1) // 2 and row["ideal"] == row["ranks"], f"{row}")
        hours = row["run_s"] / 3600 * row["ranks"]
        check(abs(row["cost"] - 2 * hours) < 1e-9 and abs(row["kwh"] - hours / 2) < 1e-9, "cost")
        # Steps are timed on a machine that others may slow down: how they compare is not checked.
        check(abs(row["efficiency"] - row["speed_up"] / row["ideal"]) < 1e-9, f"{row}")
        check(row["efficiency"] > 0 and row["step_s"] > 0, f"{row}")

    def other_batches():
        run([*words, "--batches", "512,64", "--network-gbit", 100]).expect(
            0, "as given", "total batch", "efficiency")

    def played():
        """What is played before it is learnt: an epoch is an iteration, and all its steps count."""
        agent = SOURCE / "inputs/cartpole.ini"
        run(["plan", agent]).expect(0, "256 samples played in an iteration", "4,000 steps, 10 per epoch")
        for row in [json.loads(line) for line in
                    run(["estimate", agent, "--steps", 2, "--json"]).expect(0).text.splitlines()]:
            check(abs(row["run_s"] / row["step_s"] - 4000) < 1, f"time of all steps: {row}")

    for part in some((other_batches, played)):
        part()
    run(["estimate", DECK, *SETS, "--price-per-hour", "much"]).expect(64, "--price-per-hour")
