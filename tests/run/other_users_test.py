"""Files that other users have put where this user's run looks: links are not followed, files of theirs are not taken for
ours, and their locks keep nobody out; a colleague's files that a deck names are read. LOCKSTEP_LONG=1 takes every name."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from harness import DATA, DECK, LOCKSTEP, Scratch, check, check_same, checkpoints, run, some, train

OTHER, THIRD = 65534, 65533
SHORT = ("--train.steps", 6, "--checkpoint.every-steps", 2, "--checkpoint.keep", 9, "--data.validation", "")
MINE = "a line of this user's\n"
LOCK = ("import fcntl, sys, time\nf = open(sys.argv[1], sys.argv[2])\nfcntl.flock(f, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\ntime.sleep(100)")
ROOT = os.geteuid() == 0
NAMES = ("deck.ini", "metrics.jsonl", "history.jsonl", "log.txt", "tensorboard", "plots", "checkpoints", "best.h5",
         "report.md", "samples", "flight", "profile", "arrivals", "lease")


def give(path, user=OTHER):
    os.chown(path, user, -1, follow_symlinks=False)


def search_words(directory):
    space = directory.parent / "space.ini"
    space.write_text("[search]\ntrials = 2\n[space]\noptimizer.learning-rate = log-uniform(1e-3, 1e-1)\n")
    return ["search", space, DECK, "--directory", directory, "--data.train", DATA / "train.h5", "--data.validation",
            DATA / "test.h5", "--train.steps", 2]


def link_in_place_of_each_file(scratch):
    """No file that a run writes is written through a link, whose author knows its name."""
    whole = scratch / "whole"
    train(whole, *SHORT, "--monitor.plots", "true", ranks=1).expect(0)
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    check({"log.txt", "metrics.jsonl", "lock", "lease"} <= {str(name) for name in names}, f"{names}")
    always = [pathlib.Path("log.txt"), pathlib.Path("metrics.jsonl"), pathlib.Path("lock")]
    for name in always + some([name for name in names if name not in always], 2):
        run_, mine = scratch / "linked", scratch / "mine"
        (run_ / name).parent.mkdir(parents=True)
        mine.write_text(MINE)
        (run_ / name).symlink_to(mine)
        if ROOT:  # a link of this user leads where this user wants
            give(run_ / name)
        elif name != pathlib.Path("lock"):
            break
        done = train(run_, *SHORT, "--monitor.plots", "true", ranks=1)
        check(mine.read_text() == MINE, f"{name}: written through a link:\n{done.text}")
        check(done.code in (0, 65, 73), f"{name}: exit code {done.code}:\n{done.text}")
        check(done.code == 0 or "link" in done.text or "checkpoint" in done.text, f"{name}:\n{done.text}")
        shutil.rmtree(run_)
    # The run's directory, or one in it, may be a link of this user.
    (scratch / "far/checkpoints").mkdir(parents=True)
    (scratch / "far/run").mkdir()
    (scratch / "near").symlink_to(scratch / "far/run")
    (scratch / "far/run/checkpoints").symlink_to(scratch / "far/checkpoints")
    train(scratch / "near", *SHORT, ranks=1).expect(0)
    check_same(scratch / "near", whole, "through links of this user")
    if ROOT:
        for name in some(NAMES, 2):
            run_ = scratch / f"of-others-{name}"
            run_.mkdir()
            (run_ / name).symlink_to(scratch / "far")
            give(run_ / name)
            train(run_, *SHORT, ranks=1).expect(73, f"{name} is a link, and it belongs to another user (uid {OTHER})")


def pipes(scratch):
    """What is no file, whoever has put it there and whether somebody reads it, is named, and not waited for."""
    for name in some((*NAMES, "search.jsonl"), 3):
        run_ = scratch / f"run-{name}"
        run_.mkdir()
        os.mkfifo(run_ / name)
        with open(run_ / name, "rb+", buffering=0):
            if name == "search.jsonl":
                run(search_words(run_)).expect(66, f"cannot open {run_}/{name}: it is a pipe")
            else:
                train(run_, *SHORT, ranks=1).expect(73, f"cannot write in {run_}: {name} is a pipe")


def marks_of_ranks(scratch):
    """launch leaves marks in no directory of others, and removes only what a launch of this user has left."""
    run_, mine = scratch / "run", scratch / "mine"
    launch = ["launch", "--yes", "--devices", 1, "--restarts", 0]
    words = [*launch, DECK, "--data.train", DATA / "train.h5", "--run.directory", run_, *SHORT]
    with subprocess.Popen(["true"]) as ended:
        pass
    token = f"{os.uname().nodename.split('.')[0][:32]}-{ended.pid}-"
    stale = token + 16 * "a"
    for place in (mine, run_ / "arrivals"):
        for name in (stale, token + "notes", f"{token}{15 * 'a'}g"):
            (place / name).mkdir(parents=True)
            (place / name / "0").write_text(MINE)
    (run_ / "arrivals" / (token + 16 * "b")).symlink_to(mine / stale)
    (run_ / "arrivals" / (token + 16 * "c")).mkdir()
    if ROOT:
        give(run_ / "arrivals" / (token + 16 * "c"))
    run(words).expect(0)
    left = {path.name[len(token):] for path in (run_ / "arrivals").iterdir()}
    check(left == {"notes", 15 * "a" + "g", 16 * "b", *([16 * "c"] if ROOT else [])}, f"what was left: {left}")
    # What a rank is told: not through a link, and not in a directory of others.
    (scratch / "link").symlink_to(mine / stale)
    told = [scratch / "link"]
    if ROOT:
        told += [scratch / "theirs", scratch / "far/ours"]
        told[1].mkdir()
        give(told[1])
        (scratch / "far").symlink_to(mine)
        give(scratch / "far")
        (mine / "ours").mkdir()
    for place in told:
        train(scratch / f"told-{place.name}", *SHORT, ranks=1, env={"LOCKSTEP_ARRIVALS": str(place)}).expect(0)
        check(place == scratch / "link" or not any(place.iterdir()), f"a mark in {place}")
    if ROOT:
        for number, make in enumerate((pathlib.Path.mkdir, lambda path: path.symlink_to(mine))):
            for command in (words, [*launch, "--search", *search_words(run_)[1:2], "--search-directory", run_, DECK,
                                    *search_words(run_)[5:]]):
                shutil.rmtree(run_)
                run_.mkdir()
                make(run_ / "arrivals")
                give(run_ / "arrivals")
                run(command).expect(73, f"cannot write in {run_}: arrivals", f"it belongs to another user (uid {OTHER})")
    kept = {path.relative_to(mine): path.read_text() for path in mine.rglob("0")}
    check(len(kept) == 3 and set(kept.values()) == {MINE}, f"in a directory of this user: {kept}")


def planted_while_it_runs(scratch):
    """Names that a run has not used yet when it starts. The run stops itself until they are taken."""
    if not ROOT:
        return
    run_, mine = scratch / "run", scratch / "mine"
    mine.mkdir()
    words = ["train", DECK, "--data.train", DATA / "train.h5", "--run.directory", run_, *SHORT, "--monitor.plots", "true",
             "--monitor.images", 2, "--profile.steps", "5-6"]
    child = subprocess.Popen([LOCKSTEP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "LOCKSTEP_INJECT": "stop:rank=0:step=3"})
    while pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        check(child.poll() is None, "it stops itself")
        time.sleep(0.02)
    names = [name for name in ("plots", "profile", "samples", "flight") if not (run_ / name).exists()]
    check({"plots", "profile"} <= set(names), f"made later: {names}")
    for name in names:
        (run_ / name).symlink_to(mine)
        give(run_ / name)
    child.send_signal(signal.SIGCONT)
    text = child.communicate(timeout=300)[0]
    check(child.returncode == 0 and "finished at step 6" in text, text)
    check(not any(mine.iterdir()), f"written through a link: {list(mine.iterdir())}\n{text}")
    for name in ("plots", "profile"):
        check(f"{name} is a link, and it belongs to another user (uid {OTHER})" in text, text)


def reports(scratch):
    """Neither pictures nor reports are written where a third person's link leads."""
    run_, search, mine = scratch / "run", scratch / "search", scratch / "mine"
    train(run_, *SHORT, ranks=1).expect(0)
    run(search_words(search)).expect(0)
    if ROOT:
        mine.mkdir()
        out = scratch / "out"
        out.mkdir()
        for place, words in ((run_, ["report", run_]), (out, ["report", run_, "--output", out]),
                             (search, ["search", "report", search])):
            shutil.rmtree(place / "plots", ignore_errors=True)
            (place / "plots").symlink_to(mine)
            give(place / "plots")
            run(words).expect(73, f"cannot write in {place}: plots is a link, and it belongs to another user (uid {OTHER})")
        check(not any(mine.iterdir()), f"written through a link: {list(mine.iterdir())}")


