"""How fast, and how large, exported models are against each other, on one core:

    python bench/compress.py NAME=FILE.onnx... [--batches 1 64] [--repeat 9]

with files of `lockstep checkpoint export --format onnx`. With --peer SHARE the first file's CNN of Fashion-MNIST is also
built in PyTorch with random weights, torch-pruning removes that share of its multiply-adds, and both are timed in
PyTorch. Needs onnxruntime, numpy and, with --peer, what compress_peers.py needs, in a virtual environment of your own.

Times are medians of rounds that take turns, of a forward pass for one batch.
"""
import argparse
import json
import pathlib
import statistics
import time

import numpy as np


def session_of(file):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    kind = np.uint8 if given.type == "tensor(uint8)" else np.float32

    def run(batch):
        values = np.random.default_rng(0).integers(0, 255, (batch, *given.shape[1:])).astype(kind)
        return lambda: session.run(None, {given.name: values})

    return run


def pruned_by_peer(share):
    """The CNN before and after torch-pruning."""
    import torch
    from compress_peers import network, pruned

    torch.set_num_threads(1)
    before = network().eval()

    def run_of(module):
        def run(batch):
            values = torch.randn(batch, 1, 28, 28)

            def forward():
                with torch.no_grad():
                    module(values)
            return forward
        return run

    after = pruned(before, torch.randn(1, 1, 28, 28), share)
    return {"PyTorch": run_of(before), f"PyTorch, torch-pruning to {share} of the macs": run_of(after)}


def main():
    words = argparse.ArgumentParser()
    words.add_argument("files", nargs="+")
    words.add_argument("--batches", nargs="+", type=int, default=[1, 64])
    words.add_argument("--repeat", type=int, default=9)
    words.add_argument("--peer", type=float)
    chosen = words.parse_args()
    files = dict(each.split("=", 1) for each in chosen.files)
    runs = {name: session_of(file) for name, file in files.items()}
    if chosen.peer:
        runs.update(pruned_by_peer(chosen.peer))
    for batch in chosen.batches:
        calls = {name: run(batch) for name, run in runs.items()}
        times = {name: [] for name in calls}
        count = max(1, 256 // batch)
        for _ in range(chosen.repeat + 1):  # the first warms up
            for name, call in calls.items():
                began = time.perf_counter()
                for _ in range(count):
                    call()
                times[name].append((time.perf_counter() - began) / count)
        for name, all_ in times.items():
            print(json.dumps({"model": name, "batch": batch, "median_ms": 1e3 * statistics.median(all_[1:]),
                              "minimum_ms": 1e3 * min(all_[1:]),
                              "bytes": pathlib.Path(files[name]).stat().st_size if name in files else None}))


if __name__ == "__main__":
    main()
