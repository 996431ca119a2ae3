"""Smaller models: learnt from a teacher, pruned, quantised. The same bits on any number of ranks and through a
kill; what cannot be is refused before the first step. The short form draws of each kind, and starts one rank where
their number does not matter."""
import shutil

import h5py
import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from harness import (DATA, DECK, LONG, Scratch, check, checkpoints, flip, records, run, some, train)
from harness_compress import SHORT, alike, measured
from small_models import lockstep_export

RANKS = 2 if LONG else 1


def exported(teacher, file):
    """The teacher in another file, which is written once."""
    if not file.exists():
        run(["checkpoint", "export", teacher / "best.h5", file]).expect(0)


def distilled(scratch, teacher):
    file = scratch / "teacher.h5"
    shutil.copy(teacher / "best.h5", file)
    options = ("--distill.teacher", file, "--distill.weight", 0.7, "--model.channels", "2, 4")
    # Of another width, and of the same.
    hidden = ("--distill.hidden", "features.pool1, classifier.relu:classifier.hidden", "--distill.hidden-weight", 0.5)
    taught = alike(scratch, "hidden", (*options, *hidden), ranks=(1, 2, 4) if LONG else (1, 2))
    step = records(taught, "step")[-1]
    parts = 0.3 * step["target_loss"] + 0.7 * step["teacher_loss"] + 0.5 * step["hidden_loss"]
    check(abs(step["loss"] - parts) < 1e-5 and step["hidden_loss"] > 0.01, f"parts of {step}")
    run_ = scratch / "student"
    train(run_, *SHORT, *options, ranks=RANKS).expect(0)
    step = records(run_, "step")[-1]
    check(abs(step["loss"] - 0.3 * step["target_loss"] - 0.7 * step["teacher_loss"]) < 1e-5, f"parts of {step}")
    if LONG:
        alike(scratch, "student", options, ranks=(1, 2, 4))
        alike(scratch, "hidden-dp", (*options, *hidden, "--communication.sync-batch-norm", "true"), ranks=(1, 2))
        alike(scratch, "hidden-bf16", (*options, *hidden, "--precision.compute", "bf16"), ranks=(1, 2))
        for precision in ("bf16", "fp16"):
            alike(scratch, precision, (*options, "--precision.compute", precision), ranks=(1, 2))
        alike(scratch, "threads", (*options, "--communication.sync-batch-norm", "true"), ranks=(1, 2))
    # A script, or tensors, teach as the file does that they were exported from; and so does a program.
    tensors, script = scratch / "teacher.safetensors", scratch / "teacher.pt"

    def teaches(made, *more):
        exported(teacher, made)
        path = scratch / f"by{made.suffix}"
        train(path, *SHORT, *options, "--distill.teacher", made, *more, ranks=RANKS).expect(0)
        losses = [[each["loss"] for each in records(where, "step")] for where in (run_, path)]
        check(np.allclose(*losses, rtol=1e-4 if made == script else 0, atol=0), f"a teacher as {made}: {losses}")

    for teach in some((lambda: teaches(script), lambda: program_as_teacher(scratch, options),
                       lambda: teaches(tensors), lambda: teaches(tensors, "--distill.teacher-deck", teacher / "deck.ini"))):
        teach()
    # Another teacher under the same name is noticed when the run is resumed.
    shutil.copy(checkpoints(teacher)[0], file)
    train(run_, *SHORT, *options, "--train.steps", 9, ranks=RANKS).expect(64, "its weights have changed")
    if LONG:
        train(run_, *SHORT, *options, "--train.steps", 9, "--force", ranks=RANKS).expect(0)
    recorded_outputs(scratch, teacher)
    for layers, phrase, *more in some(
            [("features.pool3:features.pool1", "its layers are features.conv1, features.norm1"),
             ("features.pool1:pool", "the teacher has no layer pool"),
             ("features.pool1:classifier.relu", "one dimension other than the batch may differ"),
             ("features.pool1", "does not name its layers", "--distill.teacher", script),
             ("features.pool1", "gradient checkpointing", "--precision.gradient-checkpointing", "true")]):
        if script in more:
            exported(teacher, script)
        train(scratch / "no-layer", *SHORT, *options, "--distill.hidden", layers, *more, ranks=RANKS).expect(64, phrase)
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
    several = (1, 3) if LONG else (1, 2)
    files = [scratch / f"outputs-{ranks}.h5" for ranks in several]
    for file, ranks in zip(files, several):
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
    for place, phrase in some(((files[0], "already exists"),
                               (scratch / "nowhere/outputs.h5", "there is no directory"))):
        run(["evaluate", deck, best, "--outputs", place, *data]).expect(73, phrase)
    # A file that the deck names by a list or a pattern is one that is read, too.
    other = scratch / "other.h5"
    shutil.copy(small, other)
    for named in some((f"{other}, {small}", scratch / "oth*.h5")):
        for key in some(("--data.train", "--data.test")):
            run(["evaluate", deck, best, "--outputs", other, "--overwrite", *data, key, named]).expect(73, "the deck names this file")
    # A share of data.train is left out, so that a sample's number is not that of its outputs.
    own = ("--model.channels", "2, 4", "--distill.weight", 0.7, "--data.validation", "10 %", *data)
    file = scratch / "outputs.h5"
    shutil.copy(files[0], file)
    own_outputs = (*own, "--distill.outputs", file)
    read = alike(scratch, "recorded", own_outputs)
    check("learning from the outputs in" in (read / "log.txt").read_text(), "it is told")
    live = scratch / "live"
    train(live, *SHORT, *own, "--distill.teacher", best, ranks=RANKS).expect(0)
    # The teacher ran on batches of another size, for which libraries may add in another order.
    for part in ("loss", "target_loss", "teacher_loss"):
        pair = [[step[part] for step in records(path, "step")] for path in (read, live)]
        check(np.allclose(*pair, rtol=1e-4, atol=0), f"outputs of a file, or of the teacher: {part} {pair}")
    # Other outputs under the same name are noticed when the run is resumed.
    run(["evaluate", deck, checkpoints(teacher)[0], "--outputs", file, "--overwrite", *data], ranks=RANKS).expect(0)
    again = (*SHORT, *own_outputs, "--train.steps", 9)
    train(read, *again, ranks=RANKS).expect(64, "it holds other outputs")
    if LONG:
        train(read, *again, "--force", ranks=RANKS).expect(0)

    def refused(*options, phrase, code=64):
        wrong = scratch / "wrong-outputs"
        train(wrong, *SHORT, *data, "--model.channels", "2, 4", *options, ranks=RANKS).expect(code, phrase)
        check(not checkpoints(wrong), "refused before the first step")

    outputs = ("--distill.outputs", files[0])
    spoilt = scratch / "spoilt-outputs.h5"
    shutil.copy(files[0], spoilt)
    flip(spoilt, 20000)
    for more, phrase in some(
            [(("--data.augment", "flip"), "data.augment = flip"),
             (("--distill.hidden", "features.pool1"), "distill.hidden = features.pool1"),
             (("--distill.teacher", best), "a run can learn from only one of the two"),
             (("--distill.outputs", best), "does not hold the outputs of a model"),
             (("--distill.outputs", checkpoints(teacher)[-1]), "does not hold the outputs of a model"),
             (("--task.kind", "regression", "--task.metric", "mae"), "was trained for task.kind = classification")]):
        refused(*outputs, *more, phrase=phrase)
    for path, code in some(((scratch / "none.h5", 66), (spoilt, 65))):
        refused("--distill.outputs", path, phrase=path.name, code=code)
    for name, change, phrase in some([("shorter", shorter, "but data.train has"),
                                      ("brighter", brighter, "it is for other samples"),
                                      ("fewer", fewer, "it is for other samples")]):
        refused(*outputs, "--data.train", of(name, change), phrase=phrase)


