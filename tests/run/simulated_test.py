"""On simulated accelerators, whose memory the host cannot touch and whose streams work later, training gets the
CPU's bits: every model × precision × exchange × update × ranks, a run resumed elsewhere too. A wait between streams
that is left out is found. LOCKSTEP_LONG=1 walks a larger part of the table, and leaves out every wait.
"""
import argparse
import itertools
import json
import pathlib
import random
import shutil
import struct

from harness import BUILD, LONG, SEED, Scratch, check, check_same, run, together
from small_models import MODELS, deck_of, write_data

STEPS, DRAWN = 4, 400 if LONG else 4
SIM = str(BUILD / "tests/liblockstep_sim.so")
TABLE = {
    "precision.compute": ("fp32", "bf16", "fp16"),
    "precision.gradient-checkpointing": ("false", "true"),
    "communication.sync-batch-norm": ("false", "true"),
    "communication.compression": ("none", "fp16", "bf16", "powersgd"),
    "optimizer.update": ("sharded", "replicated"),
    "optimizer.accumulate": (1, 2),
    "optimizer.ema": (0, 0.9),
    "run.replicas": (4, 3),
}
RANKS = (1, 2, 3, 4)
# Torch chooses other kernels for these on devices (a whole LSTM cell; attention in parts), which round otherwise, and in 16 bits it casts
# other operators: such rows are compared with one device alone.
OWN_KERNELS = ("clstm-policy", "lstm-policy", "transformer", "vit")
COUNTS = ("launches", "waits", "host_waits", "races", "peers")  # of tests/sim/counts_file.hpp


def simulated(words, ranks, seed=1, route="direct", counts="", inject="", **more):
    """The program with the library of simulated devices."""
    settings = {"devices": 4, "mib": 256, "delay-us": 60, "seed": seed, **more, **({"counts": counts} if counts else {})}
    env = {"LD_PRELOAD": SIM, "LOCKSTEP_HOST_SUMS": route,
           "LOCKSTEP_SIM": ",".join(f"{key}={value}" for key, value in settings.items())}
    if counts:
        pathlib.Path(counts).mkdir()
    return run(words, ranks, env={**env, **({"LOCKSTEP_INJECT": inject} if inject else {})}, limit=300)


def counts_of(directory):
    """The counts of each process that had devices."""
    return [dict(zip(COUNTS, struct.unpack("=5Q", file.read_bytes())))
            for file in pathlib.Path(directory).iterdir()]


