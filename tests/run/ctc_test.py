"""CTC on made-up recordings: it learns them, with the same bits on 1, 2 and 4 ranks and over a resume,
from batches of about one length; a transcript that its recording is too short for is counted. The short form has
fewer ranks."""
from harness import LONG, Scratch, check, check_same, checkpoints, records, same_state
from speech import train, write_set


def error_rates(run):
    return [record["error-rate"] for record in records(run, "validation")]


def learns(scratch):
    result = train(scratch / "learns", scratch / "train.h5", scratch / "test.h5", "--train.epochs", 6,
                   "--schedule.warmup-steps", 10, "--run.replicas", 2)
    result.expect(0, "lmu-asr")
    rates = error_rates(scratch / "learns")
    check(rates[-1] < 0.1, f"error rates {rates}")


def exact(scratch):
    def short(name, steps, ranks, buckets=3):
        train(scratch / name, scratch / "train.h5", scratch / "test.h5", "--run.replicas", 4,
              "--train.epochs", 1, "--train.steps", steps, "--train.validate-every", 4,
              "--model.dropout", 0.1, "--optimizer.accumulate", 2, "--data.global-batch", 8,
              "--data.bucket-by-length", buckets, "--schedule.name", "constant",
              "--schedule.warmup-steps", 2, ranks=ranks).expect(0)

    on_more = (2, 4) if LONG else ()  # as the first half of "halves" always is
    for ranks in (1, *on_more):
        short(f"on{ranks}", 8, ranks)
    short("halves", 4, 2)
    short("halves", 8, 1)
    last = checkpoints(scratch / "on1")[-1]
    for other in (*(f"on{ranks}" for ranks in on_more), "halves"):
        check_same(last, checkpoints(scratch / other)[-1], f"{other} has the bits of on1")
        check(error_rates(scratch / other)[-1] == error_rates(scratch / "on1")[-1], other)
    short("plain", 8, 1, buckets=0)
    check(not same_state(last, checkpoints(scratch / "plain")[-1]), "buckets change the order")


def too_long(scratch):
    write_set(scratch / "bad.h5", 24, 3, too_long=(5, 17))
    result = train(scratch / "bad", scratch / "bad.h5", scratch / "bad.h5", "--train.steps", 4,
                   "--data.global-batch", 8)
    result.expect(0, "2 transcripts of data.train are too long", "5, 17")
    check([record["too-long"] for record in records(scratch / "bad", "validation")][-1] == 2,
          "both are counted")
    write_set(scratch / "worse.h5", 4, 3, too_long=range(4))
    train(scratch / "worse", scratch / "worse.h5", "", "--train.steps", 4, "--data.global-batch",
          4).expect(65, "too long")


def not_reversed(scratch):
    """No dimension of a recording may be reversed, so none is offered; what is said stays where it is shifted."""
    for entry in ("flip", "flip:0", "crop:2,flip:1"):
        text = train(scratch / "flipped", scratch / "train.h5", "", "--data.augment", entry).expect(
            64, f"data.augment = {entry}: a recording that is reversed no longer says its text. Leave out flip").text
        check("write flip" not in text.lower(), text)


with Scratch() as scratch:
    write_set(scratch / "train.h5", 320, 1)
    write_set(scratch / "test.h5", 40, 2)
    learns(scratch)
    exact(scratch)
    too_long(scratch)
    not_reversed(scratch)
