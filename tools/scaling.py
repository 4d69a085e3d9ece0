#!/usr/bin/env python3
"""Strong scaling: how much faster trajectories of one input are on more GPUs.

    for n in 1 2 4; do mpirun -n $n hmc bench trajectory RUN.toml --json > $n.json; done
    python3 tools/scaling.py [--force] 1.json 2.json 4.json scaling.svg

Speed is relative to the fewest ranks, efficiency is speed over ranks; the dashed line has efficiency 1. Solvers that depend on the
ranks (Schwarz blocks of a rank's box) may take other numbers of iterations, so the table has them.
"""

import argparse
import json

import plot


def load(source):
    """A document of `hmc bench trajectory`."""
    with open(source) as text:
        return json.load(text)


def cells(one, first):
    """A line of the table."""
    speed = first["seconds"] / one["seconds"]
    efficiency = 100 * speed * first["ranks"] / one["ranks"]
    iterations = sum(term["iterations"] for term in one["terms"])
    joules = "" if one["joules"] is None else f"{one['joules']:.0f}"
    day = f"{one['trajectories_a_day']:.0f}"
    return [str(one["ranks"]), f"{one['seconds']:.3g}", day, f"{speed:.2f}", f"{efficiency:.0f}%", str(iterations), joules]


def scaling(all_of_them, title):
    """The plot as SVG."""
    first = all_of_them[0]
    points = [(one["ranks"], first["seconds"] / one["seconds"]) for one in all_of_them]
    ideal = [(ranks, ranks / first["ranks"]) for ranks, _ in points]
    figure = plot.LogLog(points + ideal, ("ranks", "speed"), base=2)
    figure.line(ideal[0], ideal[-1], "black", dashes="4")
    for a, b in zip(points, points[1:]):
        figure.line(a, b, plot.COLOURS[0], 1.5)
    for at in points:
        figure.point(at, plot.COLOURS[0])
    figure.legend(first["lattice"], plot.COLOURS[0])
    return figure.svg(title)


def main(given):
    all_of_them = sorted(map(load, given.sources), key=lambda one: one["ranks"])
    lattices = {one["lattice"] for one in all_of_them}
    ranks = [one["ranks"] for one in all_of_them]
    if len(lattices) > 1 or len(set(ranks)) < len(ranks):
        raise SystemExit(f"expected one lattice on different numbers of ranks, found {sorted(lattices)} on {ranks}")
    heads = ["ranks", "seconds", "a day", "speed", "efficiency", "iterations", "J"]
    plot.table(heads, (cells(one, all_of_them[0]) for one in all_of_them))
    with open(given.target, "w") as svg:
        svg.write(scaling(all_of_them, f"{all_of_them[0]['lattice']}, {all_of_them[0]['device']}"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", help="what hmc bench trajectory --json printed")
    plot.add_target(parser)
    given = parser.parse_args()
    plot.refuse_existing(parser, given)
    main(given)
