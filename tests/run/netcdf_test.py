"""Files that others wrote, netCDF-4 of weather and sea models, are read unchanged: every dataset of
numbers that has samples comes out as h5py reads it, and the others are refused with a reason. The
files are those of the package iris-sample-data."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import h5py
import numpy as np

from harness import BUILD, check, run

found = importlib.util.find_spec("iris_sample_data")
if found is None:
    print("skipped: the package iris-sample-data is not installed")
    sys.exit(77)
SAMPLES = pathlib.Path(found.origin).parent / "sample_data"
LABELS = 100000  # whole numbers of a first target below this are classes


def handed_out(values, is_target):
    """A dataset as training sees it: whole numbers stay whole where they are targets or tokens."""
    whole = values.dtype.kind in "iu" and (is_target or values.dtype.itemsize == 8)
    return np.ascontiguousarray(values, np.int64 if whole else np.float32)


def datasets(path):
    with h5py.File(path) as file:
        found = {}
        file.visititems(lambda name, item: found.update(
            {name: item[()]} if isinstance(item, h5py.Dataset) else {}))
        return found


def is_fit(values):
    return isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.size > 0


def fits_as_target(values):
    classes = values.dtype.kind in "iu" and values.size == len(values)
    return not classes or (values.min() >= 0 and values.max() < LABELS)


def questions():
    """Files, inputs, targets, and the bytes that are right, or a part of the refusal."""
    for path in sorted(SAMPLES.glob("**/*.nc")):
        with open(path, "rb") as file:
            if file.read(3) == b"CDF":
                yield path, "any", "any", "it is netCDF-3"
                continue
        held = datasets(path)
        for name, values in held.items():
            partner = next((other for other, theirs in held.items()
                            if is_fit(values) and is_fit(theirs) and len(theirs) == len(values)
                            and fits_as_target(theirs)), None)
            if partner is not None:
                yield (path, name, partner, handed_out(values, False).tobytes() +
                       handed_out(held[partner], True).tobytes())
            elif is_fit(values):
                yield path, name, name, f"label {values.ravel()[np.argmax(values >= LABELS)]} of"
            elif np.size(values) == 0:
                yield path, name, name, "holds no samples"
            else:
                yield path, name, name, "does not hold plain numbers per sample"
    months = sorted((SAMPLES / "NEMO").glob("*.nc"))
    yield (SAMPLES / "NEMO/nemo*.nc", "tos", "time_centered_bounds",
           b"".join(handed_out(datasets(month)["tos"], False).tobytes() for month in months) +
           b"".join(handed_out(datasets(month)["time_centered_bounds"], True).tobytes()
                    for month in months))


asked = list(questions())
done = subprocess.run([BUILD / "tests/lockstep_read_samples"], capture_output=True, check=True,
                      timeout=120, input="".join(f"{files}\t{inputs}\t{targets}\n" for
                                                 files, inputs, targets, _ in asked).encode())
at, read = 0, 0
for files, inputs, targets, expected in asked:
    end = done.stdout.index(b"\n", at)
    head, at = done.stdout[at:end].decode(), end + 1
    what = f"{files}: {inputs} and {targets}"
    if isinstance(expected, str):
        check(head.startswith("- 65 ") and expected in head, f"{what}: {head}")
        continue
    check(head == str(len(expected)), f"{what}: {head}, not {len(expected)} bytes")
    check(done.stdout[at:at + len(expected)] == expected, f"{what}: every value is h5py's")
    at += len(expected)
    read += 1
check(at == len(done.stdout) and read > 80, f"{read} datasets were compared")

weather = SAMPLES / "A1B_north_america.nc"
names = ["--inputs", "air_temperature", "--targets", "time"]
run(["data", "info", weather, *names]).expect(0, "written by another program", "240 samples",
                                              "air_temperature: [37, 49] f32", "time: [] f64")
run(["data", "verify", weather, *names]).expect(0, "every sample can be read")
print(f"netcdf: {read} datasets as h5py reads them, {len(asked) - read} refused")
