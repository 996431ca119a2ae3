"""Parameters that travel while the next forward runs, and gradients and parameters of which hosts hold only their
shards, between hosts at the ends of slow cables: models of every kind, with what reads their parameters between two
steps, to the bits of one rank, through a kill and a restart on other hosts. Some models, each with an option and an
update, drawn at random; at length all of them."""
import gzip
import itertools
import json
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import DRAW, LOCKSTEP, LONG, Result, Scratch, check, check_same, checkpoints, run  # noqa: E402
from hosts import Hosts, missing  # noqa: E402
from memory_groups import MemoryGroups  # noqa: E402

import small_models  # noqa: E402

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)

STEPS = 7
# Neither hashes nor records of steps, for which parameters are waited for at once.
BASE = {"run.replicas": 4, "communication.bucket-mb": 0.016, "communication.first-bucket-mb": 0.016,
        "communication.timeout-seconds": 60, "checkpoint.every-steps": 3, "train.validate-every": 0,
        "monitor.weight-hash": "false", "monitor.log-every": 1000}
OPTIONS = {
    "plain": {},
    "every step": {"checkpoint.every-steps": 1, "train.validate-every": 1, "monitor.log-every": 1},
    "average": {"optimizer.ema": 0.9, "train.validate-every": 3},
    "clip": {"optimizer.clip-norm": 0.5},
    "accumulate": {"optimizer.accumulate": 2},
    "recompute": {"precision.gradient-checkpointing": "true"},
    "bf16": {"precision.compute": "bf16", "communication.compression": "bf16"},
    "freeze": {"optimizer.freeze": "*bias"},
    "histograms": {"monitor.histograms": "gradients"},
    "lamb": {"optimizer.name": "lamb"},
    "rounds": {},
}
UPDATES = ("sharded", "sharded-gradients", "fully-sharded")
WHERE = ("host1:1,host2:1", "host1:2,host2:2", "host1:1,host2:1,host3:1", "host1:2,host2:1", "host1:1,host3:2")


def cases():
    """Model, option, update, hosts before and after the kill."""
    models = sorted(small_models.MODELS)
    if not LONG:
        drawn = DRAW.sample([name for name in models if not name.endswith("-policy")], 2)
        return [(name, DRAW.choice(sorted(OPTIONS)), update, *DRAW.sample(WHERE, 2))
                for name, update in zip(drawn, DRAW.sample(UPDATES, 2))]
    return [(*case, *DRAW.sample(WHERE, 2)) for case in itertools.product(models, sorted(OPTIONS), UPDATES)]


def words(name, directory, **more):
    keys = {**BASE, **more, "run.directory": directory}
    if name == "resnet":  # of 45 MB
        keys.update({"communication.bucket-mb": 1, "communication.first-bucket-mb": 1})
    return ["train", small_models.deck_of(scratch, name, STEPS),
            *itertools.chain.from_iterable((f"--{key}", value) for key, value in keys.items())]


def trained(update, name, prefix=()):
    """Two ranks on two hosts train a model of 15 million parameters for three steps."""
    directory = scratch / name
    deck = small_models.deck_of(scratch, "mlp", 3)
    keys = {**BASE, "run.replicas": 2, "communication.bucket-mb": 4, "communication.first-bucket-mb": 4,
            "data.batch": 1, "model.hidden": ",".join(15 * ["1000"]), "model.dropout": 0, "checkpoint.every-steps": 0,
            "checkpoint.asynchronous": "false", "data.validation": "", "optimizer.update": update,
            "run.directory": directory}
    job = hosts.mpirun("host1:1,host2:1", [*prefix, LOCKSTEP, "train", deck, *itertools.chain.from_iterable(
        (f"--{key}", value) for key, value in keys.items())])
    text = job.communicate(timeout=240)[0]
    return Result(job.returncode, text, 0), directory


