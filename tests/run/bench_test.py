"""What `lockstep bench` prints is whole and right; how fast it was, no test says. LOCKSTEP_LONG=1 measures everything
on one rank and on two, and a large model."""
import json

from harness import LONG, check, run, some

KEYS = ["what", "variant", "bytes", "ranks", "median_s", "minimum_s", "maximum_s"]


def measured(words, ranks):
    lines = run(["bench", *words, "--json"], ranks).expect(0).text.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    for line in found:
        check(list(line)[:len(KEYS)] == KEYS, f"the keys of the contract, first, in {line}")
        check(0 < line["minimum_s"] <= line["median_s"] <= line["maximum_s"], f"times in {line}")
        check(line["ranks"] == ranks, f"{ranks} ranks in {line}")
    return found


def all_reduce(ranks):
    lines = measured(["allreduce", "--sizes", "64K,1M", "--repeats", 3], ranks)
    check([(line["variant"], line["bytes"]) for line in lines] ==
          [(variant, size) for size in (1 << 16, 1 << 20) for variant in ("ordered", "mpi", "copy")],
          f"every variant at every size: {lines}")
    for line in lines:
        rate = line["bytes"] / line["median_s"]
        check(line["what"] == "allreduce" and abs(line["bytes_per_s"] / rate - 1) < 1e-9,
              f"bytes per second in {line}")


def step(model, parameters, ranks):
    losses = {}
    for variant in ("engine", "native", "alone", "bare"):
        [line] = measured(["step", "--model", model, "--variant", variant, "--batch", 16,
                           "--steps", 3], ranks)
        losses[variant] = line["loss"]
        check(line["what"] == f"step {model}" and line["variant"] == variant, f"names in {line}")
        check(line["bytes"] == 4 * parameters, f"{parameters} parameters in {line}")
        check(abs(line["samples_per_s"] * line["median_s"] - 16 * ranks) < 1e-6,
              f"samples per second in {line}")
        parts = [line[part + "_s"] for part in
                 ("forward", "backward", "communication", "imbalance", "update")]
        check(all(part >= 0 for part in parts) and min(parts[0], parts[1], parts[4]) > 0,
              f"parts of the step in {line}")
        check(sum(parts) < 2 * line["maximum_s"], f"parts within the step in {line}")
        check(0 < line["memory_before_bytes"] < line["memory_bytes"], f"memory in {line}")
    # The same images, weights and optimizer: the work that is compared is the same.
    check(abs(losses["alone"] - losses["bare"]) < 1e-3, f"{model}: the loss of a loop: {losses}")
    check((losses["engine"] == losses["alone"]) == (ranks == 1),
          f"{model}: ranks learn from each other: {losses}")


def loader(kind, samples, ranks):
    lines = measured(["loader", "--kind", kind, "--repeats", 2], ranks)
    check([line["variant"] for line in lines] == ["loader", "memory", "baseline"],
          f"every variant: {lines}")
    for line in lines:
        read = samples * (ranks if line["variant"] == "baseline" else 1)
        check(line["what"] == f"loader {kind}" and
              abs(line["samples_per_s"] * line["median_s"] / read - 1) < 1e-9,
              f"samples per second in {line}")
    check(0 < lines[0]["memory_bytes"] < lines[0]["allowed_bytes"], f"memory in {lines[0]}")


def shards():
    [line] = measured(["loader", "--kind", "shards", "--variant", "start", "--repeats", 1], 2)
    check(line["what"] == "loader shards" and line["samples"] == 16000, f"1,000 files in {line}")


for count in some((1, 2)):
    all_reduce(count)
for count in some((1, 2)):
    step("cnn", 105962, count)
if LONG:
    step("mlp18m", 18411530, 1)
for load in some((lambda: loader("deflate", 16384, 1), lambda: loader("deflate", 16384, 2), lambda: loader("small", 60000, 1),
                  lambda: loader("large", 64, 2), shards)):
    load()
[line] = measured(["loader", "--kind", "order"], 1)
check(1e10 < line["mean_index"] < 1e12, f"the first of 10^12 samples in {line}")
[line] = measured(["step", "--model", "cnn", "--variant", "dp", "--batch", 16, "--steps", 3], 1)
check(abs(line["samples_per_s"] * line["median_s"] - 2 * 16) < 1e-6, f"two replicas in {line}")
lines = measured(["checkpoint", "--mb", 4, "--repeats", 2], 2)
check([line["variant"] for line in lines] ==
      ["raw-write", "synchronous", "copy", "stall", "checksum", "raw-read", "load"],
      f"every variant: {lines}")
for words, phrase in some(((["loading"], "the commands are allreduce, step, loader and checkpoint"),
                           (["allreduce", "--variant", "tree"], "Valid values: ordered, mpi, copy"),
                           (["allreduce", "--sizes", "0"], "--sizes 0"),
                           (["allreduce", "--sizes", "25G"], "--sizes 25G"),
                           (["allreduce", "--size", "1M"], "unknown option --size"),
                           (["loader", "--kind", "tiny"], "the kinds are small, large, deflate, shards and order"),
                           (["step", "--model", "rnn"], "Valid values: mlp18m, cnn"),
                           (["step", "--variant", "fast"], "Valid values: engine, native, dp, alone, bare"),
                           (["step", "--steps", "-1"], "--steps -1")), 2):
    run(["bench", *words]).expect(64, phrase)
run(["bench", "--help"]).expect(0, "lockstep bench allreduce", "lockstep bench step")
print("bench: its lines are whole")
