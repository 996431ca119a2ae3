#!/usr/bin/env python3
"""How well `lockstep estimate` predicts the step of `lockstep train` between hosts: 2, 3 and 4 hosts of
network namespaces on this machine, on their own network and with a long and thin cable to one of them. Needs root,
and a machine that does nothing else: all hosts share its cores."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from hosts import Hosts, missing  # noqa: E402

MODELS = {
    "cnn": [],
    "mlp18m": ["--model.name", "mlp", "--model.hidden", "2048,4096,2048"],
}


def words(options, model, hosts, ranks):
    """One recipe for both commands: 64 samples per replica, a replica on each rank."""
    return [ROOT / "inputs/fashion_mnist.ini", "--data.train", options.data, "--data.validation", "",
            "--data.test", "", "--data.global-batch", 0, "--data.batch", 64, "--run.replicas", ranks,
            "--communication.timeout-seconds", 300, *MODELS[model]]


def predicted(options, hosts, where, model, ranks, per_host):
    job = hosts.mpirun(where, [options.build / "lockstep", "estimate", *words(options, model, hosts, ranks),
                               "--run.replicas", 0, "--steps", options.steps, "--max-ranks", ranks,
                               "--ranks-per-host", per_host, "--json"])
    text = job.communicate(timeout=900)[0]
    rows = [json.loads(line) for line in text.splitlines() if line.startswith('{"ranks"')]
    found = [row["step_s"] for row in rows if row["ranks"] == ranks]
    if len(found) != 1:
        sys.exit(f"no prediction:\n{text}")
    return found[0]


def trained(options, hosts, where, model, ranks):
    """The median step of a run, without its first steps."""
    with tempfile.TemporaryDirectory() as place:
        warm_ups = 3
        job = hosts.mpirun(where, [options.build / "lockstep", "train", *words(options, model, hosts, ranks),
                                   "--run.directory", f"{place}/run", "--monitor.plots", "false",
                                   "--monitor.log-every", 1, "--checkpoint.every-steps", 0,
                                   "--train.steps", options.steps + warm_ups])
        text = job.communicate(timeout=900)[0]
        lines = pathlib.Path(f"{place}/run/metrics.jsonl")
        if job.returncode != 0:
            sys.exit(f"the run failed:\n{text}")
        steps = [record["step_ms"] / 1000 for record in map(json.loads, lines.read_text().splitlines())
                 if record.get("event") == "step"]
        return statistics.median(steps[warm_ups:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", default="2,3,4")
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("--models", default="cnn,mlp18m")
    parser.add_argument("--data", default=ROOT / "datasets/fashion-mnist/train.h5", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=5, help="one way; 0: no long cable")
    parser.add_argument("--mbit", type=float, default=100)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    if missing():
        sys.exit(missing())
    os.environ.setdefault("LOCKSTEP_MPIEXEC", "mpirun")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    os.environ.setdefault("OMPI_MCA_hwloc_base_binding_policy", "none")
    os.environ.setdefault("OMPI_MCA_rmaps_base_oversubscribe", "1")
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    os.environ["OMP_NUM_THREADS"] = "1"
    print("| hosts | ranks | model | predicted | measured | error |\n|---|---|---|---|---|---|")
    for count in map(int, options.hosts.split(",")):
        with Hosts(count) as hosts:
            if options.latency_ms > 0:
                hosts.slow("host2", options.latency_ms / 1000, options.mbit * 1e6 / 8)
            per_host = options.ranks_per_host
            where = ",".join(f"{name}:{per_host}" for name in hosts.names)
            for model in options.models.split(","):
                guesses, facts = [], []
                for _ in range(options.rounds):
                    guesses.append(predicted(options, hosts, where, model, count * per_host, per_host))
                    facts.append(trained(options, hosts, where, model, count * per_host))
                guess, fact = statistics.median(guesses), statistics.median(facts)
                errors = sorted(100 * (a / b - 1) for a, b in zip(guesses, facts))
                print(f"| {count} | {count * per_host} | {model} | {1000 * guess:.1f} ms | {1000 * fact:.1f} ms | "
                      f"{100 * (guess / fact - 1):+.0f} % ({errors[0]:+.0f} – {errors[-1]:+.0f}) |", flush=True)


main()
