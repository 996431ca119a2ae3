"""Files that model.name = export is given: what cannot be trained is refused before the first step, with
the operator and its line of Python; damaged and hostile archives end with 64 or 65 and run nothing. The short form
draws some of each kind."""
import copy
import io
import json
import platform
import random
import sys
import zipfile

import h5py
import numpy as np
import torch
from torch import nn

from harness import LONG, SEED, SOURCE, Scratch, check, checkpoints, records, run, some

sys.path.insert(0, str(SOURCE / "python"))
import exported_models  # noqa: E402
import lockstep_export  # noqa: E402

FILES = 1000 if LONG else 20
DECK = """
[run]
device = cpu
[data]
train = {scratch}/train.h5
batch = 4
[model]
name = export
file = {scratch}/model.pt2
[train]
steps = 1
"""


class Doubled(torch.autograd.Function):
    """Its gradient is another one than autograd would find."""

    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 3


class Net(nn.Module):
    """A network whose forward does something else, too."""

    def __init__(self, extra=lambda self, x: x, outputs=10):
        super().__init__()
        self.first, self.second, self.extra = nn.Linear(24, 12), nn.Linear(12, outputs), extra
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        return self.second(self.extra(self, torch.relu(self.first(x))))


class Dropping(Net):
    def forward(self, x):
        return torch.dropout(super().forward(x), 0.5, self.training)


class Words(Net):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(3, 10, sparse=True)

    def forward(self, x):
        return super().forward(x) + self.words((x[:, 0] > 0).long())


class Tables(Net):
    """A mask and complex numbers, as attention and rotary positions have them; with `changed`, one that is not kept."""

    def __init__(self, changed=False):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(10, 10, dtype=torch.bool)))
        self.register_buffer("turns", torch.polar(torch.ones(5), torch.arange(5.0)))
        self.changed = changed

    def forward(self, x):
        x = super().forward(x)
        if self.changed:
            self.mask.logical_not_()
        x = torch.view_as_real(torch.view_as_complex(x.unflatten(1, (5, 2))) * self.turns).flatten(1)
        return x.unsqueeze(1).masked_fill(~self.mask, 0).sum(2)


def replaced(self, x):
    self.calls = self.calls + 1
    return x + self.calls


BATCH = (torch.randn(4, 24),)
ANY = ({0: torch.export.Dim("batch", min=1)},)


def exported(model, shapes=ANY, batch=BATCH):
    return torch.export.export(model, batch, dynamic_shapes=shapes)


def check_shared_examples(scratch):
    """The same tensor as input and target, or as two inputs: each keeps its own place in the program."""
    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 7)

        def forward(self, tokens):
            return self.table(tokens).permute(0, 2, 1)

    tokens = torch.arange(20).view(4, 5) % 7
    model = Scores()
    lockstep_export.save(model, tokens, scratch / "words.pt2", loss=lockstep_export.language_loss(), targets=tokens,
                         weight="tokens")
    other = tokens.roll(1, 1)
    wanted = lockstep_export.language_loss()(model(tokens), other, inputs=(tokens,))["loss"]
    from torch.export.pt2_archive._package import load_pt2
    got = load_pt2(scratch / "words.pt2").exported_programs["eval"].module()(tokens, other)["loss"]
    check(torch.equal(got, wanted), f"the loss of other targets: {got} is not {wanted}")


