#!/usr/bin/env python3
"""Makes tests/golden/scores.json: figures of predictions and weights of classes, by scikit-learn.

    python3 -m venv venv && venv/bin/pip install scikit-learn
    venv/bin/python tests/golden/make_scores.py tests/golden/scores.json
"""
import json
import pathlib
import sys

import numpy as np
import sklearn
from sklearn import metrics
from sklearn.utils.class_weight import compute_class_weight

CLASSES, SAMPLES, NEVER = 6, 300, 4  # class 4 is neither true nor predicted


def main(out):
    dice = np.random.default_rng(5)
    classes = [c for c in range(CLASSES) if c != NEVER]
    truth = dice.choice(classes, SAMPLES, p=[0.5, 0.25, 0.15, 0.06, 0.04])
    predicted = np.where(dice.random(SAMPLES) < 0.6, truth, dice.choice(classes, SAMPLES))
    predicted[predicted == 5] = 3  # true, but never predicted
    reals = dice.normal(size=(2, 20)).round(3)
    rest = more(truth, predicted, classes, np.random.default_rng(6))
    pathlib.Path(out).write_text(json.dumps({
        "sklearn": sklearn.__version__, "classes": CLASSES,
        "truth": truth.tolist(), "predicted": predicted.tolist(),
        "accuracy": metrics.accuracy_score(truth, predicted),
        "f1": metrics.f1_score(truth, predicted, average="macro", zero_division=0),
        "f1_of_class": dict(zip(map(str, classes), metrics.f1_score(
            truth, predicted, average=None, labels=classes, zero_division=0).tolist())),
        "iou": metrics.jaccard_score(truth, predicted, average="macro", zero_division=0),
        "balanced": dict(zip(map(str, classes), compute_class_weight(
            "balanced", classes=np.array(classes), y=truth).tolist())),
        "reals": reals.tolist(),
        "mae": metrics.mean_absolute_error(reals[0], reals[1]),
        "rmse": metrics.root_mean_squared_error(reals[0], reals[1]),
        **rest}) + "\n")


def more(truth, predicted, classes, dice):
    """What a deck asks for by task.metrics."""
    logits = (dice.normal(size=(SAMPLES, CLASSES)) + 2 * np.eye(CLASSES)[truth]).round(4)
    shares = np.exp(logits)
    shares /= shares.sum(1, keepdims=True)
    occurs = [c for c in classes if (truth == c).any()]
    binary = dice.integers(0, 2, SAMPLES)
    score = (dice.normal(size=SAMPLES) + binary).round(1)  # with ties
    labels = dice.integers(0, 2, (60, 4))
    labels[:, 3] = 0  # a label that no sample has, and none is predicted to have
    label_logits = (dice.normal(size=labels.shape) + labels).round(4)
    label_logits[:, 3] = -1
    guessed = (label_logits > 0).astype(int)
    real = dice.normal(size=(2, 20, 2)).round(3) + 3
    real[1, :, 1] = real[0, :, 1] + 0.1 * (real[1, :, 1] - 3)
    return {
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, predicted),
        "kappa": metrics.cohen_kappa_score(truth, predicted),
        "precision": metrics.precision_score(truth, predicted, average="macro", zero_division=0),
        "recall": metrics.recall_score(truth, predicted, average="macro", zero_division=0),
        "confusion": metrics.confusion_matrix(truth, predicted, labels=range(CLASSES)).tolist(),
        "logits": logits.tolist(),
        "top_2": metrics.top_k_accuracy_score(truth, logits, k=2, labels=range(CLASSES)),
        "auroc_of_class": {str(c): metrics.roc_auc_score(truth == c, shares[:, c]) for c in occurs},
        "auroc": float(np.mean([metrics.roc_auc_score(truth == c, shares[:, c]) for c in occurs])),
        "average_precision": float(np.mean([metrics.average_precision_score(truth == c, shares[:, c])
                                            for c in occurs])),
        "calibration_error": calibration_error(truth, shares),
        "binary": {"truth": binary.tolist(), "score": score.tolist(),
                   "auroc": metrics.roc_auc_score(binary, score),
                   "average_precision": metrics.average_precision_score(binary, score)},
        "labels": {"truth": labels.tolist(), "logits": label_logits.tolist(),
                   "f1": metrics.f1_score(labels, guessed, average="macro", zero_division=np.nan),
                   "micro_f1": metrics.f1_score(labels, guessed, average="micro"),
                   "subset_accuracy": metrics.accuracy_score(labels, guessed),
                   "auroc": metrics.roc_auc_score(labels[:, :3], label_logits[:, :3]),
                   "average_precision": metrics.average_precision_score(labels[:, :3],
                                                                        label_logits[:, :3])},
        "columns": {"truth": real[0].tolist(), "given": real[1].tolist(),
                    "r2": metrics.r2_score(real[0].astype(np.float32), real[1].astype(np.float32)),
                    "r2_of_column": metrics.r2_score(
                        real[0].astype(np.float32), real[1].astype(np.float32),
                        multioutput="raw_values").tolist()}}


def calibration_error(truth, shares, bins=15):
    """Guo, Pleiss, Sun, Weinberger, On Calibration of Modern Neural Networks, 2017, equation 3:
    bins of confidence (m - 1) / M < c <= m / M."""
    confidence, right = shares.max(1), shares.argmax(1) == truth
    error = 0
    for m in range(bins):
        here = (confidence > m / bins) & (confidence <= (m + 1) / bins)
        if here.any():
            error += here.mean() * abs(right[here].mean() - confidence[here].mean())
    return float(error)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
