"""The trace of a large job that is simulated: what one rank sends, another receives, and each waits for it, in two
steps."""
import collections
import subprocess

from harness import BUILD, Scratch, check

with Scratch() as scratch:
    for hosts, route, most, lends in ((2, "halving", 1, 0), (5, "halving", 6, 0), (64, "halving", 6, 0),
                                      (5, "direct", 4, 0), (5, "halving", 6, 1)):
        place = scratch / f"{hosts}-{route}-{lends}"
        subprocess.run([BUILD / "bench/schedule_trace", place, f"hosts={hosts}", "ranks_per_host=2",
                        "elements=3000000", "bucket=1000000", f"route={route}", "forward_s=0.01",
                        "backward_s=0.02", "steps=2", f"lends={lends}"], check=True, stdout=subprocess.DEVNULL)
        sent, received, awaited = (collections.Counter() for _ in range(3))
        for host in range(hosts):
            up = collections.Counter()
            for line in (place / f"host{host}.ti").read_text().splitlines():
                rank, action, *words = line.split()
                check(int(rank) == host, line)
                if action == "isend":
                    sent[(host, *map(int, words[:3]))] += 1
                    up[int(words[1]) % 4096] += int(words[1]) < 1 << 20
                elif action == "irecv":
                    received[(int(words[0]), host, *map(int, words[1:3]))] += 1
                elif action == "wait":
                    awaited[(int(words[0]), int(words[1]), int(words[2]))] += 1
            check(max(up.values()) <= 2 * most,
                  f"{hosts} hosts, {route}: at most {most} messages per bucket and step: {up}")
        check(sent and sent == received, f"{hosts} hosts, {route}: what is sent is received")
        awaited_ones = collections.Counter()
        for key, count in received.items():
            awaited_ones[key[:3]] += count
        check(awaited == awaited_ones, "and awaited")
        if lends:  # each bucket but the last two of forward comes twice in a step, from both ranks of each other host
            buckets = 4
            shards = sum(count for (*_, tag, _), count in received.items() if tag >= 1 << 22)
            check(shards == hosts * (hosts - 1) * 2 * 2 * (2 * buckets - 2), f"{shards} shards are lent")

    # As many as threads for ranks send in tests/unit/comm/host_schedule_test.cpp.
    told = subprocess.run([BUILD / "bench/schedule_trace", scratch / "512", "hosts=64", "ranks_per_host=8",
                           f"elements={13 * 4096}", f"bucket={11 * 4096}", "route=halving"],
                          check=True, capture_output=True, text=True).stdout
    check("at most 6 messages per rank" in told, told)
