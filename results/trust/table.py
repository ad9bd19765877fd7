#!/usr/bin/env python3
"""The table of README.md from what `spes-sim sweep collect` wrote and the logs of the runs.

Usage: table.py TABLE.csv FOLDER-OF-LOGS. Means over the seeds; beside each loss how many results were
refused, and the round after which the node was quarantined.
"""
import csv
import sys
from collections import defaultdict
from pathlib import Path

import h5py

DEFENCES = ("none", "norm bound", "held-out trial", "both", "median")


def refusals(log):
    """Refused results, and the round of the quarantine or None."""
    with h5py.File(log, "r", swmr=True) as file:
        refused = int(file["rounds"][:]["rejected"].sum())
        rounds = file["rounds"][:]
        for event in file["events"][:]:
            if event["kind"] == b"quarantine":
                return refused, int(rounds["round"][rounds["start_s"] <= event["virtual_s"]].max())
    return refused, None


def mean(values):
    return sum(values) / len(values)


def main():
    runs = defaultdict(list)
    with open(sys.argv[1], newline="") as file:
        for row in csv.DictReader(file):
            log = Path(sys.argv[2]) / (row["name"] + ".h5")
            runs[row["poison"], row["defence"]].append((float(row["loss"]), *refusals(log)))
    print("| node 7 | " + " | ".join(DEFENCES) + " |")
    print("|---" * (len(DEFENCES) + 1) + "|")
    for poison in dict.fromkeys(poison for poison, _ in runs):
        cells = []
        for defence in DEFENCES:
            losses, refused, last = zip(*runs[poison, defence])
            cell = f"{mean(losses):.3f}"
            if any(refused):
                cell += f" ({mean(refused):.3g} refused"
                if all(last):
                    cell += ", out after round " + "/".join(str(r) for r in sorted(set(last)))
                cell += ")"
            cells.append(cell)
        print(f"| {poison} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
