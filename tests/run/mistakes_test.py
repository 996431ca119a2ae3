"""The simulated accelerator finds what programs do wrong with accelerators, whatever the timing, and finds nothing
where they do it right. The short form tries one of each end, LOCKSTEP_LONG=1 all, with many seeds.
"""
import os
import signal
import subprocess

from harness import BUILD, LONG, check, some

PROGRAM = str(BUILD / "tests/lockstep_sim_mistakes")
RIGHT, WRONG_VALUES, RACE, REFUSED, FAULT, ABORT = 0, 1, 2, 3, -signal.SIGSEGV, -signal.SIGABRT
# How each ends. Memory that nobody wrote holds NaN: the values are wrong, as a test of bits would see.
ENDS = {
    "read_too_early": RACE,
    "overwritten_too_early": RACE,
    "freed_too_early": ABORT,  # found in a destructor
    "pinned_read_too_early": FAULT,
    "pinned_written_too_early": FAULT,
    "pageable_written": RIGHT,
    "read_by_the_host": FAULT,
    "source_of_a_copy_between_devices": RACE,
    "of_two_devices": REFUSED,
    "of_the_host": REFUSED,
    "not_written": WRONG_VALUES,
    "index_out_of_range": REFUSED,
    "host_values_in_a_graph": REFUSED,
    "waited_in_a_graph": REFUSED,
    "never_replayed": WRONG_VALUES,
    "freed_by_a_graph": WRONG_VALUES,
}


def end_of(name, way, seed):
    env = {**os.environ, "LOCKSTEP_SIM": f"devices=2,mib=64,delay-us=1000,seed={seed}"}
    done = subprocess.run([PROGRAM, name, way], env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr


def main():
    listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    check(listed == list(ENDS), f"the program has {listed}")
    tried = [name for end in set(ENDS.values()) for name in some([name for name in ENDS if ENDS[name] == end])]
    for seed in range(1, 25 if LONG else 2):
        for name in tried:
            expected = ENDS[name]
            for way, end in (("right", RIGHT), ("wrong", expected)):
                code, text = end_of(name, way, seed)
                check(code == end, f"{name}, {way}, seed {seed}: ends with {code}, not {end}: {text[-500:]}")
                if end in (RACE, ABORT):
                    check("order" in text or "race" in text.lower(), f"{name}: {text[-500:]}")
    print("all mistakes are found")


if __name__ == "__main__":
    main()
