"""lockstep predict: what a model says of samples without targets, from HDF5 files, pictures, recordings and tables:
the same bytes on any ranks, the numbers of the model itself, and what cannot be predicted is refused."""
import csv
import itertools
import json
import shutil

import h5py
import numpy as np
from PIL import Image

from harness import Scratch, check, run
from media import png, wav
from small_models import MODELS, deck_of, write_data

SHADES = {"dark": 40, "light": 200}


def pictures(folder, count, flat=False):
    """Pictures of 8 x 8 pixels, dark ones and light ones."""
    for name, shade in SHADES.items():
        place = folder if flat else folder / name
        place.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            values = [[(shade + (number * 7 + x + y) % 30,) * 3 for x in range(8)] for y in range(8)]
            (place / f"{name}-{number}.png").write_bytes(png(values, 8, 2))


def trained(scratch, name, data, model, task, *options, steps=40):
    deck = scratch / f"{name}.ini"
    deck.write_text(f"[run]\nreplicas = 1\n[data]\ntrain = {data}\nbatch = 8\n[model]\n{model}\n[task]\nkind = {task}\n"
                    f"[optimizer]\nlearning-rate = 0.01\n[train]\nsteps = {steps}\n[monitor]\nplots = false\n"
                    "tensorboard = false\nprogress = none\n")
    run(["train", deck, "--run.directory", scratch / name, *options], 1).expect(0)
    return scratch / name


def predicted(model, out, *inputs, ranks=0, options=()):
    run(["predict", model, *inputs, "--output", out, "--overwrite", *options], ranks).expect(0, "prediction", out.name)
    check([path.name for path in out.parent.glob(f"{out.name}.*")] == [], "nothing is left beside the output")
    return out.read_bytes()


def of_pictures(scratch):
    pictures(scratch / "labelled", 12)
    pictures(scratch / "new", 5, flat=True)
    run(["data", "import", "images", scratch / "labelled", scratch / "pictures.h5"]).expect(0)
    model = trained(scratch, "shades", scratch / "pictures.h5", "name = cnn\nchannels = 4\nhidden = 8", "classification")
    checkpoint = sorted((model / "checkpoints").glob("*.h5"))[-1]
    shutil.rmtree(scratch / "labelled")  # a colleague has the model alone
    (scratch / "pictures.h5").rename(scratch / "gone.h5")
    out = scratch / "out.csv"
    whole = predicted(checkpoint, out, scratch / "new", options=("--batch", 3))
    for ranks in (1, 2, 3):
        check(predicted(checkpoint, out, scratch / "new", ranks=ranks, options=("--batch", 3)) == whole, f"{ranks} ranks")
    rows = list(csv.DictReader(whole.decode().splitlines()))
    check([row["source"].rsplit("/")[-1] for row in rows] ==
          [f"{name}-{number}.png" for name in sorted(SHADES) for number in range(5)], f"{rows}")
    for row in rows:
        check(row["class"] in row["source"].rsplit("/")[-1], f"the right class: {row}")
        parts = [float(row[name]) for name in sorted(SHADES)]
        check(abs(sum(parts) - 1) < 1e-6 and max(parts) == float(row["probability"]), f"probabilities: {row}")
    lines = predicted(checkpoint, scratch / "out.jsonl", *sorted((scratch / "new").glob("*.png")), options=("--batch", 3))
    for row, line in zip(rows, map(json.loads, lines.splitlines())):
        check(line["class"] == row["class"] and line["source"] == row["source"] and
              np.float32(line["probability"]) == np.float32(row["probability"]), f"{row} and {line}")
    of_sources(scratch, model)
    of_bad_files(scratch, checkpoint)
    return checkpoint


