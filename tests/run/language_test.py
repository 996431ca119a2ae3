"""Texts become tokens and are learnt: the same files on any ranks, every token as its document has it, the same
bits on any ranks and through a restart, losses as plain PyTorch computes them, weights under other programs'
names; and what does not fit is told before the first step."""
import importlib.util
import json
import math
import random
import time

import h5py
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from harness import LONG, SEED, SOURCE, Scratch, check, check_same, records, run

SEQUENCE, WIDTH, HEADS, SHARED, LAYERS = 24, 32, 4, 2, 2
DECK = """
[run]
device = cpu
[data]
train = {scratch}/texts.h5
validation = {scratch}/few.h5
sequence = {sequence}
batch = 2
[model]
name = transformer
layers = {layers}
width = {width}
heads = {heads}
{model}
[task]
kind = language
[checkpoint]
every-steps = 4
[monitor]
log-every = 1
weight-hash = true
progress = plain
plots = false
[train]
steps = 12
"""
SCALING = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 128}  # of 4 frequencies, one is kept, one between, two are divided
LLAMA = f"key-value-heads = {SHARED}\ntied = false\nrotary-scaling = llama3 8 1 4 128"
GPT2 = "norm = layer\nactivation = gelu-tanh\nbias = true\npositions = learnt\ndropout = 0.1"


