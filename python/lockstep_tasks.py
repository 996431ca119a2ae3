"""Losses of Lockstep's tasks, for programs that are saved with their loss: what [task] of a deck says."""
import math

import torch
from torch.nn import functional as F

import lockstep_export


class Task:
    """A loss of (outputs, targets) that returns sums over the batch, as lockstep_export.save takes it."""
    weight = "samples"
    metrics = {"accuracy": ("right", "samples")}
    per_sample = True
    layer = None  # of the model that learns; by its mode, training and evaluation have different losses

    def __init__(self, keys):
        self.smoothing = float(keys.get("label-smoothing", 0))

    def smoothed(self):
        return self.smoothing if self.layer is not None and self.layer.training else 0.0

    def cross_entropy(self, scores, classes, ignored=-100):
        losses = F.cross_entropy(scores, classes, reduction="sum" if classes.dim() == 1 else "none",
                                 label_smoothing=self.smoothed(), ignore_index=ignored)
        return losses.sum()


def _require(keys, key, value, why):
    if keys.get(key, value) != value:
        raise ValueError(f"task.{key} = {keys[key]}: {why}. Set task.{key} = {value}, or train the built-in model")


class Classification(Task):
    def __init__(self, keys, facts):
        super().__init__(keys)
        _require(keys, "class-weights", "none", "an exported loss has no weights of classes")
        self.outputs = facts["class_count"]

    def __call__(self, scores, labels):
        labels = labels.flatten()
        return {"loss": self.cross_entropy(scores, labels), "samples": labels.shape[0],
                "right": (scores.argmax(1) == labels).sum()}


class Segmentation(Task):
    weight = "places"
    metrics = {"accuracy": ("right", "places")}
    per_sample = False

    def __init__(self, keys, facts):
        super().__init__({})
        _require(keys, "class-weights", "none", "an exported loss has no weights of classes")
        _require(keys, "loss", "cross-entropy", "the exported loss is the cross entropy")
        self.outputs = int(keys.get("classes", 0)) or facts["class_count"]
        ignored = keys.get("ignore-label", "none")
        self.ignored = -100 if ignored == "none" else int(ignored)

    def __call__(self, scores, masks):
        masks = masks.reshape(scores.shape[0], *scores.shape[2:]).to(torch.int64)
        counted = masks != self.ignored
        return {"loss": self.cross_entropy(scores, masks, self.ignored), "places": counted.sum(),
                "right": ((scores.argmax(1) == masks) & counted).sum()}


class Regression(Task):
    weight = "values"
    metrics = {"mae": ("absolute", "values", "min")}
    LOSSES = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}

    def __init__(self, keys, facts):
        super().__init__({})
        if facts.get("target_mean"):
            raise ValueError("data.normalise-targets: an exported loss takes targets as they are stored. Leave the key "
                             "out, or train the built-in model")
        self.loss = self.LOSSES[keys.get("loss", "mse")]
        self.outputs = math.prod(facts["targets"][0]["shape"])

    def __call__(self, given, targets):
        truth = targets.to(torch.float32).reshape(-1, self.outputs)
        given = given.reshape(truth.shape)
        return {"loss": self.loss(given, truth, reduction="sum"), "values": truth.shape[0] * self.outputs,
                "absolute": (given - truth).abs().sum()}


class Language(Task):
    weight = "tokens"
    metrics = {"accuracy": ("right", "tokens")}
    per_sample = False

    def __init__(self, keys, facts):
        super().__init__(keys)
        tokens = facts["inputs"][0]
        self.outputs = int(keys.get("vocabulary", 0)) or tokens["vocabulary"]
        self.end = tokens["end_of_text"] if keys.get("documents", "separate") == "separate" else -1

    def __call__(self, scores, targets, *, inputs):
        loss = lockstep_export.language_loss(end_of_text=self.end if self.end >= 0 else None,
                                             label_smoothing=self.smoothed())
        return loss(scores, targets, inputs=inputs)


TASKS = {"classification": Classification, "language": Language, "regression": Regression, "segmentation": Segmentation}


def make(kind, keys, facts):
    """The loss of task.kind = `kind`. `keys` are its own keys in [task], as texts; `facts` what is known of the samples.

    Raises ValueError for what an exported loss cannot do."""
    if kind not in TASKS:
        raise ValueError(f"task.kind = {kind}: its loss cannot be exported, only those of {', '.join(TASKS)}. Train the "
                         "built-in model, or write the loss in PyTorch and save it with lockstep_export.save")
    return TASKS[kind](keys, facts)
