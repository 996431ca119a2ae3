"""lockstep bisect: the first step after which two runs have other weights, and what of that step and of its setting
differs: planted differences, each found and named. LOCKSTEP_LONG=1 plants all of them."""
import json
import shutil

import h5py
import numpy as np

from harness import DATA, LONG, Scratch, check, run, some, train

STEPS = 24
OPTIONS = ["--train.steps", STEPS, "--train.epochs", 0, "--run.replicas", 4, "--data.validation", "",
           "--checkpoint.every-steps", 10, "--checkpoint.keep", 9, "--monitor.weight-hash", "true",
           "--monitor.log-every", 4]


def bisect(a, b, ranks=0):
    return run(["bisect", a, b], ranks)


def with_hash(source, target, step, value):
    """A copy of a run whose record of one step, and of those after it, says other weights."""
    shutil.copytree(source, target)
    path = target / "metrics.jsonl"
    lines = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["event"] == "step" and record["step"] >= step:
            record["weight_hash"] = value
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return target


def changed_set(scratch, number):
    """The training set with one pixel of one sample that is another."""
    path = scratch / f"changed-{number}.h5"
    if not path.exists():
        with h5py.File(DATA / "train.h5") as source, h5py.File(path, "w") as target:
            for name in ("inputs", "targets"):
                target[name] = source[name][:]
            target["inputs"][number, 4, 4] ^= 1
            for name, value in source.attrs.items():
                target.attrs[name] = value
    return path


def plain_set(scratch):
    path = scratch / "plain.h5"
    if not path.exists():
        with h5py.File(DATA / "train.h5") as source, h5py.File(path, "w") as target:
            for name in ("inputs", "targets"):
                target[name] = source[name][:]
            for name, value in source.attrs.items():
                target.attrs[name] = value
    return path


PLANTED = {
    "rate": (["--optimizer.learning-rate", "0.0011"], ["first of the learning rate: ", "optimizer.learning-rate: "]),
    "seed": (["--run.seed", 8], ["first of the samples: ", "run.seed: "]),
    "decay": (["--optimizer.weight-decay", "0.001"], ["only the update", "optimizer.weight-decay: "]),
    "dropout": (["--model.dropout", "0.25"], ["first of the operators: ", "model.dropout: "]),
    "shuffle": (["--data.shuffle", "none"], ["first of the samples: ", "data.shuffle: "]),
    "smoothing": (["--task.label-smoothing", "0.1"], ["first of the losses: ", "task.label-smoothing: "]),
    "precision": (["--precision.compute", "bf16"], ["first of the operators: ", "precision.compute: "]),
}

with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, *OPTIONS, "--data.train", plain_set(scratch), ranks=1).expect(0)
    same = scratch / "same"
    train(same, *OPTIONS, "--data.train", plain_set(scratch), ranks=3).expect(0)
    bisect(whole, same).expect(0, "the weights are the same after each of 7 steps")

    for name, (options, phrases) in some(PLANTED.items(), 2):
        other = scratch / name
        train(other, *OPTIONS, "--data.train", plain_set(scratch), *options, ranks=2).expect(0)
        bisect(whole, other, ranks=2 if LONG else 0).expect(1, "the weights first differ after step ", *phrases)

    # A sample that is another: from the step on in which it is learnt for the first time.
    with_samples = run(["replay", whole, "--step", 15, "--dump", scratch / "15.h5"]).expect(0)
    with h5py.File(scratch / "15.h5") as file:
        number = int(file["samples/sample"][3])
    other = scratch / "sample"
    train(other, *OPTIONS, "--data.train", changed_set(scratch, number), ranks=2).expect(0)
    bisect(whole, other).expect(1, "recorded: the same weights up to step 12, others after step 16",
                                "the weights first differ after step 15;", f"sample {number} (", "first of the inputs")

    # Weights that turned over in one run: both decks and data give the same, and the record is not reproduced.
    flipped = with_hash(whole, scratch / "flipped", 16, "0123456789abcdef")
    bisect(whole, flipped, ranks=2).expect(
        1, "done again here, both runs have the same weights", f"{whole}: as it has recorded",
        f"{flipped}: it has recorded other weights from step 16 on")
    # Another build of LibTorch, as the records say.
    path = flipped / "metrics.jsonl"
    path.write_text(path.read_text().replace("LibTorch 2", "LibTorch 1"))
    bisect(whole, flipped).expect(1, "computes_with: ", "LibTorch 1.")

    # Runs that have recorded no hashes are done again.
    for name, options in (("silent", []), ("silent-other", ["--run.seed", 9])):
        train(scratch / name, *OPTIONS, "--data.train", plain_set(scratch), *options, "--monitor.weight-hash", "false",
              ranks=1).expect(0)
    bisect(scratch / "silent", whole).expect(0, "no hash of weights that both have")
    bisect(scratch / "silent", scratch / "silent-other").expect(1, "the weights first differ after step 1;")
    # Records may hold anything.
    with open(flipped / "metrics.jsonl", "a") as records:
        records.write('{"event":7}\n{"event":"step","step":13.5}\n{"event":"start","devices":5,"hosts":{"a":1}}\n')
    bisect(whole, flipped).expect(1, "it has recorded other weights from step 16 on")
    bisect(whole, scratch).expect(66)
    bisect(whole, DATA / "train.h5").expect(66)
    check(run(["bisect", whole]).code == 64, "two runs")
