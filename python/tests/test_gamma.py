"""The Gamma method against pyerrors, known autocorrelation times and its own formulas."""

from math import sqrt

import numpy as np
import pytest
import xarray as xr
from numpy.random import PCG64, Generator

import hmc_ensembles as he


def ar1(random, n, a):
    """x_i = a x_{i-1} + sqrt(1 - a^2) noise: mean 0, variance 1, tau_int (1 + a) / (1 - a) / 2."""
    noise = random.standard_normal(n)
    series = [noise[0]]
    for step in noise[1:]:
        series.append(a * series[-1] + sqrt(1 - a * a) * step)
    return np.array(series)


def make_series():
    random = Generator(PCG64(1))
    series = {
        "fast": 1 + 0.1 * ar1(random, 2000, 0.8),
        "slow": ar1(random, 5000, 0.95),
        "white": ar1(random, 1000, 0.0),
        "first": ar1(random, 1500, 0.7),
        "second": ar1(random, 1000, 0.7),
    }
    common = ar1(random, 2000, 0.9)
    series["c0"] = 2 + 0.2 * common + 0.1 * ar1(random, 2000, 0.5)
    series["c1"] = 1 + 0.05 * common + 0.1 * ar1(random, 2000, 0.5)
    series["c2"] = 0.6 + 0.02 * common + 0.05 * ar1(random, 2000, 0.5)
    series["young"] = ar1(random, 40, 0.7)
    series["far"] = 0.2 + ar1(random, 1200, 0.7)
    return series


SERIES = make_series()
C = [SERIES["c0"], SERIES["c1"], SERIES["c2"]]
REPLICA = [SERIES["first"], SERIES["second"]]
SEVERAL = {
    "replica": REPLICA,
    "replica, one of them young": [*REPLICA, SERIES["young"]],
    "replica, one of them far away": [*REPLICA, SERIES["far"]],
}
# scipy's gammaincc((R - 1) / 2, chi^2 / 2) with chi^2 by the dvalue of pyerrors.
GOODNESS = dict(zip(SEVERAL, (0.6203420533291159, 0.5879681381102699, 0.16552850303762737)))


def cosh_mass(a, b, c):
    return np.arccosh((a + c) / (2 * b))


# pyerrors 2.17.0, gamma_method(S=s): value, dvalue, ddvalue, e_tauint, e_dtauint, e_windowsize. Replica are
# Obs([first - mean, second - mean], ["x|r1", "x|r2"], means=[mean, mean]) with the mean of all; the value of
# that is not the mean, and left out.
PYERRORS = {
    "fast": (
        0.9959225893896314, 0.006605599313966278, 0.000716029902997,
        4.339802707494078, 0.8325621726730015, 23,
    ),
    "slow": (
        0.0009523410039265627, 0.08853765300035622, 0.012107341953450179,
        20.37996265126609, 4.776026231176705, 93,
    ),
    "fast, s = 3": (
        0.9959225893896314, 0.007667533976598869, 0.0012062666217453242,
        5.847321212268093, 1.6522123532375197, 49,
    ),
    "exp": (
        1.571507967280821, 0.14641862767439656, 0.018807813263265985,
        17.386638369426713, 3.8584735188364627, 82,
    ),
    "replica": (
        None, 0.044681385310424204, 0.003518215797560359,
        2.56773720292669, 0.3654094856623623, 15,
    ),
    "replica, one of them young": (
        None, 0.04427572658131038, 0.0034587142851893902,
        2.572198816405866, 0.3631500851209671, 15,
    ),
    "replica, one of them far away": (
        None, 0.03654815268661888, 0.002440655825092959,
        2.5182041078226227, 0.3071833211559477, 16,
    ),
    "ratio": (
        1.9930600282444713, 0.012139977305500515, 0.0010687317856132208,
        2.632609638136671, 0.41671498416952607, 15,
    ),
    "mass": (
        0.7509522881458506, 0.008154343396287284, 0.0006699476729684751,
        2.232425402502319, 0.3312467787528368, 13,
    ),
}


def result(name):
    """The same by this package."""
    if name == "ratio":
        return he.derived(lambda a, b: a / b, C[:2])
    if name == "mass":
        return he.derived(cosh_mass, C)
    if name == "exp":
        return he.autocorrelation(np.exp(-SERIES["slow"]))
    if name in SEVERAL:
        return he.autocorrelation(SEVERAL[name])
    series, _, s = name.partition(", s = ")
    return he.autocorrelation(SERIES[series], float(s or 1.5))


@pytest.mark.parametrize("name", PYERRORS)
def test_pyerrors_finds_the_same(name):
    found = result(name)
    mean, error, error_of_error, tau_int, tau_int_error, window = PYERRORS[name]
    # Derivatives are exact there, and differences here, whose error is of relative order 1 / N.
    digits = {"ratio": 1e-5, "mass": 1e-5}.get(name, 1e-12)
    assert found.window == window
    assert found.mean == pytest.approx(found.mean if mean is None else mean, rel=1e-13)
    assert (found.error, found.error_of_error) == pytest.approx((error, error_of_error), rel=digits)
    assert (found.tau_int, found.tau_int_error) == pytest.approx((tau_int, tau_int_error), rel=digits)


@pytest.mark.parametrize("name", SEVERAL)
def test_replica_have_a_goodness_of_fit(name):
    assert result(name).q == pytest.approx(GOODNESS[name], rel=1e-12)
    shifted = [SEVERAL[name][0] + 0.5, *SEVERAL[name][1:]]
    assert he.autocorrelation(shifted).q < 1e-4
    assert he.autocorrelation(SERIES["first"]).q is None


