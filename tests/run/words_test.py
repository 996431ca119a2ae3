"""Recordings of single words, by folder and of any length, are imported and learnt with the deck for them: from
features and from the recordings themselves, to the same bits on one rank and on two."""
import numpy as np

import media
from harness import SEED, SOURCE, Scratch, check, check_same, checkpoints, records, run

RATE = 8000
WORDS = {"up": (400, 1200), "down": (1200, 400), "high": (1200, 1200), "low": (400, 400)}  # Hz, from and to
FLOORS = {"features": 0.9, "recordings": 0.7}  # guessing gives 0.25
draw = np.random.default_rng(SEED)


def spoken(start, end):
    """A tone that glides, of a tenth to a fifth of a second, in noise."""
    values = int(draw.integers(RATE // 10, RATE // 5))
    glide = np.linspace(start, end, values) * draw.uniform(0.9, 1.1)
    tone = 8000 * np.sin(2 * np.pi * np.cumsum(glide) / RATE) + draw.normal(0, 500, values)
    return media.wav(list(tone), RATE)


def record(folder, each):
    for word, (start, end) in WORDS.items():
        (folder / word).mkdir(parents=True)
        for i in range(each):
            (folder / word / f"{i}.wav").write_bytes(spoken(start, end))


def train(directory, data, *options, ranks=1):
    return run(["train", SOURCE / "inputs/spoken_words.ini", "--data.train", data / "train.h5", "--data.validation",
                data / "validation.h5", "--data.test", "", "--run.directory", directory, "--run.replicas", 2,
                "--data.global-batch", 16, "--model.channels", "16, 24, 32", "--schedule.warmup-steps", 5,
                "--train.validate-every", 0, "--monitor.plots", "false", *options], ranks)


with Scratch() as scratch:
    record(scratch / "recorded", 40)
    for form, options in (("features", []), ("recordings", ["--raw"])):
        data = scratch / form
        run(["data", "import", "speech", scratch / "recorded", data, "--split", "0.8,0.2", *options]).expect(0)
        run_directory = scratch / f"run-{form}"
        train(run_directory, data, "--train.epochs", 20).expect(0)
        found = records(run_directory, "validation")[-1]["accuracy"]
        check(found >= FLOORS[form], f"{form}: {found} of the words are told apart")
        print(f"{form}: accuracy {found:.3f} (seed {SEED})")
    data = scratch / "features"
    for ranks in (1, 2):
        train(scratch / f"ranks-{ranks}", data, "--train.steps", 5, ranks=ranks).expect(0)
    check_same(*(checkpoints(scratch / f"ranks-{ranks}")[-1] for ranks in (1, 2)), "the same bits")
    train(scratch / "recomputed", data, "--train.steps", 5, "--precision.gradient-checkpointing", "true").expect(0)
    train(scratch / "other", data, "--train.steps", 5, "--precision.compute", "bf16").expect(0)
    train(scratch / "lmu", data, "--train.steps", 5, "--model.name", "lmu-asr").expect(64)
