"""The rules of the tree that no compiler checks: python3 rules.py ROOT RULE.

Prints each violation as FILE:LINE: what, and exits 1 when there is one.
"""

import json
import re
import sys
from pathlib import Path

# What each room may include, besides itself.
ROOMS = {
    "base": [],
    "config": ["base"],
    "comm": ["base"],
    "trace": ["base", "comm"],
    "h5": ["base", "comm"],
    "data": ["base", "comm", "h5"],
    "text": ["base"],
    "import": ["base", "comm", "h5", "data", "text"],
    "checkpoint": ["base", "comm", "h5"],
    "federate": ["base", "config", "comm", "h5", "checkpoint"],
    "rl": ["base", "config", "comm", "h5"],
    "program": ["base"],
    "deploy": ["base"],
    "nn": ["base", "config", "comm", "h5", "data", "program"],
    "lower": ["base", "config", "comm", "h5", "data", "deploy", "nn"],
    "task": ["base", "config", "comm", "h5", "data", "rl", "program", "nn"],
    "events": [],
    "device": ["base", "config", "comm", "trace", "nn", "task"],
    "arena": ["base", "comm", "h5", "nn", "device"],
    "optimizer": ["base", "config", "comm", "federate", "nn", "device", "arena"],
    "exchange": ["base", "config", "comm", "nn", "device", "arena"],
    "step": ["base", "config", "comm", "trace", "h5", "checkpoint", "program", "nn", "task", "events",
             "device", "arena", "optimizer", "exchange"],
    "batches": ["base", "config", "comm", "h5", "data", "checkpoint", "federate", "rl", "nn", "task",
                "events", "device", "arena", "optimizer", "step"],
    "model_files": ["base", "config", "comm", "h5", "data", "text", "checkpoint", "nn", "lower", "task", "device",
                    "arena", "optimizer", "step", "batches"],
    "train": ["base", "config", "comm", "trace", "h5", "data", "checkpoint", "federate", "nn", "task",
              "events", "device", "arena", "optimizer", "step", "batches", "model_files"],
    "monitor": ["base", "config", "comm", "trace", "events"],
    "search": ["base", "config"],
    "report": ["base", "config", "comm", "monitor", "search", "events"],
    "serve": ["base"],
    "launch": ["base", "config", "comm", "monitor"],
    "measure": ["base", "config", "comm", "h5", "data", "checkpoint", "rl", "nn", "task", "train", "monitor", "events",
                "device", "arena", "step", "batches", "model_files"],
    "trials": ["base", "config", "comm", "h5", "checkpoint", "nn", "task", "monitor", "search", "report",
               "batches", "model_files", "train", "events"],
    "sites": ["base", "config", "comm", "h5", "data", "checkpoint", "federate", "nn", "task", "monitor",
              "optimizer", "batches", "model_files", "train", "events"],
    "app": ["base", "config", "comm", "h5", "data", "text", "import", "checkpoint", "federate", "rl", "nn",
            "lower", "task", "trace", "train", "monitor", "report", "serve", "launch", "search", "measure", "deploy",
            "events", "device", "arena", "optimizer", "step", "batches", "model_files", "trials", "sites"],
}

# Where of a room below some files alone may be included.
ONLY = {
    ("optimizer", "federate"): ["src/federate/keys.hpp", "src/federate/noise.hpp"],
    ("batches", "federate"): ["src/federate/accountant.hpp", "src/federate/keys.hpp"],
    ("train", "federate"): ["src/federate/keys.hpp"],
    ("step", "program"): ["src/program/gradient_place.hpp"],
}

MAX_SOURCES = 70  # of a folder

GENERATED = "lockstep/build_id_value.hpp"  # of a build, and installed with the headers

