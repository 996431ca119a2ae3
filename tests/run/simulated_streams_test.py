"""Graphs and streams of simulated accelerators: graphs of forward and backward have the bits of the eager run, a step holds
the host up a few times only, and a wait between streams that is left out is found. LOCKSTEP_LONG=1 takes more models, and
leaves out every wait, of which most must be races.
"""
import json
import shutil

from harness import LONG, SEED, Scratch, check, check_same, some, together
from simulated_test import SMALL_BUCKETS, STEPS, counts_of, simulated, words_of
from small_models import deck_of, write_data

FULL_MIB = 440  # of a device that has memory for the batches of `little_memory`, but not for more when a graph has its own


def graphs(scratch):
    """Forward and backward as graphs: the bits of the eager run, resumed elsewhere, too. Batches of 5 and, at the end of an
    epoch, of 4; of each form two passes run eagerly before it is recorded."""
    rows = [
        # 2 replicas on a rank write to different places: forms (5, first), (5, second), (4, first), (4, second).
        ("cnn", {"run.device": "sim:0"}, 1, 12),
        *some((("transformer", {"precision.compute": "bf16"}, 2, 6),
               ("resnet", {"train.steps": 4, "data.batch": 2}, 2, 2))),
        *some((("cnn", {"task.class-weights": "balanced", "run.device": "sim:0", "train.steps": 4}, 1, 0),  # the host waits for their sum
               ("cnn", {"train.steps": 4}, 1, 0))),  # concurrent replicas on two devices
    ]
    if LONG:
        rows += [("cnn", {"run.replicas": 4, "data.batch": 3, "precision.gradient-checkpointing": "true",
                          "optimizer.accumulate": 2}, 2, None),
                 ("vit", {"run.device": "sim:0", "precision.compute": "fp16"}, 1, 12), ("unet", {}, 2, None),
                 ("unet3d", {}, 2, None), ("mlp", {"optimizer.ema": 0.9}, 2, 6),
                 ("cnn1d", {"run.device": "sim:0"}, 1, None), ("cnn3d", {}, 2, None), ("lmu-asr", {}, 1, 0), ("script", {}, 1, 0),
                 ("export", {}, 1, 0)]

    def row(at, model, settings, ranks, replayed):
        deck = deck_of(scratch, model, STEPS)
        settings = {"run.replicas": 2, "data.batch": 5, **SMALL_BUCKETS, "train.steps": 10, **settings}
        steps = settings.pop("train.steps")
        settings["train.validate-every"] = steps // 2  # where a run in two parts ends its first

        def train(name, ranks, steps, graphs):
            words = words_of(deck, scratch / f"{name}-{at}", {**settings, "run.graphs": graphs}, "sim", steps)
            return simulated(words, ranks, SEED).expect(0).text

        train("eager", ranks, steps, "false")
        said = train("graphs", ranks, steps, "auto")
        check_same(scratch / f"eager-{at}", scratch / f"graphs-{at}", f"graphs of {model} {settings}")
        found = [json.loads(line) for line in (scratch / f"graphs-{at}/metrics.jsonl").read_text().splitlines()]
        count = sum(record.get("graph_replays", 0) for record in found)
        check(count == replayed if replayed is not None else count > 0, f"{model} {settings}: {count} replays: {said}")
        check(count > 0 or "graphs: no: " in said or " run eagerly" in said, f"{model}: no graphs, and no word of it: {said}")
        check(count == 0 or "graphs: yes, one for each shape" in said, f"{model}: graphs, and no word of it: {said}")
        if at == 0 or LONG:
            train("parts", ranks, steps // 2, "true")
            settings["run.device"] = "sim:0" if ranks == 2 else "sim"
            train("parts", 3 - ranks, steps, "true")
            check_same(scratch / f"eager-{at}", scratch / f"parts-{at}", f"graphs of {model} {settings}, resumed")

    together([lambda at=at, each=each: row(at, *each) for at, each in enumerate(rows)], 2)


def told_before(scratch):
    """`plan` tells what the run will tell: whether passes are recorded, and why not; nothing where nobody asks."""
    for model, words, phrase in (("cnn", ("--run.device", "sim:0"), "graphs: yes, one for each shape of a batch"),
                                 ("script", ("--run.device", "sim:0"), "graphs: no: model.name = script: a model that comes"),
                                 ("cnn", ("--run.device", "sim"), "graphs: no: replicas that run concurrently"),
                                 ("cnn", ("--run.device", "sim:0", "--run.graphs", "false"), None),
                                 ("cnn", ("--run.device", "cpu"), None),
                                 ("cnn", ("--run.device", "cpu", "--run.graphs", "on"),
                                  "run.graphs = true has no effect: graphs need an accelerator")):
        said = simulated(["plan", deck_of(scratch, model, STEPS), "--run.replicas", 2, *words], 1).expect(0).text
        check(phrase in said if phrase else "graphs" not in said, f"plan {model} {words}: {said}")


def little_memory(scratch):
    """A graph that would take the memory of what runs eagerly is not recorded, unless run.graphs = true."""
    deck = deck_of(scratch, "resnet", STEPS)
    settings = {"run.replicas": 1, "data.batch": 2, "run.device": "sim:0", "train.validate-every": 0}

    def replays(graphs, mib, *phrases):
        run = scratch / f"little-{graphs}-{mib}"
        simulated(words_of(deck, run, {**settings, "run.graphs": graphs}, "sim", 4), 1, mib=mib).expect(0, *phrases)
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        return sum(record.get("graph_replays", 0) for record in records)

    check(replays("auto", FULL_MIB, "graphs: yes", "run eagerly, because a graph needs", "more memory of the device") == 0,
          "a graph without memory for it")
    check(replays("true", FULL_MIB, "graphs: yes") == 2, "the memory suffices for the graph alone")
    check(replays("auto", 2 * FULL_MIB) == 2, "memory for both")
    check_same(scratch / f"little-auto-{FULL_MIB}", scratch / f"little-true-{FULL_MIB}", "little memory")


def host_waits(scratch):
    """A step holds the host up 5 times, and once for each bucket, at most. More do models that speak with the host in
    the middle of a step (a policy, losses and statistics that are summed there), and replicas that keep buffers."""
    for name, ranks, settings, more in (
            *some((("cnn", 2, {"run.graphs": "false"}, {}), ("cnn", 2, {}, {}), ("unet", 2, {}, {}),
                   ("cnn", 2, {}, {"devices": 1}))),
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
    dropped = some(range(waits), 3)
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
    check(len(caught) * 2 > len(dropped), f"most waits are needed: {sorted(caught)} of {dropped}")


if __name__ == "__main__":
    with Scratch() as scratch:
        write_data(scratch)
        graphs(scratch)
        told_before(scratch)
        little_memory(scratch)
        host_waits(scratch)
        waits_left_out(scratch)
