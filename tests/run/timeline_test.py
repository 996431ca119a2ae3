"""Timelines: profile.steps, `lockstep profile`, a wrong clock, the last seconds of a failed run. Resources: what
records say ranks used against what the kernel says."""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from harness import DATA, DECK, LOCKSTEP, LONG, Scratch, check, check_same, records, run, some, train

BRIEF = ["--monitor.tensorboard", "false", "--monitor.plots", "false", "--monitor.log-every", "1",
         "--train.epochs", "0", "--checkpoint.every-steps", "0"]


def trace_of(file):
    with gzip.open(file) as text:
        return json.load(text)


def slices(events, rank, name=None, category=None):
    return [e for e in events if e["ph"] == "X" and e["pid"] == rank + 1 and (name is None or e["name"] == name)
            and (category is None or e["cat"] == category)]


def check_nesting(events):
    """Slices of a row lie within each other or beside each other, as viewers need it."""
    rows = {}
    for event in events:
        if event["ph"] == "X":
            check(event["dur"] >= 0, f"a negative duration: {event}")
            rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"], event["name"]))
    for row, all_of in rows.items():
        stack = []
        for begin, end, name in sorted(all_of, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1][1] <= begin + 0.002:
                stack.pop()
            check(not stack or end <= stack[-1][1] + 0.002, f"{name} in row {row} leaves {stack and stack[-1]}")
            stack.append((begin, end, name))


def check_timeline(directory, first, last, ranks, memory=False):
    trace = trace_of(directory / f"profile/steps-{first}-{last}.json.gz")
    events = trace["traceEvents"]
    check_nesting(events)
    told = {record["step"]: record for record in records(directory, "step")}
    for rank in range(ranks):
        steps = slices(events, rank, category="user_annotation")
        names = sorted(e["name"] for e in steps if e["name"].startswith("ProfilerStep"))
        check(names == sorted(f"ProfilerStep#{s}" for s in range(first, last + 1)), f"steps of rank {rank}: {names}")
        for name in ("reading data", "forward", "backward", "the exchange of gradients", "the update",
                     "bucket to the exchange"):
            check(len(slices(events, rank, name)) >= last - first + 1, f"rank {rank} has no {name}")
        check(slices(events, rank, category="cpu_op"), f"rank {rank} has no operators")
        check(pathlib.Path(directory / f"profile/steps-{first}-{last}/rank-{rank:04}.json.gz").exists(), "no file of a rank")
    # Exposed communication, in all of the steps, is what their records say.
    recorded = sum(told[step]["communication_ms"] for step in range(first, last + 1))
    shown = sum(e["dur"] for e in slices(events, 0, category="communication")) / 1000
    check(abs(shown - recorded) <= 0.05 * recorded + 0.05 * (last - first + 1), f"{shown} ms shown, {recorded} recorded")
    arrows = [e for e in events if e["ph"] in "sf"]
    ends = {}
    for event in arrows:
        ends.setdefault(event["id"], []).append(event["ph"])
    check(arrows and all(sorted(kinds) == ["f", "s"] for kinds in ends.values()), "arrows have two ends")
    check(not memory or any(e["ph"] == "C" for e in events), "no memory")
    return events


