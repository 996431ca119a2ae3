"""Imports Fashion-MNIST for the other tests; the second import replaces the first, where it is told to."""
from harness import DATA, check, run

NAMES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
for _ in range(2):
    run(["data", "import", "idx", "/usr/share/datasets/fashion-mnist", DATA, "--classes",
         NAMES, "--overwrite"]).expect(0, "60,000 samples", "10,000 samples")
check(sorted(p.name for p in DATA.iterdir()) == ["test.h5", "train.h5"], "nothing else is left")
