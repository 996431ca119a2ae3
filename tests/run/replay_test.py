"""lockstep replay: any step of a run again, on any number of ranks, with the bits that were recorded; what a step saw
as a file; and where the first value that is not finite comes from. LOCKSTEP_LONG=1 takes more steps and tasks."""
import json
import re
import shutil

import h5py
import numpy as np

from harness import DATA, DRAW, LONG, Scratch, check, checkpoints, flip, records, run, train

STEPS, REPLICAS, BATCH = 40, 4, 8
OPTIONS = ["--train.steps", STEPS, "--train.epochs", 0, "--run.replicas", REPLICAS, "--data.batch", BATCH,
           "--data.global-batch", 0, "--checkpoint.every-steps", 12, "--checkpoint.keep", 9,
           "--monitor.weight-hash", "true", "--monitor.log-every", 5, "--optimizer.accumulate", 2]


def replay(directory, *options, ranks=0, env=None):
    return run(["replay", directory, *options], ranks, env)


def texts(file, name):
    """The rows of a column of texts."""
    data, ends = bytes(file[name][:]), file[f"{name}_offsets"][:]
    return [data[a:b].decode() for a, b in zip(ends, ends[1:])]


def dumped(directory, step, ranks, out):
    replay(directory, "--step", step, "--dump", out, ranks=ranks).expect(0, f"wrote {out}")
    with h5py.File(out) as file:
        return {name: file[name][:] for name in
                ("samples/sample", "samples/replica", "inputs/inputs", "targets/targets", "replicas/loss_sum",
                 "replicas/weight", "gradients/norm", "operators/norm")} | {
                     "operators": texts(file, "operators/name"), "parameters": texts(file, "gradients/parameter"),
                     "loss": file.attrs["loss"][0], "norm": file.attrs["grad_norm"][0]}


def spoilt(source, target, at, value):
    """A copy of a data set with one value that is another."""
    with h5py.File(source) as file:
        fields = {name: file[name][:] for name in ("inputs", "targets")}
    with h5py.File(target, "w") as file:
        file["inputs"] = fields["inputs"].astype(np.float32) / 255
        file["inputs"][at] = value
        file["targets"] = fields["targets"]


