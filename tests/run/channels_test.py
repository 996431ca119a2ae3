"""Channels that are removed, and training for int8: smaller models that every reader understands, the same bits on
any number of ranks and through a kill."""
import shutil

import h5py

from harness import DATA, DECK, DRAW, LONG, Scratch, check, checkpoints, records, run, some, train
from harness_compress import SHORT, alike, measured

try:
    import torch
    import small_models
except ImportError: # another Python than the one that LibTorch came with
    torch = None


def shapes_in(file):
    found = {}
    with h5py.File(file) as opened:
        opened["model"].visititems(
            lambda name, item: found.update({name: item.shape}) if isinstance(item, h5py.Dataset) else None)
    return found


def macs(shapes):
    """Multiply-adds of a sample of the CNN, from the shapes of its weights."""
    size = 28
    sum_ = 0
    for name in ("features/conv1/weight", "features/conv2/weight"):
        out, inputs, *kernel = shapes[name]
        sum_ += out * inputs * kernel[0] * kernel[1] * size * size
        size //= 2
    for name in ("classifier/hidden/weight", "classifier/output/weight"):
        sum_ += shapes[name][0] * shapes[name][1]
    return sum_


def channels(scratch, whole):
    """Removed at several steps, by what gradients say; resumed between two removals."""
    options = ("--model.weights", whole / "best.h5", "--prune.pattern", "channels", "--prune.target", "macs 0.5",
               "--prune.score", "taylor", "--prune.begin", 2, "--prune.end", 7, "--prune.every", 2,
               "--optimizer.ema", 0.9)
    small = alike(scratch, "channels", options, ranks=(1, 2, 4) if LONG else (1, 4), dies=7)
    before = shapes_in(whole / "best.h5")
    for file in (small / "best.h5", checkpoints(small)[-1]):
        now = shapes_in(file)
        check(0.3 * macs(before) < macs(now) <= 0.5 * macs(before), f"{macs(now)} of {macs(before)} multiply-adds")
        kept = now["features/conv1/weight"][0]
        tied = ("features/conv1/bias", "features/norm1/weight", "features/norm1/running_var")
        check(all(now[name] == (kept,) for name in tied) and now["features/conv2/weight"][1] == kept, f"tied: {now}")
    sizes = [file.stat().st_size for file in (whole / "best.h5", small / "best.h5")]
    check(sizes[1] < sizes[0], f"the file is smaller: {sizes}")
    check("groups of channels removed" in (small / "log.txt").read_text(), "it is told")
    return small


def readers(scratch, small):
    """What takes a smaller model."""
    best, deck = small / "best.h5", small / "deck.ini"
    exact = measured(deck, best)
    told = records(small, "validation")[-1]
    check(f"accuracy {told['accuracy']:.6f}" in exact, f"evaluate gives what the run measured: {exact}, {told}")
    quantised = scratch / "small-int8.h5"
    run(["checkpoint", "quantise", best, quantised, "--data.train", DATA / "train.h5", "--samples", 200]).expect(
        0, "in int8")
    figures = [float(line.split("accuracy ")[1].split(",")[0]) for line in (exact, measured(deck, quantised))]
    check(abs(figures[0] - figures[1]) < 0.03, f"int8 of a smaller model: {figures}")
    for format_ in {"safetensors", *some(("onnx", "c", "torchscript"), 1)}:
        run(["checkpoint", "export", best, scratch / f"small.{format_}", "--format", format_]).expect(0)
    # Training continues with it, without its deck's knowing.
    train(scratch / "on", *SHORT, "--model.weights", best).expect(0)
    check(shapes_in(scratch / "on/best.h5") == shapes_in(best), "a run from a smaller model has its shapes")
    run(["plan", deck, "--run.directory", scratch / "plan", "--prune.pattern", "none", "--prune.score", "magnitude",
         "--model.weights", scratch / "small.safetensors"]).expect(0)
    train(scratch / "on", *SHORT, "--model.weights", best, "--train.steps", 10, ranks=1).expect(0, "resumed from")
    check(shapes_in(checkpoints(scratch / "on")[-1]) == shapes_in(best), "so it has after a resume")


def refused(scratch):
    for options, code, phrase in some((
            (("--prune.target", "macs 0.0001"), 64, "cannot be met"),
            (("--prune.target", "half"), 64, "prune.target"),
            (("--prune.except", "features.*,classifier.*"), 64, "cannot be met"),
            (("--communication.compression", "powersgd"), 64, "powersgd"),
            (("--prune.score", "taylor"), 64, "prune.begin"),
            (("--prune.begin", 8), 64, "no step would train without them"),
            (("--communication.broadcast-buffers", "false"), 64, "broadcast-buffers")), 2):
        train(scratch / "refused", *SHORT, "--prune.pattern", "channels", *options).expect(code, phrase)
        check(not checkpoints(scratch / "refused"), "refused before the first step")
        shutil.rmtree(scratch / "refused", ignore_errors=True)
    train(scratch / "other", *SHORT, "--model.channels", "1, 1", "--model.weights",
          scratch / "channels-1/best.h5").expect(65, "the deck's model")


