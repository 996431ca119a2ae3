"""The job scripts under a real Slurm, each job on two nodes: the normal end, by mpirun and by srun; --signal,
the walltime, a node that fails: requeued, to the same bits as an undisturbed run; a suspension; scancel; a job that
`lockstep launch` asks for, writes and submits."""
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import (BUILD, DATA, LOCKSTEP, LONG, SOURCE, Scratch, check, check_same,  # noqa: E402
                     checkpoints, on_terminal, readme_block, records, together)
import slurm  # noqa: E402

STEPS = 450
# A tenth of a second per step, in the first attempts of a job; one that is asked to end before it trains is none.
TOLD = "-s runs/deck/history.jsonl"
SLOW = ("export LOCKSTEP_INJECT=slow:rank=0; [[ ${{SLURM_RESTART_COUNT:-0}} -lt {0} || {0} -gt 0 && ! " + TOLD +
        " ]] || unset LOCKSTEP_INJECT")
# Once an attempt has come to its limit, the next ones have time, however slow the machine is.
LONGER = f"[[ ! {TOLD} ]] || scontrol update JobId=$SLURM_JOB_ID TimeLimit=60"
# What Slurm itself starts must not be held up by variables of the tests.
os.environ.update({"OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_oob_tcp_if_include": "eth0"})

if slurm.missing():
    print(f"skipped: {slurm.missing()}")
    sys.exit(77)


class Job:
    """A job script at work in a directory that looks like a checkout."""

    def __init__(self, cluster, scratch, name, *options, slow_attempts=0, profile="", deck="", script="train"):
        self.cluster, self.name, self.script = cluster, name, f"slurm/{script}.sbatch"
        self.checkout = scratch / name
        self.checkout.mkdir()
        for folder in ("slurm", "scripts"):
            (self.checkout / folder).symlink_to(SOURCE / folder)
        (self.checkout / "build").symlink_to(BUILD)
        (self.checkout / "deck.ini").write_text(
            f"include = {SOURCE}/inputs/test_small.ini\n[data]\ntrain = {DATA}/train.h5\nvalidation =\n"
            f"[train]\nsteps = {STEPS}\nvalidate-every = 0\n[checkpoint]\nevery-steps = 20\n{deck}")
        (self.checkout / "profile.sh").write_text(
            f"INPUT=deck.ini\n{SLOW.format(slow_attempts)}\n{profile}\n")
        self.run = self.checkout / "runs/deck"
        self.number = self.submit(*options)

    def submit(self, *options):
        submitted = slurm.run("sbatch", "--parsable", "--nodes=2",
                              "--ntasks-per-node=1", "--mem-per-cpu=100", "--time=60", *options,
                              self.script, "profile.sh", cwd=self.checkout)
        check(submitted.returncode == 0, submitted.stderr)
        return submitted.stdout.strip()

    def output(self):
        return "".join(path.read_text() for path in self.checkout.glob("*.out"))

    def steps(self):
        return records(self.run, "step")[-1:] if (self.run / "metrics.jsonl").exists() else []

    def wait_for_step(self, count):
        self.wait_until(lambda: any(step["step"] >= count for step in self.steps()), 180,
                        f"step {count}")

    def wait_until(self, condition, limit, what):
        try:
            self.cluster.wait_until(condition, limit, f"{self.name}: {what}")
        except RuntimeError as error:
            check(False, f"{error}\n{self.output()}")

    def wait_for(self, *states, limit=1000):
        self.wait_until(lambda: self.cluster.state(self.number) in states, limit, states)

    def attempts(self):
        return list(map(json.loads, (self.run / "history.jsonl").read_text().splitlines()))

    def ends_like(self, whole):
        check([path for path in checkpoints(self.run) if path.stem == f"step-{STEPS:08d}"],
              f"{self.name}: the last checkpoint is there\n{self.output()}")
        check_same(checkpoints(whole)[-1], checkpoints(self.run)[-1],
                   f"{self.name}: the same bits as an undisturbed run")


