"""A run whose directory's file system is read-only, full or gone from a loss on continues from the copies in memory, with
the bits of a run that nothing happened to. It writes its records and checkpoints when the disk is back; if it never
is, the run ends with 74, and the copies stay. The short form has a disk that becomes read-only."""
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import LONG, Scratch, check, check_same, checkpoints, records, train  # noqa: E402
from hosts import Hosts, fill, missing, small_disk  # noqa: E402
from launched import Launched  # noqa: E402

STEPS, AT = 120, 15  # the fault comes after so many
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--checkpoint.every-steps", 10, "--monitor.log-every", 1,
           "--communication.timeout-seconds", 8, "--optimizer.name", "adamw")
EVERY_STEP = ("--fault-tolerance.memory-copy-every", 1)
WHERE = [("host1", 1), ("host2", 1)]

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


class Disk:
    """A file system that the hosts share, until they see something else in its place."""

    def __init__(self, hosts, place):
        self.hosts, self.place = hosts, place

    def make_read_only(self):
        for host in self.hosts.names:
            self.hosts.run(host, "mount", "--bind", self.place, self.place)
            self.hosts.run(host, "mount", "-o", "remount,bind,ro", self.place)
            answer = self.hosts.run(host, "sh", "-c", f"touch {self.place}/x 2>&1")
            check("Read-only file system" in answer, f"nothing can be written on {host}: {answer}")

    def take_away(self):
        for host in self.hosts.names:
            self.hosts.run(host, "mount", "-t", "tmpfs", "none", self.place)
            check(self.hosts.run(host, "ls", "-A", self.place) == "", f"nothing is there on {host}")

    def fill(self):
        fill(self.place / "other")

    def free(self):
        (self.place / "other").unlink()

    def bring_back(self):
        for host in self.hosts.names:
            self.hosts.run(host, "umount", "--lazy", self.place)


def in_memory(hosts):
    """The files that runs have left in the memory of hosts."""
    return [name for host in hosts.names
            for name in hosts.run(host, "ls", "/dev/shm").split() if name.startswith("lockstep-state-")]


def newest(directory):
    return max(int(re.search(r"\d+", path.name)[0]) for path in checkpoints(directory))


def steps_told(run):
    """The steps that the run has printed since it continues without its disk."""
    told = run.text().split("the run continues at step ")
    return [int(told[1].split()[0]), *map(int, re.findall(r"^step +(\d+)", told[1], re.M))] if len(told) > 1 else [0]


def kill_rank(hosts):
    os.kill(hosts.processes("host2", "lockstep")[0], signal.SIGKILL)


def switch_off(hosts):
    hosts.crash("host2")
    hosts.run("host2", "sh", "-c", "rm -f /dev/shm/lockstep-*")  # its memory goes, too


def loses_disk_and_rank(hosts, disk, scratch, name, lose, *options, fault=kill_rank):
    directory = disk.place / name  # what the run prints goes to another disk
    run = Launched(hosts, scratch, name, WHERE, *OPTIONS, *EVERY_STEP, "--run.directory", directory, *options)
    run.directory = directory
    run.wait_for("it trains", lambda: run.steps() >= AT)
    lose()
    saved = newest(run.directory)
    fault(hosts)
    run.wait_for("it continues", lambda: max(steps_told(run)) > run.steps() + 5)
    check("continues without it" in run.text(), f"it says so\n{run.text()}")
    check(newest(run.directory) <= saved + 10, "no checkpoint is newer")  # one was being written
    check(hosts.run("host1", "ls", "-A", disk.place) == "" or lose != disk.take_away, "nothing is in its place")
    return run


def comes_back(hosts, disk, scratch, whole, name, lose, give_back, fault=kill_rank):
    run = loses_disk_and_rank(hosts, disk, scratch, name, lose, fault=fault)
    saved = newest(run.directory)
    give_back()
    run.wait_for("checkpoints resume", lambda: newest(run.directory) > saved)
    check(newest(run.directory) < STEPS, "before the end")
    run.process.wait(timeout=240)
    check(run.process.returncode == 0, run.text())
    check_same(checkpoints(whole)[-1], checkpoints(run.directory)[-1], "the same bits")
    log = (run.directory / "log.txt").read_text()
    resumed = re.findall(r"the copies in memory at step (\d+)", log)
    check(len(resumed) == 1 and "continues without it" in log, f"log.txt is whole\n{log}")
    steps = [record["step"] for record in records(run.directory, "step")]
    check(steps[-(STEPS - int(resumed[0])):] == list(range(int(resumed[0]) + 1, STEPS + 1)),
          f"each step is on record: {steps}")
    attempts = [line for line in (run.directory / "history.jsonl").read_text().splitlines()]
    check(len(attempts) == 2, f"each attempt is on record: {attempts}")
    check(not in_memory(hosts), f"nothing stays in memory: {in_memory(hosts)}")


def read_only(hosts, disk, scratch, whole):
    comes_back(hosts, disk, scratch, whole, "read-only", disk.make_read_only, disk.bring_back)


def host_off(hosts, disk, scratch, whole):
    comes_back(hosts, disk, scratch, whole, "off", disk.make_read_only, disk.bring_back, fault=switch_off)
    hosts.join("host2")


def full(hosts, disk, scratch, whole):
    comes_back(hosts, disk, scratch, whole, "full", disk.fill, disk.free)


def gone(hosts, disk, scratch, whole):
    comes_back(hosts, disk, scratch, whole, "gone", disk.take_away, disk.bring_back)


def never_back(hosts, disk, scratch, _):
    run = loses_disk_and_rank(hosts, disk, scratch, "never", disk.make_read_only)
    run.process.wait(timeout=240)
    check(run.process.returncode == 74 and "Read-only file system" in run.causes()[-1], run.text())
    check("left out" not in run.text() and run.text().count("restart 1 of 3") == 1, "it is nobody's fault")
    check(in_memory(hosts), "the copies stay")
    disk.bring_back()
    for host in hosts.names:
        hosts.run(host, "sh", "-c", "rm /dev/shm/lockstep-*")


def taken_meanwhile(hosts, disk, scratch, _):
    """Another run has the directory when the disk is back: this one ends, and writes nothing."""
    run = loses_disk_and_rank(hosts, disk, scratch, "taken", disk.make_read_only, "--train.steps", 1000)
    train(run.directory, *OPTIONS, "--train.steps", newest(run.directory) + 1, ranks=1, limit=240).expect(0)
    before = {path: path.read_bytes() for path in run.directory.rglob("*") if path.is_file()}
    disk.bring_back()
    run.process.wait(timeout=240)
    check(run.process.returncode == 79 and "has taken it over" in run.causes()[-1], run.text())
    after = {path: path.read_bytes() for path in run.directory.rglob("*") if path.is_file()}
    check(after == before, f"nothing is written: {[path for path in after if after[path] != before.get(path)]}")


PARTS = [read_only, host_off, full, gone, never_back, taken_meanwhile]
with Scratch() as scratch, small_disk(scratch / "disk", 256) as place, Hosts(2) as hosts:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    for part in PARTS if LONG or len(sys.argv) > 1 else PARTS[:1]:
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            begun = time.monotonic()
            part(hosts, Disk(hosts, place), scratch, whole)
            print(f"{part.__name__}: as promised, {time.monotonic() - begun:.0f} s", flush=True)
