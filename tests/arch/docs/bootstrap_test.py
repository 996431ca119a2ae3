"""./bootstrap test: what each stage installs, builds and tests, and how the results are summed, with substitutes for the
package manager, CMake and ctest; and that the tests of the main build bear the labels by which stages choose them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
STAGES = ("main", "cluster", "simulated", "arch", "sanitizers", "mpich", "gpu-build", "no-rl")
# Of each call of ctest 7 tests pass and 1 is skipped; 2 fail in the directory that FAILS names.
CTEST = """echo "ctest $*" >>$CALLS
while [ $# -gt 0 ]; do
    case $1 in
    --test-dir) directory=$2 ;;
    --output-junit) report=$2 ;;
    esac
    shift
done
bad=0
[ "$directory" != "$FAILS" ] || bad=2
echo "<testsuite tests=\\"$((8 + bad))\\" failures=\\"$bad\\" disabled=\\"0\\" skipped=\\"1\\"/>" >"$report"
exit $((bad * 4))"""
# Configuring makes the directory; the program without RL refuses what it should.
CMAKE = """[ "$1" != --version ] || { echo "cmake version ${HAS_CMAKE:-3.30.1}"; exit; }
echo "cmake $*" >>$CALLS
[ "$1" = --build ] || mkdir -p "$4" build-no-rl
[ "$1" = --build ] || exit 0
printf '#!/bin/sh\\nexit 69\\n' >build-no-rl/lockstep
chmod +x build-no-rl/lockstep"""
PROGRAMS = {"ctest": CTEST, "cmake": CMAKE, "apt-get": 'echo "apt-get $*" >>$CALLS', "dpkg-query": "", "id": "echo 0",
            "nvcc": "", "mpicxx.mpich": "", "mpiexec.mpich": ""}


def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


class Place:
    """A checkout with nothing but the scripts, in which all that is downloaded is there already."""

    def __init__(self, path):
        self.path = path
        shutil.copy(SOURCE / "bootstrap", path)
        (path / ".ci").mkdir()
        shutil.copy(SOURCE / ".ci/run", path / ".ci/run")
        packages = path / ".venv/lib/python3.0/site-packages"
        for name in ("h5py", "PIL", "tensorboard", "safetensors", "iris_sample_data", "onnx", "onnxruntime",
                     "torch/lib", "torch/include/torch/headeronly"):
            (packages / name).mkdir(parents=True)
        for name in ("libtorch.so", "libtorch_cuda.so"):  # the second for hosts with a GPU
            (packages / "torch/lib" / name).touch()
        (packages / "torch/include/torch/headeronly/version.h").write_text(
            "#define TORCH_VERSION_MAJOR 99\n#define TORCH_VERSION_MINOR 0\n")
        (path / ".bootstrap/cuda").mkdir(parents=True)
        (path / ".bootstrap/cuda/site-9").touch()
        (path / "bin").mkdir()
        for name, text in PROGRAMS.items():
            (path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
            (path / "bin" / name).chmod(0o755)

    def call(self, *words, fails=""):
        calls = self.path / "calls"
        calls.write_text("")
        env = {"PATH": f"{self.path}/bin:{os.environ['PATH']}", "CALLS": str(calls), "FAILS": fails,
               "HAS_CMAKE": os.environ.get("HAS_CMAKE", ""),
               "HOME": os.environ.get("HOME", "/"), "LOCKSTEP_TORCH_VERSION": "9"}
        done = subprocess.run([self.path / words[0], *words[1:]], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/")
        return done.returncode, done.stdout, [line.split() for line in calls.read_text().splitlines()]

    def run(self, words, code, last, tests, packages=(), fails=""):
        """`tests`: of each call of ctest the directory and the labels; `packages`: of those of the stages, the chosen."""
        status, text, calls = self.call(*words, fails=fails)
        said = f"{' '.join(words)}\n{text}\n{calls}"
        check(status == code, f"exit code {status}, expected {code}: {said}")
        check(text.splitlines()[-1] == last, f"the last line is not {last!r}: {said}")
        found = [(call[2], *(call[at + 1] for at, word in enumerate(call) if word in ("-L", "-LE")))
                 for call in calls if call[0] == "ctest"]
        check(found == tests, f"ctest runs {found}, expected {tests}: {said}")
        installed = {word for call in calls if call[0] == "apt-get" and "install" in call for word in call}
        of_stages = installed & {"slurm-wlm", "mpich", "shellcheck", "gfortran", "qemu-user"}
        check(of_stages == set(packages), f"it installs {of_stages}, expected {packages}: {said}")
        built = {call[2] for call in calls if call[:2] == ["cmake", "--build"]}
        check({each[0] for each in tests} <= built, f"it builds {built}: {said}")
        check(("build" in built) == ("build" in {each[0] for each in tests}), f"it builds {built}: {said}")


def check_labels():
    """In the main build each stage has tests, so that what a name chooses is not nothing."""
    listing = subprocess.run(["ctest", "--test-dir", os.environ["LOCKSTEP_BUILD"], "--show-only=json-v1"],
                             capture_output=True, text=True, check=True).stdout
    of_tests = {test["name"]: next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
                for test in json.loads(listing)["tests"]}
    for name, stage in (("run.slurm", "cluster"), ("run.exchange.long", "cluster"), ("run.simulated", "simulated"),
                        ("run.mistakes.long", "simulated"), ("arch.docs", "arch"), ("arch.rule.rooms", "arch")):
        check(stage in of_tests.get(name, [stage]), f"{name} has no label {stage}: {of_tests.get(name)}")
    for name, labels in of_tests.items():
        check(name.endswith(".long") <= ("long" in labels), f"{name} has no label long: {labels}")
        check("" not in labels and labels, f"{name} has an empty label, or none: {labels}")


def check_memory(directory):
    """The limits of control groups, of either version, where a group above has one, too."""
    group = directory / "groups/job/step"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group.parent / "memory.max").write_text(f"{4 << 30}\n")
    (group.parents[1] / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    function = SOURCE.joinpath("bootstrap").read_text().split("\ngroup_memory()")[1].split("\n}\n")[0]
    found = subprocess.run(["bash", "-euo", "pipefail", "-c", f"group_memory(){function}\n}}\ngroup_memory {group}"],
                           capture_output=True, text=True, check=True).stdout.split()
    check(found[:2] == [str(4 << 20), str((1 << 53) - 4)], f"limits in KiB: {found}")


with tempfile.TemporaryDirectory(prefix="lockstep-bootstrap-") as scratch:
    place = Place(pathlib.Path(scratch))
    def left_out(*chosen, labels=("long", "cluster", "simulated", "arch")):
        return f"^({'|'.join(label for label in labels if label not in chosen)})$"

    def others(without):
        return {"thread": ("build-thread", without), "address": ("build-address", without),
                "mpich": ("build-mpich", without, "mpi"), "gpu": ("build-cuda", without)}

    main, of_one = ("build", left_out()), others(left_out())
    whole = [("build", "^(long)$"), *others("^(long)$").values()]
    everything = ("slurm-wlm", "mpich", "shellcheck", "gfortran")
    place.run(["bootstrap", "test"], 0, "7 passed, 0 failed, 1 skipped", [main], ["gfortran"])
    place.run(["bootstrap", "test"], 1, "7 passed, 2 failed, 1 skipped", [main], ["gfortran"], fails="build")
    place.run(["bootstrap", "test", "--all"], 0, "35 passed, 0 failed, 5 skipped", whole, everything)
    place.run([".ci/run"], 0, "35 passed, 0 failed, 5 skipped", whole, everything)
    for fails in ("build", "build-thread", "build-mpich", "build-cuda"):
        place.run([".ci/run"], 1, "35 passed, 2 failed, 5 skipped", whole, everything, fails=fails)
    place.run(["bootstrap", "test", "--all", "--long"], 0, "36 passed, 0 failed, 5 skipped",
              [(each[0], *each[2:]) for each in whole], (*everything, "qemu-user"))
    place.run(["bootstrap", "test", "--stage", "mpich"], 0, "7 passed, 0 failed, 1 skipped", [of_one["mpich"]], ["mpich"])
    place.run(["bootstrap", "test", "--stage=sanitizers"], 0, "14 passed, 0 failed, 2 skipped",
              [of_one["thread"], of_one["address"]])
    place.run(["bootstrap", "test", "--stage", "gpu-build"], 0, "7 passed, 0 failed, 1 skipped", [of_one["gpu"]])
    place.run(["bootstrap", "test", "--stage", "no-rl"], 0, "1 passed, 0 failed, 0 skipped", [])
    place.run(["bootstrap", "test", "--stage", "cluster", "--stage", "arch"], 0, "7 passed, 0 failed, 1 skipped",
              [("build", left_out("cluster", "arch"), "^(cluster|arch)$")], ["slurm-wlm", "shellcheck"])
    place.run(["bootstrap", "test", "--stage", "mpich", "--stage", "main"], 1, "14 passed, 2 failed, 2 skipped",
              [main, of_one["mpich"]], ["gfortran", "mpich"], fails="build-mpich")
    for words, phrase in ((["test", "--stage", "nothing"], f"there is no stage 'nothing': the stages are {' '.join(STAGES)}"),
                          (["test", "--stage", "main cluster"], "there is no stage 'main cluster'"),
                          (["test", "--stage"], "--stage needs the name of a stage: main cluster"),
                          (["build", "--all"], "'build' has no stages"),
                          (["--stage", "mpich", "lint"], "'lint' has no stages")):
        status, text, calls = place.call("bootstrap", *words)
        check(status == 64 and phrase in text and not calls, f"{words}: exit code {status}\n{text}\n{calls}")
    os.environ["HAS_CMAKE"] = "3.9.6"
    status, text, calls = place.call("bootstrap", "build")
    check(status == 69 and "too old here: CMake 3.9.6, where 3.25 or newer is needed" in text and
          not [call for call in calls if call[0] == "cmake"], f"an old CMake: exit code {status}\n{text}\n{calls}")
    check_memory(place.path)
    usage = place.call("bootstrap", "--help")[1]
    check(all(f"\n      {stage} " in usage for stage in STAGES), f"a stage is missing:\n{usage}")
check_labels()
