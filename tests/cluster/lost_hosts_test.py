"""lockstep launch on hosts made of namespaces: a cable that is pulled, rank 0's host lost, a daemon of
mpirun killed, all ranks of a host stopped. Each time the line names that host, and the run continues to
the bits of a run that nothing happened to, on a spare and the hosts that answer. Only a host that is gone is
left out for good; no host is for a full disk. The short form pulls a cable."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import LONG, Scratch, check, train  # noqa: E402
from hosts import Hosts, missing  # noqa: E402
from launched import Launched  # noqa: E402

STEPS, AT = (300, 50) if LONG else (80, 22)  # the host is lost after so many
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--checkpoint.every-steps", 20,
           "--communication.timeout-seconds", 8)

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


def pulled_cable(hosts, scratch, whole):
    # With patience enough for mpirun to be the first that misses the host, and to end the others.
    run = Launched(hosts, scratch, "cable", [("host1", 1), ("host2", 1), ("host3", 1), ("host4", 1)], *OPTIONS,
                   "--communication.timeout-seconds", 60, "--spares", 1)
    run.wait_for("it trains", lambda: run.steps() >= AT)
    hosts.cut("host2")
    run.continues("host2", whole, "has sent nothing for", "lost its daemon")
    run.begins_again_on("host1, host3, host4")
    check(run.left_out() == ["host2"], run.text())
    hosts.join("host2")


def first_host_lost(hosts, scratch, whole):
    run = Launched(hosts, scratch, "first", [("host2", 1), ("host3", 2)], *OPTIONS)  # not where mpirun is
    run.wait_for("it trains", lambda: run.steps() >= AT)
    hosts.cut("host2")
    run.continues("host2", whole, "has sent nothing for", "lost its daemon")
    run.begins_again_on("host3")
    check(run.left_out() == ["host2"], run.text())
    hosts.join("host2")


def daemon_killed(hosts, scratch, whole):
    run = Launched(hosts, scratch, "daemon", [("host1", 1), ("host3", 2)], *OPTIONS)
    run.wait_for("it trains", lambda: run.steps() >= AT)
    for process in hosts.processes("host3", "orted"):
        os.kill(process, signal.SIGKILL)
    run.continues("host3", whole, "is gone", "lost its daemon", "daemon on its host has ended")
    run.begins_again_on("host1, host3")
    check(not run.left_out(), f"the host is well: {run.text()}")


def ranks_stopped(hosts, scratch, whole):
    run = Launched(hosts, scratch, "stopped", [("host1", 1), ("host3", 2)], *OPTIONS)
    run.wait_for("it trains", lambda: run.steps() >= AT)
    for process in hosts.processes("host3", "lockstep"):
        os.kill(process, signal.SIGSTOP)
    run.continues("host3", whole, "has sent nothing for", "stopped")
    run.begins_again_on("host1, host3")
    check(not run.left_out(), f"the host is well: {run.text()}")


def full_disk(hosts, scratch, _):
    class Full(Launched):
        fault = "disk-full"
    run = Full(hosts, scratch, "full", [("host1", 1), ("host2", 1), ("host3", 1)], *OPTIONS, "--spares", 1)
    check(run.process.wait(timeout=240) == 74, run.text())
    check("left out" not in run.text() and "restart 1" not in run.text(), run.text())


PARTS = [pulled_cable, daemon_killed, first_host_lost, ranks_stopped, full_disk]
with Scratch() as scratch, Hosts(4) as hosts:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    for part in PARTS if LONG or sys.argv[1:] else PARTS[:1]:
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part(hosts, scratch, whole)
            print(f"{part.__name__}: as promised", flush=True)
