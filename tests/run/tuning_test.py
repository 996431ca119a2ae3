"""Fine-tuning: weights taken in part and under the names of torchvision and timm, frozen parameters that are thawed,
groups with their own rates, and adapters (LoRA); with the same bits on any number of ranks and through kills. The short
form draws."""
import json
import random
import re
import sys

import h5py
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from harness import LONG, SEED, SOURCE, Scratch, check, check_same, checkpoints, records, run, some

SAMPLES = 24
DECK = """
[run]
replicas = 3
device = cpu
[data]
train = {data}
validation = {data}
batch = 2
[model]
{model}
[optimizer]
learning-rate = 0.01
[checkpoint]
every-steps = 2
[monitor]
progress = plain
tensorboard = false
plots = false
weight-hash = true
[train]
epochs = 2
steps = 7
"""
CNN = "name = cnn\nchannels = 4, 8\nhidden = 16\ndropout = 0.2"
VIT = "name = vit\nlayers = 2\nwidth = 16\nheads = 2\npatch = 4\nnorm-epsilon = 1e-6\ndropout = 0.1"
DICE = random.Random(SEED)


def pictures(path, classes, side=12):
    numbers = np.random.default_rng(classes)
    with h5py.File(path, "w") as file:
        file["inputs"] = numbers.normal(size=(SAMPLES, 3, side, side)).astype(np.float32)
        file["targets"] = np.arange(SAMPLES) % classes
    return path


def deck(scratch, name, model, data):
    path = scratch / f"{name}.ini"
    path.write_text(DECK.format(model=model, data=data))
    return path


class Block(nn.Module):
    """A residual block with the names that torchvision and timm give its layers."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (self.downsample(x) if hasattr(self, "downsample") else x)).relu()


class ResNet18(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        for stage, (before, width) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), 1):
            setattr(self, f"layer{stage}", nn.Sequential(Block(before, width, 1 if stage == 1 else 2),
                                                         Block(width, width, 1)))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = F.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))


class Layer(nn.Module):
    """A block of timm's vision transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.qkv, self.attn.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, places, width = x.shape
        q, k, v = self.attn.qkv(self.norm1(x)).view(n, places, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.attn.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, places, width))
        return x + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, classes, layers=2, width=16, heads=2, side=12, patch=4):
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width))
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def as_torchvision(weights):
    """Names of timm's vision transformer as torchvision has them."""
    names = {"cls_token": "class_token", "pos_embed": "encoder.pos_embedding"}
    parts = {"patch_embed.proj": "conv_proj", "norm": "encoder.ln", "head": "heads.head"}
    for at in range(2):
        block = f"encoder.layers.encoder_layer_{at}"
        for theirs, other in (("norm1", "ln_1"), ("norm2", "ln_2"), ("attn.proj", "self_attention.out_proj"),
                              ("mlp.fc1", "mlp.0"), ("mlp.fc2", "mlp.3")):
            parts[f"blocks.{at}.{theirs}"] = f"{block}.{other}"
        for kind in ("weight", "bias"):
            names[f"blocks.{at}.attn.qkv.{kind}"] = f"{block}.self_attention.in_proj_{kind}"
    for name in weights:
        stem, _, kind = name.rpartition(".")
        names.setdefault(name, f"{parts.get(stem)}.{kind}")
    return {names[name]: values for name, values in weights.items()}


def as_transformers(weights):
    """Names of torchvision's ResNet as the transformers package has them."""
    def other(name):
        stem, _, kind = name.rpartition(".")
        parts = stem.split(".")
        if parts[0] == "fc":
            return f"classifier.1.{kind}"
        layer = parts[-1]
        if len(parts) == 1:
            tail = "embedder.embedder." + ("convolution" if layer == "conv1" else "normalization")
        else:
            at = f"encoder.stages.{int(parts[0][5:]) - 1}.layers.{parts[1]}."
            if parts[2] == "downsample":
                tail = at + ("shortcut.convolution" if layer == "0" else "shortcut.normalization")
            else:
                tail = f"{at}layer.{int(layer[-1]) - 1}." + ("convolution" if layer[:-1] == "conv" else "normalization")
        return f"resnet.{tail}.{kind}"

    return {other(name): values for name, values in weights.items()}


