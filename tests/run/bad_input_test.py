"""Every bad input: one clear message, its exit code, on 1, 2 and 4 ranks, within 10 seconds. The short form draws one
input for each exit code and the numbers of ranks."""
import json
import os
import shutil
import struct
import subprocess

import h5py
import numpy as np
from safetensors.numpy import load_file, save_file

from harness import DATA, DECK, LONG, Scratch, check, checkpoints, records, run, some, train

LIMIT = 100  # seconds: far below the time limits of a wait, far above what a busy machine needs


def small_set(path, samples):
    """An IDX pair of `samples` images, imported."""
    images, labels = path.with_suffix(".images"), path.with_suffix(".labels")
    images.write_bytes(struct.pack(">IIII", 0x803, samples, 28, 28) + bytes(samples * 784))
    labels.write_bytes(struct.pack(">II", 0x801, samples) + bytes(i % 10 for i in range(samples)))
    run(["data", "import", "idx", f"{images},{labels}", path]).expect(0)


def with_label(path, label):
    """The training set with one label out of range."""
    shutil.copyfile(DATA / "train.h5", path)
    listing = subprocess.run(["h5dump", "-p", "-H", "-d", "/targets", path], capture_output=True,
                             text=True).stdout
    offset = int(listing.split("OFFSET")[1].split()[0])
    with open(path, "r+b") as file:
        file.seek(offset + 8 * 17)
        file.write(struct.pack("<q", label))


def with_nan(source, path, sample):
    """The same images as float32, one pixel of one of them not a number."""
    with h5py.File(source) as good, h5py.File(path, "w") as file:
        images = good["inputs"][:4000].astype(np.float32) / 255
        images[sample, 3, 5] = np.nan
        file["inputs"], file["targets"] = images, good["targets"][:4000]
        file.attrs["classes"] = good.attrs["classes"]


