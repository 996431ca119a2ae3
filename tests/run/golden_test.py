"""The first 20 losses are those of PyTorch DDP on 2 and 4 processes, and the weights after them: of 2,
where a sum has one order, to the last bit (tests/golden/make_ddp_losses.py)."""
import hashlib
import json

import h5py
import numpy as np
import torch

from harness import DATA, SOURCE, Scratch, check, checkpoints, records, run

golden = json.loads((SOURCE / "tests/golden/ddp_losses.json").read_text())
# Other vector units and other releases round otherwise.
same_arithmetic = (golden["processor"] == torch.backends.cpu.get_cpu_capability() and
                   torch.__version__.startswith(golden["torch"]))
with Scratch() as scratch:
    for expected in golden["runs"]:
        for ranks in (1, expected["replicas"]):
            where = scratch / f"{expected['replicas']}-on-{ranks}"
            run(["train", SOURCE / "inputs/fashion_mnist.ini", "--run.replicas",
                 expected["replicas"], "--train.steps", len(expected["losses"]), "--data.train",
                 DATA / "train.h5", "--data.validation", "", "--data.test", "",
                 "--monitor.log-every", 1, "--run.directory", where], ranks).expect(0)
            ours = [record["loss"] for record in records(where, "step")]
            check(len(ours) == len(expected["losses"]), "20 steps")
            worst = max(abs(a - b) for a, b in zip(ours, expected["losses"]))
            exact = 0
            with h5py.File(checkpoints(where)[-1]) as saved:
                for name, theirs in expected["weights"].items():
                    values = np.array(saved["model/" + name.replace(".", "/")])
                    norm = np.linalg.norm(values.astype(np.float64))
                    check(abs(norm - theirs["norm"]) < 1e-4 * max(norm, 1), f"{name}: {norm}")
                    exact += hashlib.sha256(values.tobytes()).hexdigest() == theirs["sha256"]
            print(f"{expected['replicas']} replicas on {ranks} ranks: losses differ by at most "
                  f"{worst:.3g}, {exact} of {len(expected['weights'])} tensors have DDP's bits")
            check(worst < 1e-5, f"the losses are DDP's, but differ by {worst}")
            if expected["replicas"] == 2 and same_arithmetic:
                check(exact == len(expected["weights"]), "the weights have DDP's bits")
