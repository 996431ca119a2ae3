#!/usr/bin/env python3
"""A training step of an exported program, run by its graph and compiled, beside that of the built-in model of the
same layers: rounds of runs on one rank and one thread, one after the other; ratios are taken within a round, of the
median step of each run.

    .venv/bin/python bench/exported_step.py --rounds 5
"""
import argparse
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

CLASSES, VOCABULARY, SEQUENCE, WIDTH, HEADS, LAYERS = 10, 512, 128, 192, 6, 4
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


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, values):
        normed = self.attention_norm(values)
        query, key, value = (each(normed).unflatten(2, (HEADS, -1)).transpose(1, 2)
                             for each in (self.query, self.key, self.value))
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        values = values + self.output(found.transpose(1, 2).flatten(2))
        return values + self.down(F.gelu(self.up(self.feed_forward_norm(values))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(SEQUENCE, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        values = self.embedding(tokens) + self.positions(torch.arange(SEQUENCE))
        return F.linear(self.norm(self.blocks(values)), self.embedding.weight).permute(0, 2, 1)


IMAGES = torch.rand(2, 3, 32, 32)
# The program, an example of its input, the built-in model's keys, samples per step.
MODELS = {"cnn": (cnn, IMAGES, "name = cnn", 64),
          "resnet18": (resnet18, IMAGES, "name = resnet\nstem = small", 16),
          "transformer": (Transformer, torch.zeros(2, SEQUENCE, dtype=torch.int64),
                          f"name = transformer\nlayers = {LAYERS}\nwidth = {WIDTH}\nheads = {HEADS}\nnorm = layer\n"
                          f"activation = gelu\nbias = true\npositions = learnt\nvocabulary = {VOCABULARY}", 16)}


def loss(scores, targets):
    return {"loss": F.cross_entropy(scores, targets, reduction="sum"), "samples": targets.numel(),
            "correct": (scores.argmax(1) == targets).sum()}


def write(scratch, name, steps):
    """Decks of all sides."""
    make, example, keys, batch = MODELS[name]
    torch.manual_seed(1)
    model = make()
    lockstep_export.save(model, (example,), scratch / f"{name}.pt2")
    data, texts = scratch / f"{name}.h5", name == "transformer"
    own = lockstep_export.language_loss() if texts else loss
    targets = torch.zeros(example.shape if texts else len(example), dtype=torch.int64)
    lockstep_export.save(model, (example,), scratch / f"{name}-loss.pt2", loss=own, targets=(targets,),
                         weight="tokens" if texts else "samples")
    lockstep_export.compile(scratch / f"{name}-loss.pt2", processor=PROCESSOR)
    with h5py.File(data, "w") as file:
        if texts:
            file["inputs"] = torch.randint(0, VOCABULARY, (batch * SEQUENCE * 8 + 1,)).numpy().astype("u2")
        else:
            file["inputs"] = torch.rand(batch * 8, *example.shape[1:]).numpy()
            file["targets"] = torch.randint(0, CLASSES, (batch * 8,)).numpy()
            file.attrs["classes"] = [str(each) for each in range(CLASSES)]
    task = f"kind = language\nvocabulary = {VOCABULARY}" if texts else "kind = classification"
    decks = {}
    sides = {"built-in": (keys, task), "exported": (f"name = export\nfile = {scratch}/{name}.pt2", task),
             "compiled": (f"name = export\nfile = {scratch}/{name}-loss.pt2\ncompiled = require", "kind = export")}
    for side, (model, task) in sides.items():
        decks[side] = scratch / f"{name}-{side}.ini"
        decks[side].write_text(DECK.format(data=data, batch=batch, model=model, task=task, steps=steps + WARM_UP,
                                           sequence=f"sequence = {SEQUENCE}" if texts else ""))
    return decks


def median_step(build, deck, directory):
    done = subprocess.run([str(build / "lockstep"), "train", str(deck), "--run.directory", str(directory)],
                          capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["step_ms"] for line in lines if "step_ms" in line][WARM_UP:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    print("| model | program | step | built-in's step / its step: median, of all rounds |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for model in options.models.split(","):
            decks = write(scratch, model, options.steps)
            times = {side: [] for side in decks}
            for number in range(options.rounds):
                for side, deck in decks.items():
                    times[side].append(median_step(options.build, deck, scratch / f"{model}-{side}-{number}"))
            for side, steps in times.items():
                ratios = [a / b for a, b in zip(times["built-in"], steps)]
                print(f"| {model} | {side} | {statistics.median(steps):.1f} ms | {statistics.median(ratios):.3f}, "
                      f"{min(ratios):.3f} to {max(ratios):.3f} |", flush=True)


if __name__ == "__main__":
    main()