def of_sources(scratch, model):
    """The names of pictures lead back from a data set: in predictions, and in the list of the largest losses."""
    run(["predict", model, scratch / "gone.h5", "--output", scratch / "stored.csv"]).expect(0)
    names = [f"{name}/{name}-{number}.png" for name in sorted(SHADES) for number in range(12)]
    check([row["source"] for row in csv.DictReader(open(scratch / "stored.csv"))] == names, "sources of a data set")
    run(["predict", model, scratch / "gone.h5", "--output", scratch / "stored.h5"], 2).expect(0)
    with h5py.File(scratch / "stored.h5") as file:
        check(file["sources"][()].decode().splitlines() == names, "and in HDF5")
    worst = scratch / "worst"
    text = run(["evaluate", model, "--data.test", scratch / "gone.h5", "--worst", 24, "--worst-output", worst], 2).expect(0).text
    with h5py.File(scratch / "gone.h5") as file:
        stored = file["inputs"][:].transpose(0, 2, 3, 1)
    for line in list(map(json.loads, (worst / "worst.jsonl").read_text().splitlines()))[1:]:
        check(np.array_equal(np.asarray(Image.open(worst / line["picture"])), stored[line["sample"]]),
              f"the picture as it was imported: {line}")
        check(line["source"] == names[line["sample"]] and
              f"sample {line['sample']} ({scratch / 'gone.h5'}, {line['sample']}: {line['source']}): loss" in text, f"{line}")
    run(["data", "info", scratch / "gone.h5"]).expect(0, f"sources: from {names[0]} to {names[-1]}")
    with h5py.File(scratch / "gone.h5") as file, h5py.File(scratch / "bare.h5", "w") as bare:
        for name in "inputs", "targets":
            bare[name] = file[name][:]
        bare.attrs.update(file.attrs)
    run(["predict", model, scratch / "bare.h5", "--output", scratch / "bare.csv"]).expect(0)
    check(open(scratch / "bare.csv").readline().startswith("sample,class"), "no column without names")
    check([row["class"] for row in csv.DictReader(open(scratch / "bare.csv"))] ==
          [row["class"] for row in csv.DictReader(open(scratch / "stored.csv"))], "and the same predictions")
    shutil.copy(scratch / "gone.h5", scratch / "damaged.h5")
    with h5py.File(scratch / "damaged.h5", "r+") as file:
        file["inputs"][3, 0, 0, 0] ^= 4
    run(["predict", model, scratch / "damaged.h5", "--output", scratch / "damaged.csv"], 2).expect(65, "damaged.h5")
    check(not (scratch / "damaged.csv").exists(), "no predictions of samples that have changed")


