"""A job that loses ranks or a host continues from the copies in the memory of the hosts that are left: no file
is newer than step 0, at most two steps are done again, and the bits are those of a run that nothing happened
to. In the end nothing stays in memory. Copies of which a bit was flipped are not used, and where nothing happens,
nothing is done in 10,000 steps. The short form kills a rank and switches a host off."""
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from copies import copies_on, whole_steps  # noqa: E402
from harness import LONG, SEED, Scratch, check, check_same, checkpoints, train  # noqa: E402
from hosts import Hosts, missing  # noqa: E402
from launched import Launched  # noqa: E402

STEPS, AT = 60, 15  # the fault comes after so many
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--checkpoint.every-steps", 0, "--monitor.log-every", 1,
           "--communication.timeout-seconds", 8, "--optimizer.name", "adamw")
EVERY_STEP = ("--fault-tolerance.memory-copy-every", 1)

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


def in_memory(hosts):
    """The files that runs have left in the memory of hosts."""
    return [name for host in hosts.names
            for name in hosts.run(host, "ls", "/dev/shm").split() if name.startswith("lockstep-state-")]


def resumed_steps(run, source="the copies in memory"):
    return [int(step) for step in
            re.findall(rf"resumed from {source} at step (\d+)", (run.directory / "log.txt").read_text())]


def kill(hosts, host, number):
    for process in hosts.processes(host, "lockstep")[:1]:
        os.kill(process, number)


def heals(hosts, scratch, whole, name, where, fault, *options, faults=1):
    run = Launched(hosts, scratch, name, where, *OPTIONS, *EVERY_STEP, *options)
    reached = 0
    for count in range(faults):
        run.wait_for("it trains", lambda: run.steps() >= reached + AT)
        fault()
        reached = run.steps()
        run.wait_for("it continues from memory", lambda: len(resumed_steps(run)) > count)
        lost = reached - resumed_steps(run)[-1]
        check(lost <= 2, f"{lost} steps are done again\n{run.text()}")
        print(f"{name}: {lost} steps again", flush=True)
    run.process.wait(timeout=240)
    check(run.process.returncode == 0, run.text())
    check_same(checkpoints(whole)[-1], checkpoints(run.directory)[-1], "the same bits")
    check(not in_memory(hosts), f"nothing stays in memory: {in_memory(hosts)}")


def rank_killed(hosts, scratch, whole):
    heals(hosts, scratch, whole, "killed", [("host1", 1), ("host2", 1), ("host3", 1)],
          lambda: kill(hosts, "host2", signal.SIGKILL))


def host_off(hosts, scratch, whole):
    def fault():
        hosts.crash("host3")
        hosts.run("host3", "sh", "-c", "rm -f /dev/shm/lockstep-*")  # its memory goes, too
    heals(hosts, scratch, whole, "off", [("host1", 1), ("host2", 2), ("host3", 1)], fault)
    hosts.join("host3")


def twice(hosts, scratch, whole):
    heals(hosts, scratch, whole, "twice", [("host1", 2), ("host2", 2)],
          lambda: kill(hosts, "host2", signal.SIGKILL), faults=2)


def stopped(hosts, scratch, whole):
    heals(hosts, scratch, whole, "stopped", [("host1", 1), ("host2", 1), ("host3", 1)],
          lambda: kill(hosts, "host3", signal.SIGSTOP))


def mpirun_killed(hosts, scratch, whole):
    def fault():
        for process in hosts.processes("host1", "mpirun") + hosts.processes("host1", "orterun"):
            os.kill(process, signal.SIGKILL)
    heals(hosts, scratch, whole, "mpirun", [("host1", 1), ("host2", 2)], fault)


def fully_sharded(hosts, scratch, whole):
    heals(hosts, scratch, whole, "sharded", [("host1", 1), ("host2", 1), ("host3", 1)],
          lambda: kill(hosts, "host2", signal.SIGKILL), "--optimizer.update", "fully-sharded")


