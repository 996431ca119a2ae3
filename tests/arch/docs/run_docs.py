"""Runs the commands of the blocks marked ```sh test in README.md and docs/*.md; and checks that the
documents' links and the files they name are there."""
import pathlib
import re
import subprocess
import sys

root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
commands = 0
for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
    text = path.read_text()
    for block in re.findall(r"```sh test\n(.*?)```", text, re.S):
        for line in block.strip().splitlines():
            words = line.split("#")[0].replace("build/lockstep", str(build / "lockstep"))
            done = subprocess.run(words, shell=True, cwd=root, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{path.name}: {line}\nends with {done.returncode}:\n{done.stderr}")
            commands += 1
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if not link.startswith("http") and not (path.parent / link).exists():
            sys.exit(f"{path.name}: {link} is not there")
    for name in re.findall(r"\b((?:inputs|slurm|pbs|tests|src|include)/[\w./-]*\w)", text):
        if not (root / name).exists() and not list(root.glob(f"include/lockstep/{name}")):
            sys.exit(f"{path.name}: {name} is not there")
if commands == 0:
    sys.exit("no command was found")
print(f"{commands} commands of the documents work")
