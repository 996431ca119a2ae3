"""A step of a model of bench/exported_step.py by PyTorch's DistributedDataParallel over gloo, eager or under
torch.compile. Started by torchrun."""
import argparse
import time

from torch_side import dist, leave, mean_over_ranks, start, tell, torch  # first: it binds the rank to a core

from exported_step import MODELS, WARM_UP, lockstep_builtin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=list(MODELS))
    parser.add_argument("weights", help="a safetensors file of the model")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    start()
    work, generator = MODELS[options.model], torch.Generator().manual_seed(dist.get_rank())
    module = torch.nn.parallel.DistributedDataParallel(lockstep_builtin.load(options.weights), gradient_as_bucket_view=True)
    if options.compile:
        module = torch.compile(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    times = []
    for inputs, targets in [work.batches(work.batch, generator) for _ in range(WARM_UP + options.steps)]:
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(inputs), targets).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    whole = mean_over_ranks(times[WARM_UP:])
    tell(f"step {options.model}", "compiled" if options.compile else "eager",
         sum(each.nbytes for each in module.parameters()), whole)
    leave()


main()
