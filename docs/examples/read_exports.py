#!/usr/bin/env python3
"""Reads what `loadline export` wrote with pyarrow and hdrhistogram, and holds it against the run folder.

    python3 -m venv venv && venv/bin/pip install pyarrow hdrhistogram
    loadline export RUN --format parquet --output tables && loadline export RUN --format hlog --output run.hlog
    venv/bin/python read_exports.py RUN_FOLDER tables run.hlog
"""

import csv
import json
import math
import pathlib
import sys

import pyarrow.parquet as parquet
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram

run, tables, log = (pathlib.Path(arg) for arg in sys.argv[1:4])
records = [json.loads(line) for line in (run / "tests.jsonl").read_text().splitlines()]

tests = parquet.read_table(tables / "tests.parquet")
assert tests.num_rows == len(records), (tests.num_rows, len(records))
compared = 0
for record, row in zip(records, tests.to_pylist()):
    assert row["valid"] == record["valid"] and row["test"] == record["test"]
    for name, value in row.items():
        if isinstance(record.get(name), (int, float)) and value is not None:
            assert value == record[name], (name, value, record[name])
            compared += 1
print(f"tests: {tests.num_rows} rows, {compared} figures equal, {tests.num_columns} columns")

series = parquet.read_table(tables / "series.parquet").to_pylist()
seen = 0
for record in records:
    with open(run / "series" / f"{record['test']}.csv", newline="") as file:
        stored = list(csv.DictReader(file))
    rows = [row for row in series if row["test"] == record["test"]]
    assert len(rows) == len(stored), (record["test"], len(rows), len(stored))
    for row, cells in zip(rows, stored):
        for name, cell in cells.items():
            assert row[name] == (float(cell) if cell else None), (record["test"], name, row[name], cell)
            seen += 1
print(f"series: {len(series)} rows, {seen} cells equal")

buckets = parquet.read_table(tables / "histograms.parquet").to_pylist()
reader = HistogramLogReader(str(log), HdrHistogram(1, 3_600_000_000_000, 3))
intervals = 0
while (interval := reader.get_next_interval_histogram()) is not None:
    test, kind = interval.get_tag().split("-", 1)
    of = [row for row in buckets if row["test"] == int(test) and row["kind"] == kind]
    assert sum(row["count"] for row in of) == interval.get_total_count(), interval.get_tag()
    record = records[int(test) - 1]
    for share, column in ((50, "p50"), (99, "p99")):
        # hdrhistogram rounds the rank, loadline takes the next whole one: the smallest value that this share is not above.
        rank = math.ceil(interval.get_total_count() * share / 100)
        value = interval.get_value_at_percentile(100 * rank / max(interval.get_total_count(), 1))
        stated = record.get(f"{kind}_time_ns_{column}")
        if interval.get_total_count() and stated is not None and "imported" not in record:
            # loadline never states more than the exact maximum, which a bucket does not have.
            assert value == stated or value >= stated == record[f"{kind}_time_ns_max"], (interval.get_tag(), value, stated)
    print(f"{interval.get_tag()}: {interval.get_total_count()} values, p99 {value} ns")
    intervals += 1
# An empty histogram is an interval without buckets.
assert intervals >= len({(row["test"], row["kind"]) for row in buckets})
print(f"log: {intervals} intervals")
