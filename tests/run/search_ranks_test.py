"""lockstep search: every strategy trains the same trials, bit for bit, on any number of ranks and hosts and through
kills; states of parents travel by MPI; a rank that fails costs its trial's last steps. The short form compares the
states of some trials, and the results of all, and draws the start that continues another."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

from harness import DATA, DECK, LOCKSTEP, LONG, SEED, Scratch, check, run, same_state, some  # noqa: E402

SPACE = """[search]
strategy = {strategy}
seed = 3
retries = 10
goals = accuracy max
{more}
[space]
optimizer.learning-rate = log-uniform(1e-3, 1e-1)
optimizer.name = choice(adamw, sgd)
optimizer.momentum = uniform(0, 0.9) if optimizer.name = sgd
"""
SETTINGS = {"pbt": "population = 4\nintervals = 2\n",
            "halving": "trials = 4\nreduction = 2\nminimum-share = 0.5\n",
            "asha": "trials = 6\nreduction = 2\nminimum-share = 0.25\n",
            "tpe": "trials = 6\nbatch = 3\n",
            "hyperband": "reduction = 2\nminimum-share = 0.5\n",
            "nsga2": "trials = 8\npopulation = 4\n"}
OPTIONS = ["--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5", "--train.steps", "8",
           "--run.replicas", "2", "--data.global-batch", "32", "--checkpoint.every-steps", "2",
           "--monitor.weight-hash", "true"]


def space_of(scratch, strategy):
    path = scratch / f"{strategy}.ini"
    path.write_text(SPACE.format(strategy=strategy, more=SETTINGS[strategy]))
    return path


def words(space, directory, *more):
    return ["search", space, DECK, "--directory", directory, *OPTIONS, *more]


def lines(directory, event):
    journal = directory / "search.jsonl"
    whole = journal.read_text().rpartition("\n")[0].splitlines() if journal.exists() else []
    return [line for line in map(json.loads, whole) if line["event"] == event]


def results(directory):
    return sorted((r["trial"], r["share"], r["code"], r["metrics"]["accuracy"], r["metrics"]["loss"], r["step"])
                  for r in lines(directory, "result"))


def check_equal(a, b):
    check(results(a) == results(b), f"other results: {results(a)} and {results(b)}")
    for trial in some(sorted((a / "trials").iterdir()), 2):
        check(same_state(trial, b / "trials" / trial.name), f"{trial.name} differs between {a} and {b}")


def check_fits(a, b):
    """Of a strategy that decides by arrival: what both have trained as far has the same results."""
    common = {key[:2]: key for key in results(a)}
    for each in results(b):
        check(common.get(each[:2], each) == each, f"{each} and {common.get(each[:2])}")


def resumed_from(directory):
    """Of the trials that began with another's state: where it came from."""
    texts = {}
    for trial in (directory / "trials").iterdir():
        for line in (trial / "log.txt").read_text().splitlines():
            if "resumed from" in line and ("from.h5" in line or "in the memory of" in line):
                texts[trial.name] = "file" if "from.h5" in line else "memory"
    return texts


def start(command, env=None):
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True, env={**os.environ, **(env or {})})


