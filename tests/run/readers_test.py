"""h5py and h5dump read data sets and checkpoints by name; evaluate gives the validation's figures
on any rank count; a flipped bit anywhere is found."""
import subprocess

import h5py
import numpy as np

from harness import (DATA, DECK, Scratch, check, checkpoints, flip, records, run, train)

with Scratch() as scratch:
    train(scratch / "run").expect(0)
    newest = checkpoints(scratch / "run")[-1]
    with h5py.File(DATA / "train.h5") as data, h5py.File(newest) as saved:
        check(data["inputs"].shape == (60000, 28, 28) and data["inputs"].dtype == np.uint8, "inputs")
        check(np.bincount(data["targets"][:]).tolist() == [6000] * 10, "targets")
        check(abs(data.attrs["mean"][0] - 0.2860) < 1e-4, "mean")
        names = [name.decode() if isinstance(name, bytes) else name
                 for name in data.attrs["classes"]]
        check(names[9] == "Ankle boot", f"class names: {names}")
        weight = saved["model/features/conv1/weight"]
        check(weight.shape == (4, 1, 3, 3) and np.isfinite(weight[:]).all(), "a weight by name")
        check(np.abs(weight[:]).max() > 0, "that is not empty")
        check(saved["record"].attrs["step"] == 30, "the step")
        moment = saved["optimizer/exp_avg/classifier/output/weight"]
        check(moment.shape == (10, 16) and np.abs(moment[:]).max() > 0, "optimizer state by name")
        with h5py.File(scratch / "run/best.h5") as best:
            check(best["model/features/conv1/weight"].shape == (4, 1, 3, 3), "best.h5")
            check(not best["model/features/conv1/weight"].is_virtual, "best.h5 holds plain datasets")
        first = float(weight[0, 0, 0, 0])
    dumped = subprocess.run(["h5dump", "-m", "%.9g", "-d", "/model/features/conv1/weight", newest],
                            capture_output=True, text=True, check=True).stdout
    check(f"{first:.9g}" in dumped, "h5dump shows the same weight")

    figures = set()
    for ranks in (1, 2, 3):
        out = run(["evaluate", DECK, newest, "--data.validation", DATA / "test.h5"], ranks).expect(0)
        figures.add(out.text.strip())
    check(len(figures) == 1, f"evaluate is exact on any rank count: {figures}")
    last = records(scratch / "run", "validation")[-1]
    check(f"accuracy {last['accuracy']:.6f}" in figures.pop(), "and agrees with the training")
    run(["evaluate", DECK, scratch / "run/best.h5", "--data.validation", DATA / "test.h5"],
        2).expect(0, "accuracy")

    size = newest.stat().st_size
    for at in [0, 8, 600, 4095, 4096, 4100, size // 3, size // 2, size - 1]:
        flip(newest, at)
        run(["checkpoint", "verify", newest]).expect(65, "damaged")
        flip(newest, at)
    run(["checkpoint", "verify", newest]).expect(0)
    for command in (["--help"], ["--version"], ["models"], ["tasks"], ["train", "--help"],
                    ["checkpoint", "info", scratch / "run"], ["data", "info", DATA / "test.h5"],
                    ["data", "verify", DATA / "test.h5"]):
        run(command).expect(0)
    run(["trian"]).expect(64, "Did you mean train?")
