"""A little of the real recordings of inputs/festvox_lmu.ini: they are imported, and a small network
learns phones of sentences it has not heard, which no network does whose memory or loss is wrong."""
import subprocess
import sys

from harness import LOCKSTEP, SOURCE, Scratch, check, records
from speech import train

SENTENCES = 60
FLOOR = 0.92  # silence scores 1, and so does every network at first

with Scratch() as scratch:
    made = subprocess.run([sys.executable, SOURCE / "scripts/festvox_ru.py", scratch / "data",
                           "--sentences", str(SENTENCES), "--lockstep", LOCKSTEP],
                          capture_output=True, text=True, check=False)
    if made.returncode == 77:
        print(made.stdout)
        sys.exit(77)
    check(made.returncode == 0, made.stdout + made.stderr)
    result = train(scratch / "run", scratch / "data/train.h5", scratch / "data/test.h5",
                   "--data.global-batch", 2, "--train.epochs", 24, "--schedule.warmup-steps", 50,
                   "--train.validate-every", 108,
                   "--run.replicas", 1, "--data.bucket-by-length", 4)
    result.expect(0)
    validations = records(scratch / "run", "validation")
    rates = [record["error-rate"] for record in validations]
    check(rates[-1] < FLOOR, f"phone error rates {rates}")
