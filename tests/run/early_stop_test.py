"""Early stopping and the plateau schedule: the same bits and the same end on any number of ranks and through a kill; what
is finished stays finished, and trains on where the patience or the length is raised. The short form draws the ranks."""
import json
import shutil

from harness import DATA, DECK, LONG, Scratch, check, check_same, checkpoints, records, run, some, train

# No accuracy rises by more than 1: after the warm-up of 5 steps, the validation of step 6 is the best, those of 9 and 12
# are without improvement.
STOPS = ["--train.validate-every", 3, "--train.patience", 2, "--train.minimum-change", 1, "--checkpoint.keep", 9]
REASON = "accuracy has not improved in 2 validations (train.patience)"
PLATEAU = ["--train.validate-every", 2, "--schedule.name", "plateau", "--schedule.patience", 1, "--schedule.threshold", 0.2,
           "--schedule.cooldown", 1, "--schedule.factor", 0.5, "--schedule.minimum", 0.2]


def without_end(directory):
    """As after a kill between the last checkpoint and the end."""
    metrics = directory / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True) if json.loads(line)["event"] != "end"))


def ended(directory):
    return [(r["reason"], r["step"], r.get("early_stop")) for r in records(directory, "end")]


def rates(directory):
    return {r["step"]: r["learning_rate"] for r in records(directory, "step")}


def expected_rates(directory):
    """As torch's ReduceLROnPlateau would reduce them, after the warm-up."""
    values = {r["step"]: r["accuracy"] for r in records(directory, "validation") if r["step"] > 5}
    best, bad, cooldown, factor, found = None, 0, 0, 1, {}
    for step in range(1, 31):
        found[step] = 0.003 * ((step - 1) / 5 if step <= 5 else max(factor, 0.2))
        if step not in values:
            continue
        better = best is None or values[step] > 1.2 * best
        best, bad = (values[step], 0) if better else (best, bad + 1)
        cooldown, bad = (cooldown - 1, 0) if cooldown else (0, bad)
        if bad > 1:
            cooldown, bad, factor = 1, 0, factor / 2
    return found, factor


def same_through_all(scratch, name, keys, kill, at):
    """The run on one rank, and the same on other numbers of them, in other modes and through a kill."""
    whole = scratch / name
    told = train(whole, *keys, ranks=1).expect(0, f"finished at step {at}").text
    for ranks, mode in some(((1, "dp"), (2, "auto"), (3, "auto"))):
        other = scratch / f"{name}-{ranks}"
        train(other, *keys, "--run.mode", mode, ranks=ranks).expect(0, f"finished at step {at}")
        check_same(whole, other, f"{name}: {ranks} ranks, {mode}")
        check(ended(whole) == ended(other), f"{name}: {ended(whole)} {ended(other)}")
    for before, after in some(((3, 1), (2, 3), (1, 2))):
        killed = scratch / f"{name}-killed-{before}"
        lost = train(killed, *keys, ranks=before, env={"LOCKSTEP_INJECT": f"kill:rank=0:step={kill}"})
        check(lost.code != 0 and not records(killed, "end"), lost.text)
        train(killed, *keys, ranks=after).expect(0, "resumed from", f"finished at step {at}")
        check_same(whole, killed, f"{name}: through a kill, on {before} and {after} ranks")
        check(rates(whole) == rates(killed), f"{name}: {rates(whole)} {rates(killed)}")
    return whole, told


