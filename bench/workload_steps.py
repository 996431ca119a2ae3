#!/usr/bin/env python3
"""The time of a step of docs/workloads.md's decks on several numbers of devices, with random samples of their shapes,
since a borrowed machine has no network; and whether the weights are those of the first number.

    bench/workload_steps.py --lockstep "mpirun -n {ranks} build/lockstep" --device cuda --ranks 1 4
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

import h5py
import numpy

WINDOW = 5
# The decks, with the shape of a sample, its targets (a number of classes, or of real values) and their names.
DECKS = {
    "fashion_mnist": ((1, 28, 28), 10, True),
    "video": ((17, 32, 32), 7, True),
    "boxes": ((32, 32, 32, 1), 4, False),
}


def write_data(file, name, samples):
    shape, targets, is_label = DECKS[name]
    dice = numpy.random.default_rng(0)
    with h5py.File(file, "w") as made:
        made["inputs"] = dice.integers(0, 256, (samples, *shape)).astype("u1")
        made["targets"] = (dice.integers(0, targets, samples) if is_label else
                           dice.random((samples, targets)).astype("f4"))
        made.attrs["classes"] = [f"c{at}" for at in range(targets)]


def step_ms(options, name, ranks):
    """The median over windows of a run's steps, in milliseconds, after the first two."""
    run = options.work / f"{name}-{ranks}"
    data = options.work / f"{name}.h5"
    command = [*shlex.split(options.lockstep.format(ranks=ranks)), "train", options.inputs / f"{name}.ini",
               "--run.directory", run, "--run.device", options.device, "--run.replicas", max(options.ranks), "--data.train",
               data, "--data.validation", data, "--data.test", data, "--train.steps", options.steps, "--train.validate-every",
               options.steps, "--monitor.log-every", min(WINDOW, options.steps // 4), "--checkpoint.every-steps", 0, "--quiet"]
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr, timeout=options.limit)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [each for each in records if each["event"] == "step"]
    times = [1e3 * (now["elapsed_s"] - last["elapsed_s"]) / (now["step"] - last["step"])
             for last, now in zip(steps, steps[1:])]
    return statistics.median(times[min(2, len(times) - 1):])


def same_weights(options, name, ranks):
    told = subprocess.run([*map(str, shlex.split(options.lockstep.format(ranks=1))), "checkpoint", "diff",
                           str(options.work / f"{name}-{options.ranks[0]}"), str(options.work / f"{name}-{ranks}")],
                          capture_output=True, text=True)
    return told.returncode == 0 and "first differ" not in told.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", default="mpirun -n {ranks} build/lockstep", help="the command that starts the program")
    parser.add_argument("--inputs", type=pathlib.Path, default=pathlib.Path(__file__).parents[1] / "inputs")
    parser.add_argument("--decks", nargs="+", choices=list(DECKS), default=list(DECKS))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("workload_steps"))
    parser.add_argument("--device", default="cuda", help="as in run.device")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--limit", type=float, default=120, help="seconds of one run, at most")
    parser.add_argument("--table", type=pathlib.Path, help="file for the table; default: WORK/table.md")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    lines, good = ["| deck | devices | ms per step | speed-up | weights |", "|---|---|---|---|---|"], True
    for name in options.decks:
        write_data(options.work / f"{name}.h5", name, options.samples)
        first = None
        for ranks in options.ranks:
            taken = step_ms(options, name, ranks)
            first = first or taken
            same = ranks == options.ranks[0] or same_weights(options, name, ranks)
            good = good and same
            lines.append(f"| {name} | {ranks} | {taken:.2f} | {first / taken:.2f} | {'the same' if same else 'different'} |")
            (options.table or options.work / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
