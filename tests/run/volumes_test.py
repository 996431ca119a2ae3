"""Volumes: a three-dimensional U-Net learns masks of voxels that a user imports, with a label that does not count, and
has the bits of one rank on any ranks and after a resume. PyTorch with the exported weights gives the same loss, the same
scores and the same masks; so do the files for programs without PyTorch."""
import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from harness import Scratch, check, run
from measured_runs import same_on_any_ranks

SHAPE = (4, 8, 12)


def volumes(count, seed):
    """Balls with a core, in noise; the first plane of each is not labelled."""
    dice = np.random.default_rng(seed)
    places = np.stack(np.meshgrid(*map(np.arange, SHAPE), indexing="ij"), -1)
    centres = dice.uniform(0, SHAPE, (count, 3))
    radii = np.linalg.norm(places[None] - centres[:, None, None, None], axis=-1)
    masks = (2 - np.digitize(radii, [2, 4])).astype(np.uint8)
    inputs = (masks * 0.8 + dice.normal(size=masks.shape) * 0.3).astype(np.float32)
    masks[:, 0] = 255
    return inputs[:, None], masks


def double(from_, to):
    return nn.Sequential(*[layer for a, b in ((from_, to), (to, to)) for layer in (
        nn.Conv3d(a, b, 3, padding=1, bias=False), nn.BatchNorm3d(b), nn.ReLU())])


class UNet3d(nn.Module):
    """The same in PyTorch."""

    def __init__(self, channels, outputs):
        super().__init__()
        self.down = nn.ModuleList(double(a, b) for a, b in zip((1, *channels), channels))
        self.up = nn.ModuleList(double(a + b, a) for a, b in zip(channels, channels[1:]))
        self.output = nn.Conv3d(channels[0], outputs, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool3d(x, 2) if level else x)
            kept.append(x)
        for level in reversed(range(len(self.up))):
            wide = F.interpolate(x, scale_factor=2, mode="nearest")
            x = self.up[level](torch.cat([kept[level], wide], 1))
        return self.output(x)

    def take(self, weights):
        """Ours has names for the layers of a block, and counts levels from 1."""
        named = {}
        for name, value in weights.items():
            level, layer, rest = name.split(".") if not name.startswith("output") else ("", *name.split("."))
            if level:
                number = 3 * (int(layer[-1]) - 1) + (layer[:-1] == "norm")
                named[f"{level[:-1]}.{int(level[-1]) - 1}.{number}.{rest}"] = value
            else:
                named[name] = value
        own = self.state_dict()
        named |= {name: own[name] for name in own if name.endswith("num_batches_tracked")}
        self.load_state_dict(named)
        return self.eval()


def plain_weights(path):
    """Of model/down1/conv1/weight, down1.conv1.weight."""
    weights = {}
    with h5py.File(path) as file:
        file["model"].visititems(lambda name, found: weights.update(
            {name.replace("/", "."): torch.from_numpy(found[:])} if isinstance(found, h5py.Dataset) else {}))
    return weights


with Scratch() as scratch:
    inputs, masks = volumes(66, 0)
    with h5py.File(scratch / "theirs.h5", "w") as file:
        file["inputs"], file["targets"] = inputs, masks
    run(["data", "import", "hdf5", scratch / "theirs.h5", scratch / "volumes.h5"]).expect(0)
    deck, directory, test, _ = same_on_any_ranks(
        scratch, "volumes", "name = unet3d\nchannels = 4, 6, 8",
        "kind = segmentation\nclasses = 3\nloss = both\nignore-label = 255\nmetrics = dice, confusion")
    counts = np.array(test["confusion"]["counts"])
    counted = masks[masks < 255]
    check((counts.sum(1) == np.bincount(counted)).all(), "every labelled voxel counts once, and the others do not")
    for place in range(3):
        right, all_of_it = counts[place, place], counts[place].sum() + counts[:, place].sum()
        check(abs(test[f"dice.{place}"] - 2 * right / all_of_it) < 1e-12 and
              abs(test[f"iou.{place}"] - right / (all_of_it - right)) < 1e-12, f"Dice and IoU of {place}: {test}")
    # PyTorch with these weights.
    newest = sorted((directory / "checkpoints").glob("*.h5"))[-1]
    run(["checkpoint", "export", newest, scratch / "net.h5", "--format", "hdf5"]).expect(0)
    theirs = UNet3d((4, 6, 8), 3).take(plain_weights(scratch / "net.h5"))
    truth = torch.from_numpy(masks.astype(np.int64))
    with torch.no_grad():
        scores = theirs(torch.from_numpy(inputs))
        likely = scores.softmax(1)
    places = (truth < 255)[:, None]
    one_hot = F.one_hot(truth.masked_fill(truth == 255, 0), 3).movedim(-1, 1) * places
    among = (2, 3, 4)
    overlap = 2 * (likely * one_hot).sum(among) + 1e-5
    sizes = (likely * places).sum(among) + one_hot.sum(among) + 1e-5
    each = F.cross_entropy(scores, truth, ignore_index=255, reduction="none").sum((1, 2, 3)) / places.sum((1, 2, 3, 4))
    expected = (each.mean() + (1 - overlap / sizes).mean()).item()
    check(abs(expected - test["loss"]) < 1e-5, f"the loss is PyTorch's: {expected}, {test['loss']}")
    found = torch.stack([((scores.argmax(1) == a) & (truth == b)).sum() for b in range(3) for a in range(3)])
    check(np.abs(found.numpy().reshape(3, 3) - counts).sum() <= 4, "so are its classes, but where two are as likely")
    # What users do with the file.
    run(["predict", newest, scratch / "theirs.h5", "--output", scratch / "masks.h5"], ranks=2).expect(0)
    with h5py.File(scratch / "masks.h5") as file:
        given = next(file[name][:] for name in file if file[name].shape[:4] == masks.shape)
    check((given != scores.argmax(1).numpy()).mean() < 1e-4, "predict gives the class of each voxel")
    run(["checkpoint", "export", newest, scratch / "net.pt"]).expect(0)
    traced = torch.jit.load(str(scratch / "net.pt"))
    with torch.no_grad():
        check(torch.allclose(traced(torch.from_numpy(inputs[:3])), scores[:3], atol=1e-5), "TorchScript has its scores")
    for name in ("net.onnx", "net.c"):  # both are compared with the model when they are written
        run(["checkpoint", "export", newest, scratch / name]).expect(0)
    # Odd sizes are refused, and what is said then works.
    with h5py.File(scratch / "odd.h5", "w") as file:
        file["inputs"], file["targets"] = inputs[..., :11], masks[..., :11]
    words = ["train", deck, "--data.train", scratch / "odd.h5", "--data.validation", "", "--data.test", "",
             "--run.directory", scratch / "odd"]
    run(words).expect(64, "width of 11 cannot be halved 2 times", "numpy.pad")
    run([*words, "--model.channels", "4"]).expect(0)
    with h5py.File(scratch / "padded.h5", "w") as file:
        file["inputs"] = np.pad(inputs[..., :11], [(0, 0)] * 4 + [(0, 1)])
        file["targets"] = np.pad(masks[..., :11], [(0, 0)] * 3 + [(0, 1)], constant_values=255)
    run([*words[:-1], scratch / "padded", "--data.train", scratch / "padded.h5"]).expect(0)
