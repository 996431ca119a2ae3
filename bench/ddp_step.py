"""One training step by PyTorch's DistributedDataParallel over gloo, as `lockstep bench step`
measures it: the same models, fresh random images, AdamW in torch's fused kernel, and the mean over
ranks of each step's time. --plain: each rank by itself, without DDP. Started by torchrun."""
import argparse
import statistics
import time

from torch_side import LOCAL_RANK, dist, leave, mean_over_ranks, over_ranks, proportional_memory, start, \
    tell, torch

SIDE, CLASSES = 28, 10


def mlp18m():
    widths = [SIDE * SIDE, 2048, 4096, 2048]
    layers = [torch.nn.Flatten()]
    for before, after in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], CLASSES))


def cnn():
    layers, before = [torch.nn.Unflatten(1, (1, SIDE))], 1
    for channels in (16, 32):
        layers += [torch.nn.Conv2d(before, channels, 3, padding=1),
                   torch.nn.BatchNorm2d(channels), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        before = channels
    features = before * (SIDE // 4) ** 2
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(features, 64),
                               torch.nn.ReLU(), torch.nn.Linear(64, CLASSES))


def random_batches(count, size):
    generator = torch.Generator().manual_seed(LOCAL_RANK)
    for _ in range(count):
        pixels = torch.randint(0, 256, (size, SIDE, SIDE), generator=generator)
        labels = torch.randint(0, CLASSES, (size,), generator=generator)
        yield pixels.to(torch.float32) / 255, labels


def train_step(model, optimizer, batch):
    """Seconds of the whole step, forward, backward (where DDP communicates) and update."""
    times = [time.perf_counter()]
    inputs, targets = batch
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    times.append(time.perf_counter())
    loss.backward()
    times.append(time.perf_counter())
    optimizer.step()
    times.append(time.perf_counter())
    parts = [after - before for before, after in zip(times, times[1:])]
    return [times[-1] - times[0], *parts], loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["mlp18m", "cnn"], default="mlp18m")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warm-ups", type=int, default=10)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    _, ranks = start()
    batches = list(random_batches(options.warm_ups + options.steps, options.batch))
    before = proportional_memory()

    torch.manual_seed(0)
    model = {"mlp18m": mlp18m, "cnn": cnn}[options.model]()
    size = sum(parameter.nbytes for parameter in model.parameters())
    if not options.plain:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    dist.barrier()
    times = []
    for batch in batches:
        taken, loss = train_step(model, optimizer, batch)
        times.append(taken)
    dist.barrier()  # memory is shared with ranks that are all still here
    after = proportional_memory()

    whole, forward, backward, update = map(mean_over_ranks, zip(*times[options.warm_ups:]))
    most = over_ranks([before, after], dist.ReduceOp.MAX)
    rate = 1 / statistics.median(whole)
    tell(f"step {options.model}", "plain" if options.plain else "ddp", size, whole,
         batch=options.batch, steps_per_s=rate, samples_per_s=rate * ranks * options.batch,
         forward_s=statistics.median(forward), backward_s=statistics.median(backward),
         update_s=statistics.median(update), loss=loss.item(), memory_before_bytes=most[0],
         memory_bytes=most[1])
    leave()


main()