def of_bad_files(scratch, model):
    mixed = scratch / "mixed"
    pictures(mixed, 3, flat=True)
    (mixed / "dark-1.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    words = ["predict", model, mixed, "--output", scratch / "mixed.csv"]
    check("import" not in run(words).expect(65, "dark-1.png", "--skip-bad").text, "nothing is imported for the user")
    check(not list(scratch.glob("mixed.csv*")), "nothing is left")
    for ranks in (1, 3):
        run([*words, "--skip-bad", "--overwrite"], ranks).expect(0, "skipped 1 of 6", "dark-1.png", "5 predictions")
        rows = list(csv.DictReader(open(scratch / "mixed.csv")))
        check([row["source"].rsplit("/")[-1] for row in rows] == ["dark-0.png", "dark-2.png", *(f"light-{n}.png" for n in range(3))] and
              all(row["class"] in row["source"].rsplit("/")[-1] for row in rows), f"the others keep their names: {rows}")
    for path in mixed.iterdir():
        path.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    run([*words, "--skip-bad", "--overwrite"]).expect(65, "none of 6 items can be read")
    check([path.name for path in scratch.glob("mixed.csv*")] == ["mixed.csv"], "nothing but the older file")
    run(["predict", model, scratch / "gone.h5", "--skip-bad", "--output", scratch / "x.csv"]).expect(64, "--skip-bad")


def of_cut_pictures(scratch):
    """Pictures are cut as the import cut those of the training, if the same options are given."""
    for name, shade in SHADES.items():
        (scratch / "wide" / name).mkdir(parents=True)
        for number in range(4):
            values = [[(x * 12 + number, shade, y * 20, 255 - x * 12) for x in range(20)] for y in range(10)]
            (scratch / "wide" / name / f"{number}.png").write_bytes(png(values, 8, 6))
    cut = ("--center-crop", "--shorter", 12, "--alpha", "blend")
    run(["data", "import", "images", scratch / "wide", scratch / "cut.h5", "--size", "8x8", *cut]).expect(0)
    model = trained(scratch, "cut", scratch / "cut.h5", "name = cnn\nchannels = 4\nhidden = 8", "classification", steps=4)

    def told(name, *words):
        run(["predict", model, *words, "--output", scratch / name]).expect(0)
        return [[row[name] for name in sorted(SHADES)] for row in csv.DictReader(open(scratch / name))]
    stored = told("stored-cut.csv", scratch / "cut.h5")
    check(told("cut.csv", scratch / "wide", *cut) == stored, "the same predictions as of the imported pictures")
    check(told("squeezed.csv", scratch / "wide", *cut[-2:]) != stored, "other ones of pictures that are squeezed")
    check(told("opaque.csv", scratch / "wide", *cut[:-2]) != stored, "and of their colours without alpha")
    for words, why in (((scratch / "cut.h5", "--center-crop"), "used as they are"),
                       ((scratch / "wide", "--shorter", 12), "without --center-crop"),
                       ((scratch / "wide", "--center-crop", "--shorter", 4), "would not cover the size of 8x8")):
        run(["predict", model, *words, "--output", scratch / "x.csv"]).expect(64, why)


def of_idx(scratch):
    """Pictures without a dimension of channels, as an IDX file has them."""
    pictures(scratch / "grey", 3, flat=True)
    with h5py.File(scratch / "grey.h5", "w") as file:
        labels = np.arange(24) % 2
        file["inputs"] = (40 + 160 * labels[:, None, None] + np.arange(64).reshape(8, 8) % 30).astype("u1")
        file["targets"] = labels
        file.attrs["classes"] = sorted(SHADES)
    model = trained(scratch, "greys", scratch / "grey.h5", "name = mlp\nhidden = 8", "classification")
    rows = csv.DictReader(predicted(model, scratch / "grey.csv", scratch / "grey").decode().splitlines())
    check(all(row["class"] in row["source"].rsplit("/")[-1] for row in rows), "the right classes of grey pictures")


def of_tables(scratch):
    draw = np.random.default_rng(5)
    values = draw.normal(size=(64, 3))
    for name, columns in (("train", "a,b,c,y"), ("new", "c,other,a,b")):
        with open(scratch / f"{name}.csv", "w") as file:
            file.write(columns + "\n")
            for a, b, c in values:
                known = {"a": a, "b": b, "c": c, "y": 2 * a - b, "other": "text"}
                file.write(",".join(str(known[column]) for column in columns.split(",")) + "\n")
    run(["data", "import", "series", scratch / "train.csv", scratch / "table.h5", "--target", "y", "--regression"]).expect(0)
    model = trained(scratch, "line", scratch / "table.h5", "name = mlp\nhidden = 16", "regression", steps=300)
    check("normali" not in run(["predict", model, scratch / "new.csv", "--output", scratch / "told.csv"]).expect(0).text,
          "the model's own mean and std count, and those of the few rows are nothing to tell of")
    run(["predict", model, scratch / "new", "--output", scratch / "x.csv"]).expect(
        64, "the model takes the rows of a table with the columns a, b, c", ".csv")
    text = predicted(model, scratch / "values.csv", scratch / "new.csv")
    rows = list(csv.DictReader(text.decode().splitlines()))
    given = np.array([float(row["targets"]) for row in rows])
    check(len(rows) == 64 and np.abs(given - (2 * values[:, 0] - values[:, 1])).mean() < 0.3, f"columns by name: {rows[:3]}")
    predicted(model, scratch / "values.h5", scratch / "new.csv", ranks=2)
    with h5py.File(scratch / "values.h5") as file:
        check(np.array_equal(file["outputs"][:, 0], given.astype(np.float32)), "HDF5 and CSV hold the same numbers")
        check(len(file["sources"][()].decode().splitlines()) == 64, "and the lines of the table")
    (scratch / "wrong.csv").write_text("a,b,c\n1,2,3\n1,x,3\n")
    text = run(["predict", model, scratch / "wrong.csv", "--output", scratch / "x.csv"]).expect(65, "line 3", "not a number: x").text
    check("--columns" not in text and "--fill-forward" not in text, f"no options of an import: {text}")
    run(["predict", model, scratch / "wrong.csv", "--output", scratch / "x.csv", "--skip-bad"]).expect(0, "skipped 1 of 2", "line 3")
    (scratch / "x.csv").unlink()
    (scratch / "short.csv").write_text("a,b\n1,2\n")
    text = run(["predict", model, scratch / "short.csv", "--output", scratch / "x.csv"]).expect(64, "the model's column c").text
    check("Name one of" not in text and "Add it to the table" in text, f"the model needs this column: {text}")
    run(["predict", model, scratch / "new.csv", "--output", scratch / "x.csv", "--center-crop"]).expect(64, "no pictures")


def of_categories(scratch):
    """Names in a column: the model finds them by their inputs, and knows no others."""
    values = {"red": 1.0, "dark green": -2.0, "blue": 4.0}
    for name, columns in (("train", "size,colour,y"), ("new", "colour,size")):
        with open(scratch / f"{name}.csv", "w") as file:
            file.write(columns + "\n")
            for row in range(60):
                colour = list(values)[row % 3]
                known = {"size": row % 5, "colour": colour, "y": values[colour] + row % 5}
                file.write(",".join(str(known[column]) for column in columns.split(",")) + "\n")
    words = ["data", "import", "series", scratch / "train.csv", scratch / "named.h5", "--target", "y", "--regression"]
    run(words).expect(65, "--categories colour")
    run([*words, "--categories", "colour"]).expect(0, "column colour became 3 inputs", "blue, dark green, red")
    model = trained(scratch, "colours", scratch / "named.h5", "name = mlp\nhidden = 16", "regression", steps=400)
    rows = list(csv.DictReader(predicted(model, scratch / "colours.csv", scratch / "new.csv").decode().splitlines()))
    wrong = [abs(float(row["targets"]) - list(values.values())[i % 3] - i % 5) for i, row in enumerate(rows)]
    check(len(rows) == 60 and np.mean(wrong) < 0.5, f"colours by their names: {wrong}")
    (scratch / "pink.csv").write_text("colour,size\nred,1\npink,2\n")
    run(["predict", model, scratch / "pink.csv", "--output", scratch / "x.csv"]).expect(
        65, "line 3", "unknown category pink: the model knows blue, dark green, red", "--skip-bad")
    run(["predict", model, scratch / "pink.csv", "--output", scratch / "x.csv", "--skip-bad"]).expect(0, "skipped 1 of 2")
    (scratch / "x.csv").unlink()
    (scratch / "bare.csv").write_text("size\n1\n")
    run(["predict", model, scratch / "bare.csv", "--output", scratch / "x.csv"]).expect(
        64, "the model's column colour=blue", "name a column colour")


def of_every_model(scratch):
    """Each model that predicts something does so as it evaluates."""
    for name, (_, samples, task) in MODELS.items():
        if not samples:
            continue
        deck = deck_of(scratch, name, 2)
        run(["train", deck, "--run.directory", scratch / name], 1).expect(0)
        files = [line.split(" = ")[1] for line in deck.read_text().splitlines() if line.startswith("train = ")]
        out = scratch / f"{name}.h5"
        words = ["predict", scratch / name, files[0], "--output", out]
        if name in ("export", "script"):
            words += ["--model.file", next(line.split(" = ")[1] for line in deck.read_text().splitlines() if line.startswith("file = "))]
        if "language" in task:
            run(words).expect(64, "lockstep generate")
        elif "ctc" in task:
            run(words).expect(64, ".csv or .jsonl")
            words[-1] = scratch / f"{name}.csv"
            run(words).expect(0)
        else:
            run(words).expect(0)
            values = "predicted" if "segmentation" in task else "outputs"
            with h5py.File(out) as file:
                found = file[values][:]
                check(np.isfinite(found).all(), f"{name}: {found}")
            weights, again = scratch / f"{name}.safetensors", scratch / f"{name}-again.h5"
            run(["checkpoint", "export", scratch / name, weights]).expect(0)
            run(["predict", weights, *(again if word == out else word for word in words[2:])]).expect(0)
            with h5py.File(again) as file:
                check(np.array_equal(file[values][:], found), f"{name}: weights that say their model predict the same")


def refused(scratch, model):
    new = scratch / "new"
    (scratch / "bad").mkdir()
    (scratch / "bad/x.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    for words, code, why in ((["--output", scratch / "x.txt", new], 64, ".csv, .jsonl or .h5"),
                             ([new], 64, "--output"),
                             (["--output", scratch / "x.csv"], 64, "INPUT"),
                             (["--output", scratch / "x.csv", scratch / "none"], 66, "no such file"),
                             (["--output", scratch / "none/x.csv", new], 73, "no directory"),
                             (["--output", scratch / "x.csv", scratch / "bad"], 65, "x.png"),
                             (["--output", model, new, "--overwrite"], 73, ""),
                             (["--output", scratch / "x.csv", scratch / "train.csv"], 64, "rows of a table"),
                             (["--output", scratch / "x.csv", new, scratch / "gone.h5"], 64, "not predicted together"),
                             (["--output", scratch / "x.csv", scratch / "table.h5"], 65, "samples")):
        run(["predict", model, *words]).expect(code, why)
    check(not (scratch / "x.csv").exists(), "nothing is left")
    (scratch / "x.csv").write_text("mine")
    run(["predict", model, new, "--output", scratch / "x.csv"]).expect(73, "--overwrite")


with Scratch() as scratch:
    write_data(scratch)
    model = of_pictures(scratch)
    of_idx(scratch)
    of_cut_pictures(scratch)
    of_tables(scratch)
    of_categories(scratch)
    refused(scratch, model)
    of_every_model(scratch)
print("predictions are those of the model, on any ranks")
