"""Models as people write them in PyTorch, each with a batch of its inputs; ten classes per sample."""
import importlib

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 10


def real(*shape):
    return lambda count: torch.randn(count, *shape)


def tokens(length, words=50):
    return lambda count: torch.randint(0, words, (count, length))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, CLASSES))

    def forward(self, x):
        return self.layers(x)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 12, 3, stride=2, bias=False)
        self.norm, self.output = nn.BatchNorm2d(12), nn.Linear(12, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.first(x)), 2)
        return self.output(F.adaptive_avg_pool2d(torch.relu(self.norm(self.second(x))), 1).flatten(1))


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                                    nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
                                    nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(2, channels))

    def forward(self, x):
        return torch.relu(x + self.layers(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.output = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.output(x.mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        high = torch.relu(self.down(x))
        low = torch.relu(self.deep(F.avg_pool2d(high, 2)))
        up = F.interpolate(self.up(low), size=high.shape[2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([high, up], 1)).amax((2, 3))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell, self.output = kind(6, 12, num_layers=2, batch_first=True), nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.output(self.cell(x)[0][:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.layers, self.output = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.output(self.layers(self.words(x), src_key_padding_mask=x == 0).mean(1))


class GPT(nn.Module):
    """Causal attention, positions, and a head that shares the embedding's weights."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.attention, self.project = nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 50, bias=False)
        self.head.weight = self.words.weight
        self.output = nn.Linear(50, CLASSES)

    def forward(self, x):
        count, length = x.shape
        h = self.words(x) + self.places(torch.arange(length, device=x.device))
        q, k, v = (each.view(count, length, 4, 4).transpose(1, 2) for each in self.attention(self.norm(h)).chunk(3, -1))
        h = h + self.project(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(count, length, 16))
        return self.output(self.head(h)[:, -1])


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, 16, 7, stride=7)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, 16)), nn.Parameter(torch.randn(1, 17, 16) * 0.02)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.output = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.output((x + self.attention(x, x, x, need_weights=False)[0])[:, 0])


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.numbers, self.output = nn.EmbeddingBag(50, 8), nn.Linear(5, 8), nn.Bilinear(8, 8, CLASSES)

    def forward(self, text, numbers):
        return self.output(self.words(text), torch.tanh(self.numbers(numbers)))


class Graph(nn.Module):
    """Messages along edges, summed at their ends."""

    def __init__(self):
        super().__init__()
        self.edge, self.node, self.output = nn.Linear(8, 12), nn.GRUCell(12, 4), nn.Linear(4, CLASSES)

    def forward(self, nodes, edges):
        count, size, width = nodes.shape
        ends = edges.unsqueeze(-1).expand(-1, -1, -1, width)
        source, target = torch.gather(nodes, 1, ends[:, :, 0]), torch.gather(nodes, 1, ends[:, :, 1])
        messages = torch.relu(self.edge(torch.cat([source, target], -1)))
        sums = torch.zeros(count, size, 12).scatter_add(1, edges[:, :, 1:].expand(-1, -1, 12), messages)
        return self.output(self.node(sums.reshape(-1, 12), nodes.reshape(-1, width)).view(count, size, 4).mean(1))


FAMILIES = {
    "mlp": (MLP, (real(24),)),
    "cnn": (CNN, (real(1, 14, 14),)),
    "resnet": (ResNet, (real(1, 8, 8),)),
    "unet": (UNet, (real(1, 8, 8),)),
    "lstm": (lambda: Recurrent(nn.LSTM), (real(7, 6),)),
    "gru": (lambda: Recurrent(nn.GRU), (real(7, 6),)),
    "encoder": (Encoder, (tokens(9),)),
    "gpt": (GPT, (tokens(12),)),
    "vit": (ViT, (real(1, 28, 28),)),
    "two-inputs": (TwoInputs, (tokens(6), real(5))),
    "graph": (Graph, (real(5, 4), lambda count: torch.randint(0, 5, (count, 8, 2)))),
}


class Logits(nn.Module):
    """A model of the transformers package, whose forward returns more than the scores."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(input_ids=x, use_cache=False).logits if hasattr(self.model.config, "use_cache") else self.model(input_ids=x).logits


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    return Logits(BertForSequenceClassification(BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
        max_position_embeddings=16, num_labels=CLASSES, hidden_dropout_prob=0, attention_probs_dropout_prob=0)))


def llama():
    from transformers import LlamaConfig, LlamaForSequenceClassification
    return Logits(LlamaForSequenceClassification(LlamaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=32, max_position_embeddings=16, num_labels=CLASSES, pad_token_id=0)))


def resnet18():
    from torchvision.models import resnet18 as make
    return make(num_classes=CLASSES)


VISION = torch.library.Library("torchvision", "FRAGMENT")


def can_import(package):
    try:
        importlib.import_module(package)
        return True
    except ImportError:
        return False
    except RuntimeError:  # torchvision's library is for another build of PyTorch, and was not loaded
        pass
    for name in ("nms", "qnms"):  # which its Python asks for when it is imported, and no model here uses
        VISION.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    importlib.import_module(package)
    return True


THEIRS = {"transformers": {"bert": (bert, (tokens(9),)), "llama": (llama, (tokens(9),))},
          "torchvision": {"resnet18": (resnet18, (real(3, 32, 32),))}}


def add_theirs():
    """Families from packages that are not needed otherwise; returns the names of those that are not there."""
    missing = []
    for package, families in THEIRS.items():
        if can_import(package):
            FAMILIES.update(families)
        else:
            missing += [f"{name} ({package})" for name in families]
    return missing


def make(name, count):
    """The model with its first weights, and a batch of `count` samples."""
    torch.manual_seed(7)
    maker, inputs = FAMILIES[name]
    model = maker()
    return model, tuple(each(count) for each in inputs)
