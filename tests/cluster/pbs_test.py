"""The PBS scripts with a stand-in of PBS (qsub.py): the normal end, the walltime, qsig, a lost rank, a lost
first node, an array's seed, a chain; each resumes to the same bits as an undisturbed run."""
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import (BUILD, DATA, SOURCE, Scratch, check, check_same, checkpoints, readme_block,  # noqa: E402
                     records, together)

STEPS = 120
SLOW = "slow:rank=0"  # a tenth of a second per step
HERE = pathlib.Path(__file__).resolve().parent


class Site:
    """A PBS of its own, with its commands on PATH."""

    def __init__(self, path):
        self.spool, self.bin = path / "spool", path / "bin"
        self.spool.mkdir(parents=True)
        self.bin.mkdir()
        for name in ("qsub", "qstat", "qsig", "qrerun", "qdel", "lose-node"):
            (self.bin / name).write_text(f"#!{sys.executable}\n" + (HERE / "qsub.py").read_text())
            (self.bin / name).chmod(0o755)
        self.environment = {**os.environ, "QSUB_SPOOL": str(self.spool), "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def command(self, *words, cwd=None):
        return subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, text=True, check=True, env=self.environment).stdout

    def job(self, number):
        return json.loads((self.spool / f"{number}.job").read_text())

    def count(self):
        return len(list(self.spool.glob("*.job")))

    def output(self):
        return "".join(f"--- {path.name}\n{path.read_text()}" for path in self.spool.glob("*.out"))

    def wait_until(self, condition, what, limit=240):
        deadline = time.monotonic() + limit
        while not condition():
            check(time.monotonic() < deadline, f"{what}\n{self.output()}")
            time.sleep(0.1)

    def all_done(self):
        return all(json.loads(path.read_text())["state"] == "F" for path in self.spool.glob("*.job"))


class Checkout:
    def __init__(self, scratch, name, fault="", profile=""):
        self.site, self.path = Site(scratch / f"site-{name}"), scratch / name
        self.path.mkdir()
        for folder in ("pbs", "scripts"):
            (self.path / folder).symlink_to(SOURCE / folder)
        (self.path / "build").symlink_to(BUILD)
        (self.path / "deck.ini").write_text(
            f"include = {SOURCE}/inputs/test_small.ini\n[data]\ntrain = {DATA}/train.h5\nvalidation =\n"
            f"[train]\nsteps = {STEPS}\nvalidate-every = 0\n[checkpoint]\nevery-steps = 10\n")
        (self.path / "profile.sh").write_text(f"export LOCKSTEP_INJECT={fault}\n{profile}\n")
        self.run = self.path / "runs/deck"

    def submit(self, *options, script="pbs/train.pbs", settings=""):
        done = self.site.command("qsub", "-l", "select=1:ncpus=2:mpiprocs=2", *options, "-v",
                                 f"PROFILE=profile.sh,INPUT=deck.ini{settings}", script, cwd=self.path)
        return done.strip().split(".")[0]

    def attempts(self):
        return list(map(json.loads, (self.run / "history.jsonl").read_text().splitlines()))

    def steps(self):
        path = self.run / "metrics.jsonl"
        return [record["step"] for record in records(self.run, "step")] if path.exists() else [0]

    def ends_like(self, whole, attempts):
        self.site.wait_until(self.site.all_done, "the jobs end")
        check([path for path in checkpoints(self.run) if path.stem == f"step-{STEPS:08d}"],
              f"the last checkpoint is there\n{self.site.output()}")
        check_same(checkpoints(whole)[-1], checkpoints(self.run)[-1], "the same bits")
        check(len(self.attempts()) in attempts, f"{self.attempts()}\n{self.site.output()}")


def is_resubmitted(scratch, whole):
    """The walltime is read from qstat, and the next part is submitted before it is over. All steps take
    12 seconds at least, and 5 are kept in reserve, so a part cannot do them all; where ranks start slowly, a
    part does few."""
    limited = Checkout(scratch, "walltime", fault=SLOW)
    limited.submit("-l", "walltime=00:00:16")
    limited.site.wait_until(lambda: limited.site.count() > 1, "the next part is submitted")
    limited.ends_like(whole.run, range(2, 30))
    check(limited.attempts()[0]["reason"] == "walltime", f"{limited.attempts()}")


