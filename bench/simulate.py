#!/usr/bin/env python3
"""Simulates steps of large jobs with SimGrid SMPI (Debian: libsimgrid-dev), on traces that the
program's own schedule of messages between hosts has written (build/bench/schedule_trace). Every
figure is a model's, none is a measurement.

Each of a host's eight ranks has a network link of its own, as on machines with a link per GPU. One
rank of each host is simulated; the other seven do the same on theirs.
"""
import argparse
import functools
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

RANKS_PER_HOST = 8
BUCKET = (25 << 20) // 4  # elements
# Elements; seconds of forward and backward of one replica, from published throughput (docs/scaling.md).
MODELS = {
    "mlp-18m": (18_000_000, 0.0012),
    "resnet50": (25_557_032, 0.085),
    "transformer-350m": (354_823_168, 0.258),
}
# Bytes per second of a link, seconds to cross one (docs/scaling.md).
NETWORKS = {"fat-tree": (50e9, 0.6e-6), "dragonfly": (25e9, 0.5e-6)}
UPDATE_S = 28 / 3.35e12  # per parameter: AdamW reads four values and writes three; bytes per second of a GPU's memory
OVERHEAD_S = 1.5e-6  # of a processor, to send a message or to take one


class Slow(typing.NamedTuple):
    """What host 0 has, as a share of what the others have."""
    processor: float = 1.0
    link: float = 1.0


