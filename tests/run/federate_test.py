"""Federated training: the global models are the same bits simulated on any number of ranks, with and without
secure aggregation, and by real sites and a coordinator that are killed in every phase."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import h5py
import numpy
from safetensors.numpy import save_file

from harness import DATA, DECK, LOCKSTEP, LONG, SEED, Scratch, check, flip, run

SETTINGS = ["--rounds", 2 if LONG else 1, "--min-sites", 2]
KEYS = ["--train.epochs", 0, "--train.steps", 4, "--optimizer.accumulate", 1, "--checkpoint.every-steps", 2,
        "--monitor.weight-hash", "false", "--data.validation", ""]
SITES = [f"site-{number:05}" for number in (1, 2, 3)]
PERCEPTRON = [f"layers/{layer}/{kind}" for layer in ("hidden1", "output") for kind in ("weight", "bias")]
LAST = f"round-{SETTINGS[1]:04}.h5"
# Where a site and the coordinator are killed: before and after each file that they write.
SITE_KILLS = {"announce": ["announce written"], "shares": ["shares"], "update": ["update"], "unmask": ["unmask written"]}
LIST_KILLS = {"roster": ["roster written"], "sharers": ["sharers"], "survivors": ["survivors written"],
              "result": ["global", "global written", "result"]}
if LONG:
    SITE_KILLS = {phase: [phase, f"{phase} written"] for phase in SITE_KILLS}
    LIST_KILLS = {phase: [phase, f"{phase} written"] for phase in LIST_KILLS}
    LIST_KILLS["result"] = ["global", "global written", "result", "result written"]


def model(directory, name=LAST):
    with h5py.File(directory / "global" / name) as file:
        found = {}
        file["model"].visititems(lambda name, item: found.update({name: item[()]})
                                 if isinstance(item, h5py.Dataset) else None)
    return found


def same(a, b):
    return a.keys() == b.keys() and all(numpy.array_equal(a[name], b[name]) for name in a)


def simulate(directory, ranks, *options, settings=SETTINGS):
    words = ["federate", "simulate", DECK, "--sites", 3, "--dirichlet", 1, *settings, *KEYS, "--data.train",
             DATA / "train.h5", "--run.directory", directory, *options]
    return run(words, ranks)


def simulated_in_groups(scratch, expected):
    """Two sites at a time give the same bits, also after one that fails while the other trains."""
    directory, groups = scratch / "groups", ("--groups", 2)
    blocked = directory / "sites" / SITES[1] / "round-0001"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way of the site's run")
    failed = simulate(directory, 2, *groups).expect(73, "root cause: rank 1", f"({SITES[1]})", str(blocked))
    check(failed.text.count("root cause") == 1, f"one root cause: {failed.text}")
    check(not (directory / "federation/global" / LAST).exists(), "the round has not ended")
    blocked.unlink()
    told = simulate(directory, 2, *groups).expect(0, "is over: 3 sites").text.splitlines()
    for site in SITES:
        sent = [line for line in told if line.startswith(f"{site}: round ") and "update sent" in line]
        check(len(sent) <= SETTINGS[1], f"each update is told once, on a line of its own: {told}")
        events = [json.loads(line)["event"] for line in
                  (directory / "sites" / site / "round-0001/metrics.jsonl").read_text().splitlines()]
        check(events.count("end") >= 1, f"{site} has records of its own: {events}")
    check(any(line.startswith(f"{SITES[1]}: round 1: update sent") for line in told), f"the site that failed: {told}")
    check(same(expected, model(directory / "federation")), "1 group and 2 groups give the same bits")
    for wrong, phrase in ((("--groups", 3), "2 ranks and 3 sites"), (("--threshold", 2), "without --secure"),
                          (("--min-sites", 4), "the federation has 3 sites"), (("--delta", "0.0001"), "without noise"),
                          (("--server-epsilon", "0.1"), "has no effect with --strategy fedavg"), (("--dirichlet", 0), "from 1e-06")):
        simulate(scratch / "many", 2, *wrong).expect(64, " ".join(map(str, wrong)), phrase)
    # The batches of the deck need more samples than the site with the fewest has; nobody trains before that is told.
    simulate(scratch / "poor", 2, "--dirichlet", "0.001", "--sites", 20, "--data.drop-last", "true").expect(
        64, "too few samples for site-000", "Use a larger --dirichlet, or lower --sites, data.global-batch or optimizer.accumulate")
    check(not (scratch / "poor/sites").exists(), "no site has trained")
    # The share for validation is taken off: of a step's samples, too few are left; or no sample is in the share.
    with h5py.File(DATA / "train.h5") as file:
        samples = len(file["targets"])
    step = ["--data.drop-last", "true", "--data.global-batch", samples // 15 * 4]  # 80 % of a site's
    for name, share, more, told in (("share", "40 %", step, "and data.validation takes 40 % of a site's samples"),
                                    ("no-share", f"{90 / samples:.6f} %", [], "no sample would be left for validation")):
        simulate(scratch / name, 1, "--dirichlet", "1e6", "--data.validation", share, *more).expect(
            64, "too few samples for site-00001", told, "or change data.validation")
        check(not (scratch / name / "sites").exists(), "no site has trained")
    # So few are left that not even the whole set would be enough for the first weights.
    small = scratch / "small.h5"
    with h5py.File(DATA / "train.h5") as file, h5py.File(small, "w") as some:
        some["inputs"], some["targets"] = file["inputs"][:30], file["targets"][:30] % 2
    run(["federate", "simulate", DECK, "--sites", 3, *SETTINGS, *KEYS, "--data.train", small,
         "--data.validation", "90 %", "--run.replicas", 4, "--run.directory", scratch / "few"]).expect(
             64, "too few samples for site-00001")
    check(not (scratch / "few/first-weights").exists(), "no first weights are left behind")
    # A simulation that continues is told what it began with: which samples a site has does not change.
    for wrong, told in ((("--dirichlet", 2), "--dirichlet = 2 (was 1)"), (("--sites", 4), "--sites = 4 (was 3)"),
                        (("--rounds", 3), f"--rounds = 3 (was {SETTINGS[1]})"), (("--run.seed", 9), "run.seed = 9 (was "),
                        (("--train.steps", 5), "train.steps = 5 (was 4)")):
        simulate(directory, 1, *wrong).expect(64, "started with other options", told, "name another run.directory")
    # A damaged file of the options is not taken for other options.
    options = (directory / "options.txt").read_bytes()
    for damaged in (options[:len(options) // 2], b"", b"\0\xff" * 100, options.replace(b"--rounds", b"--round_", 1)):
        (directory / "options.txt").write_bytes(damaged)
        text = simulate(directory, 1).expect(65, "options.txt is damaged", "Remove this file to continue").text
        check("(was" not in text and "\0" not in text, f"no options: {text}")
    # In a directory of an earlier version, which has no options.txt, a refused start leaves none.
    (directory / "options.txt").unlink()
    simulate(directory, 1, "--train.steps", 5).expect(64, "holds another simulation")
    check(not (directory / "options.txt").exists(), "the options of a refused start are not kept")
    for sites, wrong, needed in ((1, (), 2), (3, ("--threshold", 5), 5)):
        simulate(scratch / "many", 2, "--secure", *wrong, "--sites", sites).expect(
            64, f"--secure with --sites {sites}", f"at least {needed} sites", f"Raise --sites to at least {needed}")


def nobody_drawn(scratch):
    """Rounds for which no site is drawn have noise, count, and stop nothing."""
    private = ["--rounds", 2, "--clip", 1, "--noise", 1, "--participation", 1e-6]
    refused = "--noise cannot be combined with the model's buffer features.norm1.running_mean"
    simulate(scratch / "norms", 1, settings=private).expect(64, refused, "model.batch-norm = false")
    run(["federate", "init", scratch / "norms/fed", DECK, "--key", scratch / "norms/key", *private, *KEYS,
         "--expected-sites", 3, "--data.train", DATA / "train.h5"]).expect(64, refused)
    check(not (scratch / "norms/fed/charter.h5").exists(), "no federation was started")
    private += ["--model.batch-norm", "false"]
    for name, more in (("nobody", []), ("nobody-secure", ["--secure"])):
        told = simulate(scratch / name, 1, *more, "--data.test", DATA / "test.h5", settings=private)
        told.expect(0, "round 2 is over: no site was drawn", "round 1: test loss", "round 2: test loss")
        run(["federate", "info", scratch / name / "federation"]).expect(0, "after 2 rounds", "over, with noise only")


def inject(phase):
    return {"LOCKSTEP_INJECT": f"kill:rank=0:phase=federate {phase}"}


class Federation:
    """Of real sites, whose data is that of the simulation's sites."""

    def __init__(self, scratch, data, *options, deck=DECK, train=DATA / "train.h5", settings=SETTINGS, keys=KEYS):
        self.directory, self.keys, self.data = scratch / "fed", scratch / "keys", data
        self.local = scratch / "local"
        run(["federate", "init", self.directory, deck, "--key", self.keys / "coordinator", *settings, *keys,
             "--data.train", train, *options]).expect(0, "fingerprint")
        for site in SITES:
            run(["federate", "join", self.directory, "--site", site, "--key", self.keys / site]).expect(0, "joined")
        for kill in ("accepted written", "plan", "plan written"):
            check(self.coordinate("--accept", "all", env=inject(kill)).code == -9, f"killed at {kill}")
        self.coordinate("--accept", "all").expect(0, "waits for site-00001, site-00002, site-00003")

    def coordinate(self, *options, env=None):
        return run(["federate", "round", self.directory, "--coordinator", "--key", self.keys / "coordinator",
                    *options], env=env)

    def words(self, site, *options):
        return ["federate", "round", self.directory, "--site", site, "--key", self.keys / site, "--data.train",
                self.data / f"{site}.h5", "--run.directory", self.local / site, *options]

    def site(self, site, *options, ranks=0, env=None):
        return run(self.words(site, *options), ranks, env)

    def waiting(self, site):
        """A site whose job takes part for as long as it is there."""
        return subprocess.Popen([LOCKSTEP, *map(str, self.words(site, "--wait", 600))], stdout=subprocess.DEVNULL)


