"""A file of another kind is called what it is, with what makes something of it, wherever it is given;
none is called damaged."""
import gzip
import pickle
import zipfile

import h5py
import numpy as np

from harness import DATA, DECK, Scratch, check, checkpoints, run, train

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
    with h5py.File(scratch / "other.h5", "w") as file:
        file["values"] = np.zeros(3)
    foreign = {"image.h5": ("a PNG image", ""), "table.h5": ("a text table", ""),
               "packed.h5": ("compressed with gzip", ""), "archive.h5": ("a ZIP archive", ""),
               "pickle.pkl": ("a pickle", "torch.load("), "model.onnx": ("an ONNX model", "onnx.load("),
               "empty.h5": ("empty", ""), "other.h5": ("an HDF5 file that another program wrote", ""),
               **(with_torch(scratch) if torch else {})}
    helps = {"image.h5": "data import images", "table.h5": "data import series", "packed.h5": "gunzip",
             "archive.h5": "unzip"}
    data = ("--data.validation", DATA / "test.h5")
    for name, (kind, weights) in foreign.items():
        file = scratch / name
        for words in (["checkpoint", "info", file], ["checkpoint", "verify", file],
                      ["checkpoint", "export", file, scratch / "out.h5"], ["evaluate", DECK, file, *data]):
            text = run(words).expect(65, kind, weights).text
            check("damaged" not in text and "miniz" not in text, text)
        if name != "other.h5":
            run(["train", DECK, "--data.train", file, "--data.validation", "", "--run.directory",
                 scratch / "run"]).expect(65, kind, helps.get(name, ""))
            text = run(["data", "info", file]).text
            check(kind in text, text)
    for name in ("state.pt", "image.h5"):
        if (scratch / name).exists():
            train(scratch / "first", "--model.weights", scratch / name, ranks=1).expect(65, foreign[name][0])

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

    # As a script; and one that does not fit says why, not where in LibTorch.
    if torch:
        def scripted(file, code, *phrases, inputs="inputs"):
            (scratch / "script.ini").write_text(
                f"[run]\nname = script\n[data]\ntrain = {DATA / 'train.h5'}\nbatch = 16\ninputs = {inputs}\n"
                f"[model]\nname = script\nfile = {file}\n[train]\nsteps = 1\n")
            text = run(["train", scratch / "script.ini", "--run.directory", scratch / "run"]).expect(
                code, *phrases).text
            check("frame #" not in text and "miniz" not in text and "Exception raised" not in text, text)

        for name in ("state.pt", "old.pth", "model.pt2", "model.onnx", "m.safetensors", "image.h5"):
            scripted(scratch / name, 65, foreign.get(name, ["a safetensors file"])[0],
                     "Set model.name = export" if name == "model.pt2" else "torch.jit.script(model).save(")
        torch.jit.script(torch.nn.Linear(10, 10)).save(str(scratch / "narrow.pt"))
        scripted(scratch / "narrow.pt", 64, "cannot take a batch of", "shapes cannot be multiplied")
        scripted(scratch / "narrow.pt", 64, "received 3 argument", inputs="inputs, targets")
        scripted(scratch / "state.pt", 65, "weights without the code")
