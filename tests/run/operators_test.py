"""Operators that nets have go out to ONNX and to C99, of exported programs and of TorchScript, and give there what
PyTorch gives, for shapes that divide badly and for batches of any size. The short form draws operators."""
import ctypes
import math
import os
import pathlib
import subprocess
import sys

import h5py
import numpy as np

from harness import DRAW, LONG, SEED, SOURCE, Scratch, check, checkpoints, run, some

try:
    import onnx
    import onnxruntime
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.path.insert(0, str(SOURCE / "python"))
import lockstep_export  # noqa: E402

os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # python3 has onnxruntime
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
SAMPLES = 5
TOGETHER = 12  # operators of one model
DECK = """
[run]
device = cpu
replicas = 1
[data]
train = {data}
batch = 5
[model]
name = {kind}
file = {file}
[task]
kind = regression
[optimizer]
name = sgd
learning-rate = 1e-30
weight-decay = 0
[monitor]
progress = plain
tensorboard = false
plots = false
[train]
steps = 1
"""
LINE, IMAGE, WIDE, VOLUME, ROW = (3, 11), (4, 7, 9), (2, 12, 5), (2, 3, 5, 4), (13,)
EVEN = (4, 6, 8)


def with_weights(module, low=0.1, high=0.6):
    """Of its own for each channel."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, low, high)
    return module


def resized(**options):
    return lambda x: F.interpolate(x, **options)


def padded(pads, mode):
    return lambda x: F.pad(x, pads, mode=mode)


class Indexed(nn.Module):
    """Takes entries at places that a buffer holds, a parameter learnt at places that the inputs name, and others."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, 5))
        self.register_buffer("places", torch.tensor([[2, -1], [0, 3]]))
        self.register_buffer("mask", torch.arange(4) % 3)

    def forward(self, x):
        best = x.flatten(2).argmax(2) % 6  # [n, channels]
        found = [x[:, :, self.places], x[:, self.mask > 0], self.table[best], x[:, [0, 2], [1, 1]], x[:, 1, :, [0, 3]],
                 x.index_select(2, torch.tensor([3, 3, 0]))]
        return torch.cat([each.flatten(1) for each in found], 1)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.sums, self.largest = nn.EmbeddingBag(9, 4, mode="sum"), nn.EmbeddingBag(9, 3, mode="max")

    def forward(self, x):
        words = (x[:, 0] * 3).round().long().clamp(0, 8)
        return torch.cat([self.sums(words), self.sums(words, per_sample_weights=x[:, 1]), self.largest(words)], 1)


class PairOfRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Bilinear(11, 11, 4)

    def forward(self, x):
        return self.layer(x[:, 0], x[:, 1])


def of_each_sample(x):
    """Of each sample the rows that it names itself, as nets take the last word of a text."""
    last = x.mean(2).argmax(1)  # [n]
    samples = torch.arange(x.shape[0])
    return torch.cat([x[samples, last], x[samples, :, last % 3], torch.gather(x, 1, last[:, None, None].expand(-1, 1, 4)).flatten(1)], 1)


def scattered(x):
    places = (x * 3).round().abs().long().clamp(max=4)
    ones = torch.zeros(x.shape[0], 3, 5).scatter(2, places[:, :, :1], 1.0)
    sums = torch.zeros(x.shape[0], 3, 5).scatter_add(2, places, x)
    return torch.cat([ones, sums, F.one_hot(places[:, :, 0], 5).float()], 1)


class Warped(nn.Module):
    """A spatial transformer."""

    def __init__(self, **options):
        super().__init__()
        self.theta, self.options = nn.Parameter(torch.tensor([[1.2, 0.3, -0.2], [-0.4, 0.9, 0.1]])), options

    def forward(self, x):
        theta = self.theta + x.mean((1, 2, 3))[:, None, None] * 0.3
        corners = self.options.get("align_corners", False)
        return F.grid_sample(x, F.affine_grid(theta, [x.shape[0], 4, 5, 6], corners), **self.options)


