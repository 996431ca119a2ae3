"""Smaller models: learnt from a teacher, pruned, quantised. The same bits on any number of ranks and through a
kill; what cannot be is refused before the first step."""
import shutil

import h5py
import numpy as np
import torch

from harness import (DATA, DECK, LONG, Scratch, check, check_same, checkpoints, flip, records, run, some, train)
from harness_compress import SHORT, alike, measured
from small_models import lockstep_export

def distilled(scratch, teacher):
    options = ("--distill.teacher", teacher / "best.h5", "--distill.weight", 0.7, "--model.channels", "2, 4")
    # Of another width, and of the same.
    hidden = ("--distill.hidden", "features.pool1, classifier.relu:classifier.hidden", "--distill.hidden-weight", 0.5)
    taught = alike(scratch, "hidden", (*options, *hidden), ranks=(1, 2, 4) if LONG else (1, 2))
    step = records(taught, "step")[-1]
    parts = 0.3 * step["target_loss"] + 0.7 * step["teacher_loss"] + 0.5 * step["hidden_loss"]
    check(abs(step["loss"] - parts) < 1e-5 and step["hidden_loss"] > 0.01, f"parts of {step}")
    run_ = scratch / "student"
    train(run_, *SHORT, *options).expect(0)
    step = records(run_, "step")[-1]
    check(abs(step["loss"] - 0.3 * step["target_loss"] - 0.7 * step["teacher_loss"]) < 1e-5, f"parts of {step}")
    if LONG:
        alike(scratch, "student", options, ranks=(1, 2, 4))
        alike(scratch, "hidden-dp", (*options, *hidden, "--communication.sync-batch-norm", "true"), ranks=(1, 2))
        alike(scratch, "hidden-bf16", (*options, *hidden, "--precision.compute", "bf16"), ranks=(1, 2))
        for precision in ("bf16", "fp16"):
            alike(scratch, precision, (*options, "--precision.compute", precision), ranks=(1, 2))
        alike(scratch, "threads", (*options, "--communication.sync-batch-norm", "true"), ranks=(1, 2))
    # A script, or tensors, teach as the file does that they were exported from.
    tensors = scratch / "teacher.safetensors"
    run(["checkpoint", "export", teacher / "best.h5", tensors]).expect(0)
    script = scratch / "teacher.pt"
    run(["checkpoint", "export", teacher / "best.h5", script]).expect(0)
    for name, more in some((("script", ("--distill.teacher", script)),
                            ("tensors", ("--distill.teacher", tensors, "--distill.teacher-deck", teacher / "deck.ini"))),
                           1):
        train(scratch / name, *SHORT, *options, *more).expect(0)
        losses = [[each["loss"] for each in records(path, "step")] for path in (run_, scratch / name)]
        check(np.allclose(*losses, rtol=1e-4 if name == "script" else 0, atol=0), f"a teacher as {name}: {losses}")
    # Another teacher under the same name is noticed when the run is resumed.
    file = scratch / "teacher.h5"
    shutil.copy(teacher / "best.h5", file)
    kept = scratch / "kept"
    own = (*SHORT, *options, "--distill.teacher", file)
    train(kept, *own).expect(0)
    train(scratch / "other", *SHORT, "--run.seed", 5).expect(0)
    shutil.copy(scratch / "other/best.h5", file)
    train(kept, *own, "--train.steps", 9).expect(64, "its weights have changed")
    train(kept, *own, "--train.steps", 9, "--force").expect(0)
    recorded_outputs(scratch, teacher)
    program_as_teacher(scratch, options)
    for layers, phrase, *more in some(
            [("features.pool3:features.pool1", "its layers are features.conv1, features.norm1"),
             ("features.pool1:pool", "the teacher has no layer pool"),
             ("features.pool1:classifier.relu", "only one, the width, differs"),
             ("features.pool1", "does not name its layers", "--distill.teacher", script),
             ("features.pool1", "gradient checkpointing", "--precision.gradient-checkpointing", "true")], 2):
        train(scratch / "no-layer", *SHORT, *options, "--distill.hidden", layers, *more).expect(64, phrase)
    refused_teachers(scratch, teacher, tensors)


