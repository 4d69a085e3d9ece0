"""Errors of means and of functions of means by the Gamma method.

U. Wolff, "Monte Carlo errors with less errors", Comput. Phys. Commun. 156 (2004) 143, hep-lat/0306017. In its
notation, with R replica of N_r entries each, N in all, W the summation window, and the mean of all replica:

    Gamma(t) = sum_r sum_i (a_r(i) - mean) (a_r(i + t) - mean) / sum_r max(N_r - t, 0)
    C(W)     = Gamma(0) + 2 sum_{t=1}^W Gamma(t)
    tau_int  = C(W) / (2 Gamma(0))                          1/2 without autocorrelation
    tau(W)   = S / ln((2 tau_int(W) + 1) / (2 tau_int(W) - 1))
    W        : the first at which exp(-W / tau(W)) - tau(W) / sqrt(W N) < 0
    error^2  = C(W) / N
    error of the error = error sqrt((W + 1/2) / N)
    (error of tau_int)^2 = 4/N (W + 1/2 - tau_int) tau_int^2                     its eq. (42)
    chi^2    = sum_r N_r (mean of a_r - mean)^2 / C(W)

C(W) of the error is then corrected for the bias of Gamma, by the factor 1 + (2 W + 1) / N of its eq. (49);
tau_int by that factor over 1 + 1 / N, while its error is that before the correction: the convention of pyerrors
and of `hmc report`. W is chosen before the correction. Q is the probability that chi^2 of R - 1
degrees of freedom is greater than the one found: a small one says that replica do not sample one distribution.

The paper sums to lags within half of the shortest replica. Here they are within half of the longest, so that a
chain that has just begun does not cut off the sum of the others.

A function f of means has the deviations sum_alpha (df / dA_alpha) (a_alpha - mean). Its derivatives are
differences at +- sqrt(Gamma_alpha,alpha(0) / N). With several replica, its value is corrected for the bias of
order 1 / N, by (mean of f of each replica - f) / (R - 1).

pyerrors (https://github.com/fjosw/pyerrors) has the same means, windows, errors and times, with these differences:

- it takes tau_int to be 1/2 at least, so the errors of anticorrelated series are larger than here;
- it takes deviations from the mean of each replica, unless it is given the mean of all (`means=`), as `to_obs`
  does; and it does not correct values of functions for their bias;
- its derivatives are exact, which changes errors of functions by a relative order of 1 / N.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, isfinite, log1p, nan, pi, sqrt

import numpy as np
import xarray as xr

from .records import warn


@dataclass(frozen=True)
class Result:
    """A mean and its error. Times count entries of the series: trajectories, if each of them was measured.

    `tau_int` is 1/2 without autocorrelation; `window` is the last lag that was summed; `n` are the entries of
    all replica. `q` is the goodness of fit of one mean to several replica, None without them.
    """

    mean: float
    error: float
    error_of_error: float
    tau_int: float
    tau_int_error: float
    window: int
    n: int
    q: float | None = None

    def __str__(self):
        """The mean with the two leading digits of its error, as 0.5812(13)."""
        if not (isfinite(self.error) and self.error > 0):
            return f"{self.mean} +- {self.error}"
        digits = max(0, 1 - int(f"{self.error:.1e}".split("e")[1]))
        error = f"{self.error:.{digits}f}"
        if digits > 1:
            error = error.replace(".", "").lstrip("0")
        return f"{self.mean:.{digits}f}({error})"


def autocorrelation(series, s=1.5):
    """The `Result` of a real series, or of several replica: a list, or a series with a dimension `stream`.

    A series is one-dimensional, such as `ensemble.history.plaquette`. Of one with a dimension `stream`, entries
    that are NaN at the start and at the end of a stream are left out. `s` is the paper's S, an estimate of
    the ratio of exponential and integrated autocorrelation time; 0 means no autocorrelation.
    """
    replica = _replica(series)
    mean = float(np.concatenate(replica).mean())
    return _gamma_method(mean, [one - mean for one in replica], s)


def derived(function, series, s=1.5):
    """The `Result` of `function(<a>, <b>, ..)` for the series `[a, b, ..]` from the same trajectories.

    Each is a series or a list of replica, as in `autocorrelation`. `function` takes and gives real numbers,
    and has to be smooth within an error of the means.
    """
    observables = [_replica(one) for one in series]
    if len({tuple(map(len, replica)) for replica in observables}) != 1:
        raise ValueError("the series have to be from the same trajectories: their lengths differ")
    replica = [np.stack(arrays) for arrays in zip(*observables)]  # of each: [observable, entry]
    whole = np.concatenate(replica, axis=1)
    n, means = whole.shape[1], whole.mean(axis=1)
    value, gradient = float(function(*means)), np.zeros(len(means))
    for alpha, step in enumerate(whole.std(axis=1) / sqrt(n)):
        if step > 0:
            shift = step * (np.arange(len(means)) == alpha)
            gradient[alpha] = (function(*(means + shift)) - function(*(means - shift))) / (2 * step)
    if not (isfinite(value) and np.all(np.isfinite(gradient))):
        raise ValueError("the function is not finite at the means and an error beside them")
    if len(replica) > 1:
        average = sum(one.shape[1] * float(function(*one.mean(axis=1))) for one in replica) / n
        value -= (average - value) / (len(replica) - 1)
    return _gamma_method(value, [gradient @ (one - means[:, np.newaxis]) for one in replica], s)


def to_obs(series, name):
    """A `pyerrors.Obs` of a series as in `autocorrelation`, with its trajectories.

    Replica are `name|r1`, `name|r2`, ..
    pyerrors has to be installed. Its `gamma_method(S=1.5)` finds the errors that `autocorrelation` does.
    """
    try:
        import pyerrors
    except ImportError:
        raise ImportError("to_obs needs pyerrors: pip install pyerrors") from None
    streams = isinstance(series, xr.DataArray) and "stream" in series.dims
    arrays = _streams(series) if streams else series if isinstance(series, (list, tuple)) else [series]
    replica = _replica(arrays if len(arrays) > 1 else arrays[0])
    labelled = all(isinstance(one, xr.DataArray) and "trajectory" in one.coords for one in arrays)
    idl = [[int(n) for n in one.trajectory.values] for one in arrays] if labelled else None
    if len(replica) == 1:
        return pyerrors.Obs(replica, [name], idl=idl)
    mean = float(np.concatenate(replica).mean())
    names = [f"{name}|r{number}" for number in range(1, len(replica) + 1)]
    return pyerrors.Obs([one - mean for one in replica], names, idl=idl, means=[mean] * len(replica))


def _replica(series):
    """The series of each replica as float64."""
    if isinstance(series, xr.DataArray) and "stream" in series.dims:
        series = _streams(series)
    several = isinstance(series, (list, tuple)) and len(series) > 0 and np.ndim(series[0]) > 0
    replica = []
    for one in series if several else [series]:
        values = np.asarray(one)
        if values.ndim != 1 or len(values) < 2 or np.iscomplexobj(values):
            raise ValueError(f"a series is real, one-dimensional, of 2 entries or more; not {values.shape}")
        if isinstance(one, xr.DataArray) and "trajectory" in one.coords:
            if len(set(np.diff(one.coords["trajectory"].values))) > 1:
                warn("trajectories are not evenly spaced: autocorrelation times count entries")
        values = values.astype(float)
        gaps = np.count_nonzero(~np.isfinite(values))
        if gaps:
            raise ValueError(f"{gaps} of {len(values)} entries are not finite")
        replica.append(values)
    return replica


def _streams(series):
    """The series of each stream, without the gaps by which it is as long as the others."""
    found = []
    for one in series.transpose("stream", ...):
        there = np.flatnonzero(one.notnull().values.reshape(len(one), -1).any(axis=1))
        if there.size:
            found.append(one[there[0] : there[-1] + 1])
    return found


def _gamma_method(value, deviations, s):
    """The result for a quantity with the mean `value` and these deviations from it, an array per replica."""
    if s < 0:
        raise ValueError(f"s = {s} is negative")
    n = sum(map(len, deviations))
    if np.ptp(np.concatenate(deviations)) == 0:
        return Result(value, 0.0, 0.0, 0.5, 0.0, 0, n)
    gamma_0 = sum(float(d @ d) for d in deviations) / n
    window, excess = 0, 0.0  # excess = tau_int - 1/2
    if s > 0:
        longest = max(map(len, deviations)) // 2
        for window in range(1, longest + 1):
            long = [d for d in deviations if len(d) > window]
            gamma = sum(float(d[:-window] @ d[window:]) for d in long) / sum(len(d) - window for d in long)
            excess += gamma / gamma_0
            if excess <= 0:
                break
            tau = s / log1p(1 / excess)
            if exp(-window / tau) < tau / sqrt(window * n):
                break
        else:
            warn(f"no window up to lag {longest}: the longest replica is too short")
    c = gamma_0 * (1 + 2 * excess)
    if c <= 0:
        warn(f"the square of the error is not positive: {n} entries are too few")
        return Result(value, nan, nan, nan, nan, window, n)
    bare, factor = c / (2 * gamma_0), 1 + (2 * window + 1) / n
    c *= factor
    error, tau_int = sqrt(c / n), bare * factor / (1 + 1 / n)
    tau_int_error = 2 * bare * sqrt(max(0.0, window + 0.5 - bare) / n)
    q = None
    if len(deviations) > 1:
        q = _chi_square_tail(len(deviations) - 1, sum(len(d) * float(d.mean()) ** 2 for d in deviations) / c)
    return Result(value, error, error * sqrt((window + 0.5) / n), tau_int, tau_int_error, window, n, q)


def _chi_square_tail(degrees, chi_square):
    """The probability that chi^2 of so many degrees of freedom is greater: the incomplete gamma function.

    Q(a, x) with a = degrees / 2, x = chi^2 / 2, by Q(a + 1, x) = Q(a, x) + x^a exp(-x) / Gamma(a + 1).
    """
    x = chi_square / 2
    if degrees % 2:
        a, tail, term = 0.5, erfc(sqrt(x)), 2 * sqrt(x / pi) * exp(-x)
    else:
        a, tail, term = 1.0, exp(-x), x * exp(-x)
    while 2 * a < degrees:
        tail += term
        a += 1
        term *= x / a
    return tail
