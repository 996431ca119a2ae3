"""Saves a PyTorch model for training with `model.name = export`.

    import lockstep_export
    lockstep_export.save(model, (images,), "model.pt2")

writes two programs of torch.export into one file, one for training and one for evaluation. With `loss`,
the file also holds the loss to train with (`task.kind = export`):

    def loss(scores, labels):
        return {"loss": cross_entropy(scores, labels, reduction="sum"),
                "samples": labels.numel(), "correct": (scores.argmax(1) == labels).sum()}

    lockstep_export.save(model, (images,), "model.pt2", loss=loss, targets=(labels,),
                         weight="samples", metrics={"accuracy": ("correct", "samples")})

and a third program, of the model without the loss, for exports and for teachers.

Needs PyTorch 2.9 or later, and nothing else.
"""
import collections
import contextlib
import copy
import functools
import inspect
import json
import math
import operator
import os
import pathlib
import platform
import re
import tempfile
import typing
import warnings
import zlib

import torch

FORMAT = 1
STEP_FORMAT = 5


@contextlib.contextmanager
def _without_own_warnings():
    """Hides warnings about PyTorch's own code, which no caller can change: a deprecated call, and its LSTM's lists."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=".*LeafSpec")
        warnings.filterwarnings("ignore", category=UserWarning, message=r"The tensor attributes self\._flat_weights")
        yield


@_without_own_warnings()
def save(model, inputs, path, *, loss=None, targets=(), weight="samples", metrics=None,
         dynamic_shapes=None):
    """Exports `model` for batches like `inputs`, a tuple of tensors whose first dimension is the batch.

    loss     a function of (outputs, *targets) that returns a dict of sums over the batch. Training
             minimises the sum named "loss", divided by the sum named `weight`. Count samples with
             labels.shape[0], since len() is not traced. A mean is no sum, and is refused. If the function
             has a parameter named `inputs`, it gets the model's inputs, as a tuple
    metrics  {name: (sum, sum)}: ratios of two of these sums, which validation reports besides the loss
             and which can choose the best model: the one with the highest ratio or, with
             (sum, sum, "min"), with the lowest
    dynamic_shapes  as for torch.export.export, if other dimensions than the batch vary, too

    Each module keeps its own mode for training, such as a batch norm that is frozen by eval(); only a model that is
    wholly in evaluation mode is put into training for its program. The caller's model stays as it is.

    Returns True if the exported program computes bit for bit what the model computes: two steps of training
    are compared, at two batch sizes. If the results differ only by rounding, because torch.export chose
    other kernels, it warns and returns False. If they differ by more, it writes nothing and raises
    ValueError."""
    _require_module(model)
    inputs, targets = _tensors(inputs, "inputs"), _tensors(targets, "targets")
    # torch.export takes one tensor at two places for one input: targets would reach forward as its inputs.
    examples = tuple(each.detach().clone() for each in (*inputs, *targets))
    inputs = examples[:len(inputs)]
    sizes = {len(each) for each in examples}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError("all tensors must have the same batch size (first dimension), at least 2, but the batch sizes "
                         f"are {sorted(sizes)}")
    if targets and loss is None:
        raise ValueError("targets were given without a loss: pass loss=..., or leave targets out")
    _require_call("forward", model.forward, inputs)
    if loss:
        _require_loss(loss, targets, metrics or {})
    _require_own_memory(model)
    modes = [(each, each.training) for each in model.modules()]
    module = _with_loss(model, len(inputs), loss) if loss else model
    if dynamic_shapes is None:
        batch = torch.export.Dim("batch", min=1)
        shapes = tuple({0: batch} for _ in examples)
        dynamic_shapes = {"args": shapes} if loss else shapes
    elif hasattr(dynamic_shapes, "dynamic_shapes"):  # an object that collects them
        dynamic_shapes = dynamic_shapes.dynamic_shapes(module, examples)
    about = {"format": FORMAT, "torch": torch.__version__}
    cannot = "PyTorch cannot run the model with the given examples, or cannot trace it"
    try:
        with torch.random.fork_rng(devices=[]), _told(f"{path} was not written", cannot):
            programs = {"eval": torch.export.export(module.eval(), examples, dynamic_shapes=dynamic_shapes)}
            if loss:
                outputs = torch.export.export(_with_outputs(model.eval()), inputs, dynamic_shapes={
                    "args": _shapes_of_arguments(dynamic_shapes)[:len(inputs)]})
                if outputs.graph_signature.user_outputs:  # none where forward returns an object of another kind
                    programs["outputs"] = outputs
                about |= _about_loss(module, examples, weight, metrics or {})
            _train(module, model, modes)
            programs = {"train": torch.export.export(module, examples, dynamic_shapes=dynamic_shapes), **programs}
            half = tuple(each[:max(1, len(each) // 2)] for each in examples)
            differ = []
            for batch in (examples, half):
                differ += _differences(module, programs["train"], batch, path)
    finally:
        for each, mode in modes:
            each.training = mode
    from torch.export.pt2_archive._package import package_pt2
    package_pt2(path, exported_programs=programs, extra_files={"lockstep.json": json.dumps(about)})
    if loss:
        _share_weights(path, programs)
    if differ:
        warnings.warn(f"{path}: the exported program rounds differently from the model, in "
                      f"{', '.join(differ[:3])}, because torch.export chose other kernels", stacklevel=3)
    return not differ


def language_loss(*, end_of_text=None, label_smoothing=0.0):
    """The loss of task.kind = language, for a model whose forward takes tokens [n, length] and returns scores
    [n, vocabulary, length]; its targets are the next tokens:

        save(model, tokens, path, loss=language_loss(), targets=tokens, weight="tokens",
             metrics={"accuracy": ("right", "tokens")})

    end_of_text  the token that ends a document; the token after it is not learnt. None: documents are joined"""
    def loss(scores, targets, *, inputs):
        if end_of_text is not None:
            targets = targets.masked_fill(inputs[0] == end_of_text, -100)
        scores = scores.permute(0, 2, 1).flatten(0, 1).to(torch.float32)
        targets = targets.flatten()
        return {"loss": torch.nn.functional.cross_entropy(scores, targets, reduction="sum",
                                                          label_smoothing=label_smoothing),
                "tokens": (targets != -100).sum(), "right": (scores.argmax(1) == targets).sum()}

    return loss


def _tensors(values, what):
    values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    for value in values:
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            raise ValueError(f"{what} must be tensors whose first dimension is the batch")
    return values


def _require_module(model):
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"the model must be a torch.nn.Module, but it is a {type(model).__name__}" +
                         (": pass an instance" if isinstance(model, type) else ""))
    for attribute, what in (("_orig_mod", "torch.compile"), ("module", "DataParallel")):
        if hasattr(model, attribute) and what in ("torch.compile", type(model).__name__.removeprefix("Distributed")):
            raise ValueError(f"the model is wrapped by {what}: pass what it wraps, model.{attribute}")
    if lazy := [name for name, each in model.named_parameters() if torch.nn.parameter.is_lazy(each)]:
        raise ValueError(f"the parameter {lazy[0]} has no shape yet: call the model once before")


def _require_call(what, function, given, **named):
    """Python's own error would name the function that calls."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some built-in functions
        return
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise ValueError(f"{what}{signature} cannot be called with {len(given)} tensors: {error}") from None