def peak(update):
    """The most memory of a rank."""
    result, directory = trained(update, f"peak-{update}")
    result.expect(0)
    last = json.loads((directory / "history.jsonl").read_text().splitlines()[-1])
    return max(rank["memory_peak_bytes"] for rank in last["resources"]["ranks"]), checkpoints(directory)[-1]


def check_memory():
    """Of the arrays of 60 MB, gradients and what is received need no more than a few buckets beside the own shard."""
    (all_of, model), (gradients, same), (parameters, again) = map(peak, UPDATES)
    check_same(model, same, "sharded gradients")
    check_same(model, again, "sharded parameters")
    check(all_of - gradients > 20e6, f"sharded gradients take {gradients} B, whole ones {all_of} B")
    check(gradients - parameters > 15e6, f"sharded parameters take {parameters} B, whole ones {gradients} B")
    check(all_of - parameters > 60e6, f"sharded parameters take {parameters} B, all that is whole {all_of} B")
    print(f"peaks of {all_of / 1e6:.0f}, {gradients / 1e6:.0f} and {parameters / 1e6:.0f} MB", flush=True)
    return model


def check_limit(model):
    """Where each host has 320 MB, by the kernel, only the shards of the model fit, and give the same bits."""
    with MemoryGroups(("host1", "host2"), 320e6) as groups:
        if not groups.prefix:
            print("skipped: no control groups of memory can be made here", flush=True)
            return
        refused, _ = trained("sharded", "refused", groups.prefix)
        check(refused.code == 71, f"the whole model does not fit:\n{refused.text}")
        check("not enough memory to train this model" in refused.text, refused.text)
        fits, directory = trained("fully-sharded", "fits", groups.prefix)
        fits.expect(0)
        check_same(model, checkpoints(directory)[-1], "a model of which a host cannot hold the whole")


with Scratch() as scratch, Hosts(3) as hosts:
    small_models.write_data(scratch)
    check_limit(check_memory())
    hosts.slow("host2", 0.003, 25e6)
    job = hosts.mpirun("host1:1,host2:1", [LOCKSTEP, *words("transformer", scratch / "timeline", **{"profile.steps": "2-3"})])
    text = job.communicate(timeout=240)[0]
    Result(job.returncode, text, 0).expect(0)
    with gzip.open(next((scratch / "timeline/profile").glob("*.json.gz"))) as file:
        told = json.load(file)
    check(any(event.get("name") == "waiting for parameters" for event in told["traceEvents"]), "they travel in forward")
    for name, option, update, before, after in cases():
        since = time.monotonic()
        one, several = scratch / "one", scratch / "several"
        alone = run(words(name, one, **OPTIONS[option]), 1)
        if alone.code == 64:  # not every option is for every model
            print(f"refused: {name}, {option}", flush=True)
            continue
        alone.expect(0)
        route = {"LOCKSTEP_HOST_SUMS": "halving"} if option == "rounds" else {}

        def on(where, fault):
            keys = {**OPTIONS[option], "optimizer.update": update}
            job = hosts.mpirun(where, [LOCKSTEP, *words(name, several, **keys)],
                               {**route, "LOCKSTEP_INJECT": fault})
            text = job.communicate(timeout=240)[0]
            return Result(job.returncode, text, 0)

        killed = on(before, "kill:rank=1:step=5")
        if killed.code == 64 and update == "fully-sharded" and "optimizer.update = fully-sharded" in killed.text:
            print(f"refused: {name}, {option}, {update}", flush=True)
            shutil.rmtree(one)
            continue
        check(killed.code != 0 and checkpoints(several), f"killed after a checkpoint:\n{killed.text}")
        on(after, "").expect(0, "resumed")
        check_same(checkpoints(one)[-1], checkpoints(several)[-1],
                   f"{name}, {option}, {update}, {before}, then {after}: the bits of one rank")
        print(f"{time.monotonic() - since:.1f} s: {name}, {option}, {update}, {before}, then {after}", flush=True)
        for directory in (one, several):
            shutil.rmtree(directory)
