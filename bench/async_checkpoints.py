"""Training of one rank on two cores with asynchronous checkpoints and without, alternately: the time
that they add, and what they may add: the stalls and a tenth of the seconds that the writes take."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy

DECK = """
[data]
train = {data}
validation =
batch = 64
[model]
name = mlp
hidden = 2048, 2048, 2048, 2048
[monitor]
log-every = 1
tensorboard = false
plots = false
[checkpoint]
asynchronous = true
"""


def trained(lockstep, directory, steps, every):
    """Seconds from the first step to the last but one, and the checkpoints between them."""
    subprocess.run([lockstep, "train", directory / "deck.ini", "--train.steps", str(steps),
                    "--checkpoint.every-steps", str(every), "--run.directory",
                    directory / f"every{every}", "--checkpoint.resume", "none", "--quiet"],
                   check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=sys.stderr)
    lines = (directory / f"every{every}/metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    at = {record["step"]: record["elapsed_s"] for record in records if record["event"] == "step"}
    first, last = min(at), max(step for step in at if step < steps)
    written = [record for record in records if record["event"] == "checkpoint"
               and first <= record["step"] <= last]
    return at[last] - at[first], written


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lockstep", default="build/lockstep")
    parser.add_argument("--directory", default=".", help="where checkpoints are written")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="lockstep-bench-") as place:
        directory = pathlib.Path(place).resolve()
        with h5py.File(directory / "images.h5", "w") as file:
            generator = numpy.random.default_rng(0)
            file["inputs"] = generator.integers(0, 256, (64 * options.steps, 28, 28), numpy.uint8)
            file["targets"] = numpy.arange(64 * options.steps) % 10
        (directory / "deck.ini").write_text(DECK.format(data=directory / "images.h5"))
        extra, allowed, plain_s, stalls, writes = [], [], [], [], []
        for _ in range(options.repeats):
            plain, _none = trained(options.lockstep, directory, options.steps, 0)
            seconds, written = trained(options.lockstep, directory, options.steps, options.every)
            stalls.append(sum(record["stall_s"] for record in written))
            writes.append(sum(record["seconds"] for record in written))
            extra.append(seconds - plain)
            allowed.append(stalls[-1] + 0.1 * writes[-1])
            plain_s.append(plain)
    middle = statistics.median
    print(json.dumps({"what": "asynchronous checkpoints", "median_s": middle(plain_s),
                      "extra_s": middle(extra), "allowed_s": middle(allowed),
                      "stalls_s": middle(stalls), "writes_s": middle(writes)}))


main()
