#!/usr/bin/env python3
"""A training step of an exported program, run by its graph and compiled, beside that of the built-in model of the
same layers: rounds of runs with one thread a rank, one after the other; ratios are taken within a round, of the median
step of each run. With --ranks 2 also beside PyTorch's DDP over gloo, eager and under torch.compile, on the same module.

    .venv/bin/python bench/exported_step.py --rounds 5
    .venv/bin/python bench/exported_step.py --ranks 2 --models mlp18m,cnn
"""
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import h5py  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import lockstep_export  # noqa: E402

CLASSES = 10
WARM_UP = 5  # steps
PROCESSOR = "x86-64-v4" if "AVX512" in torch.backends.cpu.get_cpu_capability() else None
DECK = """
[run]
device = cpu
[data]
train = {data}
batch = {batch}
{sequence}
[model]
{model}
[task]
{task}
[monitor]
log-every = 1
histograms = none
tensorboard = false
plots = false
[checkpoint]
every-steps = 0
[train]
steps = {steps}
"""


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        self.shortcut = None
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, values):
        found = self.second_norm(self.second(F.relu(self.first_norm(self.first(values)))))
        return F.relu(found + (self.shortcut(values) if self.shortcut else values))


def resnet18():
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    before = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(before, after, stride), Residual(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def cnn():
    layers, before = [], 3
    for after in (16, 32):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
        before = after
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 64, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def cnn3d():
    layers, before = [], 3
    for after, in_time in ((12, 1), (24, 2), (48, 2)):
        layers += [nn.Conv3d(before, after, 3, (in_time, 2, 2), 1, bias=False), nn.BatchNorm3d(after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(before, CLASSES))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([self.level(3, 16), self.level(16, 32), self.level(32, 64)])
        self.up = nn.ModuleList([self.level(64 + 32, 32), self.level(32 + 16, 16)])
        self.scores = nn.Conv2d(16, CLASSES, 1)

    @staticmethod
    def level(before, after):
        return nn.Sequential(*(layer for width in (before, after) for layer in (
            nn.Conv2d(width, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())))

    def forward(self, values):
        kept = []
        for level in self.down:
            values = level(F.max_pool2d(values, 2) if kept else values)
            kept.append(values)
        kept.pop()
        for level in self.up:
            across = kept.pop()
            values = level(torch.cat([across, F.interpolate(values, across.shape[2:])], 1))
        return self.scores(values)


class Frames(nn.Module):
    """Convolutions along time with layer norms of the channels."""

    def __init__(self):
        super().__init__()
        widths = [40, 64, 64, 96, 128]
        self.convolutions = nn.ModuleList(nn.Conv1d(before, after, 3 if at else 5, 2 if at else 1, 1 if at else 2)
                                          for at, (before, after) in enumerate(zip(widths, widths[1:])))
        self.norms = nn.ModuleList(nn.LayerNorm(after) for after in widths[1:])
        self.scores = nn.Linear(widths[-1], CLASSES)

    def forward(self, frames):
        for convolution, norm in zip(self.convolutions, self.norms):
            frames = F.gelu(norm(convolution(frames.transpose(1, 2)).transpose(1, 2)))
        return self.scores(frames.mean(1))


def keys_of_blocks(form):
    return (f"name = transformer\nlayers = {form.layers}\nwidth = {form.width}\nheads = {form.heads}\nnorm = layer\n"
            "activation = gelu\nbias = true\npositions = learnt")


@dataclasses.dataclass
class Texts:
    """A causal transformer with learnt positions and a tied head; 12.3 million parameters are the GPT."""
    vocabulary: int
    sequence: int
    width: int
    heads: int
    layers: int

    def keys(self):
        return f"{keys_of_blocks(self)}\nvocabulary = {self.vocabulary}"

    def example(self):
        return torch.zeros(2, self.sequence, dtype=torch.int64)


@dataclasses.dataclass
class Rows:
    """An encoder of the rows of an image, for one label."""
    dropout: float
    rows: int = 28
    width: int = 64
    heads: int = 4
    layers: int = 2

    def keys(self):
        return f"{keys_of_blocks(self)}\ndropout = {self.dropout}"

    def example(self):
        return torch.rand(2, self.rows, self.rows)


class Block(nn.Module):
    def __init__(self, form):
        super().__init__()
        width = form.width
        self.heads, self.causal = form.heads, isinstance(form, Texts)
        self.dropout = nn.Identity() if self.causal else nn.Dropout(form.dropout)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, values):
        normed = self.attention_norm(values)
        query, key, value = (each(normed).unflatten(2, (self.heads, -1)).transpose(1, 2)
                             for each in (self.query, self.key, self.value))
        found = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        values = values + self.dropout(self.output(found.transpose(1, 2).flatten(2)))
        return values + self.dropout(self.down(F.gelu(self.up(self.feed_forward_norm(values)))))


class Transformer(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form = form
        self.embedding, self.positions = (nn.Embedding(rows, form.width) for rows in (form.vocabulary, form.sequence))
        self.blocks = nn.Sequential(*(Block(form) for _ in range(form.layers)))
        self.norm = nn.LayerNorm(form.width)
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, 0, 0.02)

    def forward(self, tokens):
        values = self.embedding(tokens) + self.positions(torch.arange(self.form.sequence))
        return F.linear(self.norm(self.blocks(values)), self.embedding.weight).permute(0, 2, 1)


class Encoder(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.rows, self.positions = nn.Linear(form.rows, form.width), nn.Embedding(form.rows, form.width)
        self.dropout = nn.Dropout(form.dropout)
        self.blocks = nn.Sequential(*(Block(form) for _ in range(form.layers)))
        self.norm, self.scores = nn.LayerNorm(form.width), nn.Linear(form.width, CLASSES)

    def forward(self, rows):
        values = self.dropout(self.rows(rows) + self.positions(torch.arange(rows.shape[1])))
        return self.scores(self.norm(self.blocks(values)).mean(1))


def mlp18m():
    widths = [3 * 32 * 32, 2048, 4096, 2048]
    layers = [nn.Flatten()]
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], CLASSES))


