"""Data sets on hosts: shards that all hosts see, copies that each host has for itself, and copies that
are not the same."""
import pathlib
import shutil
import subprocess
import sys
import time

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import DATA, DECK, LOCKSTEP, Result, Scratch, check, check_same, checkpoints  # noqa: E402
from hosts import Hosts, missing  # noqa: E402

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)

SHARDS = 7


def write_shards(directory, first=0):
    """Samples of the training set in files of other lengths each."""
    directory.mkdir()
    with h5py.File(DATA / "train.h5") as whole:
        for shard in range(SHARDS):
            with h5py.File(directory / f"part-{shard}.h5", "w") as part:
                for name in ("inputs", "targets"):
                    part[name] = whole[name][first:first + 30 + shard]
                for name, value in whole.attrs.items():
                    part.attrs[name] = value
            first += 30 + shard


with Scratch() as scratch, Hosts(3) as hosts:
    write_shards(scratch / "set")
    write_shards(scratch / "others", 1000)
    local = scratch / "local"
    shutil.copytree(scratch / "set", local)

    def job(name, where, data, code=0):
        since = time.monotonic()
        running = hosts.mpirun(where, [
            LOCKSTEP, "train", DECK, "--data.train", data / "part-*.h5", "--data.validation", "",
            "--run.directory", scratch / name, "--run.replicas", 4, "--communication.timeout-seconds", 8])
        text = running.communicate(timeout=120)[0]
        return Result(running.returncode, text, time.monotonic() - since).expect(code)

    def on_host2(*words):
        subprocess.run(["nsenter", "-t", str(hosts.holders["host2"].pid), "-m", "--", *map(str, words)],
                       check=True)

    job("one", "host1:1", scratch / "set")
    job("shared", "host1:2,host2:1,host3:1", scratch / "set")
    check_same(checkpoints(scratch / "one")[-1], checkpoints(scratch / "shared")[-1], "files that all see")

    # host2 has copies of its own, made at another time.
    on_host2("mount", "-t", "tmpfs", "copies", local)
    for shard in range(SHARDS):
        on_host2("cp", scratch / f"set/part-{shard}.h5", local)
        on_host2("touch", "-d", "2020-01-01", local / f"part-{shard}.h5")
    job("copies", "host1:1,host2:2,host3:1", local)
    check_same(checkpoints(scratch / "one")[-1], checkpoints(scratch / "copies")[-1], "copies on a host")

    on_host2("rm", local / "part-5.h5")
    for _ in range(3):  # hosts that are told of an end tell it, too, perhaps before it is printed
        text = job("missing", "host1:1,host2:2", local, 66).text
        check("(host2, cpu)" in text and "part-5.h5" in text, text)

    on_host2("cp", scratch / "others/part-5.h5", local / "part-5.h5")
    text = job("other", "host1:1,host2:2", local, 65).text
    check("(host2, cpu)" in text and "not hold the same data as those of rank 0's host" in text, text)
