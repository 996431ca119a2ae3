"""Averaged weights and a rule with norms: the same bits on any number of ranks (on 3, where LOCKSTEP_LONG=1, without
a kill, too) and through a kill, and what is evaluated and exported are the averages."""
import h5py
import numpy

from harness import DATA, DECK, LONG, Scratch, check, check_same, checkpoints, records, run, train

KEYS = ["--optimizer.name", "lamb", "--optimizer.ema", "0.9"]


def weights(path, prefix):
    with h5py.File(path) as file:
        group = file[prefix]
        found = {}
        group.visititems(lambda name, item: found.update({name: item[:]})
                         if isinstance(item, h5py.Dataset) else None)
        return found


with Scratch() as scratch:
    def validations(directory):
        return [(r["step"], r["loss"]) for r in records(directory, "validation")]

    train(scratch / "n1", *KEYS, ranks=1).expect(0, "finished at step 30")
    if LONG:
        train(scratch / "n3", *KEYS, ranks=3).expect(0, "finished at step 30")
        check_same(scratch / "n1", scratch / "n3", "1 and 3 ranks agree")
        check(validations(scratch / "n1") == validations(scratch / "n3"), "so do their validations")

    killed = scratch / "killed"
    train(killed, *KEYS, ranks=3 if LONG else 2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=13"})
    train(killed, *KEYS, ranks=2).expect(0, "resumed from", "finished at step 30")
    check_same(scratch / "n1", killed, "a resumed run has the same averages")
    # A validation after the checkpoint that a run resumes from is repeated.
    found, repeated = set(validations(scratch / "n1")), set(validations(killed))
    check(found == repeated, f"so do their validations: {found} {repeated}")

    last = checkpoints(scratch / "n1")[-1]
    averages, trained = weights(last, "optimizer/ema"), weights(last, "model")
    check(averages.keys() <= trained.keys(), "an average for each parameter")
    check(any(not numpy.array_equal(averages[name], trained[name]) for name in averages),
          "averages are not the weights")

    # The last validation is of the last weights' averages, as an evaluation of the checkpoint is.
    validation = records(scratch / "n1", "validation")[-1]
    check(validation["step"] == 30, "validated at the end")
    run(["evaluate", DECK, last, "--data.test", DATA / "test.h5"]).expect(
        0, f"{validation['loss']:.6f}")
    best = weights(scratch / "n1/best.h5", "model")
    of_step = [r["step"] for r in records(scratch / "n1", "validation") if r["best"]][-1]
    if of_step == 30:
        check(all(numpy.array_equal(best[name], averages[name]) for name in averages),
              "best.h5 holds the averages")
