"""A run under lockstep launch on hosts made of namespaces, from which hosts and ranks are taken."""
import json
import os
import pathlib
import re
import subprocess
import time

from harness import DATA, DECK, LOCKSTEP, check, check_same, checkpoints, records


class Launched:
    """A run under `launch` on host1, which starts the ranks there or elsewhere: [("host2", 1), …]."""

    fault = "slow:rank=0"
    program = LOCKSTEP

    def __init__(self, hosts, scratch, name, where, *options):
        self.hosts, self.directory = hosts, scratch / name
        nodes = scratch / f"{name}.hosts"
        nodes.write_text("".join(f"{host} slots={count}\n" for host, count in where))
        self.output = open(scratch / f"{name}.out", "w+")
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(hosts.holders["host1"].pid), "-n", "-u", "-m",
             f"--wd={os.getcwd()}", "--", self.program, "launch", "--yes", DECK, "--hostfile", str(nodes),
             "--restarts", "3", "--data.train", str(DATA / "train.h5"), "--run.directory",
             str(self.directory), *map(str, options)],
            stdout=self.output, stderr=subprocess.STDOUT,
            # A tenth of a second per step, where the environment reaches rank 0: on host1.
            env={**os.environ, "LOCKSTEP_INJECT": self.fault,
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

    def left_out(self):
        told = re.findall(r"launch: (\S+) is left out for the rest of the job: ", self.text())
        lines = map(json.loads, (self.directory / "history.jsonl").read_text().splitlines())
        kept = [each["host"] for line in lines for each in line.get("retired", [])]
        check(told == kept, f"what is told is on record: {told} {kept}\n{self.text()}")
        return told

    def begins_again_on(self, hosts):
        check(f"restart 1 of 3 on {hosts}, at once" in self.text(), f"on {hosts}: {self.text()}")
