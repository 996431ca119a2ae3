"""A TorchScript file trains as a model of ours does: the same bits on any ranks and through a
restart, weights by name, and a clear end for a file that does not fit. The short form draws some of them."""
import math
import shutil
from typing import Tuple

import h5py
import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from harness import DATA, LONG, Scratch, check, check_same, checkpoints, records, run, same_state, some

DECK = """
[run]
replicas = 4
device = cpu
[data]
train = {data}/train.h5
validation = {data}/test.h5
batch = 16
[model]
name = script
file = {file}
[optimizer]
accumulate = 2
learning-rate = 0.003
[checkpoint]
every-steps = 5
[monitor]
log-every = 1
weight-hash = true
progress = plain
[train]
steps = 12
validate-every = 6
"""


class Stage(nn.Module):
    """Batch norm, dropout, and a buffer that forward replaces instead of changing it in place."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout(0.2)
        self.register_buffer("average", torch.ones(outputs))

    def forward(self, x):
        x = self.norm(self.convolution(x))
        if self.training:
            x = x * self.average.view(1, -1, 1, 1)
            self.average = 0.9 * self.average + 0.1 * x.detach().abs().mean((0, 2, 3))
        return torch.max_pool2d(torch.relu(self.dropout(x)), 4)


class Network(nn.Module):
    def __init__(self, classes: int = 10):
        super().__init__()
        self.stages = nn.Sequential(Stage(1, 4), Stage(4, 8))
        self.output = nn.Linear(8, classes)
        self.register_buffer("calls", torch.zeros([1], dtype=torch.int64))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.output(self.stages(x.unsqueeze(1)).flatten(1))


class Shared(nn.Module):
    """Layers that share a bias, and layers that share everything."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.Conv2d(inputs, 8, 3, padding=1) for inputs in (1, 8))
        self.second.bias = self.first.bias
        self.third = self.second
        self.output = nn.Linear(8, 10)

    def forward(self, x):
        x = torch.relu(self.second(torch.relu(self.first(x.unsqueeze(1)))))
        return self.output(torch.relu(self.third(x)).mean((2, 3)))


class SharedNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(784, 16), nn.Linear(16, 16)
        self.norm = self.again = nn.BatchNorm1d(16)
        self.output = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x.flatten(1))))
        return self.output(torch.relu(self.again(self.second(x))))


class SameMemory(nn.Module):
    """Two parameters that are not the same tensor."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.output = nn.Linear(784, 16), nn.Linear(16, 16), nn.Linear(16, 10)
        self.output.weight = nn.Parameter(self.second.weight.detach()[3:13])

    def forward(self, x):
        return self.output(torch.relu(self.second(torch.relu(self.first(x.flatten(1))))))


class Replaced(nn.Module):
    """A buffer with two names, one of which forward gives to another tensor."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(784, 10)
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("before", self.calls)

    def forward(self, x):
        self.calls = self.calls + 1
        return self.output(x.flatten(1)) + self.before


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.output = nn.Linear(784, 10)

    def forward(self, x):
        return self.output(x.flatten(1))


class Inner(nn.Module):
    def forward(self, x, file: str):
        torch.ops.aten.save(x, file)
        return x


@torch.jit.script
def save_by_function(x, file: str):
    torch.ops.aten.save(x, file)
    return x


class SaveInForward(Plain):
    file: str

    def __init__(self, file):
        super().__init__()
        self.file = file

    def forward(self, x):
        torch.ops.aten.save(x, self.file)
        return self.output(x.flatten(1))


class SaveInTraining(SaveInForward):
    """Not when it is tried, but in the first step."""

    def forward(self, x):
        if self.training:
            torch.ops.aten.save(x, self.file)
        return self.output(x.flatten(1))


class SaveInSubmodule(SaveInForward):
    def __init__(self, file):
        super().__init__(file)
        self.inner = Inner()

    def forward(self, x):
        return self.output(self.inner(x, self.file).flatten(1))


class SaveInFunction(SaveInForward):
    def forward(self, x):
        return self.output(save_by_function(x, self.file).flatten(1))


class SaveInOtherThread(SaveInForward):
    def forward(self, x):
        return self.output(torch.jit.wait(torch.jit.fork(save_by_function, x, self.file)).flatten(1))


