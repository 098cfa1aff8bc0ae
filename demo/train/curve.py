#!/usr/bin/env python3
"""Draws loss curves as SVG: curve.py OUT.svg CURVE.csv [CURVE.csv ...] (pieces of one training, in order). No dependencies."""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM = 760, 360, 60, 40
SERIES = (("loss", "next token", "#1b5e9c"), ("draft1", "draft 1", "#c7622b"), ("draft2", "draft 2", "#3a8a4d"), ("draft3", "draft 3", "#8a4d9c"))


def read(paths):
    rows, offset = [], 0
    for path in paths:
        with open(path, encoding="utf-8") as f:
            piece = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]
        rows += [dict(row, tokens=row["tokens"] + offset) for row in piece]
        offset = rows[-1]["tokens"]
    return rows


def main():
    rows = read(sys.argv[2:])
    last = rows[-1]["tokens"]
    values = [max(row[name], 1e-4) for row in rows for name, _, _ in SERIES]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    x = lambda tokens: LEFT + (WIDTH - LEFT - 20) * tokens / last
    y = lambda value: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * (math.log10(max(value, 1e-4)) - low) / (high - low)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>']
    for power in range(low, high + 1):
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>'
                   % (LEFT, y(10.0 ** power), WIDTH - 20, LEFT - 6, y(10.0 ** power) + 4, 10.0 ** power))
    for i in range(5):
        tokens = last * i / 4
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%.0f M</text>' % (x(tokens), HEIGHT - BOTTOM + 18, tokens / 1e6))
    out.append('<text x="%d" y="%d" text-anchor="middle">tokens</text>' % ((WIDTH + LEFT) // 2, HEIGHT - 6))
    for i, (name, title, color) in enumerate(SERIES):
        points = " ".join("%.1f,%.1f" % (x(row["tokens"]), y(row[name])) for row in rows)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (points, color))
        out.append('<text x="%d" y="%d" fill="%s">%s</text>' % (WIDTH - 110, 36 + 16 * i, color, title))
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n</svg>\n")


if __name__ == "__main__":
    main()
