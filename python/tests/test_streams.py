"""Streams of one ensemble that hmc has just made: merged when they are read, and analysed as hmc does."""

import json
import shutil

import numpy as np
import pytest

import hmc_ensembles as he


def test_streams_are_merged(streams):
    ensemble = he.open_ensemble(streams)
    assert isinstance(ensemble, he.Streams) and list(ensemble) == ["a", "b"]
    history, measurements = ensemble.history, ensemble.measurements
    assert history.plaquette.dims == measurements.plaquette.dims == ("stream", "trajectory")
    assert history.force_of_term.dims == ("stream", "trajectory", "term")
    assert dict(history.sizes) == {"stream": 2, "trajectory": 60, "level": 1, "term": 1}
    for name, one in ensemble.items():
        n = one.history.sizes["trajectory"]
        for merged, own in ((history, one.history), (measurements, one.measurements)):
            for variable in own.data_vars:
                found = merged[variable].sel(stream=name)
                np.testing.assert_array_equal(found[:n], own[variable], err_msg=variable)
                assert np.all(np.isnan(found[n:])) and found.attrs == own[variable].attrs
    assert np.all(np.isnan(measurements.polyakov.sel(stream="a")))
    assert history.stream.attrs["units"] and history.stream.attrs["long_name"]
    assert list(ensemble["b"].configurations) == list(range(1, 46))


def test_their_analysis_is_that_of_the_report(streams, hmc):
    history = he.open_ensemble(streams).history.sel(trajectory=slice(11, None))
    report = json.loads(hmc(streams, "report", "--json", "--from", "10", "."))
    own = he.autocorrelation(history.plaquette)
    [found] = [one for one in report["observables"] if one["name"] == "plaquette"]
    assert (own.n, own.window) == (found["count"], found["window"]) and own.n == 85
    assert (own.mean, own.error, own.q) == pytest.approx((found["mean"], found["error"], found["q"]), rel=1e-12)
    # Both have the convention of pyerrors.
    assert (own.tau_int, own.tau_int_error) == pytest.approx((found["tau"], found["tau_error"]), rel=1e-12)
    exponential = he.autocorrelation(np.exp(-history.delta_h))
    assert exponential.mean == pytest.approx(report["exp_minus_delta_h"]["mean"], rel=1e-12)


def test_a_stream_is_an_ensemble_and_ensembles_are_no_streams(streams, small, tmp_path):
    assert isinstance(he.open_ensemble(streams / "a"), he.Ensemble)
    for folder in (streams.parent, small.parent):
        with pytest.raises(FileNotFoundError, match="no run.toml"):
            he.open_ensemble(folder)
    # A chain that was moved, and has not gone on as a stream yet.
    shutil.copytree(small, tmp_path / "small" / "first")
    assert list(he.open_ensemble(tmp_path / "small")) == ["first"]
