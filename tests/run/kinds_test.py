"""A file of another kind is called what it is, with what makes something of it, wherever it is given;
none is called damaged."""
import gzip
import pickle
import zipfile

import h5py
import numpy as np
from safetensors.numpy import load_file, save_file

from harness import DATA, DECK, Scratch, check, checkpoints, run, some, train

try:
    import torch
except ImportError:  # another Python than the one that LibTorch came with
    torch = None

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def with_torch(scratch):
    """What users of PyTorch have: by file, what it is called and a part of what helps."""
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    torch.save(module.state_dict(), scratch / "state.pt")
    torch.save(module.state_dict(), scratch / "old.pth", _use_new_zipfile_serialization=False)
    torch.jit.script(module).save(str(scratch / "script.pt"))
    torch.export.save(torch.export.export(module, (torch.zeros(2, 1, 28, 28),)), str(scratch / "model.pt2"))
    return {"state.pt": ("a torch.save pickle", "torch.load("),
            "old.pth": ("a pickle", "torch.load("),
            "script.pt": ("a TorchScript module", "torch.jit.load("),
            "model.pt2": ("a torch.export archive (PT2)", "torch.export.load(")}


with Scratch() as scratch:
    (scratch / "image.h5").write_bytes(PNG)
    (scratch / "table.h5").write_text("a,b\n1,2\n")
    with gzip.open(scratch / "packed.h5", "wb") as file:
        file.write(b"x" * 100)
    with zipfile.ZipFile(scratch / "archive.h5", "w") as file:
        file.writestr("a.txt", "a")
    (scratch / "pickle.pkl").write_bytes(pickle.dumps({"a": np.zeros(3)}))
    (scratch / "model.onnx").write_bytes(b"\x08\x08\x12\x07pytorch\x1a\x052.0.0" + bytes(100))
    (scratch / "empty.h5").write_bytes(b"")
    (scratch / "notes.txt").write_text("Some text.\n")
    with h5py.File(scratch / "other.h5", "w") as file:
        file["values"] = np.zeros(3)
    foreign = {"image.h5": ("a PNG image", ""), "table.h5": ("a text table", ""),
               "packed.h5": ("compressed with gzip", ""), "archive.h5": ("a ZIP archive", ""),
               "pickle.pkl": ("a pickle", "torch.load("), "model.onnx": ("an ONNX model", "onnx.load("),
               "empty.h5": ("empty", ""), "notes.txt": ("a text file", ""), "other.h5": ("an HDF5 file that another program wrote", ""),
               **(with_torch(scratch) if torch else {})}
    helps = {"image.h5": "data import images", "table.h5": "data import series", "packed.h5": "gunzip",
             "archive.h5": "unzip"}
    data = ("--data.validation", DATA / "test.h5")
    rows = [] # command, exit code or None for any, and what it says
    for name, (kind, weights) in foreign.items():
        file = scratch / name
        rows += [(words, 65, (kind, weights)) for words in (
            ["checkpoint", "info", file], ["checkpoint", "verify", file],
            ["checkpoint", "export", file, scratch / "out.h5"], ["evaluate", DECK, file, *data],
            ["checkpoint", "diff", file, file], ["checkpoint", "quantise", file, scratch / "out.h5"])]
        told = "an HDF5 file" if name == "other.h5" else kind
        rows += [(["report", file, "--output", scratch / "report"], 65, ("holds no records of a run", told)),
                 (["export", "check", file, "--data", DATA / "test.h5"], 65,
                  ("was not exported by lockstep", told))]
        if name != "other.h5":
            rows += [(["data", "verify", file], 65, (kind,)),
                     (["train", DECK, "--data.train", file, "--data.validation", "", "--run.directory",
                       scratch / "run"], 65, (kind, helps.get(name, ""))),
                     (["data", "info", file], None, (kind,))]
    for words, code, phrases in some(rows, 40):
        told = run(words)
        text = told.expect(code, *phrases).text if code else told.text
        check(all(phrase in text for phrase in phrases), text)
        check("damaged" not in text and "miniz" not in text, text)
    for name in ("state.pt", "image.h5"):
        if (scratch / name).exists():
            train(scratch / "first", "--model.weights", scratch / name, ranks=1).expect(65, foreign[name][0])

    # Cut off, none is called a damaged checkpoint, nor what it holds.
    def cut_off(file, kind, end):
        cut = scratch / f"cut-{file.name}"
        cut.write_bytes(file.read_bytes()[:end])
        for words in some([["checkpoint", "info", cut], ["checkpoint", "verify", cut],
                           ["checkpoint", "diff", cut, cut], ["checkpoint", "export", cut, scratch / "out.h5"],
                           ["evaluate", DECK, cut, *data]], 2):
            text = run(words).expect(65, f"it is {kind}").text
            check("is damaged" not in text and "pickle" not in text, text)
        return cut

    for file in (scratch / "other.h5", DATA / "test.h5"):
        cut_off(file, "an HDF5 file that is cut off", -8)
    if torch:
        archive = "a ZIP archive that is cut off or damaged"
        # An archive that holds others may end as one of them does.
        whole = (scratch / "model.pt2").read_bytes()
        inner = whole.rfind(b"PK\5\6", 0, len(whole) - 22)
        program = cut_off(scratch / "model.pt2", archive, inner + 22 if inner > 0 else -30)
        script = cut_off(scratch / "script.pt", archive, -30)
        for file in (program, script):
            text = train(scratch / "first", "--distill.teacher", file, ranks=1).expect(
                65, f"{file.name} is damaged", archive).text
            check("pickle" not in text, text)

    # A directory that is no run.
    (scratch / "folder").mkdir()
    for words in (["info"], ["verify"], ["export", scratch / "out.h5"], ["quantise", scratch / "out.h5"]):
        run(["checkpoint", words[0], scratch / "folder", *words[1:]]).expect(66, "no checkpoint in")
    run(["evaluate", DECK, scratch / "folder", *data]).expect(66, "no model in")
    run(["report", scratch / "folder", "--output", scratch / "report"]).expect(66, "no metrics in")
    for words in (["data", "info"], ["data", "verify"]):
        run([*words, scratch / "folder"]).expect(66, "it is a directory")
    run(["export", "check", scratch / "folder", "--data", DATA / "test.h5"]).expect(66, "it is a directory")

    # Ours in each other's places.
    train(scratch / "own").expect(0)
    best, newest = scratch / "own/best.h5", checkpoints(scratch / "own")[-1]
    for words in (["info"], ["verify"], ["diff", newest]):
        run(["checkpoint", *words, DATA / "train.h5"]).expect(65, "it is a data set")
    run(["checkpoint", "diff", best, newest]).expect(65, "it holds only a model")
    for file, kind in ((best, "a model"), (newest, "a checkpoint")):
        run(["train", DECK, "--data.train", file, "--data.validation", "", "--run.directory",
             scratch / "run"]).expect(65, f"it is {kind}, not a data set")
    run(["checkpoint", "export", newest, scratch / "m.safetensors"]).expect(0)
    run(["train", DECK, "--data.train", scratch / "m.safetensors", "--data.validation", "",
         "--run.directory", scratch / "run"]).expect(65, "a safetensors file", "model.weights")

    # Weights without a deck, and outputs, are no model to export or quantise.
    weights, outputs = scratch / "bare.safetensors", scratch / "outputs.h5"
    save_file(load_file(scratch / "m.safetensors"), weights)
    trained = ("--data.train", DATA / "train.h5", *data)
    run(["evaluate", DECK, best, *trained, "--outputs", outputs]).expect(0)
    for words in (["export", weights, scratch / "x.onnx"], ["export", weights, scratch / "x.pt"],
                  ["export", weights, scratch / "x.c"], ["quantise", weights, scratch / "x.h5"]):
        run(["checkpoint", *words]).expect(65, "a safetensors file of another program, which has weights and no deck",
                                            "model.weights")
    for words in (["checkpoint", "export", outputs, scratch / "x.onnx"],
                  ["checkpoint", "export", outputs, scratch / "x.h5"],
                  ["checkpoint", "export", outputs, scratch / "x.safetensors"],
                  ["checkpoint", "quantise", outputs, scratch / "x.h5"], ["evaluate", DECK, outputs, *trained]):
        run(words).expect(65, "holds no model: it is a file of outputs", "distill.outputs")
    check(not list(scratch.glob("x.*")), "something was exported")
    run(["checkpoint", "verify", outputs]).expect(0, "all bytes are intact")
    run(["data", "info", outputs]).expect(65, "it is a file of outputs, not a data set")
    run(["checkpoint", "diff", weights, newest]).expect(65, "it is a safetensors file, which has weights")
    run(["checkpoint", "diff", outputs, newest]).expect(65, "is not a checkpoint", "it is a file of outputs")
    for file, kind in ((weights, "it is a safetensors file"), (outputs, "it is a file of outputs"),
                       (best, "it holds only a model")):
        train(scratch / "resumed", "--checkpoint.resume", file, ranks=1).expect(65, "is not a checkpoint", kind)

    # What each file holds.
    run(["checkpoint", "quantise", best, scratch / "int8.h5", "--data.train", DATA / "train.h5",
         "--samples", 40]).expect(0)
    run(["checkpoint", "info", scratch / "int8.h5"]).expect(
        0, "int8.h5: an int8 model", "model       cnn", "int8, calibrated by mse", "features.conv1.weight i8 [4, 1, 3, 3]")
    run(["checkpoint", "info", outputs]).expect(0, "a file of outputs", "task        classification", "outputs f32 [")
    run(["checkpoint", "info", weights]).expect(0, "a safetensors file", "features.conv1.weight f32 [4, 1, 3, 3]")
    run(["checkpoint", "info", best]).expect(0, "best.h5: a model,")
    run(["data", "info", scratch / "int8.h5"]).expect(65, "it is an int8 model, not a data set")
    run(["checkpoint", "diff", scratch / "int8.h5", newest]).expect(65, "is not a checkpoint", "it is an int8 model")
    for file, kind in ((weights, "a safetensors file"), (best, "a model"), (scratch / "int8.h5", "an int8 model")):
        train(scratch / "resumed", "--distill.outputs", file, ranks=1).expect(
            64, "does not hold the outputs of a model", f"it is {kind}", "evaluate DECK MODEL --outputs")

    # Cut off, each is still called what it is.
    for file, *kind in ((outputs, "It is a file of outputs", "evaluate --outputs"), (best, "It is a model"),
                        (weights, "is not a complete safetensors file")):
        cut = scratch / f"cut{file.suffix}"
        cut.write_bytes(file.read_bytes()[:9000])
        for words in (["checkpoint", "info", cut], ["checkpoint", "export", cut, scratch / "x.h5"]):
            run(words).expect(65, *kind)
        text = train(scratch / "weighted", "--model.weights", cut, ranks=1).expect(65, *kind).text
        check("verifying a checkpoint" not in text, text)

    # As a script; and one that does not fit says why, not where in LibTorch.
    if torch:
        def scripted(file, code, *phrases, inputs="inputs", name="script"):
            (scratch / "script.ini").write_text(
                f"[run]\nname = script\n[data]\ntrain = {DATA / 'train.h5'}\nbatch = 16\ninputs = {inputs}\n"
                f"[model]\nname = {name}\nfile = {file}\n[train]\nsteps = 1\n")
            text = run(["train", scratch / "script.ini", "--run.directory", scratch / "run"]).expect(
                code, *phrases).text
            check("frame #" not in text and "miniz" not in text and "Exception raised" not in text, text)

        scripted(best, 65, "it is an HDF5 file", "torch.jit.script(model).save(")
        for name in ("state.pt", "old.pth", "model.pt2", "model.onnx", "m.safetensors", "image.h5"):
            scripted(scratch / name, 65, foreign.get(name, ["a safetensors file"])[0],
                     "Set model.name = export" if name == "model.pt2" else "torch.jit.script(model).save(")
        scripted(script, 65, f"{script.name} is damaged", archive)
        scripted(program, 65, f"{program.name} is damaged", archive, name="export")
        torch.jit.script(torch.nn.Linear(10, 10)).save(str(scratch / "narrow.pt"))
        scripted(scratch / "narrow.pt", 64, "cannot take a batch of", "shapes cannot be multiplied")
        scripted(scratch / "narrow.pt", 64, "received 3 argument", inputs="inputs, targets")
        scripted(scratch / "state.pt", 65, "weights without the code")
