"""What people combine in one deck (schedules, early stopping, augmentation, frozen parameters, adapters, groups, averaged
weights, metrics) on every kind of model: drawn at random, a run on one rank has the same weights, learning rates,
measurements and end as one that was killed on several ranks and resumed on other ones. What cannot be combined is refused
alike by plan and by all ranks. The short form draws two combinations, LOCKSTEP_SEED others."""
import random

from harness import LONG, SEED, Scratch, check, check_same, records, run
from small_models import CLIPS, IMAGES, MODELS, PLACES, VOXELS, WORDS, deck_of, write_data

STEPS = 12  # of 8 in an epoch
TIMES = ("time", "seconds", "elapsed_s", "samples_per_second", "attempt", "ranks")
SCHEDULES = [
    {}, {"name": "cosine", "minimum": 0.1, "warmup-steps": 2}, {"name": "linear", "warmup-steps": 3},
    {"name": "polynomial", "power": 2}, {"name": "one-cycle", "rise": 0.4}, {"name": "cosine-restarts", "cycle-epochs": 0.5},
    {"name": "inverse-sqrt", "warmup-steps": 3}, {"name": "exponential", "factor": 0.5},
    {"name": "step", "step-epochs": 1, "factor": 0.3}, {"name": "multi-step", "milestones": "1"},
    {"name": "plateau", "patience": 0, "threshold": 0.3, "factor": 0.5},
]
PICTURES = ["flip, crop:2", "resized-crop@0.7", "affine:15:0.1, blur:3@0.5", "noise:0.1, gain:3", "erase@0.5, mixup:0.4",
            "cutmix:1@0.5", "mask:2:2, shift:1"]
AUGMENTS = {IMAGES: PICTURES, CLIPS: ["flip, noise:0.1", "shift:1, speed:0.9:1.1", "mixup:0.3", "affine:10, erase"],
            VOXELS: ["flip", "noise:0.1@0.5"], PLACES: ["flip", "affine:15, crop:2", "resized-crop, noise:0.1@0.5"],
            WORDS: ["noise:0.1", "mask:4:2", "speed:0.8:1.2, gain:2", "mixup:0.2"]}
FREEZES = [{"optimizer.freeze": "*0.*"}, {"optimizer.freeze": "!*output*"}, {"optimizer.freeze": "*.bias"},
           {"optimizer.freeze": "!*output*", "optimizer.thaw-epoch": 1}, {"model.lora-rank": 2, "model.lora-targets": "*"}]
OPTIMIZERS = [{"name": "adamw"}, {"name": "adam"}, {"name": "lamb", "clip-norm": 0.5}, {"name": "sgd", "momentum": 0.9},
              {"name": "lars", "momentum": 0.9}]
METRICS = {"kind = classification": ["kappa, top-2", "balanced-accuracy, confusion", "auroc, calibration-error"],
           "kind = segmentation": ["dice, confusion", "kappa, recall"]}
OTHERS = [{"optimizer.ema": 0.9}, {"optimizer.accumulate": 2}, {"precision.compute": "bf16"}, {"train.patience": 1},
          {"communication.compression": "bf16"}, {"communication.broadcast-buffers": "false"},
          {"communication.sync-batch-norm": "true"}, {"prune.pattern": "unstructured", "prune.begin": 2},
          {"precision.gradient-checkpointing": "true"}, {"optimizer.groups": "*output* rate 2 decay 0.1"},
          {"optimizer.layer-decay": 0.7}, {"data.shuffle": "block"}, {"quantise.aware": "true"},
          {"communication.bucket-mb": 0.016}, {"privacy.noise": 1}, {"communication.unused-parameters": "true"}]
FREE = [{"optimizer.update": "replicated"}, {"data.cache": "memory"}, {"data.workers": 3}, {"run.placement": "speed"},
        {"checkpoint.asynchronous": "false"}, {}]


def of(section, keys):
    return {f"{section}.{key}": value for key, value in keys.items()}


def words_of(keys):
    return [word for key, value in keys.items() for word in (f"--{key}", value)]


