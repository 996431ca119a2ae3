"""Faults drawn at random on four and six hosts made of namespaces, under plain mpirun and under launch: a
rank killed or stopped, mpirun's daemon or the session that started it killed, a host cut off or switched
off, mpirun's own host cut off. Every root-cause line names that host (and rank), and there is one. Hosts
without IPv4, hosts behind a firewall, and a launch on a host that is cut off. The short form tries two."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import (DATA, DECK, LOCKSTEP, SEED, Scratch, check, records, some)  # noqa: E402
from hosts import Hosts, missing  # noqa: E402

KEEPALIVE = ("--mca", "oob_tcp_keepalive_time", 5, "--mca", "oob_tcp_keepalive_intvl", 2, "--mca",
             "oob_tcp_keepalive_probes", 3)

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


class Case:
    """One fault in one run; all that is random about it is drawn from its number."""

    def __init__(self, number, hosts, starter, fault):
        draw = random.Random(f"{SEED} {number}")
        self.number, self.starter, self.fault = number, starter, fault
        self.names = [f"host{k}" for k in range(1, hosts + 1)]
        if draw.random() < 0.3:
            draw.shuffle(self.names)  # rank 0 is not where mpirun is
        self.counts = [draw.choice((1, 1, 2)) for _ in self.names]
        self.victim = "host1" if fault.startswith("own host cut") else \
            draw.choice(self.names if fault in ("rank killed", "rank stopped") else
                        [name for name in self.names if name != "host1"])
        self.keepalive = starter == "launch" or draw.random() < 0.6
        self.patience = draw.choice((12, 15, 40))
        self.step = draw.randrange(5, 25)
        self.which = draw.random()
        self.options = ("--restarts", 0)

    def __str__(self):
        where = ",".join(f"{name}:{count}" for name, count in zip(self.names, self.counts))
        return (f"{self.number}: {self.fault} on {self.victim} of {where}, {self.starter}"
                f"{' with' if self.keepalive else ' without'} keepalive, {self.patience} s")

    def start(self, hosts, scratch):
        self.directory = scratch / f"case{self.number}"
        train = [DECK, "--data.train", DATA / "train.h5", "--data.validation", "", "--train.steps", 0,
                 "--train.epochs", 50, "--run.replicas", 16, "--data.global-batch", 128,
                 "--run.directory", self.directory, "--checkpoint.every-steps", 10,
                 "--communication.timeout-seconds", self.patience]
        if self.starter == "launch":
            nodes = scratch / f"case{self.number}.hosts"
            nodes.write_text("".join(f"{name} slots={count}\n"
                                     for name, count in zip(self.names, self.counts)))
            words = [LOCKSTEP, "launch", "--yes", *train, "--hostfile", nodes, *self.options]
        else:
            where = ",".join(f"{name}:{count}" for name, count in zip(self.names, self.counts))
            words = [os.environ["LOCKSTEP_MPIEXEC"], *(KEEPALIVE if self.keepalive else ()),
                     "-x", "LOCKSTEP_INJECT", "--host", where, LOCKSTEP, "train", *train]
        self.output = open(scratch / f"case{self.number}.out", "w+")
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(hosts.holders["host1"].pid), "-n", "-u", "-m", f"--wd={os.getcwd()}",
             "--", *map(str, words)], stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT, env={
                **os.environ, "LOCKSTEP_INJECT": "slow:rank=0", "OMPI_MCA_mpi_yield_when_idle": "1",
                "OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_oob_tcp_if_include": "eth0",
                "OMPI_MCA_plm_rsh_agent": str(hosts.agent),
                **({"OMPI_MCA_btl_tcp_disable_family": "4", "OMPI_MCA_oob_tcp_disable_ipv4_family": "1"}
                   if hosts.ipv6 else {})})

    def steps(self):
        path = self.directory / "metrics.jsonl"
        return max([step["step"] for step in records(self.directory, "step")], default=0) \
            if path.exists() else 0

    def text(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text(errors="replace")

    def strike(self, hosts):
        """The fault; the rank that is to be named, if it is one rank's."""
        if self.fault in ("rank killed", "rank stopped"):
            ranks = sorted(hosts.processes(self.victim, "lockstep"), key=rank_of)
            ranks = [process for process in ranks if rank_of(process) >= 0]
            process = ranks[int(self.which * len(ranks))]
            rank = rank_of(process)
            os.kill(process, signal.SIGKILL if self.fault == "rank killed" else signal.SIGSTOP)
            return f"rank {rank} "
        if self.fault == "daemon killed":
            for process in hosts.processes(self.victim, "orted"):
                os.kill(process, signal.SIGKILL)
        elif self.fault == "session killed":
            os.kill(hosts.session(self.victim), signal.SIGKILL)
        elif self.fault in ("host cut", "own host cut"):
            hosts.cut(self.victim)
        elif self.fault == "own host cut, not from ssh":
            hosts.cut(self.victim, logins=False)
        else:
            hosts.crash(self.victim)
        return ""

    def wait_for(self, condition):
        deadline = time.monotonic() + 180
        while not condition():
            check(self.process.poll() is None and time.monotonic() < deadline,
                  f"{self}: it trains\n{self.text()}")
            time.sleep(0.1)

    def ended(self, hosts):
        return not any(hosts.processes(name, "lockstep") for name in self.names if name != self.victim)

    def end(self, hosts):
        hosts.kill_jobs()
        self.process.wait(timeout=300)

    def run(self, hosts, scratch):
        self.start(hosts, scratch)
        self.wait_for(lambda: self.steps() >= self.step)
        rank = self.strike(hosts)
        since = time.monotonic()
        # mpirun may wait for a lost host for minutes; the ranks do not.
        limit = 2.5 * self.patience + 60
        while time.monotonic() - since < limit:
            if not any(hosts.processes(name, "lockstep") for name in self.names):
                time.sleep(1)
                break
            if self.fault.startswith("own host cut") and self.process.poll() is not None and self.ended(hosts):
                break
            time.sleep(0.25)
        ended = self.ended(hosts)
        seconds = time.monotonic() - since
        text = self.text()
        self.end(hosts)
        if "cut" in self.fault or "crashed" in self.fault:
            hosts.join(self.victim)
        code = self.process.returncode
        lines = re.findall(r"lockstep: root cause: .*", text)
        log = re.findall(r"lockstep: root cause: .*", (self.directory / "log.txt").read_text())
        named = [(rank in line or not rank) and re.search(rf"\b{self.victim}\b", place_in(line))
                 for line in lines + log]
        right = bool(lines) and all(named) and ended
        if self.fault == "daemon killed":
            right = right and all("daemon" in line for line in lines)
        print(f"{'right' if right else 'WRONG'} {self}; {rank}{seconds:.1f} s, exit code {code}"
              f"{'' if ended else ', ranks continue'}", flush=True)
        for line in lines + [f"(log) {line}" for line in log if line not in lines]:
            print(f"    {line}", flush=True)
        if not right and os.environ.get("LOCKSTEP_SHOW"):
            print(text[-4000:], flush=True)
        return right


