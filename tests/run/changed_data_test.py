"""Data that were changed: no run continues with them in silence, and none is done on data whose checksums are wrong."""
import os
import shutil
import time

import h5py
import numpy as np

from harness import DATA, LONG, Scratch, check, checkpoints, flip, records, run, train

N = 300


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


with Scratch() as scratch:
    theirs = scratch / "theirs.h5"
    foreign(theirs)
    few = ("--run.replicas", 2, "--data.validation", "", "--data.global-batch", 20, "--train.epochs", 9)

    def begin(directory, *options):
        train(scratch / directory, *few, *options, "--train.steps", 4).expect(0)

    def go_on(directory, *options):
        return train(scratch / directory, *few, *options, "--train.steps", 8)

    cases = [("x", "x", "y", ()), ("packed", "packed", "y", ()),
             ("z", "x", "z", ("--task.kind", "regression", "--model.name", "mlp", "--model.hidden", "8", "--task.metric", "loss"))]
    for changed, inputs, targets, more in cases:
        for sample in (0, 133) if LONG else (133,):
            mine = scratch / f"{changed}-{sample}.h5"
            shutil.copyfile(theirs, mine)
            options = ("--data.train", mine, "--data.inputs", inputs, "--data.targets", targets, *more)
            begin(mine.stem, *options)
            edit(mine, changed, sample)
            go_on(mine.stem, *options).expect(64, "data.train is not what", f"dataset {changed} of ", mine.name, "--force")
    go_on(mine.stem, *options, "--force").expect(0)

    # An edit that kept the file's time shows where its sample is looked at, or when the walk gets there.
    options = ("--data.train", theirs, "--data.inputs", "x", "--data.targets", "y")
    begin("hidden", *options)
    edit(theirs, "x", 133, keep_time=True)
    go_on("hidden", *options).expect(64, "dataset x of ", "theirs.h5")
    foreign(theirs)

    # Another time, another place, another name: the same data.
    begin("moved", *options)
    os.utime(theirs, (time.time() + 100, time.time() + 100))
    go_on("moved", *options).expect(0)
    shutil.copyfile(theirs, scratch / "copy.h5")
    train(scratch / "moved", *few, *options, "--data.train", scratch / "copy.h5", "--train.steps", 12).expect(0)
    edit(scratch / "copy.h5", "x", 133)
    train(scratch / "moved", *few, *options, "--data.train", scratch / "copy.h5", "--train.steps", 16).expect(
        64, "dataset x of ", "copy.h5")
    train(scratch / "moved", *few, *options, "--data.train", scratch / "copy.h5", "--train.steps", 16, "--force").expect(
        0, "other contents of data.train")
    check(records(scratch / "moved", "resume")[-1]["forced"] == ["other contents of data.train"], "it is on record")

    # Names that changed places are another order of classes; a checkpoint that tells of none continues.
    named = scratch / "classes.h5"

    def name(*names):
        with h5py.File(named, "r+") as file:
            file.attrs["classes"] = names

    shutil.copyfile(theirs, named)
    options = ("--data.train", named, "--data.inputs", "x", "--data.targets", "y")
    begin("unnamed", *options)
    name("a", "b", "c", "d", "e")
    go_on("unnamed", *options).expect(0)
    begin("classes", *options)
    name("a", "b", "d", "c", "e")
    go_on("classes", *options).expect(64, "data.train is not what", "its class 2 is d, but was c")
    go_on("classes", *options, "--force").expect(0, "other contents of data.train")

    # Weights, too, are of the data.
    heavy = scratch / "heavy.h5"
    shutil.copyfile(theirs, heavy)
    with h5py.File(heavy, "r+") as file:
        file["weights"] = np.ones(N)
    options = ("--data.train", heavy, "--data.inputs", "x", "--data.targets", "y", "--data.sample-weights", "weights")
    begin("heavy", *options)
    with h5py.File(heavy, "r+") as file:
        file["weights"][7] = 3.0
    go_on("heavy", *options).expect(64, "data.train is not what", "dataset weights of ", "heavy.h5")

    # A file of ours: an edit in place leaves its checksums as they were, and no run is done with it.
    ours = scratch / "ours.h5"
    run(["data", "import", "hdf5", theirs, ours, "--inputs", "x", "--targets", "y"]).expect(0)
    with h5py.File(ours) as file:
        at = file["inputs"].id.get_offset() + 4 * 784 * 200 + 2
    begin("ours", "--data.train", ours)
    shutil.copyfile(ours, scratch / "good.h5")
    flip(ours, at)
    run(["data", "verify", ours]).expect(65, "inputs has changed")
    wrong = ("ours.h5", "dataset inputs, block 0", "its checksum is wrong")
    go_on("ours", "--data.train", ours).expect(65, *wrong)  # damage, which the file itself shows
    train(scratch / "fresh", *few, "--data.train", ours, "--train.steps", 4).expect(65, *wrong)
    for cache in ("memory", f"local:{scratch}/near"):
        train(scratch / cache.split(":")[0], *few, "--data.train", ours, "--train.steps", 4, "--data.cache", cache).expect(
            65, "dataset inputs, block 0", "its checksum is wrong")
    with h5py.File(scratch / "links.h5", "w") as file:
        file["inputs"], file["targets"] = h5py.ExternalLink("ours.h5", "inputs"), h5py.ExternalLink("ours.h5", "targets")
    train(scratch / "linked", *few, "--data.train", scratch / "links.h5", "--train.steps", 4).expect(65, *wrong)
    begin("whole", "--data.train", scratch / "good.h5")
    newest = checkpoints(scratch / "whole")[-1]
    run(["evaluate", scratch / "whole/deck.ini", newest, "--data.test", scratch / "good.h5"], 2).expect(0)
    run(["evaluate", scratch / "whole/deck.ini", newest, "--data.test", ours], 2).expect(65, *wrong)

    # Other samples to validate on: values before and after are not compared.
    shutil.copyfile(theirs, scratch / "judge.h5")
    judged = ("--data.train", theirs, "--data.inputs", "x", "--data.targets", "y", "--data.validation", scratch / "judge.h5",
              "--data.global-batch", 60, "--run.replicas", 2, "--train.epochs", 9)
    for steps, told in ((5, ""), (10, "")):
        same = train(scratch / "judged", *judged, "--train.steps", steps).expect(0, told)
        check("chosen again" not in same.text, same.text)
    edit(scratch / "judge.h5", "x", 299)
    train(scratch / "judged", *judged, "--train.steps", 15).expect(
        0, "warning: data.validation has changed", "new best")

    # Values that were never written are told of: whole datasets, and chunks of one.
    with h5py.File(scratch / "gaps.h5", "w") as file:
        file["y"] = np.arange(N) % 3
        file.create_dataset("x", (N, 1, 28, 28), "f4")
        file.create_dataset("chunks", (N, 1, 28, 28), "f4", chunks=(50, 1, 28, 28))[:250] = 1
        file.create_dataset("full", (N, 1, 28, 28), "f4", chunks=(50, 1, 28, 28))[:] = 1
    for inputs in ("x", "chunks", "full"):
        gaps = train(scratch / inputs, "--data.train", scratch / "gaps.h5", "--data.validation", "", "--data.inputs", inputs,
                     "--data.targets", "y", "--data.global-batch", 20, "--train.steps", 1).expect(0)
        told = f"warning: values of dataset {inputs} of {scratch}/gaps.h5 were never written" in gaps.text
        check(told == (inputs != "full"), gaps.text)
        verified = run(["data", "verify", scratch / "gaps.h5", "--inputs", inputs, "--targets", "y"]).expect(0)
        check(("were never written" in verified.text) == told, verified.text)

    # What is not samples has a checksum as well: the names of the classes.
    named = scratch / "named.h5"
    shutil.copyfile(DATA / "test.h5", named)
    flip(named, named.read_bytes().index(b"Sneaker"))
    train(scratch / "named", "--data.train", named, "--data.validation", "", "--train.steps", 2).expect(
        65, "named.h5")
print("changed data: seen in every field and place, and never where they are the same")
