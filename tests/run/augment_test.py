"""Augmented runs have the same bits on any number of ranks and through a kill, whatever the list; and what does not fit
the samples is refused before the run begins."""
from harness import LONG, Scratch, check, check_same, records, run, some, train

LISTS = [
    "flip, crop:2, noise:0.1@0.5, mask:4:4",
    "resized-crop:0.5:1, flip@0.3, erase@0.25",
    "affine:15:0.1:0.9:1.1:5, blur:3:0.1:2@0.5, gamma:0.7:1.4",
    "colour:0.4:0.4, sharpness:2, autocontrast@0.3, equalize@0.2",
    "randaugment:2:9",
    "trivialaugment, shift:2, speed:0.9:1.1, gain:3",
    "posterize:4, solarize:0.7, invert@0.2, gray",
    "flip, mixup:0.4, cutmix:1@0.3",
]
REFUSED = [
    ("blur:4", "has no middle"), ("resized-crop:0.9:0.1", "is empty"), ("colors", "unknown augmentation"),
    ("mixup:1, flip", "after all their own changes"), ("flip@2", "probability"), ("randaugment:2:99", "from 0 to 30"),
]


def same_bits(scratch, name, changes):
    one, other = scratch / f"{name}-1", scratch / f"{name}-killed"
    options = ["--data.augment", changes]
    train(one, *options, ranks=1).expect(0, "finished at step 30")
    train(other, *options, "--data.workers", 3, ranks=3, env={"LOCKSTEP_INJECT": "kill:rank=1:step=13"})
    train(other, *options, ranks=2).expect(0, "resumed from", "finished at step 30")
    check_same(one, other, f"{changes}: a resumed run on other ranks has the same weights")
    return records(one, "step")[-1]["loss"]


def main():
    with Scratch() as scratch:
        losses = {same_bits(scratch, f"list{at}", changes) for at, changes in enumerate(some(LISTS, 1))}
        check(len(losses) == (len(LISTS) if LONG else 1), "each list changes the samples in its own way")
        for entry, why in some(REFUSED):
            train(scratch / "refused", "--data.augment", entry, ranks=2).expect(64, why)
        run(["data", "augment"]).expect(0, "resized-crop[:AREA_MIN", "probability 0.5")
        run(["data", "augment", "blur"]).expect(0, "blur:KERNEL[:SIGMA_MIN[:SIGMA_MAX]]: blurred")
        run(["data", "augment", "blurr"]).expect(64, "lists them")
    print("augmented runs are the same on any ranks")


main()