def letters():
    """Bytes by the letters that stand for them in tokenizer.json."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {**{chr(byte): byte for byte in plain}, **{chr(256 + i): byte for i, byte in enumerate(rest)}}


def texts_of(path):
    """Documents, decoded with nothing but the tokenizer that the file holds."""
    with h5py.File(path) as file:
        vocabulary = json.loads(file["tokenizer"][()])["model"]["vocab"]
        by_number = {number: bytes(letters()[each] for each in text) for text, number in vocabulary.items()}
        tokens, offsets = file["inputs"][:], file["inputs_offsets"][:]
        end = int(file.attrs["end_of_text"][0])
        lengths = file["token_bytes"][:]
    for token, length in enumerate(lengths):
        check(length == len(by_number.get(token, b"")), f"token {token} has {length} bytes")
    by_number[end] = b"<|endoftext|>"  # which a document may have in its text
    for first, last in zip(offsets, offsets[1:]):
        check(tokens[last - 1] == end, "a document ends with the token for that")
        yield b"".join(by_number[token] for token in tokens[first:last - 1])


def test_import(scratch):
    folder = scratch / "docs"
    folder.mkdir()
    pages = sorted(SOURCE.glob("docs/*.md"))[:6 if not LONG else None]
    for number, page in enumerate(pages):
        (folder / f"{number}.md").write_bytes(page.read_bytes())
    (folder / "lines.jsonl").write_text('{"text": "eins zwei drei äöü 🙂"}\n\n{"text": ""}\n{"text": "\\n"}\n')
    (folder / "empty.txt").write_text("")
    (folder / "passed.csv").write_text("a,b\n")
    options = ["--vocabulary", 400]
    for ranks in (1, 3):
        time.sleep(1)  # no time is written into the files
        run(["data", "import", "text", folder, scratch / f"texts{ranks}.h5", *options], ranks).expect(
            0, "skipped: 1 .csv")
    check((scratch / "texts1.h5").read_bytes() == (scratch / "texts3.h5").read_bytes(), "files of 1 and 3 ranks")
    wanted = [page.read_bytes() for page in pages] + [b"", "eins zwei drei äöü 🙂".encode(), b"", b"\n"]
    check(sorted(texts_of(scratch / "texts1.h5")) == sorted(wanted), "every document is what it was")
    (scratch / "texts1.h5").rename(scratch / "texts.h5")
    tokenizer = scratch / "tokenizer.json"
    with h5py.File(scratch / "texts.h5") as file:
        tokenizer.write_bytes(file["tokenizer"][()])
    run(["data", "import", "text", folder / "0.md", scratch / "few.h5", "--tokenizer", tokenizer]).expect(0)
    run(["data", "import", "text", folder / "0.md", scratch / "same.h5", "--tokenizer", scratch / "texts.h5"]).expect(0)
    check((scratch / "few.h5").read_bytes() == (scratch / "same.h5").read_bytes(), "the tokenizer in a data set")
    run(["data", "verify", scratch / "texts.h5"]).expect(0, "all checksums are correct")
    run(["data", "info", scratch / "texts.h5"]).expect(0, "documents, with a vocabulary of 400")
    sets = scratch / "sets"
    run(["data", "import", "text", folder, sets, *options, "--split", "0.7,0.3", "--deflate", 3]).expect(0)
    both = [*texts_of(sets / "train.h5"), *texts_of(sets / "validation.h5")]
    check(sorted(both) == sorted(wanted), "a split has every document once")
    return tokenizer


def deck(scratch, name, model):
    path = scratch / f"{name}.ini"
    path.write_text(DECK.format(scratch=scratch, model=model, sequence=SEQUENCE, layers=LAYERS, width=WIDTH,
                                heads=HEADS))
    return path


def windows(path):
    """Every sample of a set: its tokens, and those that follow them; whether a token ends a document, and whether
    the one that follows is learnt."""
    with h5py.File(path) as file:
        tokens = torch.tensor(file["inputs"][:].astype("i8"))
        learnt = torch.tensor(file["learnt"][:] if "learnt" in file else np.ones(len(tokens), "u1")) == 1
        end = int(file.attrs["end_of_text"][0])
    count = (len(tokens) - 1) // SEQUENCE
    tokens, following, learnt = [each[shift:count * SEQUENCE + shift].view(count, SEQUENCE)
                                 for each, shift in ((tokens, 0), (tokens, 1), (learnt, 1))]
    return tokens, following, tokens == end, learnt & (tokens != end)


def rotated(values):
    half = values.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half) / half)
    for i, wave in enumerate(2 * math.pi / frequencies):
        part = (128 / wave - 1) / (4 - 1)
        if wave > 128 / 1:
            frequencies[i] /= 8
        elif wave >= 128 / 4:
            frequencies[i] *= (1 - part) / 8 + part
    angles = torch.arange(values.shape[2])[:, None] * frequencies
    left, right = values[..., :half], values[..., half:]
    return torch.cat([left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()], -1)


def logits_of(weights, tokens, ends):
    """Plain PyTorch, from the papers."""
    rotary = "positions.weight" not in weights
    number = ends.long().cumsum(1) - ends.long()
    seen = (number[:, :, None] == number[:, None, :]) & torch.ones(SEQUENCE, SEQUENCE, dtype=bool).tril()

    def linear(name, values):
        return F.linear(values, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(name, values):
        if f"{name}.bias" in weights:
            return F.layer_norm(values, [WIDTH], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-5)
        return values * (values.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * weights[f"{name}.weight"]

    values = weights["embedding.weight"][tokens]
    if not rotary:
        values = values + weights["positions.weight"]
    for layer in range(1, LAYERS + 1):
        block = f"blocks.block{layer}"
        normed = norm(f"{block}.attention_norm", values)
        heads = []
        for name in ("query", "key", "value"):
            each = linear(f"{block}.{name}", normed).unflatten(2, (-1, WIDTH // HEADS)).transpose(1, 2)
            each = rotated(each) if rotary and name != "value" else each
            heads.append(each.repeat_interleave(HEADS // each.shape[1], 1))
        scores = heads[0] @ heads[1].transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        found = scores.masked_fill(~seen[:, None], -math.inf).softmax(-1) @ heads[2]
        values = values + linear(f"{block}.output", found.transpose(1, 2).flatten(2))
        normed = norm(f"{block}.feed_forward_norm", values)
        up = linear(f"{block}.up", normed)
        up = F.silu(linear(f"{block}.gate", normed)) * up if rotary else F.gelu(up, approximate="tanh")
        values = values + linear(f"{block}.down", up)
    return F.linear(norm("blocks.norm", values), weights.get("output.weight", weights["embedding.weight"]))


def test_loss(scratch, run_directory, path, data="few.h5"):
    """Of the best model on the validation set, which several documents share."""
    exported = scratch / f"{run_directory.name}.safetensors"
    run(["checkpoint", "export", run_directory / "best.h5", exported]).expect(0)
    weights = {name: each.double() for name, each in load_file(exported).items()}
    tokens, following, ends, counted = windows(scratch / data)
    losses = F.cross_entropy(logits_of(weights, tokens, ends).transpose(1, 2), following, reduction="none")
    losses = losses[counted]
    with h5py.File(scratch / data) as file:
        in_bytes = float(file["token_bytes"][:][following[counted].numpy()].sum())
    told = run(["evaluate", path, run_directory]).expect(0).text
    for name, value in (("loss", losses.mean()), ("perplexity", losses.mean().exp()),
                        ("bits-per-byte", losses.sum() / math.log(2) / in_bytes)):
        found = float(told.split(f"{name} ")[1].split(",")[0])
        check(abs(found - value) < 1e-4 * value, f"{name} {found}, {value} by PyTorch")
    return exported, told.split(": ", 1)[1]


def as_gpt2(weights):
    """The same weights as GPT-2 has them: products transposed, queries, keys and values in one."""
    names = {"embedding": "wte", "positions": "wpe", "blocks.norm": "ln_f"}
    other = {}
    for layer in range(1, LAYERS + 1):
        block, theirs = f"blocks.block{layer}", f"transformer.h.{layer - 1}"
        names |= {f"{block}.attention_norm": f"h.{layer - 1}.ln_1", f"{block}.feed_forward_norm": f"h.{layer - 1}.ln_2"}
        for kind in ("weight", "bias"):
            joined = torch.cat([weights.pop(f"{block}.{name}.{kind}") for name in ("query", "key", "value")])
            other[f"{theirs}.attn.c_attn.{kind}"] = joined.t().contiguous() if kind == "weight" else joined
            for ours, name in (("output", "attn.c_proj"), ("up", "mlp.c_fc"), ("down", "mlp.c_proj")):
                each = weights.pop(f"{block}.{ours}.{kind}")
                other[f"{theirs}.{name}.{kind}"] = each.t().contiguous() if kind == "weight" else each
    for ours, values in weights.items():
        stem, kind = ours.rsplit(".", 1)
        other[f"transformer.{names[stem]}.{kind}"] = values
    return other


def as_llama(weights):
    names = {"embedding": "model.embed_tokens", "blocks.norm": "model.norm", "output": "lm_head"}
    for layer in range(1, LAYERS + 1):
        for ours, theirs in (("attention_norm", "input_layernorm"), ("query", "self_attn.q_proj"),
                             ("key", "self_attn.k_proj"), ("value", "self_attn.v_proj"),
                             ("output", "self_attn.o_proj"), ("feed_forward_norm", "post_attention_layernorm"),
                             ("gate", "mlp.gate_proj"), ("up", "mlp.up_proj"), ("down", "mlp.down_proj")):
            names[f"blocks.block{layer}.{ours}"] = f"model.layers.{layer - 1}.{theirs}"
    return {names[ours.rsplit(".", 1)[0]] + ".weight": values for ours, values in weights.items()}


def test_training(scratch, name, model, renamed):
    path = deck(scratch, name, model)
    first = scratch / f"{name}-1"
    run(["train", path, "--run.replicas", 3, "--run.directory", first], 1).expect(0)
    dice = random.Random(f"{SEED} {name}")
    for ranks in (2, 3):
        other = scratch / f"{name}-{ranks}"
        words = ["train", path, "--run.replicas", 3, "--run.directory", other]
        step = dice.randrange(2, 11)
        killed = run(words, ranks, env={"LOCKSTEP_INJECT": f"kill:rank=1:step={step}"})
        check(killed.code != 0, "killed")
        run(words, 4 - ranks).expect(0)
        check_same(first, other, f"{name}: 1 rank, and {ranks} killed at step {step}, then {4 - ranks}")
    recomputed = scratch / f"{name}-recomputed"
    run(["train", path, "--run.replicas", 3, "--run.directory", recomputed, "--precision.gradient-checkpointing",
         "true"], 1).expect(0)
    check_same(first, recomputed, f"{name}: blocks that are run again")
    exported, told = test_loss(scratch, first, path)
    others = scratch / f"{name}-others.safetensors"
    save_file(renamed(load_file(exported)), others)
    again = run(["evaluate", path, others]).expect(0).text
    check(told in again, f"{name}: the same weights by other names: {told} {again}")
    return path, first, exported, told


CONFIG = {"model_type": "llama", "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": SHARED,
          "num_hidden_layers": LAYERS, "intermediate_size": 96, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
          "rope_scaling": SCALING, "tie_word_embeddings": False, "hidden_act": "silu", "vocab_size": 400}


def test_elsewhere(scratch, path, exported, told):
    """Llama's weights in several files, with the config.json beside them that says what they are of."""
    folder = scratch / "elsewhere"
    folder.mkdir()
    weights = as_llama(load_file(exported))
    index = folder / "model.safetensors.index.json"
    config = folder / "config.json"

    def save(weights):
        files = {name: f"model-{1 + number % 2}-of-2.safetensors" for number, name in enumerate(sorted(weights))}
        for file in set(files.values()):
            save_file({name: weights[name] for name in files if files[name] == file}, folder / file)
        index.write_text(json.dumps({"metadata": {}, "weight_map": files}))

    def evaluated(code, *phrases, keys=(), **changes):
        config.write_text(json.dumps(CONFIG | changes))
        run(["evaluate", path, index, *keys]).expect(code, *phrases)

    save(weights)
    evaluated(0, told.strip())
    run(["train", path, "--run.directory", scratch / "tuned", "--model.weights", folder, "--train.steps", 1], 2).expect(
        0, f"the initial weights come from {index}")
    evaluated(64, "rope_theta = 500000", "model.rotary-base = 500000", "model.rotary-scaling = linear 2",
              "model.norm-epsilon = 1e-06", rope_theta=500000.0, rope_scaling={"type": "linear", "factor": 2.0},
              rms_norm_eps=1e-06)
    evaluated(64, "head_dim = 16", "no key of the deck", head_dim=16)
    evaluated(64, "sliding_window = 4", "Set data.sequence to at most 4", sliding_window=4)
    evaluated(0, told.strip(), sliding_window=4096)
    config.write_text("{")
    run(["train", path, "--run.directory", scratch / "damaged", "--model.weights", folder], 2).expect(
        65, "config.json cannot be understood")
    for name in [name for name in weights if name.split(".")[-2] in ("q_proj", "k_proj", "v_proj")]:
        weights[name.replace(".weight", ".bias")] = torch.zeros(len(weights[name]))
    save(weights)
    evaluated(64, "q_proj.bias", "model.bias = qkv")
    evaluated(64, "model.bias = qvk", "expected true, false or qkv", keys=["--model.bias", "qvk"])
    evaluated(0, told.strip(), keys=["--model.bias", "qkv"])


