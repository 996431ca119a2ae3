"""lockstep launch: signals, restarts after the loss of a rank, giving up, hosts that do not answer. The short form
draws what is lost after a restart, a signal, and answers that are refused."""
import json
import os
import re
import signal
import subprocess
import time

from harness import (DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, on_terminal, records, run, some, train)

MPIRUN = os.environ["LOCKSTEP_MPIEXEC"]


class Site:
    """A directory on PATH with an mpirun that writes down how it is called, and is the real one but
    for a fault of the first attempts."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.command("mpirun", f'''#!/bin/bash
echo "$*" >>{path}/calls
attempt=$(wc -l <{path}/calls)
export LOCKSTEP_INJECT
[ -z "$FAULTY_ATTEMPTS" ] || [ "$attempt" -le "$FAULTY_ATTEMPTS" ] || LOCKSTEP_INJECT=
if [ -n "$HANG" ] && [ "$attempt" -gt 1 ]; then exec sleep 1000; fi
if [ -n "$EARLIER_ENDS" ] && [ "$attempt" = 2 ]; then # what an attempt before may still write
    echo '{{"event": "signal", "by_launcher": true}}' >>"$EARLIER_ENDS"
    echo '{{"event": "end", "reason": "finished"}}' >>"$EARLIER_ENDS"
fi
words=()
while [ $# -gt 0 ]; do # the hosts of the test are names only
    if [ "$1" = --host ]; then shift 2; else words+=("$1"); shift; fi
done
[ -n "$DIES_LATE" ] || exec {MPIRUN} "${{words[@]}}"
{MPIRUN} "${{words[@]}}" & # and a signal that comes when all is done
trap "kill -USR1 $!" USR1
while kill -0 $!; do wait $!; done
trap - USR1
kill -USR1 $$
''')

    def command(self, name, text):
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def calls(self):
        return (self.path / "calls").read_text().splitlines()

    def environment(self, **settings):
        return {"PATH": f"{self.path}:{os.environ['PATH']}", **settings}


def words(directory, *options):
    return ["launch", "--yes", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
            "--run.directory", directory, "--devices", 2, "--communication.timeout-seconds", 10,
            "--checkpoint.asynchronous", "false",  # so that it is known which is the last
            "--fault-tolerance.memory-copy-every", "none",
            *options]


def attempts(directory):
    return list(map(json.loads, (directory / "history.jsonl").read_text().splitlines()))


def restarts(scratch, whole):
    site, directory = Site(scratch / "site"), scratch / "restarted"
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=13", FAULTY_ATTEMPTS="2",
                           EARLIER_ENDS=f"{directory}/metrics.jsonl")
    run(words(directory, "--restarts", 2, "--checkpoint.resume", "none"), env=env).expect(
        0, "restart 1 of 2", "restart 2 of 2", "finished at step 30")
    check_same(whole, directory, "the same bits as without a loss")
    check(all("--mca oob_tcp_keepalive_time 5" in call and "-n 2 " in call for call in site.calls()),
          f"how it is started: {site.calls()}")
    check([attempt["first_step"] for attempt in attempts(directory)] == [0, 10, 10], f"{attempts(directory)}")
    check([attempt["lost_steps"] for attempt in attempts(directory)] == [2, 2, 0], f"{attempts(directory)}")
    # Records of another kind, a line that somebody added: they tell nothing, and break nothing.
    for name in ("metrics.jsonl", "history.jsonl"):
        with (directory / name).open("a") as lines:
            lines.write('{"event": 5, "attempt": [], "startup_s": "x"}\n{"event": "failure", "fatal": 3}\n[]\n')
    run(["report", directory, "--output", scratch / "report"]).expect(0)
    again = run(words(directory, "--restarts", 2)).expect(0, "this run is finished")
    check("lost" not in again.text, f"a finished run that is launched again has lost nobody: {again.text}")


def gives_up(scratch):
    for name, options, calls, told in some((
            ("once", ("--fault-tolerance.restarts", 1), 2, "gave up after 1 restart without a newer checkpoint"),
            ("none", (), 1, "gave up after 0 restarts"))):
        site = Site(scratch / f"hopeless-{name}")
        env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=7")
        run(words(scratch / name, *options), env=env).expect(76, told)
        check(len(site.calls()) == calls, f"how often it is started: {site.calls()}")
    run(words(scratch / "wrong", "--data.batch", 0), env=env).expect(64)


def recovery_takes_too_long(scratch):
    site, directory = Site(scratch / "slow"), scratch / "slow-run"
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=7", HANG="yes")
    begun = time.monotonic()
    run(words(directory, "--restarts", 1, "--fault-tolerance.recovery-timeout-seconds", 2),
        env=env).expect(76, "no step was completed within 2.0 s of the restart")
    check(time.monotonic() - begun < 250, "it is ended")


def passes_signals_on(scratch):
    site = Site(scratch / "signals")
    for number, late in some(((signal.SIGTERM, ""), (signal.SIGINT, "yes"))):
        directory = scratch / f"signalled-{number}"
        process = subprocess.Popen(
            [LOCKSTEP, *map(str, words(directory, "--train.steps", 0, "--train.epochs", 9))],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **site.environment(DIES_LATE=late)})
        while not (directory / "metrics.jsonl").exists() or not records(directory, "step"):
            check(process.poll() is None, "still training")
            time.sleep(0.05)
        process.send_signal(number)
        text = process.communicate(timeout=300)[0]
        check(process.returncode == 75, f"{number}: {process.returncode}\n{text}")
        check(records(directory, "end")[-1]["reason"] == "SIGUSR1", "as a request")


def signals_at_once(scratch):
    """Ranks that have only begun would die of the signal that launch passes on: it waits for them."""
    for late_s in some((0.02, 0.1, 0.2, 0.3), 2):
        directory = scratch / f"at-once-{late_s}"
        process = subprocess.Popen(
            [LOCKSTEP, *map(str, words(directory, "--train.steps", 0, "--train.epochs", 99))],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(late_s)
        process.send_signal(signal.SIGTERM)
        text = process.communicate(timeout=300)[0]
        # Before it listens, the signal ends launch itself.
        check(process.returncode in (75, -signal.SIGTERM) and "root cause" not in text,
              f"{late_s} s: {process.returncode}\n{text}")


def names_who_stopped(scratch):
    run(words(scratch / "stopped", "--communication.timeout-seconds", 300), env={"LOCKSTEP_INJECT": "stop:rank=1:phase=start-up",
                                         "LOCKSTEP_START_SECONDS": "2"}).expect(
        76, "root cause: rank 1 (", "it has not started, or is stopped")


def ends_where_all_are_stopped(scratch):
    """No rank can say so."""
    directory = scratch / "all-stopped"
    options = words(directory, "--communication.timeout-seconds", 300, "--train.steps", 0, "--train.epochs", 99)
    options[options.index("--devices") + 1] = 1
    run(options, env={"LOCKSTEP_INJECT": "stop:rank=0:step=3", "LOCKSTEP_START_SECONDS": "2"}).expect(
        76, "root cause: rank 0 (", "it is stopped (SIGSTOP)")


def leaves_what_was_there(scratch):
    """A run's directory may be a link to another file system, and a wrong one may be a file."""
    (scratch / "real").mkdir()
    (scratch / "link").symlink_to(scratch / "real")
    run(words(scratch / "link", "--train.steps", 10)).expect(0)
    run(words(scratch / "link", "--train.steps", 12)).expect(0, "resumed")
    check((scratch / "link").is_symlink() and (scratch / "real/metrics.jsonl").exists(), "the link")
    (scratch / "file").write_text("precious")
    run(words(scratch / "file")).expect(73, "file")
    check((scratch / "file").read_text() == "precious", "the file")
    (scratch / "empty").mkdir()
    run(words(scratch / "empty", "--data.batch", 0)).expect(64, "lockstep: root cause: data.batch = 0")
    check((scratch / "empty").is_dir(), "an empty directory, which may have attributes of its own")