def aware(scratch, whole, small):
    """Trained for int8: scales are learnt, and the int8 file has them."""
    options = ("--quantise.aware", "true", "--model.weights", whole / "best.h5", "--optimizer.learning-rate", 0.0003)
    run_ = alike(scratch, "aware", options, ranks=(1, 2, 4) if LONG else (2,))
    best, deck = run_ / "best.h5", run_ / "deck.ini"
    quantised = scratch / "aware-int8.h5"
    run(["checkpoint", "quantise", best, quantised, "--data.train", DATA / "train.h5"]).expect(0, "with learnt scales")
    figures = [float(measured(deck, file).split("accuracy ")[1].split(",")[0]) for file in (best, quantised)]
    check(abs(figures[0] - figures[1]) < 0.003, f"int8 gives what training simulated: {figures}")
    with h5py.File(best) as file, h5py.File(checkpoints(run_)[0]) as first:
        name = "model/features/conv2/weight_log_scale"
        check((file[name][...] != first[name][...]).any(), "scales are learnt")
    train(scratch / "wrong", *SHORT, "--quantise.aware", "true", "--precision.compute", "bf16").expect(64, "rounded again")
    if LONG:
        train(scratch / "both", *SHORT, *options, "--model.weights", small / "best.h5").expect(0)
        run(["checkpoint", "quantise", scratch / "both/best.h5", scratch / "both.h5", "--data.train",
             DATA / "train.h5"]).expect(0, "learnt")
        measured(deck, scratch / "both.h5")
        for more in (("--communication.sync-batch-norm", "true"), ("--run.mode", "dp")):
            alike(scratch, f"aware{more[1]}", (*options, *more), ranks=(1,) if "dp" in more else (1, 2))


def of_files(scratch):
    """Scripts and exported programs: their graphs may hold numbers of channels, which do not shrink with the weights."""
    class Fixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution, self.output = torch.nn.Conv2d(1, 4, 3), torch.nn.Linear(144, 3)

        def forward(self, images):
            return self.output(torch.relu(self.convolution(images)).view(-1, 144))

    small_models.write_data(scratch)
    small_models.lockstep_export.save(Fixed(), torch.rand(4, 1, 8, 8), scratch / "fixed.pt2")
    torch.jit.trace(Fixed(), torch.rand(4, 1, 8, 8)).save(str(scratch / "fixed.pt"))
    for name, ending in some((("script", "pt"), ("export", "pt2")), 1):
        deck, fixed = small_models.deck_of(scratch, name, 4), scratch / f"fixed.{ending}"
        options = ("--prune.pattern", "channels", "--prune.target", "macs 0.6")
        run(["train", deck, "--run.directory", scratch / f"{name}-small", *options], 1).expect(0)
        shape = shapes_in(scratch / f"{name}-small/best.h5")["0/weight"]
        check(shape[0] < 4, f"{name}: fewer channels than 4: {shape}")
        # It is refused at the start, not at the first removal.
        run(["train", deck, "--run.directory", scratch / f"{name}-fixed", "--model.file", fixed, *options,
             "--prune.begin", 2, "--prune.end", 2], 1).expect(64, "fails after channels are removed", "flatten(1)")
        check(not checkpoints(scratch / f"{name}-fixed"), "refused before the first step")
        # int8 layers give channels in an order of their own, which that view has to take.
        run(["train", deck, "--run.directory", scratch / f"{name}-whole", "--model.file", fixed], 1).expect(0)
        for folder, more in ((f"{name}-small", ()), (f"{name}-whole", ("--model.file", fixed))):
            best, integers = scratch / folder / "best.h5", scratch / f"{folder}8.h5"
            run(["checkpoint", "quantise", best, integers, "--data.train",
                 scratch / f"{small_models.MODELS[name][1]}.h5", "--samples", 40]).expect(0, "in int8")
            losses = [float(measured(deck, file, *more, ranks=1).split("loss ")[1].split(",")[0])
                      for file in (best, integers)]
            check(abs(losses[0] - losses[1]) < 0.05, f"int8 of {folder}: losses {losses}")


