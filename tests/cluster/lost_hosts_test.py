"""lockstep launch on hosts made of namespaces: a cable that is pulled, rank 0's host lost, a daemon of
mpirun killed, all ranks of a host stopped. Each time the line names that host, and the run continues to
the bits of a run that nothing happened to, on the hosts that answer. The short form pulls a cable."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import (DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, checkpoints,  # noqa: E402
                     records, train)
from hosts import Hosts, missing  # noqa: E402

STEPS, AT = (300, 50) if LONG else (80, 22)  # the host is lost after so many
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--checkpoint.every-steps", 20,
           "--communication.timeout-seconds", 8)

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


class Launched:
    """A run of three ranks under `launch` on host1, by itself or with the ranks elsewhere."""

    def __init__(self, hosts, scratch, name, where, *options):
        self.hosts, self.directory = hosts, scratch / name
        nodes = scratch / f"{name}.hosts"
        nodes.write_text("".join(f"{host} slots={count}\n" for host, count in where))
        self.output = open(scratch / f"{name}.out", "w+")
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(hosts.holders["host1"].pid), "-n", "-u", "-m",
             f"--wd={os.getcwd()}", "--", LOCKSTEP, "launch", "--yes", DECK, "--hostfile", str(nodes),
             "--restarts", "3", "--data.train", str(DATA / "train.h5"), "--run.directory",
             str(self.directory), *map(str, OPTIONS + options)],
            stdout=self.output, stderr=subprocess.STDOUT,
            # A tenth of a second per step, where the environment reaches rank 0: on host1.
            env={**os.environ, "LOCKSTEP_INJECT": "slow:rank=0",
                 "OMPI_MCA_btl_tcp_if_include": "eth0",
                 "OMPI_MCA_plm_rsh_agent": str(hosts.agent), "OMPI_MCA_oob_tcp_if_include": "eth0"})

    def text(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text()

    def steps(self):
        path = self.directory / "metrics.jsonl"
        return max([step["step"] for step in records(self.directory, "step")], default=0) \
            if path.exists() else 0

    def wait_for(self, what, condition, limit=120):
        deadline = time.monotonic() + limit
        while not condition():
            check(self.process.poll() is None and time.monotonic() < deadline, f"{what}\n{self.text()}")
            time.sleep(0.1)

    def causes(self):
        return re.findall(r"^lockstep: root cause: .*$", self.text(), re.M)

    def continues(self, host, whole, *phrases):
        """The loss of this host is the last word on it; then the run comes to its end."""
        self.wait_for("it is started again", lambda: "restart 1 of 3" in self.text())
        line = self.causes()[-1] if self.causes() else ""
        check(host in line and " at step " in line and any(phrase in line for phrase in phrases),
              f"{host} is named: {line}\n{self.text()}")
        log = (self.directory / "log.txt").read_text()
        check(line in log, f"log.txt says the same: {line}\n{log[-2000:]}")  # a host that is cut off may say its own
        print(line, flush=True)
        self.process.wait(timeout=240)
        check(self.process.returncode == 0, self.text())
        check_same(checkpoints(whole)[-1], checkpoints(self.directory)[-1], "the same bits")

    def begins_again_on(self, hosts):
        check(f"restart 1 of 3 on {hosts} in" in self.text(), f"on {hosts}: {self.text()}")


def pulled_cable(hosts, scratch, whole):
    # With patience enough for mpirun to be the first that misses the host, and to end the others.
    run = Launched(hosts, scratch, "cable", [("host1", 1), ("host2", 1), ("host3", 1)],
                   "--communication.timeout-seconds", 60)
    run.wait_for("it trains", lambda: run.steps() >= AT)
    hosts.cut("host2")
    run.continues("host2", whole, "has sent nothing for", "lost its daemon")
    run.begins_again_on("host1, host3")
    hosts.join("host2")


def first_host_lost(hosts, scratch, whole):
    run = Launched(hosts, scratch, "first", [("host2", 1), ("host3", 2)])  # not where mpirun is
    run.wait_for("it trains", lambda: run.steps() >= AT)
    hosts.cut("host2")
    run.continues("host2", whole, "has sent nothing for", "lost its daemon")
    run.begins_again_on("host3")
    hosts.join("host2")


def daemon_killed(hosts, scratch, whole):
    run = Launched(hosts, scratch, "daemon", [("host1", 1), ("host3", 2)])
    run.wait_for("it trains", lambda: run.steps() >= AT)
    for process in hosts.processes("host3", "orted"):
        os.kill(process, signal.SIGKILL)
    run.continues("host3", whole, "is gone", "lost its daemon")
    run.begins_again_on("host1, host3")


def ranks_stopped(hosts, scratch, whole):
    run = Launched(hosts, scratch, "stopped", [("host1", 1), ("host3", 2)])
    run.wait_for("it trains", lambda: run.steps() >= AT)
    for process in hosts.processes("host3", "lockstep"):
        os.kill(process, signal.SIGSTOP)
    run.continues("host3", whole, "has sent nothing for", "stopped")
    run.begins_again_on("host1, host3")


PARTS = [pulled_cable, daemon_killed, first_host_lost, ranks_stopped]
with Scratch() as scratch, Hosts(3) as hosts:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    for part in PARTS if LONG else PARTS[:1]:
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part(hosts, scratch, whole)
            print(f"{part.__name__}: as promised", flush=True)
