"""Hosts, made of namespaces: three that train, to the bits of one rank, and two over a slow link; of
two, all ranks suspended for long, a rank that stops, dies or computes something else on the other (one of these;
at length all), and a host that is cut off; at length, one that starves."""
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import (DATA, DECK, DRAW, LOCKSTEP, LONG, Result, Scratch, check, check_same, checkpoints,
                     records, some, together)  # noqa: E402
from hosts import Hosts, missing  # noqa: E402

TIMEOUT = 8

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


def words(directory, *options, timeout=TIMEOUT):
    return [LOCKSTEP, "train", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
            "--run.directory", directory, "--communication.timeout-seconds", timeout, *options]


def finish(job, since):
    text = job.communicate(timeout=120)[0]
    return Result(job.returncode, text, time.monotonic() - since)


def root_cause(result, *phrases):
    lines = re.findall(r"^lockstep: root cause: .*$", result.text, re.M)
    check(len(lines) == 1, f"one line tells the root cause:\n{result.text}")
    for phrase in phrases:
        check(phrase in lines[0], f"missing {phrase!r} in {lines[0]}")
    print(f"{result.seconds:.1f} s, {result.code}: {lines[0]}", flush=True)


def starve(directory):
    """All ranks of a host get no processor time, for longer than one that is cut off is waited for."""
    running = hosts.mpirun("host1:1,host2:2", words(directory, "--train.steps", 200, timeout=300))
    while len(steps_of(directory)) < 10:
        check(running.poll() is None, "it trains")
        time.sleep(0.1)
    ranks = hosts.processes("host2", "lockstep")
    check(len(ranks) == 2, f"two ranks are there: {ranks}")
    for rank in ranks:
        os.kill(rank, signal.SIGSTOP)
    time.sleep(45)
    check(hosts.processes("host2", "lockstep") == ranks, "nobody has given them up")
    for rank in ranks:
        os.kill(rank, signal.SIGCONT)
    finish(running, time.monotonic()).expect(0, "finished at step 200")


def steps_of(directory):
    return records(directory, "step") if (directory / "metrics.jsonl").exists() else []


