"""Draws docs/pictures/architecture.svg: the rooms, and what happens in a step. python3 scripts/drawing.py > FILE"""
import sys

WIDTH, MARGIN, GAP, PAD = 940, 20, 14, 12
SIZE, CHARACTER = 12.5, 7.2  # of the small text: its height, and the most that a character takes on average
BLUE, GREEN, GREY = "#dbe9f6", "#dff0d8", "#eeeeee"

# From the top; each may include rooms below it: (name, lines, fill).
ROWS = [
    [("app", ["one thin file per command: train, evaluate, plan, check, launch, data, checkpoint, bench, report, watch …"],
      GREY)],
    [("trials", ["a search on ranks: who trains which trial"], BLUE),
     ("sites", ["federations: the training of a site, simulations"], BLUE)],
    [("launch", ["restarts lost runs,", "dialog, schedulers"], GREEN),
     ("report", ["plots, live view, event", "files, comparison of runs"], GREEN),
     ("measure", ["bench, estimate, check;", "one part of it uses torch"], BLUE),
     ("serve", ["the dashboard: its page", "and its server"], GREEN)],
    [("monitor", ["watchdog, root cause, records, progress: hears of events", "from train, knows nothing of how it trains"],
      GREEN),
     ("search", ["a search: its space, strategies and journal,", "and the ranks of each trial"], GREEN)],
    [("train", ["a run: its plan, loop, records, checkpoints and end"], BLUE)],
    [("model_files", ["weights, teachers, int8, pruning"], BLUE), ("batches", ["samples, episodes, evaluation"], BLUE)],
    [("step", ["the engine"], BLUE), ("optimizer", ["rules, shards, schedule"], BLUE), ("exchange", ["gradients of devices"], BLUE)],
    [("arena", ["parameters, gradients: their layout"], BLUE), ("device", ["devices, precision"], BLUE), ("events", ["what a run reports"], GREEN)],
    [("import", ["other formats,", "codecs"], GREEN), ("federate", ["secure sums,", "accounting"], GREEN),
     ("task", ["losses, metrics"], BLUE), ("lower", ["models as graphs"], BLUE),
     ("nn", ["model registry,", "plug-ins"], BLUE)],
    [("data", ["files, order"], GREEN), ("checkpoint", ["collective,", "verified"], GREEN),
     ("rl", ["environments,", "advantages"], GREEN), ("trace", ["timelines"], GREEN),
     ("program", ["torch.export", "programs"], BLUE), ("deploy", ["ONNX, C"], GREEN)],
    [("text", ["tokenizers"], GREEN), ("h5", ["calls to HDF5"], GREEN), ("comm", ["MPI and NCCL"], GREEN),
     ("config", ["the deck"], GREEN)],
    [("base", ["errors, files, hashes, keyed random numbers, memory, signals: neither MPI nor torch"], GREEN)],
]
STEP = ["read batches", "forward, backward", "sum over the tree", "update own shard", "share weights", "write records"]

parts = []


def text(x, y, words, room, bold=False, middle=False):
    """Text that has so much room; the script fails rather than draw beyond it."""
    if not bold and len(words) * CHARACTER > room:
        sys.exit(f"no room for: {words}")
    weight = ' font-weight="bold"' if bold else f' font-size="{SIZE}"'
    anchor = ' text-anchor="middle"' if middle else ""
    parts.append(f'<text x="{x:g}" y="{y:g}"{weight}{anchor}>{words}</text>')


def rectangle(x, y, width, height, round_by, fill):
    parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_by}" '
                 f'fill="{fill}" stroke="#555"/>')


y = MARGIN
for row in ROWS:
    width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
    height = 36 + 17 * max(len(lines) for _, lines, _ in row)
    for i, (name, lines, fill) in enumerate(row):
        x = MARGIN + i * (width + GAP)
        rectangle(x, y, width, height, 6, fill)
        text(x + PAD, y + 22, name, width, bold=True)
        for k, line in enumerate(lines):
            text(x + PAD, y + 42 + 17 * k, line, width - 2 * PAD)
    y += height + GAP

for x, fill, meaning in ((MARGIN, GREEN, "without torch (liblockstep_core)"),
                         (330, BLUE, "with torch (liblockstep_trainer)")):
    rectangle(x, y, 16, 16, 3, fill)
    text(x + 24, y + 13, meaning, 300)
y += 56
text(MARGIN, y - 12, "A step", 100, bold=True)
gap = 22
width = (WIDTH - 2 * MARGIN - gap * (len(STEP) - 1)) / len(STEP)
for i, step in enumerate(STEP):
    x = MARGIN + i * (width + gap)
    rectangle(x, y, width, 40, 20, "white")
    text(x + width / 2, y + 25, step, width - PAD / 2, middle=True)
    if i:
        parts.append(f'<path d="M{x - gap + 2:g} {y + 20} L{x - 2:g} {y + 20}" stroke="#333" '
                     'stroke-width="1.5" marker-end="url(#head)"/>')
forward, share = (MARGIN + STEP.index(name) * (width + gap) + width / 2 for name in ("forward, backward", "share weights"))
parts.append(f'<path d="M{share:g} {y + 40} v22 H{forward:g} v-20" fill="none" stroke="#333" stroke-width="1.5" '
             'stroke-dasharray="5 4" marker-end="url(#head)"/>')
text((forward + share) / 2, y + 80, "between hosts: behind the forward of the next step", share - forward, middle=True)
height = y + 92 + MARGIN
print(f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="15">
<title>Rooms of Lockstep, each above what it may include, and a step of training</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>
<rect width="{WIDTH}" height="{height}" fill="white"/>''')
print("\n".join(parts))
print("</svg>")
