"""What a forward writes: every model that changes tensors has the same bits on any ranks and through a kill, also as a
teacher, or is refused before its first step with the operator and the tensor. The short form draws some of them."""
import copy
import sys

import h5py
import torch
from torch import nn
from torch.export.pt2_archive._package import package_pt2
from torch.nn import functional as F

from harness import BUILD, LONG, SOURCE, Scratch, check, check_same, checkpoints, records, run, some

sys.path.insert(0, str(SOURCE / "python"))
import lockstep_export  # noqa: E402

CLASSES, SAMPLES, STEPS = 10, 64, 8
DECK = """
[run]
device = cpu
replicas = 4
[data]
train = {scratch}/data.h5
validation = {scratch}/validation.h5
inputs = {inputs}
batch = 4
[optimizer]
name = sgd
learning-rate = 0.0625
weight-decay = 0
[checkpoint]
every-steps = 3
[monitor]
log-every = 1
weight-hash = true
progress = plain
tensorboard = false
plots = false
[train]
steps = 8
validate-every = 1
"""


class Net(nn.Module):
    """Two layers; what is written is in the classes below."""
    inputs = "reals"

    def __init__(self):
        super().__init__()
        self.first, self.output = nn.Linear(24, 16), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.output(torch.relu(self.first(x)))


class Words(nn.Module):
    inputs = "words"

    def __init__(self):
        super().__init__()
        self.words, self.output = nn.Embedding(50, 16, max_norm=1.0), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.output(self.words(x).mean(1))


class FrozenWords(Words):
    def __init__(self):
        super().__init__()
        self.words.weight.requires_grad_(False)


class Clamped(Net):
    def forward(self, x):
        with torch.no_grad():
            self.first.weight.clamp_(-0.1, 0.1)
        return self.output(torch.relu(self.first(x)))


class View(Net):
    """Through a view of it."""

    def forward(self, x):
        self.first.weight.detach()[3].mul_(0.5)
        return self.output(torch.relu(self.first(x)))


class Data(Net):
    def forward(self, x):
        self.first.weight.data.div_(self.first.weight.data.norm())
        return self.output(torch.relu(self.first(x)))


class Target(Net):
    """As BYOL's and MoCo's: a network that follows the trained one."""

    def __init__(self):
        super().__init__()
        self.target = copy.deepcopy(self.first)
        self.target.requires_grad_(False)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.target.weight.mul_(0.75).add_(self.first.weight, alpha=0.25)
                self.target.bias.mul_(0.75).add_(self.first.bias, alpha=0.25)
        return self.output(torch.relu(self.first(x)) + self.target(x).detach())


class FrozenNorm(Net):
    """In evaluation, too."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((16,), 3.0), requires_grad=False)

    def forward(self, x):
        with torch.no_grad():
            self.scale.mul_(0.875).add_(x.mean(), alpha=0.125)
        return self.output(torch.relu(self.first(x)) * self.scale)


class Counted(Net):
    """A buffer that each forward changes, and that its outputs follow."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(1))

    def forward(self, x):
        self.count.mul_(1.25)
        return self.output(torch.relu(self.first(x))) * self.count


class Inputs(Net):
    def forward(self, x):
        x.mul_(0.5)
        return self.output(torch.relu(self.first(x)))


class Draws(Net):
    """Dropout that stays on in evaluation."""

    def forward(self, x):
        return self.output(F.dropout(torch.relu(self.first(x)), 0.25, True))


class Constant(Net):
    def __init__(self):
        super().__init__()
        self.count = torch.ones(1)

    def forward(self, x):
        self.count.add_(1)
        return self.output(torch.relu(self.first(x))) * self.count