def names_elsewhere(scratch):
    """The same loss here as in PyTorch, for weights with the names of other programs."""
    torch.manual_seed(SEED)
    small, large = pictures(scratch / "named12.h5", 4), pictures(scratch / "named32.h5", 4, 32)
    same = dict
    cases = (("timm-vit", ViT(4), VIT, small, same), ("torchvision-vit", ViT(4), VIT, small, as_torchvision),
             ("torchvision-resnet", ResNet18(4), "name = resnet\nstem = large", large, same),
             ("transformers-resnet", ResNet18(4), "name = resnet\nstem = large", large, as_transformers))
    for name, model, keys, data, renamed in (cases if LONG else (cases[DICE.randrange(2)], cases[2 + DICE.randrange(2)])):
        with h5py.File(data) as file:
            inputs, targets = torch.from_numpy(file["inputs"][:]), torch.from_numpy(file["targets"][:])
        with torch.no_grad():
            for _ in range(3):
                model.train()(inputs)  # statistics that are not those of the beginning
            wanted = F.cross_entropy(model.eval()(inputs), targets).item()
        path = scratch / f"{name}.safetensors"
        save_file({key: values.contiguous() for key, values in renamed(model.state_dict()).items()}, path)
        text = run(["evaluate", deck(scratch, name, keys, data), path]).expect(0).text
        found = float(text.split("loss ")[1].split(",")[0])
        check(abs(found - wanted) < 2e-4 * wanted, f"{name}: loss {found}, {wanted} by PyTorch")
        if "transformers" not in name:
            named = scratch / f"{name}-named.safetensors"
            run(["train", scratch / f"{name}.ini", "--model.weights", path, "--train.steps", 1, "--run.directory",
                 scratch / f"{name}-whole"], 1).expect(0)
            out_and_back(scratch / f"{name}-whole", named, name.split("-")[0], model)
        # Another head: all else is taken.
        tuned = run(["train", deck(scratch, f"{name}-3", keys, pictures(scratch / "three.h5", 3, inputs.shape[-1])),
                     "--model.weights", path, "--model.weights-match", "common", "--train.steps", 1,
                     "--run.directory", scratch / f"{name}-run"], 1)
        head = f"{'head' if 'timm' in name else 'heads.head' if 'vit' in name else 'fc' if 'vision' in name else 'classifier.1'}"
        tuned.expect(0, f"starting over from run.seed: output.weight (the file has {head}.weight [4, ",
                     f"output.bias (the file has {head}.bias [4])", f"left over in the file: ")


def out_and_back(directory, named, package, model):
    """A run's weights under the names of a package load there as they are, and here again with the same bits."""
    ours, again = named.with_suffix(".ours.safetensors"), named.with_suffix(".h5")
    run(["checkpoint", "export", directory, ours]).expect(0)
    run(["checkpoint", "export", directory, named, "--names", package]).expect(0, f"with the names of {package}")
    theirs = load_file(named)
    wanted = as_torchvision(model.state_dict()) if package == "torchvision" and isinstance(model, ViT) else model.state_dict()
    check({key: values.numel() for key, values in theirs.items()} ==
          {key: values.numel() for key, values in wanted.items()}, f"{package}: {sorted(theirs)}")
    if wanted.keys() == model.state_dict().keys():
        model.load_state_dict(theirs)  # strictly
    bits = sorted(bytes(values.numpy()) for values in load_file(ours).values())
    joined = [part for key, values in theirs.items()
              for part in (values.chunk(3) if re.search(r"qkv|in_proj", key) else [values])]
    check(sorted(bytes(values.contiguous().numpy()) for values in joined) == bits, f"{package}: the same bits")
    for file in (ours, named):
        out = file.with_suffix(".csv")
        with h5py.File(checkpoints(directory)[-1]) as checkpoint:
            data = re.search(r"train = (.*)", checkpoint["record/deck"][()].decode())[1]
        run(["predict", file, data, "--output", out]).expect(0)
    check(named.with_suffix(".csv").read_bytes() == ours.with_suffix(".csv").read_bytes(), "the same predictions")
    run(["checkpoint", "export", named, again, "--names", package]).expect(64, "cannot be combined with --format hdf5")


