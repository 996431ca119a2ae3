"""Every model goes out to ONNX and to C99: twice the same bytes, a file that onnx.checker accepts, and in
onnxruntime and from C the outputs of ours, whatever the batch. C files are called from C++ and Fortran, too. The short
form draws models, files and mistakes."""
import ctypes
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
from typing import List

import h5py
import numpy as np

from harness import LONG, SEED, SOURCE, Scratch, check, checkpoints, run, some
from harness_fortran import outputs_of_ones

try:
    import onnx
    import onnxruntime
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import small_models
from small_models import MODELS, POLICY, SOUNDS, deck_of, lockstep_export, write_data

ROWS = 30  # of a sample, where samples have a number of rows each
STRICT = ["-std=c99", "-Wall", "-Werror", "-pedantic", "-O2"]
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64,
         "tensor(uint8)": np.uint8, "tensor(int64)": np.int64}
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # python3 has onnxruntime


def close(a, b, what):
    far = np.max(np.abs(a - b) / (1 + np.abs(b)))
    check(far <= 1e-5, f"{what}: a relative difference of {far}")


def in_onnxruntime(path):
    """The inputs of 64 samples, and their outputs, which do not depend on the batch."""
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    form = session.get_inputs()[0]
    check(form.name == "inputs" and form.shape[0] == "batch", f"inputs of {path}: {form.shape}")
    dice = np.random.default_rng(SEED)
    shape = (64, *form.shape[1:])
    inputs = dice.normal(size=shape) if form.type == "tensor(float)" else dice.integers(0, 20, shape)
    inputs = inputs.astype(TYPES[form.type])
    outputs = session.run(["outputs"], {"inputs": inputs})[0]
    for batch in (1, 7):
        close(session.run(None, {"inputs": inputs[:batch]})[0], outputs[:batch], f"batch {batch} of {path}")
    return inputs, outputs


