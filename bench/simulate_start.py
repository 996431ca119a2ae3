#!/usr/bin/env python3
"""Simulates the communication of a start on many ranks with SimGrid SMPI. Small runs of the program itself list the
collectives that it calls up to the first step (build/bench/libstart_calls.so, which pretends hosts); from two sizes
follows how the bytes of each call depend on the ranks, and a third checks that. Calls within a host are left out.
Every figure is a model's, none is a measurement.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import simulate

SOURCE = pathlib.Path(__file__).parents[1]
RANKS_PER_HOST = 2  # of the small runs: no call between hosts depends on it
SMALL = (8, 16, 32)
COMPUTE = 0  # of reductions: a few bytes


def calls_of(build, data, ranks, scratch):
    """(call, whether all ranks take part, bytes) of a run's start; the receives of a gather are one call."""
    listing = scratch / f"calls-{ranks}"
    words = ["mpirun", "-n", ranks, "--oversubscribe", "-x", f"START_CALLS={listing}",
             "-x", f"START_RANKS_PER_HOST={RANKS_PER_HOST}", "-x", f"LD_PRELOAD={build}/bench/libstart_calls.so",
             "-x", "LOCKSTEP_HOST_SUMS=halving", build / "lockstep", "train", SOURCE / "inputs/test_small.ini",
             "--data.train", data / "train.h5", "--data.validation", data / "test.h5",
             "--run.directory", scratch / f"run-{ranks}", "--train.steps", 1, "--run.replicas", ranks,
             "--data.global-batch", 4 * ranks, "--optimizer.accumulate", 1]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{ranks} ranks: {done.stdout}{done.stderr}")
    calls = []
    gathering = False
    for line in listing.read_text().splitlines():
        call, of, hosts, size = line.split()
        if hosts == "1":
            continue
        if call == "receive" and gathering:
            calls[-1][2] += float(size)
        else:
            calls.append(["gather" if call == "receive" else call, int(of) == ranks, float(size)])
        gathering = call == "receive"
    return calls


def size_at(ranks, sizes):
    """Bytes of a call on so many ranks: what is shared out falls, what is the same for all stays, what names each
    rank or host grows."""
    small, middle, large = (sizes[each] for each in SMALL)
    if small == large:
        return large
    if abs(small * SMALL[0] - large * SMALL[-1]) < 0.05 * small * SMALL[0]:
        return large * SMALL[-1] / ranks
    slope = (large - small) / (SMALL[-1] - SMALL[0])
    if abs(small + slope * (SMALL[1] - SMALL[0]) - middle) > 0.1 * large + 16:
        sys.exit(f"no line through {sizes}")
    return large + slope * (ranks - SMALL[-1])


def lines_of(call, size, rank, ranks):
    """A call, as the trace of a rank; communicators as Open MPI makes them: who takes part is gathered, and a
    number for it agreed upon."""
    if call == "bcast":
        return [f"bcast {size} 0 6"]
    if call == "allreduce":
        return [f"allreduce {size} {COMPUTE} 6"]
    if call == "barrier":
        return ["barrier"]
    if call in ("allgather", "allgatherv"):
        return [f"allgather {size} {size} 6 6"]
    if call in ("dup", "split"):
        return (["allgather 8 8 6 6"] if call == "split" else []) + 3 * [f"allreduce 4 {COMPUTE} 6"]
    lines = []  # gather: a binomial tree, each text after its length
    step = 1
    while step < ranks:
        below = min(step, max(0, ranks - rank - step)) if rank % (2 * step) == 0 else min(step, ranks - rank)
        bytes_below = max(1, round(size * below / ranks))
        if rank % (2 * step):
            return lines + [f"send {rank - step} 1 8 6", f"send {rank - step} 1 {bytes_below} 6"]
        if rank + step < ranks:
            lines += [f"recv {rank + step} 1 8 6", f"recv {rank + step} 1 {bytes_below} 6"]
        step *= 2
    return lines


def seconds_of(network, ranks, call, size):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        with (directory / "index").open("w") as index:
            for rank in range(ranks):
                file = directory / f"rank{rank}.ti"
                lines = ["init", *lines_of(call, size, rank, ranks), "finalize"]
                file.write_text("".join(f"{rank} {line}\n" for line in lines))
                index.write(f"{file}\n")
        return simulate.replay(directory, network, ranks, "--cfg=smpi/coll-selector:ompi")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build").resolve())
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("build/tests/data").resolve())
    parser.add_argument("--ranks", type=int, default=8192)
    parser.add_argument("--ranks-per-host", type=int, default=8)
    parser.add_argument("--networks", default=",".join(simulate.NETWORKS))
    arguments = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                      OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_hwloc_base_binding_policy="none")
    with tempfile.TemporaryDirectory() as name:
        runs = {ranks: calls_of(arguments.build, arguments.data, ranks, pathlib.Path(name)) for ranks in SMALL}
    first, *others = ([call[:2] for call in runs[ranks]] for ranks in SMALL)
    if any(each != first for each in others):
        sys.exit(f"other calls on other numbers of ranks: {list(map(len, runs.values()))}")
    kinds = collections.Counter()
    for at, (call, all_ranks) in enumerate(first):
        members = (lambda ranks: ranks) if all_ranks else (lambda ranks: ranks // RANKS_PER_HOST)
        size = size_at(arguments.ranks * (1 if all_ranks else RANKS_PER_HOST / arguments.ranks_per_host),
                       {ranks: runs[ranks][at][2] for ranks in SMALL})
        kinds[call, all_ranks, max(1, round(size)) if call not in ("barrier", "dup", "split") else 0] += 1
    print("| network | call | ranks | bytes | calls | simulated, together |")
    print("|---|---|---|---|---|---|")
    for network in arguments.networks.split(","):
        total = 0
        for (call, all_ranks, size), count in sorted(kinds.items()):
            members = arguments.ranks if all_ranks else arguments.ranks // arguments.ranks_per_host
            seconds = count * seconds_of(network, members, call, size)
            total += seconds
            print(f"| {network} | {call} | {members} | {size} | {count} | {1e3 * seconds:.2f} ms |", flush=True)
        print(f"| {network} | all | | | {sum(kinds.values())} | {1e3 * total:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