def is_signalled(scratch, whole):
    """qsig reaches every process of the job, ranks and script alike."""
    signalled = Checkout(scratch, "signalled", fault=SLOW)
    site, number = signalled.site, signalled.submit()
    site.wait_until(lambda: max(signalled.steps(), default=0) >= 5, "the job trains")
    site.command("qsig", "-s", "SIGUSR1", number)
    signalled.ends_like(whole.run, [2])
    check(site.job(number)["code"] == 75, f"{site.job(number)}")


def is_run_again(scratch, whole):
    """An operator's qrerun: the job that runs again and the successor that it submitted when it was told
    to end meet; the one that comes second goes, and the run is what it would have been."""
    rerun = Checkout(scratch, "rerun", fault=SLOW)
    site, number = rerun.site, rerun.submit()
    site.wait_until(lambda: max(rerun.steps(), default=0) >= 5, "the job trains")
    site.command("qrerun", number)
    site.wait_until(lambda: site.job(number)["run_count"] == 2, "the job runs again")
    rerun.ends_like(whole.run, [2, 3])
    successor = site.job(site.count())
    codes = sorted([site.job(number)["code"], successor["code"]])
    check(codes in ([0, 0], [0, 73]), f"{codes}\n{site.output()}")


def loses_its_first_node(scratch, whole):
    """PBS itself runs the job again; the script has had no time to submit a successor."""
    powerless = Checkout(scratch, "powerless", fault=SLOW)
    site, number = powerless.site, powerless.submit(script="pbs/multi_node_cpu.pbs")
    site.wait_until(lambda: max(powerless.steps(), default=0) >= 15, "the job trains")
    site.command("lose-node", number)
    site.wait_until(lambda: site.job(number)["run_count"] == 2, "the job runs again")
    powerless.ends_like(whole.run, [2])
    check(site.count() == 1 and site.job(number)["code"] == 0, f"{site.job(number)}\n{site.output()}")


def loses_a_rank(scratch, whole):
    """In the first job; its fault is not in the second."""
    lost = Checkout(scratch, "lost", fault="kill:rank=1:step=25",
                    profile='[ ! -e runs ] || LOCKSTEP_INJECT=')
    lost.submit()
    lost.ends_like(whole.run, [2])
    check("loss 1 of at most 3" in lost.site.output(), lost.site.output())


def is_a_chain(scratch, whole):
    """Three jobs in a row; the last has nothing to do."""
    chain = Checkout(scratch, "chain", fault="kill:rank=1:step=25",
                     profile='[ ! -e runs ] || LOCKSTEP_INJECT=')
    site = chain.site
    site.command("pbs/chain.sh", "3", "pbs/train.pbs", "PROFILE=profile.sh,INPUT=deck.ini", cwd=chain.path)
    chain.ends_like(whole.run, [2])
    check(site.job(site.count())["code"] == 0, site.output())


def is_of_the_readme(scratch, whole):
    """What README.md says to paste, with its deck."""
    pasted = Checkout(scratch, "readme")
    (pasted.path / "deck.ini").rename(pasted.path / "clothes.ini")
    pasted.site.command("bash", "-euo", "pipefail", "-c", readme_block("pbs"), cwd=pasted.path)
    pasted.site.wait_until(pasted.site.all_done, "the job ends")
    end = records(pasted.path / "runs/long", "end")[-1]
    check(end["step"] == STEPS and pasted.site.job(1)["code"] == 0, f"{end}\n{pasted.site.output()}")


with Scratch() as scratch:
    whole = Checkout(scratch, "whole")
    whole.submit()
    whole.ends_like(whole.run, [1])
    check(whole.attempts()[0]["job"] == "1.stand-in" and whole.site.job(1)["code"] == 0, f"{whole.attempts()}")
    together([lambda each=each: each(scratch, whole)
              for each in (is_resubmitted, is_run_again, is_signalled, loses_its_first_node, loses_a_rank, is_a_chain,
                           is_of_the_readme)])
print("PBS: all jobs came to their end")
