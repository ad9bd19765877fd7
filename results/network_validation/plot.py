#!/usr/bin/env python3
"""Draws the figures of the network validation from the CSV files in this folder (needs matplotlib)."""
import csv
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = pathlib.Path(__file__).resolve().parent
COLOURS = {"packet": "#4c78a8", "coarse": "#72b7b2", "hybrid": "#f58518", "fluid": "#54a24b",
           "measured": "black", "naive": "#b0b0b0"}


def rows(name):
    path = FOLDER / f"{name}.csv"
    return list(csv.DictReader(open(path))) if path.exists() else []


def numbers(table, column):
    return [float(row[column]) for row in table]


def single_flow(axes):
    table = rows("single_flow")
    law, packet = numbers(table, "law_s"), numbers(table, "packet_s")
    axes.axhspan(-2, 2, color="#eeeeee")
    axes.plot([100 * (p / l - 1) for p, l in zip(packet, law)], "o", color=COLOURS["packet"],
              label="packet against the law")
    for level in ("coarse", "hybrid", "fluid"):
        values = numbers(table, f"{level}_s")
        axes.plot([100 * (v / p - 1) for v, p in zip(values, packet)], ".", color=COLOURS[level],
                  label=f"{level} against packet")
    axes.set_xticks(range(0, len(table), 3),
                    [f"{r['mbps']} Mbps\n{r['rtt_ms']} ms" for r in table[::3]], fontsize=6)
    axes.set_title("One lossless flow of 1, 20, 200 MB: time")
    axes.set_ylabel("difference, %")
    axes.legend(fontsize=7)


def random_loss(axes):
    table = rows("random_loss")
    places = range(len(table))
    width = 0.2
    for i, level in enumerate(("packet", "coarse", "hybrid", "fluid")):
        ratio = [v / l for v, l in zip(numbers(table, f"{level}_mbps"), numbers(table, "law_mbps"))]
        axes.bar([p + (i - 1.5) * width for p in places], ratio, width, color=COLOURS[level],
                 label=level)
    axes.axhline(1, color="black", lw=0.8)
    axes.set_xticks(places, [f"{r['congestion']}\n{r['rtt_ms']} ms\n{float(r['loss']):g}"
                             for r in table], fontsize=6)
    axes.set_title("Random loss: rate ÷ Mathis or RFC 9438")
    axes.legend(fontsize=7)


def fan(axes):
    table = rows("fan")
    places, labels = [], []
    for d, direction in enumerate(("in", "out")):
        for q, quantity in enumerate(("median_s", "p90_s", "makespan_s")):
            place = d * 4 + q
            places.append(place)
            labels.append(f"{quantity[:-2]}\n{direction}")
            for i, level in enumerate(("packet", "coarse", "hybrid", "fluid")):
                values = [float(r[quantity]) for r in table
                          if r["direction"] == direction and r["level"] == level]
                x = place + (i - 1.5) * 0.18
                axes.plot([x] * len(values), values, ".", color=COLOURS[level],
                          label=level if place == 0 else None)
                axes.plot([x - 0.07, x + 0.07], [sum(values) / len(values)] * 2,
                          color=COLOURS[level])
    axes.set_xticks(places, labels, fontsize=6)
    axes.set_ylabel("s")
    axes.set_title("Sixteen unequal flows through 1 Gbps, five draws")
    axes.legend(fontsize=7)


def kernel(axes):
    table = rows("kernel")
    axes.set_title("Linux kernel against packet")
    if not table:
        axes.text(0.5, 0.5, "not measured on this machine", ha="center")
        return
    for congestion, mark in (("cubic", "o"), ("reno", "s")):
        part = [r for r in table if r["congestion"] == congestion]
        for streams, size in (("1", 3), ("4", 5), ("8", 7)):
            some = [r for r in part if r["streams"] == streams]
            axes.plot(numbers(some, "kernel_goodput_mbps"), numbers(some, "packet_goodput_mbps"),
                      mark, ms=size, fillstyle="none", label=f"{congestion}, {streams} streams")
    low, high = 10, 400
    axes.plot([low, high], [low, high], color="black", lw=0.8)
    axes.fill_between([low, high], [0.85 * low, 0.85 * high], [1.15 * low, 1.15 * high],
                      color="#eeeeee")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("kernel, Mbps")
    axes.set_ylabel("packet, Mbps")
    axes.legend(fontsize=6)


def diloco():
    table = rows("diloco")
    figure, panels = plt.subplots(1, 4, figsize=(14, 3.6), sharey=True)
    for axes, h in zip(panels, ("1", "8", "32", "128")):
        part = [r for r in table if r["h"] == h]
        rates = numbers(part, "mbps")
        for name, style in (("measured", "o"), ("naive", ":"), ("packet", "-"), ("hybrid", "--"),
                            ("fluid", "-.")):
            axes.plot(rates, numbers(part, f"{name}_utilisation"), style, color=COLOURS[name],
                      label=name)
        axes.set_xscale("log")
        axes.set_title(f"H = {h}")
        axes.set_xlabel("Mbps")
    panels[0].set_ylabel("share of the time that computes")
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(FOLDER / "diloco.png", dpi=90)


figure, panels = plt.subplots(2, 2, figsize=(12, 8))
for axes, draw in zip(panels.flat, (single_flow, random_loss, fan, kernel)):
    draw(axes)
figure.tight_layout()
figure.savefig(FOLDER / "levels.png", dpi=90)
diloco()