# What may stand in some places only: a pattern in code, and the prefixes of the files that may.
PLACES = {
    "torch": (
        r'#include <(torch|ATen|c10)/',
        ["include/lockstep/nn/", "include/lockstep/task/", "include/lockstep/model_files/",
         "include/lockstep/train/", "src/program/", "src/nn/", "src/lower/", "src/task/", "src/device/", "src/arena/",
         "src/optimizer/", "src/exchange/", "src/step/", "src/batches/", "src/model_files/", "src/train/",
         "src/measure/train_side/", "src/trials/", "src/sites/", "src/app/train_side/"],
    ),
    "mpi": (r"#include <mpi", ["src/comm/native.hpp"]),
    "world": (r"\bMPI_COMM_WORLD\b", ["src/comm/session.cpp"]),
    "hdf5": (r"\bH5[A-Z]{1,2}[a-z]\w*\s*\(|#include <hdf5", ["src/h5/"]),
    "vendor": (r"(?i)cuda|\bhip[A-Z]|amdhip",
               ["src/base/vendors", "src/base/nvml", "src/comm/nccl", "src/device/cuda_graphs", "src/device/nvtx", "src/config/describe.hpp"]),
    "nccl": (r"\b(one)?n?ccl[A-Z]\w*\s*\(|#include <(nccl|rccl|oneapi|cuda_runtime|hip)",
             ["src/comm/nccl", "src/comm/oneccl"]),
    # Of others it is read by base/json_text.hpp, up to a depth; these read what this program sends itself, or check first.
    "json": (r"(?i)\bjson::parse\(",
             ["src/base/json_text", "src/trials/", "src/config/deck_source.cpp", "src/import/documents.cpp",
              "src/train/profiler.cpp", "src/checkpoint/memory_state.cpp"]),
    # Text is made by {fmt} (base/text.hpp), but where a stream is wanted or nothing may be allocated.
    "fmt": (r"\bostringstream\b|\bsnprintf\b",
            ["src/base/proc_file.cpp", "src/import/codec/png.cpp", "src/launch/job_script.cpp", "src/nn/export_script.cpp",
             "src/device/nvtx.cpp"]),
    # In a directory that others may write to, a file of a name that they know may be a link of theirs: what is written
    # is opened by base/file.hpp.
    "creating": (r"\bO_CREAT\b(?!.*\bO_(EXCL|NOFOLLOW)\b)|\bofstream\b|\bfopen\(|\bcreate_director|basic_file_sink|::mkdir\(",
                 ["src/base/file.cpp", "src/base/memory.cpp", "src/h5/disk.cpp", "src/deploy/c_writer.cpp",
                  # of directories that go with their process
                  "src/base/arrival.cpp", "src/launch/arrivals_directory.cpp", "src/monitor/start_failure.cpp"]),
    # A directory of a name that the program has chosen may be a link or a third person's: base/own_directory.hpp looks.
    # Those of these files have names of the user's, are looked at where they are made, or go with their process.
    "directories": (r"\bmake_directories\(",
                    ["src/base/file.", "src/base/own_file.cpp", "src/base/secret_file.cpp", "src/app/search_command.cpp",
                     "src/trials/search_on_ranks.cpp", "src/data/stage_in.cpp", "src/federate/federation.cpp",
                     "src/import/compressed_writer.cpp", "src/import/writer.cpp", "src/launch/launch.cpp",
                     "src/measure/bench_loader_sets.cpp", "src/measure/resume_trial.cpp", "src/measure/trial_directory.cpp",
                     "src/report/report.cpp", "src/train/run_directory.cpp"]),
    # What is told may have names from files in it, with line ends: base/notice.hpp makes one line of it.
    "notices": (r"\bstd::cerr\b",
                ["src/base/notice.cpp", "src/app/main.cpp", "src/app/train_side/entry.cpp", "src/launch/attempt.cpp",
                 "src/launch/supervisor.cpp", "src/monitor/root_cause.cpp"]),
    # Two containers have equal numbers of processes: names of files have a token.
    "tokens": (r'[-./]", *::getpid\(\)|to_string\(::getpid', ["src/base/partial_file.cpp", "src/measure/train_side/check_probes.cpp"]),
}

