"""Every model × precision × recomputed blocks × synchronised batch norm × mode either trains, with the same bits
in every mode, or is refused with 64 before the first step. CI draws some from LOCKSTEP_SEED; LOCKSTEP_LONG=1
walks the whole table."""
import itertools
import re

import h5py
import numpy as np
import torch
from torch import nn

from harness import LONG, Scratch, check, check_same, records, run, some
from small_models import (CLIPS, DECK, IMAGES, LABELS, MODELS, PLACES, SAMPLES, SOUNDS, VOXELS, WORDS, deck_of,
                          write_data)

STEPS, DRAWN = 2, 2
PRECISIONS, SWITCHES = ("fp32", "bf16", "fp16"), ("false", "true")
MODES = {"ddp": 2, "dp": 1}  # and their ranks


def end_of(scratch, name, precision, recompute, sync, mode):
    """The run's directory, or None where it is refused."""
    deck = deck_of(scratch, name, STEPS)
    directory = scratch / "-".join((name, precision, recompute, sync, mode))
    result = run(["train", deck, "--run.directory", directory, "--run.mode", mode,
                  "--precision.compute", precision, "--precision.gradient-checkpointing", recompute,
                  "--communication.sync-batch-norm", sync], ranks=MODES[mode], limit=600)
    what = f"{directory.name} ended with {result.code}: {result.text}"
    check(result.code in (0, 64), what)
    begun = directory.exists() and (directory / "metrics.jsonl").exists()
    steps = records(directory, "step") if begun else []
    check(len(steps) == (STEPS if result.code == 0 else 0), what)
    return directory if result.code == 0 else None


def walk(scratch, name, precision, recompute, sync):
    ends = {mode: end_of(scratch, name, precision, recompute, sync, mode) for mode in MODES}
    trained = [directory for directory in ends.values() if directory]
    if len(trained) == len(MODES):
        check_same(*trained, f"{name} {precision} {recompute} {sync}: all modes agree")
    print(name, precision, recompute, sync, {mode: bool(end) for mode, end in ends.items()}, flush=True)
    return bool(trained)


def does_not_fit(scratch):
    """A model and a task, or a model and samples, that are not made for each other."""
    def ends_with_64(data, model, phrases, options=()):
        deck = scratch / "unfit.ini"
        deck.write_text(DECK.format(data=f"train = {scratch}/{data}.h5", steps=STEPS, task=LABELS, model=model))
        run(["train", deck, "--run.directory", scratch / "unfit", "--checkpoint.resume", "none", *options],
            ranks=1).expect(64, *phrases)

    for case in some((
            (IMAGES, "name = unet\nchannels = 4, 8", ["the task needs an output of 2 dimensions, [samples, classes]"]),
            ("wide", f"name = script\nfile = {scratch}/net.pt", ["cannot take a batch of float32 [2, 1, 10, 10]"]),
            # What only LibTorch knows is told with the batch's shapes: statistics of one value.
            (IMAGES, "name = resnet\ndepth = 18\nstem = small",
             ["more than 1 value per channel", "inputs [1, 1, 8, 8] of Float, targets [1] of Long"],
             ("--data.batch", 1)))):
        ends_with_64(*case)


def not_made_for_it(scratch):
    """Any model with any task and any samples: it trains, or it is refused; nothing is written where it does not belong."""
    for outputs in (2, 5):  # of three classes
        torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(64, outputs))).save(str(scratch / f"net-{outputs}.pt"))
    models = {name: f"name = {name}\n" + own.format(scratch=scratch) for name, (own, _, _) in MODELS.items()}
    models |= {f"net-{n}": f"name = script\nfile = {scratch}/net-{n}.pt" for n in (2, 5)}
    with h5py.File(scratch / "reals.h5", "w") as file:
        file["inputs"] = np.random.default_rng(1).normal(size=(SAMPLES, 1, 8, 8)).astype("f4")
        file["targets"] = np.random.default_rng(2).normal(size=(SAMPLES, 2)).astype("f4")
    tasks = {"classification": (IMAGES, CLIPS, WORDS), "segmentation": (PLACES, VOXELS), "regression": ("reals",), "ctc": (SOUNDS,)}
    pairs = [(model, task, data) for model in models for task, sets in tasks.items() for data in sets]
    known = [("lstm-policy", "classification", IMAGES), ("net-5", "classification", IMAGES), ("net-2", "classification", IMAGES)]
    for at, (model, task, data) in enumerate(pairs if LONG else some(known) + some(pairs, 2)):
        deck = scratch / "pair.ini"
        deck.write_text(DECK.format(data=f"train = {scratch}/{data}.h5", steps=STEPS, task=f"kind = {task}",
                                    model=models[model]))
        result = run(["train", deck, "--run.directory", scratch / f"pair-{at}"], limit=600)
        check(result.code in (0, 64, 65), f"{model}, {task}, {data}: {result.code} {result.text}")
        check(result.code == 64 or (model, task, data) not in known, f"{model}, {task}, {data}: {result.text}")


with Scratch() as scratch:
    named = re.findall(r"^([\w-]+):", run(["models"]).expect(0).text, re.M)
    check(sorted(named) == sorted(MODELS), f"the table has every model: {named}")
    write_data(scratch)
    does_not_fit(scratch)
    not_made_for_it(scratch)
    rows = list(itertools.product(MODELS, PRECISIONS, SWITCHES, SWITCHES))
    if not LONG:
        # In float16 a CPU's convolutions take a minute for the millions of a resnet's parameters.
        rows = [row for row in rows if row[:2] != ("resnet", "fp16")]
        rows = some(rows, DRAWN)
    # What once failed: these are not refused either.
    for row in some((("resnet", "fp32", "true", "false"), ("unet", "fp32", "true", "false"),
                     ("lstm-policy", "fp16", "false", "false"), ("clstm-policy", "fp16", "false", "false"))):
        check(walk(scratch, *row), f"{row} trains")
        rows = [other for other in rows if other != row]
    trained = 0
    for row in rows:
        one = walk(scratch, *row)
        check(one or row[1:] != ("fp32", "false", "false"), f"{row[0]} trains as it is")
        trained += one
    print(f"{trained} of {len(rows)} rows train, the others are refused")
    check(not LONG or trained * 2 > len(rows), "most of the table trains")