class Launched(Job):
    """A job that comes of the answers to lockstep launch, of which some cannot be."""

    def on_terminal(self, *words, keys=()):
        text, code = on_terminal(["env", "-C", str(self.checkout), LOCKSTEP, *words], 120,
                                 [(phrase, 1, answer) for phrase, answer in keys], {"NO_COLOR": "1"}, 300)
        return text.replace("\r", ""), code

    def submit(self):
        named = ("--submit", "slurm", "--mode", "ddp", "--nodes", "2", "--devices", "1",
                 "--time", "0:05:00")
        for words, why in ((("--partition", "wrok"), "no such partition. Choose one of work, urgent, weak"),
                           (("--nodes", "3"), "partition work has only 2 nodes"),
                           (("--devices", "9"), "of 8 cores"), (("--time", "5"), "hours:minutes")):
            text, code = self.on_terminal("launch", "--yes", "deck.ini", *named, *words)
            check(code == 64 and why in text, f"{words}: {code} {text}")
        text, code = self.on_terminal("launch", "deck.ini", *named, keys=[
            (b"Partition [work]: ", b"\n"), (b"Write it and submit it with sbatch [yes]: ", b"no\n")])
        check(code == 64 and "nothing was started" in text, f"{code}\n{text}")
        check(not (self.checkout / "runs").exists(), "no script is left")
        text, code = self.on_terminal("launch", "deck.ini", "--train.steps", "20", keys=[
            (b"Mode [ddp]: ", b"\n"), (b"on this host [slurm]: ", b"\n"),
            (b"Partition [work]: ", b"wrok\n"), (b"Expected one of work, urgent, weak", b"work\n"),
            (b"Nodes [1]: ", b"3\n"), (b"a whole number from 1 to 2", b"2\n"),
            (b"Ranks on each node [2]: ", b"9\n"), (b"a whole number from 1 to 8", b"1\n"),
            (b"[12:00:00]: ", b"0:05:00\n"), (b"[yes]: ", b"\n")])
        check(code == 0 and "#SBATCH --nodes=2\n" in text, f"{code}\n{text}")
        return text.split("Submitted batch job ")[1].split()[0]

    def runs_to_its_end(self):
        text, code = self.on_terminal("watch", "runs/deck")
        check(code == 0 and "step 20 of 20" in text, f"{code}\n{text}")
        self.wait_for("COMPLETED")
        check(self.attempts()[0]["hosts"] == ["host1", "host2"], f"{self.attempts()}")
        check("finished at step 20" in self.output() and "\x1b" not in self.output() and
              "\r" not in self.output(), f"plain lines: {self.output()}")


class OfReadme(Job):
    """What README.md says to paste, with its deck."""

    def submit(self):
        (self.checkout / "deck.ini").rename(self.checkout / "clothes.ini")
        self.run = self.checkout / "runs/long"
        pasted = subprocess.run(["bash", "-euo", "pipefail", "-c", readme_block("slurm")], cwd=self.checkout,
                                env={**os.environ, "SBATCH_MEM_PER_CPU": "100"}, capture_output=True, text=True)
        check(pasted.returncode == 0, f"{pasted.stdout}{pasted.stderr}")
        return pasted.stdout.split()[-1]


def was_requeued(job, whole, reason):
    job.wait_for("COMPLETED")
    job.ends_like(whole)
    attempts = job.attempts()
    check(len(attempts) > 1 and attempts[0]["reason"] == reason, f"{job.name}: {attempts}\n{job.output()}")
    # The signal may also come before the run begins.
    before = sum(map(job.output().count, ("a signal arrived before", "a signal ended the run while it started")))
    restarts = [attempt["restart"] for attempt in attempts]
    check(restarts == list(range(before, before + len(attempts))), f"restarts: {attempts}\n{job.output()}")
    check(all(attempt["job"] == job.number for attempt in attempts), f"the job's number: {attempts}")
    # The signal may come with the last step: then the next attempt finds nothing to do.
    ended = attempts[-1]["exit_code"] == 0 or "this run is finished" in job.output()
    check(attempts[0]["lost_steps"] == 0 and ended, f"nothing is lost: {attempts}")


def loses_its_nodes(cluster, scratch, whole, others):
    """A job of another partition takes the nodes; when they are free again, one loses its power: that of the job's
    script, and in the long form then the other. The job resumes each time. On nodes that no other job has."""
    # mpirun leaves the ranks two seconds: not while others use the machine.
    for job in others:
        job.wait_for("COMPLETED")
    nodes = ("host3", "host4") if LONG else ("host3",)
    crashed = Job(cluster, scratch, "crashed", "--partition=weak", slow_attempts=1 + len(nodes),
                  script="multi_node_cpu")
    crashed.wait_for_step(5)
    urgent = slurm.run("sbatch", "--parsable", "--partition=urgent", "--nodelist=host3,host4", "--exclusive",
                       "--output=/dev/null", "--wrap", "true").stdout.strip()
    crashed.wait_until(lambda: cluster.state(urgent) == "COMPLETED", 180, "it makes room")
    crashed.wait_until(lambda: len(crashed.attempts()) > 0, 120, "its first attempt is written down")
    check(crashed.attempts()[0]["reason"] == "SIGTERM", f"{crashed.attempts()}\n{crashed.output()}")
    check("root cause" not in crashed.output() and "restart 1 of" not in crashed.output(), crashed.output())
    for node in nodes:
        crashed.wait_for_step(crashed.steps()[-1]["step"] + 20)
        cluster.crash(node)
        crashed.wait_until(lambda: cluster.state(crashed.number) != "RUNNING", 180, f"the loss of {node} is seen")
        cluster.join(node)
        cluster.boot(node)
        crashed.wait_for("RUNNING")
    crashed.wait_for("COMPLETED")
    crashed.ends_like(whole.run)
    attempts = crashed.attempts()
    check(len(attempts) > 1 + len(nodes) and attempts[0]["lost_steps"] == 0, f"it was requeued each time: {attempts}")


