"""What is odd about a source is said, with the right exit code, and nothing is left behind: files in an order that
people do not mean, classes that would vanish, files that are there twice, cut videos, numbers that are too large,
links in a circle, pipes, names that are no text. The short form draws some of these."""
import gzip
import io
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import time
import zipfile

import h5py
import numpy as np
from PIL import Image

import media
from harness import LOCKSTEP, Scratch, check, run, some


def picture(value):
    return media.png([[[value, value, value]]], 8, 2)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def two_classes(root):
    for name in ("cat", "dog"):
        write(root / name / "1.png", picture(len(name)))
    return root


def images(source, out, *options):
    return run(["data", "import", "images", source, out, *options])


def series(scratch, text, *options):
    write(scratch / "table.csv", text)
    return run(["data", "import", "series", scratch / "table.csv", scratch / "series.h5", "--overwrite", *options])


def natural_order(scratch):
    for i in range(12):
        write(scratch / f"clips/a/film/{i}.png", picture(i))
        write(scratch / f"numbers/{i}/x.png", picture(i))
    run(["data", "import", "video", scratch / "clips", scratch / "clips.h5", "--frames", 12, "--size", "1x1"]).expect(0)
    with h5py.File(scratch / "clips.h5") as file:
        check(file["inputs"][0, 0, :, 0, 0].tolist() == list(range(12)), "frames in the order of their numbers")
    images(scratch / "numbers", scratch / "numbers.h5").expect(0)
    with h5py.File(scratch / "numbers.h5") as file:
        names = [name.decode() for name in file.attrs["classes"]]
        check(names == [str(i) for i in range(12)], f"classes in the order of their numbers: {names}")
        check((file["inputs"][:, 0, 0, 0] == file["targets"][:]).all(), "each with its samples")


def what_would_vanish(scratch):
    source = two_classes(scratch / "vanish")
    (source / "owl").mkdir()
    images(source, scratch / "x.h5").expect(65, "owl: this class or set has no file")
    write(source / "owl/1.gif", b"GIF89a")
    images(source, scratch / "x.h5").expect(65, "owl: this class or set has no file", "1 .gif")
    (source / "owl/1.gif").unlink()
    (source / "owl/1.png").symlink_to(scratch / "nowhere.png")
    images(source, scratch / "x.h5").expect(66, "owl/1.png", "a link to a file that does not exist")
    images(source, scratch / "skipped.h5", "--skip-bad").expect(0, "skipped", "owl/1.png", "owl 0")
    (source / "owl/1.png").unlink()
    (source / "owl").rmdir()
    (source / "owl").symlink_to(scratch / "nowhere")
    images(source, scratch / "x.h5").expect(66, "owl: it is a link to a file that does not exist")
    (source / "owl").unlink()
    write(source / ".thumbnails/1.png", picture(0))
    write(source / "readme.txt", "text")
    images(source, scratch / "hidden.h5").expect(0, "2 samples", "skipped 1 hidden", "skipped 1 .txt")


def folders_of_folders(scratch):
    """Sets whose names are not known are no classes."""
    for part in ("trn", "vld"):
        two_classes(scratch / "parts" / part)
    text = images(scratch / "parts", scratch / "parts.h5").expect(0).text
    check("warning: the classes are trn and vld, whose folders all hold the same folders: cat and dog" in text, text)
    two_classes(scratch / "one/images_train")
    images(scratch / "one", scratch / "x.h5").expect(65, "would be the only class", "images_train as the source")


def moments_of_others(scratch):
    """The mean and standard deviation of the weights that a run begins with."""
    source = two_classes(scratch / "moments")
    out = scratch / "moments.h5"
    images(source, out, "--mean", "0.5,0.4,0.3", "--std", "0.2").expect(0)
    with h5py.File(out) as file:
        check(list(file.attrs["mean"]) == [0.5, 0.4, 0.3] and list(file.attrs["std"]) == [0.2] * 3, f"{dict(file.attrs)}")
    for words, why in ((("--mean", "0.5"), "--std"), (("--mean", "0.5,0.5", "--std", 1), "3 channels"),
                       (("--mean", "0.5", "--std", 0), "above 0"), (("--mean", "nan", "--std", 1), "")):
        images(source, scratch / "x.h5", *words).expect(64, why)


