"""Compiled steps of exported programs, and the loss of language models that can be compiled with them. The short form
compiles one program, and draws what is tried with it."""
import json
import os
import shutil

import h5py
import numpy as np
import torch
from torch.nn import functional as F

from exported_test import BATCH, STEPS, train, write  # first: it knows where lockstep_export is
import exported_models
import lockstep_export
from harness import LONG, Scratch, check, check_same, checkpoints, records, run, some


def rewrite_step(path, target, change):
    """The file with another description of its compiled step, or other code."""
    records = lockstep_export._read_records(path)
    lockstep_export._write_records(target, {name: change(name, content) for name, content in records.items()})


def compiled_for(**facts):
    def change(name, content):
        if not name.endswith("/step.json"):
            return content
        step = json.loads(content) | facts
        del step["checksum"]
        return lockstep_export._with_checksum(step)
    return change


def weight_hashes(where):
    """Of the weights after each step of a run."""
    return [each["weight_hash"] for each in records(where, "step")]


def leaves(group):
    found = []
    group.visititems(lambda _, item: found.append(item.name) if isinstance(item, h5py.Dataset) else None)
    return found


def check_compiled(scratch):
    """model.compiled: the bits are its own, the same on any ranks and through a kill, and those of the graph up
    to rounding; where it does not fit, it is refused, or the graph is run."""
    _, inputs, targets = write(scratch, "cnn", BATCH * STEPS)
    model, _ = exported_models.make("cnn", 2)
    model = torch.nn.Sequential(model, torch.nn.Dropout(0.3))

    def loss(scores, labels):
        return {"loss": F.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0],
                "right": (scores.argmax(1) == labels).sum()}

    file = scratch / "fast.pt2"
    lockstep_export.save(model, inputs[0][:4], file, loss=loss, targets=targets[:4],
                         metrics={"accuracy": ("right", "samples")})
    own = ["--model.file", file, "--task.kind", "export", "--run.replicas", 4, "--data.batch", 2]
    train(scratch, "cnn", "no", *own, "--model.compiled", "require").expect(64, "the file has no compiled step")
    train(scratch, "cnn", "graph", *own, "--model.compiled", "prefer").expect(0, "runs instead of a compiled step, because the file has no")
    lockstep_export.compile(file, segments=2)
    calls = b"".join(content for name, content in lockstep_export._read_records(file).items()
                     if name.startswith("data/lockstep/step") and name.endswith(".json"))
    check(b"lockstep::mm_into" in calls, "gradients are written in place")
    check(b"lockstep::max_pool2d_backward" in calls, "pools are not Inductor's")
    fast = [*own, "--model.compiled", "require"]
    train(scratch, "cnn", "fast-1", *fast).expect(0)
    if LONG:
        train(scratch, "cnn", "fast-3", *fast, ranks=3).expect(0)
        check_same(scratch / "fast-1", scratch / "fast-3", "3 ranks have the bits of 1, compiled")
    killed = train(scratch, "cnn", "fast-cut", *fast, ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=8"})
    check(killed.code != 0, "killed")
    train(scratch, "cnn", "fast-cut", *fast, ranks=4 if LONG else 2).expect(0, "resumed from")
    check_same(scratch / "fast-1", scratch / "fast-cut", "compiled, through a kill")
    hashes = {where: weight_hashes(scratch / where) for where in ("graph", "fast-1")}
    check(hashes["fast-1"] != hashes["graph"], "the graph has other bits")
    losses = [[each["loss"] for each in records(scratch / where, "step")] for where in ("graph", "fast-1")]
    check(np.allclose(*losses, rtol=1e-3), f"its losses are those of the graph: {losses}")
    buffers = []
    with (h5py.File(checkpoints(scratch / "graph")[-1]) as graph,
          h5py.File(checkpoints(scratch / "fast-1")[-1]) as ours):
        for name in ("num_batches_tracked", "running_mean", "running_var"):
            found = [place for place in leaves(graph["model"]) if place.endswith(name)]
            buffers += found
            for place in found:
                check(np.allclose(graph[place], ours[place], rtol=1e-3, atol=1e-4), f"{place} is the graph's")
    check(len(buffers) >= 3, f"batch norm's buffers: {buffers}")

    def threads():
        train(scratch, "cnn", "fast-dp", *fast, "--run.mode", "dp").expect(0)
        check(weight_hashes(scratch / "fast-dp") == hashes["fast-1"], "threads have its bits")

    def scaled():  # the gradients of a scaled loss are scaled
        train(scratch, "cnn", "fast-scaled", *fast, "--communication.compression", "fp16").expect(0)
        scaled = [each["loss"] for each in records(scratch / "fast-scaled", "step")]
        check(np.allclose(scaled, losses[1], rtol=1e-3), f"{scaled} as {losses[1]}")

    def half():
        for how in ("none", "prefer"):
            text = train(scratch, "cnn", f"half-{how}", *own, "--precision.compute", "bf16", "--model.compiled",
                         how).expect(0).text
            told = "runs instead of a compiled step, because a compiled step computes in float32" in text
            check(told == (how == "prefer"), f"{how}: {text}")
        check(weight_hashes(scratch / "half-none") == weight_hashes(scratch / "half-prefer"), "the graph runs in bf16")

    def evaluated():  # evaluation has no use for the step, and does not ask for it
        run(["evaluate", scratch / "cnn.ini", checkpoints(scratch / "fast-1")[-1], *fast, "--precision.compute",
             "bf16"]).expect(0, "accuracy")

    def single():  # a batch of one sample, for which nothing is compiled, has the bits of the graph
        for where, how in (("single", "require"), ("single-graph", "none")):
            train(scratch, "cnn", where, *own[:4], "--run.replicas", 2, "--data.batch", 1, "--model.compiled",
                  how).expect(0)
        check(weight_hashes(scratch / "single") == weight_hashes(scratch / "single-graph"), "single samples")

    for case in some((threads, scaled, half, evaluated, single), 2):
        case()
    for words, phrase in some(
            [((option, "true"), f"a compiled step does not support {option[2:]}")
             for option in ("--precision.gradient-checkpointing", "--communication.sync-batch-norm")]
            + [(("--prune.pattern", "channels"), "compiled for all channels")]
            + [(("--precision.compute", compute), "Set precision.compute = fp32") for compute in ("bf16", "fp16")]):
        refused = train(scratch, "cnn", "no", *fast, *words).expect(64, phrase)
        if words[0] == "--precision.compute":
            check("step 1/" not in refused.text, f"{words[1]} is refused before the first step: {refused.text}")
    # What it was not compiled for.
    again = [*own[2:], "--model.file"]
    train(scratch, "cnn", "fast-1", *own, "--train.steps", 30).expect(64, "model.compiled")
    for facts, why in some(((dict(torch="1.0.0"), "compiled for LibTorch 1.0.0"), (dict(threads=7), "run.threads = 7"),
                            (dict(processor="pdp-11"), "processors of kind pdp-11"), (dict(graph=1), "another graph"))):
        rewrite_step(file, scratch / "other.pt2", compiled_for(**facts))
        other = [*again, scratch / "other.pt2", "--model.compiled"]
        train(scratch, "cnn", "no", *other, "require", ranks=2).expect(64, why)
        train(scratch, "cnn", f"other-{why[-1]}", *other, "prefer").expect(0, why)
    other = [*again, scratch / "other.pt2", "--model.compiled", "require"]
    segments = json.loads(lockstep_export._read_records(file)["data/lockstep/step.json"])["segments"]
    no_gradients = [segment | {"gradients": []} for segment in segments]
    first, last = (segment["gradients"] for segment in segments)
    for facts in some((dict(segments=no_gradients), dict(sums=["none"]), dict(segments=7), dict(buffers=[["x", "y"]]),
                       dict(loss=3), dict(segments=[segments[0], no_gradients[1]]),
                       dict(segments=[segments[0], segments[1] | {"outputs": ["x"]}]),
                       dict(segments=[segments[0], segments[1] | {"gradients": first}]))):
        rewrite_step(file, scratch / "other.pt2", compiled_for(**facts))
        train(scratch, "cnn", "no", *other).expect(65, "other.pt2 is damaged")
    moved = [segments[0] | {"gradients": first + last[:1]}, segments[1] | {"gradients": last[1:]}]
    fewer = [segments[0], segments[1] | {"gradients": last[1:]}]  # which its backward pass finds
    for wrong in some((moved, fewer)):
        rewrite_step(file, scratch / "other.pt2", compiled_for(segments=wrong))
        train(scratch, "cnn", "no", *other).expect(65, "the compiled step of", "cannot run")
    rewrite_step(file, scratch / "other.pt2", lambda name, content: content.replace(
        json.dumps(last).replace(" ", "").encode(), json.dumps(last[::-1]).replace(" ", "").encode()))
    train(scratch, "cnn", "no", *other).expect(65, "its compiled step has changed since")
    rewrite_step(file, scratch / "other.pt2",
                 lambda name, content: content[:5000] if name.endswith("step1.so") else content)
    train(scratch, "cnn", "no", *other, ranks=2).expect(65, "step1.so has changed since it was compiled")


def check_language(scratch):
    """lockstep_export.language_loss is what task.kind = language learns; so a transformer's step can be compiled."""
    words, length, end = 40, 12, 3

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.output = torch.nn.Embedding(words, 16), torch.nn.Linear(16, words)
            self.attention = torch.nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = self.attention(self.words(x)).unflatten(2, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            return self.output(found).permute(0, 2, 1)

    torch.manual_seed(6)
    model, tokens = Model(), torch.randint(0, words, (64 * length + 1,))
    with h5py.File(scratch / "texts.h5", "w") as file:
        file["inputs"] = tokens.numpy().astype("u2")
        file.attrs["end_of_text"], file["token_bytes"] = float(end), np.ones(words, np.uint8)
    lockstep_export.save(model, tokens[:4 * length].view(4, length), scratch / "plain.pt2")
    cases = some((("separate", dict(end_of_text=end), ["--task.documents", "separate"]),
                  ("smoothed", dict(label_smoothing=0.125),
                   ["--task.documents", "joined", "--task.label-smoothing", 0.125])))
    for name, own, _ in cases:
        lockstep_export.save(model, tokens[:4 * length].view(4, length), scratch / f"{name}.pt2",
                             loss=lockstep_export.language_loss(**own), targets=tokens[1:4 * length + 1].view(4, length),
                             weight="tokens", metrics={"accuracy": ("right", "tokens")})
    write(scratch, "cnn", BATCH * STEPS)  # its deck
    texts = ["--data.train", scratch / "texts.h5", "--data.validation", scratch / "texts.h5", "--data.inputs", "inputs",
             "--data.sequence", length, "--run.replicas", 2, "--data.batch", 4, "--train.steps", 8]
    ours = [*texts, "--model.file", scratch / "plain.pt2", "--task.kind", "language", "--task.vocabulary", words]
    for name, _, how in cases:
        train(scratch, "cnn", f"{name}-task", *ours, *how).expect(0)
        own = [*texts, "--model.file", scratch / f"{name}.pt2", "--task.kind", "export"]
        train(scratch, "cnn", f"{name}-own", *own).expect(0)
        found = [[(each["loss"], each["weight_hash"]) for each in records(scratch / f"{name}-{which}", "step")]
                 for which in ("task", "own")]
        check(found[0] == found[1], f"{name}: the losses and weights of the task language: {found}")
        measured = [[each["accuracy"] for each in records(scratch / f"{name}-{which}", "validation")]
                    for which in ("task", "own")]
        check(name == "smoothed" or measured[0] and measured[0] == measured[1], f"the same accuracy: {measured}")
    if LONG:  # the C++ compiler takes most of a minute
        compiled_language(scratch, texts)


def wide_layers(scratch):
    """Products with large weights may be computed by another library than the graph's."""
    _, inputs, targets = write(scratch, "cnn", 16 * STEPS)
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(2048), torch.nn.ReLU(),
                               torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10))
    wide(inputs[0][:2])

    def loss(scores, labels):
        return {"loss": F.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0]}

    file = scratch / "wide.pt2"
    lockstep_export.save(wide, inputs[0][:4], file, loss=loss, targets=targets[:4])
    lockstep_export.compile(file)
    check(b"lockstep::linear" in lockstep_export._read_records(file)["data/lockstep/step0.json"], "a large layer")
    own = ["--model.file", file, "--task.kind", "export", "--run.replicas", 2, "--data.batch", 16, "--train.steps", 6]
    for where, ranks, how in (("wide", 1, "require"), ("wide-2", 2, "require"), ("wide-graph", 2, "none")):
        train(scratch, "cnn", where, *own, "--model.compiled", how, ranks=ranks).expect(0)
    check_same(scratch / "wide", scratch / "wide-2", "large layers on 1 and 2 ranks")
    losses = [[each["loss"] for each in records(scratch / where, "step")] for where in ("wide", "wide-graph")]
    check(np.allclose(*losses, rtol=1e-3), f"large layers' losses: {losses}")


