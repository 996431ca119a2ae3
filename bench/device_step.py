#!/usr/bin/env python3
"""Samples per second and memory of training on one device: this program beside PyTorch's DistributedDataParallel,
eager and compiled, each in processes of its own, with the same models, batches, precision and AdamW.

    bench/device_step.py --lockstep "bundle/run lockstep" --work DIRECTORY     # all rows, best first; a table
    bench/device_step.py --side eager --model resnet50 --precision bf16        # one process of PyTorch; a JSON line
    bench/device_step.py --lockstep "bundle/run mpirun -n {ranks} lockstep" --ranks 1 2 4 8    # how rates scale

What torch.compile makes is kept in --cache: a second process, or a second day, finds it there. Compiled sides have a
time limit of their own.

Both sides copy every batch from the host's memory, as float32. Ours also reads it from a file and converts it; theirs
has it ready in pinned memory. A rate is the median over windows of ten steps, after the first two.
"""
import argparse
import json
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy
import torch
from torch import nn

from step_deck import write_deck

CLASSES = 10
# Image size, batch, and keys of our model. `tiny` is for machines that are slow, such as simulated devices.
MODELS = {
    "cnn": {"shape": (1, 28, 28), "batch": 1024, "deck": "name = cnn"},
    "resnet50": {"shape": (3, 224, 224), "batch": 128, "deck": "name = resnet\ndepth = 50"},
    "transformer": {"shape": (3, 224, 224), "batch": 128, "deck": "name = vit\nlayers = 12\nwidth = 768\nheads = 12\npatch = 16"},
}
TINY = {
    "cnn": {"shape": (1, 28, 28), "batch": 8, "deck": "name = cnn"},
    "resnet50": {"shape": (3, 16, 16), "batch": 2, "deck": "name = resnet\ndepth = 50"},
    "transformer": {"shape": (3, 32, 32), "batch": 2, "deck": "name = vit\nlayers = 2\nwidth = 32\nheads = 2\npatch = 8"},
}
PRECISIONS = {
    "fp32": ["--precision.tf32", "false"],
    "tf32": ["--precision.tf32", "true"],
    "bf16": ["--precision.compute", "bf16"],
    "fp16": ["--precision.compute", "fp16"],
}
# Ours as a user has it, that is, with graphs; without them; and without the promise of the same bits; theirs.
SIDES = ("ours", "ours, eager", "ours, any order", "eager", "compiled", "eager, channels last", "compiled, channels last")
# In order of worth, since time may run out; what is compiled last, since that takes minutes, the smallest model first.
ROWS = [("resnet50", "bf16", ("ours", "eager, channels last", "ours, eager", "eager")),
        ("transformer", "bf16", ("ours", "eager", "ours, eager")),
        ("cnn", "bf16", ("ours", "eager, channels last", "ours, eager", "eager")),
        ("cnn", "fp32", ("ours", "eager", "ours, eager")), ("resnet50", "tf32", ("ours", "eager")),
        ("transformer", "tf32", ("ours", "eager")), ("cnn", "fp16", ("ours", "eager, channels last")),
        ("resnet50", "fp16", ("ours", "eager, channels last")), ("resnet50", "fp32", ("ours", "eager")),
        ("resnet50", "bf16", ("ours, any order",)), ("transformer", "bf16", ("ours, any order",)),
        ("cnn", "bf16", ("compiled, channels last",)), ("transformer", "bf16", ("compiled",)),
        ("resnet50", "bf16", ("compiled, channels last",))]
# Of each model what is fastest on either side, for several numbers of ranks.
SCALING = [("resnet50", "bf16", ("ours", "eager, channels last")), ("transformer", "bf16", ("ours", "eager")),
           ("cnn", "bf16", ("ours", "eager, channels last"))]


def window_of(tiny):
    """Steps that are timed together."""
    return 2 if tiny else 10


def cnn(shape, _tiny):
    layers, before = [], shape[0]
    for channels in (16, 32):
        layers += [nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2)]
        before = channels
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * (shape[1] // 4) ** 2, 64), nn.ReLU(),
                         nn.Linear(64, CLASSES))


