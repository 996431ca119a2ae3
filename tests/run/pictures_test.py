"""Imported pictures are those that Pillow reads: PNG of every form, JPEG of several, and what is neither is named.
Values of 16 bits are divided by 257 and rounded, where Pillow takes the high byte or clips."""
import io
import random
import resource
import struct
import zlib

import h5py
import numpy as np
from PIL import Image, ImageCms

import media
from harness import SEED, Scratch, check, run

WIDTH, HEIGHT = 11, 9
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PROFILE = media.png_chunk(b"iCCP", b"x\0\0" + zlib.compress(
    ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()))
EXTRAS = {"plain": b"", "linear": media.png_chunk(b"gAMA", struct.pack(">I", 100000)),
          "gamma": media.png_chunk(b"gAMA", struct.pack(">I", 45455)),
          "srgb": media.png_chunk(b"sRGB", b"\0"), "profile": PROFILE,
          "text": media.png_chunk(b"tEXt", b"Title\0a picture")}
draw = random.Random(SEED)


def transparency(colour, depth, palette):
    if colour == 0:
        return struct.pack(">H", draw.randrange(2 ** depth))
    return struct.pack(">HHH", 1, 2, 3) if colour == 2 else bytes(draw.randrange(256) for _ in palette[:5])


def expected(values, depth, colour, palette, trns):
    """The RGBA that the file says, 8 bits a channel."""
    most = 2 ** depth - 1

    def pixel(numbers):
        if colour == 3:
            at = numbers[0]
            return (*palette[at], trns[at] if at < len(trns) else 255)
        colours = numbers[:3] if colour in (2, 6) else [numbers[0]] * 3
        opaque = numbers[-1] if colour in (4, 6) else most
        if colour in (0, 2) and trns and list(numbers) == list(struct.unpack(f">{len(trns) // 2}H", trns)):
            opaque = 0
        return tuple((2 * 255 * number + most) // (2 * most) for number in (*colours, opaque))
    return np.array([[pixel(numbers) for numbers in row] for row in values], dtype="u1")


def corpus(folder):
    """Name, expected RGBA, and whether Pillow reads all 8 bits of colours, and of transparency."""
    folder.mkdir(parents=True)
    made = []
    for colour, depths in DEPTHS.items():
        for depth in depths:
            for interlaced in (False, True):
                for extra, chunk in {**EXTRAS, "transparent": None}.items():
                    if chunk is None and colour in (4, 6):
                        continue
                    palette = [tuple(draw.randrange(256) for _ in range(3)) for _ in range(min(2 ** depth, 256))]
                    chunks, trns = chunk or b"", b""
                    if colour == 3:
                        chunks += media.png_chunk(b"PLTE", b"".join(map(bytes, palette)))
                    if chunk is None:
                        trns = transparency(colour, depth, palette)
                        chunks += media.png_chunk(b"tRNS", trns)
                    values = [[[draw.randrange(2 ** depth) for _ in range(CHANNELS[colour])]
                               for _ in range(WIDTH)] for _ in range(HEIGHT)]
                    name = f"{len(made)}-{colour}-{depth}-{extra}{'-interlaced' * interlaced}.png"
                    (folder / name).write_bytes(media.png(values, depth, colour, interlaced, chunks))
                    # Pillow compares a transparent gray of few bits with the 8 bits it made of a pixel.
                    made.append((name, expected(values, depth, colour, palette, trns), depth <= 8,
                                 depth == 8 or not trns or colour == 3))
    return made


def imported(source, out, *options):
    run(["data", "import", "images", source, out, *options]).expect(0)
    with h5py.File(out) as file:
        return np.moveaxis(file["inputs"][:], 1, 3)


def on_black(rgba):
    return (rgba[..., :3].astype(int) * rgba[..., 3:] + 127) // 255


def check_png(scratch):
    made = corpus(scratch / "png/class")
    check(len(made) > 150, "a corpus")
    dropped = imported(scratch / "png", scratch / "drop.h5")
    blended = imported(scratch / "png", scratch / "blend.h5", "--alpha", "blend")
    kept = imported(scratch / "png", scratch / "keep.h5", "--alpha", "keep")
    gray = imported(scratch / "png", scratch / "gray.h5", "--gray", "--alpha", "keep")
    check(len(dropped) == len(made), "all were taken")
    for i, (name, rgba, comparable, transparency_too) in enumerate(made):
        check((kept[i] == rgba).all(), f"{name} with its transparency")
        check((dropped[i] == rgba[..., :3]).all(), f"{name} without it")
        check((blended[i] == on_black(rgba)).all(), f"{name} before black")
        check((gray[i][..., 1] == rgba[..., 3]).all(), f"{name} in gray with its transparency")
        with Image.open(scratch / "png/class" / name) as picture:
            if comparable:
                check((np.array(picture.convert("RGB")) == dropped[i]).all(), f"{name} as Pillow reads it")
            if comparable and transparency_too:
                black = Image.new("RGB", picture.size)
                black.paste(picture.convert("RGB"), mask=picture.convert("RGBA").getchannel("A"))
                check((np.array(black) == blended[i]).all(), f"{name} as Pillow pastes it on black")
    print(f"{len(made)} PNG (seed {SEED})")


def check_jpeg(scratch):
    folder = scratch / "jpeg/class"
    folder.mkdir(parents=True)
    noise = np.random.default_rng(SEED).integers(0, 256, (HEIGHT * 3, WIDTH * 3, 4), dtype="u1")
    turned = Image.Exif()
    turned[0x112] = 6
    for name, mode, options in (
            ("gray", "L", {}), ("colour", "RGB", {}), ("progressive", "RGB", {"progressive": True}),
            ("full", "RGB", {"subsampling": 0}), ("half", "RGB", {"subsampling": 1}),
            ("inks", "CMYK", {}), ("turned", "RGB", {"exif": turned})):
        picture = Image.fromarray(noise[..., 0] if mode == "L" else noise[..., :len(mode)], mode)
        picture.save(folder / f"{name}.jpg", quality=90, **options)
    values = imported(scratch / "jpeg", scratch / "jpeg.h5")
    for found, path in zip(values, sorted(folder.iterdir())):
        with Image.open(path) as picture:
            check((np.array(picture.convert("RGB")) == found).all(), f"{path.name} as Pillow reads it")


def check_others(scratch):
    """What is neither PNG nor JPEG is named, by its ending or by how it begins."""
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    source = scratch / "others"
    for name in ("a", "b"):
        (source / name).mkdir(parents=True)
        picture.save(source / name / "good.png")
    picture.save(source / "a/one.gif")
    picture.save(source / "a/two.bmp")
    run(["data", "import", "images", source, scratch / "others.h5"]).expect(
        0, "skipped 1 .gif file, such as", "skipped 1 .bmp", "2 samples")
    (source / "b/good.png").rename(source / "b/good.gif")
    run(["data", "import", "images", source, scratch / "x.h5"]).expect(
        65, f"{source}/b: this class or set has no file", "2 .gif")
    gif = io.BytesIO()
    picture.save(gif, "GIF")
    (source / "b/good.png").write_bytes(gif.getvalue())
    run(["data", "import", "images", source, scratch / "x.h5"]).expect(65, "good.png: it is a GIF file")
    (source / "b/good.png").write_bytes(b"")
    run(["data", "import", "images", source, scratch / "x.h5"]).expect(65, "good.png: it is empty")


def check_bomb(scratch):
    """A small file that says it is huge costs no memory."""
    header = struct.pack(">IIBBBBB", 100000, 100000, 8, 2, 0, 0, 0)
    (scratch / "bomb/a").mkdir(parents=True)
    (scratch / "bomb/a/big.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + media.png_chunk(b"IHDR", header) +
        media.png_chunk(b"IDAT", b"x" * 1000) + media.png_chunk(b"IEND", b""))
    run(["data", "import", "images", scratch / "bomb", scratch / "x.h5"]).expect(
        65, "big.png: its header states a larger size than a PNG can have")
    check(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 400 * 1024, "bounded memory")


with Scratch() as scratch:
    check_bomb(scratch)
    check_png(scratch)
    check_jpeg(scratch)
    check_others(scratch)
