#!/usr/bin/env python3
"""The roofline of a machine: GFLOP/s of every operator against its flops per byte, beside the speed of a copy.

    hmc bench all --json > all.json
    python3 tools/roofline.py [--force] [--lattice 32x32x32x32] all.json roofline.svg

The line is the bound by memory, the copy's GB/s times flops per byte; caches carry small lattices beyond it. Open points have
several right-hand sides. The table has the fastest storage of each operator in each precision, with one right-hand side. Rows
with another code's count of flops are left out.
"""

import argparse
import json

import plot

PRECISIONS = ["double", "single", "half"]


def intensity(row):
    """Flops per byte."""
    return row["flops_per_site"] / row["bytes_per_site"]


def fastest(rows):
    """Of one right-hand side, by lattice, operator and precision."""
    best = {}
    for row in rows:
        key = (row["lattice"], row["operator"], row["precision"])
        faster = key not in best or row["gflop_per_second"] > best[key]["gflop_per_second"]
        if row["right_hand_sides"] == 1 and faster:
            best[key] = row
    return best.values()


def cells(row):
    """A line of the table."""
    joules = "" if row["joules"] is None else f"{row['joules']:.2e}"
    reals = "" if row["reals"] is None else str(row["reals"])
    speed, share = f"{row['gflop_per_second']:.0f}", f"{100 * row['share_of_bound']:.0f}%"
    what = [row["lattice"], row["operator"], row["precision"], reals]
    return [*what, f"{intensity(row):.2f}", speed, share, f"{row['microseconds']:.1f}", joules]


def roofline(rows, copy, title):
    """The plot as SVG."""
    xs = [intensity(row) for row in rows]
    ends = [min(xs), max(xs)]
    points = [(intensity(row), row["gflop_per_second"]) for row in rows]
    figure = plot.LogLog(points + [(x, copy * x) for x in ends], ("flops per byte", "GFLOP/s of a rank"))
    figure.line(*((x, copy * x) for x in ends), "black", 1.5)
    colours = dict(zip(dict.fromkeys(row["operator"] for row in rows), plot.COLOURS))
    for row, at in zip(rows, points):
        shape = plot.SHAPES[PRECISIONS.index(row["precision"])]
        figure.point(at, colours[row["operator"]], shape, row["right_hand_sides"] == 1)
    for operator, colour in colours.items():
        figure.legend(operator, colour)
    for precision, shape in zip(PRECISIONS, plot.SHAPES):
        figure.legend(precision, "black", shape)
    figure.legend("several right-hand sides", "black", filled=False)
    return figure.svg(title)


def main(given):
    with open(given.source) as text:
        document = json.load(text)
    rows = [row for row in document["operators"] if not row["operator"].endswith("(QUDA)")]
    rows = [row for row in rows if given.lattice in (None, row["lattice"])]
    if not rows:
        raise SystemExit(f"{given.source}: no operators" + (f" on {given.lattice}" if given.lattice else ""))
    used = {row["lattice"] for row in rows}
    copy = max(one["copy_gb_per_second"] for one in document["lattices"] if one["lattice"] in used)
    heads = ["lattice", "operator", "precision", "reals", "flops/byte", "GFLOP/s", "share", "us", "J"]
    plot.table(heads, map(cells, fastest(rows)))
    with open(given.target, "w") as svg:
        svg.write(roofline(rows, copy, f"{document['device']}: a copy moves {copy:.0f} GB/s"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lattice", help="this lattice alone, as 16x16x16x32")
    parser.add_argument("source", help="what hmc bench --json printed")
    plot.add_target(parser)
    given = parser.parse_args()
    plot.refuse_existing(parser, given)
    main(given)
