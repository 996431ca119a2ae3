"""Files of others in every form that HDF5 has: training reads them right, or says with 64, 65 or 66 what is wrong and
what to do. Nothing ends in 70, in a crash or never: neither odd files nor damaged ones."""
import itertools
import os
import pathlib
import random
import subprocess
import sys

import h5py
import numpy as np

try:
    import hdf5plugin
except ImportError:  # then its filters are not tried
    hdf5plugin = None

from harness import DECK, LONG, SEED, Scratch, check, run
from reading import READER, answers, handed_out

N = 48
REAL = np.random.default_rng(SEED).normal(size=(N, 1, 28, 28))
LABELS = np.arange(N) % 5

# What inputs are; none: they are refused.
inputs = {
    "f32": REAL.astype("<f4"), "f64": REAL, "f16": REAL.astype("<f2"), "big f32": REAL.astype(">f4"),
    "big f64": REAL.astype(">f8"), "big i16": (REAL * 99).astype(">i2"), "u8": (REAL * 50).astype("u1"),
    "i8": (REAL * 50).astype("i1"), "i16": (REAL * 99).astype("i2"), "u16": (REAL * 99).astype("u2"),
    "i32": (REAL * 99).astype("i4"), "u32": (REAL * 99).astype("u4"), "i64": (REAL * 9).astype("i8"),
    "u64": (REAL * 9).astype("u8"), "bool": REAL > 0, "long double": REAL.astype("longdouble"),
    "flat": REAL.reshape(N, 784).astype("f4"), "one number": REAL[:, 0, 0, 0].astype("f4"),
    "one column": REAL[:, 0, 0, :1].astype("f4"), "volume": REAL.reshape(N, 1, 4, 14, 14).astype("f4"),
    "one pixel": REAL[:, :, :1, :1].astype("f4"), "no channel": REAL[:, 0].astype("f4"),
    "many extents": REAL.reshape(N, 1, 2, 2, 7, 2, 14).astype("f4"),
    "no samples": np.zeros((0, 1, 28, 28), "f4"), "no pixels": np.zeros((N, 1, 0, 28), "f4"), "scalar": np.float32(3),
    "compound": np.zeros(N, [("a", "f4"), ("b", "i4")]), "complex": REAL.astype("c8"),
    "strings": np.array([b"a"] * N), "texts": np.array(["a"] * N, object), "nothing": h5py.Empty("f4"),
    "references": "references", "ragged": "ragged", "opaque": np.zeros(N, "V7"), "enum": "enum", "bfloat16": "bfloat16",
    "3 bits": "3 bits", "array": np.zeros(N, [("a", "f4", 3)])["a"], "of arrays": "of arrays", "bit field": "bit field",
    "a group": "a group", "huge": "huge", "never written": "never written", "compact": "compact",
}
labels = {
    "i64": LABELS, "[N, 1]": LABELS.reshape(N, 1), "[N, 1, 1]": LABELS.reshape(N, 1, 1), "u8": LABELS.astype("u1"),
    "i8": LABELS.astype("i1"), "i16": LABELS.astype("i2"), "big i32": LABELS.astype(">i4"), "u64": LABELS.astype("u8"),
    "bool": LABELS > 2, "enum": "enum", "f32": LABELS.astype("f4"), "f64 [N, 1]": LABELS.reshape(N, 1).astype("f8"),
    "half a class": LABELS + 0.5, "one-hot": np.eye(5)[LABELS], "two": np.stack([LABELS] * 2, 1),
    "negative": LABELS - 1, "int64's largest": np.where(LABELS == 3, np.iinfo("i8").max, LABELS),
    "u64's largest": np.where(LABELS == 3, np.iinfo("u8").max, LABELS.astype("u8")), "too few": LABELS[:-1],
    "NaN": np.where(LABELS == 3, np.nan, LABELS), "scalar": np.int64(1), "none": LABELS[:0], "one class": LABELS * 0,
    "texts": np.array(["a"] * N, object), "compound": np.zeros(N, [("a", "f4")]), "nothing": h5py.Empty("i8"),
}
READABLE = {"i64", "[N, 1]", "[N, 1, 1]", "u8", "i8", "i16", "big i32", "u64", "bool", "f32", "f64 [N, 1]", "one-hot", "two",
            "half a class", "NaN", "one class"}


