#!/usr/bin/env python3
"""Writes docs/reference.md: every command and every key, as the program itself tells them.

    scripts/reference.py build/lockstep > docs/reference.md
"""
import os
import re
import subprocess
import sys

HEAD = """# Reference

This page lists all commands, all keys of decks, all models and all tasks, as this version of the program prints
them. `scripts/reference.py build/lockstep > docs/reference.md` writes the page, and a test compares the page with
the output of the program. For an overview see the [quick reference](quick_reference.md).
"""

INCLUDE = """### include

The line `include = FILE`, before the first section of a deck, includes another deck. FILE is relative to the
directory of the including deck. Several such lines are read in order. Values in the including deck take precedence
over values in included decks. If several decks on the command line set the same key, the value in the last deck
applies. If a later deck or the command line names another `model.name` or `task.kind`, the keys of the earlier model
or task are ignored, and each of these keys is reported. Two keys for one thing, such as `data.batch` and
`data.global-batch`, are treated like one key: the later deck or the command line decides, and the other key is
reported. One deck may set only one of the two. At most 64 decks can be included, at most 8 levels deep. Each deck is
UTF-8 text of at most 1 MiB, with lines of at most 64 KiB.

When a run is resumed, not all keys may differ from those it began with: `task.kind` and most keys of `model` and
`task`, for example, may change only with `--force`. [Checkpoints](checkpoints.md#keys) lists what may change.

A `#` at the start of a line or after a blank begins a comment, except in the quotes of a list's entry:
`name = run#3` and `train = "a #1.h5", b.h5` are whole values."""


def told(program, *words, columns=100):
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True,
                          env={**os.environ, "COLUMNS": str(columns)}).stdout.rstrip()


def code(text):
    return f"```\n{text}\n```\n"


def cell(text):
    return text.replace("|", "\\|").strip()


def keys(text):
    """A table for each section, of lines "  section.key (default) choices" and a meaning below."""
    section, lines = None, []
    for name, default, choices, meaning in re.findall(
            r"^  ([a-z-]+\.[a-z0-9*-]+)(?: \((.*?)\))?(.*)\n      (.*)$", text + "\n", re.M):
        if name.split(".")[0] != section:
            section = name.split(".")[0]
            lines += [f"\n### [{section}]\n", "| key | default | is |", "|---|---|---|"]
        choices = ", ".join(choice.strip() for choice in choices.split("|") if choice.strip())
        meaning = f"{choices}: {meaning}" if choices else meaning
        lines.append(f"| `{name}` | {f'`{cell(default)}`' if default else ''} | {cell(meaning)} |")
    return "\n".join(lines) + "\n"


def kinds(text):
    """A table for each "name: meaning" line, of the "    key (default)  meaning" lines below it."""
    lines = []
    for line in text.splitlines():
        own = re.match(r"    (\S+) \((.*?)\)  (.*)", line)
        if own:
            if lines[-1].startswith("#"):
                lines += ["", "| key | default | is |", "|---|---|---|"]
            name, default, meaning = own.groups()
            lines.append(f"| `{name}` | {f'`{cell(default)}`' if default else ''} | {cell(meaning)} |")
        elif line and not line.startswith(" "):
            name, _, meaning = line.partition(": ")
            lines += ["", f"### {name}", "", f"{meaning[:1].upper()}{meaning[1:]}."]
            lines.append("#")  # a table may follow
    return "\n".join(line for line in lines if line != "#") + "\n"


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/lockstep"
    commands = re.findall(r"^  ([a-z-]+)(?= |$)", told(program), re.M)
    print(HEAD)
    print("## Commands\n")
    for command in commands:
        if command in ("models", "tasks"):
            continue
        text = told(program, command)
        if command == "train":
            text = (text[:text.index("Keys of the deck")].rstrip() +
                    "\n\nThe command also lists the keys of a deck, which are described below.")
        print(f"### lockstep {command}\n\n{code(text)}")
        if command == "data":
            print(code(told(program, "data", "import")))
    keys_of_deck = told(program, "train", columns=10000)
    print("## Keys of a deck\n\nIn a deck, a key is set below its `[section]`. `--section.key VALUE` on "
          "the command line takes precedence over decks.\n\n" + INCLUDE)
    print(keys(keys_of_deck[keys_of_deck.index("Keys of the deck"):]))
    changes = subprocess.run([program, "data", "augment"], check=True, capture_output=True, text=True).stdout
    print("## Entries of data.augment\n\nAn entry `NAME:ARGUMENT…@P` is applied to a sample with probability P, which has "
          "the default in the table.\n\n| entry | of | P | a sample becomes |\n|---|---|---|---|")
    for form, meaning, chance, samples in re.findall(r"^(\S+): (.*)\n    probability (\S+), for (.*)$", changes, re.M):
        print(f"| `{form}` | {samples} | {chance} | {cell(meaning)} |")
    print()
    for title, command in (("Models", "models"), ("Tasks", "tasks")):
        text = subprocess.run([program, command], check=True, capture_output=True, text=True).stdout
        print(f"## {title}\n{kinds(text)}")


main()
