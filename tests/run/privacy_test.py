"""Differential privacy of training samples (DP-SGD): clipped sums are numpy's, noise is a Gaussian of the right width,
the bits are the same on 1 and 2 ranks and through a kill, epsilon is the accountant's, and what would break the
promise is refused. The short form draws refusals, one of the accountants and one of the runs with other weights."""
import math
import shutil

import h5py
import numpy
import torch

from harness import DATA, DECK, SEED, Scratch, check, check_same, records, run, some

PERCEPTRON = [f"layers/{layer}/{kind}" for layer in ("hidden1", "output") for kind in ("weight", "bias")]
SAMPLES = 96
DECK_TEXT = """[model]
name = mlp
hidden = 256
[optimizer]
name = sgd
learning-rate = 0.5
weight-decay = 0
[run]
replicas = 2
[data]
batch = {batch}
[train]
steps = {steps}
[checkpoint]
every-steps = 2
[monitor]
log-every = 1
tensorboard = false
plots = false
[privacy]
noise = {noise}
clip = {clip}
"""


def gaussian_epsilon(noise, steps, delta):
    """Of the Gaussian mechanism without sampling: its Renyi divergence is steps * order / (2 noise^2)."""
    orders = [1 + tenth / 10 for tenth in range(1, 100)] + list(range(11, 64)) + [128, 256, 512, 1024]
    return min(steps * order / (2 * noise**2) + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
               for order in orders)


def gaussian_delta(noise, steps, epsilon):
    """Of the Gaussian mechanism without sampling, exactly: Balle and Wang (2018), theorem 8."""
    mean = math.sqrt(steps) / noise
    below = [math.erfc((epsilon / mean - half) / math.sqrt(2)) / 2 for half in (mean / 2, -mean / 2)]
    return below[0] - math.exp(epsilon) * below[1]


def weights(directory, step):
    with h5py.File(directory / f"checkpoints/step-{step:08}.h5") as file:
        return {name: file["model"][name][()].astype("f8") for name in PERCEPTRON}


def clipped_mean(first, inputs, labels, clip):
    """The mean of the samples' gradients, each scaled to a norm of at most `clip`; and how many were scaled."""
    w1, b1, w2, b2 = (first[name] for name in PERCEPTRON)
    total, scaled = {name: 0 for name in PERCEPTRON}, 0
    for x, label in zip(inputs, labels):
        hidden = numpy.maximum(w1 @ x + b1, 0)
        scores = w2 @ hidden + b2
        away = numpy.exp(scores - scores.max())
        away /= away.sum()
        away[label] -= 1
        back = (away @ w2) * (hidden > 0)
        gradient = (numpy.outer(back, x), back, numpy.outer(away, hidden), away)
        norm = math.sqrt(sum((part**2).sum() for part in gradient))
        scaled += norm > clip
        for name, part in zip(PERCEPTRON, gradient):
            total[name] = total[name] + part * min(1, clip / norm) / len(labels)
    return total, scaled


class Runs:
    def __init__(self, scratch):
        self.scratch = scratch
        rng = numpy.random.default_rng(SEED)
        self.labels = rng.integers(0, 3, SAMPLES)
        self.inputs = (rng.normal(size=(SAMPLES, 40)) + 2 * numpy.eye(3, 40)[self.labels]).astype("f4")
        with h5py.File(scratch / "data.h5", "w") as file:
            file["inputs"], file["targets"] = self.inputs, self.labels
            file.attrs.update({"format": numpy.bytes_("lockstep-dataset"), "version": 1,
                               "classes": numpy.array([b"a", b"b", b"c"])})

    def train(self, name, *options, ranks=1, env=None, noise=1, clip=1, batch=8, steps=5):
        deck = self.scratch / f"{name}.ini"
        deck.write_text(DECK_TEXT.format(noise=noise, clip=clip, batch=batch, steps=steps))
        return run(["train", deck, "--data.train", self.scratch / "data.h5", "--run.directory", self.scratch / name,
                    "--privacy.key", self.scratch / "key", *options], ranks, env)


