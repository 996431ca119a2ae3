"""Samples and targets of other shapes, layouts and types than a model or task expects: what is said names what was
found, and what it advises then works. What can be meant in one way only is taken as it is meant."""
import h5py
import numpy as np

from harness import Scratch, check, check_same, records, run, some

N = 16
DECK = """
[run]
directory = {directory}
device = cpu
replicas = 2
[data]
train = {data}
batch = 4
[model]
name = {model}
[task]
kind = {task}
[optimizer]
name = sgd
learning-rate = 0.001
[monitor]
log-every = 1
progress = plain
tensorboard = false
plots = false
[train]
steps = 3
"""
DRAWN = np.random.default_rng(0)
SMALL = {"mlp": ("--model.hidden", 8), "cnn": ("--model.channels", "4, 4", "--model.hidden", 8),
         "resnet": (), "vit": ("--model.width", 16, "--model.heads", 2, "--model.layers", 1),
         "unet": ("--model.channels", "4, 4"), "unet3d": ("--model.channels", "4, 4"), "cnn3d": ("--model.channels", "4, 4"),
         "cnn1d": ("--model.channels", "4, 4"), "lmu-asr": ("--model.width", 8, "--model.hidden", 8, "--model.theta", 8),
         "transformer": ("--model.width", 16, "--model.heads", 2, "--model.layers", 1)}


def reals(*shape):
    return DRAWN.normal(size=(N, *shape)).astype(np.float32)


def labels(*shape, classes=2, dtype=np.int64):
    return (np.arange(N * int(np.prod(shape))) % classes).reshape(N, *shape).astype(dtype)


class Case:
    """A data set and a deck for it."""

    def __init__(self, scratch, inputs, targets=None, model="mlp", task="classification", classes=(), **more):
        self.number = len(list(scratch.glob("*.h5")))
        self.path, self.data = scratch / f"run{self.number}", scratch / f"data{self.number}.h5"
        self.deck, self.model = scratch / f"deck{self.number}.ini", model
        write(self.data, {"inputs": inputs, "targets": labels() if targets is None else targets, **more}, classes)
        self.deck.write_text(DECK.format(directory=self.path, data=self.data, model=model, task=task))

    def run(self, *options, command="train", ranks=0):
        named = dict(zip(options[::2], options[1::2]))
        small = SMALL[named.get("--model.name", self.model)]
        own = ("--checkpoint.resume", "none") if command in ("train", "plan") else ()
        return run([command, self.deck, *small, *own, *options], ranks=ranks)


def write(path, fields, classes=()):
    with h5py.File(path, "w") as file:
        for name, values in fields.items():
            file[name] = values
        if len(classes):
            file.attrs["classes"] = list(classes)
    return path


def layouts(scratch):
    """Channels at the other end are noticed by all who look at the samples."""
    pictures, clips = (3, 16, 16), (3, 4, 16, 16)
    last = [(model, shape) for model, shape in
            (("cnn", pictures), ("resnet", pictures), ("vit", pictures), ("unet", pictures), ("cnn3d", clips),
             ("cnn", (1, 16, 16)), ("resnet", (4, 12, 12)), ("cnn3d", (1, 8, 8, 8)), ("unet3d", clips))]
    for (model, shape), stored, command in some([(case, stored, command) for case in last
                                                 for stored in ("channels-last", "channels-first")
                                                 for command in ("train", "plan", "check", "info")], 6):
        other = "channels-first" if stored == "channels-last" else "channels-last"
        inputs = reals(*shape)
        inputs = np.moveaxis(inputs, 1, -1) if stored == "channels-last" else inputs
        of_places = model in ("unet", "unet3d")
        case = Case(scratch, inputs, labels(*shape[1:]) if of_places else None, model,
                    "segmentation" if of_places else "classification", ("a", "b"))
        if command == "info":
            text = run(["data", "info", case.data]).expect(0).text
            check(("model.layout = channels-last" in text) == (stored == "channels-last"), f"data info: {text}")
            continue
        wrong = case.run("--model.layout", other, command=command)
        check(command == "check" or wrong.code in (0, 64), f"{model} {shape}: {wrong.text}")
        check(f"model.layout = {stored}" in wrong.text, f"{model} {shape}: {wrong.text}")
        right = case.run("--model.layout", stored, command=command)
        check(right.code == 0 and "dimension" not in right.text, f"{model} {shape}: {right.text}")
    for shape, phrase, options in (((4, 3, 16, 16), "If dimension 1 holds the channels", ()),
                                   ((3, 16, 16), "cnn, resnet or vit", ("--model.name", "cnn")),
                                   ((16, 16, 3), "model.layout = channels-last",
                                    ("--model.name", "cnn", "--model.layout", "channels-last"))):
        case = Case(scratch, reals(*shape), model="cnn3d")
        case.run().expect(0, phrase)
        if options:
            check("warning: samples" not in case.run(*options).expect(0).text, "the advice is right")


