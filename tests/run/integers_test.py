"""Models in int8 go out to ONNX and to C99: twice the same bytes, a file that onnx.checker accepts, and in
onnxruntime and from C what lockstep evaluate computes, within one step of int8. The C file holds its weights as
bytes, and runs on arm64 where qemu is there. The short form draws one more model, and what is done with it."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np

from harness import DATA, LONG, SEED, Scratch, check, check_same, checkpoints, records, run, some, train
from harness_compress import SHORT
from harness_fortran import outputs_of_ones

try:
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from small_models import MODELS, deck_of, write_data

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
MATHS = {"rintf", "expf", "erff", "tanhf", "sqrtf", "floorf"}
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # python3 has onnxruntime
ARM = "aarch64-linux-gnu-gcc"
MAIN = """
#include "NAME.h"
#include <stdio.h>
static TYPE inputs[NAMES_INPUTS];
static float outputs[NAMES_OUTPUTS];
int main(void) {
    while (fread(inputs, sizeof inputs, 1, stdin) == 1) {
        if (NAME_run(1, inputs, outputs) != 0) return 1;
        fwrite(outputs, sizeof outputs, 1, stdout);
    }
    return 0;
}
"""


def exported(scratch, name, integers, data):
    """Both files of a model; their outputs for 64 random samples, in onnxruntime and from C."""
    files = [scratch / f"{name}.onnx", scratch / f"{name}.c"]
    for file in files:
        run(["checkpoint", "export", integers, file]).expect(0, "multiply-adds")
    for file in some(files):
        before = file.read_bytes()
        run(["checkpoint", "export", integers, file, "--overwrite"]).expect(0)
        check(file.read_bytes() == before, f"twice the same bytes: {file}")
    for file in some(files):
        run(["export", "check", file, "--data", data, "--samples", 60]).expect(0, "within one step of int8")
    onnx.checker.check_model(str(files[0]), full_check=True)
    kinds = {node.op_type for node in onnx.load(files[0]).graph.node}
    check({"QuantizeLinear", "DequantizeLinear"} <= kinds, kinds)
    session = onnxruntime.InferenceSession(str(files[0]), providers=["CPUExecutionProvider"])
    form = session.get_inputs()[0]
    dice = np.random.default_rng(SEED)
    shape = (64, *form.shape[1:])
    below, kind = {"tensor(uint8)": (256, "u1"), "tensor(int64)": (20, "i8")}.get(form.type, (0, "f4"))
    inputs = dice.integers(0, below, shape).astype(kind) if below else dice.normal(size=shape).astype(kind)
    for batch in (1, 7, 64):
        session.run(None, {form.name: inputs[:batch]})
    return files[1], inputs, session.run(None, {form.name: inputs})[0]


def from_c(source, inputs, expected):
    name, folder = source.stem, source.parent
    step = (expected.max() - expected.min()) / 255
    library = source.with_suffix(".so")
    subprocess.run(["cc", *STRICT, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    found = np.empty(expected.shape, np.float32)
    code = getattr(ctypes.CDLL(str(library)), f"{name}_run")(
        ctypes.c_size_t(len(inputs)), inputs.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p))
    far = np.abs(found - expected)
    check(code == 0 and far.max() <= step and np.median(far) <= 1e-5, f"{name}: {far.max()} of {step}, {np.median(far)}")
    needed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    for line in needed.stdout.splitlines():
        symbol = line.split()[-1].split("@")[0]
        check(symbol.startswith(("_", "mem")) or symbol in MATHS, f"{source} needs {symbol}")
    if shutil.which(ARM) and shutil.which("qemu-aarch64"):
        main = MAIN.replace("NAMES", name.upper()).replace("NAME", name).replace(
            "TYPE", {"f": "float", "u": "uint8_t", "i": "int64_t"}[inputs.dtype.kind])
        (folder / "main.c").write_text(main)
        subprocess.run([ARM, *STRICT, "-static", "main.c", source.name, "-o", "main_arm", "-lm"], check=True, cwd=folder)
        done = subprocess.run(["qemu-aarch64", folder / "main_arm"], input=inputs.tobytes(), capture_output=True, check=True)
        there = np.frombuffer(done.stdout, np.float32).reshape(found.shape)
        check(np.abs(there - found).max() <= 1e-5, f"{name} on arm64: {np.abs(there - found).max()}")


def small_cnn(scratch):
    """Of images of bytes, with pooling, norms and fully connected layers."""
    train(scratch / "cnn_run", *SHORT, "--train.steps", 16, ranks=2 if LONG else 1).expect(0)
    integers = scratch / "cnn8.h5"
    run(["checkpoint", "quantise", scratch / "cnn_run/best.h5", integers, "--data.train", DATA / "train.h5",
         "--samples", 200]).expect(0)
    source, inputs, expected = exported(scratch, "cnn8", integers, DATA / "test.h5")
    from_c(source, inputs, expected)
    with h5py.File(integers) as file:
        weights = file["quantised/values"].size
    subprocess.run(["cc", *STRICT, "-c", source, "-o", source.with_suffix(".o")], check=True)
    ones = np.ones((1, 28, 28), np.uint8)
    session = onnxruntime.InferenceSession(str(source.with_suffix(".onnx")), providers=["CPUExecutionProvider"])
    [there] = session.run(None, {session.get_inputs()[0].name: ones})
    from_fortran = outputs_of_ones(source, "integer(c_int8_t)")
    if from_fortran is not None:
        check(np.abs(from_fortran - there[0]).max() <= (expected.max() - expected.min()) / 255, "from Fortran")
    sizes = subprocess.run(["size", source.with_suffix(".o")], capture_output=True, text=True, check=True).stdout
    text, filled = (int(word) for word in sizes.splitlines()[1].split()[:2])
    check(text + filled < 1.1 * weights + 12000, f"{text} + {filled} bytes for {weights} weights of a byte each")
    for extension in some(("safetensors", "pt")):
        run(["checkpoint", "export", integers, scratch / f"no.{extension}"]).expect(64, "quantised")
    if LONG:
        other = scratch / "other.h5"
        run(["checkpoint", "quantise", checkpoints(scratch / "cnn_run")[0], other, "--data.train", DATA / "train.h5",
             "--samples", 200]).expect(0)
        run(["export", "check", source, "--data", DATA / "test.h5", "--checkpoint", other]).expect(1, "does not agree")


def trained(scratch, names):
    write_data(scratch)
    for name in names:
        run(["train", deck_of(scratch, name, 2), "--run.directory", scratch / name], 1).expect(0)


def others(scratch, names):
    for name in names:
        small = scratch / f"{name}8.h5"
        embeds = name in ("transformer", "vit")
        data = scratch / f"{MODELS[name][1]}.h5"
        told = run(["checkpoint", "quantise", scratch / name, small, "--data.train", data,
                    "--samples", 40]).expect(0).text
        check(("; in float32: " in told) == embeds, f"{name}: what is left in float32 is told: {told}")
        identifier = f"{name}8".replace("-", "_")
        source, inputs, expected = exported(scratch, identifier, small, data)
        from_c(source, inputs, expected)


def learnt(scratch, names):
    """Whose scales are learnt gives in int8 what training measured, and the same bits on 1 and 2 ranks."""
    for name in names:
        def aware(ranks):
            run_ = scratch / f"{name}_aware{ranks}"
            run(["train", scratch / f"{name}.ini", "--run.directory", run_, "--quantise.aware", "true",
                 "--model.weights", checkpoints(scratch / name)[-1]], ranks).expect(0)
            return run_
        one, two = aware(1), aware(2)
        check_same(one, two, f"{name} with learnt scales on 1 and 2 ranks")
        small = scratch / f"{name}_learnt8.h5"
        data = scratch / f"{MODELS[name][1]}.h5"
        run(["checkpoint", "quantise", checkpoints(one)[-1], small, "--data.train", data]).expect(
            0, "with learnt scales")
        told = run(["evaluate", scratch / f"{name}.ini", small, "--data.test", data]).text
        loss = float(told.split("loss ")[1].split(",")[0])
        measured = records(one, "validation")[-1]["loss"]
        check(abs(loss - measured) < 0.02 * measured, f"{name}: {loss} in int8, {measured} in training")


with Scratch() as scratch:
    small_cnn(scratch)
    chosen = some(("mlp", "cnn1d", "cnn3d", "transformer", "unet", "unet3d", "vit"))
    trained(scratch, chosen)
    for part in some((others, learnt)):
        part(scratch, chosen)