def exported(scratch, run_directory, step):
    """The tensors of a run's checkpoint."""
    file = scratch / f"{run_directory.name}-{step}.safetensors"
    run(["checkpoint", "export", run_directory / f"checkpoints/step-{step:08d}.h5", file]).expect(0)
    return load_file(file)


def same_body(one, other):
    return all(torch.equal(values, other[name]) for name, values in one.items() if name.startswith("features."))


def tuned_resnet(scratch):
    """A ResNet of ten classes learns three: its head first, then all of it."""
    keys = "name = resnet\nstem = small"
    whole = ("--optimizer.name", "sgd", "--optimizer.momentum", 0.9, "--checkpoint.keep", 9)
    first = scratch / "ten"
    run(["train", deck(scratch, "ten", keys, pictures(scratch / "ten.h5", 10)), "--run.directory", first, *whole,
         "--train.steps", 2], 2).expect(0)
    before = exported(scratch, first, 2)
    run(["checkpoint", "export", checkpoints(first)[-1], scratch / "other.safetensors", "--names", "timm"]).expect(
        64, "its first convolution is 3 x 3")
    three = deck(scratch, "three", keys, pictures(scratch / "three.h5", 3))
    weights = ("--model.weights", checkpoints(first)[-1])
    run(["train", three, "--run.directory", scratch / "strict", *weights], 2).expect(
        65, "data.train has 3 classes", "model.weights-match = common")
    common = ("--model.weights-match", "common")
    run(["train", three, "--run.directory", scratch / "random", *weights, *common, "--optimizer.freeze", "*"], 2).expect(
        64, "no parameter is left to train")
    run(["train", three, "--run.directory", scratch / "random", *weights, *common, "--optimizer.freeze", "output.weight"],
        2).expect(64, "output.weight [3, 512] would stay random", "has output.weight [10, 512]")
    words = ["train", three, *weights, *common, "--optimizer.freeze", "features.*",
             "--optimizer.thaw-epoch", 1, "--train.steps", 6, *whole]
    one = scratch / "one"
    told = run([*words, "--run.directory", one], 1).expect(
        0, "of 122 tensors", "starting over from run.seed: output.weight (the file has output.weight [10, 512]), "
        "output.bias (the file has output.bias [10])", "left over in the file: output.bias, output.weight",
        "stay as they are (optimizer.freeze) for the first epoch").text
    check("warning" not in told.split("step 1")[0], told)
    check(same_body(before, exported(scratch, one, 4)), "frozen for an epoch of 4 steps")
    after = exported(scratch, one, 6)
    moved = [name for name in after if name.startswith("features.") and not torch.equal(after[name], before[name])]
    check(len(moved) == sum(name.startswith("features.") for name in after), f"thawed: {moved}")
    check(after["output.weight"].shape == (3, 512), f"{after['output.weight'].shape}")
    with h5py.File(checkpoints(one)[-1]) as file:
        facts = json.loads(json.loads(file["record/notes"][()])["facts"])
    check(facts["class_count"] == 3, f"the classes are those of the new data: {facts}")
    for ranks in some((2, 3)):
        other = scratch / f"ranks-{ranks}"
        step = DICE.randrange(3, 7)
        killed = run([*words, "--run.directory", other], ranks, env={"LOCKSTEP_INJECT": f"kill:rank=1:step={step}"})
        check(killed.code != 0, "killed")
        run([*words, "--run.directory", other], 4 - ranks).expect(0)
        check_same(one, other, f"1 rank, and {ranks} killed at step {step}, then {4 - ranks}")


