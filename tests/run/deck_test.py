"""Decks and what is decided by them: train, plan and estimate say the same; a finished run stays as it
is; validation is a share of the training set; another model, long paths, mistakes of one process."""
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time

import h5py
import numpy as np

from harness import (DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, checkpoints, records, run, some, train)

SETS = ["--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5"]


def told_of(directory):
    return {name: (directory / name).read_text() for name in ("metrics.jsonl", "history.jsonl", "log.txt",
                                                              "deck.ini")}


def settled(text):
    """Replicas and batch that a plan tells."""
    return re.search(r"(\d+) replicas x (\d+) samples x", text).groups()


def estimate(*options, ranks=0):
    rows = run(["estimate", DECK, *SETS, "--steps", 1, "--json", *options], ranks).expect(0).text
    return [json.loads(line) for line in rows.splitlines() if line.startswith("{")]


def decisions(scratch):
    """Where a run starts, resumes, is finished or is refused: in the same words and numbers."""
    directory = scratch / "run"
    open_deck = ["--run.directory", directory, "--run.replicas", 0]
    plan = ["plan", DECK, *SETS, *open_deck]
    run([*plan, "--ranks", 2]).expect(0, "it starts at step 0", "2 replicas x 32")
    refused = ("data.global-batch = 64", "cannot be divided evenly among the 3 replicas")
    run([*plan, "--ranks", 3]).expect(64, *refused)
    if LONG:
        train(directory, *open_deck, ranks=3).expect(64, *refused)
    train(directory, *open_deck, "--train.steps", 4, ranks=2).expect(0)

    # On another number of ranks: the run's replicas count, not the ranks of this start.
    on_one = run([*plan, "--train.steps", 8]).expect(0, "it resumes at step 4", "step-00000004.h5")
    check(settled(on_one.text) == ("2", "32"), on_one.text)
    finished = run([*plan, "--train.steps", 4]).expect(0, "it is finished at step 4")
    check(settled(finished.text) == ("2", "32"), finished.text)
    changed = ("optimizer.learning-rate = 0.5 (was 0.003)", "--force")
    for words, option, told in some((
            *((words, option, told) for words in (plan, ["estimate", *plan[1:], "--steps", 1])
              for option, told in ((("--optimizer.learning-rate", 0.5), changed),
                                   (("--run.replicas", 4), ("run.replicas = 4 (was 2)",)))),
            (["train", *plan[1:]], ("--optimizer.learning-rate", 0.5), changed),
            (plan, ("--ranks", 3), ("3 ranks for run.replicas = 2",))), 2):
        run([*words, *option]).expect(64, *told)

    # A finished run that is started again, on other ranks: nothing is written.
    before = told_of(directory)
    for ranks in some((1, 2)):
        train(directory, *open_deck, "--train.steps", 4, ranks=ranks).expect(
            0, "this run is finished at step 4")
    check(told_of(directory) == before, "a finished run keeps its records")
    report = run(["report", directory, "--output", scratch / "report"]).expect(0)
    check(len(records(directory, "start")) == 1, report.text)
    train(directory, *open_deck, "--train.steps", 6, ranks=1).expect(0, "finished at step 6: 2 steps in")


def predictions():
    """Of a batch over all replicas each takes its part, and a step takes no more than there is."""
    rows = estimate("--run.replicas", 0, "--data.global-batch", 64, "--max-ranks", 128)
    check([row["ranks"] for row in rows] == [1, 2, 4, 8, 16, 32, 64, 128], f"{rows}")
    for row in rows[:7]:
        check(row["replicas"] == row["ranks"], f"{row}")
        check(abs(row["samples_per_s"] * row["step_s"] - 128) < 1e-6, f"2 x 64 samples per step: {row}")
        check(abs(row["run_s"] / row["step_s"] - 30) < 1e-6, f"30 steps in all: {row}")
    check("cannot be divided evenly among the 128 replicas" in rows[7]["problem"], f"{rows[7]}")
    row = estimate("--run.replicas", 0, "--data.global-batch", 0, "--data.batch", 4000, "--max-ranks",
                   64)[-1]
    check(abs(row["samples_per_s"] * row["step_s"] - 60000) < 1e-6, f"of 60,000 samples: {row}")