def copies_of_data(scratch):
    cache = scratch / "cache"
    def trained(name, *phrases):
        return train(scratch / name, *SHORT, "--data.cache", f"local:{cache}", ranks=1).expect(0, *phrases).text
    trained("cached")
    copy = next(cache.glob("*-train.h5"))
    good = copy.read_bytes()
    poison = bytearray(good)
    poison[len(poison) // 2] ^= 1
    table = [(lambda: copy.write_bytes(poison), "its bytes are not those of the file"),
             (lambda: copy.chmod(0o666), "other users may write to it")]
    if ROOT:
        table.append((lambda: give(copy), f"it belongs to another user (uid {OTHER})"))
    for number, (harm, why) in enumerate(table):
        harm()
        trained(f"again{number}", f"was made again: {why}")
        check(copy.read_bytes() == good and copy.stat().st_uid == os.geteuid(), f"made again: {why}")
        check_same(scratch / f"again{number}", scratch / "cached", why)
    check("was made again" not in trained("twice"), "a good copy is used")


def private_copies(scratch):
    """What Lockstep copies to places of its own choice is for this user alone, whatever the umask is; and once."""
    private, cache, local = scratch / "private.h5", scratch / "private/cache", scratch / "private/local"
    shutil.copy(DATA / "train.h5", private)
    private.chmod(0o600)
    before = os.umask(0)
    train(scratch / "kept", *SHORT, "--data.train", private, "--data.validation", "10 %", "--data.cache", f"local:{cache}",
          "--checkpoint.local", local, ranks=1).expect(0)
    run(["federate", "simulate", DECK, "--sites", 2, "--rounds", 1, "--min-sites", 1, "--data.train", private, "--train.epochs", 0,
         "--train.steps", 1, "--data.validation", "", "--run.directory", scratch / "simulated"]).expect(0)
    os.umask(before)
    copies = list(cache.iterdir())
    check(len(copies) == 1, f"one copy of one file: {copies}")
    for path in (cache, *copies, *local.iterdir(), scratch / "simulated/data"):
        check(path.stat().st_mode & 0o077 == 0, f"{path} is for its owner alone: {path.stat().st_mode:o}")


def checkpoints_of_others(scratch):
    """What a third person has put among a run's checkpoints is not resumed from; a colleague's run is."""
    begun, local = scratch / "begun", scratch / "local"
    train(begun, *SHORT, "--checkpoint.local", local, ranks=1).expect(0)
    place = next(local.iterdir())
    more = (*SHORT, "--train.steps", 8, "--checkpoint.local", local)
    newest = checkpoints(begun)[-1].name
    if not ROOT:
        return
    # In the local directory alone: the run's own is taken.
    give(place / newest)
    train(begun, *more, ranks=1).expect(0, f"resumed from {begun}/checkpoints/{newest}",
                                        f"{place / newest}: it belongs to another user (uid {OTHER})")
    # In the run's directory, too: the one before.
    newest = checkpoints(begun)[-1]
    give(newest)
    (place / newest.name).unlink()
    train(begun, *more, "--train.steps", 10, ranks=1).expect(0, "step-00000006.h5", f"{newest}: it belongs to another user")
    give(place)
    train(begun, *more, "--train.steps", 12, ranks=1).expect(73, f"{place}: it belongs to another user")
    # A whole run of a colleague, and a file that is named.
    theirs = scratch / "theirs"
    train(theirs, *SHORT, ranks=1).expect(0)
    for path in (theirs, *theirs.rglob("*")):
        give(path, THIRD)
    train(theirs, *SHORT, "--train.steps", 8, ranks=1).expect(0, f"resumed from {theirs}/checkpoints/step-00000006.h5")
    named = theirs / "checkpoints/step-00000004.h5"
    train(scratch / "named", *SHORT, "--checkpoint.resume", named, ranks=1).expect(0, f"resumed from {named}")


def parts_of_imports(scratch):
    """What is left of an import is in a directory of this user; single parts: run.kill_import."""
    words = ["data", "import", "hdf5", DATA / "test.h5", scratch / "out.h5"]
    spool = scratch / "out.h5.importing"
    if ROOT:
        spool.mkdir()
        give(spool)
        run(words).expect(73, f"cannot use directory {spool}: it belongs to another user (uid {OTHER})")
        give(spool, 0)
        run(words).expect(0)


def locks(scratch):
    """A lock is for who may write to its file, and whoever holds it is named."""
    held = scratch / "held"
    train(held, *SHORT, ranks=1).expect(0)
    scratch.chmod(0o755)
    holder = subprocess.Popen([sys.executable, "-c", LOCK, held / "lock", "a"], stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    train(held, *SHORT, "--train.steps", 8, ranks=1).expect(73, f"process {holder.pid} (", f"holds the lock {held}/lock")
    holder.kill()
    holder.wait()
    if ROOT:
        other = ["setpriv", "--reuid", str(OTHER), "--clear-groups", "/usr/bin/flock", "--exclusive"]
        for mode in ((), ("--shared",)):
            done = subprocess.run([*other, *mode, held / "lock", "true"], capture_output=True, text=True)
            check(done.returncode != 0 and "denied" in done.stderr, f"a reader locks: {done}")
    train(held, *SHORT, "--train.steps", 8, ranks=1).expect(0, "finished at step 8")


    run_ = scratch / "odd"
    for make, what in ((os.mkfifo, "a pipe"), (os.mkdir, "a directory"), (lambda path: path.symlink_to("/dev/null"), "a link")):
        run_.mkdir(mode=0o1777)
        make(run_ / "lock")
        train(run_, *SHORT, ranks=1).expect(73, f"cannot lock {run_}/lock: it is {what}")
        shutil.rmtree(run_)


def choices(scratch):
    """What a command chooses itself in a directory that it was told, it takes from nobody else than the directory's owner."""
    run_, other = scratch / "run", f"it belongs to another user (uid {OTHER})"
    train(run_, *SHORT[:-2], "--train.validate-every", 2, ranks=1).expect(0)
    if not ROOT:
        return
    evaluate = ["evaluate", DECK, run_, "--data.test", DATA / "test.h5"]
    give(run_ / "best.h5")
    run(evaluate).expect(66, f"cannot use {run_}/best.h5: {other}")
    run([*evaluate[:2], run_ / "best.h5", *evaluate[3:]]).expect(0)  # named
    run(["checkpoint", "verify", run_]).expect(66, f"{run_}/best.h5: not verified: {other}", ": all bytes are intact")
    run(["checkpoint", "verify", run_ / "best.h5"]).expect(0)  # named
    (run_ / "best.h5").unlink()
    # Whoever owns the directory can exchange its files.
    count = len(checkpoints(run_))
    give(run_ / "checkpoints")
    run(evaluate).expect(66, f"{run_}/checkpoints: {other}")
    run(["checkpoint", "export", run_, scratch / "out.safetensors"]).expect(66, f"{run_}/checkpoints: {other}")
    run(["checkpoint", "info", run_]).expect(66, f"{run_}/checkpoints: {other}")
    run(["checkpoint", "prune", run_, "--keep", 1]).expect(0)
    check(len(checkpoints(run_)) == count, "checkpoints in a directory of others are neither counted nor removed")
    train(run_, *SHORT, "--train.steps", 8, ranks=1).expect(73, f"cannot write in {run_}: checkpoints: {other}")
    give(run_ / "checkpoints", 0)
    # In a sticky directory of others nobody replaces their files.
    sticky = scratch / "sticky"
    sticky.mkdir()
    shutil.copy(run_ / "deck.ini", sticky / "deck.ini")
    give(sticky / "deck.ini")
    sticky.chmod(0o1777)
    give(sticky, THIRD)
    for above in (scratch.parent, scratch):
        above.chmod(0o755)
    done = subprocess.run(["setpriv", "--reuid", "65532", "--clear-groups", LOCKSTEP, "checkpoint", "export",
                           run_, sticky / "deck.ini"], capture_output=True, text=True)
    check("deck.ini" in done.stderr and "quota" not in done.stderr, done.stderr)
    # The journal of a search, and its trials.
    search = scratch / "search"
    words = search_words(search)
    search.mkdir()
    (search / "search.jsonl").write_text("{}\n")
    give(search / "search.jsonl")
    run(words).expect(66, f"cannot use {search}/search.jsonl: {other}")
    (search / "search.jsonl").unlink()
    (search / "trials").mkdir()
    give(search / "trials")
    run(words).expect(73, f"cannot write in {search}: trials: {other}")
    # A key that somebody else has made is known to them.
    key = scratch / "site.key"
    found = ["federate", "init", scratch / "one", DECK, "--key", key, "--min-sites", 2, *words[5:]]
    run(found).expect(0)
    give(key)
    run([*found[:2], scratch / "two", *found[3:]]).expect(64, f"cannot use {key}: {other}")


with Scratch() as scratch:
    if not ROOT:
        print("SKIPPED: only root can give files to other users; links and damage were tried")
    for each in (link_in_place_of_each_file, pipes, marks_of_ranks, planted_while_it_runs, reports, copies_of_data,
                 private_copies, checkpoints_of_others, parts_of_imports, locks, choices):
        (scratch / each.__name__).mkdir()
        each(scratch / each.__name__)
