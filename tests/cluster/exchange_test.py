"""Every option of the exchange over two hosts, made of namespaces, with two ranks and one, or over three: to the bits
of one rank, of three ranks of one host where one replica a rank is a must, and near them where other
sums are asked for. Some options by themselves and combinations drawn at random; at length all of them."""
import itertools
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import (DATA, DECK, LOCKSTEP, LONG, SEED, Result, Scratch, check, check_same,
                     checkpoints, records, run, some)  # noqa: E402
from hosts import Hosts, missing  # noqa: E402

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)

# What changes the bits, and what must not.
ARITHMETIC = {
    "compression": [("none", []), ("fp16", ["--communication.compression", "fp16"]),
                    ("bf16", ["--communication.compression", "bf16"]),
                    ("powersgd", ["--communication.compression", "powersgd", "--run.replicas", 3,
                                  "--data.global-batch", 96])],
    "sync": [("", []), ("sync", ["--communication.sync-batch-norm", "true"])],
    "buffers": [("", []), ("own-buffers", ["--communication.broadcast-buffers", "false"])],
    "gathered": [("", ["--optimizer.accumulate", 1, "--optimizer.clip-norm", 0]),
                 ("accumulate-clip", ["--optimizer.accumulate", 2, "--optimizer.clip-norm", 0.5])],
    "rule": [("", []), ("lamb", ["--optimizer.name", "lamb"])],
}
TRANSPORT = {
    "sums": [("", []), ("halving", [])],
    "reduction": [("", []), ("native", ["--communication.reduction", "native"])],
    "update": [("", []), ("replicated", ["--optimizer.update", "replicated"])],
    "placement": [("", []), ("placement", ["--run.placement", "speed"])],
    "buckets": [("", []), ("tiny-buckets", ["--communication.bucket-mb", 0.016,
                                            "--communication.first-bucket-mb", 0.016])],
}


def is_refused(names):
    """Rounded sums need the ordered reduction; one replica a rank leaves nothing to place."""
    return ("native" in names and {"fp16", "bf16"} & set(names)) or \
        {"powersgd", "placement"} <= set(names)


def product(*tables):
    choices = itertools.product(*(values for table in tables for values in table.values()))
    return [case for case in choices if not is_refused([name for name, _ in case])]


def chosen():
    """The plain case, the two other ways to sum, one more option by itself, and some combinations; or all."""
    every = product(ARITHMETIC, TRANSPORT)
    if LONG:
        random.Random(SEED).shuffle(every)  # a walk that is ended early has seen some of everything
        return every
    kept = [case for case in every if name_of(case) in ("plain", "halving", "native")]
    singly = [case for case in every if case not in kept and "+" not in name_of(case)]
    return kept + some(singly) + some([case for case in every if "+" in name_of(case)], 2)


def name_of(parts):
    return "+".join(name for name, _ in parts if name not in ("", "none")) or "plain"


def words(directory, case):
    options = [word for _, given in case for word in given]
    return ["train", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
            "--run.directory", directory, "--train.steps", 6, "--checkpoint.every-steps", 4,
            "--schedule.warmup-steps", 2, "--communication.timeout-seconds", 30, *options]


def last_state(directory):
    return checkpoints(directory)[-1]


def losses(directory):
    return [step["loss"] for step in records(directory, "step")]


with Scratch() as scratch, Hosts(3) as hosts:
    references = {}

    def reference(case):
        """On one host, without what must not change the bits."""
        own = case[:len(ARITHMETIC)]
        if name_of(own) not in references:
            directory = scratch / f"one-{name_of(own)}"
            ranks = 3 if "powersgd" in name_of(own) else 1
            run(words(directory, own), ranks).expect(0)
            references[name_of(own)] = directory
        return references[name_of(own)]

    cases = chosen()
    for case in cases:
        name, since = name_of(case), time.monotonic()
        directory = scratch / f"two-{name}"
        slow = {"LOCKSTEP_INJECT": "slow:rank=2"} if "placement" in name else {}
        route = {"LOCKSTEP_HOST_SUMS": "halving"} if "halving" in name else {}
        where = "host1:1,host2:1,host3:1" if route else "host1:2,host2:1"
        job = hosts.mpirun(where, [LOCKSTEP, *words(directory, case)], {**slow, **route})
        text = job.communicate(timeout=120)[0]
        said = "hosts, in 2 rounds" if route and "native" not in name else "hosts"
        Result(job.returncode, text, 0).expect(0, said)
        expected = reference(case)
        if "native" in name:  # the order of its sums is MPI's own
            check(all(abs(a - b) <= 1e-3 * abs(b)
                      for a, b in zip(losses(directory), losses(expected), strict=True)),
                  f"{name}: {losses(directory)} is near {losses(expected)}")
        else:
            check_same(last_state(expected), last_state(directory),
                       f"{name}: the bits of one host; {expected} and {directory} differ")
        print(f"{time.monotonic() - since:.1f} s: {name}", flush=True)

    # PowerSGD's two exchanges with a rank on each host, where all messages go between the same two.
    alone = [("powersgd", ["--communication.compression", "powersgd", "--run.replicas", 2,
                           "--data.global-batch", 64, "--model.hidden", 512])]
    run(words(scratch / "one-host", alone), 2).expect(0, "PowerSGD")
    job = hosts.mpirun("host1:1,host2:1", [LOCKSTEP, *words(scratch / "two-hosts", alone)])
    text = job.communicate(timeout=120)[0]
    Result(job.returncode, text, 0).expect(0, "PowerSGD over messages between 2 hosts")
    check_same(last_state(scratch / "one-host"), last_state(scratch / "two-hosts"), "a rank on each host")
    print(f"{len(cases)} cases, drawn by LOCKSTEP_SEED={SEED}", flush=True)
