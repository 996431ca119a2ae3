"""Small models of every kind with what they learn, for tests that walk all of them."""
import sys

import h5py
import numpy as np
import torch
from torch import nn

from harness import SOURCE
from speech import write_set

sys.path.insert(0, str(SOURCE / "python"))
import lockstep_export  # noqa: E402

SAMPLES = 48
DECK = """
[run]
replicas = 2
device = cpu
[data]
{data}
batch = 2
[model]
{model}
[task]
{task}
[monitor]
log-every = 1
weight-hash = true
progress = plain
tensorboard = false
plots = false
[train]
steps = {steps}
validate-every = {steps}
"""
IMAGES, CLIPS, PLACES, VOXELS, WORDS, SOUNDS, TEXTS, POLICY = (
    "images", "clips", "places", "voxels", "words", "sounds", "texts", "")
LABELS, CTC = "kind = classification", "kind = ctc"
PPO = ("kind = ppo\nenvironments = 2\nrollout-steps = 8\nsequence = 2\npasses = 1\nevaluation-episodes = 1\n"
       "test-episodes = 0\nenvironment = ")
# What each model learns here: its own keys, the samples and the task. A new model needs a line.
MODELS = {
    "clstm-policy": ("hidden = 8\nunits = 8\nwindow-units = 8\nfeatures = 8", POLICY, PPO + "acrobot"),
    "cnn": ("channels = 4, 8\nhidden = 16\ndropout = 0.2", IMAGES, LABELS),
    "cnn1d": ("channels = 4, 8\ndropout = 0.2", WORDS, LABELS),
    "cnn3d": ("channels = 4, 8\nhidden = 8\ndropout = 0.2\nbound = 2", CLIPS, LABELS),
    "export": ("file = {scratch}/net.pt2", IMAGES, LABELS),
    "lmu-asr": ("width = 16\ntheta = 4, 8\nsignals = 4\norder = 4\nhidden = 16\ndropout = 0.1", SOUNDS, CTC),
    "lstm-policy": ("hidden = 8\nunits = 8", POLICY, PPO + "pendulum"),
    "mlp": ("hidden = 16, 8\ndropout = 0.2", IMAGES, LABELS),
    "mlp-policy": ("hidden = 8", POLICY, PPO + "cart-pole"),
    "resnet": ("depth = 18\nstem = small", IMAGES, LABELS),
    "script": ("file = {scratch}/net.pt", IMAGES, LABELS),
    "transformer": ("layers = 2\nwidth = 16\nheads = 2\ndropout = 0.1\nvocabulary = 20", TEXTS,
                    "kind = language\nvocabulary = 20"),
    "unet": ("channels = 4, 8", PLACES, "kind = segmentation"),
    "unet3d": ("channels = 4, 8", VOXELS, "kind = segmentation"),
    "vit": ("layers = 2\nwidth = 16\nheads = 2\npatch = 4\ndropout = 0.1", IMAGES, LABELS),
}


def write_data(scratch):
    dice = np.random.default_rng(0)
    labels = dice.integers(0, 3, SAMPLES)
    for name, shape, targets in ((IMAGES, (1, 8, 8), labels), (CLIPS, (1, 4, 16, 16), labels),
                                 (WORDS, (24, 8), labels), ("wide", (1, 10, 10), labels),
                                 (PLACES, (1, 16, 16), dice.integers(0, 3, (SAMPLES, 16, 16))),
                                 (VOXELS, (1, 4, 6, 8), dice.integers(0, 3, (SAMPLES, 4, 6, 8)))):
        with h5py.File(scratch / f"{name}.h5", "w") as file:
            file["inputs"] = dice.normal(size=(SAMPLES, *shape)).astype("f4")
            file["targets"] = targets
            file.attrs["classes"] = ["a", "b", "c"]
    with h5py.File(scratch / f"{TEXTS}.h5", "w") as file:
        file["inputs"] = dice.integers(0, 20, SAMPLES * 8 + 1).astype("u2")
    write_set(scratch / f"{SOUNDS}.h5", SAMPLES, 0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
                        nn.Linear(144, 3))
    torch.jit.script(net).save(str(scratch / "net.pt"))
    lockstep_export.save(net, torch.rand(4, 1, 8, 8), scratch / "net.pt2")


def deck_of(scratch, name, steps):
    """A deck that trains the model for some steps, on data that write_data wrote."""
    own, data, task = MODELS[name]
    deck = scratch / f"{name}.ini"
    files = f"train = {scratch}/{data}.h5\nvalidation = {scratch}/{data}.h5" if data else ""
    files += "\nsequence = 8" if data == TEXTS else ""
    deck.write_text(DECK.format(data=files, steps=steps, task=task,
                                model=f"name = {name}\n" + own.format(scratch=scratch)))
    return deck
