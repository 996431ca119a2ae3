"""Whatever an import leaves out, merges or takes for something else is counted and told: quotes in tables, recordings
that no row names, headers without a length, lines that are not what they seem, folders of sets. Each way of writing a
quote is tried in each kind of table and compared with what the format says."""
import itertools
import json
import shutil
import struct

import h5py
import numpy as np

import media
from harness import Scratch, check, run, some

TEXTS = ["hello", '"hello', 'hello"', '"hello"', 'say "hi"', '"', '""', 'a ""b', "it's"]
CELLS = ["1", '"1"']


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts_in(file):
    with h5py.File(file) as data:
        names = [name.decode() for name in data.attrs["classes"]]
        at = data["targets_offsets"][:]
        targets = data["targets"][:]
        return ["".join(names[i] for i in targets[a:b]) for a, b in zip(at, at[1:])]


def speech(scratch, source, table, *options):
    return run(["data", "import", "speech", source, scratch / "speech.h5", "--transcripts", table, "--overwrite", *options])


def quotes_in_tsv(scratch, source):
    """Every row is a sample, and every quote a letter."""
    for texts in some(list(itertools.permutations(TEXTS, 3)), 4) + [('"hello', "b", 'world"')]:
        table = write(scratch / "table.tsv", "file\ttext\n" + "".join(f"{i}.wav\t{t}\n" for i, t in enumerate(texts)))
        result = speech(scratch, source, table).expect(0, "3 samples", "left out 3 of 6 files in")
        check(texts_in(scratch / "speech.h5") == list(texts), f"the texts as they stand: {texts}")
        whole = [t for t in texts if len(t) > 1 and t[0] == t[-1] == '"']
        check(("begin and end with a quote" in result.text) == bool(whole), result.text)
    table = write(scratch / "table.tsv", '"file"\t"text"\n0.wav\tx\n')
    speech(scratch, source, table).expect(65, "the column names have quotes", "TSV has no quoting")


def quotes_in_csv(scratch, source):
    for texts in some(list(itertools.permutations(TEXTS, 3)), 4):
        rows = "".join('%d.wav,"%s"\n' % (i, t.replace('"', '""')) for i, t in enumerate(texts))
        result = speech(scratch, source, write(scratch / "table.csv", "file,text\n" + rows)).expect(0, "3 samples")
        check(texts_in(scratch / "speech.h5") == list(texts), f"the texts between the quotes: {texts}")
        check("warning" not in result.text, result.text)
    rows = 'file,text\n0.wav,"hello\n1.wav,b\n2.wav,world"\n3.wav,d\n'
    speech(scratch, source, write(scratch / "table.csv", rows)).expect(
        0, "2 samples", "1 quoted field, the first on line 2, hold several lines", "left out 4 of 6 files in")
    speech(scratch, source, write(scratch / "table.csv", 'file,text\n0.wav,x\n1.wav,"hello\n2.wav,"d"\n')).expect(
        65, "table.csv, line 3", "after the closing quote of a field")
    speech(scratch, source, write(scratch / "table.csv", 'file,text\n0.wav,x\n1.wav,"hello\n2.wav,d\n')).expect(
        65, "table.csv, line 3", "a quote is not closed")
    speech(scratch, source, write(scratch / "table.csv", 'file,text\n0.wav, "x"\n')).expect(
        0, "1 field, the first on line 2, begin and end with a quote", "a blank is in front of it")


def separators(scratch):
    for mark in ";|":
        table = write(scratch / "table.csv", f"a{mark}b{mark}kind\n1,5{mark}2{mark}x\n")
        run(["data", "import", "series", table, scratch / "x.h5", "--target", "kind"]).expect(
            65, "line 1", f"a {mark} separates the column names", "commas")
    table = write(scratch / "table.csv", '"a;b",kind\n1,x\n2,y\n')
    run(["data", "import", "series", table, scratch / "semicolons.h5", "--target", "kind"]).expect(0, "2 samples")