def killed(call, phase):
    """Repeats a call until it is killed in a phase, which others may have to make possible first."""
    end = time.monotonic() + 200
    while time.monotonic() < end:
        result = call(env=inject(phase))
        if result.code == -9:
            return
        result.expect(0)
        time.sleep(0.2)
    check(False, f"never came to {phase}: {result.text}")


def disturbed_round(federation):
    """One site and the coordinator are killed in every phase, and repeat it."""
    def coordinate(phase):
        for kill in LIST_KILLS[phase]:
            killed(federation.coordinate, kill)
        if phase != "survivors":  # two sites can unmask: another call might end the round without the first
            federation.coordinate().expect(0)

    def take_part(phase):
        for kill in SITE_KILLS[phase]:
            killed(lambda env: federation.site(SITES[0], env=env), kill)
        federation.site(SITES[0]).expect(0)

    take_part("announce")
    coordinate("roster")
    take_part("shares")
    coordinate("sharers")
    result = federation.site(SITES[0], ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=3"})
    check(result.code != 0 and "update sent" not in result.text, "killed while it trains")
    take_part("update")
    coordinate("survivors")
    take_part("unmask")
    coordinate("result")


def control_variates(scratch):
    """SCAFFOLD: the same bits plain and secure; what it adds changes nothing where sites take one step a round."""
    settings = {name: ["--rounds", 2, "--min-sites", 2, "--strategy", name] for name in ("scaffold", "fedavg")}
    sgd = ["--optimizer.name", "sgd", "--optimizer.momentum", 0, "--optimizer.nesterov", "false",
           "--optimizer.learning-rate", 0.1, "--schedule.name", "constant", "--schedule.warmup-steps", 0]
    found = {}
    for name, strategy, ranks, *more in (("one", "scaffold", 1, "--train.steps", 1),
                                         ("one-plain", "fedavg", 1, "--train.steps", 1), ("more", "scaffold", 1),
                                         ("more-secure", "scaffold", 3, "--secure"), ("more-plain", "fedavg", 1)):
        simulate(scratch / name, ranks, *sgd, *more, settings=settings[strategy]).expect(0)
        found[name] = [model(scratch / name / "federation", f"round-{number:04}.h5") for number in (1, 2)]
    plain = found["more-plain"]
    check(all(same(*each) for each in zip(found["more"], found["more-secure"])), "1 and 3 ranks, plain and secure")
    check(same(found["more"][0], plain[0]), "in the first round nothing is added")
    check(not same(found["more"][1], plain[1]), "in the second something is")
    check(same(found["one"][0], found["one-plain"][0]), "the same first step")
    for name, values in found["one"][1].items():
        check(numpy.allclose(values, found["one-plain"][1][name], atol=1e-5), f"{name}: one step a round is FedAvg's")
    simulate(scratch / "adam", 1, settings=settings["scaffold"]).expect(64, "plain SGD")
    check(not (scratch / "adam/options.txt").exists(), "the options of a refused start are not kept")
    simulate(scratch / "norm", 1, *sgd, "--clip", 1, settings=settings["scaffold"]).expect(64, "--clip 1 cannot be combined with")


COPY = '''import os, pathlib, shutil, sys
own, mine, others = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
for file in mine.rglob("*.h5"):
    if own in ("all", file.stem) and ".partial" not in file.name:
        to = others / file.relative_to(mine)
        to.parent.mkdir(parents=True, exist_ok=True)
        part = to.with_name(f"{to.name}.partial-copy-{os.getpid()}")
        shutil.copyfile(file, part)
        part.rename(to)
'''


SLEEP = '''import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()) + " ")
time.sleep(900)
'''


def interrupted(words, marker, *signals, ranks=0):
    """A signal ends what lockstep does when the marker is complete, and lockstep with 75."""
    front = [os.environ["LOCKSTEP_MPIEXEC"], "-n", str(ranks)] if ranks else []
    job = subprocess.Popen([*front, LOCKSTEP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True)
    end = time.monotonic() + 300
    while not marker.exists() or not marker.read_text().endswith((" ", "\n")):
        if job.poll() is not None or time.monotonic() > end:
            job.kill()
            check(False, f"{marker} is not written: {job.communicate()[0]}")
        time.sleep(0.05)
    for number in signals:
        job.send_signal(number)
    try:
        text = job.communicate(timeout=300)[0]
    except subprocess.TimeoutExpired:
        job.kill()
        check(False, "the signal was not heard")
    check(job.returncode == 75, f"exit code {job.returncode}: {text}")
    return marker.read_text()


def one_noise(scratch, data):
    """A coordinator that is killed before the sum of a round is written publishes no other sum with its noise."""
    fed = Federation(scratch / "noisy", data, "--clip", 0.01, "--noise", 1, "--expected-sites", 3, "--model.batch-norm", "false")
    for words in ("announced", "update sent"):
        for site in SITES:
            fed.site(site).expect(0, words)
        if words == "announced":
            fed.coordinate().expect(0, "waits for")
    backup = shutil.copytree(fed.directory, scratch / "noisy/backup")

    def restored():
        shutil.rmtree(fed.directory)
        shutil.copytree(backup, fed.directory)

    check(fed.coordinate(env=inject("global")).code == -9, "killed before the model is written")
    restored()
    (fed.directory / "rounds/0001/update" / f"{SITES[2]}.h5").unlink()
    fed.coordinate("--close").expect(65, "round 1 was already ended with other updates")
    check(not (fed.directory / "global/round-0001.h5").exists(), "nothing of other survivors is published")
    fed.coordinate("--abandon").expect(0, "round 1 is abandoned", "epsilon counts the round")
    run(["federate", "info", fed.directory]).expect(0, "after 1 round,", "round 1: abandoned after its sum was made")
    found = []
    for _ in range(2):
        restored()
        fed.coordinate().expect(0, "round 1 is over: 3 sites")
        found.append(model(fed.directory, "round-0001.h5"))
    check(same(*found), "the same sum with the same noise")


def first_scale(scratch, weights):
    """All sites read their data alike: as the first weights know or, if these do not, as the coordinator's data say."""
    bare, other = scratch / "bare.safetensors", scratch / "scaled.h5"
    save_file({name.replace("/", "."): value for name, value in weights.items()}, bare)
    shutil.copy(DATA / "train.h5", other)
    with h5py.File(other, "r+") as file:
        mean = file.attrs["mean"] * 1.5
        file.attrs["mean"] = mean
    for number, (first, data, told) in enumerate((
            (bare, other, "does not say how its inputs were normalized, so all sites use the mean and std of data.train"),
            (bare, scratch / "nothing.h5", "each site uses the mean and std of its own data"),
            (scratch / "scale-0/global/round-0000.h5", DATA / "train.h5", "train.h5 is normalized with the mean and std of"))):
        run(["federate", "init", scratch / f"scale-{number}", DECK, "--key", scratch / f"scale-{number}.key", *SETTINGS,
             *KEYS, "--weights", first, "--data.train", data]).expect(0, told)
    with h5py.File(scratch / "scale-0/global/round-0000.h5") as file:
        facts = json.loads(json.loads(file["record/notes"][()])["facts"])
    check(facts["mean"] == list(mean), f"the first model knows the scale: {facts}")


def closed_terminal(scratch):
    """A simulation continues, too."""
    words = ["federate", "simulate", DECK, "--sites", 2, *KEYS, "--train.steps", 1000000, "--data.train",
             DATA / "train.h5", "--run.directory", scratch / "closed"]
    marker = scratch / "closed/sites" / SITES[0] / "round-0001/metrics.jsonl"
    interrupted(words, marker, signal.SIGHUP, signal.SIGUSR1)


def without_shared_directory(scratch, data, expected):
    """Each site has a directory of its own, and copies files from and to the coordinator's."""
    copy = scratch / "copy.py"
    copy.write_text(COPY)
    fed = Federation(scratch / "apart", data, "--secure")
    own = {site: scratch / "apart" / f"of-{site}" for site in SITES}

    def take_part(site, *options, ranks=0):
        words = fed.words(site, "--fetch", f"python3 {copy} all {fed.directory} {own[site]}", "--push",
                          f"python3  {copy} {site} {own[site]} {fed.directory}", *options)
        words[2] = own[site]
        return run(words, ranks)

    take_part(SITES[0], "--fetch", "python3 no-such-file").expect(74, "exit code 2", "run lockstep again")
    take_part(SITES[0], "--fetch", "no-such-program", ranks=2).expect(69, "no-such-program or a program that it starts cannot be found")
    told = take_part(SITES[0], "--fetch", f"{os.environ['LOCKSTEP_MPIEXEC']} -n 2 true").expect(66).text
    blamed = [line for line in told.splitlines() if "--fetch" in line and "ignored: --fetch" not in line]
    check(not blamed, f"a copy command may start ranks: {told}")
    take_part(SITES[0], "--fetch", "sleep 900", "--copy-limit", 1, ranks=2).expect(74, "did not end within 1 s")
    sleep, marker = scratch / "sleep.py", scratch / "sleeps"
    sleep.write_text(SLEEP)
    waits = f"python3 {sleep} {marker}"
    coordinate = ["federate", "round", fed.directory, "--coordinator", "--key", fed.keys / "coordinator"]
    # As training does, a round continues where its terminal was closed.
    for words, signals, ranks in (([*fed.words(SITES[0]), "--fetch", waits], [signal.SIGUSR1], 2),
                                  ([*fed.words(SITES[0]), "--fetch", waits], [signal.SIGHUP, signal.SIGUSR1], 0),
                                  ([*coordinate, "--push", waits], [signal.SIGHUP, signal.SIGTERM], 0)):
        copies = interrupted(words, marker, *signals, ranks=ranks).strip()
        check(not pathlib.Path(f"/proc/{copies}").exists(), "the copy command has ended")
        marker.unlink()
    # What was written but not pushed is pushed by the next command.
    take_part(SITES[0], "--push", "false").expect(74, "--push false failed: the command ended with exit code 1")
    # A site may measure its models on data of its own, which changes no weight.
    own_data = {SITES[2]: ("--data.validation", DATA / "test.h5")}
    for number in range(4 * SETTINGS[1]):
        for site in SITES:
            take_part(site, *own_data.get(site, ()), ranks=number % 2).expect(0)
        fed.coordinate("--push", f"python3 {copy} result {fed.directory} {scratch / 'archive'}").expect(0)
    check(same(expected, model(fed.directory)), "without a shared directory, the same bits")
    check((scratch / "archive/rounds/0001/result.h5").exists(), "the coordinator has pushed")
    fed.coordinate("--fetch", "false").expect(74, "--fetch false failed")
    check(not (own[SITES[0]] / "global" / LAST).exists(), "the last result is not here yet")
    take_part(SITES[0], "--wait", 1).expect(0, "has finished")
    check((own[SITES[0]] / "global" / LAST).exists(), "it was fetched")


def mean_gradient(weights, inputs, labels):
    """Of softmax regression with a hidden layer, over all samples at once, in float64."""
    w1, b1, w2, b2 = (weights[name] for name in PERCEPTRON)
    hidden = numpy.maximum(inputs @ w1.T + b1, 0)
    scores = hidden @ w2.T + b2
    scores -= scores.max(1, keepdims=True)
    away = numpy.exp(scores) / numpy.exp(scores).sum(1, keepdims=True)
    away[numpy.arange(len(labels)), labels] -= 1
    away /= len(labels)
    back = (away @ w2) * (hidden > 0)
    return dict(zip(PERCEPTRON, (back.T @ inputs, back.sum(0), away.T @ hidden, away.sum(0))))


def scaffold_reference(first, sites, rounds, steps, rate):
    """Option II of Karimireddy et al. (2020) with means weighted by samples."""
    server, control = dict(first), {name: 0 for name in first}
    own = [dict(control) for _ in sites]
    shares = numpy.array([len(labels) for _, labels in sites]) / sum(len(labels) for _, labels in sites)
    for _ in range(rounds):
        moves, changes = [], []
        for site, (inputs, labels) in enumerate(sites):
            weights = dict(server)
            for _ in range(steps):
                gradient = mean_gradient(weights, inputs, labels)
                weights = {name: weights[name] - rate * (gradient[name] + control[name] - own[site][name])
                           for name in weights}
            moves.append({name: weights[name] - server[name] for name in weights})
            after = {name: own[site][name] - control[name] - moves[-1][name] / (steps * rate) for name in weights}
            changes.append({name: after[name] - own[site][name] for name in weights})
            own[site] = after
        server = {name: server[name] + sum(s * m[name] for s, m in zip(shares, moves)) for name in server}
        control = {name: control[name] + sum(s * c[name] for s, c in zip(shares, changes)) for name in server}
    return server, own


def scaffold_equals_reference(scratch):
    """Sites that take steps of all their samples, in numpy and with a site that is killed while it trains."""
    deck = scratch / "perceptron.ini"
    deck.write_text("[model]\nname = mlp\nhidden = 8\n[optimizer]\nname = sgd\nlearning-rate = 0.2\n"
                    "weight-decay = 0\n[run]\nreplicas = 2\n[data]\nbatch = 3000\n"
                    "[train]\nsteps = 3\n[checkpoint]\nevery-steps = 1\n")
    rng = numpy.random.default_rng(SEED)
    data, sites = scratch / "perceptron", []
    data.mkdir()
    for site, count in zip(SITES, (700, 400, 1000)):
        labels = rng.integers(0, 3, count)
        inputs = (rng.normal(size=(count, 6)) + 2 * numpy.eye(3, 6)[labels] * rng.uniform(0, 2)).astype("f4")
        with h5py.File(data / f"{site}.h5", "w") as file:
            file["inputs"], file["targets"] = inputs, labels
            file.attrs.update({"format": numpy.bytes_("lockstep-dataset"), "version": 1,
                               "classes": numpy.array([b"a", b"b", b"c"])})
        sites.append((inputs.astype("f8"), labels))
    fed = Federation(data, data, "--strategy", "scaffold", deck=deck, train=data / f"{SITES[0]}.h5",
                     settings=["--rounds", 2, "--min-sites", 3], keys=["--monitor.weight-hash", "false"])
    for _ in range(2):
        for phase in range(2):
            for site in SITES:
                fed.site(site, ranks=1 + SITES.index(site) % 2) if phase == 0 or site != SITES[1] else None
            if phase == 1:  # killed in training, and before and after its control variate is there
                killed_one = fed.site(SITES[1], ranks=2, env={"LOCKSTEP_INJECT": "kill:rank=1:step=2"})
                check(killed_one.code != 0 and "update sent" not in killed_one.text, "killed while it trains")
                for kill in ("update", "update written"):
                    check(fed.site(SITES[1], env=inject(kill)).code == -9, f"killed at {kill}")
                fed.site(SITES[1]).expect(0)
            fed.coordinate().expect(0)
    first = {name: value.astype("f8") for name, value in model(fed.directory, "round-0000.h5").items()}
    server, own = scaffold_reference(first, sites, rounds=2, steps=3, rate=0.2)
    found = model(fed.directory, "round-0002.h5")
    for name in PERCEPTRON:
        check(numpy.abs(server[name] - found[name]).max() < 2e-5, f"{name} is numpy's")
        check(numpy.abs(first[name] - found[name]).max() > 1e-2, f"{name} has moved")
    for site, control in zip(SITES, own):
        with h5py.File(fed.local / site / "round-0002" / "control.h5") as file:
            for name in PERCEPTRON:
                check(numpy.abs(control[name] - file["model"][name][()]).max() < 1e-4, f"{site}: control of {name}")


def kinds(scratch, message, models):
    """In the places of other files, messages and global models are called what they are."""
    data, out = ("--data.train", DATA / "train.h5", "--data.validation", DATA / "test.h5"), scratch / "out.h5"
    for words in (["info", message], ["verify", message], ["diff", message, message], ["export", message, out],
                  ["quantise", message, out]):
        text = run(["checkpoint", *words]).expect(
            65, "is not a checkpoint", "it is a message of a federation", "global/round-").text
        check("damaged" not in text, text)
    run(["evaluate", DECK, message, *data]).expect(65, "it is a message of a federation")
    run(["report", message, "--output", scratch / "report"]).expect(65, "it is a message of a federation")
    run(["export", "check", message, "--data", DATA / "test.h5"]).expect(65, "it is a message of a federation")
    for file, kind in ((message, "a message"), (models[0], "a global model")):
        for words in (["data", "info", file], ["data", "verify", file], ["data", "import", "hdf5", file, out],
                      ["train", DECK, "--data.train", file, "--data.validation", "", "--run.directory", scratch / "no"]):
            run(words).expect(65, f"it is {kind} of a federation, not a data set")
    train = ["train", DECK, *data, "--run.directory", scratch / "no"]
    for key, code in (("model.weights", 65), ("distill.teacher", 65), ("checkpoint.resume", 65), ("distill.outputs", 64)):
        run([*train, f"--{key}", message]).expect(code, "it is a message of a federation")

    for file, which in zip(models, ("the first model, before any round", f"the model after round {SETTINGS[1]}")):
        text = run(["checkpoint", "info", file]).expect(0, "a global model of a federation", which, "model       cnn").text
        check(", step " not in text and " -1" not in text, text)
    run(["checkpoint", "verify", models[1]]).expect(0, "all bytes are intact")
    run(["checkpoint", "diff", *models]).expect(65, "it is a global model of a federation")
    run([*train, "--checkpoint.resume", models[1]]).expect(65, "it is a global model of a federation")


with Scratch() as scratch:
    simulate(scratch / "n1", 1).expect(0, "is over: 3 sites")
    simulate(scratch / "n3", 3, "--secure").expect(0, "is over: 3 sites")
    expected = model(scratch / "n1/federation")
    check(same(expected, model(scratch / "n3/federation")), "1 and 3 ranks, plain and secure, give the same bits")
    check(not same(expected, model(scratch / "n1/federation", "round-0000.h5")), "something was learnt")
    simulate(scratch / "n1", 1).expect(0, f"the simulation has finished: {scratch / 'n1/federation/global' / LAST}")
    if LONG:
        simulate(scratch / "n2", 2, "--secure").expect(0)
        check(same(expected, model(scratch / "n2/federation")), "so do 2 ranks")

    simulated_in_groups(scratch, expected)
    nobody_drawn(scratch)
    closed_terminal(scratch)
    first_scale(scratch, expected)
    one_noise(scratch, scratch / "n1/data")
    control_variates(scratch)
    scaffold_equals_reference(scratch)

    real = Federation(scratch, scratch / "n1/data", "--secure")
    jobs = [real.waiting(site) for site in SITES[1:]]
    try:
        for _ in range(SETTINGS[1]):
            disturbed_round(real)
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    real.coordinate().expect(0, "has finished")
    check(same(expected, model(real.directory)), "killed sites and a killed coordinator give the same bits")
    run(["evaluate", DECK, real.directory / "global" / LAST, "--data.test", DATA / "test.h5"]).expect(0, "accuracy")
    run(["federate", "info", real.directory]).expect(
        0, "over, with the updates of site-00001, site-00002, site-00003", "site-00001 has sent announce", "shares", "unmask")
    rounds = [json.loads(line) for line in run(["federate", "info", real.directory, "--json"]).text.splitlines()]
    check([round["counted"] for round in rounds] == SETTINGS[1] * [SITES], "who counts")

    kinds(scratch, real.directory / "rounds/0001/update" / f"{SITES[0]}.h5",
          [real.directory / "global" / name for name in ("round-0000.h5", LAST)])
    without_shared_directory(scratch, scratch / "n1/data", expected)

    # What a mean of models cannot be.
    for option in (("--prune.pattern", "channels"), ("--prune.pattern", "2:4"), ("--quantise.aware", "true")):
        simulate(scratch / "unfit", 1, *option).expect(64, f"{option[0][2:]}", "cannot be used in a federation's deck")

    # What a hand, a forger or a mistake may do.
    # A coordinator that would like to have copies of data and models, and all that is told, in places of its own.
    leaks = [scratch / "leak" / name for name in ("cache", "local", "run")]
    simple = Federation(scratch / "simple", scratch / "n1/data", "--clip", 0.01, "--data.cache", f"local:{leaks[0]}",
                        "--checkpoint.local", leaks[1], "--monitor.tensorboard", "true", "--run.directory", leaks[2])
    shutil.rmtree(scratch / "leak", ignore_errors=True)  # its own
    other = scratch / "other.h5"
    shutil.copy(simple.data / f"{SITES[0]}.h5", other)
    with h5py.File(other, "r+") as file:
        file.attrs["classes"] = file.attrs["classes"][::-1]
    simple.site(SITES[0], "--data.train", other).expect(65, "its class 0 is ", "but the federation calls it ")
    narrow = scratch / "narrow.h5"
    with h5py.File(simple.data / f"{SITES[0]}.h5") as good, h5py.File(narrow, "w") as file:
        file["inputs"], file["targets"] = good["inputs"][()][:, :20, :20], good["targets"][()]
        file.attrs.update(good.attrs)
    simple.site(SITES[0], "--data.train", narrow).expect(
        65, "data.train of this site does not match the federation's model", "dataset inputs has samples of shape [20, 20], but the federation has [28, 28]")
    # As the message says: labels keep their names, and become the federation's.
    with h5py.File(other) as file, h5py.File(simple.data / f"{SITES[0]}.h5") as good:
        names, theirs = ([name.decode() for name in each.attrs["classes"]] for each in (good, file))
        expected = [names.index(theirs[label]) for label in file["targets"][()]]
    fixed = scratch / "fixed.h5"
    run(["data", "import", "hdf5", other, fixed, "--classes", ",".join(names)]).expect(0)
    with h5py.File(fixed) as file:
        check(list(file["targets"][()]) == expected, "labels of the names")
        check([name.decode() for name in file.attrs["classes"]] == names, "names")
    run(["data", "import", "hdf5", other, scratch / "few.h5", "--classes", ",".join(names[1:])]).expect(
        64, f"has these classes too: {names[0]}", "List all classes of the file")
    words = [f"word{number}" for number in range(10)]
    run(["data", "import", "hdf5", other, scratch / "renamed.h5", "--classes", ",".join(words)]).expect(0, "word9")
    with h5py.File(other) as file, h5py.File(scratch / "renamed.h5") as renamed:
        check((file["targets"][()] == renamed["targets"][()]).all(), "other names, the same labels")
    with h5py.File(other, "r+") as file:
        file.attrs["classes"] = file.attrs["classes"][::-1][:9]
        file["targets"][...] = file["targets"][()] % 9
    simple.site(SITES[0], "--data.train", other).expect(65, "it lacks the class ")
    with h5py.File(other, "r+") as file:
        del file.attrs["classes"]
    simple.site(SITES[0], "--data.train", other).expect(65, "have 9 classes without names, but the model has 10")
    for site in SITES[:2]:
        simple.site(site).expect(0, "announced")
    simple.coordinate("--close").expect(0, "none from site-00003", "waits for site-00001, site-00002")
    simple.site(SITES[0], "--optimizer.learning-rate", 1).expect(64, "a site cannot change")
    # The change is weighted with the number of samples that was announced.
    simple.site(SITES[0], "--data.validation", "50 %", ranks=2).expect(
        64, f"site {SITES[0]} announced ", "for round 1: these data and options give ", "of the announcement")
    simple.site(SITES[0], ranks=2).expect(0, "update sent", "scaled to 0.01")
    check(not (scratch / "leak").exists(), f"a charter's places have no effect: {list((scratch / 'leak').rglob('*'))}")
    update = simple.directory / "rounds/0001/update/site-00001.h5"
    # A resume of the round's training with other data, where the update is lost.
    kept, data = simple.local / SITES[0] / "round-0001/update.h5", simple.data / f"{SITES[0]}.h5"
    sent, good = (update.read_bytes(), kept.read_bytes()), data.read_bytes()
    update.unlink()
    kept.unlink()
    with h5py.File(data, "r+") as file:
        file["inputs"][...] = file["inputs"][()][::-1] + 1
    refused = simple.site(SITES[0]).expect(
        64, "Repeat the command with the data and options that the training of this round began with")
    check("--force" not in refused.text, "no advice that federate round cannot follow")
    data.write_bytes(good)
    update.write_bytes(sent[0])
    kept.write_bytes(sent[1])
    flip(update, 9000)
    simple.coordinate().expect(0, "site-00001.h5 was refused", "waits for site-00001")
    simple.site(SITES[0]).expect(0, "waiting for the other sites")  # sent again
    before = update.read_bytes()
    update.write_bytes((simple.directory / "rounds/0001/announce/site-00001.h5").read_bytes())
    simple.coordinate().expect(0, "it is signed for phase announce, not for update")
    update.write_bytes(before)
    simple.coordinate("--close").expect(66, "round 1 cannot continue: it needs update messages", "but has 1",
                                          "--abandon")
    with open(simple.directory / "coordinator.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        simple.coordinate().expect(73, "another process is running as the coordinator")
    run(["federate", "round", simple.directory, "--coordinator", "--key", simple.keys / SITES[0]]).expect(64)
    (simple.keys / SITES[2]).chmod(0o640)
    simple.site(SITES[2]).expect(64, "others may read")
    simple.coordinate("--abandon").expect(0, "round 1 is abandoned")
    run(["federate", "join", simple.directory, "--site", "x", "--key", simple.keys / "x", "--coordinator", "ab"]).expect(65)
    run(["federate", "join", simple.directory, "--site", "a/b", "--key", simple.keys / "x"]).expect(64)
    copy = shutil.copy(simple.keys / SITES[0], scratch / "copy.key")
    run(["federate", "join", simple.directory, "--site", SITES[0], "--key", copy]).expect(64, "copy.key.journal) is missing")
    run(["federate", "join", simple.directory, "--site", "x", "--key", simple.directory / "x.key"]).expect(
        64, "all sites see that directory")
    run(["federate", "join", simple.directory, "--site", SITES[0], "--key", simple.keys / "other"]).expect(
        73, "a site with another key has joined under this name")
    run(["federate", "info", scratch / "nothing"]).expect(66, "no federation in")
