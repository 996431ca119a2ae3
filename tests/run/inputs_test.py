"""Inputs that cannot be opened end every command with 66 and in the same words: files that are missing, directories,
files and folders that may not be read, links to nothing; of an empty file it is said that it is empty. The short form
draws some rows."""
import os
import subprocess

import media
from harness import DATA, LOCKSTEP, Scratch, check, checkpoints, run, some

# Without these capabilities, root may read as little as others.
MAY_LITTLE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
WORDS = {
    "missing": "X: No such file or directory. ", "a link": "X: it is a link to a file that does not exist. ",
    "closed": "X: Permission denied. Check the path and its permissions",
    "in a closed folder": "X: Permission denied. Check the path and its permissions",
    "a folder": "X: it is a directory. Name a ",
}
# Each command, with an X for its input, whose name ends so. With /, a folder is an input as well.
ROWS = """
.ini  train X --run.directory again
.ini  plan X
.ini  launch --yes X
.ini  estimate X
.ini  check X
.ini  evaluate X CHECKPOINT
.ini  generate X CHECKPOINT
.ini  search X DECK
.ini  search SPACE X
.ini  search suggest X --directory search
.ini  federate init federation X --key key
.ini  verify-resume X --ranks 1 --resume-ranks 1 --kill-at 1 --steps 2
.ini  plan INCLUDES
.h5   plan DECK --data.train X
.h5   train DECK --run.directory again --data.train X
.h5   train DECK --run.directory again --data.validation X
.h5   train DECK --run.directory again --data.test X
.h5   train DECK --run.directory again --data.cache local:cache --data.train X
.h5   train DECK --run.directory again --checkpoint.resume X
.h5   train DECK --run.directory again --distill.teacher X
.pt   train DECK --run.directory again --model.name script --model.file X
.pt2  train DECK --run.directory again --model.name export --model.file X
.h5/  train DECK --run.directory again --model.weights X
.h5/  evaluate DECK X
.h5/  evaluate X
.h5   evaluate DECK CHECKPOINT --data.test X
.h5/  generate DECK X
.h5   federate init federation DECK --key key --weights X
.h5   data info X
.h5   data verify X
.h5/  checkpoint info X
.h5/  checkpoint verify X
.h5/  checkpoint diff X CHECKPOINT
.h5/  checkpoint diff CHECKPOINT X
.h5/  checkpoint export X out.safetensors
.h5/  checkpoint export X out.onnx --format onnx
.h5/  checkpoint quantise X out.h5
.onnx export check X --data TEST
.h5   export check EXPORTED --data X
.h5   export check EXPORTED --data TEST --checkpoint X
.idx  data import idx X,X out.h5
.csv  data import series X out.h5
.h5   data import hdf5 X out.h5
.csv  data import images images out.h5 --labels X
.csv  data import speech sounds out.h5 --labels X
.csv  data import speech sounds out.h5 --transcripts X
.txt/ data import text X out.h5 --vocabulary 300
.json data import text TEXT out.h5 --tokenizer X
"""


def made(path, content=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files(scratch):
    """What the rows name."""
    deck = made(scratch / "deck.ini", f"""[data]\ntrain = {DATA / 'train.h5'}\nbatch = 8\n[model]\nname = mlp\nhidden = 4
[train]\nsteps = 1\n[run]\nreplicas = 1\n[monitor]\ntensorboard = false\nplots = false\n""".encode())
    run(["train", deck, "--run.directory", scratch / "run"]).expect(0)
    for folder in "ab":
        made(scratch / f"images/{folder}/1.png", media.png([[[1, 2, 3]]], 8, 2))
        made(scratch / f"sounds/{folder}/1.wav", media.wav(800, tone=0.2))
    space = b"[search]\nstrategy = random\ntrials = 2\n[space]\noptimizer.learning-rate = log-uniform(1e-4, 1e-1)\n"
    named = {"DECK": deck, "CHECKPOINT": checkpoints(scratch / "run")[-1], "TEST": DATA / "test.h5",
             "SPACE": made(scratch / "space.ini", space), "TEXT": made(scratch / "text.txt", b"low lower lowest\n" * 9),
             "EXPORTED": scratch / "model.onnx", "INCLUDES": scratch / "includes.ini"}
    run(["checkpoint", "export", named["CHECKPOINT"], named["EXPORTED"], "--format", "onnx"]).expect(0)
    return named


def unopened(scratch, kind, ending):
    """An input that cannot be opened."""
    path = scratch / f"{kind.replace(' ', '-')}{ending}"
    if kind == "in a closed folder":
        folder = scratch / "closed"
        made(folder / f"in{ending}") if not folder.exists() else None
        folder.chmod(0)
        return folder / f"in{ending}"
    if kind == "a link" and not path.is_symlink():
        path.symlink_to(scratch / "nowhere")
    elif kind == "a folder":
        path.mkdir(exist_ok=True)
    elif kind == "closed":
        made(path).chmod(0)
    elif kind == "empty":
        made(path, b"")
    return path


def told(scratch, named, row, kind):
    ending, *words = row.split()
    path = unopened(scratch, kind, ending.rstrip("/"))
    named["INCLUDES"].write_text(f"include = {path}\n")
    words = [str(named.get(word, word)).replace("X", str(path)) if word in named or word in ("X", "X,X") else word
             for word in words]
    done = subprocess.run([*MAY_LITTLE, LOCKSTEP, *words], cwd=scratch, capture_output=True, text=True, timeout=100)
    return path, " ".join(words), done.returncode, done.stdout + done.stderr


with Scratch() as scratch:
    named = files(scratch)
    rows = ROWS.strip().splitlines()
    cases = [(row, kind) for row in rows for kind in WORDS if kind != "a folder" or "/" not in row.split()[0]]
    for row, kind in some(cases, 40):
        path, words, code, text = told(scratch, named, row, kind)
        includes = f"include = {path} ({named['INCLUDES']}:1)"
        phrase = WORDS[kind].replace("X", includes if "INCLUDES" in row else f"cannot open {path}")
        check(code == 66 and phrase in text, f"{words}, {kind}: {code}, not 66 and {phrase!r}:\n{text}")
        check("in phase" not in text and "rank 0" not in text and "disk" not in text, f"{words}, {kind}: {text}")
    for row in some([row for row in rows if row[:4] not in (".ini", ".txt", ".jso")], 8):
        _, words, code, text = told(scratch, named, row, "empty")
        check(code == 65 and "it is empty" in text, f"{words}, an empty file: {code}:\n{text}")
    print(f"inputs: {len(cases)} cases of commands and inputs that cannot be opened")