def lists(scratch):
    """What a table does not list, of pictures and of folders of frames."""
    picture = media.png([[[1, 2, 3]]], 8, 2)
    for name in ("a/1", "a/2", "b/1"):
        write(scratch / f"pictures/{name}.png", picture)
        write(scratch / f"films/{name}/0.png", picture)
        write(scratch / f"films/{name}/1.png", picture)
    for kind, ending, options in (("images", ".png", ()), ("video", "", ("--frames", 2, "--size", "1x1"))):
        source = scratch / ("pictures" if kind == "images" else "films")
        table = write(scratch / "list.csv", f"file,label\na/1{ending},x\nb/1{ending},y\n")
        run(["data", "import", kind, source, scratch / f"{kind}.h5", "--labels", table, *options]).expect(
            0, "2 samples", f"left out 1 of 3 files in {source} that the table does not list, such as", "a/2")
        write(table, f"file,label\na/1{ending},x\na/2{ending},x\nb/1{ending},y\n")
        done = run(["data", "import", kind, source, scratch / f"{kind}.h5", "--labels", table, "--overwrite", *options])
        check("left out" not in done.expect(0, "3 samples").text, done.text)
    write(scratch / "films/b/1/2.png", picture)
    run(["data", "import", "video", scratch / "films", scratch / "clips.h5", "--frames", 2, "--size", "1x1"]).expect(
        0, "1 item, such as", "films/b/1: its last frames are in no clip, since a clip needs 2")


def sounds(scratch):
    """Headers that were written before the length was known; empty recordings; channels."""
    values = [int(9000 * np.sin(0.3 * i)) for i in range(800)]
    whole = bytearray(media.wav(values))
    source = scratch / "pipe"
    for i, (riff, data) in enumerate(itertools.product((0, 0xffffffff, 0x7ffff024, len(whole) - 8),
                                                       (0, 0xffffffff, 0x7fffffff, 0x7ffff000, 0x80000000))):
        whole[4:8], whole[40:44] = struct.pack("<I", riff), struct.pack("<I", data)
        write(source / f"a/{i:02}.wav", bytes(whole))
    run(["data", "import", "speech", source, scratch / "pipe.h5", "--raw"]).expect(0, "20 samples")
    with h5py.File(scratch / "pipe.h5") as file:
        check((file["inputs"][:].reshape(20, 800) == np.array(values, "f4") / 32768).all(), "every value of each")
    empty = media.wav([])
    tagged = empty[:4] + struct.pack("<I", len(empty) + 4) + empty[8:] + b"LIST" + struct.pack("<I", 4) + b"INFO"
    for name, bytes_ in (("empty", empty), ("tagged", tagged)):
        write(scratch / f"{name}/a/0.wav", media.wav(values))
        write(scratch / f"{name}/a/1.wav", bytes_)
        words = ["data", "import", "speech", scratch / name, scratch / f"{name}.h5", "--raw"]
        run(words).expect(65, "1.wav", "it has no values", "--skip-bad")
        run([*words, "--skip-bad"]).expect(0, "1 sample", "skipped")
    write(scratch / "cut/a/0.wav", media.wav(values)[:-10])
    run(["data", "import", "speech", scratch / "cut", scratch / "cut.h5", "--raw"]).expect(65, "cut short")
    both = [value for value in values for _ in range(2)]
    stereo = bytearray(media.wav(both))
    stereo[22:24], stereo[32:34] = struct.pack("<H", 2), struct.pack("<H", 4)
    for name in ("0", "1"):
        write(scratch / f"stereo/a/{name}.wav", bytes(stereo))
    write(scratch / "stereo/a/2.wav", media.wav(values))
    for ranks in (0, 3):
        run(["data", "import", "speech", scratch / "stereo", scratch / "stereo.h5", "--raw", "--overwrite"],
            ranks=ranks).expect(0, "3 samples", "2 items, such as", "stereo/a/0.wav: its 2 channels were averaged")