def check_odd_calls(scratch):
    """What save is given by mistake is told in its own words, before a file is written."""
    x, labels, cross_entropy = torch.randn(4, 24), torch.arange(4), nn.functional.cross_entropy

    def sums(change):
        def loss(scores, labels):
            return change({"loss": cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0],
                           "right": (scores.argmax(1) == labels).sum()}, scores, labels)
        return {"loss": loss, "targets": labels, "metrics": {"accuracy": ("right", "samples")}}

    def changed(**values):
        return sums(lambda all, scores, labels: {**all, **{name: each(scores, labels) for name, each in values.items()}})

    class Odd(Net):
        def __init__(self, kind=None):
            super().__init__()
            self.kind = kind

        def forward(self, x):
            return {"none": lambda: None, "text": lambda: "a"}[self.kind]()

    class Named(Net):
        def forward(self, x, *, scale):
            return super().forward(x) * scale

    net = Net()
    constant = "is the same for a batch with each sample twice, so it is a mean or a constant, but"
    plain = {"loss": lambda scores, labels: {"loss": scores.sum(), "samples": labels.shape[0]}, "targets": labels}
    for model, inputs, options, phrase in (
            (net, x, changed(loss=cross_entropy), f"loss {constant} loss is the ratio of loss and samples"),
            (net, x, changed(samples=lambda *_: 4), f"samples {constant} loss is the ratio of loss and samples"),
            (net, x, changed(right=lambda scores, labels: scores.std() * 0 + 1), "accuracy is the"),
            (net, x, changed(loss=lambda *all: cross_entropy(*all, reduction="none")), "must be single numbers"),
            (net, x, changed(loss=lambda *_: 1.0), "the sum loss must be a tensor, but it is a float"),
            (net, x, changed(right=lambda *_: "all"), "the sum right must be a tensor or a number, but it is a str"),
            (net, x, changed(loss=lambda scores, labels: scores.detach().sum()), "depends on no trained parameter"),
            (net, x, sums(lambda all, *_: all["loss"]), "must return a dict of sums"),
            (net, x, sums(lambda *_: None), "must return a dict of sums over the batch"),
            (net, x, {**plain, "loss": "mse"}, "loss must be a function"),
            (net, x, {**plain, "targets": (labels, labels)}, "the loss(scores, labels) cannot be called with 3 tensors"),
            (net, x, {**plain, "targets": ()}, "missing a required argument: 'labels'"),
            (net, x, {**plain, "metrics": ["accuracy"]}, "metrics must be a dict"),
            (Odd("none"), x, {}, "forward returns no tensor"),
            (Odd("text"), x, {}, "forward returns no tensor"),
            (Named(), x, {}, "forward(x, *, scale) cannot be called with 1 tensors: missing a required argument: 'scale'"),
            (net, (x, x), {}, "cannot be called with 2 tensors"),
            (net, torch.randn(4, 23), {}, "PyTorch cannot run the model with the given examples"),
            (Net().half(), x, {}, "must have the same dtype"),
            (Net, x, {}, "it is a type: pass an instance"),
            (Net().state_dict(), x, {}, "the model must be a torch.nn.Module"),
            (nn.DataParallel(net), x, {}, "wrapped by DataParallel: pass what it wraps, model.module"),
            (torch.compile(net), x, {}, "wrapped by torch.compile: pass what it wraps"),
            (nn.LazyLinear(3), x, {}, "the parameter weight has no shape yet")):
        try:
            lockstep_export.save(model, inputs, scratch / "odd.pt2", **options)
        except ValueError as error:
            check(phrase in str(error), f"{phrase!r} in {error}")
            check(not (scratch / "odd.pt2").exists(), "nothing is written")
        else:
            check(False, f"{phrase}: is refused")
    # What is no sum and no mean, such as a loss with a penalty, and averages over batches.
    penalty = sums(lambda all, scores, labels: {**all, "loss": all["loss"] + scores.square().mean()})
    means = sums(lambda all, scores, labels: {**all, "loss": all["loss"] / labels.shape[0], "one": 1})
    for options in (penalty, {**means, "weight": "one"}, plain):
        lockstep_export.save(net, x, scratch / "odd.pt2", **options)
    for untrained in (nn.Flatten(), Net().requires_grad_(False)):  # as a teacher is
        check(lockstep_export.save(untrained, x, scratch / "odd.pt2"), "the same results")


