"""Built-in models as programs of PyTorch (lockstep_builtin): they have the same keys, tensors and first weights, and
their losses, weights and statistics are those of the built-in model up to rounding; each continues a run of the other.
The short form draws some of the models."""
import os
import re
import subprocess
import sys

import h5py
import numpy as np

from harness import LOCKSTEP, LONG, SOURCE, Scratch, check, checkpoints, records, run, some
from small_models import deck_of, write_data

import lockstep_builtin  # of the path that small_models knows
import lockstep_export
import lockstep_models

STEPS = 4
PLAIN = ["--run.replicas", 1, "--data.batch", 16, "--optimizer.name", "sgd", "--optimizer.learning-rate", "0.00390625",
         "--monitor.weight-hash", "true"]


def train(deck, where, *options):
    return run(["train", deck, "--run.directory", where, *options], 1)


def without_dropout(scratch, name):
    """Its masks are drawn from other random numbers on each side."""
    deck = deck_of(scratch, name, STEPS)
    deck.write_text(re.sub("dropout = .*", "dropout = 0", deck.read_text()))
    return deck


def exported(file):
    return ["--model.name", "export", "--model.file", file, "--task.kind", "export"]


def losses(where):
    return [each["loss"] for each in records(where, "step")]


def tensors(file):
    found = {}
    with h5py.File(file) as saved:
        saved["model"].visititems(
            lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def check_keys():
    """Keys and default values are those that the program lists, and each model is here or refused with its reason."""
    listed = {}
    for line in run(["models"]).expect(0).text.splitlines():
        if found := re.match(r"([a-z0-9-]+): ", line):
            own = listed[found[1]] = {}
        elif found := re.match(r"    model\.([a-z0-9-]+) \((.*?)\)  ", line):
            own[found[1]] = found[2]
    for name, own in listed.items():
        check(name in lockstep_models.KINDS or name in lockstep_models._REASONS, f"{name} is here, or has a reason")
        if name in lockstep_models.KINDS:
            check(own == lockstep_models.KINDS[name][1], f"the keys of {name}: {own}")


def compare(scratch, name):
    """Both sides from the deck's first weights; the last checkpoints hold the same up to rounding."""
    deck, file = without_dropout(scratch, name), scratch / f"{name}.pt2"
    lockstep_builtin.save(deck, file, program=LOCKSTEP)
    train(deck, scratch / f"{name}-built-in", *PLAIN).expect(0)
    train(deck, scratch / f"{name}-exported", *PLAIN, *exported(file)).expect(0)
    ours, theirs = (losses(scratch / f"{name}-{side}") for side in ("built-in", "exported"))
    check(len(ours) == STEPS and np.allclose(ours[0], theirs[0], rtol=1e-6, atol=0), f"{name}: {ours[0]} and {theirs[0]}")
    check(np.allclose(ours, theirs, rtol=1e-4, atol=0), f"{name}: {ours} and {theirs}")
    same = [all(np.array_equal(a[key], b[key]) for key in a) if a.keys() == b.keys() else sorted(a.keys() ^ b.keys())
            for a, b in zip(*([tensors(each) for each in checkpoints(scratch / f"{name}-{side}")]
                              for side in ("built-in", "exported")))]
    check(same[0] is True, f"{name}: the same first weights and names: {same}")
    first, ours, theirs = (tensors(checkpoints(scratch / f"{name}-{side}")[at])
                           for side, at in (("built-in", 0), ("built-in", -1), ("exported", -1)))
    largest = max(np.abs(ours[key].astype(float) - first[key]).max() for key in ours)
    check(largest > 1e-4, f"{name} has learnt: {largest}")
    apart = {key: np.abs(ours[key].astype(float) - theirs[key]).max() for key in ours}
    check(max(apart.values()) <= 1e-3 * largest, f"{name}: {apart}, of {largest}")
    print(name, "the same bits" if same[-1] is True else f"apart {max(apart.values()):.1e} of {largest:.1e}", flush=True)
    return deck, file


def check_resumed(scratch, deck, file):
    """Weights, statistics and the optimizer's state go from one to the other and back."""
    plain = [*PLAIN, "--optimizer.momentum", 0.5]
    train(deck, scratch / "whole", *plain, "--train.steps", 12).expect(0)
    turns = (plain, [*plain, *exported(file)])
    train(deck, scratch / "both", *turns[0], "--train.steps", 4).expect(0)
    train(deck, scratch / "both", *turns[1], "--train.steps", 8).expect(64, "model.name = export")
    train(deck, scratch / "both", *turns[1], "--train.steps", 8, "--force").expect(0, "resumed from")
    train(deck, scratch / "both", *turns[0], "--train.steps", 12, "--force").expect(0, "resumed from")
    ours, theirs = losses(scratch / "whole"), losses(scratch / "both")
    check(len(ours) == 12 and np.allclose(ours, theirs, rtol=1e-3), f"by turns: {ours} and {theirs}")
    newest = checkpoints(scratch / "both")[-1]
    model = lockstep_builtin.load(newest, program=LOCKSTEP)
    found = tensors(newest)
    check(all(np.array_equal(found[name.replace(".", "/")].reshape(value.shape), value.numpy())
              for name, value in model.state_dict().items()), "load() has the checkpoint's weights")
    train(deck, scratch / "later", *plain, *exported(file), "--model.weights", newest).expect(0)
    theirs = checkpoints(scratch / "cnn-exported")[-1]
    run(["evaluate", deck, theirs]).expect(64, "model.name = cnn")
    run(["evaluate", deck, theirs, "--force"]).expect(0, "accuracy")


def check_smoothed(scratch):
    """Training learns smoothed labels; validation does not."""
    deck, smoothed = without_dropout(scratch, "mlp"), ("--task.label-smoothing", "0.25")
    lockstep_builtin.save(deck, scratch / "smoothed.pt2", program=LOCKSTEP, keys=smoothed)
    train(deck, scratch / "smoothed", *PLAIN, *smoothed).expect(0)
    train(deck, scratch / "smoothed-exported", *PLAIN, *exported(scratch / "smoothed.pt2")).expect(0)
    found = [losses(scratch / where) + [records(scratch / where, "validation")[-1][key] for key in ("loss", "accuracy")]
             for where in ("smoothed", "smoothed-exported")]
    check(np.allclose(*found, rtol=1e-5), f"smoothed: {found}")


def check_command(scratch):
    """As people call it, with what is refused."""
    def command(*words):
        done = subprocess.run([sys.executable, "-m", "lockstep_builtin", *map(str, words), "--program", LOCKSTEP],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SOURCE / "python"})
        return done.returncode, done.stdout + done.stderr

    deck = deck_of(scratch, "mlp", STEPS)
    code, text = command(deck, scratch / "command.pt2", "--model.hidden", 8)
    check(code == 0 and f"--model.file {scratch}/command.pt2 --task.kind export" in text, text)
    shapes = {name: tuple(value.shape) for name, value in lockstep_builtin.load(deck, program=LOCKSTEP,
                                                                              keys=("--model.hidden", "8")).state_dict().items()}
    check(shapes["layers.output.weight"] == (3, 8), f"a key of the command line: {shapes}")
    run(["checkpoint", "export", deck, scratch / "whole.safetensors"]).expect(0)
    content = (scratch / "whole.safetensors").read_bytes()
    (scratch / "cut.safetensors").write_bytes(content[:-4])
    (scratch / "other.safetensors").write_bytes((8).to_bytes(8, "little") + b"[1, 2]  ")
    for words, code, why in some((
            ((scratch / "cut.safetensors", "no.pt2"), 65, "is not a complete safetensors file"),
            ((scratch / "other.safetensors", "no.pt2"), 65, "is not a complete safetensors file"),
            ((deck_of(scratch, "lmu-asr", STEPS), "no.pt2"), 64, "task.kind = ctc"),
            ((deck_of(scratch, "mlp-policy", STEPS), "no.pt2"), 64, "task.kind = ppo"),
            ((deck_of(scratch, "script", STEPS), "no.pt2"), 64, "its layers are in model.file already"),
            ((deck, "no.pt2", "--task.class-weights", "balanced"), 64, "task.class-weights = balanced"),
            ((deck, "no.pt2", "--model.hidden", "many"), 64, "model.hidden = many"),
            ((deck, "no.pt"), 64, "no.pt does not end with .pt2"),
            ((deck, "none/no.pt2"), 73, "none is no directory"),
            ((deck, scratch / "command.pt2"), 73, "add --overwrite"),
            ((scratch / "none.ini", "no.pt2"), 66, "none.ini"),
            ((scratch / "none.safetensors", "no.pt2"), 66, "none.safetensors")), 3):
        found, text = command(*words)
        check(found == code and why in text, f"exit code {found}: {text}")
    check(not (SOURCE / "no.pt2").exists() and not os.path.exists("no.pt2"), "nothing is written of what is refused")