def links_and_pipes(scratch):
    source = two_classes(scratch / "links")
    (source / "cat/all").symlink_to(source)
    (source / "dog/again").symlink_to(source / "cat")
    images(source, scratch / "circle.h5").expect(65, "the same file is listed twice")
    (source / "dog/again").unlink()
    (source / "cat/all").unlink()
    (source / "cat/self").symlink_to(source / "cat")
    images(source, scratch / "circle.h5").expect(0, "2 samples", "1 link to a folder above it")
    os.mkfifo(source / "dog/2.png")
    images(source, scratch / "x.h5").expect(66, "dog/2.png", "it is a pipe")
    for kind, name in (("series", "dog/2.png"), ("hdf5", "dog/2.png"), ("idx", f"dog/2.png,{source}/dog/1.png")):
        result = run(["data", "import", kind, f"{source}/{name}", scratch / "x.h5"])
        check(result.code == 66 and "it is a pipe" in result.text, f"a pipe as {kind}: {result.text}")


def names_that_are_no_text(scratch):
    source = two_classes(scratch / "names")
    folder = os.fsencode(source) + b"/\xff\xfe"
    os.mkdir(folder)
    with open(folder + b"/1.png", "wb") as file:
        file.write(picture(0))
    images(source, scratch / "x.h5").expect(65, "the class folder of ", "/1.png: its text is not UTF-8")
    os.rename(folder, os.fsencode(source) + b"/a\nb")
    images(source, scratch / "x.h5").expect(65, "its name has a line break")


def names_of_classes(scratch):
    """The file and the line of a class name that is no text."""
    source = two_classes(scratch / "encoded")
    write(source / "sounds/1.wav", media.wav(800))
    latin = "caf\xe9".encode("latin-1")
    table = scratch / "latin.csv"
    with h5py.File(scratch / "latin.h5", "w") as file:
        file["inputs"], file["targets"] = np.ones((4, 3), "f4"), np.arange(4) % 2
        file.attrs["classes"] = np.array([latin, b"tea"])
    for first, line, kind, path, *options in (
            ("file,label", b"cat/1.png,", "images", source, "--labels", table),
            ("a,kind", b"1,", "series", table, "--target", "kind"), ("a,kind", b"1,", "series", table, "--group", "kind"),
            ("file,text", b"sounds/1.wav,", "speech", source, "--transcripts", table)):
        write(table, first.encode() + b"\n" + line + b"tea\n" + line + latin + b"\n")
        run(["data", "import", kind, path, scratch / "x.h5", *options]).expect(
            65, "latin.csv, line 3", "its text is not UTF-8 at byte 3")
    for words in (["data", "info"], ["data", "import", "hdf5"]):
        run([*words, scratch / "latin.h5", *([scratch / "x.h5"] if words[1] == "import" else [])]).expect(
            65, "latin.h5: class 0: its text is not UTF-8")


