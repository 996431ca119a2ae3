"""Imports Fashion-MNIST for the other tests; the second import replaces the first, where it is told to."""
import gzip
import pathlib
import struct

from harness import DATA, Scratch, check, run

SOURCE = "/usr/share/datasets/fashion-mnist"
NAMES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
TESTED = 1000  # of 10,000: most of what a short run costs would be its validation


def first(file, count):
    """An IDX file's first items."""
    content = gzip.decompress(file.read_bytes())
    rank = content[3]
    total, *shape = struct.unpack(f">{rank}I", content[4:4 + 4 * rank])
    item = (len(content) - 4 - 4 * rank) // total
    return gzip.compress(content[:4] + struct.pack(f">{rank}I", count, *shape) +
                         content[4 + 4 * rank:4 + 4 * rank + count * item])


def imports(source, tested):
    run(["data", "import", "idx", source, DATA, "--classes", NAMES, "--overwrite"]).expect(
        0, "60,000 samples", f"{tested:,} samples")


with Scratch() as scratch:
    imports(SOURCE, 10000)
    for file in sorted(pathlib.Path(SOURCE).iterdir()):
        if file.name.startswith("t10k"):
            (scratch / file.name).write_bytes(first(file, TESTED))
        else:
            (scratch / file.name).symlink_to(file)
    imports(scratch, TESTED)
check(sorted(p.name for p in DATA.iterdir()) == ["test.h5", "train.h5"], "nothing else is left")
