"""Tasks and models beyond labels of images: reals of boxes, classes of places, weighted classes
of clips, several inputs. Each learns, has the same bits on 1, 2 and 4 ranks, and refuses what does
not fit. The short form draws two of them, on 1 and 2 ranks."""
import h5py
import numpy as np
import torch
from torch import nn

from harness import LONG, Scratch, check, check_same, records, run, some

RANKS = (1, 2, 4) if LONG else (1, 2)

COMMON = """
[run]
replicas = 4
device = cpu
[data]
train = {scratch}/{name}.h5
validation = {scratch}/{name}.h5
global-batch = 32
augment = {augment}
[model]
{model}
[task]
{task}
[optimizer]
learning-rate = {rate}
[checkpoint]
every-steps = 1000
[monitor]
log-every = 10
weight-hash = true
progress = plain
tensorboard = false
plots = false
[train]
steps = {steps}
validate-every = {steps}
"""


def write(scratch, name, fields, classes=()):
    with h5py.File(scratch / f"{name}.h5", "w") as file:
        for key, values in fields.items():
            file[key] = values
        if classes:
            file.attrs["classes"] = classes


def learns(scratch, name, model, task, steps, *, rate=0.003, augment="none", ranks=RANKS,
           options=()):
    deck = scratch / f"{name}.ini"
    deck.write_text(COMMON.format(scratch=scratch, name=name, model=model, task=task, steps=steps,
                                  rate=rate, augment=augment))
    for count in ranks:
        directory = scratch / f"{name}-{count}"
        run(["train", deck, "--run.directory", directory, *options], ranks=count).expect(0)
        check_same(scratch / f"{name}-{ranks[0]}", directory,
                   f"{name}: {ranks[0]} and {count} ranks agree")
    measured = records(directory, "validation")[-1]
    print(name, measured)
    other = run(["evaluate", deck, directory / "best.h5", *options], ranks=2).expect(0)
    other.expect(0, f"loss {measured['loss']:.6f}")
    return deck, measured


def boxes(scratch):
    """Two reals of a box of two channels: its mean and how rough it is."""
    generator = np.random.default_rng(0)
    mean, rough = generator.uniform(-1, 1, (2, 256))
    values = generator.normal(size=(256, 8, 8, 8, 2))
    values = values * (1 + rough[:, None, None, None, None]) + 2 * mean[:, None, None, None, None]
    write(scratch, "boxes", {"inputs": values.astype(np.float32),
                             "targets": np.stack([mean, rough], 1).astype(np.float32)},
          ["mean", "rough"])
    model = ("name = cnn3d\nchannels = 4, 8\ndownsample = pool\ntime-strides = 2\n"
             "activation = leaky-relu\nhead = flatten\nhidden = 16\nbound = 1.2\n"
             "layout = channels-last")
    deck, measured = learns(scratch, "boxes", model, "kind = regression", 60, rate=0.01,
                            augment="flip:0, flip:1, flip:2")
    check(measured["mae"] < 0.3, "an untrained model's error is 0.5")
    check(abs((measured["mae.mean"] + measured["mae.rough"]) / 2 - measured["mae"]) < 1e-9,
          "the error over all is the mean of those of each value")
    for option, value, code, phrase in some((
            ("--task.kind", "classification", 65, "classification needs one label for each sample"),
            ("--data.augment", "flap", 64, "data.augment"))):
        run(["train", deck, option, value, "--run.directory", scratch / "wrong"]).expect(code, phrase)


def places(scratch):
    """Bright and dark places of blurred noise."""
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(128, 16, 16))
    for axis in (1, 2):
        noise = noise + np.roll(noise, 1, axis) + np.roll(noise, -1, axis)
    inputs = np.stack([noise, generator.normal(size=noise.shape)], 1).astype(np.float32)
    labels = np.digitize(noise, [-3, 3]).astype(np.int64)
    write(scratch, "places", {"inputs": inputs, "targets": labels}, ["dark", "middle", "bright"])
    deck, measured = learns(scratch, "places", "name = unet\nchannels = 4, 8",
                            "kind = segmentation\nclass-weights = 2, 1, 2", 120, rate=0.02)
    check(measured["iou"] > 0.5, "an untrained model has an IoU of at most a third")
    scenes(scratch, deck, inputs, labels)
    for options, code, phrase in some((
            (("--data.augment", "gray"), 64, "needs pictures of 1 or 3 channels"),
            (("--task.classes", 2, "--task.class-weights", "none"), 65, "there are 2 classes"))):
        run(["train", deck, *options, "--run.directory", scratch / "wrong"]).expect(code, phrase)


