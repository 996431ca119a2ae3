#!/usr/bin/env python3
"""Measures lockstep against PyTorch's DDP over gloo, MPI_Allreduce and a plain loop.

The sides of a contest alternate, each in fresh processes, round after round; every rank has one
core and one thread. A figure is the median over rounds of what a process calls its median; a ratio
is taken within a round, so that a machine that changes its speed changes both sides. Prints a
Markdown table. See docs/performance.md.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
BUSY = 0.05  # share of the machine's cores that others may use
# What lockstep tells glibc's allocator, for a process that cannot tell it itself.
KEEP_LARGE_BLOCKS = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}


class Machine:
    """How busy the cores are, and by whom."""

    @staticmethod
    def busy_seconds():
        with open("/proc/stat") as file:
            ticks = list(map(int, file.readline().split()[1:9]))
        idle = ticks[3] + ticks[4]  # waiting for a disk, too
        return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def children_seconds():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def __init__(self):
        self.restart()

    def restart(self):
        self.since = (time.monotonic(), self.busy_seconds(), self.children_seconds())

    def share_of_others(self):
        """Of all cores' time since the restart, what was used by other than our children."""
        wall, busy, own = self.since
        others = self.busy_seconds() - busy - (self.children_seconds() - own)
        return max(0.0, others) / ((time.monotonic() - wall) * os.cpu_count())


def wait_until_quiet(patience):
    deadline = time.monotonic() + patience
    while True:
        machine = Machine()
        time.sleep(1)
        if machine.share_of_others() < BUSY or time.monotonic() > deadline:
            return


class Side:
    """A command that prints a JSON line of what it measured; or, where there are several, a line
    for each variant, known as "NAME VARIANT"."""

    def __init__(self, name, command, env=None, several=False):
        self.name, self.command, self.env = name, list(map(str, command)), env or {}
        self.several = several

    def run(self):
        """Measurements by name."""
        done = subprocess.run(self.command, capture_output=True, text=True, timeout=900,
                              env={**os.environ, "OMP_NUM_THREADS": "1", **self.env})
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines or (len(lines) > 1 and not self.several):
            sys.exit(f"exit code {done.returncode}: {' '.join(self.command)}\n"
                     f"{done.stdout}{done.stderr}")
        found = {}
        for measured in map(json.loads, lines):
            if "memory_before_bytes" in measured:
                measured["training_bytes"] = (measured["memory_bytes"] -
                                              measured["memory_before_bytes"])
            name = f"{self.name} {measured['variant']}" if self.several else self.name
            found[name] = measured
        return found


class Row:
    """A line of the table: `key` of our side against that of another, and the goal for the ratio
    theirs/ours (`under`: for ours/theirs, which shall be less)."""

    def __init__(self, what, ours, theirs, goal=None, *, key="median_s", their_key=None,
                 under=False, percent=False):
        self.what, self.ours, self.theirs, self.goal = what, ours, theirs, goal
        self.key, self.their_key = key, their_key or key
        self.under, self.percent = under, percent

    def line(self, rounds):
        ours = [each[self.ours][self.key] for each in rounds]
        theirs = [each[self.theirs][self.their_key] for each in rounds]
        ratios = [a / b if self.under else b / a for a, b in zip(ours, theirs)]
        ratio = statistics.median(ours) / statistics.median(theirs)
        ratio = ratio if self.under else 1 / ratio
        reached = self.goal is None or (ratio < self.goal if self.under else ratio >= self.goal)
        goal = "" if self.goal is None else \
            f"{'<' if self.under else '≥'} {self.text(self.goal)} {'✓' if reached else '✗'}"
        spread = f"{self.text(min(ratios))} – {self.text(max(ratios))}"
        return [self.what, amount(self.key, ours), amount(self.their_key, theirs),
                f"{self.text(ratio)} ({spread})", goal]

    def text(self, ratio):
        return f"{100 * ratio:.3g} %" if self.percent else f"{ratio:.2f}"


class Limit:
    """A line of the table: the time of our side, which shall be less than so many seconds."""

    def __init__(self, what, ours, limit):
        self.what, self.ours, self.limit = what, ours, limit

    def line(self, rounds):
        ours = [each[self.ours]["median_s"] for each in rounds]
        reached = statistics.median(ours) < self.limit
        return [self.what, amount("median_s", ours), "", "",
                f"< {1e3 * self.limit:g} ms {'✓' if reached else '✗'}"]


def amount(key, values):
    """Median and spread."""
    factor, unit = (1 / MIB, "MiB") if key.endswith("_bytes") else (1e3, "ms")
    low, middle, high = (f"{factor * each(values):.3g}" for each in (min, statistics.median, max))
    return f"{middle} {unit} ({low} – {high})"


