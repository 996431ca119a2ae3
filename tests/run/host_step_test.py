"""The host's part of a step (bench/host_step.py) on simulated devices whose kernels do nothing: how often the host waits,
and that it calls hardly more than PyTorch's DDP does for the same model. Counts only: times depend on the machine.
"""
import json
import subprocess
import sys

from harness import BUILD, LONG, SOURCE, check, some

WAITS = 2  # of the host in a step, at most
MORE = 16  # calls than DDP: what the records of steps say of each class, and the norm of the gradient


def measured(model):
    done = subprocess.run([sys.executable, str(SOURCE / "bench/host_step.py"), "--build", str(BUILD), "--models", model,
                           "--sides", "ours", "ddp", "--rounds", "1", "--windows", "2", "--json"],
                          capture_output=True, text=True, timeout=900)
    check(done.returncode == 0, f"{model}: {done.stdout}{done.stderr}")
    return {each["side"]: each for each in map(json.loads, done.stdout.splitlines())}


def main():
    for model in ("cnn", *(some(("resnet50", "vit", "gpt")) if LONG else ())):
        found = measured(model)
        ours, theirs = found["ours"], found["ddp"]
        check(ours["waits of the host"] <= WAITS, f"{model}: the host waits {ours['waits of the host']} times: {ours['calls']}")
        for kinds in (("kernels", "copies"), ("allocations",)):
            mine, others = (sum(side[kind] for kind in kinds) for side in (ours, theirs))
            check(mine <= others + MORE, f"{model}: {mine} {kinds}, DDP {others}: {ours['calls']} {theirs['calls']}")
        check(ours["kernels"] > 10 and theirs["kernels"] > 10, f"{model}: what is counted? {found}")
        print(model, {side: {key: each[key] for key in each if key not in ("calls", "model", "side")}
                      for side, each in found.items()})


if __name__ == "__main__":
    main()