def leaves_another_launch_alone(scratch):
    """One that fails takes nothing from the one that trains."""
    directory = scratch / "twice"
    first = subprocess.Popen(
        [LOCKSTEP, *map(str, words(directory, "--train.steps", 0, "--train.epochs", 99))],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (directory / "arrivals").exists():
        check(first.poll() is None, "the first begins")
        time.sleep(0.01)
    site = Site(scratch / "refuses")
    site.command("srun", "#!/bin/sh\nexit 1\n")
    run(words(directory, "--launcher", "srun"), env=site.environment()).expect(69, "root cause", "did not begin")
    marks = list((directory / "arrivals").glob("*"))
    check(len(marks) == 1, f"the marks of the first: {marks}")
    while not (directory / "metrics.jsonl").exists() or not records(directory, "step"):
        check(first.poll() is None, "still training")
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    text = first.communicate(timeout=300)[0]
    check(first.returncode == 75, f"{first.returncode}\n{text}")


def reads_hosts(scratch):
    """A line that is misread would change the number of ranks, and with it the training."""
    file = scratch / "hostfile"
    show = ["launch", "--show", DECK, "--run.replicas", 0, "--hostfile", file]
    for text, told in (("a slots=2\nb\n", "-n 3 "), ("a slots = 4\n", "-n 4 "), ("a max_slots=8 slots=3 # big\n", "-n 3 "),
                       ("a slots=2\r\n\r\na slots=1\r\n", "--host a:3 ")):
        file.write_text(text)
        run(show).expect(0, told)
    for text in some(("a 4\n", "a cpu=4\n", "a:4\n", "slots=4\n", "\ufeffa slots=2\n", "a slots=0\n", "a slots=2;rm\n",
                      "-x slots=2\n", "a slots=2 slots=1\n", "a slots=2 max-slots=1\n",
                      "a slots=2147483647\nb slots=2147483647\n", "a slots=900000\nb slots=900000\n"), 4):
        file.write_text(text)
        run(show).expect(64, "does not name a host and its number of ranks")


def leaves_hosts_out(scratch, whole):
    """Hosts of PBS's file; the second does not answer after the loss."""
    site, directory = Site(scratch / "hosts"), scratch / "two-hosts"
    site.command("agent", "#!/bin/sh\n[ \"$1\" = gone ] && exec sleep 100\nexit 0\n")
    nodes = scratch / "nodes"
    nodes.write_text("localhost\ngone\n")
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=13", FAULTY_ATTEMPTS="1",
                           PBS_NODEFILE=str(nodes), OMPI_MCA_plm_rsh_agent=str(site.path / "agent"))
    options = words(directory, "--restarts", 1)
    at = options.index("--devices")
    del options[at:at + 2]
    run(options, env=env).expect(0, "on localhost")
    check("-n 2 " in site.calls()[0] and "--host localhost:1,gone:1" in site.calls()[0],
          f"both at first: {site.calls()}")
    check("-n 1 " in site.calls()[1] and "gone" not in site.calls()[1], f"{site.calls()}")
    check_same(whole, directory, "the same bits on one rank")