def kill_all(job):
    """Ranks are in process groups of their own: those that mpirun has started are killed with it."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(job.pid)], capture_output=True, text=True)
    for pid in [*children.stdout.split(), str(job.pid)]:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.wait()


def kill_and_continue(space, directory, begin, end, same, latest=5):
    """Kills ten times, at random instants until `latest` seconds, what `begin(k)` started. A search that comes to its
    end meanwhile, and the last one, have the `same` results; the next one starts over."""
    draw = random.Random(SEED)
    starts = killed = 0
    while killed < 10:
        job = begin(starts)
        starts += 1
        try:
            job.wait(draw.uniform(0.5, latest))
        except subprocess.TimeoutExpired:
            killed += 1
        ended = job.poll() is not None
        end(job)
        if ended:
            check(job.returncode == 0, f"{space.stem} ends with {job.returncode}")
            same(directory)
            shutil.rmtree(directory)
    print(f"{space.stem}: {killed} kills in {starts} starts", flush=True)
    run(words(space, directory), 2).expect(0, "best: trial")
    same(directory)


def check_parents_by_file(scratch, expected):
    """What a start continues begins with the files of the parents, to the same bits."""
    directory = scratch / "by_file"
    job = start([LOCKSTEP, *words(scratch / "pbt.ini", directory)])
    while len(lines(directory, "result")) < 4:
        check(job.poll() is None, "the search continues")
        time.sleep(0.01)
    kill_all(job)
    journal = directory / "search.jsonl"
    whole = journal.read_text().splitlines(keepends=True)
    last = [at for at, line in enumerate(whole) if '"event":"result"' in line][3]
    journal.write_text("".join(whole[:last + 1]))
    for trial in (directory / "trials").iterdir():
        if trial.name > "0004":
            shutil.rmtree(trial)
    run(words(scratch / "pbt.ini", directory)).expect(0, "best: trial")
    check(set(resumed_from(directory).values()) == {"file"}, f"{resumed_from(directory)}")
    check_equal(expected, directory)


def check_lost_rank(scratch, expected):
    """A rank that fails, or is killed, in the middle of a step: launch starts the search again by itself."""
    space = scratch / "pairs.ini"
    space.write_text(space_of(scratch, "halving").read_text().replace("[space]", "ranks-per-trial = 2\n[space]"))
    for fault in ("oom", "kill") if LONG else ("oom",):
        directory = scratch / f"lost_{fault}"
        site = scratch / f"site_{fault}"
        site.mkdir()
        (site / "mpirun").write_text(f'#!/bin/bash\necho call >>{site}/calls\n[ "$(wc -l <{site}/calls)" = 1 ] || '
                                     f'unset LOCKSTEP_INJECT\nexec {os.environ["LOCKSTEP_MPIEXEC"]} "$@"\n')
        (site / "mpirun").chmod(0o755)
        launched = run(["launch", "--yes", "--search", space, "--search-directory", directory, "--devices", "2",
                        "--oversubscribe", "--restarts", "2", DECK, *OPTIONS], 0,
                       {"LOCKSTEP_INJECT": f"{fault}:rank=1:step=3", "PATH": f"{site}:{os.environ['PATH']}"})
        launched.expect(0, "restart 1 of 2", "best: trial")
        check(len((site / "calls").read_text().splitlines()) == 2, "one restart")
        check(len(lines(directory, "retry")) == (fault == "oom"), "what failed with an error is on record")
        check_equal(expected, directory)


def check_hosts(scratch, expected):
    from hosts import Hosts, missing
    if missing():
        print(f"no hosts: {missing()}")
        return
    with Hosts(2) as hosts:
        for strategy, directory in expected.items():
            place, space = scratch / f"hosts_{strategy}", scratch / f"{strategy}.ini"
            job = hosts.mpirun("host1:2,host2:2", [LOCKSTEP, *words(space, place)])
            text = job.communicate(timeout=200)[0]
            check(job.returncode == 0, text)
            check_same_results = check_fits if strategy == "asha" else check_equal
            check_same_results(directory, place)

            killed = scratch / f"hosts_{strategy}_killed"

            def begin(at, command=(LOCKSTEP, *words(space, killed))):
                return hosts.mpirun(("host1:2,host2:2", "host1:1,host2:1")[at % 2], command)

            def end(job):
                hosts.kill_jobs()
                job.communicate(timeout=60)
            kill_and_continue(space, killed, begin, end, lambda found: check_same_results(directory, found), latest=9)


with Scratch() as scratch:
    on_1 = {}
    cases = some(("parents by file", "lost rank"))
    few = ("pbt", "halving") if "lost rank" in cases else ("pbt",)
    for strategy in sys.argv[1:] or (SETTINGS if LONG else few):
        space = space_of(scratch, strategy)
        on_1[strategy] = scratch / f"{strategy}_1"
        run(words(space, on_1[strategy]), 1).expect(0, "best: trial")
        check_same_results = check_fits if strategy == "asha" else check_equal
        for ranks in (2, 4) if LONG else (3,) if strategy == "pbt" else ():
            other = scratch / f"{strategy}_{ranks}"
            run(words(space, other), ranks).expect(0, "best: trial")
            check_same_results(on_1[strategy], other)
            if strategy == "pbt":
                check(set(resumed_from(other).values()) == {"memory"}, f"parents' states: {resumed_from(other)}")
        if LONG:
            killed = scratch / f"{strategy}_killed"

            def begin(at, command=(LOCKSTEP, *words(space, killed))):
                return start([os.environ["LOCKSTEP_MPIEXEC"], "-n", (2, 4, 1)[at % 3], *command])
            kill_and_continue(space, killed, begin, kill_all, lambda found: check_same_results(on_1[strategy], found))
        print(f"{strategy}: the same trials", flush=True)
    if "pbt" in on_1 and "parents by file" in cases:
        check_parents_by_file(scratch, on_1["pbt"])
    if "halving" in on_1 and "lost rank" in cases:
        check_lost_rank(scratch, on_1["halving"])
    if LONG:
        check_hosts(scratch, on_1)