def put(file, name, what):
    if not isinstance(what, str):
        file[name] = what
    elif what == "references":
        file[name] = np.array([file.ref] * N, h5py.ref_dtype)
    elif what == "ragged":
        rows = file.create_dataset(name, (N,), h5py.vlen_dtype("f4"))
        rows[0] = [1, 2]
    elif what == "enum":
        file.create_dataset(name, data=LABELS.astype("i2"), dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, "i2"))
    elif what == "of arrays":
        file.create_dataset(name, (N,), np.dtype(("f4", (3,))))
    elif what == "a group":
        file.create_group(name)
    elif what == "huge":
        file.create_dataset(name, (N, 1 << 40, 1 << 20), "f4", chunks=(1, 1, 1024))
    elif what == "never written":
        file.create_dataset(name, (N, 1, 28, 28), "f4", chunks=(7, 1, 28, 28), fillvalue=2.5)
    else:
        space = h5py.h5s.create_simple((N,))
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if what == "bfloat16":
            kind = h5py.h5t.IEEE_F32LE.copy()
            kind.set_fields(15, 7, 8, 0, 7)
            kind.set_size(2)
        elif what == "3 bits":
            kind = h5py.h5t.STD_U8LE.copy()
            kind.set_precision(3)
        elif what == "bit field":
            kind = h5py.h5t.STD_B8LE
        else:
            kind = h5py.h5t.IEEE_F32LE
            creation.set_layout(h5py.h5d.COMPACT)
        made = h5py.h5d.create(file.id, name.encode(), kind, space, creation)
        if what in ("bfloat16", "compact"):
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, LABELS.astype("f4"))


def read_apart(path, limit=300):
    """What a reader of its own says of a damaged file, that it may not take others with it."""
    done = subprocess.run([READER], input=f"{path}\tx\ty\n".encode(), capture_output=True, timeout=limit)
    return done.returncode, done.stdout[:300].decode(errors="replace")


def damaged(source, random_):
    """A file with some bytes changed, cut off, put elsewhere or filled in: mostly where its structure lies."""
    data = bytearray(source)
    for _ in range(random_.choice((1, 1, 2, 5, 20))):
        at = random_.randrange(min(len(data), random_.choice((200, 3000, len(data)))))
        kind = random_.randrange(5)
        if kind == 0:
            data[at] ^= 1 << random_.randrange(8)
        elif kind == 1:
            data[at:at + 8] = random_.choice((b"\xff" * 8, bytes(8), random_.randbytes(8), b"\x01" + bytes(7)))
        elif kind == 2:
            del data[at + 96:at + 96 + random_.choice((1, 8, 512))]
        elif kind == 3:
            there = random_.randrange(len(data) - 64)
            data[at:at + 64] = data[there:there + 64]
        else:
            data[at] = random_.randrange(256)
    return bytes(data[:random_.randrange(90, len(data))] if random_.random() < 0.1 else data)


