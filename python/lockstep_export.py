"""Saves a PyTorch model for training with `model.name = export`.

    import lockstep_export
    lockstep_export.save(model, (images,), "model.pt2")

writes a program for training and one for evaluation, of torch.export, into one file. With `loss`, the
file also holds what is to be learnt (`task.kind = export`):

    def loss(scores, labels):
        return {"loss": cross_entropy(scores, labels, reduction="sum"),
                "samples": labels.numel(), "correct": (scores.argmax(1) == labels).sum()}

    lockstep_export.save(model, (images,), "model.pt2", loss=loss, targets=(labels,),
                         weight="samples", metrics={"accuracy": ("correct", "samples")})

Needs PyTorch 2.9 or later, and nothing else.
"""
import copy
import json
import warnings

import torch

FORMAT = 1


def save(model, inputs, path, *, loss=None, targets=(), weight="samples", metrics=None,
         dynamic_shapes=None):
    """Exports `model` for batches like `inputs`, a tuple of tensors whose first dimension is the batch.

    loss     of (outputs, *targets): a dict of sums over the batch; "loss" is minimised, divided by
             the sum named `weight`; count samples with labels.shape[0], since len() is not traced
    metrics  name: (sum, sum), what validation reports besides the loss: ratios of sums; the best model
             may be chosen by them, and has the highest one, or the lowest: name: (sum, sum, "min")
    dynamic_shapes  as torch.export takes them, for more dimensions than the batch to vary

    Returns whether the exported program has the model's bits: two steps of training are compared, at
    two sizes of the batch. Where torch.export chose other kernels, which round otherwise, it warns;
    raises ValueError, and writes nothing, where the program computes something else."""
    inputs, targets = _tensors(inputs, "inputs"), _tensors(targets, "targets")
    examples = (*inputs, *targets)
    sizes = {len(each) for each in examples}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError(f"the first dimension is the batch: alike, and at least 2, not {sorted(sizes)}")
    if targets and loss is None:
        raise ValueError("targets are given to the loss: give one")
    module = _with_loss(model, len(inputs), loss) if loss else model
    if dynamic_shapes is None:
        batch = torch.export.Dim("batch", min=1)
        shapes = tuple({0: batch} for _ in examples)
        dynamic_shapes = {"args": shapes} if loss else shapes
    was_training = model.training
    try:
        programs = {}
        for mode in ("train", "eval"):
            module.train(mode == "train")
            programs[mode] = torch.export.export(module, examples, dynamic_shapes=dynamic_shapes)
        half = tuple(each[:max(1, len(each) // 2)] for each in examples)
        exact = all([_is_same(module.train(), programs["train"], batch, path)
                     for batch in (examples, half)])
    finally:
        model.train(was_training)
    about = {"format": FORMAT, "torch": torch.__version__}
    if loss:
        about |= _about_loss(module, examples, weight, metrics or {})
    from torch.export.pt2_archive._package import package_pt2
    package_pt2(path, exported_programs=programs, extra_files={"lockstep.json": json.dumps(about)})
    return exact


def _tensors(values, what):
    values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    for value in values:
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            raise ValueError(f"{what} must be tensors whose first dimension is the batch")
    return values


def _with_loss(model, inputs, loss):
    """The same module, with the same names, whose forward takes targets too and returns sums."""

    class WithLoss(type(model)):
        def forward(self, *args):
            sums = loss(super().forward(*args[:inputs]), *args[inputs:])
            return {name: value if name == "loss" else _number(value)
                    for name, value in sorted(sums.items())}

    module = copy.copy(model)
    module.__class__ = WithLoss
    return module


def _number(value):
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64)
    return torch.scalar_tensor(value, dtype=torch.float64)  # of a size, which stays symbolic


def _about_loss(module, examples, weight, metrics):
    with torch.no_grad():
        sums = copy.deepcopy(module).eval()(*examples)
    metrics = {name: (*ratio, "max")[:3] for name, ratio in metrics.items()}
    if wrong := [name for name, ratio in metrics.items() if len(ratio) != 3 or ratio[2] not in ("max", "min")]:
        raise ValueError(f"a metric is (sum, sum) or (sum, sum, \"max\" or \"min\"): {wrong}")
    wanted = {"loss", weight, *(name for ratio in metrics.values() for name in ratio[:2])}
    if missing := wanted - sums.keys():
        raise ValueError(f"the loss returns no {sorted(missing)}, only {sorted(sums)}")
    if wrong := [name for name, value in sums.items() if value.dim()]:
        raise ValueError(f"sums over the batch must be single numbers: {wrong}")
    return {"sums": sorted(sums), "weight": weight,
            "metrics": {name: list(ratio) for name, ratio in metrics.items()}}


def _outputs(result):
    return [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


def _two_steps(module, batch):
    """Outputs, gradients and buffers of two steps of gradient descent."""
    seen = {}
    for step in range(2):
        torch.manual_seed(step)
        outputs = _outputs(module(*batch))
        parameters = {name: each for name, each in module.named_parameters() if each.requires_grad}
        total = sum(each.float().sum() for each in outputs if each.requires_grad)
        gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
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
    return seen


def _is_same(module, program, batch, path):
    state = torch.get_rng_state()
    try:
        eager = _two_steps(copy.deepcopy(module), batch)
        exported = _two_steps(copy.deepcopy(program).module(), batch)
    finally:
        torch.set_rng_state(state)
    differ = [name for name, value in eager.items()
              if name not in exported or not torch.equal(value.nan_to_num(), exported[name].nan_to_num())]
    lost = [name for name in differ if name not in exported or not _is_close(eager[name], exported[name])]
    if lost:
        raise ValueError(f"{path} is not written: the exported program differs from the model in "
                         f"{', '.join(lost[:3])}. torch.export loses the backward of a custom "
                         "autograd.Function, and buffers that forward replaces (self.buffer = ...): "
                         "change them in place (self.buffer.copy_(...))")
    if differ:
        warnings.warn(f"{path}: the exported program rounds otherwise than the model, in "
                      f"{', '.join(differ[:3])}: torch.export chose other kernels", stacklevel=3)
    return not differ


def _is_close(a, b):
    """Up to rounding, which is relative to the largest values that were added."""
    a, b = a.double().nan_to_num(), b.double().nan_to_num()
    return a.shape == b.shape and bool((a - b).abs().max() <= 1e-4 * a.abs().max() + 1e-7)