def test_weights_alone(scratch, path, exported):
    """A file of weights says which model they are of where the shapes do not, and of which data."""
    other, changed = ["--model.heads", 2, "--model.key-value-heads", 1], "model.heads = 2 (was 4)"
    warning = f"were trained with another model: {changed}"
    train = ["train", path, "--train.steps", 1, "--run.directory"]
    run(["evaluate", path, exported, *other]).expect(64, changed)
    run(["generate", path, exported, "--tokens", 1, *other]).expect(0, warning)
    run([*train, scratch / "heads", "--model.weights", exported, *other]).expect(0, warning)
    run([*train, scratch / "taught", "--distill.teacher", exported, "--distill.teacher-deck", write(
        scratch / "heads.ini", f"include = {path}\n[model]\nheads = 2\nkey-value-heads = 1\n")]).expect(64, changed)
    again = scratch / "again.h5"
    run(["checkpoint", "export", exported, again]).expect(0)
    for words in ([*train, scratch / "same", "--model.weights", exported], ["generate", path, exported, "--tokens", 1],
                  ["generate", path, exported, "--tokens", 1, "--data.train", scratch / "nothing.h5"]):
        check("warning" not in (told := run(words).expect(0).text), told)
    run(["evaluate", path, again, *other]).expect(64, changed)
    run(["data", "import", "text", write(scratch / "short.txt", "Other words. " * 99), scratch / "short.h5",
         "--vocabulary", 280]).expect(0)
    run(["generate", path, exported, "--data.train", scratch / "short.h5"]).expect(
        65, f"short.h5 does not fit the training data of {exported}")
    for text in ("{", "[]", "{}", '{"model.name": 1}'):
        save_file(load_file(exported), scratch / "odd.safetensors", {"lockstep_model": text})
        run(["evaluate", path, scratch / "odd.safetensors"]).expect(65, "what it says of its model")


