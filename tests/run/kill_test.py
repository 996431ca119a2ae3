"""SIGKILL of a rank, or of all, at random instants: what is left is never torn, what follows is the
run that was not killed, bit for bit. At least four in ten are placed by phase within a commit.

100 kills, of runs on up to four ranks, are the long form; kill_test.py --kills 200 --seed 7 is one of your own.
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess

from harness import DATA, DECK, LOCKSTEP, LONG, SEED, Scratch, check, check_same, checkpoints, run, train

PHASES = ("check", "layout", "write", "read-back", "checksums", "rename", "prune")
STEPS, EVERY, REPLICAS = 60, 2, 4
OPTIONS = ("--run.replicas", REPLICAS, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 1000, "--checkpoint.every-steps", EVERY)


def words_of(directory, ranks):
    return [os.environ["LOCKSTEP_MPIEXEC"], "-n", str(ranks), LOCKSTEP, "train", DECK,
            "--data.train", str(DATA / "train.h5"), "--data.validation", str(DATA / "test.h5"),
            "--run.directory", str(directory), *map(str, OPTIONS)]


def ranks_of(launcher):
    """The processes of lockstep below mpirun."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text().rsplit(")", 1)
        except OSError:
            continue
        if "(lockstep" in name and int(rest.split()[1]) == launcher:
            found.append(int(status.parent.name))
    return found


def kill_by_phase(directory, ranks, newest, choose):
    phase, victim = choose.choice(PHASES), choose.choice([*range(ranks), "all"])
    step = min(newest + EVERY * choose.randint(1, 3), STEPS)
    fault = f"kill:phase={phase}:step={step}:rank={victim}"
    done = subprocess.run(words_of(directory, ranks), capture_output=True, text=True, timeout=300,
                          errors="replace", env={**os.environ, "LOCKSTEP_INJECT": fault})
    check(done.returncode != 0, f"{fault} killed nobody: {done.stdout}{done.stderr}")
    return fault


def kill_at_random(directory, ranks, longest, choose):
    instant, everybody = choose.uniform(0.2, longest), choose.random() < 0.5
    process = subprocess.Popen(words_of(directory, ranks), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=instant)
    except subprocess.TimeoutExpired:
        found = ranks_of(process.pid)
        for victim in found if everybody else choose.sample(found, min(1, len(found))):
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it was done
        process.wait(timeout=300)
    return f"SIGKILL of {'all ranks' if everybody else 'a rank'} after {instant:.2f} s"


def compare(directory, whole, compared, story):
    """All checkpoints that have their names are complete, and those of the run without kills."""
    found = checkpoints(directory)
    if not found:
        return -1
    run(["checkpoint", "verify", directory]).expect(0)
    for path in found:
        known = (path.name, path.stat().st_mtime_ns)
        if known not in compared:
            check_same(path, whole / "checkpoints" / path.name, f"{path.name} {story}")
            compared.add(known)
    return int(found[-1].stem.split("-")[1])


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--kills", type=int, default=100 if LONG else 3)
parser.add_argument("--seed", type=int, default=SEED)
arguments = parser.parse_args()
choose = random.Random(arguments.seed)
with Scratch() as scratch:
    whole = scratch / "whole"
    longest = train(whole, *OPTIONS, "--checkpoint.keep", STEPS, ranks=2).expect(0).seconds
    runs, newest, compared, by_phase = 0, -1, set(), 0
    for number in range(arguments.kills):
        if newest < 0 or newest >= STEPS:
            runs, newest, compared = runs + 1, -1, set()
        directory, ranks = scratch / f"killed{runs}", choose.randint(1, REPLICAS if LONG else 2)
        if 2 * by_phase <= number:
            what = kill_by_phase(directory, ranks, max(newest, 0), choose)
            by_phase += 1
        else:
            what = kill_at_random(directory, ranks, longest, choose)
        newest = compare(directory, whole, compared, f"after {what}")
        print(f"kill {number + 1}: {what} on {ranks} ranks: newest step {newest}", flush=True)
    if directory.exists():
        train(directory, *OPTIONS, ranks=3 if LONG else 1).expect(0)
        compare(directory, whole, compared, "of the last resume")
        check(checkpoints(directory)[-1].name == f"step-{STEPS:08d}.h5", "the run came to its end")
    check(by_phase >= 0.4 * arguments.kills, f"{by_phase} kills within a commit")
    print(f"seed {arguments.seed}: {arguments.kills} kills, {by_phase} of them within a commit: none torn, all exact")