NO_SHARING = {"OMPI_MCA_rmaps_base_oversubscribe": "0"}


def launch_on_terminal(words, keys, **environment):
    text, code = on_terminal([LOCKSTEP, "launch", *map(str, words)], 200,
                             [(phrase, 1, answer) for phrase, answer in keys],
                             {"NO_COLOR": "1", **NO_SHARING, **environment})
    return text.replace("\r", ""), code


def asks(scratch):
    """On a terminal; answers that cannot be are asked for again, and leaving starts nothing."""
    directory = scratch / "asked"
    quick = words(directory, "--train.steps", 4, "--data.global-batch", 16)[2:]
    at = quick.index("--devices")
    del quick[at:at + 2]  # it is asked for
    text, code = launch_on_terminal(
        [*quick, "--run.replicas", 1, "--optimizer.reference-replicas", 1],
        [(b"Mode [ddp]: ", b"fast\n"), (b"Expected one of single, dp, ddp", b"dd\n"),
         (b"1 thread per rank", b"1000\n"), (b"Expected a whole number from 1", b"1\n"),
         (b"Start it [yes]: ", b"\n")])
    check(code == 0 and "finished at step 4" in text, f"{code}\n{text}")
    check(re.search(r"This host  \d+ cores?, .*\n.*no GPU.*\nScheduler  none", text), text)
    check(re.search(r"mpirun -n 1 .* --run.mode ddp\n", text), f"the command is shown: {text}")
    nothing, nodes = scratch / "nothing", scratch / "asked-nodes"
    nodes.write_text("one\none\ntwo\n")
    text, code = launch_on_terminal([DECK, "--run.directory", nothing],
                                    [(b"Mode [ddp]: ", b"\x04")], PBS_JOBID="7.x",
                                    PBS_NODEFILE=str(nodes))
    check(all(part in text for part in ("job 7.x of pbs", "Host  one, 2 ranks", "Host  two, 1 rank")),
          f"the job around us: {text}")
    for leave in some((b"\x03",) * 5 + (b"\x04",)):
        text, code = launch_on_terminal([DECK, "--run.directory", nothing],
                                        [(b"Mode [ddp]: ", leave)])
        check(code == 64 and "lockstep: nothing was started" in text, f"{code}\n{text}")
    text, code = launch_on_terminal(
        [DECK, "--mode", "single", "--submit", "no", "--scale-rate", "none",
         "--run.directory", nothing], [(b"Start it [yes]: ", b"n\n")])
    check(code == 64 and "Mode" not in text and "--run.mode single" in text, f"{code}\n{text}")
    check("mpirun" not in text, f"one process needs no launcher: {text}")
    check(not nothing.exists(), "nothing was started")


