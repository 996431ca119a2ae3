"""A rank that dies or stands still, in any phase: one line names it, and the job ends with 76."""
import os
import pathlib
import re
import subprocess
import sys
import time

from harness import DATA, DECK, LOCKSTEP, Result, Scratch, check, records, run, together, train

TIMEOUT = 6  # communication.timeout-seconds; the machine may be busy
ENDS = (76, 137)  # mpirun answers with 137 where it saw a killed rank first


def root_cause(result):
    lines = re.findall(r"^lockstep: root cause: .*$", result.text, re.M)
    check(len(lines) == 1, f"one line tells the root cause:\n{result.text}")
    return lines[0]


def fails(fault, *phrases, ranks=3, codes=(76,), options=()):
    with Scratch() as scratch:
        result = train(scratch / "run", "--communication.timeout-seconds", TIMEOUT, *options,
                       ranks=ranks, env={"LOCKSTEP_INJECT": fault})
        ended = time.time()
        check(result.code in codes, f"{fault}: exit code {result.code}\n{result.text}")
        line = root_cause(result)
        for phrase in phrases:
            check(phrase in line, f"{fault}: missing {phrase!r} in {line}")
        log = (scratch / "run/log.txt").read_text()
        check(line in log, f"{fault}: log.txt tells it, too")
        failure = records(scratch / "run", "failure")
        check(len(failure) == 1 and failure[0]["exit_code"] == 76, f"{fault}: one failure record")
        # Told in time, and ended soon after; a start and five steps last as long as the disk is busy.
        still = re.search(r"no progress for (\d+) s", line)
        check(not still or int(still[1]) <= TIMEOUT + 4, f"{fault}: told late: {line}")
        after = ended - (scratch / "run/log.txt").stat().st_mtime
        check(after < 15, f"{fault}: {after:.1f} s from the root cause to the end are too long")
        print(f"{fault}: {result.seconds:.1f} s, {result.code}: {line}")
        sys.stdout.flush()


together([
    lambda: fails("stop:rank=1:step=5", "rank 1 (", "at step 5", "no progress for", "stopped (SIGSTOP)",
                  "ranks 0, 2 wait in"),
    lambda: fails("stop:rank=0:step=5", "rank 0 (", "stopped (SIGSTOP)", "ranks 1, 2 wait in"),
    lambda: fails("hang:rank=2:step=5", "rank 2 (", "at step 5", "it hangs", "ranks 0, 1 wait in the exchange"),
    lambda: fails("hang:rank=1:phase=data:step=5", "rank 1 (", "in reading data at step 5", "it hangs"),
    lambda: fails("hang:rank=1:phase=checkpoint:step=5", "rank 1 (", "in writing a checkpoint at step 5"),
    lambda: fails("hang:rank=0:phase=validation", "rank 0 (", "in validation at step 10"),
    lambda: fails("hang:rank=0:phase=pictures", "rank 0 (", "in the last records and pictures at step 5",
                  options=("--data.validation", "", "--train.steps", 5)),
    lambda: fails("hang:rank=2:phase=opening the data and the model", "rank 2 (",
                  "in start-up (opening the data and the model)"),
    lambda: fails("kill:rank=1:step=5", "rank 1 (", "at step 5", "its process is gone", codes=ENDS),
    lambda: fails("kill:rank=0:step=5", "rank 0 (", "at step 5", "its process is gone", codes=ENDS),
    lambda: fails("kill:rank=2:phase=checkpoint:step=5", "rank 2 (", "in writing a checkpoint at step 5",
                  codes=ENDS)])