class Contest:
    def __init__(self, name, sides, rows):
        self.name, self.sides, self.rows = name, sides, rows

    def run(self, options):
        """The measurements of each side, round by round, and the worst disturbance."""
        rounds, disturbed = [], 0.0
        for number in range(options.rounds):
            measured = {}
            # Every side is first as often as the others.
            turn = number % len(self.sides)
            for side in self.sides[turn:] + self.sides[:turn]:
                wait_until_quiet(options.patience)
                machine = Machine()
                found = side.run()
                measured.update(found)
                disturbed = max(disturbed, machine.share_of_others())
                if options.raw:
                    with open(options.raw, "a") as file:
                        for name, each in found.items():
                            file.write(json.dumps({"contest": self.name, "round": number,
                                                   "side": name, **each}) + "\n")
            rounds.append(measured)
            print(f"{self.name}: round {number + 1} of {options.rounds}", file=sys.stderr)
        return rounds, disturbed


def contests(options):
    def ours(name, ranks, *words):
        return Side(name, [options.mpirun, "--bind-to", "core", "-n", ranks,
                           pathlib.Path(options.build) / "lockstep", "bench", *words, "--json"])

    def torchrun(name, script, *words, env=None):
        return Side(name, [sys.executable, "-m", "torch.distributed.run", "--standalone",
                           "--nproc-per-node", 2, HERE / script, *words],
                    {"GLOO_SOCKET_IFNAME": "lo", **(env or {})})

    def allreduce(name, size):
        return ours(name, 2, "allreduce", "--sizes", size, "--variant", name)

    def exchange():
        size = 25 * MIB
        sides = [allreduce(name, size) for name in ("ordered", "mpi", "copy")]
        sides.append(torchrun("gloo", "gloo_allreduce.py", "--bytes", size))
        return Contest("allreduce", sides, [
            Row("all-reduce of 25 MiB against gloo", "ordered", "gloo", 6),
            Row("all-reduce of 25 MiB against MPI_Allreduce", "ordered", "mpi", 3.5),
            Row("bandwidth of the all-reduce against copying as much", "ordered", "copy", 0.6,
                percent=True)])

    def step(title, model, steps, against_ddp, against_alone):
        words = ["--model", model, "--steps", steps]
        sides = [ours("engine", 2, "step", *words), torchrun("ddp", "ddp_step.py", *words),
                 ours("alone", 2, "step", *words, "--variant", "alone"),
                 ours("native", 2, "step", *words, "--variant", "native"),
                 Side("dp", [pathlib.Path(options.build) / "lockstep", "bench", "step", *words,
                             "--variant", "dp", "--json"]),
                 torchrun("ddp, large blocks kept", "ddp_step.py", *words, env=KEEP_LARGE_BLOCKS)]
        rows = [Row(f"{title}: step against torchrun DDP", "engine", "ddp", against_ddp),
                Row(f"{title}: step against the same, glibc keeping large blocks as ours does",
                    "engine", "ddp, large blocks kept"),
                Row(f"{title}: one rank with 2 replicas on threads (dp) against torchrun DDP", "dp",
                    "ddp"),
                Row(f"{title}: 2 ranks against 2 concurrent runs of one rank", "engine", "alone",
                    against_alone, percent=True),
                Row(f"{title}: step with ordered against native reduction", "engine", "native", 1.0),
                Row(f"{title}: exposed communication in the step", "engine", "engine",
                    0.05 if model == "cnn" else None, key="communication_s", their_key="median_s",
                    under=True, percent=True)]
        return Contest(model, sides, rows)

    def one_rank(title, model, steps):
        words = ["step", "--model", model, "--steps", steps]
        sides = [ours("engine", 1, *words), ours("bare", 1, *words, "--variant", "bare")]
        return Contest(f"one rank, {model}", sides,
                       [Row(f"{title}: one rank with the engine against a bare LibTorch loop",
                            "engine", "bare", 0.97, percent=True)])

    def memory():
        words = ["--model", "mlp18m", "--steps", 5]
        sides = [ours("engine", 2, "step", *words),
                 ours("bare", 2, "step", *words, "--variant", "bare"),
                 torchrun("plain", "ddp_step.py", *words, "--plain"),
                 torchrun("ddp", "ddp_step.py", *words)]
        return Contest("memory", sides, [
            Row(f"MLP: memory (PSS) of a rank's training, 2 ranks, against {name}", "engine", side,
                goal, key="training_bytes") for name, side, goal in (
                    ("a bare LibTorch loop with its AdamW", "bare", 1),
                    ("a plain PyTorch loop with fused AdamW", "plain", 1),
                    ("torchrun DDP with fused AdamW", "ddp", None))])

    def checkpoint():
        words = ["--mb", options.mb, "--directory", options.directory]
        sides = [ours("our", 2, "checkpoint", *words, "--repeats", 3)]
        sides[0].several = True
        sides += [torchrun(name, "torch_checkpoint.py", *words, "--repeats", 3, "--variant", name)
                  for name in ("save", "dcp")]
        written = "our synchronous"
        return Contest("checkpoint", sides, [
            Row("checkpoint against pwrite and fsync of its bytes", written, "our raw-write", 0.8,
                percent=True),
            Row("checkpoint against torch.save and fsync", written, "save", 1.5),
            Row("checkpoint against torch.distributed.checkpoint", written, "dcp", 1.2),
            Row("stall of an asynchronous checkpoint against one copy in memory", "our stall",
                "our copy", 1.5, under=True),
            Row("checksums, as a part of the checkpoint's time", "our checksum", written, 0.05,
                under=True, percent=True),
            Row("loading and verifying a checkpoint against only reading it", "our load",
                "our raw-read", 0.7, percent=True)])

    def background():
        sides = [Side("async", [sys.executable, HERE / "async_checkpoints.py", "--lockstep",
                                pathlib.Path(options.build) / "lockstep", "--directory",
                                options.directory])]
        return Contest("async", sides, [
            Row("time added to training by asynchronous checkpoints (goal: at most their stalls plus "
                "a tenth of their write time)", "async", "async", 1, key="extra_s", their_key="allowed_s",
                under=True)])

    def loader():
        # One rank with two loader threads on two cores: not bound to one.
        sides = [Side(kind, [pathlib.Path(options.build) / "lockstep", "bench", "loader", "--kind",
                             kind, "--repeats", 3, "--json"], several=True)
                 for kind in ("small", "large", "deflate")]
        sides.append(Side("single", [*sides[1].command, "--batch", 1], several=True))
        sides += [Side(f"h5py {workers}", [sys.executable, HERE / "h5py_loader.py", "--workers",
                                           workers, "--repeats", 1]) for workers in (2, 0)]
        sides += [ours("start", 2, "loader", "--kind", "shards", "--variant", "start"),
                  ours("order", 2, "loader", "--kind", "order")]
        return Contest("loader", sides, [
            Row("60,000 small samples, shuffled, against h5py + DataLoader, 2 workers",
                "small loader", "h5py 2", 30),
            Row("the same against h5py + DataLoader without workers", "small loader", "h5py 0", 15),
            Row("the same, data.cache = memory, against a loop over an array in memory",
                "small memory", "small baseline", 0.5, percent=True),
            Row("samples of 4 MiB, shuffled, one per batch, against pread of the file from front to back",
                "single loader", "single baseline", 0.85, percent=True),
            Row("the same in batches of 16 MiB, which do not fit into the processor's cache",
                "large loader", "large baseline", percent=True),
            Row("deflated chunks against zlib alone", "deflate loader", "deflate baseline", 0.85,
                percent=True),
            Limit("1,000 shard files opened and the first batch read, 2 ranks", "start", 2),
            Limit("the first sample of an epoch of 10^12", "order", 1e-3),
            *(Row(f"memory of a rank for {kind} samples, against its limit: the prefetched batches plus 64 MiB",
                  f"{kind} loader", f"{kind} loader", 1, key="memory_bytes",
                  their_key="allowed_bytes", under=True, percent=True)
              for kind in ("small", "large", "deflate"))])

    def startup():
        lockstep = pathlib.Path(options.build) / "lockstep"
        sides = [Side(name, [sys.executable, HERE / "startup.py", name, "--lockstep", lockstep,
                             "--mpirun", options.mpirun]) for name in ("help", "train", "torch")]
        return Contest("startup", sides, [
            Limit("start: `lockstep --help`", "help", 0.2),
            Limit("start: `lockstep train` on 2 ranks to its first step", "train", 1.5),
            Row("start: `lockstep train` on 2 ranks to its first step against `import torch` of "
                "Python alone", "train", "torch")])

    # The MLP's step is about ten times the CNN's.
    few, many = options.steps, 10 * options.steps
    all_of_them = [exchange(), step("MLP", "mlp18m", few, 1.6, 1.0),
                   step("CNN", "cnn", many, 1.1, 0.95), one_rank("MLP", "mlp18m", few),
                   one_rank("CNN", "cnn", many), memory(), checkpoint(),
                   background(), loader(), startup()]
    return [each for each in all_of_them if not options.only or each.name in options.only]


