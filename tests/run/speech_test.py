"""Ten real recordings are imported and learnt by heart, letter by letter, by a small network of Legendre
memories: one whose memory, loss or decoding is wrong does not get there. It is Debian's package
pocketsphinx-testdata; what a network learns of sentences that it has not heard is in docs/workloads.md."""
import csv
import os
import pathlib
import re
import sys

from harness import Scratch, check, records, run
from speech import train

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_POCKETSPHINX_DATA", "/usr/share/pocketsphinx/test/data"))
FLOOR = 0.1  # silence scores 1, as every network does at first, and one whose memories hold one step 0.2


def gather(folder):
    """The recordings in one folder, and a table of what is said in each."""
    recordings = folder / "wav"
    recordings.mkdir()
    with (folder / "said.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "text", "set"])
        for words in (SOURCE / "cards/cards.transcription", SOURCE / "librivox/transcription"):
            for text, name in re.findall(r"<s> (.*?) +</s> \((.*)\)", words.read_text()):
                (recordings / f"{name}.wav").symlink_to(words.parent / f"{name}.wav")
                rows.writerow([f"{name}.wav", text, "train"])
    return recordings, folder / "said.csv"


if not SOURCE.is_dir():
    print(f"no recordings in {SOURCE}: install Debian's pocketsphinx-testdata")
    sys.exit(77)
with Scratch() as scratch:
    recordings, table = gather(scratch)
    run(["data", "import", "speech", recordings, scratch / "data", "--transcripts", table]).expect(0)
    data = scratch / "data/train.h5"
    train(scratch / "run", data, data, "--data.global-batch", 5, "--train.epochs", 120,
          "--schedule.warmup-steps", 20, "--train.validate-every", 120, "--run.replicas", 1,
          "--data.bucket-by-length", 2, "--monitor.log-every", 50).expect(0)
    rates = [(record["error-rate"], record["wer"]) for record in records(scratch / "run", "validation")]
    check(rates[-1][0] < FLOOR and rates[-1][1] < 0.3, f"letter and word error rates {rates}")