def program_as_teacher(scratch, options):
    """The outputs of modules of a program of torch.export, by their names in Python."""
    program = scratch / "teacher.pt2"
    layers = torch.nn.Flatten(), torch.nn.Linear(784, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    lockstep_export.save(torch.nn.Sequential(*layers), (torch.rand(4, 28, 28),), program)
    path = scratch / "program"
    train(path, *SHORT, *options, "--distill.teacher", program, "--distill.hidden", "classifier.relu:2",
          ranks=RANKS).expect(0)
    check(records(path, "step")[-1]["hidden_loss"] > 0, "a layer of a program teaches")
    # With the same weights it is another program.
    lockstep_export.save(torch.nn.Sequential(*layers, torch.nn.Hardtanh(-100, 100)), (torch.rand(4, 28, 28),), program)
    train(path, *SHORT, *options, "--distill.teacher", program, "--distill.hidden", "classifier.relu:2",
          "--train.steps", 9, ranks=RANKS).expect(64, "its weights are the same, but its program")
    cut = scratch / "cut.pt2"
    cut.write_bytes(program.read_bytes()[:-100])
    train(scratch / "cut", *SHORT, *options, "--distill.teacher", cut, ranks=RANKS).expect(
        65, "cut.pt2", "is damaged")


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
              "--data.global-batch", 16, "--model.dropout", 0, "--train.steps", 2, *options, ranks=RANKS).expect(0)
        return checkpoints(scratch / name)[-1]

    def wide():
        return other("wide", (64, 30, 30), lambda n: np.arange(n) % 10, [str(i) for i in range(10)])

    def few():
        return other("few", (64, 28, 28), lambda n: np.arange(n) % 3, list("abc"))

    def reals():
        return other("reals", (64, 28, 28), lambda n: generator.normal(size=(n, 10)).astype(np.float32), [],
                     "--task.kind", "regression", "--task.metric", "mae")

    bare = scratch / "bare.safetensors"  # as another program writes it
    cases = [(scratch / "none.h5", 66, "none.h5"), (bare, 64, "distill.teacher-deck"),
             (tensors, 64, "does not fit", "--distill.teacher-deck", DECK),  # of other widths
             (spoilt, 65, "spoilt.h5"), (scratch / "nine.pt", 64, "distill.teacher"),
             (teacher / "best.h5", 64, "prune.begin", "--prune.pattern", "2:4", "--prune.begin", 8)]
    others = [(wide, 64, "distill.teacher"), (few, 64, "its classes are a, b, c"),
              (reals, 64, "trained for task.kind = regression")]
    for file, code, phrase, *options in some([*cases, *others], 2):
        file = file() if callable(file) else file
        if file in (tensors, bare):
            exported(teacher, tensors)
            save_file(load_file(tensors), bare)
        train(wrong, *SHORT, "--distill.teacher", file, *options, ranks=RANKS).expect(code, phrase)
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
    train(scratch / "at-once", *SHORT, "--model.weights", plain / "best.h5", "--prune.pattern", "2:4",
          ranks=RANKS).expect(0, "pruned after step 0")
    for wrong, phrase in some(((("2:2",), "N:M"), (("0:4",), "N:M"), (("2:400",), "N:M"), (("some",), "N:M"),
                          (("16:32",), "cannot be met"), (("unstructured", "--prune.begin", 8), "no step would train"),
                          (("unstructured", "--prune.score", "taylor"), "prune.begin"),
                          (("unstructured", "--prune.sparsity", 0.999), "would be removed"),
                          (("unstructured", "--prune.sparsity", 1.5), "prune.sparsity"),
                          (("2:4", "--prune.except", "wait*"), "matches no parameter"))):
        if wrong[0] == "16:32":
            wrong = (*wrong, "--prune.except", "classifier.hidden.*")
        train(scratch / "refused", *SHORT, "--prune.pattern", *wrong, ranks=RANKS).expect(64, phrase)
        shutil.rmtree(scratch / "refused", ignore_errors=True)