def other_models(scratch):
    """A model that cannot take the samples names one that can."""
    for shape, model, advised in some((((8, 8), "cnn3d", "cnn"), ((5,), "cnn", "mlp"), ((5,), "cnn3d", "mlp"),
                                       ((2, 4, 8, 8), "cnn", "cnn3d"), ((2, 4, 8, 8), "resnet", "cnn3d"),
                                       ((2, 2, 2, 4, 4), "vit", "mlp"), ((2, 2, 2, 4, 4), "cnn3d", "mlp")), 3):
        case = Case(scratch, reals(*shape), model=model)
        case.run().expect(64, f"[{', '.join(map(str, shape))}]", f"such as {advised}")
        case.run("--model.name", advised).expect(0)
    for shape, model, advised in some((((1, 8, 8, 8), "cnn3d", "unet3d for volumes"), ((1, 8, 8, 8), "mlp", "unet3d for"),
                                       ((1, 8, 8, 8), "unet", "such as unet3d"), ((8, 8), "unet3d", "such as unet"),
                                       ((1, 2, 2, 4, 4), "mlp", ""), ((1, 2, 2, 4, 4), "unet3d", "")), 3):
        positions = shape if len(shape) == 2 else shape[1:]
        case = Case(scratch, reals(*shape), labels(*positions), model, "segmentation", ("a", "b"))
        told = case.run().expect(64, advised or "model.name = export")
        check(advised or "such as" not in told.text and "unet" not in told.text.replace("model.name = unet3d", ""), told.text)
        if advised:
            case.run("--model.name", "unet3d" if "unet3d" in advised else "unet").expect(0)


def masks(scratch):
    """A class for each place, however masks are stored."""
    inputs, classes = reals(2, 8, 8), ("a", "b", "c")
    plain = labels(8, 8, classes=3)
    case = Case(scratch, inputs, plain, "unet", "segmentation", classes)
    case.run().expect(0)
    for stored in some((plain[:, None], plain[..., None], plain[:, None].astype(np.uint8),
                        plain[..., None].astype(np.float32)), 2):
        other = Case(scratch, inputs, stored, "unet", "segmentation", classes)
        other.run().expect(0)
        check([r["loss"] for r in records(case.path, "step")] == [r["loss"] for r in records(other.path, "step")],
              f"masks of shape {stored.shape} are learnt alike")
    for axis in some((1, 3), 1):
        one_hot = np.moveaxis(np.eye(3, dtype=np.uint8)[plain], -1, axis)
        other = Case(scratch, inputs, one_hot, "unet", "segmentation", classes)
        other.run().expect(64, "one-hot", f"targets.argmax(axis={axis})", str(list(one_hot.shape[1:]))[1:-1])
        Case(scratch, inputs, one_hot.argmax(axis), "unet", "segmentation", classes).run().expect(0)
    Case(scratch, inputs, plain[:, :4], "unet", "segmentation", classes).run().expect(64, "8, 8]", "4, 8]")
    Case(scratch, inputs, plain + 1, "unet", "segmentation", classes).run().expect(65, "count from 1")
    case = Case(scratch, inputs, labels(), "unet", "segmentation", ("a", "b"))
    case.run().expect(65, "one number for each sample", "task.kind = classification")
    case.run("--task.kind", "classification", "--model.name", "cnn").expect(0)
    case = Case(scratch, inputs, plain, "cnn", "classification", classes)
    case.run().expect(65, "[8, 8]", "task.kind = segmentation")
    case.run("--task.kind", "segmentation").expect(64, "unet for pictures")
    case.run("--task.kind", "segmentation", "--model.name", "unet").expect(0)


def targets(scratch):
    """Labels and values of other types: the task decides what whole numbers mean."""
    table = reals(5)
    for given, phrase, mended in (
            (labels(dtype=np.float32), "type f32", lambda t: t.astype("int64")),
            (labels(dtype=np.float64), "type f64", lambda t: t.astype("int64")),
            (np.eye(2, dtype=np.float32)[labels()], "one-hot", lambda t: t.argmax(axis=1)),
            (np.eye(2, dtype=np.int64)[labels()], "one-hot", lambda t: t.argmax(axis=1))):
        Case(scratch, table, given).run().expect(65, phrase)
        Case(scratch, table, mended(given)).run().expect(0)
    Case(scratch, table, labels() + 1, classes=("a", "b")).run().expect(65, "label 2 of sample 1", "subtract 1")
    Case(scratch, table, labels() + 1).run().expect(0, "count from 1")
    for inputs in (table.astype(np.float64), reals()):
        Case(scratch, inputs, labels(1)).run().expect(0)
    case = Case(scratch, table.astype(np.float64) * 1e40)
    case.run().expect(65, "type f64 that is too large for float32")
    case = Case(scratch, table)
    for command in some(("train", "plan", "check"), 1):
        case.run("--data.batch", 40, command=command).expect(0, "only 16 samples, but a step takes 80")
        check("only 16 samples" not in case.run(command=command).expect(0).text, "two steps per epoch")