def started_over(hosts, scratch, whole):
    """What a launch that was killed has left goes when the run starts over."""
    where = [("host1", 1), ("host2", 1)]
    killed = Launched(hosts, scratch, "over", where, *OPTIONS, *EVERY_STEP)
    killed.wait_for("it trains", lambda: killed.steps() >= AT)
    killed.process.kill()
    hosts.kill_jobs()
    killed.process.wait()
    check(in_memory(hosts), "it leaves its copies")
    run = Launched(hosts, scratch, "over", where, *OPTIONS, *EVERY_STEP, "--checkpoint.resume", "none")
    run.process.wait(timeout=240)
    check(run.process.returncode == 0 and not resumed_steps(run), run.text())
    check(not in_memory(hosts), f"nothing stays in memory: {in_memory(hosts)}")


def settled_copies(hosts):
    """Those of a run whose ranks wait for one that is stopped."""
    before = None
    while not before or (now := copies_on(hosts)) != before:
        before = copies_on(hosts)
        time.sleep(1)
    return before


def flipped_bits(hosts, scratch, whole):
    """In turns, one of the two copies of each rank's newest part is damaged: the other one is used; or both of one
    rank's: the step before is used."""
    draw = random.Random(SEED)
    flips = 0
    for turn in range(2):
        run = Launched(hosts, scratch, f"flipped{turn}", [("host1", 1), ("host2", 1), ("host3", 1)], *OPTIONS,
                       *EVERY_STEP, "--communication.timeout-seconds", 100)
        reached = 0
        for count, host in enumerate(("host2", "host3", "host2", "host3")):
            run.wait_for("it trains", lambda: run.steps() >= reached + 5)
            kill(hosts, host, signal.SIGSTOP)
            steps = whole_steps(settled_copies(hosts))
            newest = max(steps)
            if count % 2 == 0:
                damaged = [draw.choice(copies) for copies in steps[newest].values() if len(copies) > 1]
                expected = newest
            else:
                damaged = steps[newest][draw.randrange(3)]
                expected = max((step for step in steps if step < newest), default=0)  # the file's
            places = [copy.flip(draw) for copy in damaged]
            flips += len(places)
            reached = run.steps()
            kill(hosts, host, signal.SIGKILL)
            run.wait_for("it is started again", lambda: len(resumed_steps(run, ".*")) > count)
            check(resumed_steps(run, ".*")[-1] == expected, f"{expected} of {sorted(steps)}, {places}\n{run.text()}")
            print(f"step {expected} of {sorted(steps)}, without {', '.join(places)}", flush=True)
        run.process.wait(timeout=240)
        check(run.process.returncode == 0, run.text())
        check_same(checkpoints(whole)[-1], checkpoints(run.directory)[-1], "the same bits")
        check(not in_memory(hosts), f"nothing stays in memory: {in_memory(hosts)}")
    print(f"{flips} bits", flush=True)


def clean_steps(hosts, scratch, _):
    """No false alarm, and no host left out, on two hosts and on four."""
    class Fast(Launched):
        fault = ""
    for count in (2, 4):
        run = Fast(hosts, scratch, f"clean{count}", [(name, 1) for name in hosts.names[:count]], *OPTIONS, *EVERY_STEP,
                   "--train.steps", 10_000, "--monitor.log-every", 100, "--model.channels", "2, 2",
                   "--data.global-batch", 16, "--optimizer.accumulate", 1)
        run.wait_for("copies are made", lambda: in_memory(hosts))
        check(run.process.wait(timeout=1700) == 0, run.text())
        check(not run.causes() and "restart" not in run.text() and not run.left_out(), run.text())
        check("finished at step 10000" in run.text().replace(",", ""), run.text())


PARTS = [rank_killed, host_off, twice, stopped, mpirun_killed, fully_sharded, started_over,
         flipped_bits, clean_steps]
with Scratch() as scratch, Hosts(4) as hosts:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    for part in PARTS if LONG or sys.argv[1:] else PARTS[:2]:
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            begun = time.monotonic()
            part(hosts, scratch, whole)
            print(f"{part.__name__}: as promised, {time.monotonic() - begun:.0f} s", flush=True)