class Residual(nn.Module):
    def __init__(self, before, width, after, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Sequential() if stride == 1 and before == after else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, inputs):
        return torch.relu(self.path(inputs) + self.shortcut(inputs))


def resnet50(shape, _tiny):
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    if shape[1] < 64:
        stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers, before = stem, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Residual(before, 64 << stage, 256 << stage, 2 if stage > 0 and block == 0 else 1))
            before = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        samples, tokens, width = inputs.shape
        parts = self.attention(self.first(inputs)).view(samples, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        inputs = inputs + self.output(found.transpose(1, 2).reshape(samples, tokens, width))
        return inputs + self.narrow(nn.functional.gelu(self.wide(self.second(inputs))))


class Transformer(nn.Module):
    """A vision transformer (arXiv 2010.11929) whose output is that of the mean token."""

    def __init__(self, shape, width, depth, heads, patch):
        super().__init__()
        self.patches = nn.Conv2d(shape[0], width, patch, patch)
        self.places = nn.Parameter(0.02 * torch.randn(1, (shape[1] // patch) * (shape[2] // patch), width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.output(self.norm(self.blocks(tokens)).mean(1))


def transformer(shape, tiny):
    # ViT-B/16, 86 million parameters.
    return Transformer(shape, *((32, 2, 2, 8) if tiny else (768, 12, 12, 16)))


def prepared(work, models, options):
    """What our side reads: images of random bytes for one epoch, also for several models, and a deck for each model."""
    work.mkdir(parents=True, exist_ok=True)
    tiny = options.tiny
    for name, model in models.items():
        batch, batches = model["batch"], window_of(tiny) * (options.windows + 1)
        data = "x".join(map(str, (batch * batches, *model["shape"])))
        if not (work / f"{data}.h5").exists():
            images = numpy.random.default_rng(0).integers(0, 256, (2 * batch, *model["shape"]), numpy.uint8)
            with h5py.File(work / f"{data}.h5", "w") as file:
                inputs = file.create_dataset("inputs", (batch * batches, *model["shape"]), numpy.uint8)
                for first in range(0, batch * batches, 2 * batch):
                    inputs[first:first + 2 * batch] = images[:batch * batches - first]
                file["targets"] = numpy.arange(batch * batches) % CLASSES
                file.attrs["classes"] = [str(each) for each in range(CLASSES)]
        write_deck(work / f"{name}.ini", data=work / f"{data}.h5", batch=model["batch"], model=model["deck"],
                   window=window_of(tiny), workers=min(8, os.cpu_count()))


class Trainer:
    """A step as PyTorch's users write it."""

    def __init__(self, options, model):
        self.device = torch.device(options.device)
        self.kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
        self.form = torch.channels_last if "channels last" in options.side else torch.contiguous_format
        self.model = model.to(self.device, memory_format=self.form)
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(self.device)
        self.model = nn.parallel.DistributedDataParallel(
            self.model, device_ids=[self.device.index or 0] if on_gpu else None, gradient_as_bucket_view=True)
        if options.side.startswith("compiled"):
            # Without its own code generator where there is no GPU: that needs a compiler.
            self.model = torch.compile(self.model, backend="inductor" if on_gpu else "aot_eager")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=options.precision == "fp16")

    def step(self, images, labels):
        images = images.to(self.device, non_blocking=True).contiguous(memory_format=self.form)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        with torch.autocast(self.device.type, self.kind, enabled=self.kind is not None):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def their_side(options):
    """What this process of PyTorch measures."""
    model = (TINY if options.tiny else MODELS)[options.model]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    if options.tiny:
        torch.set_num_threads(1)
    on_gpu = options.device.startswith("cuda")
    rank, ranks = (int(os.environ.get(key, otherwise)) for key, otherwise in (("RANK", 0), ("WORLD_SIZE", 1)))
    if on_gpu and ranks > 1:
        options.device = f"cuda:{rank}"
    with tempfile.TemporaryDirectory() as place:
        torch.distributed.init_process_group(
            "nccl" if on_gpu else "gloo", rank=rank, world_size=ranks,
            init_method=f"file://{place}/ranks" if ranks == 1 else "env://")
        trainer = Trainer(options, globals()[options.model](model["shape"], options.tiny))
        batches = [(torch.randint(0, 256, (model["batch"], *model["shape"])).float() / 255,
                    torch.randint(0, CLASSES, (model["batch"],))) for _ in range(4)]
        if on_gpu:
            batches = [(images.pin_memory(), labels.pin_memory()) for images, labels in batches]
        windows = []
        for at in range(options.windows):
            trainer.wait()
            begin = time.perf_counter()
            for step in range(window_of(options.tiny)):
                loss = trainer.step(*batches[step % len(batches)])
            trainer.wait()
            windows.append(time.perf_counter() - begin)
        memory, loss = torch.cuda.max_memory_allocated() if on_gpu else 0, loss.item()
        torch.distributed.destroy_process_group()
    return figures_of(options, windows, model["batch"], memory, loss) if rank == 0 else None


def figures_of(options, windows, batch, memory, loss, **figures):
    """What `lockstep bench --json` prints, with the same keys."""
    seconds = [each / window_of(options.tiny) for each in windows[settled(windows):]]
    return {"what": f"step {options.model}", "variant": options.side, "precision": options.precision, "batch": batch,
            "ranks": options.ranks[0], "median_s": statistics.median(seconds), "minimum_s": min(seconds), "maximum_s": max(seconds),
            "samples_per_s": options.ranks[0] * batch / statistics.median(seconds), "memory_bytes": memory, "loss": loss, **figures}


def settled(windows):
    """Windows at the start that do not count: kernels are chosen, compiled and loaded."""
    return min(2, len(windows) - 1)


def our_side(options):
    """What the records of a run of our program say."""
    model = (TINY if options.tiny else MODELS)[options.model]
    ranks = options.ranks[0]
    run = options.work / (f"run-{options.model}-{options.precision}-{options.side.replace(', ', '-').replace(' ', '-')}"
                          f"-{ranks}")
    window = window_of(options.tiny)
    command = [*shlex.split(options.lockstep.format(ranks=ranks)), "train", options.work / f"{options.model}.ini", "--run.directory", run,
               "--run.device", options.device, "--train.steps", window * (options.windows + 1), "--quiet",
               "--run.replicas", ranks, "--checkpoint.resume", "none", *PRECISIONS[options.precision]]
    if options.side == "ours, eager":
        command += ["--run.graphs", "false"]
    if options.side == "ours, any order":
        command += ["--run.deterministic", "false", "--communication.reduction", "native"]
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr, timeout=options.limit)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["event"] == "step" and record["step"] % window == 0]
    windows = [now["elapsed_s"] - before["elapsed_s"] for before, now in zip(steps, steps[1:])]
    parts = {key: statistics.median(step[key] for step in steps[1:])
             for key in ("data_ms", "forward_ms", "backward_ms", "communication_ms", "update_ms")}
    return figures_of(options, windows, model["batch"], steps[-1].get("device_memory_peak_bytes", 0),
                      steps[-1]["loss"], **parts)


def measured(options):
    """One side in processes of its own: what it measured, or why it measured nothing."""
    try:
        if options.side.startswith("ours"):
            return our_side(options)
        ranks, env = options.ranks[0], dict(os.environ)
        if options.cache:
            env |= {"TORCHINDUCTOR_CACHE_DIR": str(options.cache), "TORCHINDUCTOR_FX_GRAPH_CACHE": "1"}
        start = ([sys.executable] if ranks == 1 else
                 [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks])
        command = [*start, __file__, "--ranks", ranks, "--side", options.side, "--model", options.model, "--precision",
                   options.precision, "--windows", options.windows, "--device", "cpu" if options.tiny else options.device,
                   *(["--tiny"] if options.tiny else [])]
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=options.limit, env=env)
        return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))
    except subprocess.TimeoutExpired:
        return {"failed": f"no end within {options.limit:.0f} s"}
    except subprocess.CalledProcessError as error:
        print(error.stderr or "", file=sys.stderr)
        last = ((error.stderr or "").strip().splitlines() or ["see above"])[-1]
        return {"failed": f"exit code {error.returncode}: {last[:120]}"}