def submits(scratch):
    """A job script for the scheduler that answers, from answers and from options."""
    site, directory = Site(scratch / "scheduler"), scratch / "submitted"
    site.command("sinfo", "#!/bin/sh\necho 'debug|1|8|(null)|30:00'\n"
                          "echo 'main*|3|64|gpu:h100:4(S:0-1),lustre:1|2-00:00:00'\n"
                          "echo 'main*|1|64+|(null)|2-00:00:00'\n")
    site.command("sbatch", f"#!/bin/sh\ncp \"$1\" {site.path}/submitted; echo Submitted batch job 7\n")
    text, code = launch_on_terminal(
        [DECK, "--run.directory", directory, "--run.replicas", 0, "--data.global-batch", 0],
        [(b"Mode [ddp]: ", b"\n"), (b"on this host [slurm]: ", b"s\n"),
         (b"Partition [main]: ", b"\n"),
         (b"GPUs on each node [4]: ", b"\n"), (b"Nodes [1]: ", b"2\n"),
         (b"Ranks on each node [4]: ", b"\n"), (b"[12:00:00]: ", b"30\n"),
         (b"Expected hours:minutes", b"1:00:00\n"),
         (b"Scale the learning rate [none]: ", b"linear\n"), (b"[yes]: ", b"y\n")],
        **site.environment())
    check(code == 0 and "Submitted batch job 7" in text, f"{code}\n{text}")
    check("partition main: 4 nodes of 64 cores, 4 GPUs, jobs of at most 48 h" in text, text)
    check("partition debug: 1 node of 8 cores" in text, text)
    script = (site.path / "submitted").read_text()
    for line in ("--nodes=2", "--ntasks-per-node=4", "--gpus-per-node=4", "--time=1:00:00",
                 f"INPUT={DECK}", "RESTARTS=2", "--optimizer.scale-learning-rate linear"):
        check(line in script, f"{line} in {script}")
    check((scratch / "submitted.sbatch").read_text() == script, "it lies beside the run")
    fits_the_partition(site.environment())
    shown = run(["launch", "--show", DECK, "--submit", "pbs", "--partition", "long", "--devices", 4,
                 "--mode", "ddp", "--run.name", "a run"]).expect(
        0, "#PBS -l select=1:ncpus=4:mpiprocs=4", "#PBS -q long").text
    check("train --run.name 'a run' --run.mode ddp" in shown and "#PBS -N a_run\n" in shown, shown)
    for option in ("--partition", "--account"):
        run(["launch", "--show", DECK, "--submit", "slurm", "--devices", 2, option, "x\n#SBATCH --exclusive"]).expect(
            64, option, "line breaks")
    (scratch / "nobody").write_text("# no host\n")
    run(["launch", "--show", DECK, "--hostfile", scratch / "nobody"]).expect(64, "it names no host")
    # The script itself works: Slurm would run it like this.
    run(["launch", "--show", "--yes", DECK, "--submit", "slurm", "--mode", "single"],
        env=site.environment()).expect(0, "LAUNCH=env")
    run(["launch", "--yes", "--submit", "slurm", "--gpus-per-node", 0,
         *words(directory, "--train.steps", 4)[2:]],
        env=site.environment()).expect(0, "Submitted batch job 7", "moved the earlier job script to ")
    kept, = scratch.glob("submitted.sbatch.archived-*")
    check(kept.read_text() == script, "a job script that somebody may have edited is kept")
    done = subprocess.run(["bash", scratch / "submitted.sbatch"], capture_output=True, text=True,
                          env={**os.environ, "SLURM_SUBMIT_DIR": str(scratch), "SLURM_JOB_ID": "7"})
    check(done.returncode == 0 and "finished at step 4" in done.stdout, f"{done}")
    space = scratch / "space.ini"
    space.write_text("[search]\nstrategy = grid\ngoals = parameters min\n[space]\nrun.seed = list(1, 2)\n")
    search = ["--submit", "slurm", "--gpus-per-node", 0, "--search", space, "--search-directory", scratch / "searched"]
    run(["launch", "--yes", *search, *words(directory, "--train.steps", 4)[2:]], env=site.environment()).expect(
        0, "Submitted batch job 7", "lockstep search report")
    if LONG:
        done = subprocess.run(["bash", scratch / "searched.sbatch"], capture_output=True, text=True,
                              env={**os.environ, "SLURM_SUBMIT_DIR": str(scratch), "SLURM_JOB_ID": "7"})
        check(done.returncode == 0 and "best: trial" in done.stdout, f"{done}")
    run(["launch", "--yes", *search, "--force", DECK], env=site.environment()).expect(
        64, "--search cannot be combined with --force")
    for options in (search, search[4:]):  # a job, and here
        run(["launch", "--yes", *options, DECK, "--run.mode", "dp"], env=site.environment()).expect(
            64, "--search cannot be combined with run.mode = dp")
    run(["launch", "--yes", *search, DECK, "--mode", "dp"], env=site.environment()).expect(
        64, "--search cannot be combined with --mode dp")


