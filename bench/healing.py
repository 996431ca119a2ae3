#!/usr/bin/env python3
"""How long a run under `lockstep launch` takes to continue after a fault, and whether it does so rightly: hosts of
network namespaces, a list of faults drawn by a seed, at random instants; several builds in turns (`--build`, repeated).
Prints a line per fault and a table by kind. Needs root, and the data that the tests make (`--data`)."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/cluster"), str(ROOT / "tests/run")]

STEPS, EVERY = 60, 10  # of 0.1 s each; a checkpoint after so many
LIMIT_S = 150  # of a run
SMALL = 48 << 20  # a /dev/shm and the disk that become full
PATIENCE_S = 15  # communication.timeout-seconds
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--checkpoint.every-steps", EVERY, "--monitor.log-every", 1,
           "--monitor.weight-hash", "true", "--communication.timeout-seconds", PATIENCE_S)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, action="append", help="may be repeated; default: build")
    parser.add_argument("--data", type=pathlib.Path, help="a directory with train.h5; default: that of the first build")
    parser.add_argument("--shape", action="append", help="HOSTSxRANKS; may be repeated; default: 4x1 and 2x2")
    parser.add_argument("--only", action="append", help="a kind of fault; may be repeated; default: all")
    parser.add_argument("--faults", type=int, default=26, help="in each build")
    parser.add_argument("--spares", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="a file to which each fault is appended")
    options = parser.parse_args()
    options.build = [build.resolve() for build in options.build or [ROOT / "build"]]
    os.environ.setdefault("LOCKSTEP_MPIEXEC", "mpirun")
    os.environ["LOCKSTEP_BUILD"] = str(options.build[0])
    if options.data:
        os.environ["LOCKSTEP_TEST_DATA"] = str(options.data.resolve())
    os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
                       "OMPI_MCA_hwloc_base_binding_policy": "none", "OMP_NUM_THREADS": "1"})
    return options


options = parsed()

from harness import DATA, DECK, PARTED, checkpoints, run  # noqa: E402
from hosts import Hosts, fill, missing  # noqa: E402
from launched import Launched  # noqa: E402


def send(processes, number):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass  # it has ended meanwhile


def has_ended(processes):
    return not any(pathlib.Path(f"/proc/{process}").exists() for process in processes)


class Fault:
    """What happens to a run; all that is random about it is drawn from its number."""

    names_host = True
    may_retire = False
    spares_host1 = False  # launch runs there
    in_copies = False  # only builds that make copies have it
    ends_with = 0  # the exit code with which the run may end, too

    def __init__(self, number, names):
        self.draw = random.Random(f"{options.seed} {number}")
        self.names = names
        self.victim = self.draw.choice(names[1:] if self.spares_host1 else names)
        self.step = self.draw.randrange(4, STEPS - 25)
        self.delay = self.draw.random() * 0.2

    def __str__(self):
        return f"{self.kind} on {self.victim} of {len(self.names)}, step {self.step}"

    def strike(self, trial):
        trial.wait_until(lambda: trial.last_step() >= self.step)
        time.sleep(self.delay)
        trial.struck(self.victim)
        self.hit(trial, self.victim)

    def hit(self, trial, victim):
        raise NotImplementedError


class RankKilled(Fault):
    kind = "rank killed"

    def hit(self, trial, victim):
        send(self.draw.sample(trial.ranks(victim), 1), signal.SIGKILL)


class RankStopped(Fault):
    kind = "rank stopped"

    def hit(self, trial, victim):
        send(self.draw.sample(trial.ranks(victim), 1), signal.SIGSTOP)


class HostOff(Fault):
    """Nobody hears an end of connections, of sessions neither; what was in its memory is gone."""

    kind, may_retire, spares_host1 = "host off", True, True

    def hit(self, trial, victim):
        session = trial.hosts.session(victim)
        os.kill(session, signal.SIGSTOP)
        trial.hosts.crash(victim)
        trial.empty_memory(victim)
        trial.frozen.append(session)


class CableCut(Fault):
    kind, may_retire, spares_host1 = "cable cut", True, True

    def hit(self, trial, victim):
        trial.hosts.cut(victim)


class CablePluggedIn(CableCut):
    kind = "cable cut for seconds"

    def hit(self, trial, victim):
        super().hit(trial, victim)
        time.sleep(1 + self.draw.random() * 12)
        trial.hosts.join(victim)


class DaemonKilled(Fault):
    kind, spares_host1 = "daemon killed", True

    def hit(self, trial, victim):
        send(trial.hosts.processes(victim, "orted"), signal.SIGKILL)


class MpirunKilled(Fault):
    kind, names_host = "mpirun killed", False

    def hit(self, trial, victim):
        for program in ("mpirun", "mpiexec", "orterun"):
            send(trial.hosts.processes("host1", program), signal.SIGKILL)


class DiskFull(Fault):
    """For a second: no rank is lost, and no host is to blame."""

    kind, names_host = "disk full", False

    def hit(self, trial, victim):
        fill(trial.disk / "full")
        time.sleep(1)
        trial.make_room()


class DiskFullAtRestart(RankKilled):
    """The disk of the run is full when a rank is killed: where that ends the run, it is started once more when there is
    room again."""

    kind, ends_with = "disk full, then rank killed", 74

    def hit(self, trial, victim):
        fill(trial.disk / "full")
        super().hit(trial, victim)


class MemoryFull(RankKilled):
    """Of the host whose rank is killed afterwards: this host may be left out."""

    kind, may_retire = "/dev/shm full, then rank killed", True

    def hit(self, trial, victim):
        fill(trial.memory(victim) / "full")
        time.sleep(0.5)
        super().hit(trial, victim)


class DuringRestore(RankKilled):
    """A rank of the next attempt is killed, too, while it starts and reads its state."""

    kind = "rank killed, again during restore"

    def strike(self, trial):
        super().strike(trial)
        old = [process for name in self.names for process in trial.ranks(name)]
        trial.wait_until(lambda: trial.restarts() > 0)
        second = self.draw.choice(self.names)
        trial.wait_until(lambda: set(trial.ranks(second)) - set(old))
        time.sleep(self.draw.random() * 1.5)
        trial.struck(second)
        self.hit(trial, second)


class DuringCopy(RankKilled):
    """Just when a copy is written."""

    kind, in_copies = "rank killed during a copy", True

    def strike(self, trial):
        trial.wait_until(lambda: trial.last_step() >= self.step)
        before = trial.headers_of_copies(self.victim)
        trial.wait_until(lambda: trial.headers_of_copies(self.victim) != before, pause=0)
        trial.struck(self.victim)
        self.hit(trial, self.victim)


class SecondFault(RankKilled):
    """A host is off; before the run continues, a rank of another one is killed."""

    kind, may_retire, spares_host1 = "host off, rank killed during recovery", True, True

    def strike(self, trial):
        trial.wait_until(lambda: trial.last_step() >= self.step)
        time.sleep(self.delay)
        trial.struck(self.victim)
        HostOff.hit(self, trial, self.victim)
        second = self.draw.choice([name for name in self.names if name != self.victim])
        trial.wait_until(lambda: trial.restarts() > 0)
        trial.wait_until(lambda: trial.ranks(second))
        time.sleep(self.draw.random() * 2)
        trial.struck(second)
        self.hit(trial, second)


KINDS = [RankKilled, RankStopped, HostOff, CableCut, CablePluggedIn, DaemonKilled, MpirunKilled, DiskFull,
         DiskFullAtRestart, MemoryFull, DuringRestore, DuringCopy, SecondFault]


class Trial(Launched):
    """A fault in a run of a build."""

    def __init__(self, build, hosts, shape, disk, number, fault):
        self.program, self.build = str(build / "lockstep"), build
        self.disk, self.kind = disk, fault
        self.began = time.monotonic()
        self.victims, self.at, self.before = [], None, (0, 0)
        self.frozen, self.earlier = [], ""
        ranks = int(shape.split("x")[1])
        copies = ("--fault-tolerance.memory-copy-every", 1) if makes_copies(build) else ()
        spares = ("--spares", options.spares) if options.spares and makes_copies(build) else ()
        where = [(name, ranks) for name in (hosts.names if spares else fault.names)]
        self.words = (hosts, disk, f"run{number}", where, *OPTIONS, *copies, *spares)
        super().__init__(*self.words)

    def wait_until(self, condition, pause=0.05):
        while not condition():
            if self.process.poll() is not None:
                raise RuntimeError("the run has ended")
            if time.monotonic() - self.began > LIMIT_S:
                raise RuntimeError("time is up")
            time.sleep(pause)

    def text(self):
        return self.earlier + super().text()

    def start_again(self):
        self.earlier = self.text()
        super().__init__(*self.words)

    def ranks(self, name):
        """Processes of ranks on a host, without launch and what tests the host."""
        found = []
        for process in self.hosts.processes(name, "lockstep"):
            try:
                words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended meanwhile
            if words[1:2] == [b"train"]:
                found.append(process)
        return found

    def memory(self, name):
        return pathlib.Path(f"/proc/{self.hosts.holders[name].pid}/root/dev/shm")

    def empty_memory(self, name):
        for path in self.memory(name).iterdir():
            if path.is_file():
                path.unlink(missing_ok=True)

    def headers_of_copies(self, name):
        headers = []
        for path in sorted(self.memory(name).glob("lockstep-state-*")):
            try:
                with open(path, "rb") as file:
                    headers.append(file.read(96))
            except OSError:
                pass  # it is gone
        return headers

    def make_room(self):
        (self.disk / "full").unlink(missing_ok=True)

    def steps_of_attempts(self):
        """(step, seconds since 1970) of each attempt."""
        attempts = []
        try:
            lines = (self.directory / "metrics.jsonl").read_text().splitlines()
        except OSError:
            lines = []
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue  # it is being written
            if record["event"] == "start":
                attempts.append([])
            elif record["event"] == "step" and attempts:
                attempts[-1].append((record["step"], seconds_of(record["time"])))
        return attempts

    def last_step(self):
        return max((step for attempt in self.steps_of_attempts() for step, _ in attempt), default=0)

    def restarts(self):
        return len(re.findall(r"restart \d+ of", self.text()))

    def struck(self, victim):
        """Called just before a fault."""
        self.before = (self.restarts(), len(self.causes()))
        self.victims.append(victim)
        self.at = time.time()

    def new_step(self):
        """(when the first step after the last fault is done that none has done before, and how many are done again)."""
        reached, found = 0, None
        for attempt in self.steps_of_attempts():
            later = [(step, when) for step, when in attempt if step > reached and when > self.at]
            if attempt and reached and later and attempt[0][1] > self.at:
                found = found or (later[0][1], reached - attempt[0][0] + 1)
            reached = max([reached, *(step for step, _ in attempt)])
        return found

    def measure(self):
        """Waits for the end of the run; what came of the fault."""
        result = {"kind": self.kind.kind, "build": self.build.parent.name or "build", "fault": str(self.kind)}
        try:
            self.kind.strike(self)
            self.follow(result)
            result["code"] = self.end()
            if self.kind.ends_with and result["code"] == self.kind.ends_with:
                self.make_room()
                self.start_again()
                result["code_after"] = self.end()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            result["ended"] = str(error)
        self.judge(result)
        return result

    def end(self):
        return self.process.wait(timeout=max(LIMIT_S - (time.monotonic() - self.began), 1))

    def follow(self, result):
        """Notes when the root cause is told, the run is started again, and has done a new step."""
        def seen():
            now = time.time() - self.at
            if len(self.causes()) > self.before[1]:
                result.setdefault("cause_s", now)
            if self.restarts() > self.before[0]:
                result.setdefault("restart_s", now)
            return self.new_step() or self.process.poll() is not None
        while not seen() and time.monotonic() - self.began < LIMIT_S:
            time.sleep(0.05)
        if self.new_step():
            when, again = self.new_step()
            result.update(step_s=when - self.at, again=again)

    def judge(self, result):
        # What a full disk is blamed for says which rank has met it.
        lost = [re.split(r" in (?:training|start-up)|, last heard", cause)[0] for cause in self.causes()
                if "No space left" not in cause]
        if self.kind.names_host and (lost or self.restarts()):
            result["named"] = bool(lost) and any(re.search(rf"\b{name}\b", lost[-1]) for name in self.victims)
        retired = re.findall(r"launch: (\S+) is left out for the rest of the job: ", self.text())
        allowed = self.victims[:1] if self.kind.may_retire else []
        result["wrongly_retired"] = [name for name in retired if name not in allowed]
        result["same_bits"] = self.process.poll() == 0 and same_bits(self.build, self.directory)
        restarted = re.findall(r"restart \d+ of \d+ on (.*?)(?:, at once| in )", self.text())
        if options.spares and restarted:
            result["hosts"] = len(restarted[-1].split(", "))
        result["causes"] = self.causes()


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def makes_copies(build):
    if build not in makes_copies.known:
        said = subprocess.run([build / "lockstep", "train", DECK, "--help"], capture_output=True, text=True).stdout
        makes_copies.known[build] = "memory-copy-every" in said
    return makes_copies.known[build]


makes_copies.known = {}
WHOLE = {}  # an undisturbed run of each build


def same_bits(build, directory):
    if not checkpoints(directory):
        return False
    compared = [run(["checkpoint", "diff", WHOLE[build], directory]),
                run(["checkpoint", "diff", checkpoints(WHOLE[build])[-1], checkpoints(directory)[-1]])]
    return compared[1].code == 0 and PARTED not in compared[0].text


def one(build, hosts, shape, disk, number, kind, names):
    trial = Trial(build, hosts, shape, disk, number, kind(number, names))
    try:
        return trial.measure()
    finally:
        hosts.kill_jobs()
        send(trial.frozen, signal.SIGKILL)
        if trial.process.poll() is None:
            trial.process.kill()
        trial.process.wait()
        for name in hosts.names:
            trial.empty_memory(name)
            if (hosts.path / f"{name}.cut").exists():
                hosts.join(name)
        trial.make_room()
        shutil.rmtree(trial.directory, ignore_errors=True)


def told(result):
    parts = [f"{name} {result[key]:.1f} s" for key, name in
             (("cause_s", "root cause"), ("restart_s", "restart"), ("step_s", "new step")) if key in result]
    parts += [f"{result['again']} steps again"] if "again" in result else []
    parts += [f"host named {'right' if result['named'] else 'WRONG'}"] if "named" in result else []
    parts += [f"WRONGLY RETIRED {result['wrongly_retired']}"] if result["wrongly_retired"] else []
    parts += [f"on {result['hosts']} hosts"] if "hosts" in result else []
    codes = [str(result[key]) for key in ("code", "code_after") if key in result]
    parts += [f"exit {', then '.join(codes)}", "same bits" if result["same_bits"] else "NOT THE SAME BITS"]
    parts += [result["ended"]] if "ended" in result else []
    return f"{result['build']} {result['shape']}: {result['fault']}: {', '.join(parts)}; load {os.getloadavg()[0]:.1f}"


def pair(values, digits=1):
    return f"{statistics.median(values):.{digits}f} / {max(values):.{digits}f}" if values else "–"


def row(name, results):
    each = {key: [result[key] for result in results if key in result] for key in
            ("cause_s", "restart_s", "step_s", "again", "named")}
    return (f"| {name} | {len(results)} | {pair(each['cause_s'])} | {pair(each['restart_s'])} | {pair(each['step_s'])} "
            f"| {pair(each['again'], 0)} | {sum(each['named'])} of {len(each['named'])} "
            f"| {sum(bool(result['wrongly_retired']) for result in results)} "
            f"| {sum(result['same_bits'] for result in results)} of {len(results)} |")


def print_table(results):
    print("\nMedian / worst; seconds since the last fault.\n")
    print("| fault | number | root cause, s | restart, s | new step, s | steps again | host named | retired wrongly "
          "| same bits |\n|---|---|---|---|---|---|---|---|---|")
    groups = collections.defaultdict(list)
    for result in results:
        groups[result["build"], result["kind"]].append(result)
    for (build, kind), found in groups.items():
        print(row(f"{kind}, {build}" if len(options.build) > 1 else kind, found))
    for build in dict.fromkeys(result["build"] for result in results):
        print(row(f"all, {build}", [result for result in results if result["build"] == build]))


def kinds():
    """So many, in turns, each as often as the others."""
    chosen = [kind for kind in KINDS if not options.only or kind.kind in options.only]
    if not chosen:
        sys.exit(f"no such kind; the kinds are: {', '.join(kind.kind for kind in KINDS)}")
    return [chosen[number % len(chosen)] for number in range(options.faults)]


def measure_all(disk):
    results = []
    shapes = options.shape or ["4x1", "2x2"]
    for place, shape in enumerate(shapes):
        count = int(shape.split("x")[0])
        with Hosts(count + options.spares, sessions=True) as hosts:
            for name in hosts.names:
                hosts.run(name, "mount", "-o", f"remount,size={SMALL}", "/dev/shm")
            for number, kind in enumerate(kinds()):
                if number % len(shapes) != place:
                    continue
                for build in options.build:
                    if kind.in_copies and not makes_copies(build):
                        continue
                    result = {**one(build, hosts, shape, disk, number, kind, hosts.names[:count]), "shape": shape}
                    results.append(result)
                    print(told(result), flush=True)
                    if options.json:
                        with open(options.json, "a", encoding="utf8") as file:
                            file.write(json.dumps(result) + "\n")
    return results


def main():
    if missing():
        sys.exit(missing())
    with tempfile.TemporaryDirectory(prefix="lockstep-healing-") as place:
        path = pathlib.Path(place)
        for number, build in enumerate(options.build):
            WHOLE[build] = path / f"whole{number}"
            subprocess.run([build / "lockstep", "train", DECK, "--data.train", DATA / "train.h5", "--run.directory",
                            WHOLE[build], "--quiet", *map(str, OPTIONS)], check=True)
        disk = path / "disk"
        disk.mkdir()
        # Before there are hosts, which see the mounts of now.
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "small", disk], check=True)
        try:
            results = measure_all(disk)
        finally:
            subprocess.run(["umount", disk], check=True)
    print_table(results)


main()