def table(found, file):
    """Every row so far, with its rate beside that of the fastest DDP."""
    lines = ["| model | precision | side | ranks | samples/s | to DDP | of linear | memory | step, ms |",
             "|---|---|---|---|---|---|---|---|---|"]
    for (model, precision, side, ranks), each in found.items():
        if "failed" in each:
            lines.append(f"| {model} | {precision} | {side} | {ranks} | {each['failed'].replace('|', '/')} | | | | |")
            continue
        theirs = [found[model, precision, other, ranks].get("samples_per_s", 0) for other in SIDES
                  if not other.startswith("ours") and (model, precision, other, ranks) in found]
        ratio = f"{each['samples_per_s'] / max(theirs):.2f}" if any(theirs) else ""
        alone = found.get((model, precision, side, 1), {}).get("samples_per_s", 0)
        linear = f"{100 * each['samples_per_s'] / (ranks * alone):.0f} %" if alone and ranks > 1 else ""
        lines.append(f"| {model} | {precision} | {side} | {ranks} | {each['samples_per_s']:.0f} | "
                     f"{ratio} | {linear} | {each['memory_bytes'] / 2**30:.2f} GiB | "
                     f"{1e3 * each['median_s']:.1f} ({1e3 * each['minimum_s']:.1f} – {1e3 * each['maximum_s']:.1f}) |")
    file.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", default="build/lockstep", help="the command that starts the program")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("device_step"), help="for data and runs")
    parser.add_argument("--device", default="cuda", help="as in run.device")
    parser.add_argument("--tiny", action="store_true", help="small models, PyTorch on the CPU: a dry run")
    parser.add_argument("--windows", type=int, default=6, help="of ten steps")
    parser.add_argument("--limit", type=float, default=100, help="seconds of one process, at most")
    parser.add_argument("--compile-limit", type=float, default=240, help="the same for a compiled side")
    parser.add_argument("--cache", type=pathlib.Path, help="for what torch.compile makes; default: WORK/inductor")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1], help="several: how the fastest sides scale, with "
                        "{ranks} in --lockstep")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no more processes are started")
    parser.add_argument("--table", type=pathlib.Path, help="file for the table, written again after each row")
    parser.add_argument("--side", choices=SIDES, help="measure one side alone")
    parser.add_argument("--model", choices=list(MODELS), default="cnn")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    options = parser.parse_args()
    if options.side:
        one = (our_side if options.side.startswith("ours") else their_side)(options)
        if one:
            print(json.dumps(one), flush=True)
        return 0
    begin, found = time.monotonic(), {}
    options.table = options.table or options.work / "table.md"
    options.work = options.work.resolve()
    options.cache = (options.cache or options.work / "inductor").resolve()
    prepared(options.work, TINY if options.tiny else MODELS, options)
    rows = ROWS if options.ranks == [1] else SCALING
    if options.tiny:
        rows = [row for row in rows if row[1] == "bf16" or row[0] == "cnn"]
    for model, precision, side, ranks in ((model, precision, side, ranks) for model, precision, sides in rows
                                          for ranks in options.ranks for side in sides):
        left = options.seconds - (time.monotonic() - begin)
        limit = options.compile_limit if side.startswith("compiled") else options.limit
        if left < 15:
            one = {"failed": "no time was left"}
        else:
            one = measured(argparse.Namespace(**vars(options) | {"model": model, "precision": precision, "side": side,
                                                                 "ranks": [ranks], "limit": min(limit, left)}))
            print(f"{time.monotonic() - begin:.0f} s: {json.dumps(one)}", file=sys.stderr, flush=True)
        found[model, precision, side, ranks] = one
        table(found, options.table)
    print(options.table.read_text())
    return 1 if any(each.get("failed", "no time").split()[0] != "no" for each in found.values() if "failed" in each) else 0


if __name__ == "__main__":
    sys.exit(main())
