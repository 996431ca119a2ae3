#!/usr/bin/env python3
"""Makes tests/golden/legendre_memory.json: the matrices of Legendre memories by scipy's
cont2discrete (zero-order hold), and what an LMU cell gives by its equations in numpy.

    python3 -m venv venv && venv/bin/pip install numpy scipy
    venv/bin/python tests/golden/make_legendre_memory.py tests/golden/legendre_memory.json
"""
import json
import pathlib
import sys

import numpy as np
from scipy.signal import cont2discrete

WHOLE = [(1, 4.0), (3, 10.0), (8, 8.0), (8, 24.0), (16, 32.5)]
LARGE = [(256, 784.0)]  # first and last row only


def memory(order, theta):
    i = np.arange(order)[:, None]
    j = np.arange(order)[None, :]
    a = (2 * i + 1) * np.where(i < j, -1.0, (-1.0) ** (i - j + 1)) / theta
    b = (2 * i + 1) * (-1.0) ** i / theta
    a, b, *_ = cont2discrete((a, b, np.ones((1, order)), np.zeros((1, 1))), 1.0, method="zoh")
    return a, b[:, 0]


def wave(shape, start):
    """Numbers that are easily made elsewhere."""
    return (0.4 * np.sin(start + 0.7 * np.arange(np.prod(shape)))).reshape(shape)


def cell(n, steps, inputs, hidden, order, theta):
    a, b = memory(order, theta)
    e_x, e_h, e_m = wave((inputs,), 1), wave((hidden,), 2), wave((order,), 3)
    w_x, w_h, w_m = wave((hidden, inputs), 4), wave((hidden, hidden), 5), wave((hidden, order), 6)
    x = wave((n, steps, inputs), 7)
    h, m = np.zeros((n, hidden)), np.zeros((n, order))
    states = []
    for t in range(steps):
        u = x[:, t] @ e_x + h @ e_h + m @ e_m
        m = m @ a.T + u[:, None] * b
        h = np.tanh(x[:, t] @ w_x.T + h @ w_h.T + m @ w_m.T)
        states.append(h)
    return {"shape": [n, steps, inputs, hidden, order], "theta": theta,
            "states": np.stack(states, 1).ravel().tolist()}


def main(out):
    matrices = []
    for order, theta in WHOLE + LARGE:
        a, b = memory(order, theta)
        rows = range(order) if (order, theta) in WHOLE else [0, order - 1]
        matrices.append({"order": order, "theta": theta, "b": b.tolist(),
                         "rows": {str(row): a[row].tolist() for row in rows}})
    pathlib.Path(out).write_text(
        json.dumps({"matrices": matrices, "cell": cell(2, 6, 3, 4, 5, 7.0)}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
