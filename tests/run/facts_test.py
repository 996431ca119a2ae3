"""A model knows what it was trained on: mean and std, classes, columns, types, shapes and the tokenizer come with its
file. Every command that opens one gives the same after data.train was replaced or is gone; a set whose samples mean
something else is refused by name, and one that is only normalised otherwise is told of. So are the sets of one run.
The short form draws from the table of commands and of changes."""
import itertools
import json
import re
import shutil
import struct

import h5py
import numpy as np
import torch

import small_models
from harness import DRAW, SOURCE, Scratch, check, checkpoints, run, some

ROWS = 240
KINDS = ("cat", "dog", "eel")
CENTRES = np.array([[0, 3, 1], [3, 1, -2], [-2, -1, 3]])
DECK = """
[run]
name = table
device = cpu
directory = {scratch}/run
[data]
train = {scratch}/cur.h5
test = {scratch}/test.h5
batch = 24
[model]
name = mlp
hidden = 16
[optimizer]
learning-rate = 0.05
[train]
epochs = 8
validate-every = 0
[monitor]
plots = false
progress = none
tensorboard = false
"""


def table(path, seed, columns="a,b,c", scale=1, shift=0, kinds=KINDS, more=()):
    """A table of three columns, from which the kind of a row can be told, as an import leaves it."""
    random = np.random.default_rng(seed)
    labels = np.arange(ROWS) % 3
    values = (CENTRES[labels] + random.normal(size=(ROWS, 3))) * scale + shift
    source = path.with_suffix(".csv")
    source.write_text("a,b,c,kind\n" + "".join(
        ",".join(f"{value:.5f}" for value in row) + f",{kinds[label]}\n" for row, label in zip(values, labels)))
    run(["data", "import", "series", source, path, "--target", "kind", "--columns", columns, "--overwrite", *more]).expect(0)
    return path


def bytes_of(path):
    """The same samples as numbers from 0 to 255."""
    table(path, 1)
    with h5py.File(path, "r+") as file:
        values = file["inputs"][:]
        low, high = values.min(), values.max()
        del file["inputs"], file["checksums"]
        file["inputs"] = np.round((values - low) / (high - low) * 255).astype(np.uint8)
    return path


# What lies where data.train did, and how a set that is used with the model is refused; None: it is told of.
CHANGES = {
    "scale": (lambda path: table(path, 1, scale=50, shift=100), None),
    "classes": (lambda path: table(path, 1, kinds=("zebra", "dog", "eel")), "its class 0 is dog, but "),
    "columns": (lambda path: table(path, 1, columns="c,a,b"), "its column 0 is c, but "),
    "type": (bytes_of, "type u8, but "),
    "shape": (lambda path: table(path, 1, columns="a,b"), "dataset inputs has samples of shape [2], but "),
    "missing": (lambda path: path.unlink(), "cur.h5"),
}
OTHER_UNITS = "seem to be in other units: in column a, its own mean is "


class Trained:
    """A run, its files, and what they gave while data.train was what it was trained on."""

    def __init__(self, scratch):
        self.scratch, self.current, self.test = scratch, scratch / "cur.h5", scratch / "test.h5"
        table(self.current, 1)
        table(self.test, 2)
        self.deck = scratch / "deck.ini"
        self.deck.write_text(DECK.format(scratch=scratch))
        run(["train", self.deck]).expect(
            0, "test.h5 is normalized with the mean and std of data.train, not with its own")
        self.newest = checkpoints(scratch / "run")[-1]
        self.kept = scratch / "kept.h5"
        shutil.copyfile(self.current, self.kept)
        with h5py.File(self.current) as file:
            self.mean, self.std = list(file.attrs["mean"]), list(file.attrs["std"])

    def replace(self, change):
        shutil.copyfile(self.kept, self.current)
        CHANGES[change][0](self.current)

    def script(self):
        out = self.scratch / "teacher.pt"
        run(["checkpoint", "export", self.newest, out, "--overwrite"]).expect(0)
        return out

    def evaluate(self):
        return run(["evaluate", self.deck, self.newest]).expect(0).text

    def tolerates(self, change, text, words=""):
        """A set that is only normalised otherwise is used as the model takes it, and told of."""
        check(change != "scale" or OTHER_UNITS in text, f"told of with {words}: {text}")

    def refuses(self, change, words, code=65):
        """Whether the command says what it must; a missing file is 66."""
        why = CHANGES[change][1]
        done = run(words)
        if why is None:
            self.tolerates(change, done.expect(0).text, words)
            return False
        done.expect(66 if change == "missing" else code, why)
        return True


