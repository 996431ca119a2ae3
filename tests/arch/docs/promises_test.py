"""Every promise in tests/promises.json stands in its document, and the test that fails when it is broken
is registered and there: [document, words, ctest, file, words of the test]."""
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
listing = subprocess.run(["ctest", "--test-dir", os.environ["LOCKSTEP_BUILD"], "--show-only=json-v1"],
                         capture_output=True, text=True, check=True).stdout
known = {test["name"] for test in json.loads(listing)["tests"]}
rows = json.loads((SOURCE / "tests/promises.json").read_text())
wrong = []
for document, promise, test, path, phrase in rows:
    if promise not in " ".join((SOURCE / "docs" / document).read_text().split()):
        wrong.append(f"{document} does not promise: {promise}")
    if test not in known:
        wrong.append(f"{promise}: there is no test {test}")
    if phrase not in (SOURCE / path).read_text():
        wrong.append(f"{promise}: {path} does not say {phrase!r}")
for document in ("checkpoints.md", "data.md", "errors.md"):
    if not any(row[0] == document for row in rows):
        wrong.append(f"no promise of {document} has a test")
# Each line of the table of promises has a row, and so has each exit code.
for line in (SOURCE / "docs/checkpoints.md").read_text().split("## Not promised")[0].splitlines():
    if line.startswith("| ") and not line.startswith(("| promise", "|---")):
        if not any(row[1] in line or line.split(" | ")[0][2:] in row[1] for row in rows):
            wrong.append(f"no test for: {line}")
sys.exit("\n".join(["failed:", *wrong]) if wrong else 0)
