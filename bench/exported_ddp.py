"""A step of a model of bench/exported_step.py by PyTorch's DistributedDataParallel over gloo, eager or under
torch.compile. Started by torchrun."""
import argparse
import time

from torch_side import dist, leave, mean_over_ranks, start, tell, torch  # first: it binds the rank to a core

from exported_step import CLASSES, MODELS, TEXTS, WARM_UP, F, shape_of_targets


def batches(model, count):
    _, example, _, size = MODELS[model]
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(count):
        if texts := TEXTS.get(model):
            tokens = torch.randint(0, texts.vocabulary, (size, texts.sequence + 1), generator=generator)
            yield tokens[:, :-1], tokens[:, 1:]
        else:
            yield (torch.rand(size, *example.shape[1:], generator=generator),
                   torch.randint(0, CLASSES, shape_of_targets(model, size), generator=generator))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=list(MODELS))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    start()
    torch.manual_seed(1)
    module = torch.nn.parallel.DistributedDataParallel(MODELS[options.model][0](), gradient_as_bucket_view=True)
    if options.compile:
        module = torch.compile(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    times = []
    for inputs, targets in list(batches(options.model, WARM_UP + options.steps)):
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(module(inputs), targets).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    whole = mean_over_ranks(times[WARM_UP:])
    tell(f"step {options.model}", "compiled" if options.compile else "eager",
         sum(each.nbytes for each in module.parameters()), whole)
    leave()


main()