def test_transformers(scratch, path):
    """A model of the transformers package has the loss here that it has there."""
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(SEED)
    own = {name: value for name, value in CONFIG.items() if name != "model_type"}
    theirs = LlamaForCausalLM(LlamaConfig(**own, initializer_range=0.5)).eval()
    folder = scratch / "transformers"
    theirs.save_pretrained(folder)
    tokens, following, *_ = windows(scratch / "few.h5")
    with torch.no_grad():
        given = theirs(input_ids=tokens).logits
        wanted = float(F.cross_entropy(given.transpose(1, 2).double(), following))
    text = run(["evaluate", path, folder / "model.safetensors", "--model.documents", "joined", "--task.documents",
                "joined"]).expect(0).text
    found = float(text.split("loss ")[1].split(",")[0])
    check(abs(found - wanted) < 1e-5 * wanted, f"loss {found}, {wanted} by transformers")


def test_generate(scratch, path, directory, exported, tokenizer):
    words = ["generate", path, directory, "--prompt", "The rank", "--tokens", 12]
    texts = [run([*words, "--seed", seed]).expect(0).text for seed in (1, 1, 2)]
    check(texts[0] == texts[1] and texts[0] != texts[2], "a seed gives a text")
    check(all(text.startswith("The rank") for text in texts), "the prompt comes first")
    greedy = run([*words, "--temperature", 0]).expect(0).text
    check(greedy == run([*words, "--top-k", 1, "--seed", 5]).expect(0).text, "of one token there is one draw")
    # With nothing remembered: the whole text again for each token.
    run(["data", "import", "text", write(scratch / "prompt.txt", "The rank"), scratch / "prompt.h5",
         "--tokenizer", tokenizer, "--overwrite"]).expect(0)
    weights = {name: each.double() for name, each in load_file(exported).items()}
    with h5py.File(scratch / "prompt.h5") as file:
        tokens = file["inputs"][:-1].tolist()
        vocabulary = json.loads(file["tokenizer"][()])["model"]["vocab"]
    by_number = {number: bytes(letters()[each] for each in text) for text, number in vocabulary.items()}
    for _ in range(12):
        padded = torch.tensor([tokens + [0] * (SEQUENCE - len(tokens))])
        tokens.append(int(logits_of(weights, padded, padded < 0)[0, len(tokens) - 1].argmax()))
        if tokens[-1] not in by_number:
            break
    wanted = b"".join(by_number.get(token, b"") for token in tokens).decode(errors="replace")
    check(greedy.rstrip("\n") == wanted.rstrip("\n"), f"{greedy!r}, {wanted!r} without a cache")
    run(words, 2).expect(64, "a text is generated by one rank")
    alone = run(["generate", *words[2:]]).expect(0).text
    check(alone == run(words).text, f"the deck of the model: {alone}")