OPERATORS = {
    # upsampling
    "bilinear, scale": (IMAGE, resized(scale_factor=2, mode="bilinear", align_corners=False)),
    "bilinear, corners": (IMAGE, resized(scale_factor=(1.7, 2.3), mode="bilinear", align_corners=True)),
    "bilinear, size": (IMAGE, resized(size=(13, 4), mode="bilinear", align_corners=False)),
    "bilinear, size, corners": (IMAGE, resized(size=(5, 17), mode="bilinear", align_corners=True)),
    "bilinear, scale again": (IMAGE, resized(scale_factor=1.6, mode="bilinear", recompute_scale_factor=True)),
    "bilinear, to one": (IMAGE, resized(size=(1, 3), mode="bilinear", align_corners=True)),
    "bilinear, antialias": (WIDE, resized(size=(5, 3), mode="bilinear", antialias=True)),
    "bicubic": (IMAGE, resized(scale_factor=1.9, mode="bicubic")),
    "bicubic, corners": (WIDE, resized(size=(7, 9), mode="bicubic", align_corners=True)),
    "bicubic, antialias": (WIDE, resized(size=(5, 7), mode="bicubic", antialias=True)),
    "linear": (LINE, resized(scale_factor=2.5, mode="linear")),
    "linear, corners": (LINE, resized(size=6, mode="linear", align_corners=True)),
    "trilinear": (VOLUME, resized(scale_factor=(2, 1.5, 1.2), mode="trilinear")),
    "trilinear, corners": (VOLUME, resized(size=(4, 7, 3), mode="trilinear", align_corners=True)),
    "nearest, double": (IMAGE, resized(scale_factor=2)),
    "nearest, fraction": (IMAGE, resized(scale_factor=(1.4, 2.1))),
    "nearest, almost double": (EVEN, resized(scale_factor=(2.15, 2.1))),
    "nearest, size": (IMAGE, resized(size=(10, 4))),
    "nearest, line": (LINE, resized(scale_factor=1.5)),
    "nearest, volume": (VOLUME, resized(size=(5, 4, 6))),
    "nearest exactly": (IMAGE, resized(scale_factor=1.3, mode="nearest-exact")),
    "area": (IMAGE, resized(size=(4, 5), mode="area")),
    "nn.Upsample": (IMAGE, nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)),
    # pools
    "max pool, ceil": (IMAGE, nn.MaxPool2d(3, 2, ceil_mode=True)),
    "max pool, ceil, padding": (IMAGE, nn.MaxPool2d(2, (2, 3), padding=1, ceil_mode=True)),
    "max pool, ceil, dilation": (WIDE, nn.MaxPool2d(2, 3, dilation=(4, 1), ceil_mode=True)),
    "max pool, ceil, line": (LINE, nn.MaxPool1d(4, 3, padding=1, ceil_mode=True)),
    "max pool, ceil, volume": (VOLUME, nn.MaxPool3d(2, ceil_mode=True)),
    "average pool, ceil": (IMAGE, nn.AvgPool2d(3, 2, ceil_mode=True)),
    "average pool, ceil, padding": (IMAGE, nn.AvgPool2d(3, 2, padding=1, ceil_mode=True)),
    "average pool, ceil, own": (IMAGE, nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, count_include_pad=False)),
    "average pool, ceil, wide": (WIDE, nn.AvgPool2d(2, 3, padding=1, ceil_mode=True)),
    "average pool, divisor": (IMAGE, nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, divisor_override=5)),
    "average pool, ceil, line": (LINE, nn.AvgPool1d(3, 2, padding=1, ceil_mode=True, count_include_pad=False)),
    "average pool, ceil, volume": (VOLUME, nn.AvgPool3d(2, padding=1, ceil_mode=True)),
    "adaptive average, uneven": (IMAGE, nn.AdaptiveAvgPool2d((3, 4))),
    "adaptive average, larger": (IMAGE, nn.AdaptiveAvgPool2d((9, 5))),
    "adaptive average, line": (LINE, nn.AdaptiveAvgPool1d(4)),
    "adaptive average, volume": (VOLUME, nn.AdaptiveAvgPool3d((2, 3, 1))),
    "adaptive maximum, uneven": (IMAGE, nn.AdaptiveMaxPool2d((3, 4))),
    "adaptive maximum, even": (EVEN, nn.AdaptiveMaxPool2d((3, 4))),
    "adaptive maximum, whole": (IMAGE, nn.AdaptiveMaxPool2d(1)),
    "adaptive maximum, line": (LINE, nn.AdaptiveMaxPool1d(4)),
    "adaptive maximum, volume": (VOLUME, nn.AdaptiveMaxPool3d((2, 3, 1))),
    "power pool": (IMAGE, nn.LPPool2d(2, 3)),
    "local response": (IMAGE, nn.LocalResponseNorm(3)),
    # activations
    "PReLU": (IMAGE, nn.PReLU()),
    "PReLU, channels": (IMAGE, with_weights(nn.PReLU(4))),
    "PReLU, row": (ROW, with_weights(nn.PReLU(13))),
    "PReLU, line": (LINE, with_weights(nn.PReLU(3), -1)),
    "GLU": (IMAGE, nn.GLU(1)),
    "GLU, last": (EVEN, nn.GLU()),
    "Mish": (ROW, nn.Mish()),
    "SELU": (ROW, nn.SELU()),
    "CELU": (ROW, nn.CELU(0.7)),
    "ELU": (ROW, nn.ELU(1.3)),
    "Hardswish": (ROW, nn.Hardswish()),
    "Softplus": (ROW, nn.Softplus(2.5, 3)),
    "Softplus, steep": (ROW, nn.Softplus(0.3, 50)),
    "LogSigmoid": (ROW, nn.LogSigmoid()),
    "Hardshrink": (ROW, nn.Hardshrink(0.4)),
    "Softshrink": (ROW, nn.Softshrink(0.3)),
    "Tanhshrink": (ROW, nn.Tanhshrink()),
    "Threshold": (ROW, nn.Threshold(0.2, -3.0)),
    "Softsign": (ROW, nn.Softsign()),
    "Softmin": (ROW, nn.Softmin(1)),
    "RReLU": (ROW, nn.RReLU()),
    "ReLU6": (ROW, nn.ReLU6()),
    "GELU, tanh": (ROW, nn.GELU("tanh")),
    # padding and moves
    "reflection": (IMAGE, nn.ReflectionPad2d((2, 1, 3, 0))),
    "reflection, line": (LINE, nn.ReflectionPad1d((4, 2))),
    "reflection, volume": (VOLUME, nn.ReflectionPad3d((1, 2, 0, 1, 2, 1))),
    "replication": (IMAGE, nn.ReplicationPad2d((2, 1, 3, 9))),
    "replication, line": (LINE, nn.ReplicationPad1d((4, 2))),
    "replication, volume": (VOLUME, nn.ReplicationPad3d(2)),
    "circular": (IMAGE, padded((2, 1, 3, 0), "circular")),
    "circular, line": (LINE, padded((3, 11), "circular")),
    "constant": (IMAGE, padded((2, 0, 1, 3), "constant")),
    "cropped": (IMAGE, padded((-2, 1, 1, -3), "constant")),
    "convolution, reflection": (IMAGE, nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect")),
    "convolution, circular": (IMAGE, nn.Conv2d(4, 3, 3, padding=1, padding_mode="circular")),
    "convolution, same": (IMAGE, nn.Conv2d(4, 3, (4, 3), padding="same", dilation=(1, 2))),
    "convolution, same, line": (LINE, nn.Conv1d(3, 2, 6, padding="same")),
    "flip": (IMAGE, lambda x: x.flip(2, -1)),
    "roll": (IMAGE, lambda x: torch.roll(x, (2, -3), (2, 3))),
    "roll, far": (LINE, lambda x: torch.roll(x, 25, -1)),
    "repeat": (IMAGE, lambda x: x[:, :1].repeat(1, 2, 1, 3)),
    "tile": (LINE, lambda x: x.tile(2)),
    "unfold": (LINE, lambda x: x.unfold(2, 4, 3)),
    "nn.Unfold": (IMAGE, nn.Unfold((3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 3))),
    "pixel shuffle": (IMAGE, nn.PixelShuffle(2)),
    "pixel unshuffle": (EVEN, nn.PixelUnshuffle(2)),
    "channel shuffle": (IMAGE, nn.ChannelShuffle(2)),
    "triangles": (EVEN, lambda x: x.tril(1) - 2 * x.triu(-2)),
    "windows": (EVEN, lambda x: torch.roll(x, (-1, -1), (2, 3)).view(-1, 4, 2, 3, 2, 4).permute(0, 2, 4, 3, 5, 1).reshape(
        -1, 12, 4).mean(1).view(-1, 16)),
    # sums and norms
    "normalize": (IMAGE, lambda x: F.normalize(x)),
    "normalize, last": (LINE, lambda x: F.normalize(x, p=1, dim=-1)),
    "normalize, three": (LINE, lambda x: F.normalize(x, p=3, dim=1)),
    "norms": (IMAGE, lambda x: torch.stack([torch.linalg.vector_norm(x, p, (1, 3)) for p in (0, 0.5, 1, 2, 3, math.inf, -math.inf)])
              .transpose(0, 1)),
    "norm": (IMAGE, lambda x: x.norm(dim=1) + x.norm(3, 1) + torch.linalg.norm(x, dim=1)),
    "cosine": (LINE, lambda x: F.cosine_similarity(x[:, :1], x[:, 1:], dim=2)),
    "distances": (IMAGE, lambda x: torch.cat([torch.cdist(x[:, 0], x[:, 1]), torch.cdist(x[:, 0], x[:, 2], p=1)], 2)),
    "nn.Fold": (IMAGE, lambda x: F.fold(F.unfold(x, (3, 2), dilation=(1, 2), padding=(1, 0), stride=2), (7, 9), (3, 2),
                                        dilation=(1, 2), padding=(1, 0), stride=2)),
    "bilinear layer": (LINE, PairOfRows),
    "distance": (LINE, lambda x: F.pairwise_distance(x[:, 0], x[:, 1], keepdim=True)),
    "logsumexp": (IMAGE, lambda x: x.mul(30).logsumexp((1, 2))),
    "logsumexp, masked": (LINE, lambda x: x.masked_fill(x < 0.3, -math.inf).logsumexp(2, keepdim=True).clamp(min=-9)),
    "logaddexp": (LINE, lambda x: torch.logaddexp(x[:, 0], x[:, 1] * 9)),
    "extremes": (LINE, lambda x: x.max(2)[0] + x.min(2, keepdim=True)[0].squeeze(2) + x.amin(2) + torch.maximum(x[:, :, 0], x[:, :, 1])),
    "places of extremes": (IMAGE, lambda x: (x.argmax(2) + 10 * x.argmin(2) + 100 * x.max(2)[1]).float()),
    "product": (LINE, lambda x: x.prod(2)),
    "variance and mean": (LINE, lambda x: torch.cat([*torch.var_mean(x, 2), *torch.std_mean(x, 2, unbiased=False)], 1)),
    # arithmetic
    "lerp": (LINE, lambda x: torch.lerp(x[:, :1], x[:, 1:], 0.3) + torch.lerp(x[:, :1], x[:, 1:2], x[:, 2:])),
    "addcmul": (LINE, lambda x: torch.addcmul(x, x, x.sin(), value=0.5) + torch.addcdiv(x, x, x.exp())),
    "rounding": (LINE, lambda x: torch.cat([(x * 3).round(), x.trunc(), x.frac(), torch.fmod(x * 5, 2), torch.remainder(x * 5, -2),
                                            (x * 4).detach() // 3, torch.div(x * 4, 3, rounding_mode="trunc"), x.sign()], 1)),
    "logarithms": (LINE, lambda x: torch.cat([x.abs().log1p(), x.expm1(), x.exp2(), (x.abs() + 1).log2(), (x.abs() + 1).log10(),
                                              x.erfc(), x.sigmoid().logit(), x.square()], 1)),
    "angles": (LINE, lambda x: torch.cat([x.tan().clamp(-3, 3), x.tanh().asin(), x.tanh().acos(), x.atan(), x.sinh(), x.cosh()], 1)),
    "not numbers": (LINE, lambda x: torch.nan_to_num(x.log(), nan=2.5) + x.log().isnan().float() + (x / (x > 0)).isinf().float()),
    "logic": (LINE, lambda x: ((x > 0) * (x < 1) | ~(x > -1)).float() + 0 * x),
    "bounds": (LINE, lambda x: torch.clamp(x, x.mean(2, keepdim=True), x.amax(2, keepdim=True) / 2)),
    # places
    "index": (IMAGE, Indexed),
    "of each sample": ((5, 4), of_each_sample),
    "whole numbers": (LINE, lambda x: torch.cat([x, *((x * 9).round().long().clamp(-8, 7).div(3, rounding_mode=how).float() for how in (
        "floor", "trunc")), ((x * 9).long() % -4).float(), (x * 9).long().fmod(4).float(), ((x * 9).long() // 4).float(),
        (x * 9).long().amin(2, keepdim=True).float().expand(-1, -1, 2)], 2)),
    "any and all": (IMAGE, lambda x: ((x > 0.5).any(2).float() + (x > -1.3).all(2).float() + 0 * x[:, :, 0])),
    "bags": (LINE, Bags),
    "scatter": (LINE, scattered),
    "grid": (IMAGE, lambda: Warped(align_corners=False)),
    "grid, corners": (IMAGE, lambda: Warped(align_corners=True, padding_mode="border")),
    "grid, nearest": (IMAGE, lambda: Warped(mode="nearest", align_corners=False, padding_mode="border")),
    "grid, nearest, corners": (IMAGE, lambda: Warped(mode="nearest", align_corners=True)),
    "grid, reflection": (IMAGE, lambda: Warped(align_corners=False, padding_mode="reflection")),
    "grid, reflection, corners": (IMAGE, lambda: Warped(align_corners=True, padding_mode="reflection")),
    # attention
    "shared heads": (EVEN, lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, 2:], enable_gqa=True)),
}
MAKERS = ("index", "bags", "bilinear layer", "grid", "grid, corners", "grid, nearest", "grid, nearest, corners", "grid, reflection",
          "grid, reflection, corners")


class Traced(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def module_of(name):
    shape, operator = OPERATORS[name]
    torch.manual_seed(SEED)
    made = operator() if name in MAKERS else operator
    return made if isinstance(made, nn.Module) else Traced(made)


class All(nn.Module):
    """What each operator gives, one behind the other."""

    def __init__(self, parts):
        super().__init__()
        self.parts, self.scale = nn.ModuleList(parts), nn.Parameter(torch.ones(1))

    def forward(self, x):
        x = x * self.scale
        found = []
        for part in self.parts:
            found.append(part(x).flatten(1))
        return torch.cat(found, 1)


def batch_of(shape, count):
    return torch.from_numpy(np.random.default_rng(SEED).normal(size=(count, *shape)).astype("f4"))


def script_of(parts, x):
    """Modules are scripted, functions traced."""
    return torch.jit.script(All([torch.jit.trace(part, x) if isinstance(part, (Traced, Warped, Indexed, Bags, Unsupported)) else part
                                 for part in parts]))


def compare(names, parts, x, found, where):
    at = 0
    with torch.no_grad():
        for name, part in zip(names, parts):
            wanted = part(x).flatten(1).numpy()
            own = found[:, at:at + wanted.shape[1]]
            at += wanted.shape[1]
            far = np.max(np.abs(own - wanted) / (1 + np.abs(wanted)))
            check(far <= 1e-5, f"{name}, {where}, {len(x)} samples: a relative difference of {far}")


def checkpoint_of(scratch, kind, parts, x):
    width = All(parts)(x).shape[1]
    with h5py.File(scratch / "data.h5", "w") as file:
        file["inputs"], file["targets"] = x.numpy(), np.zeros((len(x), width), "f4")
    if kind == "export":
        lockstep_export.save(All(parts).eval(), x, scratch / "net.pt2")
    else:
        script_of(parts, x).save(str(scratch / "net.pt"))
    (scratch / "deck.ini").write_text(DECK.format(data=scratch / "data.h5", kind=kind,
                                                  file=scratch / ("net.pt2" if kind == "export" else "net.pt")))
    run(["train", scratch / "deck.ini", "--run.directory", scratch / "run"], 1).expect(0)
    return checkpoints(scratch / "run")[-1]


def walk(names, kind):
    parts = [module_of(name).eval() for name in names]
    shape = OPERATORS[names[0]][0]
    with Scratch() as scratch:
        newest = checkpoint_of(scratch, kind, parts, batch_of(shape, SAMPLES))
        for file in ("net.onnx", "net.c"):
            told = run(["checkpoint", "export", newest, scratch / file])
            check(told.code == 0, f"{', '.join(names)} of {kind}: {told.text}")
        onnx.checker.check_model(str(scratch / "net.onnx"), full_check=True)
        session = onnxruntime.InferenceSession(str(scratch / "net.onnx"), providers=["CPUExecutionProvider"])
        subprocess.run(["cc", *STRICT, "-shared", "-fPIC", "-o", scratch / "net.so", scratch / "net.c", "-lm"], check=True)
        library = ctypes.CDLL(str(scratch / "net.so"))
        for count in (1, 2, 7):
            x = batch_of(shape, count)
            [found] = session.run(None, {"inputs": x.numpy()})
            compare(names, parts, x, found, f"ONNX of {kind}")
            from_c = np.empty_like(found)
            code = library.net_run(ctypes.c_size_t(count), x.numpy().ctypes.data_as(ctypes.c_void_p),
                                   from_c.ctypes.data_as(ctypes.c_void_p))
            check(code == 0, f"{names} from C: {code}")
            compare(names, parts, x, from_c, f"C of {kind}")


def groups():
    """Operators of the same inputs together, in a new order for each seed."""
    by_shape = {}
    for name in DRAW.sample(list(OPERATORS), len(OPERATORS)):
        by_shape.setdefault(OPERATORS[name][0], []).append(name)
    return [names[at:at + TOGETHER] for names in by_shape.values() for at in range(0, len(names), TOGETHER)]


class Smaller(nn.Module):
    """Channels that operators of each kind pass on, and those that a GLU halves, which stay."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3), nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect")
        self.slopes, self.norm, self.third = with_weights(nn.PReLU(8)), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 2)
        self.last = nn.Linear(4 * 6, 3)

    def forward(self, x):
        x = F.mish(self.slopes(self.first(x)))
        x = F.interpolate(x, scale_factor=1.6, mode="bilinear", align_corners=False)
        x = F.max_pool2d(torch.relu(self.norm(self.second(x))), 2, ceil_mode=True)
        return self.last(F.adaptive_max_pool2d(F.glu(self.third(x), 1), (2, 3)).flatten(1))


def smaller():
    """Models with these operators lose channels, and become int8."""
    x = batch_of(IMAGE, 24)
    with Scratch() as scratch:
        with h5py.File(scratch / "data.h5", "w") as file:
            file["inputs"], file["targets"] = x.numpy(), np.random.default_rng(SEED).normal(size=(24, 3)).astype("f4")
        torch.manual_seed(SEED)
        lockstep_export.save(Smaller(), x, scratch / "net.pt2")
        deck = DECK.format(data=scratch / "data.h5", kind="export", file=scratch / "net.pt2")
        (scratch / "deck.ini").write_text(deck + "[prune]\npattern = channels\ntarget = macs 0.6\n")
        run(["train", scratch / "deck.ini", "--run.directory", scratch / "run"], 1).expect(0)
        newest = checkpoints(scratch / "run")[-1]
        with h5py.File(newest) as file:
            shapes = {name: file[f"model/{name}/weight"].shape for name in ("first", "slopes", "second", "third", "last")}
        kept = shapes["first"][0]
        check(kept < 8 and shapes["slopes"] == (kept,) and shapes["second"][1] == kept, f"fewer channels: {shapes}")
        check(shapes["third"][0] == 8, f"those of the GLU stay: {shapes}")
        run(["checkpoint", "quantise", newest, scratch / "int8.h5", "--data.train", scratch / "data.h5"]).expect(0)
        for source, name in some(((newest, "small"), (scratch / "int8.h5", "int8")), 2):
            for file in some((f"{name}.onnx", f"{name}.c")):
                run(["checkpoint", "export", source, scratch / file]).expect(0)
                run(["export", "check", scratch / file, "--data", scratch / "data.h5"]).expect(0, "It agrees with")


class Inner(nn.Module):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def forward(self, x):
        return self.operator(x)


class Unsupported(nn.Module):
    def __init__(self, operator):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(11, 11), Inner(operator))

    def forward(self, x):
        return self.layers(x)


REFUSED = {
    "aten::sort": lambda x: x.sort(2)[0],
    "aten::topk": lambda x: x.topk(3)[0],
    "aten::median": lambda x: x.median(2)[0],
    "aten::cumprod": lambda x: x.cumprod(2),
    "aten::index": lambda x: x[x[:, 0, 0] > 0].sum(0, keepdim=True) + x,
    "aten::roll": lambda x: x.roll(1),
    "aten::_fft_r2c": lambda x: torch.fft.rfft(x).abs(),
    "aten::grid_sampler_2d": lambda x: F.grid_sample(x[:, None], x[:, :, :2].tanh()[:, None], "bicubic", align_corners=False),
}


def refusals(operator, kind):
    """What is not supported is named with its module before anything is written."""
    net, x = Unsupported(Traced(REFUSED[operator])), batch_of(LINE, SAMPLES)
    with Scratch() as scratch:
        newest = checkpoint_of(scratch, kind, [net], x)
        for file in ("net.onnx", "net.c"):
            told = run(["checkpoint", "export", newest, scratch / file]).expect(64, "layers.1").text
            check(operator in told, f"{operator}: {told}")
            check(not (scratch / file).exists(), f"{file} was written")


if __name__ == "__main__":
    for group in some(groups()):
        for which in some(("export", "script")):
            walk(group, which)
    for case in some((smaller, *(lambda each=each, which=which: refusals(each, which) for each in REFUSED
                                 for which in ("export", "script")))):
        case()
