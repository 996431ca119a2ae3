#!/usr/bin/env python3
"""Makes data sets of 620 recorded Russian sentences with their phones (Debian's package festvox-ru,
(c) 2005 N. Shmyrev): OUT/train.h5 and OUT/test.h5, log-mel features and places of phones.

    python3 scripts/festvox_ru.py OUT [--sentences N] [--download] [--lockstep build/lockstep]

The recordings are looked for where LOCKSTEP_FESTVOX_RU says, where the package installs them, and in
OUT; --download gets the package (179 MB) from the configured Debian archive and unpacks it into OUT,
without installing it or the synthesizer it is for. Sentence i of the sorted list is for testing when
i % 10 == 9. --sentences takes the first N only. Exits with 77 when there are no recordings.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import sys

VOICE = "usr/share/festival/voices/russian/msu_ru_nsh_clunits"


def find_voice(out):
    places = [os.environ.get("LOCKSTEP_FESTVOX_RU", ""), "/" + VOICE, out / "package" / VOICE]
    return next((pathlib.Path(place) for place in places
                 if place and (pathlib.Path(place) / "lab").is_dir()), None)


def download(out):
    package = out / "package"
    package.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "-qq", "download", "festvox-ru"], cwd=package, check=True)
    for file in package.glob("festvox-ru_*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(file), str(package)], check=True)
        file.unlink()


def phones(label_file):
    """The third word of each line after the one that begins with #."""
    lines = label_file.read_text().splitlines()
    return [line.split()[2] for line in lines[lines.index("#") + 1:] if line.strip()]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--download", action="store_true")
    parser.add_argument("--lockstep", default="build/lockstep")
    options = parser.parse_args()
    voice = find_voice(options.out)
    if voice is None and options.download:
        download(options.out)
        voice = find_voice(options.out)
    if voice is None:
        print("no recordings were found: install Debian's festvox-ru, set LOCKSTEP_FESTVOX_RU to its directory "
              "with lab and wav, or add --download")
        sys.exit(77)
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / "transcripts.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "text", "set"])
        for number, label_file in enumerate(sorted((voice / "lab").glob("*.lab"))):
            if options.sentences is None or number < options.sentences:
                rows.writerow([label_file.stem + ".wav", " ".join(phones(label_file)),
                               "test" if number % 10 == 9 else "train"])
    sys.exit(subprocess.run([options.lockstep, "data", "import", "speech", str(voice / "wav"),
                             str(options.out), "--transcripts", str(table), "--units",
                             "words"]).returncode)


if __name__ == "__main__":
    main()
