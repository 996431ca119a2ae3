"""Whoever reads weights looks at every byte first: a damaged best.h5 or checkpoint is 65 for each command,
and for the test at a run's end; a file under another step's name is not taken for that step; files that
ended attempts left half written go at the next start."""
import os
import random
import shutil

from harness import DATA, DECK, SEED, Scratch, check, checkpoints, flip, records, run, train

choose = random.Random(SEED)
TESTED = ("--data.test", DATA / "test.h5")


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
        for name in ("x.safetensors", "x.h5", "x.pt"):
            more = ("--data.train", DATA / "train.h5") if name == "x.pt" else ()
            run(["checkpoint", "export", wrong, scratch / name, *more]).expect(65, "is damaged")
            check(not (scratch / name).exists(), f"{name} was written")
        run(["evaluate", DECK, wrong, *data], 2).expect(65, "is damaged")
        run(["evaluate", DECK, wrong, *data]).expect(65, "is damaged")
        run(["checkpoint", "verify", wrong]).expect(65)
        train(scratch / "first", "--model.weights", wrong).expect(65, "is damaged")
        shutil.rmtree(scratch / "first")
    train(scratch / "first", "--checkpoint.resume", damaged(newest)).expect(65, "is damaged")
    run(["checkpoint", "diff", newest, damaged(newest)]).expect(65, "is damaged")
    run(["checkpoint", "diff", newest, newest]).expect(0)

    # The test at the end, of a run that was killed before it.
    metrics = one / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True)
                               if '"end"' not in line and '"test"' not in line))
    before = best.read_bytes()
    flip(best, choose.randrange(best.stat().st_size))
    train(one, *TESTED, "--train.steps", 3).expect(65, "best.h5 is damaged")
    check(not records(one, "test"), "no test with damaged weights")
    best.write_bytes(before)
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
    run(["checkpoint", "verify", copy]).expect(65, "it is the checkpoint of step 5")
    text = run(["checkpoint", "verify", one]).expect(65, "it is a pipe", "it is a device").text
    check(f"{newest}: all bytes are intact" in text, text)
    run(["evaluate", DECK, copy, *data]).expect(65, "it is the checkpoint of step 5")
    for name in ("00000130", "00000140"):
        run(["evaluate", DECK, one / f"checkpoints/step-{name}.h5", *data]).expect(66, "it is a ")
    leftovers = [newest.with_name(f"step-{step:08d}.h5.partial-2020-01-01T00-00-00Z-{step}") for step in
                 range(10)] + [one / "best.h5.partial-17", one / "history.jsonl.partial-17"]
    for leftover in leftovers:
        leftover.write_bytes(b"half")
    train(one, *TESTED, "--train.steps", 6).expect(
        0, "skipped step-00000120.h5: it is the checkpoint of step 5", "skipped step-00000130.h5: it is a pipe",
        "skipped step-00000140.h5: it is a device", "at step 5", "finished at step 6")
    check(not any(path.exists() for path in leftovers), "left half written")
    train(scratch / "other", "--checkpoint.resume", copy).expect(65, "it is the checkpoint of step 5")

    # Nothing waits for a pipe's other end.
    for words in (["evaluate", DECK], ["checkpoint", "export"], ["checkpoint", "info"]):
        pipe = one / "checkpoints/step-00000130.h5"
        run([*words, pipe, *(["x.h5"] if words[1] == "export" else [])], limit=30).expect(66, "it is a pipe")
    train(scratch / "piped", "--data.train", pipe, limit=60).expect(66, "it is a pipe")
