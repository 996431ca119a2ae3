"""What users of other launchers report of jobs that lost hosts, under lockstep launch on hosts made of namespaces:
a full disk for which healthy nodes were left out, a lost host that was read as the end of the job's time, a list of
hosts that the launcher does not read, and one login that fails before training begins. The short form draws one."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import LOCKSTEP, Scratch, check, check_same, checkpoints, records, some, train  # noqa: E402
from hosts import Hosts, fill, missing, small_disk  # noqa: E402
from launched import Launched  # noqa: E402

STEPS, AT = 70, 12  # the fault comes after so many
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--checkpoint.every-steps", 10, "--communication.timeout-seconds", 10)
ALL = [(f"host{k}", 1) for k in (1, 2, 3, 4)]

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


def ends_like(run, whole):
    check(run.process.wait(timeout=240) == 0, run.text())
    check_same(checkpoints(whole)[-1], checkpoints(run.directory)[-1], "the same bits")


def kill_rank(hosts, name):
    for process in hosts.processes(name, "lockstep"):
        os.kill(process, signal.SIGKILL)


def hosts_of_attempts(run):
    return [start["hosts"] for start in records(run.directory, "start")]


def full_disk(hosts, scratch, whole):
    """The disk of the run is full when a rank is lost. The disk is to blame: all hosts stay, the spare waits, and with
    room again the same command continues."""
    disk = scratch / "disk"

    def launched(name):  # what the run prints goes to another disk
        run = Launched(hosts, scratch, name, ALL, *OPTIONS, "--spares", 1, "--run.directory", disk / "run")
        run.directory = disk / "run"
        return run
    run = launched("full")
    run.wait_for("it trains", lambda: run.steps() >= AT)
    fill(disk / "full")
    kill_rank(hosts, "host2")
    check(run.process.wait(timeout=240) == 74, run.text())
    check("No space left on device. Make it writable again" in run.causes()[-1], f"{run.causes()}")
    check("left out" not in run.text(), run.text())
    starts = re.findall(r"restart \d of 3 on (.*?)(?:, at once| in )", run.text())
    check(starts and set(starts) == {"host1, host2, host3"}, f"the spare is not used up: {starts}\n{run.text()}")
    (disk / "full").unlink()
    ends_like(launched("room"), whole)


def lost_host_is_no_walltime(hosts, scratch, whole):
    """mpirun sends TERM to all ranks when it misses a host, as a scheduler does when time is up. There are hours left:
    the job continues on the hosts that it has."""
    run = Launched(hosts, scratch, "time", ALL, *OPTIONS, "--run.walltime-seconds", 7200,
                   "--communication.timeout-seconds", 90)  # mpirun is the first that misses it
    run.wait_for("it trains", lambda: run.steps() >= AT)
    hosts.crash("host3")
    run.wait_for("it is started again", lambda: "restart 1 of 3" in run.text())
    run.begins_again_on("host1, host2, host4")
    ends_like(run, whole)
    check("walltime" not in run.text() and records(run.directory, "end")[-1]["reason"] == "finished", run.text())
    hosts.join("host3")


def left_out_for_good(hosts, scratch, whole):
    """A host that was left out stays in the file of hosts, and is well again. No rank is started on it."""
    run = Launched(hosts, scratch, "list", ALL, *OPTIONS, "--spares", 1)
    run.wait_for("it trains", lambda: run.steps() >= AT)
    hosts.cut("host2")
    run.wait_for("it is started again", lambda: "restart 1 of 3" in run.text())
    run.begins_again_on("host1, host3, host4")
    hosts.join("host2")
    run.wait_for("it trains again", lambda: len(hosts_of_attempts(run)) == 2 and run.steps() >= AT + 5)
    kill_rank(hosts, "host3")
    ends_like(run, whole)
    check(run.left_out() == ["host2"], run.text())
    told = hosts_of_attempts(run)
    check(told[0] == ["host1", "host2", "host3"] and len(told) > 2 and all("host2" not in each for each in told[1:]),
          f"{told}\n{run.text()}")


def login_fails(hosts, scratch, whole):
    """Before a run begins, one of its hosts does not let launch in: once, then for good."""
    hosts.refuse("host3")
    run = Launched(hosts, scratch, "once", ALL, *OPTIONS)
    ends_like(run, whole)
    check(hosts_of_attempts(run) == [[name for name, _ in ALL]] and "left out" not in run.text(), run.text())
    hosts.refuse("host3", once=False)
    run = Launched(hosts, scratch, "each", ALL, *OPTIONS)
    ends_like(run, whole)
    hosts.accept("host3")
    cause = run.causes()[0] if run.causes() else ""
    check("all ranks of host3 in start-up: this host does not answer" in cause, f"{cause}\n{run.text()}")
    check(hosts_of_attempts(run) == [["host1", "host2", "host4"]], run.text())


def busy_host(hosts, scratch, _):
    """A host that is slow to test its network, here because of a name server that keeps silent, is not unfit."""
    (hosts.path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
    hosts.run("host2", "mount", "--bind", hosts.path / "resolv.conf", "/etc/resolv.conf")
    silent = subprocess.Popen(["nsenter", "-t", str(hosts.holders["host2"].pid), "-n", sys.executable, "-c",
                               "import socket, time; held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                               "held.bind(('127.0.0.1', 53)); print('there', flush=True); time.sleep(1000)"],
                              stdout=subprocess.PIPE, text=True)
    check(silent.stdout.readline() == "there\n", "a name server")
    said = hosts.run("host2", "sh", "-c", f"{LOCKSTEP} probe {scratch} --reach elsewhere.invalid 2>&1; echo code $?")
    silent.kill()
    silent.wait()
    hosts.run("host2", "umount", "/etc/resolv.conf")
    check("note: network: no answer within" in said and "code 0\n" in said, said)


PARTS = [full_disk, lost_host_is_no_walltime, left_out_for_good, login_fails, busy_host]
with Scratch() as scratch, small_disk(scratch / "disk", 16), Hosts(4) as hosts:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    for part in [part for part in PARTS if part.__name__ in sys.argv[1:]] or some(PARTS):
        part(hosts, scratch, whole)
        print(f"{part.__name__}: as promised", flush=True)
