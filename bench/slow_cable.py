#!/usr/bin/env python3
"""A training step over a long and thin cable, beside PyTorch's DDP over gloo on the same one: hosts of network
namespaces, a rank on each, one program after the other; and beside itself where the sums between hosts are made to
meet in rounds; or beside another build of lockstep (`--against`). Needs root, and the virtual environment that
`./bootstrap bench` makes."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from hosts import Hosts, missing  # noqa: E402

PORT = "29511"


def figures(lines):
    """The JSON line that a side prints."""
    found = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    if len(found) != 1:
        sys.exit(f"one JSON line was expected:\n{lines}")
    return found[0]


def places(hosts):
    return ",".join(f"{name}:1" for name in hosts.names)


def lockstep(hosts, options, build, route=None):
    words = [build / "lockstep", "bench", "step", "--model", options.model, "--batch", options.batch,
             "--steps", options.steps, "--json"]
    job = hosts.mpirun(places(hosts), words, {"LOCKSTEP_HOST_SUMS": route} if route else {})
    return figures(job.communicate(timeout=600)[0])


def ddp(hosts, python, options):
    """What torchrun would start, one process on each host."""
    first = hosts.run("host1", "sh", "-c", "ip -4 -o addr show eth0").split()[3].split("/")[0]
    jobs = []
    for rank, name in enumerate(hosts.names):
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(hosts.names)),
                       "MASTER_ADDR": first, "MASTER_PORT": PORT, "GLOO_SOCKET_IFNAME": "eth0"}
        jobs.append(subprocess.Popen(
            ["nsenter", "-t", str(hosts.holders[name].pid), "-n", "-u", "-m", "--", python,
             str(ROOT / "bench/ddp_step.py"), "--model", options.model, "--batch", str(options.batch),
             "--steps", str(options.steps), "--warm-ups", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment))
    texts = [job.communicate(timeout=600)[0] for job in jobs]
    return figures("".join(texts))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["cnn", "mlp18m"], default="cnn")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hosts", type=int, default=2, help="one of them, host2, at the end of the cable")
    parser.add_argument("--latency-ms", type=float, default=5, help="one way; 0: no long cable")
    parser.add_argument("--mbit", type=float, default=100)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--against", type=pathlib.Path, metavar="BUILD", help="instead of the other two")
    options = parser.parse_args()
    if missing():
        sys.exit(missing())
    os.environ.setdefault("LOCKSTEP_MPIEXEC", "mpirun")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    os.environ.setdefault("OMPI_MCA_hwloc_base_binding_policy", "none")
    os.environ["OMP_NUM_THREADS"] = "1"
    python = str(ROOT / ".venv/bin/python")
    sides = {"lockstep": lambda: lockstep(hosts, options, options.build)}
    if options.against:
        sides["the other build"] = lambda: lockstep(hosts, options, options.against)
    else:
        sides["in rounds"] = lambda: lockstep(hosts, options, options.build, "halving")
        sides["DDP over gloo"] = lambda: ddp(hosts, python, options)
    times = {name: [] for name in sides}
    with Hosts(options.hosts) as hosts:
        if options.latency_ms > 0:
            hosts.slow("host2", options.latency_ms / 1000, options.mbit * 1e6 / 8)
        for turn in range(options.rounds):
            order = list(sides) if turn % 2 == 0 else list(reversed(sides))
            for name in order:
                times[name].append(sides[name]()["median_s"])
            print(", ".join(f"{name} {1000 * found[-1]:.1f} ms" for name, found in times.items()), flush=True)
    ours = times.pop("lockstep")
    print(f"{options.model}, {options.hosts} hosts: lockstep {1000 * statistics.median(ours):.1f} ms")
    for name, others in times.items():
        ratios = sorted(other / our for our, other in zip(ours, others))
        print(f"    {name} {1000 * statistics.median(others):.1f} ms, ratio {statistics.median(ratios):.2f} "
              f"({ratios[0]:.2f} – {ratios[-1]:.2f})")


main()
