"""Imports damaged files: every one is taken or refused with a message; nothing crashes or hangs, and no error is one of
the program's own.

A batch of files goes through one import with --skip-bad, as a folder of images or recordings would;
what is refused there is listed. IDX files, HDF5 files and tables are imported one by one.
"""
import argparse
import gzip
import io
import math
import pathlib
import random
import shutil
import sys

import h5py
import numpy as np
from PIL import Image

import media
from harness import LONG, SEED, Scratch, run

BATCH = 100
LIMIT = 120  # seconds for a batch


def pictures(draw):
    """PNG of every type and interlaced, JPEG of several."""
    made = [(".jpg", media.JPEG)]
    for colour, channels, depth in ((0, 1, 16), (2, 3, 8), (2, 3, 16), (3, 1, 4), (4, 2, 8), (6, 4, 8)):
        values = [[[draw.randrange(2 ** depth) for _ in range(channels)] for _ in range(16)] for _ in range(12)]
        palette = media.png_chunk(b"PLTE", draw.randbytes(48)) + media.png_chunk(b"tRNS", b"\0\x7f")
        made.append((".png", media.png(values, depth, colour, draw.random() < 0.5, palette if colour == 3 else b"")))
    for mode, options in (("RGB", {"progressive": True}), ("CMYK", {}), ("L", {})):
        file = io.BytesIO()
        Image.frombytes(mode, (16, 12), draw.randbytes(16 * 12 * len(mode))).save(
            file, "JPEG", **options)
        made.append((".jpg", file.getvalue()))
    return made


def tables(draw):
    """Tables with the words of their import."""
    walk = "".join(f"2006-01-{day:02} 00:00:{draw.randrange(60):02},{draw.gauss(0, 1):.6g},{draw.randrange(9)},{name}\n"
                   for day in range(1, 9) for name in ("IBM", "AA"))
    return [(b'length,width,kind\n1,2.5,"a"\n3,4e-1,b\n"5",6,"a ""b"""\n', ["--target", "kind"]),
            (("Date,Close,Volume,Name\n" + walk).encode(), ["--time", "Date", "--group", "Name", "--fill-forward"]),
            (b"a\tb\n1\t2\n3\t4\n", ["--target", "b", "--regression", "--type", "f64"])]


def hdf5(draw, scratch):
    path = scratch / "good.h5"
    values = np.frombuffer(draw.randbytes(240), "u1").reshape(6, 40)
    with h5py.File(path, "w") as file:
        file.create_dataset("inputs", data=values, chunks=(2, 40), compression="gzip")
        file["targets"] = np.arange(6) % 3
        file.attrs["classes"] = ["a", "b", "c"]
    return path.read_bytes()


def damaged(draw, good):
    """Some changed bytes, a part taken out or doubled, or an end cut off."""
    bytes_ = bytearray(good)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at = draw.randrange(len(bytes_)) if bytes_ else 0
        kind = draw.randrange(6)
        if kind < 3 and bytes_:
            bytes_[at] = draw.choice([0, 1, 0x7f, 0x80, 0xff, bytes_[at] ^ (1 << draw.randrange(8))])
        elif kind == 3:
            del bytes_[at:]
        elif kind == 4:
            del bytes_[at:at + draw.randrange(1, 9)]
        else:
            bytes_[at:at] = bytes_[at:at + draw.randrange(1, 9)]
    return bytes(bytes_)


def expect_clean(result, what, scratch):
    no_column = result.code == 64 and "has no such column" in result.text  # the table lost what an option names
    if not (result.code in (0, 65, 66) or no_column) or (result.code and "lockstep: root cause:" not in result.text and
                                          "lockstep: root cause:" not in result.text):
        sys.exit(f"{what}: exit code {result.code}\n{result.text}")
    if (scratch / "out.h5.importing").exists():
        sys.exit(f"{what}: parts are left after exit code {result.code}\n{result.text}")
    if result.code == 0:
        run(["data", "verify", scratch / "out.h5"]).expect(0)


def folder_batch(draw, scratch, kind, goods, options):
    tree = scratch / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "class").mkdir(parents=True)
    ending, good = goods[0]
    (tree / "class" / f"aaa{ending}").write_bytes(good)
    for i in range(BATCH):
        ending, good = draw.choice(goods)
        (tree / "class" / f"{i:04}{ending}").write_bytes(damaged(draw, good))
    result = run(["data", "import", kind, tree, scratch / "out.h5", "--skip-bad", "--overwrite", *options],
                 limit=LIMIT)
    expect_clean(result, kind, scratch)
    return BATCH


def single(draw, scratch, kind, good, options):
    source = scratch / "source"
    source.write_bytes(damaged(draw, good))
    named = f"{source},{scratch / 'labels'}" if kind == "idx" else source
    result = run(["data", "import", kind, named, scratch / "out.h5", "--overwrite", *options], limit=LIMIT)
    expect_clean(result, f"{kind} {options}", scratch)
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=1000 if LONG else 200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--videos", nargs="*", type=pathlib.Path, default=[], help="real ones")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    draw = random.Random(options.seed)
    videos = [(".avi", media.avi(5)), (".mkv", media.mkv(5))]
    videos += [(path.suffix, path.read_bytes()) for path in options.videos]
    sounds = [(".wav", media.wav(600)), (".wav", media.wav(600, 16000, 0.01))]
    images = media.idx([3, 2, 2], bytes(range(12)))
    done = 0
    with Scratch() as scratch:
        (scratch / "labels").write_bytes(media.idx([3], bytes([0, 1, 2])))
        singles = [("idx", images, []), ("idx", gzip.compress(images), []), ("hdf5", hdf5(draw, scratch), [])]
        singles += [("series", table, words) for table, words in tables(draw)]
        folders = [("images", pictures(draw), ["--size", "8x8", "--alpha", "blend"]),
                   ("speech", sounds, ["--raw"]),
                   ("video", videos, ["--frames", "3", "--size", "8x8"])]
        for i in range(math.ceil(options.inputs / (BATCH + 2 * len(singles)))):
            done += folder_batch(draw, scratch, *folders[i % len(folders)])
            for kind, good, words in 2 * singles:
                done += single(draw, scratch, kind, good, words)
    print(f"{done} damaged inputs, none of which did harm (seed {options.seed})")


main()
