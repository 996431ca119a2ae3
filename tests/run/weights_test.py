"""Whoever reads weights looks at every byte first: a damaged best.h5 or checkpoint is 65 for each command,
and for the test at a run's end; a file under another step's name is not taken for that step; files that
ended attempts left half written go at the next start. The short form draws commands, and trains on one rank."""
import os
import random
import shutil

import harness
from harness import DATA, DECK, LONG, SEED, Scratch, check, checkpoints, flip, records, run, some

choose = random.Random(SEED)
TESTED = ("--data.test", DATA / "test.h5")


def train(directory, *options, limit=300):
    return harness.train(directory, *options, ranks=2 if LONG else 1, limit=limit)


def damaged(path):
    copy = path.with_name("damaged.h5")
    shutil.copy(path, copy)
    flip(copy, choose.randrange(copy.stat().st_size))
    return copy


with Scratch() as scratch:
    one = scratch / "one"
    train(one, *TESTED, "--train.steps", 3).expect(0, "test at step 3")
    best, newest = one / "best.h5", checkpoints(one)[-1]
    data = ("--data.validation", DATA / "test.h5")
    for whole in (best, newest):
        wrong = damaged(whole)

        def exports(name, *more, wrong=wrong):
            run(["checkpoint", "export", wrong, scratch / name, *more]).expect(65, "is damaged")
            check(not (scratch / name).exists(), f"{name} was written")

        def first(wrong=wrong):
            train(scratch / "first", "--model.weights", wrong).expect(65, "is damaged")
            shutil.rmtree(scratch / "first")

        for command in some((lambda: exports("x.safetensors"), lambda: exports("x.h5"),
                             lambda: exports("x.pt", "--data.train", DATA / "train.h5"),
                             lambda: run(["evaluate", DECK, wrong, *data]).expect(65, "is damaged"),
                             lambda: run(["checkpoint", "verify", wrong]).expect(65), first), 2):
            command()
        if LONG or whole == best:
            run(["evaluate", DECK, wrong, *data], 2).expect(65, "is damaged")

    def resumes():
        train(scratch / "first", "--checkpoint.resume", damaged(newest)).expect(65, "is damaged")

    def compares():
        run(["checkpoint", "diff", newest, damaged(newest)]).expect(65, "is damaged")
        run(["checkpoint", "diff", newest, newest]).expect(0)

    for command in some((resumes, compares)):
        command()

    # The test at the end, of a run that was killed before it.
    metrics = one / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True)
                               if '"end"' not in line and '"test"' not in line))
    before = best.read_bytes()
    flip(best, choose.randrange(best.stat().st_size))
    train(one, *TESTED, "--train.steps", 3).expect(65, "best.h5 is damaged")
    check(not records(one, "test"), "no test with damaged weights")
    best.write_bytes(before)
    if LONG:
        train(one, *TESTED, "--train.steps", 3).expect(0, "test at step 3")
    train(one, *TESTED, "--train.steps", 5).expect(0, "test at step 5")

    # A best model that was removed: the last one is tested, and the run can end.
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True) if '"end"' not in line))
    kept = best.read_bytes()
    best.unlink()
    train(one, *TESTED, "--train.steps", 5).expect(0, "best.h5 is gone: the test measures the last step's model")
    best.write_bytes(kept)

    # Named for another step, or no file at all.
    newest = checkpoints(one)[-1]
    copy = newest.with_name("step-00000120.h5")
    shutil.copy(newest, copy)
    os.mkfifo(newest.with_name("step-00000130.h5"))
    (one / "checkpoints/step-00000140.h5").symlink_to("/dev/zero")
    if LONG:
        run(["checkpoint", "verify", copy]).expect(65, "it is the checkpoint of step 5")
    text = run(["checkpoint", "verify", one]).expect(65, "it is a pipe", "it is a device").text
    check(f"{newest}: all bytes are intact" in text, text)
    run(["evaluate", DECK, copy, *data]).expect(65, "it is the checkpoint of step 5")
    for name in some(("00000130", "00000140")):
        run(["evaluate", DECK, one / f"checkpoints/step-{name}.h5", *data]).expect(66, "it is a ")
    leftovers = [newest.with_name(f"step-{step:08d}.h5.partial-2020-01-01T00-00-00Z-{step}") for step in
                 range(10)] + [one / "best.h5.partial-17", one / "history.jsonl.partial-17"]
    for leftover in leftovers:
        leftover.write_bytes(b"half")
    train(one, *TESTED, "--train.steps", 6).expect(
        0, "skipped step-00000120.h5: it is the checkpoint of step 5", "skipped step-00000130.h5: it is a pipe",
        "skipped step-00000140.h5: it is a device", "at step 5", "finished at step 6")
    check(not any(path.exists() for path in leftovers), "left half written")
    if LONG:
        train(scratch / "other", "--checkpoint.resume", copy).expect(65, "it is the checkpoint of step 5")

    # Nothing waits for a pipe's other end.
    pipe = one / "checkpoints/step-00000130.h5"
    for words in some((["evaluate", DECK], ["checkpoint", "export"], ["checkpoint", "info"])):
        run([*words, pipe, *(["x.h5"] if words[1] == "export" else [])]).expect(66, "it is a pipe")
    train(scratch / "piped", "--data.train", pipe).expect(66, "it is a pipe")
