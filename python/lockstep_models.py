"""Lockstep's built-in models in PyTorch: the same layers, under the same names and in the same order.

    model = lockstep_models.make("cnn", {"hidden": "128"}, lockstep_models.Samples((3, 32, 32), outputs=10))

lockstep_builtin.load makes them from a file of weights. Needs PyTorch, and nothing else.
"""
import collections
import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Samples:
    """What a model takes and returns."""
    shape: tuple  # of one input
    outputs: int  # of a sample or, without `per_sample`, of each of its positions
    per_sample: bool = True
    vocabulary: int = 0  # of tokens; 0: inputs are real values
    end_of_text: int = -1  # the token after a document; -1: none


class Keys:
    """The values of a model's own keys in [model], as texts."""

    def __init__(self, name, own):
        usual = KINDS[name][1]
        if unknown := own.keys() - usual.keys():
            raise ValueError(f"model.name = {name} has no key {sorted(unknown)[0]} here, only {', '.join(usual)}")
        self.values = usual | own

    def text(self, key):
        return self.values[key]

    def boolean(self, key):
        return self.values[key] in ("true", "yes", "on", "1")

    def number(self, key):
        return float(self.values[key])

    def integer(self, key):
        return int(self.number(key))

    def integers(self, key):
        return [int(each) for each in self.values[key].split(",")]


def make(name, own, samples):
    """The model `name` with PyTorch's own first weights. `own` are keys of [model], as texts.

    Raises ValueError for a model that is not here."""
    if name not in KINDS:
        raise ValueError(f"model.name = {name} is not here in PyTorch, only {', '.join(KINDS)}: "
                         f"{_REASONS.get(name, 'write it in PyTorch, and save it with lockstep_export.save')}")
    return KINDS[name][0](Keys(name, own), samples)


_REASONS = {
    "lmu-asr": "its memories are computed by Fourier transform over samples of different lengths",
    **dict.fromkeys(("mlp-policy", "lstm-policy", "clstm-policy"), "policies learn from episodes, not by an exported loss"),
    **dict.fromkeys(("export", "script"), "its layers are in model.file already")}


def _named(**layers):
    """Those that are not None, one after the other."""
    return nn.Sequential(collections.OrderedDict((name, each) for name, each in layers.items() if each is not None))


def _dropout(keys):
    return nn.Dropout(keys.number("dropout")) if keys.number("dropout") > 0 else None


class Picture(nn.Module):
    """Takes images, clips or volumes; a sample with one dimension less than usual has one channel."""

    def __init__(self, keys, samples, dimensions):
        super().__init__()
        self.extents = list(samples.shape)
        self.adds_channel = len(self.extents) == dimensions
        self.channels_last = not self.adds_channel and keys.text("layout") == "channels-last"
        self.channels = 1 if self.adds_channel else self.extents.pop(-1 if self.channels_last else 0)

    def arranged(self, samples):
        if self.adds_channel:
            return samples.unsqueeze(1)
        return samples.movedim(-1, 1).contiguous() if self.channels_last else samples


class Mlp(nn.Module):
    def __init__(self, keys, samples):
        super().__init__()
        widths = [math.prod(samples.shape), *keys.integers("hidden")]
        layers = {}
        for number, (before, after) in enumerate(zip(widths, widths[1:]), 1):
            layers |= {f"hidden{number}": nn.Linear(before, after), f"relu{number}": nn.ReLU(),
                       f"dropout{number}": _dropout(keys)}
        self.layers = _named(**layers, output=nn.Linear(widths[-1], samples.outputs))

    def forward(self, given):
        return self.layers(given.flatten(1) if given.dim() > 1 else given.unsqueeze(1))