def pictures(scratch):
    """What of a picture's file is not in its values; the same of the frames of a clip."""
    def turned(order, value):
        number = ">" if order == b"MM" else "<"
        return order + struct.pack(number + "HIHHHIHH", 42, 8, 1, 274, 3, 1, value, 0)

    def jpeg(record):
        segment = b"Exif\0\0" + record
        return media.JPEG[:20] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + media.JPEG[20:]
    tag = media.png_chunk(b"eXIf", turned(b"II", 6))
    pixel, clear = [[[9, 9, 9]]], [[[9, 9, 9, 100]]]
    animated = media.png_chunk(b"acTL", struct.pack(">II", 2, 0))
    deep = "its values of 16 bits were rounded to 8 bits"
    for name, content, note, *options in (
            ("plain", media.png(pixel, 8, 2), ""), ("opaque", media.png([[[9, 9, 9, 255]]], 8, 6), ""),
            ("clear", media.png(clear, 8, 6), "its transparency was dropped"),
            ("key", media.png(pixel, 8, 2, chunks=media.png_chunk(b"tRNS", struct.pack(">HHH", 9, 9, 9))),
             "its transparency was dropped"),
            ("blended", media.png(clear, 8, 6), "", "--alpha", "blend"),
            ("kept", media.png(clear, 8, 6), "", "--alpha", "keep"),
            ("deep", media.png([[[999, 9, 9]]], 16, 2), deep),
            ("deep-clear", media.png([[[999, 9]]], 16, 4), deep + ", its transparency was dropped"),
            ("turned", media.png(pixel, 8, 2, chunks=tag), "its EXIF orientation (6) was not applied"),
            ("big", jpeg(turned(b"MM", 8)), "its EXIF orientation (8) was not applied"),
            ("little", jpeg(turned(b"II", 3)), "its EXIF orientation (3) was not applied"),
            ("upright", jpeg(turned(b"MM", 1)), ""), ("damaged", jpeg(turned(b"MM", 8)[:14]), ""),
            ("several", media.JPEG[:20] + b"\xff\xe2\0\x08MPF\0ab" + media.JPEG[20:],
             "of its pictures, only the first was taken"),
            ("animated", media.png(pixel, 8, 2, chunks=animated),
             "of its animation, only the first picture was taken")):
        end = "jpg" if content.startswith(b"\xff\xd8") else "png"
        file = write(scratch / f"images-{name}/a/{name}.{end}", content)
        text = run(["data", "import", "images", file.parents[1], scratch / f"images-{name}.h5", *options]).expect(0).text
        check(f"1 item, such as {file}: {note}" in text if note else "such as" not in text, f"{name}: {text}")
        if not options:
            write(scratch / f"frames-{name}/a/clip/1.{end}", content)
            text = run(["data", "import", "video", scratch / f"frames-{name}", scratch / f"frames-{name}.h5",
                        "--frames", 1, "--size", "1x1"]).expect(0).text
            check(f"of a frame, {note}" in text if note else "such as" not in text, f"{name}: {text}")


def lines_of_json(scratch):
    good = '{"text": "abc"}\n'
    for line, *phrases in ((b'{"text": "\\ud800"}', "not valid JSON", "surrogate", "Correct the line"),
                           (b'{"text": "a", "score": NaN}', "not valid JSON", "JSON has no NaN or Infinity"),
                           (b'{"score": -Infinity, "text": "a"}', "JSON has no NaN or Infinity"),
                           (b'{"text": "\xff"}', "not UTF-8"),
                           (b'{"text": "a"', "not valid JSON", "unexpected end of input"),
                           (b'{"text": "a"} {"text": "b"}', "not valid JSON"),
                           (b'{"txet": "a", "id": 1}', "the line has no key text; its keys are id, txet", "--text KEY"),
                           (b'{"text": 5}', "the value of the key text is not a text, but a number"),
                           (b'{"text": null}', "the value of the key text is not a text, but null"),
                           (b"{", "not valid JSON"), (b'"', "not valid JSON"),
                           (b'["a"]', "not a JSON object, but an array"),
                           (b'null', "not a JSON object, but null")):
        source = write(scratch / "lines.jsonl", good.encode() + line + b"\n" + good.encode())
        words = ["data", "import", "text", source, scratch / "lines.h5", "--vocabulary", 300, "--overwrite"]
        result = run(words).expect(65, "lines.jsonl:2", "--skip-bad" if b"\xff" not in line else "UTF-8", *phrases)
        check("Name the key" not in result.text or "--text KEY" in phrases, f"no wrong remedy: {result.text}")
        run([*words, "--skip-bad"]).expect(0, "2 samples", "skipped")
    source = write(scratch / "blank.jsonl", good + "\n\n" + json.dumps({"text": "b"}) + "\n \n")
    run(["data", "import", "text", source, scratch / "blank.h5", "--vocabulary", 300]).expect(
        0, "2 samples", "skipped: 3 blank lines")


def folders(scratch):
    picture = media.png([[[1, 2, 3]]], 8, 2)

    def tree(name, *sets):
        for one in sets:
            for kind in ("cat", "dog"):
                write(scratch / name / one / kind / "1.png", picture + one.encode())
        return scratch / name
    for names in some((("Train", "Test"), ("TRAIN", "VAL"), ("training", "testing"), ("train", "dev", "test")), 2):
        out = scratch / "-".join(names)
        run(["data", "import", "images", tree("sets-" + "-".join(names), *names), out]).expect(
            0, "train: 2 samples; cat 1, dog 1")
        check(len(list(out.iterdir())) == len(names), f"a file for each of {names}")
    run(["data", "import", "images", tree("twice", "train", "Training"), scratch / "twice.out"]).expect(
        0, "train: 4 samples", "folders Training and train both became the set train")
    source = tree("archive/data", "train", "test").parent
    run(["data", "import", "images", source, scratch / "x.h5"]).expect(
        65, "archive/data: this folder would be the only class", f"Name {source}/data as the source")