def fits_the_partition(env):
    """What a job may be follows from its partition; one that could never start is refused."""
    wanted = ["launch", "--show", DECK, "--submit", "slurm", "--mode", "ddp", "--run.replicas", 0]
    for answers, why in some((
            (["--partition", "mian"], "no such partition. Choose one of main, debug"),
            (["--nodes", 5], "has only 4 nodes"),
            (["--devices", 5], "4 GPUs"), (["--gpus-per-node", 0, "--devices", 65], "64 cores"),
            (["--partition", "debug", "--gpus-per-node", 1], "1 node of 8 cores."),
            (["--partition", "debug", "--time", "0:31:00"], "ends jobs after 30 min"),
            (["--time", "30"], "hours:minutes:seconds"),
            (["--devices", 3, "--nodes", 2, "--run.replicas", 4], "6 ranks for run.replicas = 4")), 2):
        run([*wanted, *answers], env=env).expect(64, why)
    run([*wanted, "--devices", 5, "--oversubscribe", "--account", "us"], env=env).expect(
        0, "--ntasks-per-node=5", "#SBATCH --account=us", "--time=12:00:00", "USR1@120")
    run([*wanted, "--partition", "debug"], env=env).expect(
        0, "--partition=debug", "--ntasks-per-node=8", "--time=0:30:00")
    run([*wanted, "--time", "0:05:00"], env=env).expect(0, "USR1@60")
    shared = run(["launch", "--show", DECK, "--submit", "slurm", "--run.mode", "dp",
                  "--gpus-per-node", 0], env=env).text
    check("--cpus-per-task=4" in shared and "--run.replicas" not in shared, f"the deck's: {shared}")
    run(["launch", "--show", DECK, "--run.mode", "dp", "--run.replicas", 0, "--devices", 3]).expect(
        0, "--run.replicas 3")


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, "--data.validation", "").expect(0)
    restarts(scratch, whole)
    for part in some((lambda: gives_up(scratch), lambda: recovery_takes_too_long(scratch),
                      lambda: leaves_hosts_out(scratch, whole))):
        part()
    passes_signals_on(scratch)
    signals_at_once(scratch)
    names_who_stopped(scratch)
    ends_where_all_are_stopped(scratch)
    leaves_what_was_there(scratch)
    leaves_another_launch_alone(scratch)
    reads_hosts(scratch)
    asks(scratch)
    submits(scratch)
    run(["launch", "--yes", DECK, "--devices", 999], env=NO_SHARING).expect(
        64, "--devices 999: this run can use only", "--oversubscribe")
    run(["launch", "--show", DECK, "--devices", 999, "--oversubscribe", "--run.replicas", 0],
        env=NO_SHARING).expect(0, "mpirun -n 999", "--oversubscribe")
    run(["launch", DECK]).expect(64, "give --yes")
    run(["launch", "--yes", DECK, "--nodes", 3]).expect(64, "no job is submitted")
    run(["launch", "--yes"]).expect(64, "no deck")
    run(["launch", "--yes", DECK, "--devices", "x"]).expect(64, "--devices x")
