#!/usr/bin/env python3
"""What a plain PyTorch program reaches with the recipe of inputs/video.ini, on the same files."""
import argparse
import math
import time

import h5py
import torch
from torch import nn


def load(path):
    with h5py.File(path) as file:
        mean, std = (torch.tensor(file.attrs[name], dtype=torch.float32) for name in ("mean", "std"))
        clips = torch.from_numpy(file["inputs"][:]).to(torch.float32).unsqueeze(1) / 255
        return (clips - mean) / std, torch.from_numpy(file["targets"][:])


def block(inputs, outputs, stride):
    return [nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm3d(outputs), nn.ReLU()]


def macro_f1(predicted, truth, classes):
    scores = []
    for label in range(classes):
        hit = ((predicted == label) & (truth == label)).sum().item()
        both = (predicted == label).sum().item() + (truth == label).sum().item()
        scores.append(2 * hit / both if both else 0.0)
    return scores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--balanced", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    (clips, labels), (test, truth) = (load(f"{options.directory}/{name}.h5")
                                      for name in ("train", "test"))
    classes = int(labels.max()) + 1
    model = nn.Sequential(*block(1, 12, (1, 2, 2)), *block(12, 24, 2), *block(24, 48, 2),
                          nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(48, classes))
    counts = torch.bincount(labels, minlength=classes)
    loss = nn.CrossEntropyLoss(weight=len(labels) / (classes * counts) if options.balanced else None)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-2)
    steps = options.epochs * math.ceil(len(clips) / 32)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(options.epochs):
        begin = time.perf_counter()
        model.train()
        for indices in torch.randperm(len(clips)).split(32):
            optimizer.zero_grad()
            loss(model(clips[indices]), labels[indices]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            predicted = torch.cat([model(part).argmax(1) for part in test.split(128)])
        scores = macro_f1(predicted, truth, classes)
        print(f"epoch {epoch + 1}: accuracy {(predicted == truth).float().mean():.4f} "
              f"f1 {sum(scores) / classes:.4f} ({' '.join(f'{score:.3f}' for score in scores)}), "
              f"{time.perf_counter() - begin:.1f} s", flush=True)


main()