with Scratch() as scratch:
    # Every form of inputs with plain labels, and of labels with plain inputs.
    asked = []
    for name, what in inputs.items():
        path = scratch / f"in {name.replace(',', '')}.h5".replace("[", "(").replace("]", ")")
        with h5py.File(path, "w") as file:
            file["y"] = LABELS
            put(file, "x", what)
        asked.append((path, "x", "y", what if not isinstance(what, str) else None, LABELS))
    for name, what in labels.items():
        path = scratch / f"of {name.replace(',', '')}.h5".replace("[", "(").replace("]", ")")
        with h5py.File(path, "w") as file:
            file["x"] = REAL.astype("f4")
            put(file, "y", what)
        asked.append((path, "x", "y", REAL.astype("f4"), what if name in READABLE else None))
    fit = []
    for (path, x, y, values, targets), answer in zip(asked, answers([each[:3] for each in asked])):
        if isinstance(answer, bytes):
            fit.append(path)
            if values is not None and targets is not None:
                check(answer == handed_out(values, False) + handed_out(targets, True), f"{path.name}: every value")
        else:
            check(answer[:2] in ("65", "66") and answer.count(". ") >= 1, f"{path.name}: {answer}")
    print(f"odd: {len(fit)} of {len(asked)} forms can be read")

    # Each of them trains, or is refused by the task or the model.
    models = {"cnn": (), "mlp": ("--model.hidden", "8"), "resnet": (), "lmu-asr": (), "cnn3d": (), "unet": ()}
    walk = [(path, model) for path in fit for model in models]
    random.Random(SEED).shuffle(walk)
    named = [(path, "mlp") for path in fit if path.name in ("of (N 1).h5", "of bool.h5", "of f32.h5", "in one number.h5")]
    trained = 0
    for path, model in (walk if LONG else named + walk[:6]):
        result = run(["train", DECK, "--data.validation", "", "--run.directory", scratch / "run", "--data.train", path, "--data.inputs", "x", "--data.targets",
                      "y", "--model.name", model, *models[model], "--train.steps", 1, "--data.batch", 8,
                      "--run.replicas", 1, "--optimizer.accumulate", 1, "--data.global-batch", 0,
                      "--monitor.tensorboard", "false", "--monitor.plots", "false", "--checkpoint.resume", "none"], limit=900)
        check(result.code in (0, 64, 65), f"{model} of {path.name} ends with {result.code}:\n{result.text}")
        trained += result.code == 0
    check(trained >= len(named) if not LONG else trained > len(fit), f"{trained} train")
    print(f"odd: {trained} of {len(walk) if LONG else len(named) + 6} trained, the others are refused")

    # Filters that are not here, forms of newer libraries, files that are open for writing.
    told = []

    def is_told(path, *phrases):
        told.append((path, phrases))

    plugged = [] if hdf5plugin is None else [
        ("blosc", hdf5plugin.Blosc(), "filter 32001 blosc", "HDF5_PLUGIN_PATH"),
        ("zstd", hdf5plugin.Zstd(), "filter 32015 zstd", "HDF5_PLUGIN_PATH")]
    for name, options, *phrases in (("lzf", {"compression": "lzf"}, "filter 32000 lzf", "h5py", "gzip"), *plugged):
        with h5py.File(scratch / f"{name}.h5", "w") as file:
            file.create_dataset("x", data=REAL.astype("f4"), chunks=(8, 1, 28, 28), **options)
            file["y"] = LABELS
        is_told(scratch / f"{name}.h5", "dataset x of ", f"{name}.h5", *phrases)
    for libver in ("v112", "v114", "latest"):
        with h5py.File(scratch / f"by {libver}.h5", "w", libver=libver) as file:
            file.create_dataset("x", data=REAL.astype("f4"), chunks=(8, 1, 28, 28), maxshape=(None, 1, 28, 28))
            file["y"] = LABELS
    newest = scratch / "newest.h5"
    newest.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes([9]) + (scratch / "by latest.h5").read_bytes()[9:])
    is_told(newest, "a newer HDF5 wrote it", "h5repack")
    with h5py.File(scratch / "layout.h5", "w", libver=("earliest", "v108")) as file:
        file.create_dataset("x", data=REAL.astype("f4"))
        file["y"] = LABELS
    layout = b"\x08\0\x18\0\0\0\0\0\x03\x01"  # of x: the message's type, bytes and flags, then its version
    content = (scratch / "layout.h5").read_bytes()
    check(layout in content, "where the layout's version stands")
    (scratch / "layout.h5").write_bytes(content.replace(layout, layout[:8] + b"\x09\x01", 1))
    is_told(scratch / "layout.h5", "dataset x of ", "layout.h5", "a newer HDF5 wrote it", "h5repack")
    writer = h5py.File(scratch / "swmr.h5", "w", libver="latest")
    writer.create_dataset("x", data=REAL.astype("f4"), chunks=(8, 1, 28, 28), maxshape=(None, 1, 28, 28))
    writer["y"] = LABELS
    writer.swmr_mode = True
    is_told(scratch / "swmr.h5", "open for writing", "h5clear")
    for (path, phrases), answer in zip(told, answers([(path, "x", "y") for path, _ in told])):
        check(isinstance(answer, str) and answer.startswith("65"), f"{path.name}: {answer[:200]}")
        for phrase in phrases:
            check(phrase in answer, f"{path.name}: {phrase!r} is missing in {answer}")
    writer.close()
    here = {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH} if plugged else {}
    for answer in answers([(scratch / f"{name}.h5", "x", "y") for name, *_ in plugged], env=here):
        check(answer == handed_out(REAL.astype("f4"), False) + handed_out(LABELS, True), f"a plug-in reads it: {answer[:200]}")
    for libver, answer in zip(("v112", "v114", "latest"), answers(
            [(scratch / f"by {libver}.h5", "x", "y") for libver in ("v112", "v114", "latest")])):
        check(isinstance(answer, bytes) or "a newer HDF5 wrote it" in answer, f"{libver}: {answer[:200]}")

    # Files that contradict themselves.
    def edited(name, edit, *words):
        path = scratch / f"{name}.h5"
        path.write_bytes((scratch / "ours.h5").read_bytes())
        with h5py.File(path, "r+") as file:
            edit(file)
        for command in (["data", "info", path], ["data", "verify", path],
                        ["data", "import", "hdf5", path, scratch / "again.h5"]):
            run(command).expect(65, *words)

    with h5py.File(scratch / "theirs.h5", "w") as file:
        file["inputs"], file["targets"] = REAL.astype("f4"), LABELS
    run(["data", "import", "hdf5", scratch / "theirs.h5", scratch / "ours.h5"]).expect(0)
    edited("newer", lambda file: file.attrs.modify("version", 2), "version 2, and only version 1 is known")
    damage = bytearray((scratch / "ours.h5").read_bytes())
    with h5py.File(scratch / "ours.h5") as file:
        damage[file["inputs"].id.get_offset() + 5] ^= 1
    (scratch / "damaged ours.h5").write_bytes(damage)
    run(["data", "import", "hdf5", scratch / "damaged ours.h5", scratch / "again.h5"]).expect(
        65, "damaged ours.h5 is damaged", "inputs has changed in bytes")
    (scratch / "changed.h5").write_bytes((scratch / "ours.h5").read_bytes())
    with h5py.File(scratch / "changed.h5", "r+") as file:
        file.attrs["mean"], file.attrs["std"] = 1.0, 2.0
    run(["data", "import", "hdf5", scratch / "changed.h5", scratch / "changed again.h5"]).expect(
        0, "changed.h5 have changed since its import")
    for ends in ((1, N), (0, N - 1), (0, N + 1)):
        with h5py.File(scratch / "rows.h5", "w") as file:
            file["inputs"], file["targets"] = REAL[:, 0, 0].astype("f4"), LABELS[:2]
            file["inputs_offsets"] = np.array([ends[0], 20, ends[1]])
        for command in ("info", "verify"):
            run(["data", command, scratch / "rows.h5"]).expect(65, f"go from {ends[0]} to {ends[1]}", f"from 0 to {N}")
    with h5py.File(scratch / "views.h5", "w") as file:  # 8^12 sources
        file["x0"], file["targets"] = REAL[:8, 0, 0, 0].astype("f4"), LABELS[:8]
        for level in range(1, 13):
            layout = h5py.VirtualLayout((8,), "f4")
            for part in range(8):
                layout[part] = h5py.VirtualSource("views.h5" if level % 2 else ".", f"x{level - 1}", (8,))[part]
            file.create_virtual_dataset("inputs" if level == 12 else f"x{level}", layout)
    for command in ("info", "verify"):
        run(["data", command, scratch / "views.h5"], limit=120).expect(65, "is a view of views", "sources of its sources")

    # Small files that would take memory and time: refused at once. What is partly filled is read.
    def costly(name, make, word, commands=("verify", "import")):
        path = scratch / f"{name}.h5"
        with h5py.File(path, "w") as file:
            make(file)
        for command in commands:
            done = run(["data", "verify", path] if command == "verify" else
                       ["data", "import", "hdf5", path, scratch / "costly.h5", "--overwrite"], limit=20)
            done.expect(65 if word else 0, *([word] if word else []))

    def part(dataset, count):
        dataset[:count] = 1
        return dataset

    def spread(file, name, shape, chunks, count=0, **options):
        part(file.create_dataset(name, shape, "u1", chunks=chunks, **options), count)
        file["targets"] = np.zeros(shape[0], "i8")

    costly("one chunk", lambda file: spread(file, "inputs", (16, 1 << 27), (16, 1 << 27), compression="gzip"),
           "its chunks have 2.0 GiB each")
    costly("unwritten", lambda file: spread(file, "inputs", (4, 1 << 28), (1, 1 << 20)), "only 0 B of its 1.0 GiB were written")
    costly("no chunk", lambda file: spread(file, "inputs", (4, 1 << 31), (1, 1 << 20)), "has 2147483648 values")
    costly("many", lambda file: (file.create_dataset("inputs", (1 << 30, 1), "u1", chunks=(1 << 20, 1)),
                                 file.create_dataset("targets", (1 << 30,), "u1", chunks=(1 << 20,))), "were written")
    costly("contiguous", lambda file: (file.create_dataset("inputs", (1 << 30, 1), "u1"),
                                       file.create_dataset("targets", (1 << 30,), "u1")), "were written")
    costly("large samples", lambda file: (
        file.create_virtual_dataset("inputs", h5py.VirtualLayout((4, 1 << 29), "u1")), file.create_dataset("targets", data=LABELS[:4])),
        "a sample of the dataset named inputs has 536870912 values")
    costly("partly", lambda file: spread(file, "inputs", (1 << 10, 1 << 17), (1, 1 << 17), 20), "")
    for fill, word in ((300.0, "does not fit u8"), (0.5, "does not fit u8"), (3.0, "")):
        def narrow(file, fill=fill):
            file["wide"] = np.full((N, 4), fill)
            layout = h5py.VirtualLayout((N, 4), "u1")
            layout[:] = h5py.VirtualSource(".", "wide", (N, 4))
            file.create_virtual_dataset("inputs", layout)
            file["targets"] = LABELS
        costly(f"narrow {fill}", narrow, word)
        answer, = answers([(scratch / f"narrow {fill}.h5", "inputs", "targets")])
        check(isinstance(answer, bytes) if not word else word in answer, f"training of a view of {fill}: {answer[:200]}")

    # Damaged files: whatever is read of them, no reader crashes, hangs or calls it a bug.
    sources = []
    for name, options in (("plain", {}), ("chunked", {"chunks": (8, 1, 4, 4), "compression": "gzip", "shuffle": True}),
                          ("new", {"chunks": (8, 1, 4, 4), "fletcher32": True})):
        with h5py.File(scratch / f"{name}.h5", "w", libver="latest" if name == "new" else "earliest") as file:
            file.create_dataset("x", data=REAL[:, :, :8, :8].astype("f4"), **options)
            file["y"] = LABELS
            file.attrs["classes"] = ["a", "b", "c", "d", "e"]
            file["group/z"] = LABELS
        sources.append((scratch / f"{name}.h5").read_bytes())
    random_ = random.Random(SEED)
    count, codes = 600 if LONG else 40, {}
    for i in range(count):
        path = scratch / "damaged.h5"
        path.write_bytes(damaged(sources[i % len(sources)], random_))
        try:
            code, text = read_apart(path)
        except subprocess.TimeoutExpired:
            code, text = "a hang", ""
        if code != 0 or text.startswith("- 7"):
            pathlib.Path("/tmp/lockstep-damaged.h5").write_bytes(path.read_bytes())
            sys.exit(f"damaged file {i} of seed {SEED} (kept as /tmp/lockstep-damaged.h5): {code} {text}")
        codes[text[:4] if text.startswith("-") else "read"] = codes.get(text[:4] if text.startswith("-") else "read", 0) + 1
print(f"odd: {count} damaged files: {codes}")
