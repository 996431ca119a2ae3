"""Regressions with targets in large units: normalised by what the training set says, they are learnt with the same bits
on any ranks and through a kill; metrics, predictions and exported files are in the targets' own units, and what was
stored with the model counts, whatever the data file holds by then. What a constant answer reaches is told."""
import csv
import json
import re
import shutil

import h5py
import numpy as np

from harness import Scratch, check, check_same, checkpoints, records, run, some
from measured_runs import measured, same_on_any_ranks, write

SAMPLES = 260
ON = "normalise-targets = true"
MODEL = "name = mlp\nhidden = 16"


def homes(seed=0):
    """A price, an age and a distance, of unlike scales; float32, as training reads them."""
    dice = np.random.default_rng(seed)
    inputs = dice.normal(size=(SAMPLES, 4)).astype(np.float32)
    targets = np.stack([2e5 + 3e4 * inputs[:, :2].sum(1), 40 - 9 * inputs[:, 2], 0.02 * inputs[:, 3]], 1)
    return inputs, targets.astype(np.float32)


def note_of(checkpoint):
    with h5py.File(checkpoint) as file:
        return json.loads(json.loads(file["record/notes"][()])["facts"])


def near(a, b, by=1e-9):
    return np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=by, atol=0)


def constant_errors(targets, mean):
    off = targets.astype(np.float64) - mean
    return {"mae": np.abs(off).mean(), "rmse": np.sqrt((off ** 2).mean())}


def normalised(scratch):
    inputs, targets = homes()
    write(scratch, "homes", inputs=inputs, targets=targets, classes=["price", "age", "distance"])
    deck, directory, test, told = same_on_any_ranks(scratch, "homes", MODEL, "kind = regression\nmetrics = r2, rmse", ON)
    exact = targets.astype(np.float64)
    facts = note_of(checkpoints(directory)[-1])
    check(near(facts["target_mean"], exact.mean(0)) and near(facts["target_std"], exact.std(0)), f"{facts}")
    for ranks in (1, 3):
        killed = scratch / f"killed-{ranks}"
        run(["train", deck, "--run.directory", killed], ranks, env={"LOCKSTEP_INJECT": "kill:rank=0:step=6"})
        check(not records(killed, "end"), "it was killed")
        run(["train", deck, "--run.directory", killed], 2).expect(0, "resumed from")
        check_same(killed, directory, f"through a kill on {ranks} ranks")
        check(note_of(checkpoints(killed)[-1]) == facts, "with the same mean and deviation")
    # The loss is of normalised targets; what a constant answer reaches is in the targets' units, but for it.
    baseline = test["baseline"]
    check(near(baseline["loss"], 1, 1e-6), f"the variance of normalised targets is 1: {baseline}")
    for name, value in constant_errors(targets, exact.mean(0)).items():
        check(near(baseline[name], value, 1e-6), f"{name} of the mean: {baseline}, {value}")
    check(test["loss"] < 0.8 and test["rmse"] < baseline["rmse"], f"it learns, and beats the mean: {test}")
    log = (directory / "log.txt").read_text()
    check("predicting the mean of the training targets: test" in log and "no better" not in log, log)
    check("learning rates are made for" not in log and "targets are normalised by" in log, "no warning of scales")
    # predict, ONNX and C give the targets' own units; TorchScript gives what the model learnt.
    newest = checkpoints(directory)[-1]
    given = predicted(scratch, newest, scratch / "homes.h5")
    check(near(np.abs(given - exact).mean(0), [test[f"mae.{name}"] for name in ("price", "age", "distance")], 1e-4),
          "predictions have the errors that are measured")
    for name in ("homes.onnx", "homes.c"):
        run(["checkpoint", "export", newest, scratch / name]).expect(0)
    run(["export", "check", scratch / "homes.c", "--data", scratch / "homes.h5"]).expect(0)
    run(["checkpoint", "quantise", newest, scratch / "int8.h5", "--data.train", scratch / "homes.h5"]).expect(0)
    run(["evaluate", scratch / "int8.h5", "--data.test", scratch / "homes.h5"]).expect(0, "mae")
    run(["checkpoint", "export", newest, scratch / "homes.pt"]).expect(0, "multiply them by target_std")
    lines = run(["evaluate", deck, directory, "--worst", 3]).expect(0).text
    check(re.search(r"^  target +mae", lines, re.M), f"a table of targets: {lines}")
    pairs = re.findall(r"truth ([-0-9.e+]+), .*predicted ([-0-9.e+]+), ", lines)
    check(len(pairs) == 3 and all(abs(float(a) / float(b) - 1) < 0.9 for a, b in pairs), f"both in one unit: {lines}")
    changed_file(scratch, deck, directory, facts, given)


def predicted(scratch, model, data):
    out = scratch / "given.csv"
    run(["predict", model, data, "--output", out, "--overwrite"], 2).expect(0)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    return np.array([[float(row[name]) for name in ("price", "age", "distance")] for row in rows])


