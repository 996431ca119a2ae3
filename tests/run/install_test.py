"""What cmake --install gives works from there: the program trains, a user's project finds the
package, trains a network of its own through the API, a plug-in of it has the same bits, and so does a
task of its own. The library leaves the process of that project alone. The short form draws what is refused."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import h5py

from harness import BUILD, DATA, LONG, SOURCE, Scratch, check, check_same, checkpoints, records, run, some

DECK = """
[run]
replicas = 4
[data]
train = {train}
validation = {data}/test.h5
global-batch = 64
[model]
{model}
[monitor]
tensorboard = false
plots = false
[train]
steps = 20
"""


def call(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {words}\n{done.stdout}{done.stderr}")
    return done.stdout


def deck(path, model):
    path.write_text(DECK.format(train=path.parent / "train.h5", data=DATA, model=model))
    return path


def write_part(path, samples):
    """The first samples of the training set: few enough for epochs of ten steps."""
    with h5py.File(DATA / "train.h5") as whole, h5py.File(path, "w") as part:
        for name in ("inputs", "targets"):
            part[name] = whole[name][:samples]
        for name in ("mean", "std", "classes"):
            part.attrs[name] = whole.attrs[name]


def check_run_paths(place):
    """The loader looks for libraries where the run path of a program or library says, and takes an empty or relative
    entry for the working directory, where anybody may have put one."""
    paths = {}
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            told = call("readelf", "-d", path)
            for found in re.finditer(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", told):
                paths[path] = found[1].split(":")
    check(len(paths) >= 4, f"{place} holds the program and its libraries: {list(paths)}")
    for path, entries in paths.items():
        for entry in entries:
            check(entry.startswith(("/", "$ORIGIN")), f"{path} looks for libraries in {entry!r}: {entries}")


def check_symbols(libraries):
    """A program finds its own functions and those of the C library and of MPI before and after it is linked with ours,
    and has its allocator and its limits for itself."""
    check(len(libraries) == 3, f"the libraries: {libraries}")
    for library in libraries:
        own = [line.split()[-1].split("@")[0] for line in call("nm", "-D", "--defined-only", library).splitlines()]
        foreign = [name for name in own if not re.match("_Z|lockstep_|__bss_start$|_edata$|_end$", name)]
        check(own and not foreign, f"{library} defines {foreign}")
        used = call("nm", "-D", "--undefined-only", library)
        told = re.findall(r" (mallopt|setrlimit|prlimit|_ZSt13set_terminate\w*)\b", used)
        check(used and not told, f"{library} calls {told}")


INTERCEPTED = ["_exit", "MPI_File_read_at", "MPI_File_read_at_all", "MPI_File_sync", "MPI_File_write_at",
               "MPI_File_write_at_all"]


def check_witness(told, ranks, owner=None):
    """What the witness told of each rank: whose functions it found, and that nothing of the process was changed."""
    lines = re.findall("^witness: (.*)", told, re.M)
    check(lines.count("0 calls of mallopt") == ranks, f"each process has a witness: {lines}")
    places = dict(re.findall(r"(\w+) is of (\S+)", "\n".join(lines)))
    for name, place in places.items():
        expected = owner if owner and name in INTERCEPTED else "libc.so" if "exit" in name else "libmpi"
        check(place.startswith(expected), f"{name} is of {place}, not of {expected}")
    check(set(INTERCEPTED) < set(places), f"{places}")
    changes = [line for line in lines if "is changed" in line]
    check(not changes, f"the process is as it was: {changes}")


with Scratch() as scratch:
    check_run_paths(BUILD)
    write_part(scratch / "train.h5", 640)
    prefix, consumer = scratch / "prefix", scratch / "consumer"
    call("cmake", "--install", BUILD, "--prefix", prefix)
    check("lockstep" in call(prefix / "bin/lockstep", "--version"), "the installed program starts")
    check_run_paths(prefix)
    check_symbols(sorted(prefix.glob("lib*/liblockstep_*.so")) + sorted(prefix.glob("lib/*/liblockstep_*.so")))
    completed = call("bash", "-c", f". {prefix}/share/bash-completion/completions/lockstep; "
                     f"COMP_WORDS=({prefix}/bin/lockstep ''); COMP_CWORD=1; _lockstep; "
                     "echo ${COMPREPLY[@]}; "
                     f"COMP_WORDS=({prefix}/bin/lockstep train --optim); COMP_CWORD=2; _lockstep; "
                     "echo ${COMPREPLY[@]}; "
                     f"COMP_WORDS=({prefix}/bin/lockstep launch --s); COMP_CWORD=2; _lockstep; "
                     "echo ${COMPREPLY[@]}; "
                     f"COMP_WORDS=({prefix}/bin/lockstep check --); COMP_CWORD=2; _lockstep; "
                     "echo ${COMPREPLY[@]}").splitlines()
    commands = re.findall(r"^  ([a-z-]+)(?= |$)", call(prefix / "bin/lockstep", "--help"), re.M)
    check(len(commands) > 10 and set(commands) <= set(completed[0].split()),
          f"every command is completed: {commands} {completed[0]}")
    check("--optimizer.learning-rate" in completed[1], "keys are completed")
    check({"--submit", "--scale-rate", "--show"} <= set(completed[2].split()),
          f"options of launch are completed: {completed[2]}")
    check({"--json", "--precision.tf32"} <= set(completed[3].split()), f"of check: {completed[3]}")
    if LONG:
        check(call(prefix / "bin/lockstep", "help", "watch") == call(prefix / "bin/lockstep", "watch", "-h"),
              "help is asked for in more ways than one")
    check((prefix / "share/man/man1/lockstep.1").exists(), "there is a manual page")
    for file in "zsh/site-functions/_lockstep", "fish/vendor_completions.d/lockstep.fish":
        check("complete --" in (prefix / "share" / file).read_text(), f"{file} asks the program")
    modulefiles = prefix / "share/modulefiles"
    check(f'set prefix "{prefix}"' in next((modulefiles / "lockstep").iterdir()).read_text(),
          "the module file knows where it lies")
    modules = pathlib.Path("/usr/share/modules/init/bash")
    if modules.exists():
        loaded = call("bash", "-c", f". {modules}; module use {modulefiles}; module load lockstep; "
                      "command -v lockstep; echo $LOCKSTEP_ROOT; module unload lockstep; "
                      "echo ${LOCKSTEP_ROOT:-gone}").splitlines()
        check(loaded == [f"{prefix}/bin/lockstep", f"{prefix}", "gone"], f"module load: {loaded}")
    else:
        print("SKIPPED: no module command here to load the module file with")
    recipe = SOURCE / "packaging/spack/spack_repo/lockstep/packages/lockstep/package.py"
    compile(recipe.read_text(), str(recipe), "exec")

    # Torch's headers take compilers long: what they said of the same text is kept, wherever it lies.
    kept = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    os.environ |= {"CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
    call("cmake", "-S", SOURCE / "tests/install", "-B", consumer, f"-DCMAKE_PREFIX_PATH={prefix}",
         "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *kept)
    call("cmake", "--build", consumer, "-j2")

    own = deck(scratch / "own.ini", "name = mlp")
    own.write_text(own.read_text().replace("name = mlp", ""))
    # One epoch on two ranks; the others in another start, of one process with threads.
    witness = ["env", f"LD_PRELOAD={BUILD}/tests/liblockstep_witness.so"]
    told = call(os.environ["LOCKSTEP_MPIEXEC"], "-n", 2, *witness, consumer / "own_trainer", own,
                scratch / "by-api", 1)
    check_witness(told, 2)
    check("validation: accuracy" in told, f"the program's own observer was told:\n{told}")
    steps = int(re.search(r"at step (\d+): accuracy", told)[1])
    check(0 < steps < 20, f"it stopped after its first epoch:\n{told}")
    own.write_text(own.read_text().replace("[run]\n", "[run]\nmode = dp\n"))
    told = call(os.environ["LOCKSTEP_MPIEXEC"], "-n", 1, *witness, consumer / "own_trainer", own,
                scratch / "by-api")
    check_witness(told, 1)
    check_witness(call(*witness, consumer / "process_owner"), 1, "process_owner")
    check("at step 20: accuracy" in told and "epoch 1:" not in told, f"and continued:\n{told}")

    library = consumer / "libown_model.so"
    plug = deck(scratch / "plug.ini", f"name = plugin:{library}:skip\nhidden = 32")
    installed = subprocess.run(
        [os.environ["LOCKSTEP_MPIEXEC"], "-n", "1", prefix / "bin/lockstep", "train", plug,
         "--run.directory", scratch / "by-plugin"], capture_output=True, text=True)
    check(installed.returncode == 0, installed.stdout + installed.stderr)
    check_same(scratch / "by-api", scratch / "by-plugin", "API and plug-in: the same bits")
    if LONG:
        run(["train", plug, "--run.directory", scratch / "by-plugin", "--train.steps", 24], ranks=2).expect(
            0, "resumed from")

    # A task of its own: the same bits on another number of ranks and through a restart, and measured.
    margin = scratch / "margin.ini"
    margin.write_text(f"{plug.read_text()}validate-every = 20\n[task]\n"
                      f"kind = plugin:{library}:margin\nwidth = 2\n[checkpoint]\nevery-steps = 5\n")
    run(["train", margin, "--run.directory", scratch / "margin"]).expect(0, "new best hits")
    run(["train", margin, "--run.directory", scratch / "margin-cut"], ranks=2,
        env={"LOCKSTEP_INJECT": "throw:rank=1:step=13"})
    run(["train", margin, "--run.directory", scratch / "margin-cut"], ranks=2 if LONG else 1).expect(0, "resumed")
    check_same(scratch / "margin", scratch / "margin-cut", "a task of its own: the same bits")
    hits = records(scratch / "margin", "validation")[-1]["hits"]
    check(hits > 0.3, f"an untrained model hits a tenth: {hits}")
    best = scratch / "margin/best.h5"
    run(["evaluate", margin, best], ranks=2 if LONG else 0).expect(0, f"hits {hits:.6f}")
    # Code is loaded where it is named, not because a file says so.
    script = scratch / "margin.pt"
    skip, margins = f"plugin:{library}:skip", f"plugin:{library}:margin"
    for words, phrase in some((([], "a plug-in is loaded only if you name it yourself"),
                               (["--model.name", skip], f"Add --task.kind {margins}"))):
        run(["checkpoint", "export", best, script, *words]).expect(64, phrase)
    run(["checkpoint", "export", best, script, "--model.name", skip, "--task.kind", margins]).expect(0)

    # Another library, which still loads: a run continues with it only if that is forced.
    bytes_, other = library.read_bytes(), consumer / "libother_model.so"
    library.write_bytes(bytes_ + b" ")
    again = ["train", plug, "--run.directory", scratch / "by-plugin", "--train.steps", 28]
    run(again).expect(64, f"model.name = plugin:{library}:skip is not the library that this run began with")
    run(["checkpoint", "export", best, script, "--model.name", skip, "--task.kind", margins, "--overwrite"]).expect(
        0, f"lockstep: warning: model.name = {skip} is not the library that {best} was trained with")
    if LONG:
        run([*again, "--force"]).expect(0, "resumed from", "other contents of model.name")
    run(["evaluate", margin, best]).expect(64, f"is not the library that {best} was trained with", "--force")
    run(["evaluate", margin, best, "--force"]).expect(
        0, f"warning: other contents of model.name = {skip}", f"hits {hits:.6f}")
    run(["train", margin, "--run.directory", scratch / "margin", "--train.steps", 24, "--force"]).expect(
        0, "other contents of model.name", "other contents of task.kind")
    before, after = (each["code"]["task.kind"] for each in records(scratch / "margin", "start"))
    check(before != after, "the library's hash is on record")
    run(["checkpoint", "info", checkpoints(scratch / "margin")[-1]]).expect(0, f"task.kind, hash {after}")
    # As one that was built against other headers: its id is another text of the same length.
    value = (BUILD / "src/generated/lockstep/build_id_value.hpp").read_text().split('"')[1].encode()
    check(value in bytes_, "the plug-in holds the id of the headers")
    other.write_bytes(bytes_.replace(value, value[::-1]))

    for key, name, code, phrase in (
            *some((("model.name", f"plugin:{library}:skp", 64, "Did you mean skip?"),
                   ("model.name", "plugin:skip", 64, "plugin:LIBRARY:NAME"),
                   ("task.kind", f"plugin:{library}:margn", 64, "Did you mean margin?"),
                   ("task.kind", f"plugin:{library}:", 64, "plugin:LIBRARY:NAME"))),
            *some((("model.name", f"plugin:{scratch}/none.so:skip", 66, "the file does not exist"),
                   ("model.name", f"plugin:{BUILD}/liblockstep_core.so:skip", 69, "is not a plug-in"))),
            *some((("model.name", f"plugin:{other}:skip", 69, "was built with headers"),
                   ("task.kind", f"plugin:{other}:margin", 69, "was built with headers")))):
        wrong = deck(scratch / "wrong.ini", f"name = {name if key == 'model.name' else skip}")
        more = ["--task.kind", name] if key == "task.kind" else []
        run(["train", wrong, *more, "--run.directory", scratch / "wrong"]).expect(code, phrase)
