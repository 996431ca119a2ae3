"""lockstep search: its journal; failing trials; what is refused; report, suggest and tell. The short form draws of each
kind."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np

from harness import BUILD, DATA, DECK, LOCKSTEP, LONG, Scratch, check, checkpoints, run, some

SPACE = """[search]
strategy = halving
trials = 4
reduction = 2
minimum-share = 0.5
seed = 3
goals = accuracy max

[space]
optimizer.learning-rate = log-uniform(1e-3, 1e-1)
optimizer.name = choice(adamw, sgd)
optimizer.momentum = uniform(0, 0.9) if optimizer.name = sgd
"""
OPTIONS = ["--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5", "--train.steps", "8",
           "--run.replicas", "2", "--data.global-batch", "32", "--checkpoint.every-steps", "2"]


def words(space, directory, *more):
    return ["search", space, DECK, "--directory", directory, *OPTIONS, *more]


def write(path, text):
    path.write_text(text)
    return path


def lines(directory, event):
    every = [json.loads(line) for line in (directory / "search.jsonl").read_text().rpartition("\n")[0].splitlines()]
    return [line for line in every if line["event"] == event]


def check_refused(scratch):
    for text, phrases in some((
            ("[space]\noptimizer.learning-rate = log-uniform(0, 1)\n", ("wrong.ini:2", "above 0")),
            ("[space]\noptimizer.learning-rat = uniform(0.1, 1)\n", ("wrong.ini:2", "optimizer.learning-rate")),
            ("[space]\nrun.seed = list(1, 2) if\n", ("wrong.ini:2", "only a condition may follow")),
            ("[space]\nrun.directory = choice(a, b)\n", ("wrong.ini:2", "the search itself sets this key")),
            ("[space]\noptimizer.learning-rate = list(fast)\n", ("wrong.ini:2", "expected")),
            ("[search]\ntrails = 3\n[space]\nrun.seed = list(1, 2)\n", ("wrong.ini:2", "search.trials")),
            ("[search]\nstrategy = hyperband\n", ("no keys to search",)))):
        run(words(write(scratch / "wrong.ini", text), scratch / "wrong")).expect(64, *phrases)
    right = "[search]\nstrategy = grid\n[space]\nrun.seed = list(1, 2)\n"
    pbt = "[search]\nstrategy = pbt\n[space]\n"
    for text, more, phrases in some((
            (right, ["--run.mode", "dp"], ("run.mode = dp in a search",)),
            (right, ["--data.validation", ""], ("names no validation set",)),
            (SPACE.replace("accuracy max", "acuracy max"), [], ("acuracy", "Did you mean accuracy?")),
            (pbt + "model.hidden = list(16, 32)\n", [], ("model.hidden (", "all trials need the same model")),
            (pbt + "privacy.noise = list(1, 2)\n", [], ("privacy.noise cannot be combined with",)))):
        run(words(write(scratch / "wrong.ini", text), scratch / "wrong", *more)).expect(64, *phrases)
    check(not (scratch / "wrong").exists(), "a refused search left a directory")
    if LONG:
        unknown = write(scratch / "unknown.ini", SPACE.replace("accuracy max", "other.max max"))
        run(words(unknown, scratch / "unknown"), 1).expect(64, "other.max", "in another --directory")


def check_journal(scratch, done):
    """A search that is finished starts again in no time; one that is damaged, changed or in use does not."""
    copy = scratch / "copy"
    shutil.copytree(done, copy)
    journal = copy / "search.jsonl"
    whole = journal.read_bytes()

    def torn():
        journal.write_bytes(whole[:-7])  # what a kill leaves of the last line
        run(words(scratch / "space.ini", copy)).expect(0, "best: trial")

    def damaged():
        journal.write_bytes(whole.replace(b'"event":"result"', b'"event":"resulT"', 1))
        run(words(scratch / "space.ini", copy)).expect(65, "search.jsonl:", "checksum")

    def other_deck():
        run(words(scratch / "space.ini", copy, "--train.steps", "9")).expect(64, "the deck of the search was changed")

    def in_use():
        holder = subprocess.Popen([sys.executable, "-c", "import fcntl, sys, time\nf = open(sys.argv[1], 'a+')\n"
                                   "fcntl.flock(f, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(100)",
                                   str(copy / "lock")], stdout=subprocess.PIPE)
        holder.stdout.readline()
        for command, phrase in some(((["search", "tell", copy, "1", "0.5"], f"process {holder.pid} ("),
                                     (words(scratch / "space.ini", copy), f"process {holder.pid} ("))):
            run(command).expect(73, phrase)
        holder.kill()
        holder.wait()
    for case in some((torn, damaged, other_deck, in_use), 2):
        case()
        journal.write_bytes(whole)


def check_second_start(scratch):
    """Of two starts in one job of a scheduler the later one has the directory: the job may have lost ranks."""
    directory = scratch / "both"
    command = [str(word) for word in [LOCKSTEP, *words(scratch / "space.ini", directory, "--train.steps", 1_000_000)]]

    def start():
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "PBS_JOBID": "5.server"})

    def begun(times):
        while not (directory / "search.jsonl").exists() or len(lines(directory, "begin")) < times:
            check(newest.poll() is None, "it trains")
            time.sleep(0.1)
    older = newest = start()
    begun(1)
    newest = start()
    begun(2)
    text = older.communicate(timeout=300)[0]
    check(older.returncode == 79 and "has taken it over (job 5.server" in text, f"{older.returncode}: {text}")
    newest.send_signal(signal.SIGUSR1)
    text = newest.communicate(timeout=300)[0]
    check(newest.returncode == 75 and "start the same command again" in text, f"{newest.returncode}: {text}")


def check_older_journal(scratch, done):
    """Trials beside a journal that is gone, or that was restored from a backup, are not taken for its own."""
    copy = scratch / "backup"
    shutil.copytree(done, copy)
    again = words(scratch / "space.ini", copy)
    journal = copy / "search.jsonl"
    whole = journal.read_bytes().splitlines(keepends=True)
    journal.unlink()
    run(again).expect(65, "trials/000", "is not in the journal of this search", "lists only 0 trials")
    check(journal.read_bytes() == b"", "a refused search began its journal")

    def before(event, trial):  # the journal up to this line
        return next(at for at, line in enumerate(map(json.loads, whole))
                    if (line["event"], line.get("trial")) == (event, trial))
    journal.write_bytes(b"".join(whole[:before("ask", 3)]))
    run(again).expect(65, "trials/0004 is not in the journal of this search", "lists only 3 trials")
    farther = next(line["trial"] for line in lines(done, "result") if line["share"] == 1)
    journal.write_bytes(b"".join(whole[:before("result", farther)]))
    for trial in (copy / "trials").iterdir():
        if int(trial.name) > 1 + max(line["trial"] for line in lines(copy, "ask")):
            shutil.rmtree(trial)
    run(again).expect(65, f"trials/{farther + 1:04} is of step 8", "the journal is older than the trial")
    shutil.rmtree(copy / "trials")
    run(again, 1).expect(0, "best: trial")

    def results(directory):
        return sorted((line["trial"], line["share"], line["step"], line["metrics"]["loss"])
                      for line in lines(directory, "result"))
    check(results(copy) == results(done), f"trained again, other results: {results(copy)} and {results(done)}")


def check_full_disk(scratch):
    """A full disk ends the search with 74; it continues when there is room."""
    disk = scratch / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], capture_output=True).returncode != 0:
        print("no small disk: it cannot be mounted here")
        return
    try:
        space = write(scratch / "full.ini", SPACE)
        run(words(space, disk / "search")).expect(74, "start the same command again")
        subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
        run(words(space, disk / "search")).expect(0, "best: trial")
    finally:
        subprocess.run(["umount", disk], check=True)


def check_failures(scratch):
    """A trial that diverges is a result."""
    space = write(scratch / "nan.ini", "[search]\nstrategy = grid\ngoals = accuracy max, parameters min\n"
                  "[space]\noptimizer.learning-rate = list(0.01, 1e30)\n")
    run(words(space, scratch / "nan", "--optimizer.name", "sgd", "--optimizer.clip-norm", "0"), 1).expect(
        0, "failed (64)", "best: trial 1")
    check([r["code"] for r in lines(scratch / "nan", "result")] == [0, 64], "codes of the trials")
    run(["search", "report", scratch / "nan"]).expect(0, "## Failed trials", "| 2 | 64 | ")
    none = write(scratch / "none.ini", space.read_text().replace("0.01, 1e30", "1e30"))
    for _ in range(2):
        run(words(none, scratch / "all_fail", "--optimizer.name", "sgd", "--optimizer.clip-norm", "0"), 1).expect(
            64, "no trial of the search has a result", "trial 1 failed (64)")


# A trial of milliseconds; steps 1 and 2 are followed by a checkpoint.
TINY = """[run]
device = cpu
replicas = {replicas}
[data]
train = {scratch}/tiny.h5
validation = {scratch}/tiny.h5
batch = 4
[model]
name = mlp
hidden = 2
[optimizer]
name = sgd
clip-norm = 0
[checkpoint]
every-steps = 1
[train]
steps = 2
"""


def handles(scratch, name, trials, rates, ranks, of_trial=1, env=None):
    """Of a search of so many tiny trials that all fail: the codes of the trials, and what each rank has left."""
    deck = write(scratch / f"{name}_deck.ini", TINY.format(scratch=scratch, replicas=of_trial))
    space = write(scratch / f"{name}.ini", f"[search]\nstrategy = random\ntrials = {trials}\nretries = 0\n"
                  f"ranks-per-trial = {of_trial}\n[space]\noptimizer.learning-rate = log-uniform({rates})\n")
    told = scratch / f"{name}.jsonl"
    text = run(["search", space, deck, "--directory", scratch / name], ranks, limit=3000, env={
        "LD_PRELOAD": str(BUILD / "tests/liblockstep_count_handles.so"), "LOCKSTEP_HANDLES": str(told), **(env or {})}
        ).expect(64, "no trial of the search has a result", f"trial {trials}: failed (").text
    check("in ending the search at step" not in text, f"a step of the last trial is told: {text}")
    codes = [line["code"] for line in lines(scratch / name, "result")]
    left = list(map(json.loads, told.read_text().splitlines()))
    check(len(codes) == trials and len(left) == ranks, f"{len(codes)} trials have ended, {left}")
    for each in left:
        check(each["communicators"][0] <= 2 and each["communicators"][1] < 12 and each["groups"][0] == 0
              and each["infos"][0] == 0, f"{name}: MPI's handles were not freed: {each}")
        check(each["files_beside"] == 0, f"{name}: two threads in HDF5: {each}")
    return codes, left


def check_divergence(scratch):
    """However many trials diverge, they leave nothing behind; nor do those that run out of memory, of which no thread
    still writes a checkpoint when the next trial begins."""
    with h5py.File(scratch / "tiny.h5", "w") as file:
        file["inputs"], file["targets"] = np.random.default_rng(0).normal(size=(16, 2)).astype("f4"), np.arange(16) % 2
    trials = 5000 if LONG else 30
    codes, left = handles(scratch, "diverging", trials, "1e30, 1e35", 2)
    check(set(codes) == {64}, f"they diverge: {set(codes)}")
    # After 10, 500 and all trials; a rank that stands still for a while may train fewer, the other then does more.
    usage = [each["usage"] for each in left if each["usage"][1 if LONG else 0] != [0, 0]]
    check(usage, f"neither rank has trained so many trials: {left}")
    for first, later, last in usage:
        check(last[0] <= first[0] + 4, f"descriptors that are left: {left}")
        if LONG:
            check(last[1] <= later[1] + 24_000, f"memory that is left: {left}")
    codes, _ = handles(scratch, "pairs", 4, "1e30, 1e35", 2, of_trial=2)
    check(set(codes) == {64}, f"they diverge: {set(codes)}")
    codes, _ = handles(scratch, "memory", 4, "1e-3, 1e-2", 1, env={"LOCKSTEP_INJECT": "oom:rank=0:step=2",
                                                                  "LOCKSTEP_SLOW_CLOSE": "1"})
    check(set(codes) == {71}, f"they run out of memory: {set(codes)}")


def check_own_files(scratch):
    """A trial whose own file cannot be opened is a result; a file of all trials ends the search at once."""
    (scratch / "text.h5").write_text("no data set")
    space = write(scratch / "files.ini", "[search]\nstrategy = grid\ngoals = accuracy max\n[space]\n"
                  f"data.train = choice({DATA}/train.h5, {scratch}/missing.h5, {scratch}/text.h5)\n")
    run(words(space, scratch / "files"), 2).expect(0, "failed (66)", "failed (65)", "best: trial 1")
    codes = {r["trial"]: r["code"] for r in lines(scratch / "files", "result")}
    check(codes == {0: 0, 1: 66, 2: 65}, f"codes of the trials: {codes}")
    run(words(space, scratch / "none", "--data.validation", scratch / "none.h5"), 1).expect(
        66, "none.h5: No such file or directory")
    check(not lines(scratch / "none", "result"), "a file of all trials is no result of one")


def check_private(scratch):
    """All trials draw from one key, so that another search with this key has the same ones."""
    space = write(scratch / "noise.ini", "[search]\nstrategy = grid\n[space]\nprivacy.noise = list(1, 2)\n"
                  "optimizer.betas = choice(\"0.9, 0.99\", \"7, 8\")\n")
    private = words(space, scratch / "private_1", "--model.batch-norm", "false", "--optimizer.clip-norm", "0")
    run(private, 1).expect(0, "best: trial")
    (scratch / "private_2").mkdir()
    shutil.copy(scratch / "private_1/privacy.key", scratch / "private_2/privacy.key")
    private[private.index("--directory") + 1] = scratch / "private_2"
    run(private, 2).expect(0, "best: trial")
    ends = [sorted((line["trial"], line["code"], line.get("message"), line.get("metrics", {}).get("loss"))
                   for line in lines(scratch / name, "result")) for name in ("private_1", "private_2")]
    check(ends[0] == ends[1] and [end[1] for end in ends[0]].count(64) == 2, f"the same ends: {ends}")
    (scratch / "private_2/privacy.key").unlink()
    run(private).expect(66, "privacy.key is missing")


def check_lethal(scratch):
    """A trial that kills its process whenever it starts can be taken out."""
    space = write(scratch / "lethal.ini", SPACE)
    begun = words(space, scratch / "lethal")
    check(run(begun, 1, env={"LOCKSTEP_INJECT": "kill:rank=0:step=2"}).code != 0, "the search was killed")
    run(["search", "tell", scratch / "lethal", "1", "0.5"]).expect(64, 'only "failed" can be recorded')
    run(["search", "tell", scratch / "lethal", "1", "failed"]).expect(0)
    run(["search", "tell", scratch / "lethal", "1", "failed"]).expect(64, "cannot get a result")
    run(begun, 1).expect(0, "best: trial")
    results = lines(scratch / "lethal", "result")
    check([r["trial"] for r in results if r["code"] != 0] == [0] and len(results) > 1, f"all but one trained: {results}")


def check_deaths(scratch):
    """A trial of which the job dies at each start is recorded as failed: its checkpoints at the first start make that
    one not count, then it dies twice. Trials beside it are not blamed."""
    space = write(scratch / "deaths.ini", "[search]\nstrategy = grid\nretries = 1\ngoals = parameters min\n"
                  "[space]\ntrain.steps = list(9, 1, 2, 3, 4)\n")
    begun = words(space, scratch / "deaths", "--checkpoint.asynchronous", "false")
    at = begun.index("--train.steps")
    del begun[at:at + 2]
    deaths = []
    while (last := run(begun, 2, env={"LOCKSTEP_INJECT": "kill:rank=all:step=6"})).code != 0:
        deaths.append(f"exit code {last.code}:\n{last.text}")
        check(len(deaths) < 6, f"it dies at every start: {last.text}")
    last.expect(0, "failed (76): the job died 2 times in a row", "best: trial")
    check(len(deaths) == 3, f"{len(deaths)} deaths: {deaths}")
    codes = {line["trial"]: line["code"] for line in lines(scratch / "deaths", "result")}
    check(codes == {0: 76, 1: 0, 2: 0, 3: 0, 4: 0}, f"codes of the trials: {codes}")
    starts = []
    for line in map(json.loads, (scratch / "deaths/search.jsonl").read_text().splitlines()):
        if line["event"] == "start":
            starts.append({"begin": set(), "result": set()})
        elif line["event"] in ("begin", "result"):
            starts[-1][line["event"]].add(line["trial"])
    check(starts[2]["begin"] - starts[2]["result"] == {0}, f"the last time it ran alone: {starts}")


def check_report(done):
    report = run(["search", "report", done]).expect(0, "## Best trial", "Importance", "optimizer.momentum").text
    check((done / "search.md").read_text() in report, "search.md is what was printed")
    for picture in ("parallel", "importance"):
        file = done / f"plots/search-{picture}.png"
        check(file.read_bytes().startswith(b"\x89PNG") and f"plots/{file.name}" in report, f"{file} is drawn")
    best = done / "best.ini"
    check("directory =" not in best.read_text(), "best.ini has the trial's directory")
    for command, *phrases in some(((["plan", best, "--run.directory", done / "again"], "parameters"),
                                   (["watch", done / "trials/0001", "--once"],),
                                   (["search", "report", done, "--carbon-intensity", 300], "core-hours", "CO2"))):
        run(command).expect(0, *phrases)
    # The trials used one process after each other: each tells its own time alone.
    all_of = lines(done, "usage")[0]["resources"]["user_s"]
    ends = [json.loads(line)["resources"]["user_s"] for trial in sorted((done / "trials").iterdir())
            for line in (trial / "history.jsonl").read_text().splitlines()]
    check(len(ends) == 6 and sum(ends) <= all_of, f"trials used {ends} s of processors, the search {all_of} s")
    # No share of the search's: a start may be charged with time that the host has stolen.
    check(min(ends) > 0.005, f"a trial used nothing: {ends} s of processors")


def check_suggest(scratch):
    for case in some((by_hand, heirs)):
        case(scratch)


def by_hand(scratch):
    space = write(scratch / "own.ini", "[search]\nstrategy = tpe\ntrials = 3\nbatch = 2\ngoals = loss min\n"
                  "[space]\nmy.x = uniform(0, 1)\n")
    directory = scratch / "by_hand"

    def suggest():
        return json.loads(run(["search", "suggest", space, "--directory", directory]).expect(0).text)
    first, second = suggest(), suggest()
    check((first["trial"], second["trial"], suggest()["trial"]) == (1, 2, None), "a batch of two, then none")
    run(["search", "tell", directory, "2", "0.5"]).expect(0)
    run(["search", "tell", directory, "2", "0.5"]).expect(64, "trial 2 cannot get a result")
    for wrong in some(("many", "nan", "inf")):
        run(["search", "tell", directory, "1", wrong]).expect(64, "expected a finite number")
    run(["search", "tell", directory, "1", "failed"]).expect(0)
    check(suggest()["trial"] == 3, "the next batch")
    run(["search", "tell", directory, "3", "0.25"]).expect(0)
    check(suggest() == {"trial": None, "finished": True}, "the end")
    for place, code, phrase in some(((directory, 0, "trial 3: loss 0.25"), (scratch / "none", 66, "no search in"))):
        run(["search", "report", place]).expect(code, phrase)


def heirs(scratch):
    space = write(scratch / "heirs.ini", "[search]\nstrategy = pbt\npopulation = 4\nintervals = 2\ngoals = loss min\n"
                  "[space]\nmy.x = uniform(0, 1)\n")
    command = ["search", "suggest", space, "--directory", scratch / "heirs"]
    for trial in (1, 2, 3, 4):
        run(command).expect(0, f'"trial":{trial}')
    for trial in (1, 2, 3, 4):
        run(["search", "tell", scratch / "heirs", trial, trial / 10]).expect(0)
    heir = json.loads(run(command).expect(0).text)
    check((heir["trial"], heir["parent"], heir["parent_share"]) == (5, 1, 0.5), f"it begins with its parent: {heir}")


with Scratch() as scratch:
    space = write(scratch / "space.ini", SPACE)
    on_1 = scratch / "on_1"
    run(words(space, on_1), 1).expect(0, "best: trial")
    check(len(lines(on_1, "result")) == 6, "four trials, of which two continue")
    check(all(len(checkpoints(trial)) > 0 for trial in (on_1 / "trials").iterdir()), "checkpoints of trials")
    check_refused(scratch)
    check_journal(scratch, on_1)
    check_report(on_1)
    check_suggest(scratch)
    check_divergence(scratch)
    for several in ((check_lethal, check_deaths), (check_private, check_failures, check_own_files),
                    (lambda scratch: check_older_journal(scratch, on_1), check_second_start, check_full_disk)):
        for case in some(several):
            case(scratch)