with Scratch() as scratch:
    directory = scratch / "run"
    train(directory, *OPTIONS, ranks=2).expect(0)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}

    # Each recorded step comes out again, whatever is near; one that was not recorded is only told.
    for step in sorted({5, 40, *(DRAW.sample(range(5, 41, 5), 6 if LONG else 1))}):
        for ranks in (0, 2, 3):
            near = max(file for file in range(0, 37, 12) if file < step)
            replay(directory, "--step", step, ranks=ranks).expect(
                0, f"from step {near} ", f"to step {step}", "as recorded", "identical")
    replay(directory, "--step", 13).expect(0, "of which the run has no record")
    for step in (41, 2**63 - 1):
        replay(directory, "--step", step).expect(64, "the run has only 40 steps")
    replay(directory).expect(64, "no step was named")
    replay(scratch, "--step", 1).expect(66, "not the directory of a run")
    check(before == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()},
          "a replay changes nothing in the run")

    # What is damaged is not begun from, and what is missing is done again.
    partial = scratch / "partial"
    shutil.copytree(directory, partial)
    flip(checkpoints(partial)[1], 100_000)
    replay(partial, "--step", 20).expect(0, "from step 0 ", "as recorded")
    for file in checkpoints(partial)[2:]:
        file.write_text("no checkpoint")
    replay(partial, "--step", 20).expect(0, "from step 0 ", "as recorded")
    for file in checkpoints(partial):
        file.unlink()
    replay(partial, "--step", 20).expect(0, "from step 0 (the beginning)", "5 recorded steps compared: identical")

    # Another hash in the records is found.
    other = scratch / "other"
    shutil.copytree(directory, other)
    lines = (other / "metrics.jsonl").read_text().splitlines()
    changed = [line.replace(json.loads(line)["weight_hash"], "0123456789abcdef")
               if json.loads(line).get("step") == 15 and "weight_hash" in line else line for line in lines]
    (other / "metrics.jsonl").write_text("\n".join(changed) + "\n")
    replay(other, "--step", 20).expect(1, "the first recorded step with other weights is 15")
    replay(other, "--step", 15, ranks=2).expect(1, "but 0123456789abcdef is recorded")

    # Lines that are no records change nothing.
    with open(partial / "metrics.jsonl", "a") as records_of:
        records_of.write('{"event":"step","step":"x"}\n{"event":"step","step":1.5}\n{"event":7}\n[]\nno json\n')
    replay(partial, "--step", 20).expect(0, "5 recorded steps compared: identical")

    # What a step saw is the same on any number of ranks, and is what was recorded.
    one, two = (dumped(directory, 20, ranks, scratch / f"{ranks}.h5") for ranks in (0, 2))
    for name, values in one.items():
        check(np.array_equal(values, two[name]), f"{name} on 1 and 2 ranks")
    check(len(set(one["samples/sample"])) == REPLICAS * BATCH * 2, "each sample once")
    with h5py.File(DATA / "train.h5") as data:
        labels = data["targets"][:][one["samples/sample"]]
    check(np.array_equal(labels, one["targets/targets"].ravel()), "the samples are those of the file")
    step = next(each for each in records(directory, "step") if each["step"] == 20)
    loss = one["replicas/loss_sum"].sum() / one["replicas/weight"].sum()
    check(abs(loss - step["loss"]) < 1e-6 and one["loss"] == step["loss"], f"{loss} {step['loss']}")
    check(abs(np.sqrt((one["gradients/norm"] ** 2).sum()) - one["norm"]) < 1e-5 * one["norm"], "norms")
    check("aten::addmm" in one["operators"] and one["parameters"][0].endswith(("weight", "bias")), "operators")
    replay(directory, "--step", 20, "--dump", scratch / "0.h5").expect(73)
    replay(directory, "--step", 20, "--dump", scratch / "none/0.h5").expect(73)
    # Nothing of the run, or that it has read, is replaced.
    for file in (checkpoints(directory)[2], directory / "metrics.jsonl", directory / "new.h5",
                 DATA / "train.h5"):
        replay(directory, "--step", 20, "--dump", file, "--overwrite").expect(73)
    check(before == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}, "all is there")
    replay(directory, "--step", 20, "--overwrite").expect(64, "without --dump")

    # The first value that is not finite.
    replay(directory, "--until-nonfinite", "--step", 20).expect(1, "all values are finite from step 13 to step 20")
    replay(directory, "--until-nonfinite").expect(1, "all values are finite from step 37 to step 40")
    number = int(one["samples/sample"][3])  # which step 20 learns
    spoilt(DATA / "train.h5", scratch / "nan.h5", (number, 3, 5), np.nan)
    ended = train(scratch / "nan", *OPTIONS, "--data.train", scratch / "nan.h5", "--data.validation", "", ranks=2)
    ended.expect(65, f"sample {number} of data.train is not finite")
    replay(scratch / "nan", "--until-nonfinite").expect(0, f"sample {number} of data.train is not finite")
    train(scratch / "high", *OPTIONS, "--optimizer.name", "sgd", "--optimizer.learning-rate", "1e25",
          "--schedule.warmup-steps", 0, ranks=2).expect(64)
    for ranks in (0, 2):
        found = replay(scratch / "high", "--until-nonfinite", ranks=ranks).expect(0, " first came out of aten::")
        check(re.search(r"step \d+: (NaN|-?infinity) first came out of aten::\w+ in (forward|backward)", found.text),
              found.text)

    # A step that fp16 skips has an origin, too.
    ended = train(scratch / "fp16", *OPTIONS, "--precision.compute", "fp16", "--precision.loss-scale", 2.0 ** 40,
                  ranks=2)
    ended.expect(64, f"lockstep replay {scratch / 'fp16'} --until-nonfinite")
    replay(scratch / "fp16", "--until-nonfinite").expect(0, "step 1: ", " first came out of aten::", "skipped")
