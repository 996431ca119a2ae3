#!/usr/bin/env python3
"""The losses of the first 20 steps of PyTorch's DistributedDataParallel (c10d's Reducer over gloo, 2
and 4 processes) with Lockstep's initial weights, data and order; and the norm and the hash of the bits of each tensor after them, of each averaged
gradient of the first step, and of each replica's buffers where every replica keeps its own.

    build/lockstep train inputs/fashion_mnist.ini --run.replicas 2 --train.steps 1 \
        --data.validation "" --data.test "" --run.directory /tmp/golden
    .venv/bin/python tests/golden/ddp_losses.py /tmp/golden/checkpoints/step-00000000.h5 \
        datasets/fashion-mnist/train.h5 ddp.json

A last argument takes one of the RUNS alone, by its place in them.

The order is computed here again, from its description in docs/formats.md, so that it is checked too.
"""
import hashlib
import json
import os
import pathlib
import sys
import tempfile
from collections import OrderedDict

import h5py
import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

STEPS, GLOBAL_BATCH, SEED, ORDER_STREAM = 20, 128, 0, 2
RUNS = (2, True), (2, False), (4, True)  # processes, and whether they share the buffers of one
RATE, WARMUP = 0.1, 200
MASK = (1 << 64) - 1


def mixed(value):
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def order(samples, epoch):
    """The keyed permutation of an epoch: four Feistel rounds, walked into range."""
    key = mixed(mixed(mixed(SEED) ^ ORDER_STREAM) ^ epoch)
    half = 1
    while (1 << (2 * half)) < samples:
        half += 1
    mask = (1 << half) - 1

    def at(position):
        value = position
        while True:
            left, right = value >> half, value & mask
            for turn in range(4):
                left, right = right, left ^ (mixed(key ^ mixed(right + (turn << 48))) & mask)
            value = (left << half) | right
            if value < samples:
                return value

    return at


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(OrderedDict(
            conv1=nn.Conv2d(1, 16, 3, padding=1), norm1=nn.BatchNorm2d(16), relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(16, 32, 3, padding=1), norm2=nn.BatchNorm2d(32), relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2)))
        self.classifier = nn.Sequential(OrderedDict(
            hidden=nn.Linear(1568, 64), relu=nn.ReLU(), output=nn.Linear(64, 10)))

    def forward(self, x):
        return self.classifier(self.features(x.unsqueeze(1)).flatten(1))


def print_of(tensor):
    return {"norm": tensor.double().norm().item(),
            "sha256": hashlib.sha256(tensor.numpy().tobytes()).hexdigest()}


def in_whole_vectors(parameter):
    """The parameter and zeros up to a multiple of 8 elements, as in Lockstep's arena, in one block of memory: the fused
    kernel rounds the last elements of other tensors differently (docs/lab-notes/performance.md)."""
    padded = torch.zeros(-(-parameter.numel() // 8) * 8)
    padded[:parameter.numel()] = parameter.detach().flatten()
    parameter.data = padded[:parameter.numel()].view_as(parameter)
    return nn.Parameter(padded)


def buffers_of_replicas(net, replicas):
    """Every replica's buffers of floats, one after the other in the order of registration."""
    own = torch.cat([b.flatten() for b in net.buffers() if b.is_floating_point()])
    gathered = [torch.empty_like(own) for _ in range(replicas)]
    dist.all_gather(gathered, own)
    return [print_of(buffers) for buffers in gathered]


def train(rank, replicas, broadcast_buffers, weights, data, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("GOLDEN_PORT", "29517"))
    dist.init_process_group("gloo", rank=rank, world_size=replicas)
    torch.set_num_threads(1)
    net = Network()
    with h5py.File(weights) as file:
        state = {name: torch.from_numpy(np.array(file["model/" + name.replace(".", "/")]))
                 for name in net.state_dict()}
    net.load_state_dict({name: value.reshape(net.state_dict()[name].shape)
                         for name, value in state.items()})
    padded = {p: in_whole_vectors(p) for p in net.parameters()}
    decays = [each for p, each in padded.items() if p.dim() >= 2]
    others = [each for p, each in padded.items() if p.dim() < 2]
    optimizer = torch.optim.SGD([{"params": decays, "weight_decay": 5e-4},
                                 {"params": others, "weight_decay": 0.0}],
                                lr=RATE, momentum=0.9, nesterov=True, fused=True)
    model = DistributedDataParallel(net, broadcast_buffers=broadcast_buffers)
    losses = []
    gradients = {}
    batch = GLOBAL_BATCH // replicas
    with h5py.File(data) as file:
        images, labels = file["inputs"][:], file["targets"][:]
        mean, std = np.float32(file.attrs["mean"][0]), np.float32(file.attrs["std"][0])
    at = order(len(labels), 0)
    for step in range(STEPS):
        begin = (step * replicas + rank) * batch
        chosen = [at(position) for position in range(begin, begin + batch)]
        x = (torch.from_numpy(images[chosen]).float() / 255 - mean) / std
        y = torch.from_numpy(labels[chosen])
        for group in optimizer.param_groups:
            group["lr"] = RATE * step / WARMUP
        loss = nn.functional.cross_entropy(model(x), y)
        net.zero_grad()
        loss.backward()
        for p, each in padded.items():
            each.grad = torch.zeros_like(each)
            each.grad[:p.numel()] = p.grad.flatten()
        if step == 0:
            gradients = {name: print_of(p.grad) for name, p in net.named_parameters()}
        optimizer.step()
        mean_loss = loss.detach().double().clone()
        dist.all_reduce(mean_loss)
        losses.append(mean_loss.item() / replicas)
    buffers = buffers_of_replicas(net, replicas)
    if rank == 0:
        weights = {name: print_of(value) for name, value in net.state_dict().items()
                   if value.is_floating_point()}
        pathlib.Path(out).write_text(json.dumps(
            {"replicas": replicas, "broadcast_buffers": broadcast_buffers, "losses": losses,
             "gradients": gradients, "weights": weights, "buffers_of_replicas": buffers}))
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    runs = []
    for replicas, broadcast_buffers in [RUNS[int(sys.argv[4])]] if len(sys.argv) == 5 else RUNS:
        with tempfile.NamedTemporaryFile() as part:
            # Forked, so that torch is imported once; nothing has used its threads yet.
            mp.start_processes(train, args=(replicas, broadcast_buffers, *sys.argv[1:3], part.name),
                               nprocs=replicas, start_method="fork")
            runs.append(json.loads(pathlib.Path(part.name).read_text()))
    pathlib.Path(sys.argv[3]).write_text(json.dumps(runs))
