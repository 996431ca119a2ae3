"""A model goes out to safetensors, TorchScript and plain HDF5, which others read, and comes back as the
first weights of a run, on any number of ranks. The short form draws types, files and mistakes."""
import h5py
import numpy as np
from safetensors.numpy import load_file, save_file

from harness import DATA, DECK, LONG, Scratch, check, checkpoints, run, some, train

try:
    import torch
    from safetensors.torch import load_file as load_torch
except ImportError: # another Python than the one that LibTorch came with
    torch = None


def sixteen_bits(scratch, newest, tensors):
    """Weights that are rounded to nearest even, as torch rounds them, and evaluated from the file."""
    def loss(file):
        text = run(["evaluate", DECK, file, "--data.train", DATA / "train.h5",
                    "--data.validation", DATA / "test.h5"]).expect(0).text
        return float(text.split("loss ")[1].split(",")[0])

    exact = loss(newest)
    for type_ in some(("f16", "bf16")):
        out = scratch / f"{type_}.safetensors"
        run(["checkpoint", "export", newest, out, "--type", type_]).expect(0, "the model of")
        rounded = loss(out)
        check(abs(rounded - exact) < 0.02, f"{type_}: a loss of {rounded} instead of {exact}")
        if type_ == "f16":
            for name, value in load_file(out).items():
                want = tensors[name].astype(np.float16) if tensors[name].dtype == np.float32 else tensors[name]
                check(value.dtype == want.dtype and np.array_equal(value, want), f"f16: {name}")
        if torch:
            type_there = {"f16": torch.float16, "bf16": torch.bfloat16}[type_]
            found = load_torch(out)
            check(set(found) == set(tensors), f"{type_}: all names")
            for name, value in tensors.items():
                want = torch.from_numpy(value)
                want = want.to(type_there) if want.is_floating_point() else want
                check(found[name].dtype == want.dtype and torch.equal(found[name], want), f"{type_}: {name}")
    large = {**tensors, "classifier.output.bias": np.full(10, 65520, np.float32)} # the first that becomes infinite
    save_file(large, scratch / "large.safetensors")
    run(["checkpoint", "export", scratch / "large.safetensors", scratch / "no.safetensors", "--type", "f16"]).expect(
        64, "classifier.output.bias", "--type bf16")
    check(not list(scratch.glob("no.safetensors*")), "nothing is left of a refused file")
    if LONG:
        run(["checkpoint", "export", scratch / "large.safetensors", scratch / "large16.safetensors", "--type",
             "bf16"]).expect(0)
    for extension in some(("h5", "pt", "onnx", "c")):
        run(["checkpoint", "export", newest, scratch / f"no.{extension}", "--type", "bf16"]).expect(
            64, "only safetensors files")

