"""Reference scales of the gradient flow from E(t), by hmc's definitions.

t0 is where t^2 E = 0.3 (M. Luscher, arXiv:1006.4518), w0 the square root of the t where t d/dt (t^2 E) = 0.3
(S. Borsanyi et al., arXiv:1203.4469). 1 / sqrt(E), which is nearly linear in t, is interpolated by the polynomial
through the four times next to it: times that are a fifth of t0 apart give t0 to 1e-4.
"""

import numpy as np

_LEVEL = 0.3


def t0(flow_time, energy):
    """t0 in a^2 from E (per site, a^-4) at the times `flow_time` (a^2); NaN if the flow ends before."""
    return _crossing(flow_time, energy, lambda t, root, slope: (t / root) ** 2)


def w0(flow_time, energy):
    """w0 in a from E (per site, a^-4) at the times `flow_time` (a^2); NaN if the flow ends before."""
    height = lambda t, root, slope: 2 * (t / root) ** 2 * (1 - t * slope / root)  # noqa: E731
    return float(np.sqrt(_crossing(flow_time, energy, height)))


def _crossing(flow_time, energy, height):
    """Where `height` of t, 1 / sqrt(E) and its derivative first rises through 0.3."""
    times = np.asarray(flow_time, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = 1 / np.sqrt(np.asarray(energy, dtype=float))
    below = False
    for n in range(len(times) - 1):
        first = max(0, min(n - 1, len(times) - 4))
        near, values = times[first : first + 4], roots[first : first + 4]
        low, high = times[n], times[n + 1]
        at_low, at_high = (height(t, *_through(near, values, t)) for t in (low, high))
        # Polynomials of neighbouring intervals differ a little where they meet.
        if below and at_low >= _LEVEL:
            return float(low)
        if at_low < _LEVEL <= at_high:
            for _ in range(60):
                middle = 0.5 * (low + high)
                if height(middle, *_through(near, values, middle)) < _LEVEL:
                    low = middle
                else:
                    high = middle
            return float(0.5 * (low + high))
        below = at_high < _LEVEL
    return float("nan")


def _through(times, values, t):
    """The polynomial through the points and its derivative, at t."""
    value = slope = 0.0
    for i, (own, height) in enumerate(zip(times, values)):
        others = np.delete(times, i)
        factors = (t - others) / (own - others)
        value += height * np.prod(factors)
        slope += height * sum(np.prod(np.delete(factors, k)) / (own - one) for k, one in enumerate(others))
    return value, slope
