#!/usr/bin/env python3
"""Makes tests/golden/environments.txt, advantages.txt and indicators.txt: steps of gymnasium's
environments from states of all kinds, advantages of stable-baselines3's RolloutBuffer, and figures
of prices by pandas and numpy.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install gymnasium stable-baselines3 pandas
    /tmp/venv/bin/python tests/golden/make_rl.py tests/golden

Every number is written so that reading it gives its bits.
"""
import pathlib
import sys

import gymnasium
import numpy as np
import pandas as pd
import torch
from stable_baselines3.common.buffers import RolloutBuffer

STEPS = 120
out = pathlib.Path(sys.argv[1])
generator = np.random.default_rng(1)


def row(*parts):
    return " ".join(repr(float(value)) for part in parts for value in np.ravel(part))


def environments():
    names = {"cart-pole": ("CartPole-v1", 2, 0), "acrobot": ("Acrobot-v1", 3, 0),
             "pendulum": ("Pendulum-v1", 0, 2.5)}
    lines = ["# environment state action -> next state, reward, terminated, observation (float32)"]
    for name, (theirs, choices, widest) in names.items():
        environment = gymnasium.make(theirs).unwrapped
        environment.reset(seed=3)
        for _ in range(STEPS):
            action = (generator.integers(choices) if choices
                      else np.float32(generator.uniform(-widest, widest)))
            before = np.array(environment.state, dtype=np.float64)
            seen, reward, terminated, _, _ = environment.step(
                int(action) if choices else np.array([action]))
            lines.append(f"{name} " + row(before, action, environment.state, reward, terminated,
                                          seen))
            if terminated:
                environment.reset()
    (out / "environments.txt").write_text("\n".join(lines) + "\n")


def advantages():
    lines = ["# steps environments gamma lambda; then rewards, values, starts (one row more),",
             "# last values, advantages"]
    for steps, width, gamma, factor in ((16, 3, 0.99, 0.95), (32, 2, 0.98, 0.8)):
        space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        buffer = RolloutBuffer(steps, space, space, "cpu", factor, gamma, width)
        starts = (generator.random((steps + 1, width)) < 0.15).astype(np.float32)
        values = generator.normal(size=(steps, width)).astype(np.float32)
        rewards = generator.normal(size=(steps, width)).astype(np.float32)
        for step in range(steps):
            buffer.add(np.zeros((width, 1)), np.zeros((width, 1)), rewards[step], starts[step],
                       torch.from_numpy(values[step]), torch.zeros(width))
        last = generator.normal(size=width).astype(np.float32)
        buffer.compute_returns_and_advantage(torch.from_numpy(last), starts[steps])
        lines.append(row(steps, width, gamma, factor))
        lines += [row(part) for part in (rewards, values, starts, last, buffer.advantages)]
    (out / "advantages.txt").write_text("\n".join(lines) + "\n")


def indicators():
    days, window = 80, 14
    close = pd.Series(100 * np.exp(np.cumsum(generator.normal(0, 0.02, days))))
    low = close * (1 - generator.uniform(0, 0.02, days))
    high = close * (1 + generator.uniform(0, 0.02, days))

    def smooth(series, share):
        return series.ewm(alpha=share, adjust=False).mean()

    macd = smooth(close, 2 / 13) - smooth(close, 2 / 27)
    change = close.diff().fillna(0)
    rise, fall = smooth(change.clip(lower=0), 1 / window), smooth(-change.clip(upper=0), 1 / window)
    strength = (100 * rise / (rise + fall)).fillna(50)
    typical = (low + high + close) / 3
    rolling = typical.rolling(window, min_periods=1)
    off = rolling.apply(lambda part: np.mean(np.abs(part - np.mean(part))), raw=True)
    channel = ((typical - rolling.mean()) / (0.015 * off)).fillna(0)
    before = close.shift().fillna(close[0])
    true_range = pd.concat([high - low, (high - before).abs(), (low - before).abs()], axis=1).max(axis=1)
    up, down = high.diff().fillna(0), (-low.diff()).fillna(0)
    plus = smooth(up.where(up > down, 0).clip(lower=0), 1 / window) / smooth(true_range, 1 / window)
    minus = smooth(down.where(down > up, 0).clip(lower=0), 1 / window) / smooth(true_range, 1 / window)
    index = smooth((100 * (plus - minus).abs() / (plus + minus)).fillna(0), 1 / window)

    history = 20
    prices = 50 * np.exp(np.cumsum(generator.normal(0, 0.02, (60, 3)), axis=0))
    changes = prices[1:] / prices[:-1] - 1
    turbulence = np.zeros(60)
    for day in range(history + 1, 60):
        past = changes[day - 1 - history:day - 1]
        off = changes[day - 1] - past.mean(axis=0)
        turbulence[day] = off @ np.linalg.pinv(np.cov(past.T)) @ off
    lines = ["# low, high, close; macd, strength, channel, directional of 14 days; prices of 3 series,",
             "# turbulence of 20 days, its quantile 0.9"]
    lines += [row(part) for part in (low, high, close, macd, strength, channel, index, prices,
                                     turbulence, np.quantile(turbulence, 0.9))]
    (out / "indicators.txt").write_text("\n".join(lines) + "\n")


environments()
advantages()
indicators()