def _require_loss(loss, targets, metrics):
    if not callable(loss):
        raise ValueError(f"loss must be a function of the outputs and the targets, but it is {loss!r}")
    named = {"inputs": ()} if "inputs" in inspect.signature(loss).parameters else {}
    _require_call("the loss", loss, ("outputs", *targets), **named)
    if not isinstance(metrics, dict):
        raise ValueError("metrics must be a dict, such as {\"accuracy\": (\"correct\", \"samples\")}, "
                         f"but it is {metrics!r}")


def _sums_of(result):
    """What the loss has returned, if it is what it must be."""
    if not isinstance(result, dict) or not all(isinstance(name, str) for name in result):
        raise ValueError("the loss must return a dict of sums over the batch, such as {\"loss\": cross_entropy(scores, "
                         "labels, reduction=\"sum\"), \"samples\": labels.shape[0]}, but it returns "
                         f"{type(result).__name__ if not isinstance(result, dict) else list(result)}")
    for name, value in result.items():
        numbers = () if name == "loss" else (int, float, torch.SymInt, torch.SymFloat)
        if not isinstance(value, (torch.Tensor, *numbers)):
            raise ValueError(f"the sum {name} must be a tensor{' or a number' if numbers else ''}, but it is a "
                             f"{type(value).__name__}")
    return result


