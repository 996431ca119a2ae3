"""FedAvg of `lockstep federate simulate` beside Flower's, over the same sites with the same keys:

    lockstep federate simulate inputs/fashion_mnist.ini --sites 20 --rounds 30 --dirichlet 0.3 --data.validation "" \
        --data.global-batch 32 --optimizer.learning-rate 0.05 --optimizer.momentum 0 --optimizer.nesterov false \
        --optimizer.weight-decay 0 --schedule.name constant --schedule.warmup-steps 0 --train.epochs 0 \
        --train.steps 15 --run.directory runs/simulated | tee simulated.log
    python bench/federate.py runs/simulated --log simulated.log --test datasets/fashion-mnist/test.h5

Flower's strategy FedAvg (`aggregate_fit`) adds up what each site has learnt in PyTorch: the deck's CNN, from the
simulation's first weights, on the files of its sites, for as many steps of SGD. Needs flwr, torch and h5py in a virtual
environment of your own. Prints the accuracy after each round, and the means of the last five rounds, in which single
rounds differ by more than programs do. What was done is kept in the simulation's directory: an ended comparison continues.
"""
import argparse
import pathlib
import re

import h5py
import numpy as np
import torch
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import FedAvg
from torch import nn


class Cnn(nn.Module):
    """model.name = cnn, with the names of its weights."""

    def __init__(self):
        super().__init__()
        self.features = nn.ModuleDict({"conv1": nn.Conv2d(1, 16, 3, padding=1), "norm1": nn.BatchNorm2d(16),
                                       "conv2": nn.Conv2d(16, 32, 3, padding=1), "norm2": nn.BatchNorm2d(32)})
        self.classifier = nn.ModuleDict({"hidden": nn.Linear(1568, 64), "output": nn.Linear(64, 10)})

    def forward(self, images):
        layers, pool = self.features, nn.functional.max_pool2d
        images = pool(torch.relu(layers["norm1"](layers["conv1"](images))), 2)
        images = pool(torch.relu(layers["norm2"](layers["conv2"](images))), 2)
        return self.classifier["output"](torch.relu(self.classifier["hidden"](images.flatten(1))))


def samples(path):
    with h5py.File(path) as file:
        images = torch.from_numpy(file["inputs"][...]).float().div(255)
        images = (images - float(file.attrs["mean"][0])) / float(file.attrs["std"][0])
        return images.reshape(-1, 1, 28, 28), torch.from_numpy(file["targets"][...]).long()


def first_weights(model, path):
    with h5py.File(path) as file:
        return {name: torch.from_numpy(file["model/" + name.replace(".", "/")][...]).reshape(value.shape)
                for name, value in model.state_dict().items()}


def learn(model, data, generator, told):
    images, labels = data
    optimizer = torch.optim.SGD(model.parameters(), lr=told.rate)
    model.train()
    order = torch.empty(0, dtype=torch.long)
    for _ in range(told.steps):
        if len(order) < told.batch:
            order = torch.randperm(len(labels), generator=generator)
        batch, order = order[:told.batch], order[told.batch:]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return float((model(data[0]).argmax(1) == data[1]).float().mean())


def theirs(told):
    generator = torch.Generator().manual_seed(told.seed)
    model, test = Cnn(), samples(told.test)
    weights = first_weights(model, told.simulation / "federation/global/round-0000.h5")
    sites = [samples(path) for path in sorted((told.simulation / "data").glob("site-*.h5"))]
    strategy, names, found = FedAvg(), list(weights), []
    kept = told.simulation / "flower.pt"
    if kept.exists():
        weights, found, state = torch.load(kept)
        generator.set_state(state)
    for number in range(len(found) + 1, told.rounds + 1):
        results = []
        for data in sites:
            model.load_state_dict(weights)
            learn(model, data, generator, told)
            arrays = [value.numpy().copy() for value in model.state_dict().values()]
            results.append((None, FitRes(Status(Code.OK, ""), ndarrays_to_parameters(arrays), len(data[1]), {})))
        parameters, _ = strategy.aggregate_fit(number, results, [])
        arrays = parameters_to_ndarrays(parameters)
        weights = {name: torch.from_numpy(np.asarray(array)).to(model.state_dict()[name].dtype)
                   for name, array in zip(names, arrays)}
        model.load_state_dict(weights)
        found.append(accuracy(model, test))
        torch.save((weights, found, generator.get_state()), kept)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulation", type=pathlib.Path, help="run.directory of the simulation")
    parser.add_argument("--log", type=pathlib.Path, required=True, help="what the simulation has printed")
    parser.add_argument("--test", required=True)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    torch.set_num_threads(1)
    ours = [float(found) for found in re.findall(r"^  round \d+: test loss .*accuracy ([\d.]+)", told.log.read_text(), re.M)]
    flower = theirs(told)
    for number, pair in enumerate(zip(ours, flower), 1):
        print(f"round {number:2}: lockstep {pair[0]:.4f}, Flower {pair[1]:.4f}")
    last = [sum(each[-5:]) / 5 for each in (ours[:told.rounds], flower)]
    print(f"mean of the last five: lockstep {last[0]:.4f}, Flower {last[1]:.4f}: {100 * (last[0] - last[1]):+.2f} points")


if __name__ == "__main__":
    main()