def quantised(scratch, teacher):
    best, deck = teacher / "best.h5", teacher / "deck.ini"
    exact, mine = measured(deck, best, ranks=RANKS), ("--data.train", DATA / "train.h5")
    for method in some(("minmax", "percentile", "mse")):
        small = scratch / f"{method}.h5"
        run(["checkpoint", "quantise", best, small, *mine, "--method", method, "--samples", 200]).expect(
            0, "in int8")
        run(["checkpoint", "verify", small]).expect(0, "all bytes are intact")
        lines = {measured(deck, small, ranks=ranks)
                 for ranks in ((1, 2, 4) if LONG else (1, 2))}
        check(len(lines) == 1, f"int8 has the same figures on any number of ranks: {lines}")
        accuracies = [float(line.split("accuracy ")[1].split(",")[0]) for line in (exact, *lines)]
        check(abs(accuracies[0] - accuracies[1]) < 0.02, f"{method}: {accuracies}")
        check(lines != {exact}, "int8 was used")
    again = scratch / "again.h5"
    how = [] if method == "mse" else ["--method", method]
    run(["checkpoint", "quantise", best, again, *mine, "--samples", 200, *how]).expect(0)
    check(again.read_bytes() == small.read_bytes(), "the same when made twice")
    run(["checkpoint", "quantise", best, again, *mine]).expect(73)
    run(["checkpoint", "quantise", teacher, again, *mine, "--overwrite"]).expect(0)  # a checkpoint
    check(again.stat().st_size < 0.5 * best.stat().st_size, "smaller, even where the record is most of the file")
    # What cannot be.
    for command, code in some(((["evaluate", DECK, small, "--data.validation", DATA / "test.h5", "--data.train",
                            DATA / "train.h5", "--model.channels", "8, 16, 32"], 65),
                          (["checkpoint", "export", small, scratch / "no.safetensors"], 64),
                          (["checkpoint", "export", small, scratch / "no.pt"], 64),
                          (["checkpoint", "quantise", small, scratch / "no.h5", *mine], 64),
                          (["checkpoint", "quantise", best, scratch / "no.h5", *mine, "--method", "guess"], 64),
                          (["checkpoint", "quantise", best, scratch / "no.h5", *mine, "--samples", 0], 64),
                          (["checkpoint", "quantise", DECK, scratch / "no.h5"], 65),
                          (["checkpoint", "quantise", best, scratch / "none/no.h5", *mine], 73),
                          (["checkpoint", "quantise", best, scratch / "no.h5", "--data.train", "none.h5"], 66)), 2):
        run(command).expect(code)
    for more in some((("--model.channels", "8, 16", "--model.weights", small), ("--distill.teacher", small))):
        train(scratch / "refused", *SHORT, *more, ranks=RANKS).expect(64, "quantised")
        shutil.rmtree(scratch / "refused", ignore_errors=True)
    spoilt = scratch / "hurt.h5"
    for at in some(range(5000, small.stat().st_size, small.stat().st_size // 8)):
        shutil.copy(small, spoilt)
        flip(spoilt, at)
        run(["evaluate", deck, spoilt]).expect(65)


with Scratch() as scratch:
    teacher = scratch / "teacher"
    train(teacher, *SHORT, "--model.channels", "8, 16", "--train.steps", 16, "--train.validate-every", 16,
          ranks=RANKS).expect(0)
    distilled(scratch, teacher)
    pruned(scratch)
    quantised(scratch, teacher)
