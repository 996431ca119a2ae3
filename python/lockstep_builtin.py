"""A built-in model of Lockstep as a PyTorch module, or as an exported program whose step can be compiled.

    python3 -m lockstep_builtin deck.ini model.pt2 --compile

writes the deck's model with its loss, for runs with model.name = export and task.kind = export. The layers have the
names of the built-in model, so weights of one are read by the other (model.weights). In Python,

    model = lockstep_builtin.load("model.safetensors")

is the module itself. Needs PyTorch 2.9 or later and, for other files than safetensors, the program lockstep.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

import lockstep_export
import lockstep_models
import lockstep_tasks

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
SAMPLES = 4  # of the example batch


class UnreadableFile(ValueError):
    """Whatever a file of weights lacks."""


def load(source, *, program="lockstep", keys=()):
    """The model of `source` with its weights: a safetensors file that `lockstep checkpoint export` wrote, a checkpoint,
    a best.h5, the directory of a run or, for the first weights of its run, a deck (NAME.ini).

    program  the lockstep program, which reads all but safetensors files
    keys     of the deck, as on the command line: ("--model.hidden", "128")

    Raises ValueError for a model that is not here in PyTorch, and subprocess.CalledProcessError if the program fails"""
    return _open(source, program, keys)[0]


def save(source, path, *, program="lockstep", keys=()):
    """Writes the model of `source` (as `load`) and the loss of its task to `path`, by lockstep_export.save.

    Raises ValueError, too, for a task whose loss cannot be exported"""
    model, task, facts = _open(source, program, keys)
    task.layer = next(model.children())
    inputs, targets = (_example(facts[each][0]) for each in ("inputs", "targets"))
    lockstep_export.save(model, inputs, path, loss=task, targets=targets, weight=task.weight, metrics=task.metrics)


def _open(source, program, keys):
    source = pathlib.Path(source)
    if source.suffix == ".safetensors":
        return _model_of(source)
    with tempfile.TemporaryDirectory() as directory:
        exported = pathlib.Path(directory, "model.safetensors")
        subprocess.run([program, "checkpoint", "export", source, exported, *keys], check=True, stdout=subprocess.DEVNULL)
        return _model_of(exported)


def _model_of(path):
    about, tensors = _read(path)
    keys, facts = (json.loads(about.get(name, "{}")) for name in ("lockstep_model", "lockstep_facts"))
    if not keys or not facts:
        raise UnreadableFile(f"{path} does not say which model it holds: write it with lockstep checkpoint export")
    own = {section: {key.partition(".")[2]: value for key, value in keys.items() if key.startswith(section + ".")}
           for section in ("model", "task")}
    name, kind = own["model"].pop("name"), own["task"].pop("kind")
    task, samples = lockstep_tasks.make(kind, own["task"], facts), facts["inputs"]
    if len(samples) != 1 or len(facts["targets"]) != 1 or samples[0]["ragged"]:
        raise ValueError(f"the model of {path} takes several inputs, a mask, or samples of different lengths, which its "
                         "module in PyTorch does not: train the built-in model")
    model = lockstep_models.make(name, own["model"], lockstep_models.Samples(
        tuple(samples[0]["shape"]), task.outputs, task.per_sample, _vocabulary(samples[0], own["model"]),
        samples[0]["end_of_text"]))
    _fill(model, tensors, path)
    return model, task, facts


def _vocabulary(tokens, own):
    return (tokens["vocabulary"] or int(own.get("vocabulary", 0))) if tokens["whole"] else 0


def _fill(model, tensors, path):
    state = model.state_dict()
    if different := sorted(state.keys() ^ tensors.keys()):
        raise ValueError(f"{path} and its model in PyTorch do not have the same tensors: {', '.join(different[:3])}. "
                         "Models with adapters or for int8 are not here in PyTorch")
    for name, value in tensors.items():
        if value.numel() != state[name].numel() or value.dim() and value.shape != state[name].shape and state[name].dim():
            raise ValueError(f"{name} has the shape {list(value.shape)} in {path}, but {list(state[name].shape)} in its "
                             "model in PyTorch. Models that have lost channels are not here in PyTorch")
        state[name].copy_(value.reshape(state[name].shape))


def _read(path):
    """The metadata and the tensors of a safetensors file."""
    content = pathlib.Path(path).read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:begin])
        about = header.pop("__metadata__", {})
        return about, {name: _tensor(memoryview(content)[begin:], form) for name, form in header.items()}
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise UnreadableFile(f"{path} is not a complete safetensors file of real values and int64 ({error}): copy it again "
                             "from its source") from None


def _tensor(content, form):
    first, end = form["data_offsets"]
    return torch.frombuffer(bytearray(content[first:end]), dtype=TYPES[form["dtype"]]).reshape(form["shape"])


def _example(field):
    """A batch of such samples; all classes and tokens are 0, which each model knows."""
    shape = (SAMPLES, *field["shape"])
    if field["whole"]:
        return torch.zeros(shape, dtype=torch.int64)
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


def main():
    parser = argparse.ArgumentParser(prog="lockstep_builtin", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="deck (NAME.ini), run, checkpoint, best.h5 or safetensors file")
    parser.add_argument("out", help="the program to write, NAME.pt2")
    parser.add_argument("--compile", action="store_true", help="add a compiled step for CPUs, which takes minutes")
    parser.add_argument("--segments", type=int, default=1, help="with --compile: parts of the step (1)")
    parser.add_argument("--threads", type=int, default=1, help="with --compile: run.threads of the deck (1)")
    parser.add_argument("--processor", help="with --compile: the oldest processor, such as x86-64-v4")
    parser.add_argument("--program", default="lockstep", help="the lockstep program, if it is not on the PATH")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    options, keys = parser.parse_known_args()
    out = pathlib.Path(options.out)
    if out.suffix != ".pt2":
        print(f"lockstep_builtin: {out} does not end with .pt2, as exported programs do", file=sys.stderr)
        return os.EX_USAGE
    if not out.parent.is_dir() or (out.exists() and not options.overwrite):
        print(f"lockstep_builtin: {out} exists: choose another name, or add --overwrite" if out.exists() else
              f"lockstep_builtin: {out.parent} is no directory: make it first", file=sys.stderr)
        return os.EX_CANTCREAT
    try:
        save(options.source, options.out, program=options.program, keys=keys)
        if options.compile:
            lockstep_export.compile(options.out, segments=options.segments, threads=options.threads,
                                    processor=options.processor)
    except FileNotFoundError as error:
        print(f"lockstep_builtin: {error.filename} does not exist"
              + (": name the program with --program" if error.filename == options.program else ""), file=sys.stderr)
        return os.EX_NOINPUT
    except ValueError as error:
        print(f"lockstep_builtin: {error}", file=sys.stderr)
        return os.EX_DATAERR if isinstance(error, UnreadableFile) else os.EX_USAGE
    except subprocess.CalledProcessError as error:
        return error.returncode
    compiled = " --model.compiled require" if options.compile else ""
    print(f"{options.out}: the model of {options.source}, with its loss. To train it, add to the command line of the deck:\n"
          f"    --model.name export --model.file {options.out} --task.kind export{compiled}")
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