def walked(scratch):
    """Frozen parameters and groups with all that meets them: the same bits on other ranks, through a kill."""
    data = pictures(scratch / "walked.h5", 3)
    cnn, vit = deck(scratch, "cnn", CNN, data), deck(scratch, "vit", VIT, data)
    head = ("--optimizer.freeze", "!classifier.*")
    thaw = (*head, "--optimizer.thaw-epoch", 1)
    cases = [("adamw", cnn, thaw), ("adamw", cnn, (*thaw, "--optimizer.ema", 0.9, "--optimizer.clip-norm", 0.1)),
             ("lars", cnn, (*thaw, "--optimizer.momentum", 0.9)), ("lamb", cnn, (*thaw, "--optimizer.clip-norm", 0.1)),
             ("sgd", cnn, (*head, "--optimizer.proximal", 0.1)), ("adamw", cnn, (*thaw, "--optimizer.update", "replicated")),
             ("adamw", cnn, (*thaw, "--precision.gradient-checkpointing", "true")),
             ("adamw", cnn, (*thaw, "--communication.sync-batch-norm", "true")),
             ("adamw", cnn, (*thaw, "--communication.broadcast-buffers", "false")),
             ("adamw", cnn, (*thaw, "--communication.unused-parameters", "true", "--communication.static-graph", "true")),
             ("adamw", cnn, (*thaw, "--communication.bucket-mb", 0.016, "--communication.first-bucket-mb", 0.016)),
             ("adam", cnn, (*head, "--prune.pattern", "unstructured", "--prune.begin", 3)),
             ("adam", cnn, (*head, "--communication.compression", "powersgd")),
             ("adamw", cnn, (*thaw, "--communication.compression", "bf16", "--optimizer.accumulate", 2)),
             ("adamw", cnn, ("--optimizer.groups", "features.* rate 0.1 decay 0.5, *.output.* rate 3")),
             ("lamb", vit, ("--optimizer.layer-decay", 0.5, "--optimizer.freeze", "patches.*, blocks.block1.*",
                            "--optimizer.thaw-epoch", 1)),
             ("adam", vit, ("--optimizer.layer-decay", 0.7, "--optimizer.groups", "output.* rate 2"))]
    for number, (rule, path, keys) in enumerate(some(cases, 2)):
        words = ["train", path, "--optimizer.name", rule, *keys, "--run.directory"]
        whole = scratch / f"whole-{number}"
        run([*words, whole], 1).expect(0)
        ranks, step = DICE.choice((2, 3)), DICE.randrange(2, 8)
        modes = ("--run.mode", "dp") if DICE.random() < 0.5 else ()
        other = scratch / f"other-{number}"
        killed = run([*words, other], ranks, env={"LOCKSTEP_INJECT": f"kill:rank=1:step={step}"})
        check(killed.code != 0, "killed")
        run([*words, other, *modes], 1 if modes else 4 - ranks).expect(0)
        check_same(whole, other, f"{rule} {keys}: {ranks} ranks killed at step {step}, then {modes or 4 - ranks}")