def recorded_outputs(scratch, teacher):
    """What the teacher returns for data.train, computed once into a file, teaches as the teacher itself does."""
    best, deck = teacher / "best.h5", teacher / "deck.ini"

    def of(name, change):
        """The first training samples, changed."""
        path = scratch / f"{name}.h5"
        with h5py.File(DATA / "train.h5") as data, h5py.File(path, "w") as made:
            arrays = {"inputs": data["inputs"][:2048], "targets": data["targets"][:2048]}
            change(arrays)
            made.update(arrays)
            made.attrs.update({key: value for key, value in data.attrs.items() if key != "format"})
        return path

    def shorter(arrays):
        arrays.update({name: values[:-64] for name, values in arrays.items()})

    def brighter(arrays):
        arrays["inputs"] = 255 - arrays["inputs"]

    def fewer(arrays):
        arrays["targets"] = arrays["targets"] % 5

    small = of("small", lambda arrays: None)
    data = ("--data.train", small)
    files = [scratch / f"outputs-{ranks}.h5" for ranks in (1, 3)]
    for file, ranks in zip(files, (1, 3)):
        text = run(["evaluate", deck, best, "--outputs", file, *data], ranks=ranks).expect(
            0, "training: 2,048 samples", f"are in {file}").text
        run(["checkpoint", "verify", file]).expect(0, "all bytes are intact")
    check(files[0].read_bytes() == files[1].read_bytes(), "the same outputs on any number of ranks")
    with h5py.File(files[0]) as file, h5py.File(small) as learnt:
        outputs, targets = file["outputs"][...], learnt["targets"][...]
        check(outputs.shape == (2048, 10) and outputs.dtype == np.float32, f"outputs of {outputs.shape}")
        accuracy = float(text.split("accuracy ")[1].split(",")[0])
        check(abs((outputs.argmax(1) == targets).mean() - accuracy) < 1e-5, "in the order of the samples")
        check(file["record"].attrs["outputs"] > 0 and file["record"].attrs["teacher"] > 0, "hashes are noted")
    run(["evaluate", deck, best, "--outputs", files[0], *data]).expect(73, "already exists")
    run(["evaluate", deck, best, "--outputs", scratch / "nowhere/outputs.h5"]).expect(73, "there is no directory")
    # A share of data.train is left out, so that a sample's number is not that of its outputs.
    own = ("--model.channels", "2, 4", "--distill.weight", 0.7, "--data.validation", "10 %", *data)
    read = alike(scratch, "recorded", (*own, "--distill.outputs", files[0]))
    check("learning from the outputs in" in (read / "log.txt").read_text(), "it is told")
    live = scratch / "live"
    train(live, *SHORT, *own, "--distill.teacher", best).expect(0)
    # The teacher ran on batches of another size, for which libraries may add in another order.
    for part in ("loss", "target_loss", "teacher_loss"):
        pair = [[step[part] for step in records(path, "step")] for path in (read, live)]
        check(np.allclose(*pair, rtol=1e-4, atol=0), f"outputs of a file, or of the teacher: {part} {pair}")
    # Other outputs under the same name are noticed when the run is resumed.
    file = scratch / "outputs.h5"
    shutil.copy(files[0], file)
    kept, options = scratch / "kept-outputs", (*SHORT, *own, "--distill.outputs", file)
    train(kept, *options).expect(0)
    other = scratch / "other/best.h5"
    run(["evaluate", scratch / "other/deck.ini", other, "--outputs", file, "--overwrite", *data], ranks=2).expect(0)
    train(kept, *options, "--train.steps", 9).expect(64, "it holds other outputs")
    train(kept, *options, "--train.steps", 9, "--force").expect(0)

    def refused(*options, phrase, code=64):
        wrong = scratch / "wrong-outputs"
        train(wrong, *SHORT, *data, "--model.channels", "2, 4", *options).expect(code, phrase)
        check(not checkpoints(wrong), "refused before the first step")

    outputs = ("--distill.outputs", files[0])
    spoilt = scratch / "spoilt-outputs.h5"
    shutil.copy(files[0], spoilt)
    flip(spoilt, 20000)
    for more, phrase, *code in some(
            [(("--data.augment", "flip"), "data.augment = flip"),
             (("--distill.hidden", "features.pool1"), "distill.hidden = features.pool1"),
             (("--distill.teacher", best), "a run can learn from only one of the two"),
             (("--distill.outputs", best), "does not hold the outputs of a model"),
             (("--distill.outputs", checkpoints(teacher)[-1]), "does not hold the outputs of a model"),
             (("--distill.outputs", scratch / "none.h5"), "none.h5", 66),
             (("--distill.outputs", spoilt), "spoilt-outputs.h5", 65)], 3):
        refused(*outputs, *more, phrase=phrase, code=code[0] if code else 64)
    for name, change, phrase in some([("shorter", shorter, "but data.train has"),
                                      ("brighter", brighter, "it is for other samples"),
                                      ("fewer", fewer, "it is for other samples")], 2):
        refused(*outputs, "--data.train", of(name, change), phrase=phrase)
    refused(*outputs, "--task.kind", "regression", "--task.metric", "mae",
            phrase="was trained for task.kind = classification")


