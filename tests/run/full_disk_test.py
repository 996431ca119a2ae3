"""A disk that fills at any byte of an import, an export or a run is told, and what has its name is whole.

Each writes onto a small file system of memory, of every size in pages up to what it needs. The short form draws
some of them.
"""
import contextlib
import os
import random
import shutil
import subprocess
import sys

import h5py
import numpy

from harness import LONG, SEED, Scratch, check, checkpoints, run, same_state, some, train

PAGE = 4096
INSIDE = "LOCKSTEP_TEST_OWN_MOUNTS"
if os.environ.get(INSIDE) != "1":
    words = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    if shutil.which("unshare") is None or subprocess.run([*words, "true"]).returncode != 0:
        print("skipped: a file system of its own cannot be mounted here")
        sys.exit(77)
    os.execvpe(words[0], [*words, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})

draw = random.Random(SEED)


@contextlib.contextmanager
def disk(place, pages):
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def pages_of(place):
    information = os.statvfs(place)
    return (information.f_blocks - information.f_bfree) * information.f_frsize // PAGE


def walk(what, scratch, write, is_whole, drawn):
    """`write(directory)` on disks of all sizes: what ends well is whole, what does not says 73 or 74 once."""
    with disk(scratch / "disk", 1 << 16) as place:
        write(place).expect(0)
        enough = pages_of(place)
        check(is_whole(place), f"{what} with room enough")
    # While it is written, it may need more than what stays.
    sizes = list(range(1, 4 * enough + 8))
    # Most of those that are drawn are too small for all of it, or for that beside the parts that it is made of.
    small, large = sizes[:2 * enough], sizes[2 * enough:]
    tried = sizes if LONG else sorted(draw.sample(small, min(drawn, len(small))) + draw.sample(large, 1))
    well = 0
    for pages in tried:
        with disk(scratch / "disk", pages) as place:
            done = write(place)
            if done.code == 0:
                well += 1
                check(is_whole(place), f"{what} on {pages} pages ended well and is not whole:\n{done.text}")
            else:
                check(done.code in (73, 74), f"{what} on {pages} pages ended with {done.code}:\n{done.text}")
                check(done.text.count(" cause: ") == 1 or done.text.count("lockstep: ") == 1,
                      f"{what} on {pages} pages: not one line\n{done.text}")
    print(f"{what}: {len(tried)} sizes up to {sizes[-1]} pages, {well} with room enough")


def imports(scratch):
    numbers = numpy.random.default_rng(5)
    inputs = numbers.random((300, 40)).astype("f4")
    targets = numbers.integers(0, 5, 300)
    with h5py.File(scratch / "source.h5", "w") as file:
        file["inputs"], file["targets"] = inputs, targets
        file["rows"] = inputs
        file["rows_offsets"] = numpy.r_[0, numpy.sort(numbers.integers(0, 300, 49)), 300]
        file["classes"] = targets[:50]

    def same(file, name, values):
        return numpy.array_equal(file[name][()], values)

    def flat(place):
        with h5py.File(place / "set.h5") as file:
            return same(file, "inputs", inputs) and same(file, "targets", targets)

    def ragged(place):
        with h5py.File(place / "set.h5") as file:
            return same(file, "inputs", inputs) and same(file, "targets", targets[:50])

    def shards(place):
        parts = [h5py.File(place / f"set-{i:05d}-of-00003.h5") for i in range(3)]
        return numpy.array_equal(numpy.concatenate([part["inputs"][()] for part in parts]), inputs)

    layouts = [("flat", [], flat), ("in shards", ["--shard-samples", 100], shards),
               ("ragged", ["--inputs", "rows", "--targets", "classes"], ragged)]
    deflated = [(f"{layout} deflated", [*options, "--deflate", 4], whole) for layout, options, whole in layouts]
    for layout, options, whole in [*some(layouts), *some(deflated)]:
        def write(place, options=options):
            return run(["data", "import", "hdf5", scratch / "source.h5", place / "set.h5", *options])
        walk(f"import {layout}", scratch, write, whole, 4)


