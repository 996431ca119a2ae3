"""Draws docs/pictures/architecture.svg: the rooms, and what happens in a step. python3 scripts/drawing.py > FILE"""

WIDTH, HEIGHT, PAD = 900, 560, 14
BLUE, GREEN, GREY = "#dbe9f6", "#dff0d8", "#eeeeee"
parts = []


def box(x, y, width, height, title, lines, fill):
    parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="#555"/>')
    parts.append(f'<text x="{x + PAD}" y="{y + 22}" font-weight="bold">{title}</text>')
    for i, line in enumerate(lines):
        parts.append(f'<text x="{x + PAD}" y="{y + 42 + 17 * i}" font-size="12.5">{line}</text>')


def arrow(x1, y1, x2, y2):
    parts.append(f'<path d="M{x1} {y1} L{x2} {y2}" stroke="#333" stroke-width="1.5" marker-end="url(#head)"/>')


box(20, 20, 860, 62, "app", ["one file per command: train, evaluate, plan, check, launch, data, checkpoint, bench, report, watch …"], GREY)
box(20, 100, 420, 100, "monitor", ["watchdog, root cause, records, reports, live view,", "event files; told of events by train,", "knows nothing of how it trains"], GREEN)
box(460, 100, 420, 100, "train", ["engine, exchange, optimizer, run,", "checkpoints of a run, evaluation;", "liblockstep_trainer, with nn and task"], BLUE)
box(460, 218, 200, 80, "task", ["loss and metrics:", "classification, CTC, PPO …"], BLUE)
box(680, 218, 200, 80, "nn", ["models and their registry,", "scripts, plug-ins"], BLUE)
box(20, 218, 130, 80, "checkpoint", ["collective write,", "verification"], GREEN)
box(165, 218, 130, 80, "data", ["files, order,", "loader, importers"], GREEN)
box(310, 218, 130, 80, "rl", ["environments,", "advantages"], GREEN)
box(20, 316, 275, 62, "h5", ["the only caller of HDF5"], GREEN)
box(310, 316, 350, 62, "comm", ["MPI, status reduction, replica tree, NCCL"], GREEN)
box(680, 316, 200, 62, "config", ["the deck"], GREEN)
box(20, 396, 860, 52, "base", ["errors, files, hashes, keyed random numbers, memory, signals: neither MPI nor torch"], GREEN)
for i, step in enumerate(["batches", "forward, backward", "sum over the tree", "update own shards", "publish", "records"]):
    x = 20 + 145 * i
    parts.append(f'<rect x="{x}" y="490" width="130" height="44" rx="20" fill="white" stroke="#555"/>')
    parts.append(f'<text x="{x + 65}" y="517" text-anchor="middle" font-size="12.5">{step}</text>')
    if i:
        arrow(x - 14, 512, x - 2, 512)
parts.append('<text x="20" y="480" font-weight="bold">A step</text>')
print(f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="15">
<title>Rooms of Lockstep, each above what it may include, and a step of training</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>''')
print("\n".join(parts))
print("</svg>")
