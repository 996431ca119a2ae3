"""The job scripts: they are strict, name no absolute path, and act on how a run ends.

The launcher and the scheduler are small stand-ins on PATH: the launcher leaves with a given code, or
waits for USR1 as mpirun does; scontrol and qsub write down what they were told."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])

LAUNCHER = """#!/bin/bash
echo "$@" >>launched
if [ "$CODE" != wait ]; then exit "$CODE"; fi
trap 'exit 75' USR1
trap 'exit 1' TERM
echo >ready
for _ in {1..200}; do sleep 0.1; done
"""
SCHEDULER = """#!/bin/bash
echo "$(basename "$0") $*" >>told
"""


def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}".rstrip())


class Job:
    """One job script in a directory of its own."""

    def __init__(self, script, directory, number):
        self.script, self.directory, self.number = script, pathlib.Path(directory), number
        for name, text in {"mpirun": LAUNCHER, "scontrol": SCHEDULER, "qsub": SCHEDULER}.items():
            (self.directory / name).write_text(text)
            (self.directory / name).chmod(0o755)
        self.profile = self.directory / "profile"
        self.profile.write_text("INPUT=inputs/other.ini\necho $A_VARIABLE_NOBODY_SET\n")

    def start(self, code, **settings):
        for name in ("told", "ready"):
            (self.directory / name).unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}",
                       "CODE": str(code), "SLURM_JOB_ID": self.number, "PROFILE": str(self.profile),
                       "PBS_JOBID": f"{self.number}.server", "PBS_O_WORKDIR": str(self.directory),
                       **settings}
        return subprocess.Popen(["bash", self.script, self.profile], cwd=self.directory,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def finish(self, job):
        """The exit code, and what the scheduler was told."""
        self.text = job.communicate(timeout=30)[0]
        told = self.directory / "told"
        return job.returncode, told.read_text() if told.exists() else ""

    def run(self, code, **settings):
        return self.finish(self.start(code, **settings))

    def wait_until_ready(self):
        deadline = time.monotonic() + 10
        while not (self.directory / "ready").exists():
            check(time.monotonic() < deadline, f"{self.script} starts the launcher")
            time.sleep(0.02)


def ends_of_a_run(job, again):
    """What both scripts have in common; `again` begins what the scheduler is told to go on."""
    check(job.run(0) == (0, ""), "done is done")
    launched = (job.directory / "launched").read_text()
    check(launched == "build/lockstep train inputs/other.ini\n", f"one launch line: {launched}")
    for code in (1, 64, 65, 66, 69, 70, 71, 73, 74, 132):
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


def slurm(directory):
    job = Job(SOURCE / "slurm/train.sbatch", directory, "17")
    ends_of_a_run(job, "scontrol requeue 17")
    check(job.run(75) == (75, "scontrol requeue 17\n"), "75 is requeued")
    for code in (76, 134, 137):
        check(job.run(code) == (code, "scontrol requeue 17\n"), f"{code} is requeued")
    check(job.run(139) == (139, ""), "but three times only")
    check(job.run(0) == (0, ""), "a run that is done forgets its losses")
    check(job.run(205) == (205, "scontrol requeue 17\n"), "205 is requeued")


def pbs(directory):
    job = Job(SOURCE / "pbs/train.pbs", directory, "17")
    ends_of_a_run(job, "qsub -v LOSSES=0")
    for losses, code in enumerate((76, 134, 137)):
        check(job.run(code, LOSSES=str(losses)) ==
              (code, f"qsub -v LOSSES={losses + 1},PROFILE={job.profile} pbs/train.pbs\n"),
              f"{code} is submitted again: {job.text}")
    check(job.run(205, LOSSES="3") == (205, ""), "but three times only")
    check(job.run("wait", RUN_SECONDS="1")[0] == 75, "the end of the walltime is seen coming")


for script in [*SOURCE.glob("slurm/*.sbatch"), *SOURCE.glob("pbs/*.pbs")]:
    lines = script.read_text().splitlines()
    check(lines[0] == "#!/bin/bash" and "set -euo pipefail" in lines, f"{script}: strict bash")
    for line in lines[1:]:
        check(not re.search(r"(^|[\s\"'=])/(?!dev/null)\w", line), f"{script}: absolute path: {line}")
for try_out in (slurm, pbs):
    with tempfile.TemporaryDirectory() as scratch:
        try_out(scratch)
