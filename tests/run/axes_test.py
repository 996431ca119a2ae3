"""Augmentation and models go by what the dimensions of samples mean, not by their positions: pictures, masks, clips and
volumes with channels first or last, tables, frames of features. What each augmentation may make of a sample is computed
here with numpy. Samples are seen in the weights: a layer that sees a whole sample moves along it in a step of SGD.
"""
import itertools

import h5py
import numpy as np

from harness import Scratch, check, checkpoints, run, some

STEPS, SIDE, SHIFT, ROWS, COLUMNS = 6, 8, 2, 3, 2
DECK = """
[run]
directory = {directory}
device = cpu
seed = {seed}
[data]
train = {data}
batch = {batch}
shuffle = none
augment = {augment}
[model]
{model}
[task]
{task}
[optimizer]
name = sgd
learning-rate = {rate}
weight-decay = 0
[checkpoint]
every-steps = 1
keep = 20
[monitor]
progress = plain
tensorboard = false
plots = false
[train]
steps = {steps}
"""


def write(path, inputs, targets=None, **attributes):
    with h5py.File(path, "w") as file:
        file["inputs"] = inputs
        file["targets"] = np.arange(len(inputs)) % 2 if targets is None else targets
        for name, value in attributes.items():
            file.attrs[name] = value
    return path


def deck(scratch, name, data, model, augment="none", task="", seed=1, batch=1, rate=0.05, steps=STEPS):
    path = scratch / f"{name}.ini"
    path.write_text(DECK.format(directory=scratch / name, data=data, augment=augment, task=task, seed=seed, batch=batch,
                                model=model.replace("; ", "\n"), rate=rate, steps=steps))
    return path


def samples_seen(directory, layer):
    """What each step saw, up to a factor: the gradient of a layer's unit is a multiple of its inputs."""
    weights = []
    for path in checkpoints(directory):
        with h5py.File(path) as file:
            weights.append(np.array(file[layer], np.float64))
    for before, after in itertools.pairwise(weights):
        moved = (after - before).reshape(len(before), -1)
        yield moved[np.abs(moved).sum(1).argmax()]


def weights(checkpoint):
    """The bytes of all tensors of a model."""
    found = {}
    with h5py.File(checkpoint) as file:
        file["model"].visititems(lambda name, item: found.update({name: np.array(item).tobytes()})
                                 if isinstance(item, h5py.Dataset) else None)
    return found


def shifted(values, by, axis):
    moved = np.roll(values, by, axis)
    gone = [slice(None)] * values.ndim
    gone[axis] = slice(0, by) if by > 0 else slice(values.shape[axis] + by, None)
    if by:
        moved[tuple(gone)] = 0
    return moved


def possible(augment, values, places):
    """All that an augmentation may make of a sample, whose places in space or time are these axes."""
    if augment == "flip":
        return [values, np.flip(values, places[-1])]
    if augment.startswith("flip:"):
        return [values, np.flip(values, int(augment[5:]))]
    shifts = range(-SHIFT, SHIFT + 1)
    if augment.startswith("crop"):
        found = [values]
        for axis in places[-2:]:
            found = [shifted(each, by, axis) for each in found for by in shifts]
        return found
    found = []
    for lengths in itertools.product(range(ROWS + 1), range(COLUMNS + 1)):
        for begins in itertools.product(*(range(values.shape[a] - n + 1) for a, n in zip(places[-2:], lengths))):
            masked = values.copy()
            for axis, begin, length in zip(places[-2:], begins, lengths):
                np.moveaxis(masked, axis, 0)[begin:begin + length] = 0
            found.append(masked)
    return found


def is_one_of(seen, candidates):
    """Whether a vector is a multiple of one of them."""
    stacked = np.stack([c.ravel() for c in candidates])
    norms = np.linalg.norm(stacked, axis=1)
    stacked, norms = stacked[norms > 0], norms[norms > 0]
    if np.linalg.norm(seen) < 1e-5:
        return True # zeros, or a step that learnt nothing
    return (np.abs(stacked @ seen) / norms / np.linalg.norm(seen)).max() > 1 - 1e-4


MLP = ("name = mlp; hidden = 64", "model/layers/hidden1/weight")
VIT = (f"name = vit; patch = {SIDE}; width = 32; heads = 2; layers = 1; dropout = 0", "model/patches/weight")
LAST = "; layout = channels-last"
# shape of a sample, axes that are places, model, what is possible
SEEN = {
    "pictures": ((3, SIDE, SIDE), (1, 2), VIT, ""), "pictures-last": ((SIDE, SIDE, 3), (0, 1), VIT, LAST),
    "one-channel-last": ((SIDE, SIDE, 1), (0, 1), VIT, LAST), "gray": ((SIDE, SIDE), (0, 1), VIT, ""),
    "gray-of-last": ((SIDE, SIDE), (0, 1), VIT, LAST),
    "mlp": ((3, SIDE, SIDE), (1, 2), MLP, ""), "mlp-last": ((SIDE, SIDE, 3), (0, 1), MLP, ""),
    "mlp-gray": ((6, SIDE), (0, 1), MLP, ""), "mlp-clips": ((3, 5, SIDE, SIDE), (1, 2, 3), MLP, ""),
    "mlp-clips-last": ((5, SIDE, SIDE, 3), (0, 1, 2), MLP, ""),
}