def result_of(text):
    return next(line for line in text.splitlines() if line.startswith("test: "))


def evaluated(trained, before):
    line = result_of(trained.evaluate())
    check(before is None or line == before, f"{line}, before: {before}")
    accuracy = float(re.search(r"accuracy ([\d.]+)", line)[1])
    check(accuracy > 0.9, f"the table can be learnt: {line}")
    return line


def exported(trained, before):
    """Whatever runs elsewhere: the same bytes."""
    found = {}
    for name in ("x.onnx", "x.c"):
        out = trained.scratch / name
        run(["checkpoint", "export", trained.newest, out, "--overwrite"]).expect(0)
        found[name] = out.read_bytes()
    check(before is None or found == before, "the exported files are others")
    check(all(name.encode() in found["x.onnx"] for name in KINDS), "the classes are named")
    return found


def scripted(trained, before):
    out = trained.scratch / "x.pt"
    run(["checkpoint", "export", trained.newest, out, "--overwrite"]).expect(0)
    found = torch.jit.load(str(out))(torch.ones(2, 3)).tolist()
    check(before is None or found == before, f"{found}, before: {before}")
    return found


def through_safetensors(trained, before):
    """Weights for other programs take what the model knows along."""
    out = trained.scratch / "x.safetensors"
    run(["checkpoint", "export", trained.newest, out, "--overwrite"]).expect(0)
    line = result_of(run(["evaluate", trained.deck, out]).expect(0).text)
    check(before is None or line == before, f"{line}, before: {before}")
    return line


def checked(trained, change):
    """`export check` with a set that lies there now."""
    out = trained.scratch / "checked.c"
    run(["checkpoint", "export", trained.newest, out, "--overwrite"]).expect(0)
    run(["export", "check", out, "--data", trained.test]).expect(0, "It agrees with")
    trained.refuses(change, ["export", "check", out, "--data", trained.current], code=64)


def named_in_export(trained, change):
    """A data.train that the command line names is looked at, though it is not needed."""
    other = trained.scratch / "named.h5"
    if change == "missing":
        other.unlink(missing_ok=True)
    else:
        shutil.copyfile(trained.current, other)
    words = ["checkpoint", "export", trained.newest, trained.scratch / "named.onnx", "--data.train", other, "--overwrite"]
    if change == "missing":
        run(words).expect(66, "named.h5")
    else:
        trained.refuses(change, words)


def quantised(trained, change):
    """The samples are the user's choice: the deck in a file leads to no other."""
    words = ["checkpoint", "quantise", trained.newest, trained.scratch / "int8.h5", "--overwrite"]
    text = run(words).expect(64, "data.train is not set", "Add --data.train FILE").text
    check(str(trained.current) in text, f"says where they were: {text}")
    trained.refuses(change, [*words, "--data.train", trained.current])


def share(trained, change):
    """Of a share of data.train, the samples themselves are needed."""
    trained.refuses(change, ["evaluate", trained.deck, trained.newest, "--data.test", "", "--data.validation", "20 %"])


def outputs(trained, change):
    trained.refuses(change, ["evaluate", trained.deck, trained.newest, "--outputs", trained.scratch / "outputs.h5",
                             "--overwrite"])


def measured(trained, change):
    """A test set that differs, with a model that does not know the training set by its file."""
    words = ["evaluate", trained.deck, trained.newest, "--data.test", trained.current]
    if trained.refuses(change, words) and change not in ("missing", "shape"):
        run([*words, "--force"]).expect(0, "does not fit")


def edit_header(source, path, edit):
    """A safetensors file whose header says something else."""
    content = source.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:end])
    edit(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[end:])


