"""Dry runs of the days on borrowed machines, on simulated devices: scripts/gpu_day.sh and multi_gpu_day.sh from a
bundle that is this build, each with its parts that need no GPU; and a day finds what is wrong. LOCKSTEP_LONG=1: all
parts, on 4 devices. scripts/gpu_day_dry_run.sh does the same in an empty root, with a bundle as it is sent.
"""
import os
import pathlib
import subprocess
import sys

from harness import BUILD, LONG, SOURCE, Scratch, check
from simulated_test import SIM

DAYS = {
    "gpu_day": [] if LONG else ["twice", "graphs"],
    "multi_gpu_day": [] if LONG else ["exchange", "resume", "workloads"],
}
RUN = """#!/usr/bin/env bash
export PATH={build}:$(dirname {mpiexec}):$PATH
exec "$@"
"""


def make_bundle(bundle):
    """As make_gpu_bundle.sh packs it, without a copy of anything large."""
    bundle.mkdir()
    (bundle / "lib").mkdir()
    (bundle / "bin").mkdir()
    (bundle / "lib/liblockstep_sim.so").symlink_to(SIM)
    for name in ("scripts", "bench", "inputs", "tests", "python"):
        (bundle / name).symlink_to(SOURCE / name)
    import torch
    (bundle / "about.txt").write_text(f"program  this build\nLibTorch {torch.__version__}\n")
    (bundle / "run").write_text(RUN.format(build=BUILD, mpiexec=os.environ["LOCKSTEP_MPIEXEC"]))
    (bundle / "run").chmod(0o755)


def day(name, bundle, out, parts, **env):
    done = subprocess.run(["bash", str(SOURCE / f"scripts/{name}.sh"), str(bundle), str(out), *parts], capture_output=True,
                          text=True, timeout=3000, env={
                              **os.environ, "DEVICE": "sim", "DEVICES": "4" if LONG else "2", "DAY_SECONDS": "2900",
                              "LOCKSTEP_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1", **env})
    return done.returncode, (out / "summary.md").read_text(), done.stdout + done.stderr


def dry_run(scratch, name, parts):
    code, summary, said = day(name, scratch / "bundle", scratch / name, parts)
    check(code == 0, f"{name}: exit code {code}\n{summary}\n{said[-3000:]}")
    for part in parts:
        check(f"| {part} | passed |" in summary, f"{name}: {part} has not passed:\n{summary}")
    check((scratch / name / "logs.tar.gz").exists(), f"{name}: no logs")
    print(summary)


def mistakes_are_told(scratch):
    """A link between devices that fails ends its part, and only it."""
    code, summary, _ = day("multi_gpu_day", scratch / "bundle", scratch / "wrong", ["exchange"],
                           LOCKSTEP_SIM="devices=2,lose=4")
    check(code != 0 and "| prepare | passed |" in summary and "| exchange | **failed**" in summary,
          f"a lost link: exit code {code}\n{summary}")


if __name__ == "__main__":
    with Scratch() as scratch:
        make_bundle(scratch / "bundle")
        for name, parts in DAYS.items():
            dry_run(pathlib.Path(scratch), name, parts)
        mistakes_are_told(scratch)
