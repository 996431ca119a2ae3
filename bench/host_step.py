#!/usr/bin/env python3
"""The host's part of a training step: this program beside PyTorch's DistributedDataParallel on the same simulated
accelerator, whose kernels do nothing. What is left is what the host does, in milliseconds, and what it calls: kernels,
allocations, copies, events, waits.

    cmake --build build --target lockstep lockstep_sim
    bench/host_step.py --build build                                  # all models; a table
    bench/host_step.py --build build --models cnn --rounds 1 --json   # a line for each measurement

Neither side has a device's time: batches are small, since the host's work does not depend on their size. NCCL is absent
on both sides (one rank). A time is the median over windows of ten steps; rounds alternate the sides.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import types

import h5py
import numpy

from step_deck import write_deck

CLASSES, WINDOW = 10, 10
VOCABULARY, SEQUENCE = 50257, 64
# Shape of a sample, batch, and keys of our model.
MODELS = {
    "cnn": ((1, 28, 28), 8, "name = cnn"),
    "resnet50": ((3, 64, 64), 2, "name = resnet\ndepth = 50\nstem = large"),
    "vit": ((3, 224, 224), 1, "name = vit\nlayers = 12\nwidth = 768\nheads = 12\npatch = 16"),
    "gpt": ((SEQUENCE,), 1, "name = transformer\nlayers = 12\nwidth = 768\nheads = 12\npositions = learnt\nnorm = layer\n"
                            f"activation = gelu-tanh\nbias = true\ntied = true\nvocabulary = {VOCABULARY}"),
}
SIDES = ("ours", "ours, graphs", "ddp")


def device_settings(calls):
    return f"devices=1,mib=65536,check=off,kernels=off,calls={calls}"


def calls_in(directory):
    """How often the one process with a device has called what so far, by name (tests/sim/call_counts.hpp)."""
    found = {}
    for file in pathlib.Path(directory).iterdir():
        for name, calls in struct.iter_unpack("=56sQ", file.read_bytes()):
            if calls:
                found[name.split(b"\0")[0].decode()] = found.get(name.split(b"\0")[0].decode(), 0) + calls
    return found


def per_step(after, before, steps):
    return {name: (calls - before.get(name, 0)) / steps for name, calls in after.items() if calls != before.get(name, 0)}


# --- ours ---------------------------------------------------------------------------------------------


def prepare(work, name):
    shape, batch, model = MODELS[name]
    dice = numpy.random.default_rng(0)
    samples = 64 * batch
    with h5py.File(work / f"{name}.h5", "w") as file:
        if name == "gpt":
            file["inputs"] = dice.integers(0, VOCABULARY, samples * SEQUENCE + 1).astype("u2")
        else:
            file["inputs"] = dice.integers(0, 256, (samples, *shape)).astype("u1")
            file["targets"] = numpy.arange(samples) % CLASSES
            file.attrs["classes"] = [str(each) for each in range(CLASSES)]
    text = {"task": f"language\nvocabulary = {VOCABULARY}", "sequence": f"sequence = {SEQUENCE}"} if name == "gpt" else {}
    write_deck(work / f"{name}.ini", data=work / f"{name}.h5", batch=batch, model=model, window=WINDOW, **text)


def our_run(options, steps):
    """The records of a run's windows, and what it called in all."""
    with tempfile.TemporaryDirectory() as place:
        calls = pathlib.Path(place) / "calls"
        calls.mkdir()
        command = [options.build / "lockstep", "train", options.work / f"{options.model}.ini", "--run.directory",
                   f"{place}/run", "--run.device", "sim:0", "--train.steps", steps, "--quiet"]
        command += ["--run.graphs", "true" if options.side == "ours, graphs" else "false"]
        env = {**os.environ, "LD_PRELOAD": str(options.build / "tests/liblockstep_sim.so"),
               "LOCKSTEP_SIM": device_settings(calls)}
        done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=options.limit)
        if done.returncode != 0:
            sys.exit(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        records = [json.loads(line) for line in pathlib.Path(place, "run/metrics.jsonl").read_text().splitlines()]
        return [each for each in records if each["event"] == "step" and each["step"] % WINDOW == 0], calls_in(calls)


def our_side(options):
    _, before = our_run(options, WINDOW)
    steps, after = our_run(options, WINDOW * (options.windows + 1))
    return ([(now["elapsed_s"] - last["elapsed_s"]) / WINDOW for last, now in zip(steps, steps[1:])],
            per_step(after, before, WINDOW * options.windows))


# --- PyTorch ------------------------------------------------------------------------------------------


def null_device(torch, library):
    """The simulated devices as torch's backend "sim"."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    module = types.ModuleType("torch.sim")
    module.is_available, module.is_initialized, module._is_in_bad_fork = lambda: True, lambda: True, lambda: False
    module.device_count, module.current_device, module.set_device = lambda: 1, lambda: 0, lambda _: None
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    module._lazy_init = lambda: None
    torch._register_device_module("sim", module)


def null_group(torch):
    """In place of NCCL: every collective is over at once."""
    class Null(torch.distributed.ProcessGroup):
        def over(self, tensors, _):
            done = torch.futures.Future()
            done.set_result(tensors)
            return torch._C._distributed_c10d._create_work_from_future(done)

        allreduce = broadcast = over

        def getBackendName(self):
            return "null"

    return Null(0, 1)


def gpt(torch, blocks):
    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = torch.nn.Embedding(VOCABULARY, 768), torch.nn.Embedding(SEQUENCE, 768)
            self.blocks = torch.nn.Sequential(*(blocks(768, 12, causal=True) for _ in range(12)))
            self.norm = torch.nn.LayerNorm(768)
            self.register_buffer("order", torch.arange(SEQUENCE), persistent=False)

        def forward(self, tokens):
            found = self.norm(self.blocks(self.tokens(tokens) + self.places(self.order)))
            return torch.nn.functional.linear(found, self.tokens.weight).transpose(1, 2)

    return Gpt()


def their_side(options):
    with tempfile.TemporaryDirectory() as place:
        calls = pathlib.Path(place) / "calls"
        calls.mkdir()
        os.environ["LOCKSTEP_SIM"] = device_settings(calls)
        import torch
        import device_step  # models
        null_device(torch, options.build / "tests/liblockstep_sim.so")
        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo", init_method=f"file://{place}/ranks", rank=0, world_size=1)
        device = torch.device("sim:0")
        shape, batch, _ = MODELS[options.model]
        model = (gpt(torch, device_step.Block) if options.model == "gpt" else
                 {"cnn": device_step.cnn, "resnet50": device_step.resnet50, "vit": device_step.transformer}[options.model](
                     shape, False)).to(device)
        # Its check at the start compares sizes that this device does not compute.
        ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, init_sync=False,
                                                        process_group=null_group(torch))
        optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
        inputs, targets = ((torch.randint(0, VOCABULARY, (batch, SEQUENCE)), torch.randint(0, VOCABULARY, (batch, SEQUENCE)))
                           if options.model == "gpt" else
                           (torch.rand(batch, *shape), torch.randint(0, CLASSES, (batch,))))
        inputs, targets = inputs.pin_memory(), targets.pin_memory()

        def step():
            there, wanted = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(ddp(there), wanted).backward()
            optimizer.step()

        for _ in range(WINDOW):
            step()
        before, times = calls_in(calls), []
        for _ in range(options.windows):
            begin = time.perf_counter()
            for _ in range(WINDOW):
                step()
            times.append((time.perf_counter() - begin) / WINDOW)
        return times, per_step(calls_in(calls), before, WINDOW * options.windows)


# --- both ---------------------------------------------------------------------------------------------

KINDS = {"a wait of the host": "waits of the host", "a wait of a stream": "waits of streams", "an event": "events",
         "an allocation": "allocations", "an allocation of pinned memory": "pinned allocations", "a replay": "graphs"}


def summary(times, calls):
    """Calls by kind; what is none of them is a kernel or a copy."""
    found = {kind: 0 for kind in ("kernels", "copies", *KINDS.values())}
    for name, count in calls.items():
        found[KINDS.get(name) or ("copies" if "copy" in name else "kernels")] += count
    return {"median_s": statistics.median(times), "minimum_s": min(times), "maximum_s": max(times), **found, "calls": calls}


def measured(options, model, side):
    command = [sys.executable, __file__, "--build", options.build, "--work", options.work, "--side", side, "--model", model,
               "--windows", options.windows, "--limit", options.limit]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=3 * options.limit)
    if done.returncode != 0:
        sys.exit(f"{model}, {side}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return {"model": model, "side": side, **json.loads(done.stdout.splitlines()[-1])}


def table(found):
    kinds = ("kernels", "copies", *KINDS.values())
    lines = ["| model | side | host, ms per step | ddp / ours | " + " | ".join(kinds) + " |", "|---" * (4 + len(kinds)) + "|"]
    for (model, side), rounds in found.items():
        theirs = found.get((model, "ddp"), [])
        ratios = [there["median_s"] / here["median_s"] for here, there in zip(rounds, theirs)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})" if ratios and side != "ddp" else ""
        medians = [1e3 * each["median_s"] for each in rounds]
        lines.append(f"| {model} | {side} | {statistics.median(medians):.2f} ({min(medians):.2f} – {max(medians):.2f}) | "
                     f"{ratio} | " + " | ".join(f"{rounds[-1][kind]:.4g}" for kind in kinds) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--work", type=pathlib.Path, help="for data and decks; default: a temporary directory")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--windows", type=int, default=10, help="of ten steps")
    parser.add_argument("--limit", type=float, default=300, help="seconds of one process, at most")
    parser.add_argument("--json", action="store_true", help="a line for each measurement, calls by name")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--model", choices=list(MODELS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.side:
        print(json.dumps(summary(*(their_side if options.side == "ddp" else our_side)(options))), flush=True)
        os._exit(0)  # the devices' threads do not end
    with tempfile.TemporaryDirectory() as place:
        options.work = (options.work or pathlib.Path(place)).resolve()
        options.work.mkdir(exist_ok=True)
        found = {}
        for model in options.models:
            prepare(options.work, model)
            for _ in range(options.rounds):
                for side in options.sides:
                    one = measured(options, model, side)
                    found.setdefault((model, side), []).append(one)
                    print(json.dumps(one) if options.json else f"{model}, {side}: {1e3 * one['median_s']:.2f} ms", flush=True,
                          file=sys.stdout if options.json else sys.stderr)
        if not options.json:
            print(table(found))


if __name__ == "__main__":
    main()
