"""The same bits on 1, 2, 3 and 4 ranks, and through a kill at a random step and a restart on
another rank count; in every order of samples, whatever keeps them. LOCKSTEP_LONG=1 takes all of each."""
import random
import shutil

import h5py
import numpy as np

from harness import DATA, LONG, Scratch, check, check_same, checkpoints, records, run, some, train

with Scratch() as scratch:
    # On three, others load them: the order of samples does not depend on that, either.
    for ranks, loading in ((1, ()), (2, ()), (3, ("--data.workers", 5, "--data.prefetch", 1)), *([(4, ())] if LONG else [])):
        train(scratch / f"n{ranks}", *loading, ranks=ranks).expect(0, "finished at step 30")
        check_same(scratch / "n1", scratch / f"n{ranks}", f"1 and {ranks} ranks agree")
        check([r["loss"] for r in records(scratch / f"n{ranks}", "validation")] ==
              [r["loss"] for r in records(scratch / "n1", "validation")],
              "validation losses are the same numbers")

    generator = random.Random()
    for before, after in some(((1, 1), (2, 2), (4, 4), (2, 3))):
        step = generator.randrange(2, 30)
        rank = generator.randrange(before)
        print(f"kill rank {rank} of {before} at step {step}, resume on {after}")
        where = scratch / f"killed-{before}-{after}"
        killed = train(where, ranks=before,
                       env={"LOCKSTEP_INJECT": f"kill:rank={rank}:step={step}"})
        check(killed.code != 0, "a killed run does not end with 0")
        kept = [int(path.stem.split("-")[1]) for path in checkpoints(where)]
        last = (step - 1) // 5 * 5
        # The last may have been in flight, but then the one before it is complete.
        check(max(kept) in (last, max(last - 5, 0)), f"{kept}: about the last before {step}")
        train(where, ranks=after).expect(0, "resumed from", "finished at step 30")
        check_same(scratch / "n1", where, "the resumed run ends with the same state")

    train(scratch / "n2", ranks=2 if LONG else 1).expect(0, "this run is finished")
    check(not [r for r in records(scratch / "n2", "step") if r["step"] > 30], "no more steps")
    check(len(records(scratch / "n2", "start")) == 1, "a start that finds nothing to do is no attempt")

    # The comparison itself can fail: another seed is another state.
    train(scratch / "seed", "--run.seed", 1, ranks=1).expect(0)
    different = run(["checkpoint", "diff", scratch / "n1", scratch / "seed"])
    different.expect(1, "model/", "different state")

    if LONG:
        train(scratch / "workers", "--data.workers", 5, "--data.prefetch", 1, ranks=2).expect(0)
        check_same(scratch / "n1", scratch / "workers", "workers do not matter")

    # By blocks, from files, from memory that ranks share and from copies.
    short = ["--train.steps", 12, "--data.shuffle", "block", "--data.validation", ""]
    train(scratch / "block", *short, ranks=1).expect(0)
    copies = scratch / "copies"
    for ranks, cache in some(((2, "memory"), (4 if LONG else 2, f"local:{copies}"))):
        where = scratch / f"block-{cache[:5]}"
        train(where, *short, "--data.cache", cache, ranks=ranks).expect(0)
        check_same(scratch / "block", where, f"data.cache = {cache}")
        check(cache == "memory" or len(list(copies.iterdir())) == 1, "one copy is left, and nothing else")

    # By weight: killed in the epoch, resumed on other ranks; no sample of weight 0 is learnt.
    weighted = scratch / "weighted.h5"
    shutil.copy(DATA / "train.h5", weighted)
    with h5py.File(weighted, "a") as file:
        labels = file["targets"][:]
        file["sample_weights"] = np.where(labels < 5, 1 + np.arange(len(labels)) % 7, 0).astype("f4")
    run(["data", "verify", weighted]).expect(0, "added since the import, without checksums: sample_weights",
                                             "all checksums are correct")
    for replacement in some(("true", "false")):
        drawn = ["--data.train", weighted, "--data.sample-weights", "sample_weights",
                 "--data.replacement", replacement, "--data.validation", ""]
        short = [*drawn, "--train.steps", 12]
        whole, killed = (scratch / f"{name}-{replacement}" for name in ("drawn", "drawn-killed"))
        train(whole, *short, ranks=1).expect(0, "warning: dataset sample_weights was added to ")
        train(killed, *short, ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=8"})
        train(killed, *short, "--data.workers", 5, ranks=4 if LONG else 1).expect(0, "resumed from")
        check_same(whole, killed, f"drawn by weight, replacement = {replacement}")
        steps = records(whole, "start")[0]["steps_per_epoch"]
        check(steps == (469 if replacement == "true" else 235), f"{steps} steps of an epoch")
    with h5py.File(weighted, "a") as file:
        file["sample_weights"][7] = 2.5
    train(killed, *drawn, "--train.steps", 15, ranks=2 if LONG else 1).expect(64, "is not what")
