"""A timeline of four ranks in Perfetto's own trace processor, asked in SQL through its Python package. Left out where the
packages that tests/support/trace_processor.py names are missing."""
import gzip
import json
import sys

import harness
from harness import check, records

sys.path.insert(0, str(harness.SOURCE / "tests/support"))
import trace_processor  # noqa: E402

RANKS, FIRST, LAST = 4, 3, 8
COMPUTING = ("forward", "backward", "forward and backward", "bucket to the exchange", "sum of a bucket")
OF_RANK = "slice s join thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid)"

# A slice, its rank's process, and the step of this process in which it began.
FLOW_END = f"""select s.id, s.name, s.ts, p.pid, (select max(n.name) from slice n join thread_track nt on n.track_id = nt.id
               join thread nh using (utid) where nh.upid = p.upid and n.name glob 'ProfilerStep#*' and n.ts <= s.ts
               and s.ts <= n.ts + n.dur) as step from {OF_RANK}"""


def rows(processor, query):
    return [tuple(vars(row).values()) for row in processor.query(query)]


def check_by_sql(processor, events, steps):
    problems = rows(processor, "select name, value from stats where severity != 'info' and value > 0")
    check(not problems, f"Perfetto complains: {problems}")
    slices = dict(rows(processor, f"select p.pid, count(*) from {OF_RANK} group by 1"))
    written = {rank + 1: sum(e["ph"] == "X" and e["pid"] == rank + 1 for e in events) for rank in range(RANKS)}
    check(slices == written, f"slices of each rank: {slices}, written: {written}")
    check(rows(processor, "select count(*) from slice where dur < 0") == [(0,)], "a negative duration")
    outside = rows(processor, "select count(*) from slice c join slice p on c.parent_id = p.id where c.ts + c.dur > p.ts + p.dur")
    check(outside == [(0,)], f"{outside} slices leave the one around them")
    of_step = rows(processor, f"select p.pid, s.name from {OF_RANK} where s.name glob 'ProfilerStep#*' order by 1, s.ts")
    check(of_step == [(rank + 1, f"ProfilerStep#{step}") for rank in range(RANKS) for step in range(FIRST, LAST + 1)], of_step)
    names = dict(rows(processor, "select pid, name from process where pid > 0"))
    check(all(names[rank + 1].startswith(f"rank {rank} (") for rank in range(RANKS)), f"processes: {names}")
    shown = rows(processor, f"select sum(s.dur) / 1e6 from {OF_RANK} where p.pid = 1 and s.category = 'communication'")[0][0]
    recorded = sum(record["communication_ms"] for record in steps if FIRST <= record["step"] <= LAST)
    print(f"exposed communication of rank 0: {shown:.4f} ms by SQL, {recorded:.4f} ms recorded")
    check(abs(shown - recorded) <= 0.05 * recorded + 0.05 * (LAST - FIRST + 1), f"{shown} ms shown, {recorded} recorded")
    flows = rows(processor, "select a.name as from_name, a.pid as from_pid, b.name as to_name, b.pid as to_pid, "
                            f"a.step as from_step, b.step as to_step, b.ts as arrived from flow f join ({FLOW_END}) a "
                            f"on f.slice_out = a.id join ({FLOW_END}) b on f.slice_in = b.id")
    arrows = sum(e["ph"] == "s" and e["name"].startswith("bucket") for e in events)
    buckets = [flow for flow in flows if flow[1] == flow[3]]
    check(len(buckets) == arrows and all((flow[0], flow[2]) == ("bucket to the exchange", "sum of a bucket") for flow in buckets),
          f"{len(buckets)} arrows of buckets are shown, {arrows} were written: {buckets}")
    # Whoever waited has an arrow to where the wait ended, from what the rank that it waited for did in the same step.
    waits = rows(processor, f"select p.pid, s.ts + s.dur as ended, s.name from {OF_RANK} where s.name glob 'waiting for rank *' "
                            "and s.dur >= 20000 order by 1, 2")
    late = [flow for flow in flows if flow[1] != flow[3]]
    print(f"{len(late)} of {len(waits)} arrows from late ranks are shown")
    shown = sorted((flow[3], flow[6], f"waiting for rank {flow[1] - 1}") for flow in late)
    check(waits and shown == waits, f"arrows from late ranks: {shown}, waits: {waits}")
    check(all(flow[0] in COMPUTING and flow[2] == "exposed exchange" and flow[4] == flow[5] for flow in late), f"ends: {late}")


def main():
    why = trace_processor.missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    with harness.Scratch() as scratch:
        run = scratch / "run"
        harness.train(run, "--train.steps", LAST, "--train.epochs", 0, "--checkpoint.every-steps", 0, "--profile.memory", "true",
                      "--profile.steps", f"{FIRST}-{LAST}", ranks=RANKS,
                      env={"LOCKSTEP_INJECT": "clock:rank=1:seconds=1"}).expect(0)
        file = run / f"profile/steps-{FIRST}-{LAST}.json.gz"
        with gzip.open(file) as text:
            events = json.load(text)["traceEvents"]
        with trace_processor.Engine(file, scratch / "socket") as processor:
            check_by_sql(processor, events, records(run, "step"))


if __name__ == "__main__":
    main()
