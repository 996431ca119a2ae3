"""On simulated accelerators, whose memory the host cannot touch and whose streams work later, training gets the
CPU's bits: every model × precision × exchange × update × ranks, a run resumed elsewhere too. LOCKSTEP_LONG=1 walks a
larger part of the table, and larger trees.
"""
import argparse
import itertools
import pathlib
import random
import shutil
import struct

from harness import BUILD, LONG, SEED, Scratch, check, check_same, run, some, together
from small_models import MODELS, deck_of, write_data

STEPS, DRAWN = 4, 400 if LONG else 2
SIM = str(BUILD / "tests/liblockstep_sim.so")
TABLE = {
    "precision.compute": ("fp32", "bf16", "fp16"),
    "precision.gradient-checkpointing": ("false", "true"),
    "communication.sync-batch-norm": ("false", "true"),
    "communication.compression": ("none", "fp16", "bf16", "powersgd"),
    "optimizer.update": ("sharded", "replicated"),
    "optimizer.accumulate": (1, 2),
    "optimizer.ema": (0, 0.9),
    "run.graphs": ("auto", "false"),
    "run.replicas": (4, 3),
}
RANKS = (1, 2, 3, 4)
# Torch chooses other kernels for these on devices (a whole LSTM cell; attention in parts), which round otherwise, and in 16 bits it casts
# other operators: such rows are compared with one device alone.
OWN_KERNELS = ("clstm-policy", "lstm-policy", "transformer", "vit")
COUNTS = ("launches", "waits", "host_waits", "races", "peers")  # of tests/sim/counts_file.hpp


def simulated(words, ranks, seed=1, route="direct", counts="", inject="", last_through=(), **more):
    """The program with the library of simulated devices."""
    settings = {"devices": 4, "mib": 1024, "delay-us": 60, "seed": seed, **more, **({"counts": counts} if counts else {})}
    env = {"LD_PRELOAD": SIM, "LOCKSTEP_HOST_SUMS": route,
           "LOCKSTEP_SIM": ",".join(f"{key}={value}" for key, value in settings.items())}
    if counts:
        pathlib.Path(counts).mkdir()
    return run(words, ranks, env={**env, **({"LOCKSTEP_INJECT": inject} if inject else {})}, limit=300,
               last_through=last_through)


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
    # One replica on each rank; what comes from a file cannot run concurrently.
    together_only = settings["communication.compression"] == "powersgd" or (
        settings["communication.sync-batch-norm"] == "true" and name in ("export", "script"))
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
    trees = [(5, 5, "bf16")]  # the smallest whose levels are fewer than the other ranks
    if LONG:
        trees += [(13, 13, "none"), (13, 5, "fp16"), (8, 8, "bf16")]
    for replicas, ranks, rounding in trees:
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
    native = {"communication.reduction": "native", "run.replicas": 2}
    for at, (model, settings) in enumerate((
            *some((("mlp", native), ("mlp", {**native, "optimizer.update": "replicated"}))),
            ("cnn", {"communication.sync-batch-norm": "true", "run.replicas": 4, "communication.timeout-seconds": 20}))):
        deck = deck_of(scratch, model, STEPS)
        run(words_of(deck, scratch / f"way-{at}", settings, "cpu"), 1).expect(0)
        simulated(words_of(deck, scratch / f"way-{at}-sim", settings, "sim"), 2).expect(0, "gradients over NCCL")
        check_same(scratch / f"way-{at}", scratch / f"way-{at}-sim", f"{model} {settings}")


def what_goes_wrong(scratch):
    """The right exit code, with the device's name."""
    settings = {"run.replicas": 4, "communication.timeout-seconds": 20}
    at = itertools.count()

    def ends(code, *phrases, device="sim", model="cnn", options=(), ranks=2, **more):
        words = words_of(decks[model], scratch / f"wrong-{next(at)}", settings, device)
        simulated([*words, *options], ranks, **more).expect(code, *phrases)

    decks = {model: deck_of(scratch, model, STEPS) for model in ("cnn", "resnet")}
    there_is_none = some((
        lambda: ends(69, "run.device = sim:9", "LibTorch finds 4 sim devices", device="sim:9"),
        lambda: ends(69, "run.device = xpu", "LibTorch finds 4 sim devices", device="xpu"),
        lambda: ends(69, "rank 1 (", "would compute on cpu, but rank 0 on", device="auto",
                     last_through=("env", "-u", "LD_PRELOAD")),
        lambda: ends(69, "ranks of one host share a GPU", options=("--communication.backend", "nccl"), devices=1)))
    no_training = some((
        lambda: ends(64, "run.device = gpu", device="gpu"),
        lambda: ends(64, "run.graphs = true has no effect: LOCKSTEP_INJECT = nan", "is not finite", inject="nan:rank=1:step=3",
                     options=("--run.graphs", "true"))))
    hangs = some((
        lambda: ends(76, "root cause: rank ", "sim:", hang=300),
        lambda: ends(76, "root cause: rank 0 (", "sim:0 and 3 more)", hang=300, ranks=1)))  # replicas on 4 devices
    together([
        *hangs,
        lambda: ends(76, "root cause: rank 1 (", "sim:1", "the link is down", lose=4),
        lambda: ends(137, "root cause: rank 1 (", "sim:1", inject="kill:rank=1:step=2"),  # mpirun's code
        lambda: ends(71, "out of device memory", "sim:0", model="resnet", mib=258),
        *there_is_none,
        *no_training,
        # Ranks that share a device, which NCCL refuses.
        lambda: ends(0, "gradients over shared memory", devices=1,
                     options=[word for key, value in SMALL_BUCKETS.items() for word in (f"--{key}", value)])])


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
        what_goes_wrong(scratch)
        trained = 0
        # In float16 a CPU's convolutions take a minute for the millions of a resnet's parameters.
        models = [name for name in MODELS if LONG or name != "resnet"]
        for at in range(arguments.rows):
            settings = {key: draw.choice(values) for key, values in TABLE.items()}
            trained += walk(scratch, at, draw.choice(models), settings, draw.choice(RANKS), arguments.seed + at)
        print(f"{trained} of {arguments.rows} rows train, the others are refused")


if __name__ == "__main__":
    main()
