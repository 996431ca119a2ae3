"""A rank that dies or stands still, in any phase: one line names it, and the job ends with 76."""
import re
import sys

from harness import DATA, Scratch, check, records, run, train

TIMEOUT = 6  # communication.timeout-seconds; the machine may be busy
ENDS = (76, 137)  # mpirun answers with 137 where it saw a killed rank first


def first_cause(result):
    lines = re.findall(r"^lockstep: first cause: .*$", result.text, re.M)
    check(len(lines) == 1, f"one line tells the first cause:\n{result.text}")
    return lines[0]


def fails(fault, *phrases, ranks=3, codes=(76,), limit=TIMEOUT + 5, options=()):
    with Scratch() as scratch:
        result = train(scratch / "run", "--communication.timeout-seconds", TIMEOUT, *options,
                       ranks=ranks, env={"LOCKSTEP_INJECT": fault})
        check(result.code in codes, f"{fault}: exit code {result.code}\n{result.text}")
        line = first_cause(result)
        for phrase in phrases:
            check(phrase in line, f"{fault}: missing {phrase!r} in {line}")
        log = (scratch / "run/log.txt").read_text()
        check(line in log, f"{fault}: log.txt tells it, too")
        failure = records(scratch / "run", "failure")
        check(len(failure) == 1 and failure[0]["exit_code"] == 76, f"{fault}: one failure record")
        # Starting and five steps take a few seconds themselves.
        check(result.seconds < limit + 15, f"{fault}: {result.seconds:.1f} s are too long")
        print(f"{fault}: {result.seconds:.1f} s, {result.code}: {line}")
        sys.stdout.flush()


fails("kill:rank=1:step=5", "rank 1 (", "at step 5", "its process is gone", codes=ENDS, limit=5)
fails("kill:rank=0:step=5", "rank 0 (", "at step 5", "its process is gone", codes=ENDS, limit=5)
fails("kill:rank=2:phase=checkpoint:step=5", "rank 2 (", "in writing a checkpoint at step 5",
      codes=ENDS, limit=5)
fails("stop:rank=1:step=5", "rank 1 (", "at step 5", "no progress for", "stopped (SIGSTOP)",
      "ranks 0, 2 wait in")
fails("stop:rank=0:step=5", "rank 0 (", "stopped (SIGSTOP)", "ranks 1, 2 wait in")
fails("hang:rank=2:step=5", "rank 2 (", "at step 5", "it hangs", "ranks 0, 1 wait in the exchange")
fails("hang:rank=1:phase=data:step=5", "rank 1 (", "in reading data at step 5", "it hangs")
fails("hang:rank=1:phase=checkpoint:step=5", "rank 1 (", "in writing a checkpoint at step 5")
fails("hang:rank=0:phase=validation", "rank 0 (", "in validation at step 10")

# Slower than the others is not dead.
with Scratch() as scratch:
    train(scratch / "run", "--communication.timeout-seconds", TIMEOUT, "--train.steps", 12,
          ranks=2, env={"LOCKSTEP_INJECT": "slow:rank=1"}).expect(0)
