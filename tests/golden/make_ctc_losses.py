#!/usr/bin/env python3
"""Makes tests/golden/ctc_losses.json: losses of torch's plain reference of CTC, in float64.

    .venv/bin/pip install expecttest  # torch.testing wants it
    .venv/bin/python tests/golden/make_ctc_losses.py tests/golden/ctc_losses.json
"""
import json
import pathlib
import sys

import torch
from torch.testing._internal.common_nn import ctcloss_reference

FRAMES, SYMBOLS = 12, 5
TRANSCRIPTS = [[0, 1, 2], [4, 4, 3, 3, 0], [2], [1, 0, 1, 0, 1, 0]]
LENGTHS = [12, 9, 3, 6]  # frames of each sample


def main(out):
    samples = len(LENGTHS)
    # [n, frames, outputs], as easily made elsewhere; the blank is the last of the outputs.
    logits = torch.sin(0.3 + 1.7 * torch.arange(samples * FRAMES * (SYMBOLS + 1)).double())
    scores = torch.log_softmax(2 * logits.reshape(samples, FRAMES, SYMBOLS + 1), 2)
    losses = ctcloss_reference(scores.transpose(0, 1),
                               torch.tensor([s for t in TRANSCRIPTS for s in t]),
                               torch.tensor(LENGTHS), torch.tensor([len(t) for t in TRANSCRIPTS]),
                               blank=SYMBOLS, reduction="none")
    pathlib.Path(out).write_text(json.dumps(
        {"frames": FRAMES, "symbols": SYMBOLS, "transcripts": TRANSCRIPTS, "lengths": LENGTHS,
         "losses": losses.tolist()}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
