#!/usr/bin/env python3
"""Makes the README's pictures from a real run: two epochs of the sample deck on two ranks, in the checkout's root.

    scripts/pictures.py build/lockstep          # needs datasets/fashion-mnist, gnuplot; a minute

docs/pictures/run.svg     what the run printed, without the lines on each class and with long lines broken
docs/pictures/watch.svg   what `lockstep watch` showed during its second epoch
docs/pictures/loss.png    a plot of `lockstep report`
"""
import fcntl
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import time
from html import escape

COLUMNS, ROWS, CHARACTER, LINE, MARGIN, BAR = 100, 20, 7.8, 18, 16, 30
PICTURES = pathlib.Path("docs/pictures")


def picture(path, command, lines):
    """A terminal as SVG. Each line states its width, so that it fits whatever font is there."""
    rows = [f"$ {command}"] + lines
    width = round(2 * MARGIN + COLUMNS * CHARACTER)
    height = BAR + 2 * MARGIN + LINE * len(rows) - 4
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="#d8dee9">',
             f"<title>{escape(command)}</title>",
             f'<rect width="{width}" height="{height}" rx="8" fill="#20242c"/>']
    parts += [f'<circle cx="{MARGIN + 6 + 20 * i}" cy="{BAR / 2 + 3}" r="6" fill="{colour}"/>'
              for i, colour in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))]
    for i, row in enumerate(rows):
        y = BAR + MARGIN + LINE * i + 9
        colour = ' fill="#8fbcbb"' if i == 0 else ""
        # Each run of characters without a gap at its own column: spaces need no font.
        for found in re.finditer(r"\S+(?: \S+)*", row):
            x = MARGIN + found.start() * CHARACTER
            parts.append(f'<text x="{x:.1f}" y="{y}" textLength="{len(found.group()) * CHARACTER:.1f}" '
                         f'lengthAdjust="spacingAndGlyphs"{colour}>{escape(found.group())}</text>')
    path.write_text("\n".join(parts) + "\n</svg>\n")


def broken(text):
    """Lines of at most COLUMNS, without those on each class."""
    lines = [line for line in text.splitlines() if not re.match(r"  class |validation is ", line)]
    return [part for line in lines
            for part in textwrap.wrap(line, COLUMNS, subsequent_indent="    ", drop_whitespace=True)]


def shown_on_a_terminal(command):
    """What a command prints on a terminal of COLUMNS, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, close_fds=True)
    os.close(theirs)
    said = b""
    try:
        while block := os.read(ours, 65536):
            said += block
    except OSError:  # the terminal's other end is closed: the command has ended
        pass
    if child.wait() != 0:
        sys.exit(f"{command} ended with {child.returncode}:\n{said.decode()}")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode()).replace("\r", "")


def wait_for_epoch(records, run):
    """Until half of the second epoch is done."""
    while run.poll() is None:
        if records.exists() and '"step":600,' in records.read_text():
            return
        time.sleep(0.2)
    sys.exit(f"the run ended with {run.returncode} before its second epoch")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch) / "fashion_mnist"
        words = ["train", "inputs/fashion_mnist.ini", "--train.epochs", "2", "--monitor.log-every", "20"]
        with tempfile.TemporaryFile("w+") as printed:
            run = subprocess.Popen(["mpirun", "-n", "2", program, *words, "--run.directory", directory,
                                    "--monitor.progress", "plain"], stdout=printed, stderr=subprocess.STDOUT)
            wait_for_epoch(directory / "metrics.jsonl", run)
            view = shown_on_a_terminal([program, "watch", directory, "--once"])
            if run.wait() != 0:
                sys.exit(f"the run ended with {run.returncode}")
            printed.seek(0)
            said = printed.read().replace(scratch, "runs")
        picture(PICTURES / "run.svg", "mpirun -n 2 build/lockstep " + " ".join(words), broken(said))
        picture(PICTURES / "watch.svg", "build/lockstep watch runs/fashion_mnist", view.rstrip().split("\n"))
        report = pathlib.Path(scratch) / "report"
        subprocess.run([program, "report", directory, "--output", report], check=True, capture_output=True)
        shutil.copy(report / "plots/loss.png", PICTURES / "loss.png")


main()