def _with_loss(model, inputs, loss):
    """The same module, with the same names, whose forward takes targets too and returns sums."""

    wants_inputs = "inputs" in inspect.signature(loss).parameters

    class WithLoss(type(model)):
        def forward(self, *args):
            given = {"inputs": args[:inputs]} if wants_inputs else {}
            sums = _sums_of(loss(super().forward(*args[:inputs]), *args[inputs:], **given))
            return {name: value if name == "loss" else _number(value)
                    for name, value in sorted(sums.items())}

    return _as(model, WithLoss)


def _with_outputs(model):
    """The same module, with the same names, whose forward returns the tensors that the loss is computed from."""

    class WithOutputs(type(model)):
        def forward(self, *args):
            return tuple(_outputs(super().forward(*args)))

    return _as(model, WithOutputs)


def _as(model, kind):
    module = copy.copy(model)
    module.__class__ = kind
    return module


def _train(module, model, modes):
    """Puts a model, and `module`, which has its layers, into training, but what the caller has frozen."""
    module.train()
    model.training = module.training
    if any(mode for _, mode in modes):
        for each, mode in modes:
            each.training &= mode
        module.training = model.training
    for name, each in model.named_modules():
        if each.training and getattr(each, "momentum", 0) is None and getattr(each, "num_batches_tracked", None) is not None:
            raise ValueError(f"{name} is a batch norm with momentum=None, which takes the number of batches out of a "
                             "tensor, as programs cannot: give it a momentum, such as 0.1")


# What PyTorch says of models that it cannot export or compile, and why.
_REASONS = (
    (r"data-dependent|Could not (guard|extract)", "forward takes a number or a decision out of a tensor (float(tensor), "
     "tensor.item(), if tensor:), which a program cannot: compute with tensors (torch.where)"),
    (r"specialized|Constraints violated|to be equal to|is invalid for input of size",
     "the batch size, or another varying dimension, is fixed in the program: take sizes from the inputs "
     "(x.flatten(1), x.view(x.shape[0], -1)), never from the examples, and let the first dimension vary"),
    (r"fake tensor in the exported program", "forward writes through .data, which a program cannot: change buffers in "
     "place within torch.no_grad()"),
    (r"attribute '\w+' already exists", "a buffer or parameter of the model has a name that PyTorch's GraphModule uses for "
     "itself, such as code or graph: give it another name"),
    (r"requires gradients, and received a mutation", "forward changes a trained parameter in place, but only the "
     "optimizer may: change a copy of the parameter, or a buffer"),
)


@contextlib.contextmanager
def _told(what, otherwise=None):
    """Says in a line what PyTorch's errors mean, where that is known."""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        reason = next((why for pattern, why in _REASONS if re.search(pattern, str(error))), None)
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if reason is None and otherwise is None:
            raise
        raise ValueError(f"{what}: {reason or otherwise} (PyTorch: {first})") from (None if reason else error)


def _shapes_of_arguments(dynamic_shapes):
    """Of all inputs and targets, which are one argument, *args."""
    return tuple(dynamic_shapes["args"] if isinstance(dynamic_shapes, dict) else dynamic_shapes[0])


def _number(value):
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64)
    return torch.scalar_tensor(value, dtype=torch.float64)  # of a size, which stays symbolic


def _about_loss(module, examples, weight, metrics):
    sums = copy.deepcopy(module).eval()(*_copies(examples))
    if "loss" in sums and not sums["loss"].requires_grad:
        raise ValueError("the sum loss depends on no trained parameter, so that nothing can be learnt: do not detach "
                         "the outputs, and let it be a real number")
    metrics = {name: (*ratio, "max")[:3] for name, ratio in metrics.items()}
    if wrong := [name for name, ratio in metrics.items() if len(ratio) != 3 or ratio[2] not in ("max", "min")]:
        raise ValueError("a metric must be (sum, sum), (sum, sum, \"max\") or (sum, sum, \"min\"), "
                         f"but {wrong} are not")
    wanted = {"loss", weight, *(name for ratio in metrics.values() for name in ratio[:2])}
    if missing := wanted - sums.keys():
        raise ValueError(f"the loss returns no {sorted(missing)}, only {sorted(sums)}")
    if wrong := [name for name, value in sums.items() if value.dim()]:
        raise ValueError(f"sums over the batch must be single numbers, but {wrong} are not")
    _require_sums(module, examples, {"loss": ("loss", weight), **metrics})
    return {"sums": sorted(sums), "weight": weight,
            "metrics": {name: list(ratio) for name, ratio in metrics.items()}}