def processor():
    with open("/proc/cpuinfo") as file:
        return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=HERE.parent / "build", help="where lockstep was built")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="of the MLP; the CNN takes ten times")
    parser.add_argument("--patience", type=float, default=60,
                        help="seconds to wait for a quiet machine before each process")
    parser.add_argument("--mb", type=int, default=1000, help="megabytes of a checkpoint")
    parser.add_argument("--directory", default=".", help="where checkpoints are written")
    parser.add_argument("--only", action="append", help="the name of a contest; may be repeated")
    parser.add_argument("--raw", help="a file to which every measurement is appended as JSON")
    options = parser.parse_args()
    if os.cpu_count() < 2:
        sys.exit("two cores are needed, one for each rank")

    lines, disturbances = [], []
    for contest in contests(options):
        rounds, disturbed = contest.run(options)
        lines += [row.line(rounds) for row in contest.rows]
        if disturbed > BUSY:
            disturbances.append(f"{contest.name} ({100 * disturbed:.0f} %)")
    print(f"\n{os.cpu_count()} cores of {processor()}, {options.rounds} rounds, "
          f"{time.strftime('%Y-%m-%d', time.gmtime())}\n")
    for line in [["what", "ours", "compared with", "ratio", "goal"], ["---"] * 5, *lines]:
        print("| " + " | ".join(line) + " |")
    print("\nNumbers in brackets: least and most of the rounds.")
    if disturbances:
        print("\n**Not trustworthy**: others used the cores during " + ", ".join(disturbances))


main()
