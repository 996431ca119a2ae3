"""all_reduce of float32 over gloo, as `lockstep bench allreduce` measures it: every repetition
starts at a barrier and takes as long as its slowest rank. Started by torchrun."""
import argparse
import statistics
import time

from torch_side import dist, leave, over_ranks, start, tell, torch

WARM_UPS = 5


def seconds_of(values, sums):
    sums.copy_(values)
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(sums)
    return over_ranks([time.perf_counter() - begin], dist.ReduceOp.MAX)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=50)
    options = parser.parse_args()
    rank, ranks = start()
    pattern = torch.arange(options.bytes // 4, dtype=torch.float32) % 1021
    values = pattern + rank
    sums = torch.empty_like(values)
    seconds = [seconds_of(values, sums) for _ in range(WARM_UPS + options.repeats)][WARM_UPS:]
    if not torch.equal(sums, pattern * ranks + sum(range(ranks))):
        raise SystemExit("gloo's sum is wrong")
    tell("allreduce", "gloo", options.bytes, seconds,
         bytes_per_s=options.bytes / statistics.median(seconds))
    leave()


main()
