"""Changes of pictures of 224 x 224 with three channels in float32, per core: ours, and those of torchvision's transforms.v2,
which then normalises (we undo the normalisation and do it again). Needs torchvision:

    cmake --build build --target augment_bench
    python bench/augment.py build/bench/augment_bench 15

The number is how many pairs of measurements of 64 pictures, one side after the other. Printed are the medians, and the
median over pairs of how many times as fast ours is.
"""
import statistics
import subprocess
import sys
import time
import types

import torch

sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("none"))  # of operators that are not used here
from torchvision.transforms import v2  # noqa: E402

PICTURES = 64
LISTS = {
    "resized-crop, flip": [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()],
    "resized-crop, flip, colour:0.4:0.4:0.4:0.1": [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(),
                                                   v2.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "resized-crop, flip, colour:0.4:0.4:0.4": [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(),
                                               v2.ColorJitter(0.4, 0.4, 0.4)],
    "affine:15:0.1:0.9:1.1:5": [v2.RandomAffine(15, (0.1, 0.1), (0.9, 1.1), 5, v2.InterpolationMode.BILINEAR)],
    "blur:5:0.1:2": [v2.GaussianBlur(5, (0.1, 2))],
    "randaugment:2:9": [v2.RandAugment(2, 9, interpolation=v2.InterpolationMode.BILINEAR)],
}
NORMALISE = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def theirs(change, pictures):
    begin = time.perf_counter()
    for picture in pictures:
        change(picture)
    return 1000 * (time.perf_counter() - begin) / len(pictures)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    pictures = list(torch.rand(PICTURES, 3, 224, 224))
    with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        for names, changes in LISTS.items():
            # theirs get pictures that are not normalised yet; only where colours change is ours normalised again
            change = v2.Compose([*changes, NORMALISE] if "colour" in names or "rand" in names else changes)
            pairs = []
            for _ in range(int(sys.argv[2]) + 1):
                program.stdin.write(names + "\n")
                program.stdin.flush()
                pairs.append((float(program.stdout.readline()), theirs(change, pictures)))
            own, other = (statistics.median(side) for side in zip(*pairs[1:]))
            ratios = sorted(b / a for a, b in pairs[1:])
            print(f"{names}: {own:.3f} ms per picture; torchvision {other:.3f} ms; {statistics.median(ratios):.1f} times as fast "
                  f"({ratios[0]:.1f} to {ratios[-1]:.1f})", flush=True)


main()