def check_federation(scratch):
    """Each site compiles the file itself, but its graphs and weights are the coordinator's."""
    def saved(name, seed):
        torch.manual_seed(seed)
        lockstep_export.save(Net(), BATCH, scratch / name, targets=torch.arange(4), loss=lambda scores, labels: {
            "loss": nn.functional.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0]})
        return scratch / name

    ours, compiled, other = saved("ours.pt2", 1), scratch / "compiled.pt2", saved("other.pt2", 2)
    lockstep_export._write_records(compiled, lockstep_export._read_records(ours) | {"data/lockstep/step.json": b"{}"})
    code = ["--model.compiled", "prefer", "--model.file"]
    run(["federate", "init", scratch / "fed", scratch / "model.ini", "--key", scratch / "c.key", "--min-sites", 1,
         "--rounds", 1, "--task.kind", "export", *code, ours]).expect(0)
    run(["federate", "join", scratch / "fed", "--site", "s", "--key", scratch / "s.key"]).expect(0)
    site = ["federate", "round", scratch / "fed", "--site", "s", "--key", scratch / "s.key", "--data.train",
            scratch / "train.h5", "--run.directory", scratch / "site", *code]
    run([*site, compiled]).expect(0, "has not accepted this site yet")
    run([*site, other]).expect(64, "other.pt2 is not the federation's file")


def check_refused(scratch, train):
    def by_python(model, phrase):
        try:
            lockstep_export.save(model, BATCH, scratch / "case.pt2")
        except ValueError as error:
            check(phrase in str(error), f"{phrase!r} in {error}")
        else:
            check(False, f"{phrase}: is refused")

    def plain():  # torch's own file, of a model without modes
        torch.export.save(exported(Net()), scratch / "plain.pt2")
        train("--model.file", scratch / "plain.pt2").expect(0)

    def tables():
        torch.export.save(exported(Tables()), scratch / "tables.pt2")
        train("--model.file", scratch / "tables.pt2").expect(0)

    def followed():
        lockstep_export.save(Net(replaced), BATCH, scratch / "case.pt2")  # of the model itself it is exported
        where = scratch / "replaced"
        train("--model.file", scratch / "case.pt2", "--train.steps", 3, "--run.directory", where).expect(0)
        with h5py.File(checkpoints(where)[-1]) as saved:
            check(saved["model/calls"][0] == 3, f"the buffer follows: {saved['model/calls'][0]}")

    def mutation():
        torch.export.save(exported(Net()), scratch / "case.pt2")
        records = lockstep_export._read_records(scratch / "case.pt2")
        text = json.loads(records["models/model.json"])
        returned = text["graph_module"]["signature"]["output_specs"]
        returned[0] = {"buffer_mutation": {"arg": returned[0]["user_output"]["arg"]["as_tensor"],
                                           "buffer_name": "calls"}}
        lockstep_export._write_records(scratch / "case.pt2", records | {"models/model.json": json.dumps(text).encode()})

    def frozen():
        model = Net()
        model.requires_grad_(False)
        return exported(model)

    def script():
        torch.jit.script(nn.Linear(24, 10)).save(scratch / "script.pt")
        return scratch / "script.pt"

    train().expect(0)
    for trained in some((plain, tables, followed)):
        trained()
    for make, *phrases in some([
            (lambda: exported(Tables(True)), "buffer mask", "of type Bool", "float32 or int64"),
            (lambda: exported(Dropping()), "one program", "aten.dropout", "exported_files_test.py, line",
             "lockstep_export.save"),
            (lambda: exported(Net(), None), "cannot take a batch", "dimension 0 is 2, but the export allows only 4",
             "dynamic_shapes"),
            (lambda: exported(Net()).run_decompositions({}), "decomposed", "run_decompositions"),
            (mutation, "an output of kind buffer_mutation", "without decompositions"),
            (lambda: exported(Net(outputs=7)), "returns shape [2, 7]", "[2, 10]"),
            (lambda: exported(Net(lambda self, x: torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y * 3, (x,)))),
             "operator torch.ops.higher_order.cond cannot be run", "higher-order"),
            (lambda: exported(nn.Sequential(nn.Linear(5, 10)), ANY, (torch.randn(4, 5),)), "cannot take a batch",
             "dimension 1 is 24, but the export allows only 5"),
            (lambda: exported(Net().double(), ANY, (torch.randn(4, 24).double(),)), "as its input named x",
             "values of type Double, but the batch holds Float"),
            (lambda: exported(Words()), "the gradient of parameter words.weight is sparse", "sparse=False"),
            (frozen, "cannot be trained", "does not depend on its parameters"),
            (lambda: exported(nn.ReLU()), "has no parameters"),
            (lambda: exported(Net(lambda self, x: (self.calls.unsqueeze_(0), x)[1])),
             "changes the shape of buffer calls"),
            (lambda: exported(Net(), ({0: torch.export.Dim("batch", min=3)},)), "the export requires at least 3")], 4):
        program = make()
        if program is not None:  # else the file has been written
            torch.export.save(program, scratch / "case.pt2")
        train("--model.file", scratch / "case.pt2").expect(64, *phrases)
    same_memory = nn.Sequential(nn.Linear(24, 10), nn.Linear(10, 24), nn.Linear(24, 10))
    same_memory[2].weight = nn.Parameter(same_memory[1].weight.detach().t())
    by_python(same_memory, "1.weight and 2.weight share memory")
    for model, phrase in some([(Net(lambda self, x: Doubled.apply(x)), "step 1, the gradient of first.weight"),
                               (nn.Sequential(Net(replaced)), "differs from the model")]):
        by_python(model, phrase)
    for words, code, *phrases in (
            *some([(("--model.file", ""), 64, "model.file is not set"),
                   (("--model.file", scratch / "nothing.pt2"), 66, "nothing.pt2")]),
            *some([(("--model.file", scratch / "train.h5"), 65, "is not a torch.export archive"),
                   (("--model.file", script()), 65, "is not a torch.export archive", "a TorchScript module"),
                   (("--model.name", "script"), 65, "a torch.export archive", "Set model.name = export")])):
        train(*words).expect(code, *phrases)


