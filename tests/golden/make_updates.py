#!/usr/bin/env python3
"""Makes tests/golden/updates.json: weights after some steps of torch's optimizers, and of timm's LARS and
LAMB, in float64.

    .venv/bin/pip download --no-deps -d wheels timm==1.0.31 && unzip -d wheels wheels/timm-*.whl
    .venv/bin/python tests/golden/make_updates.py wheels tests/golden/updates.json

timm wants torchvision: only the two files are loaded, with the two that they need.
"""
import importlib
import json
import pathlib
import sys
import types

import torch

SIZE, STEPS, RATE, DECAY, SHOWN = 4096, 10, 0.01, 0.1, 8


def load_timm(wheels):
    package = types.ModuleType("timm_optim")
    package.__path__ = [str(wheels / "timm/optim")]
    sys.modules["timm_optim"] = package
    return (importlib.import_module("timm_optim.lars").Lars,
            importlib.import_module("timm_optim.lamb").Lamb)


def weights_after(make):
    places = torch.arange(SIZE, dtype=torch.float64)
    weights = torch.nn.Parameter(0.4 * torch.sin(1 + 0.7 * places).reshape(64, 64))
    optimizer = make([weights])
    shown = []
    for step in range(1, STEPS + 1):
        weights.grad = 0.3 * torch.sin(step + 0.3 * places).reshape(64, 64)
        optimizer.step()
        if step in (1, STEPS):
            shown.append(weights.detach().flatten()[:SHOWN].tolist())
    return shown


def main(wheels, out):
    lars, lamb = load_timm(pathlib.Path(wheels))
    optim = torch.optim
    rules = {
        "adamw": lambda p: optim.AdamW(p, RATE, weight_decay=DECAY),
        "adam": lambda p: optim.Adam(p, RATE, weight_decay=DECAY),
        "sgd": lambda p: optim.SGD(p, RATE, momentum=0.9, nesterov=True, weight_decay=DECAY),
        "lars": lambda p: lars(p, RATE, momentum=0.9, weight_decay=DECAY, trust_coeff=0.5, eps=0),
        "lamb": lambda p: lamb(p, RATE, weight_decay=DECAY, eps=1e-8, max_grad_norm=None)}
    pathlib.Path(out).write_text(json.dumps(
        {"steps": [1, STEPS], "rate": RATE, "decay": DECAY,
         "weights": {name: weights_after(make) for name, make in rules.items()}}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
