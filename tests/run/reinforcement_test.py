"""Reinforcement learning learns, and gives the same bits on 1, 2 and 4 ranks and through a kill in
the middle of an iteration: environments and what a policy remembers go with the checkpoint. The short form learns for
fewer epochs, and draws a policy."""
import math

import h5py

from harness import LONG, SOURCE, Scratch, check, check_same, records, run, same_state, some

INPUTS = SOURCE / "inputs"
SHORT = ["--checkpoint.asynchronous", "false", "--task.evaluation-episodes", 20,
         "--task.test-episodes", 20, "--monitor.log-every", 1, "--monitor.weight-hash", "true",
         "--train.validate-every", 12]
EPOCHS = 60 if LONG else 20  # of the learning curve


def train(deck, directory, *options, ranks=1, env=None):
    return run(["train", INPUTS / deck, "--run.directory", directory, *options], ranks, env)


def write_prices(path, days=140):
    """Three series as `lockstep data import series` writes them."""
    with h5py.File(path, "w") as file:
        file["inputs"] = [[30 + 10 * math.sin(0.1 * (1 + i) * day) + 0.1 * i * day]
                          for i in range(3) for day in range(days)]
        file["time"] = [86400.0 * day for _ in range(3) for day in range(days)]
        file["inputs_offsets"] = [days * i for i in range(4)]
        file["targets"] = [0, 1, 2]
        text = h5py.string_dtype()
        file.attrs.create("columns", ["Close"], dtype=text)
        file.attrs.create("classes", ["A", "B", "C"], dtype=text)


def episodes(directory):
    names = ("return", "return_minimum", "return_maximum", "length", "episodes_total", "policy_loss",
             "value_loss", "entropy", "kl", "clipped")
    return [{name: record.get(name) for name in names} for record in records(directory, "epoch")]


with Scratch() as scratch:
    # A policy that knows nothing stays up for about 20 steps.
    learnt = scratch / "learnt"
    train("cartpole.ini", learnt, "--train.epochs", EPOCHS, "--train.validate-every", 5 * EPOCHS, ranks=2)\
        .expect(0, "finished")
    record = records(learnt, "test")[-1]
    check(record["return"] > 150 and record["length"] == record["return"], f"learnt: {record}")
    check(any(each["return"] is not None and each["return"] < 60 for each in episodes(learnt)),
          "it began as one that knows nothing")
    measured = [run(["evaluate", INPUTS / "cartpole.ini", learnt / "best.h5"], ranks)
                .expect(0, "return").text.splitlines()[-1] for ranks in ((1, 3) if LONG else (1, 2))]
    check(measured[0] == measured[1], f"measured alike on any number of ranks: {measured}")

    write_prices(scratch / "prices.h5")
    market = ["--data.train", scratch / "prices.h5", "--task.episode-days", 20, "--task.trade-from",
              "1970-04-10", "--task.turbulence-history", 20, "--task.episodes", 0]
    trading = [*market, "--data.batch", 16, "--model.units", 8, "--model.window-units", 6,
               "--model.features", 8, "--model.hidden", 8, "--task.window", 5,
               "--task.rollout-steps", 32, "--task.sequence", 8, "--task.environments", 2]

    # A checkpoint every 3 steps of the 10 of an iteration, and a kill between two of them.
    policies = some((
            ("mlp", "cartpole.ini", ["--train.steps", 25]),
            ("lstm", "cartpole_masked.ini", ["--train.steps", 25]),
            ("normal", "pendulum.ini", ["--task.rollout-steps", 64, "--train.steps", 18]),
            ("clstm", "trading.ini", [*trading, "--train.steps", 18])))
    for name, deck, options in policies:
        options = [*SHORT, *options, "--checkpoint.every-steps", 3]
        first = scratch / f"{name}-1"
        train(deck, first, *options).expect(0, "finished")
        if LONG:
            other = scratch / f"{name}-4"
            train(deck, other, *options, ranks=4).expect(0, "finished")
            check_same(first, other, f"{name}: 1 and 4 ranks agree")
            check(episodes(first) == episodes(other), f"{name}: and tell the same")
            check([each["return"] for each in records(first, "validation")] ==
                  [each["return"] for each in records(other, "validation")], "validation as well")
        killed = scratch / f"{name}-killed"
        ended = train(deck, killed, *options, ranks=2,
                      env={"LOCKSTEP_INJECT": "kill:rank=1:step=17"})
        check(ended.code != 0, "a killed run does not end with 0")
        train(deck, killed, *options, ranks=4).expect(0, "at step 15", "finished")
        check_same(first, killed, f"{name}: resumed in an iteration, the same state")
        check(episodes(first)[-1] == episodes(killed)[-1], f"{name}: and the same figures")
    for deck, options in some((("acrobot.ini", []), ("trading_small.ini", market),
                               ("trading_cascade.ini", market))):
        train(deck, scratch / deck, *SHORT, *options, "--train.steps", 2, ranks=2).expect(
            0, "finished at step 2")
    name, deck, options = policies[0]
    other = scratch / "seed"
    train(deck, other, *SHORT, *options, "--run.seed", 1).expect(0)
    check(not same_state(scratch / f"{name}-1", other), "another seed is another run")

    # Ends by episodes, and is finished then.
    ended = scratch / "episodes"
    train("cartpole.ini", ended, *SHORT, "--train.epochs", 0, "--task.episodes", 60, ranks=2 if LONG else 1)\
        .expect(0, "finished")
    done = episodes(ended)
    check(done[-1]["episodes_total"] >= 60 > done[-2]["episodes_total"], "ended when they were done")
    train("cartpole.ini", ended, *SHORT, "--train.epochs", 0, "--task.episodes", 60)\
        .expect(0, "this run is finished")

    # What cannot be.
    for text, options in some((
            ("not a multiple", ["--data.batch", 48]),
            ("this model is not a policy", ["--model.name", "mlp", "--model.hidden", 8]),
            ("cart-pole", ["--task.environment", "cart-pool"]),
            ("data.validation or data.test is set", ["--data.test", "x.h5"]),
            ("data.train is not set", ["--task.environment", "trading"]))):
        train("cartpole.ini", scratch / "wrong", *options).expect(64, text)
    for key in some(("test", "validation")):
        run(["evaluate", INPUTS / "cartpole.ini", ended / "best.h5", f"--data.{key}", "x.h5"]).expect(
            64, "data.validation or data.test is set", "task.test-episodes")
