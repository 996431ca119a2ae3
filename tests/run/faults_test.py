"""Whatever call to the system fails or hangs, by number, a run and an import end with one right line, the
right exit code and nothing lost.

A preloaded library counts the calls of one rank for files of the run, of the data and of shared memory, and
makes one of them go wrong. The short form draws a few of them; LOCKSTEP_LONG=1 walks through the first 300
of each rank, of rows of alike ones two. faults_test.py --only train:0:17:EIO repeats one.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys

import h5py
import numpy

from harness import BUILD, DECK, LOCKSTEP, LONG, SEED, Scratch, check, checkpoints, run

LIBRARY = str(BUILD / "tests/liblockstep_fail_io.so")
TOOL = str(BUILD / "tests/liblockstep_io_tool.so")  # stands between this program and MPI-IO, as Darshan does
FIRST = 300  # calls of a rank that are looked at
STEPS = 6
OPTIONS = ["--train.steps", STEPS, "--train.validate-every", 3, "--checkpoint.every-steps", 2,
           "--checkpoint.keep", 2, "--monitor.tensorboard", "true", "--monitor.plots", "true",
           "--communication.timeout-seconds", 15]
LIMIT = 120
CAUSE = re.compile(r"lockstep: (?:first|root) cause: ", re.M)
CRASH = re.compile(r"terminate called|Segmentation fault|Aborted|internal error|infinite loop closing|HDF5-DIAG")

# What can befall a call.
READS, WRITES = ("EIO", "EINTR", "short"), ("EIO", "ENOSPC", "EINTR", "short")
WAYS = {
    "open": ("EIO", "EMFILE", "EACCES"), "read": READS, "pread": READS, "readv": READS, "preadv": READS,
    "write": WRITES, "pwrite": WRITES, "writev": WRITES, "pwritev": WRITES, "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO",), "rename": ("EIO", "ENOSPC"), "mkdir": ("EACCES", "ENOSPC"), "close": ("EIO", "EDQUOT"),
    "ftruncate": ("EIO", "ENOSPC"), "posix_fallocate": ("ENOSPC", "EIO"), "mmap": ("ENOMEM",),
    "execvp": ("ENOENT", "ENOMEM"),
}
# The codes that an end may have, besides 0 where the run can do without the call.
CODES = {"EIO": {73, 74}, "ENOSPC": {73, 74}, "EDQUOT": {73, 74}, "EMFILE": {73, 74}, "EACCES": {66, 73},
         "ENOENT": {66, 73}, "ENOMEM": {71}, "hang": {74, 76}}
# What MPI-IO opens without telling the other ranks of a failure, which then wait for it until the time limit: files
# of its own beside ours, and, on other ranks than the first, our file right after we have looked at it.
OF_MPI_IO = re.compile(r"\d+ open \S*\.h5\.partial-\S*\.(meta)?data\.\d+ |"
                       r"\d+ open (\S*\.h5\.partial-\S*)\n\d+ close \2\n\d+ open \2 ")
# What was to reach a disk and did not is told, even where the run can do without. Other calls may have another way:
# a close after a sync, an open that only asks whether a file is there, shared memory in place of messages.
TOLD = re.compile(r"(write|pwrite|writev|pwritev|fsync|fdatasync|rename|ftruncate|posix_fallocate)(64)? (?!/dev/shm)")


def ways_of(function):
    name = function.removesuffix("64").removesuffix("at").removeprefix("f" if function.startswith("fopen") else "")
    return WAYS.get(name, ("EIO",))


class Training:
    name, ranks = "train", 2

    def __init__(self, scratch):
        self.data = scratch / "data.h5"
        numbers = numpy.random.default_rng(2)
        with h5py.File(self.data, "w") as file:
            file["inputs"] = numbers.integers(0, 256, (512, 28, 28), dtype="u1")
            file["targets"] = numbers.integers(0, 10, 512)
        self.place = scratch / "whole"
        run(self.words(self.place), 2).expect(0)
        self.last = checkpoints(self.place / "run")[-1]

    def words(self, place):
        return ["train", DECK, "--data.train", self.data, "--data.validation", self.data, "--run.directory",
                place / "run", *OPTIONS]

    def watched(self, place):
        return f"{place}/run:{self.data}:/dev/shm/lockstep"

    def difference(self, file, text):
        """From the run without faults. Where a best model could not be written, another one is the best."""
        compared = run(["checkpoint", "diff", file, self.last])
        differing = compared.text.split("differing records (not part of the state)")[0].splitlines()
        if compared.code == 1 and "best.h5 stays as it was" in text:
            differing = [line for line in differing if not line.startswith(("best_step: ", "best: "))]
            return "\n".join(differing)
        return compared.text if compared.code else ""

    def look_at(self, place, code, text):
        """Checkpoints with a name verify; a run that is done has the right weights; another start mends the rest."""
        directory = place / "run"
        for file in checkpoints(directory):
            verified = run(["checkpoint", "verify", file])
            if verified.code != 0:
                return f"{file.name} does not verify: {verified.text}"
        if code == 0:
            differs = self.difference(checkpoints(directory)[-1], text) if checkpoints(directory) else "there is none"
            if differs:
                return f"the last checkpoint is not that of a run without faults:\n{differs}"
        if code == 0 and run(["checkpoint", "verify", directory / "best.h5"]).code != 0:
            return "best.h5 does not verify"
        if code != 0:
            again = run(self.words(place), 2)
            differs = self.difference(checkpoints(directory)[-1], text) if again.code == 0 else ""
            if again.code != 0 or differs:
                return f"started again it ends with {again.code}:\n{again.text}{differs}"
        return ""


class Import:
    ranks = 0

    def __init__(self, scratch, name, *options):
        self.name, self.options = name, options
        self.source = scratch / "source.h5"
        if not self.source.exists():
            numbers = numpy.random.default_rng(3)
            with h5py.File(self.source, "w") as file:
                file["inputs"] = numbers.random((300, 40), dtype="f4")
                file["targets"] = numbers.integers(0, 5, 300)
        self.place = scratch / ("whole-" + name)
        self.place.mkdir()
        run(self.words(self.place)).expect(0)
        self.content = self.values(self.place)

    def words(self, place):
        return ["data", "import", "hdf5", self.source, place / "set.h5", *self.options]

    def values(self, place):
        with h5py.File(place / "set.h5") as file:
            return [file[name][()].tobytes() for name in ("inputs", "targets")]

    def watched(self, place):
        return f"{place}:{self.source}"

    def look_at(self, place, code, _):
        if (place / "set.h5").exists() and self.values(place) != self.content:
            return "set.h5 has its name, and other values"
        if code != 0 and run(self.words(place)).code != 0:
            return "it cannot be imported again"
        return "" if self.values(place) == self.content else "set.h5 has other values"


def start(case, place, rank, call, how, tools=()):
    place.mkdir(parents=True, exist_ok=True)
    command = [LOCKSTEP, *map(str, case.words(place))]
    if case.ranks:
        command = [os.environ["LOCKSTEP_MPIEXEC"], "-n", str(case.ranks), *command]
    log = place.parent / (place.name + ".calls")
    environment = {**os.environ, "LD_PRELOAD": ":".join([LIBRARY, *tools]), "LOCKSTEP_IO_TOOL_LOG": f"{log}.tool",
                   "LOCKSTEP_FAIL_UNDER": case.watched(place),
                   "LOCKSTEP_FAIL_CALL": str(call), "LOCKSTEP_FAIL_HOW": how, "LOCKSTEP_FAIL_LOG": str(log)}
    if case.ranks:
        environment["LOCKSTEP_FAIL_RANK"] = str(rank)
        environment["LOCKSTEP_START_SECONDS"] = "20"  # until ranks share a heartbeat table, this limit holds
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env=environment)
    try:
        text, _ = process.communicate(timeout=LIMIT)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its ranks
        try:
            text, code = process.communicate(timeout=60)[0], "no end"
        except subprocess.TimeoutExpired:
            process.kill()
            text, code = process.communicate()[0], "no end"
    return code, text, log.read_text().splitlines() if log.exists() else []


def tried(case, scratch, rank, call, how, *tools):
    """What is wrong with the end of a run whose call of that number goes wrong; the call itself."""
    place = scratch / f"{case.name}-{rank}-{call}-{how}{'-tool' * len(tools)}"
    code, text, calls = start(case, place, rank, call, how, tools)
    hit = next((line for line in calls if line.startswith(f"{call} ") and line.endswith(how)), "")
    wrong = []
    harmless = not hit or how in ("EINTR", "short")
    allowed = {0} if harmless else CODES[how] | {0}
    if hit and OF_MPI_IO.search("\n".join(calls[max(call - 3, 0):call])):
        allowed = allowed | {76}
    if code not in allowed:
        wrong.append(f"exit code {code}, expected one of {sorted(allowed)}")
    if code == 0 and not harmless and TOLD.search(hit) and "warning" not in text:
        wrong.append("not a word of it")
    if code == 74 and how == "ENOSPC" and " pwrite" in hit and "No space left on device" not in text:
        wrong.append("not a word of the reason")
    causes = len(CAUSE.findall(text))
    if code not in (0, "no end") and causes != 1:
        wrong.append(f"{causes} lines of a cause")
    if CRASH.search(text):
        wrong.append("it crashed: " + CRASH.search(text)[0])
    if code != "no end":
        wrong.extend(filter(None, [case.look_at(place, code, text)]))
    if tools and not (scratch / f"{place.name}.calls.tool").exists():
        wrong.append("the tool was not called")
    if not wrong:
        shutil.rmtree(place, ignore_errors=True)
    return hit, code, wrong, text


def apart(calls):
    """(number, function) of the calls, of a row of alike ones the first two: samples are read by the hundred."""
    chosen, former = [], ["", ""]
    for line in calls:
        number, *call = line.split(" ")
        if former != [call, call]:
            chosen.append((int(number), call[0]))
        former = [former[1], call]
    return chosen


def faults(cases, scratch, draw):
    """(case, rank, call, how): those that are drawn, or all."""
    every = []
    for case in cases:
        for rank in range(max(case.ranks, 1)):
            _, _, calls = start(case, scratch / f"count-{case.name}-{rank}", rank, 0, "EIO")
            for number, function in apart(calls)[:FIRST]:
                ways = ways_of(function)
                # The time limit is for ranks that wait for each other: an import waits for its disk.
                hangs = case.ranks > 1 and draw.random() < 0.1
                every.append((case, rank, number, "hang" if hangs else draw.choice(ways)))
    return every


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=0 if LONG else 5, help="how many are drawn; 0: all")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="CASE:RANK:CALL:HOW")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    with Scratch() as scratch:
        cases = [Training(scratch), Import(scratch, "import"), Import(scratch, "deflated", "--deflate", "4")]
        if arguments.only:
            name, rank, call, how = arguments.only.split(":")
            chosen = [(case, int(rank), int(call), how) for case in cases if case.name == name]
        else:
            chosen = faults(cases, scratch, draw)
            chosen = draw.sample(chosen, arguments.faults) if arguments.faults else chosen
            # The values of a source, of which HDF5 reads no byte more than once.
            plain = cases[1]
            _, _, calls = start(plain, scratch / "count-values", 0, 0, "EIO")
            reads = [int(line.split()[0]) for line in calls if " pread " in line and "source.h5" in line]
            chosen += [(plain, 0, number, "EIO") for number in (reads[-2:] if LONG else reads[-1:])]
            # A write of one rank to a checkpoint that all write, also where a tool sees it.
            _, _, calls = start(cases[0], scratch / "count-writes", 1, 0, "EIO")
            writes = [int(line.split()[0]) for line in calls if re.search(r" pwrite\S* \S*\.h5\.partial-", line)]
            chosen += [(cases[0], 1, draw.choice(writes), "ENOSPC", *tools) for tools in ((), (TOOL,))]
        failed, codes = 0, collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            results = {pool.submit(tried, case, scratch, *fault): (case.name, *fault) for case, *fault in chosen}
            for done in concurrent.futures.as_completed(results):
                hit, code, wrong, text = done.result()
                codes[code] += 1
                if wrong or arguments.only:
                    failed += bool(wrong)
                    print(":".join(map(str, results[done])), hit, code, *wrong, text[-3000:], sep="\n  ", flush=True)
        print(f"{len(chosen)} faults, by exit code: {dict(codes)}")
        check(failed == 0, f"{failed} of {len(chosen)} faults")


if __name__ == "__main__":
    main()
