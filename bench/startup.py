"""Seconds from the start of a program to its first word of use, as a JSON line.

  help   lockstep --help, to its end
  train  mpirun -n 2 lockstep train, to the record of the first step
  torch  python -c "import torch", to its end
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

DECK = pathlib.Path(__file__).resolve().parent.parent / "inputs/fashion_mnist.ini"


def to_the_end(words):
    begun = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def to_first_step(words):
    begun, first = time.monotonic(), None
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            if first is None and line.startswith("{") and json.loads(line)["event"] == "step":
                first = time.monotonic() - begun
    if child.returncode != 0 or first is None:
        sys.exit(f"exit code {child.returncode}: {' '.join(words)}")
    return first


def training(options, directory):
    """A command that trains one step of the sample deck on random images."""
    images, labels, data = (directory / name for name in ("images", "labels", "set.h5"))
    samples = 2000
    images.write_bytes(struct.pack(">IIII", 0x803, samples, 28, 28) +
                       random.randbytes(samples * 784))
    labels.write_bytes(struct.pack(">II", 0x801, samples) + bytes(i % 10 for i in range(samples)))
    subprocess.run([options.lockstep, "data", "import", "idx", f"{images},{labels}", data],
                   check=True, stdout=subprocess.DEVNULL)
    return [options.mpirun, "--bind-to", "core", "-n", "2", options.lockstep, "train", str(DECK),
            "--data.train", str(data), "--data.validation", "", "--data.test", "", "--json",
            "--run.directory", str(directory / "run"), "--checkpoint.resume", "none",
            "--train.steps", "1", "--monitor.plots", "false"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", choices=["help", "train", "torch"])
    parser.add_argument("--lockstep", default="build/lockstep")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if options.variant == "train":
            words, measure = training(options, pathlib.Path(directory)), to_first_step
        elif options.variant == "help":
            words, measure = [options.lockstep, "--help"], to_the_end
        else:
            words, measure = [sys.executable, "-c", "import torch"], to_the_end
        measure(words)  # from here on everything lies in the page cache
        seconds = [measure(words) for _ in range(options.repeats)]
    print(json.dumps({"what": "startup", "variant": options.variant,
                      "ranks": 2 if options.variant == "train" else 1,
                      "median_s": statistics.median(seconds), "minimum_s": min(seconds),
                      "maximum_s": max(seconds), "cores": len(os.sched_getaffinity(0))}))


main()