def write(path, text):
    path.write_text(text)
    return path


def test_mask(scratch):
    """Prompts are context: only what follows them is learnt, and that a text ends there."""
    pairs = [("Listen. " * 150, "Yes.")]  # more than two samples of which nothing is learnt
    pairs += [(f"Add {each} and {7 * each % 11}: ", f"the sum is {each + 7 * each % 11}.") for each in range(60)]
    lines = "".join(json.dumps({"question": first, "answer": second}) + "\n" for first, second in pairs)
    source, options = write(scratch / "pairs.jsonl", lines), ["--text", "answer", "--vocabulary", 300]
    prompts = ["--prompt", "question"]
    for ranks in (1, 3):
        time.sleep(1)
        run(["data", "import", "text", source, scratch / f"pairs{ranks}.h5", *options, *prompts], ranks).expect(0)
    check((scratch / "pairs1.h5").read_bytes() == (scratch / "pairs3.h5").read_bytes(), "pairs of 1 and 3 ranks")
    (scratch / "pairs1.h5").rename(scratch / "pairs.h5")
    run(["data", "verify", scratch / "pairs.h5"]).expect(0, "all checksums are correct")
    check(list(texts_of(scratch / "pairs.h5")) == ["".join(pair).encode() for pair in pairs], "prompts, then texts")
    with h5py.File(scratch / "pairs.h5") as file:
        learnt, offsets, lengths = file["learnt"][:], file["inputs_offsets"][:], file["token_bytes"][:]
        in_bytes = lengths[file["inputs"][:]]
        check((file["learnt_offsets"][:] == offsets).all() and learnt.dtype == "u1", "a number for each token")
        check("learnt" in file["checksums"], "the mask has checksums")
    for (prompt, text), first, last in zip(pairs, offsets, offsets[1:]):
        marks, each = learnt[first:last], in_bytes[first:last]
        check(each[marks == 0].sum() == len(prompt) and each[marks == 1].sum() == len(text), f"marks of {prompt}")
        check((np.diff(marks.astype("i4")) >= 0).all() and marks[-1] == 1, "the text and its end come last")

    path = deck(scratch, "pairs", LLAMA)
    path.write_text(path.read_text().replace("texts.h5", "pairs.h5").replace("few.h5", "pairs.h5")
                    .replace("[model]", "mask = learnt\n[model]"))
    words = ["train", path, "--run.replicas", 2, "--run.directory"]
    for ranks in (1, 2):
        run([*words, scratch / f"pairs-{ranks}"], ranks).expect(0)
    check_same(scratch / "pairs-1", scratch / "pairs-2", "a mask on 1 and 2 ranks")
    test_loss(scratch, scratch / "pairs-1", path, "pairs.h5")
    # Steps of which nothing is learnt come first.
    few = ["--data.batch", 1, "--data.shuffle", "none", "--run.replicas", 1, "--train.steps", 2]
    run(["train", path, "--run.directory", scratch / "nothing", *few]).expect(0)
    steps = records(scratch / "nothing", "step")
    check([step["loss"] for step in steps] == [0, 0], f"steps without a learnt token {steps}")
    run(["train", path, "--run.directory", scratch / "all", *few, "--data.mask", ""]).expect(
        0, "To learn only the tokens that it marks, set data.mask = learnt")
    # Whether a model was trained with a mask does not change what its texts mean.
    held_out = ["--data.test", scratch / "pairs.h5"]
    before = run(["evaluate", path, scratch / "all", *held_out]).expect(0).text
    after = run(["evaluate", path, scratch / "nothing", *held_out]).expect(0).text
    unmasked = run(["evaluate", path, scratch / "nothing", "--data.mask", "", *held_out]).expect(0).text
    check(unmasked.split("loss ")[1] != after.split("loss ")[1], "all tokens count without the mask")
    check(before.split("loss ")[1] != after.split("loss ")[1], f"models of two runs: {before} {after}")

    out = scratch / "no.h5"
    run(["data", "import", "text", source, out, *options, "--prompt", "task"]).expect(65, "pairs.jsonl:1", "--prompt")
    run(["data", "import", "text", write(scratch / "whole.txt", "x"), out, *prompts]).expect(64, "whole.txt")
    with h5py.File(scratch / "pairs.h5", "a") as file:
        file["marks"] = file["learnt"][:] * 2
        file["unread"] = np.append(np.uint8(3), file["learnt"][1:])  # the first token is no target
    where = "value 3 at index 0 in dataset unread"
    run(["data", "verify", scratch / "pairs.h5", "--mask", "unread"]).expect(65, where)
    run(["data", "verify", scratch / "pairs.h5", "--mask", "learnt"]).expect(0, "all checksums are correct")
    run(["check", path, "--run.directory", scratch / "refused", "--data.mask", "unread"], 2).expect(69, where)
    for code, phrase, keys in ((64, "without data.sequence", ["--data.sequence", 0]),
                               (64, "the loss of task.kind = language", ["--task.kind", "classification"]),
                               (65, "data.mask needs u8 numbers in the tokens' shape", ["--data.mask", "inputs"]),
                               (65, "in dataset marks of", ["--data.mask", "marks"]),
                               (65, "no dataset named missing", ["--data.mask", "missing"])):
        run(["train", path, "--run.directory", scratch / "refused", *keys], 2).expect(code, phrase)


