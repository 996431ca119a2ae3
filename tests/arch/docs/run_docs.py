"""Runs the blocks marked ```sh test and ```python test in README.md, CONTRIBUTING.md and docs, in a directory in
which a short run of the sample deck was trained; and checks that the documents' links and the files
they name are there. The short form runs the blocks of README.md and of a few documents that the seed draws; of the
others it checks that they parse, and that the program has the commands, options and keys that they use."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "run"))
from harness import SEED, some  # noqa: E402

DRAWN = 4  # documents whose blocks the short form runs besides those of README.md
SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
SHORT = "--train.steps 20 --monitor.progress plain"
TRAIN = "mpirun -n 2 build/lockstep train inputs/fashion_mnist.ini --run.replicas 2 " + SHORT


def run(command, directory, what):
    done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="backslashreplace")
    if done.returncode != 0:
        sys.exit(f"{what}\nends with {done.returncode}:\n{done.stdout}")


def shell(text, directory, what):
    run(["bash", "-euo", "pipefail", "-c", text], directory, what)


def prepare(directory):
    """What a reader who came so far has: the program, the decks, the data, and the sample run."""
    (directory / "build").symlink_to(os.environ["LOCKSTEP_BUILD"])
    for folder in ("docs", "inputs", "python"):
        (directory / folder).symlink_to(SOURCE / folder)
    (directory / "datasets").mkdir()
    (directory / "datasets/fashion-mnist").symlink_to(os.environ["LOCKSTEP_TEST_DATA"])
    shell(TRAIN, directory, "the sample run")


def check_names(path, text):
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if not link.startswith("http") and not (path.parent / link).exists():
            sys.exit(f"{path.name}: {link} is not there")
    for name in re.findall(r"(?<!build/)\b((?:inputs|slurm|pbs|tests|src|include)/[\w./-]*\w)", text):
        if not (SOURCE / name).exists() and not (SOURCE / "include/lockstep" / name).exists():
            sys.exit(f"{path.name}: {name} is not there")


def check_reference():
    """docs/reference.md is what the program tells now."""
    build = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
    told = subprocess.run([sys.executable, SOURCE / "scripts/reference.py", build / "lockstep"],
                          check=True, capture_output=True, text=True).stdout
    if "\n### include\n" not in told:
        sys.exit("scripts/reference.py leaves out include, which is no key")
    if told != (SOURCE / "docs/reference.md").read_text():
        sys.exit("docs/reference.md is not what the program tells: "
                 "scripts/reference.py build/lockstep > docs/reference.md")


def check_environment():
    """Every variable that the program reads is in docs/environment.md."""
    text = (SOURCE / "docs/environment.md").read_text()
    read = set()
    for path in (SOURCE / "src").rglob("*.cpp"):
        code = path.read_text()
        read.update(re.findall(r'(?<!set_)environment(?:_text|_number<\w+>)?\("(\w+)"', code))
        for listed in re.findall(r"for \(char const\*(?: const)? \w+ :\s*\{([^}]*)\}\) \{\s*if \([^;]*?environment", code):
            read.update(re.findall(r'"(\w+)"', listed))
    missing = sorted(name for name in read if f"`{name}`" not in text)
    if len(read) < 10 or missing:
        sys.exit(f"docs/environment.md lacks {missing}, of {len(read)} that are read")


def check_rooms():
    """The rooms of docs/architecture.md and of its picture are those that may include each other, and the picture is
    what scripts/drawing.py draws."""
    sys.path.insert(0, str(SOURCE / "tests/arch/rules"))
    from rules import ROOMS

    table = re.search(r"\| room \| holds \|.*?\n\n", (SOURCE / "docs/architecture.md").read_text(), re.S)[0]
    drawn = subprocess.run([sys.executable, SOURCE / "scripts/drawing.py"], check=True, capture_output=True,
                           text=True).stdout
    for what, names in (("docs/architecture.md", re.findall(r"^\| (\w+) \|", table, re.M)[1:]),
                        ("scripts/drawing.py", re.findall(r'font-weight="bold">(\w+)<', drawn))):
        if sorted(names) != sorted(ROOMS):
            sys.exit(f"{what}: of its rooms and those of tests/arch/rules, only one has {set(names) ^ set(ROOMS)}")
    if drawn != (SOURCE / "docs/pictures/architecture.svg").read_text():
        sys.exit("docs/pictures/architecture.svg is not what scripts/drawing.py draws: "
                 "python3 scripts/drawing.py > docs/pictures/architecture.svg")


def check_headers():
    """Every public header is in docs/library.md."""
    text = (SOURCE / "docs/library.md").read_text()
    headers = [path.relative_to(SOURCE / "include/lockstep").as_posix()
               for path in (SOURCE / "include/lockstep").rglob("*.hpp")]
    missing = sorted(name for name in headers if f"`{name}`" not in text)
    if len(headers) < 10 or missing:
        sys.exit(f"docs/library.md lacks {missing}, of {len(headers)} public headers")


def check_parses(kind, text, directory, what):
    """A block that is not run: it parses, and the program has what it names."""
    if kind == "python":
        compile(text, what, "exec")
        return
    run(["bash", "-n", "-c", text], directory, what)
    keys = (SOURCE / "docs/reference.md").read_text()
    for line in text.replace("\\\n", " ").splitlines():
        found = re.search(r"build/lockstep ((?:[a-z][a-z-]* ?)*)(.*)", line.split("#")[0])
        if not found:
            continue
        words, options = found[1].split(), set(re.findall(r"(?<=\s)--[a-z][\w.-]*", found[0])) - {"--help"}
        of_program = subprocess.run([directory / "build/lockstep", *words[:2 if words[:1] in TWO_WORDS else 1], "--help"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if of_program.returncode != 0:
            sys.exit(f"{what}\nno such command: {' '.join(words)}:\n{of_program.stdout}")
        for option in options:
            if not (f"`{option[2:]}`" in keys if "." in option else re.search(rf"{option}\b(?!-)", of_program.stdout)):
                sys.exit(f"{what}\nlockstep {' '.join(words)} has no {option}:\n{of_program.stdout}")


TWO_WORDS = (["checkpoint"], ["data"], ["bench"], ["export"])
check_reference()
check_environment()
check_rooms()
check_headers()
texts = {path: path.read_text() for path in (SOURCE / "README.md", SOURCE / "CONTRIBUTING.md",
                                             *sorted((SOURCE / "docs").rglob("*.md")))}
tests = {path: re.findall(r"```(sh|python) test\n(.*?)```", text, re.S) for path, text in texts.items()}
# Other documents continue the runs of the README; what a document needs besides is in its own blocks.
chosen = {SOURCE / "README.md", *some([path for path in tests if tests[path] and path.name != "README.md"], DRAWN)}
blocks, done = 0, 0
with tempfile.TemporaryDirectory(prefix="lockstep-docs-") as scratch:
    directory = pathlib.Path(scratch)
    prepare(directory)
    for path, text in texts.items():
        check_names(path, text)
        for kind, block in tests[path]:
            what = f"{path.name}:\n{block}"
            blocks += 1
            check_parses(kind, block, directory, what)
            if path not in chosen:
                continue
            if kind == "sh":
                shell(block, directory, what)
            else:
                run([sys.executable, "-c", block], directory, what)
            done += 1
if blocks < 4:
    sys.exit(f"{blocks} blocks were found, of at least 4")
print(f"{done} blocks of the documents work, of {blocks}; seed {SEED}: {', '.join(sorted(path.name for path in chosen))}")