# Words that only this program had, each with the one that the field uses: in names, messages and
# docs. Where a private word is needed, docs/glossary.md explains it.
OLD_WORDS = {
    r"(?<![a-z])li(fe|ves)(?![a-z])": "attempt; its file: lease",
    r"first[ _-]cause|FirstCause": "root cause",
    r"(?<![a-z])vote[sd]?(?![a-z])": "status reduction, or step sums",
    r"(?<![a-z])boards?(?![a-z])": "heartbeat table",
    r"(?<![a-z])lanes?(?![a-z])": "model instance",
    r"(?<![a-z])grains?(?![a-z])": "reduction block",
    r"(?<![a-z])pieces?(?![a-z])": "shard, part",
    r"std::byte> notice": "payload",
    r"rehears": "dry run",
    r"(?<![a-z])seal(s|ed|ing)?(?![a-z])": "checksum header",
    r"yardsticks?": "baseline",
    r"\b(most|least)_": "max_, min_",
    r"(\w\??\.|->)(most|least)\b(?!\.)": "max, min",  # members; sentences have a space before the word
    r"\b(double|float|\w+_t) (most|least)\b": "max, min",
    r"(?<![a-z])(make_|rollout_|dataset_)?feeds?(?!_forward)_?(?![a-z-])": "data module",
    r"\b(goes|go|going|went|gone) on\b": "continues, resumes",
    r"\banew\b": "starts over, again",
    r"pass(ed|es)?_over|pass(ed|es) over(?! data)": "skipped",
    r"(?<![a-z])odds(?![a-z])": "probabilities, probability ratio",
    r"side[ _]by[ _]side": "concurrently",
    r"(?<![a-z])in[ _]turn(?![a-z])": "sequentially, one after the other",
    r"(?<![a-z])amounts(?![a-z])": "real values",
    r"(?<![a-z])(bytes|[kmg]i?b|samples|once|twice|two|times|seconds?|ms|number) a (rank|step|sample|host|node|epoch|second|batch|replica)\b": "per",
}
PROSE = ["README.md", "CONTRIBUTING.md", "bootstrap", "docs", "include", "src", "tests", "bench", "inputs",
         "scripts", "slurm", "pbs", "packaging", "cmake"]

# Rooms whose functions may communicate; of these the headers say so.
COLLECTIVE_HEADERS = ["comm", "h5", "data", "import", "checkpoint", "device", "arena", "optimizer", "exchange",
                      "step", "batches", "model_files", "train"]


