"""Files of other programs, made byte by byte: PNG of every form, sound, video, IDX."""
import math
import struct
import zlib

PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(values, depth, colour, interlaced=False, chunks=b""):
    """A PNG of values[y][x] = the numbers of a pixel, of `depth` bits each and a colour type of PNG's."""
    height, width = len(values), len(values[0])

    def rows(x0, y0, dx, dy):
        raw = b""
        for y in range(y0, height, dy):
            bits = "".join(format(number, f"0{depth}b") for pixel in values[y][x0::dx] for number in pixel)
            if bits:
                bits += "0" * (-len(bits) % 8)
                raw += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
        return raw
    raw = b"".join(rows(*step) for step in PASSES) if interlaced else rows(0, 0, 1, 1)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + chunks +
            png_chunk(b"IDAT", zlib.compress(raw)) + png_chunk(b"IEND", b""))


# A gray JPEG of 8 x 8 pixels with one colour: baseline, each table as short as it can be.
JPEG = (b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\xff\xdb\0\x43\0" + b"\1" * 64 +
        b"\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0" +
        b"\xff\xc4\0\x14\0\1" + b"\0" * 15 + b"\0" +
        b"\xff\xc4\0\x14\x10\1" + b"\0" * 15 + b"\0" +
        b"\xff\xda\0\x08\1\1\0\0\x3f\0\x3f\xff\xd9")


def wav(values, rate=16000, tone=0.3):
    """Sixteen bits a value: a tone, or the values of a list."""
    numbers = values if isinstance(values, list) else [8000 * math.sin(tone * i) for i in range(values)]
    data = b"".join(struct.pack("<h", int(number)) for number in numbers)
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16) + b"data" +
            struct.pack("<I", len(data)) + data)


def avi(frames, picture=JPEG):
    """A video of that many JPEG frames of 8 x 8 pixels."""
    def chunk(kind, data):
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    def listed(kind, data):
        return chunk(b"LIST", kind + data)
    main = struct.pack("<14I", 40000, 0, 0, 0x10, frames, 0, 1, len(picture), 8, 8, 0, 0, 0, 0)
    stream = struct.pack("<4s4sIHHIIIIIIiIHHHH", b"vids", b"MJPG", 0, 0, 0, 0, 1, 25, 0, frames,
                         len(picture), -1, 0, 0, 0, 8, 8)
    form = struct.pack("<IiiHH4sIiiII", 40, 8, 8, 1, 24, b"MJPG", 192, 0, 0, 0, 0)
    header = chunk(b"avih", main) + listed(b"strl", chunk(b"strh", stream) + chunk(b"strf", form))
    return chunk(b"RIFF", b"AVI " + listed(b"hdrl", header) +
                 listed(b"movi", chunk(b"00dc", picture) * frames))


def mkv(frames, picture=JPEG):
    """The same in Matroska, a cluster for each frame."""
    def element(name, data):
        return bytes.fromhex(name) + struct.pack(">Q", 1 << 56 | len(data)) + data

    def number(name, value):
        return element(name, struct.pack(">Q", value))
    head = element("1a45dfa3", number("4286", 1) + number("42f7", 1) + number("42f2", 4) +
                   number("42f3", 8) + element("4282", b"matroska") + number("4287", 4) + number("4285", 2))
    info = element("1549a966", number("2ad7b1", 1000000) + element("4489", struct.pack(">d", 40.0 * frames)))
    track = element("ae", number("d7", 1) + number("73c5", 1) + number("83", 1) + element("86", b"V_MJPEG") +
                    element("e0", number("b0", 8) + number("ba", 8)))
    clusters = b"".join(element("1f43b675", number("e7", 40 * i) + element("a3", b"\x81\0\0\x80" + picture))
                        for i in range(frames))
    return head + element("18538067", info + element("1654ae6b", track) + clusters)


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + values