class Draw:
    """A combination, all of which follows from its number."""

    def __init__(self, number):
        dice = random.Random(f"{SEED} {number}")
        self.number, self.model = number, dice.choice(sorted(set(MODELS) - {"lmu-asr"}))
        _, data, task = MODELS[self.model]
        self.keys = {**of("schedule", dice.choice(SCHEDULES)), **of("optimizer", dice.choice(OPTIMIZERS))}
        if data in AUGMENTS and dice.random() < 0.7:
            self.keys["data.augment"] = dice.choice(AUGMENTS[data])
        if dice.random() < 0.5:
            self.keys |= dice.choice(FREEZES)
        if task in METRICS and dice.random() < 0.6:
            self.keys["task.metrics"] = dice.choice(METRICS[task])
        for other in dice.sample(OTHERS, dice.choice((0, 1, 1, 2))):
            self.keys |= other
        # Of the killed run: what may differ between attempts.
        self.before, self.after = dice.choice(((2, 3), (3, 2), (3, 1), (2, 1), (1, 3)))
        free = [keys for keys in FREE if data or not keys.keys() & {"data.cache", "data.workers", "run.placement"}]
        self.free = [dice.choice(free), {**dice.choice(free), **({"run.mode": "dp"} if self.after == 1 else {})}]
        self.killed_at = dice.randrange(3, STEPS)

    def __str__(self):
        keys = " ".join(f"{key}={value}" for key, value in self.keys.items())
        return (f"{self.number}: {self.model} {keys}; {self.before} ranks {self.free[0]} killed at step {self.killed_at}, "
                f"then {self.after} {self.free[1]}")


def told(directory):
    """What a run has recorded of itself, each step's last word, without times."""
    kept = {}
    for event in ("step", "validation", "test"):
        for record in records(directory, event):
            kept[event, record["step"]] = {key: value for key, value in record.items()
                                           if key not in TIMES and not key.endswith(("_s", "_ms", "_bytes"))}
    rates = {key: record["learning_rate"] for key, record in kept.items() if key[0] == "step"}
    ends = [(record["reason"], record["step"], record.get("early_stop")) for record in records(directory, "end")][-1:]
    return rates, {key: record for key, record in kept.items() if key[0] != "step"}, ends


def refused(draw, words, plan):
    """All say the same; none has begun a run."""
    why = plan.text.partition("root cause: ")[2].strip()
    train = run(words, draw.before).expect(64)
    check(why and why in train.text, f"{draw}\nplan and train do not refuse alike:\n{plan.text}\n{train.text}")


def same(scratch, draw):
    """Whether the combination can be trained."""
    deck = deck_of(scratch, draw.model, STEPS)
    words = [deck, "--run.replicas", 3, "--train.validate-every", 3, "--checkpoint.every-steps", 2, "--optimizer.learning-rate",
             0.01, *words_of(draw.keys), "--run.directory"]
    one, other = (scratch / f"{name}-{draw.number}" for name in ("one", "other"))
    plan = run(["plan", *words, one])
    if plan.code == 64:
        refused(draw, ["train", *words, one], plan)
        return False
    plan.expect(0)
    run(["train", *words, one], 1).expect(0)
    killed = run(["train", *words, other, *words_of(draw.free[0])], draw.before,
                 env={"LOCKSTEP_INJECT": f"kill:rank={draw.before - 1}:step={draw.killed_at}"})
    if killed.code != 0:  # else it has stopped early, before
        run(["train", *words, other, *words_of(draw.free[1])], draw.after).expect(0)
    check_same(one, other, str(draw))
    for mine, theirs in zip(told(one), told(other)):
        check(mine == theirs, f"{draw}\n{mine}\n{theirs}")
    return True


with Scratch() as directory:
    write_data(directory)
    wanted, trained, number = (40 if LONG else 2), 0, 0
    while trained < wanted:
        print(Draw(number), flush=True)
        trained += same(directory, Draw(number))
        number += 1
        check(number < 3 * wanted + 6, f"of {number} combinations, only {trained} can be trained")