def profiles_the_same_weights(scratch):
    plain, profiled = scratch / "plain", scratch / "profiled"
    train(plain, *BRIEF, "--train.steps", 8, ranks=2 if LONG else 1).expect(0)
    # The clock of a rank is a second ahead: the timeline has it corrected, and rank 1 is late by a tenth.
    train(profiled, *BRIEF, "--train.steps", 8, "--profile.steps", "3-6", "--profile.memory", "true",
          env={"LOCKSTEP_INJECT": "clock:rank=1:seconds=1"}).expect(0)
    check_same(plain, profiled, "profiling changed the weights")
    events = check_timeline(profiled, 3, 6, 2, memory=True)
    profile = records(profiled, "profile")[0]
    check(profile["first_step"] == 3 and profile["last_step"] == 6, f"{profile}")
    wrong = abs(profile["clock_offset_s"][1] - 1)
    print(f"a clock that is 1 s ahead was found to within {1e6 * wrong:.1f} us, at most {1e6 * profile['clock_error_s']:.1f}")
    check(wrong <= profile["clock_error_s"] + 50e-6, f"clocks are {profile['clock_offset_s']} apart")
    # All ranks leave the exchange of a step at about the same time.
    ends = [sorted(e["ts"] + e["dur"] for e in slices(events, rank, "exposed exchange")) for rank in (0, 1)]
    apart = max(abs(a - b) for a, b in zip(*ends))
    check(apart < 200e3, f"the ends of exchanges are {apart} us apart")
    check(profile["operators"] and profile["ranks"], "no tables")
    report = run(["report", profiled, "--carbon-intensity", "400"])
    report.expect(0, "Timeline of profiled, steps 3 to 6", "operator of rank 0", "## Resources", "CO2 at 400 g/kWh")
    if LONG:
        alone = scratch / "alone"
        train(alone, *BRIEF, "--train.steps", 8, "--profile.steps", "1-8", ranks=1).expect(0)
        check_same(plain, alone, "profiling one rank changed the weights")
        check_timeline(alone, 1, 8, 1)
        four = scratch / "four"
        train(four, *BRIEF, "--train.steps", 8, "--profile.steps", "5-100", ranks=4,
              env={"LOCKSTEP_INJECT": "slow:rank=2"}).expect(0)
        check_timeline(four, 5, 8, 4)  # the run ends before the steps do
        rows = {row["rank"]: row for row in records(four, "profile")[0]["ranks"]}
        check(all(rows[r]["waited_for"] == 2 for r in (0, 1, 3)), f"ranks waited for {rows}")


def on_demand(scratch):
    directory = scratch / "demand"
    command = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", LOCKSTEP, "train", DECK, "--data.train", str(DATA / "train.h5"),
               "--data.validation", "", "--run.directory", str(directory), *BRIEF, "--train.steps", "1000000"]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if (directory / "metrics.jsonl").exists() and records(directory, "step"):
                break
            time.sleep(0.1)
        asked = run(["profile", directory, "--steps", 3])
        asked.expect(0, "timeline of steps")
        profile = records(directory, "profile")[0]
        check(profile["last_step"] - profile["first_step"] == 2, f"{profile}")
        check_timeline(directory, profile["first_step"], profile["last_step"], 2)
        check(not (directory / "profile.request").exists(), "the request was left")
    finally:
        job.send_signal(signal.SIGUSR1)
        code = job.wait(60)
    check(code == 75, f"the job ended with {code}")
    run(["profile", directory]).expect(66, "the run has ended")
    run(["profile", scratch / "nowhere"]).expect(66)
    run(["profile", directory, "--steps", 0]).expect(64)
    run(["profile", directory, "--steps", 1001]).expect(64)


def last_seconds(scratch):
    # A rank that is killed leaves the word to the others, one that hangs speaks for itself.
    for name, fault, written in some((("killed", "kill:rank=1:step=6", [0]), ("hung", "hang:rank=1:step=6", [0, 1]),
                                      ("failed", "throw:rank=1:step=6", [0, 1]))):
        directory = scratch / name
        (directory / "flight").mkdir(parents=True)
        (scratch / "of-another").write_text("text")
        (directory / "flight/rank-0000.json.partial").symlink_to(scratch / "of-another")
        result = train(directory, *BRIEF, "--train.steps", 50, "--communication.timeout-seconds", 4,
                       env={"LOCKSTEP_INJECT": fault})
        check(result.code != 0, f"{name}: {result.text}")
        check((scratch / "of-another").read_text() == "text", f"{name}: a link was followed")
        for rank in written:
            file = directory / f"flight/rank-{rank:04}.json"
            check(file.exists(), f"{name}: rank {rank} has not written its last seconds:\n{result.text}")
            flight = json.loads(file.read_text())
            check_nesting([e for e in flight["traceEvents"] if not e.get("args", {}).get("open")])
            check(flight["otherData"]["step"] == "6", f"{name}: {flight['otherData']}")
            steps = [e for e in flight["traceEvents"] if e["name"].startswith("ProfilerStep")]
            check(len(steps) >= 5, f"{name}: {len(steps)} steps of rank {rank}")
        check("lockstep: root cause: rank 1" in result.text, f"{name}: {result.text}")
        if not LONG:
            continue
        # Where it cannot be written, the job ends all the same.
        blocked = scratch / f"{name}-blocked"
        train(blocked, *BRIEF, "--train.steps", 2).expect(0)
        (blocked / "flight").write_text("in the way")
        again = train(blocked, *BRIEF, "--train.steps", 50, "--communication.timeout-seconds", 4,
                      env={"LOCKSTEP_INJECT": fault})
        check(again.code == result.code, f"{name}: {again.code}, {result.code}: {again.text}")


