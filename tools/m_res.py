#!/usr/bin/env python3
"""Residual masses of domain-wall quarks against N_s, as a table and as a plot.

    hmc measure --input M.toml --json CFG... > m_res.jsonl
    python3 tools/m_res.py [--force] m_res.jsonl m_res.svg

Correlators are to be named FAMILY-NS, as "shamir-8". Two residual masses are made of correlators averaged over the configurations, their
errors by the jackknife: R, the mean of R(t) = <J5q P>(t) / <P P>(t) over Lt/4 <= t <= 3 Lt/4, and "sum", sum_t <J5q P>(t) / sum_t <P P>(t)
(Chen, Chiu, arXiv:1205.6151; dashed in the plot). What is negative is an open point at its size.
"""

import argparse
import json
import math
import os

WIDTH, HEIGHT = 640, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 30, 50
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]


def plateau(midpoint, pion):
    """The mean of their ratio over the middle of the lattice."""
    length = len(pion)
    middle = range(math.ceil(length / 4), 3 * length // 4 + 1)
    return sum(midpoint[t] / pion[t] for t in middle) / len(middle)


def whole(midpoint, pion):
    """The ratio of their sums."""
    return sum(midpoint) / sum(pion)


def residual_mass(configurations, name, ratio):
    """m_res and its error; none of a single configuration."""
    found = [next(c for c in entry["correlators"] if c["name"] == name) for entry in configurations]

    def mean(some):
        return ratio(*([sum(at) for at in zip(*(c[key] for c in some))] for key in ("midpoint", "re")))

    n = len(found)
    if n == 1:
        return mean(found), None
    without = [mean(found[:i] + found[i + 1 :]) for i in range(n)]
    centre = sum(without) / n
    return mean(found), math.sqrt((n - 1) / n * sum((x - centre) ** 2 for x in without))


def number(value, error):
    """As 1.23(4)e-5."""
    if error is None:
        return f"{value:.2e}"
    exponent = math.floor(math.log10(abs(value)))
    digits = max(1, exponent - math.floor(math.log10(error)) + (error / 10 ** math.floor(math.log10(error)) < 3))
    scaled = f"{value / 10**exponent:.{digits}f}"
    return f"{scaled}({round(error / 10 ** (exponent - digits))})e{exponent}"


def plot(masses, title):
    """SVG: m_res, logarithmic, against N_s."""
    points = [(n, abs(value)) for family in masses.values() for n, (value, _) in family.items()]
    low = math.floor(math.log10(min(value for _, value in points)))
    high = math.ceil(math.log10(max(value for _, value in points)))
    last = max(n for n, _ in points) + 1

    def x(n):
        return LEFT + (WIDTH - LEFT - RIGHT) * n / last

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(value)) / (high - low)

    def text(at, what, anchor="middle"):
        return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{what}</text>'

    def line(a, b, colour, width=1, dashes=0):
        ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
        return f'<line {ends} stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes or "none"}"/>'

    floor = HEIGHT - BOTTOM
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10), "N_s"),
        text((12, 14), "m_res", "start"),
    ]
    for decade in range(low, high + 1):
        at = y(10.0**decade)
        out += [line((LEFT, at), (WIDTH - RIGHT, at), "#dddddd"), text((LEFT - 6, at + 4), f"1e{decade}", "end")]
    for n in range(0, last + 1, 4):
        out += [line((x(n), floor), (x(n), floor + 5), "black"), text((x(n), floor + 20), n)]
    families = list(dict.fromkeys(family for family, _ in masses))
    for (family, kind), values in masses.items():
        row = families.index(family)
        colour, dashes = COLOURS[row], 4 if kind == "sum" else 0
        ends = [(x(n), y(abs(value))) for n, (value, _) in sorted(values.items())]
        out += [line(a, b, colour, 1.5, dashes) for a, b in zip(ends, ends[1:])]
        for n, (value, error) in sorted(values.items()):
            at, fill = (x(n), y(abs(value))), colour if value > 0 else "white"
            if error:
                least = max(abs(value) - error, 10.0**low)
                out.append(line((at[0], y(least)), (at[0], y(min(abs(value) + error, 10.0**high))), colour, 1.5))
            out.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.5" fill="{fill}" stroke="{colour}"/>')
        at = (WIDTH - RIGHT - 110, TOP + 20 + 20 * row)
        if kind == "R":
            out += [line((at[0], at[1] - 4), (at[0] + 24, at[1] - 4), colour, 2), text((at[0] + 32, at[1]), family, "start")]
    out += [f"<title>{title}</title>", "</svg>"]
    return "\n".join(out) + "\n"


def main(source, target):
    with open(source) as lines:
        configurations = [json.loads(line) for line in lines]
    masses = {}
    for correlator in configurations[0]["correlators"]:
        family, n_s = correlator["name"].rsplit("-", 1)
        for kind, ratio in (("R", plateau), ("sum", whole)):
            found = residual_mass(configurations, correlator["name"], ratio)
            masses.setdefault((family, kind), {})[int(n_s)] = found
    heads = [f"{family}, {kind}" for family, kind in masses]
    print("| N_s | " + " | ".join(heads) + " |\n|" + "---|" * (1 + len(masses)))
    for n_s in sorted({n for values in masses.values() for n in values}):
        row = [number(*values[n_s]) if n_s in values else "" for values in masses.values()]
        print(f"| {n_s} | " + " | ".join(row) + " |")
    with open(target, "w") as svg:
        svg.write(plot(masses, f"Residual masses, {len(configurations)} configurations"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--force", action="store_true", help="overwrite the plot where it exists")
    parser.add_argument("source", help="what hmc measure --json printed")
    parser.add_argument("target", help="the plot (SVG)")
    given = parser.parse_args()
    if os.path.lexists(given.target) and not given.force:
        parser.error(f"{given.target}: exists already; --force overwrites it")
    main(given.source, given.target)
