"""Draws docs/pictures/architecture.svg: the rooms, and what happens in a step. python3 scripts/drawing.py > FILE"""

WIDTH, HEIGHT, PAD = 900, 612, 14
BLUE, GREEN, GREY = "#dbe9f6", "#dff0d8", "#eeeeee"
parts = []


def box(x, y, width, height, title, lines, fill):
    parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="#555"/>')
    parts.append(f'<text x="{x + PAD}" y="{y + 22}" font-weight="bold">{title}</text>')
    for i, line in enumerate(lines):
        parts.append(f'<text x="{x + PAD}" y="{y + 42 + 17 * i}" font-size="12.5">{line}</text>')


def arrow(x1, y1, x2, y2):
    parts.append(f'<path d="M{x1} {y1} L{x2} {y2}" stroke="#333" stroke-width="1.5" marker-end="url(#head)"/>')


box(20, 20, 860, 52, "app", ["one thin file per command: train, evaluate, plan, check, launch, data, checkpoint, bench, report, watch …"], GREY)
box(20, 86, 130, 80, "launch", ["supervisor,", "dialog, schedulers"], GREEN)
box(165, 86, 130, 80, "report", ["plots, live view,", "event files"], GREEN)
box(310, 86, 350, 80, "measure", ["what bench, estimate and check measure,", "with a half that trains"], BLUE)
box(20, 180, 275, 100, "monitor", ["watchdog, root cause, records;", "told of events by train, knows", "nothing of how it trains"], GREEN)
box(310, 180, 570, 100, "train", ["engine, exchange, optimizer, run, checkpoints of a run, evaluation;", "with nn and task it is liblockstep_trainer, which sees LibTorch"], BLUE)
box(20, 294, 130, 80, "import", ["other formats,", "codecs"], GREEN)
box(165, 294, 130, 80, "checkpoint", ["collective write,", "verification"], GREEN)
box(310, 294, 110, 80, "rl", ["environments,", "advantages"], GREEN)
box(435, 294, 225, 80, "task", ["loss and metrics:", "classification, CTC, PPO …"], BLUE)
box(675, 294, 205, 80, "nn", ["models and their registry,", "scripts, plug-ins"], BLUE)
box(20, 388, 130, 52, "data", ["files, order, loader"], GREEN)
box(165, 388, 130, 52, "h5", ["all calls of HDF5"], GREEN)
box(310, 388, 350, 52, "comm", ["MPI, status reduction, replica tree, NCCL"], GREEN)
box(675, 388, 205, 52, "config", ["the deck"], GREEN)
box(20, 454, 860, 52, "base", ["errors, files, hashes, keyed random numbers, memory, signals: neither MPI nor torch"], GREEN)
for i, step in enumerate(["batches", "forward, backward", "sum over the tree", "update own shards", "publish", "records"]):
    x = 20 + 145 * i
    parts.append(f'<rect x="{x}" y="548" width="130" height="44" rx="20" fill="white" stroke="#555"/>')
    parts.append(f'<text x="{x + 65}" y="575" text-anchor="middle" font-size="12.5">{step}</text>')
    if i:
        arrow(x - 14, 570, x - 2, 570)
parts.append('<text x="20" y="538" font-weight="bold">A step</text>')
print(f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="15">
<title>Rooms of Lockstep, each above what it may include, and a step of training</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>''')
print("\n".join(parts))
print("</svg>")
