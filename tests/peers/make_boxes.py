#!/usr/bin/env python3
"""Boxes of matter in the form of CosmoFlow's data: counts of 32^3 particles in 128 Mpc/h, moved by
the Zel'dovich approximation from a Gaussian field, and the four parameters of their universe scaled
to [-1, 1]. Needs numpy and h5py; about five minutes.

    python tests/peers/make_boxes.py datasets/boxes
"""
import argparse
import pathlib

import h5py
import numpy as np

SIDE, LENGTH = 32, 128.0  # places, Mpc/h
NAMES = ("omega_m", "sigma_8", "n_s", "h")
MIDDLE, SPREAD = np.array([0.3, 0.8, 0.95, 0.70]), 0.1


def transfer(wave, shape):
    """Bardeen, Bond, Kaiser and Szalay, ApJ 304 (1986), equation G3."""
    q = np.maximum(wave / shape, 1e-9)
    return (np.log1p(2.34 * q) / (2.34 * q) *
            (1 + 3.89 * q + (16.1 * q) ** 2 + (5.46 * q) ** 3 + (6.71 * q) ** 4) ** -0.25)


def normalised_power(omega, sigma_8, tilt, h):
    """P(k), so that the field in spheres of 8 Mpc/h deviates by sigma_8."""
    def power(wave):
        return wave ** tilt * transfer(wave, omega * h) ** 2
    wave = np.logspace(-3, 1.5, 2000)
    x = 8 * wave
    sphere = 3 * (np.sin(x) - x * np.cos(x)) / x ** 3
    values = power(wave) * sphere ** 2 * wave ** 3 / (2 * np.pi ** 2)
    variance = np.sum((values[1:] + values[:-1]) / 2 * np.diff(np.log(wave)))
    return lambda k: sigma_8 ** 2 / variance * power(k)


def box(parameters, generator):
    axis = 2 * np.pi * np.fft.fftfreq(SIDE, LENGTH / SIDE)
    waves = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"))
    square = (waves ** 2).sum(0)
    square[0, 0, 0] = 1
    power = normalised_power(*parameters)(np.sqrt(square))
    power[0, 0, 0] = 0
    noise = np.fft.fftn(generator.standard_normal((SIDE,) * 3))
    field = noise * np.sqrt(power * SIDE ** 3 / LENGTH ** 3)
    moved = np.stack([np.fft.ifftn(1j * wave / square * field).real for wave in waves])
    grid = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"))
    places = (grid + moved * SIDE / LENGTH) % SIDE
    return counted(places.reshape(3, -1))


def counted(places):
    """Each particle shared out to the eight places around it (cloud in cell)."""
    first = np.floor(places).astype(int)
    share = places - first
    counts = np.zeros((SIDE,) * 3)
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod([share[i] if corner[i] else 1 - share[i] for i in range(3)], axis=0)
        at = tuple((first[i] + corner[i]) % SIDE for i in range(3))
        np.add.at(counts, at, weight)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--counts", type=int, nargs=2, default=(2000, 400))
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    scale = None  # of the training set, for both
    for name, count in zip(("train", "test"), options.counts):
        targets = generator.uniform(-1, 1, (count, 4))
        boxes = np.stack([box(MIDDLE * (1 + SPREAD * target), generator) for target in targets])
        inputs = np.log1p(boxes)[..., None].astype(np.float32)
        with h5py.File(out / f"{name}.h5", "w") as file:
            file["inputs"], file["targets"] = inputs, targets.astype(np.float32)
            file.attrs["classes"] = NAMES
            scale = scale or (inputs.mean(), inputs.std())
            file.attrs["mean"], file.attrs["std"] = [scale[0]], [scale[1]]
        print(name, inputs.shape, "mean", scale[0], "std", scale[1])


main()