def note_of(path):
    with h5py.File(path) as file:
        return json.loads(json.loads(file["record/notes"][()])["facts"])


def refused_alike(trained, change, words, code):
    """Whatever train refuses, plan and check refuse, with the same words."""
    if change == "scale":
        return
    command = DRAW.choice(("plan", "check"))
    code = 66 if change == "missing" else code
    run([command, *words[1:]]).expect(code if command == "plan" else 69, CHANGES[change][1] if change != "shape" else "[2]")


def fine_tuned(trained, change):
    directory = trained.scratch / "tuned"
    shutil.rmtree(directory, ignore_errors=True)
    words = ["train", trained.deck, "--run.directory", directory, "--data.test", "", "--model.weights", trained.newest,
             "--train.epochs", 1]
    refused_alike(trained, change, words, 65)
    if change == "shape":  # the layers say it
        run(words).expect(65)
    elif not trained.refuses(change, words):
        facts = note_of(checkpoints(directory)[-1])
        check([facts["mean"], facts["std"]] == [trained.mean, trained.std], f"the scale stays the model's: {facts}")
        trained.tolerates(change, run([*words, "--train.epochs", 2]).expect(0).text, "a resume")


def taught(trained, change):
    """By a checkpoint, or by what was exported from it."""
    directory = trained.scratch / "taught"
    shutil.rmtree(directory, ignore_errors=True)
    teacher = DRAW.choice((trained.newest, trained.script()))
    words = ["train", trained.deck, "--run.directory", directory, "--data.test", "", "--distill.teacher", teacher,
             "--train.epochs", 1]
    if change != "classes":
        refused_alike(trained, change, words, 64)
    if change == "scale":
        run(words).expect(0, "which gets inputs normalized with the mean and std of its own training data")
    elif change == "classes":
        run(words).expect(64, "its classes are cat, dog, eel")
    else:
        run(words).expect(66 if change == "missing" else 64, CHANGES[change][1])


def taught_by_deck(trained, _change):
    """The deck of a teacher is read as train reads it, with keys that it says in vain."""
    deck, weights = trained.scratch / "later.ini", trained.scratch / "later.safetensors"
    deck.write_text(f"include = {trained.deck.name}\n[model]\nname = cnn1d\n")
    named = trained.scratch / "named.ini"
    named.write_text(deck.read_text().replace("cnn1d", "mlp\nhidden = 16\n[data]\nbatch = 12"))
    run(["checkpoint", "export", trained.newest, weights, "--overwrite"]).expect(0)
    words = ["plan", trained.deck, "--run.directory", trained.scratch / "plan", "--data.test", "", "--data.train", trained.kept,
             "--distill.teacher", weights, "--distill.teacher-deck"]
    run([*words, named]).expect(0, "also learning from the outputs of")
    refused = run([*words, deck])
    refused.expect(64)
    check("unknown key" not in refused.text, f"what is of another model is dropped: {refused.text}")


def script_trained(trained, change):
    """An exported script that is trained further knows its data, too."""
    directory = trained.scratch / "script-run"
    shutil.rmtree(directory, ignore_errors=True)
    words = ["train", trained.deck, "--run.directory", directory, "--data.test", "", "--model.name", "script",
             "--model.file", trained.script(), "--train.epochs", 1]
    if change == "shape":  # its code says it
        run(words).expect(64)
    elif not trained.refuses(change, words):
        facts = note_of(checkpoints(directory)[-1])
        check([facts["mean"], facts["std"]] == [trained.mean, trained.std], f"the scale stays the model's: {facts}")


def resumed(trained, change):
    """A run's own data must be what they were; where other contents are forced, the scale stays."""
    directory = trained.scratch / "resumed"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(trained.scratch / "run", directory)
    words = ["train", trained.deck, "--run.directory", directory, "--train.epochs", 9]
    refused = run([*words, "--data.test", ""])
    refused.expect(66, "cur.h5") if change == "missing" else refused.expect(64, "data.train", "--force")
    if change in ("columns", "classes"):
        known_as_a_whole([*words, "--data.test", ""], directory, trained.current, CHANGES[change][1])
    if change == "scale":
        trained.tolerates(change, run([*words, "--force"]).expect(0, "other contents of data.train").text)
        facts = note_of(checkpoints(directory)[-1])
        check([facts["mean"], facts["std"]] == [trained.mean, trained.std], f"the scale stays the model's: {facts}")