class SaveWhileLoading(SaveInForward):
    @torch.jit.export
    def __getstate__(self):
        return (self.output.weight, self.file, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, str, bool]):
        torch.ops.aten.save(state[0], state[1])
        self.training = state[2]

    def forward(self, x):
        return self.output(x.flatten(1))


class MapFile(SaveInForward):
    def forward(self, x):
        return self.output(x.flatten(1)) + torch.from_file(self.file, shared=True, size=16)[0]


WITH_REACH = {SaveInForward: "aten::save", SaveInTraining: "aten::save", SaveInSubmodule: "aten::save",
              SaveInFunction: "aten::save", SaveInOtherThread: "aten::save", SaveWhileLoading: "aten::save",
              MapFile: "aten::from_file"}


def with_reach(scratch, train):
    """A script cannot touch a file, wherever it does so: it is refused before any of it runs."""
    for kind, operator in WITH_REACH.items():
        touched, file = scratch / f"touched-{kind.__name__}", scratch / f"{kind.__name__}.pt"
        torch.jit.script(kind(str(touched))).save(file)
        touched.unlink(missing_ok=True)  # some do it while they are saved
        for name, *words in some((("model",), ("teacher", "--distill.teacher", file)), 2 if LONG else 1):
            train(f"no-{kind.__name__}-{name}", *words, file="model.pt" if words else file.name).expect(
                65, f"{file.name} was refused", f"it calls {operator}", "Remove this call from the model")
        check(not touched.exists(), f"{kind.__name__} has touched a file")


class Made(Plain):
    """Prints, and adds tensors that were only made."""

    def forward(self, x):
        if self.training:
            print("\033[31mred\nlockstep: root cause:")
        y = self.output(x.flatten(1))
        return y + torch.empty_like(y) + made_by_function(y)


@torch.jit.script
def made_by_function(x):
    return torch.empty_strided([10], [3]) + x.new_empty([10]) + torch.empty([10])


def makes_zeros(scratch, train):
    """Tensors without values hold zeros, and what a script prints takes one line."""
    for name, model in (("plain", Plain()), ("made", Made())):
        nn.init.constant_(model.output.weight, 0.01)
        nn.init.constant_(model.output.bias, 0.1)
        torch.jit.script(model).save(scratch / f"{name}.pt")
        done = train(f"zeros-{name}", "--train.steps", 2, file=f"{name}.pt", env={"MALLOC_PERTURB_": "191"}).expect(0)
        check(("the script prints: \\x1b[31mred\\x0alockstep: root cause:\n" in done.text) == (name == "made"), done.text)
        check("\nlockstep: root cause:" not in done.text, done.text)
    losses = [[each["loss"] for each in records(scratch / f"zeros-{name}", "step")] for name in ("plain", "made")]
    check(losses[0] == losses[1], f"the same losses: {losses}")


def of_others(scratch, newest):
    """A deck in a file does not choose silently which script runs."""
    run(["checkpoint", "export", newest, scratch / "told.pt", "--format", "torchscript"]).expect(
        0, "names the TorchScript program", "model.pt, which this command runs")
    init = run(["federate", "init", scratch / "fed", scratch / "one.ini", "--key", scratch / "keys/c", "--min-sites", 1,
                "--weights", newest, "--rounds", 1])
    if init.code == 69:
        return  # a build without libsodium
    init.expect(0)
    run(["federate", "join", scratch / "fed", "--site", "s", "--key", scratch / "keys/s"]).expect(0)
    run(["federate", "round", scratch / "fed", "--coordinator", "--key", scratch / "keys/c", "--accept", "all"]).expect(0)
    words = ["federate", "round", scratch / "fed", "--site", "s", "--key", scratch / "keys/s", "--run.directory",
             scratch / "site", "--data.train", DATA / "train.h5"]
    run(words).expect(64, "the federation's deck has model.file = ", "add to this command: --model.file ")
    shutil.copy(scratch / "model.pt", scratch / "own.pt")
    run([*words, "--model.file", scratch / "own.pt"]).expect(0, "announced")


