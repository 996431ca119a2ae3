"""The job scripts: they are strict, name no absolute path, and act on how a run ends.

The launcher and the scheduler are small stand-ins on PATH: the launcher leaves with a given code, or
waits for USR1 as mpirun does; scontrol and qsub write down what they were told."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])

LAUNCHER = """#!/bin/bash
echo "$(basename "$0") $*" >>launched
if [ "$CODE" != wait ]; then exit "$CODE"; fi
trap 'exit 75' USR1
trap 'exit 1' TERM
echo >ready
for _ in {1..200}; do sleep 0.1; done
"""
SCHEDULER = """#!/bin/bash
echo "$(basename "$0") $*" >>told
"""
# As PBS does, it splits the list at its commas, and takes the value of a mere name from its environment.
QSUB = """#!/bin/bash
[ "$1" = -v ] || exit 64
mapfile -d, -t words < <(printf %s "$2")
for word in "${words[@]}"; do
    case $word in *=*) ;; *) word=$word=$(printenv "$word") ;; esac
    settings+=,$word
done
echo "qsub -v ${settings#,} $3" >>told
"""
SCONTROL = """#!/bin/bash
if [ "$2" = show ]; then echo "JobId=17 Requeue=1 Restarts=${ATTEMPTS_SEEN:-0} BatchFlag=1"; exit; fi
echo "scontrol $*" >>told
"""
SQUEUE = """#!/bin/bash
echo "${STATE:-RUNNING 10:00}"
"""
def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}".rstrip())


class Job:
    """One job script in a directory of its own."""

    def __init__(self, script, directory, number):
        self.script, self.directory, self.number = script, pathlib.Path(directory), number
        for folder in ("slurm", "pbs", "scripts"):
            (self.directory / folder).symlink_to(SOURCE / folder)
        (self.directory / "build").mkdir()
        for name, text in {"mpirun": LAUNCHER, "build/lockstep": LAUNCHER, "scontrol": SCONTROL,
                           "qsub": QSUB, "sbatch": SCHEDULER, "squeue": SQUEUE}.items():
            (self.directory / name).write_text(text)
            (self.directory / name).chmod(0o755)
        self.profile = self.directory / "profile"
        self.profile.write_text("INPUT=inputs/other.ini\necho $A_VARIABLE_NOBODY_SET\n")
        # The scheduler runs a copy that lies elsewhere, in some other directory.
        self.spool = self.directory / "spool"
        self.spool.mkdir()
        shutil.copy(SOURCE / script, self.spool / "job_script")

    def start(self, code, **settings):
        for name in ("told", "ready", "launched"):
            (self.directory / name).unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}",
                       "CODE": str(code), "PROFILE": str(self.profile),
                       "SLURM_JOB_ID": self.number, "SLURM_SUBMIT_DIR": str(self.directory),
                       "SLURM_ARRAY_TASK_ID": "3", "PBS_ARRAY_INDEX": "3", "PBS_NODEFILE": "nodes",
                       "PBS_JOBID": f"{self.number}.server", "PBS_O_WORKDIR": str(self.directory),
                       **settings}
        return subprocess.Popen(["bash", self.spool / "job_script", self.profile], cwd=self.spool,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def finish(self, job):
        """The exit code, and what the scheduler was told."""
        self.text = job.communicate(timeout=30)[0]
        return job.returncode, self.read("told")

    def run(self, code, **settings):
        return self.finish(self.start(code, **settings))

    def read(self, name):
        path = self.directory / name
        return path.read_text() if path.exists() else ""

    def wait_until_ready(self):
        deadline = time.monotonic() + 10
        while not (self.directory / "ready").exists():
            check(time.monotonic() < deadline, f"{self.script} starts the launcher")
            time.sleep(0.02)


def ends_of_a_run(job, again, launched):
    """What all scripts have in common; `again` begins what the scheduler is told to continue."""
    check(job.run(0) == (0, ""), f"done is done: {job.text}")
    check(job.read("launched") == launched + "\n", f"the launch line: {job.read('launched')}")
    for code in (64, 65, 66, 69, 70, 71, 73, 74, 127):
        check(job.run(code) == (code, ""), f"{code} stops")
    for name in ("TERM", "INT", "USR1"):
        process = job.start("wait")
        job.wait_until_ready()
        process.send_signal(signal.Signals[f"SIG{name}"])
        code, told = job.finish(process)
        check(code == 75 and told.startswith(again), f"{name} becomes USR1: {code} {told} {job.text}")
    stop = job.directory / f"lockstep-{job.number}.stop"
    stop.touch()
    check(job.run(75) == (75, ""), "a stop file ends it for good")
    stop.unlink()
    for attempt in range(11):
        process = job.start("wait")
        job.wait_until_ready()
        process.send_signal(signal.SIGUSR1)
        code, told = job.finish(process)
        if not told:
            break
    check(code == 75 and attempt == 9 and "ten times in a row" in job.text, f"signals at the start: {attempt} {job.text}")
    for code in (76, 134, 137):
        code, told = job.run(code)
        check(told.startswith(again), f"{code} is put back: {job.text}")
    check(job.run(139) == (139, ""), "but three times only")
    check(job.run(0) == (0, ""), "a run that is done forgets its losses")
    for code in (205, 1, 143): # a launcher that ended without the run's own word
        code, told = job.run(code)
        check(told.startswith(again), f"{code} is put back: {job.text}")
    check(job.run(0) == (0, ""), "done")
    check(job.run(79) == (79, "") and "a newer attempt" in job.text, "the newer attempt is left alone")
    check(not list(job.directory.glob("*.losses")), "which is no loss")


def searches(job, launched):
    """With SEARCH, the same lines start a search."""
    check(job.run(0, SEARCH="space.ini", SEARCH_DIRECTORY="runs/own")[0] == 0, "a search that is done")
    deck = " inputs/other.ini"
    check(job.read("launched") == launched.replace(
        deck, " --search space.ini --search-directory runs/own" + deck) + "\n", job.read("launched"))
    if "--restarts 0" in launched:
        job.run(0, SEARCH="space.ini", LAUNCH="mpirun -n 3")
        check(job.read("launched").startswith("mpirun -n 3 build/lockstep search space.ini" + deck),
              job.read("launched"))


def one_of_a_chain(job):
    """A job of a chain puts nothing back; one that stops, stops those after it."""
    chain = {"REQUEUE": "no", "CHAIN": "of-three"}
    check(job.run(75, **chain) == (75, ""), "the next job resumes")
    check(job.run(0, **chain) == (0, "") and job.read("launched"), "which it does")
    check(job.run(79, **chain) == (79, ""), "a newer attempt continues, and so does the chain")
    check(job.run(0, **chain) == (0, "") and job.read("launched"), "which it does")
    check(job.run(64, **chain) == (64, ""), "a mistake in the deck")
    check(job.run(0, **chain) == (0, "") and not job.read("launched"), "ends all jobs that wait")
    (job.directory / "lockstep-of-four.stop").touch()
    job.run(75, REQUEUE="no", CHAIN="of-four")
    check("lockstep-of-four.stop exists" in job.text, f"a chain that was stopped: {job.text}")


def no_profile(job):
    profile = job.profile.read_text()
    job.profile.write_text(profile + "[ -f nothing ] && source nothing\n")
    check(job.run(0)[0] == 0, f"its last command fails: {job.text}")
    check(job.run(0, FORGIVEN="few")[0] == 64 and "FORGIVEN=few" in job.text, f"no number: {job.text}")
    job.profile.write_text(profile + "if then\n")
    check(job.run(0)[0] == 66 and "cannot read the profile" in job.text, f"no shell: {job.text}")
    job.profile.rename(job.directory / "elsewhere")
    check(job.run(0)[0] == 66 and "cannot read the profile" in job.text, f"no profile: {job.text}")
    job.profile.write_text(profile)
    process = job.start("wait")
    job.wait_until_ready()
    process.send_signal(signal.SIGUSR1)
    job.finish(process)
    (job.directory / "build/lockstep").write_text("#!/bin/bash\necho >ready\nexec sleep 20\n")  # hears no signal
    process = job.start("wait")
    job.wait_until_ready()
    process.send_signal(signal.SIGUSR1)
    code, told = job.finish(process)
    check(code == 75 and told and "while it started" in job.text, f"a signal before it listens: {code} {job.text}")


def slurm(name, directory, launched):
    job = Job(f"slurm/{name}.sbatch", directory, "17")
    ends_of_a_run(job, "scontrol requeue 17\n", launched)
    check(job.run(75, STATE="COMPLETING 9:50") == (75, ""), "scancel is for good")
    check(job.run(75, STATE="COMPLETING 0:00")[1] == "scontrol requeue 17\n", "the time limit is not")
    for code in (75, 76, 205):
        check(job.run(code, ATTEMPTS_SEEN="1") == (code, ""), "Slurm has begun the next attempt itself")
        check(job.run(code, STATE="COMPLETED 0:00") == (code, ""), "a finished job is left alone")
    check(job.run(75, ATTEMPTS_SEEN="1", SLURM_RESTART_COUNT="1")[1] == "scontrol requeue 17\n", "its own")
    check(job.run(75, SLURM_ARRAY_JOB_ID="17")[1] == "scontrol requeue 17_3\n",
          "one task of an array, not all")
    searches(job, launched)
    one_of_a_chain(job)
    no_profile(job)


def pbs(name, directory, launched, following):
    job = Job(f"pbs/{name}.pbs", directory, "17")
    settings = f"PROFILE={job.profile},INPUT=inputs/other.ini,EXE=build/lockstep"
    if following == "pbs/seed.pbs":
        settings += ",SEED=3"
    settings += f",RESTARTS={2 if 'multi' in name else 0}"
    told = job.run(75, LAUNCHER="srun", FORGIVEN="5")[1]
    check(",LAUNCHER=srun,FORGIVEN=5 " in told, f"the next job gets all settings: {told}")
    settings += ",FORGIVEN=3"
    ends_of_a_run(job, f"qsub -v CHAIN=17,{settings} {following}\n", launched)
    searches(job, launched)
    told = job.run(75, SEARCH="space.ini", SEARCH_DIRECTORY="runs/own")[1]
    check(",SEARCH=space.ini,SEARCH_DIRECTORY=runs/own," in told, f"the next job searches on: {told}")
    odd_values = ("a,b", "a,FORGIVEN=9,b", "a=b", "a b", "it's", 'a"b,"c', "a\\,b", "a\nb", "$HOME,*")
    for odd in odd_values if name == "train" else odd_values[:1]:
        for setting in ("SEARCH_DIRECTORY", "MIN_HOSTS"):
            told = job.run(75, SEARCH="space.ini", **{setting: odd})[1]
            check(f",{setting}={odd}," in told, f"the next job gets {setting}={odd!r}: {told}")
    one_of_a_chain(job)
    job.run(0, RUN_SECONDS="100")
    check("--run.walltime-seconds 100" in job.read("launched"), "the seconds are passed on")
    if "multi" not in name:
        job.run(0, LAUNCH="mpirun -n 3")
        check(job.read("launched").startswith("mpirun -n 3 build/lockstep train"), "another launcher")
    no_profile(job)


def submits_a_chain(scheduler, directory):
    job = Job(f"{scheduler}/chain.sh", directory, "17")
    words = ["--time=5", "slurm/array.sbatch", "profile"] if scheduler == "slurm" else []
    (job.directory / "sbatch").write_text('#!/bin/bash\necho "$CHAIN $REQUEUE $*" >>told; echo 5\n')
    (job.directory / "qsub").write_text('#!/bin/bash\necho "$*" >>told; echo 5.server\n')
    subprocess.run([f"{scheduler}/chain.sh", "3", *words], cwd=directory, check=True,
                   env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"},
                   stdout=subprocess.DEVNULL)
    told = job.read("told").splitlines()
    check(len(told) == 3 and "afterany" not in told[0] and all(
        "afterany:5" in line for line in told[1:]), f"each after the one before: {told}")
    check(len({re.search(r"chain-[\d-]+", line)[0] for line in told}) == 1, "one chain")
    check(subprocess.run([f"{scheduler}/chain.sh"], cwd=directory, stderr=subprocess.DEVNULL)
          .returncode == 64, "it says how it is used")


for script in [*SOURCE.glob("slurm/*.sbatch"), *SOURCE.glob("pbs/*.pbs"), *SOURCE.glob("*/chain.sh")]:
    lines = script.read_text().splitlines()
    check(lines[0] == "#!/bin/bash" and "set -euo pipefail" in lines, f"{script}: strict bash")
    for line in lines[1:]:
        check(not re.search(r"(^|[\s\"'=])/(?!dev/null)\w", line), f"{script}: absolute path: {line}")

TRAIN = "lockstep launch --yes --restarts 0 inputs/other.ini"
LAUNCH = "lockstep launch --yes --restarts 2 inputs/other.ini"
SEED = " --run.seed 3 --run.directory runs/other-seed3"
for name, line in {"train": TRAIN, "array": TRAIN + SEED, "multi_node_cpu": LAUNCH,
                   "multi_node_gpu": LAUNCH}.items():
    with tempfile.TemporaryDirectory() as scratch:
        slurm(name, scratch, line)
for name, line, following in (("train", TRAIN, "pbs/train.pbs"),
                              ("array", TRAIN + SEED, "pbs/seed.pbs"),
                              ("multi_node_cpu", LAUNCH, "pbs/multi_node_cpu.pbs"),
                              ("multi_node_gpu", LAUNCH, "pbs/multi_node_gpu.pbs")):
    with tempfile.TemporaryDirectory() as scratch:
        pbs(name, scratch, line, following)
for scheduler in ("slurm", "pbs"):
    with tempfile.TemporaryDirectory() as scratch:
        submits_a_chain(scheduler, scratch)
