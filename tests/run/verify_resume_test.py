"""lockstep verify-resume: equal on other rank counts, and nothing left behind."""
from harness import DATA, DECK, Scratch, check, run

with Scratch() as scratch:
    base = ["verify-resume", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
            "--run.directory", scratch / "run"]
    run([*base, "--ranks", 2, "--resume-ranks", 3, "--kill-at", 7, "--steps", 10]).expect(
        0, "equal: every bit")
    check(not list(scratch.iterdir()), "nothing is left")
    run([*base, "--ranks", 2, "--resume-ranks", 9, "--kill-at", 3, "--steps", 5]).expect(
        64, "9 ranks for run.replicas = 4")
    run([*base, "--ranks", 2, "--kill-at", 3, "--steps", 5]).expect(64, "--resume-ranks is missing")
    run([*base, "--ranks", 1, "--resume-ranks", 1, "--kill-at", 9, "--steps", 5]).expect(
        64, "--kill-at 9")
    run([*base, "--ranks", 1, "--resume-ranks", 1, "--kill-at", 3, "--steps", 5, "--launcher",
         "no-such-launcher"]).expect(69, "cannot start no-such-launcher")
    check(not list(scratch.iterdir()), "nothing is left")
