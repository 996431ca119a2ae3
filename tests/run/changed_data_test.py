"""Data that were changed: no run continues with them in silence, and none is done on data whose checksums are wrong.
The short form draws some of the changes, and the number of ranks."""
import os
import shutil
import time

import h5py
import numpy as np

from harness import DATA, DRAW, LONG, Scratch, check, checkpoints, flip, records, run, some, train

N = 300
RANKS = 2 if LONG else DRAW.choice((1, 2))
FEW = ("--run.replicas", 2, "--data.validation", "", "--data.global-batch", 20, "--train.epochs", 9)
OF_X = ("--data.inputs", "x", "--data.targets", "y")


def foreign(path):
    random = np.random.default_rng(5)
    with h5py.File(path, "w") as file:
        file["x"] = random.normal(size=(N, 1, 28, 28)).astype(np.float32)
        file["packed"] = file["x"][:]
        del file["packed"]
        file.create_dataset("packed", data=file["x"][:], chunks=(16, 1, 28, 28), compression="gzip")
        file["y"] = random.integers(0, 5, N)
        file["z"] = random.normal(size=(N, 3)).astype(np.float32)


def edit(path, name, sample, keep_time=False):
    """One value of one sample in place."""
    before = os.stat(path)
    with h5py.File(path, "r+") as file:
        values = file[name][sample]
        values[...] += 1
        file[name][sample] = values
    if keep_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def begin(directory, *options):
    train(directory, *FEW, *options, "--train.steps", 4, ranks=RANKS).expect(0)


def go_on(directory, *options, steps=8):
    return train(directory, *FEW, *options, "--train.steps", steps, ranks=RANKS)


def every_field(scratch, theirs):
    cases = [("x", "x", "y", ()), ("packed", "packed", "y", ()),
             ("z", "x", "z", ("--task.kind", "regression", "--model.name", "mlp", "--model.hidden", "8", "--task.metric", "loss"))]
    for changed, inputs, targets, more in some(cases):
        for sample in (0, 133) if LONG else (133,):
            mine = scratch / f"{changed}-{sample}.h5"
            shutil.copyfile(theirs, mine)
            options = ("--data.train", mine, "--data.inputs", inputs, "--data.targets", targets, *more)
            begin(scratch / mine.stem, *options)
            edit(mine, changed, sample)
            go_on(scratch / mine.stem, *options).expect(
                64, "data.train is not what", f"dataset {changed} of ", mine.name, "--force")
    go_on(scratch / mine.stem, *options, "--force").expect(0)


def kept_time(scratch, theirs):
    """An edit that kept the file's time shows where its sample is looked at, or when the walk gets there."""
    options = ("--data.train", theirs, *OF_X)
    begin(scratch / "hidden", *options)
    edit(theirs, "x", 133, keep_time=True)
    go_on(scratch / "hidden", *options).expect(64, "dataset x of ", "theirs.h5")


def other_place(scratch, theirs):
    """Another time, another place, another name: the same data."""
    options = ("--data.train", theirs, *OF_X)
    begin(scratch / "moved", *options)
    os.utime(theirs, (time.time() + 100, time.time() + 100))
    if LONG:
        go_on(scratch / "moved", *options).expect(0)
    shutil.copyfile(theirs, scratch / "copy.h5")
    options = (*options, "--data.train", scratch / "copy.h5")
    go_on(scratch / "moved", *options, steps=12).expect(0)
    edit(scratch / "copy.h5", "x", 133)
    go_on(scratch / "moved", *options, steps=16).expect(64, "dataset x of ", "copy.h5")
    go_on(scratch / "moved", *options, "--force", steps=16).expect(0, "other contents of data.train")
    check(records(scratch / "moved", "resume")[-1]["forced"] == ["other contents of data.train"], "it is on record")


def class_names(scratch, theirs):
    """Names that changed places are another order of classes; a checkpoint that tells of none continues."""
    named = scratch / "classes.h5"

    def name(*names):
        with h5py.File(named, "r+") as file:
            file.attrs["classes"] = names

    shutil.copyfile(theirs, named)
    options = ("--data.train", named, *OF_X)
    begin(scratch / "unnamed", *options)
    name("a", "b", "c", "d", "e")
    go_on(scratch / "unnamed", *options).expect(0)
    begin(scratch / "classes", *options)
    name("a", "b", "d", "c", "e")
    go_on(scratch / "classes", *options).expect(64, "data.train is not what", "its class 2 is d, but ", "calls it c")
    go_on(scratch / "classes", *options, "--force").expect(0, "other contents of data.train")


def sample_weights(scratch, theirs):
    """Weights, too, are of the data."""
    heavy = scratch / "heavy.h5"
    shutil.copyfile(theirs, heavy)
    with h5py.File(heavy, "r+") as file:
        file["weights"] = np.ones(N)
    options = ("--data.train", heavy, *OF_X, "--data.sample-weights", "weights")
    begin(scratch / "heavy", *options)
    with h5py.File(heavy, "r+") as file:
        file["weights"][7] = 3.0
    go_on(scratch / "heavy", *options).expect(64, "data.train is not what", "dataset weights of ", "heavy.h5")


