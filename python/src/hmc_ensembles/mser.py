"""A proposal where thermalisation ends.

The marginal standard error rule MSER-5: K. P. White, Simulation 69 (1997) 323; K. P. White, M. J. Cobb, S. C.
Spratt, Proc. Winter Simulation Conference (2000) 755. Of the series x_1 .. x_n it leaves out the first d
entries for which the naive error of the mean of the others is least,

    MSER(d) = sum_{i > d} (x_i - mean)^2 / (n - d)^2,

with x the means of 5 consecutive entries each. Leaving out a drift lowers it, leaving out good
data raises it.
"""

import numpy as np

from .records import warn


def thermalisation(series, batch=5):
    """The number of entries at the start that should be left out of `series` (one-dimensional, one replica).

    At most half of the series is cut; a least error there gives a warning, because the series is then too
    short to tell. It is a proposal: look at the series, and take the largest cut of all that you measure. Cut
    the run's `thermalisation` in any case: there, trajectories are accepted whatever dH is.
    """
    x = np.asarray(series, dtype=float)
    if x.ndim != 1 or not np.all(np.isfinite(x)):
        raise ValueError("a series is one-dimensional and finite")
    number = len(x) // batch
    if number < 4:
        raise ValueError(f"{len(x)} entries are too few: at least {4 * batch} are needed")
    means = (x[: number * batch] - x.mean()).reshape(number, batch).mean(axis=1)
    cuts = np.arange(number // 2 + 1)
    left = number - cuts
    sums, squares = (np.cumsum(y[::-1])[::-1][cuts] for y in (means, means**2))
    best = int(np.argmin((squares - sums**2 / left) / left**2))
    if best == cuts[-1]:
        warn(f"no end of thermalisation in the first half of {len(x)} entries: the series is too short")
    return best * batch