with Scratch() as scratch:
    torch.manual_seed(1)
    network = Network()
    torch.jit.script(network).save(scratch / "model.pt")

    def train(name, *options, ranks=1, file="model.pt", env=None):
        deck = scratch / f"{name}.ini"
        deck.write_text(DECK.format(data=DATA, file=scratch / file))
        return run(["train", deck, "--run.directory", scratch / name, *options], ranks, env)

    train("one").expect(0)
    first = records(scratch / "one", "step")[0]["loss"]
    check(2.0 < first < 3.5, f"the file's own weights come first: {first}")
    for ranks in (2, 3, 4) if LONG else (2,):
        train(f"n{ranks}", ranks=ranks).expect(0)
        check_same(scratch / "one", scratch / f"n{ranks}", f"{ranks} ranks have the bits of 1")

    def threads():
        train("dp", "--run.mode", "dp").expect(0)
        check_same(scratch / "one", scratch / "dp", "dp runs a script's replicas sequentially")

    def through_kill(name, *options):
        killed = train(name, *options, ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=8"})
        check(killed.code != 0, "killed")
        train(name, *options, ranks=3 if LONG else 1).expect(0, "resumed from")

    def shared_buffers():
        through_kill("cut")
        check_same(scratch / "one", scratch / "cut", "a restart on other ranks changes no bit")

    # Replicas that keep their own buffers: another training, as exact.
    own = ["--communication.broadcast-buffers", "false"]

    def own_buffers():
        train("own", *own).expect(0, "each replica keeps its own buffers")
        check(not same_state(scratch / "one", scratch / "own"), "buffers are the replicas' own")
        through_kill("own-cut", *own)
        check_same(scratch / "own", scratch / "own-cut", "own buffers go through a restart")

    def switched():
        """Forced, a training resumes from replica 0's."""
        for name, ranks in (("forced", 1), ("forced-2", 2)):
            train(name, "--train.steps", 5).expect(0)
            if LONG or ranks == 1:
                train(name, *own, ranks=ranks).expect(64, "communication.broadcast-buffers = false (was true)")
            train(name, *own, "--force", ranks=ranks).expect(0, "resumed from")
        check_same(scratch / "forced", scratch / "forced-2", "a forced switch is as exact")
        check(not same_state(scratch / "forced", scratch / "one"), "from there on they keep their own")

    def changed_code():
        """Other code in the file is another model, even of the same form; a copy of the file is the same one."""
        torch.jit.script(network).save(scratch / "changed.pt")
        train("changed", "--train.steps", 3, file="changed.pt").expect(0)
        shutil.copy(scratch / "changed.pt", scratch / "moved.pt")
        train("changed", "--train.steps", 4, file="moved.pt").expect(0, "resumed from")
        with torch.no_grad():
            network.output.bias += 1
        torch.jit.script(network).save(scratch / "changed.pt")
        with torch.no_grad():
            network.output.bias -= 1
        train("changed", file="changed.pt").expect(64, "is not the one that this run began with", "--force")
        if LONG:
            train("changed", "--force", file="changed.pt").expect(
                0, "resumed from", "other contents of the file of the model")

    def half():
        train("half", "--precision.compute", "bf16", ranks=2 if LONG else 1).expect(0)

    def shared_parameters():
        """They train once, under the first name; a file with this name alone is evaluated, exported and made smaller."""
        torch.jit.trace(Shared(), torch.rand(2, 28, 28)).save(scratch / "shared.pt")
        tested = ("--data.test", DATA / "test.h5", "--train.steps", 3)
        train("shared", *tested, file="shared.pt").expect(0, "finished at step 3", "test at step 3")
        best = scratch / "shared/best.h5"
        with h5py.File(best) as file:
            check(set(file["model"]) == {"first", "second", "output"} and set(file["model/second"]) == {"weight"}, "once")
        run(["evaluate", scratch / "shared.ini", best]).expect(0, "accuracy")
        run(["checkpoint", "export", best, scratch / "shared.onnx"]).expect(0)
        train("smaller", *tested, "--prune.pattern", "channels", "--model.weights", best, file="shared.pt",
              ranks=2).expect(0, "finished at step 3", "test at step 3")
        # Weights from PyTorch have all of the names.
        state = {name: value.clone() for name, value in Shared().state_dict().items()}
        save_file(state, scratch / "all.safetensors")
        told = train("all", "--train.steps", 1, "--model.weights", scratch / "all.safetensors", file="shared.pt").expect(0)
        check("ignored" not in told.text, f"second names are known: {told.text}")
        save_file({name: value for name, value in state.items() if name != "first.bias" and not name.startswith("third")},
                  scratch / "second.safetensors")
        train("second", "--train.steps", 1, "--model.weights", scratch / "second.safetensors", file="shared.pt").expect(0)
        check_same(scratch / "all", scratch / "second", "under any of its names")
        save_file(state | {"second.bias": state["second.bias"] + 1}, scratch / "two.safetensors")
        train("two", "--model.weights", scratch / "two.safetensors", file="shared.pt", ranks=2).expect(
            65, "different values for first/bias and second/bias, which are one parameter of the model")

    def shared_norms():
        torch.jit.script(SharedNorm()).save(scratch / "norm.pt")
        train("norm", "--train.steps", 3, "--prune.pattern", "channels", file="norm.pt", ranks=2).expect(0, "finished at step 3")

    for restarted in some((shared_buffers, own_buffers)):
        restarted()
    shared_parameters()
    shared_norms()
    for case in some((threads, switched, changed_code, half)):
        case()

    # The checkpoint's weights, in Python's own model, have the accuracy that was recorded.
    newest = checkpoints(scratch / "one")[-1]
    with h5py.File(newest) as saved, h5py.File(DATA / "test.h5") as test:
        state = {name: torch.from_numpy(np.array(saved["model/" + name.replace(".", "/")])).view_as(
            value) for name, value in network.state_dict().items()}
        inputs = torch.from_numpy(test["inputs"][:].astype(np.float32) / 255)
        inputs = (inputs - float(test.attrs["mean"][0])) / float(test.attrs["std"][0])
        targets = torch.from_numpy(test["targets"][:])
    check(int(state["calls"][0]) > 12, f"buffers are followed: {state['calls']}")
    check(not torch.equal(state["stages.0.average"], torch.ones(4)), "replaced ones too")
    network.load_state_dict(state)
    network.eval()
    with torch.no_grad():
        accuracy = (network(inputs).argmax(1) == targets).double().mean().item()
    ours = records(scratch / "one", "validation")[-1]["accuracy"]
    check(abs(accuracy - ours) < 2e-4, f"accuracy {ours}, by PyTorch {accuracy}")
    run(["evaluate", scratch / "one.ini", newest], 2 if LONG else 1).expect(0, f"accuracy {ours:.6f}")

    with_reach(scratch, train)
    makes_zeros(scratch, train)
    of_others(scratch, newest)

    # What does not fit.
    (scratch / "text.pt").write_text("no script")
    torch.jit.freeze(torch.jit.script(network)).save(scratch / "frozen.pt")
    torch.jit.script(Network(7)).save(scratch / "seven.pt")
    torch.jit.script(nn.Linear(5, 10)).save(scratch / "five.pt")
    torch.jit.script(SameMemory()).save(scratch / "memory.pt")
    torch.jit.script(Replaced()).save(scratch / "replaced.pt")
    torch.jit.script(network).save(scratch / "flipped.pt")  # a bit of a weight, which LibTorch does not see
    whole = (scratch / "flipped.pt").read_bytes()
    at = whole.index(network.output.weight.detach().numpy().tobytes())
    (scratch / "flipped.pt").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    train("no-flipped", file="flipped.pt", ranks=2).expect(65, "flipped.pt is damaged", "the checksum of its record")
    with torch.no_grad():
        network.output.bias[3] = math.nan
    torch.jit.script(network).save(scratch / "nan.pt")
    for name, ranks, words, code, *phrases in (
            *some((("nothing", 2, [], 66, "nothing.pt"), ("text", 2, [], 65, "is not a TorchScript module"))),
            ("memory", 1, [], 64, "second.weight and output.weight share memory, but are different tensors"),
            ("replaced", 2, [], 64, "the script's buffer named calls must be changed in place"),
            *some((("frozen", 1, [], 64, "has no parameters"),
                   ("seven", 1, [], 64, "returns shape [2, 7]", "the task needs [2, 10]"),
                   ("five", 2, [], 64, "cannot take a batch of float32 [2, 28, 28]"),
                   ("nan", 1, [], 65, "model/output/bias holds NaN"),
                   ("model", 1, ["--model.file", ""], 64, "model.file is not set"),
                   ("model", 1, ["--communication.sync-batch-norm", "true"], 64, "a script runs as a whole")))):
        train(f"no-{name}", *words, file=f"{name}.pt", ranks=ranks).expect(code, *phrases)