def exports(scratch, checkpoint):
    def verified(place):
        return run(["checkpoint", "verify", place / "model"]).code == 0

    for form in some(("hdf5", "safetensors", "torchscript")):
        def write(place, form=form):
            return run(["checkpoint", "export", checkpoint, place / "model", "--format", form])
        with disk(scratch / "disk", 1 << 16) as place:
            write(place).expect(0)
            expected = (place / "model").read_bytes() if (place / "model").is_file() else None

        def is_whole(place, form=form, expected=expected):
            return verified(place) if form == "hdf5" else (place / "model").read_bytes() == expected
        if expected is not None:
            walk(f"export as {form}", scratch, write, is_whole, 2)


def runs(scratch, last):
    def write(place):
        return train(place / "run", "--train.steps", 4, "--train.validate-every", 2, "--checkpoint.every-steps", 2,
                     "--checkpoint.keep", 1, ranks=2)

    def is_whole(place):
        return same_state(checkpoints(place / "run")[-1], last) and \
            run(["checkpoint", "verify", place / "run" / "best.h5"]).code == 0
    walk("run", scratch, write, is_whole, 2)


def rooms(scratch):
    """A disk with room for fewer checkpoints than are to be kept loses none of the run's steps: the oldest make room,
    in a line, and never the newest that is intact; with room for all, none goes."""
    wide = ["--model.hidden", 512, "--train.steps", 10, "--train.validate-every", 0, "--checkpoint.every-steps", 2]

    def write(place, keep, *more, env=None):
        return train(place / "run", *wide, "--checkpoint.keep", keep, *more, env=env)

    with disk(scratch / "disk", 1 << 16) as place:
        write(place, 1).expect(0)
        one = pages_of(place)
        last = scratch / "last.h5"
        shutil.copy(checkpoints(place / "run")[-1], last)
    file = -(-last.stat().st_size // PAGE)
    slack = 120  # what is claimed for a file beyond its bytes, and the growth of the log
    check(file > 2 * slack, f"checkpoints of {file} pages")
    cases = [(keep, room, mode) for keep in (2, 3) for room in range(2, keep + 2) for mode in ("true", "false")]
    for keep, room, mode in some(cases, 2):
        with disk(scratch / "disk", one + (room - 1) * file + slack) as place:
            text = write(place, keep, "--checkpoint.asynchronous", mode).expect(0).text
            told = "to write the checkpoint of step"
            check("no checkpoint of step" not in text, f"keep {keep}, room {room}: refused\n{text}")
            check((told in text) == (room <= keep), f"keep {keep}, room {room}: told\n{text}")
            left = checkpoints(place / "run")
            check(same_state(left[-1], last), f"keep {keep}, room {room}: the last one")
            check(len(left) == min(keep, room), f"keep {keep}, room {room}: {left}")
    with disk(scratch / "disk", one + slack) as place:
        text = write(place, 3).text
        left = [path.name for path in checkpoints(place / "run")]
        check(left == ["step-00000000.h5"] and "no checkpoint of step 2" in text, f"the only one: {left}\n{text}")
    with disk(scratch / "disk", one + file + slack) as place:
        env = {"LOCKSTEP_INJECT": "corrupt-checkpoint:step=8"}
        write(place, 3, env=env).expect(0)
        left = checkpoints(place / "run")
        whole = [path.name for path in left if run(["checkpoint", "verify", path]).code == 0]
        check(whole == ["step-00000006.h5", "step-00000010.h5"], f"the newest intact one stays: {left}")


with Scratch() as scratch:
    rooms(scratch)
    imports(scratch)
    train(scratch / "run", "--train.steps", 4, "--train.validate-every", 2, "--checkpoint.every-steps", 2).expect(0)
    exports(scratch, checkpoints(scratch / "run")[-1])
    runs(scratch, checkpoints(scratch / "run")[-1])
