"""Breaks the sources in one small place after the other, builds, and looks whether the test that guards
the place fails: mutate.py [--only TEXT] [--limit SECONDS] in a checkout with a build. Each row of
mutations.json is [file, words, what stands there instead, the test]. The file is put back each time;
the exit code is the number of breaks that went unnoticed. With nothing built for it this takes some hours:
it is run by hand."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", SOURCE / "build"))


def targets_of(path, test):
    """What has to be built for the test to see the file."""
    if not path.startswith(("src/", "include/")):
        return []
    whole = test.startswith("run.") or "/train/" in path
    if test.startswith(("run.", "arch.")):
        return ["lockstep"] if whole else []
    # The tests of a room are one program, but for those that need a process of their own.
    own = test.rsplit(".np", 1)[0]
    known = f"build tests/{own}: " in (BUILD / "build.ninja").read_text()
    return (["lockstep"] if whole else []) + [own if known else ".".join(own.split(".")[:2])]


def verdict(path, test):
    targets = targets_of(path, test)
    if targets:
        built = subprocess.run(["cmake", "--build", str(BUILD), "--target", *targets],
                               capture_output=True, text=True)
        if built.returncode != 0:
            return "no such test" if "unknown target" in built.stdout + built.stderr else "does not compile"
    done = subprocess.run(["ctest", "--test-dir", str(BUILD), "-R", f"^{test}$", "-FA", ".*"],
                          capture_output=True, text=True)
    if "No tests were found" in done.stdout:
        return "no such test"
    return "caught" if done.returncode != 0 else "NOT caught"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose file or test holds this")
    parser.add_argument("--limit", type=float, default=1e9, help="no new row after so many seconds")
    arguments = parser.parse_args()
    begun, told = time.monotonic(), {}
    rows = json.loads((pathlib.Path(__file__).parent / "mutations.json").read_text())
    for path, words, instead, test in rows:
        if arguments.only not in f"{path} {test}" or time.monotonic() - begun > arguments.limit:
            continue
        file = SOURCE / path
        before = file.read_text()
        if before.count(words) < 1:
            result = "not found"
        else:
            try:
                file.write_text(before.replace(words, instead, 1))
                result = verdict(path, test)
            finally:
                file.write_text(before)
        told[result] = told.get(result, 0) + 1
        print(f"{result}: {path}: {words.splitlines()[0]} -> {(instead or 'nothing').splitlines()[0]}: {test}",
              flush=True)
    print(", ".join(f"{count} {result}" for result, count in told.items()))
    return sum(count for result, count in told.items() if result != "caught")


sys.exit(main())
