"""A job that is suspended as a whole for longer than its time limits continues where it was: a rank that wakes before
the others has not waited while it was stopped. In waves, as Slurm does it: TSTP to all, then STOP, then CONT, one
process after the other. Where only mpirun is stopped, neither ranks nor `launch` wait for it without a limit.
LOCKSTEP_LONG=1 takes every launcher and every phase."""
import os
import pathlib
import signal
import subprocess
import time

from harness import DATA, DECK, DRAW, LOCKSTEP, Scratch, check, check_same, records, some, together, train

TIMEOUT = 15  # communication.timeout-seconds; the machine and its disk may be busy
SUSPENDED = TIMEOUT + 5
STEPS = 40
MPIRUN = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", LOCKSTEP, "train"]
LAUNCH = [LOCKSTEP, "launch", "--yes", "--devices", "2"]
THREADS = [LOCKSTEP, "train"]


def family(first):
    """A process and all that it has started, directly or not."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass  # it has ended meanwhile
    found = [first]
    for each in found:
        found += [process for process, parent in parents.items() if parent == each]
    return found


def signal_each(processes, number, longest_pause_s):
    for process in DRAW.sample(processes, len(processes)):
        time.sleep(DRAW.uniform(0, longest_pause_s))
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def started(directory, launcher, *options):
    return subprocess.Popen(
        [*launcher, DECK, "--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5", "--run.directory",
         directory, "--run.replicas", "2", "--train.steps", str(STEPS), "--communication.timeout-seconds", str(TIMEOUT),
         *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LOCKSTEP_INJECT": "slow:rank=0", "LOCKSTEP_START_SECONDS": str(TIMEOUT)})


def continues(scratch, whole, name, launcher, ready, *options):
    directory = scratch / name
    process = started(directory, launcher, *options)
    while not ready(directory):
        check(process.poll() is None, f"{name}: it has ended too early\n{process.poll()}")
        time.sleep(0.01)
    time.sleep(DRAW.uniform(0, 0.5))  # anywhere in a step
    suspended = family(process.pid)
    signal_each(suspended, signal.SIGTSTP, 0.05)
    time.sleep(1)
    signal_each(suspended, signal.SIGSTOP, 0.05)
    time.sleep(SUSPENDED)
    signal_each(suspended, signal.SIGCONT, 0.5)
    text = process.communicate(timeout=200)[0]
    check(process.returncode == 0, f"{name}: exit code {process.returncode}\n{text}")
    check_same(whole, directory, f"{name}: the same bits")
    print(f"{name}: {len(suspended)} processes continued")


def exit_code(process):
    """Of a process that has ended and that its parent, which is stopped, has not asked for it; None: it runs."""
    words = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return os.waitstatus_to_exitcode(int(words[-1])) if words[0] == "Z" else None


def leave_without(scratch, name, launcher, tries=3):
    """mpirun is stopped while the run trains. A run that is complete ends, with 0, and says for what it has waited."""
    directory = scratch / f"{name}{tries}"
    process = started(directory, launcher)
    while not trains(directory):
        check(process.poll() is None, f"{name}: it has ended too early\n{process.poll()}")
        time.sleep(0.01)
    mpirun = process.pid if launcher[0] != LOCKSTEP else family(process.pid)[1]
    ranks = family(mpirun)[1:]
    os.kill(mpirun, signal.SIGSTOP)
    limit = time.monotonic() + 100
    while process.poll() is None and (launcher[0] == LOCKSTEP or None in map(exit_code, ranks)):
        check(time.monotonic() < limit, f"{name}: it waits for the launcher that is stopped")
        time.sleep(0.1)
    codes = [process.returncode] if launcher[0] == LOCKSTEP else list(map(exit_code, ranks))
    process.kill()  # a launcher that is stopped
    text = process.communicate()[0]
    log = (directory / "log.txt").read_text()
    if "waits for a disk" in log and tries > 1:  # of this machine, for so long
        return leave_without(scratch, name, launcher, tries - 1)
    told = [line for line in log.splitlines() if "MPI has not ended within" in line]
    check(set(codes) == {0} and len(told) == 1 and f"process {mpirun} of" in told[0] and "root cause" not in log,
          f"{name}: exit codes {codes}\n{log}\n{text}")
    check(records(directory, "end")[-1]["reason"] == "finished", "the run is complete")
    print(f"{name}: {told[0]}")


def do_not_start(scratch, name, count):
    """The same before MPI has started: the ranks say so, and end with 76."""
    stops = f'[ $OMPI_COMM_WORLD_RANK -lt {count - 1} ] || kill -STOP $PPID; exec "$@"'  # once all are there
    words = ["sh", "-c", stops, "sh", LOCKSTEP, "train"]
    process = started(scratch / name, [*MPIRUN[:2], str(count), *words])
    ranks, limit = [], time.monotonic() + 100
    while len(ranks) < count or None in map(exit_code, ranks):
        check(process.poll() is None and time.monotonic() < limit, f"{name}: it waits for the launcher that is stopped")
        time.sleep(0.1)
        ranks = family(process.pid)[1:]
    codes = list(map(exit_code, ranks))
    os.kill(process.pid, signal.SIGCONT)
    told = next((line for line in process.stdout if "root cause" in line), "")
    process.kill()  # it may have missed the end of its ranks
    process.communicate()
    check(76 in codes and f"process {process.pid} of" in told and "is stopped (SIGSTOP)" in told,
          f"{name}: exit codes {codes}: {told}")
    print(f"{name}: {told}")


def trains(directory):
    return (directory / "metrics.jsonl").exists() and len(records(directory, "step")) >= 5


def starts(directory):
    return directory.exists()


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, "--train.steps", STEPS, "--run.replicas", 2, ranks=2).expect(0)
    together([lambda case=case: continues(scratch, whole, *case) for case in some((
        ("mpirun", MPIRUN, trains),
        ("launch", LAUNCH, trains),
        ("mpirun-start", MPIRUN, starts),
        ("launch-start", LAUNCH, starts),
        ("threads", THREADS, trains, "--run.mode", "dp", "--run.threads", "1")), 2)] +
             [lambda case=case: case[0](scratch, *case[1:]) for case in some((
                 (leave_without, "mpirun-stopped", MPIRUN),
                 (leave_without, "mpirun-stopped-1", [*MPIRUN[:2], "1", *MPIRUN[3:]]),
                 (leave_without, "launch-stopped", LAUNCH),
                 (do_not_start, "start-stopped", 1),
                 (do_not_start, "start-stopped-2", 2)), 2)], at_once=4)