class Cnn(Picture):
    def __init__(self, keys, samples):
        super().__init__(keys, samples, 2)
        before, features = self.channels, {}
        for number, after in enumerate(keys.integers("channels"), 1):
            features |= {f"conv{number}": nn.Conv2d(before, after, 3, padding=1),
                         f"norm{number}": nn.BatchNorm2d(after) if keys.boolean("batch-norm") else None,
                         f"relu{number}": nn.ReLU(), f"pool{number}": nn.MaxPool2d(2)}
            before = after
        blocks, hidden = len(keys.integers("channels")), keys.integer("hidden")
        self.features = _named(**features)
        self.classifier = _named(hidden=nn.Linear(before * math.prod(each >> blocks for each in self.extents), hidden),
                                 relu=nn.ReLU(), dropout=_dropout(keys), output=nn.Linear(hidden, samples.outputs))

    def forward(self, images):
        return self.classifier(self.features(self.arranged(images)).flatten(1))


def _convolution(name, before, after, kernel, stride=1):
    return {f"conv{name}": nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False),
            f"norm{name}": nn.BatchNorm2d(after)}


class Residual(nn.Module):
    def __init__(self, bottleneck, before, width, after, stride):
        super().__init__()
        if bottleneck:
            self.path = _named(**_convolution("1", before, width, 1), relu1=nn.ReLU(),
                               **_convolution("2", width, width, 3, stride), relu2=nn.ReLU(),
                               **_convolution("3", width, after, 1))
        else:
            self.path = _named(**_convolution("1", before, width, 3, stride), relu1=nn.ReLU(),
                               **_convolution("2", width, after, 3))
        self.shortcut = None
        if stride != 1 or before != after:
            self.shortcut = _named(**_convolution("", before, after, 1, stride))

    def forward(self, values):
        return F.relu(self.path(values) + (values if self.shortcut is None else self.shortcut(values)))


class ResNet(Picture):
    FORMS = {18: ((2, 2, 2, 2), 1), 34: ((3, 4, 6, 3), 1), 50: ((3, 4, 6, 3), 4)}  # blocks; how much wider their outputs

    def __init__(self, keys, samples):
        super().__init__(keys, samples, 2)
        blocks, expansion = self.FORMS[keys.integer("depth")]
        small = keys.text("stem") == "small" or (keys.text("stem") == "auto" and self.extents[0] < 64)
        features = {**_convolution("1", self.channels, 64, 3 if small else 7, 1 if small else 2), "relu1": nn.ReLU(),
                    "pool1": None if small else nn.MaxPool2d(3, 2, 1)}
        before = 64
        for stage, count in enumerate(blocks):
            width = 64 << stage
            for block in range(count):
                features[f"stage{stage + 1}_{block + 1}"] = Residual(
                    expansion > 1, before, width, width * expansion, 2 if stage and not block else 1)
                before = width * expansion
        self.features = _named(**features)
        self.output = nn.Linear(before, samples.outputs)

    def forward(self, images):
        return self.output(self.features(self.arranged(images)).mean((2, 3)))


class UNet(Picture):
    def __init__(self, keys, samples, dimensions):
        super().__init__(keys, samples, dimensions)
        self.convolution, self.norm, self.pool = (
            (nn.Conv2d, nn.BatchNorm2d, F.max_pool2d) if dimensions == 2 else (nn.Conv3d, nn.BatchNorm3d, F.max_pool3d))
        channels = keys.integers("channels")
        self.levels = len(channels)
        for number, (before, after) in enumerate(zip([self.channels, *channels], channels), 1):
            self.add_module(f"down{number}", self.level(before, after))
        for number in range(self.levels - 1, 0, -1):
            narrow, wide = channels[number - 1:number + 1]
            self.add_module(f"up{number}", self.level(wide + narrow, narrow))
        self.output = self.convolution(channels[0], samples.outputs, 1)

    def level(self, before, after):
        layers = {}
        for number, width in ((1, before), (2, after)):
            layers |= {f"conv{number}": self.convolution(width, after, 3, padding=1, bias=False),
                       f"norm{number}": self.norm(after), f"relu{number}": nn.ReLU()}
        return _named(**layers)

    def forward(self, samples):
        values, kept = self.arranged(samples), []
        for number in range(1, self.levels + 1):
            values = getattr(self, f"down{number}")(self.pool(values, 2) if kept else values)
            kept.append(values)
        for number in range(self.levels - 1, 0, -1):
            across = kept[number - 1]
            values = getattr(self, f"up{number}")(torch.cat([across, F.interpolate(values, across.shape[2:])], 1))
        return self.output(values)