def values_within(json_value, path=()):
    """Every place in a JSON text."""
    if isinstance(json_value, dict):
        for key, value in json_value.items():
            yield from values_within(value, (*path, key))
    elif isinstance(json_value, list):
        for at, value in enumerate(json_value):
            yield from values_within(value, (*path, at))
    yield path


HOSTILE = [None, -1, 2**62, 2**70, 1.5, "", "../../../../etc/passwd", "x" * 300, [], {}, True, {"as_int": 2**60},
           {"as_tensor": {"name": "x"}}, {"as_none": []}, {"as_ints": [2**40, 2**40]},
           "torch.ops.aten.from_file.default", "torch.ops.aten.set_.source_Tensor", "torch.ops.os.system.default",
           "torch.ops.aten._reshape_alias.default", "torch.ops.higher_order.cond", "_operator.floordiv",
           "torch.ops.aten.empty.memory_format", "torch.ops.aten.as_strided.default", "torch.ops.aten.relu.default"]


SCHEMAS = sorted((each for each in torch._C._jit_get_all_schemas() if each.name.startswith("aten::")), key=str)


def odd_call(draw, names):
    """A call of any operator, with tensors of the graph, and numbers that need not fit it."""
    schema = draw.choice(SCHEMAS)

    def argument(kind):
        if "Tensor" in kind:
            chosen = [{"name": draw.choice(names)} for _ in range(draw.randrange(4))]
            return {"as_tensors": chosen} if kind.startswith("List") else {"as_tensor": {"name": draw.choice(names)}}
        number = draw.choice([0, 1, 1, 2, 3, -1, 7, 2**20, 2**40])
        if kind.startswith("List"):
            return {"as_ints": [number] * draw.randrange(4)}
        return {"as_bool": bool(number % 2)} if kind == "bool" else {"as_float": number / 2} if kind == "float" else {"as_int": number}
    inputs = []
    for each in schema.arguments:
        kind = str(each.type)
        optional = kind.startswith("Optional")
        if (each.has_default_value() or optional) and draw.random() < 0.6:
            continue
        inputs.append({"name": each.name, "arg": argument(kind[9:-1] if optional else kind), "kind": 1})
    return f"torch.ops.{schema.name.replace('::', '.')}.{schema.overload_name or 'default'}", inputs