def from_c(source, name, inputs, outputs):
    library = source.with_suffix(".so")
    subprocess.run(["cc", *STRICT, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    run_model = getattr(loaded, f"{name}_run")
    found = np.empty(outputs.shape, np.float32)
    code = run_model(ctypes.c_size_t(len(inputs)), np.ascontiguousarray(inputs).ctypes.data_as(ctypes.c_void_p),
                     found.ctypes.data_as(ctypes.c_void_p))
    check(code == 0, f"{name}_run returns {code}")
    close(found, outputs, source)
    needed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    for line in needed.stdout.splitlines():
        symbol = line.split()[-1].split("@")[0]
        check(symbol.startswith(("_", "mem")) or symbol in MATHS, f"{source} needs {symbol}")


MATHS = {"expf", "erff", "tanhf", "sqrtf", "logf", "log1pf", "expm1f", "powf", "sinf", "cosf", "floorf", "ceilf"}


def exported(scratch, name):
    """Trains a model for two steps and compares what is exported of it."""
    deck = deck_of(scratch, name, 2)
    run(["train", deck, "--run.directory", scratch / name], 1).expect(0)
    newest = checkpoints(scratch / name)[-1]
    rows = ["--rows", ROWS] if MODELS[name][1] == SOUNDS else []
    identifier = name.replace("-", "_")
    files = [scratch / f"{identifier}.onnx", scratch / f"{identifier}.c"]
    if name == "resnet":  # of 11 million weights, which take C compilers minutes
        files.pop()
    for file in files:
        run(["checkpoint", "export", newest, file, *rows]).expect(0, "multiply-adds")
    for file in some(files):
        before = file.read_bytes()
        if LONG or name == "cnn":
            run(["checkpoint", "export", newest, file, *rows]).expect(73, "already exists")
        run(["checkpoint", "export", newest, file, *rows, "--overwrite"]).expect(0)
        check(file.read_bytes() == before, f"twice the same bytes: {file}")
    inputs, outputs = in_onnxruntime(files[0])
    for source in files[1:]:
        from_c(source, identifier, inputs, outputs)
    if MODELS[name][1] == POLICY:
        run(["checkpoint", "quantise", newest, scratch / f"{identifier}-int8.h5"]).expect(64, "no training set to calibrate")
        script = scratch / f"{identifier}.pt"
        run(["checkpoint", "export", newest, script]).expect(0)
        with torch.no_grad():
            close(outputs, torch.jit.load(str(script))(torch.from_numpy(inputs)).numpy(), name)
        return
    for file in files:
        run(["export", "check", file, "--data", scratch / f"{MODELS[name][1]}.h5", "--samples", 40]).expect(
            0, "It agrees with")


CPLUSPLUS = """
#include "cnn.h"
#include <cstdio>
int main() {
    static float inputs[CNN_INPUTS], outputs[CNN_OUTPUTS];
    for (float& value : inputs) value = 1;
    if (cnn_run(1, inputs, outputs) != 0 || cnn_memory() == 0 || cnn_class(3) || *cnn_class(1) != 'b') return 1;
    for (float value : outputs) std::printf("%.9g\\n", value);
}
"""


def numbers(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return np.array(done.stdout.split(), np.float32)


def from_other_languages(scratch):
    session = onnxruntime.InferenceSession(str(scratch / "cnn.onnx"), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"inputs": np.ones((1, 1, 8, 8), np.float32)})[0][0]
    (scratch / "main.cpp").write_text(CPLUSPLUS)

    def compile_with(*words):
        subprocess.run(words, check=True, cwd=scratch)

    compile_with("cc", *STRICT, "-c", "cnn.c", "-o", "cnn.o")
    compile_with("c++", "-Wall", "-Werror", "main.cpp", "cnn.o", "-o", "main_cpp")
    close(numbers([scratch / "main_cpp"]), expected, "from C++")
    from_fortran = outputs_of_ones(scratch / "cnn.c", "real(c_float)")
    if from_fortran is not None:
        close(from_fortran, expected, "from Fortran")
    arm = "aarch64-linux-gnu-gcc"
    if LONG and shutil.which(arm) and shutil.which("qemu-aarch64"):
        (scratch / "main.c").write_text(CPLUSPLUS.replace("cstdio", "stdio.h").replace("std::", "").replace(
            "for (float& value : inputs) value = 1;", "for (int i = 0; i < CNN_INPUTS; ++i) inputs[i] = 1;").replace(
            "for (float value : outputs) printf(\"%.9g\\n\", value);",
            "for (int i = 0; i < CNN_OUTPUTS; ++i) printf(\"%.9g\\n\", outputs[i]);"))
        compile_with(arm, *STRICT, "-static", "main.c", "cnn.c", "-o", "main_arm", "-lm")
        close(numbers(["qemu-aarch64", scratch / "main_arm"]), expected, "on arm64")


def raw_bytes(scratch):
    """Images of bytes go in as they are stored: their mean and deviation are inside."""
    dice = np.random.default_rng(SEED)
    with h5py.File(scratch / "bytes.h5", "w") as file:
        file["inputs"] = dice.integers(0, 256, (48, 3, 8, 8)).astype("u1")
        file["targets"] = dice.integers(0, 3, 48)
        file.attrs["classes"] = ["a", 'b"?', "*/ü"]
        file.attrs["mean"], file.attrs["std"] = [0.3, 0.5, 0.6], [0.2, 0.25, 0.3]
    deck = deck_of(scratch, "mlp", 2)
    run(["train", deck, "--data.train", scratch / "bytes.h5", "--data.validation", scratch / "bytes.h5",
         "--run.directory", scratch / "bytes"], 1).expect(0)
    for name in some(("bytes.onnx", "bytes.c", "2 bytes-v2.ä.c")):  # the last: no C identifier
        run(["checkpoint", "export", scratch / "bytes", scratch / name]).expect(0)
        run(["export", "check", scratch / name, "--data", scratch / "bytes.h5"]).expect(0, "48 samples", "agrees")
        if name == "bytes.onnx":
            facts = {fact.key: fact.value for fact in onnx.load(scratch / "bytes.onnx").metadata_props}
            check(json.loads(facts["classes"]) == ["a", 'b"?', "*/ü"], facts)
        elif name == "bytes.c":
            subprocess.run(["cc", *STRICT, "-c", scratch / "bytes.c", "-o", scratch / "bytes.o"], check=True)


def wide_types(scratch):
    """Numbers that float32 does not hold go in as float64, and are normalized before they are rounded."""
    dice = np.random.default_rng(SEED)
    seconds = 1_700_000_000 + dice.integers(0, 3600, (48, 1, 8, 8))
    for name, type_, values, scaled in some((("seconds", "f8", seconds + 0.25, True), ("whole", "i4", seconds, True),
                                             ("plain", "f8", seconds / 1e9, False))):
        data = scratch / f"{name}.h5"
        with h5py.File(data, "w") as file:
            file["inputs"], file["targets"] = values.astype(type_), dice.integers(0, 3, 48)
            if scaled:
                file.attrs["mean"], file.attrs["std"] = [values.mean()], [values.std()]
        run(["train", deck_of(scratch, "mlp", 2), "--data.train", data, "--data.validation", data, "--run.directory",
             scratch / name], 1).expect(0)
        for file in (scratch / f"{name}.onnx", scratch / f"{name}.c"):
            run(["checkpoint", "export", scratch / name, file]).expect(0)
            run(["export", "check", file, "--data", data]).expect(0, "48 samples", "agrees")
        stored = np.ascontiguousarray(values, np.float64)
        session = onnxruntime.InferenceSession(scratch / f"{name}.onnx", providers=["CPUExecutionProvider"])
        from_c(scratch / f"{name}.c", name, stored, session.run(None, {"inputs": stored})[0])


def own_loss(scratch):
    """A program that was saved with its loss goes out without it."""
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3), torch.nn.Dropout(0.2))

    def loss(scores, labels):
        return {"loss": torch.nn.functional.cross_entropy(scores, labels, reduction="sum"), "samples": labels.shape[0]}

    lockstep_export.save(net, torch.rand(4, 1, 8, 8), scratch / "own.pt2", loss=loss, targets=torch.arange(4) % 3)
    deck = scratch / "own.ini"
    deck.write_text(small_models.DECK.format(data=f"train = {scratch}/images.h5", steps=2, task="kind = export",
                                             model=f"name = export\nfile = {scratch}/own.pt2").replace(
        "validate-every = 2", ""))
    run(["train", deck, "--run.directory", scratch / "own"], 1).expect(0)
    for name in ("own.onnx", "own.c"):
        run(["checkpoint", "export", scratch / "own", scratch / name]).expect(0)
    inputs, outputs = in_onnxruntime(scratch / "own.onnx")
    with h5py.File(checkpoints(scratch / "own")[-1]) as file, torch.no_grad():
        weight, bias = (torch.from_numpy(np.array(file[f"model/1/{name}"])) for name in ("weight", "bias"))
        eager = torch.nn.functional.linear(torch.from_numpy(inputs).flatten(1), weight.view(3, 64), bias)
    check(not torch.equal(bias, net[1].bias), "it has been trained")
    close(outputs, eager.numpy(), "ONNX as eager PyTorch")
    from_c(scratch / "own.c", "own", inputs, eager.numpy())