def stopped_run(scratch):
    whole, told = same_through_all(scratch, "stops", STOPS, 11, 12)
    check(ended(whole) == [("finished", 12, REASON)], f"{ended(whole)}")
    check(told.count(REASON) == 1 and f"stopped early at step 12 of 30: {REASON}" in told, told)
    check("train.patience = 2 may end the run earlier, after 2 validations in a row" in told, told)

    # It is finished: nothing is trained, nor written.
    run(["plan", DECK, "--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5", "--run.directory", whole,
         *STOPS]).expect(0, "it is finished at step 12", "may end the run earlier")
    train(whole, *STOPS, ranks=1).expect(0, f"this run is finished at step 12, because {REASON}", "raise train.patience")
    check(len(records(whole, "end")) == 1 and records(whole, "step")[-1]["step"] == 12, "nothing was trained")

    # Killed after the last validation: before its checkpoint, and before the test.
    test = ("--data.test", DATA / "test.h5")
    for lost_checkpoint in some((True, False)):
        late = scratch / f"late-{lost_checkpoint}"
        shutil.copytree(whole, late)
        without_end(late)
        if lost_checkpoint:
            checkpoints(late)[-1].unlink()
        train(late, *STOPS, *test, ranks=2).expect(0, f"stopped early at step 12 of 30: {REASON}", "test at step ")
        check(ended(late) == [("finished", 12, REASON)], f"{ended(late)}")
        check_same(whole, late, "it ends where it ended")
        train(late, *STOPS, *test, ranks=1).expect(0, "this run is finished at step 12")

    # What is raised trains on.
    for keys, step, length in some((
            (("--train.patience", 3), 15, 30), (("--train.steps", 40, "--train.epochs", 0), 18, 40))):
        on = scratch / f"on-{step}"
        shutil.copytree(whole, on)
        train(on, *STOPS, *keys, ranks=2).expect(0, "at step 12", f"stopped early at step {step} of {length}")
        check(ended(on)[-1][:2] == ("finished", step), f"{ended(on)}")


def plateau_run(scratch):
    whole, told = same_through_all(scratch, "plateau", PLATEAU, 19, 30)
    expected, factor = expected_rates(whole)
    found = rates(whole)
    check(found.keys() == expected.keys(), f"{found}")
    check(all(abs(found[step] - expected[step]) <= 1e-12 for step in found), f"{found} {expected}")
    check(factor < 1 and found[8] == 0.003, f"it was reduced, but not at once: {found}")
    check("the learning rate is 0.0015: accuracy has not improved in 2 validations (schedule.patience)" in told, told)
    check("early_stop" not in records(whole, "end")[-1], "it came to its end")


def refused(scratch):
    """Without a validation set; with privacy.noise; milestones that are missing, or fall."""
    none = ("--data.validation", "", "--task.metric", "")
    for keys, told in some((
            ((*none, "--train.patience", 2), ("train.patience = 2 without a validation set",)),
            ((*none, "--schedule.name", "plateau"), ("schedule.name = plateau without a validation set",)),
            (("--schedule.name", "multi-step"), ("multi-step without schedule.milestones",)),
            (("--schedule.name", "multi-step", "--schedule.milestones", "3, 2"), ("a list of rising whole numbers",)),
            (("--schedule.name", "plateau", "--privacy.noise", 1, "--optimizer.clip-norm", 0), ("epsilon does not cover them",))), 2):
        for command in ("train", "plan"):
            run([command, DECK, "--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5",
                 "--run.directory", scratch / "refused", *keys]).expect(64, *told)
    for keys, told in some((
            (("--train.patience", 2), "train.patience = 2 cannot be used in a federation's deck"),
            (("--schedule.name", "plateau"), "schedule.name = plateau cannot be used in a federation's deck"))):
        run(["federate", "init", scratch / "fed", DECK, "--key", scratch / "key", "--data.train", DATA / "train.h5",
             "--data.validation", DATA / "test.h5", "--data.test", "", *keys]).expect(64, told)


def in_a_search(scratch):
    """A trial that stops early ends well, and one that is trained further takes no more steps."""
    space = scratch / "space.ini"
    space.write_text("[search]\nstrategy = halving\ntrials = 2\nreduction = 2\nminimum-share = 0.5\ngoals = accuracy max\n"
                     "[space]\noptimizer.learning-rate = list(0.003, 0.004)\n")
    run(["search", space, DECK, "--directory", scratch / "search", "--data.train", DATA / "train.h5", "--data.validation",
         DATA / "test.h5", *STOPS]).expect(0)
    results = [line for line in map(json.loads, (scratch / "search/search.jsonl").read_text().splitlines())
               if line["event"] == "result"]
    check(len(results) == 3 and all(line["step"] == 12 for line in results), f"{results}")


with Scratch() as scratch:
    stopped_run(scratch)
    plateau_run(scratch)
    refused(scratch)
    if LONG:
        in_a_search(scratch)