with Scratch() as scratch:
    # Slower than the others is not dead, but it is said, once.
    slow = train(scratch / "slow", "--communication.timeout-seconds", TIMEOUT, ranks=2,
                 env={"LOCKSTEP_INJECT": "slow:rank=1"}).expect(0)
    check(slow.text.count("rank 1 on ") == 1, f"the straggler is named once:\n{slow.text}")
    named = [step for step in records(scratch / "slow", "step") if "straggler" in step]
    check(len(named) > 20 and all(step["straggler"] == 1 for step in named[5:]), f"{named}")
    check(60 < named[-1]["straggler_ms"] < 160, f"by a tenth of a second: {named[-1]}")

    # A rank that is killed while another command than train runs.
    imported = run(["data", "import", "hdf5", DATA / "train.h5", scratch / "out.h5"], ranks=2,
                   env={"LOCKSTEP_INJECT": "kill:rank=0:phase=importing data"})
    check(imported.code in ENDS, imported.text)
    check("rank 0 (" in root_cause(imported) and "importing data" in imported.text, imported.text)

    # Where a rank hangs, on request.
    stacks = train(scratch / "stacks", "--communication.timeout-seconds", TIMEOUT, ranks=2,
                   env={"LOCKSTEP_INJECT": "hang:rank=1:step=5", "LOCKSTEP_STACKS": "1"})
    log = (scratch / "stacks/log.txt").read_text()
    check(stacks.code == 76 and "the stacks of rank 1" in log and "inject_fault" in log, log)
    check(log.splitlines()[-1].startswith("lockstep: root cause: rank 1"), log)

    # Two ranks with an array of their own each: one differs, nobody knows which.
    train(scratch / "flipped", "--optimizer.update", "replicated",
          "--communication.check-replicas-every", 5, ranks=2,
          env={"LOCKSTEP_INJECT": "bitflip:rank=1:step=6"}).expect(
              76, "root cause: rank ", "at step 10", "it is unknown which are right")
    result = train(scratch / "odd", "--optimizer.update", "replicated",
                   "--communication.check-replicas-every", 5, ranks=3,
                   env={"LOCKSTEP_INJECT": "bitflip:rank=1:step=6"})
    check(result.code == 76 and "the replica of rank 1 differs" in root_cause(result), result.text)

# A rank that the kernel kills for want of memory: each has a control group of its own, as Slurm
# makes them, and another process, which the kernel would rather spare, takes what there is in that
# of rank 1.
GREEDY = """
import time
hoard = []
while True:
    hoard.append(bytearray(16 << 20))
    time.sleep(0.02)
"""
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")
LIMITS = [GROUPS / f"lockstep-{os.getpid()}-{rank}" for rank in range(2)]


def remove(group):
    """Once the last process has left it, which may take a moment."""
    for _ in range(100):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"failed: {group} is still in use")


def starved(directory):
    job = subprocess.Popen(
        [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", "sh", "-c",
         f"echo $$ > {GROUPS}/lockstep-{os.getpid()}-$OMPI_COMM_WORLD_RANK/cgroup.procs; "
         "echo 500 > /proc/$$/oom_score_adj; exec \"$@\"",
         "sh", LOCKSTEP, "train", DECK, "--data.train", DATA / "train.h5", "--data.validation", "",
         "--train.steps", "100000", "--train.epochs", "0", "--run.directory", directory],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    records_file = directory / "metrics.jsonl"
    while not (records_file.exists() and '"step"' in records_file.read_text()):
        check(job.poll() is None, "it trains")
        time.sleep(0.1)
    used = int((LIMITS[1] / "memory.usage_in_bytes").read_text())
    (LIMITS[1] / "memory.limit_in_bytes").write_text(str(used + (32 << 20)))
    greedy = subprocess.Popen(["sh", "-c", f"echo $$ > {LIMITS[1]}/cgroup.procs; exec \"$@\"", "sh",
                               sys.executable, "-c", GREEDY])
    text = job.communicate(timeout=60)[0]
    greedy.kill()
    greedy.wait()
    return Result(job.returncode, text, 0)


try:
    for group in LIMITS:
        group.mkdir()
except OSError as error:
    print(f"not tried: a kernel that kills for want of memory ({error})")
else:
    with Scratch() as scratch:
        line = root_cause(starved(scratch / "run"))
        check("rank 1 (" in line and "killed because memory ran out" in line and LIMITS[1].name in line,
              line)
        print(line)
    for group in LIMITS:
        remove(group)
