#!/usr/bin/env python3
"""How time and memory grow with what a user may have many of: each command at n and at 10 n. A ratio of time near 10 is
proportional, one near 100 is quadratic; what a start costs is taken off. Needs h5py (the virtual environment that
`./bootstrap bench` makes). The exit code is 1 where a ratio is larger than --limit."""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import h5py
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
DECK = """
[run]
replicas = 1
[data]
batch = 128
[model]
name = mlp
hidden = 4
[monitor]
plots = false
progress = plain
tensorboard = false
[train]
steps = 1
"""


class Place:
    """A directory with a deck, the program, and what one command used."""

    def __init__(self, options, path):
        self.options, self.path = options, path
        (path / "deck.ini").write_text(DECK)

    def lockstep(self, *words, good=(0,)):
        command = [self.options.lockstep, *map(str, words)]
        begun, child = time.monotonic(), os.fork()
        if child == 0:
            out = os.open(self.path / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.execv(command[0], command)
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in good:
            sys.exit(f"exit code {code}: {' '.join(command)[:300]}\n{(self.path / 'out').read_text()[-2000:]}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.monotonic() - begun

    def train(self, data, *words, steps=1):
        return self.lockstep("train", self.path / "deck.ini", "--data.train", data, "--run.directory", self.path / "run",
                             "--train.steps", steps, *words)

    def fresh(self):
        shutil.rmtree(self.path / "run", ignore_errors=True)


def labelled(path, samples, columns, classes, names=True):
    with h5py.File(path, "w", libver="latest") as file:
        file["inputs"] = numpy.random.default_rng(0).random((samples, columns)).astype("f4")
        file["targets"] = numpy.arange(samples) % classes
        if names:
            file.attrs["classes"] = [f"class {i}" for i in range(classes)]


def of_run(place, data, *words):
    """Start, first validation and checkpoint; then all that reads the run."""
    place.fresh()
    yield "train", place.train(data, *words)
    yield "resume", place.train(data, *words, steps=2)
    newest = max((place.path / "run/checkpoints").glob("*.h5"))
    yield "plan", place.lockstep("plan", place.path / "deck.ini", "--data.train", data, *words,
                                 "--run.directory", place.path / "none")
    yield "checkpoint info", place.lockstep("checkpoint", "info", newest)
    yield "checkpoint verify", place.lockstep("checkpoint", "verify", newest)
    yield "checkpoint diff", place.lockstep("checkpoint", "diff", newest, place.path / "run/checkpoints/step-00000000.h5",
                                            good=(0, 1))
    safetensors = place.path / "model.safetensors"
    safetensors.unlink(missing_ok=True)
    yield "checkpoint export", place.lockstep("checkpoint", "export", newest, safetensors, "--format", "safetensors")
    yield "safetensors info", place.lockstep("checkpoint", "info", safetensors)
    yield "report", place.lockstep("report", place.path / "run", "--overwrite")
    yield "watch", place.lockstep("watch", place.path / "run")


def classes(place, n):
    labelled(place.path / "set.h5", 2048, 8, n)
    data = place.path / "set.h5"
    yield "data info", place.lockstep("data", "info", data)
    yield from of_run(place, data, "--data.validation", data)
    yield "evaluate", place.lockstep("evaluate", place.path / "deck.ini", place.path / "run", "--data.test", data)


def classes_import(place, n):
    table = place.path / "table.csv"
    table.write_text("x,y\n" + "".join(f"{i % 7},name {i}\n" for i in range(n)))
    yield "import", place.lockstep("data", "import", "series", table, place.path / "set.h5", "--target", "y",
                                   "--overwrite")


def series_import(place, n):
    table = place.path / "table.csv"
    table.write_text("g,x\n" + "".join(f"name {i},{i % 7}\n" for i in range(n)))
    yield "import", place.lockstep("data", "import", "series", table, place.path / "set.h5", "--group", "g",
                                   "--overwrite")


def text_import(place, n):
    """A text without blanks: one word."""
    text = place.path / "text.txt"
    text.write_bytes(numpy.random.default_rng(0).integers(ord("a"), ord("z") + 1, n, dtype="u1").tobytes())
    yield "import", place.lockstep("data", "import", "text", text, place.path / "set.h5", "--vocabulary", 2000, "--overwrite")


def columns(place, n):
    table = place.path / "table.csv"
    rows = "".join(",".join(str((i * 7 + row) % 13) for i in range(n)) + f",{'ab'[row % 2]}\n" for row in range(4))
    table.write_text(",".join(f"c{i}" for i in range(n)) + ",y\n" + rows)
    data = place.path / "set.h5"
    yield "import", place.lockstep("data", "import", "series", table, data, "--target", "y", "--overwrite")
    yield "data info", place.lockstep("data", "info", data)
    yield from of_run(place, data, "--data.batch", 2)


def files(place, n):
    for old in place.path.glob("part-*.h5"):
        old.unlink()
    labelled(place.path / "part-000000.h5", 2, 4, 2)
    content = (place.path / "part-000000.h5").read_bytes()
    for i in range(1, n):
        (place.path / f"part-{i:06}.h5").write_bytes(content)
    data = f"{place.path}/part-*.h5"
    place.fresh()
    yield "train", place.train(data, "--data.batch", 2)
    yield "resume", place.train(data, "--data.batch", 2, steps=2)
    yield "plan", place.lockstep("plan", place.path / "deck.ini", "--data.train", data, "--data.batch", 2,
                                 "--run.directory", place.path / "none")


def tensors(place, n):
    labelled(place.path / "set.h5", 256, 4, 2)
    yield from of_run(place, place.path / "set.h5", "--model.hidden", ",".join(["2"] * (n // 2)))


def replicas(place, n):
    labelled(place.path / "set.h5", 2 * n, 4, 2)
    place.fresh()
    words = ("--data.batch", 1, "--run.replicas", n)
    yield "train", place.train(place.path / "set.h5", *words)
    yield "resume", place.train(place.path / "set.h5", *words, steps=2)
    yield "plan for so many ranks", place.lockstep("plan", place.path / "deck.ini", "--data.train", place.path / "set.h5",
                                                   *words, "--run.directory", place.path / "none", "--ranks", n)


def epochs(place, n):
    """The records of a run of one epoch, again and again."""
    labelled(place.path / "set.h5", 256, 4, 2)
    data = place.path / "set.h5"
    place.fresh()
    place.train(data, "--data.validation", data, "--train.epochs", 1, "--train.steps", 0)
    lines = [json.loads(line) for line in (place.path / "run/metrics.jsonl").read_text().splitlines()]
    often = [line for line in lines if line["event"] in ("step", "epoch", "validation", "checkpoint")]
    with open(place.path / "run/metrics.jsonl", "w") as file:
        file.write(json.dumps(lines[0]) + "\n")
        for i in range(1, n + 1):
            for line in often:
                file.write(json.dumps({**line, "step": i, **({"epoch": i} if "epoch" in line else {})}) + "\n")
        file.write(json.dumps({**lines[-1], "step": n}) + "\n")
    yield "report", place.lockstep("report", place.path / "run", "--overwrite")
    yield "watch", place.lockstep("watch", place.path / "run")


def runs(place, n):
    labelled(place.path / "set.h5", 256, 4, 2)
    place.fresh()
    place.train(place.path / "set.h5")
    for i in range(n):
        to = place.path / f"runs/{i:06}"
        to.mkdir(parents=True, exist_ok=True)
        for name in ("metrics.jsonl", "history.jsonl", "deck.ini"):
            shutil.copy(place.path / "run" / name, to / name)
    yield "report", place.lockstep("report", *sorted((place.path / "runs").iterdir())[:n],
                                   "--output", place.path / "report", "--overwrite")


AXES = {"classes": (classes, 10_000), "classes-import": (classes_import, 10_000), "series-import": (series_import, 500),
        "text-import": (text_import, 100_000),
        "columns": (columns, 10_000), "files": (files, 1000), "tensors": (tensors, 1000), "replicas": (replicas, 1000),
        "epochs": (epochs, 10_000), "runs": (runs, 10)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("axes", nargs="*", default=[], help=f"of {', '.join(AXES)}; default: all")
    parser.add_argument("--lockstep", default=str(ROOT / "build/lockstep"))
    parser.add_argument("--limit", type=float, default=20)
    options = parser.parse_args()
    worst = 0
    print(f"{'':16}{'command':26}{'n':>9}{'s':>9}{'MiB':>8}{'10 n':>9}{'s':>9}{'MiB':>8}{'ratio':>8}")
    for name in options.axes or AXES:
        axis, n = AXES[name]
        with tempfile.TemporaryDirectory() as directory:
            place = Place(options, pathlib.Path(directory))
            start = {command: used[0] for command, used in axis(place, max(n // 100, 4))}
            few = dict(axis(place, n))
            for command, (seconds, memory, _) in axis(place, 10 * n):
                before, memory_before, _ = few[command]
                own = max(before - start[command], 0.1)  # processor time less than that says nothing
                ratio = max(seconds - start[command], 0) / own
                worst = max(worst, ratio)
                print(f"{name:16}{command:26}{n:9,}{before:9.2f}{memory_before:8.0f}{10 * n:9,}{seconds:9.2f}"
                      f"{memory:8.0f}{ratio:8.1f}{'  !' if ratio > options.limit else ''}", flush=True)
    sys.exit(worst > options.limit)


main()