def scenes(scratch, deck, inputs, labels):
    """The same places, each a file of its own without an extent for samples, are learnt alike."""
    (scratch / "scenes").mkdir()
    for number, fields in enumerate(zip(inputs, labels)):
        write(scratch, f"scenes/{number:03}", dict(zip(("climate/data", "climate/labels_0"), fields)),
              ["dark", "middle", "bright"])
    losses = []
    for name, options in (("places", []),
                          ("scenes", ["--data.train", scratch / "scenes/*.h5", "--data.inputs",
                                      "climate/data", "--data.targets", "climate/labels_0",
                                      "--data.sample-per-file", "true"])):
        directory = scratch / f"{name}-short"
        run(["train", deck, "--run.directory", directory, "--data.validation", "", "--train.steps",
             5, "--monitor.log-every", 1, *options], ranks=2 if LONG else 1).expect(0)
        losses.append([record["loss"] for record in records(directory, "step")])
    check(len(losses[0]) == 5 and losses[0] == losses[1], f"a sample a file: {losses}")


def clips(scratch):
    """Squares that move right, left or not at all, in unlike numbers."""
    generator = np.random.default_rng(0)
    counts = (200, 80, 40)
    labels = generator.permutation(np.repeat(np.arange(3), counts))
    frames = np.zeros((len(labels), 5, 16, 16), np.uint8)
    for clip, label in zip(frames, labels):
        top, left = generator.integers(4, 9, 2)
        for time, frame in enumerate(clip):
            at = left + (time * (1, -1, 0)[label]) % 16
            frame[top:top + 4, max(at, 0):at + 4] = 255
    write(scratch, "clips", {"inputs": frames, "targets": labels.astype(np.int64)},
          ["right", "left", "still", "up"]) # of the last there is none
    deck, measured = learns(scratch, "clips", "name = cnn3d\nchannels = 6, 12\ntime-strides = 1",
                            "kind = classification\nclass-weights = balanced\nmetric = f1", 60,
                            rate=0.01, augment="crop:1, noise:0.05")
    check(measured["f1"] > 0.7, "an untrained model's F1 is about a quarter")
    started = (scratch / "clips-1/log.txt").read_text()
    # n / (classes * count), as scikit-learn weights classes
    check("still: 40 (12.50 %), weight 2.6667" in started, "the table of classes has weights")
    check("up: 0 (0.00 %), weight 0.0000" in started and "has no sample of up" in started,
          "a class without samples is named, and weighs nothing")
    check(records(scratch / "clips-1", "end")[0]["best_metric"] == "f1", "F1 chose the best model")
    learnt = [records(scratch / f"clips-{ranks}", "epoch")[-1]["f1"] for ranks in RANKS]
    check(learnt[0] > 0.5 and len(set(learnt)) == 1, f"training is told by F1, too: {learnt}")
    write(scratch, "some", {"inputs": frames[labels < 2], "targets": labels[labels < 2]})
    run(["evaluate", deck, scratch / "clips-1/best.h5", "--data.validation", scratch / "some.h5"])\
        .expect(0, "accuracy")


class Bert(nn.Module):
    """A small encoder over tokens, of which a mask says which count."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(30, 16)
        self.places = nn.Embedding(12, 16)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True), 2,
            enable_nested_tensor=False)
        self.output = nn.Linear(16, 2)

    def forward(self, tokens, mask):
        at = torch.arange(tokens.size(1))
        found = self.encoder(self.tokens(tokens) + self.places(at),
                             src_key_padding_mask=mask.eq(0))
        share = mask.to(found.dtype).unsqueeze(-1)
        return self.output((found * share).sum(1) / share.sum(1))


def tokens(scratch):
    """Whether a word occurs in a sentence, before the padding begins."""
    generator = np.random.default_rng(0)
    words = generator.integers(2, 30, (256, 12))
    lengths = generator.integers(4, 13, 256)
    mask = (np.arange(12) < lengths[:, None]).astype(np.int64)
    labels = generator.integers(0, 2, 256)
    for row, length, label in zip(words, lengths, labels):
        row[row == 7] = 8
        row[length:] = 7  # hidden by the mask
        if label:
            row[generator.integers(0, length)] = 7
    write(scratch, "tokens", {"tokens": words.astype(np.int64), "mask": mask,
                              "targets": labels.astype(np.int64)})
    torch.manual_seed(0)
    torch.jit.script(Bert()).save(str(scratch / "bert.pt"))
    deck, measured = learns(scratch, "tokens", f"name = script\nfile = {scratch}/bert.pt",
                            "kind = classification", 80, rate=0.01, ranks=(1, 2),
                            options=["--data.inputs", "tokens, mask"])
    check(measured["accuracy"] > 0.85, "without the mask or the tokens it is a coin's")
    run(["train", deck, "--data.inputs", "tokens, mask", "--model.name", "mlp", "--run.directory",
         scratch / "wrong"]).expect(64)


with Scratch() as scratch:
    for kind in some((boxes, places, clips, tokens), 2):
        kind(scratch)