def test_refusals(scratch, path):
    def refused(code, *phrases, keys=(), command="train"):
        words = [command, path, "--run.directory", scratch / "refused", "--data.validation", "", *keys]
        run(words, 2).expect(code, *phrases)

    refused(64, "data.sequence = 1", "at least 2", keys=["--data.sequence", 1])
    refused(65, "tokens, but a sample needs", keys=["--data.sequence", 1 << 20])
    refused(65, "it holds texts, which are not cut into samples yet. Set data.sequence", keys=["--data.sequence", 0])
    refused(64, "a sample must be a sequence of tokens", keys=["--data.sequence", 0, "--data.targets", "inputs"])
    with h5py.File(scratch / "bare.h5", "w") as file:
        file["inputs"] = np.arange(100, dtype="u2")
        file["real"] = np.arange(100, dtype="f4")
        file["inputs_offsets"] = [0, 100]
    bare = ["--data.train", scratch / "bare.h5"]
    refused(64, "task.vocabulary = 0", keys=bare)
    refused(64, "model.vocabulary is not set", keys=[*bare, "--task.vocabulary", 100])
    refused(65, "data.sequence needs whole numbers in 1 dimension", keys=[*bare, "--data.inputs", "real"])
    refused(64, "task.vocabulary = 399", keys=["--task.vocabulary", 399])
    with h5py.File(scratch / "texts.h5") as good, h5py.File(scratch / "wrong.h5", "w") as file:
        for name in ("token_bytes", "inputs_offsets"):
            file[name] = good[name][:]
        tokens = good["inputs"][:]
        tokens[::10] = 400
        file["inputs"] = tokens
    refused(65, "holds the token 400", "the vocabulary has only the tokens 0 to 399", keys=["--data.train", scratch / "wrong.h5"])
    refused(64, "model.heads = 5", keys=["--model.heads", 5])
    refused(64, "model.key-value-heads = 3", keys=["--model.key-value-heads", 3])
    refused(64, "model.positions = learned", "rotary, learnt or none", keys=["--model.positions", "learned"])
    refused(64, "model.rotary-scaling", "no effect with model.positions = none", keys=["--model.positions", "none"])
    refused(64, "model.max-positions is too small", keys=["--model.positions", "learnt", "--model.max-positions", 23])
    folder = scratch / "wrong texts"
    folder.mkdir()
    latin = folder / "latin.txt"
    latin.write_bytes(b"caf\xe9 au lait")
    out = scratch / "no.h5"
    run(["data", "import", "text", latin, out, "--tokenizer", scratch / "tokenizer.json"]).expect(65, "latin.txt")
    run(["data", "import", "text", latin, out]).expect(65, "latin.txt")
    run(["data", "import", "text", write(folder / "a.jsonl", '{"body": "x"}\n'), out]).expect(65, "a.jsonl:1", "text")
    run(["data", "import", "text", write(folder / "b.jsonl", "nothing\n"), out]).expect(65, "not valid JSON")
    run(["data", "import", "text", latin, out, "--vocabulary", 12]).expect(64)
    run(["data", "import", "text", latin, out, "--tokenizer", write(folder / "t.json", "{}")]).expect(65)
    (folder / "none").mkdir()
    run(["data", "import", "text", folder / "none", out]).expect(66, "no texts")
    (folder / "none/part.parquet").write_bytes(b"PAR1 and what follows PAR1")
    for words in ([folder / "none"], [folder / "none", "--endings", ".parquet"], [folder / "none/part.parquet"]):
        run(["data", "import", "text", *words, out]).expect(
            65, "part.parquet: it is a Parquet table", f"read_parquet('{folder}/none/part.parquet').to_json(")
    run(["generate", path, scratch / "llama-1", "--data.train", scratch / "bare.h5", "--model.vocabulary", 400,
         "--task.vocabulary", 400]).expect(0)  # the tokenizer is the model's


def main():
    with Scratch() as scratch:
        tokenizer = test_import(scratch)
        path, directory, exported, told = test_training(scratch, "llama", LLAMA, as_llama)
        test_elsewhere(scratch, path, exported, told)
        test_weights_alone(scratch, path, exported)
        if LONG and importlib.util.find_spec("transformers"):
            test_transformers(scratch, path)
        test_generate(scratch, path, directory, exported, tokenizer)
        test_training(scratch, "gpt2", GPT2, as_gpt2)
        test_mask(scratch)
        test_refusals(scratch, path)


main()
