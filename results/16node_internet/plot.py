#!/usr/bin/env python3
"""Draws a run's timeline and losses: plot.py RUN.h5 OUT.png (needs h5py and matplotlib)."""
import sys

import h5py
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

log, out = sys.argv[1:3]
with h5py.File(log, "r", swmr=True) as f:
    node_rounds, rounds = f["node_rounds"][:], f["rounds"][:]
    evals, steps = f["evals"][:], f["steps"][:]

figure, (timeline, losses) = plt.subplots(2, 1, figsize=(10, 7), height_ratios=[3, 2], sharex=True)
parts = [("compute", "#4c78a8"), ("up", "#f58518"), ("wait", "#e0e0e0"), ("down", "#54a24b")]
for row in node_rounds:
    start = row["start_s"]
    for name, colour in parts:
        length = row[name + "_s"]
        timeline.barh(row["node"], length, left=start, color=colour, height=0.8)
        start += length
for name, colour in parts:
    timeline.barh(0, 0, color=colour, label={"up": "upload", "down": "download"}.get(name, name))
for r in rounds:
    timeline.axvline(r["end_s"], color="black", linewidth=0.6)
timeline.set_ylabel("node")
timeline.set_yticks(range(0, node_rounds["node"].max() + 1))
timeline.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)

losses.plot(steps["virtual_s"], steps["ce"], ".", markersize=1, color="#bbbbbb", label="training, each step")
for domain in sorted(set(evals["domain"])):
    rows = evals[evals["domain"] == domain]
    losses.plot(rows["virtual_s"], rows["ce"], "o-", label=f"held out, {domain.decode()}")
losses.set_ylim(1.8, 4)
losses.set_ylabel("cross-entropy, nats per byte")
losses.set_xlabel("virtual time, s")
losses.legend(frameon=False)
figure.tight_layout()
figure.savefig(out, dpi=110)