def adapters(scratch):
    """LoRA: only adapters and the new head change; the same bits on other ranks, through a kill; files are merged."""
    data, four = pictures(scratch / "lora.h5", 3), pictures(scratch / "lora4.h5", 4)
    first = scratch / "lora-first"
    run(["train", deck(scratch, "lora-first", VIT, four), "--run.directory", first, "--train.steps", 2], 1).expect(0)
    before = exported(scratch, first, 2)
    words = ["train", deck(scratch, "lora", VIT, data), "--model.weights", first / "best.h5",
             "--model.weights-match", "common", "--model.lora-rank", 3, "--model.lora-train", "output.*",
             "--optimizer.learning-rate", 0.05, "--checkpoint.keep", 9, "--train.epochs", 4]
    cases = [(), ("--optimizer.ema", 0.9), ("--optimizer.name", "lamb", "--optimizer.clip-norm", 0.1),
             ("--precision.gradient-checkpointing", "true"), ("--optimizer.update", "replicated"),
             ("--precision.compute", "bf16", "--optimizer.accumulate", 2), ("--optimizer.groups", "*.lora_b rate 16"),
             ("--privacy.noise", 1), ("--communication.compression", "bf16")]
    for number, keys in enumerate(some(cases)):
        one, other = scratch / f"lora-{number}", scratch / f"lora-other-{number}"
        key = ("--privacy.key", scratch / "lora.key")
        keys = (*keys, *key) if "--privacy.noise" in keys else keys
        told = run([*words, *keys, "--run.directory", one], 1).expect(
            0, "LoRA: adapters of rank 3 on 8 layers; 819 of ", "; the adapters are new",
            "starting over from run.seed: output.weight (the file has output.weight [4, 16])").text
        check("warning: model.lora-rank" not in told, told)
        ranks, step = DICE.choice((2, 3)), DICE.randrange(2, 8)
        killed = run([*words, *keys, "--run.directory", other], ranks,
                     env={"LOCKSTEP_INJECT": f"kill:rank=1:step={step}"})
        check(killed.code != 0, "killed")
        run([*words, *keys, "--model.lora-rank", 4, "--run.directory", other], 1).expect(64, "model.lora-rank")
        run([*words, *keys, "--model.lora-targets", "*.query", "--run.directory", other], 1).expect(
            64, "model.lora-targets")
        run([*words, *keys, "--run.directory", other], 4 - ranks).expect(0)
        check_same(one, other, f"lora {keys}: {ranks} ranks killed at step {step}, then {4 - ranks}")
        merged_files(scratch, one, keys, before)


def merged_files(scratch, one, keys, before):
    """What is read from a run with adapters, or exported, is the plain model."""
    last = checkpoints(one)[-1]
    after = exported(scratch, one, 7)
    with h5py.File(last) as file, h5py.File(one / "best.h5") as best:
        source = "optimizer/ema" if "--optimizer.ema" in keys else "model"
        raw = {name: torch.from_numpy(file[f"{source}/{name.replace('.', '/')}"][:]).double() for name in after}
        check(set(after) == set(before), f"names of the plain model: {set(after) ^ set(before)}")
        check("lora_a" not in best["model/blocks/block1/query"], "best.h5 is merged")
        changed = []
        for name, values in before.items():
            if name.startswith("output."):
                continue
            check(torch.equal(raw[name], values.double()), f"{name} is frozen")
            layer = f"{source}/{name.replace('.', '/').rpartition('/')[0]}"
            if not name.endswith(".weight") or "lora_a" not in file[layer]:
                check(torch.equal(after[name], values), f"{name} has no adapter")
                continue
            a, b = (torch.from_numpy(file[f"{layer}/lora_{part}"][:]).double() for part in "ab")
            changed.append(b.abs().max() > 0)
            check(torch.equal(after[name], (values.double() + 16 / 3 * (b @ a)).float()), f"{name} is W + alpha/r B A")
        check(len(changed) == 8 and all(changed), f"adapters have learnt: {changed}")
    # The run measured the last model at its end, without merging.
    wanted = next(each["loss"] for each in reversed(records(one, "validation")) if each["step"] == 7)
    other = scratch / "merged.safetensors"
    run(["checkpoint", "export", last, other, "--overwrite"]).expect(0)
    plain = deck(scratch, "merged", VIT, scratch / "lora.h5")
    bits = ("--precision.compute", "bf16") if "bf16" in keys and "--precision.compute" in keys else ()
    for words in ([plain, other, *bits], [one / "deck.ini", last]):
        found = float(run(["evaluate", *words]).expect(0).text.split("loss ")[1].split(",")[0])
        check(abs(found - wanted) < (2e-2 if bits else 2e-5) * wanted, f"{words}: loss {found}, {wanted} in the run")
    run(["predict", one / "best.h5", scratch / "lora.h5", "--output", scratch / "said.csv", "--overwrite"]).expect(0)


