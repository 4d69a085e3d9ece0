"""Reference scales of the gradient flow from E(t), by hmc's definitions.

t0 is where t^2 E = 0.3 (M. Luscher, arXiv:1006.4518), w0 the square root of the t where t d/dt (t^2 E) = 0.3
(S. Borsanyi et al., arXiv:1203.4469). Both by linear interpolation, the derivative by differences at
midpoints.
"""

import numpy as np

_LEVEL = 0.3


def t0(flow_time, energy):
    """t0 in a^2 from E (per site, a^-4) at the times `flow_time` (a^2); NaN if the flow ends before."""
    t = np.asarray(flow_time, dtype=float)
    return _crossing(t, t * t * np.asarray(energy, dtype=float))


def w0(flow_time, energy):
    """w0 in a from E (per site, a^-4) at the times `flow_time` (a^2); NaN if the flow ends before."""
    t = np.asarray(flow_time, dtype=float)
    squared = t * t * np.asarray(energy, dtype=float)
    middle = 0.5 * (t[:-1] + t[1:])
    return float(np.sqrt(_crossing(middle, middle * np.diff(squared) / np.diff(t))))


def _crossing(x, y):
    """Where y first rises through 0.3."""
    below = np.flatnonzero((y[:-1] < _LEVEL) & (y[1:] >= _LEVEL))
    if below.size == 0:
        return float("nan")
    n = below[0]
    return float(x[n] + (_LEVEL - y[n]) / (y[n + 1] - y[n]) * (x[n + 1] - x[n]))
