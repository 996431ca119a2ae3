"""What `lockstep search` is worth, on real trainings; each part prints its figures:

    python bench/search.py hyperband FASHION_MNIST   # Hyperband against the full grid: steps, accuracy
    python bench/search.py pbt                       # PBT against random search at equal cost, on CartPole
    python bench/search.py idle FASHION_MNIST        # ranks without a trial in a synchronous halving

FASHION_MNIST is the directory with the imported train.h5 (see docs/import.md). The program is build/lockstep, the
launcher mpirun.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/lockstep"))


def records(directory):
    return [json.loads(line) for line in (directory / "search.jsonl").read_text().splitlines()]


class Search:
    """One search, to its end: its best value, its steps in full lengths, its idle share."""

    def __init__(self, place, ranks, settings, space, deck, options):
        self.directory = pathlib.Path(place) / settings["name"]
        words = {key: value for key, value in settings.items() if key != "name"}
        text = "[search]\n" + "".join(f"{key} = {value}\n" for key, value in words.items())
        (pathlib.Path(place) / "space.ini").write_text(
            text + "[space]\n" + "".join(f"{key} = {value}\n" for key, value in space.items()))
        job = subprocess.run(["mpirun", "-n", str(ranks), PROGRAM, "search", f"{place}/space.ini", ROOT / "inputs" / deck,
                              "--directory", self.directory, *options], capture_output=True, text=True)
        if job.returncode != 0:
            sys.exit(job.stdout + job.stderr)
        all_records = records(self.directory)
        results = [each for each in all_records if each["event"] == "result"]
        goal, way = settings["goals"].split()
        most = max(each["share"] for each in results)
        values = [each["metrics"][goal] for each in results if each["share"] == most and each["code"] == 0]
        self.best = max(values) if way == "max" else min(values)
        self.values = values
        self.steps = sum(each["steps"] for each in results)
        usage = [each for each in all_records if each["event"] == "usage"]
        self.idle = 1 - sum(u["busy_rank_seconds"] for u in usage) / sum(u["rank_seconds"] for u in usage)
        self.seconds = sum(u["rank_seconds"] for u in usage) / ranks


def hyperband(options):
    """The grid has 27 points; a whole training of the small MLP is 450 steps of 128 images, of 54,000."""
    deck = ["--data.train", f"{options.data}/train.h5", "--data.test", "", "--train.steps", "450",
            "--model.name", "mlp", "--schedule.warmup-steps", "50", "--train.validate-every", "10000",
            "--checkpoint.every-steps", "10000"]
    space = {"optimizer.learning-rate": "list(0.01, 0.05, 0.2)", "optimizer.momentum": "list(0.5, 0.8, 0.9)",
             "model.hidden": "list(16, 32, 64)"}
    with tempfile.TemporaryDirectory() as place:
        grid = Search(place, 2, {"name": "grid", "strategy": "grid", "goals": "accuracy max"}, space, "fashion_mnist.ini",
                      deck)
        print(f"grid: {len(grid.values)} trials, {grid.steps} steps, best accuracy {100 * grid.best:.2f} %", flush=True)
        for seed in options.seeds:
            found = Search(place, 2, {"name": f"hyperband-{seed}", "strategy": "hyperband", "seed": seed,
                                      "goals": "accuracy max"}, space, "fashion_mnist.ini", deck)
            print(f"hyperband, seed {seed}: {found.steps} steps = {100 * found.steps / grid.steps:.1f} % of the grid's, "
                  f"best {100 * found.best:.2f} % ({100 * (found.best - grid.best):+.2f} points)", flush=True)


def pbt(options):
    deck = ["--train.epochs", "48", "--train.validate-every", "10000", "--checkpoint.every-steps", "10000"]
    space = {"optimizer.learning-rate": "log-uniform(1e-5, 1e-1)", "task.entropy-weight": "log-uniform(1e-4, 1e-1)",
             "optimizer.clip-norm": "log-uniform(0.05, 5)"}
    with tempfile.TemporaryDirectory() as place:
        for seed in options.seeds:
            common = {"seed": seed, "goals": "return max"}
            ours = Search(place, 2, {"name": f"pbt-{seed}", "strategy": "pbt", "population": 10, "intervals": 6, **common},
                          space, "cartpole.ini", [*deck, "--run.seed", str(seed)])
            random = Search(place, 2, {"name": f"random-{seed}", "strategy": "random", "trials": 10, **common}, space,
                            "cartpole.ini", [*deck, "--run.seed", str(seed)])
            print(f"seed {seed}: PBT {ours.steps} steps, best return {ours.best:.1f}, mean {sum(ours.values) / 10:.1f}; "
                  f"random {random.steps} steps, best {random.best:.1f}, mean {sum(random.values) / 10:.1f}", flush=True)


def idle(options):
    deck = ["--data.train", f"{options.data}/train.h5", "--data.test", "", "--train.steps", "900", "--model.name", "mlp",
            "--run.replicas", "4", "--train.validate-every", "10000", "--checkpoint.every-steps", "10000"]
    space = {"optimizer.learning-rate": "log-uniform(0.01, 0.3)", "optimizer.momentum": "uniform(0.5, 0.95)"}
    for ranks in (2, 4):
        with tempfile.TemporaryDirectory() as place:
            found = Search(place, ranks, {"name": "halving", "strategy": "halving", "trials": 9, "goals": "accuracy max"},
                           space, "fashion_mnist.ini", deck)
            print(f"halving of 9 trials on {ranks} ranks: {100 * found.idle:.1f} % of the ranks' time without a trial, "
                  f"{found.seconds:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["hyperband", "pbt", "idle"])
    parser.add_argument("data", nargs="?", help="directory of the imported Fashion-MNIST")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    {"hyperband": hyperband, "pbt": pbt, "idle": idle}[options.part](options)


main()