def with_odd_calls(program, draw):
    """Other operators in the places of some."""
    graph = program["graph_module"]["graph"]
    names = list(graph["tensor_values"])
    for node in draw.sample(graph["nodes"], draw.choice([1, 1, 2])):
        node["target"], node["inputs"] = odd_call(draw, names)


def with_odd_sizes(program, weights, draw):
    """Sizes that are those of other tensors, in the list of weights or in the graph too."""
    names = {each["parameter"]["parameter_name"]: each["parameter"]["arg"]["name"]
             for each in program["graph_module"]["signature"]["input_specs"] if "parameter" in each}
    for name, entry in weights["config"].items():
        if name in names and draw.random() < 0.5:
            sizes = [draw.choice([0, 1, 2, 3, 5, 10, 24, 2**20, 2**40]) for _ in range(draw.randrange(4))]
            form = entry["tensor_meta"]
            form["sizes"] = [{"as_int": size} for size in sizes]
            form["strides"] = [{"as_int": draw.choice([0, 0, 1])} for _ in sizes]
            if draw.random() < 0.7:
                program["graph_module"]["graph"]["tensor_values"][names[name]].update(sizes=form["sizes"], strides=form["strides"])


def damaged(records, draw):
    """A copy of the archive with something wrong: its bytes, its records, or what they say."""
    records, way = dict(records), draw.choice(["bytes", "cut", "record", "json", "json", "json", "calls", "calls", "calls", "sizes", "sizes"])
    if way in ("calls", "sizes"):
        program, weights = (next(name for name in records if name.endswith(end))
                            for end in ("models/train.json", "weights/train_weights_config.json"))
        values = json.loads(records[program]), json.loads(records[weights])
        with_odd_calls(values[0], draw) if way == "calls" else with_odd_sizes(*values, draw)
        records[program], records[weights] = (json.dumps(value).encode() for value in values)
    texts = [name for name in records if name.endswith(".json")]
    if way == "json":
        name = draw.choice(texts)
        value = json.loads(records[name])
        for _ in range(draw.choice([1, 1, 2, 5])):
            places = [each for each in values_within(value) if each]
            if not places:
                break
            path = draw.choice(places)
            holder = value
            for step in path[:-1]:
                holder = holder[step]
            if draw.random() < 0.2:
                del holder[path[-1]]
            else:
                holder[path[-1]] = copy.deepcopy(draw.choice(HOSTILE))
        records[name] = json.dumps(value).encode()
    elif way == "record":
        name = draw.choice(list(records))
        if draw.random() < 0.5:
            del records[name]
        else:
            records[name] = draw.choice([b"", b"\x80\x02cos\nsystem\n.", records[name][:len(records[name]) // 2], b"[" * 100000])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", draw.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED])) as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    data = bytearray(out.getvalue())
    if way == "bytes":
        for _ in range(draw.choice([1, 3, 30])):
            data[draw.randrange(len(data))] = draw.randrange(256)
    elif way == "cut":
        del data[draw.randrange(len(data)):]
    return way, bytes(data)


def records_of(path):
    with zipfile.ZipFile(path) as archive:
        return {each.filename: archive.read(each) for each in archive.infolist() if "sample_inputs" not in each.filename}


def check_hostile(scratch, train):
    """Texts that would take a reader by recursion down, and names that no checkpoint can hold."""
    deep, old = "[" * 100_000 + "]" * 100_000, "0.layers.0.bias"

    def case(words, change, code=65):
        records = records_of(scratch / "model.pt2")
        program, weights = (next(name for name in records if name.endswith(end))
                            for end in ("models/train.json", "weights/train_weights_config.json"))
        value = json.loads(records[program])
        change(value)
        records[program] = json.dumps(value).replace('"DEEP"', deep).encode()
        # As the program names it, wherever the other records name it.
        name = next((each["parameter"]["parameter_name"] for each in value["graph_module"]["signature"]["input_specs"]
                     if each.get("parameter", {}).get("arg", {}).get("name") == "p_0_layers_0_bias"), old)
        records[weights] = records[weights].replace(json.dumps(old).encode(), json.dumps(name).encode())
        with zipfile.ZipFile(scratch / "hostile.pt2", "w") as archive:
            for each, data in records.items():
                archive.writestr(each, data)
        train("--model.file", scratch / "hostile.pt2").expect(code, words)

    def called(new):
        def change(value):
            for each in value["graph_module"]["signature"]["input_specs"]:
                if each.get("parameter", {}).get("parameter_name") == old:
                    each["parameter"]["parameter_name"] = new
        return change

    def dropout(name, *given):
        """Another operator in the place of dropout."""
        def change(value):
            node = next(each for each in value["graph_module"]["graph"]["nodes"] if each["target"].endswith("dropout.default"))
            node["target"] = f"torch.ops.aten.{name}"
            node["inputs"] = [{"name": "self", "arg": node["inputs"][0]["arg"], "kind": 1},
                              *({"name": key, "arg": argument, "kind": 1} for key, argument in given)]
        return change

    def resized(value):
        """Stored with one size, and used with another."""
        value["graph_module"]["graph"]["tensor_values"]["p_0_layers_0_bias"]["sizes"] = [{"as_int": 2**20}]

    cases = [case_ for number in (-1, 200) for case_ in (
        ("but must be as_scalar_type", dropout("to.dtype", ("dtype", {"as_int": number}))),
        ("but must be as_memory_format", dropout("clone.default", ("memory_format", {"as_int": number}))),
        ("but must be as_layout", dropout("zeros_like.default", ("layout", {"as_int": number}))))]
    cases += [
        *(("does not check the indices or sizes", dropout(f"{name}.default"), 64)
          for name in ("batch_norm_update_stats", "mkldnn_rnn_layer", "slow_conv3d")),
        ("is not that of its graph", resized),
        ("does not check the indices", dropout("lu_unpack.default"), 64),
        ("the derivative for 'geqrf' is not implemented", dropout("geqrf.default"), 64),
        ("does not check output_size against repeats",
         dropout("repeat_interleave.self_int", ("repeats", {"as_int": 2}), ("output_size", {"as_int": 3})), 64)]
    texts = [
        ("levels deep", lambda value: value["schema_version"].update(major="DEEP")),
        ("levels deep", lambda value: value.update(verifiers="DEEP")),
        ("cannot evaluate that condition", lambda value: value.update(
            guards_code=["L['x'].size()[" * 100_000 + "0" + "]" * 100_000]), 64),
        ("a parameter or buffer with the invalid name", called("a." * 100_000 + "b")),
        ("a parameter or buffer with the invalid name", called("a..b")),
        ("is nested in another one, or another one in it", called("0.layers.0.weight.b"))]
    for each in (*some(cases, 2), *some(texts, 2)):
        case(*each)


def check_new_tensors(scratch, train):
    """Operators that only make a tensor give zeros, not what was in memory."""
    def losses(made, tail):
        torch.manual_seed(3)
        torch.export.save(exported(Net(lambda self, x: x + made(x))), scratch / "made.pt2")
        with zipfile.ZipFile(scratch / "made.pt2") as archive:
            check(any(tail in archive.read(each) for each in archive.namelist()), tail)
        directory = scratch / f"made-{tail.decode()}"
        run(["train", scratch / "model.ini", "--run.directory", directory, "--model.file", scratch / "made.pt2",
             "--monitor.log-every", 1], env={"MALLOC_PERTURB_": "191"}).expect(0)
        return [each["loss"] for each in records(directory, "step")]

    makers = {
        b"empty.memory_format": lambda x: torch.empty(12),
        b"empty_like": torch.empty_like,
        b"empty_permuted": lambda x: torch.empty_permuted((3, 12), (1, 0)).sum(0),
        b"empty_strided": lambda x: torch.empty_strided((12,), (2,)),
        b"new_empty.default": lambda x: x.new_empty((12,)),
        b"new_empty_strided": lambda x: x.new_empty_strided((12,), (3,))}
    expected = losses(torch.zeros_like, b"zeros_like")
    for tail, made in some(makers.items(), 2):
        found = losses(made, tail)
        check(found == expected, f"{tail.decode()}: losses {found}, with zeros {expected}")


class Overflowing(Net):
    """An integer division that the processor refuses, for all inputs but zeros: LibTorch does not look."""

    def forward(self, x):
        least = (self.first(x).abs() * 1e30).neg().long()
        return super().forward(x) + torch.div(least, least * 0 - 1, rounding_mode="trunc").sum()


def check_fault(scratch, train):
    model = Overflowing()
    nn.init.zeros_(model.first.bias)
    lockstep_export.save(model, (torch.zeros(4, 24),), scratch / "fault.pt2")
    train("--model.file", scratch / "fault.pt2").expect(
        65, "operator torch.ops.aten.div.Tensor_mode of the exported program crashed", "exported_files_test.py, line")


def check_flipped(scratch, train):
    """A bit of the weights that has turned over."""
    data = bytearray((scratch / "model.pt2").read_bytes())
    with zipfile.ZipFile(scratch / "model.pt2") as archive:
        record = next(each for each in archive.infolist() if "/data/weights/" in each.filename and each.file_size >= 64
                      and not each.filename.endswith(".json"))
    data[data.index(record.filename.encode(), record.header_offset) + len(record.filename) + 128 + record.file_size // 2] ^= 1
    (scratch / "flipped.pt2").write_bytes(data)
    with zipfile.ZipFile(scratch / "flipped.pt2") as archive:
        check(archive.testzip() == record.filename, f"{archive.testzip()} was to be damaged, not {record.filename}")
    train("--model.file", scratch / "flipped.pt2").expect(65, "the checksum of its record data/weights/")


def check_damaged(scratch, train):
    records = records_of(scratch / "model.pt2")
    ends = {}
    for number in range(FILES):
        draw = random.Random(f"{SEED} {number}")
        way, data = damaged(records, draw)
        path = scratch / "damaged.pt2"
        path.write_bytes(data)
        done = train("--model.file", path)
        # 0: what was changed does not matter, such as a name or a place in Python; 71: a tensor of 2^60 bytes.
        check(done.code in (0, 64, 65, 71), f"file {number} ({way}) ends with {done.code}:\n{done.text}")
        ends[done.code] = ends.get(done.code, 0) + 1
    print(f"{FILES} damaged files: exit codes {ends}")
    check(ends.get(64, 0) + ends.get(65, 0) > FILES / 2, "most are refused")


with Scratch() as scratch:
    with h5py.File(scratch / "train.h5", "w") as file:
        file["inputs"] = np.random.default_rng(1).standard_normal((16, 24)).astype(np.float32)
        file["targets"] = np.arange(16) % 10
    (scratch / "model.ini").write_text(DECK.format(scratch=scratch))
    torch.manual_seed(2)
    lockstep_export.save(nn.Sequential(exported_models.MLP(), nn.Dropout(0.1)), BATCH, scratch / "model.pt2")
    count = iter(range(10**6))

    def train(*options):
        return run(["train", scratch / "model.ini", "--run.directory", scratch / f"run-{next(count)}", *options])

    check_shared_examples(scratch)
    check_odd_calls(scratch)
    check_federation(scratch)
    check_refused(scratch, train)
    check_hostile(scratch, train)
    check_new_tensors(scratch, train)
    if platform.machine() == "x86_64":  # others divide without a fault
        check_fault(scratch, train)
    check_flipped(scratch, train)
    check_damaged(scratch, train)