def types(scratch):
    """64-bit whole numbers are tokens; rows of reals may be learnt by a transformer, whatever the type of the value."""
    case = Case(scratch, (reals(3, 8, 8) * 50).astype(np.int64), model="cnn")
    case.run().expect(65, "of shape [3, 8, 8]", "--type f32")
    run(["data", "import", "hdf5", case.data, scratch / "types", "--type", "f32"]).expect(0)
    case.run("--data.train", scratch / "types").expect(0)
    for given in some((reals(), reals(1), np.arange(N) * 1000, reals(3)), 2):
        Case(scratch, reals(6, 4), given, "transformer", "regression").run("--optimizer.learning-rate", 1e-9).expect(0)
    case = Case(scratch, reals(3, 8, 8), model="unet", classes=("a", "b"))
    case.run().expect(64, "such as cnn")
    case.run("--model.name", "cnn").expect(0)
    case = Case(scratch, reals(3, 8, 8), model="cnn1d")
    case.run().expect(65, "of shape [3, 8, 8]", "such as cnn")
    for targets in (np.moveaxis(reals(3, 8, 8), 1, -1), reals(8, 8)): # whose values lie in no order of the model's
        Case(scratch, reals(3, 8, 8), targets, "unet", "regression").run().expect(64, "the targets have the shape")


def numbers(scratch):
    """Whole numbers are values, not classes, where the task learns values."""
    table = reals(5)
    values = np.arange(N, dtype=np.int32) * 40_000 - 120_000
    for stored in some((values, np.arange(N, dtype=np.uint8) * 3, values.astype(np.int64)[:, None]), 2):
        case = Case(scratch, table, stored, task="regression")
        told = case.run("--data.validation", "25 %", "--optimizer.learning-rate", 1e-12)
        told.expect(0, "drawn at random")
        check("class" not in told.text, f"regression speaks of classes: {told.text}")
        evaluated = run(["evaluate", case.deck, case.path / "best.h5", "--model.hidden", 8, "--data.test", case.data])
        evaluated.expect(0, "mae")
        case.run(command="plan").expect(0)
        run(["data", "info", case.data]).expect(0)
        out = scratch / f"imported{case.number}"
        told = run(["data", "import", "hdf5", case.data, out]).expect(0)
        run(["train", case.deck, "--model.hidden", 8, "--data.train", out, "--run.directory",
             scratch / f"again{case.number}", "--optimizer.learning-rate", 1e-12]).expect(0)
        losses = [[r["loss"] for r in records(path, "step")] for path in (case.path, scratch / f"again{case.number}")]
        check(len(losses[1]) == 3, "an import of whole numbers is learnt")
    case = Case(scratch, table, values)
    case.run().expect(65, "label -120000 of sample 0", "task.kind = regression")
    case.run("--task.kind", "regression", "--optimizer.learning-rate", 1e-12).expect(0)


def other_sets(scratch):
    """A validation or test file that does not fit says in what, and both values."""
    case = Case(scratch, reals(5), labels(classes=3))
    for key in some(("--data.validation", "--data.test"), 1):
        for fields, phrases in (({"inputs": reals(6), "targets": labels()}, ("[6]", "[5]", "inputs")),
                                ({"inputs": reals(5), "targets": labels(classes=5)}, ("5 classes", "has 3")),
                                ({"inputs": reals(5), "targets": reals()}, ("f32", "i64", "targets"))):
            other = write(scratch / "other.h5", fields)
            case.run(key, other).expect(65, key[2:], *phrases)


def empty_samples(scratch):
    """Samples of no rows are learnt as those beside longer ones, in whichever batch they come together."""
    rows = np.array([0] * 13 + [3, 2, 4])
    offsets = np.concatenate([[0], np.cumsum(rows)])
    frames = DRAWN.normal(size=(rows.sum(), 4)).astype(np.float32)
    transcripts = {"task": "ctc", "targets": np.ones(3, np.int64),
                   "targets_offsets": np.concatenate([[0] * 13, [0, 1, 2, 3]])}
    for model, inputs, more in some((("cnn1d", frames, {}), ("transformer", frames, {}), ("lmu-asr", frames, transcripts),
                                     ("cnn1d", frames[:, 0], {})), 2):
        case = Case(scratch, inputs, model=model, classes=("a", "b"), inputs_offsets=offsets, **more)
        states = []
        for ranks in (1, 2):
            case.run("--data.batch", 2, "--data.shuffle", "none", "--run.directory", f"{case.path}-{ranks}",
                     ranks=ranks).expect(0)
            states.append(f"{case.path}-{ranks}")
        check_same(*states, f"{model}: samples of no rows are the same on 1 and 2 ranks")


def main():
    with Scratch() as scratch:
        for part in (layouts, other_models, masks, targets, types, numbers, other_sets, empty_samples):
            part(scratch)
    print("what does not fit is named, and what is advised works")


if __name__ == "__main__":
    main()