def program_as_teacher(scratch, options):
    """The outputs of modules of a program of torch.export, by their names in Python."""
    program = scratch / "teacher.pt2"
    layers = torch.nn.Flatten(), torch.nn.Linear(784, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    lockstep_export.save(torch.nn.Sequential(*layers), (torch.rand(4, 28, 28),), program)
    path = scratch / "program"
    train(path, *SHORT, *options, "--distill.teacher", program, "--distill.hidden", "classifier.relu:2").expect(0)
    check(records(path, "step")[-1]["hidden_loss"] > 0, "a layer of a program teaches")
    cut = scratch / "cut.pt2"
    cut.write_bytes(program.read_bytes()[:-100])
    train(scratch / "cut", *SHORT, *options, "--distill.teacher", cut).expect(65, "cut.pt2", "cut off or damaged")


def refused_teachers(scratch, teacher, tensors):
    wrong = scratch / "wrong"
    spoilt = scratch / "spoilt.h5"
    shutil.copy(teacher / "best.h5", spoilt)
    with open(spoilt, "r+b") as file:
        file.seek(6000)
        file.write(b"spoilt")
    torch.jit.script(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 9))).save(str(scratch / "nine.pt"))
    generator = np.random.default_rng(0)

    def other(name, shape, targets, classes, *options):
        """A model of other samples, other classes or another task."""
        with h5py.File(scratch / f"{name}.h5", "w") as file:
            file["inputs"] = generator.integers(0, 255, shape, np.uint8)
            file["targets"] = targets(shape[0])
            file.attrs["classes"] = classes
        train(scratch / name, *SHORT, "--data.train", scratch / f"{name}.h5", "--data.validation", "",
              "--data.global-batch", 16, "--model.dropout", 0, "--train.steps", 2, *options).expect(0)
        return checkpoints(scratch / name)[-1]

    def wide():
        return other("wide", (64, 30, 30), lambda n: np.arange(n) % 10, [str(i) for i in range(10)])

    def few():
        return other("few", (64, 28, 28), lambda n: np.arange(n) % 3, list("abc"))

    def reals():
        return other("reals", (64, 28, 28), lambda n: generator.normal(size=(n, 10)).astype(np.float32), [],
                     "--task.kind", "regression", "--task.metric", "mae")

    cases = [(scratch / "none.h5", 66, "none.h5"), (tensors, 64, "distill.teacher-deck"),
             (tensors, 64, "does not fit", "--distill.teacher-deck", DECK),  # of other widths
             (spoilt, 65, "spoilt.h5"), (scratch / "nine.pt", 64, "distill.teacher"),
             (teacher / "best.h5", 64, "prune.begin", "--prune.pattern", "2:4", "--prune.begin", 8)]
    others = [(wide, 64, "distill.teacher"), (few, 64, "its classes are a, b, c"),
              (reals, 64, "trained for task.kind = regression")]
    for file, code, phrase, *options in [*some(cases, 2), *some(others, 1)]:
        file = file() if callable(file) else file
        train(wrong, *SHORT, "--distill.teacher", file, *options).expect(code, phrase)
        check(not checkpoints(wrong), "refused before the first step")


def zeros_of(path):
    found = {}
    with h5py.File(path) as file:
        def look(name, item):
            if isinstance(item, h5py.Dataset) and item.ndim > 1:
                found[name] = item[...]
        file["model"].visititems(look)
    return found


def pruned(scratch):
    plain = alike(scratch, "two-of-four", ("--prune.pattern", "2:4", "--prune.begin", 3),
                  ranks=(1, 2, 4) if LONG else (1, 2))
    weights = zeros_of(checkpoints(plain)[-1])
    for name in ("classifier/hidden/weight", "classifier/output/weight"):
        groups = weights[name].reshape(-1, 4)
        check(((groups == 0).sum(1) == 2).all(), f"{name}: two of four weights are 0")
    groups = weights["features/conv2/weight"].transpose(0, 2, 3, 1).reshape(-1, 4)
    check(((groups == 0).sum(1) == 2).all(), "of four input channels two")
    check((weights["features/conv1/weight"] != 0).all(), "one input channel has no groups of four")
    check("pruned after step 3" in (plain / "log.txt").read_text(), "it is told")
    options = ("--prune.pattern", "unstructured", "--prune.sparsity", 0.8, "--prune.begin", 2, "--prune.end", 7,
               "--prune.every", 2, "--prune.score", "taylor", "--optimizer.ema", 0.9)
    taylor = alike(scratch, "taylor", options, dies=7)  # resumed between two removals
    for file in (checkpoints(taylor)[-1], taylor / "best.h5"):
        weights = zeros_of(file)
        share = sum((each == 0).sum() for each in weights.values()) / sum(each.size for each in weights.values())
        check(abs(share - 0.8) < 0.001, f"{share} of the weights of {file} are 0")
    if LONG:
        for rule in ("sgd", "lars", "lamb"):
            alike(scratch, rule, ("--optimizer.name", rule, "--prune.pattern", "unstructured", "--prune.begin", 2))
        for more in (("--optimizer.update", "replicated"), ("--precision.compute", "bf16"),
                     ("--communication.compression", "bf16"), ("--prune.scope", "layer")):
            alike(scratch, more[0][2:], (*options, *more))
    # Weights that a run starts from may be pruned at once, and a run that was pruned is trained on.
    train(scratch / "at-once", *SHORT, "--model.weights", plain / "best.h5", "--prune.pattern", "2:4").expect(
        0, "pruned after step 0")
    for wrong, phrase in some(((("2:2",), "N:M"), (("0:4",), "N:M"), (("2:400",), "N:M"), (("some",), "N:M"),
                          (("16:32",), "cannot be met"), (("unstructured", "--prune.begin", 8), "no step would train"),
                          (("unstructured", "--prune.score", "taylor"), "prune.begin"),
                          (("unstructured", "--prune.sparsity", 0.999), "would be removed"),
                          (("unstructured", "--prune.sparsity", 1.5), "prune.sparsity"),
                          (("2:4", "--prune.except", "wait*"), "matches no parameter")), 2):
        if wrong[0] == "16:32":
            wrong = (*wrong, "--prune.except", "classifier.hidden.*")
        train(scratch / "refused", *SHORT, "--prune.pattern", *wrong).expect(64, phrase)
        shutil.rmtree(scratch / "refused", ignore_errors=True)


