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
        "rmse": metrics.root_mean_squared_error(reals[0], reals[1])}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
