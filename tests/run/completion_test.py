"""Completion of command lines, by the program and by bash, zsh and fish where they are; help texts as wide as their
terminal; the commit that the program was built from."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from harness import LOCKSTEP, SOURCE, Scratch, check, on_terminal, run

# The words of a command line; what is offered for the last one; what is not; whether files are, too.
CASES = [
    ([""], ["train", "complete", "--version"], ["idx"], False),
    (["help", "pl"], ["plan"], ["train"], False),
    (["data", ""], ["import", "verify"], ["idx"], False),
    (["data", "import", ""], ["idx", "hdf5"], ["import"], False),
    (["data", "import", "idx", ""], [], ["idx"], True),
    (["data", "import", "idx", "--over"], ["--overwrite"], ["--units"], False),
    (["search", ""], ["report", "tell"], [], True),
    (["train", ""], [], ["report"], True),
    (["train", "--q"], ["--quiet"], ["--verbose"], False),
    (["train", "--optimizer.learn"], ["--optimizer.learning-rate"], ["--optimizer.name"], False),
    (["train", "--optimizer.name", ""], ["adamw", "lamb"], ["true"], False),
    (["train", "--optimizer.name", "la"], ["lars", "lamb"], ["adamw"], False),
    (["train", "--optimizer.name=la"], ["--optimizer.name=lars"], ["lars"], False),
    (["train", "--optimizer.name", "=", "la"], ["lars"], ["adamw"], False),
    (["train", "--optimizer.name", "="], ["lars", "adamw"], [], False),
    (["train", "--run.deterministic", ""], ["true", "false"], [], False),
    (["train", "--data.train", ""], [], ["true"], True),
    (["train", "--data.cache", ""], ["none", "memory", "local:"], ["local:DIRECTORY"], False),
    (["train", "--model.name", "c"], ["cnn"], ["mlp"], False),
    (["train", "--task.kind", ""], ["classification", "regression"], [], False),
    (["train", "--model.name", "mlp", "--model.h"], ["--model.hidden"], ["--model.heads"], False),
    (["plan", "deck.ini", "--ranks", ""], [], ["1"], False),
    (["launch", "--submit", ""], ["no", "slurm", "pbs"], [], False),
    (["report", "run", "--format", "png,"], ["png,pdf"], ["pdf"], False),
    (["predict", "run", "x.png", "--output", ""], [], [], True),
    (["models", "ml"], ["mlp"], ["cnn"], False),
    (["train", "--he"], ["--help"], [], False),
    (["nonsense", ""], [], ["train"], False),
]


def by_program():
    for words, offered, others, files in CASES:
        lines = run(["complete", "--", *words]).expect(0).text.splitlines()
        texts = [line.split("\t")[0] for line in lines if line != ":files"]
        check(set(offered) <= set(texts) and not set(others) & set(texts), f"{words}: {texts}")
        check((":files" in lines) == files, f"files for {words}: {lines}")
        check(len(texts) == len(set(texts)), f"each once: {texts}")
    meant = dict(line.split("\t") for line in run(["complete", "--", "train", "--quiet"]).text.splitlines())
    check(meant == {"--quiet": "print only warnings and the outcome of the run"}, f"with what it means: {meant}")
    run(["complete", "--help"]).expect(0, "lockstep complete")


BASH = """. {script}; COMP_WORDS=(lockstep {words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _lockstep
printf '%s\\n' "${{COMPREPLY[@]}}\""""
ZSH = """compdef() {{ }}; compadd() {{ shift ${{@[(i)--]}}; print -rl -- "$@" }}; _files() {{ print -rl -- $PREFIX*(N) }}
compset() {{ PREFIX=${{PREFIX#*=}} }}; . {script}; words=(lockstep {words}); CURRENT=$#words PREFIX=$words[-1]; _lockstep"""
SHELLS = [("train --optimizer.name=lar", "--optimizer.name=lars"), ("data imp", "import"), ("train --data.train fir", "first.h5"),
          ("train --data.train=fir", "--data.train=first.h5"), ("train --run.deterministic t", "true"), ("train fir", "first.h5")]


def by_shells(scratch):
    environment = {**os.environ, "PATH": f"{pathlib.Path(LOCKSTEP).parent}:{os.environ['PATH']}", "HOME": str(scratch), "TERM": "dumb"}
    (scratch / "first.h5").write_text("")

    def told(*command):
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=scratch, timeout=120)

    for words, expected in SHELLS:
        bash = told("bash", "-c", BASH.format(script=SOURCE / "packaging/lockstep.bash", words=words.replace("=", " = ")))
        check(expected.split("=")[-1] in bash.stdout.splitlines(), f"bash completes {words}: {bash}")
        if shutil.which("fish"):
            fish = told("fish", "-c", f"source {SOURCE}/packaging/lockstep.fish; complete -C 'lockstep {words}'")
            check(expected in [line.split("\t")[0] for line in fish.stdout.splitlines()], f"fish completes {words}: {fish}")
        if shutil.which("zsh"):
            zsh = told("zsh", "-f", "-c", ZSH.format(script=SOURCE / "packaging/lockstep.zsh", words=words))
            check(expected.split("=")[-1] in [line.split("=")[-1] for line in zsh.stdout.splitlines()], f"zsh completes {words}: {zsh}")
    skipped = [shell for shell in ("zsh", "fish") if not shutil.which(shell)]
    if skipped:
        print(f"not here: {', '.join(skipped)}")


def widths():
    """No line is wider than the terminal, or than 80 columns where there is none."""
    commands = [["--help"], ["data", "import", "--help"], ["bench", "--help"], ["train", "--help"], ["launch", "--help"],
                ["federate", "--help"], ["checkpoint", "--help"]]
    for command in commands:
        smallest = 75 if command[0] in ("bench", "checkpoint") else 60  # values that cannot be parted
        for columns, limit in ((smallest, smallest), (80, 80), (230, 100)):
            text = on_terminal([LOCKSTEP, *command], columns)[0].replace("\r", "")
            widest = max(text.splitlines(), key=len)
            check(len(widest) <= limit, f"{command} on {columns} columns: {widest}")
            check(columns < 100 or len(widest) > 80, f"{command} uses a wide terminal: {widest}")
        text = run(command).expect(0).text
        check(max(map(len, text.splitlines())) <= 80, f"{command} in a pipe: {max(text.splitlines(), key=len)}")
    wide = run(["train", "--help"], env={"COLUMNS": "1000"}).text
    check(max(map(len, wide.splitlines())) > 150, "COLUMNS decides")
    check(wide.split() == run(["train", "--help"]).text.split(), "the words are the same at any width")
    check("\n[data]\n  data.train " in wide, "keys are listed by section")


def commit(scratch):
    """The commit, as git tells it; written again only if it changes; sources without git say so."""
    told = run(["--version"]).expect(0).text.splitlines()
    check(len(told) == 2 and re.fullmatch(r"lockstep \d+\.\d+\.\d+", told[0]) and told[1].startswith("commit "), f"{told}")
    script = SOURCE / "cmake/write_commit.cmake"

    def written(source):
        subprocess.run(["cmake", f"-DSOURCE={source}", f"-DOUTPUT={scratch}/commit.cpp", "-P", script], check=True)
        return re.search(r'return "(.*)"', (scratch / "commit.cpp").read_text())[1]

    source = scratch / "source"
    source.mkdir()
    check("were in no git repository" in written(source), "no repository")
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    first = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    check(written(source) == f"commit {first[:12]}", "the commit")
    (source / "inner").mkdir()
    check("were in no git repository" in written(source / "inner"), "a repository around the sources is not theirs")
    written(source)
    before = os.stat(scratch / "commit.cpp").st_mtime_ns
    written(source)
    check(os.stat(scratch / "commit.cpp").st_mtime_ns == before, "what is the same is not written again")
    (source / "file").write_text("")
    subprocess.run([*git, "add", "file"], check=True)
    check(written(source) == f"commit {first[:12]}, with changes", "changes are told")


def main():
    with Scratch() as scratch:
        by_program()
        by_shells(scratch)
        widths()
        if shutil.which("git"):
            commit(scratch)


if __name__ == "__main__":
    sys.exit(main())