class Cnn3d(Picture):
    def __init__(self, keys, samples):
        super().__init__(keys, samples, 3)
        strides, pools = keys.integers("time-strides"), keys.text("downsample") == "pool"
        activation = nn.LeakyReLU if keys.text("activation") == "leaky-relu" else nn.ReLU
        self.flatten, self.bound = keys.text("head") == "flatten", keys.number("bound")
        before, features, extents = self.channels, {}, self.extents
        for number, after in enumerate(keys.integers("channels"), 1):
            stride = (strides[min(number, len(strides)) - 1], 2, 2)
            features |= {f"conv{number}": nn.Conv3d(before, after, 3, 1 if pools else stride, 1, bias=False),
                         f"norm{number}": nn.BatchNorm3d(after), f"relu{number}": activation(),
                         f"pool{number}": nn.MaxPool3d(stride) if pools else None}
            before, extents = after, [each // by if pools else -(-each // by) for each, by in zip(extents, stride)]
        width, hidden = before * (math.prod(extents) if self.flatten else 1), keys.integer("hidden")
        self.features = _named(**features)
        self.head = _named(hidden=nn.Linear(width, hidden) if hidden else None, relu=activation() if hidden else None,
                           dropout=_dropout(keys), output=nn.Linear(hidden or width, samples.outputs))

    def forward(self, clips):
        found = self.features(self.arranged(clips))
        given = self.head(found.flatten(1) if self.flatten else found.mean((2, 3, 4)))
        return given.tanh() * self.bound if self.bound > 0 else given


class FrameBlock(nn.Module):
    def __init__(self, before, after, kernel, stride):
        super().__init__()
        self.convolution, self.norm = nn.Conv1d(before, after, kernel, stride, kernel // 2), nn.LayerNorm(after)

    def forward(self, frames):
        return F.gelu(self.norm(self.convolution(frames.transpose(1, 2)).transpose(1, 2)))


class Cnn1d(nn.Module):
    def __init__(self, keys, samples):
        super().__init__()
        self.features = len(samples.shape) == 2
        before, self.blocks = samples.shape[-1] if self.features else 1, len(keys.integers("channels"))
        usual = (5, 1) if self.features else (81, 16)
        kernel, stride = (keys.integer(key) or each for key, each in zip(("first-kernel", "first-stride"), usual))
        for number, after in enumerate(keys.integers("channels"), 1):
            self.add_module(f"block{number}", FrameBlock(before, after, kernel, stride))
            before, kernel, stride = after, keys.integer("kernel"), 2
        self.dropout = nn.Dropout(keys.number("dropout"))
        self.output = nn.Linear(before, samples.outputs)

    def forward(self, frames):
        frames = frames if self.features else frames.unsqueeze(2)
        for number in range(1, self.blocks + 1):
            frames = getattr(self, f"block{number}")(frames)
        return self.output(self.dropout(frames.sum(1) / float(frames.shape[1])))


class Norm(nn.Module):
    def __init__(self, keys):
        super().__init__()
        width = keys.integer("width")
        self.epsilon = keys.number("norm-epsilon")
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if keys.text("norm") == "layer" else None

    def forward(self, values):
        if self.bias is None:
            return F.rms_norm(values, self.weight.shape, self.weight, self.epsilon)
        return F.layer_norm(values, self.weight.shape, self.weight, self.bias, self.epsilon)


def _scaled(frequencies, scaling):
    """Rotary frequencies as model.rotary-scaling says."""
    kind, *numbers = scaling.split()
    numbers = [float(each) for each in numbers]
    if kind == "none":
        return frequencies
    if kind == "linear":
        return frequencies / numbers[0]
    factor, low, high, context = numbers
    kept = ((frequencies * (context / (2 * math.pi)) - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / factor)


def _rotated(values, base, scaling):
    """Pairs (i, i + half) of each position's values, by its angles."""
    count, half = values.shape[2], values.shape[3] // 2
    frequencies = _scaled(torch.pow(base, -(torch.arange(half, dtype=torch.float32) / float(half))), scaling)
    angles = torch.arange(count, dtype=torch.float32).unsqueeze(1) * frequencies.unsqueeze(0)
    cosine, sine = angles.cos(), angles.sin()
    left, right = values[..., :half], values[..., half:]
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], 3)


class Block(nn.Module):
    def __init__(self, keys, rotary):
        super().__init__()
        self.rotary = rotary  # base and scaling, or None
        width, self.heads = keys.integer("width"), keys.integer("heads")
        self.shared = self.heads // (keys.integer("key-value-heads") or self.heads)
        shared, gated = width // self.shared, keys.text("activation") == "swiglu"
        between = keys.integer("feed-forward") or ((width * 8 // 3 + 31) // 32 * 32 if gated else width * 4)
        self.approximation = "tanh" if keys.text("activation") == "gelu-tanh" else "none"
        bias, of_inputs = keys.boolean("bias"), keys.text("bias") == "qkv" or keys.boolean("bias")
        self.attention_norm = Norm(keys)
        self.query, self.key, self.value = (nn.Linear(width, each, of_inputs) for each in (width, shared, shared))
        self.output = nn.Linear(width, width, bias)
        self.feed_forward_norm = Norm(keys)
        self.gate = nn.Linear(width, between, bias) if gated else None
        self.up, self.down = nn.Linear(width, between, bias), nn.Linear(between, width, bias)
        self.dropout = _dropout(keys) or nn.Identity()

    def attention(self, values, mask, causal):
        query, key, value = (each(values).unflatten(2, (heads, -1)).transpose(1, 2) for each, heads in (
            (self.query, self.heads), (self.key, self.heads // self.shared), (self.value, self.heads // self.shared)))
        if self.rotary:
            query, key = _rotated(query, *self.rotary), _rotated(key, *self.rotary)
        if self.shared > 1:
            key, value = (each.repeat_interleave(self.shared, 1) for each in (key, value))
        found = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal and mask is None)
        return self.output(found.transpose(1, 2).flatten(2))

    def feed_forward(self, values):
        if self.gate is not None:
            return self.down(F.silu(self.gate(values)) * self.up(values))
        return self.down(F.gelu(self.up(values), approximate=self.approximation))

    def forward(self, values, mask, causal):
        values = values + self.dropout(self.attention(self.attention_norm(values), mask, causal))
        return values + self.dropout(self.feed_forward(self.feed_forward_norm(values)))


class Blocks(nn.Module):
    def __init__(self, keys, rotary=None):
        super().__init__()
        self.layers = keys.integer("layers")
        for number in range(1, self.layers + 1):
            self.add_module(f"block{number}", Block(keys, rotary))
        self.norm = Norm(keys)

    def forward(self, values, mask=None, causal=False):
        for number in range(1, self.layers + 1):
            values = getattr(self, f"block{number}")(values, mask, causal)
        return self.norm(values)


class Vit(Picture):
    def __init__(self, keys, samples):
        super().__init__(keys, samples, 2)
        width, patch = keys.integer("width"), keys.integer("patch")
        count = math.prod(each // patch for each in self.extents)
        self.patches = nn.Conv2d(self.channels, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, count + 1, width))
        self.dropout = nn.Dropout(keys.number("dropout"))
        self.blocks = Blocks(keys)
        self.output = nn.Linear(width, samples.outputs)

    def forward(self, images):
        cut = self.patches(self.arranged(images)).flatten(2).transpose(1, 2)
        values = torch.cat([self.class_token.expand(cut.shape[0], -1, -1), cut], 1) + self.positions
        return self.output(self.blocks(self.dropout(values)).select(1, 0))


class Transformer(nn.Module):
    def __init__(self, keys, samples):
        super().__init__()
        width, tokens = keys.integer("width"), samples.vocabulary > 0
        vocabulary = keys.integer("vocabulary") or samples.vocabulary
        attention, positions = keys.text("attention"), keys.text("positions")
        self.per_sample = samples.per_sample
        self.causal = not self.per_sample if attention == "auto" else attention == "causal"
        self.end = samples.end_of_text if tokens and keys.text("documents") == "separate" else -1
        if tokens:
            self.embedding = nn.Embedding(vocabulary, width)
        else:
            self.rows = nn.Linear(samples.shape[-1], width)
        self.positions = None
        if positions == "learnt":
            self.positions = nn.Embedding(keys.integer("max-positions") or samples.shape[0], width)
        self.dropout = nn.Dropout(keys.number("dropout"))
        rotary = (keys.number("rotary-base"), keys.text("rotary-scaling")) if positions == "rotary" else None
        self.blocks = Blocks(keys, rotary)
        self.output = None
        if not (keys.boolean("tied") and tokens and not self.per_sample and samples.outputs == vocabulary):
            self.output = nn.Linear(width, samples.outputs, keys.boolean("bias"))

    def own_document(self, tokens):
        """Which positions each position sees: the token that ends a document belongs to it."""
        ends = tokens.eq(self.end).to(torch.int64)
        number = ends.cumsum(1) - ends
        same = number.unsqueeze(2).eq(number.unsqueeze(1))
        if self.causal:
            same = same.logical_and(torch.ones(2 * tokens.shape[1:], dtype=torch.bool).tril())
        return same.unsqueeze(1)

    def forward(self, given):
        values = self.embedding(given) if hasattr(self, "embedding") else self.rows(given)
        if self.positions is not None:
            values = values + self.positions(torch.arange(given.shape[1]))
        mask = self.own_document(given) if self.end >= 0 else None
        found = self.blocks(self.dropout(values), mask, self.causal)
        found = found.mean(1) if self.per_sample else found
        scores = F.linear(found, self.embedding.weight) if self.output is None else self.output(found)
        return scores if self.per_sample else scores.permute(0, 2, 1)


_LAYOUT = {"layout": "channels-first"}
_FORM = {"layers": "6", "width": "384", "heads": "6", "key-value-heads": "0", "feed-forward": "0", "norm-epsilon": "1e-5",
         "dropout": "0"}
# Models and their own keys with default values, as `lockstep models` lists them.
KINDS = {
    "cnn": (Cnn, {"channels": "16, 32", "hidden": "64", "batch-norm": "true", "dropout": "0", **_LAYOUT}),
    "cnn1d": (Cnn1d, {"channels": "64, 64, 96, 128", "kernel": "3", "first-kernel": "0", "first-stride": "0",
                      "dropout": "0"}),
    "cnn3d": (Cnn3d, {"channels": "12, 24, 48", "time-strides": "1, 2", "downsample": "stride", "activation": "relu",
                      "head": "average", "hidden": "0", "bound": "0", "dropout": "0", **_LAYOUT}),
    "mlp": (Mlp, {"hidden": "256, 128", "dropout": "0"}),
    "resnet": (ResNet, {"depth": "18", "stem": "auto", **_LAYOUT}),
    "transformer": (Transformer, {**_FORM, "norm": "rms", "activation": "swiglu", "bias": "false", "attention": "auto",
                                  "positions": "rotary", "rotary-base": "10000", "rotary-scaling": "none",
                                  "max-positions": "0", "vocabulary": "0", "tied": "true", "documents": "separate"}),
    "unet": (lambda *args: UNet(*args, 2), {"channels": "16, 32, 64", **_LAYOUT}),
    "unet3d": (lambda *args: UNet(*args, 3), {"channels": "16, 32, 64", **_LAYOUT}),
    "vit": (Vit, {**_FORM, "norm": "layer", "activation": "gelu", "bias": "true", "patch": "4", **_LAYOUT}),
}
