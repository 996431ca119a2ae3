#!/usr/bin/env python3
"""Makes tests/golden/environments.txt and advantages.txt: steps of gymnasium's environments from
states of all kinds, and advantages of stable-baselines3's RolloutBuffer.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install gymnasium stable-baselines3
    /tmp/venv/bin/python tests/golden/make_rl.py tests/golden

Every number is written so that reading it gives its bits.
"""
import pathlib
import sys

import gymnasium
import numpy as np
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


environments()
advantages()