def rank_of(process):
    try:
        words = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return -1
    return next((int(word.split(b"=")[1]) for word in words if word.startswith(b"OMPI_COMM_WORLD_RANK=")), -1)


def place_in(line):
    return line.split("root cause: ")[1].split(" in ")[0]


FAULTS = ("host cut", "own host cut", "daemon killed", "session killed", "host crashed", "rank killed",
          "rank stopped")
CASES = [Case(number, (4, 6)[number // 2 % 2], ("mpirun", "launch")[number % 2],
              FAULTS[number // 4 % len(FAULTS)]) for number in range(60)]


def over_ipv6(scratch):
    """Hosts without IPv4 watch each other, too."""
    with Hosts(4, sessions=True, ipv6=True) as hosts:
        case = Case(60, 4, "mpirun", "host cut")
        check(case.run(hosts, scratch), f"over IPv6: {case}")
        log = (case.directory / "log.txt").read_text()
        check("hears nothing" not in log, log)


def without_udp(scratch):
    """Behind a firewall they do not, and the log says which."""
    with Hosts(3, sessions=True) as hosts:
        hosts.block_udp("host3")
        case = Case(61, 3, "mpirun", "host cut")
        case.start(hosts, scratch)
        log = case.directory / "log.txt"
        case.wait_for(lambda: log.exists() and "hears nothing of host3 by UDP" in log.read_text())
        for process in hosts.processes("host3", "lockstep"):
            os.kill(process, signal.SIGSTOP)
        code = case.process.wait(timeout=2.5 * case.patience + 60)
        lines = re.findall(r"lockstep: root cause: .*", case.text())
        check(code == 76 and len(lines) == 1 and "perhaps a rank of host3, which cannot be heard" in lines[0],
              f"{code}\n{case.text()}")
        case.end(hosts)


def deaf_host(scratch):
    """A host behind a firewall leaves it to the others to say which rank has stopped."""
    with Hosts(3, sessions=True) as hosts:
        hosts.block_udp("host3")
        case = Case(66, 3, "mpirun", "rank stopped")
        case.victim, case.patience = "host2", 12
        case.start(hosts, scratch)
        log = case.directory / "log.txt"
        case.wait_for(lambda: log.exists() and "hears nothing of any other host by UDP" in log.read_text())
        case.strike(hosts)
        code = case.process.wait(timeout=2.5 * case.patience + 60)
        lines = re.findall(r"lockstep: root cause: .*", case.text())
        check(code == 76 and len(lines) == 1 and "(host2, cpu)" in lines[0], f"{code}\n{case.text()}")
        print(lines[0])
        case.end(hosts)


def reached_launch(scratch):
    """A launch whose host the ranks miss, but which still reaches all by ssh, believes the ranks."""
    with Hosts(3, sessions=True) as hosts:
        case = Case(67, 3, "launch", "own host cut, not from ssh")
        check(case.run(hosts, scratch), f"cut off: {case}")


def ended_by_others(scratch):
    """A scheduler's TERM ends a host's ranks and its daemon, as in a preemption: the run leaves with a checkpoint,
    nobody is blamed, and launch does not start it again."""
    with Hosts(3, sessions=True) as hosts:
        for number, starter in enumerate(("mpirun", "launch")):
            case = Case(63 + number, 3, starter, "daemon ended")
            case.options = ("--restarts", 2)
            case.start(hosts, scratch)
            case.wait_for(lambda case=case: case.steps() >= case.step)
            for program in ("lockstep", "orted"):
                for process in hosts.processes("host2", program):
                    os.kill(process, signal.SIGTERM)
            code = case.process.wait(timeout=300)
            check("root cause" not in case.text() and "restart 1" not in case.text(), case.text())
            check(records(case.directory, "end")[-1]["reason"] == "SIGTERM", "it has left by itself")
            check(starter == "mpirun" or code == 75, f"{starter}: exit code {code}")
            case.end(hosts)


def launcher_killed(scratch):
    """What ranks have found out stands where their mpirun cannot print it any more."""
    with Hosts(3, sessions=True) as hosts:
        case = Case(65, 3, "launch", "mpirun killed")
        case.start(hosts, scratch)
        case.wait_for(lambda: case.steps() >= case.step)
        for program in ("mpirun", "mpiexec", "orterun"):
            for process in hosts.processes("host1", program):
                os.kill(process, signal.SIGKILL)
        code = case.process.wait(timeout=300)
        lines = re.findall(r"lockstep: root cause: .*", case.text())
        check(code == 76 and len(lines) == 1 and "(host1, cpu)" in lines[0] and "launcher's daemon on its host" in lines[0],
              f"{code}\n{case.text()}")
        case.end(hosts)


def cut_off_launch(scratch):
    """On a host that is cut off, the run does not continue alone if more hosts are asked for."""
    with Hosts(3, sessions=True) as hosts:
        case = Case(62, 3, "launch", "own host cut")
        case.options = ("--restarts", 2, "--min-hosts", 2)
        check(case.run(hosts, scratch), f"cut off: {case}")
        check("only 1 of 3 hosts answers, and --min-hosts is 2" in case.text() and
              "restart 1" not in case.text() and case.process.returncode == 76, case.text())


PARTS = [over_ipv6, without_udp, deaf_host, cut_off_launch, reached_launch, ended_by_others, launcher_killed]
only = sys.argv[1:]
with Scratch() as scratch:
    for part in [part for part in PARTS if part.__name__ in only] if only else some(PARTS):
        part(scratch)
        print(f"{part.__name__}: as promised", flush=True)
    tried = [CASES[int(word)] for word in only if word.isdigit()] if only else some(CASES)
    with Hosts(6, sessions=True) as hosts:
        wrong = [case for case in tried if not case.run(hosts, scratch)]
    check(not wrong, f"{len(wrong)} of {len(tried)} faults have a wrong root cause:\n" + "\n".join(map(str, wrong)))
