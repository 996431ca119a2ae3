"""Small files that ask for too much, and files drawn at random: each ends with an exit code of its own, in
seconds, in ten times the memory of the file and a quarter of a gigabyte. 1000 files of a kind in the long form."""
import json
import os
import random
import struct
import subprocess
import time

import h5py

import serve_test
from harness import LOCKSTEP, LONG, SEED, Scratch, check

FILES = 1000 if LONG else 8
LIMIT_S = 30  # of a processor: others may be busy
EXPECTED = (0, 64, 65, 66)
DEEP = "[" * 50_000 + "]" * 50_000
HOSTILE = [None, -1, 0, 2**24, 2**32 + 5, 2**62, 2**64, 1.5, 3.7, 1e300, "", "x" * 300, "\033]0;title\007", "a/../b", "\n", [], {},
           True, [1], [0, 0], [2**40, 2**40], {"a": 1}, "F32", "F64", "BOOL"]


def measured(words):
    """The exit code and the output of a command, its seconds of a processor and its memory in bytes."""
    with subprocess.Popen([LOCKSTEP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        text = process.stdout.read().decode(errors="replace")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, text, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


class Judge:
    def __init__(self):
        self.own = measured(["--version"])[3]  # memory of the program itself
        self.codes = {}

    def look(self, words, path, what, expected=EXPECTED, phrases=()):
        code, text, seconds, memory = measured(words)
        size = sum(each.stat().st_size for each in path.rglob("*")) if path.is_dir() else path.stat().st_size
        where = f"{what}: {' '.join(map(str, words))}\n{text[-3000:]}"
        check(code in expected, f"exit code {code}: {where}")
        check(seconds < LIMIT_S, f"{seconds:.0f} s: {where}")
        check(memory - self.own < 10 * size + (256 << 20), f"{(memory - self.own) >> 20} MiB for {size} bytes: {where}")
        check("\033" not in text and "\007" not in text, f"a terminal would obey: {where!r}")
        check(code == 0 or "lockstep: " in text, f"it says why: {where}")
        for phrase in phrases:
            check(phrase in text, f"it says {phrase!r}: {where}")
        self.codes[code] = self.codes.get(code, 0) + 1


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensors(count):
    return {f"layers.{i}.weight": {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i in range(count)}


def tokenizer():
    """With a token for each byte, and two merges."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = [chr(byte) for byte in plain] + [chr(256 + at) for at in range(len(others))]
    vocabulary = {letter: at for at, letter in enumerate(letters)} | {"lo": 256, "low": 257}
    return {"version": "1.0", "added_tokens": [{"id": 258, "content": "<|endoftext|>", "special": True, "lstrip": False}],
            "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "vocab": vocabulary, "merges": ["l o", "lo w"]}}


def places_in(value, path=()):
    if isinstance(value, (dict, list)):
        for key in (value if isinstance(value, dict) else range(len(value))):
            yield (*path, key)
            yield from places_in(value[key], (*path, key))


def changed(draw, value):
    """JSON with other values in some of its places, or without them."""
    value = json.loads(json.dumps(value))
    for _ in range(draw.choice([1, 1, 2, 5])):
        *path, last = draw.choice(list(places_in(value)) or [(None,)])
        holder = value
        for step in path:
            holder = holder[step]
        if last is None:
            break
        if draw.random() < 0.2:
            del holder[last]
        else:
            holder[last] = draw.choice(HOSTILE)
    return value


def cut_or_flipped(draw, data):
    data = bytearray(data)
    if draw.random() < 0.5:
        for _ in range(draw.choice([1, 3, 30])):
            data[draw.randrange(len(data))] = draw.randrange(256)
    else:
        del data[draw.randrange(len(data)):]
    return bytes(data)


def nested_groups(path):
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(5000):
            group = group.create_group("g")
        group["inputs"] = [1.0]
    return path


class Commands:
    """How a file of a kind is read."""

    def __init__(self, scratch):
        self.scratch = scratch
        (scratch / "text.txt").write_text("low lower lowest\n" * 20)

    def weights(self, path):
        return ["checkpoint", "export", path, self.scratch / "out.h5", "--format", "hdf5", "--overwrite"]

    def tokenizer(self, path):
        return ["data", "import", "text", self.scratch / "text.txt", self.scratch / "out.h5", "--tokenizer", path, "--overwrite"]

    def texts(self, path):
        return ["data", "import", "text", path, self.scratch / "out.h5", "--vocabulary", 300, "--overwrite"]


def limits(scratch, judge, commands):
    """A row for each way in which a small file asked for too much."""
    def written(name, content):
        path = scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def tokenizer_with(change):
        value = tokenizer()
        change(value)
        return json.dumps(value).replace('"DEEP"', DEEP)

    def token(number):
        return tokenizer_with(lambda value: value["model"]["vocab"].update(low=number))

    def run_with(line):
        serve_test.make_run(scratch / f"run {len(line)}")
        with open(scratch / f"run {len(line)}/metrics.jsonl", "a") as file:
            file.write(line)
        return scratch / f"run {len(line)}"

    two = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}
    many = tensors(50_000 if LONG else 3_000)
    titled = {"\033]0;title\007": {"dtype": "X32", "shape": [2], "data_offsets": [0, 8]}}
    os.mkfifo(scratch / "pipe.jsonl")
    os.mkfifo(scratch / "pipe.safetensors")
    os.mkfifo(scratch / "pipe.json")
    rows = [
        ("nested tokenizer", commands.tokenizer, written("deep.json", tokenizer_with(lambda v: v.update(pre_tokenizer="DEEP"))), 65,
         ["levels deep"]),
        ("nested header", commands.weights, written("deep.safetensors", safetensors(('{"a":' + DEEP + "}").encode())), 65, ["levels deep"]),
        ("nested index", commands.weights, written("deep/model.safetensors.index.json", '{"weight_map":' + DEEP + "}"), 65, ["levels deep"]),
        ("nested line", commands.texts, written("deep.jsonl", '{"text":' + DEEP + "}\n"), 65, ["levels deep"]),
        ("nested record", lambda path: ["report", path, "--output", scratch / "report"], run_with('{"event":"x","a":' + DEEP + "}\n"), 0, []),
        ("nested groups", lambda path: ["data", "info", path], nested_groups(scratch / "deep.h5"), 65, ["levels deep"]),
        ("nested groups of a source", lambda path: ["data", "import", "hdf5", path, scratch / "out.h5"], scratch / "deep.h5", (64, 65), []),
        ("overlap", commands.weights, written("overlap.safetensors", safetensors(two, b"\0" * 12)), 65, ["overlap"]),
        ("many tensors", commands.weights, written("many.safetensors", safetensors(many, b"\0" * 8 * len(many))), (0, 64, 65), []),
        ("many in an index", commands.weights, written("many/model.safetensors.index.json", json.dumps(
            {"weight_map": {name: "model.safetensors" for name in many}})), (0, 64, 65), []),
        ("title of a terminal", commands.weights, written("titled.safetensors", safetensors(titled, b"\0" * 8)), 65, ["\\x1b]0;title\\x07"]),
        ("name of a terminal", commands.weights, written("a\033]0;title\007.safetensors", b"x"), 65, ["\\x1b]0;title\\x07"]),
        ("pipe of texts", commands.texts, scratch / "pipe.jsonl", 66, ["it is a pipe"]),
        ("pipe of weights", commands.weights, scratch / "pipe.safetensors", 66, ["it is a pipe"]),
        ("pipe of a tokenizer", commands.tokenizer, scratch / "pipe.json", 66, ["it is a pipe"]),
        ("device", commands.texts, scratch / "device.jsonl", 66, ["it is a device"]),
        *((f"token {number}", commands.tokenizer, written(f"token {number}.json", token(number)), 65, ["the invalid id"])
          for number in (2**24 - 1, 2**32 + 5, 3.7, -1)),
        ("two tokens", commands.tokenizer, written("two.json", token(5)), 65, ["two of its tokens have the id 5"])]
    (scratch / "device.jsonl").symlink_to("/dev/zero")
    written("many/model.safetensors", safetensors(many, b"\0" * 8 * len(many)))
    for what, words, path, codes, phrases in rows:
        judge.look(words(path), path, what, codes if isinstance(codes, tuple) else (codes,), phrases)


def drawn(scratch, judge, commands, draw):
    for number in range(FILES):
        path = scratch / "drawn.safetensors"
        data = safetensors(changed(draw, {"__metadata__": {"format": "pt"}, **tensors(4)}), b"\0" * draw.choice([32, 32, 31, 0]))
        path.write_bytes(data if draw.random() < 0.8 else cut_or_flipped(draw, data))
        judge.look(commands.weights(path), path, f"safetensors {number} of seed {SEED}")
        path = scratch / "drawn.json"
        text = json.dumps(changed(draw, tokenizer())).encode()
        path.write_bytes(text if draw.random() < 0.8 else cut_or_flipped(draw, text))
        judge.look(commands.tokenizer(path), path, f"tokenizer {number} of seed {SEED}")


if __name__ == "__main__":
    with Scratch() as scratch:
        begin, judge, draw = time.monotonic(), Judge(), random.Random(SEED)
        limits(scratch, judge, Commands(scratch))
        drawn(scratch, judge, Commands(scratch), draw)
        print(f"{2 * FILES} files, exit codes {judge.codes}; {time.monotonic() - begin:.0f} s, seed {SEED}")