with Scratch() as scratch:
    cut = scratch / "cut.h5"
    shutil.copyfile(DATA / "train.h5", cut)
    os.truncate(cut, 20_000_000)
    label = scratch / "label.h5"
    with_label(label, 10)
    few = scratch / "few.h5"
    small_set(few, 3)
    typo = scratch / "typo.ini"
    typo.write_text(f"include = {DECK}\n\n[optimizer]\nlearning-rat = 0.1\n")
    (scratch / "in-the-way").write_text("a file")

    def fails(code, *options, ranks, phrases, env=None):
        result = train(scratch / "run", *options, ranks=ranks, env=env)
        own = ranks == 1 and code in (64, 66)  # of one process neither rank nor phase is told
        result.expect(code, f"lockstep: root cause: {'' if own else 'rank'}", *phrases)
        check(result.text.count("root cause") == 1, f"one message: {result.text}")
        check(result.seconds < LIMIT, f"{result.seconds:.1f} s is too long: {options}")
        shutil.rmtree(scratch / "run", ignore_errors=True)

    def typed_wrong(ranks):
        run(["train", typo], ranks).expect(
            64, f"{typo}:4", "learning-rat ", "Did you mean optimizer.learning-rate?")

    def told_in_files(ranks):
        """What fails in the run is in its log and its records as well."""
        train(scratch / "logged", ranks=ranks,
              env={"LOCKSTEP_INJECT": "throw:rank=0:step=2"}).expect(70)
        check("root cause: rank 0" in (scratch / "logged/log.txt").read_text(), "log.txt tells")
        check(records(scratch / "logged", "failure")[0]["exit_code"] == 70, "metrics.jsonl tells")
        shutil.rmtree(scratch / "logged")

    def told_of_last(ranks):
        fails(70, ranks=ranks, env={"LOCKSTEP_INJECT": f"throw:rank={ranks - 1}:step=3"},
              phrases=[f"rank {ranks - 1} (", "in training at step 3", "an injected fault"])

    def given(code, options, *phrases):
        return lambda ranks: fails(code, *options, ranks=ranks, phrases=phrases)

    for of_one_code in (
            [typed_wrong,
             given(64, ["--data.batch", "none"], "data.batch = none", "whole number"),
             given(64, ["--model.nam", "cnn"], "model.nam ", "Did you mean model.name?"),
             given(64, ["--data.train", few, "--data.validation", ""], "3 training samples for 4 replicas")],
            [given(65, ["--data.train", cut], "cut.h5", "an HDF5 file that is cut off"),
             given(65, ["--data.train", label], "label 10 of sample 17", "label.h5")],
            [given(66, ["--data.train", scratch / "none.h5"], "none.h5")],
            [given(73, ["--run.directory", scratch / "in-the-way/run"], "in-the-way")],
            [told_in_files, told_of_last]):
        for bad_input in some(of_one_code):
            for ranks in some((1, 2, 4)):
                bad_input(ranks)

    # Wherever one rank alone fails, its phase and step are told.
    for fault, phase, code in some((("throw", "validation", 70), ("oom", "checkpoint:step=5", 71),
                                    ("oom", "the test", 71), ("throw", "the end", 70))):
        place = {"validation": "validation at step 10", "checkpoint:step=5": "writing a checkpoint at step 5"}
        fails(code, "--data.test", DATA / "test.h5", env={"LOCKSTEP_INJECT": f"{fault}:rank=1:phase={phase}"}, ranks=2,
              phrases=["rank 1 (", f", cpu) in {place.get(phase, phase + ' at step 30')}: "])

    # Values that are not numbers: of the training set its sample is named, of the validation set it
    # is said and no model is the best by it.
    for name in ("train", "test"):
        with_nan(DATA / f"{name}.h5", scratch / f"nan-{name}.h5", 234)
    for ranks in some((1, 2)):
        result = train(scratch / "nan", "--data.train", scratch / "nan-train.h5", "--data.validation", "",
                       "--train.steps", 0, "--train.epochs", 1, ranks=ranks)
        result.expect(65, "sample 234 of data.train is not finite", ", cpu) in ")
        shutil.rmtree(scratch / "nan")
    shutil.copy(scratch / "nan-train.h5", scratch / "tiny.h5")
    with h5py.File(scratch / "tiny.h5", "a") as file:
        images = file["inputs"][:]
        images[234] = 1
        file["inputs"][:] = images * 1e6
        file.attrs["mean"], file.attrs["std"] = [0.5], [1e-37]
    train(scratch / "tiny", "--data.train", scratch / "tiny.h5", "--data.validation", "", "--train.steps", 1, ranks=1).expect(
        65, "is not finite once it is normalized", "the attributes mean and std")
    train(scratch / "nan", "--data.train", scratch / "nan-train.h5", "--data.validation",
          scratch / "nan-test.h5", "--train.steps", 1, "--task.metric", "loss", ranks=2 if LONG else 1).expect(
              0, "the loss of the validation set is not finite", "loss nan",
              "warning: there is no best.h5, because loss was not finite in any validation")
    check(not (scratch / "nan/best.h5").exists(), "nothing is better than nothing")

    # What overflows before the first update is not blamed on the learning rate, with what is large, and what to do.
    digits = np.arange(64) % 10
    images = np.random.default_rng(1).choice(np.float32([-1, 1]), (64, 1, 28, 28))
    far, values = images * np.float32(3e38), np.linspace(0, 3e38, 64, dtype=np.float32)
    normalised = {"mean": [0.0], "std": [1.0]}
    run(["checkpoint", "export", checkpoints(scratch / "nan")[-1], scratch / "first.safetensors"]).expect(0)
    tensors = load_file(scratch / "first.safetensors")
    save_file({name: np.copysign(np.float32(3e38), tensor) for name, tensor in tensors.items()}, scratch / "far.safetensors")
    scale = "the inputs of this step reach 3e+38"
    regression = ("--task.kind", "regression", "--task.metric", "loss")
    for inputs, targets, attributes, options, *phrases in some((
            (far, digits, {}, (), f"{scale} (data.train has no mean and std)", "give data.train a mean and std"),
            (far, digits, normalised, (), f"{scale}. Check the mean and std of data.train"),
            (images, values, {}, regression, "the targets reach 3e+38. Set data.normalise-targets = true"),
            (far, digits, normalised, ("--precision.compute", "bf16"), scale),
            (images, digits, {}, ("--model.weights", scratch / "far.safetensors"), "the weights are those of", "name others")), 3):
        with h5py.File(scratch / "far.h5", "w") as file:
            file["inputs"], file["targets"] = inputs, targets
            file.attrs.update(attributes)
        text = train(scratch / "far", "--data.train", scratch / "far.h5", "--data.validation", "", *options, ranks=1).expect(
            64, "is not finite: no step has updated the weights yet, so the learning rate is not the cause; ", *phrases).text
        check("Lower optimizer" not in text, text)
        shutil.rmtree(scratch / "far")
    train(scratch / "far", "--optimizer.name", "sgd", "--optimizer.learning-rate", 1e30, ranks=1).expect(
        64, "training has diverged. Lower optimizer.learning-rate")

    # What is no part of a run is not written into its records.
    ranks = 2 if LONG else 1
    train(scratch / "done", "--train.steps", 2, ranks=ranks).expect(0)
    told = (scratch / "done/metrics.jsonl").read_text(), (scratch / "done/history.jsonl").read_text()
    train(scratch / "done", "--optimizer.learning-rate", 0.5, ranks=ranks).expect(64)
    check(told == ((scratch / "done/metrics.jsonl").read_text(),
                   (scratch / "done/history.jsonl").read_text()), "a refused start leaves no trace")
    train(scratch / "ends", env={"LOCKSTEP_INJECT": "nan:rank=0:step=2"}).expect(
        64, "root cause: rank 0 (", ", cpu) in training at step 2")
    attempt = json.loads((scratch / "ends/history.jsonl").read_text())
    check((attempt["reason"], attempt["exit_code"]) == ("failed", 64), f"how it ended: {attempt}")

    run(["checkpoint", "prune", scratch / "nowhere", "--keep", 1]).expect(66, "cannot prune", "it is not a directory")
    run(["data", "import", "hdf5", few, few]).expect(64, "is also the source of the import")
    run(["bench", "checkpoint", "--variant", "fast"]).expect(64, "there is no such value")

    mlp = scratch / "mlp.ini"
    mlp.write_text("[model]\nname = mlp\nhidden = 200000, 200000\n"
                   f"[data]\ntrain = {DATA / 'train.h5'}\n[train]\nsteps = 3\n")
    for ranks in some((1, 2, 4)):
        result = run(["train", mlp, "--run.directory", scratch / "mlp"], ranks).expect(
            71, "not enough memory to train this model", "per rank is available", "Choose a smaller model")
        check(result.seconds < LIMIT, f"{result.seconds:.1f} s is too long for a refused model")

    for option, value, ranks, phrase in some((("--run.replicas", 2, 4, "4 ranks for run.replicas = 2"),
                                              ("--data.global-batch", 66, 2, "data.global-batch = 66"))):
        fails(64, option, value, ranks=ranks, phrases=[phrase])

    # A full disk: the run ends, what was there before stays good.
    disk = scratch / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=640k", "tmpfs", disk]).returncode == 0
    if not mounted:
        print("a small file system cannot be mounted here: the full disk was not tried")
    else:
        try:
            for ranks in some((1, 2, 4)):
                # While a checkpoint of this net is written, it takes 554 KiB: the second would have to replace the only one.
                result = train(disk / f"run{ranks}", "--checkpoint.keep", 9, "--checkpoint.every-steps",
                               1, "--train.steps", 12, ranks=ranks)
                result.expect(74, "root cause", "no room")
                check(result.seconds < LIMIT, "a full disk is said at once")
                run(["checkpoint", "verify", disk / f"run{ranks}"]).expect(0)
                shutil.rmtree(disk / f"run{ranks}")
        finally:
            subprocess.run(["umount", disk], check=True)
