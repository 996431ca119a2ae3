#!/usr/bin/env python3
"""What a plain PyTorch program reaches with the recipe of inputs/boxes.ini, on the same files."""
import argparse
import math
import time

import h5py
import torch
from torch import nn


def load(path):
    with h5py.File(path) as file:
        mean, std = (torch.tensor(file.attrs[name], dtype=torch.float32) for name in ("mean", "std"))
        boxes = torch.from_numpy(file["inputs"][:]).movedim(-1, 1)
        return (boxes - mean) / std, torch.from_numpy(file["targets"][:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    (boxes, targets), (test, truth) = (load(f"{options.directory}/{name}.h5")
                                       for name in ("train", "test"))
    layers, channels = [], 1
    for wider in (8, 16, 32, 64):
        layers += [nn.Conv3d(channels, wider, 3, 1, 1, bias=False), nn.BatchNorm3d(wider),
                   nn.LeakyReLU(), nn.MaxPool3d(2)]
        channels = wider
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 64), nn.LeakyReLU(),
                          nn.Linear(64, 4), nn.Tanh())
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-2)
    steps = options.epochs * math.ceil(len(boxes) / 16)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(options.epochs):
        begin = time.perf_counter()
        model.train()
        for indices in torch.randperm(len(boxes)).split(16):
            batch = torch.stack([box.flip([axis + 1 for axis in range(3) if torch.rand(1) < 0.5])
                                 for box in boxes[indices]])
            optimizer.zero_grad()
            nn.functional.mse_loss(1.2 * model(batch), targets[indices]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            errors = (1.2 * torch.cat([model(part) for part in test.split(128)]) - truth).abs()
        print(f"epoch {epoch + 1}: mae {errors.mean():.4f} "
              f"({' '.join(f'{error:.4f}' for error in errors.mean(0))}), "
              f"{time.perf_counter() - begin:.1f} s", flush=True)


main()
