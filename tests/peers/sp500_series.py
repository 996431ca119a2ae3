#!/usr/bin/env python3
"""Writes the closing prices of 20 companies, 1990-2022, which come with the Python package skfolio
(BSD-3), as a table that `lockstep data import series` reads: one row for each day and company.

    pip download --no-deps -d wheels skfolio==1.12.2
    python3 tests/peers/sp500_series.py wheels/skfolio-*.whl sp500.csv
    build/lockstep data import series sp500.csv datasets/sp500.h5 --time Date --group Name --type f64
"""
import csv
import gzip
import io
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    table = gzip.decompress(wheel.read("skfolio/datasets/data/sp500_dataset.csv.gz")).decode()
with open(sys.argv[2], "w", newline="") as out:
    writer = csv.writer(out)
    writer.writerow(["Date", "Name", "Close"])
    for row in csv.DictReader(io.StringIO(table)):
        date = row.pop("Date")
        writer.writerows([date, name, price] for name, price in row.items())
