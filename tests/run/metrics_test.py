"""Metrics that a deck asks for: the same to the last digit on any number of ranks and after a resume,
told by lockstep evaluate, the report and the records; what cannot be measured is refused."""
import json
import re
import struct

import numpy as np

from harness import Scratch, check, records, run, some
from measured_runs import same_on_any_ranks, write

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR"


def classes(scratch):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 500)
    inputs = generator.normal(size=(500, 6)) + 1.5 * np.eye(6)[labels]
    write(scratch, "classes", inputs=inputs.astype(np.float32), targets=labels.astype(np.int64),
          classes=["a", "b", "c", "d"])
    deck, directory, test, told = same_on_any_ranks(
        scratch, "classes", "name = mlp\nhidden = 16", "kind = classification\nmetric = auroc\n"
        "metrics = top-2, kappa, balanced-accuracy, precision, recall, average-precision, "
        "calibration-error, confusion")
    counts = np.array(test["confusion"]["counts"])
    check(test["confusion"]["classes"] == ["a", "b", "c", "d"] and counts.sum() == 500 and
          (counts.sum(1) == np.bincount(labels)).all(), "a row of the matrix is a true class")
    check(abs(np.trace(counts) / 500 - test["accuracy"]) < 1e-12, "its diagonal is what is right")
    recall = (np.diag(counts) / counts.sum(1)).mean()
    check(abs(recall - test["balanced-accuracy"]) < 1e-12, "so is the balanced accuracy")
    check(records(directory, "end")[0]["best_metric"] == "auroc", "auroc chose the best model")
    told.expect(0, "a row for each true class", *(str(row[0]) for row in counts))
    run(["report", directory, "--output", scratch / "report"]).expect(0)
    check("a row for each true class" in (scratch / "report/report.md").read_text(), "so does the report")
    plain = run(["evaluate", deck, directory, "--task.metrics", "", "--task.metric", ""]).expect(0)
    check("kappa" not in plain.text and "confusion" not in plain.text, "nothing else is told unasked")
    worst(deck, directory, labels, test)
    for options, code, phrase in some((
            (("--task.metrics", "kapa"), 64, "Did you mean kappa"),
            (("--task.metrics", "top-4"), 64, "there are 4 classes"),
            (("--task.metric", "confusion"), 64, "confusion is a table")), 3):
        run(["train", deck, *options, "--run.directory", scratch / "wrong"]).expect(code, phrase)


def worst(deck, directory, labels, test):
    """The samples with the largest losses are the same on any ranks, and all of them make up the loss."""
    few = [[line for line in run(["evaluate", deck, directory, "--worst", 4], ranks=count).expect(0).text.splitlines()
            if line.startswith("  sample ")] for count in (1, 3)]
    check(few[0] == few[1] and len(few[0]) == 4, f"the worst are the same on 1 and 3 ranks: {few}")
    lines = [re.fullmatch(r"  sample (\d+) \(.*classes.h5, (\d+)\): loss ([0-9.]+), truth (\w), predicted (\w) .*", line)
             for line in run(["evaluate", deck, directory, "--worst", 500], ranks=2).expect(0).text.splitlines()
             if line.startswith("  sample ")]
    losses = [float(line[3]) for line in lines]
    check(losses == sorted(losses, reverse=True) and abs(np.mean(losses) - test["loss"]) < 1e-5,
          "the losses of all samples, largest first, have the mean that is told")
    check(all(line[1] == line[2] and line[4] == "abcd"[labels[int(line[1])]] for line in lines), "with their classes")
    right = sum(line[4] == line[5] for line in lines) / 500
    check(abs(right - test["accuracy"]) < 1e-9, "and what was predicted")
    run(["evaluate", deck, directory, "--worst", 4, "--worst-output", directory / "worst"]).expect(0, "they are in ")
    about, *written = map(json.loads, (directory / "worst/worst.jsonl").read_text().splitlines())
    check([(each["sample"], each["truth"], "picture" in each) for each in written] ==
          [(int(line[1]), line[4], False) for line in lines[:4]], f"written, without pictures: {written}")


