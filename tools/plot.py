"""A plot with two logarithmic axes, as SVG, for the other tools."""

import math
import os

WIDTH, HEIGHT = 760, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 30, 50
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"]
SHAPES = ["circle", "square", "triangle"]


class LogLog:
    """The points of (x, y) with their ranges as axes; one tick each factor of `base`, or at 1, 2 and 5 of a decade."""

    def __init__(self, points, labels, base=10):
        self.ranges = [(0.9 * min(values), 1.1 * max(values)) for values in zip(*points)]
        self.out, self.rows = [], 0
        (x_low, x_high), (y_low, y_high) = self.ranges
        for x in ticks(*self.ranges[0], base):
            self.line((x, y_low), (x, y_high), "#dddddd")
            self.text((self.x(x), HEIGHT - BOTTOM + 18), f"{x:g}")
        for y in ticks(*self.ranges[1], base):
            self.line((x_low, y), (x_high, y), "#dddddd")
            self.text((LEFT - 6, self.y(y) + 4), f"{y:g}", "end")
        self.text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10), labels[0])
        self.text((12, 16), labels[1], "start")

    def x(self, value):
        low, high = self.ranges[0]
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low) / math.log(high / low)

    def y(self, value):
        low, high = self.ranges[1]
        return TOP + (HEIGHT - TOP - BOTTOM) * math.log(high / value) / math.log(high / low)

    def text(self, at, what, anchor="middle"):
        self.out.append(f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{what}</text>')

    def line(self, a, b, colour, width=1, dashes="none"):
        ends = f'x1="{self.x(a[0]):.1f}" y1="{self.y(a[1]):.1f}" x2="{self.x(b[0]):.1f}" y2="{self.y(b[1]):.1f}"'
        self.out.append(f'<line {ends} stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>')

    def mark(self, x, y, colour, shape, filled):
        paint = f'fill="{colour if filled else "white"}" stroke="{colour}"'
        if shape == "circle":
            self.out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" {paint}/>')
        elif shape == "square":
            self.out.append(f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" {paint}/>')
        else:
            corners = f"{x:.1f},{y - 4:.1f} {x - 4:.1f},{y + 3:.1f} {x + 4:.1f},{y + 3:.1f}"
            self.out.append(f'<polygon points="{corners}" {paint}/>')

    def point(self, at, colour, shape="circle", filled=True):
        self.mark(self.x(at[0]), self.y(at[1]), colour, shape, filled)

    def legend(self, what, colour, shape="circle", filled=True):
        """One more line beside the plot."""
        x, y = WIDTH - RIGHT + 20, TOP + 10 + 18 * self.rows
        self.rows += 1
        self.mark(x, y - 4, colour, shape, filled)
        self.text((x + 12, y), what, "start")

    def svg(self, title):
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">'
        ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        return "\n".join([head, ground, *self.out, f"<title>{title}</title>", "</svg>"]) + "\n"


def ticks(low, high, base):
    """Values between both."""
    steps = (1, 2, 5) if base == 10 else (1,)
    powers = range(math.floor(math.log(low, base)), math.ceil(math.log(high, base)) + 1)
    return [step * base**n for n in powers for step in steps if low <= step * base**n <= high]


def add_target(parser):
    """The plot's name and --force."""
    parser.add_argument("--force", action="store_true", help="overwrite the plot where it exists")
    parser.add_argument("target", help="the plot (SVG)")


def refuse_existing(parser, given):
    """Ends where the plot exists, unless it may be overwritten."""
    if os.path.lexists(given.target) and not given.force:
        parser.error(f"{given.target}: exists already; --force overwrites it")


def table(heads, rows):
    """As Markdown."""
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
