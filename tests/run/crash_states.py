"""Every state in which a crash could leave a checkpoint's directory holds a complete checkpoint.

One commit is recorded, call by call, by a preloaded library. What a crash leaves is then any prefix
of the calls, in which the writes to a file since its last fsync arrived or not, each by itself and
perhaps in part, and a rename arrived or not until the directory was synced. Each such state is put
into a directory, and the program looks for its newest checkpoint.
"""
import argparse
import os
import pathlib
import random

from harness import BUILD, Scratch, check, run, train


def calls_of(log):
    """(what, file, argument, data) in order."""
    data, at = log.read_bytes(), 0
    while at < len(data):
        end = data.index(b"\n", at)
        what, file, argument, size = data[at:end].decode().split(" ")
        yield what, int(file), argument, data[end + 1:end + 1 + int(size)]
        at = end + 1 + int(size)


def apply(content, call):
    what, _, argument, data = call
    if what == "write":
        at = int(argument)
        if len(content) < at + len(data):
            content.extend(bytes(at + len(data) - len(content)))
        content[at:at + len(data)] = data
    elif what == "length":
        length = int(argument)
        del content[length:]
        content.extend(bytes(length - len(content)))
    elif what == "claim" and len(content) < int(argument):
        content.extend(bytes(int(argument) - len(content)))


class Disk:
    """What is certain to be there, and what may be."""

    def __init__(self, files, names):
        self.files = {file: bytearray(content) for file, content in files.items()}
        self.names = dict(names)  # durable: name -> file
        self.loose = {}           # by file: calls since its last fsync
        self.renames = []         # since the directory's

    def take(self, call, directory):
        what, file, argument, _ = call
        if what == "rename":
            self.renames.append((argument, file))
        elif what == "sync" and file == directory:
            self.names.update(self.renames)
            self.renames = []
        elif what == "sync":
            for each in self.loose.pop(file, []):
                apply(self.files.setdefault(file, bytearray()), each)
        else:
            self.loose.setdefault(file, []).append(call)

    def after_crash(self, choose):
        """name -> content, of finished checkpoints."""
        names = dict(self.names)
        names.update(self.renames[:choose.randint(0, len(self.renames))])
        state = {}
        for name, file in names.items():
            content = bytearray(self.files.get(file, b""))
            fate = choose.choice(("all", "none", "some"))
            for what, _, argument, data in self.loose.get(file, []):
                if fate == "none" or (fate == "some" and choose.random() < 0.5):
                    continue
                if fate == "some" and what == "write" and choose.random() < 0.3:
                    data = data[:choose.randrange(len(data) // 512 + 1) * 512]
                apply(content, (what, file, argument, data))
            state[name] = bytes(content)
        return state


def recorded(scratch, ranks):
    directory, log = scratch / f"run{ranks}", scratch / f"log{ranks}"
    options = ("--data.validation", "", "--checkpoint.keep", 9, "--checkpoint.every-steps", 0)
    train(directory, "--train.steps", 1, *options, ranks=ranks).expect(0)
    checkpoints = directory / "checkpoints"
    before = {str(path): path.read_bytes() for path in checkpoints.glob("step-*.h5")}
    files = {os.stat(name).st_ino: content for name, content in before.items()}
    names = {name: os.stat(name).st_ino for name in before}
    train(directory, "--train.steps", 2, *options, ranks=ranks, env={
        "LD_PRELOAD": str(BUILD / "tests/liblockstep_record_io.so"), "LOCKSTEP_RECORD": str(log),
        "LOCKSTEP_RECORD_UNDER": str(checkpoints)}).expect(0)
    return checkpoints, list(calls_of(log)), Disk(files, names)


def holds_complete(scratch, state, seen):
    """Whether the newest that a resume finds is complete: damaged ones with a final name are torn."""
    key = hash(tuple(sorted(state.items())))
    if key not in seen:
        place = scratch / f"state{len(seen)}" / "checkpoints"
        place.mkdir(parents=True)
        for name, content in state.items():
            (place / pathlib.Path(name).name).write_bytes(content)
        seen[key] = bool(state) and run(["checkpoint", "verify", place.parent]).code == 0
    return seen[key]


def test(scratch, ranks, times, choose):
    checkpoints, calls, disk = recorded(scratch, ranks)
    kinds = {call[0] for call in calls}
    check({"write", "sync", "rename"} <= kinds, f"the commit was seen: {kinds}")
    directory, seen, states = os.stat(checkpoints).st_ino, {}, 0
    for call in [None, *calls]:
        if call:
            disk.take(call, directory)
        for _ in range(times):
            check(holds_complete(scratch / f"on{ranks}", disk.after_crash(choose), seen),
                  f"torn after {call and call[:3]}, on {ranks} ranks")
            states += 1
    # The recorder has missed nothing: the last state is what lies on the disk.
    for name, content in disk.after_crash(choose).items():
        check(pathlib.Path(name).read_bytes() == content, f"{name} as recorded")
    check(len(seen) >= 2, "states before and after the commit")
    print(f"{ranks} ranks: {states} states after {len(calls)} calls, {len(seen)} of them different "
          "in what a resume sees; all complete")


def made_durably(scratch):
    """A directory is there after a crash once the one above it was synced."""
    top, log = scratch / "top", scratch / "log of directories"
    top.mkdir()
    train(top / "one/two/run", "--train.steps", 1, "--data.validation", "", ranks=1, env={
        "LD_PRELOAD": str(BUILD / "tests/liblockstep_record_io.so"), "LOCKSTEP_RECORD": str(log),
        "LOCKSTEP_RECORD_UNDER": str(top)}).expect(0)
    synced = {file for what, file, _, _ in calls_of(log) if what == "sync"}
    made = [path for path in (top / "one").rglob("*") if path.is_dir()] + [top / "one"]
    check(len(made) >= 4, f"{made}")
    for path in made:
        check(os.stat(path.parent).st_ino in synced, f"{path} was made, and {path.parent} not synced")


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--states", type=int, default=3, help="for each call")
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
with Scratch() as scratch:
    made_durably(scratch)
    for count in (1, 2, 3):
        test(scratch, count, arguments.states, random.Random(arguments.seed))
