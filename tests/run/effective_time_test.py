"""Effective time: the parts of a run's allocated time add up to the whole, over a kill and a resume."""
import json
import os
import re
import time

from harness import Scratch, check, records, run, train

STEPS = ("--checkpoint.every-steps", 4, "--checkpoint.keep", 9, "--train.validate-every", 4, "--monitor.log-every", 1)
PARTS = ("startup_s", "productive_s", "lost_s", "checkpoint_s", "validation_s", "silent_s")


def history(directory):
    return [json.loads(line) for line in (directory / "history.jsonl").read_text().splitlines()]


with Scratch() as scratch:
    directory = scratch / "run"
    env = {"LOCKSTEP_LAUNCH": f"launch-test-{os.getpid()}"}
    begun = time.monotonic()
    told = train(directory, *STEPS, "--train.steps", 12, env={**env, "LOCKSTEP_INJECT": "kill:rank=0:step=11"})
    check(told.code != 0, told.text)
    time.sleep(1)
    told = train(directory, *STEPS, "--train.steps", 12, env=env).expect(0, "finished at step 12")
    passed = time.monotonic() - begun

    lost, last = history(directory)
    check(lost["last_step"] == 10 and lost["lost_steps"] == 10 - last["first_step"] > 0 and lost["lost_s"] > 0, f"{lost} {last}")
    check(lost["waited_s"] == 0 and last["waited_s"] >= 1, f"{lost} {last}")
    for line in lost, last:
        of_parts = sum(line[part] for part in PARTS)
        check(0 < of_parts <= line["seconds"] * 1.001, f"the parts of an attempt are more than it took: {line}")
        check(of_parts > 0.5 * line["seconds"], f"most of an attempt is told: {line}")
    whole = lost["seconds"] + last["waited_s"] + last["seconds"]
    check(0.2 * passed < whole <= passed, f"{whole} s of the {passed} s that it took")
    ranks = lost["ranks"]
    check(abs(last["effective"] - (lost["productive_s"] + last["productive_s"]) / whole) < 1e-3, f"{lost} {last}")

    # Who reads the records comes to the same numbers as the run's own last lines.
    line = re.search(r"effective time (.*) % of (.*) rank-hours in 2 attempts; (.*)", told.text)
    check(line, told.text)
    check(abs(float(line[1]) - 100 * last["effective"]) < 0.06 and abs(float(line[2]) - ranks * whole / 3600) < 6e-4, line[0])
    report = run(["report", directory, "--output", scratch / "report"]).expect(0, "## Effective time").text
    row = report.split("## Effective time")[1].split("\n| run |")[2].split("\n")[0]
    cells = [cell.strip() for cell in row.split("|")[:-1]]
    shares = [float(cell.removesuffix(" %")) for cell in cells[2:]]
    check(cells[:2] == ["2", line[2]] and shares[0] == float(line[1]), row)
    check(abs(sum(shares) - 100) < 0.5 and shares[4] > 0 and shares[5] > 0, row)
    if (scratch / "report/plots").exists(): # gnuplot is installed
        script = (scratch / "report/plots/plots.gp").read_text()
        check((scratch / "report/plots/timeline.png").exists() and "'1: " in script and "'2: " in script, script)

    # Without the new records, as earlier versions left them, nothing is made up.
    (directory / "history.jsonl").write_text("".join(json.dumps(
        {key: value for key, value in line.items() if key not in ("setup_s", "seconds", "validation_s", "silent_s", "waited_s")})
        + "\n" for line in (lost, last)))
    run(["report", directory, "--output", scratch / "old"]).expect(0, "| run | – | not recorded | – |")
    check(records(directory, "end"), "the run itself is whole")
