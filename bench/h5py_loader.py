"""An epoch of 60,000 images of 28 x 28 bytes through h5py and torch's DataLoader, shuffled, in
batches of 64: what `lockstep bench loader --kind small` reads. One process."""
import argparse
import json
import os
import statistics
import tempfile
import time

import h5py
import numpy
import torch

IMAGES = 60000


class Images(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __len__(self):
        return IMAGES

    def __getitem__(self, index):
        if self.file is None:  # each worker its own: HDF5 handles do not survive a fork
            self.file = h5py.File(self.path)
        image = torch.from_numpy(self.file["inputs"][index]).to(torch.float32) / 255
        return image, int(self.file["targets"][index])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "images.h5")
        with h5py.File(path, "w") as file:
            generator = numpy.random.default_rng(0)
            file["inputs"] = generator.integers(0, 256, (IMAGES, 28, 28), dtype=numpy.uint8)
            file["targets"] = numpy.arange(IMAGES) % 10
        loader = torch.utils.data.DataLoader(Images(path), batch_size=64, shuffle=True,
                                             num_workers=options.workers,
                                             persistent_workers=options.workers > 0)
        seconds = []
        for repeat in range(options.repeats + 1):
            begin = time.perf_counter()
            for _ in loader:
                pass
            if repeat > 0:
                seconds.append(time.perf_counter() - begin)
    print(json.dumps({"what": "loader small", "variant": f"h5py, {options.workers} workers",
                      "bytes": IMAGES * 784, "ranks": 1, "median_s": statistics.median(seconds),
                      "minimum_s": min(seconds), "maximum_s": max(seconds)}))


main()