def words_of(deck, directory, settings, device, steps=STEPS):
    words = ["train", deck, "--run.directory", directory, "--run.device", device, "--train.steps", steps,
             "--train.validate-every", STEPS // 2]
    return words + [word for key, value in settings.items() for word in (f"--{key}", value)]


def walk(scratch, at, name, settings, ranks, seed):
    """One row: on the CPU, on devices, and in two parts of which the other is elsewhere."""
    deck = deck_of(scratch, name, STEPS)
    what = f"{name} {settings} on {ranks} ranks, seed {seed}"
    draw = random.Random(f"{seed} {at}")
    ranks = min(ranks, settings["run.replicas"])
    together_only = settings["communication.compression"] == "powersgd"  # one replica on each rank
    if together_only:
        ranks = settings["run.replicas"]
    route = draw.choice(("direct", "halving"))

    def train(part, kind, count, steps=STEPS):
        words = words_of(deck, scratch / f"{part}-{at}", settings, kind, steps)
        return run(words, count, limit=300) if kind == "cpu" else simulated(words, count, seed, route)

    alone = "cpu" if name not in OWN_KERNELS and settings["precision.compute"] == "fp32" else "sim"
    base = train("base", alone, ranks if together_only else 1)
    check(base.code in (0, 64), f"{what}: {base.text}")
    device = train("sim", "sim", ranks)
    check(device.code == base.code, f"{what}: {base.code} alone, {device.code} on devices: {device.text}")
    if base.code == 0:
        check_same(scratch / f"base-{at}", scratch / f"sim-{at}", what)
        for kind, steps in zip(draw.sample((alone, "sim"), 2), (STEPS // 2, STEPS)):
            train("part", kind, ranks if together_only else draw.randint(1, ranks), steps).expect(0)
        check_same(scratch / f"base-{at}", scratch / f"part-{at}", f"{what}, resumed")
    print(what, route, "trains" if base.code == 0 else "is refused", flush=True)
    for part in ("base", "sim", "part"):
        shutil.rmtree(scratch / f"{part}-{at}", ignore_errors=True)
    return base.code == 0


SMALL_BUCKETS = {"communication.bucket-mb": 0.016, "communication.first-bucket-mb": 0.016}


def along_the_tree(scratch):
    """Ordered sums between many devices: the same bits, with messages for as many ranks as the tree has levels."""
    deck = deck_of(scratch, "mlp", STEPS)
    for replicas, ranks, rounding in ((13, 13, "none"), (13, 5, "fp16"), (8, 8, "bf16")):
        settings = {"run.replicas": replicas, "communication.compression": rounding, **SMALL_BUCKETS}
        run(words_of(deck, scratch / "alone", settings, "cpu"), 1).expect(0)
        for route in ("direct", "halving"):
            counts = scratch / f"counts-{ranks}-{route}"
            simulated(words_of(deck, scratch / route, settings, "sim"), ranks, SEED, route, counts,
                      devices=16, mib=64).expect(0, "gradients over NCCL")
            check_same(scratch / "alone", scratch / route, f"{ranks} ranks, {route}")
            peers = max(each["peers"] for each in counts_of(counts))
            levels = (replicas - 1).bit_length()
            check(peers == ranks - 1 if route == "direct" else peers <= levels, f"{ranks} ranks, {route}: {peers} peers")
            shutil.rmtree(scratch / route)
        shutil.rmtree(scratch / "alone")


def other_ways(scratch):
    """NCCL's own order, whose sums of two are the tree's, with either update; two replicas of one device that speak
    to each other in forward and backward."""
    for at, (model, settings) in enumerate((
            ("mlp", {"communication.reduction": "native", "run.replicas": 2}),
            ("mlp", {"communication.reduction": "native", "run.replicas": 2, "optimizer.update": "replicated"}),
            ("cnn", {"communication.sync-batch-norm": "true", "run.replicas": 4, "communication.timeout-seconds": 20}))):
        deck = deck_of(scratch, model, STEPS)
        run(words_of(deck, scratch / f"way-{at}", settings, "cpu"), 1).expect(0)
        simulated(words_of(deck, scratch / f"way-{at}-sim", settings, "sim"), 2).expect(0, "gradients over NCCL")
        check_same(scratch / f"way-{at}", scratch / f"way-{at}-sim", f"{model} {settings}")


def graphs(scratch):
    """Forward and backward as graphs: the bits of the eager run, resumed elsewhere, too. Batches of 5 and, at the end of an
    epoch, of 4; of each form two passes run eagerly before it is recorded."""
    rows = [
        # 2 replicas on a rank write to different places: forms (5, first), (5, second), (4, first), (4, second).
        ("cnn", {"run.device": "sim:0"}, 1, 12),
        ("transformer", {"precision.compute": "bf16"}, 2, 6),
        ("resnet", {"train.steps": 4, "data.batch": 2}, 2, 2),
        ("cnn", {"task.class-weights": "balanced", "run.device": "sim:0", "train.steps": 4}, 1, 0),  # the host waits for their sum
        ("cnn", {"train.steps": 4}, 1, 0),  # concurrent replicas on two devices
    ]
    if LONG:
        rows += [("cnn", {"run.replicas": 4, "data.batch": 3, "precision.gradient-checkpointing": "true",
                          "optimizer.accumulate": 2}, 2, None),
                 ("vit", {"run.device": "sim:0", "precision.compute": "fp16"}, 1, 12), ("unet", {}, 2, None), ("mlp", {"optimizer.ema": 0.9}, 2, 6),
                 ("cnn1d", {"run.device": "sim:0"}, 1, None), ("cnn3d", {}, 2, None), ("lmu-asr", {}, 1, 0), ("script", {}, 1, 0),
                 ("export", {}, 1, 0)]

    def row(at, model, settings, ranks, replayed):
        deck = deck_of(scratch, model, STEPS)
        settings = {"run.replicas": 2, "data.batch": 5, "train.validate-every": 5, **SMALL_BUCKETS, "train.steps": 10,
                    **settings}
        steps = settings.pop("train.steps")

        def train(name, ranks, steps, graphs):
            words = words_of(deck, scratch / f"{name}-{at}", {**settings, "run.graphs": graphs}, "sim", steps)
            return simulated(words, ranks, SEED).expect(0).text

        train("eager", ranks, steps, "false")
        said = train("graphs", ranks, steps, "true")
        check_same(scratch / f"eager-{at}", scratch / f"graphs-{at}", f"graphs of {model} {settings}")
        found = [json.loads(line) for line in (scratch / f"graphs-{at}/metrics.jsonl").read_text().splitlines()]
        count = sum(record.get("graph_replays", 0) for record in found)
        check(count == replayed if replayed is not None else count > 0, f"{model} {settings}: {count} replays: {said}")
        check(count > 0 or "run.graphs" in said, f"{model}: no graphs, and no word of it: {said}")
        if at == 0 or LONG:
            train("parts", ranks, steps // 2, "true")
            settings["run.device"] = "sim:0" if ranks == 2 else "sim"
            train("parts", 3 - ranks, steps, "true")
            check_same(scratch / f"eager-{at}", scratch / f"parts-{at}", f"graphs of {model} {settings}, resumed")

    together([lambda at=at, each=each: row(at, *each) for at, each in enumerate(rows)], 2)


def host_waits(scratch):
    """A step holds the host up 5 times, and once for each bucket, at most. More do models that speak with the host in
    the middle of a step (a policy, losses and statistics that are summed there), and replicas that keep buffers."""
    for name, ranks, settings, more in (
            ("cnn", 2, {}, {}), ("unet", 2, {}, {}), ("cnn", 2, {}, {"devices": 1}),
            *((("cnn1d", 2, {}, {}), ("mlp", 1, {"precision.compute": "fp16"}, {})) if LONG else ())):
        counted = []
        for steps in (2, 8):
            counts = scratch / f"waits-{steps}"
            words = words_of(deck_of(scratch, name, STEPS), scratch / "waited", {
                "run.replicas": 4, "monitor.weight-hash": "off", **settings, "train.validate-every": 0}, "sim", steps)
            simulated(words, ranks, counts=counts, **more).expect(0)
            counted.append(max(each["host_waits"] for each in counts_of(counts)))
            shutil.rmtree(counts)
            shutil.rmtree(scratch / "waited")
        waits = (counted[1] - counted[0]) / 6
        check(waits <= 6, f"{name} {settings} {more}: the host waits {waits:.1f} times per step")


def waits_left_out(scratch):
    """Each wait of a stream orders something: without it a race is found, or nothing depends on it."""
    deck = deck_of(scratch, "cnn", STEPS)
    settings = {"run.replicas": 4, **SMALL_BUCKETS}
    whole = scratch / "whole"
    simulated(words_of(deck, whole, settings, "sim"), 2, counts=scratch / "counts", route="halving").expect(0)
    waits = min(each["waits"] for each in counts_of(scratch / "counts"))
    check(waits > 10 * STEPS / 2, f"{waits} waits")
    dropped = range(waits) if LONG else random.Random(SEED).sample(range(waits), 6)
    caught = []

    def without(wait):
        directory = scratch / f"without-{wait}"
        result = simulated(words_of(deck, directory, settings, "sim"), 2, drop=wait, route="halving")
        if "sim: race: " in result.text:
            # Which code ends it depends on who meets the race: a batch's first step, an exchange, or neither.
            check(result.code in (64, 70, 76), f"without wait {wait}: {result.code} {result.text}")
            caught.append(wait)
        else:
            result.expect(0)
            check_same(whole, directory, f"without wait {wait}, no race")
        shutil.rmtree(directory, ignore_errors=True)

    together([lambda wait=wait: without(wait) for wait in dropped], 2)
    print(f"{len(caught)} of {len(dropped)} waits left out were races, nothing depended on the others")
    check(len(caught) * 2 > len(dropped), f"most waits are needed: {sorted(caught)} of {list(dropped)}")


def what_goes_wrong(scratch):
    """The right exit code, with the device's name."""
    settings = {"run.replicas": 4, "communication.timeout-seconds": 20}
    at = itertools.count()

    def ends(code, *phrases, device="sim", model="cnn", options=(), **more):
        words = words_of(deck_of(scratch, model, STEPS), scratch / f"wrong-{next(at)}", settings, device)
        simulated([*words, *options], 2, **more).expect(code, *phrases)

    ends(69, "run.device = sim:9", "LibTorch finds 4 sim devices", device="sim:9")
    ends(69, "run.device = xpu", "LibTorch finds 4 sim devices", device="xpu")
    ends(64, "run.device = gpu", device="gpu")
    ends(71, "out of device memory", "sim:0", model="resnet", mib=258)
    ends(137, "root cause: rank 1 (", "sim:1", inject="kill:rank=1:step=2")  # mpirun's code
    ends(76, "root cause: rank 1 (", "sim:1", "the link is down", lose=4)
    ends(76, "root cause: rank ", "sim:", hang=300)
    # Ranks that share a device, which NCCL refuses.
    ends(0, "gradients over shared memory", devices=1,
         options=[word for key, value in SMALL_BUCKETS.items() for word in (f"--{key}", value)])
    ends(69, "ranks of one host share a GPU", options=("--communication.backend", "nccl"), devices=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=DRAWN)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    with Scratch() as scratch:
        write_data(scratch)
        along_the_tree(scratch)
        other_ways(scratch)
        graphs(scratch)
        host_waits(scratch)
        what_goes_wrong(scratch)
        waits_left_out(scratch)
        trained = 0
        # In float16 a CPU's convolutions take a minute for the millions of a resnet's parameters.
        models = [name for name in MODELS if LONG or name != "resnet"]
        for at in range(arguments.rows):
            settings = {key: draw.choice(values) for key, values in TABLE.items()}
            trained += walk(scratch, at, draw.choice(models), settings, draw.choice(RANKS), arguments.seed + at)
        print(f"{trained} of {arguments.rows} rows train, the others are refused")


if __name__ == "__main__":
    main()