def keep_their_nodes(cluster, scratch, whole, by_srun, search):
    # Slurm looks at the time every half a minute only, and signals by so much earlier: when it first looks. The limit
    # lies so far off that it is no reason to leave.
    signalled = Job(cluster, scratch, "signal", "--time=3", "--signal=B:USR1@175", slow_attempts=1,
                    profile=LONGER)
    # Of the minute most is used up when the run begins; it asks Slurm for what is left.
    limited = Job(cluster, scratch, "walltime", "--time=1", "--signal=B:CONT@1", slow_attempts=1,
                  profile=f"{LONGER}\n[[ {TOLD} ]] || sleep 28")
    # By srun: mpirun leaves the ranks two seconds, in which a loaded machine may not get through.
    cancelled = Job(cluster, scratch, "cancelled", slow_attempts=1, profile='LAUNCH="srun --mpi=pmix"')

    # Longer than its limit; each of its processes is stopped and continued by itself.
    suspended = Job(cluster, scratch, "suspended", slow_attempts=1, deck="[communication]\ntimeout-seconds = 70\n")
    suspended.wait_for_step(5)
    slurm.run("scontrol", "suspend", suspended.number)
    since = time.monotonic()

    alone = slurm.run("srun", "--mpi=none", "--ntasks=2", "--mem-per-cpu=100", LOCKSTEP, "train",
                      "deck.ini", cwd=whole.checkout)
    check(alone.returncode == 69 and alone.stderr.count("rank 0 of 1") == 1,
          f"ranks that are alone: {alone.returncode} {alone.stderr}")

    cancelled.wait_for_step(5)
    slurm.run("scancel", cancelled.number)
    cancelled.wait_for("CANCELLED", limit=120)
    check("not requeued" in cancelled.output(), cancelled.output())
    ends = records(cancelled.run, "end")
    check(ends, f"it came to an end\n{cancelled.output()}")
    step = ends[-1]["step"]
    check(checkpoints(cancelled.run)[-1].stem == f"step-{step:08d}", "with a checkpoint")

    time.sleep(max(80 - (time.monotonic() - since), 0))
    slurm.run("scontrol", "resume", suspended.number)
    suspended.wait_for("COMPLETED")
    suspended.ends_like(whole.run)
    check(len(suspended.attempts()) == 1, f"{suspended.attempts()}\n{suspended.output()}")

    for job in (whole, by_srun):
        job.wait_for("COMPLETED")
        check(len(job.attempts()) == 1 and job.attempts()[0]["hosts"] == ["host1", "host2"], "two hosts")
    by_srun.ends_like(whole.run)
    check("root cause" not in by_srun.output(),
          f"nobody is missed while rank 0 draws pictures: {by_srun.output()}")

    search.wait_for("COMPLETED")
    check("best: trial" in search.output(), search.output())
    ends = [records(search.checkout / f"runs/space/trials/000{trial}", "end")[-1] for trial in (1, 2)]
    check([end["step"] for end in ends] == [20, 20], f"two trials: {ends}")

    was_requeued(signalled, whole.run, "SIGUSR1")
    was_requeued(limited, whole.run, "walltime")


with Scratch() as scratch, slurm.Slurm() as cluster:
    (scratch / "space.ini").write_text("[search]\nstrategy = grid\ngoals = parameters min\n"
                                       "[space]\nrun.seed = list(1, 2)\ntrain.steps = 20\n")
    undisturbed = [Job(cluster, scratch, "mpirun"),
                   Job(cluster, scratch, "srun", profile='LAUNCH="srun --mpi=pmix"', deck="[monitor]\nplots = true\n"),
                   Job(cluster, scratch, "search", f"--export=ALL,SEARCH={scratch}/space.ini")]
    together([lambda: (Launched(cluster, scratch, "launched").runs_to_its_end(),
                       OfReadme(cluster, scratch, "readme").wait_for("COMPLETED")),
              lambda: keep_their_nodes(cluster, scratch, *undisturbed),
              lambda: loses_its_nodes(cluster, scratch, undisturbed[0], undisturbed)])
print("Slurm: all jobs came to their end")