class Late(Target):
    """In a branch that a first pass does not take."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.steps.add_(1)
        if int(self.steps) > 3:
            with torch.no_grad():
                self.target.weight.mul_(0.75).add_(self.first.weight, alpha=0.25)
        return self.output(torch.relu(self.first(x)) + self.target(x).detach())


class LateClamp(Late):
    def forward(self, x):
        self.steps.add_(1)
        if int(self.steps) > 3:
            with torch.no_grad():
                self.first.weight.clamp_(-0.1, 0.1)
        return self.output(torch.relu(self.first(x)))


class Number(Net):
    count: int

    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        self.count += 1
        return self.output(torch.relu(self.first(x))) * self.count


class History(Net):
    seen: list[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.seen = [torch.zeros(1)]

    def forward(self, x):
        self.seen.append(x.detach().mean().view(1))
        return self.output(torch.relu(self.first(x))) + self.seen[0]


def prepare(scratch):
    torch.manual_seed(6)
    for name, samples in (("data", SAMPLES), ("validation", 20 * SAMPLES)):  # of which a rank evaluates several batches
        with h5py.File(scratch / f"{name}.h5", "w") as file:
            file["reals"] = torch.randn(samples, 24).numpy()
            file["words"] = torch.randint(0, 50, (samples, 6)).numpy()
            file["targets"] = (torch.arange(samples) * 7 % CLASSES).numpy()
    for inputs in ("reals", "words"):
        (scratch / f"{inputs}.ini").write_text(DECK.format(scratch=scratch, inputs=inputs))


def refused(operator, tensor):
    return [f"operator {operator}", f"changes {tensor}", "a forward method may change only buffers"]


# The same bits, or how the program and the script are refused; None: Python cannot make the file.
SAME = "same"
FAMILIES = {
    Net: (SAME, SAME),
    Words: (refused("torch.ops.aten.embedding_renorm_.default", "parameter words.weight"),
            SAME),  # torch.jit.script drops the change
    FrozenWords: (SAME, SAME),
    Clamped: (refused("torch.ops.aten.clamp_.default", "parameter first.weight"),
              refused("aten::clamp_", "parameter first.weight")),
    View: (refused("torch.ops.aten.mul_.Tensor", "parameter first.weight"),
           refused("aten::mul_", "parameter first.weight")),
    Data: (None, refused("aten::div_", "parameter first.weight")),
    Target: (SAME, SAME),
    FrozenNorm: (SAME, SAME),
    Counted: (SAME, SAME),
    Inputs: (SAME, SAME),
    Draws: (SAME, SAME),
    Constant: (refused("torch.ops.aten.add_.Tensor", "tensor count"), refused("aten::add_", "attribute count")),
    Late: (None, SAME),
    LateClamp: (None, refused("aten::clamp_", "parameter first.weight")),
    Number: (None, refused("prim::SetAttr", "attribute count")),
    History: (None, refused("aten::append", "attribute seen")),
}


def examples(kind, count=4):
    return torch.arange(count * 6).view(count, 6) % 50 if kind.inputs == "words" else torch.randn(count, 24)


def save(kind, path):
    """The family as a program or as a script; the model that it was made from."""
    torch.manual_seed(5)
    model = kind()
    if path.suffix == ".pt":
        torch.jit.script(model).save(path)
        model = torch.jit.load(path)
    elif FAMILIES[kind][0] == SAME:
        lockstep_export.save(model, examples(kind), path)
    else:  # which `save` refuses, mostly
        save_program(model, kind, path)
    return model


def save_program(model, kind, path):
    batch = torch.export.Dim("batch", min=1)
    programs = {mode: torch.export.export(model.train(mode == "train"), (examples(kind),),
                                          dynamic_shapes=({0: batch},)) for mode in ("train", "eval")}
    package_pt2(path, exported_programs=programs)


def train(scratch, where, model, *options, ranks=1, env=None):
    return run(["train", scratch / f"{model.kind}.ini", "--run.directory", scratch / where, *model.words, *options],
               ranks, env)


class File:
    """A model's file as words of the command line."""

    def __init__(self, kind, path):
        self.kind = kind.inputs
        self.words = ["--model.name", "script" if path.suffix == ".pt" else "export", "--model.file", path]


class Pupil:
    """A small network that learns from a teacher."""
    kind = "reals"

    def __init__(self, teacher, *words):
        self.words = ["--model.name", "mlp", "--model.hidden", 8, "--distill.teacher", teacher, *words]


