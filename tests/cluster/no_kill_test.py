"""A job of a real Slurm that keeps its nodes when one is lost (--no-kill), with `lockstep launch --spares 1` in it: a
node is switched off, and the run continues on the spare within the job, with the same bits. The long form tries ten
faults: ranks killed and stopped, nodes off, drained and down, Slurm's daemon killed."""
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, checkpoints, records, train  # noqa: E402
import slurm  # noqa: E402

STEPS, AT = 80, 15  # the fault comes after so many
OPTIONS = ("--data.validation=", "--run.replicas", "4", "--train.steps", str(STEPS), "--train.epochs", "0",
           "--train.validate-every", "0", "--checkpoint.every-steps", "20", "--communication.timeout-seconds", "15")
SCRIPT = f"""#!/bin/bash
export LOCKSTEP_INJECT=slow:rank=0
exec {LOCKSTEP} launch --yes {DECK} --devices 1 --restarts 3 --spares 1 --data.train {DATA}/train.h5 \
    --fault-tolerance.memory-copy-every 1 --run.directory run {' '.join(OPTIONS)}
"""
# What Slurm itself starts must not be held up by variables of the tests.
os.environ.update({"OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_oob_tcp_if_include": "eth0"})

if slurm.missing():
    print(f"skipped: {slurm.missing()}")
    sys.exit(77)


def kill(cluster, node, program="lockstep", number=signal.SIGKILL):
    for process in cluster.processes(node, program):
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        if program != "lockstep" or words[1:2] == [b"train"]:  # not launch
            os.kill(process, number)


def stop(cluster, node):
    kill(cluster, node, number=signal.SIGSTOP)


def daemon_killed(cluster, node):
    kill(cluster, node, "slurmd")
    kill(cluster, node)


def off(cluster, node):
    cluster.crash(node)


def all_killed(cluster, node):
    cluster.kill_all(node)


def set_to(state):
    def fault(cluster, node):
        done = slurm.run("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=test")
        check(done.returncode == 0, done.stderr)
        if state == "DRAIN":
            kill(cluster, node)
    return fault


# (the fault, its node, the hosts of the next attempt)
STAYS, SPARE_FOR_2 = ["host1", "host2", "host3"], ["host1", "host3", "host4"]
FAULTS = {"off": (off, "host2", SPARE_FOR_2),
          "rank killed": (kill, "host2", STAYS),
          "rank of the first node killed": (kill, "host1", STAYS),
          "rank stopped": (stop, "host3", STAYS),
          "the other one off": (off, "host3", ["host1", "host2", "host4"]),
          "all that runs on it killed": (all_killed, "host2", SPARE_FOR_2),
          "drained, and its rank killed": (set_to("DRAIN"), "host2", None),  # a step may still be started there
          "down": (set_to("DOWN"), "host2", SPARE_FOR_2),
          "the other one down": (set_to("DOWN"), "host3", ["host1", "host2", "host4"]),
          "Slurm's daemon and a rank killed": (daemon_killed, "host3", ["host1", "host2", "host4"])}


class Job:
    def __init__(self, cluster, directory):
        self.cluster, self.directory, self.run = cluster, directory, directory / "run"
        directory.mkdir()
        (directory / "job.sh").write_text(SCRIPT)
        submitted = slurm.run("sbatch", "--parsable", "--no-kill", "--partition=urgent", "--nodes=4",
                              "--ntasks-per-node=1", "--mem-per-cpu=100", "--time=60", "--output=out", "job.sh",
                              cwd=directory)
        check(submitted.returncode == 0, submitted.stderr)
        self.number = submitted.stdout.strip()

    def text(self):
        path = self.directory / "out"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for(self, what, condition, limit=180):
        try:
            self.cluster.wait_until(condition, limit, what)
        except RuntimeError as error:
            check(False, f"{error}\n{self.text()}")

    def steps(self):
        return records(self.run, "step")[-1:] if (self.run / "metrics.jsonl").exists() else []

    def suffers(self, fault, node, expected, whole):
        self.wait_for("it trains", lambda: any(step["step"] >= AT for step in self.steps()))
        fault(self.cluster, node)
        self.wait_for("it ends", lambda: self.cluster.state(self.number) not in ("RUNNING", "COMPLETING"))
        check(self.cluster.state(self.number) == "COMPLETED", self.text())
        check("restart 1 of 3" in self.text(), self.text())
        attempts = [start["hosts"] for start in records(self.run, "start")]
        check(len(attempts) == 2 and (expected is None or attempts[1] == expected), f"{attempts}\n{self.text()}")
        check("resumed from the copies in memory" in (self.run / "log.txt").read_text(), self.text())
        out = re.findall(r"launch: (\S+) is left out for the rest of the job: ", self.text())
        check(out in ([], [node]), self.text())
        check_same(checkpoints(whole)[-1], checkpoints(self.run)[-1], "the same bits")


def mend(cluster, node):
    """The node is as before."""
    if (cluster.path / f"{node}.cut").exists():
        cluster.join(node)
    cluster.kill_all(node)
    cluster.boot(node)
    slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
    cluster.wait_until(lambda: cluster.idle() == len(cluster.names), 180, "all nodes are idle")


with Scratch() as scratch, slurm.Slurm() as cluster:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    names = sys.argv[1:] or (FAULTS if LONG else ["off"])
    for number, name in enumerate(names):
        fault, node, expected = FAULTS[name]
        Job(cluster, scratch / f"job{number}").suffers(fault, node, expected, whole)
        print(f"{name}: as promised", flush=True)
        if name != list(names)[-1]:
            mend(cluster, node)