def seen_as_possible(scratch):
    cases = [(kind, augment, seed) for kind in SEEN for seed in (1, 2)
             for augment in ("flip", f"crop:{SHIFT}", f"mask:{ROWS}:{COLUMNS}")
             if not (augment.startswith("mask") and len(SEEN[kind][1]) > 2)]
    cases += [("mlp", "flip:1", 1), ("pictures-last", "flip:0", 1), ("table", "flip:0", 1)]
    table = {**SEEN, "table": ((7,), (0,), MLP, "")}
    for kind, augment, seed in some(cases, 6):
        shape, places, (model, layer), layout = table[kind]
        values = np.random.default_rng(seed).uniform(1, 2, (STEPS, *shape)).astype(np.float32)
        name = f"{kind}-{augment.replace(':', '')}-{seed}"
        data = write(scratch / f"{name}.h5", values)
        run(["train", deck(scratch, name, data, model + layout, augment, seed=seed)]).expect(0)
        changed = 0
        for sample, seen in zip(values, samples_seen(scratch / name, layer)):
            first = np.moveaxis(sample, -1, 0) if layout and sample.ndim == 3 else sample # as the layer has it
            candidates = possible(augment, sample, places)
            if first is not sample:
                candidates = [np.moveaxis(c, -1, 0) for c in candidates]
            check(is_one_of(seen, candidates), f"{name}: a sample became what {augment} must not make of it")
            changed += not is_one_of(seen, [first])
        check(changed > 0, f"{name}: no sample was changed")


def layouts_agree(scratch):
    """Models of pictures learn the same bits from either layout."""
    pictures, clips = (3, 16, 16), (2, 4, 16, 16)
    models = {"cnn": ("name = cnn; channels = 4, 4; hidden = 8", pictures, 2), "resnet": ("name = resnet", pictures, 2),
              "vit": ("name = vit; width = 16; heads = 2; layers = 1", pictures, 2),
              "unet": ("name = unet; channels = 4, 4", pictures, 2),
              "unet3d": ("name = unet3d; channels = 4, 4", clips, 3), "cnn3d": ("name = cnn3d; channels = 4, 4", clips, 3)}
    for name in some(models, 2):
        model, shape, places = models[name]
        for augment in [{"unet": "mask:4:4", "unet3d": "flip:{0}"}[name]] if name.startswith("unet") else some(["flip, crop:3", "flip:{0}, flip:{1}"], 1):
            values = np.random.default_rng(0).normal(size=(12, *shape)).astype(np.float32)
            of_places = name.startswith("unet")
            targets = np.random.default_rng(1).integers(0, 2, (12, *shape[1:])) if of_places else None
            states = []
            for layout, data in (("channels-first", values), ("channels-last", np.moveaxis(values, 1, -1))):
                first = 1 if layout == "channels-first" else 0
                words = augment.format(first, first + 1)
                own = f"{name}-{layout}-{len(augment)}"
                path = write(scratch / f"{own}.h5", data, targets, classes=["a", "b"],
                             mean=np.arange(shape[0]) / 4, std=1 + np.arange(shape[0]) / 4) # of each channel
                run(["train", deck(scratch, own, path, f"{model}; layout = {layout}", words, batch=4, steps=3,
                                   task="kind = segmentation" if of_places else "")]).expect(0)
                states.append(weights(checkpoints(scratch / own)[-1]))
            check(states[0] == states[1], f"{name} with {augment}: the layouts differ")


# shape of a sample, its dimension of channels, what else the file says, model
BY_CHANNEL = {
    "windows": ((4, 4), 1, {"columns": list("abcd")}, "name = transformer; layers = 1; width = 16; heads = 2"),
    "long-windows": ((6, 4), 1, {"columns": list("abcd")}, "name = transformer; layers = 1; width = 16; heads = 2"),
    "frames": ((5, 5), 1, {"sample_rate": 8000.0}, "name = cnn1d; channels = 4"),
    "rows": ((5, 5), 1, {}, "name = mlp; hidden = 8"),
    "pictures-last": ((4, 4, 4), 2, {}, "name = vit; patch = 2; width = 16; heads = 2; layers = 1; layout = channels-last"),
    "pictures-first": ((4, 4, 4), 0, {}, "name = vit; patch = 2; width = 16; heads = 2; layers = 1"),
    "named-boxes": ((4, 5, 4), 2, {"columns": list("abcd")}, "name = mlp; hidden = 8"),
    "boxes": ((4, 5, 4), 0, {}, "name = mlp; hidden = 8"),
    "table": ((4,), 0, {"columns": list("abcd")}, "name = mlp; hidden = 8"),
}


