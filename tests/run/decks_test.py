"""Every deck for a situation, and every one for clips and boxes, starts, learns a few steps and ends
well; their networks have the size that they are known by. The short form draws some of them."""
import re

import h5py
import numpy as np

from harness import DATA, SOURCE, Scratch, check, records, run, some

NAMES = ("development", "production", "large_model", "memory_constrained", "reproducible")
QUICK = ["--schedule.warmup-steps", 1, "--monitor.plots", "false", "--monitor.log-every", 1]


def write(path, inputs, targets, classes):
    with h5py.File(path, "w") as file:
        file["inputs"], file["targets"] = inputs, targets
        file.attrs["classes"] = classes


# The best model is chosen by samples that the test set does not hold.
texts = [path.read_text() for path in (SOURCE / "inputs").glob("*.ini")]
files = {key: {file for text in texts for file in re.findall(rf"^{key} *= *(\S.*)$", text, re.M)}
         for key in ("validation", "test")}
check(files["validation"] and not files["validation"] & files["test"], f"chosen by a test set: {files}")

with Scratch() as scratch:
    for name in some(NAMES, 2):
        directory = scratch / name
        run(["train", SOURCE / f"inputs/{name}.ini", "--data.train", DATA / "train.h5",
             "--data.validation", DATA / "test.h5", "--data.test", "", "--run.directory", directory,
             "--train.steps", 3, "--train.validate-every", 3, *QUICK], ranks=2).expect(
                 0, "finished at step 3")
        check(len(records(directory, "validation")) == 1, f"{name} was validated")
        check(all(step["loss"] < 10 for step in records(directory, "step")), f"{name} computes")

    draws = np.random.default_rng(0)
    motions = [f"motion{i}" for i in range(7)]
    classes = np.arange(64) % 7
    for name, inputs, targets, names, options, parameters in some((
            ("video", draws.integers(0, 255, (64, 17, 32, 32), np.uint8), classes, motions, [], 39_715),
            ("video_behaviour", draws.integers(0, 255, (7, 17, 256, 256), np.uint8), classes[:7], motions,
             ["--data.batch", 1, "--optimizer.accumulate", 1], 2_934_823),
            ("boxes", draws.uniform(0, 4, (32, 32, 32, 32, 1)).astype(np.float32),
             draws.uniform(-1, 1, (32, 4)).astype(np.float32), ["a", "b", "c", "d"], [], 106_124))):
        directory, data = scratch / name, scratch / f"{name}.h5"
        write(data, inputs, targets, names)
        run(["train", SOURCE / f"inputs/{name}.ini", "--data.train", data, "--data.validation", data,
             "--data.test", "", "--run.directory", directory, "--train.steps", 2,
             "--train.validate-every", 2, *QUICK, *options]).expect(0, "finished at step 2")
        found = records(directory, "start")[-1]["parameters"]
        check(found == parameters, f"{name}: {found} parameters")