def topology(network, hosts):
    if hosts <= 32:
        return 'topology="FLAT"'
    groups = -(-hosts // 32)
    if network == "fat-tree":  # leaves of 32 hosts, with as many links up as down
        return f'topology="FAT_TREE" topo_parameters="2;32,{groups};1,32;1,1"'
    if hosts <= 256:  # groups of 32 hosts
        return f'topology="DRAGONFLY" topo_parameters="{groups},2;1,1;8,4;4"'
    return f'topology="DRAGONFLY" topo_parameters="{hosts // 128},2;4,2;8,4;4"'


def platform(network, hosts):
    speed, latency = NETWORKS[network]
    shape = topology(network, hosts)
    extent = hosts if "FLAT" in shape else -(-hosts // 32) * 32
    shape = "" if "FLAT" in shape else shape
    return f'''<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{extent - 1}" speed="10Gf" bw="{speed}Bps" lat="{latency}s"
           sharing_policy="SPLITDUPLEX" {shape}/>
</platform>
'''


def one_switch(network, hosts, slow):
    """Host 0 has a slower processor or link."""
    speed, latency = NETWORKS[network]
    rows = "".join(
        f'''<host id="n{host}" speed="{10 if host else 10 * slow.processor}Gf"/>
  <link id="l{host}" bandwidth="{speed if host else speed * slow.link}Bps" latency="{latency}s"
        sharing_policy="SPLITDUPLEX"/><host_link id="n{host}" up="l{host}_UP" down="l{host}_DOWN"/>
''' for host in range(hosts))
    return f'''<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="c" routing="Cluster">
{rows}<router id="r"/></zone></platform>
'''


def replay(directory, network, hosts, *options, slow=None):
    """Simulated seconds."""
    (directory / "platform.xml").write_text(one_switch(network, hosts, slow) if slow else platform(network, hosts))
    (directory / "hosts").write_text("".join(f"n{host}\n" for host in range(hosts)))
    cost = f"0:{OVERHEAD_S}:0"
    done = subprocess.run(
        ["smpirun", "-np", str(hosts), "-platform", directory / "platform.xml", "-hostfile", directory / "hosts",
         "--cfg=smpi/host-speed:10Gf", "--cfg=contexts/guard-size:0", "--cfg=contexts/stack-size:256",
         "--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", f"--cfg=smpi/os:{cost}", f"--cfg=smpi/or:{cost}",
         f"--cfg=smpi/ois:{cost}", *options, "-replay", directory / "index"],
        capture_output=True, text=True)
    found = re.search(r"Simulation time ([0-9.]+)", done.stdout + done.stderr)
    if not found:
        sys.exit(f"the simulation failed: {done.stdout[-500:]}{done.stderr[-1000:]}")
    return float(found.group(1))


def ours(tool, network, hosts, model, route, slow=None, lends=False):
    """A step among others: the parameters of one travel while the next runs; `lends`: before they are used."""
    elements, seconds = MODELS[model]
    times = []
    for steps in (1, 3):
        with tempfile.TemporaryDirectory() as name:
            words = [tool, name, f"hosts={hosts}", f"ranks_per_host={RANKS_PER_HOST}", f"elements={elements}",
                     f"bucket={BUCKET}", f"route={route}", f"forward_s={seconds / 3}",
                     f"backward_s={seconds * 2 / 3}", f"update_s={elements * UPDATE_S}", f"steps={steps}",
                     f"lends={int(lends)}"]
            told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            times.append(replay(pathlib.Path(name), network, hosts, slow=slow))
    return (times[1] - times[0]) / 2, told.strip()


@functools.cache
def collective(network, hosts, elements, algorithm, slow=None):
    """One all-reduce of a host's share of `elements` among a rank of each host."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        lines = ["init", f"allreduce {elements // RANKS_PER_HOST} 0 5", "finalize"]
        with (directory / "index").open("w") as index:
            for host in range(hosts):
                file = directory / f"host{host}.ti"
                file.write_text("".join(f"{host} {line}\n" for line in lines))
                index.write(f"{file}\n")
        return replay(directory, network, hosts, algorithm, slow=slow)


def pipelined(model, bucket_s, speed=1.0):
    """A step whose all-reduces follow each other while backward runs; `speed`: of the slowest processor."""
    elements, seconds = MODELS[model]
    seconds /= speed
    buckets = max(1, -(-elements // BUCKET))
    done = 0
    for bucket in range(buckets):
        ready = seconds / 3 + seconds * 2 / 3 * (bucket + 1) / buckets
        done = max(done, ready) + bucket_s
    return done + elements * UPDATE_S / speed  # all of it on every rank


SLOW = {"all alike": Slow(), "a rank at 90 %": Slow(processor=0.9), "a link at 50 %": Slow(link=0.5),
        "a link at 10 %": Slow(link=0.1)}


def one_slow(arguments, network, model, ranks):
    """Where one host of many is slower than the others: rounds wait for it, and so does everything else."""
    elements, seconds = MODELS[model]
    hosts = ranks // RANKS_PER_HOST
    alone = seconds + elements * UPDATE_S
    bucket = min(elements, BUCKET)
    for name, slow in SLOW.items():
        sums = ours(arguments.tool, network, hosts, model, "halving", slow)[0]
        theirs = pipelined(model, collective(network, hosts, bucket, "--cfg=smpi/coll-selector:ompi", slow),
                           slow.processor)
        print(f"| {network} | {model} | {ranks} | {name} | {100 * alone / sums:.1f} % | {100 * alone / theirs:.1f} % |",
              flush=True)


def lent(arguments, network, model, ranks):
    elements, seconds = MODELS[model]
    hosts = ranks // RANKS_PER_HOST
    alone = seconds + elements * UPDATE_S
    once, _ = ours(arguments.tool, network, hosts, model, "halving")
    twice, told = ours(arguments.tool, network, hosts, model, "halving", lends=True)
    messages = re.search(r"at most (\d+)", told).group(1)
    print(f"| {network} | {model} | {ranks} | {100 * alone / once:.1f} % | {100 * alone / twice:.1f} % | {messages} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/bench/schedule_trace", help="the program that writes traces")
    parser.add_argument("--ranks", default="64,512,1024,8192")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--ring-up-to", type=int, default=128, help="hosts; a ring of more takes minutes to simulate")
    parser.add_argument("--direct-up-to", type=int, default=64, help="hosts; as above")
    parser.add_argument("--lent", action="store_true",
                        help="instead: parameters that are gathered before forward and backward (fully-sharded)")
    parser.add_argument("--one-slow", action="store_true",
                        help="instead: hosts behind one switch, one of which has a slower processor or link")
    arguments = parser.parse_args()
    rows = itertools.product(arguments.networks.split(","), arguments.models.split(","),
                             map(int, arguments.ranks.split(",")))
    if arguments.one_slow:
        print("| network | model | ranks | host 0 | this schedule | Open MPI's choice |")
        print("|---|---|---|---|---|---|")
        for row in rows:
            one_slow(arguments, *row)
        return
    if arguments.lent:
        print("| network | model | ranks | sharded | fully-sharded | messages |")
        print("|---|---|---|---|---|---|")
        for row in rows:
            lent(arguments, *row)
        return
    print("| network | model | ranks | this schedule | direct | ring | Open MPI's choice | messages |")
    print("|---|---|---|---|---|---|---|---|")
    for network, model, ranks in rows:
        elements, seconds = MODELS[model]
        hosts = ranks // RANKS_PER_HOST
        halving, told = ours(arguments.tool, network, hosts, model, "halving")
        bucket = min(elements, BUCKET)
        cells = [halving,
                 ours(arguments.tool, network, hosts, model, "direct")[0]
                 if hosts <= arguments.direct_up_to else None,
                 pipelined(model, collective(network, hosts, bucket, "--cfg=smpi/allreduce:lr"))
                 if hosts <= arguments.ring_up_to else None,
                 pipelined(model, collective(network, hosts, bucket, "--cfg=smpi/coll-selector:ompi"))]
        alone = seconds + elements * UPDATE_S
        text = " | ".join("–" if cell is None else f"{100 * alone / cell:.1f} %" for cell in cells)
        messages = re.search(r"at most (\d+)", told).group(1)
        print(f"| {network} | {model} | {ranks} | {text} | {messages} |", flush=True)


if __name__ == "__main__":
    main()