IMAGES = torch.rand(2, 3, 32, 32)
ENCODERS = {"encoder": Rows(0.0), "encoder-dropout": Rows(0.1)}
TEXTS = {"transformer": Texts(512, 128, 192, 6, 4), "gpt": Texts(4096, 256, 384, 6, 6)}
# The program, an example of its input, the built-in model's keys, samples per step.
MODELS = {"mlp18m": (mlp18m, IMAGES, "name = mlp\nhidden = 2048, 4096, 2048", 64),
          "cnn": (cnn, IMAGES, "name = cnn", 64),
          "resnet18": (resnet18, IMAGES, "name = resnet\nstem = small", 16),
          "unet": (UNet, torch.rand(2, 3, 64, 64), "name = unet", 8),
          "cnn3d": (cnn3d, torch.rand(2, 3, 8, 64, 64), "name = cnn3d", 8),
          "cnn1d": (Frames, torch.rand(2, 96, 40), "name = cnn1d", 64),
          **{name: (lambda form=form: Encoder(form), form.example(), form.keys(), 64)
             for name, form in ENCODERS.items()},
          **{name: (lambda form=form: Transformer(form), form.example(), form.keys(), batch)
             for (name, form), batch in zip(TEXTS.items(), (16, 4))}}
MASKS = {"unet"}  # models of masks


def shape_of_targets(name, samples):
    """A class for each sample, or of masks for each place."""
    example = MODELS[name][1]
    return (samples, *example.shape[2:]) if name in MASKS else (samples,)


def loss(scores, targets):
    return {"loss": F.cross_entropy(scores, targets, reduction="sum"), "samples": targets.shape[0],
            "correct": (scores.argmax(1) == targets).sum()}


