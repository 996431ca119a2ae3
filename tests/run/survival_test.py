"""What a run outlives, and what it says of what it does not: inherited signals, a rank that does not
come, a terminal that closes, launchers with words of their own, disks without inodes. LOCKSTEP_LONG=1 tries every
way of each."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import DATA, DECK, LOCKSTEP, LONG, Result, Scratch, check, records, run, some, train

MPIRUN = os.environ["LOCKSTEP_MPIEXEC"]
# Rank 1 waits until rank 0 has left its mark: otherwise rank 0 could be missing, too, when mpirun ends it.
RANK1 = ('if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then until [ -e "$LOCKSTEP_ARRIVALS/0" ]; do sleep 0.1; done; {}; fi; '
         'exec "$@"')


def last_cause(result, *phrases):
    """The root cause is the last line of the program, and says all this."""
    lines = re.findall(r"^lockstep: .*$", result.text, re.M)
    check(lines and lines[-1].startswith("lockstep: root cause: "), f"the last line: {result.text}")
    for phrase in phrases:
        check(phrase in lines[-1], f"missing {phrase!r} in {lines[-1]}")
    print(f"{result.seconds:.1f} s, {result.code}: {lines[-1]}", flush=True)


class Site:
    """An mpirun on PATH that starts each rank through a shell line, and may have the last word."""

    def __init__(self, path, through="exec \"$@\"", afterwards="exit $code"):
        self.path = path
        path.mkdir()
        (path / "rank").write_text(f"#!/bin/bash\n{through}\n")
        (path / "mpirun").write_text(f'''#!/bin/bash
echo "$*" >>{path}/calls
words=()
while [ $# -gt 0 ] && [ "$1" != {LOCKSTEP} ]; do words+=("$1"); shift; done
trap 'kill -USR1 $child' USR1
{MPIRUN} "${{words[@]}}" {path}/rank "$@" &
child=$!
code=0
wait $child || code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
{afterwards}
''')
        for name in ("rank", "mpirun"):
            (path / name).chmod(0o755)
        self.environment = {"PATH": f"{path}:{os.environ['PATH']}"}

    def calls(self):
        return len((self.path / "calls").read_text().splitlines())


def words(directory, *options):
    return ["launch", "--yes", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
            "--run.directory", directory, "--devices", 2, *options]


def start(command, env=None, before=None):
    return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, env={**os.environ, **(env or {})}, preexec_fn=before)


def finish(process, since):
    text = process.communicate(timeout=300)[0]
    return Result(process.returncode, text, time.monotonic() - since)


def wait_for(process, what, condition):
    deadline = time.monotonic() + 300
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            check(False, f"{what}, before it ended:\n{process.communicate()[0]}")
        time.sleep(0.05)


def trains(directory):
    return (directory / "metrics.jsonl").exists() and records(directory, "step")


def signals_that_were_left_to_it(scratch):
    """Who starts it has ignored SIGCHLD and blocked what can be blocked."""
    def deaf():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))

    def finishes():
        finish(start([LOCKSTEP, *words(scratch / "deaf", "--train.steps", 3)], before=deaf),
               since).expect(0, "finished at step 3")

    def is_lost():
        lost = finish(start([LOCKSTEP, *words(scratch / "lost")], {"LOCKSTEP_INJECT": "kill:rank=1:step=3"},
                            deaf), since)
        check(lost.code == 76, f"a loss is none to it: {lost.text}")

    since = time.monotonic()
    for ends in some((finishes, is_lost)):
        ends()
    asked = start([LOCKSTEP, *words(scratch / "asked", "--train.steps", 0, "--train.epochs", 99)],
                  before=deaf)
    wait_for(asked, "it trains", lambda: trains(scratch / "asked"))
    asked.send_signal(signal.SIGTERM)
    finish(asked, since).expect(75)


def a_terminal_that_closes(scratch):
    directory = scratch / "closed"
    process = start([LOCKSTEP, *words(directory, "--train.steps", 0, "--train.epochs", 99)])
    wait_for(process, "it trains", lambda: trains(directory))
    process.stdout.close()  # whoever listened has gone, too
    process.send_signal(signal.SIGHUP)
    check(process.wait(timeout=300) == 75, f"SIGHUP is a request: {process.returncode}")
    check(records(directory, "end"), "it came to its end")


def ranks_that_do_not_come(scratch):
    stops = ("bash", "-c", "kill -STOP $$; exec \"$@\"", "bash")
    last_cause(run(["train", DECK, "--data.train", DATA / "train.h5", "--run.directory",
                    scratch / "stopped"], 2, {"LOCKSTEP_START_SECONDS": "4"}, last_through=stops)
               .expect(76), "rank 1 in start-up", "it has not started, or is stopped: rank 0 (")
    for name, does, phrases in some((
            ("killed", "kill -9 $$", ("rank 1 (", "in start-up", "ended on signal 9")),
            ("left", "exit 3", ("rank 1 (", "in start-up", "exited with code 3")),
            ("stands", "kill -STOP $$", ("rank 1", "in start-up", "not started")),
            # mpirun, in one of eight such ends, says no more than the code of the rank.
            ("unnamed", "kill -9 $$", ("rank 1 (", "in start-up", "not started", "ended on signal 9")))):
        site = Site(scratch / f"site-{name}", RANK1.format(does))
        if name == "unnamed":
            (site.path / "mpirun").write_text((site.path / "mpirun").read_text().replace(
                '"$@" &', '"$@" 2> >(grep -v noticed >&2) &'))
        limit = {"LOCKSTEP_START_SECONDS": "4"} if name == "stands" else {}
        last_cause(run(words(scratch / name), env={**site.environment, **limit}).expect(76), *phrases)
        check(not (scratch / name / "arrivals").exists(), "no marks are left")
    # Each attempt's loss has its line.
    site = Site(scratch / "site-twice", RANK1.format("kill -9 $$"))
    text = run(words(scratch / "twice", "--restarts", 1), env=site.environment).expect(76).text
    causes = re.findall(r"^lockstep: root cause: rank 1 \(.* in start-up", text, re.M)
    check(len(causes) == site.calls() == 2, f"two attempts, two causes: {text}")
    # A launcher that says nothing.
    site = Site(scratch / "site-silent", "sleep 0.5; kill -9 $$", "exit 137")
    (site.path / "mpirun").write_text("#!/bin/bash\nexit 137\n")
    last_cause(run(words(scratch / "silent"), env=site.environment).expect(76),
               "ranks 0, 1", "in start-up", "they have not started", "exited with code 137")
    check(not (scratch / "silent").exists(), "nothing is left of what did not begin")
    # One that names who was lost; a host counts more than the rank that it has ended for that.
    told = "lockstep: root cause: rank 0 (here, cpu) in training at step 5: its process is gone"
    for said, phrases in (
            (["mpirun noticed that process rank 1 with PID 7 on node there exited on signal 9 (Killed)."],
             ["rank 1 (there) in start-up: its process ended on signal 9: "]),
            ([told, "ORTE has lost communication with a remote daemon.",
              "  HNP daemon   : [[7,0],0] on node here", "  Remote daemon: [[7,0],1] on node there"],
             ["all ranks of there in start-up: mpirun has lost its daemon on that host: "])):
        (site.path / "mpirun").write_text("#!/bin/bash\ncat >&2 <<'END'\n" + "\n".join(said) +
                                          "\nEND\nexit 137\n")
        last_cause(run(words(scratch / "silent"), env=site.environment).expect(76), *phrases)


def a_launcher_with_a_word_of_its_own(scratch):
    """It says 1, as mpirun does when it was signalled itself, though the run left with a checkpoint."""
    directory, site = scratch / "own-word", Site(scratch / "site-word", afterwards="exit 1")

    def is_asked_to_leave():
        process = start([LOCKSTEP, *words(directory, "--train.steps", 0, "--train.epochs", 99)],
                        site.environment)
        wait_for(process, "it trains", lambda: trains(directory))
        process.send_signal(signal.SIGTERM)
        finish(process, time.monotonic()).expect(75)

    def finishes():
        run(words(scratch / "done"), env=site.environment).expect(0, "finished at step 30")

    for ends in some((is_asked_to_leave, finishes)):
        ends()


def a_launcher_that_loses_a_host(scratch):
    """It ends the ranks by TERM, of which a rank may still make a checkpoint: nobody has asked for that end."""
    directory = scratch / "term"
    site = Site(scratch / "site-term", through=f'echo $$ >>{scratch}/ranks; exec "$@"',
                afterwards="[ $code = 0 ] || exit 205")
    process = start([LOCKSTEP, *words(directory, "--restarts", 1)],
                    {**site.environment, "LOCKSTEP_INJECT": "slow:rank=0"})
    wait_for(process, "it trains", lambda: trains(directory))
    rank = (scratch / "ranks").read_text().split()[0]
    launcher = int(pathlib.Path(f"/proc/{rank}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(launcher, signal.SIGTERM)
    text = finish(process, time.monotonic()).expect(0, "ending after step", "restart 1 of 1", "finished at step 30").text
    check("root cause" in text and site.calls() == 2, text)


def a_newer_attempt(scratch):
    """The launcher of an older attempt neither starts it again nor takes it for a loss."""
    directory, site = scratch / "fenced", Site(scratch / "site-fenced")
    train(directory, "--data.validation", "", "--train.steps", 2, ranks=1,
          env={"SLURM_JOB_ID": "5", "SLURM_RESTART_COUNT": "1"}).expect(0)
    run(words(directory, "--restarts", 3), env={**site.environment, "SLURM_JOB_ID": "5"}).expect(
        79, "a newer attempt of this run has taken it over")
    check(site.calls() == 1, "it is started once")


def a_pause_between_attempts(scratch):
    directory, site = scratch / "paused", Site(scratch / "site-paused")
    env = {**site.environment, "LOCKSTEP_INJECT": "kill:rank=1:step=2"}
    since, told = time.monotonic(), scratch / "paused.out"
    with told.open("w") as output:
        process = subprocess.Popen([*map(str, [LOCKSTEP, *words(directory, "--restarts", 9)])],
                                   stdout=output, stderr=output, env={**os.environ, **env})
    deadline = since + 300
    attempts, last = (3, "in 16.0 s") if LONG else (2, "in 4.0 s")
    while last not in told.read_text():
        check(process.poll() is None and time.monotonic() < deadline, told.read_text())
        time.sleep(0.1)
    seconds = time.monotonic() - since
    check(not LONG or seconds > 4, f"4 s between the second and the third attempt: {seconds}")
    check(site.calls() == attempts, f"{attempts} attempts")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=14 if LONG else 3.5) == 75, f"the pause ends at once: {told.read_text()}")
    for phrase in (", at once", "in 4.0 s", "asked to end the run between two attempts"):
        check(phrase in told.read_text(), told.read_text())


def places_that_take_nothing(scratch):
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        print("not tried: places that take nothing (no mounts here)")
        return
    def there(line, directory, *options):
        since = time.monotonic()
        command = f"{line} && exec \"$@\""
        return finish(start(["unshare", "--mount", "sh", "-c", command, "sh", LOCKSTEP, "train", DECK,
                             "--data.train", DATA / "train.h5", "--data.validation", "",
                             "--run.directory", directory, *options]), since)
    disk = scratch / "disk"
    disk.mkdir()
    for inodes in some((2, 3, 4, 5)):
        full = there(f"mount -t tmpfs -o nr_inodes={inodes} disk {disk}", disk / "run")
        full.expect(74, "the file system has no inode left")
        check("permission" not in full.text, full.text)
    kept = scratch / "kept"
    train(kept, "--data.validation", "", "--train.steps", 2, ranks=1).expect(0)
    shutil.copytree(kept / "checkpoints", scratch / "read-only")
    place = kept / "checkpoints"
    there(f"mount --bind {scratch}/read-only {place} && mount -o remount,bind,ro {place}", kept,
          "--train.steps", 4).expect(73, "cannot create", "checkpoints/")
    check(len(records(kept, "start")) == 1, "before it begins")


def an_mpi_that_does_not_start(scratch):
    """One line with what to do, whatever Open MPI prints before it ends the process."""
    plan = ["plan", DECK, "--data.train", DATA / "train.h5", "--data.validation", ""]
    since = time.monotonic()
    # A process alone starts nobody: what would start others need not be there.
    finish(start(["env", "-i", LOCKSTEP, *plan]), since).expect(0)
    last_cause(run(plan, env={"OPAL_PREFIX": str(scratch)}).expect(69), "MPI did not start", "OPAL_PREFIX")
    for limit, code, phrase in (*some((("-n 20", 74, "ulimit -n"), ("-f 20", 74, "ulimit -f"))),
                                *some((("-s 64", 71, "ulimit -s"), ("-d 65000", 71, "ulimit -d")))):
        words = ["bash", "-c", f'ulimit -c 0 {limit}; exec "$@"', "bash", LOCKSTEP, *plan]
        last_cause(finish(start(words), since).expect(code), phrase)
    for command in (plan, ["launch", "--yes", DECK]):
        for seconds in some(("0", "-3", "x", "inf")):
            run(command, env={"LOCKSTEP_START_SECONDS": seconds}).expect(64, f"LOCKSTEP_START_SECONDS = {seconds}: ")


def a_launcher_that_cannot_start(scratch):
    """The cause is named at once, and no restart is tried."""
    (scratch / "file").touch()
    launch = [LOCKSTEP, *map(str, words(scratch / "never", "--restarts", 1))]
    cases = [("ulimit -n 32", launch, 74, "ulimit -n"), ("ulimit -s 64", launch, 71, "ulimit -s"),
             (f"export TMPDIR={scratch}/file", launch, 73, "TMPDIR"),
             (f"export TMPDIR={scratch}/file", [LOCKSTEP, "plan", DECK], 73, "TMPDIR"),
             ("exec <&- >&-", [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", *launch[:1], "train", DECK, "--data.train",
                               str(DATA / "train.h5"), "--data.validation", "", "--run.directory",
                               str(scratch / "closed")], 69, "standard input and standard output closed")]
    if LONG:  # its ranks tell it, but mpirun then stays
        cases.append(("ulimit -f 100", launch, 74, "ulimit -f"))
    for line, command, code, phrase in some(cases, 3):
        shell = ["bash", "-c", f'ulimit -c 0; {line}; exec "$@"', "bash", *command]
        result = finish(start(shell), time.monotonic())
        last_cause(result.expect(code), phrase)
        check("restart 1 of" not in result.text, f"{line}: {result.text}")


def files_that_may_not_grow(scratch):
    """Ranks that may only write small files are told so, and not ended by a signal."""
    command = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", "bash", "-c", 'ulimit -c 0 -f 20; exec "$@"', "bash",
               LOCKSTEP, "train", DECK, "--data.train", DATA / "train.h5", "--data.validation", "", "--train.steps", 2,
               "--run.directory", scratch / "small"]
    last_cause(finish(start(command), time.monotonic()).expect(74), "File too large", "ulimit -f")


def memory_that_is_used_up_early(scratch):
    for kilobytes in some((40000, 50000, 60000, 70000, 80000, 84000), 2):
        words = ["bash", "-c", f'ulimit -c 0 -d {kilobytes}; exec "$@"', "bash", LOCKSTEP, "plan", DECK]
        text = finish(start(words), time.monotonic()).text
        what = "(out of memory|MPI did not start|a thread could not be started)"
        check(re.search(f"{what}: .* left for this process[.] .*[a-z)]$", text, re.M),
              f"a whole sentence: {text}")


def a_launcher_that_does_not_end(scratch):
    """As mpirun, while it waits for a host that is cut off: once the root cause is told, nobody waits for it."""
    site = Site(scratch / "site-stays", afterwards="exec sleep 300")
    ended = run(words(scratch / "stays"), env={**site.environment, "LOCKSTEP_INJECT": "kill:rank=1:step=3"}).expect(
        76, "root cause: rank 1")
    check(ended.seconds < 25, f"{ended.seconds} s\n{ended.text}")


PARTS = [signals_that_were_left_to_it, a_terminal_that_closes, ranks_that_do_not_come,
         a_launcher_with_a_word_of_its_own, a_launcher_that_loses_a_host, a_newer_attempt, a_pause_between_attempts,
         places_that_take_nothing, an_mpi_that_does_not_start, a_launcher_that_cannot_start,
         files_that_may_not_grow, memory_that_is_used_up_early, a_launcher_that_does_not_end]
for part in PARTS:
    if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
        with Scratch() as scratch:
            part(scratch)
        print(f"{part.__name__}: as promised", flush=True)