def same_bits(scratch, name, model, *options):
    """On 1, 2 and 4 ranks, and killed on 2 and resumed on others, through validations."""
    train(scratch, f"{name}-1", model, *options).expect(0)
    for ranks in some((2, 4)):
        train(scratch, f"{name}-{ranks}", model, *options, ranks=ranks).expect(0)
        check_same(scratch / f"{name}-1", scratch / f"{name}-{ranks}", f"{name} on {ranks} ranks")
        losses = [[each["loss"] for each in records(scratch / f"{name}-{of}", "validation")] for of in (1, ranks)]
        check(losses[0] == losses[1], f"{name}: validation on {ranks} ranks: {losses}")
    for label, ranks, words in some((("dp", 1, ["--run.mode", "dp"]),
                                     ("again", 2, ["--precision.gradient-checkpointing", "true"]))) \
            if "export" in model.words else ():
        train(scratch, f"{name}-{label}", model, *options, *words, ranks=ranks).expect(0)
        hashes = [[each["weight_hash"] for each in records(scratch / f"{name}-{of}", "step")] for of in (1, label)]
        check(hashes[0] == hashes[1], f"{name}-{label}: {hashes}")
    killed = train(scratch, f"{name}-cut", model, *options, ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=5"})
    check(killed.code != 0, "killed")
    train(scratch, f"{name}-cut", model, *options, ranks=3 if LONG else 1).expect(0, "resumed from")
    check_same(scratch / f"{name}-1", scratch / f"{name}-cut", f"{name} through a kill")


def as_pytorch(scratch, name, model, file):
    """On one replica a written tensor is what eager PyTorch leaves in it: no trial is left over."""
    with h5py.File(scratch / "data.h5") as data:
        inputs, targets = (torch.from_numpy(data[each][:]) for each in (file.kind, "targets"))
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.0625, fused=True)
    model.train()
    for step in range(4):
        begin = step * 4
        loss = F.cross_entropy(model(inputs[begin:begin + 4].clone()), targets[begin:begin + 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    train(scratch, f"{name}-alone", file, "--run.replicas", 1, "--train.steps", 4, "--data.shuffle", "none",
          "--train.validate-every", 100).expect(0)
    with h5py.File(checkpoints(scratch / f"{name}-alone")[-1]) as saved:
        for key, value in model.state_dict().items():
            ours = torch.from_numpy(saved["model/" + key.replace(".", "/")][:]).view_as(value)
            check(torch.allclose(ours, value, rtol=1e-5, atol=1e-6), f"{name}: {key} is PyTorch's: {ours} {value}")


def try_family(scratch, kind, suffix):
    expected = FAMILIES[kind][suffix == ".pt"]
    name = f"{kind.__name__}{suffix}"
    model = save(kind, scratch / name)
    file = File(kind, scratch / name)
    if expected != SAME:
        told = train(scratch, f"{name}-no", file, ranks=2).expect(64, *expected)
        check("written_test.py" in told.text or kind is Number, f"the line is named: {told.text}")
        check(not checkpoints(scratch / f"{name}-no"), "before the first step")
        return
    same_bits(scratch, name, file)
    if kind is not Draws:
        as_pytorch(scratch, name, model, file)


class Library(Net):
    """Operators of a library that change a trained parameter, and say so or not."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def forward(self, x):
        with torch.no_grad():
            self.operator(self.first.weight)
        return self.output(torch.relu(self.first(x)))


def try_operators(scratch):
    library = BUILD / "tests/liblockstep_operators.so"
    torch.ops.load_library(str(library))
    for name, *phrases in (
            ("halve", *refused("torch.ops.lockstep_test.halve.default", "parameter first.weight"), "written_test.py"),
            ("halve_unsaid", "operator torch.ops.lockstep_test.halve_unsaid.default", "written_test.py",
             "it changes its argument x, but its schema does not say so", "Tensor(a!) x")):
        save_program(Library(getattr(torch.ops.lockstep_test, name)), Net, scratch / f"{name}.pt2")
        train(scratch, f"{name}-no", File(Net, scratch / f"{name}.pt2"), "--model.operators", library,
              ranks=2).expect(64, *phrases)


class Plugin:
    kind = "reals"

    def __init__(self, name):
        self.words = ["--model.name", f"plugin:{BUILD / 'tests/liblockstep_writing_model.so'}:{name}"]


def try_plugin(scratch, name):
    """A model in C++, which may write past LibTorch's eyes, and late."""
    if name == "buffer":
        same_bits(scratch, name, Plugin(name))
        return
    tensor = "frozen" if name == "frozen" else "layer.weight"
    train(scratch, f"{name}-no", Plugin(name), ranks=2).expect(
        64, f"its forward method changes parameter {tensor}, but a forward method may change only buffers")
    if name != "late":
        check(not records(scratch / f"{name}-no", "step"), "before the end of the first step")


def try_teacher(scratch, kind, suffix, *words):
    path = scratch / f"teacher-{kind.__name__}{suffix}"
    save(kind, path)
    same_bits(scratch, f"{path.name}{len(words)}", Pupil(path, *words))


if __name__ == "__main__":
    with Scratch() as scratch:
        prepare(scratch)
        cases = [(kind, suffix) for kind, expected in FAMILIES.items()
                 for suffix, of in zip((".pt2", ".pt"), expected) if of is not None]
        kept = [each for each in cases if FAMILIES[each[0]][each[1] == ".pt"] == SAME]
        for case in some(kept):
            try_family(scratch, *case)
        for case in some([each for each in cases if each not in kept], 2):
            try_family(scratch, *case)
        for case in some(("clamp", "data", "raw", "frozen", "late", "buffer")):
            try_plugin(scratch, case)
        for case in some([(kind, suffix) for kind in (Draws, Counted, FrozenNorm, Inputs, Clamped)
                          for suffix in (".pt2", ".pt")]):
            try_teacher(scratch, *case)
        try_operators(scratch)
