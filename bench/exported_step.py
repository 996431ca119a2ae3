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

import lockstep_builtin  # noqa: E402
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


@dataclasses.dataclass
class Workload:
    model: str  # keys of the built-in model
    batch: int  # samples per step
    shape: tuple = (3, 32, 32)  # of a sample
    masks: bool = False  # a class for each place
    vocabulary: int = 0  # of texts of shape[0] tokens

    def task(self):
        if self.vocabulary:
            return f"kind = language\nvocabulary = {self.vocabulary}"
        return "kind = segmentation" if self.masks else "kind = classification"

    def batches(self, samples, generator=None):
        """Inputs and targets."""
        if self.vocabulary:
            tokens = torch.randint(0, self.vocabulary, (samples, self.shape[0] + 1), generator=generator)
            return tokens[:, :-1], tokens[:, 1:]
        places = self.shape[1:] if self.masks else ()
        return (torch.rand(samples, *self.shape, generator=generator),
                torch.randint(0, CLASSES, (samples, *places), generator=generator))


def transformer(layers, width, heads, vocabulary=0):
    return (f"name = transformer\nlayers = {layers}\nwidth = {width}\nheads = {heads}\nnorm = layer\nactivation = gelu\n"
            f"bias = true\npositions = learnt\nvocabulary = {vocabulary}")


ENCODER = transformer(2, 64, 4)
# 12.3 million parameters are the GPT.
MODELS = {"mlp18m": Workload("name = mlp\nhidden = 2048, 4096, 2048", 64),
          "cnn": Workload("name = cnn", 64),
          "resnet18": Workload("name = resnet\nstem = small", 16),
          "unet": Workload("name = unet", 8, (3, 64, 64), masks=True),
          "cnn3d": Workload("name = cnn3d", 8, (3, 8, 64, 64)),
          "cnn1d": Workload("name = cnn1d", 64, (96, 40)),
          "encoder": Workload(ENCODER, 64, (28, 28)),
          "encoder-dropout": Workload(f"{ENCODER}\ndropout = 0.1", 64, (28, 28)),
          "transformer": Workload(transformer(4, 192, 6, 512), 16, (128,), vocabulary=512),
          "gpt": Workload(transformer(6, 384, 6, 4096), 4, (256,), vocabulary=4096)}


def write(scratch, name, options):
    """The data, and the decks of our sides; compiling takes minutes."""
    work, data, file = MODELS[name], scratch / f"{name}.h5", scratch / f"{name}.pt2"
    torch.manual_seed(1)
    inputs, targets = work.batches(work.batch * 8)
    with h5py.File(data, "w") as out:
        if work.vocabulary:
            out["inputs"] = torch.cat([inputs.flatten(), targets[-1, -1:]]).numpy().astype("u2")
        else:
            out["inputs"], out["targets"] = inputs.numpy(), targets.numpy()
            out.attrs["classes"] = [str(each) for each in range(CLASSES)]
    exported = f"name = export\nfile = {file}"
    sides = {"built-in": (work.model, work.task()), "exported": (exported, "kind = export"),
             "compiled": (f"{exported}\ncompiled = require", "kind = export")}
    for side, (model, task) in sides.items():
        deck_of(scratch, name, side).write_text(DECK.format(
            data=data, batch=work.batch, model=model, task=task, steps=options.steps + WARM_UP,
            sequence=f"sequence = {work.shape[0]}" if work.vocabulary else ""))
    weights = weights_of(scratch, name)
    run([options.build / "lockstep", "checkpoint", "export", deck_of(scratch, name, "built-in"), weights, "--overwrite"])
    lockstep_builtin.save(weights, file)
    if "compiled" in options.sides:
        lockstep_export.compile(file, processor=PROCESSOR, segments=options.segments)


def deck_of(scratch, name, side):
    return scratch / f"{name}-{side}.ini"


def weights_of(scratch, name):
    return scratch / f"{name}.safetensors"


def decks(scratch, name, options):
    made = {side: deck_of(scratch, name, side) for side in options.sides}
    if not options.files or not all(deck.exists() for deck in made.values()):
        write(scratch, name, options)
    return made


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


def ddp_step(options, scratch, model, *words):
    out = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", options.ranks,
               ROOT / "bench/exported_ddp.py", model, weights_of(scratch, model), "--steps", options.steps, *words])
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
                sides["DDP"] = lambda number: ddp_step(options, scratch, model)
                sides["DDP, torch.compile"] = lambda number: ddp_step(options, scratch, model, "--compile")
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