def share(scratch):
    """A tenth of the training set, by class, on any number of ranks, through a resume."""
    split = ["--data.validation", "10 %", "--train.steps", 8, "--train.validate-every", 4 if LONG else 8]
    for ranks in (1, 2):
        train(scratch / f"share{ranks}", *split, ranks=ranks).expect(
            0, "54,000 training, 6,000 validation", "validation is 10 % of data.train, drawn by class with "
            "seed ", "Trouser 5,400 + 600", "Ankle boot 5,400 + 600")
    check_same(scratch / "share1", scratch / "share2", "a share is the same on any rank count")
    measured = records(scratch / "share1", "validation")
    check([(one["samples"], one["loss"]) for one in measured] ==
          [(6000, one["loss"]) for one in records(scratch / "share2", "validation")], f"{measured}")
    check(train(scratch / "resumed", *split, ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=7"}).code != 0,
          "it was killed")
    train(scratch / "resumed", *split, ranks=1).expect(0, "resumed from")
    check_same(scratch / "share1", scratch / "resumed", "and after a resume")
    train(scratch / "resumed", "--data.validation", "20 %", "--train.steps", 9, ranks=2 if LONG else 1).expect(
        64, "data.validation = 20 % (was 10 %)")
    for cache in some(("memory", f"local:{scratch / 'copies'}")):
        cached = scratch / f"cached-{cache.split(':')[0]}"
        train(cached, *split, "--data.cache", cache).expect(0)
        check_same(scratch / "share1", cached, f"data.cache = {cache}")

    # evaluate takes the same samples.
    found = run(["evaluate", DECK, *SETS[:2], "--data.validation", "10%", checkpoints(scratch / "share1")[-1]],
                2).expect(0, "validation: 6,000 samples")
    check(f"loss {measured[-1]['loss']:.6f}" in found.text, f"{found.text} {measured[-1]}")
    check("has learnt samples" not in found.text, found.text)
    run(["evaluate", DECK, *SETS[:2], "--data.validation", "20 %", checkpoints(scratch / "share1")[-1]]).expect(
        0, "warning: the model was trained with data.validation = 10 %, run.seed = ", "has learnt samples")
    if LONG:
        other = run(["evaluate", DECK, *SETS[:2], "--data.validation", "10 %", "--run.seed", 99,
                     checkpoints(scratch / "share1")[-1]]).expect(0)
        check(f"loss {measured[-1]['loss']:.6f}" not in other.text, "the seed draws others")
    for part in some((share_of_few, share_of_reals)):
        part(scratch)


def share_of_few(scratch):
    """Too few of a class, and of all."""
    with h5py.File(scratch / "few.h5", "w") as file:
        file["inputs"] = np.zeros((41, 28, 28), np.uint8)
        file["targets"] = np.array([0] * 40 + [1])
        file.attrs["classes"] = ["many", "one"]
    few = ["--data.train", scratch / "few.h5", "--run.replicas", 1, "--data.global-batch", 4,
           "--train.steps", 2]
    train(scratch / "few", *few, "--data.validation", "10 %", ranks=1).expect(
        0, "warning: too few samples to validate class one (1 sample)", "many 36 + 4")
    refused = [("0.5 %", "data.validation = 0.5 %", "samples is empty")]
    refused += [(wrong, f"data.validation = {wrong} (command line)", "above 0 % and below 100 %")
                for wrong in ("0 %", "100 %", "-1%")]
    for wrong, *told in some(refused):
        train(scratch / "none", *few, "--data.validation", wrong, ranks=1).expect(64, *told)


def share_of_reals(scratch):
    """No classes at all."""
    with h5py.File(scratch / "reals.h5", "w") as file:
        file["inputs"] = np.random.default_rng(0).uniform(size=(50, 6)).astype(np.float32)
        file["targets"] = np.random.default_rng(1).uniform(size=(50, 2)).astype(np.float32)
    deck = scratch / "reals.ini"
    deck.write_text(f"[data]\ntrain = {scratch / 'reals.h5'}\nvalidation = 20 %\nbatch = 8\n"
                    "[model]\nname = mlp\nhidden = 8\n[task]\nkind = regression\n[train]\nsteps = 3\n"
                    f"[monitor]\nplots = false\n[run]\ndirectory = {scratch / 'reals'}\n")
    run(["train", deck]).expect(0, "40 training, 10 validation", "drawn at random with seed 0")


def models(scratch):
    """Another model than the deck's, by its name alone."""
    for ranks in (1, 2) if LONG else (1,):
        train(scratch / f"mlp{ranks}", "--model.name", "mlp", "--train.steps", 1, ranks=ranks).expect(
            0, "ignored: model.", f"{DECK}:", "is a key of model cnn", "model mlp")
    for option, *told in some((("--model.hiden", "unknown key model.hiden", "Did you mean model.hidden?"),
                               ("--model.channels", "unknown key model.channels"))):
        train(scratch / "mlp", "--model.name", "mlp", option, 3, ranks=1).expect(64, *told)
    for name in some(("..", "/tmp/x", "a/../../b")):
        run(["train", DECK, "--run.name", name]).expect(64, f"run.name = {name}", "run.directory accepts any path")
    mistyped = [(("--model.name", "mlp", typed, "mlp"), f"unknown key {typed[2:]}")
                for typed in ("--model.nmae", "--task.metrc")]  # of a run that there is: no change of it
    mistyped.append((("--model.name", "mlpp", "--checkpoint.resume", "none"), "model.name = mlpp"))
    for options, told in some(mistyped):
        train(scratch / "mlp1", *options, ranks=1).expect(64, told)
    check(not list(scratch.glob("mlp1.archived*")) and (scratch / "mlp1/checkpoints").is_dir(),
          "what is mistyped archives nothing")
    one = run(["models", "mlp"]).expect(0, "model.hidden (").text
    check("cnn" not in one.split(":")[0] and "resnet" not in one, one)
    for words, code, *told in some(((["models", "resnt"], 64, "unknown model resnt", "Did you mean resnet?"),
                                    (["tasks", "ctc"], 0, "ctc:"),
                                    (["tasks", "classify"], 64, "unknown task classify", "the tasks are "),
                                    (["models", "cnn", "mlp"], 64, "lockstep models [NAME]"))):
        run(words).expect(code, *told)


def words_that_are_refused(scratch):
    """plan refuses what train refuses; a key that is not there has no line, but a deck."""
    deck = scratch / "few.ini"
    deck.write_text(f"[data]\ntrain = {DATA / 'train.h5'}\n[task]\nmetric = mae\n[train]\nsteps = 1\n"
                    f"[run]\ndirectory = {scratch / 'refused'}\n")
    refused = (
        (deck, ("--model.name", "mlp"), "task.metric = mae: the metrics of classification are ", f"{deck}:4"),
        (deck, ("--model.name", "mlp", "--task.metric", "loss", "--checkpoint.best", "blue"),
         "checkpoint.best = blue: the metrics of classification are "),
        (deck, ("--task.metric", "loss"), f"(model.name: not set in {deck})"),
        (DECK, ("--precision.compute", "fp16", "--precision.loss-scale", 0, *SETS, "--run.directory",
                scratch / "refused"), "precision.loss-scale = 0"))
    for command in ("plan", "train"):
        for given, options, *told in some(refused):
            run([command, given, *options]).expect(64, *told)
    for command in some(("plan", "train")):
        told = run([command, deck, "--task.metric", "loss", "--model.name", "mlp", "--optimizer.name", "sgd",
                    "--optimizer.betas", "0.8, 0.9", "--schedule.factor", 0.5, "--optimizer.momentum", 0.9]).expect(
            0, "ignored: optimizer.betas (command line) applies only to optimizer.name = adamw, adam or lamb",
            "ignored: schedule.factor")
        check("ignored: optimizer.momentum" not in told.text, told.text)
    run(["train", deck, "--task.metric", "loss", "--model.name", "mlp", "--optimizer.name", "sgd", "--optimizer.nesterov",
         "true", "--optimizer.clip-norm", "1e-46", "--run.directory", scratch / "clipped"]).expect(
        0, "ignored: optimizer.nesterov (command line) applies only to optimizer.momentum = a number above 0")
    for fault in some(("kil:rank=0:step=1", "kill:rank=x:step=1", "kill:step=99:rank", "kill:rank=0", "kill:rank=-1:step=1",
                       "kill:rank=0:rank=1:step=2", "nan:phase=update", "bitflip:step=2:phase=update", "clock:rank=0",
                       "clock:rank=0:seconds=nan", "kill:host=a:step=2", "gradflip:host=a",
                       "gradflip:rank=0:host=a:step=2")):
        run(["train", deck, "--task.metric", "loss", "--model.name", "mlp", "--run.directory", scratch / "broken"],
            env={"LOCKSTEP_INJECT": fault}).expect(64, f"LOCKSTEP_INJECT = {fault}: expected kill, stop")


def mistakes(scratch):
    """Of one process neither rank nor phase is told, but where in the deck it is."""
    deck = scratch / "wrong.ini"
    deck.write_text(f"include = {DECK}\n[data]\n\ntrain = {scratch / 'none.h5'}\nbatch = 0\n")
    for words, *told in ((["--Data.Batch", 2], "Did you mean data.batch?"), (["--model.name", "MLP"], "Did you mean mlp?")):
        run(["train", DECK, *SETS, *words]).expect(64, *told)
    old = scratch / "carriage-returns.ini"
    old.write_bytes(deck.read_bytes().replace(b"\n", b"\r"))
    run(["train", old]).expect(64, f"{old}: its lines end with carriage returns alone", f"tr '\\r' '\\n' <{old} >NEW.ini")
    told = run(["train", deck]).expect(64, f"root cause: data.batch = 0 ({deck}:5)").text
    check("rank" not in told and "start-up" not in told, told)
    run(["train", deck, "--data.batch", 1], ranks=2).expect(66, "root cause: rank 0 (", f"{deck}:4")
    for options, code, *phrases in some((
            ((), 66, "none.h5", f"(data.train: {deck}:4)"),
            (("--run.replicas", 0, *SETS, "--data.batch", 1, "--data.global-batch", 7), 64,
             "data.batch = 1 (command line) and data.global-batch = 7 (command line)"),
            ((*SETS, "--data.global-batch", 7, "--run.mode", "dp", "--run.replicas", 2), 64,
             "data.global-batch = 7: it cannot be divided"))):
        words = () if "--data.global-batch" in options else ("--data.batch", 1)
        told = run(["train", deck, *words, *options]).expect(code, *phrases).text
        check("rank 0" not in told, told)


def said_twice(scratch):
    """Of two keys for one thing that of the later source holds, and the other is told with both places."""
    line = 1 + pathlib.Path(DECK).read_text().splitlines().index("global-batch = 64")
    replaced = f"ignored: data.global-batch = 64 ({DECK}:{line}), because data.batch = 8 (command line) replaces it"
    there = ["--run.directory", scratch / "run", *SETS]
    begun = ["train", DECK, *there, "--train.steps", 1, "--checkpoint.resume", "none"]
    for words in some((begun, ["plan", DECK, *there], ["check", DECK, *there], ["estimate", DECK, *there, "--steps", 1]), 2):
        given = run([*words, "--data.batch", 8])
        check(given.code in (0, 69) and given.text.count("ignored: ") == 1 and replaced in given.text, given.text)
        check(words[0] != "plan" or settled(given.text) == ("4", "8"), given.text)
    mine = scratch / "mine.ini"
    mine.write_text("[data]\nbatch = 8\n[schedule]\nwarmup-epochs = 0.5\n")
    run([begun[0], DECK, mine, *begun[2:]]).expect(
        0, f"data.global-batch = 64 ({DECK}:{line}), because data.batch = 8 ({mine}:2)",
        f"because schedule.warmup-epochs = 0.5 ({mine}:4) replaces it", "batch: 8 x 4 replicas")
    there[1] = scratch / "none"
    both = scratch / "both.ini"
    both.write_text("[data]\nbatch = 8\nglobal-batch = 32\n")
    for words, *told in some((
            ((DECK, "--data.batch", 8, "--data.global-batch", 32), "data.batch = 8 (command line) and data.global-batch"),
            ((both, "--model.name", "cnn"), f"({both}:2) and data.global-batch = 32 ({both}:3)", "both set the batch"),
            ((DECK, "--schedule.warmup-steps", 2, "--schedule.warmup-epochs", 1), "both set the length of the warm-up"),
            ((DECK, "--distill.teacher", "a", "--distill.outputs", "b"), "only one of the two")), 2):
        run(["train", *words, *there]).expect(64, *told)
    run(["plan", DECK, *there, "--train.steps", 3, "--train.steps", 4]).expect(
        0, "ignored: train.steps = 3 (command line), because the same command line then sets train.steps = 4")
    for words, told in some(((["plan", DECK, *there, "--ranks", 2, "--ranks=4"], "--ranks 2, because"),
                             (["watch", scratch / "run", "--interval", 1, "--once", "--interval", 2], "--interval 1, because"),
                             (["plan", DECK, *there, "--ranks", 2, "--ranks", 2], ""))):
        text = run(words).text
        check(text.count("ignored: --") == bool(told) and told in text, f"{words}: {text}")
    mine.write_text(f"include = {DECK}\n[run]\ndirectory = {scratch / 'mine'}\n")
    run(["plan", mine, *SETS, "--run.name", "other"]).expect(
        0, "run.name = other (command line) does not change the directory", f"{mine}:3")
    for words in some((["--mode", "ddp", "--run.mode", "single"], ["--restarts", 1, "--fault-tolerance.restarts", 2],
                       ["--scale-rate", "sqrt", "--optimizer.scale-learning-rate", "none"])):
        run(["launch", "--yes", "--show", DECK, *words]).expect(64, f"{words[0]} and {words[2]}: both set the same")
    run(["verify-resume", DECK, *there, "--ranks", 1, "--resume-ranks", 1, "--kill-at", 1, "--steps", 2, "--train.steps",
         9]).expect(64, "train.steps = 9 (command line)", "sets train.steps itself, to 2")
    # Both of these hold: which of them ends the run is told.
    run(["plan", DECK, *there, "--train.epochs", 9, "--train.steps", 4]).expect(
        0, "train.steps = 4 ends the run after 4 steps, before train.epochs = 9 (")
    run(["plan", DECK, *there, "--train.epochs", 0.05, "--train.steps", 4000]).expect(
        0, "train.epochs = 0.05 ends the run after ", "before train.steps = 4000 (4,000 steps)")


def idle(scratch):
    """Keys without an effect in a run as short as this, or without a validation, are told by plan and by train."""
    no_validation = ["--data.validation", "", "--task.metric", "", "--train.validate-every", 0]
    six = ["--train.steps", 6, "--train.epochs", 0, "--schedule.name", "constant", "--schedule.warmup-steps", 0]
    table = (([*no_validation, "--train.validate-every", 5],
              "train.validate-every = 5 has no effect, because the run has no validation set"),
             ([*no_validation, "--train.validate-every", 6, "--checkpoint.best", "f1"],
              "train.validate-every = 6 and checkpoint.best = f1 have no effect"),
             ([*no_validation, "--task.metric", "f1"], "task.metric = f1 has no effect"),
             (["--train.validate-every", 7], "train.validate-every = 7, but the run ends after 6 steps"),
             (["--profile.steps", "7-9"], "profile.steps = 7-9 records no timeline, because the run ends after 6 steps"),
             (["--profile.steps", "5-7"], "profile.steps = 5-7 records fewer steps"),
             (["--schedule.warmup-steps", 6], "never reaches its peak, because the run ends after 6 steps and its warm-up takes 6 "
              "(schedule.warmup-steps)"),
             (["--schedule.warmup-epochs", 1], "(schedule.warmup-epochs)"),
             (["--schedule.name", "step"], "never reduces the learning rate"),
             (["--schedule.name", "multi-step", "--schedule.milestones", 1], "(schedule.milestones)"),
             (["--schedule.name", "cosine-restarts"], "cosine-restarts never restarts, because the run ends after 6 steps"),
             (["--train.patience", 3, "--train.validate-every", 2], "train.patience = 3 never ends the run early, because the "
              "run has 2 validations before its end"),
             (["--schedule.name", "plateau", "--schedule.patience", 1, "--train.validate-every", 2],
              "schedule.patience = 1 never reduces the learning rate, because the run has 2 validations before"))
    fine = ["--train.validate-every", 6, "--profile.steps", "5-6", "--schedule.warmup-steps", 5, "--checkpoint.best", "f1"]
    for words, told in (*some(table, 3), (fine, "")):
        text = run(["plan", DECK, *SETS, "--run.directory", scratch / "idle", *six, *words]).expect(0).text
        check(told in text, f"{words}: {text}")
        check(bool(told) == any(part in text for part in ("no effect", "ends after", "ends the run", "the run has")), f"{words}: {text}")
    train(scratch / "idle", *six, "--profile.steps", 7, ranks=1).expect(0, "profile.steps = 7 records no timeline")


def its_own_deck(scratch):
    """A run's own deck, given back, has no value that is ignored, and makes the same run."""
    for name, *options in some((("plain",), ("adamw", "--optimizer.name", "adam"), ("sgd", "--optimizer.name", "sgd"),
                                ("batch", "--data.batch", 8), ("linear", "--optimizer.scale-learning-rate", "linear"),
                                ("step", "--schedule.name", "step", "--schedule.factor", 0.5),
                                ("mlp", "--model.name", "mlp"), ("idle", "--optimizer.momentum", 0.9, "--prune.score", "taylor"),
                                ("pruned", "--prune.pattern", "2:4"), ("learnt", "--precision.compute", "bf16"))):
        train(scratch / name, *options, "--train.steps", 2, ranks=1).expect(0)
        deck = scratch / name / "deck.ini"
        told = run(["train", deck, "--run.directory", scratch / f"{name}-again"]).expect(0).text
        check("ignored" not in told, f"{name}: {told}")
        check_same(scratch / name, scratch / f"{name}-again", f"{name}: the same run")
        check("ignored" not in run(["plan", deck]).expect(0, "it is finished at step 2").text, name)
        again = (scratch / f"{name}-again/deck.ini").read_text().replace(f"{name}-again", name)
        check(again == deck.read_text(), f"{name}: {again}")
        run(["plan", deck, "--run.directory", scratch / "new", "--data.batch", 16]).expect(0, "x 16 samples")


def another_length(scratch):
    """A schedule that is stretched by a longer run is told, at the resume and by plan; one that is not, is not."""
    length = ["--data.validation", "", "--train.epochs", 0, "--run.replicas", 1, "--data.global-batch", 32,
              "--schedule.warmup-steps", 1, "--optimizer.learning-rate", 0.5, "--optimizer.name", "sgd"]
    told = "warning: schedule.name = cosine now ends at step 20 instead of 10"
    by_length = ("cosine", "linear", "polynomial", "one-cycle")
    for name in some((*by_length, "constant", "step", "exponential", "inverse-sqrt", "cosine-restarts")):
        schedule = ["--schedule.name", name]
        train(scratch / name, *length, *schedule, "--train.steps", 10, ranks=1).expect(0)
        for command in ("plan", "train"):
            longer = run([command, DECK, *SETS[:2], "--run.directory", scratch / name, *length, *schedule, "--train.steps", 20]).expect(0).text
            check((told.replace("cosine", name) in longer) == (name in by_length), f"{name}: {longer}")
            check(name != "cosine" or "the learning rate of step 11 is 0.2706 instead of 0" in longer, longer)
    train(scratch / "other", *length, "--schedule.name", "cosine", "--train.steps", 10, ranks=1).expect(0)
    longer = train(scratch / "other", *length, "--schedule.name", "cosine", "--train.steps", 20, "--quiet", ranks=1)
    longer.expect(0, told)
    check(told not in train(scratch / "other", *length, "--schedule.name", "cosine", "--train.steps", 20, ranks=1).text,
          "nothing was changed")


def in_the_way(scratch):
    """What lies where a run's directory is to be; a deck that is not the run's; the end of one process."""
    (scratch / "file").write_text("mine\n")
    for directory in some((scratch / "file", scratch / "file/run")):
        told = (73, f"{scratch / 'file'} is a file, not a directory", "run.directory")
        train(directory, "--train.steps", 1, ranks=1).expect(*told)
        run(["plan", DECK, *SETS, "--run.directory", directory]).expect(*told)
    check((scratch / "file").read_text() == "mine\n", "it stays")
    (scratch / "closed").mkdir(0o555)  # to root, too, without its power over permissions
    mortal = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"] if os.geteuid() == 0 else []
    for command in some(("plan", "train")):
        done = subprocess.run([*mortal, LOCKSTEP, command, DECK, *map(str, SETS), "--train.steps", "1", "--run.directory",
                               scratch / "closed/run"], capture_output=True, text=True)
        check(done.returncode == 73 and "closed" in done.stderr and "permissions" in done.stderr, f"{command}: {done}")
    train(scratch / "run", "--model.hidden", 24, "--train.steps", 1, ranks=1).expect(0)
    run(["evaluate", DECK, scratch / "run", *SETS]).expect(65, f"{scratch / 'run/deck.ini'}")
    run(["evaluate", scratch / "run/deck.ini", scratch / "run"]).expect(0)
    for fault, code in some((("throw:rank=0:step=1", 70), ("nan:rank=0:step=1", 64))):
        told = run(["train", DECK, *SETS, "--run.directory", scratch / "ends", "--run.replicas", 1],
                   env={"LOCKSTEP_INJECT": fault}).expect(code, "root cause").text
        check("MPI_ABORT" not in told and "root cause" in told.strip().splitlines()[-1], told)


def long_paths(scratch):
    """Longer than MPI-IO has room for where it shares file pointers, which nothing here does."""
    for length, ranks in some(itertools.product((190, 1000), (1, 2))):
        path = scratch
        while len(str(path)) < length:
            path = path / ("d" * 90)
        train(path / str(ranks), "--train.steps", 2, ranks=ranks).expect(0, "finished at step 2")
        run(["checkpoint", "verify", path / str(ranks)]).expect(0)
    train(scratch / ("n" * 300), ranks=1).expect(64, "run.directory = ", "255 in each name")


def buckets(scratch):
    """Ordered sums are the same in any buckets, on both sides of a resume; native ones are not."""
    for part in some((ordered_buckets, native_buckets)):
        part(scratch)


def ordered_buckets(scratch):
    train(scratch / "same", "--train.steps", 4).expect(0)
    shutil.copytree(scratch / "same", scratch / "other")
    for name, size in (("same", 25), ("other", 0.05)):
        train(scratch / name, "--train.steps", 8, "--communication.bucket-mb", size,
              "--communication.first-bucket-mb", min(size, 1)).expect(0, "resumed from")
    check_same(scratch / "same", scratch / "other", "buckets change no bits")


def native_buckets(scratch):
    native = ["--communication.reduction", "native"]
    train(scratch / "native", *native, "--train.steps", 4).expect(0)
    train(scratch / "native", *native, "--train.steps", 8, "--communication.bucket-mb", 2).expect(
        64, "communication.bucket-mb = 2 (was 25)")


def helps():
    """Help and versions are there at once: without LibTorch, which alone takes longer to load."""
    def seconds_of_processor(words):  # whatever else this machine does just now
        def used():
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            return children.ru_utime + children.ru_stime

        before = used()
        run(words).expect(0, "lockstep " + words[0])
        return used() - before

    for command in ("train", "launch", "plan", "check", "estimate", "evaluate", "verify-resume", "data",
                    "data import", "checkpoint", "checkpoint export", "bench", "bench step", "report",
                    "watch", "models", "tasks"):
        asked = [*command.split(), "--help"]
        took = []
        while not took or took[-1] >= 0.2:
            check(len(took) < 3, f"lockstep {command} --help takes {took} s of a processor")
            took.append(seconds_of_processor(asked))
        loaded = run(asked, env={"LD_DEBUG": "files"}).text  # every library that is opened
        check("liblockstep_core" in loaded and "libtorch" not in loaded, f"lockstep {command} --help loads LibTorch")


with Scratch() as scratch:
    for part in (decisions, share, models, words_that_are_refused, mistakes, said_twice, idle, its_own_deck,
                 another_length, in_the_way, long_paths, buckets):
        start = time.monotonic()
        (scratch / part.__name__).mkdir()
        part(scratch / part.__name__)
        print(f"{part.__name__}: {time.monotonic() - start:.1f} s")
predictions()
helps()