def normalised_along(scratch):
    """A mean and std for each channel are those of the dimension that holds channels, wherever they are used: samples
    that were normalised by hand give the same bits, and exported files agree."""
    doubtful = [kind for kind, (shape, *_) in BY_CHANNEL.items() if shape[0] == shape[-1] and len(shape) > 1]
    for kind in [*some(doubtful), *some([kind for kind in BY_CHANNEL if kind not in doubtful])]:
        shape, axis, says, model = BY_CHANNEL[kind]
        random = np.random.default_rng(2)
        along = [1] * len(shape)
        along[axis] = -1
        mean, std = np.float32([0, 50, -3, 4, 9][:shape[axis]]), np.float32([1, 100, .2, 3, 5][:shape[axis]])
        values = (random.normal(size=(48, *shape)) * std.reshape(along) + mean.reshape(along)).astype(np.float32)
        by_hand = (values - mean.reshape(along)) / std.reshape(along)
        states = []
        for name, data, moments in (("raw", values, {"mean": np.float64(mean), "std": np.float64(std)}), ("hand", by_hand, {})):
            path = write(scratch / f"{kind}-{name}.h5", data, **says, **moments)
            run(["train", deck(scratch, f"{kind}-{name}", path, model, batch=8)]).expect(0)
            states.append(weights(checkpoints(scratch / f"{kind}-{name}")[-1]))
        check(states[0] == states[1], f"{kind}: normalised along another dimension")
        newest, out = checkpoints(scratch / f"{kind}-raw")[-1], scratch / f"{kind}.c"
        run(["checkpoint", "export", newest, out, "--overwrite"]).expect(0)
        run(["export", "check", out, "--data", scratch / f"{kind}-raw.h5"]).expect(0, "It agrees with")
        lines = [run(["evaluate", scratch / f"{kind}-{name}.ini", checkpoints(scratch / f"{kind}-{name}")[-1], "--data.test",
                      scratch / f"{kind}-{name}.h5"]).expect(0).text.split("test: ")[1].splitlines()[0] for name in ("raw", "hand")]
        check(lines[0].split("(")[0] == lines[1].split("(")[0], f"{kind}: {lines}")


def told_by_the_file(scratch):
    """Names of columns, a sample rate and means say which dimension holds features or channels."""
    random = np.random.default_rng(3)
    features = {"windows": ((6, 5), {"columns": list("abcde")}), "square": ((5, 5), {"columns": list("abcde")}),
                "sound": ((12, 8), {"sample_rate": 8000.0}), "means": ((6, 5), {"mean": [0.] * 5, "std": [1.] * 5})}
    for kind in some(features, 2):
        shape, says = features[kind]
        data = write(scratch / f"{kind}.h5", random.normal(size=(6, *shape)).astype(np.float32), **says)
        run(["train", deck(scratch, kind, data, "name = mlp; hidden = 4", "flip")]).expect(64, "holds features")
        run(["train", deck(scratch, kind, data, "name = mlp; hidden = 4", "flip:0, crop:1")]).expect(0)
    table = write(scratch / "named.h5", random.normal(size=(6, 5)).astype(np.float32), columns=list("abcde"))
    run(["train", deck(scratch, "named", table, "name = mlp; hidden = 4", "flip:0")]).expect(64, "holds features")
    layouts = {"last": ((8, 8), -1, "name = cnn; channels = 4", "channels-last"),
               "first": ((8, 8), 1, "name = cnn; channels = 4; layout = channels-last", "channels-first"),
               "clips": ((6, 8, 8), -1, "name = cnn3d; channels = 4", "channels-last"),
               "series": ((20,), 1, "name = cnn1d; channels = 4", "is read as time")}
    for kind in some(layouts):
        places, at, model, mend = layouts[kind]
        for count in some((2, 5, 13), 1):
            values = np.moveaxis(random.normal(size=(6, count, *places)), 1, at).astype(np.float32)
            data = write(scratch / f"{kind}.h5", values, mean=[0.] * count, std=[1.] * count)
            name = deck(scratch, f"{kind}-{count}", data, model)
            for command in ("plan", "train", "check"):
                done = run([command, name])
                check(mend in " ".join(done.text.split()), f"{kind} of {count}: {command} does not tell: {done.text}")


def layout_of_masks(scratch):
    """Masks that fit samples with their channels at the other end show which layout is meant."""
    random = np.random.default_rng(4)
    for wanted, other, at in (("channels-last", "channels-first", -1), ("channels-first", "channels-last", 1)):
        values = np.moveaxis(random.normal(size=(8, 3, 8, 12)), 1, at).astype(np.float32)
        data = write(scratch / f"{wanted}.h5", values, random.integers(0, 2, (8, 8, 12)), classes=["a", "b"])
        path = deck(scratch, wanted, data, f"name = unet; channels = 4; layout = {other}", "flip", "kind = segmentation")
        run(["train", path]).expect(64, "data.augment = flip", f"set model.layout = {wanted}")


def main():
    with Scratch() as scratch:
        layout_of_masks(scratch)
        seen_as_possible(scratch)
        layouts_agree(scratch)
        normalised_along(scratch)
        told_by_the_file(scratch)
    print("axes are what they mean")


if __name__ == "__main__":
    main()