def sources(root):
    for folder in ("include/lockstep", "src"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp"):
                yield path, path.relative_to(root).as_posix()


def code_lines(path):
    """The lines of a file with their numbers, without // comments."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        yield number, re.sub(r"//.*", "", line)


def room_of(name):
    return name.split("/")[2 if name.startswith("include/") else 1]


def included(root, path, text):
    """The file of ours that a quoted include means, relative to the root; None: not ours."""
    for place in (path.parent / text, root / "include" / text, root / "src" / text):
        if place.exists() and text != GENERATED:
            return place.resolve().relative_to(root.resolve()).as_posix()
    return None


def check_rooms(root):
    """A room includes itself and the rooms below it. A header that is installed is included as
    "lockstep/ROOM/x.hpp", one that other rooms may use as "ROOM/x.hpp"; one of its room alone is
    included by its place beside the file, and never otherwise. What is installed includes nothing
    else."""
    private, shared = {}, set()
    for path, name in sources(root):
        room = room_of(name)
        if room not in ROOMS:
            yield f"{name}:1: {room} is no room"
            continue
        for number, line in code_lines(path):
            include = re.match(r'#include "([^"]+)"', line)
            target = include and included(root, path, include[1])
            if not target:
                continue
            other = room_of(target)
            if other != room and other not in ROOMS[room]:
                yield f"{name}:{number}: {room} must not include {other}"
            elif target not in ONLY.get((room, other), [target]):
                yield f"{name}:{number}: of {other}, {room} must not include {target}"
            if name.startswith("include/") and not target.startswith("include/"):
                yield f"{name}:{number}: {target} is not installed"
            if include[1].startswith(("lockstep/", other + "/")) and target.endswith(include[1]):
                shared.add(target)
            else:
                private.setdefault(target, f"{name}:{number}")
                if other != room:
                    yield f"{name}:{number}: {target} is a private header of another room"
    for target in sorted(shared & private.keys()):
        yield f"{private[target]}: {target} is for other rooms too: include it by its room"


def check_lists(root):
    """The table of rooms in the documentation and the categories of includes in .clang-format name the rooms of ROOMS,
    in the same order."""
    document = (root / "docs/architecture.md").read_text()
    table = document.partition("| room |")[2].partition("\n\n")[0]
    styles = re.search(r'\^"\(lockstep\|([\w|]+)\)/', (root / ".clang-format").read_text())
    for name, listed in (("docs/architecture.md", re.findall(r"^\| (\w+) \|", table, re.MULTILINE)),
                         (".clang-format", styles[1].split("|") if styles else [])):
        if listed != list(ROOMS):
            yield f"{name}:1: lists the rooms {', '.join(listed)}, but rules.py {', '.join(ROOMS)}"


def check_folders(root):
    """No folder holds more sources than one can look through."""
    for folder in sorted({path.parent for path, _ in sources(root)}):
        count = len(list(folder.glob("*.cpp")))
        if count > MAX_SOURCES:
            yield f"{folder.relative_to(root).as_posix()}:1: {count} sources, more than {MAX_SOURCES}: divide it"


def check_place(rule, root):
    pattern, allowed = PLACES[rule]
    for path, name in sources(root):
        if any(name.startswith(prefix) for prefix in allowed):
            continue
        for number, line in code_lines(path):
            if re.search(pattern, line):
                yield f"{name}:{number}: {rule} belongs in {', '.join(allowed)}"


def declarations(text):
    """Each declaration of a header at any depth: its line, its comment, its text."""
    comment, statement, start = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("///"):
            comment.append(stripped)
            continue
        code = re.sub(r"//.*", "", stripped)
        if not code or code.startswith("#") or re.fullmatch(r"(public|private|protected):", code):
            continue
        start = start or number
        statement += " " + code
        # A brace opens a class or a body: both end the declaration; initialisers stay on its line.
        if code.endswith((";", "{", "}")):
            yield start, " ".join(comment), statement.strip()
            comment, statement, start = [], "", 0


def check_collective(root):
    """A function that is handed a communicator says whether it communicates: by a line
    Collective, or by the words Local or Not collective. An overload follows its first."""
    for room in COLLECTIVE_HEADERS:
        headers = [*(root / "include/lockstep" / room).glob("*.hpp"),
                   *(root / "src" / room).glob("*.hpp")]
        for path in sorted(headers):
            name = path.relative_to(root).as_posix()
            said = set()
            for number, comment, statement in declarations(path.read_text()):
                function = re.search(r"(~?\w+)\s*\([^()]*\bCommunicator const&", statement)
                if not function:
                    continue
                if re.search(r"Collective  |Local\b|[Nn]ot collective", comment):
                    said.add(function[1])
                elif function[1] not in said and "= delete" not in statement:
                    yield f"{name}:{number}: {function[1]} does not say whether it is collective"


def texts(root):
    """All that is read by people, but for what is generated or of others' making."""
    for name in PROSE:
        place = root / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            own = not path.relative_to(root).as_posix().startswith("tests/arch/rules/")
            if path.is_file() and own and path.suffix not in (".h5", ".png", ".svg", ".pyc"):
                yield path, path.relative_to(root).as_posix()


def check_words(root):
    """None of the old words is left."""
    words = {re.compile(pattern.lower(), re.ASCII): instead for pattern, instead in OLD_WORDS.items()}
    for path, name in texts(root):
        text = path.read_text(errors="replace").lower()
        said = [(text.count("\n", 0, found.start()) + 1, found[0], instead)
                for word, instead in words.items() for found in word.finditer(text)]
        for line, found, instead in sorted(said, key=lambda each: each[0]):
            yield f"{name}:{line}: {found!r}: say {instead}"


def check_comments(root):
    """A documentation comment begins with a verb or a noun phrase: "Of ..." leaves open what the thing is."""
    for path, name in texts(root):
        if path.suffix not in (".hpp", ".cpp"):
            continue
        before = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = re.match(r"\s*///(?!<)\s*(.*)", line)
            begins = text and not before and re.match(r"(Of|That of|Those)\b", text[1])
            if begins:
                yield f"{name}:{number}: {begins[0]!r} leaves open what this is: begin with a verb or a noun"
            before = text[1] if text else ""


def check_mutations(root):
    """What tests/mutations breaks on purpose is still there to be broken, so that no guard goes untried."""
    for path, words, _, test in json.loads((root / "tests/mutations/mutations.json").read_text()):
        if not (root / path).is_file():
            yield f"{path}: is not there, and {test} guards {words!r} in it"
        elif words not in (root / path).read_text():
            yield f"{path}: {words!r}, which {test} guards, is not there"


FILE_ENDINGS = {"h5", "pt", "pt2", "safetensors"}  # model.pt is no key


def spans_of(line):
    return re.findall(r"`([^`]+)`", line)


def check_keys(root):
    """Keys that the documents name are those of docs/reference.md; so are the commands, options and values that
    docs/migration.md has for those of other trainers."""
    reference = (root / "docs/reference.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+\.[\w-]+)` \|(.*)", reference, re.M))
    headings = set(re.findall(r"^### (\S+)$", reference, re.M))
    sections = {key.split(".")[0] for key in rows}
    documents = [path for path in sorted((root / "docs").rglob("*.md")) if path.name != "reference.md"]
    for path in [*filter(Path.is_file, [root / "README.md"]), *documents]:
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for span in spans_of(line):
                for section, key in re.findall(r"(?<![\w./-])(?:--)?([a-z][a-z-]*)\.([a-z][a-z0-9-]*)(?=$|[ =,])", span):
                    is_test = section == "run" and (root / f"tests/run/{key}_test.py").exists()
                    if section in sections and f"{section}.{key}" not in rows and key not in FILE_ENDINGS \
                            and not is_test and not span.startswith("unknown key"):
                        yield f"{name}:{number}: there is no key {section}.{key}"
            if name == "docs/migration.md" and line.startswith("| "):
                for fault in faults_of_counterpart(line.split(" | ")[-1], rows, headings, reference):
                    yield f"{name}:{number}: {fault}"


