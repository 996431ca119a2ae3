#!/usr/bin/env python3
"""Makes tests/golden/error_rates.json: edits between transcripts, and error rates over all of them,
by jiwer.

    python3 -m venv venv && venv/bin/pip install jiwer
    venv/bin/python tests/golden/make_error_rates.py tests/golden/error_rates.json
"""
import json
import pathlib
import random
import sys

import jiwer

PAIRS = [
    ("the cat sat on the mat", "the cat sat on the mat"),
    ("the cat sat on the mat", "the bat sat on a mat at last"),
    ("she sells sea shells", ""),
    ("one", "two three four"),
    ("ab ab ab", "ba ba ba"),
    ("мама мыла раму", "мама мыло рану вчера"),
]


def drawn():
    """Texts of a small alphabet, some of them far from each other."""
    dice = random.Random(7)
    text = lambda: " ".join("".join(dice.choice("abc") for _ in range(dice.randint(1, 4)))
                            for _ in range(dice.randint(1, 9)))
    for _ in range(40):
        reference = text()
        hypothesis = [c for c in reference if dice.random() > 0.2]
        for _ in range(dice.randint(0, 4)):
            hypothesis.insert(dice.randint(0, len(hypothesis)), dice.choice("abc "))
        yield reference, " ".join("".join(hypothesis).split()) if dice.random() < 0.8 else text()


def edits(found):
    return found.substitutions + found.deletions + found.insertions


def main(out):
    pairs = PAIRS + list(drawn())
    cases = [{"reference": reference, "hypothesis": hypothesis,
              "words": edits(jiwer.process_words(reference, hypothesis)),
              "characters": edits(jiwer.process_characters(reference, hypothesis))}
             for reference, hypothesis in pairs]
    references, hypotheses = map(list, zip(*pairs))
    pathlib.Path(out).write_text(json.dumps(
        {"jiwer": "4.0.0", "cases": cases, "wer": jiwer.wer(references, hypotheses),
         "cer": jiwer.cer(references, hypotheses)}, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
