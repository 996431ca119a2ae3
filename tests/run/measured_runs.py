"""Runs that measure the same to the last digit on any number of ranks and after a resume."""
import h5py

from harness import LONG, check, check_same, records, run

DECK = """
[run]
replicas = 6
device = cpu
[data]
train = {scratch}/{name}.h5
{data}
validation = {scratch}/{name}.h5
test = {scratch}/{name}.h5
global-batch = 60
[model]
{model}
[task]
{task}
[optimizer]
learning-rate = 0.01
[checkpoint]
every-steps = 4
[monitor]
log-every = 4
progress = plain
tensorboard = false
plots = false
[train]
steps = 8
validate-every = 4
"""
TIMES = ("time", "seconds", "elapsed_s")


def write(scratch, name, **fields):
    with h5py.File(scratch / f"{name}.h5", "w") as file:
        for key, values in fields.items():
            if key == "classes":
                file.attrs[key] = values
            else:
                file[key] = values


def measured(directory):
    """The records of measurements, without times."""
    return [{key: value for key, value in record.items() if key not in TIMES}
            for kind in ("validation", "test") for record in records(directory, kind)]


def same_on_any_ranks(scratch, name, model, task, data=""):
    """Trains on several numbers of ranks, once in two halves, and evaluates; returns a deck and its run."""
    deck = scratch / f"{name}.ini"
    deck.write_text(DECK.format(scratch=scratch, name=name, model=model, task=task, data=data))
    ranks = (1, 2, 3) if LONG else (1, 3)
    for count in ranks:
        run(["train", deck, "--run.directory", scratch / f"{name}-{count}"], ranks=count).expect(0)
        check(measured(scratch / f"{name}-{count}") == measured(scratch / f"{name}-1"),
              f"{name}: 1 and {count} ranks measure the same")
    half = scratch / f"{name}-half"
    run(["train", deck, "--run.directory", half, "--train.steps", 4, "--data.test", ""], ranks=2).expect(0)
    run(["train", deck, "--run.directory", half], ranks=1).expect(0)
    check(measured(half) == measured(scratch / f"{name}-1"), f"{name}: the same after a resume")
    check_same(half, scratch / f"{name}-1", f"{name}: the same weights after a resume")
    test = measured(scratch / f"{name}-1")[-1]
    told = run(["evaluate", deck, scratch / f"{name}-1"], ranks=2).expect(0)
    by_class = [line.split() for line in told.expect(0).text.splitlines() if line.startswith("  ")]
    heads = next((words for words in by_class if words[0] in ("class", "target")), [])
    for metric, value in test.items():
        over_all, _, of_class = metric.partition(".")
        if isinstance(value, float) and of_class:
            row = next(words for words in by_class if words[0] == of_class and len(words) == len(heads))
            check(row[heads.index(over_all)] == f"{value:.6f}", f"{metric} {value} is in the table: {row}")
        elif isinstance(value, float) and metric != "epoch":
            told.expect(0, f"{metric} {value:.6f}")
    return deck, scratch / f"{name}-1", test, told