def sums_are_right(runs):
    """All samples in one step: without noise to speak of numpy's clipped mean, with noise that and a Gaussian."""
    whole = SAMPLES // 2  # of each of two replicas
    runs.train("clipped", noise=1e-6, clip=0.3, batch=whole, steps=1).expect(0, "with probability 1;")
    first, after = weights(runs.scratch / "clipped", 0), weights(runs.scratch / "clipped", 1)
    mean, scaled = clipped_mean(first, runs.inputs.astype("f8"), runs.labels, 0.3)
    check(scaled > SAMPLES / 2, "most are clipped")
    for name in PERCEPTRON:
        check(numpy.abs(first[name] - after[name] - 0.5 * mean[name]).max() < 1e-6, f"{name}: the clipped mean")
    runs.train("noisy", noise=2, clip=0.3, batch=whole, steps=1).expect(0)
    noisy = weights(runs.scratch / "noisy", 1)
    noise = numpy.concatenate([((after[name] - noisy[name]) * SAMPLES / 0.5 / 0.6).ravel() for name in PERCEPTRON])
    count = len(noise)
    check(abs(noise.mean()) < 5 / math.sqrt(count), f"mean of the noise {noise.mean()}")
    check(abs((noise**2).mean() - 1) < 5 * math.sqrt(2 / count), f"variance of the noise {(noise**2).mean()}")
    check(abs((noise**4).mean() - 3) < 5 * math.sqrt(96 / count), f"fourth moment {(noise**4).mean()}")


def bits_and_epsilon(runs):
    runs.train("one", steps=6).expect(0, "differential privacy: each step draws each of 96 samples with probability 0.1")
    runs.train("two", ranks=2, steps=6, env={"LOCKSTEP_INJECT": "kill:rank=1:step=4"})
    check(not (runs.scratch / "two/checkpoints/step-00000006.h5").exists(), "killed")
    runs.train("two", ranks=2, steps=6).expect(0, "epsilon is ")
    one, two = (weights(runs.scratch / name, 6) for name in ("one", "two"))
    check(all(numpy.array_equal(one[name], two[name]) for name in PERCEPTRON), "2 ranks and a kill: the same bits")
    runs.train("other", "--privacy.key", runs.scratch / "key2", steps=6).expect(0)
    check(not numpy.array_equal(one[PERCEPTRON[0]], weights(runs.scratch / "other", 6)[PERCEPTRON[0]]), "another key")
    runs.train("none", "--privacy.epsilon", 0.01).expect(64, "privacy.epsilon = 0.01", "after one step")
    for budget in some((budget_of_renyi, budget_of_prv)):
        budget(runs)