def known_as_a_whole(words, directory, data, why):
    """A resume with samples of another meaning says so; names, mean and std change together, once."""
    run([*words, "--force"]).expect(0, f"other contents of data.train ({why}", f": {why}", "From now on, the model knows")
    facts = note_of(checkpoints(directory)[-1])
    with h5py.File(data) as file:
        own = {name: [each.decode() if isinstance(each, bytes) else each for each in file.attrs[name]]
               for name in ("columns", "classes", "mean", "std")}
    check({name: facts[name] for name in own} == own, f"one set's names and another's scale: {facts}, {own}")
    run([*words, "--train.epochs", 10]).expect(0)


def validated(trained, change):
    """The sets of one run."""
    other = trained.scratch / "other.h5"
    other.unlink(missing_ok=True)
    if change != "missing":
        shutil.copyfile(trained.current, other)
    key = DRAW.choice(("validation", "test"))
    directory = trained.scratch / "sets"
    shutil.rmtree(directory, ignore_errors=True)
    words = [trained.deck, "--run.directory", directory, "--data.train", trained.kept, f"--data.{key}", other,
             "--train.epochs", 1]
    if change == "missing":
        run(["train", *words]).expect(66, "other.h5")
        return
    why = CHANGES[change][1]
    run(["plan", *words]).expect(65 if why else 0, why or "")
    done = run(["train", *words])
    if why:
        done.expect(65, why, f"data.{key} = ", "data.train")
    else:
        trained.tolerates(change, done.expect(0).text)


def federated(trained, change):
    """The first model of a federation knows its data, which the coordinator need not have."""
    federation = trained.scratch / "federation"
    shutil.rmtree(federation, ignore_errors=True)
    key, site = trained.scratch / "c.key", trained.scratch / "s.key"
    for file in trained.scratch.glob("?.key*"):
        file.unlink()
    kept = trained.scratch / "gone.h5"
    trained.kept.rename(kept)
    init = ["federate", "init", federation, trained.deck, "--weights", trained.newest, "--key", key, "--min-sites", 1,
            "--data.test", "", "--rounds", 1, "--data.train"]
    run([*init, trained.kept, "--model.weights", trained.newest]).expect(64, "only one first global model")
    if CHANGES[change][1] and change != "missing":
        run([*init, trained.current]).expect(65, CHANGES[change][1])
    run([*init, trained.kept]).expect(0)
    kept.rename(trained.kept)
    run(["federate", "join", federation, "--site", "s", "--key", site]).expect(0)
    run(["federate", "round", federation, "--coordinator", "--key", key, "--accept", "all"])
    shutil.rmtree(trained.scratch / "s", ignore_errors=True)
    words = ["federate", "round", federation, "--site", "s", "--key", site, "--data.train", trained.current,
             "--run.directory", trained.scratch / "s"]
    if CHANGES[change][1]:
        trained.refuses(change, words)
        return
    run(words).expect(0, "announced")
    run(["federate", "round", federation, "--coordinator", "--key", key]).expect(0)
    run(words).expect(0, "update sent")
    trained.tolerates(change, (trained.scratch / "s/round-0001/log.txt").read_text())
    facts = note_of(checkpoints(trained.scratch / "s/round-0001")[-1])
    check([facts["mean"], facts["std"]] == [trained.mean, trained.std], f"the scale is the federation's: {facts}")


ALWAYS = (evaluated, exported, scripted, through_safetensors)
BY_CHANGE = (checked, named_in_export, quantised, share, outputs, measured, fine_tuned, taught, taught_by_deck, script_trained, resumed, validated, federated)


