"""What the two PyTorch benchmarks share: one core and one thread a rank, timing, the JSON line."""
import json
import os
import statistics
import sys

# Before torch is imported, so that its threads are bound, too.
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
CORES = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORES[LOCAL_RANK % len(CORES)]})

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def start():
    """Joins the other ranks over gloo; returns this rank and the number of ranks."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def over_ranks(values, operation):
    """A list of numbers of every rank, reduced element by element."""
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor, operation)
    return tensor.tolist()


def mean_over_ranks(values):
    return [value / dist.get_world_size() for value in over_ranks(values, dist.ReduceOp.SUM)]


def proportional_memory():
    """PSS: memory that several processes share counts in equal parts."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def tell(what, variant, size, seconds, **figures):
    """The line that `lockstep bench --json` prints, with the same keys."""
    if dist.get_rank() == 0:
        print(json.dumps({"what": what, "variant": variant, "bytes": size,
                          "ranks": dist.get_world_size(), "median_s": statistics.median(seconds),
                          "minimum_s": min(seconds), "maximum_s": max(seconds), **figures}),
              flush=True)


def leave():
    """Ends the process at once: gloo's threads now and then abort it while Python winds up."""
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)
