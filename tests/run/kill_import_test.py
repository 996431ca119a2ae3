"""An import that is killed resumes where it was, on another number of ranks, to the same bytes."""
import os
import signal
import subprocess
import time

from harness import LOCKSTEP, Scratch, check, run

ROWS = 60000

with Scratch() as scratch:
    table = scratch / "table.csv"
    with table.open("w") as file:
        file.write("a,b,kind,owner\n")
        for i in range(ROWS):
            file.write(f"{i},{i % 7 / 8},{'xyz'[i % 3]},{i // 50}\n")
    words = ["data", "import", "series", table, scratch / "out", "--target", "kind", "--split",
             "0.8,0.1,0.1", "--split-by", "owner", "--shard-samples", "20000"]

    run([*words[:4], scratch / "whole", *words[5:]], ranks=1).expect(
        0, "train: 48,000 samples", "validation: 6,000 samples", "test: 6,000 samples")

    parts = scratch / "out.importing"
    started = subprocess.Popen([LOCKSTEP, *map(str, words)], stdout=subprocess.DEVNULL)
    while started.poll() is None and len(list(parts.glob("part-??????"))) < 3:
        time.sleep(0.001)
    started.send_signal(signal.SIGKILL)
    started.wait()
    check(started.returncode == -signal.SIGKILL, "it was killed before it was done")
    check(not (scratch / "out/test.h5").exists(), "nothing is there under its name")

    # Parts that others have made, or could have changed, are made again.
    mine = sorted(parts.glob("part-??????"))
    for part in mine[:2]:
        part.write_bytes(bytes([part.read_bytes()[0] ^ 1]) + part.read_bytes()[1:])
    mine[0].chmod(0o666)
    told = [f"{mine[0]} was made again: other users may write to it"]
    if os.geteuid() == 0:
        os.chown(mine[1], 65534, -1)
        told.append(f"{mine[1]} was made again: it belongs to another user (uid 65534)")
    else:
        print("SKIPPED: only root can give files to other users")

    run(words, ranks=3).expect(0, " of an interrupted import", *told)
    check(not parts.exists(), "the parts are gone")
    names = sorted(os.listdir(scratch / "whole"))
    check(names == sorted(os.listdir(scratch / "out")), "the same files")
    check("train-00002-of-00003.h5" in names, "shards")
    for name in names:
        check((scratch / "whole" / name).read_bytes() == (scratch / "out" / name).read_bytes(),
              f"{name} has the same bytes")
        run(["data", "verify", scratch / "out" / name]).expect(0)
    run([*words, "--overwrite"], ranks=2).expect(0)  # and again, over what is there
    run([*words[:-3], "nobody", *words[-2:]]).expect(64, "its columns are a, b, kind, owner")
    run([*words, "--deflate", "10"]).expect(64)
    run(["data", "import", "movies", table, scratch / "x"]).expect(64, "the kinds are idx, images")