def walk(scratch):
    trained = Trained(scratch)
    same = some(ALWAYS, 2)
    before = {command: command(trained, None) for command in same}
    for change in some(CHANGES, 2):
        trained.replace(change)
        for command in some(same):
            command(trained, before[command])
        for command in some(BY_CHANGE, 3):
            command(trained, change)
            print(f"{change}: {command.__name__}")


TEXTS = """
[run]
device = cpu
directory = {scratch}/texts-run
[data]
train = {scratch}/texts.h5
sequence = 16
batch = 4
[model]
name = transformer
layers = 1
width = 16
heads = 2
[task]
kind = language
[train]
steps = 8
[monitor]
plots = false
progress = none
"""


def text_set(path, text, *options):
    source = path.with_suffix(".txt")
    source.write_text(text)
    run(["data", "import", "text", source, path, "--overwrite", *options]).expect(0)
    return path


def texts(scratch):
    """The tokenizer, too, is the model's."""
    deck, own = scratch / "texts.ini", "the cat sat on the mat and the dog sat on the log. " * 40
    deck.write_text(TEXTS.format(scratch=scratch))
    data = text_set(scratch / "texts.h5", own, "--vocabulary", 262)
    run(["train", deck]).expect(0)
    newest = checkpoints(scratch / "texts-run")[-1]
    words = ["generate", deck, newest, "--prompt", "the cat", "--tokens", 12, "--seed", 3]
    told = run(words).expect(0).text
    other = text_set(scratch / "other-texts.h5", own[::-1], "--vocabulary", 262)
    for key in some(("validation", "test")):
        run(["train", deck, "--run.directory", scratch / "no", f"--data.{key}", other]).expect(65, "another tokenizer")
    run(["evaluate", deck, newest, "--data.test", other]).expect(65, "another tokenizer")
    run([*words, "--data.train", other]).expect(65, "another tokenizer")
    # A set that does not state the number of its tokens takes it from the model.
    bare = scratch / "bare.h5"
    with h5py.File(bare, "w") as file:
        file["inputs"] = np.arange(800, dtype="i4") % 200
    run(["evaluate", deck, newest, "--data.test", bare]).expect(0)
    for more in (["--model.weights", newest], ["--task.vocabulary", 262, "--model.vocabulary", 262, "--distill.teacher", newest]):
        shutil.rmtree(scratch / "bare-run", ignore_errors=True)
        run(["train", deck, "--run.directory", scratch / "bare-run", "--data.train", bare, "--train.steps", 2, *more]).expect(0)
    run(["train", deck, "--run.directory", scratch / "no", "--data.train", other, "--model.weights", newest]).expect(
        65, "another tokenizer")
    shutil.copyfile(other, data)
    check(run(words).expect(0).text == told, "a text, after the tokenizer was replaced")
    data.unlink()
    check(run(words).expect(0).text == told, "a text without the training set")


def pictures(scratch):
    """Pictures whose dimensions have another order."""
    random = np.random.default_rng(4)
    for name, shape in (("first", (40, 3, 8, 8)), ("last", (40, 8, 8, 3))):
        with h5py.File(scratch / f"{name}.h5", "w") as file:
            file["inputs"] = random.integers(0, 255, shape, np.uint8)
            file["targets"] = np.arange(40) % 2
    deck = scratch / "pictures.ini"
    deck.write_text(f"[run]\ndevice = cpu\ndirectory = {scratch}/pictures\n[data]\ntrain = {scratch}/first.h5\nbatch = 8\n"
                    "[model]\nname = mlp\nhidden = 4\n[train]\nepochs = 1\n[monitor]\nplots = false\nprogress = none\n")
    turned = ("samples of shape [8, 8, 3], but ", "the order of the dimensions differs")
    run(["train", deck, "--data.validation", scratch / "last.h5"]).expect(65, "data.validation = ", *turned)
    run(["train", deck]).expect(0)
    newest = checkpoints(scratch / "pictures")[-1]
    run(["evaluate", deck, newest, "--data.test", scratch / "last.h5"]).expect(65, *turned)
    run(["train", deck, "--run.directory", scratch / "no", "--data.train", scratch / "last.h5", "--model.weights",
         newest]).expect(65, *turned)