class Layers(nn.Module):
    """Linear layers of an exported program: with an adapter, without one, and trained as a whole."""

    def __init__(self):
        super().__init__()
        self.up, self.plain, self.head = nn.Linear(3 * 12 * 12, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(F.gelu(self.plain(F.gelu(self.up(x.flatten(1))))))


def adapters_in_torch(scratch):
    """Adapters of an exported program, trained by SGD here and in PyTorch: the same weights."""
    sys.path.insert(0, str(SOURCE / "python"))
    import lockstep_export

    torch.manual_seed(SEED)
    net, file = Layers(), scratch / "layers.pt2"
    data = pictures(scratch / "layers.h5", 3)
    lockstep_export.save(net, torch.rand(4, 3, 12, 12), file)
    path = deck(scratch, "layers", f"name = export\nfile = {file}", data)
    rank, alpha, steps = 4, 6, 3
    directory = scratch / "layers"
    run(["train", path, "--model.lora-rank", rank, "--model.lora-alpha", alpha, "--model.lora-targets", "up",
         "--model.lora-train", "head.*", "--data.batch", SAMPLES // 3, "--optimizer.name", "sgd",
         "--optimizer.momentum", 0.9, "--optimizer.weight-decay", 0, "--train.steps", steps, "--train.epochs", 0,
         "--checkpoint.every-steps", 1, "--checkpoint.keep", 9, "--run.directory", directory,
         "--precision.gradient-checkpointing", "true"], 2).expect(0, "LoRA: adapters of rank 4 on 1 layer; ")
    after = exported(scratch, directory, steps)
    # A follows from its name and the seed: a run of no rate has it still.
    run(["train", path, "--model.lora-rank", rank, "--model.lora-targets", "up", "--optimizer.learning-rate", 0,
         "--train.steps", 1, "--run.directory", scratch / "still"], 1).expect(0)
    with h5py.File(checkpoints(scratch / "still")[-1]) as still, h5py.File(data) as samples:
        a = torch.from_numpy(still["model/up/lora_a"][:]).requires_grad_()
        check((still["model/up/lora_b"][:] == 0).all(), "B begins with 0")
        inputs, targets = torch.from_numpy(samples["inputs"][:]), torch.from_numpy(samples["targets"][:])
    check(a.abs().max() <= (3 * 12 * 12) ** -0.5 and a.std() > 0.5 * (3 * 12 * 12) ** -0.5, "Kaiming uniform")
    b = torch.zeros(16, rank, requires_grad=True)
    for parameter in (*net.up.parameters(), *net.plain.parameters()):
        parameter.requires_grad_(False)
    trained = torch.optim.SGD([a, b, *net.head.parameters()], 0.01, momentum=0.9)
    for _ in range(steps):
        x = inputs.flatten(1)
        hidden = F.gelu(net.plain(F.gelu(net.up(x) + F.linear(F.linear(x, a), b) * (alpha / rank))))
        trained.zero_grad()
        F.cross_entropy(net.head(hidden), targets).backward()
        trained.step()
    wanted = {name: values.detach() for name, values in net.named_parameters()}
    wanted["up.weight"] = net.up.weight + alpha / rank * (b @ a).detach()
    check(set(after) == set(wanted), f"{set(after)}")
    check((after["up.weight"] - net.up.weight).abs().max() > 1e-5, "the adapter has learnt")
    for name, values in wanted.items():
        check(torch.allclose(after[name], values, 1e-5, 1e-6), f"{name}: {(after[name] - values).abs().max()} apart")


def refused(scratch):
    """What cannot be right is refused before the first step, or told."""
    data = pictures(scratch / "refused.h5", 3)
    cnn, vit = deck(scratch, "refused", CNN, data), deck(scratch, "refused-vit", VIT, data)
    head, thaw = ("--optimizer.freeze", "!classifier.*"), ("--optimizer.thaw-epoch", 1)
    lora = ("--model.lora-rank", 2)
    cases = [((cnn, "--optimizer.freeze", "featurs.*"), 64, "fits no parameter", "Did you mean features.*?"),
             ((cnn, "--optimizer.freeze", "*"), 64, "no parameter is left to train"),
             ((cnn, *head, "--prune.pattern", "channels"), 64, "cannot be combined with prune.pattern = channels"),
             ((cnn, *head, *thaw, "--prune.pattern", "2:4"), 64, "optimizer.thaw-epoch cannot be combined with prune"),
             ((cnn, *head, *thaw, "--communication.compression", "powersgd"), 64, "powersgd"),
             ((cnn, "--optimizer.groups", "classifier.* speed 2"), 64, "PATTERN rate FACTOR"),
             ((cnn, "--optimizer.groups", "clasifier.* rate 2"), 64, "Did you mean classifier.*?"),
             ((cnn, "--optimizer.layer-decay", 0.5), 64, "has no effect on this model"),
             ((cnn, *thaw), 0, "ignored: optimizer.thaw-epoch"),
             ((cnn, "--model.weights-match", "common"), 0, "ignored: model.weights-match"),
             ((cnn, *head, "--optimizer.thaw-epoch", 5), 0, "optimizer.thaw-epoch = 5 has no effect"),
             ((cnn, *head), 0, " tensors, ", " of them trained"),
             ((vit, *lora), 0, "LoRA: adapters of rank 2 on 8 layers", "warning: model.lora-rank = 2 leaves"),
             ((vit, *lora, *head), 64, "model.lora-rank cannot be combined with optimizer.freeze"),
             ((vit, *lora, "--prune.pattern", "2:4"), 64, "model.lora-rank cannot be combined with prune.pattern"),
             ((vit, *lora, "--quantise.aware", "true"), 64, "cannot be combined with quantise.aware"),
             ((vit, *lora, "--communication.compression", "powersgd"), 64, "powersgd"),
             ((vit, *lora, "--model.lora-targets", "blocks.block1.quer"), 64, "Did you mean blocks.block1.query?"),
             ((cnn, *lora), 64, "no projections of attention", "Set model.lora-targets to patterns of layers"),
             ((vit, "--model.lora-alpha", 2), 0, "ignored: model.lora-alpha"),
             ((cnn, "--model.lora-rank", 5, "--model.lora-targets", "*"), 0,
              "warning: model.lora-rank = 5 is above the highest rank that the weights of some layers can have: ",
              "classifier.output (3)"),
             ((vit, "--model.r", 2), 64, "Did you mean model.lora-rank?"),
             ((vit, "--model.target_modules", "*"), 64, "Did you mean model.lora-targets?"),
             ((vit, "--optimizer.layer-decay", 0.5, "--optimizer.groups", "output.* rate 4"), 0,
              "groups", "learning rate x 0.125", "learning rate x 4")]
    for number, (words, code, *phrases) in enumerate(some(cases, 4)):
        run(["plan", *words, "--run.directory", scratch / f"refused-{number}"]).expect(code, *phrases)
    save_file({"something": torch.zeros(3)}, scratch / "nothing.safetensors")
    run(["train", cnn, "--model.weights", scratch / "nothing.safetensors", "--model.weights-match", "common",
         "--run.directory", scratch / "nothing"], 2).expect(65, "has nothing in common with the deck's model")


with Scratch() as scratch:
    for part in (refused, names_elsewhere, walked, tuned_resnet, adapters, adapters_in_torch):
        part(scratch)
