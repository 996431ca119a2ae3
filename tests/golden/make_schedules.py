#!/usr/bin/env python3
"""Makes tests/golden/schedules.json: learning rates of torch.optim.lr_scheduler, with the keys of a deck that give
the same, and the reductions of ReduceLROnPlateau.

    .venv/bin/python tests/golden/make_schedules.py tests/golden/schedules.json

With a warm-up of w steps, a schedule begins as the second of a SequentialLR, at step w.
"""
import json
import math
import sys
import warnings

import torch
from torch.optim import lr_scheduler as torch_schedules

PEAK = 0.4
warnings.simplefilter("ignore")  # there are no steps of the optimizer between those of the schedule


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)


def rates(make, steps, warmup=0, every=1):
    """The rate of each step, where the schedule steps after every `every` steps."""
    of = optimizer()
    schedule = make(of)
    found = [PEAK * step / warmup for step in range(warmup)]
    for step in range(steps - warmup):
        if step > 0 and step % every == 0:
            schedule.step()
        found.append(of.param_groups[0]["lr"])
    return found


def case(keys, per_epoch, steps, values):
    return {"schedule": keys, "steps_per_epoch": per_epoch, "steps": steps, "rates": values}


def inverse_sqrt(warmup):
    """get_inverse_sqrt_schedule of Hugging Face's transformers 4.57, optimization.py, after the warm-up."""
    scale = warmup or 10_000
    return lambda of: torch_schedules.LambdaLR(of, lambda step: 1 / math.sqrt((step + scale) / scale))


def cases():
    for warmup in (0, 7):
        own = {"warmup-steps": warmup}
        rest = 60 - warmup
        yield case({"name": "cosine", "minimum": 0.01, **own}, 10, 60, rates(
            lambda of: torch_schedules.CosineAnnealingLR(of, rest, 0.01 * PEAK), 60, warmup))
        yield case({"name": "linear", "minimum": 0.05, **own}, 10, 60, rates(
            lambda of: torch_schedules.LinearLR(of, 1, 0.05, total_iters=rest), 60, warmup))
        yield case({"name": "linear", **own}, 10, 60, rates(
            lambda of: torch_schedules.LinearLR(of, 1, 0, total_iters=rest), 60, warmup))
        for power in (0.9, 1, 2.5):
            yield case({"name": "polynomial", "power": power, **own}, 10, 60, rates(
                lambda of: torch_schedules.PolynomialLR(of, total_iters=rest, power=power), 60, warmup))
        yield case({"name": "inverse-sqrt", **own}, 10, 60, rates(inverse_sqrt(warmup), 60, warmup))
        yield case({"name": "exponential", "factor": 0.7, **own}, 10, 60, rates(
            lambda of: torch_schedules.ExponentialLR(of, 0.7 ** 0.1), 60, warmup))
        for cycle, factor in ((20, 1), (5, 2), (3, 3), (100, 2)):
            yield case({"name": "cosine-restarts", "cycle-epochs": cycle / 10, "cycle-factor": factor,
                        "minimum": 0.01, **own}, 10, 60, rates(
                lambda of: torch_schedules.CosineAnnealingWarmRestarts(of, cycle, factor, 0.01 * PEAK), 60, warmup))
    for rise, start, end in ((0.3, 25, 1e4), (0.5, 10, 100), (0.9, 4, 1), (1.0, 25, 1e4), (0.01, 3, 7)):
        for steps in (60, 61):
            yield case({"name": "one-cycle", "rise": rise, "start-divisor": start, "end-divisor": end}, 10, steps, rates(
                lambda of: torch_schedules.OneCycleLR(of, PEAK, total_steps=steps, pct_start=rise, div_factor=start,
                                                      final_div_factor=end), steps))
    # Epoch by epoch.
    yield case({"name": "step", "step-epochs": 2, "factor": 0.3}, 10, 60, rates(
        lambda of: torch_schedules.StepLR(of, 2, 0.3), 60, every=10))
    yield case({"name": "step", "step-epochs": 1, "factor": 0.7}, 10, 60, rates(
        lambda of: torch_schedules.ExponentialLR(of, 0.7), 60, every=10))
    yield case({"name": "multi-step", "milestones": "1, 3, 4", "factor": 0.2}, 10, 60, rates(
        lambda of: torch_schedules.MultiStepLR(of, [1, 3, 4], 0.2), 60, every=10))
    yield case({"name": "multi-step", "milestones": "2", "factor": 0.5}, 7, 60, rates(
        lambda of: torch_schedules.MultiStepLR(of, [2], 0.5), 60, every=7))


def plateaus():
    """ReduceLROnPlateau with eps = 0, whose default of 1e-8 is no matter of decks; values above 0, where a relative
    threshold means the same here and there."""
    falls = [1 / (1 + step) + 0.02 * math.sin(3 * step) + 0.05 for step in range(40)]
    rises = [1 - 0.5 * value for value in falls]
    flat = [0.5] * 25
    holes = [math.nan, 0.9, 0.8, math.nan, math.inf, 0.8, 0.79, 0.79, 0.78999, 0.1] + [0.1] * 12
    for values, more in ((falls, False), (rises, True), (flat, False), (flat, True), (holes, False)):
        for patience, threshold, cooldown in ((0, 0, 0), (2, 1e-4, 0), (2, 0.05, 3), (1, 0.01, 1), (5, 0.1, 2)):
            of = optimizer()
            schedule = torch_schedules.ReduceLROnPlateau(
                of, "max" if more else "min", factor=0.5, patience=patience, threshold=threshold,
                cooldown=cooldown, min_lr=0.01 * PEAK, eps=0)
            found = []
            for value in values:
                schedule.step(value)
                found.append(of.param_groups[0]["lr"])
            yield {"schedule": {"name": "plateau", "factor": 0.5, "patience": patience, "threshold": threshold,
                                "cooldown": cooldown, "minimum": 0.01},
                   "more_is_better": more, "values": [value if math.isfinite(value) else str(value) for value in values],
                   "rates": found}


if __name__ == "__main__":
    made = {"torch": torch.__version__.split("+")[0], "peak": PEAK, "schedules": list(cases()), "plateaus": list(plateaus())}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(made, file)
        file.write("\n")