def market(scratch):
    """A policy knows its assets by their places."""
    def prices(names):
        random = np.random.default_rng(5)
        rows = "".join(f"2020-{1 + day // 28:02}-{1 + day % 28:02},{name},{100 + 10 * random.random():.3f}\n"
                       for name in names for day in range(100))
        (scratch / "prices.csv").write_text("Date,Name,Close\n" + rows)
        run(["data", "import", "series", scratch / "prices.csv", scratch / "prices.h5", "--time", "Date", "--group", "Name",
             "--type", "f64", "--overwrite"]).expect(0)

    prices(("apple", "bread", "cocoa"))
    words = [SOURCE / "inputs/trading_small.ini", "--data.train", scratch / "prices.h5", "--task.trade-from", "2020-04-01",
             "--task.turbulence-history", 20, "--task.episode-days", 20, "--task.episodes", 0]
    run(["train", *words, "--run.directory", scratch / "market", "--train.steps", 2, "--monitor.plots", "false"]).expect(0)
    newest = checkpoints(scratch / "market")[-1]
    run(["evaluate", words[0], newest, *words[1:]]).expect(0)
    prices(("bread", "cocoa", "dates"))
    run(["evaluate", words[0], newest, *words[1:]]).expect(65, "its class 0 is bread, but ", "calls it apple")
    run(["evaluate", words[0], newest, *words[1:], "--force"]).expect(0, "does not fit")


def searched(scratch):
    """Trials on other data are not compared."""
    deck, space = scratch / "deck.ini", scratch / "space.ini"
    data = table(scratch / "cur.h5", 1)
    deck.write_text(DECK.format(scratch=scratch))
    space.write_text("[search]\nstrategy = random\ntrials = 1\ngoals = accuracy max\n[space]\n"
                     "optimizer.learning-rate = uniform(0.01, 0.1)\n")
    words = ["search", space, deck, "--directory", scratch / "search", "--data.validation", "20 %", "--data.test", "",
             "--train.epochs", 1, "--train.validate-every", 1]
    run(words).expect(0)
    other = table(scratch / "other.h5", 1, scale=50, shift=100)
    told = run([*words, "--directory", scratch / "told", "--data.validation", other]).expect(0).text
    check(told.count(OTHER_UNITS) == 1, f"told once: {told}")
    told = " ".join(run(["check", deck, "--data.validation", other, "--data.test", ""]).text.split())
    check(OTHER_UNITS in told, f"told by check: {told}")
    table(data, 1, scale=2)
    run(words).expect(64, "the files of data.train or data.validation have changed")


def pairs(scratch):
    """What the training set leaves open, the other sets must agree on, too."""
    random = np.random.default_rng(6)
    deck = scratch / "pairs.ini"

    def write(name, **attributes):
        path = scratch / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file["inputs"] = random.normal(size=(48, 3)).astype(np.float32)
            file["targets"] = np.arange(48) % 3
            for key, value in attributes.items():
                file.attrs[key] = value
        return path

    deck.write_text(f"[run]\ndevice = cpu\ndirectory = {scratch}/pairs\n[data]\ntrain = {write('open')}\nbatch = 8\n"
                    "[model]\nname = mlp\nhidden = 4\n[train]\nepochs = 1\n[monitor]\nplots = false\nprogress = none\n")
    differ = {"column": {"columns": list("abc")}, "class": {"classes": list("abc")}, "sample rate": {"sample_rate": 8000.0}}
    others = {"column": {"columns": list("bac")}, "class": {"classes": list("bac")}, "sample rate": {"sample_rate": 16000.0}}
    for what in some(differ, 2):
        first, other = write("first", **differ[what]), write("other", **others[what])
        for command in some(("train", "plan")):
            run([command, deck, "--data.validation", first, "--data.test", other]).expect(
                65, f"data.test = {other} does not fit data.validation", f"its {what}")
    fewer = write("fewer", classes=list("abc"))
    with h5py.File(write("two", classes=list("ab")), "r+") as file:
        file["targets"][:] = np.arange(48) % 2
    for sets in itertools.permutations((fewer, scratch / "two.h5")):
        run(["train", deck, "--data.validation", sets[0], "--data.test", sets[1], "--checkpoint.resume", "none"]).expect(0)