def write(scratch, name, options):
    """Decks of our sides; compiling takes minutes."""
    make, example, keys, batch = MODELS[name]
    torch.manual_seed(1)
    model = make()
    lockstep_export.save(model, (example,), scratch / f"{name}.pt2")
    data, texts = scratch / f"{name}.h5", TEXTS.get(name)
    if "compiled" in options.sides:
        own = lockstep_export.language_loss() if texts else loss
        targets = torch.zeros(example.shape if texts else shape_of_targets(name, len(example)), dtype=torch.int64)
        lockstep_export.save(model, (example,), scratch / f"{name}-loss.pt2", loss=own, targets=(targets,),
                             weight="tokens" if texts else "samples")
        lockstep_export.compile(scratch / f"{name}-loss.pt2", processor=PROCESSOR, segments=options.segments)
    with h5py.File(data, "w") as file:
        if texts:
            file["inputs"] = torch.randint(0, texts.vocabulary, (batch * texts.sequence * 8 + 1,)).numpy().astype("u2")
        else:
            file["inputs"] = torch.rand(batch * 8, *example.shape[1:]).numpy()
            file["targets"] = torch.randint(0, CLASSES, shape_of_targets(name, batch * 8)).numpy()
            file.attrs["classes"] = [str(each) for each in range(CLASSES)]
    task = f"kind = language\nvocabulary = {texts.vocabulary}" if texts else "kind = segmentation" if name in MASKS else "kind = classification"
    decks = {}
    sides = {"built-in": (keys, task), "exported": (f"name = export\nfile = {scratch}/{name}.pt2", task),
             "compiled": (f"name = export\nfile = {scratch}/{name}-loss.pt2\ncompiled = require", "kind = export")}
    for side in options.sides:
        model, task = sides[side]
        decks[side] = scratch / f"{name}-{side}.ini"
        decks[side].write_text(DECK.format(data=data, batch=batch, model=model, task=task, steps=options.steps + WARM_UP,
                                           sequence=f"sequence = {texts.sequence}" if texts else ""))
    return decks


def decks(scratch, name, options):
    made = {side: scratch / f"{name}-{side}.ini" for side in options.sides}
    if options.files and all(deck.exists() for deck in made.values()):
        return made
    return write(scratch, name, options)


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def our_step(options, deck, directory):
    """Milliseconds, the median of a run."""
    ranks = [] if options.ranks == 1 else ["mpirun", "-n", options.ranks]
    run([*ranks, options.build / "lockstep", "train", deck, "--run.directory", directory, "--checkpoint.resume", "none"])
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["step_ms"] for line in lines if "step_ms" in line][WARM_UP:])


def ddp_step(options, model, *words):
    out = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", options.ranks,
               ROOT / "bench/exported_ddp.py", model, "--steps", options.steps, *words])
    return json.loads(out.splitlines()[-1])["median_s"] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="cnn,resnet18,transformer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--segments", type=int, default=1, help="of the compiled step")
    parser.add_argument("--sides", default="built-in,exported,compiled", type=lambda text: text.split(","), help="of ours")
    parser.add_argument("--files", type=pathlib.Path, help="keep models, decks and runs there, and use what is there")
    parser.add_argument("--prepare", action="store_true", help="only make --files: compiling takes minutes")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    if options.files:
        options.files.mkdir(parents=True, exist_ok=True)
    if options.prepare:
        if not options.files:
            parser.error("--prepare needs --files, the directory to write to")
        for model in options.models.split(","):
            write(options.files, model, options)
        return
    print("| model | step of | median | its step / the step of the built-in, the exported, the compiled: median, range |"
          "\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        scratch = options.files or pathlib.Path(name)
        for model in options.models.split(","):
            sides = {side: lambda number, side=side, deck=deck:
                     our_step(options, deck, scratch / f"{model}-{side}-{number}")
                     for side, deck in decks(scratch, model, options).items()}
            ours = list(sides)
            if options.ranks > 1:
                sides["DDP"] = lambda number: ddp_step(options, model)
                sides["DDP, torch.compile"] = lambda number: ddp_step(options, model, "--compile")
            times = {side: [] for side in sides}
            for number in range(options.rounds):
                for side, step in sides.items():
                    times[side].append(step(number))
            for side, steps in times.items():
                found = []
                for other in ours:
                    ratios = [a / b for a, b in zip(steps, times[other])]
                    found.append(f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
                print(f"| {model} | {side} | {statistics.median(steps):.1f} ms | {', '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
