"""Calls that fail where nobody looks: one clear end, or none where the run can do without."""
import json
import pathlib
import threading
import time

from harness import BUILD, DATA, Scratch, check, checkpoints, records, run, train

SHORT = ("--train.steps", 6, "--data.validation", "", "--schedule.warmup-steps", 2)


def failing(what):
    return {"LD_PRELOAD": str(BUILD / "tests/liblockstep_failing_calls.so"), "LOCKSTEP_FAIL": what}


with Scratch() as scratch:
    # Looking at the free space is a warning's affair.
    done = train(scratch / "space", *SHORT, env=failing("statvfs"))
    done.expect(0, "cannot tell whether the disk has room for the checkpoints")
    check(checkpoints(scratch / "space"), "checkpoints were written")

    # A probe that cannot be removed is an empty file, no more.
    train(scratch / "local", *SHORT, "--checkpoint.local", scratch / "fast", "--checkpoint.keep", 9,
          env=failing("unlink")).expect(0, "finished")

    # Without renewals another job would take this one for dead.
    train(scratch / "lease", *SHORT, env=failing("renew")).expect(
        73, "cannot renew the lease on run directory", "root cause: rank 0")

    # What others left in the records is no record of ours.
    tested = (*SHORT, "--data.test", DATA / "test.h5")
    train(scratch / "odd", *tested).expect(0)
    records_file = scratch / "odd" / "metrics.jsonl"
    odd = ({"event": 5}, {"event": "end", "reason": ["finished"]},
           {"event": "end", "reason": "finished", "step": "six"}, [1], "end", None)
    records_file.write_text("".join(json.dumps(line) + "\n" for line in odd) + "\xff{\n" +
                            records_file.read_text())
    train(scratch / "odd", *tested).expect(0, "this run is finished")

    # The thread level that MPI grants.
    train(scratch / "one", *SHORT, env=failing("threads:1")).expect(
        69, "MPI allows calls from one thread only")
    train(scratch / "serial", *SHORT, env=failing("threads:2")).expect(
        0, "checkpoints are synchronous", "finished")

    # A watchdog that gets no memory says so, and looks again.
    watched = train(scratch / "watched", *SHORT, "--train.steps", 30,
                    env={**failing("memory"), "LOCKSTEP_INJECT": "slow:rank=0"}).expect(0, "finished")
    check(watched.text.count("the watchdog cannot check the ranks: ") == 2, f"once on each rank: {watched.text}")

    # Memory of a host lasts longer than processes: what is killed before all share it has given it no name.
    shared = pathlib.Path("/dev/shm")
    before = set(shared.glob("lockstep-*"))
    check(train(scratch / "reserve", *SHORT, env=failing("reserve")).code != 0, "a killed rank ends the run")
    check(set(shared.glob("lockstep-*")) <= before, f"left: {set(shared.glob('lockstep-*')) - before}")

    # What lies on the disk in another way than it was written, or may do so, gets no name.
    for deflate in ([], ["--deflate", 4]):
        for how in ("flip", "close"):
            made = scratch / "made.h5"
            done = run(["data", "import", "hdf5", DATA / "test.h5", made, *deflate], env=failing(how))
            check(done.code == 74 and not made.exists(), f"{how} {deflate}: {done.text}")

    # exit() from a thread of the last rank, in the middle of training: that rank is named.
    ended, go = scratch / "ended", scratch / "go"
    def give_word():
        while not (ended / "metrics.jsonl").exists() or len(records(ended, "step")) < 3:
            time.sleep(0.05)
        go.touch()
    word = threading.Thread(target=give_word, daemon=True)
    word.start()
    result = train(ended, "--train.steps", 0, "--train.epochs", 50, "--data.validation", "", ranks=3,
                   env=failing(f"exit:2:{go}"))
    check(result.code != 0, result.text)
    causes = [line for line in result.text.splitlines() if "root cause" in line]
    check(len(causes) == 1 and "root cause: rank 2 (" in causes[0] and "exit(3)" in causes[0],
          f"{causes}\n{result.text}")