def labels(scratch):
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 2, (300, 5)).astype(np.uint8)
    inputs = generator.normal(size=(300, 5)) + truth
    write(scratch, "labels", inputs=inputs.astype(np.float32), targets=truth)
    _, _, test, _ = same_on_any_ranks(scratch, "labels", "name = mlp\nhidden = 16",
                                      "kind = multi-label\nmetrics = auroc, average-precision")
    check(test["auroc"] > 0.6 and test["f1"] > 0.4 and "f1.4" in test, f"it learns: {test}")


def places(scratch):
    generator = np.random.default_rng(2)
    noise = generator.normal(size=(260, 8, 8))
    truth = (noise > 0).astype(np.uint8)
    truth[:, 0] = 255
    write(scratch, "places", inputs=noise[:, None].astype(np.float32), targets=truth,
          classes=["dark", "bright"])
    deck, _, test, _ = same_on_any_ranks(
        scratch, "places", "name = unet\nchannels = 4, 8",
        "kind = segmentation\nloss = both\nignore-label = 255\nmetrics = dice, confusion")
    check(sum(map(sum, test["confusion"]["counts"])) == 260 * 7 * 8, "a row of places does not count")
    check(abs((test["dice.dark"] + test["dice.bright"]) / 2 - test["dice"]) < 1e-12, "Dice is a mean")
    output = scratch / "places-1/worst"
    run(["evaluate", deck, scratch / "places-1", "--worst", 3, "--worst-output", output], ranks=2).expect(0)
    about, *samples = map(json.loads, (output / "worst.jsonl").read_text().splitlines())
    check(about["set"] == "test" and about["samples"] == 260 and len(samples) == 3, f"a line for each: {about} {samples}")
    # Next to each other: the sample of 8 x 8, enlarged; its classes; what was predicted.
    check(all((output / each["picture"]).read_bytes()[:24] == PNG + struct.pack(">II", 3 * 128 + 2 * 4, 128)
              for each in samples), "and a picture")
    for each in samples:
        share = 100 * (truth[each["sample"], 1:] == 1).mean()
        check(f"bright {share:.3g} %" in each["truth"], f"the truth is told by its shares: {each}")
        check(re.search(r"\([\d.]+ % of the positions are wrong\)", each["prediction"]), f"and the mistakes: {each}")
    same = scratch / "same"
    run(["evaluate", deck, scratch / "places-1", "--worst", 3, "--worst-output", same]).expect(0)
    check(all((same / file.name).read_bytes() == file.read_bytes() for file in output.iterdir()), "on any ranks")
    holes = truth[:16].copy()
    holes[3] = 255
    with h5py.File(scratch / "holes.h5", "w") as file:
        file["inputs"], file["targets"] = noise[:16, None].astype(np.float32), holes
    run(["evaluate", deck, scratch / "places-1", "--data.test", scratch / "holes.h5", "--worst", 16]).expect(
        0, "largest losses, 15 of 16 samples", "the loss leaves out all targets of 1 other sample, which has none")
    run(["evaluate", deck, scratch / "places-1", "--worst-output", scratch / "new"]).expect(64, "without --worst")
    run(["evaluate", deck, scratch / "places-1", "--worst", 3, "--worst-output", output]).expect(73, "of this name already")
    run(["train", deck, "--run.directory", scratch / "places-1", "--checkpoint.resume", "none", "--train.steps", 1]).expect(0)
    check(not output.exists(), "they are of the run that was started over")
    run(["train", deck, "--task.ignore-label", "none", "--run.directory", scratch / "wrong"]).expect(65, "label 255")


def reals(scratch):
    generator = np.random.default_rng(3)
    inputs = generator.normal(size=(300, 4))
    targets = np.stack([inputs.sum(1), inputs[:, 0] ** 2], 1)
    write(scratch, "reals", inputs=inputs.astype(np.float32), targets=targets.astype(np.float32),
          classes=["sum", "square"])
    _, _, test, _ = same_on_any_ranks(scratch, "reals", "name = mlp\nhidden = 16",
                                      "kind = regression\nmetrics = r2, rmse")
    variance = targets.astype(np.float32).astype(np.float64).var(0)
    expected = 1 - test["rmse.sum"] ** 2 / variance[0]
    check(abs(test["r2.sum"] - expected) < 1e-9, f"R2 is 1 - the error over the variance: {test}")


with Scratch() as scratch:
    for kind in [classes, *some((labels, places, reals))]:
        kind(scratch)
