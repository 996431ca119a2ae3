"""What PyTorch takes to write the state that `lockstep bench checkpoint` writes, durably: torch.save
by rank 0 with fsync, or torch.distributed.checkpoint of all ranks. Started by torchrun."""
import argparse
import os
import shutil
import time

from torch_side import dist, leave, over_ranks, start, tell, torch

NAMES = ("parameters", "exp_avg", "exp_avg_sq")


def save_alone(state, path, rank):
    if rank == 0:
        with open(path, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())


def save_together(state, path, rank):
    import torch.distributed.checkpoint as dcp
    # A shard of each array on every rank: plain tensors of another name, as each rank owns them.
    dcp.save({f"{name}.{rank}": value for name, value in state.items()}, checkpoint_id=path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--variant", choices=("save", "dcp"), default="save")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--directory", default=".")
    options = parser.parse_args()
    rank, ranks = start()
    together = options.variant == "dcp"
    count = options.mb * 1_000_000 // 4 // len(NAMES) // (ranks if together else 1)
    state = {name: torch.rand(count) for name in NAMES}
    place = os.path.join(options.directory, f"torch-bench-{os.getppid()}")
    seconds = []
    for repeat in range(options.repeats):
        if rank == 0:
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
        dist.barrier()
        begin = time.perf_counter()
        if together:
            save_together(state, place, rank)
        else:
            save_alone(state, os.path.join(place, "state.pt"), rank)
        dist.barrier()
        seconds += over_ranks([time.perf_counter() - begin], dist.ReduceOp.MAX)
    if rank == 0:
        shutil.rmtree(place, ignore_errors=True)
    tell("checkpoint", options.variant, options.mb * 1_000_000, seconds)
    leave()


main()
