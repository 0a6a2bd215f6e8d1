"""Prints docs/thresholds.csv: every number that decides what a report says (base/thresholds.py).

python3 docs/thresholds.py >thresholds.csv    (from the top folder, with report/ in PYTHONPATH)"""

from __future__ import annotations

import csv
import sys

from commprof_report.base.thresholds import TABLE, Threshold

if __name__ == "__main__":
    csv.writer(sys.stdout, lineterminator="\n").writerows([Threshold._fields, *sorted(TABLE)])
