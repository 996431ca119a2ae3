#!/usr/bin/env python3
"""Seconds from the start of mpirun to the end of the second step, and the peak memory of a rank, for a data set of many
files: FILES files of SAMPLES samples each, of eight bytes and a label of one byte, sparse files whose values are all
zeros. Needs h5py (the virtual environment that `./bootstrap bench` makes)."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import h5py

ROOT = pathlib.Path(__file__).resolve().parents[1]


def make(place, files, samples):
    """The bytes that a first file has, without its holes, again and again."""
    first = place / "part-00000.h5"
    plain = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plain.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plain.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(first, "w") as file:
        for name, shape in (("inputs", (samples, 8)), ("targets", (samples,))):
            h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_U8LE, h5py.h5s.create_simple(shape), plain)
    length, extents, at = first.stat().st_size, [], 0
    with first.open("rb") as file:
        while at < length:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break  # only a hole is left
            at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            extents.append((begin, os.pread(file.fileno(), at - begin, begin)))
    for index in range(1, files):
        with (place / f"part-{index:05}.h5").open("wb") as file:
            for begin, content in extents:
                os.pwrite(file.fileno(), content, begin)
            file.truncate(length)


def start(options, place, run):
    words = [options.mpirun, "-n", options.ranks, options.lockstep, "train", ROOT / "inputs/test_small.ini",
             "--data.train", f"{place}/part-*.h5", "--data.validation", "", "--run.directory", run,
             "--model.name", "mlp", "--run.replicas", options.ranks, "--data.global-batch", 32,
             "--optimizer.accumulate", 1, "--train.steps", 2, "--checkpoint.every-steps", 0,
             "--monitor.weight-hash", "false", "--train.validate-every", 0, "--json"]
    begun, second = time.monotonic(), None
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        text = []
        for line in child.stdout:
            text.append(line)
            if line.startswith("{") and json.loads(line).get("event") == "step":
                second = time.monotonic() - begun
    if child.returncode != 0 or second is None:
        sys.exit("".join(text))
    return second, json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["peak_memory_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--samples", type=int, default=100000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lockstep", default=str(ROOT / "build/lockstep"))
    parser.add_argument("--mpirun", default="mpirun")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        make(place, options.files, options.samples)
        seconds = []
        for turn in range(options.rounds + 1):  # the first reads the files from the disk
            second, memory = start(options, place, place / f"run-{turn}")
            print(f"{second:.2f} s, {memory / 2**20:.0f} MiB", flush=True)
            seconds.append(second)
        print(f"{options.files} files of {options.samples} samples, {options.ranks} ranks: "
              f"{statistics.median(seconds[1:]):.2f} s ({min(seconds[1:]):.2f} – {max(seconds[1:]):.2f})")


main()