def faults_of_counterpart(here, rows, headings, reference):
    """What the program does not have of a cell of docs/migration.md."""
    key = "."
    for span in spans_of(here):
        named = re.match(r"([a-z-]*)\.([a-z][a-z0-9-]*)(?: = (.*))?$", span)
        if named and f"{named[1] or key.split('.')[0]}.{named[2]}" in rows:
            key = f"{named[1] or key.split('.')[0]}.{named[2]}"
            for value in re.findall(r"^[a-z][a-z-]*$", named[3] or ""):
                if not re.search(rf"\b{value}\b", rows[key]) and value not in headings | {"true", "false"} \
                        and key != "data.augment" and key != "task.metric" and key != "task.metrics":
                    yield f"{key} has no value {value}"
        elif named and not named[1]:
            yield f"there is no key {span} of {key}"
        elif span.startswith("lockstep "):
            command = re.match(r"lockstep( [a-z][a-z-]*){,2}", span)[0]
            if command not in reference:
                yield f"there is no {command}"
        elif re.fullmatch(r"[a-z][a-z-]*", span) and key != ".":
            entry = re.search(rf"^\| `{span}[`:[]", reference, re.M)
            if f"{key.split('.')[0]}.{span}" not in rows and not re.search(rf"\b{span}\b", rows[key]) and not entry:
                yield f"{span} is neither a key beside {key} nor a value of it"
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w.-])", span):
            if not re.search(rf"{option}(?![\w-])", reference):
                yield f"there is no option {option}"
    for entry in re.findall(r"data\.augment = ([^`]*)`", here):
        for word in re.findall(r"(?:^|, )([a-z-]+)", entry):
            if not re.search(rf"^\| `{word}[`:[]", reference, re.M):
                yield f"data.augment has no entry {word}"


def main():
    root, rule = Path(sys.argv[1]), sys.argv[2]
    if rule in PLACES:
        violations = list(check_place(rule, root))
    else:
        violations = list({"rooms": check_rooms, "lists": check_lists, "folders": check_folders, "collective": check_collective,
                           "words": check_words, "comments": check_comments, "mutations": check_mutations,
                           "keys": check_keys}[rule](root))
    if not any(True for _ in sources(root)):
        violations.append(f"{root}: no sources")
    print("\n".join(violations) or f"{rule}: the rule is kept")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