def _require_sums(module, examples, ratios):
    """Of a batch that holds each sample twice, a sum is twice as large, and a mean is as large as before."""
    once = tuple(each[:max(1, len(each) // 2)] for each in examples)
    found = []
    for batch in (once, tuple(torch.cat([each, each]) for each in once)):
        with torch.no_grad():
            torch.manual_seed(0)
            found.append(copy.deepcopy(module).eval()(*_copies(batch)))
    small, large = found
    for name, (above, below, *_) in ratios.items():
        means = [each for each in (above, below)
                 if small[each] != 0 and bool((large[each] - small[each]).abs() <= 1e-5 * small[each].abs())]
        if len(means) == 1:  # the ratio would depend on the size of a batch
            raise ValueError(f"{means[0]} is the same for a batch with each sample twice, so it is a mean or a "
                             f"constant, but {name} is the ratio of {above} and {below}, which must be sums over the "
                             "batch: use reduction=\"sum\", .sum(), or labels.shape[0]")


def _outputs(result):
    return [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


def _copies(batch):
    """Forward may change its inputs in place."""
    return tuple(each.clone() for each in batch)


def _two_steps(module, batch):
    """Outputs, gradients, buffers and frozen parameters of two steps of gradient descent."""
    seen = {}
    for step in range(2):
        torch.manual_seed(step)
        versions = [each._version for each in module.parameters()]
        outputs = _outputs(module(*_copies(batch)))
        if not outputs:
            raise ValueError("forward returns no tensor: let it return one, or a tuple or dict of tensors")
        for (name, each), version in zip(module.named_parameters(), versions):
            if each.requires_grad and each._version != version:
                raise ValueError(f"forward changes the parameter {name} in place, but only the optimizer may change "
                                 "trained parameters: let forward change a copy of it, or a buffer (register_buffer); a "
                                 "parameter that is not to be trained needs requires_grad_(False)")
        parameters = {name: each for name, each in module.named_parameters() if each.requires_grad}
        learnt = [each.float().sum() for each in outputs if each.requires_grad]
        gradients = [None] * len(parameters)
        if learnt and parameters:
            gradients = torch.autograd.grad(sum(learnt), list(parameters.values()), allow_unused=True)
        for number, each in enumerate(outputs):
            seen[f"step {step + 1}, output {number}"] = each.detach().clone()
        with torch.no_grad():
            for (name, parameter), gradient in zip(parameters.items(), gradients):
                if gradient is not None:
                    gradient = gradient.to_dense()
                    seen[f"step {step + 1}, the gradient of {name}"] = gradient
                    parameter.sub_(gradient, alpha=1e-3)
    for name, buffer in module.named_buffers():
        seen[f"the buffer {name}"] = buffer.clone()
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            seen[f"the parameter {name}"] = parameter.detach().clone()
    return seen


def _require_own_memory(model):
    """Parameters and buffers that are different tensors have different values in the program."""
    def is_dense(tensor):
        return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) == tensor.numel()

    tensors = [(name, tensor) for name, tensor in (*model.named_parameters(), *model.named_buffers())
               if tensor.numel() and is_dense(tensor)]
    tensors.sort(key=lambda item: item[1].data_ptr())
    for (first, a), (second, b) in zip(tensors, tensors[1:]):
        if a.data_ptr() + a.nbytes > b.data_ptr() > 0:
            raise ValueError(f"{first} and {second} share memory, but are different tensors, as after b.weight.data = "
                             "a.weight.data. Share the parameter itself (b.weight = a.weight), or give each its own "
                             "memory with clone()")


def _differences(module, program, batch, path):
    """The names of results that the program rounds differently; raises if they differ by more than rounding."""
    eager = _two_steps(copy.deepcopy(module), batch)
    exported = _two_steps(copy.deepcopy(program).module(), batch)
    differ = [name for name, value in eager.items()
              if name not in exported or not torch.equal(value.nan_to_num(), exported[name].nan_to_num())]
    lost = [name for name in differ if name not in exported or not _is_close(eager[name], exported[name])]
    if lost:
        raise ValueError(f"{path} was not written: the exported program differs from the model in "
                         f"{', '.join(lost[:3])}. torch.export loses the backward of a custom "
                         "autograd.Function: use PyTorch's own operators instead. It also loses what forward "
                         "assigns to attributes (self.count += 1, self.buffer = ...): register buffers, and change "
                         "them in place (self.buffer.copy_(...))")
    return differ


def _is_close(a, b):
    """Up to rounding, which is relative to the largest values that were added."""
    a, b = a.double().nan_to_num(), b.double().nan_to_num()
    return a.shape == b.shape and bool((a - b).abs().max() <= 1e-4 * a.abs().max() + 1e-7)


@_without_own_warnings()
def compile(path, *, segments=1, threads=1, processor=None):
    """Compiles the training step of a file that was saved with a loss, and adds it to the file.

    With model.compiled = require (or prefer), forward, loss and backward then run as native code, which
    AOTInductor makes here with the C++ compiler; the machines that train need no compiler. Results may
    differ from the graph's by rounding, but are bit-identical for everyone who uses the file, on
    the same model of processor. The file keeps its graph, which is used for evaluation, and for training
    where the compiled step cannot run.

    segments   number of parts that the step is cut into; the first part computes the gradients of the
               last layers, which are sent while the next part runs
    threads    run.threads of the deck
    processor  the oldest processor that the step must run on, in the compiler's terms (-march);
               default on x86: x86-64-v3 (AVX2)

    Raises ValueError if the compiled step differs from the graph by more than rounding, or if the
    trained parameters do not have a gradient each."""
    records = _read_records(path)
    about = json.loads(records.get("extra/lockstep.json", b"{}"))
    if "sums" not in about:
        raise ValueError(f"{path} has no loss: save it with lockstep_export.save(..., loss=loss)")
    from torch.export.pt2_archive._package import load_pt2
    program = load_pt2(path).exported_programs["train"]
    with _told(f"the step of {path} was not compiled"):
        _compile(path, records, program, about["sums"].index("loss"), segments, threads, processor)


def _compile(path, records, program, loss, segments, threads, processor):
    machine = platform.machine()
    processor = processor or ("x86-64-v3" if machine == "x86_64" else machine)
    joint = _forward_and_backward(program, loss)
    step = _meaning(joint)
    values = _example_values(joint)
    native = {"cpp.threads": threads, "fallback_random": True,
              "cpp.march": None if processor == machine else processor,
              "cpp.simdlen": {"x86-64-v2": 1, "x86-64-v3": 256}.get(processor)}
    parts, originals = {}, [module for module, *_ in _cut(joint, segments)]
    _name_large_layers(joint)
    _keep_pools(joint)
    for number, (module, inputs, gradients, outputs) in enumerate(_cut(joint, segments)):
        examples = tuple(values[name] for name in inputs)
        places = tuple(torch.zeros(joint.state_dict[name].shape, dtype=joint.state_dict[name].dtype)
                       for name in gradients)
        with torch.no_grad(), torch.random.fork_rng():
            files, results = _native_code(module, originals[number], examples, places, native)
        parts |= {f"data/lockstep/step{number}{suffix}": content for suffix, content in files.items()}
        values |= dict(zip(outputs, results))  # laid out in memory as the next part will find them
        if not values[step["loss"]].isfinite():
            raise ValueError("the step was not added: the loss of the example batch is not finite, so the "
                             "compiled step cannot be compared. Save the file again with other examples")
        step["segments"].append({"inputs": inputs, "gradients": gradients, "outputs": outputs,
                                 "code": {suffix: zlib.crc32(content) for suffix, content in files.items()}})
    step |= {"format": STEP_FORMAT, "torch": torch.__version__.split("+")[0], "processor": processor,
             "threads": threads, "graph": zlib.crc32(records["models/train.json"])}
    kept = {name: content for name, content in records.items() if not name.startswith("data/lockstep/")}
    _write_records(path, kept | parts | {"data/lockstep/step.json": _with_checksum(step)})


def _with_checksum(step):
    """As JSON: the program runs code by what it says."""
    def text(values):
        return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return text(step | {"checksum": zlib.crc32(text(step))})


def _forward_and_backward(program, loss):
    """One graph of LibTorch's own operators: decompositions would change the gradients of attention."""
    from torch.export.exported_program import _decompose_exported_program
    try:
        return _decompose_exported_program(program, cia_to_decomp={}, python_decomp_table={},
                                           joint_loss_index=loss, decompose_custom_triton_ops=False)
    except AssertionError as error:
        if "InputKind.PARAMETER" in str(error) and _frozen_as_buffers(program):
            return _forward_and_backward(program, loss)
        raise ValueError("the step cannot be compiled, because a parameter has no gradient, the same "
                         "gradient as another parameter (as in a + b), or a second name (tied weights). Freeze "
                         "unused parameters with requires_grad_(False) and save the file again, or train "
                         "without a compiled step "
                         f"(PyTorch: {error})") from None


def _frozen_as_buffers(program):
    """Parameters that are not trained may change in forward, but PyTorch compiles that for buffers only."""
    kind = torch.export.graph_signature.InputKind
    frozen = [spec for spec in program.graph_signature.input_specs
              if spec.kind == kind.PARAMETER and not program.state_dict[spec.target].requires_grad]
    for spec in frozen:
        spec.kind, spec.persistent = kind.BUFFER, True
        program.state_dict[spec.target] = program.state_dict[spec.target].detach()
    return frozen


def _meaning(joint):
    """What the inputs and outputs of the step are, by their names in its graph: inputs are parameters,
    buffers and constants by name, or numbers of the batch's tensors."""
    given, outputs = 0, {"sums": [], "buffers": []}
    inputs = {}
    for spec in joint.graph_signature.input_specs:
        inputs[spec.arg.name] = spec.target if spec.target else given
        given += not spec.target
    for spec in joint.graph_signature.output_specs:
        if spec.kind.name in ("LOSS_OUTPUT", "USER_OUTPUT"):
            outputs["sums"].append(spec.arg.name)
            if spec.kind.name == "LOSS_OUTPUT":
                outputs["loss"] = spec.arg.name
        elif spec.kind.name == "BUFFER_MUTATION":
            outputs["buffers"].append([spec.arg.name, spec.target])
        elif spec.kind.name != "GRADIENT_TO_PARAMETER":
            raise ValueError(f"the step cannot be compiled: it has an output of kind {spec.kind.name}")
    return {"inputs": inputs, **outputs, "segments": []}


def _example_values(joint):
    state = {**joint.state_dict, **joint.constants}
    examples = iter(torch.utils._pytree.tree_leaves(joint.example_inputs))
    return {spec.arg.name: (state[spec.target] if spec.target else next(examples)).detach().contiguous()
            for spec in joint.graph_signature.input_specs}


def _name_large_layers(joint):
    """The program computes products with so many weights by the faster of two libraries."""
    aten = torch.ops.aten
    large = {spec.arg.name for spec in joint.graph_signature.input_specs if spec.kind.name == "PARAMETER"
             and joint.state_dict[spec.target].numel() >= 1 << 22}
    for node in joint.graph_module.graph.nodes:
        if node.target not in (aten.addmm.default, aten.mm.default) or node.kwargs:
            continue
        *bias, rows, columns = node.args
        if columns.target is aten.t.default and columns.args[0].name in large and \
                all(each.meta["val"].shape == columns.meta["val"].shape[1:] for each in bias):
            node.target, node.args = _linear(), (rows, columns.args[0], *(bias or [None]))


def _keep_pools(joint):
    """Inductor would find the places of the maxima anew for the gradient, which takes longer than
    LibTorch's two functions."""
    for node in joint.graph_module.graph.nodes:
        if node.target in _pools():
            node.target, kernel = _pools()[node.target]
            # Empty is as the kernel, but AOTInductor takes an empty list for none.
            before, after = node.args[:kernel + 1], node.args[kernel + 1:]
            node.args = (*before, (after and after[0]) or before[-1], *after[1:])


def _cut(joint, segments):
    """The step in `segments` graphs, each with the names of its inputs, of the parameters whose gradients
    it writes into further inputs, and of its outputs: what forward returns comes out of the first, which
    writes the gradients of the last layers."""
    graph = joint.graph_module.graph
    outputs = next(node for node in graph.nodes if node.op == "output").args[0]
    kinds = [(spec.kind.name, spec.target) for spec in joint.graph_signature.output_specs]
    order = [name for name, _ in reversed(list(joint.named_parameters()))]
    sizes = {name: parameter.numel() for name, parameter in joint.named_parameters()}
    share, before, part_of = max(1, sum(sizes.values())) / segments, 0, {}
    for name in order:
        part_of[name] = min(segments - 1, int(before / share))
        before += sizes[name]
    returned = list(dict.fromkeys(node for (kind, _), node in zip(kinds, outputs)
                                  if kind != "GRADIENT_TO_PARAMETER"))
    gradients = [{} for _ in range(segments)]
    for (kind, target), node in zip(kinds, outputs):
        if kind == "GRADIENT_TO_PARAMETER":
            gradients[part_of[target]][target] = node
    done, parts = set(), []
    for number, each in enumerate(gradients):
        results = [] if number else returned
        if each or results:
            needed = _needed([*results, *each.values()], done)
            done |= {node for node in needed if not _is_size(node)}
            parts.append((results, each, needed))
    return [_graph_of(joint, *part, parts[number + 1:]) for number, part in enumerate(parts)]


def _needed(wanted, done):
    """The nodes that compute `wanted`; sizes are computed in every part."""
    needed, waiting = set(), list(wanted)
    while waiting:
        node = waiting.pop()
        if node not in needed and node not in done and node.op != "placeholder":
            needed.add(node)
            waiting += node.all_input_nodes
    # Tuples do not cross to other parts, their elements do.
    return needed | {user for node in needed for user in node.users
                     if user.target is operator.getitem and user not in done}


def _is_size(node):
    return isinstance(node.meta.get("val"), (torch.SymInt, int))


def _graph_of(joint, returned, gradients, needed, later):
    nodes = joint.graph_module.graph.nodes
    used = [node for node in nodes
            if node not in needed and (node in gradients.values() or any(user in needed for user in node.users))]
    crossing = [node for node in nodes
                if node in needed and node not in returned and isinstance(node.meta.get("val"), torch.Tensor)
                and any(node in gradients.values() or any(user in part for user in node.users)
                        for _, gradients, part in later)]
    graph, copies = torch.fx.Graph(), {}
    for node in used:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = node.meta
    places = [graph.placeholder(f"gradient_{number}") for number, _ in enumerate(gradients)]
    for node in nodes:
        if node in needed:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    results = [*returned, *crossing]
    with graph.inserting_before(graph.output(tuple(copies[node] for node in results))):
        chains = [_transposed(copies[node]) for node in gradients.values()]
        uses = collections.Counter(node for chain in chains for node in chain)
        for place, node, chain in zip(places, gradients.values(), chains):
            place.meta = node.meta
            _write(graph, chain, place, alone=all(uses[each] == 1 for each in chain))
    return (torch.fx.GraphModule(joint.graph_module, graph), [node.name for node in used],
            list(gradients), [node.name for node in results])


def _transposed(node):
    """The node, and what it is a transposition of."""
    nodes = [node]
    while nodes[-1].target is torch.ops.aten.t.default:
        nodes.append(nodes[-1].args[0])
    return nodes


def _write(graph, chain, place, alone):
    """The first of `chain`, a gradient and what it is a transposition of, which no other gradient has
    if it is `alone`. Inductor would compute a matrix product elsewhere, and copy it at the end of the step."""
    gradient, product = chain[0], chain[-1]
    if product.target is torch.ops.aten.mm.default and len(chain) % 2 == 1 and alone and \
            not gradient.users and all(len(node.users) == 1 for node in chain[1:]):
        with graph.inserting_before(product):
            graph.call_function(_mm_into(), (*product.args, place))
        for node in chain:
            graph.erase_node(node)
    else:
        graph.call_function(torch.ops.aten.copy_.default, (place, gradient))


@functools.cache
def _linear():
    """An operator that the program has, too."""
    @torch.library.custom_op("lockstep::linear", mutates_args=[])
    def linear(x: torch.Tensor, weight: torch.Tensor, bias: typing.Optional[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.linear(x, weight, bias)
    linear.register_fake(lambda x, weight, bias: x.new_empty(x.shape[0], weight.shape[0]))
    return torch.ops.lockstep.linear.default


@functools.cache
def _mm_into():
    """An operator that the program has, too."""
    @torch.library.custom_op("lockstep::mm_into", mutates_args=["place"])
    def mm_into(a: torch.Tensor, b: torch.Tensor, place: torch.Tensor) -> None:
        torch.mm(a, b, out=place)
    mm_into.register_fake(lambda a, b, place: None)
    return torch.ops.lockstep.mm_into.default


@functools.cache
def _pools():
    """Operators that the program has, too, by those of LibTorch that they call, and which of their
    arguments is the kernel's size."""
    def named(name, function):
        schema = str(function._schema)
        kept = torch.library.custom_op(f"lockstep::{name}", function, mutates_args=[], schema=schema[schema.index("("):],
                                       tags=[torch.Tag.flexible_layout])
        kept.register_fake(function)
        return getattr(torch.ops.lockstep, name).default
    aten = torch.ops.aten
    return {function: (named(name, function), kernel)
            for name, function, kernel in (("max_pool2d", aten.max_pool2d_with_indices.default, 1),
                                           ("max_pool2d_backward", aten.max_pool2d_with_indices_backward.default, 2))}


def _native_code(module, original, examples, places, options):
    """Its files: the shared library, and the calls that it makes of operators by name, where there
    are; and what it returns for `examples`, after comparing that with the original's results. Gradients
    are written into `places`, without a copy where an operator can write its result there."""
    varying = [{at: torch.export.Dim.DYNAMIC for at, size in enumerate(node.meta["val"].shape)
                if isinstance(size, torch.SymInt)}
               for node in module.graph.nodes if node.op == "placeholder"]
    program = torch.export.export(module, examples + places, dynamic_shapes=tuple(varying), strict=False)
    with tempfile.TemporaryDirectory() as directory:
        package = os.path.join(directory, "step.pt2")
        torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs=options)
        files = {suffix: content for name, content in _read_records(package).items()
                 for ending, suffix in ((".wrapper.so", ".so"), (".wrapper.json", ".json"))
                 if name.endswith(ending)}
        for suffix, content in files.items():
            pathlib.Path(directory, "step" + suffix).write_bytes(content)
        torch.manual_seed(0)
        expected = [*original(*examples, *places), *(place.clone() for place in places)]
        for place in places:
            place.fill_(math.nan)
        torch.manual_seed(0)
        runner = torch._C._aoti.AOTIModelContainerRunnerCpu(os.path.join(directory, "step.so"), 1)
        results = runner.run([*examples, *places])
    _require_close([*results, *places], expected)
    return files, results


def _require_close(values, expected):
    """Where rounding moves an activation across a kink, the gradients before it differ by some
    thousandths; and some gradients are nothing but rounding, as a bias' before batch norm: they are
    measured by the largest."""
    def finite(tensor):
        return tensor.double().nan_to_num(0, 0, 0)

    def differs(value, right):
        return (value.shape != right.shape or not torch.equal(value.isfinite(), right.isfinite()) or
                (finite(value) - finite(right)).norm() > 0.02 * finite(right).norm() + 1e-5 * largest)

    largest = max(float(finite(each).norm()) for each in expected)
    wrong = [number for number, (value, right) in enumerate(zip(values, expected, strict=True))
             if differs(value, right)]
    if wrong:
        raise ValueError(f"the compiled step was not added: its results {wrong} differ from the "
                         "graph's by more than rounding")


def _read_records(path):
    reader = torch._C.PyTorchFileReader(str(path))
    return {name: reader.get_record(name) for name in reader.get_all_records()}


def _share_weights(path, programs):
    """Weights that the programs have in common are then in the file once: package_pt2 writes them for each."""
    reader = torch._C.PyTorchFileReader(str(path))
    folder = "data/weights/"
    names = [f"{folder}{name}_weights_config.json" for name in programs]
    lists = {name: json.loads(reader.get_record(name)) for name in names}
    kept = lists[f"{folder}train_weights_config.json"]["config"]
    used = set()
    for each in lists.values():
        for name, entry in each["config"].items():
            first = kept.get(name, entry)
            if first["path_name"] != entry["path_name"] and first["tensor_meta"] == entry["tensor_meta"] and \
                    reader.get_record(folder + first["path_name"]) == reader.get_record(folder + entry["path_name"]):
                entry["path_name"] = first["path_name"]
            used.add(folder + entry["path_name"])
    _write_records(path, ((name, json.dumps(lists[name]).encode() if name in lists else reader.get_record(name))
                          for name in reader.get_all_records()
                          if name in lists or name in used or not name.startswith(folder)))


def _write_records(path, records):
    """Names and contents in place of the file, whole or not at all."""
    path = pathlib.Path(path)
    partial = path.with_name(path.name + ".partial")
    writer = torch._C.PyTorchFileWriter(str(partial))
    for name, content in records.items() if isinstance(records, dict) else records:
        if not name.startswith(".data/") and name not in ("version", "byteorder"):
            writer.write_record(name, content, len(content))
    writer.write_end_of_file()
    os.replace(partial, path)