def check_export_of_decks(scratch):
    """The weights that a run begins with, as a file."""
    deck = deck_of(scratch, "mlp", STEPS)
    run(["checkpoint", "export", deck, scratch / "first.h5", *PLAIN[:2]]).expect(0, "with the weights that its run begins with")
    train(deck, scratch / "first", *PLAIN[:2]).expect(0)
    ours, theirs = tensors(checkpoints(scratch / "first")[0]), tensors(scratch / "first.h5")
    check(ours.keys() == theirs.keys() and all(np.array_equal(ours[key], theirs[key]) for key in ours), "the first weights")
    for words, why in some((((deck, scratch / "no.onnx"), "--format onnx cannot be used with a deck"),
                            ((deck, scratch / "no.safetensors", "--names", "timm"), "--names timm cannot be used"))):
        run(["checkpoint", "export", *words]).expect(64, why)
    run(["checkpoint", "export", deck, scratch / "no.safetensors"], 2).expect(64, "exported by one rank")
    check(not list(scratch.glob("no.*")), "nothing is written")


def check_compiled(scratch, deck, file):
    lockstep_export.compile(file)
    train(deck, scratch / "compiled", *PLAIN, *exported(file), "--model.compiled", "require").expect(0)
    ours, theirs = losses(scratch / "cnn-built-in"), losses(scratch / "compiled")
    check(np.allclose(ours, theirs, rtol=1e-3), f"compiled: {ours} and {theirs}")


with Scratch() as scratch:
    write_data(scratch)
    check_keys()
    cnn = compare(scratch, "cnn")
    for name in some([name for name in lockstep_models.KINDS if name != "cnn"], 2):
        compare(scratch, name)
    check_resumed(scratch, *cnn)
    check_smoothed(scratch)
    check_command(scratch)
    check_export_of_decks(scratch)
    if LONG:  # the C++ compiler takes most of a minute
        check_compiled(scratch, *cnn)