def shown_names(scratch):
    """Names from files are shown, neither obeyed by a terminal nor taken for lines of the program."""
    random = np.random.default_rng(8)
    data, deck = scratch / "names.h5", scratch / "names.ini"
    name = "cat\n  replicas    9\033[31m\x7f"
    with h5py.File(data, "w") as file:
        file["inputs"] = random.normal(size=(48, 3)).astype(np.float32)
        file["targets"] = np.arange(48) % 2
        file.attrs["classes"] = ["cat", "dog"]
    deck.write_text(f"[run]\ndevice = cpu\ndirectory = {scratch}/names\n[data]\ntrain = {data}\ntest = {data}\nbatch = 8\n"
                    "[model]\nname = mlp\nhidden = 4\n[train]\nepochs = 1\n[monitor]\nplots = false\nprogress = none\n")
    run(["train", deck]).expect(0)
    alone = scratch / "names.safetensors"
    run(["checkpoint", "export", checkpoints(scratch / "names")[-1], alone]).expect(0)

    def rename(header):
        header["__metadata__"]["lockstep_facts"] = header["__metadata__"]["lockstep_facts"].replace('"cat"', json.dumps(name))
        header[name] = header.pop("layers.output.weight")

    edit_header(alone, alone, rename)
    shown = r"cat\x0a  replicas    9\x1b[31m\x7f"
    text = run(["checkpoint", "info", alone]).expect(0, f"2 classes ({shown}, dog)", f"    {shown} f32").text
    check("\n  replicas    9" not in text and "\033" not in text and "\x7f" not in text, text)
    records = scratch / "names/metrics.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        if line["event"] == "test":
            line[name] = 0.5
        if line["event"] == "start":
            line["model"] = name
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = run(["watch", scratch / "names", "--once"]).expect(0, r"cat   replicas    9\x1b[31m\x7f").text
    check("\033" not in text and "\x7f" not in text, text)


def crafted(scratch):
    """What a file says of samples takes no memory before it agrees with its weights."""
    data, deck, alone = scratch / "set.h5", scratch / "deck.ini", scratch / "own.safetensors"
    with h5py.File(data, "w") as file:
        file["inputs"] = np.random.default_rng(8).normal(size=(48, 3)).astype(np.float32)
        file["targets"] = np.arange(48) % 2
    deck.write_text(f"[run]\ndevice = cpu\ndirectory = {scratch}/crafted\n[data]\ntrain = {data}\nbatch = 8\n"
                    "[model]\nname = mlp\nhidden = 4\n[train]\nepochs = 1\n[monitor]\nplots = false\nprogress = none\n")
    run(["train", deck]).expect(0)
    run(["checkpoint", "export", checkpoints(scratch / "crafted")[-1], alone]).expect(0)
    model = ["--model.name", "mlp", "--model.hidden", 4, "--overwrite"]

    def told(**values):
        def edit(header):
            facts = json.loads(header["__metadata__"]["lockstep_facts"])
            facts["inputs"][0].update({key: value for key, value in values.items() if key == "shape"})
            facts.update({key: value for key, value in values.items() if key != "shape"})
            header["__metadata__"]["lockstep_facts"] = json.dumps(facts)

        path = scratch / "crafted.safetensors"
        edit_header(alone, path, edit)
        return path

    for shape, *words in (([3], ), ([1, 40000, 40000], "no sample has the shape"),
                          ([1, 16000, 16000], "the model would have 1.02e+09 parameters")):
        for out in ("x.c", "x.onnx", "x.pt"):
            run(["checkpoint", "export", told(shape=shape), scratch / out, *model]).expect(65 if words else 0, *words)
    for count, *words in ((2, ), (50, "its model has 2 outputs, but the file says that it knows 50 classes")):
        run(["checkpoint", "quantise", told(class_count=count), scratch / "int8.h5", *model, "--data.train", data]).expect(
            65 if words else 0, *words)