def quantised(scratch, teacher):
    best, deck = teacher / "best.h5", teacher / "deck.ini"
    exact = measured(deck, best)
    for method in (*some(("minmax", "percentile"), 1), "mse"):
        small = scratch / f"{method}.h5"
        run(["checkpoint", "quantise", best, small, "--method", method, "--samples", 200]).expect(0, "in int8")
        run(["checkpoint", "verify", small]).expect(0, "all bytes are intact")
        lines = {measured(deck, small, ranks=ranks)
                 for ranks in ((1, 2, 4) if LONG else (1, 4) if method == "mse" else (2,))}
        check(len(lines) == 1, f"int8 has the same figures on any number of ranks: {lines}")
        accuracies = [float(line.split("accuracy ")[1].split(",")[0]) for line in (exact, *lines)]
        check(abs(accuracies[0] - accuracies[1]) < 0.02, f"{method}: {accuracies}")
        check(lines != {exact}, "int8 was used")
    again = scratch / "again.h5"
    run(["checkpoint", "quantise", best, again, "--samples", 200]).expect(0)
    check(again.read_bytes() == small.read_bytes(), "the same when made twice")
    run(["checkpoint", "quantise", best, again]).expect(73)
    run(["checkpoint", "quantise", teacher, again, "--overwrite"]).expect(0)  # a checkpoint
    check(again.stat().st_size < 0.5 * best.stat().st_size, "smaller, even where the record is most of the file")
    # What cannot be.
    for command, code in some(((["evaluate", DECK, small, "--data.validation", DATA / "test.h5", "--data.train",
                            DATA / "train.h5", "--model.channels", "8, 16, 32"], 65),
                          (["checkpoint", "export", small, scratch / "no.safetensors"], 64),
                          (["checkpoint", "export", small, scratch / "no.pt"], 64),
                          (["checkpoint", "quantise", small, scratch / "no.h5"], 64),
                          (["checkpoint", "quantise", best, scratch / "no.h5", "--method", "guess"], 64),
                          (["checkpoint", "quantise", best, scratch / "no.h5", "--samples", 0], 64),
                          (["checkpoint", "quantise", DECK, scratch / "no.h5"], 65),
                          (["checkpoint", "quantise", best, scratch / "none/no.h5"], 73),
                          (["checkpoint", "quantise", best, scratch / "no.h5", "--data.train", "none.h5"], 66)), 3):
        run(command).expect(code)
    train(scratch / "refused", *SHORT, "--model.channels", "8, 16", "--model.weights", small).expect(64, "quantised")
    shutil.rmtree(scratch / "refused", ignore_errors=True)
    train(scratch / "refused", *SHORT, "--distill.teacher", small).expect(64, "quantised")
    spoilt = scratch / "hurt.h5"
    for at in some(range(5000, small.stat().st_size, small.stat().st_size // 8), 2):
        shutil.copy(small, spoilt)
        flip(spoilt, at)
        run(["evaluate", deck, spoilt]).expect(65)


with Scratch() as scratch:
    teacher = scratch / "teacher"
    train(teacher, *SHORT, "--model.channels", "8, 16", "--train.steps", 16, "--train.validate-every", 16).expect(0)
    distilled(scratch, teacher)
    pruned(scratch)
    quantised(scratch, teacher)