def groups_and_norms(scratch):
    """Blocks as MobileNet and ConvNeXt have them: numbers of groups and shapes of norms, which files hold as numbers,
    follow the weights."""
    class Blocks(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.depthwise = torch.nn.Conv2d(1, 8, 1), torch.nn.Conv2d(8, 16, 3, groups=8)
            self.batch_norm, self.point = torch.nn.BatchNorm2d(16), torch.nn.Conv2d(16, 8, 1)
            self.grouped, self.norm = torch.nn.Conv2d(8, 8, 1, groups=4), torch.nn.LayerNorm(8)
            self.wide, self.back = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
            self.scale, self.shift = torch.nn.Parameter(torch.ones(8)), torch.nn.Parameter(torch.zeros(8))
            self.factor, self.output = torch.nn.Parameter(torch.ones(8)), torch.nn.Linear(8, 3)

        def forward(self, images):
            places = torch.relu(self.batch_norm(self.depthwise(torch.relu(self.first(images)))))
            places = torch.nn.functional.instance_norm(self.grouped(self.point(places)))
            places = torch.nn.functional.instance_norm(places, weight=self.scale, bias=self.shift)
            inner = self.back(torch.nn.functional.gelu(self.wide(self.norm(places.permute(0, 2, 3, 1)))))
            return self.output((places + (self.factor * inner).permute(0, 3, 1, 2)).mean((2, 3)))

    images = torch.rand(4, 1, 8, 8)
    small_models.lockstep_export.save(Blocks(), images, scratch / "blocks.pt2")
    torch.jit.script(Blocks()).save(str(scratch / "blocks.pt"))
    torch.jit.trace(Blocks().eval(), images).save(str(scratch / "traced.pt"))
    for name, file in some((("export", "blocks.pt2"), ("script", "blocks.pt"), ("script", "traced.pt")), 1):
        deck, here = small_models.deck_of(scratch, name, 6), scratch / f"{file}-smaller"
        options = ("--model.file", scratch / file, "--prune.pattern", "channels", "--prune.target", "macs 0.5",
                   "--prune.scope", "layer", "--prune.begin", 1, "--prune.end", 3, "--prune.every", 1)
        run(["train", deck, "--run.directory", here, *options], 1).expect(0)
        best = here / "best.h5"
        now = shapes_in(best)
        channels, width = now["first/weight"][0], now["norm/weight"][0]
        check(channels < 8 and now["depthwise/weight"] == (2 * channels, 1, 3, 3), f"{file}: depthwise: {now}")
        check(width < 8 and now["grouped/weight"][:2] == (width, 2), f"{file}: whole groups: {now}")
        check(now["factor"] == now["scale"] == (width,) and now["wide/weight"] == (now["wide/bias"][0], width), f"{file}: norm: {now}")
        told = records(here, "validation")[-1]
        exact = measured(here / "deck.ini", best, ranks=1)
        check(f"accuracy {told['accuracy']:.6f}" in exact, f"{file}: evaluate gives what the run measured: {exact}, {told}")
        run(["checkpoint", "export", best, here / "blocks.onnx"]).expect(0)
        run(["checkpoint", "export", best, here / "smaller.pt", "--format", "torchscript"]).expect(0)
        check(torch.jit.load(str(here / "smaller.pt"))(images).shape == (4, 3), f"{file}: the script runs in Python")
        run(["train", deck, "--run.directory", here, *options, "--train.steps", 8], 1).expect(0, "resumed from")
    # A script's own numbers still tell data that it was not made for.
    other = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3, groups=3), torch.nn.Flatten(), torch.nn.Linear(216, 3))
    torch.jit.script(other).save(str(scratch / "other.pt"))
    deck = small_models.deck_of(scratch, "script", 2)
    run(["train", deck, "--run.directory", scratch / "other", "--model.file", scratch / "other.pt"]).expect(
        64, "cannot take a batch", "to have 3 channels")


def computed_weights(scratch):
    """A weight that is computed from parameters keeps its channels, and its products are counted."""
    wrap = getattr(torch.nn.utils.parametrizations, DRAW.choice(("spectral_norm", "weight_norm")))
    layer, relu, flat = torch.nn.Linear, torch.nn.ReLU, torch.nn.Flatten
    options = ("--prune.pattern", "channels", "--prune.begin", 1, "--prune.end", 2, "--prune.target")
    for name, model in (("all", [flat(), wrap(layer(64, 8)), relu(), wrap(layer(8, 3))]),
                        ("some", [flat(), wrap(layer(64, 64)), relu(), layer(64, 8), relu(), layer(8, 3)])):
        file = scratch / f"{name}.pt2"
        small_models.lockstep_export.save(torch.nn.Sequential(*model), torch.rand(4, 1, 8, 8), file)
        words = [small_models.deck_of(scratch, "export", 4), "--run.directory", scratch / f"computed-{name}",
                 "--model.file", file, *options]
        if name == "all":
            for command in ("train", "plan"):
                run([command, *words, "macs 0.5"], 1).expect(64, "cannot be met", "computed from some")
            continue
        told = run(["train", *words, "macs 0.95"], 1).expect(0).text
        left = shapes_in(scratch / "computed-some/best.h5")["3/weight"][0]
        share = 100 * (64 * 64 + left * (64 + 3)) / (64 * 64 + 8 * (64 + 3))
        check(f"{share:.1f} % of the multiply-adds remain" in told, f"{left} channels, {share:.1f} %: {told}")


with Scratch() as scratch:
    whole = scratch / "whole"
    train(whole, *SHORT, "--train.steps", 16, "--train.validate-every", 16).expect(0)
    small = channels(scratch, whole)
    readers(scratch, small)
    refused(scratch)
    aware(scratch, whole, small)
    if torch:
        of_files(scratch)
        groups_and_norms(scratch)
        computed_weights(scratch)
