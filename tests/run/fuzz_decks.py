"""Decks of all kinds of mistakes, drawn at random: each ends with 0, or with one line that says what is
wrong and where in the deck, never with a crash, a "bug" or not at all. 500 decks in the long form."""
import os
import random
import re

import h5py
import numpy as np

from harness import LONG, SEED, Scratch, check, run

DECKS = 500 if LONG else 8
LIMIT = 300
# Of a deck: wrong, or of a file that is not there. Of what a deck asks for: data that does not fit,
# a device that is not here, too little memory, a directory that cannot be made.
EXPECTED = (0, 64, 65, 66, 69, 71, 73)

BASE = """[run]
directory = {directory}
seed = 3
replicas = 2

[data]
train = {data}
validation = 10 %
batch = 8
workers = 1

[model]
name = mlp
hidden = 8

[task]
kind = classification

[optimizer]
name = adamw
learning-rate = 0.01
accumulate = 1

[schedule]
name = cosine
warmup-steps = 1

[checkpoint]
every-steps = 2

[monitor]
progress = none
tensorboard = false
plots = false

[train]
steps = 3
epochs = 1
"""

# Keys of the model and of the task in BASE, which the program's list of all keys leaves out.
OWN_KEYS = ["model.hidden", "model.dropout", "task.class-weights", "task.label-smoothing"]
# What the command line says anyhow, and what draws pictures: that takes long, and is no matter of decks.
LEFT_OUT = ["run.directory", "monitor.plots"]


def keys_of_deck():
    """All keys, as the program tells them: one that is new is drawn without a word here."""
    told = run(["train", "--help"]).expect(0).text
    listed = re.findall(r"^  ([a-z-]+\.[a-z0-9-]+) \(", told[told.index("Keys of the deck"):], re.M)
    check("run.seed" in listed and "train.steps" in listed, f"the first and the last are told: {listed}")
    check(set(LEFT_OUT) < set(listed), f"what is left out is a key: {LEFT_OUT}")
    return [key for key in listed if key not in LEFT_OUT] + OWN_KEYS


VALUES = ["", "0", "-1", "1", "2", "3", "7", "1e999", "-1e999", "nan", "inf", "0x10", "1_000", "1e3", "1.5", "1,5",
          "0.1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e-320", "1e300",
          "true", "no", "maybe", "auto", "none", "all", "cpu", "cuda", "cuda:99", "gpu", "dp", "single", "10 %",
          "0 %", "100%", "0.5 %", "%", "flip", "crop:4", "crop:-1", "noise:1e9", "mask:1:1", "local:", "memory",
          "/dev/null", "/dev/zero", "/proc/self/mem", "/", ".", "..", "~", "*", "?", "[", "*.h5", ",", ",,", "a,b",
          "inputs", "targets", "weights", "inputs, inputs", "mlp", "cnn", "resnet", "script", "plugin:self:x",
          "plugin:/none.so:x", "lmu-asr", "mlp-policy", "ctc", "ppo", "regression", "segmentation", "loss", "f1",
          "balanced", "fp16", "bf16", "native", "powersgd", "sqrt", "lamb", "lars", "sgd", "step", "cosine", "plateau", "multi-step", "one-cycle", "3, 5", "block",
          "0.9, 0.99", "1, 1", "0.9", "x" * 5000, "7" * 400, "a/" * 2000, "é" * 300, "{data}", "{data},{data}",
          "{directory}", "%s%n%d", "$(true)", "`true`", "';--", "\\x00", "\t", "=", "[data]", "; comment"]


LIKELY = ["1", "2", "3", "0.1", "0.5", "0.9", "true", "false", "auto", "none"]  # most runs with them begin


def nasty_line(draw):
    return draw.choice(["[data", "data]", "[]", "=", "= 1", "x", "include", "include = {self}",
                        "include = {pipe}", "include = {folder}", "include = /dev/zero", "include = none.ini",
                        "include = {empty}", "[" + "s" * 3_000, "k" * 70_000, "[\x01]", "a = \x1b[31m",
                        "[run] # c", "[RUN]", "[data.]", "[.data]", "[a.b.c]\nd = 1", "batch = 1",
                        "hidden = 8", "channels = 4, 8", "\ufeff", "name = mlp"])