def targets(scratch):
    """Values that are learnt are known by the names of their datasets, and inputs by theirs."""
    random = np.random.default_rng(7)
    data, deck = scratch / "values.h5", scratch / "values.ini"
    with h5py.File(data, "w") as file:
        for name in ("u", "v"):
            file[name] = random.normal(size=(48, 3)).astype(np.float32)
        for name, places in (("ab", (0, 1)), ("ba", (1, 0))):
            file[name] = file["u"][:][:, places]
    deck.write_text(f"[run]\ndevice = cpu\ndirectory = {scratch}/values\n[data]\ntrain = {data}\ntest = {data}\n"
                    "inputs = u\ntargets = ab\nbatch = 8\n[model]\nname = mlp\nhidden = 4\n[task]\nkind = regression\n"
                    "[train]\nepochs = 1\n[monitor]\nplots = false\nprogress = none\n")
    run(["train", deck]).expect(0)
    newest, out = checkpoints(scratch / "values")[-1], scratch / "values.onnx"
    why = "its targets are ba, but those of "
    run(["evaluate", deck, newest]).expect(0)
    run(["evaluate", deck, newest, "--data.targets", "ba"]).expect(65, why)
    run(["evaluate", deck, newest, "--data.targets", "ba", "--force"]).expect(0, why)
    words = ["train", deck, "--run.directory", scratch / "more", "--data.targets", "ba"]
    run([*words, "--model.weights", newest]).expect(0, f"the model is trained further on data.train = {data}: {why}")
    run([*words, "--distill.teacher", newest, "--checkpoint.resume", "none"]).expect(64, why)
    for key, value in (("inputs", "v"), ("targets", "ba")):
        run(["checkpoint", "export", newest, out, "--overwrite", f"--data.{key}", value]).expect(
            0, f"warning: data.{key} = {value} is not used")


# Keys with which the same weights compute something else.
OTHER_KEYS = {
    "cnn1d": {"first-stride": "2"},
    "cnn3d": {"time-strides": "1, 1", "downsample": "pool", "activation": "leaky-relu", "bound": "0"},
    "lmu-asr": {"stride": "2"},
    "transformer": {"heads": "4", "attention": "full", "positions": "none", "rotary-base": "500",
                    "rotary-scaling": "linear 2", "norm-epsilon": "0.1", "documents": "joined"},
    "vit": {"heads": "4", "norm-epsilon": "0.1"},
}


def model_keys(scratch):
    """The keys of a model belong to its weights, too."""
    small_models.write_data(scratch)
    for name in some(OTHER_KEYS, 2):
        deck = small_models.deck_of(scratch, name, 1)
        run(["train", deck, "--run.directory", scratch / name]).expect(0)
        newest = checkpoints(scratch / name)[-1]
        same = ["evaluate", deck, newest]
        run(same).expect(0)
        run([*same, "--model.dropout", "0.5"]).expect(0)
        alone = scratch / f"{name}.safetensors"
        run(["checkpoint", "export", newest, alone]).expect(0)
        for (key, value), weights in zip(some(OTHER_KEYS[name].items(), 2), itertools.cycle((newest, alone))):
            words = [f"--model.{key}", value]
            what = f"model.{key} = {value}"
            same = ["evaluate", deck, weights]
            run([*same, *words]).expect(64, "is not the one that the weights in", what)
            run([*same, *words, "--force"]).expect(0, "were trained with another model", what)
            run(["train", deck, *words, "--model.weights", weights, "--run.directory", scratch / "further",
                 "--checkpoint.resume", "none"]).expect(0, "were trained with another model", what)
            run(["federate", "init", scratch / f"federation-{name}-{key}", deck, *words, "--weights", weights, "--key",
                 scratch / "c.key", "--min-sites", 1, "--rounds", 1]).expect(0, "were trained with another model", what)


for part in (walk, crafted, *some((texts, pictures, market, searched, pairs, targets, shown_names, model_keys), 2)):
    with Scratch() as scratch:
        part(scratch)
    print(part.__name__)
print("what lies at data.train today changes no model")
