"""Imports damaged files: every one is taken or refused with a message; nothing crashes or hangs.

A batch of files goes through one import with --skip-bad, as a folder of images or recordings would;
what is refused there is listed. IDX files and tables are imported one by one.
"""
import argparse
import math
import pathlib
import random
import shutil
import struct
import sys
import zlib

from harness import Scratch, run

BATCH = 100
LIMIT = 120  # seconds for a batch


def png(width, height, pixels):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + pixels[y * width * 3:(y + 1) * width * 3] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# A gray JPEG of 8 x 8 pixels with one colour: baseline, each table as short as it can be.
JPEG = (b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\xff\xdb\0\x43\0" + b"\1" * 64 +
        b"\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0" +
        b"\xff\xc4\0\x14\0\1" + b"\0" * 15 + b"\0" +
        b"\xff\xc4\0\x14\x10\1" + b"\0" * 15 + b"\0" +
        b"\xff\xda\0\x08\1\1\0\0\x3f\0\x3f\xff\xd9")


def wav(values):
    data = b"".join(struct.pack("<h", int(8000 * math.sin(0.3 * i))) for i in range(values))
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data" +
            struct.pack("<I", len(data)) + data)


def avi(frames):
    """A video of that many JPEG frames of 8 x 8 pixels."""
    def chunk(kind, data):
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    def listed(kind, data):
        return chunk(b"LIST", kind + data)
    main = struct.pack("<14I", 40000, 0, 0, 0x10, frames, 0, 1, len(JPEG), 8, 8, 0, 0, 0, 0)
    stream = struct.pack("<4s4sIHHIIIIIIiIHHHH", b"vids", b"MJPG", 0, 0, 0, 0, 1, 25, 0, frames,
                         len(JPEG), -1, 0, 0, 0, 8, 8)
    picture = struct.pack("<IiiHH4sIiiII", 40, 8, 8, 1, 24, b"MJPG", 192, 0, 0, 0, 0)
    header = chunk(b"avih", main) + listed(b"strl", chunk(b"strh", stream) + chunk(b"strf", picture))
    return chunk(b"RIFF", b"AVI " + listed(b"hdrl", header) +
                 listed(b"movi", chunk(b"00dc", JPEG) * frames))


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + values


def damaged(draw, good):
    """Some changed bytes, a piece taken out or doubled, or an end cut off."""
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


def expect_clean(result, what):
    if result.code not in (0, 65, 66) or (result.code and "lockstep: first cause:" not in result.text):
        sys.exit(f"{what}: exit code {result.code}\n{result.text}")


def folder_batch(draw, scratch, kind, goods, options):
    tree = scratch / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "class").mkdir(parents=True)
    ending, good = goods[0]
    (tree / "class" / f"aaa{ending}").write_bytes(good)
    for i in range(BATCH):
        ending, good = draw.choice(goods)
        (tree / "class" / f"{i:04}{ending}").write_bytes(damaged(draw, good))
    result = run(["data", "import", kind, tree, scratch / "out.h5", "--skip-bad", *options],
                 limit=LIMIT)
    expect_clean(result, kind)
    if result.code == 0:
        run(["data", "verify", scratch / "out.h5"]).expect(0)
    return BATCH


def single(draw, scratch, kind, good):
    source = scratch / "source"
    source.write_bytes(damaged(draw, good))
    words = {"idx": ["idx", f"{source},{scratch / 'labels'}"],
             "series": ["series", source, "--target", "kind"]}[kind]
    result = run(["data", "import", words[0], words[1], scratch / "out.h5", *words[2:]], limit=LIMIT)
    expect_clean(result, kind)
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--videos", nargs="*", type=pathlib.Path, default=[], help="real ones")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    pixels = bytes(draw.randrange(256) for _ in range(16 * 12 * 3))
    pictures = [(".png", png(16, 12, pixels)), (".jpg", JPEG)]
    videos = [(".avi", avi(5))] + [(path.suffix, path.read_bytes()) for path in options.videos]
    table = b'length,width,kind\n1,2.5,"a"\n3,4e-1,b\n"5",6,"a ""b"""\n'
    done = 0
    with Scratch() as scratch:
        (scratch / "labels").write_bytes(idx([3], bytes([0, 1, 2])))
        while done < options.inputs:
            kind = draw.randrange(3)
            if kind == 2:
                done += folder_batch(draw, scratch, "video", videos,
                                     ["--frames", "3", "--size", "8x8"])
            elif kind == 0:
                done += folder_batch(draw, scratch, "images", pictures, ["--size", "8x8"])
            else:
                done += folder_batch(draw, scratch, "speech", [(".wav", wav(600))], ["--raw"])
            for _ in range(3):
                done += single(draw, scratch, "idx", idx([3, 2, 2], bytes(range(12))))
                done += single(draw, scratch, "series", table)
    print(f"{done} damaged inputs, none of which did harm (seed {options.seed})")


main()