def deck_of(draw, keys, names):
    lines = BASE.splitlines()
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        what = draw.random()
        at = draw.randrange(len(lines) + 1)
        if what < 0.55:
            section, key = draw.choice(keys).split(".")
            lines = [line for line in lines if not line.startswith(f"{key} =")] if what < 0.5 else lines
            lines += [] if f"[{section}]" in lines else [f"[{section}]"]
            lines.insert(lines.index(f"[{section}]") + 1, f"{key} = {draw.choice(draw.choice((VALUES, LIKELY)))}")
        elif what < 0.75:
            lines.insert(at, nasty_line(draw))
        elif what < 0.85:
            lines.pop(min(at, len(lines) - 1))
        elif what < 0.9:
            lines.insert(at, draw.choice(lines))
        else:
            line = list(lines[min(at, len(lines) - 1)] or "x")
            line[draw.randrange(len(line))] = chr(draw.choice((draw.randrange(1, 0x300), 0x61)))
            lines[min(at, len(lines) - 1)] = "".join(line)
    text = "\n".join(lines)
    for name, value in names.items():
        text = text.replace("{" + name + "}", str(value))
    return damaged(draw, text.encode())


def damaged(draw, content):
    how = draw.random()
    if how < 0.04:
        return content[:draw.randrange(len(content))]
    if how < 0.07:
        at = draw.randrange(len(content))
        return content[:at] + draw.randbytes(draw.randrange(1, 40)) + content[at:]
    if how < 0.09:
        return content.decode().encode("utf-16")
    if how < 0.12:
        return content.replace(b"\n", b"\r\n")
    if how < 0.14:
        return b"\xef\xbb\xbf" + content
    return content


def look(result, deck, number):
    where = f"deck {number} of seed {SEED}: {deck.read_bytes()[:2000]!r}\n{result.text[-3000:]}"
    check(result.code in EXPECTED, f"exit code {result.code}: {where}")
    if result.code == 0:
        return
    causes = [line for line in result.text.splitlines() if "lockstep: root cause: " in line]
    check(len(causes) == 1, f"one line says it: {where}")
    check(len(causes[0]) < 5000, f"it can be read: {where}")
    # What is found in a step is of no single line, and what is missing is on none.
    if result.code in (64, 66) and " at step " not in causes[0] and " is not set" not in causes[0]:
        check(re.search(re.escape(str(deck)) + r"(:\d+|[ :)])", causes[0]) or "include" in causes[0],
              f"file and line are named: {where}")


with Scratch() as scratch:
    print(f"seed {SEED}, {DECKS} decks")
    draw = random.Random(SEED)
    numbers = np.random.default_rng(0)
    with h5py.File(scratch / "data.h5", "w") as file:
        file["inputs"] = numbers.uniform(size=(64, 6)).astype(np.float32)
        file["targets"] = np.arange(64) % 4
        file["weights"] = numbers.uniform(size=64)
    os.mkfifo(scratch / "pipe")
    (scratch / "empty.ini").touch()
    names = {"data": scratch / "data.h5", "directory": scratch / "run", "self": scratch / "deck.ini",
             "pipe": scratch / "pipe", "folder": scratch, "empty": scratch / "empty.ini"}
    (scratch / "deck.ini").write_text(BASE.format(**names))
    run(["train", scratch / "deck.ini"]).expect(0)
    keys = keys_of_deck()
    codes = {}
    for number in range(DECKS):
        deck = scratch / "deck.ini"
        deck.write_bytes(deck_of(draw, keys, names))
        result = run(["train", deck, "--run.directory", scratch / f"run{number}"],
                     ranks=2 if number % 8 == 7 else 0, limit=LIMIT)
        look(result, deck, number)
        codes[result.code] = codes.get(result.code, 0) + 1
    print("exit codes: " + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())))