def times(scratch):
    """As psql writes them, and all that mean the same moment."""
    told = ["2024-03-01 12:00:00+00", "2024-03-01 04:00:00-08", "2024-03-01 17:30:00+0530", "2024-03-01T12:00:00Z",
            "2024-03-01 17:45:00.000+05:45", "2024-03-01 12:00"]
    table = write(scratch / "times.csv", "t,a\n" + "".join(f"{time},1\n" for time in told))
    run(["data", "import", "series", table, scratch / "times.h5", "--time", "t"]).expect(0)
    with h5py.File(scratch / "times.h5") as file:
        check((file["time"][:] == 1709294400).all(), f"one moment: {file['time'][:]}")
    for time in ("2024-03-01 12:00:00+8", "2024-03-01 12:00:00+24", "2024-03-01 12:00:00+08:"):
        write(table, f"t,a\n{time},1\n")
        run(["data", "import", "series", table, scratch / "x.h5", "--time", "t"]).expect(65, "is not a time")


def rows_and_cells(scratch):
    """Blank lines, filled cells, rounded numbers, datasets and silent recordings."""
    def series(text, *options):
        return run(["data", "import", "series", write(scratch / "cells.csv", text), scratch / "cells.h5", "--overwrite",
                    *options])
    series("a\n1\n\n3\n").expect(65, "line 3: the value in column a is empty")
    series("a\n1\n\n3\n\n\n", "--fill-forward").expect(0, "filled 1 empty cell", "skipped 2 blank lines")
    with h5py.File(scratch / "cells.h5") as file:
        check(file["inputs"][:].ravel().tolist() == [1, 1, 3], "a blank line is a missing value")
    series("a,b\n1,2\n\n3,\n,5\n", "--fill-forward").expect(0, "skipped 1 blank line", "filled 2 empty cells")
    rounded = "whole numbers in column a were rounded"
    series("a,k\n16777217,x\n1,y\n33554433,x\n", "--target", "k").expect(0, "2 items, such as", "line 2", rounded, "f64")
    series("b,a\n1,16777217\n1,2\n", "--target", "a", "--regression").expect(0, "1 item", rounded)
    for text, *options in (("a,k\n16777217,x\n1,y\n", "--target", "k", "--type", "f64"),
                           ("a,k\n16777216,x\n0.1,y\n", "--target", "k")):
        check(rounded not in series(text, *options).expect(0).text, "only what is rounded")
    with h5py.File(scratch / "more.h5", "w") as file:
        file["x"], file["y"] = np.ones((4, 3), "f4"), np.arange(4) % 2
        file["who"], file["sample_weights"], file["other/deep"] = np.arange(4), np.ones(4), np.ones(2)
    words = ["data", "import", "hdf5", scratch / "more.h5", scratch / "some.h5", "--inputs", "x", "--targets", "y"]
    run(words).expect(0, "left out 3 datasets that no option names: other/deep, sample_weights, who")
    run(["data", "import", "hdf5", scratch / "some.h5", scratch / "same.h5", "--inputs", "inputs", "--targets",
         "targets"]).expect(0)
    check("left out" not in run(["data", "import", "hdf5", scratch / "some.h5", scratch / "again.h5"]).expect(0).text,
          "of our own sets, nothing is")
    with h5py.File(scratch / "some.h5", "a") as file:
        file["inputs"].attrs["scale_factor"] = 0.1
        file["inputs"].attrs["_FillValue"] = -999.0
    run(["data", "import", "hdf5", scratch / "some.h5", scratch / "unscaled.h5"]).expect(
        0, "dataset inputs is taken as it is stored, without its scale_factor = 0.1, _FillValue = -999")
    for i in range(3):
        write(scratch / f"silent/{i}.wav", media.wav(800, tone=0.2))
    table = write(scratch / "silent.csv", "file,text\n0.wav,ab c\n1.wav,\n2.wav,..\n")
    words = ["data", "import", "speech", scratch / "silent", scratch / "silent.h5", "--overwrite", "--transcripts", table]
    run([*words, "--drop", "."]).expect(0, "2 transcripts are empty, such as that of", "2.wav")
    run([*words, "--drop", ".abc"]).expect(65, "silent.csv", "no transcript has a symbol")
    run([*words, "--drop", ".abc", "--units", "words"]).expect(65, "no transcript has a symbol")
    run([*words, "--symbols", "abc. "]).expect(0)
    with h5py.File(scratch / "silent.h5") as file:
        check([name.decode() for name in file.attrs["classes"]] == list("abc. "), "a blank is a symbol")