class Recurrent(torch.nn.Module):
    """LSTMs, the second of two layers and both directions, with projections."""

    def __init__(self):
        super().__init__()
        self.rows, self.scores = torch.nn.LSTM(8, 6, batch_first=True), torch.nn.Linear(8, 3)
        self.projected = torch.nn.LSTM(6, 5, num_layers=2, bidirectional=True, proj_size=4, batch_first=True)

    def forward(self, images):
        found, (last, _) = self.projected(self.rows(images.reshape(-1, 8, 8))[0])
        return self.scores(found[:, -1] + torch.cat([last[0], last[1]], 1))


class Gated(torch.nn.Module):
    """Recurrent layers of two layers, both directions, without biases and with steps first, without gates, and single
    cells."""

    def __init__(self):
        super().__init__()
        self.both = torch.nn.GRU(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.plain = torch.nn.GRU(12, 5, bias=False)
        self.ungated = torch.nn.RNN(5, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.positive = torch.nn.RNN(8, 5, nonlinearity="relu", bias=False)
        self.step = torch.nn.RNNCell(5, 5, nonlinearity="relu")
        self.gated, self.kept = torch.nn.GRUCell(5, 4), torch.nn.LSTMCell(5, 4)
        self.scores = torch.nn.Linear(4, 3)

    def forward(self, images):
        found, last = self.both(images.reshape(-1, 8, 8))
        found = self.plain((found + torch.cat([last[2], last[3]], 1).unsqueeze(1)).transpose(0, 1))[0]
        found = self.positive(self.ungated(found.transpose(0, 1))[0].transpose(0, 1))[0][-1]
        found = self.step(found)
        shown = self.gated(found)
        return self.scores(self.kept(found, (shown, shown))[0])


def fixed_state(scratch, name, net):
    """A trace of a program holds the first state of a recurrent layer for one batch size, and LibTorch reads past it
    with another."""
    lockstep_export.save(net, torch.rand(4, 1, 8, 8), scratch / f"{name}.pt2")
    deck = scratch / f"{name}.ini"
    deck.write_text(small_models.DECK.format(data=f"train = {scratch}/images.h5", steps=1, task="kind = classification",
                                             model=f"name = export\nfile = {scratch}/{name}.pt2").replace(
        "validate-every = 2", ""))
    run(["train", deck, "--run.directory", scratch / name], 1).expect(0)
    for words in some((["export", scratch / name, scratch / f"{name}.pt"],
                       ["quantise", scratch / name, scratch / f"{name}8.h5", "--data.train", scratch / "images.h5"])):
        run(["checkpoint", *words]).expect(
            64, f"initial state of the recurrent layer aten::{name} would keep the batch size")
    files = scratch / f"{name}.onnx", scratch / f"{name}.c"
    for file in files:
        run(["checkpoint", "export", scratch / name, file]).expect(0)
    for file in some(files):
        run(["export", "check", file, "--data", scratch / "images.h5"]).expect(0, "It agrees with")
    from_c(scratch / f"{name}.c", name, *in_onnxruntime(scratch / f"{name}.onnx"))


class Upwards(torch.nn.Module):
    """Transposed convolutions over lines, images and volumes, as LibTorch's two kinds of operators."""

    def __init__(self):
        super().__init__()
        self.doubled = torch.nn.ConvTranspose2d(1, 4, 3, stride=2, padding=1, output_padding=1)
        wide = torch.nn.ConvTranspose2d(4, 6, 3, stride=(1, 2), padding=(1, 0), output_padding=1, dilation=(2, 1),
                                        groups=2, bias=False)
        self.wide = torch.jit.trace(wide, torch.rand(2, 4, 16, 16))  # aten::_convolution
        self.line = torch.nn.ConvTranspose1d(6, 2, 4, stride=3)
        self.volume = torch.nn.ConvTranspose3d(2, 3, (2, 3, 1), stride=(2, 1, 2), output_padding=(1, 0, 1))
        self.norm = torch.nn.BatchNorm3d(3)
        self.last = torch.nn.Linear(930, 3)

    def forward(self, images):
        found = self.wide(torch.relu(self.doubled(images)))  # [n, 6, 19, 34]
        found = self.line(found.mean(3)).reshape(-1, 2, 2, 29, 1)
        return self.last(self.norm(self.volume(found)).flatten(1))


class Statistics(torch.nn.Module):
    """Norms of each channel, with weights and with the statistics of training; deviations; scaled products."""

    def __init__(self):
        super().__init__()
        norm = torch.nn.InstanceNorm2d
        self.first, self.last = torch.nn.Conv2d(1, 4, 3), torch.nn.Linear(65, 3)
        self.rows = torch.nn.InstanceNorm1d(1, affine=True)
        self.norms = torch.nn.Sequential(norm(4), norm(4, affine=True), norm(4, affine=True, track_running_stats=True))

    def forward(self, images):
        found = self.norms(self.first(images)).flatten(2)
        weights = torch.baddbmm(found[:, :, :4], found, found.transpose(1, 2), beta=0.5, alpha=0.25)
        spread = found.var((1, 2), unbiased=False, keepdim=True).flatten(1)
        rows = self.rows(images.reshape(-1, 1, 8)).reshape(-1, 8, 8).mean(2)  # each row by itself
        few = 1 / (1 + found.detach().var(1, correction=5))  # of four values: infinite, as in PyTorch
        return self.last(torch.cat([weights.flatten(1), found.std(2), spread, rows, few], 1))


def statistics(scratch):
    newest = trained_script(scratch, "statistics", Statistics(), "inputs", scratch / "images.h5")
    files = scratch / "statistics.onnx", scratch / "statistics.c"
    for file in files:
        run(["checkpoint", "export", newest, file]).expect(0)
        run(["export", "check", file, "--data", scratch / "images.h5"]).expect(0, "It agrees with")
    from_c(scratch / "statistics.c", "statistics", *in_onnxruntime(scratch / "statistics.onnx"))
    for name, net, why in some((
            ("whole", torch.nn.Sequential(torch.nn.Flatten(), Whole()), "it reduces over all samples of a batch"),
            ("lines", torch.nn.Sequential(torch.nn.Flatten(), torch.nn.InstanceNorm1d(64), torch.nn.Linear(64, 3)),
             "along the batch dimension"))):
        newest = trained_script(scratch, name, net, "inputs", scratch / "images.h5")
        run(["checkpoint", "export", newest, scratch / f"{name}.onnx"]).expect(64, why)


class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(64, 3)

    def forward(self, images):
        return self.last(images / images.std())


def trained_script(scratch, name, net, inputs, data):
    """The newest checkpoint of a script that was trained for two steps."""
    torch.jit.script(net).save(str(scratch / f"{name}.pt"))
    deck = scratch / f"{name}.ini"
    deck.write_text(small_models.DECK.format(data=f"train = {data}\ninputs = {inputs}", steps=2,
                                             task="kind = classification",
                                             model=f"name = script\nfile = {scratch}/{name}.pt").replace(
        "validate-every = 2", ""))
    shutil.rmtree(scratch / name, ignore_errors=True)
    run(["train", deck, "--run.directory", scratch / name], 1).expect(0)
    return checkpoints(scratch / name)[-1]


def transposed_convolutions(scratch):
    newest = trained_script(scratch, "upwards", Upwards(), "inputs", scratch / "images.h5")
    files = scratch / "upwards.onnx", scratch / "upwards.c"
    for file in files:
        run(["checkpoint", "export", newest, file]).expect(0)
    for file in some(files):
        run(["export", "check", file, "--data", scratch / "images.h5"]).expect(0, "It agrees with")
    kinds = [node.op_type for node in onnx.load(scratch / "upwards.onnx").graph.node]
    check(kinds.count("ConvTranspose") == 4, kinds)
    from_c(scratch / "upwards.c", "upwards", *in_onnxruntime(scratch / "upwards.onnx"))
    odd = torch.nn.Sequential(torch.nn.ConvTranspose2d(1, 1, 2, output_padding=1, dilation=2), torch.nn.Flatten(),
                              torch.nn.Linear(121, 3))
    newest = trained_script(scratch, "behind", odd, "inputs", scratch / "images.h5")
    run(["checkpoint", "export", newest, scratch / "behind.onnx"]).expect(64, "output_padding")


class Places(torch.nn.Module):
    """Reads images of bytes, tokens and reals, and nothing of the last input."""

    def __init__(self):
        super().__init__()
        self.images = torch.nn.Conv2d(2, 4, 3)
        self.words = torch.nn.Embedding(20, 5)
        self.last = torch.nn.Linear(4 * 36 + 5 + 3, 3)

    def forward(self, images, words, reals, unread):
        found = torch.relu(self.images(images)).flatten(1)
        return self.last(torch.cat([found, self.words(words).mean(1), reals], 1))


def several_inputs(scratch):
    """Inputs keep the names of their datasets, and go in as they are stored: the first is scaled by mean and std."""
    dice = np.random.default_rng(SEED)
    sets = {"scene/images": dice.integers(0, 256, (70, 2, 8, 8)).astype("u1"), "words": dice.integers(0, 20, (70, 6)),
            "outputs": dice.normal(size=(70, 3)).astype("f4"), "Words": dice.normal(size=(70, 2)).astype("f4")}
    with h5py.File(scratch / "several.h5", "w") as file:
        for name, values in sets.items():
            file[name] = values
        file["targets"] = dice.integers(0, 3, 70)
        file.attrs["classes"] = ["a", "b", "c"]
        file.attrs["mean"], file.attrs["std"] = [0.3, 0.5], [0.2, 0.25]
    newest = trained_script(scratch, "several", Places(), ", ".join(sets), scratch / "several.h5")
    model, source = scratch / "several.onnx", scratch / "several.c"
    for file in (model, source):
        run(["checkpoint", "export", newest, file]).expect(0, "multiply-adds")
    for file in some((model, source)):
        before = file.read_bytes()
        run(["checkpoint", "export", newest, file, "--overwrite"]).expect(0)
        check(file.read_bytes() == before, f"twice the same bytes: {file}")
        run(["export", "check", file, "--data", scratch / "several.h5"]).expect(0, "70 samples", "It agrees with")
    run(["checkpoint", "export", newest, scratch / "no.onnx", "--rows", 4]).expect(64, "--rows 4")
    onnx.checker.check_model(str(model), full_check=True)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [form.name for form in session.get_inputs()]
    check(names == ["scene/images", "words", "outputs_2", "Words"], names)
    check([form.shape[0] for form in session.get_inputs()] == ["batch"] * 4, "inputs of any number of samples")
    given = dict(zip(names, (values[:64] for values in sets.values())))
    [outputs] = session.run(["outputs"], given)
    for batch in (1, 7):
        [part] = session.run(None, {name: values[:batch] for name, values in given.items()})
        close(part, outputs[:batch], f"batch {batch} of several inputs")
    library = source.with_suffix(".so")
    subprocess.run(["cc", *STRICT, "-Wextra", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    found = np.empty(outputs.shape, np.float32)
    code = ctypes.CDLL(str(library)).several_run(
        ctypes.c_size_t(64), *(np.ascontiguousarray(values).ctypes.data_as(ctypes.c_void_p) for values in given.values()),
        found.ctypes.data_as(ctypes.c_void_p))
    check(code == 0, f"several_run returns {code}")
    close(found, outputs, "several inputs from C")
    header = source.with_suffix(".h").read_text()
    check(header.count("SEVERAL_INPUTS_") == 4 and "SEVERAL_INPUTS_SCENE_IMAGES 128" in header
          and "const float *in_words_2" in header, header)
    if shutil.which("gfortran"):
        subprocess.run(["gfortran", "-Wall", "-Werror", "-std=f2008", "-c", "several.f90"], check=True, cwd=scratch)


class Odd(torch.nn.Module):
    """Sorts, which exported models cannot."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 3)

    def forward(self, images):
        return self.layer(images.flatten(1).sort(1)[0])


class Mixing(torch.nn.Module):
    """Compares a sample with the others of its batch."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 3)

    def forward(self, images):
        found = self.layer(images.flatten(1))
        return found - found.mean([0], True)


class Packed(torch.nn.Module):
    """Packs its sequences."""

    def __init__(self):
        super().__init__()
        self.rows, self.scores = torch.nn.LSTM(8, 6, batch_first=True), torch.nn.Linear(6, 3)

    def forward(self, images):
        lengths = torch.full([images.shape[0]], 8, dtype=torch.int64)
        rows = torch.nn.utils.rnn.pack_padded_sequence(images.reshape(-1, 8, 8), lengths, batch_first=True)
        return self.scores(self.rows(rows)[1][0][-1])


class RandomStart(torch.nn.Module):
    """Starts from a random state."""

    def __init__(self):
        super().__init__()
        self.rows, self.scores = torch.nn.GRU(8, 6, batch_first=True), torch.nn.Linear(6, 3)

    def forward(self, images):
        first = torch.randn(1, images.shape[0], 6)
        return self.scores(self.rows(images.reshape(-1, 8, 8), first)[0][:, -1])


class Listed(torch.nn.Module):
    """Makes numbers of its inputs."""

    def __init__(self):
        super().__init__()
        self.scores = torch.nn.Linear(64, 3)

    def forward(self, images):
        numbers: List[List[float]] = images.reshape(-1, 64).tolist()
        return self.scores(torch.tensor(numbers))


def mistakes(scratch):
    for net, told in some(((Odd(), "operator aten::sort"), (Mixing(), "along the batch"),
                           (Listed(), "Tensor.tolist takes values out of a tensor"),
                           (Packed(), "operator aten::_pack_padded_sequence packs sequences"),
                           (RandomStart(), "operator aten::randn draws one of its arguments at random"))):
        trained_script(scratch, "odd", net, "inputs", scratch / "images.h5")
        for extension in some(("onnx", "c")):
            told_all = run(["checkpoint", "export", scratch / "odd", scratch / f"odd.{extension}"]).expect(
                64, told, "safetensors").text
            check("cannot take a batch" not in told_all, f"one message, not one inside another: {told_all}")
            check(not (scratch / f"odd.{extension}").exists(), "nothing is left")
    newest = checkpoints(scratch / "cnn")[-1]
    model, source = scratch / "cnn.onnx", scratch / "cnn.c"
    data = ["--data", scratch / "images.h5"]
    nowhere = {"PATH": "/nowhere"}
    for words, code, phrase, *env in (
            *some(((["checkpoint", "export", newest, scratch / "x.onnx", "--rows", 8], 64, "--rows 8"),
                   (["checkpoint", "export", newest, scratch / "x.txt", "--format", "c"], 64, ".c"),
                   (["checkpoint", "export", newest, scratch / 'x".c'], 64, "such a name"),
                   (["export", "check", model], 64, "--data"),
                   (["export", "check", model, "--data", scratch / "wide.h5"], 64,
                    "but the model's training data has"),
                   (["export", "nothing"], 64, "the only command is check"))),
            *some(((["checkpoint", "export", newest, "/proc/none/x.onnx"], 73, ""),
                   (["export", "check", scratch / "none.onnx", *data], 66, ""),
                   (["export", "check", newest, *data], 65, "was not exported by lockstep"))),
            *some(((["export", "check", model, *data], 69, "onnxruntime", nowhere),
                   (["export", "check", source, *data], 69, "C compiler", nowhere)))):
        run(words, env=env[0] if env else None).expect(code, phrase)
    other = checkpoints(scratch / "cnn")[0]
    run(["export", "check", model, *data, "--checkpoint", other]).expect(1, "It does not agree")
    whole = model.read_bytes()
    for at in random.Random(SEED).sample(range(len(whole)), 40 if LONG else 1):
        damaged = scratch / "damaged.onnx"
        damaged.write_bytes(whole[:at])
        code = run(["export", "check", damaged, *data]).code
        check(code in (1, 64, 65, 66), f"cut at {at}: {code}")

    def damaged_c():
        (scratch / "damaged.h").write_text(source.with_suffix(".h").read_text().replace("cnn", "damaged"))
        (scratch / "damaged.c").write_text(source.read_text()[:-9])
        run(["export", "check", scratch / "damaged.c", *data]).expect(65, "cannot be compiled")

    def damaged_checkpoint():
        with open(newest, "r+b") as file:
            file.seek(9000)
            file.write(b"\x77" * 64)
        run(["checkpoint", "export", newest, scratch / "broken.onnx"]).expect(65)

    for case in some((damaged_c, damaged_checkpoint)):
        case()


with Scratch() as scratch:
    write_data(scratch)
    for name in ["cnn", *some(sorted(set(MODELS) - {"cnn"}))]:
        exported(scratch, name)
    from_other_languages(scratch)
    raw_bytes(scratch)
    wide_types(scratch)
    for part in some((lambda: own_loss(scratch), lambda: fixed_state(scratch, "lstm", Recurrent()),
                      lambda: fixed_state(scratch, "gru", Gated()), lambda: transposed_convolutions(scratch),
                      lambda: statistics(scratch), lambda: several_inputs(scratch)), 2):
        part()
    mistakes(scratch)