MEASURE = """
import json, os, sys
child = os.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
name = os.path.join(sys.argv[1], "rank-" + os.environ["OMPI_COMM_WORLD_RANK"])
open(name, "w").write(json.dumps([used.ru_utime, used.ru_stime, used.ru_maxrss]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def resources(scratch):
    """Each rank is the child of a process that asks the kernel what it used, until it was gone."""
    directory, kernel = scratch / "used", scratch / "kernel"
    kernel.mkdir()
    (scratch / "measure.py").write_text(MEASURE)
    steps = 400 if LONG else 100
    command = [os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", sys.executable, scratch / "measure.py", kernel, LOCKSTEP,
               "train", DECK, "--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5",
               "--run.directory", directory, *BRIEF, "--monitor.log-every", "50", "--train.steps", steps]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, done.stdout + done.stderr)
    used = records(directory, "end")[0]["resources"]
    ranks = {row["rank"]: row for row in used["ranks"]}
    ours, theirs = used["user_s"] + used["system_s"], 0
    for rank in (0, 1):
        user, system, kilobytes = json.loads((kernel / f"rank-{rank}").read_text())
        theirs += user + system
        check(abs(ranks[rank]["memory_peak_bytes"] - 1024 * kilobytes) < 0.03 * 1024 * kilobytes, f"memory of {rank}")
    print(f"processor time: {ours:.3f} s recorded, {theirs:.3f} s by the kernel, which counts the end of the processes")
    # The end of a process, after its last record, is the kernel's alone: a few hundredths of a second.
    check(theirs - 0.03 * theirs - 0.4 <= ours <= theirs + 0.02, f"{ours} s recorded, {theirs} s by the kernel")
    epochs = records(directory, "epoch")
    check(all(e["resources"]["user_s"] > 0 for e in epochs), "an epoch without processor time")
    history = json.loads((directory / "history.jsonl").read_text().splitlines()[-1])
    check(history["resources"]["user_s"] == used["user_s"], "history.jsonl tells something else")
    check(used["exchanged_bytes"] > 0 and used["busiest_s"] >= used["idlest_s"], f"{used}")
    report = run(["report", directory, "--carbon-intensity", "400"])
    report.expect(0, "core-hours", "CO2 at 400 g/kWh")
    if "processor_joules" not in used and "device_joules" not in used:
        report.expect(0, "not measured")
    run(["watch", directory, "--once"]).expect(0, "core-hours")


PLANT = """
import os, pathlib, subprocess, sys, threading, time
scratch, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
real = scratch / "class"
real.mkdir()
def mount(*words): subprocess.run(["mount", *map(str, words)], check=True)
mount("--rbind", "/sys/class", real)
mount("-t", "tmpfs", "none", "/sys/class")
for folder in real.iterdir():
    if folder.name != "powercap":
        pathlib.Path("/sys/class", folder.name).mkdir()
        mount("--bind", folder, f"/sys/class/{folder.name}")
package = pathlib.Path("/sys/class/powercap/intel-rapl:0")
package.mkdir(parents=True)
(package / "name").write_text("package-0\\n")
(package / "max_energy_range_uj").write_text("700000000\\n")
counter = os.open(package / "energy_uj", os.O_RDWR | os.O_CREAT)
def count():
    while True:
        os.pwrite(counter, b"%012d\\n" % (int(200e6 * time.monotonic()) % 700000000), 0)
        time.sleep(0.002)