@pytest.mark.parametrize("name", ["fast", "replica", "replica, one of them young"])
def test_pyerrors_takes_a_series(name):
    pytest.importorskip("pyerrors")
    series = SEVERAL[name] if name in SEVERAL else SERIES[name]
    obs = he.to_obs(series, "chain")
    obs.gamma_method(S=1.5)
    found = result(name)
    assert (obs.dvalue, obs.e_tauint["chain"]) == pytest.approx((found.error, found.tau_int), rel=1e-12)


def test_pyerrors_knows_the_trajectories():
    pytest.importorskip("pyerrors")
    series = xr.DataArray(C[0][:50], {"trajectory": np.arange(10, 60)}, "trajectory")
    assert list(he.to_obs(series, "chain").idl["chain"]) == list(range(10, 60))


def test_a_dimension_of_streams_is_one_of_replica():
    replica = SEVERAL["replica, one of them young"]
    arrays = [xr.DataArray(one, {"trajectory": np.arange(1, len(one) + 1)}, "trajectory") for one in replica]
    merged = xr.concat(arrays, xr.DataArray(["a", "b", "c"], dims="stream", name="stream"), join="outer")
    assert he.autocorrelation(merged) == he.autocorrelation(replica)
    both = he.derived(lambda a, b: a / b, [merged + 2, merged.T ** 2])
    assert both == he.derived(lambda a, b: a / b, [[one + 2 for one in replica], [one**2 for one in replica]])
    merged[0, 7] = np.nan
    with pytest.raises(ValueError, match="1 of 1500 entries are not finite"):
        he.autocorrelation(merged)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.8, 0.9])
def test_the_time_of_an_ar1_series_is_found(a):
    known = (1 + a) / (1 - a) / 2
    found = he.autocorrelation(ar1(Generator(PCG64(7)), 50_000, a))
    assert abs(found.tau_int - known) < 3 * found.tau_int_error
    assert abs(found.error / sqrt(2 * known / 50_000) - 1) < 3 * found.error_of_error / found.error
    assert abs(found.mean) < 3 * found.error


def test_without_autocorrelation_it_is_the_standard_error():
    x = SERIES["white"]
    found = he.autocorrelation(x, s=0)
    assert found.error == pytest.approx(x.std(ddof=1) / sqrt(len(x)), rel=1e-6)
    assert (found.tau_int, found.tau_int_error, found.window) == (0.5, 0.0, 0)


def test_a_linear_function_is_the_series_of_its_values():
    whole = he.autocorrelation(2 * C[0] - 3 * C[1] + 1)
    parts = he.derived(lambda a, b: 2 * a - 3 * b + 1, C[:2])
    assert parts.window == whole.window
    for name in ("mean", "error", "error_of_error", "tau_int", "tau_int_error"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9)


def test_replica_correct_the_bias_of_a_function():
    found = he.derived(lambda a: a * a, [REPLICA])
    first, second = (one.mean() for one in REPLICA)
    whole, average = (0.6 * first + 0.4 * second) ** 2, 0.6 * first**2 + 0.4 * second**2
    assert found.mean == pytest.approx(2 * whole - average, rel=1e-12)
    assert found.n == 2500


def test_a_constant_has_no_error():
    assert he.autocorrelation(np.full(20, 0.5)) == he.Result(0.5, 0.0, 0.0, 0.5, 0.0, 0, 20)
    assert he.derived(lambda a, b: a + b, [C[0], np.ones(2000)]).error > 0


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.58123, 0.00131, "0.5812(13)"),
        (0.58123, 0.000999, "0.5812(10)"),
        (-12.345, 0.25, "-12.35(25)"),
        (12.345, 2.54, "12.3(2.5)"),
        (12345.6, 254.0, "12346(254)"),
        (1.0, 0.0, "1.0 +- 0.0"),
    ],
)
def test_a_result_is_printed_with_two_digits_of_its_error(mean, error, text):
    assert str(he.Result(mean, error, 0.0, 0.5, 0.0, 0, 10)) == text


def test_too_short_or_pathological_series_give_warnings():
    with pytest.warns(he.EnsembleWarning, match="the longest replica is too short"):
        assert he.autocorrelation(np.split(SERIES["slow"][:400], 40)).window == 5
    with pytest.warns(he.EnsembleWarning, match="not positive"):
        assert np.isnan(he.autocorrelation(np.tile([1.0, -1.0], 20)).error)
    gaps = xr.DataArray(C[0][:100], {"trajectory": np.r_[1:51, 61:111]}, "trajectory")
    with pytest.warns(he.EnsembleWarning, match="not evenly spaced"):
        he.autocorrelation(gaps)


def test_what_is_no_series_is_refused():
    for series in (1j * C[0], np.array(C), [1.0], []):
        with pytest.raises(ValueError, match="a series is real"):
            he.autocorrelation(series)
    with pytest.raises(ValueError, match="1 of 3 entries are not finite"):
        he.autocorrelation([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="lengths differ"):
        he.derived(lambda a, b: a + b, [C[0], C[1][1:]])
    with pytest.raises(ValueError, match="negative"):
        he.autocorrelation(C[0], s=-1)
    with pytest.raises(ValueError, match="not finite at the means"), np.errstate(invalid="ignore"):
        he.derived(lambda a: np.log(-a), C[:1])