with Scratch() as scratch, Hosts(3) as hosts:
    def job(name, where, fault="", *options):
        since = time.monotonic()
        return finish(hosts.mpirun(where, words(scratch / name, *options),
                                   {"LOCKSTEP_INJECT": fault,
                                    "LOCKSTEP_CHECKPOINT_WRITER": "hosts" if name == "whole" else ""}), since)

    few = ("--run.replicas", 4, "--train.steps", 30 if LONG else 10)
    whole = job("whole", "host1:2,host2:1,host3:1", "", *few).expect(0)
    check("messages between 3 hosts, directly" in whole.text, whole.text)
    job("one", "host1:1", "", *few).expect(0)
    check_same(checkpoints(scratch / "one")[-1], checkpoints(scratch / "whole")[-1],
               "the same bits on three hosts as on one rank")
    check("hears nothing" not in (scratch / "whole/log.txt").read_text(), "they hear")

    # A long and thin cable: 5 ms one way, 100 Mbit/s.
    hosts.slow("host3", 0.005, 12.5e6)
    job("slow", "host1:2,host3:2" if LONG else "host1:1,host3:1", "", *few).expect(0)
    check_same(checkpoints(scratch / "one")[-1], checkpoints(scratch / "slow")[-1],
               "the same bits over a slow link")
    waits = [step["communication_ms"] + step["imbalance_ms"] for step in steps_of(scratch / "slow")]
    print(f"over a slow link a step waits {sorted(waits)[len(waits) // 2]:.1f} ms", flush=True)
    check(min(waits) > 10, f"a step's sums cross the cable and come back: {waits}")

    def is_stopped():
        stopped = job("stopped", "host1:2,host2:2", "stop:rank=3:step=5")
        check(stopped.code == 76, stopped.text)
        root_cause(stopped, "rank 3 (host2, cpu)", "at step 5", "stopped (SIGSTOP)", "rank 2 waits in")

    def is_stopped_alone():
        alone = job("alone", "host1:1,host2:1", "stop:rank=1:step=5")
        check(alone.code == 76, alone.text)
        root_cause(alone, "rank 1 (host2, cpu)", "has sent nothing for")

    def in_training(directory, places):
        running = hosts.mpirun(places, words(directory, "--train.steps", 60), {"LOCKSTEP_INJECT": "slow:rank=0"})
        while len(steps_of(directory)) < 10:
            check(running.poll() is None, "it trains")
            time.sleep(0.1)
        return running

    def is_suspended():
        """As a whole, for longer than the limit, one process after the other."""
        directory = scratch / "suspended"
        running = in_training(directory, "host1:2,host2:2")
        everything = [process for name in ("host1", "host2") for program in ("mpirun", "orted", "lockstep")
                      for process in hosts.processes(name, program)
                      if str(directory) in pathlib.Path(f"/proc/{process}/cmdline").read_text() or program == "orted"]
        for number, pause_s in ((signal.SIGTSTP, 0.1), (signal.SIGSTOP, 0.1), (signal.SIGCONT, 0.5)):
            for process in DRAW.sample(everything, len(everything)):
                time.sleep(DRAW.uniform(0, pause_s))
                os.kill(process, number)
            time.sleep(TIMEOUT + 6 if number == signal.SIGSTOP else 1)
        finish(running, time.monotonic()).expect(0, "finished at step 60")

    def is_killed():
        """While parameters of the step before are on their way; what follows has the bits of a run without a fault."""
        lasts = ("--train.steps", 12, "--checkpoint.every-steps", 3,
                 "--monitor.weight-hash", "false", "--monitor.log-every", 1000)  # which wait for parameters
        killed = job("killed", "host1:1,host2:1", "kill:rank=1:step=5", *lasts)
        check(killed.code in (76, 137), killed.text)
        root_cause(killed, "rank 1 (host2, cpu)", "its process is gone")
        for name in ("killed", "unkilled"):
            job(name, "host1:1,host2:1", "", *lasts).expect(0)
        check_same(checkpoints(scratch / "unkilled")[-1], checkpoints(scratch / "killed")[-1],
                   "the same bits after a kill")

    def hears_strangers():
        """Whatever others send to the ports by which hosts watch each other changes nothing: random bytes, and true
        messages that are cut, lengthened, or accuse a rank in the name of another job."""
        directory = scratch / "strangers"
        running = in_training(directory, "host1:1,host2:1")
        told = hosts.run("host1", sys.executable, pathlib.Path(__file__).resolve().parent / "stranger.py")
        done = finish(running, time.monotonic()).expect(0, "finished at step 60")
        check(told.startswith("sent ") and "cause" not in done.text, f"{told}\n{done.text}")
        check("hears nothing" not in (directory / "log.txt").read_text(), "they hear each other")

    def computes_something_else():
        """Three ranks, for two that differ cannot tell which of them is right; those of one host share
        their parameters, so that the odd one is alone on its host."""
        flipped = job("flipped", "host1:2,host2:1", "bitflip:rank=2:step=10",
                      "--communication.check-replicas-every", 5)
        check(flipped.code == 76, flipped.text)
        root_cause(flipped, "rank 2 (host2, cpu) in training at step 10", "the replica of rank 2 differs")

    is_suspended()
    together([is_stopped_alone, *some((is_stopped, is_killed, hears_strangers, computes_something_else))], 2)

    if LONG:
        starve(scratch / "starved")

    # The cable of the other host is pulled while it trains and writes checkpoints: in any call.
    directory = scratch / "cut"
    where = "host1:2,host2:2" if LONG else "host1:2,host2:1"
    running = hosts.mpirun(where, words(directory, "--train.steps", 0, "--train.epochs", 50,
                                        "--checkpoint.every-steps", 1))
    while len(steps_of(directory)) < 10:
        check(running.poll() is None, "it trains")
        time.sleep(0.1)
    since = time.monotonic()
    hosts.cut("host2")
    # mpirun itself may wait for the lost host for minutes: the ranks do not.
    while hosts.processes("host1", "lockstep") and time.monotonic() - since < 40:
        time.sleep(0.2)
    seconds = time.monotonic() - since
    check(not hosts.processes("host1", "lockstep"), "the ranks that tell end")
    log = (directory / "log.txt").read_text()
    causes = [line for line in log.splitlines() if "lockstep: root cause" in line]
    # The host that is cut off still reaches this machine's disk, and leaves the log to the others.
    check(len(causes) == 1 and "(host2, cpu)" in causes[0] and "has sent nothing for" in causes[0] and
          "cut off from the network" in causes[0], "\n".join(causes) or log[-3000:])
    print(f"{seconds:.1f} s: {causes[0]}", flush=True)
    while hosts.processes("host2", "lockstep") and time.monotonic() - since < 40:
        time.sleep(0.2)
    check(not hosts.processes("host2", "lockstep"), "the ranks that were cut off end themselves")
