"""The first 20 losses are those of PyTorch DDP on 2 and 4 processes. Of 2, where a sum has one order,
the first step's gradients, the weights and every replica's own buffers are, to the last bit. DDP runs
here and now, in tests/golden/ddp_losses.py: processors with the same instructions round unlike. The short form takes
one of the two runs on 2 processes, and one rank for each of these."""
import hashlib
import json
import subprocess
import sys

import h5py
import numpy as np

from harness import DATA, LONG, SOURCE, Scratch, check, checkpoints, records, run, some

def train(where, expected, ranks, steps, *options):
    own = [] if expected["broadcast_buffers"] else ["--communication.broadcast-buffers", "false"]
    run(["train", SOURCE / "inputs/fashion_mnist.ini", "--run.replicas", expected["replicas"],
         "--train.steps", steps, "--data.train", DATA / "train.h5", "--data.validation", "",
         "--data.test", "", "--monitor.log-every", 1, "--run.directory", where, *own, *options],
        ranks).expect(0)


def compare(what, ours, expected, bits):
    """`ours` are close to DDP's, and where `bits` are asked for, equal."""
    exact = 0
    for name, theirs in expected.items():
        values = np.array(ours(name))
        norm = np.linalg.norm(values.astype(np.float64))
        check(abs(norm - theirs["norm"]) < 1e-4 * max(theirs["norm"], 1e-2), f"{name}: {norm}")
        exact += hashlib.sha256(values.tobytes()).hexdigest() == theirs["sha256"]
    print(f"{what}: {exact} of {len(expected)} have DDP's bits")
    check(exact == len(expected) or not bits, f"{what} have DDP's bits")


def compare_trained(what, where, expected):
    ours = [record["loss"] for record in records(where, "step")]
    check(len(ours) == len(expected["losses"]), "20 steps")
    worst = max(abs(a - b) for a, b in zip(ours, expected["losses"]))
    print(f"{what}: losses differ by at most {worst:.3g}")
    check(worst < 1e-5, f"the losses are DDP's, but differ by {worst}")
    two = expected["replicas"] == 2
    with h5py.File(checkpoints(where)[-1]) as saved:
        compare(f"{what}: weights", lambda name: saved["model/" + name.replace(".", "/")],
                expected["weights"], two)
        if not expected["broadcast_buffers"]:
            rows = saved["state/replicas/buffers_f32"][:].reshape(expected["replicas"], -1)
            compare(f"{what}: buffers of replicas", lambda replica: rows[replica],
                    dict(enumerate(expected["buffers_of_replicas"])), two)


with Scratch() as scratch:
    start, told = scratch / "start", scratch / "ddp.json"
    train(start, {"replicas": 2, "broadcast_buffers": True}, 1, 1)
    one_of_two = [] if LONG else map(str, some((0, 1)))
    subprocess.run([sys.executable, SOURCE / "tests/golden/ddp_losses.py", checkpoints(start)[0],
                    DATA / "train.h5", told, *one_of_two], check=True, timeout=300)
    for expected in json.loads(told.read_text()):
        for ranks in (1, expected["replicas"]) if LONG else (expected["replicas"],):
            what = (f"{expected['replicas']} replicas on {ranks} ranks, broadcast-buffers = "
                    f"{expected['broadcast_buffers']}")
            where = scratch / what.replace(" ", "-")
            train(where, expected, ranks, len(expected["losses"]))
            compare_trained(what, where, expected)
            # After one step without decay the momentum is the gradient.
            first = scratch / f"first-{where.name}"
            train(first, expected, ranks, 1, "--optimizer.weight-decay", 0)
            with h5py.File(checkpoints(first)[-1]) as saved:
                compare(f"{what}: first gradients",
                        lambda name: saved["optimizer/momentum/" + name.replace(".", "/")],
                        expected["gradients"], expected["replicas"] == 2)
