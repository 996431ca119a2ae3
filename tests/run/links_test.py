"""Datasets whose bytes lie elsewhere: links, virtual datasets, files of raw values. Training reads their values,
whatever the cache, or says what is missing; data info tells what is what."""
import os
import shutil

import h5py
import numpy as np

from harness import DATA, LONG, Scratch, check, checkpoints, run, some, train
from reading import answers, handed_out

N = 40
X = np.arange(N * 6, dtype=np.float32).reshape(N, 3, 2) * 0.5
Y = np.arange(N) % 7
BIG = np.arange(5000 * 1000, dtype=np.float32).reshape(5000, 1000)  # more than is kept in memory


def plain(path, **options):
    with h5py.File(path, "w", **options) as file:
        # A dataset before ours, so that offsets of this file fit no other.
        file["before"] = np.full(3000, 77.0)
        file["x"], file["y"] = X, Y
        file.create_dataset("chunked", data=X, chunks=(7, 2, 2), compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("swapped", data=X.astype(">f8"))
        file["group/x"] = X + 1
        file["group/y"] = Y
        file.create_dataset("maxed", data=X, maxshape=(None, 3, 2), chunks=(11, 3, 2))


def linking(path, target, **names):
    with h5py.File(path, "w") as file:
        file["decoy"] = np.full(5000, -1.0)
        for name, there in names.items():
            file[name] = h5py.ExternalLink(str(target), there)


def view(path, sources, name="x"):
    """One dataset of the first rows of several, one after the other: (file, dataset, rows)."""
    layout = h5py.VirtualLayout(shape=(N, 3, 2), dtype=np.float32)
    at = 0
    for file, dataset, count in sources:
        layout[at:at + count] = h5py.VirtualSource(str(file), dataset, shape=(N, 3, 2))[:count]
        at += count
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset(name, layout, fillvalue=-5)


with Scratch() as scratch:
    far = scratch / "far/away"
    far.mkdir(parents=True)
    plain(far / "there.h5")
    plain(far / "behind.h5", userblock_size=1024)
    linking(scratch / "absolute.h5", far / "there.h5", x="/x", y="/y", c="/chunked", s="swapped", g="/group", m="maxed")
    linking(scratch / "relative.h5", "far/away/there.h5", x="/x", y="/y", c="/chunked", g="/group")
    linking(scratch / "behind.h5", "far/away/behind.h5", x="/x", y="/y", c="/chunked")
    linking(scratch / "twice.h5", "relative.h5", x="/x", y="/y", c="/c", g="/g")
    linking(scratch / "thrice.h5", "twice.h5", x="/g/x", y="/y", c="/c")
    linking(scratch / "by-prefix.h5", "there.h5", x="/x", y="/y", c="/chunked")
    (scratch / "near").mkdir()
    (scratch / "near/by-symlink.h5").symlink_to(scratch / "relative.h5")
    with h5py.File(scratch / "soft.h5", "w") as file:
        file["x"] = h5py.SoftLink("/out/x")
        file["y"] = h5py.SoftLink("/real")
        file["c"] = h5py.SoftLink("/out/chunked")
        file["out"] = h5py.ExternalLink("far/away/there.h5", "/")
        file["real"] = Y
    with h5py.File(far / "big.h5", "w") as file:
        file["x"], file["y"] = BIG, np.zeros(5000, np.int64)
    linking(scratch / "big.h5", "far/away/big.h5", x="/x", y="/y")

    read = [(scratch / name, "x", "y", X) for name in
            ("absolute.h5", "relative.h5", "behind.h5", "twice.h5", "soft.h5", "near/by-symlink.h5")]
    read += [(scratch / name, "c", "y", X) for name in
             ("absolute.h5", "relative.h5", "behind.h5", "twice.h5", "soft.h5", "thrice.h5")]
    read += [(scratch / "absolute.h5", "s", "y", X), (scratch / "absolute.h5", "g/x", "g/y", X + 1),
             (scratch / "relative.h5", "g/x", "y", X + 1), (scratch / "twice.h5", "g/x", "y", X + 1),
             (scratch / "thrice.h5", "x", "y", X + 1), (scratch / "absolute.h5", "m", "y", X),
             (f"{far}/there.h5,{scratch}/twice.h5,{scratch}/soft.h5", "x", "y", np.concatenate([X] * 3)),
             (scratch / "big.h5", "x", "y", BIG)]

    # Virtual datasets: of plain, chunked and linked datasets, of views, of blocks in files with numbers, of the file itself.
    plain(scratch / "own.h5")
    view(scratch / "own.h5", [(".", "x", 20), (".", "group/x", 20)], name="v")
    view(scratch / "view.h5", [(far / "there.h5", "x", 30), ("far/away/behind.h5", "chunked", 10)])
    view(scratch / "of-links.h5", [("twice.h5", "c", 30), ("soft.h5", "x", 10)])
    view(scratch / "of-views.h5", [("view.h5", "x", 40)])
    for i in range(4):
        with h5py.File(scratch / f"block-{i}.h5", "w") as file:
            file["x"] = X[10 * i:10 * i + 10]
    space = h5py.h5s.create_simple((10, 3, 2), (h5py.h5s.UNLIMITED, 3, 2))
    space.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (10, 3, 2), (10, 3, 2))
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_virtual(space, b"block-%b.h5", b"x", h5py.h5s.create_simple((10, 3, 2)))
    with h5py.File(scratch / "blocks.h5", "w") as file:
        h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, space, creation)
    for name in ("view.h5", "of-links.h5", "of-views.h5", "blocks.h5"):
        with h5py.File(scratch / name, "a") as file:
            file["y"] = Y
    of_view = np.concatenate([X[:30], X[:10]])
    read += [(scratch / "own.h5", "v", "y", np.concatenate([X[:20], X[:20] + 1])),
             (scratch / "view.h5", "x", "y", of_view), (scratch / "of-links.h5", "x", "y", of_view),
             (scratch / "of-views.h5", "x", "y", of_view), (scratch / "blocks.h5", "x", "y", X)]

    # Raw values in files of their own.
    (scratch / "one.raw").write_bytes(bytes(100) + X.tobytes())
    (scratch / "two.raw").write_bytes(X.tobytes()[:300])
    (scratch / "three.raw").write_bytes(X.tobytes()[300:])
    with h5py.File(scratch / "raw.h5", "w") as file:
        file.create_dataset("one", X.shape, X.dtype, external=[(scratch / "one.raw", 100, h5py.h5f.UNLIMITED)])
        file.create_dataset("more", X.shape, X.dtype, external=[(scratch / "two.raw", 0, 300), (scratch / "three.raw", 0, 9000)])
        file["y"] = Y
    read += [(scratch / "raw.h5", "one", "y", X), (scratch / "raw.h5", "more", "y", X)]

    def labels(values):
        return np.zeros(len(values), np.int64) if len(values) == 5000 else np.resize(Y, len(values))

    found = answers([question[:3] for question in read])
    for (files, inputs, targets, values), answer in zip(read, found):
        check(isinstance(answer, bytes), f"{files} {inputs}: {answer}")
        check(answer == handed_out(values, False) + handed_out(labels(values), True), f"{files} {inputs}: every value")
    (prefixed,) = answers([(scratch / "by-prefix.h5", "c", "y")], env={"HDF5_EXT_PREFIX": f"/nowhere:{far}"})
    check(prefixed == handed_out(X, False) + handed_out(Y, True), f"a link by HDF5_EXT_PREFIX: {prefixed[:200]}")

    # What is not there is an error, and said by its name: never fill values, never another file's bytes.
    os.rename(far / "there.h5", far / "gone.h5")
    os.rename(scratch / "block-0.h5", scratch / "no-block.h5")
    with h5py.File(scratch / "short.h5", "w") as file:
        file["x"] = X[:25]
    view(scratch / "of-short.h5", [("short.h5", "x", 40)])
    view(scratch / "of-part.h5", [("short.h5", "x", 30)])
    view(scratch / "of-less.h5", [("short.h5", "x", 20)])
    view(scratch / "of-nothing.h5", [("short.h5", "nothing", 40)])
    view(scratch / "ring-a.h5", [("ring-b.h5", "x", 40)])
    view(scratch / "ring-b.h5", [("ring-a.h5", "x", 40)])
    linking(scratch / "no-object.h5", "short.h5", x="/nothing")
    linking(scratch / "itself.h5", "itself.h5", x="/x")
    linking(scratch / "circle-a.h5", "circle-b.h5", x="/g/x", g="/g")
    linking(scratch / "circle-b.h5", "circle-a.h5", x="/x", g="/g")
    view(scratch / "of-circle.h5", [("itself.h5", "x", 40)])
    with h5py.File(scratch / "soft-nowhere.h5", "w") as file:
        file["x"] = h5py.SoftLink("/nowhere/at/all")
    for name in ("of-short.h5", "of-part.h5", "of-less.h5", "of-nothing.h5", "ring-a.h5", "no-object.h5", "soft-nowhere.h5",
                 "itself.h5", "circle-a.h5", "of-circle.h5"):
        with h5py.File(scratch / name, "a") as file:
            file["y"] = Y
    os.mkfifo(scratch / "pipe")  # whoever opens it waits for ever
    linking(scratch / "to-pipe.h5", scratch / "pipe", x="/x", g="/g")
    linking(scratch / "labels-of-pipe.h5", scratch / "pipe", y="/y")
    view(scratch / "of-pipe.h5", [(scratch / "pipe", "x", 40)])
    with h5py.File(scratch / "labels-of-pipe.h5", "a") as file:
        file["x"] = X
        file.create_dataset("raw", X.shape, X.dtype, external=[(scratch / "pipe", 0, h5py.h5f.UNLIMITED)])
    for name in ("to-pipe.h5", "of-pipe.h5"):
        with h5py.File(scratch / name, "a") as file:
            file["y"] = Y
    os.truncate(scratch / "one.raw", 400)
    os.remove(scratch / "three.raw")
    refused = [("absolute.h5", "x", "66", "x of ", "there.h5", "is a link to"),
               ("relative.h5", "g/x", "66", "g of ", "far/away/there.h5"),
               ("twice.h5", "x", "66", "far/away/there.h5"),
               ("view.h5", "x", "66", "is a view of dataset x in ", "there.h5"),
               ("of-views.h5", "x", "66", "there.h5"),
               ("of-links.h5", "x", "66", "there.h5"),
               ("blocks.h5", "x", "66", "block-0.h5"),
               ("of-short.h5", "x", "65", "short.h5", "lacks elements that the view shows"),
               ("of-part.h5", "x", "65", "short.h5", "lacks elements that the view shows"),
               ("of-less.h5", "x", "65", "of its elements have no source dataset"),
               ("of-nothing.h5", "x", "66", "view of dataset nothing in ", "source dataset does not exist in ", "short.h5"),
               ("ring-a.h5", "x", "65", "refer to each other"),
               ("no-object.h5", "x", "66", "short.h5 has no", "it has x"),
               ("itself.h5", "x", "65", "itself.h5", "links form a cycle"),
               ("circle-a.h5", "x", "65", "circle-", "links form a cycle"),
               ("of-circle.h5", "x", "65", "itself.h5", "links form a cycle"),
               ("soft-nowhere.h5", "x", "66", "is a link to /nowhere/at/all", "does not exist"),
               ("to-pipe.h5", "x", "66", "is a link to /x", "it is a pipe"),
               ("to-pipe.h5", "g/x", "66", "is a link to /g", "it is a pipe"),
               ("labels-of-pipe.h5", "x", "66", "is a link to /y", "it is a pipe"),
               ("labels-of-pipe.h5", "raw", "66", "has its bytes in another file", "pipe"),
               ("of-pipe.h5", "x", "66", "is a view of dataset x", "it is a pipe"),
               ("raw.h5", "one", "65", "one.raw", "cut short"),
               ("raw.h5", "more", "66", "three.raw", "HDF5_EXTFILE_PREFIX")]
    found = answers([(scratch / name, inputs, "y") for name, inputs, *_ in refused])
    for (name, inputs, code, *phrases), answer in zip(refused, found):
        check(isinstance(answer, str) and answer.startswith(code), f"{name} {inputs}: {answer[:300]}")
        for phrase in phrases:
            check(phrase in answer, f"{name} {inputs}: {phrase!r} is missing in: {answer}")
    for command in some(("info", "verify")):
        run(["data", command, scratch / "view.h5", "--inputs", "x", "--targets", "y"]).expect(66, "there.h5")
    run(["data", "import", "hdf5", scratch / "view.h5", scratch / "out.h5", "--inputs", "x", "--targets", "y"]).expect(
        66, "there.h5")
    check(not (scratch / "out.h5").exists(), "no import of fill values")
    os.rename(far / "gone.h5", far / "there.h5")
    run(["data", "import", "hdf5", scratch / "of-views.h5", scratch / "out.h5", "--inputs", "x", "--targets",
         "y"]).expect(0)
    with h5py.File(scratch / "out.h5") as file:
        check(np.array_equal(file["inputs"][:], of_view), "an import of a view of views")
    for name, *phrases in some((("view.h5", "a view of datasets in ", "behind.h5"), ("twice.h5", "in ", " as /x"))):
        run(["data", "info", scratch / name, "--inputs", "x", "--targets", "y"]).expect(0, "there.h5", *phrases)
        run(["data", "verify", scratch / name, "--inputs", "x", "--targets", "y"]).expect(0, "some samples are stored in ", "there.h5")

    # A run learns the same from links, from views and from the files themselves, through every cache.
    def dressed(path, source, make):
        with h5py.File(source) as real, h5py.File(path, "w") as file:
            for name in ("classes", "mean", "std"):
                file.attrs[name] = real.attrs[name]
            make(file, real)

    shutil.copyfile(DATA / "test.h5", far / "set.h5")
    dressed(scratch / "links.h5", far / "set.h5", lambda file, _: [
        file.__setitem__(name, h5py.ExternalLink("far/away/set.h5", name)) for name in ("inputs", "targets")])

    def views(file, real):
        for name in ("inputs", "targets"):
            layout = h5py.VirtualLayout(shape=real[name].shape, dtype=real[name].dtype)
            layout[:] = h5py.VirtualSource("far/away/set.h5", name, shape=real[name].shape)
            file.create_virtual_dataset(name, layout)

    dressed(scratch / "views.h5", far / "set.h5", views)
    steps = ("--train.steps", 4, "--data.validation", "", "--run.replicas", 2, "--monitor.tensorboard", "false")
    ranks = 2 if LONG else 1
    train(scratch / "run", *steps, "--data.train", far / "set.h5", ranks=ranks).expect(0)
    for name, cache in some([(name, cache) for name in ("links", "views")
                             for cache in ("none", "memory", f"local:{scratch}/near")]):
        directory = scratch / f"run-{name}-{cache.split(':')[0]}"
        train(directory, *steps, "--data.train", scratch / f"{name}.h5", "--data.cache", cache).expect(0)
        # Files of others have no checksums, by which a data set of ours is known.
        difference = run(["checkpoint", "diff", checkpoints(scratch / "run")[-1], checkpoints(directory)[-1]]).text
        state = difference.split("differing records (not part of the state)")[0].splitlines()
        check(len(state) == 1 and state[0].startswith("data: "), f"{directory}: the same state\n{difference}")
        if cache.startswith("local"):
            check(any("set.h5" in path.name for path in (scratch / "near").iterdir()), "what a link leads to is copied")
    measured = {run(["evaluate", scratch / "run/deck.ini", checkpoints(scratch / "run")[-1], "--data.test", file],
                    ranks).expect(0).text.split("loss")[1].split()[0] for file in
                (far / "set.h5", *some((scratch / "links.h5", scratch / "views.h5")))}
    check(len(measured) == 1, f"the same loss of each: {measured}")
    os.rename(far / "set.h5", far / "moved.h5")
    for name in some(("links", "views")):
        train(scratch / "none", *steps, "--data.train", scratch / f"{name}.h5", ranks=ranks).expect(
            66, "far/away/set.h5")
print(f"links: {len(read) + 1} ways to a dataset, {len(refused)} that lead nowhere")