def budget_of_renyi(runs):
    """Without sampling epsilon has a formula; a budget ends training where it is reached."""
    within = gaussian_epsilon(4, 3, 1e-5)
    result = runs.train("budget", "--privacy.epsilon", within + 1e-6, noise=4, batch=SAMPLES // 2, steps=9)
    result.expect(0, "after 3 steps")
    epochs = records(runs.scratch / "budget", "epoch")
    check(len(epochs) == 3, "three steps, each an epoch")
    for step, epoch in enumerate(epochs, 1):
        check(abs(epoch["epsilon"] - gaussian_epsilon(4, step, 1e-5)) < 1e-6, f"epsilon after {step} steps")


def budget_of_prv(runs):
    """By the other accountant a budget allows more steps, and epsilon is close to where delta has a formula."""
    check(gaussian_epsilon(4, 4, 1e-5) > 2.1, "three steps by the first")
    runs.train("prv", "--privacy.epsilon", 2.1, "--privacy.accountant", "prv", noise=4, batch=SAMPLES // 2,
               steps=9).expect(0, "after 4 steps")
    for step, epoch in enumerate(records(runs.scratch / "prv", "epoch"), 1):
        check(gaussian_delta(4, step, epoch["epsilon"]) <= 1e-5, f"an upper bound after {step} steps")
        check(gaussian_delta(4, step, epoch["epsilon"] * 0.99) > 1e-5, f"a close one after {step} steps")


def epsilon_of_the_end(runs):
    """A run that ends within an epoch, or is shorter than one, tells the epsilon of all its steps."""
    for name, batch, steps in some((("within", 16, 8), ("short", 16, 2), ("whole", 16, 6))):
        name = f"end-{name}"
        runs.train(name, batch=batch, steps=steps, noise=1).expect(0)
        newest = sorted((runs.scratch / name / "checkpoints").glob("step-*.h5"))[-1]
        with h5py.File(newest) as file:
            told = dict(file["record"].attrs) if "epsilon" in file["record"].attrs else {
                key: file["record"][key][()] for key in ("epsilon", "delta")}
        end = records(runs.scratch / name, "end")[-1]
        check(end["step"] == steps and end["epsilon"] == told["epsilon"], f"{name}: {end} {told}")
        all_told = [record["epsilon"] for event in ("epoch", "checkpoint", "end")
                    for record in records(runs.scratch / name, event) if record["step"] == steps and "epsilon" in record]
        check(len(all_told) >= 2 and set(all_told) == {end["epsilon"]}, f"{name}: {all_told}")
        per_epoch = SAMPLES // (2 * batch)
        check(("unfinished_epoch" in end) == (steps % per_epoch > 0), f"{name}: {end}")
        if steps % per_epoch > 0:
            check(end["unfinished_epoch"]["samples"] == steps % per_epoch * 2 * batch, f"{name}: {end}")
            check(0 < end["unfinished_epoch"]["accuracy"] <= 1 and end["unfinished_epoch"]["loss"] > 0, f"{name}: {end}")
        words = f"epsilon {end['epsilon']:.4f} at delta 1e-05 after {steps} steps"
        run(["checkpoint", "info", runs.scratch / name]).expect(0, words)
        run(["watch", runs.scratch / name, "--once"]).expect(0, words)
        run(["report", runs.scratch / name, "--output", runs.scratch / f"{name}-report"]).expect(0, words)


def noise_of_other_weights(runs, start):
    """Two runs that differ only in what the file of model.weights holds do not get the same noise."""
    change = {}
    for name, step in ("near", 2), ("far", 6):
        shutil.copy(runs.scratch / f"one/checkpoints/step-{step:08}.h5", start)
        runs.train(name, "--model.weights", start, noise=2, clip=0.3, batch=SAMPLES // 2, steps=1).expect(0)
        first, after = (weights(runs.scratch / name, step) for step in (0, 1))
        change[name] = numpy.concatenate([(after[key] - first[key]).ravel() for key in PERCEPTRON])
    width = 0.5 * 2 * 0.3 / SAMPLES
    apart = (change["near"] - change["far"]).std()
    check(abs(apart / width - math.sqrt(2)) < 0.1, f"changes differ by {apart}, where noise has a width of {width}")


def noise_of_resumed_runs(runs, start):
    """A resumed run keeps the noise of the weights that it began with, whatever the file holds by then."""
    for name, steps in ("whole", (4,)), ("parts", (2, 4)):
        for last in steps:
            shutil.copy(runs.scratch / f"one/checkpoints/step-{4 if last == 4 and name == 'parts' else 2:08}.h5", start)
            runs.train(name, "--model.weights", start, steps=last).expect(0)
    whole, parts = (weights(runs.scratch / name, 4) for name in ("whole", "parts"))
    check(all(numpy.array_equal(whole[key], parts[key]) for key in PERCEPTRON), "the noise of the first weights")


def noise_of_other_samples(runs):
    """Two data sets without checksums that differ in one sample do not get the same noise: the difference of the two
    models would be that sample's gradient."""
    change, data = {}, runs.scratch / "data.h5"
    for name in ("with", "without"):
        runs.train(name, noise=2, clip=0.3, batch=SAMPLES // 2, steps=1).expect(0)
        first, after = (weights(runs.scratch / name, step) for step in (0, 1))
        change[name] = numpy.concatenate([(after[key] - first[key]).ravel() for key in PERCEPTRON])
        if name == "with":
            before = data.read_bytes()
            with h5py.File(data, "r+") as file:
                file["inputs"][7] = -file["inputs"][7]
    width = 0.5 * 2 * 0.3 / SAMPLES
    apart = (change["with"] - change["without"]).std()
    check(abs(apart / width - math.sqrt(2)) < 0.1, f"changes differ by {apart}, where noise has a width of {width}")
    runs.train("with", noise=2, clip=0.3, batch=SAMPLES // 2, steps=2).expect(64, "data.train is not what", "have changed")
    data.write_bytes(before)
    runs.train("with", noise=2, clip=0.3, batch=SAMPLES // 2, steps=2, ranks=2).expect(0)


class Branches(torch.nn.Module):
    """One layer for some samples, another for the others."""

    def __init__(self):
        super().__init__()
        self.some, self.others = torch.nn.Linear(40, 3), torch.nn.Linear(40, 3)

    def forward(self, x):
        if bool((x[:, 0] > 0).all()):
            return self.some(x)
        return self.others(x)


def parameters_of_some_samples(runs):
    """Which samples use a parameter is nobody's business: none of them ends a run."""
    torch.jit.script(Branches()).save(runs.scratch / "branches.pt")
    deck = runs.scratch / "branches.ini"
    deck.write_text(DECK_TEXT.format(noise=1, clip=1, batch=1, steps=8).replace(
        "name = mlp\nhidden = 256", f"name = script\nfile = {runs.scratch / 'branches.pt'}"))
    for ranks in (1, 2):
        run(["train", deck, "--data.train", runs.scratch / "data.h5", "--privacy.key", runs.scratch / "key",
             "--run.directory", runs.scratch / f"branches-{ranks}"], ranks).expect(0)
    check_same(runs.scratch / "branches-1", runs.scratch / "branches-2", "1 and 2 ranks")


def refused_keys(runs):
    for name, value, words in some((("optimizer.clip-norm", 1, "before noise is added"),
                                    ("precision.compute", "fp16", "skipped"),
                                    ("communication.compression", "bf16", "rounded"),
                                    ("communication.unused-parameters", "true", "of the updated parameters"),
                                    ("data.shuffle", "none", "independently"),
                                    ("task.class-weights", "balanced", "class counts"),
                                    ("data.sample-weights", "weights", "the same probability"),
                                    ("data.bucket-by-length", 64, "independently"),
                                    ("communication.sync-batch-norm", "true", "mixes the samples"),
                                    ("quantise.aware", "true", "calibrated on training samples"),
                                    ("data.batch", 49, "each step would draw 98 of 96"))):
        runs.train("refused", f"--{name}", value).expect(64, words)


def refused_settings(runs):
    run(["train", DECK, "--data.train", DATA / "train.h5", "--data.validation", "", "--run.directory",
         runs.scratch / "norm", "--optimizer.clip-norm", 0, "--privacy.noise", 1]).expect(64, "batch norm")
    runs.train("none", noise=1e-300).expect(64, "privacy.noise = 1e-300", "epsilon would be practically infinite")
    runs.train("none", "--privacy.delta", 0.7).expect(64, "privacy.delta")
    runs.train("unused", "--privacy.epsilon", 0.001, noise=0, steps=3).expect(0)
    check((runs.scratch / "unused/checkpoints/step-00000003.h5").exists(), "an epsilon without noise is ignored")


def changes_of_a_run(runs):
    runs.train("one", "--force", noise=2, steps=7).expect(64, "was changed, but epsilon holds only for an unchanged deck")
    runs.train("one", "--privacy.key", runs.scratch / "key2", "--force", steps=7).expect(64, "not the one that this run")


def odd_keys(runs):
    (runs.scratch / "nowhere").symlink_to(runs.scratch / "not mounted/key")
    runs.train("none", "--privacy.key", runs.scratch / "nowhere").expect(66, "nowhere")
    check((runs.scratch / "nowhere").is_symlink(), "a link is not replaced")
    (runs.scratch / "folder").mkdir()
    runs.train("none", "--privacy.key", runs.scratch / "folder").expect(65, "it is not a regular file")


def quantising(runs):
    trained = runs.scratch / "one/checkpoints/step-00000006.h5"
    run(["checkpoint", "quantise", trained, runs.scratch / "int8.h5"]).expect(64, "with privacy.noise", "--data.train FILE")
    run(["checkpoint", "quantise", trained, runs.scratch / "int8.h5", "--privacy.noise", 0]).expect(64, "with privacy.noise")
    shutil.copy(runs.scratch / "data.h5", runs.scratch / "public.h5")
    run(["checkpoint", "quantise", trained, runs.scratch / "int8.h5", "--data.train", runs.scratch / "public.h5"]).expect(0)


def lost_keys(runs):
    (runs.scratch / "key").chmod(0o644)
    runs.train("open").expect(64, "others may read")
    (runs.scratch / "key").unlink()
    runs.train("one", steps=8).expect(66, "key file back from a backup")


with Scratch() as scratch:
    runs = Runs(scratch)
    sums_are_right(runs)
    bits_and_epsilon(runs)
    epsilon_of_the_end(runs)
    for part in some((noise_of_other_weights, noise_of_resumed_runs)):
        part(runs, scratch / "start.h5")
    noise_of_other_samples(runs)
    parameters_of_some_samples(runs)
    refused_keys(runs)
    for part in some((refused_settings, changes_of_a_run, odd_keys, quantising)):
        part(runs)
    lost_keys(runs)