def columns_and_keys(scratch):
    """Columns, kinds of times, keys and parts of datasets that nobody would miss."""
    def times(*cells):
        table = write(scratch / "times.csv", "when,a\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
        return run(["data", "import", "series", table, scratch / "times.h5", "--time", "when", "--overwrite"])
    for cells, line, what in some((((5, "2020-01-02"), 3, "a date (2020-01-02), but that on line 2 is not"),
                                   (("2020-01-02", "2020-01-03 10:00", 1578000000), 4, "a number (1578000000)"))):
        times(*cells).expect(65, f"times.csv, line {line}", what)
    times("2020-01-02", "2020-01-03 10:00").expect(0)
    times(1, 2.5, "3e2").expect(0)
    for name in "ab":
        write(scratch / f"sets/{name}.png", media.png([[[1, 2, 3]]], 8, 2))
        write(scratch / f"sets/{name}.wav", media.wav(800, tone=0.2))
    kinds = (["images", scratch / "sets", scratch / "sets.h5", "--labels"], "png", "label"), (
        ["speech", scratch / "sets", scratch / "sets.h5", "--transcripts"], "wav", "text")
    for columns, first, second, told, sets in some((
            ("split", "train", "Test", "the sets are those of column split", True),
            ("split", "0", "1", "column split is not used, since 0 on line 2 is none of the sets", False),
            ("set,split", "train,0", "test,1", "", True)), 2):
        for words, ending, meaning in some(kinds):
            rows = f"a.{ending},x,{first}\nb.{ending},x,{second}\n"
            table = write(scratch / "sets.csv", f"file,{meaning},{columns}\n{rows}")
            text = run(["data", "import", *words, table]).expect(0).text
            made = scratch / "sets.h5"  # a directory, of several sets
            is_divided = made.is_dir()
            shutil.rmtree(made) if is_divided else made.unlink()
            check(told in text and (bool(told) or "split" not in text), text)
            check(sets == is_divided, f"{words[0]}: {text}")
    lines = write(scratch / "keys.jsonl", '{"text": "one two", "id": 1}\n{"text": "three", "url": "x", "id": 2}\n')
    words = ["data", "import", "text", lines, scratch / "keys.h5", "--vocabulary", 260, "--overwrite"]
    run(words).expect(0, "left out what the lines have besides the key text: id, url")
    write(lines, '{"text": "one two"}\n')
    check("left out" not in run(words).expect(0).text, "all keys are used")
    with h5py.File(scratch / "holes.h5", "w") as file:
        holes = file.create_dataset("inputs", (8, 2), "f4", chunks=(2, 2), fillvalue=7)
        holes[:4] = 1
        file["targets"] = np.arange(8) % 2
    run(["data", "import", "hdf5", scratch / "holes.h5", scratch / "filled.h5"]).expect(
        0, "warning: values of dataset inputs of", "holes.h5 were never written")
    with h5py.File(scratch / "long.h5", "w") as file:
        file["inputs"], file["targets"] = np.ones((4, 2), np.longdouble), np.arange(4) % 2
    text = run(["data", "import", "hdf5", scratch / "long.h5", scratch / "double.h5"]).expect(0).text
    check("dataset inputs has floating-point numbers of more than 64 bits" in text, text)
    with h5py.File(scratch / "big.h5", "w") as file:
        file["inputs"], file["targets"] = np.ones((4, 2), ">f8"), np.arange(4) % 2
    text = run(["data", "import", "hdf5", scratch / "big.h5", scratch / "little.h5"]).expect(0).text
    check("warning" not in text, text)


with Scratch() as scratch:
    recordings = scratch / "recordings"
    for i in range(6):
        write(recordings / f"{i}.wav", media.wav(800, tone=0.2 + i / 10))
    quotes_in_tsv(scratch, recordings)
    quotes_in_csv(scratch, recordings)
    for case in (separators, lists, sounds, pictures, lines_of_json, folders, times, rows_and_cells, columns_and_keys):
        case(scratch)
        print(case.__name__.replace("_", " "))
