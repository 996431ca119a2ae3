"""Sets that belong together: their classes, their scale, values that are no numbers; directories however they are
written, without their checkpoints, or gone; output that nobody gets. The short form has one rank, and draws
files and what becomes of directories."""
import signal
import subprocess

import h5py
import numpy as np

from harness import LOCKSTEP, LONG, Scratch, check, checkpoints, run, some
from harness import train as train_on

N = 60
RANKS = 2 if LONG else 1


def train(*words):
    return train_on(*words, ranks=RANKS)


def put(path, labels, classes=(), mean=None, std=None, shift=0.0, wrong=False):
    values = np.random.default_rng(7).normal(size=(len(labels), 6)).astype("f4")
    values[:, 0] += 3 * labels + shift
    if wrong:
        values[5, 2] = np.nan
    with h5py.File(path, "w") as file:
        file["inputs"], file["targets"] = values, labels
        if classes:
            file.attrs["classes"] = [name.encode() for name in classes]
        if mean is not None:
            file.attrs["mean"], file.attrs["std"] = [float(mean)], [float(std)]
    return path


def loss_of(result):
    return result.expect(0).text.split("loss ")[1].split(",")[0].split()[0]


with Scratch() as scratch:
    labels = np.arange(N) % 3
    first = put(scratch / "train.h5", labels, ("cat", "dog", "eel"), 3, 2)
    base = ("--model.name", "mlp", "--model.hidden", "8", "--run.replicas", 2, "--data.global-batch", 20,
            "--data.train", first, "--train.epochs", 9, "--train.validate-every", 5)

    # Classes are known by their names.
    fewer = put(scratch / "fewer.h5", labels[labels < 2], ("cat", "dog"), 3, 2)
    shifted = put(scratch / "shifted.h5", labels[labels < 2], ("dog", "eel"), 3, 2)
    nameless = put(scratch / "nameless.h5", labels, (), 3, 2)
    train(scratch / "run", *base, "--data.validation", fewer, "--train.steps", 10).expect(0)
    train(scratch / "run", *base, "--data.validation", nameless, "--train.steps", 10, "--force").expect(0)
    for key in some(("validation", "test")):
        train(scratch / "none", *base, "--data.validation", "", f"--data.{key}", shifted, "--train.steps", 5).expect(
            65, "shifted.h5", "its class 0 is dog", "calls it cat", "--classes")
    deck, best = scratch / "run/deck.ini", checkpoints(scratch / "run")[-1]
    run(["evaluate", deck, best, "--data.test", shifted], RANKS).expect(65, "its class 0 is dog")

    # The scale is that of the training set, whatever another file says of itself.
    same = put(scratch / "same.h5", labels, ("cat", "dog", "eel"), 3, 2)
    other = put(scratch / "other.h5", labels, ("cat", "dog", "eel"), 50, 0.1)
    none = put(scratch / "none.h5", labels, ("cat", "dog", "eel"))
    losses = {loss_of(run(["evaluate", deck, best, "--data.test", file], RANKS))
              for file in (same, *some((other, none)))}
    check(len(losses) == 1, f"one scale: {losses}")

    # A training set that is elsewhere now, or damaged: the file of weights knows its scale.
    for file in some((best, scratch / "run/best.h5")):
        told = loss_of(run(["evaluate", deck, file, "--data.test", none], RANKS))
        for place in (scratch / "elsewhere.h5", ""):
            again = run(["evaluate", deck, file, "--data.train", place, "--data.test", none], RANKS)
            check(loss_of(again) == told, f"the scale that {file} has noted, with data.train = {place}")
    (scratch / "cut.h5").write_bytes(first.read_bytes()[:900])
    again = run(["evaluate", deck, file, "--data.train", scratch / "cut.h5", "--data.test", none], RANKS)
    check(loss_of(again) == told, "a training set that is not needed is not read")

    # A sample that is no number shows.
    broken = put(scratch / "broken.h5", labels, ("cat", "dog", "eel"), 3, 2, wrong=True)

    def evaluated():
        run(["evaluate", deck, best, "--data.test", broken], RANKS).expect(0, "warning: the loss is not finite")

    def tested():
        train(scratch / "nan", *base, "--data.validation", "", "--data.test", broken, "--train.steps", 5).expect(
            0, "warning: the loss of the test set is not finite")

    for part in some((evaluated, tested)):
        part()

    plain = (*base, "--data.validation", "", "--train.steps", 5)

    def slashes():
        """A directory is the same one with a slash behind it."""
        train(f"{scratch}/slash", *plain).expect(0)
        train(f"{scratch}/slash/", *plain, "--checkpoint.resume", "none").expect(0, "finished at step 5")
        archived = list(scratch.glob("slash.archived-*"))
        check(len(archived) == 1 and (archived[0] / "checkpoints").exists(), f"beside the run: {archived}")

    def cleaned_up():
        """Checkpoints that a site has cleaned up are missed."""
        for file in checkpoints(scratch / "run"):
            file.unlink()
        train(scratch / "run", *base, "--data.validation", fewer, "--train.steps", 10).expect(
            0, "the records name a checkpoint of step 10", "so training starts over")

    def goes_away():
        """A directory that is gone while the run continues is no newer attempt."""
        gone = scratch / "gone"
        words = [LOCKSTEP, "train", scratch / "run/deck.ini", *plain, "--run.directory", gone, "--checkpoint.resume",
                 "auto", "--train.steps", 100000, "--train.epochs", 0, "--checkpoint.every-steps", 50]
        training = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while len(checkpoints(gone)) < 2:  # the first is of step 0
            check(training.poll() is None, "it trains")
        gone.rename(scratch / "elsewhere")
        training.send_signal(signal.SIGUSR1)  # its last checkpoint has nowhere to go
        text, _ = training.communicate(timeout=120)
        check(training.returncode == 74 and "newer attempt" not in text, f"{training.returncode}: {text[-800:]}")
        check(not gone.exists(), f"what comes back has its place: {list(gone.glob('*'))}")

    # What cannot be written is not done.
    for words in some((["evaluate", deck, best, "--data.test", same], ["data", "info", first], ["models"])):
        with open("/dev/full", "w") as full:
            done = subprocess.run([LOCKSTEP, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 74 and "standard output" in done.stderr, f"{words[0]}: {done}")

    for part in some((slashes, goes_away, cleaned_up)):  # the last removes what the others use
        part()
print("sets and places: what belongs together")