def cut_files(scratch):
    """Wherever a file ends too early, it is said to be cut short, or empty."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (24, 24, 3), "u1")).save(buffer, "JPEG")
    contents = {"jpg": buffer.getvalue(), "png": media.png([[[1, 2, 3]] * 9] * 9, 8, 2), "wav": media.wav(800)}
    for ending, whole in contents.items():
        count = len(whole)
        for end in (0, 3, 4, 11, 12, 20, 36, 40, 44, count // 4, count // 2, count - 2, count - 1):
            write(scratch / f"cut/{ending}/a/{end:05}.{ending}", whole[:end])
        write(scratch / f"cut/{ending}/a/whole.{ending}", whole)
        kind = ["speech"] if ending == "wav" else ["images"]
        text = run(["data", "import", *kind, scratch / f"cut/{ending}", scratch / f"cut-{ending}.h5", "--skip-bad",
                    *(["--raw"] if ending == "wav" else [])]).expect(0, "1 sample").text
        told = dict(line.removeprefix("skipped ").split(": ", 1) for line in text.splitlines() if line.startswith("skipped "))
        check(len(told) == len(list((scratch / f"cut/{ending}/a").iterdir())) - 1, text)
        for path, why in told.items():
            check("it is empty" in why if path.endswith(f"/00000.{ending}") else "it was cut short" in why, f"{path}: {why}")
    for name, whole in (("images", media.idx([2, 1, 1], b"\0\1")), ("images.gz", gzip.compress(media.idx([2, 1, 1], b"\0\1")))):
        write(scratch / "cut/labels", media.idx([2], b"\0\1"))
        for end in (0, 3, 10, len(whole) - 1):
            write(scratch / f"cut/{name}", whole[:end])
            run(["data", "import", "idx", f"{scratch}/cut/{name},{scratch}/cut/labels", scratch / "x.h5"]).expect(
                65, f"cut/{name}: it", "is empty" if end == 0 else "shorter than its header" if end < len(whole) - 9 or
                name == "images" else "its end is missing")


def twice(scratch):
    source = two_classes(scratch / "twice")
    write(scratch / "labels.csv", "file,label\ncat/1.png,cat\ndog/1.png,dog\ncat/1.png,dog\n")
    images(source, scratch / "x.h5", "--labels", scratch / "labels.csv").expect(
        65, 'the same file is listed twice, on line 2 with label "cat", and on line 4 with label "dog"')
    write(scratch / "labels.csv", "file,label,set\ncat/1.png,cat,train\ncat/../cat/1.png,cat,test\n")
    images(source, scratch / "x", "--labels", scratch / "labels.csv").expect(65, "twice", "in set train", "in set test")
    write(scratch / "labels.csv", "file,label\ncat/1.png,\n")
    images(source, scratch / "x.h5", "--labels", scratch / "labels.csv").expect(
        65, "line 2: the value in column label is empty")
    (source / "dog/2.png").symlink_to(source / "cat/1.png")
    images(source, scratch / "x.h5").expect(65, "the same file is listed twice")
    (source / "dog/2.png").unlink()
    (source / "cat/2.png").symlink_to(source / "cat/1.png")
    images(source, scratch / "copies.h5").expect(0, "1 file is listed twice, such as")


def cut_videos(scratch):
    for name, make in (("whole.avi", media.avi), ("whole.mkv", media.mkv)):
        source = scratch / name
        whole = make(40)
        write(source / f"a/{name}", whole)
        words = ["data", "import", "video", source, scratch / f"{name}.h5", "--frames", 4, "--size", "8x8"]
        run(words).expect(0, "10 samples")
        for share in (0.3, 0.5, 0.9):
            write(source / f"a/{name}", whole[:int(len(whole) * share)])
            run([*words, "--overwrite"]).expect(65, name, "cut short")


def hostile_videos(scratch):
    """Playlists named like videos lead to no other file, and what is damaged or missing is told."""
    source = scratch / "videos"
    whole = write(scratch / "elsewhere.avi", media.avi(8))
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:600\n#EXTINF:2.0,\n{whole}\n"
    noise = np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8)
    picture_file = io.BytesIO()
    Image.fromarray(noise).save(picture_file, "JPEG", quality=95)
    frame = picture_file.getvalue()
    frames = media.avi(8, frame)
    at = frames.rindex(frame)
    halved = frames[:at] + frame[:len(frame) // 2] + bytes(len(frame) - len(frame) // 2) + frames[at + len(frame):]
    stated = media.avi(8).replace(struct.pack("<II", 0, 8), struct.pack("<II", 0, 100))
    for ending, content, phrase in (
            *((ending, playlist + "#EXT-X-ENDLIST\n", "it is no AVI, ") for ending in ("avi", "mp4", "mkv", "mov")),
            ("mp4", playlist, "it is no AVI, "),  # which others may still extend
            ("mp4", f"ffconcat version 1.0\nfile {whole.name}\n", "it is no AVI, "),
            ("mov", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"
             "a=rtpmap:96 H264/90000\n", "it is no AVI, "),
            ("avi", halved, "after 7 frames"),
            ("avi", stated, "it was cut short (8 of 100 frames are there)")):
        shutil.rmtree(source, ignore_errors=True)
        write(source / f"a/1.{ending}", content)
        run(["data", "import", "video", source, scratch / "videos.h5", "--frames", 4, "--size", "8x8"]).expect(
            65, f"1.{ending}", phrase)
    write(source / "a/1.avi", frames)
    run(["data", "import", "video", source, scratch / "videos.h5", "--frames", 4, "--size", "8x8"]).expect(0, "2 samples")


def tables(scratch):
    series(scratch, "a,b,kind\n1,2,x\n1e39,4,y\n", "--target", "kind").expect(
        65, "line 3: the value in column a is too large for f32: 1e39", "--type f64")
    series(scratch, "a,b,kind\n1,2,x\n1e39,4,y\n", "--target", "kind", "--type", "f64").expect(0)
    prices = "a,price\n" + "".join(f"{i},{i / 8}\n" for i in range(41))
    reals = "warning: the numbers in column price became class names: 41 classes for 41 samples in all"
    series(scratch, prices, "--target", "price").expect(0, reals, "--regression")
    check(reals not in series(scratch, prices, "--target", "price", "--regression").expect(0).text, "reals as asked")
    for option in ("--target", "--group"):
        series(scratch, "a,b,kind\n1,2,x\n3,4,\n", option, "kind").expect(
            65, "line 3: the value in column kind is empty")
    series(scratch, ",b,kind\n1,2,x\n", "--target", "kind").expect(65, "column 1 has no name")
    series(scratch, ",b,kind\n1,2,x\n", "--target", "kind", "--columns", "b").expect(0)
    series(scratch, "b,b,kind\n1,2,x\n", "--target", "kind").expect(65, "names the column b twice")
    for name, why in (("gr\xf6\xdfe".encode("latin-1"), "its text is not UTF-8"), (b"a\0b", "it has a zero byte")):
        for header in (name + b",b,kind", b"b," + name + b",kind", b"a,b," + name):
            series(scratch, header + b"\n1,2,x\n3,4,y\n", *(() if b"kind" not in header else ("--target", "kind"))).expect(
                65, "table.csv, line 1, the name of column", why, "iconv" if b"\xf6" in name else "Remove")
    series(scratch, "1,2\n3,4\n").expect(65, "line 1: it has no column names, only numbers")
    series(scratch, "a,b,kind\n1,,x\n", "--target", "kind", "--fill-forward").expect(
        64, "--fill-forward cannot be combined with --target")
    series(scratch, "open,close,kind\n1,2,x\n", "--target", "kind", "--columns", "opne").expect(
        64, "--columns opne", "its columns are open, close, kind", "Did you mean open?")
    series(scratch, "open,close\n1,2\n", "--time", "date").expect(64, "--time date", "its columns are open, close")
    series(scratch, "open,close\n1,2\n", "--group", "name").expect(64, "--group name", "its columns are open, close")


def names_with_commas(scratch):
    series(scratch, '"price, open",b,"c""d",kind\n1,2,3,x\n4,5,6,y\n', "--target", "kind", "--columns",
           '"price, open","c""d"').expect(0)
    with h5py.File(scratch / "series.h5") as file:
        check([name.decode() for name in file.attrs["columns"]] == ["price, open", 'c"d'], "columns by their names")
        check(file["inputs"][:].tolist() == [[1, 3], [4, 6]], "their values")
    write(scratch / "idx/images", media.idx([2, 1, 1], b"\0\1"))
    write(scratch / "idx/labels", media.idx([2], b"\0\1"))
    run(["data", "import", "idx", f"{scratch}/idx/images,{scratch}/idx/labels", scratch / "idx.h5", "--classes",
         'bird,"cat, dog"']).expect(0, "cat, dog 1")
    run(["data", "import", "idx", f"{scratch}/idx/images,{scratch}/idx/labels", scratch / "x.h5", "--classes",
         'bird,"cat']).expect(64, "a quote is not closed")
    odd = scratch / "odd, [1].h5"
    with h5py.File(odd, "w") as file:
        file["x, y"] = np.ones((4, 3), "f4")
        file["label[0]"] = np.arange(4) % 2
    words = ["--inputs", '"x, y"', "--targets", "label[0]"]
    run(["data", "import", "hdf5", odd, scratch / "hdf5.h5", *words]).expect(0, "4 samples")
    run(["data", "info", odd, *words]).expect(0, "x, y: [3] f32")


def outputs(scratch):
    """Nothing is replaced without a word, nothing stale or half done is left."""
    source = two_classes(scratch / "outputs")
    out = scratch / "made/set.h5"
    images(source, out).expect(0)
    images(source, out).expect(73, "set.h5 already exists", "--overwrite")
    images(source, out, "--overwrite").expect(0)
    images(source, scratch / "made", "--overwrite").expect(73, "it is a directory, but a single set")
    images(source, scratch / "shards/x.h5", "--shard-samples", 1).expect(0)
    images(source, scratch / "shards/x.h5").expect(73, "x-00000-of-00002.h5 already exists")
    images(source, scratch / "shards/x.h5", "--overwrite").expect(0)
    check([path.name for path in (scratch / "shards").iterdir()] == ["x.h5"], "the old shards are gone")
    write(source / "dog/2.png", b"\x89PNG\r\n\x1a\n")
    images(source, scratch / "made/bad.h5").expect(65)
    check(sorted(path.name for path in (scratch / "made").iterdir()) == ["set.h5"], "no parts are left")
    run(["data", "import", "images", "--help"]).expect(0, "--alpha", "--overwrite")
    check("--units" not in run(["data", "import", "images", "--help"]).text, "of that kind alone")
    run(["data", "verify", "--help"]).expect(0, "Recomputes")


def directory_of_parts(scratch):
    """What a user has where an import would keep its parts is not removed."""
    write(scratch / "n.csv", "a,k\n1,x\n2,y\n")
    words = ["data", "import", "series", scratch / "n.csv", scratch / "keep.h5", "--target", "k"]
    parts = scratch / "keep.h5.importing"
    for name, content in (("mine.txt", "precious"), ("part-one", "precious"), ("identity", "mine\n"), ("deep/x", "1")):
        write(parts / name, content)
        run(words).expect(73, "keep.h5.importing", f"it holds {name.split('/')[0]}", "Move or rename this directory")
        check((parts / name).read_text() == content and not (scratch / "keep.h5").exists(), f"{name} is kept")
        shutil.rmtree(parts)
    write(parts / "identity", "0123456789abcdef")
    write(parts / "mine.txt", "precious")
    run(words).expect(73, "it holds mine.txt")
    (parts / "mine.txt").unlink()
    run(words).expect(0, "2 samples")
    check(not parts.exists(), "a directory of an earlier import is used and removed")


def long_words(scratch):
    """A text without blanks is one word: a token costs what its pair occurs, not the length of the words. A signal ends
    the learning."""
    draw = random.Random(1)
    text = write(scratch / "word.txt", "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(300_000)))
    run(["data", "import", "text", text, scratch / "word.h5", "--vocabulary", 2000], limit=100).expect(0, "1 sample")
    write(text, "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(6_000_000)))
    words = [LOCKSTEP, "data", "import", "text", text, scratch / "never.h5", "--vocabulary", "200000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:
        while started.poll() is None and not caught(started.pid, signal.SIGTERM):
            time.sleep(0.001)
        started.send_signal(signal.SIGTERM)
        said = started.communicate()[0]
    check(started.returncode == 75 and "the import was interrupted" in said, f"{started.returncode}: {said}")


def caught(pid, number):
    """Whether the process has a handler for this signal."""
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status.get("SigCgt", "0"), 16) >> (number - 1) & 1


def options_without_effect(scratch):
    """An option that would change nothing is refused, and the message says with or without what."""
    table = write(scratch / "options.csv", "a,k,g\n1,x,p\n2,y,q\n")
    write(scratch / "said.csv", "file,text\n1.wav,ab\n")
    write(scratch / "said.data", '( 1 "ab" )\n')
    write(scratch / "said/1.wav", media.wav(800, tone=0.2))
    text, lines = write(scratch / "a.txt", "a b"), write(scratch / "a.jsonl", '{"text": "a b"}\n')
    two_classes(scratch / "two")
    with h5py.File(scratch / "floats.h5", "w") as file:
        file["x"], file["y"], file["onehot"] = np.ones((4, 3), "f4"), np.ones(4, "f4"), np.eye(4, 3, dtype="u1")
    hdf5 = ["hdf5", scratch / "floats.h5", "--inputs", "x", "--classes", "c,b,x"]
    said = ["speech", scratch / "said"]
    together = "cannot be combined with"
    cases = [(["series", table, "--target", "k", "--group", "g"], f"--group {together} --target", "--split-by"),
             (["series", table, "--regression"], "--regression was given without --target"),
             (["series", table, "--target", ""], "--target", "its value is empty"),
             (["series", table, "--target="], "--target", "its value is empty"),
             (["series", table, "--columns", ""], "--columns", "its value is empty"),
             (["series", table, "--target", "k", "--split-by", "g"], "--split-by was given without --split"),
             (["images", scratch / "two", "--seed", 1], "--seed was given without --split"),
             ([*hdf5, "--targets", "y"], "--classes c, b, x", "dataset y has no classes"),
             ([*hdf5, "--targets", "onehot", "--mean", "0"], "--mean was given without --std"),
             ([*hdf5, "--targets", "onehot", "--mean", "0", "--std", "1,1,1,1"], "--std has 4 values"),
             ([*said, "--transcripts", scratch / "said.csv", "--labels", table], f"--labels {together} --transcripts"),
             ([*said, "--transcripts", scratch / "said.data", "--text", "words"], "--text words", "no columns"),
             ([*said, "--transcripts", scratch / "said.data", "--split-by", "who", "--split", "1"], "--split-by who",
              "no columns"),
             ([*said, "--raw", "--mels", 10], f"--mels {together} --raw"),
             *(([*said, *words], f"{words[0]} was given without --transcripts")
               for words in (["--units", "words"], ["--symbols", "ab"], ["--drop", "."], ["--lowercase"], ["--text", "t"])),
             (["text", text, "--tokenizer", text, "--vocabulary", 300], f"--vocabulary {together} --tokenizer"),
             (["text", text, "--text", "foo"], "--text foo", "has only plain text"),
             (["text", text, "--endings", ".txt"], "--endings .txt", "is a file"),
             (["series", table, "--classes", "a"], "lockstep data import series has no such option",
              "but imports of idx and hdf5 have it"),
             (["text", lines, "--targt", "a"], "lockstep data import text has no such option")]
    for words, *phrases in cases:
        run(["data", "import", words[0], words[1], scratch / "never.h5", *words[2:]]).expect(64, *phrases)
    run(["data", "import", "series", table, "", "--target", "k"]).expect(64, "OUT is empty")
    check(not (scratch / "never.h5").exists(), "nothing was made")


def other_formats(scratch):
    """What a table, a text or an IDX file is instead is said, with what to do."""
    rows = "a,b,k\n1,2,x\n3,4,y\n"
    workbook = io.BytesIO()
    with zipfile.ZipFile(workbook, "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("xl/workbook.xml", "<workbook/>")
    with h5py.File(scratch / "set.h5", "w") as file:
        file["x"] = np.ones(3)
    for name, content, *phrases in (("t.xlsx", workbook.getvalue(), "an Excel workbook", "Save it as CSV"),
                                    ("t.parquet", b"PAR1" + bytes(40) + b"PAR1", "a Parquet table"),
                                    ("t.csv.gz", gzip.compress(rows.encode()), "compressed with gzip", "gunzip"),
                                    ("utf16.csv", rows.encode("utf-16"), "in UTF-16", "iconv -f UTF-16"),
                                    ("hdf5.csv", (scratch / "set.h5").read_bytes(), "an HDF5 file", "import hdf5"),
                                    ("cr.csv", rows.replace("\n", "\r").encode(), "carriage returns alone", "tr ")):
        source = write(scratch / name, content)
        run(["data", "import", "series", source, scratch / "never.h5", "--target", "k"]).expect(65, name, *phrases)
        if name != "cr.csv":
            run(["data", "import", "text", source, scratch / "never.h5"]).expect(65, name, phrases[0])
    run(["data", "import", "series", write(scratch / "par.csv", "PAR1,k\n1,x\n2,y\n"), scratch / "par.h5", "--target",
         "k"]).expect(0)
    series(scratch, "a,k\n1e400,x\n2,y\n", "--target", "k").expect(65, "outside of the range of f64: 1e400")
    images_, labels = media.idx([2, 1, 1], b"\0\1"), media.idx([2], b"\0\1")
    write(scratch / "idx/labels", labels)
    words = ["data", "import", "idx", f"{scratch}/idx/images,{scratch}/idx/labels", scratch / "never.h5"]
    for type_, name in ((9, "i8"), (0xb, "i16"), (0xc, "i32"), (0xd, "f32"), (0xe, "f64")):
        write(scratch / "idx/images", images_[:2] + bytes([type_]) + images_[3:])
        run(words).expect(65, f"it holds values of type {name}, not unsigned bytes", "HDF5")
    write(scratch / "idx/images", rows)
    run(words).expect(65, "it does not begin like an IDX file: it is a text table (CSV)")
    write(scratch / "idx/images", images_)
    run(["data", "import", "idx", f"{scratch}/idx/labels,{scratch}/idx/images", scratch / "never.h5"]).expect(
        65, "it holds labels, but", "holds images", "IMAGES,LABELS")
    write(scratch / "texts/a.txt", "some text")
    run(["data", "import", "text", scratch / "texts", scratch / "texts.h5", "--endings", "txt"]).expect(
        0, "1 sample", "instead of the 8,192 of --vocabulary")


def held(words, out):
    """An import that is stopped after its first part, before its output is there."""
    parts = out.with_name(out.name + ".importing")
    for _ in range(20):
        started = subprocess.Popen([LOCKSTEP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        while started.poll() is None and not list(parts.glob("part-*[0-9]")):
            time.sleep(0.001)
        started.send_signal(signal.SIGSTOP)
        if started.poll() is None and parts.exists() and not out.exists():
            return started
        started.send_signal(signal.SIGCONT)  # it was too quick
        started.communicate()
        out.unlink(missing_ok=True)
    raise SystemExit(f"{out} is always there at once")


def interrupted(scratch):
    """A signal: no raw name, and only what an import can continue with is kept."""
    table = scratch / "long.csv"
    with table.open("w") as file:
        file.write("a,kind\n")
        file.writelines(f"{i},{'xyz'[i % 3]}\n" for i in range(300000))
    words = ["data", "import", "series", table, scratch / "long.h5", "--target", "kind"]
    parts = scratch / "long.h5.importing"
    started = held(words, scratch / "long.h5")
    run(words).expect(73, "cannot create", "long.h5: another import is writing it")
    started.send_signal(signal.SIGUSR1)
    started.send_signal(signal.SIGCONT)
    text = started.communicate()[0]
    check(started.returncode == 75, f"exit code {started.returncode}: {text}")
    check("the import was interrupted" in text and "SIGUSR1" not in text and str(parts) in text, text)
    run(words).expect(0, " of an interrupted import", "300,000 samples")
    check(not parts.exists(), "nothing is left")


def changing(scratch):
    """A file that changes between its part and the end is not taken in silence."""
    source = scratch / "changing"
    for i in range(3000):
        write(source / f"a/{i}.png", picture(i % 256))
    parts = scratch / "changing.h5.importing"
    started = held(["data", "import", "images", source, scratch / "changing.h5"], scratch / "changing.h5")
    write(source / "a/0.png", picture(255) + b"\0")
    started.send_signal(signal.SIGCONT)
    text = started.communicate()[0]
    check(started.returncode == 65 and "was changed while it was imported" in text, f"{started.returncode}: {text}")
    check(not parts.exists() and not (scratch / "changing.h5").exists(), "nothing is left")


with Scratch() as scratch:
    for case in some((natural_order, what_would_vanish, folders_of_folders, moments_of_others, links_and_pipes, names_that_are_no_text, names_of_classes, twice,
                      cut_videos, hostile_videos, cut_files, tables,
                      names_with_commas, outputs, directory_of_parts, long_words,
                      options_without_effect, other_formats, interrupted, changing), 4):
        case(scratch)
        print(case.__name__.replace("_", " "))
