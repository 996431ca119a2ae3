"""What making the CNN of inputs/fashion_mnist.ini smaller costs with PyTorch's own tools, from the same weights:

    lockstep checkpoint export runs/fashion_mnist model.safetensors
    python bench/compress_peers.py model.safetensors datasets/fashion-mnist [--seed 0]

PyTorch's int8 (torch.ao, FX graph mode, x86 kernels) is calibrated with 1,024 samples, or trained with rounding for an
epoch; torch-pruning removes channels until half of the multiply-adds are left, and the rest is trained for four epochs.
The recipes are those of docs/compression.md. Needs torch, torch-pruning, h5py and safetensors, in a virtual environment
of your own. Prints test accuracies in percent, as JSON.
"""
import argparse
import copy
import json
import math
import pathlib

import h5py
import torch
import torch_pruning
from safetensors.torch import load_file
from torch import nn
from torch.ao import quantization
from torch.ao.quantization import quantize_fx

BATCH = 128
TRAINED = 54000  # of 60,000; lockstep keeps the rest for validation
AWARE_RATE = 0.001
PRUNED_EPOCHS, PRUNED_RATE = 4, 0.05
LAYERS = {0: "features.conv1", 1: "features.norm1", 4: "features.conv2", 5: "features.norm2", 9: "classifier.hidden",
          11: "classifier.output"}


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(1568, 64), nn.ReLU(), nn.Linear(64, 10))


def loaded(weights):
    net = network()
    for place, name in LAYERS.items():
        own = {key: value for key, value in net[place].state_dict().items() if key != "num_batches_tracked"}
        net[place].load_state_dict({key: weights[f"{name}.{key}"] for key in own}, strict=False)
    return net


def samples(path):
    with h5py.File(path) as file:
        images = torch.from_numpy(file["inputs"][:]).float() / 255
        images = (images - float(file.attrs["mean"][0])) / float(file.attrs["std"][0])
        return images.unsqueeze(1), torch.from_numpy(file["targets"][:])


def accuracy(net, images, targets):
    net.eval()
    with torch.no_grad():
        right = sum(int((net(a).argmax(1) == b).sum()) for a, b in zip(images.split(500), targets.split(500)))
    return 100 * right / len(targets)


def train(net, images, targets, epochs, rate, seed):
    """SGD as in the deck: warm-up, then a cosine."""
    torch.manual_seed(seed)
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    each = len(images) // BATCH
    steps, warmup = epochs * each, 200
    for step in range(steps):
        if step % each == 0:
            order = torch.randperm(len(images))
        share = (step + 1) / warmup if step < warmup else 0.5 + 0.5 * math.cos(math.pi * (step - warmup) / (steps - warmup))
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        chosen = order[step % each * BATCH:][:BATCH]
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[chosen]), targets[chosen]).backward()
        optimizer.step()


def calibrated(net, images):
    prepared = quantize_fx.prepare_fx(copy.deepcopy(net).eval(), quantization.get_default_qconfig_mapping("x86"), images[:1])
    with torch.no_grad():
        for batch in images[:1024].split(BATCH):
            prepared(batch)
    return quantize_fx.convert_fx(prepared)


def rounded(net, images, targets, rate, seed):
    prepared = quantize_fx.prepare_qat_fx(copy.deepcopy(net).train(),
                                          quantization.get_default_qat_qconfig_mapping("x86"), images[:1])
    train(prepared, images, targets, 1, rate, seed)
    return quantize_fx.convert_fx(prepared.eval())


def pruned(net, example, share=0.5, rounds=200):
    """A copy that torch-pruning's group-norm pruner with global scores has made smaller."""
    net = copy.deepcopy(net).eval()
    macs = lambda: torch_pruning.utils.count_ops_and_params(net, example)[0]  # noqa: E731
    whole = macs()
    pruner = torch_pruning.pruner.BasePruner(net, example, torch_pruning.importance.GroupMagnitudeImportance(),
                                             global_pruning=True, pruning_ratio=0.99, iterative_steps=rounds,
                                             ignored_layers=[net[-1]])
    for _ in range(rounds):
        if macs() <= share * whole:
            break
        pruner.step()
    return net


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("weights", type=pathlib.Path)
    words.add_argument("data", type=pathlib.Path)
    words.add_argument("--seed", type=int, default=0)
    given = words.parse_args()
    torch.set_num_threads(1)
    torch.backends.quantized.engine = "x86"
    images, targets = samples(given.data / "train.h5")
    images, targets = images[:TRAINED], targets[:TRAINED]
    tested = samples(given.data / "test.h5")
    net = loaded(load_file(given.weights))
    smaller = pruned(net, images[:1])
    train(smaller, images, targets, PRUNED_EPOCHS, PRUNED_RATE, given.seed)
    print(json.dumps({"as trained": accuracy(net, *tested),
                      "int8, calibrated": accuracy(calibrated(net, images), *tested),
                      "int8, with rounding during training": accuracy(
                          rounded(net, images, targets, AWARE_RATE, given.seed), *tested),
                      "half of the multiply-adds": accuracy(smaller, *tested)}))


if __name__ == "__main__":
    main()
