#!/usr/bin/env python3
"""The recipe of inputs/festvox_lmu.ini in plain PyTorch: the same network, data, rates and batches in
an order of its own. Prints the phone error rate after each epoch.

    .venv/bin/python tests/peers/festvox_lmu.py datasets/festvox-ru [--epochs 14] [--seconds CPU] [--warmup 100]
        [--width 144 --theta 8,16,24 --signals 16 --hidden 288 --kernel 5 --dropout 0 --rate 0.003]
"""
import argparse
import math
import pathlib
import time

import h5py
import numpy as np
import torch
from torch import nn

BATCH, WINDOW, ORDER, STRIDE = 16, 8, 8, 3


def impulse_response(order, theta, steps):
    i, j = np.arange(order)[:, None], np.arange(order)[None, :]
    whole = np.zeros((order + 1, order + 1))
    whole[:order, :order] = (2 * i + 1) * np.where(i < j, -1.0, (-1.0) ** (i - j + 1)) / theta
    whole[:order, order] = ((2 * i + 1) * (-1.0) ** i / theta)[:, 0]
    step = torch.matrix_exp(torch.from_numpy(whole)).numpy()
    state, columns = step[:order, order], []
    for _ in range(steps):
        columns.append(state)
        state = step[:order, :order] @ state
    return torch.from_numpy(np.stack(columns, 1)).float()


class Block(nn.Module):
    def __init__(self, width, theta, signals, hidden, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.encode, self.recall = nn.Linear(width, signals), nn.Linear(signals * ORDER, width)
        self.hidden, self.output = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.drop = nn.Dropout(dropout)
        self.response = impulse_response(ORDER, theta, 700)

    def forward(self, x):
        steps = x.shape[1]
        u = torch.fft.rfft(self.encode(self.norm1(x)).transpose(1, 2), 2 * steps)
        h = torch.fft.rfft(self.response[:, :steps], 2 * steps)
        m = torch.fft.irfft(u.unsqueeze(2) * h, 2 * steps)[..., :steps]
        x = x + self.drop(self.recall(m.permute(0, 3, 1, 2).flatten(2)))
        return x + self.drop(self.output(nn.functional.gelu(self.hidden(self.norm2(x)))))


class Network(nn.Module):
    def __init__(self, options, symbols):
        super().__init__()
        width = options.width
        self.convolution = nn.Conv1d(40, width, options.kernel, STRIDE, options.kernel // 2)
        self.blocks = nn.Sequential(*[
            Block(width, float(theta), options.signals, options.hidden, options.dropout)
            for theta in options.theta.split(",")])
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, symbols + 1)

    def forward(self, frames):
        x = nn.functional.gelu(self.convolution(frames.transpose(1, 2)).transpose(1, 2))
        return self.output(self.norm(self.blocks(x)))


def load(path):
    with h5py.File(path) as file:
        mean, std = file.attrs["mean"][0], file.attrs["std"][0]
        x, y = (file["inputs"][:] - mean) / std, file["targets"][:]
        a, b = file["inputs_offsets"][:], file["targets_offsets"][:]
        symbols = len(file.attrs["classes"])
    return [(torch.from_numpy(x[a[i]:a[i + 1]]).float(), torch.from_numpy(y[b[i]:b[i + 1]]))
            for i in range(len(a) - 1)], symbols


def scores_of(net, samples):
    x = nn.utils.rnn.pad_sequence([s[0] for s in samples], batch_first=True)
    lengths = torch.tensor([(len(s[0]) - 1) // STRIDE + 1 for s in samples])
    return nn.functional.log_softmax(net(x), 2), lengths


def edits(a, b):
    row = list(range(len(b) + 1))
    for x in a:
        diagonal, row[0] = row[0], row[0] + 1
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(diagonal + (x != y), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def error_rate(net, samples, symbols):
    net.eval()
    wrong = total = 0
    with torch.no_grad():
        for i in range(0, len(samples), BATCH):
            batch = samples[i:i + BATCH]
            scores, lengths = scores_of(net, batch)
            for path, length, (_, target) in zip(scores.argmax(2), lengths, batch):
                path = torch.unique_consecutive(path[:length])
                wrong += edits(target.tolist(), path[path != symbols].tolist())
                total += len(target)
    net.train()
    return wrong / total


def batches_of(samples, generator):
    order = torch.randperm(len(samples), generator=generator).tolist()
    for first in range(0, len(order), BATCH * WINDOW):
        window = sorted(order[first:first + BATCH * WINDOW], key=lambda i: len(samples[i][0]))
        batches = [window[i:i + BATCH] for i in range(0, len(window), BATCH)]
        for which in torch.randperm(len(batches), generator=generator).tolist():
            yield [samples[i] for i in batches[which]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=math.inf)
    for name, value in (("width", 144), ("signals", 16), ("hidden", 288), ("kernel", 5), ("warmup", 100)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--theta", default="8,16,24")
    parser.add_argument("--dropout", type=float, default=0)
    parser.add_argument("--rate", type=float, default=0.003)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    train, symbols = load(options.data / "train.h5")
    test, _ = load(options.data / "test.h5")
    net = Network(options, symbols)
    print(sum(p.numel() for p in net.parameters()), "parameters")
    decayed = [p for p in net.parameters() if p.dim() >= 2]
    others = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01},
                                   {"params": others, "weight_decay": 0.0}], lr=options.rate)
    steps, step, warmup = options.epochs * math.ceil(len(train) / BATCH), 0, options.warmup
    for epoch in range(options.epochs):
        for batch in batches_of(train, generator):
            share = (step / warmup if step < warmup else
                     (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2)
            for group in optimizer.param_groups:
                group["lr"] = options.rate * share
            scores, lengths = scores_of(net, batch)
            loss = nn.functional.ctc_loss(
                scores.transpose(0, 1), torch.cat([s[1] for s in batch]), lengths,
                torch.tensor([len(s[1]) for s in batch]), blank=symbols)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            step += 1
            if time.process_time() > options.seconds:
                break
        print(f"epoch {epoch + 1} loss {loss.item():.4f} "
              f"error-rate {error_rate(net, test, symbols):.4f} "
              f"{time.process_time():.0f} CPU s", flush=True)
        if time.process_time() > options.seconds:
            break


if __name__ == "__main__":
    main()
