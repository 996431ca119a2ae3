#!/usr/bin/env python3
"""The recipe of inputs/fashion_mnist.ini in plain PyTorch, at any global batch: parts of 128 samples go
through batch norm on their own, as they do on the replicas of a data-parallel run; the rate follows the
batch unless one is given, and the warm-up is the same number of samples.

    .venv/bin/python tests/peers/fashion_mnist.py datasets/fashion-mnist [--batch 128] [--epochs 5] [--seed 0]
        [--warmup 25600] [--rate 0.4] [--clip 0.1]
"""
import argparse
import math
import time

import h5py
import torch
from torch import nn

PART, RATE = 128, 0.1  # samples of a replica, its rate


def load(path):
    with h5py.File(path) as file:
        mean, std = (float(file.attrs[name][0]) for name in ("mean", "std"))
        images = torch.from_numpy(file["inputs"][:]).to(torch.float32).unsqueeze(1) / 255
        return (images - mean) / std, torch.from_numpy(file["targets"][:])


def network():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(),
                         nn.Linear(64, 10))


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        found = torch.cat([model(part).argmax(1) for part in images.split(500)])
    model.train()
    return (found == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    for name, value in (("batch", 128), ("epochs", 5), ("seed", 0), ("warmup", 25_600)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--clip", type=float, default=math.inf)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    (images, labels), test = (load(f"{options.directory}/{name}.h5") for name in ("train", "test"))
    model = network()
    peak = options.rate or RATE * options.batch / PART
    steps_per_epoch = math.ceil(len(images) / options.batch)
    warmup, steps = round(options.warmup / len(images) * steps_per_epoch), options.epochs * steps_per_epoch
    weights = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.SGD([{"params": weights, "weight_decay": 5e-4}, {"params": others}], peak,
                                momentum=0.9, nesterov=True)
    step = 0
    for epoch in range(options.epochs):
        for indices in torch.randperm(len(images)).split(options.batch):
            share = (step / warmup if step < warmup else
                     (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2)
            for group in optimizer.param_groups:
                group["lr"] = peak * share
            optimizer.zero_grad()
            for part in indices.tensor_split(math.ceil(len(indices) / PART)):
                loss = nn.functional.cross_entropy(model(images[part]), labels[part], reduction="sum")
                (loss / len(indices)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), options.clip)
            optimizer.step()
            step += 1
        print(f"epoch {epoch + 1}: accuracy {accuracy(model, *test):.4f}, "
              f"{time.process_time():.0f} CPU s", flush=True)


main()