def checksums(scratch, theirs):
    """A file of ours: an edit in place leaves its checksums as they were, and no run is done with it."""
    ours = scratch / "ours.h5"
    run(["data", "import", "hdf5", theirs, ours, "--inputs", "x", "--targets", "y"]).expect(0)
    with h5py.File(ours) as file:
        at = file["inputs"].id.get_offset() + 4 * 784 * 200 + 2
    begin(scratch / "ours", "--data.train", ours)
    shutil.copyfile(ours, scratch / "good.h5")
    flip(ours, at)
    run(["data", "verify", ours]).expect(65, "inputs has changed")
    wrong = ("dataset inputs, block 0", "the checksum of this block is wrong")
    # Damage, which the file itself shows.
    go_on(scratch / "ours", "--data.train", ours).expect(65, "ours.h5", *wrong)
    with h5py.File(scratch / "links.h5", "w") as file:
        file["inputs"], file["targets"] = h5py.ExternalLink("ours.h5", "inputs"), h5py.ExternalLink("ours.h5", "targets")
    for name, options, told in some((("fresh", ("--data.train", ours), ("ours.h5", *wrong)),
                                     ("memory", ("--data.train", ours, "--data.cache", "memory"), wrong),
                                     ("local", ("--data.train", ours, "--data.cache", f"local:{scratch}/near"), wrong),
                                     ("linked", ("--data.train", scratch / "links.h5"), ("ours.h5", *wrong)))):
        go_on(scratch / name, *options, steps=4).expect(65, *told)
    whole = scratch / "ours"
    if LONG:
        whole = scratch / "whole"
        begin(whole, "--data.train", scratch / "good.h5")
    newest = checkpoints(whole)[-1]
    for file, code, told in some(((scratch / "good.h5", 0, ()), (ours, 65, ("ours.h5", *wrong)))):
        run(["evaluate", whole / "deck.ini", newest, "--data.test", file, "--data.train", scratch / "good.h5"],
            RANKS).expect(code, *told)


def validation(scratch, theirs):
    """Other samples to validate on: values before and after are not compared."""
    shutil.copyfile(theirs, scratch / "judge.h5")
    judged = ("--data.train", theirs, *OF_X, "--data.validation", scratch / "judge.h5", "--data.global-batch", 60,
              "--run.replicas", 2, "--train.epochs", 9)
    for steps in (5, 10):
        same = train(scratch / "judged", *judged, "--train.steps", steps, ranks=RANKS).expect(0)
        check("chosen again" not in same.text, same.text)
    edit(scratch / "judge.h5", "x", 299)
    train(scratch / "judged", *judged, "--train.steps", 15, ranks=RANKS).expect(
        0, "warning: data.validation has changed", "new best")


def unwritten(scratch, _):
    """Values that were never written are told of: whole datasets, and chunks of one."""
    with h5py.File(scratch / "gaps.h5", "w") as file:
        file["y"] = np.arange(N) % 3
        file.create_dataset("x", (N, 1, 28, 28), "f4")
        file.create_dataset("chunks", (N, 1, 28, 28), "f4", chunks=(50, 1, 28, 28))[:250] = 1
        file.create_dataset("full", (N, 1, 28, 28), "f4", chunks=(50, 1, 28, 28))[:] = 1
    for inputs in some(("x", "chunks", "full")):
        gaps = train(scratch / inputs, "--data.train", scratch / "gaps.h5", "--data.validation", "", "--data.inputs", inputs,
                     "--data.targets", "y", "--data.global-batch", 20, "--train.steps", 1, ranks=RANKS).expect(0)
        told = f"warning: values of dataset {inputs} of {scratch}/gaps.h5 were never written" in gaps.text
        check(told == (inputs != "full"), gaps.text)
        verified = run(["data", "verify", scratch / "gaps.h5", "--inputs", inputs, "--targets", "y"]).expect(0)
        check(("were never written" in verified.text) == told, verified.text)


def attributes(scratch, _):
    """What is not samples has a checksum as well: the names of the classes."""
    named = scratch / "named.h5"
    shutil.copyfile(DATA / "test.h5", named)
    flip(named, named.read_bytes().index(b"Sneaker"))
    train(scratch / "named", "--data.train", named, "--data.validation", "", "--train.steps", 2, ranks=RANKS).expect(
        65, "named.h5")


for part in (every_field, checksums, *some((kept_time, other_place, class_names, sample_weights, validation, unwritten,
                                            attributes), 2)):
    with Scratch() as scratch:
        foreign(scratch / "theirs.h5")
        part(scratch, scratch / "theirs.h5")
    print(part.__name__.replace("_", " "))
print("changed data: seen in every field and place, and never where they are the same")
