"""What hosts compute is compared: a host whose gradients have flipped bits, or that reads wrong samples, is found at
its next check and left out, what it has spoilt is set aside, and the final bits are those of a run that nothing
happened to. Two hosts find the fault, and say that two cannot decide. A check of every step changes nothing."""
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

from harness import DATA, DECK, LOCKSTEP, LONG, Result, Scratch, check, check_same, checkpoints, train  # noqa: E402
from hosts import Hosts, missing  # noqa: E402
from launched import Launched  # noqa: E402

STEPS, FROM, EVERY = 22, 9, 2  # a host is broken from such a step on
OPTIONS = ("--data.validation", "", "--run.replicas", 4, "--train.steps", STEPS, "--train.epochs", 0,
           "--train.validate-every", 0, "--monitor.log-every", 1, "--communication.timeout-seconds", 20,
           "--checkpoint.every-steps", 1, "--checkpoint.keep", 50, "--check.compute-every", EVERY)
THREE = [("host1", 1), ("host2", 1), ("host3", 1)]

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)


def convicts(hosts, scratch, whole, kind, bad, *options):
    """4 replicas on 3 hosts: each host is in at least one of 4 checks."""
    class Broken(Launched):
        fault = f"{kind}:host={bad}:step={FROM}"
    run = Broken(hosts, scratch, f"{kind}-{bad}{len(options)}", THREE, *OPTIONS, *options)
    run.process.wait(timeout=240)
    text = run.text()
    check(run.process.returncode == 0, text)
    check(run.left_out() == [bad], f"{bad} is left out: {run.left_out()}\n{text}")
    found = re.search(rf"root cause: rank \d \({bad}, .*\) in training at step (\d+): this host computes wrongly "
                      r"\((.*) of replica \d is (\S+), where (host\d) and (host\d) have (\S+)\)", text)
    check(found is not None, f"the evidence is told\n{text}")
    step = int(found[1])
    check(FROM <= step < FROM + 4 * EVERY and found[3] != found[6], f"at its next check: {found[0]}")
    check({found[4], found[5], bad} == {"host1", "host2", "host3"}, f"the others agree: {found[0]}")
    sound = int(re.search(r"all steps after step (\d+), the last one that was found right there", text)[1])
    check(FROM - 4 * EVERY <= sound < FROM, f"its last good check was at step {sound}")
    check(f"because a host has computed wrongly after step {sound}" in text, text)
    check_same(checkpoints(whole)[-1], checkpoints(run.directory)[-1], "the wrong values are out of the run")
    print(found[0], flush=True)


def flips(hosts, scratch, whole):
    convicts(hosts, scratch, whole, "gradflip", "host3")


def reads_wrong(hosts, scratch, whole):
    convicts(hosts, scratch, whole, "wrongbatch", "host2")


def copies(hosts, scratch, whole):
    convicts(hosts, scratch, whole, "gradflip", "host2", "--fault-tolerance.memory-copy-every", 1)


def job(hosts, directory, where, fault, *options):
    since = time.monotonic()
    running = hosts.mpirun(where, [LOCKSTEP, "train", DECK, "--data.train", DATA / "train.h5", "--run.directory",
                                   directory, *OPTIONS, *options], {"LOCKSTEP_INJECT": fault})
    text = running.communicate(timeout=120)[0]
    return Result(running.returncode, text, time.monotonic() - since)


def two(hosts, scratch, _):
    found = job(hosts, scratch / "two", "host1:1,host2:1", f"gradflip:host=host2:step={FROM}").expect(
        76, "two ranks compute differently", "two cannot decide", "the run in training at step")
    check("this host computes wrongly" not in found.text, found.text)
    check((scratch / "two/checkpoints/suspect-after").exists(), "what is suspect is on record")


def clean(hosts, scratch, whole):
    sound = job(hosts, scratch / "clean", "host1:1,host2:1,host3:1", "", "--check.compute-every", 1).expect(0)
    check("compute" not in sound.text.replace("compute-every", ""), f"no alarm:\n{sound.text}")
    check_same(checkpoints(whole)[-1], checkpoints(scratch / "clean")[-1], "the same bits")


PARTS = [flips, two, clean, reads_wrong, copies]
with Scratch() as scratch, Hosts(3) as hosts:
    whole = scratch / "whole"
    train(whole, *OPTIONS, ranks=1, limit=240).expect(0)
    for part in PARTS if LONG else PARTS[:3]:
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            begun = time.monotonic()
            part(hosts, scratch, whole)
            print(f"{part.__name__}: as promised, {time.monotonic() - begun:.0f} s", flush=True)
