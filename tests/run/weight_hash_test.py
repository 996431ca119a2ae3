"""Hashes of the weights in step records (monitor.weight-hash): the same on any number of ranks and through a
restart; two runs that part are kept, and the step, the parameter and the rank are named."""
import pathlib
import re
import shutil

import h5py

from harness import PARTED, Scratch, check, check_same, checkpoints, records, same_state, train

STEPS, AT = 10, 6
OPTIONS = ["--train.steps", STEPS, "--data.validation", "", "--checkpoint.every-steps", 1,
           "--checkpoint.keep", 2 * STEPS]


def hashes(directory):
    """By step; what a restart did again counts, and is the same."""
    told = {}
    for step in records(directory, "step"):
        check(told.setdefault(step["step"], step["weight_hash"]) == step["weight_hash"], f"{step}")
        check(re.fullmatch("[0-9a-f]{16}", step["weight_hash"]), f"{step}")
        check("diverged" not in step, f"{step}")
    return [told[step + 1] for step in range(STEPS)]


def refused(a, b):
    """What check_same says of two runs that are not the same; it has kept them."""
    try:
        check_same(a, b, "on purpose")
    except SystemExit as refusal:
        kept = pathlib.Path(refusal.code.rsplit("both are kept in ", 1)[1])
        check(same_state(kept / "a", a) and same_state(kept / "b", b), "both are kept")
        shutil.rmtree(kept)
        return refusal.code
    raise AssertionError(f"{a} and {b} are the same?")


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1).expect(0)
    check(len(set(hashes(whole))) == STEPS, f"each step has its own: {hashes(whole)}")
    cut = scratch / "cut"
    train(cut, *OPTIONS, ranks=3, env={"LOCKSTEP_INJECT": "kill:rank=1:step=5"})
    train(cut, *OPTIONS, ranks=2).expect(0, "resumed from")
    check(hashes(cut) == hashes(whole), "the same on other ranks, and after a restart")
    check_same(whole, cut, "nothing parts them")
    memory = [start["memory"] for start in records(cut, "start")]
    check([len(each) for each in memory] == [3, 2], f"one place for each rank: {memory}")

    # A bit of the weights turns over in one run.
    with h5py.File(checkpoints(whole)[-1]) as file:
        names = []
        file["model"].visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    turned = scratch / "turned"
    train(turned, *OPTIONS, ranks=1, env={"LOCKSTEP_INJECT": f"bitflip:rank=0:step={AT}"}).expect(0)
    check(hashes(turned)[:AT - 1] == hashes(whole)[:AT - 1], "the same before")
    said = refused(whole, turned)
    check(f"{PARTED} {AT} " in said, said)
    named = re.search(rf"in the checkpoints of step {AT}, model/(\S+): 1 of [\d,]+ elements differs, at index 0", said)
    check(named and named[1] in names, said)
    for which in ("first", "second"):
        check(re.search(rf"in the {which} run, rank 0 had parameters at 0x[0-9a-f]+, aligned to \d+", said), said)

    # On one rank of several, with parameters of its own: the record names it, and so does the log, once.
    odd = scratch / "odd"
    train(odd, *OPTIONS, "--optimizer.update", "replicated", ranks=2,
          env={"LOCKSTEP_INJECT": f"bitflip:rank=1:step={AT}"}).expect(0)
    parameter = named[1].replace("/", ".")
    place = f"replica 2 on rank 1 differ from replica 0's, first in {parameter}"
    steps = {step["step"]: step for step in records(odd, "step")}
    check([steps[AT].get("diverged"), steps[AT - 1].get("diverged")] == [place, None], f"{steps[AT]}")
    check((scratch / "odd/log.txt").read_text().count(f"warning: after step {AT} the weights of {place}") == 1,
          (scratch / "odd/log.txt").read_text())
    said = refused(whole, odd)
    check(f"{PARTED} {AT} " in said and f"in the second run, the weights of {place}" in said, said)

    # Who does not ask for hashes gets none.
    train(scratch / "plain", *OPTIONS, "--monitor.weight-hash", "false", ranks=1).expect(0)
    check_same(whole, scratch / "plain", "hashes change no bit")
    check(not any("weight_hash" in step for step in records(scratch / "plain", "step")), "no hashes")
    check("memory" not in records(scratch / "plain", "start")[0], "no addresses")
