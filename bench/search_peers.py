"""Compares lockstep's TPE and NSGA-II with Optuna's at equal budget, on test functions:

    ninja -C build search_optimizer && python bench/search_peers.py build/tests/search_optimizer [SEEDS [tpe|nsga2]]

Needs optuna and numpy (`pip install optuna`), in a virtual environment of your own. Regret is the mean over the seeds of the distance from the
known minimum; hypervolume is that of ZDT1 to the point (1.1, 1.1), of all trials.
"""
import json
import math
import subprocess
import sys

import numpy as np
import optuna

HARTMANN_A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
                       [17, 8, 0.05, 10, 0.1, 14]])
HARTMANN_P = 1e-4 * np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                              [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]])


def branin(x):
    a, b = 15 * x[0] - 5, 15 * x[1]
    return [(b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6)**2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10]


def hartmann(x):
    inner = (HARTMANN_A * (np.array(x) - HARTMANN_P)**2).sum(axis=1)
    return [-float(np.array([1, 1.2, 3, 3.2]) @ np.exp(-inner))]


def zdt1(x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return [x[0], g * (1 - math.sqrt(x[0] / g))]


def ours(program, function, size, settings):
    keys = [f"space.x.x{at:02}=uniform(0, 1)" for at in range(size)]
    job = subprocess.Popen([program, *keys, *(f"search.{key}={value}" for key, value in settings.items())],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found = []
    for line in job.stdout:
        values = json.loads(line)
        found.append(function([float(values[key]) for key in sorted(values)]))
        job.stdin.write(" ".join(map(str, found[-1])) + "\n")
        job.stdin.flush()
    return found


def optunas(function, size, sampler, trials, goals):
    study = optuna.create_study(directions=["minimize"] * goals, sampler=sampler)
    found = []

    def objective(trial):
        found.append(function([trial.suggest_float(f"x{at:02}", 0, 1) for at in range(size)]))
        return found[-1] if goals > 1 else found[-1][0]
    study.optimize(objective, n_trials=trials)
    return found


def hypervolume(points):
    volume, top = 0.0, 1.1
    for a, b in sorted(map(tuple, points)):
        if a < 1.1 and b < top:
            volume += (1.1 - a) * (top - b)
            top = b
    return volume


def compare_tpe(program, seeds):
    for name, function, size, minimum, trials in (("Branin", branin, 2, 0.397887, 100),
                                                  ("Hartmann-6", hartmann, 6, -3.32237, 150)):
        regrets = [[], []]
        for seed in range(seeds):
            regrets[0].append(min(ours(program, function, size, {
                "strategy": "tpe", "batch": 1, "trials": trials, "seed": seed}))[0] - minimum)
            sampler = optuna.samplers.TPESampler(seed=seed)
            regrets[1].append(min(optunas(function, size, sampler, trials, 1))[0] - minimum)
        mean, theirs = np.mean(regrets, axis=1)
        print(f"{name}: mean regret {mean:.4f}, Optuna {theirs:.4f}, ratio {mean / theirs:.3f}; medians "
              f"{np.median(regrets[0]):.4f}, {np.median(regrets[1]):.4f}", flush=True)


def compare_nsga2(program, seeds):
    volumes = [[], []]
    for seed in range(seeds):
        volumes[0].append(hypervolume(ours(program, zdt1, 30, {
            "strategy": "nsga2", "population": 50, "trials": 5000, "seed": seed, "goals": "a min, b min"})))
        sampler = optuna.samplers.NSGAIISampler(population_size=50, seed=seed)
        volumes[1].append(hypervolume(optunas(zdt1, 30, sampler, 5000, 2)))
    mean, theirs = np.mean(volumes, axis=1)
    print(f"ZDT1: hypervolume {mean:.4f}, Optuna {theirs:.4f}, ratio {mean / theirs:.3f}; least of a seed "
          f"{min(volumes[0]):.4f}, {min(volumes[1]):.4f}", flush=True)


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    program, seeds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    parts = sys.argv[3:] or ["tpe", "nsga2"]
    if "tpe" in parts:
        compare_tpe(program, seeds)
    if "nsga2" in parts:
        compare_nsga2(program, seeds)


main()
