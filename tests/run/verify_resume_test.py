"""lockstep verify-resume: equal on other rank counts, and nothing left behind."""
from harness import DATA, DECK, DRAW, LONG, Scratch, check, run, some

with Scratch() as scratch:
    base = ["verify-resume", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
            "--run.directory", scratch / "run"]
    ranks, resume_ranks = (2, 3) if LONG else DRAW.choice(((1, 2), (2, 1)))
    run([*base, "--ranks", ranks, "--resume-ranks", resume_ranks, "--kill-at", 7, "--steps", 10]).expect(
        0, "equal: every bit")
    check(not list(scratch.iterdir()), "nothing is left")
    private = [*base, "--ranks", 1, "--resume-ranks", 1, "--model.name", "mlp", "--optimizer.clip-norm", 0]  # one key for both
    run([*private, "--kill-at", 3, "--steps", 4, "--privacy.noise", 1.1]).expect(0, "equal: every bit")
    run([*private, "--kill-at", 5, "--steps", 6, "--privacy.noise", 0.4, "--privacy.epsilon", 5.5]).expect(
        64, "privacy.epsilon = 5.5 ends the run after")
    run([*base, "--ranks", 1, "--resume-ranks", 1, "--kill-at", 9, "--steps", 10, "--data.validation", DATA / "test.h5",
         "--train.validate-every", 1, "--train.patience", 2, "--train.minimum-change", 9]).expect(
        64, "train.patience = 2 ends the run after")
    for options, code, told in some((
            (("--ranks", 2, "--resume-ranks", 9, "--kill-at", 3), 64, "9 ranks for run.replicas = 4"),
            (("--ranks", 2, "--kill-at", 3), 64, "--resume-ranks is missing"),
            (("--ranks", 1, "--resume-ranks", 1, "--kill-at", 9), 64, "--kill-at 9"),
            (("--ranks", 1, "--resume-ranks", 1, "--kill-at", 3, "--launcher", "no-such-launcher"), 69,
             "cannot start no-such-launcher"),
            (("--ranks", 1, "--resume-ranks", 99999, "--kill-at", 3), 69, "There are not enough slots"))):
        env = {"OMPI_MCA_rmaps_base_oversubscribe": "0"} if "slots" in told else {}
        run([*base, *options, "--steps", 5], env=env).expect(code, told)
    check(not list(scratch.iterdir()), "nothing is left")
