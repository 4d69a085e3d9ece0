#!/usr/bin/env python3
"""Strong scaling by a model: measured kernels of one GPU, and two numbers for each kind of wire.

    python3 tools/model.py [--network LATENCY,BANDWIDTH] [--node GPUS]

An exchange of a hop that sends B bytes over a wire costs alpha + B / b beyond the kernels of one GPU, however many of its faces go
there; wires that are used at once (memory of the node, network) do not wait for each other. A trajectory on N GPUs takes

    L a + (T - L a) V / (V0 N) + H max over wires (alpha + B / b) + S sigma,

where the trajectory on V0 sites took T seconds on one GPU with L launches, H hops that exchange and S sums. `a` is what a launch
costs on the smallest box. The numbers are those of docs/performance.md; 'Two and four GPUs of one host' there says how well they meet what was measured.
"""

import argparse
import itertools
import math

import plot

LAUNCH = 1.5e-6
# alpha in seconds, b in bytes a second: memory of other GPUs over NVLink
MEMORY = (1.5e-6, 180e9)
# a sum over the ranks of a node, over nodes
SUM = {False: 5.5e-6, True: 20e-6}

# Hops on two GPUs cut in t: microseconds of one GPU on the same box, of two; bytes that a GPU sends.
HOPS = [
    ("Wilson 16^4, double", 9.7, 12.89, 393216),
    ("Wilson 16^4, single", 6.5, 8.66, 196608),
    ("Wilson 16^4, half", 5.9, 8.97, 196608),
    ("Wilson 24^4, double", 53.6, 65.66, 1327104),
    ("Wilson 24^4, single", 29.4, 33.60, 663552),
    ("Wilson 24^4, half", 23.8, 27.99, 663552),
    ("staggered 24^4, double", 89.1, 94.3, 2322432),
    ("staggered 24^4, single", 49.3, 51.9, 1161216),
    ("staggered 24^4, half", 33.4, 40.0, 1161216),
    ("domain walls 16^4 x 16, double", 108.1, 146.9, 6291456),
    ("domain walls 16^4 x 16, single", 58.4, 71.2, 3145728),
    ("domain walls 16^4 x 16, half", 50.4, 71.4, 3145728),
]

# Trajectories: lattice, seconds on one GPU and on two, launches, hops that exchange, sums, bytes a site of the rank's faces.
RUNS = {
    "2+1 clover": ((24, 24, 24, 48), 11.3, 7.3, 244e3, 96e3, 48e3, 24),
    "2+1+1 HISQ": ((24, 24, 24, 48), 2.51, 1.60, 51e3, 15.2e3, 21e3, 42),
    "2+1 domain walls": ((16, 16, 16, 32), 19.5, 12.8, 228e3, 112e3, 55e3, 384),
}


def neighbours(grid, node):
    """For each cut direction: whether any rank's next one is on another node, where a node has ranks one after the other."""
    ranks = math.prod(grid)
    strides = [math.prod(grid[:mu]) for mu in range(4)]
    for mu in range(4):
        if grid[mu] > 1:
            def next_of(rank):
                at = rank // strides[mu] % grid[mu]
                return rank + ((at + 1) % grid[mu] - at) * strides[mu]
            yield mu, any(rank // node != next_of(rank) // node for rank in range(ranks))


def seconds(run, lattice, grid, node, network):
    """A trajectory on a grid of ranks."""
    own, one, _, launches, hops, sums, bytes_a_site = run
    local = [extent // ranks for extent, ranks in zip(lattice, grid)]
    kernels = (one - launches * LAUNCH) * math.prod(local) / math.prod(own)
    sent, wires = {}, {False: MEMORY, True: network}
    for mu, far in neighbours(grid, node):
        sent[far] = sent.get(far, 0) + 2 * math.prod(local) / local[mu] * bytes_a_site
    exchange = max((wires[far][0] + size / wires[far][1] for far, size in sent.items()), default=0)
    adding = SUM[True in sent] if sent else 0
    return launches * LAUNCH + kernels + hops * exchange + sums * adding


def fastest(run, lattice, ranks, node, network):
    """The fastest grid, and its seconds."""
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    grids = (grid for grid in itertools.product(divisors, repeat=4) if math.prod(grid) == ranks)
    fits = (grid for grid in grids if all(e % g == 0 and e // g >= 4 and e // g % 2 == 0 for e, g in zip(lattice, grid)))
    return min((seconds(run, lattice, grid, node, network), grid) for grid in fits)


def main(given):
    print("Hops on two GPUs, microseconds:\n")
    rows = []
    for name, one, two, size in HOPS:
        model = one + 1e6 * (MEMORY[0] + size / MEMORY[1])
        rows.append([name, f"{one:.1f}", f"{two:.1f}", f"{model:.1f}", f"{100 * (model / two - 1):+.0f}%"])
    plot.table(["hop", "one", "two", "model", ""], rows)
    print("\nTrajectories on two GPUs, seconds:\n")
    rows = []
    for name, run in RUNS.items():
        lattice, one, two = run[:3]
        model = seconds(run, lattice, (1, 1, 1, 2), given.node, given.network)
        rows.append([name, f"{one}", f"{two}", f"{model:.2f}", f"{100 * (model / two - 1):+.0f}%"])
    plot.table(["trajectory", "one", "two", "model", ""], rows)
    print("\n64^3x128, with as many iterations: seconds a trajectory, grid, efficiency relative to 8 GPUs\n")
    rows = []
    for name, run in RUNS.items():
        row, first = [name], None
        for ranks in (8, 64, 512):
            took, grid = fastest(run, (64, 64, 64, 128), ranks, given.node, given.network)
            first = first or took * ranks
            row.append(f"{took:.3g} ({'x'.join(map(str, grid))}, {100 * first / (took * ranks):.0f}%)")
        rows.append(row)
    plot.table(["trajectory", "8", "64", "512"], rows)


if __name__ == "__main__":
    def wire(text):
        latency, bandwidth = map(float, text.split(","))
        return latency * 1e-6, bandwidth * 1e9
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", type=wire, default="30,45", help="microseconds, GB/s per GPU between nodes")
    parser.add_argument("--node", type=int, default=8, help="GPUs of a node")
    main(parser.parse_args())
