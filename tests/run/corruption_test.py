"""Every flipped bit and every truncation of a checkpoint is found.

corruption_test.py --damages 500 --seed 3 is the long form.
"""
import argparse
import random

from harness import Scratch, check, checkpoints, run, train

BATCH = 50  # damaged copies that one process looks at

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--damages", type=int, default=BATCH)
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()
choose = random.Random(arguments.seed)
with Scratch() as scratch:
    train(scratch / "run", "--train.steps", 2, "--data.validation", "").expect(0)
    whole = checkpoints(scratch / "run")[-1].read_bytes()
    found = 0
    for begin in range(0, arguments.damages, BATCH):
        place = scratch / f"batch{begin}" / "checkpoints"
        place.mkdir(parents=True)
        (place / "step-00000002.h5").write_bytes(whole)
        for number in range(begin, min(begin + BATCH, arguments.damages)):
            content = bytearray(whole)
            if number % 5 == 4:
                del content[choose.randrange(len(content)):]
            else:
                # The checksum header and HDF5's metadata are small: as many flips there as in the arrays.
                limit = choose.choice((4096, 65536, len(content)))
                content[choose.randrange(limit)] ^= 1 << choose.randrange(8)
            (place / f"step-{number + 3:08d}.h5").write_bytes(content)
        text = run(["checkpoint", "verify", place.parent]).expect(65).text
        check("step-00000002.h5: all bytes are intact" in text, "the whole one is whole")
        found += sum(line.endswith("h5: damaged") for line in text.splitlines())
    check(found == arguments.damages, f"{found} of {arguments.damages} found")
    print(f"{found} of {arguments.damages} flips and truncations found")
