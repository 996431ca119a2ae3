"""On simulated accelerators that hold gradients, or gradients and parameters, in shards: the bits of one rank whose device
holds all, resumed elsewhere too; and a device needs memory for its shards and a few buckets. LOCKSTEP_LONG=1 trains more
models.
"""
import json

from harness import LONG, SEED, Scratch, check, check_same, run, together
from simulated_test import OWN_KERNELS, SMALL_BUCKETS, STEPS, simulated, words_of
from small_models import deck_of, write_data

SHARDED = "optimizer.update"
MIB = 1 << 20


def measurements(directory):
    """What a run has measured on its validation and test sets."""
    records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [(each["event"], each["step"], each["loss"]) for each in records if each["event"] in ("validation", "test")]


def same_bits(scratch):
    """Each row on devices, and in two parts of which the first is on devices."""
    rows = [
        # The test is measured on the model of an earlier step.
        ("mlp", 2, {"run.replicas": 2, "model.hidden": "100, 90, 80", "optimizer.learning-rate": 0.1, "run.seed": 1,
                    "data.test": scratch / "images.h5"}),
        ("cnn", 2, {"run.replicas": 4, "optimizer.accumulate": 2, "precision.gradient-checkpointing": "true"}),
        ("transformer", 3, {"run.replicas": 3, "precision.compute": "bf16", "precision.gradient-checkpointing": "true"}),
    ]
    if LONG:
        rows += [(name, ranks, {"run.replicas": 4, "optimizer.name": rule, "optimizer.clip-norm": 0.5})
                 for name in ("cnn1d", "cnn3d", "export", "lmu-asr", "resnet", "unet", "vit")
                 for ranks, rule in ((4, "lamb"), (3, "sgd"))]

    def row(at, model, ranks, settings, update):
        deck = deck_of(scratch, model, STEPS)
        settings = {**settings, **SMALL_BUCKETS}
        what = f"{model} {settings} on {ranks} ranks, {update}"
        kind = "cpu" if model not in OWN_KERNELS and "precision.compute" not in settings else "sim:0"

        def train(part, update, kind, count, steps=STEPS):
            words = words_of(deck, scratch / f"{part}-{at}", {**settings, SHARDED: update}, kind, steps)
            return (run(words, count, limit=300) if kind == "cpu" else simulated(words, count, SEED)).expect(0).text

        train("base", "sharded", kind, 1)
        said = train("shards", update, "sim", ranks)
        check("staged through host memory" in said, f"{what}: {said}")
        measured = [measurements(scratch / f"{part}-{at}") for part in ("base", "shards")]
        check(measured[0] and measured[0] == measured[1], f"{what}: {measured}")
        best = [step for event, step, _ in measured[0] if event == "test"]
        check("data.test" not in settings or best[0] < STEPS, f"{what}: the model of the last step is the best: {measured}")
        check_same(scratch / f"base-{at}", scratch / f"shards-{at}", what)
        train("parts", update, "sim", ranks, STEPS // 2)
        train("parts", update, kind, 1)
        check_same(scratch / f"base-{at}", scratch / f"parts-{at}", f"{what}, resumed")

    updates = ("sharded-gradients", "fully-sharded")
    walked = [(each, update) for each in rows for update in (updates if LONG else updates[-1:])]
    walked += [] if LONG else [(rows[0], updates[0])]
    together([lambda at=at, each=each, update=update: row(at, *each, update)
              for at, (each, update) in enumerate(walked)], 2)


def memory(scratch):
    """Bytes of a device at most: shards of parameters, gradients and Adam's two arrays, and buckets under way."""
    deck = deck_of(scratch, "mlp", 2)
    layers, width, bucket = 24, 512, 1
    settings = {"model.hidden": ", ".join([str(width)] * layers), "run.replicas": 4, "communication.bucket-mb": bucket,
                "communication.first-bucket-mb": bucket, "monitor.weight-hash": "false"}
    array = 4 * width * width * (layers - 1)

    def peak(update, ranks):
        directory = scratch / f"memory-{update}-{ranks}"
        simulated(words_of(deck, directory, {**settings, "run.replicas": ranks, SHARDED: update}, "sim", 2), ranks,
                  SEED).expect(0)
        records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
        return max(record.get("device_memory_peak_bytes", 0) for record in records)

    for ranks in (2, 4):
        whole, shards = peak("sharded", ranks), peak("fully-sharded", ranks)
        expected = 4 * array / ranks + (4 + 3) * bucket * 1e6  # gradients and parameters under way
        print(f"{ranks} devices: {whole / MIB:.1f} MiB, in shards {shards / MIB:.1f} MiB, expected {expected / MIB:.1f} MiB")
        check(shards < 1.1 * expected, f"{ranks} devices: {shards} bytes, expected {expected}")
        check(shards < whole * (0.8 if ranks == 2 else 0.6), f"{ranks} devices: {shards} bytes, {whole} without shards")


def refused(scratch):
    """With the reason, whatever the number of ranks."""
    rows = [("mlp", {"communication.backend": "nccl"}, "communication.backend = nccl"),
            ("mlp", {"communication.reduction": "native"}, "communication.reduction = native"),
            ("mlp", {"optimizer.ema": 0.9}, "optimizer.ema averages all parameters"),
            ("mlp-policy", {}, "the model plays between steps")]
    together([lambda at=at, deck=deck_of(scratch, model, STEPS), extra=extra, why=why: simulated(
        words_of(deck, scratch / f"refused-{at}", {**extra, "run.replicas": 2, SHARDED: "fully-sharded"}, "sim"),
        2).expect(64, "optimizer.update = fully-sharded is not available here", why)
        for at, (model, extra, why) in enumerate(rows)])


def main():
    with Scratch() as scratch:
        write_data(scratch)
        same_bits(scratch)
        memory(scratch)
        refused(scratch)


if __name__ == "__main__":
    main()
