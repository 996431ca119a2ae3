"""What training reads of files, by tests/support/read_samples.cpp, for comparison with what made them."""
import os
import subprocess

import numpy as np

from harness import BUILD, check

READER = BUILD / "tests/lockstep_read_samples"


def answers(questions, env=None, limit=120):
    """For each (files, inputs, targets): the bytes of all samples' fields, or the text of the refusal,
    which begins with its exit code."""
    asked = "".join(f"{files}\t{inputs}\t{targets}\n" for files, inputs, targets in questions)
    done = subprocess.run([READER], input=asked.encode(), capture_output=True, timeout=limit,
                          env={**os.environ, **(env or {})})
    check(done.returncode == 0, f"the reader ended with {done.returncode}: {done.stderr.decode()}")
    out, at, found = done.stdout, 0, []
    for _ in questions:
        end = out.index(b"\n", at)
        head, at = out[at:end].decode(errors="replace"), end + 1
        if head.startswith("- "):
            found.append(head[2:])
        else:
            found.append(out[at:at + int(head)])
            at += int(head)
    check(at == len(out), "an answer for each question")
    return found


def handed_out(values, is_target):
    """What training is given of a dataset without mean and deviation, as bytes."""
    values = np.asarray(values)
    whole = values.dtype.kind in "iub" and (is_target or values.dtype.kind != "b" and values.dtype.itemsize == 8)
    if whole:
        return values.astype("<i8").tobytes()
    if values.dtype == np.uint8:
        return (values.astype("<f4") / np.float32(255)).tobytes()
    return values.astype("<f4").tobytes()
