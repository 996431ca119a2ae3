"""What the tests of speech share: a small network of Legendre memories, and recordings made up."""
import h5py
import numpy as np

from harness import SOURCE, run

DECK = SOURCE / "inputs/festvox_lmu.ini"
SMALL = ["--model.width", 48, "--model.signals", 8, "--model.hidden", 64, "--monitor.progress", "plain",
         "--monitor.log-every", 1, "--monitor.weight-hash", "true"]
SYMBOLS = 6


def train(directory, train_set, test_set, *options, ranks=1, limit=120):
    return run(["train", DECK, "--data.train", train_set, "--data.validation", test_set, "--data.test", "",
                "--run.directory", directory, *SMALL, *options], ranks, limit=limit)


def write_set(path, samples, seed, too_long=()):
    """Symbols, never two of a kind in a row, sound for 5 to 9 frames each in a band of their own. Transcripts of
    `too_long` have more symbols than their recordings can hold."""
    dice = np.random.default_rng(seed)
    inputs, targets = [], []
    for sample in range(samples):
        symbols = np.cumsum(dice.integers(1, SYMBOLS, dice.integers(2, 12))) % SYMBOLS
        frames = [symbol for symbol in symbols for _ in range(dice.integers(5, 10))]
        sound = dice.normal(0, 0.5, (len(frames) + 4, 12))
        sound[np.arange(len(frames)), 2 * np.array(frames)] += 2
        inputs.append(sound.astype("f4"))
        targets.append(np.tile(symbols, 9) if sample in too_long else symbols)
    with h5py.File(path, "w") as file:
        for name, parts in (("inputs", inputs), ("targets", targets)):
            file[name] = np.concatenate(parts)
            file[name + "_offsets"] = np.cumsum([0] + [len(part) for part in parts]).astype("i8")
        file.attrs["classes"] = [f"sound {i}" for i in range(SYMBOLS)]