def changed_file(scratch, deck, directory, facts, given):
    """The file of the training set holds other targets by now: dollars became cents."""
    inputs, targets = homes()
    (scratch / "homes.h5").rename(scratch / "old.h5")
    write(scratch, "homes", inputs=inputs, targets=targets * 100, classes=["price", "age", "distance"])
    newest = checkpoints(directory)[-1]
    check(np.array_equal(predicted(scratch, newest, scratch / "homes.h5"), given), "predict asks no data file")
    told = run(["evaluate", deck, newest, "--data.test", scratch / "old.h5"]).expect(0).text
    check(f"mae {measured(directory)[-1]['mae']:.6f}" in told, f"neither does evaluate: {told}")
    longer = ["train", deck, "--run.directory", directory, "--train.steps", 12]
    run(longer).expect(64, "data.train is not what")
    copy = scratch / "copy"
    shutil.copytree(directory, copy)
    run([*longer[:3], copy, *longer[4:], "--force"]).expect(0)
    check(note_of(checkpoints(copy)[-1])["target_mean"] == facts["target_mean"], "nor does a resume, if it is forced")
    (scratch / "old.h5").rename(scratch / "homes.h5")
    # A model that is trained further keeps its units, or is warned of.
    further = ["train", deck, "--model.weights", newest, "--train.steps", 4, "--data.validation", "20 %"]
    run([*further, "--run.directory", scratch / "further"]).expect(0, f"of the training data of {newest}")
    check(note_of(checkpoints(scratch / "further")[-1])["target_mean"] == facts["target_mean"], "the model's units")
    run([*further, "--run.directory", scratch / "raw", "--data.normalise-targets", "false"]).expect(
        0, "warning: the targets of the training data of")
    for words, code, phrase in some((
            (("--data.normalise-targets", "false"), 64, "data.normalise-targets"),
            (("--task.kind", "classification", "--run.directory", scratch / "new", "--task.metrics", ""), 64, "only the real values"),
            (("--privacy.noise", 1, "--privacy.key", scratch / "key", "--run.directory", scratch / "new"), 64, "would tell of the samples"),
            (("--distill.teacher", newest, "--data.normalise-targets", "false", "--run.directory", scratch / "new"),
             64, "its targets were normalised by the mean"),
            (("--distill.teacher", newest, "--run.directory", scratch / "taught"), 0, "")), 3):
        run([*longer, *words]).expect(code, phrase)


def plain(scratch):
    """Without the key, the same run is warned of, and beaten by the mean."""
    inputs, targets = homes(1)
    write(scratch, "plain", inputs=inputs, targets=targets)
    _, directory, test, _ = same_on_any_ranks(scratch, "plain", MODEL, "kind = regression")
    log = (directory / "log.txt").read_text()
    check("Set data.normalise-targets = true" in log, "the warning names the key")
    check("warning: the best model is no better than predicting the mean of the training targets" in log, log[-2000:])
    errors = constant_errors(targets, targets.astype(np.float64).mean(0))
    check(near(test["baseline"]["rmse"], errors["rmse"], 1e-6) and
          near(test["baseline"]["loss"], errors["rmse"] ** 2, 1e-6), f"{test}, {errors}")
    check("target_mean" not in note_of(checkpoints(directory)[-1]), "and the facts are as they were")


def shares(scratch):
    """A share that is kept for validation counts in no mean; what does not vary is only shifted."""
    inputs, targets = homes(2)
    targets[:, 1] = 7.7
    write(scratch, "share", inputs=inputs, targets=targets)
    deck = scratch / "share.ini"
    deck.write_text(f"[run]\nreplicas = 6\ndevice = cpu\n[data]\ntrain = {scratch}/share.h5\nvalidation = 30 %\nbatch = 5\n{ON}\n"
                    f"[model]\n{MODEL}\n[task]\nkind = regression\n[train]\nsteps = 4\nvalidate-every = 2\n"
                    "[monitor]\nprogress = plain\nplots = false\ntensorboard = false\n")
    facts, found = [], []
    for ranks in (1, 2, 3):
        directory = scratch / f"share-{ranks}"
        run(["train", deck, "--run.directory", directory], ranks).expect(
            0, "value 1 does not vary in the training set")
        facts.append(note_of(checkpoints(directory)[-1]))
        found.append(measured(directory))
        check_same(directory, scratch / "share-1", f"{ranks} ranks")
    check(all(each == facts[0] for each in facts) and all(each == found[0] for each in found), "the same on any ranks")
    check(facts[0]["target_std"][1] == 1 and near(facts[0]["target_mean"][1], np.float32(7.7)), f"{facts[0]}")
    check(not near(facts[0]["target_mean"][0], targets[:, 0].astype(float).mean(), 1e-6), "of a part of the samples")
    one = targets.copy()
    one[::3, 0] = np.nan
    write(scratch, "nan", inputs=inputs, targets=one)
    run(["train", deck, "--data.train", scratch / "nan.h5", "--run.directory", scratch / "nan"], 2).expect(
        65, "the mean of its targets is not finite")


def classes(scratch):
    """Always the most frequent class of the training set."""
    dice = np.random.default_rng(4)
    labels = {"train": dice.choice(3, SAMPLES, p=(0.2, 0.5, 0.3)), "test": dice.choice(3, 90, p=(0.5, 0.2, 0.3))}
    for name, values in labels.items():
        write(scratch, name, inputs=dice.normal(size=(len(values), 3)).astype(np.float32), targets=values.astype(np.int64),
              classes=["cat", "dog", "eel"])
    deck = scratch / "classes.ini"
    deck.write_text(f"[run]\nreplicas = 2\ndevice = cpu\ndirectory = {scratch}/classes\n[data]\ntrain = {scratch}/train.h5\n"
                    f"validation = {scratch}/test.h5\nbatch = 16\n[model]\n{MODEL}\n[train]\nsteps = 4\n"
                    "[monitor]\nprogress = plain\nplots = false\ntensorboard = false\n")
    run(["plan", deck, "--task.kind", "regression", "--run.directory", scratch / "numbers"]).expect(
        0, "warning: the targets of data.train are the numbers of its ")
    run(["train", deck], 2).expect(0, "always predicting dog, the most frequent class of the training set: validation")
    baseline = records(scratch / "classes", "validation")[-1]["baseline"]
    check(near(baseline["accuracy"], (labels["test"] == 1).mean()) and "loss" not in baseline, f"{baseline}")


with Scratch() as scratch:
    for part in (normalised, shares, *some((plain, classes))):
        part(scratch)
