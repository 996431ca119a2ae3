"""Programs of torch.export train as eager PyTorch does, to the last bit on one replica, and to the same
bits on any ranks and through a restart; and what does not fit is told before the first step. Every kind of case is
tried by the long form; the short one tries some that the seed draws."""
import copy
import shutil
import sys

import h5py
import numpy as np
import torch
from torch.export.pt2_archive._package import load_pt2
from torch.nn import functional as F

from harness import (BUILD, LONG, SOURCE, Scratch, check, check_same, checkpoints, records, run, some)

sys.path.insert(0, str(SOURCE / "python"))
import exported_models  # noqa: E402
import lockstep_export  # noqa: E402

# Powers of two: products with them are exact, whether a kernel rounds them or adds first.
BATCH, STEPS = 8, 20
RATE = 0.0625
DECK = """
[run]
device = cpu
[data]
train = {scratch}/{name}.h5
validation = {scratch}/{name}.h5
inputs = {inputs}
batch = {batch}
shuffle = none
[model]
name = export
file = {scratch}/{name}.pt2
[optimizer]
name = sgd
weight-decay = 0
learning-rate = {rate}
[checkpoint]
every-steps = 5
[monitor]
log-every = 1
weight-hash = true
progress = plain
tensorboard = false
plots = false
[train]
steps = {steps}
validate-every = 10
"""


def hashes(where):
    """Of the weights after each step of a run."""
    return [each["weight_hash"] for each in records(where, "step")]


def write(scratch, name, samples):
    """The model's file, and a data set for it."""
    model, inputs = exported_models.make(name, samples)
    path = scratch / f"{name}.pt2"
    if not lockstep_export.save(model, tuple(each[:4] for each in inputs), path):
        # Of kernels that round otherwise: what was exported is the model.
        model = load_pt2(str(path)).exported_programs["train"].module()
    targets = torch.arange(samples) * 7 % exported_models.CLASSES
    with h5py.File(scratch / f"{name}.h5", "w") as file:
        for number, each in enumerate(inputs):
            file[f"input{number}"] = each.numpy()
        file["targets"] = targets.numpy()
    (scratch / f"{name}.ini").write_text(DECK.format(
        scratch=scratch, name=name, batch=BATCH, steps=STEPS, rate=RATE,
        inputs=", ".join(f"input{number}" for number in range(len(inputs)))))
    return model, inputs, targets


