#!/usr/bin/env python3
"""The table of README.md from what `spes-sim sweep collect` wrote.

Usage: table.py TABLE.csv. Each setting is a mean over its seeds with its standard error.
"""
import csv
import math
import sys
from collections import defaultdict


def mean_and_error(values):
    """Mean and standard error; NaN where there is any."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, math.nan
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def number(text):
    return float(text) if text else math.nan


def main():
    runs = defaultdict(list)
    with open(sys.argv[1], newline="") as file:
        for row in csv.DictReader(file):
            runs[row["setting"]].append(row)
    # FedAvg and data-parallel training at each learning rate.
    ends = defaultdict(dict)
    for setting, rows in runs.items():
        for method in ("FedAvg", "data-parallel"):
            if setting.split(" lr")[0] == method:
                loss = mean_and_error([number(r["loss"]) for r in rows])[0]
                ends[rows[0]["training.lr"]][method] = loss
    print("| setting | loss | gcide | wordnet | of the distance | up | down | to target | memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    for setting, rows in runs.items():
        def column(key):
            return [number(r[key]) for r in rows]

        def mean(key):
            return mean_and_error(column(key))[0]

        loss, error = mean_and_error(column("loss"))
        fedavg, parallel = (ends[rows[0]["training.lr"]][m] for m in ("FedAvg", "data-parallel"))
        reached = [t for t in column("target_s") if not math.isnan(t)]
        target = f"{sum(reached) / len(reached):.0f} s" if reached else "never"
        if reached and len(reached) < len(rows):
            target += f" ({len(reached)} of {len(rows)})"
        print(f"| {setting} | {loss:.4f} ± {error:.4f} | {mean('loss.gcide'):.4f} "
              f"| {mean('loss.wordnet'):.4f} | {(fedavg - loss) / (fedavg - parallel):.0%} "
              f"| {mean('node_up_bytes') / 1e6:.1f} MB | {mean('node_down_bytes') / 1e6:.1f} MB "
              f"| {target} | {mean('node_memory_bytes') / 2**20:.1f} MiB |")


if __name__ == "__main__":
    main()
