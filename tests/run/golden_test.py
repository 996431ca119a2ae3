"""The first 20 losses are those of PyTorch DDP (tests/golden/make_ddp_losses.py)."""
import json

from harness import DATA, SOURCE, Scratch, check, records, run

golden = json.loads((SOURCE / "tests/golden/ddp_losses.json").read_text())
with Scratch() as scratch:
    for ranks in (1, 2):
        where = scratch / f"n{ranks}"
        run(["train", SOURCE / "inputs/fashion_mnist.ini", "--run.replicas", golden["replicas"],
             "--train.steps", len(golden["losses"]), "--data.train", DATA / "train.h5",
             "--data.validation", "", "--data.test", "", "--monitor.log-every", 1,
             "--run.directory", where], ranks).expect(0)
        ours = [record["loss"] for record in records(where, "step")]
        check(len(ours) == len(golden["losses"]), "20 steps")
        worst = max(abs(a - b) for a, b in zip(ours, golden["losses"]))
        print(f"{ranks} ranks: largest difference {worst:.3g}")
        check(worst < 1e-5, f"the losses are DDP's, but differ by {worst}")