def eager(model, inputs, targets):
    """Losses and the state of the model after the steps, as PyTorch trains it on one thread, and the loss of all
    samples in evaluation, where the model can be evaluated."""
    torch.set_num_threads(1)
    if not isinstance(model, torch.fx.GraphModule):
        model.train()
    optimizer = torch.optim.SGD(model.parameters(), RATE, fused=True)
    losses = []
    for step in range(STEPS):
        begin = step * BATCH
        loss = F.cross_entropy(model(*(each[begin:begin + BATCH] for each in inputs)),
                               targets[begin:begin + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    evaluated = None
    if not isinstance(model, torch.fx.GraphModule):
        with torch.no_grad():
            evaluated = F.cross_entropy(model.eval()(*inputs), targets).item()
    return losses, model.state_dict(), evaluated


def train(scratch, name, where, *options, ranks=1, env=None):
    return run(["train", scratch / f"{name}.ini", "--run.directory", scratch / where, *options], ranks, env)


def check_evaluated(where, loss):
    """The last validation's loss is PyTorch's of the same samples."""
    validation = records(where, "validation")[-1]
    check(np.isclose(validation["loss"], loss, rtol=1e-5), f"{where}: PyTorch evaluates to {loss}: {validation}")


def compare_with_eager(scratch, name):
    losses, state, evaluated = eager(*write(scratch, name, BATCH * STEPS))
    where = f"{name}-1"
    train(scratch, name, where, "--run.replicas", 1).expect(0)
    ours = [each["loss"] for each in records(scratch / where, "step")]
    check(ours == losses, f"{name}: the losses are eager PyTorch's:\n{ours}\n{losses}")
    if evaluated is not None:
        check_evaluated(scratch / where, evaluated)
    with h5py.File(checkpoints(scratch / where)[-1]) as saved:
        compared = 0
        for key, value in state.items():
            place = "model/" + key.replace(".", "/")
            if place in saved:  # tied weights are there once
                compared += 1
                check(np.array_equal(np.array(saved[place]).reshape(value.shape), value.numpy()),
                      f"{name}: {key} has eager PyTorch's bits")
    check(compared >= len(list(exported_models.make(name, 2)[0].parameters())), f"{name}: {compared} compared")


def compare_ranks(scratch, name):
    """Four replicas: on 1 to 4 ranks, and killed on 2 and resumed on 3."""
    options = ["--run.replicas", 4, "--data.batch", 2]
    train(scratch, name, f"{name}-whole", *options).expect(0)
    for ranks in (2, 3, 4) if LONG else ():
        train(scratch, name, f"{name}-{ranks}", *options, ranks=ranks).expect(0)
        check_same(scratch / f"{name}-whole", scratch / f"{name}-{ranks}", f"{name} on {ranks} ranks")
    killed = train(scratch, name, f"{name}-cut", *options, ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=8"})
    check(killed.code != 0, "killed")
    train(scratch, name, f"{name}-cut", *options, ranks=3 if LONG else 2).expect(0, "resumed from")
    check_same(scratch / f"{name}-whole", scratch / f"{name}-cut", f"{name} through a kill")


def check_dropout(scratch):
    """Masks are drawn from our keys, as a TorchScript file of the same model draws them."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(exported_models.CNN(), torch.nn.Dropout(0.3))
    _, inputs = exported_models.make("cnn", 4)
    lockstep_export.save(model, inputs, scratch / "dropout.pt2")
    torch.jit.script(model).save(scratch / "dropout.pt")
    options = ["--run.replicas", 4, "--data.batch", 2]
    exported = ["--model.file", scratch / "dropout.pt2"]
    script = ["--model.name", "script", "--model.file", scratch / "dropout.pt"]
    train(scratch, "cnn", "script", *options, *script).expect(0)
    for name, ranks, words in some((("dropout", 1, []), ("dropout-3", 3, []), ("dropout-dp", 1, ["--run.mode", "dp"]))):
        train(scratch, "cnn", name, *options, *exported, *words, ranks=ranks).expect(0)
        check(hashes(scratch / "script") == hashes(scratch / name), f"{name} has the bits of the script")


class Tied(torch.nn.Module):
    """Two layers of one weight, by two names."""

    def __init__(self):
        super().__init__()
        self.convolution = exported_models.CNN()
        self.first, self.second = (torch.nn.Linear(exported_models.CLASSES, exported_models.CLASSES) for _ in "12")
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(self.convolution(x))))


def check_tied(scratch, inputs, targets):
    """Training and evaluation use the same weight, whichever of its names they use."""
    model = Tied()
    lockstep_export.save(model, inputs[0][:4], scratch / "tied.pt2")
    _, _, evaluated = eager(model, inputs, targets)
    train(scratch, "cnn", "tied", "--model.file", scratch / "tied.pt2", "--run.replicas", 1).expect(0)
    check_evaluated(scratch / "tied", evaluated)


def check_deployed(scratch, newest, model, images):
    """What a model with its own loss returns without it: it is exported, quantised, pruned and a teacher."""
    with h5py.File(newest) as saved:
        model.load_state_dict({name: torch.from_numpy(np.array(saved["model/" + name.replace(".", "/")])).view_as(value)
                               for name, value in model.state_dict().items()})
    own = ["--model.file", scratch / "own.pt2", "--task.kind", "export"]
    few = ["--run.replicas", 1, "--train.steps", 2]

    def script():
        run(["checkpoint", "export", newest, scratch / "own.pt"]).expect(0)
        for batch in (1, 7):
            with torch.no_grad():
                expected, found = model.eval()(images[:batch]), torch.jit.load(str(scratch / "own.pt"))(images[:batch])
            check(torch.allclose(found, expected, rtol=1e-5, atol=1e-6),
                  f"TorchScript as eager PyTorch, {batch} samples")

    def in_c(file, name):
        run(["checkpoint", "export", file, scratch / name]).expect(0, "multiply-adds")
        run(["export", "check", scratch / name, "--data", scratch / "cnn.h5"]).expect(0, "It agrees with")

    def integers():
        run(["checkpoint", "quantise", newest, scratch / "own8.h5", "--data.train", scratch / "cnn.h5"]).expect(
            0, "weights in int8")
        run(["evaluate", scratch / "cnn.ini", scratch / "own8.h5", *own]).expect(
            64, "an int8 model of task.kind = export cannot be evaluated")
        in_c(scratch / "own8.h5", "own8.c")

    def onnx():
        run(["checkpoint", "export", newest, scratch / "own.onnx"]).expect(0, "multiply-adds")

    def pruned():
        train(scratch, "cnn", "own-smaller", *own, *few, "--prune.pattern", "channels").expect(0, "of channels removed")

    def teacher():
        train(scratch, "cnn", "taught", *few, "--distill.teacher", scratch / "own.pt2").expect(0, "also learning from")

    def older():  # as it was saved before there was a third program
        records = lockstep_export._read_records(scratch / "own.pt2")
        del records["models/outputs.json"]
        lockstep_export._write_records(scratch / "old.pt2", records)
        old = ["old.pt2 cannot compute outputs for samples", "only sums of the loss"]
        for name in some(("old.pt", "old.onnx", "old.c")):
            run(["checkpoint", "export", newest, scratch / name, "--model.file", scratch / "old.pt2"]).expect(
                64, *old, "current lockstep_export.save")
        train(scratch, "cnn", "no", *few, "--distill.teacher", scratch / "old.pt2").expect(64, *old)

    for way in some((script, integers, lambda: in_c(newest, "own.c"), onnx, pruned, teacher, older), 3):
        way()


def check_own_loss(scratch, inputs, targets):
    """task.kind = export: the loss, its weight and metrics come with the model."""
    model, _ = exported_models.make("cnn", 2)

    def loss(scores, labels):
        return {"loss": F.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0],
                "right": (scores.argmax(1) == labels).sum(), "wrong": (scores.argmax(1) != labels).sum(),
                "never": (labels < 0).sum()}

    def save(name, **how):
        lockstep_export.save(model, inputs[0][:4], scratch / f"{name}.pt2", loss=loss, targets=targets[:4], **how)

    save("own", metrics={"accuracy": ("right", "samples")})
    own = ["--model.file", scratch / "own.pt2", "--task.kind", "export"]
    replicas = ["--run.replicas", 4, "--data.batch", 2]
    train(scratch, "cnn", "theirs", *replicas).expect(0)
    for ranks in (1, 3) if LONG else (2,):
        where = f"own-{ranks}"
        train(scratch, "cnn", where, *own, *replicas, ranks=ranks).expect(0)
        check(hashes(scratch / "theirs") == hashes(scratch / where), f"{where}: the same loss as ours has the same bits")
        measured = [[(each["loss"], each["accuracy"]) for each in records(scratch / name, "validation")]
                    for name in ("theirs", where)]
        check(np.allclose(*measured, rtol=1e-6), f"the same validations: {measured}")
    run(["evaluate", scratch / "cnn.ini", scratch / f"{where}/best.h5", *own], 2 if LONG else 1).expect(0, "accuracy")
    check_deployed(scratch, checkpoints(scratch / where)[-1], copy.deepcopy(model), inputs[0])

    def graded(*cases):
        """The best model is that of a metric of the file's own."""
        save("graded", metrics={"accuracy": ("right", "samples"), "error": ("wrong", "samples", "min")})
        words = ["--model.file", scratch / "graded.pt2", *own[2:], "--train.validate-every", 2, "--checkpoint.best"]
        for metric, best in cases:
            text = train(scratch, "cnn", f"best-{metric}", *words, metric).expect(0).text
            values = [each[metric] for each in records(scratch / f"best-{metric}", "validation")]
            with h5py.File(scratch / f"best-{metric}/best.h5") as file:
                kept = file["record"].attrs["best"]
            check(kept == best(values) and len(set(values)) > 1, f"the best {metric} of {values} is {kept}: {text}")
        train(scratch, "cnn", "no", *words, "f1").expect(64, "the metrics of export are loss, accuracy, error")

    def hollow():
        """A metric that is 0 / 0 is said to be no number, and why there is no best model."""
        save("hollow", metrics={"hollow": ("never", "never")})
        words = ["--model.file", scratch / "hollow.pt2", *own[2:]]
        text = train(scratch, "cnn", "hollow", *words, "--checkpoint.best", "hollow").expect(
            0, "warning: the validation set gives no finite hollow", "hollow nan",
            "warning: there is no best.h5, because hollow was not finite in any validation").text
        check("-nan" not in text and not (scratch / "hollow/best.h5").exists(), text)
        run(["evaluate", scratch / "cnn.ini", scratch / "hollow", *words]).expect(0, "gives no finite hollow", "hollow nan")

    graded(*some((("accuracy", max), ("error", min))))
    hollow()
    for words, *phrases in some((  # what does not fit together
            (own[:2], "the file has its own loss", "task.kind = export"), (own[2:], "saved without a loss"),
            ([*own[2:], "--model.name", "mlp", "--model.file", ""],))):
        train(scratch, "cnn", "no", *words).expect(64, *phrases)
    for how, why in some(((dict(weight="many"), "returns no ['many']"),
                          (dict(metrics={"a": ("b", "samples")}), "['b']"))):
        try:
            save("wrong", **how)
        except ValueError as error:
            check(why in str(error), f"{why}: {error}")
        else:
            check(False, f"{how} is refused")


class Twice(torch.nn.Module):
    """Blocks that share their layers, change what they are given, and draw."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.block, self.drop = torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.Dropout(0.2)
        self.output = torch.nn.Linear(8, exported_models.CLASSES)
        self.register_buffer("seen", torch.zeros(8, 1, 1))

    def forward(self, x):
        x = self.first(x)
        for _ in range(3):
            x = x + self.drop(self.norm(self.block(x)).relu_()) * torch.sigmoid(self.block(x) + self.seen)
            if self.training:
                self.seen.add_(0.125)
        return self.output(x.relu_().mean((2, 3)))


class Cubed(torch.nn.Module):
    """An operator that is not PyTorch's."""

    def __init__(self, operator):
        super().__init__()
        self.convolution = exported_models.CNN()
        self.output = torch.nn.Linear(exported_models.CLASSES, exported_models.CLASSES)
        self.operator = operator

    def forward(self, x):
        return self.output(self.operator(torch.tanh(self.convolution(x))))


def check_operators(scratch, inputs, targets):
    """Operators of a library that the deck names: eager PyTorch's bits with the same library, also on two ranks. What
    the deck does not name is not loaded, and what has no derivative is refused."""
    torch.ops.load_library(str(BUILD / "tests/liblockstep_operators.so"))
    operators = torch.ops.lockstep_test
    library = scratch / "operators.so"
    shutil.copy(BUILD / "tests/liblockstep_operators.so", library)
    model, images = Cubed(operators.cube), inputs[0]
    if not lockstep_export.save(model, images[:4], scratch / "cubed.pt2"):
        model = load_pt2(str(scratch / "cubed.pt2")).exported_programs["train"].module()
    named, cubed = ["--model.operators", library], ["--model.file", scratch / "cubed.pt2"]
    losses, _, evaluated = eager(model, inputs, targets)
    train(scratch, "cnn", "cubed", *cubed, *named, "--run.replicas", 1).expect(0)
    ours = [each["loss"] for each in records(scratch / "cubed", "step")]
    check(ours == losses, f"with an operator of a library, the losses are eager PyTorch's:\n{ours}\n{losses}")
    if evaluated is not None:
        check_evaluated(scratch / "cubed", evaluated)
    for ranks, more in ((1, []), (2, ["--precision.gradient-checkpointing", "true"])):
        train(scratch, "cnn", f"cubed-{ranks}", *cubed, *named, *more, "--run.replicas", 4, "--data.batch", 2,
              "--train.steps", 4, ranks=ranks).expect(0)
    check(hashes(scratch / "cubed-1") == hashes(scratch / "cubed-2"), "with the operator, two ranks have the bits of one")
    best = scratch / "cubed/best.h5"
    if LONG:
        run(["evaluate", scratch / "cnn.ini", best, *cubed, *named], 2).expect(0, "loss")

    def unnamed():  # the file names no code: it is loaded because the user names it
        cannot = "operator torch.ops.lockstep_test.cube.default cannot be run"
        train(scratch, "cnn", "no", *cubed).expect(64, cannot, "no library that the deck names", "In model.operators")

    def exports():
        script = scratch / "cubed.pt"
        run(["checkpoint", "export", best, script]).expect(
            64, "a library of operators is loaded only if you name it yourself", f"Add --model.operators {library}")
        run(["checkpoint", "export", best, script, *named]).expect(0)
        check(torch.jit.load(str(script))(images[:3]).shape == (3, exported_models.CLASSES),
              "the script calls the operator")
        run(["checkpoint", "export", best, scratch / "cubed.onnx", *named]).expect(64, "lockstep_test::cube")

    def no_derivative():
        lockstep_export.save(Cubed(operators.no_derivative), images[:4], scratch / "flat.pt2")
        train(scratch, "cnn", "no", "--model.file", scratch / "flat.pt2", *named, ranks=2).expect(
            64, "operator lockstep_test::no_derivative has no autograd kernel", "flat.pt2 cannot be trained")

    def others():
        for file, code, phrase in some(((scratch / "none.so", 66, "the file does not exist"),
                                        (f"{library},", 64, "a name in this list of libraries is empty"),
                                        (scratch / "cnn.ini", 69, "it is not a shared library"))):
            train(scratch, "cnn", "no", *cubed, "--model.operators", file).expect(code, phrase)

    def built_for_another():
        whole, stamp = library.read_bytes(), b"lockstep_torch_version="
        check(stamp + torch.__version__.split("+")[0].encode() in whole, "the library names its LibTorch")
        for old, new, phrase in some(((stamp, stamp + b"0.", "it was built for LibTorch 0."),
                                      (b"10mul_Tensor4call", b"10mul_Tensos4call", "probably built for another LibTorch"),
                                      (b"libc10.so", b"libx10.so", "it needs a library that was not found: libx10.so"))):
            at = whole.index(old)
            library.write_bytes(whole[:at] + new + whole[at + len(new):])
            train(scratch, "cnn", "no", *cubed, *named).expect(69, "the library of operators", phrase)
        library.write_bytes(whole)

    def changed():  # the same files elsewhere, and another library, which still loads
        moved = scratch / "moved"
        moved.mkdir()
        shutil.copy(library, moved)
        shutil.copy(scratch / "cubed.pt2", moved)
        elsewhere = ["--model.operators", moved / library.name, "--model.file", moved / "cubed.pt2"]
        train(scratch, "cnn", "cubed-2", *elsewhere, "--precision.gradient-checkpointing", "true", "--run.replicas", 4,
              "--data.batch", 2, "--train.steps", 5).expect(0, "resumed from")
        before = library.read_bytes()
        library.write_bytes(before + b" ")
        again = ["--run.replicas", 4, "--data.batch", 2, "--train.steps", 5]
        train(scratch, "cnn", "cubed-1", *cubed, *named, *again).expect(
            64, f"model.operators = {library} is not the library that this run began with", "the hash of its contents")
        if LONG:
            train(scratch, "cnn", "cubed-1", *cubed, *named, *again, "--force").expect(0, "resumed from")
            check(records(scratch / "cubed-1", "resume")[-1]["forced"]
                  == [f"other contents of model.operators = {library}"], "what was forced is on record")
        library.write_bytes(before)

    for case in some((unnamed, exports, no_derivative, others, built_for_another, changed), 2):
        case()
    if LONG:  # compiled steps call the library, too

        def loss(scores, labels):
            return {"loss": F.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0]}

        lockstep_export.save(Cubed(operators.cube), images[:4], scratch / "compiled.pt2", loss=loss, targets=targets[:4])
        lockstep_export.compile(scratch / "compiled.pt2")
        train(scratch, "cnn", "compiled", "--model.file", scratch / "compiled.pt2", *named, "--model.compiled", "require",
              "--task.kind", "export").expect(0)


def check_recomputed(scratch, names, inputs):
    """precision.gradient-checkpointing: the bits of stored activations, also of random numbers, 16-bit casts, and
    where a module is used twice; with less memory."""
    options = ["--run.replicas", 4, "--data.batch", 2, "--train.steps", 8]

    def same(name, label, *more):
        ranks = 3 if LONG else 2
        for where, count, words in ((f"{name}-{label}-stored", 1, []),
                                    (f"{name}-{label}-again", ranks, ["--precision.gradient-checkpointing", "true"])):
            train(scratch, name, where, *options, *more, *words, ranks=count).expect(0)
        check(hashes(scratch / f"{name}-{label}-stored") == hashes(scratch / where),
              f"{name}, {label}: recomputed on {ranks} ranks as stored on one")

    for name in names:
        same(name, "fp32")

    torch.manual_seed(4)

    def twice(label, *words):
        if not (scratch / "twice.pt2").exists():
            lockstep_export.save(Twice(), inputs[0][:4], scratch / "twice.pt2")
        same("cnn", label, "--model.file", scratch / "twice.pt2", *words)

    def dropping():
        # What a module changes lies within one block, which may be the last; these are in blocks that are run again.
        layers = [torch.nn.Flatten(), torch.nn.Linear(196, 10)]
        for _ in range(8):
            layers += [torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(10, 10)]
        lockstep_export.save(torch.nn.Sequential(*layers), inputs[0][:4], scratch / "dropping.pt2")
        same("cnn", "dropping", "--model.file", scratch / "dropping.pt2")

    for case in some((dropping, lambda: twice("twice"), lambda: twice("twice-bf16", "--precision.compute", "bf16"))):
        case()


def check_synchronised(scratch, inputs):
    """communication.sync-batch-norm: statistics of all replicas, as one replica with all of the samples has them."""
    options = ["--communication.sync-batch-norm", "true", "--run.replicas", 4, "--data.batch", 2]
    train(scratch, "cnn", "alone", "--run.replicas", 1).expect(0)
    train(scratch, "cnn", "sync-1", *options).expect(0)
    losses = [[each["loss"] for each in records(scratch / where, "step")] for where in ("alone", "sync-1")]
    check(np.allclose(*losses, rtol=1e-4), f"four replicas as one of all samples: {losses}")
    with (h5py.File(checkpoints(scratch / "alone")[-1]) as alone,
          h5py.File(checkpoints(scratch / "sync-1")[-1]) as ours):
        for name in ("num_batches_tracked", "running_mean", "running_var"):
            check(np.allclose(alone[f"model/norm/{name}"], ours[f"model/norm/{name}"], rtol=1e-3, atol=1e-5), name)

    def agree():
        for where, ranks, more in some((("sync-2", 2, []), ("sync-4", 4, []), ("sync-dp", 1, ["--run.mode", "dp"]),
                                        ("sync-again", 2, ["--precision.gradient-checkpointing", "true"]))):
            train(scratch, "cnn", where, *options, *more, ranks=ranks).expect(0)
            check(hashes(scratch / "sync-1") == hashes(scratch / where), f"{where} has the bits of one rank")

    def draws():
        lockstep_export.save(torch.nn.Sequential(exported_models.CNN(), torch.nn.Dropout(0.3)), inputs[0][:4],
                             scratch / "sync.pt2")
        dropping = [*options, "--model.file", scratch / "sync.pt2", "--train.steps", 2]
        train(scratch, "cnn", "no", *dropping, ranks=2).expect(64, "must run concurrently", "one rank for each replica")
        if LONG:
            train(scratch, "cnn", "sync-dropout", *dropping, ranks=4).expect(0)

    for case in some((agree, draws)):
        case()


def check_clipped(scratch, inputs, targets):
    """optimizer.clip-norm clips the sum of the gradient and the proximal term, as clip_grad_norm_ does."""
    model, pull, largest = load_pt2(str(scratch / "cnn.pt2")).exported_programs["train"].module(), 64, 0.5
    first = [each.detach().clone() for each in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), RATE, fused=True)
    for step in range(4):
        begin = step * BATCH
        optimizer.zero_grad()
        F.cross_entropy(model(inputs[0][begin:begin + BATCH]), targets[begin:begin + BATCH]).backward()
        for each, value in zip(model.parameters(), first):
            each.grad.add_(each.detach() - value, alpha=pull)
        torch.nn.utils.clip_grad_norm_(model.parameters(), largest)
        optimizer.step()
    words = ["--optimizer.proximal", pull, "--optimizer.clip-norm", largest, "--train.steps", 4]
    train(scratch, "cnn", "clipped", *words, "--run.replicas", 1).expect(0)
    with h5py.File(checkpoints(scratch / "clipped")[-1]) as saved:
        for name, value in model.named_parameters():
            ours = np.array(saved["model/" + name.replace(".", "/")])
            check(np.allclose(ours, value.detach().numpy(), rtol=1e-4, atol=1e-5), f"{name}: {ours} {value}")
    for ranks in (1, 2):
        train(scratch, "cnn", f"clipped-{ranks}", *words, "--run.replicas", 4, "--data.batch", 2, ranks=ranks).expect(0)
    check(hashes(scratch / "clipped-1") == hashes(scratch / "clipped-2"), "the same bits on two ranks")


class Wrong(torch.nn.Module):
    """A model that cannot be saved."""

    def __init__(self, how):
        super().__init__()
        self.layer, self.how, self.count = torch.nn.Linear(24, exported_models.CLASSES), how, 0

    def forward(self, x):
        if self.how == "clamps":
            with torch.no_grad():
                self.layer.weight.clamp_(-0.1, 0.1)
        elif self.how == "data":
            self.layer.weight.data.mul_(0.5)
        elif self.how == "fixed":
            x = x.view(4, 24)
        elif self.how == "decides":
            x = x * 2 if x.sum() > 0 else x
        else:
            self.count += 1
        return self.layer(x) * (1 + self.count)


def check_save(scratch):
    """What `save` is given comes back as it was, and modules keep their modes; what it cannot save it says in a line."""
    torch.manual_seed(7)
    classes = exported_models.CLASSES
    norm = torch.nn.Sequential(torch.nn.Linear(24, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5),
                               torch.nn.ReLU(inplace=True), torch.nn.Linear(8, classes))
    norm[1].eval()
    inputs = torch.randn(4, 24)

    def everything():
        return [*(each.training for each in norm.modules()), *(each.clone() for each in norm.state_dict().values()),
                inputs.clone(), torch.get_rng_state()]

    def loss(scores, labels):
        return {"loss": F.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0]}

    before = everything()
    for more in ({}, {"loss": loss, "targets": torch.arange(4)}):
        check(lockstep_export.save(norm, inputs, scratch / "norm.pt2", **more), "saved")
        for was, now in zip(before, everything()):
            check(torch.equal(was, now) if isinstance(was, torch.Tensor) else was == now, f"as it was: {was}, {now}")
        calls = [str(each.target) + str(each.args) for each in
                 load_pt2(str(scratch / "norm.pt2")).exported_programs["train"].graph.nodes if each.op == "call_function"]
        check(any("batch_norm" in each and "False, 0.1" in each for each in calls), f"the batch norm is frozen: {calls}")
        check(any("dropout" in each and "0.5, True" in each for each in calls), f"and dropout is on: {calls}")
    norm.eval()
    check(lockstep_export.save(norm, inputs, scratch / "norm.pt2"), "saved")
    check("0.5, True" in str(load_pt2(str(scratch / "norm.pt2")).exported_programs["train"].graph),
          "a model that is wholly in evaluation mode is put into training")
    check(not any(each.training for each in norm.modules()), "and is as it was")

    class Halves(Wrong):
        def forward(self, x):
            x.mul_(0.5)
            return self.layer(x)

    check(lockstep_export.save(Halves(""), inputs, scratch / "halves.pt2"), "inputs may be changed in place")

    averages = torch.nn.Sequential(torch.nn.Linear(24, 8), torch.nn.BatchNorm1d(8, momentum=None))
    named = Wrong("")
    named.register_buffer("code", torch.zeros(24))
    for model, phrase in ((Wrong("clamps"), "forward changes the parameter layer.weight in place"),
                          (Wrong("data"), "forward writes through .data"),
                          (Wrong("fixed"), "the batch size, or another varying dimension, is fixed"),
                          (Wrong("decides"), "forward takes a number or a decision out of a tensor"),
                          (Wrong("counts"), "It also loses what forward assigns to attributes (self.count += 1"),
                          (averages, "1 is a batch norm with momentum=None"), (named, "give it another name")):
        try:
            lockstep_export.save(model, inputs, scratch / "no.pt2")
        except ValueError as error:
            check(phrase in str(error) and len(str(error)) < 700, f"{phrase}: {error}")
            check(not (scratch / "no.pt2").exists(), "nothing is written")
        else:
            check(False, f"saved: {phrase}")


if __name__ == "__main__":
    missing = exported_models.add_theirs() if LONG else []
    names = some(exported_models.FAMILIES)
    with Scratch() as scratch:
        for name in names:
            compare_with_eager(scratch, name)
            compare_ranks(scratch, name)
        _, inputs, targets = write(scratch, "cnn", BATCH * STEPS)
        for part in some((lambda: check_dropout(scratch), lambda: check_tied(scratch, inputs, targets),
                          lambda: check_recomputed(scratch, names if LONG else [], inputs),
                          lambda: check_synchronised(scratch, inputs)), 2):
            part()
        check_save(scratch)
        check_clipped(scratch, inputs, targets)
        check_own_loss(scratch, inputs, targets)
        check_operators(scratch, inputs, targets)
    print(f"families: {', '.join(names)}" + (f"; skipped: {', '.join(missing)}" if missing else ""))