def compiled_language(scratch, texts):
    lockstep_export.compile(scratch / "separate.pt2")
    fast = [*texts, "--model.file", scratch / "separate.pt2", "--task.kind", "export", "--model.compiled", "require"]
    train(scratch, "cnn", "texts-fast", *fast).expect(0)
    train(scratch, "cnn", "texts-fast-2", *fast, ranks=2).expect(0)
    check_same(scratch / "texts-fast", scratch / "texts-fast-2", "a compiled transformer on 2 ranks")
    losses = [[each["loss"] for each in records(scratch / where, "step")] for where in ("separate-own", "texts-fast")]
    check(np.allclose(*losses, rtol=1e-3), f"a compiled transformer's losses: {losses}")


def keep_what_compilers_said(scratch):
    """Most of the time goes into headers of torch, the same each time: where ccache is there, it is asked first."""
    if not shutil.which("ccache"):
        return
    from torch._inductor import config
    compiler = scratch / "g++"  # by its name it is known to be GCC
    compiler.write_text(f'#!/bin/sh\nexec ccache {config.cpp.cxx[1]} "$@"\n')
    compiler.chmod(0o755)
    os.environ |= {"CCACHE_NOHASHDIR": "1",
                   "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
    config.cpp.cxx = (None, str(compiler))


with Scratch() as scratch:
    keep_what_compilers_said(scratch)
    check_compiled(scratch)
    check_language(scratch)
    if LONG:
        wide_layers(scratch)
