"""lockstep launch: signals, restarts after the loss of a rank, giving up, hosts that do not answer."""
import json
import os
import signal
import subprocess
import time

from harness import DATA, DECK, LOCKSTEP, Scratch, check, records, run, same_state, train

MPIRUN = os.environ["LOCKSTEP_MPIEXEC"]


class Site:
    """A directory on PATH with an mpirun that writes down how it is called, and is the real one but
    for a fault of the first lives."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.command("mpirun", f'''#!/bin/bash
echo "$*" >>{path}/calls
life=$(wc -l <{path}/calls)
export LOCKSTEP_INJECT
[ -z "$FAULTY_LIVES" ] || [ "$life" -le "$FAULTY_LIVES" ] || LOCKSTEP_INJECT=
if [ -n "$HANG" ] && [ "$life" -gt 1 ]; then exec sleep 100; fi
words=()
while [ $# -gt 0 ]; do # the hosts of the test are names only
    if [ "$1" = --host ]; then shift 2; else words+=("$1"); shift; fi
done
exec {MPIRUN} "${{words[@]}}"
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
            *options]


def lives(directory):
    return list(map(json.loads, (directory / "history.jsonl").read_text().splitlines()))


def restarts(scratch, whole):
    site, directory = Site(scratch / "site"), scratch / "restarted"
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=13", FAULTY_LIVES="2")
    run(words(directory, "--restarts", 2, "--checkpoint.resume", "none"), env=env).expect(
        0, "restart 1 of 2", "restart 2 of 2", "finished at step 30")
    check(same_state(whole, directory), "the same bits as without a loss")
    check(all("--mca oob_tcp_keepalive_time 5" in call and "-n 2 " in call for call in site.calls()),
          f"how it is started: {site.calls()}")
    check([life["first_step"] for life in lives(directory)] == [0, 10, 10], f"{lives(directory)}")
    check([life["lost_steps"] for life in lives(directory)] == [2, 2, 0], f"{lives(directory)}")


def gives_up(scratch):
    site, directory = Site(scratch / "hopeless"), scratch / "given-up"
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=7")
    run(words(directory, "--fault-tolerance.restarts", 1), env=env).expect(
        76, "given up after 1 restarts without a newer checkpoint")
    check(len(site.calls()) == 2, f"one restart: {site.calls()}")
    run(words(scratch / "none"), env=env).expect(76, "given up after 0 restarts")
    run(words(scratch / "wrong", "--data.batch", 0), env=env).expect(64)


def recovery_takes_too_long(scratch):
    site, directory = Site(scratch / "slow"), scratch / "slow-run"
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=7", HANG="yes")
    begun = time.monotonic()
    run(words(directory, "--restarts", 1, "--fault-tolerance.recovery-timeout-seconds", 2),
        env=env).expect(76, "no step within 2.0 s of the restart")
    check(time.monotonic() - begun < 60, "it is ended")


def passes_signals_on(scratch):
    site = Site(scratch / "signals")
    for number in (signal.SIGTERM, signal.SIGINT):
        directory = scratch / f"signalled-{number}"
        process = subprocess.Popen(
            [LOCKSTEP, *map(str, words(directory, "--train.steps", 0, "--train.epochs", 9))],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **site.environment()})
        while not (directory / "metrics.jsonl").exists() or not records(directory, "step"):
            check(process.poll() is None, "still training")
            time.sleep(0.05)
        process.send_signal(number)
        text = process.communicate(timeout=60)[0]
        check(process.returncode == 75, f"{number}: {process.returncode}\n{text}")
        check(records(directory, "end")[-1]["reason"] == "SIGUSR1", "as a request")


def leaves_hosts_out(scratch, whole):
    """Hosts of PBS's file; the second does not answer after the loss."""
    site, directory = Site(scratch / "hosts"), scratch / "two-hosts"
    site.command("agent", "#!/bin/sh\n[ \"$1\" = gone ] && exec sleep 100\nexit 0\n")
    nodes = scratch / "nodes"
    nodes.write_text("localhost\ngone\n")
    env = site.environment(LOCKSTEP_INJECT="kill:rank=1:step=13", FAULTY_LIVES="1",
                           PBS_NODEFILE=str(nodes), OMPI_MCA_plm_rsh_agent=str(site.path / "agent"))
    options = words(directory, "--restarts", 1)
    at = options.index("--devices")
    del options[at:at + 2]
    run(options, env=env).expect(0, "on localhost")
    check("-n 2 " in site.calls()[0] and "--host localhost:1,gone:1" in site.calls()[0],
          f"both at first: {site.calls()}")
    check("-n 1 " in site.calls()[1] and "gone" not in site.calls()[1], f"{site.calls()}")
    check(same_state(whole, directory), "the same bits on one rank")


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, "--data.validation", "").expect(0)
    restarts(scratch, whole)
    gives_up(scratch)
    recovery_takes_too_long(scratch)
    passes_signals_on(scratch)
    leaves_hosts_out(scratch, whole)
    run(["launch", DECK]).expect(64, "Say --yes")
    run(["launch", "--yes"]).expect(64, "no deck")
    run(["launch", "--yes", DECK, "--devices", "x"]).expect(64, "--devices x")
