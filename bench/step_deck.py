"""The deck of the runs whose steps bench/device_step.py and bench/host_step.py time: no checkpoints, no checks, no plots."""

DECK = """
[run]
replicas = 1
[data]
train = {data}
batch = {batch}
workers = {workers}
prefetch = 8
drop-last = true
{sequence}
[model]
{model}
[task]
kind = {task}
[optimizer]
name = adamw
learning-rate = 0.001
[checkpoint]
every-steps = 0
[communication]
check-replicas-every = 0
[monitor]
log-every = {window}
weight-hash = off
progress = plain
tensorboard = false
plots = false
[train]
steps = {window}
"""


def write_deck(file, *, data, batch, model, window, workers=1, task="classification", sequence=""):
    """Of a run over `data`, whose record of a step is written after every `window` steps; `model` and `task` are lines of
    their sections."""
    file.write_text(DECK.format(data=data, batch=batch, model=model, window=window, workers=workers, task=task, sequence=sequence))