os.pwrite(counter, b"%012d\\n" % 0, 0)
threading.Thread(target=count, daemon=True).start()
time.sleep(0.05)
sys.exit(subprocess.run(command).returncode)
"""


def energy(scratch):
    """A counter of 200 W, which starts over every 3.5 s, where the kernel has that of a processor's package."""
    plant = ["unshare", "--mount", "--propagation", "private"]
    if not LONG or os.geteuid() != 0 or subprocess.run([*plant, "true"]).returncode != 0:
        print("energy: left out (only at length, by root, with namespaces)")
        return
    (scratch / "plant.py").write_text(PLANT)
    directory = scratch / "run"
    command = [*plant, sys.executable, scratch / "plant.py", scratch, os.environ["LOCKSTEP_MPIEXEC"], "-n", "2", LOCKSTEP,
               "train", DECK, "--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5", "--run.directory",
               directory, *BRIEF, "--train.validate-every", "40", "--train.steps", "400"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, done.stdout + done.stderr)
    end = records(directory, "end")[0]
    joules, seconds = end["resources"]["processor_joules"], end["elapsed_s"]
    print(f"energy: {joules:.1f} J recorded, {200 * seconds:.1f} J planted in {seconds:.2f} s")
    check(abs(joules - 200 * seconds) <= 0.03 * 200 * seconds, f"{joules} J in {seconds} s of 200 W")
    run(["report", directory, "--carbon-intensity", "400"]).expect(0, "Wh", "CO2 at 400 g/kWh")


def two_hosts(scratch):
    """Four ranks on two hosts made of network namespaces, one of which has a clock that is a second ahead."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
    from hosts import Hosts, missing
    if not LONG or missing():
        print(f"two hosts: left out ({missing() or 'only at length'})")
        return
    directory, late = scratch / "hosts", scratch / "late"
    with Hosts(2) as hosts:
        for place, fault in (directory, "clock:rank=3:seconds=1"), (late, "slow:rank=3"):
            job = hosts.mpirun("host1:2,host2:2", [LOCKSTEP, "train", DECK, "--data.train", DATA / "train.h5",
                                                   "--data.validation", "", "--run.directory", place, *BRIEF,
                                                   "--train.steps", 12, "--profile.steps", "3-10"],
                               {"LOCKSTEP_INJECT": fault})
            text = job.communicate(timeout=120)[0]
            check(job.returncode == 0, text)
    events = check_timeline(directory, 3, 10, 4)
    profile = records(directory, "profile")[0]
    wrong = abs(profile["clock_offset_s"][3] - 1)
    print(f"two hosts: the offset was found to within {1e6 * wrong:.1f} us, at most {1e6 * profile['clock_error_s']:.1f}")
    check(wrong <= profile["clock_error_s"] + 50e-6, f"clocks are {profile['clock_offset_s']} apart")
    check(any(e["name"] == "bucket between hosts" for e in events), "no bucket travelled")
    # A rank of the other host that is a tenth of a second late is waited for; that is no communication.
    events = check_timeline(late, 3, 10, 4)
    waited, exposed = (sum(e[key] for e in records(late, "step") if 3 <= e["step"] <= 10) / 8
                       for key in ("imbalance_ms", "communication_ms"))
    print(f"two hosts: rank 0 waited {waited:.1f} ms per step for a rank that is 100 ms late; exposed {exposed:.1f} ms")
    check(waited > 50 and exposed < 0.5 * waited, f"{waited} ms waited, {exposed} ms exposed per step")
    for rank in range(3):
        waits = [e["dur"] for e in slices(events, rank, "waiting for rank 3")]
        check(len(waits) == 8 and sum(waits) > 8 * 50e3, f"rank {rank} waited for rank 3: {waits}")


def mistakes(scratch):
    for steps in some(("7-3", "1-2000")):
        train(scratch / "never", "--profile.steps", steps, ranks=0).expect(64, "profile.steps")


if __name__ == "__main__":
    # The short form draws one of those in between.
    for part in (mistakes, profiles_the_same_weights, *some((on_demand, last_seconds, resources)), energy, two_hosts):
        with Scratch() as scratch:
            start = time.monotonic()
            part(scratch)
            print(f"{part.__name__}: {time.monotonic() - start:.1f} s")
