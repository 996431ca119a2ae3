"""Memory that runs out in earnest: the second of two ranks has a limit, and a batch comes that does not fit. The
rank is named with what it needed and what it had, and both end with 71. The short form draws what has no room."""
import re
import subprocess

import h5py
import numpy as np

from harness import LOCKSTEP, Scratch, check, records, run, some
from speech import DECK, SMALL

SAMPLES, SHORT, LONG = 64, 40, 10_000_000  # frames; the long recording takes 458 MiB
MIB = 2**20
UNITS = {"B": 1, "KiB": 2**10, "MiB": MIB, "GiB": 2**30}


def write_set(path, long_one=None):
    """Recordings of silence, of which nothing is written: the file has a hole there."""
    frames = np.full(SAMPLES, SHORT)
    if long_one is not None:
        frames[long_one] = LONG
    hole = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    hole.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    hole.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(path, "w") as file:
        h5py.h5d.create(file.id, b"inputs", h5py.h5t.IEEE_F32LE,
                        h5py.h5s.create_simple((int(frames.sum()), 12)), hole)
        file["inputs_offsets"] = np.cumsum([0, *frames])
        file["targets"] = np.arange(2 * SAMPLES) % 5
        file["targets_offsets"] = 2 * np.arange(SAMPLES + 1)
        file.attrs["classes"] = [f"sound {i}" for i in range(5)]


def runs_out(run_directory, train_set, test_set, limit, where):
    """With batches of two recordings a rank, in the order of the file."""
    result = run(["train", DECK, "--data.train", train_set, "--data.validation", test_set, "--data.test", "",
                  "--run.directory", run_directory, *SMALL, "--run.replicas", 2, "--data.global-batch", 4, "--data.bucket-by-length", 0,
                  "--data.shuffle", "none", "--train.steps", 16], ranks=2, last_through=["prlimit", limit])
    result.expect(71, "root cause: rank 1 (", f", cpu) in {where}: out of memory: ", "lower data.batch")
    amount = r"([0-9.]+) (\w+)"
    found = re.search(f"out of memory: {amount} were needed; {amount} of memory were left for this process", result.text)
    check(found, result.text)
    needed, left = (float(found[at]) * UNITS[found[at + 1]] for at in (1, 3))
    check(left < needed, f"had it been there, it would have been given: {found[0]}")


with Scratch() as scratch:
    write_set(scratch / "short.h5")
    write_set(scratch / "late.h5", 43)  # of step 11, for the second rank
    write_set(scratch / "last.h5", SAMPLES - 1)
    # No room for what the network makes of a batch; for the batch; for one of the validation; no addresses.
    for name, limit in some((("step", f"--data={2000 * MIB}"), ("batch", f"--data={500 * MIB}"),
                             ("validation", f"--data={500 * MIB}"), ("addresses", f"--as={6000 * MIB}"))):
        if name == "validation":
            runs_out(scratch / name, scratch / "short.h5", scratch / "last.h5", limit, "evaluation at step 16")
            continue
        runs_out(scratch / name, scratch / "late.h5", scratch / "short.h5", limit, "training at step 11")
        check(len(records(scratch / name, "step")) == 10, "what came before was trained")

    # Too few addresses for the libraries, which would crash; and wherever they end later.
    for most in (*some((400, 600, 1000)), *some((1150, 1300))):
        done = subprocess.run(["prlimit", f"--as={most * MIB}", LOCKSTEP, "train", DECK, "--data.train", scratch / "short.h5",
                               "--data.validation", "", "--data.test", "", "--run.directory", scratch / f"as-{most}", *map(str, SMALL),
                               "--train.steps", "1"], capture_output=True, text=True, timeout=120)
        check(done.returncode in ((71,) if most < 1024 else (0, 71)) and (done.returncode == 0 or "lockstep: " in done.stderr),
              f"{most} MiB: {done.returncode} {done.stdout}{done.stderr}")