with Scratch() as scratch:
    train(scratch / "run", ranks=2 if LONG else 1).expect(0)
    newest = checkpoints(scratch / "run")[-1]
    out = scratch / "model.safetensors"
    run(["checkpoint", "export", scratch / "run", out]).expect(0, "the model of")
    tensors = load_file(out)
    with h5py.File(newest) as saved:
        names = []
        saved["model"].visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        check(sorted(tensors) == sorted(name.replace("/", ".") for name in names), "all names")
        for name in names:
            check(np.array_equal(tensors[name.replace("/", ".")], saved["model"][name][()]), name)
    run(["checkpoint", "export", newest, scratch / "plain.h5"]).expect(0)
    with h5py.File(scratch / "plain.h5") as plain:
        check(not plain["model/features/conv1/weight"].is_virtual, "plain datasets")
    figures = run(["evaluate", DECK, newest, "--data.validation", DATA / "test.h5"],
                  2 if LONG else 1).expect(0).text

    sixteen_bits(scratch, newest, tensors)

    script = scratch / "model.pt"
    run(["checkpoint", "export", newest, script, "--data.train", DATA / "train.h5"]).expect(0)
    if torch:
        module = torch.jit.load(str(script))
        with h5py.File(DATA / "test.h5") as data, torch.no_grad():
            inputs = torch.from_numpy(data["inputs"][:].astype(np.float32) / 255)
            inputs = (inputs - data.attrs["mean"][0]) / data.attrs["std"][0]
            right = (module(inputs).argmax(1).numpy() == data["targets"][:]).mean()
        check(f"accuracy {right:.6f}" in figures, f"the script is right as often: {right} {figures}")
        check(set(module.state_dict()) == set(tensors), "the script keeps the names")

    def start(name, weights, ranks=2 if LONG else 1, *more):
        return train(scratch / name, "--model.weights", weights, "--train.steps", 2, "--run.replicas",
                     2, *more, ranks=ranks)

    start("one", out, 1).expect(0, "the initial weights come from")
    start("two", out, 2).expect(0)
    files = some((("best", newest), ("plain", scratch / "plain.h5")))
    for name, file in files:
        start(name, file).expect(0)
    sums = {run(["checkpoint", "diff", checkpoints(scratch / "one")[-1],
                 checkpoints(scratch / name)[-1]]).code for name in ("two", *dict(files))}
    check(sums == {0}, "the same weights from any file, on any number of ranks")
    with h5py.File(checkpoints(scratch / "one")[0]) as begun:
        check(begun["record"].attrs["step"] == 0, "a checkpoint of the first weights")
        weight = begun["model/features/conv1/weight"][()]
        check(np.array_equal(weight, tensors["features.conv1.weight"]), "they are those of the file")

    if torch: # a script comes back as a script, and its weights too
        deck = scratch / "script.ini"
        deck.write_text(f"[run]\nname = script\n[data]\ntrain = {DATA / 'train.h5'}\nbatch = 16\n"
                        f"[model]\nname = script\nfile = {script}\n[train]\nsteps = 2\n")
        run(["train", deck, "--run.directory", scratch / "script"], 2 if LONG else 1).expect(0)
        run(["checkpoint", "export", scratch / "script", scratch / "again.pt"]).expect(0)
        check(set(torch.jit.load(str(scratch / "again.pt")).state_dict()) == set(tensors), "again")

    spoilt = {**tensors, "classifier.output.bias": np.full(10, np.nan, np.float32)}
    save_file(spoilt, scratch / "spoilt.safetensors")
    told = "spoilt.safetensors cannot be used: model/classifier/output/bias holds NaN"
    for given in some((lambda: start("spoilt", scratch / "spoilt.safetensors"),
                       lambda: run(["evaluate", DECK, scratch / "spoilt.safetensors", "--data.train",
                                    DATA / "train.h5", "--data.validation", DATA / "test.h5"], 2))):
        given().expect(65, told)

    halves = {name: value.astype(np.float16) if value.dtype == np.float32 else value
              for name, value in tensors.items()}
    save_file({**halves, "head.extra": np.zeros(3, np.float32)}, scratch / "half.safetensors")
    start("half", scratch / "half.safetensors").expect(0, "the model does not have them: head.extra")
    del halves["classifier.output.weight"]
    save_file(halves, scratch / "less.safetensors")
    halves["classifier.output.weight"] = np.zeros((16, 10), np.float32) # turned over
    save_file(halves, scratch / "turned.safetensors")
    for name, file, phrases in some((
            ("less", scratch / "less.safetensors",
             ["does not fit the deck's model", "needs [10, 16] for model/classifier/output/weight"]),
            ("turned", scratch / "turned.safetensors", ["but the file has [16, 10]"]), ("deck", DECK, []))):
        start(name, file).expect(65, *phrases)
    for given, code, *phrases in some((
            (lambda: start("none", scratch / "none.safetensors"), 66),
            (lambda: run(["checkpoint", "export", newest, scratch / "x.bin"]), 64, "--format"),
            (lambda: run(["checkpoint", "export", newest, "/proc/none/x.safetensors"]), 73)), 2):
        given().expect(code, *phrases)
