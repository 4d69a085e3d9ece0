"""Ensembles that hmc has just made, against its other files of the same numbers."""

import json
import re
import shutil

import h5py
import numpy as np
import pytest
import xarray as xr

import hmc_ensembles as he


def raw(folder):
    """The lines of measurements.jsonl, each as it is."""
    return [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]


def variable(history, column):
    """Where a dataset has a column of history.h5."""
    if match := re.fullmatch(r"(.*)_(\d+)", column):
        return history[f"{match[1]}_of_level"].sel(level=int(match[2]))
    if match := re.fullmatch(r"(.*)_of_(.*)", column):
        return history[f"{match[1]}_of_term"].sel(term=match[2])
    return history[column]


@pytest.mark.parametrize("name", ["small", "tuned", "walls"])
def test_history_has_the_bits_of_history_h5(name, request):
    folder = request.getfixturevalue(name)
    history = he.open_ensemble(folder).history
    with h5py.File(folder / "history.h5") as file:
        assert len(file["history"]) > 10
        for column, stored in file["history"].items():
            found = variable(history, column)
            assert found.dims == ("trajectory",)
            np.testing.assert_array_equal(found, stored[...], err_msg=column)
            assert found.attrs["units"] and found.attrs["long_name"]
            if name == "small":  # has no gaps
                assert found.dtype.kind == stored.dtype.kind.replace("u", "i"), column
    for coordinate in ("trajectory", "level", "term"):
        assert history[coordinate].attrs["units"] and history[coordinate].attrs["long_name"]
    assert history.sizes["trajectory"] == {"small": 80, "tuned": 4, "walls": 2}[name]


def test_measurements_are_those_of_the_lines(small):
    found = he.open_ensemble(small).measurements
    lines = raw(small)
    assert list(found.trajectory) == [line["trajectory"] for line in lines] == list(range(1, 81))
    for line in lines:
        at = found.sel(trajectory=line["trajectory"])
        for name in ("plaquette", "plaquette_space", "plaquette_time", "rectangle", "t0", "w0"):
            np.testing.assert_array_equal(at[name], np.nan if line[name] is None else line[name])
        assert complex(at.polyakov) == complex(*line["polyakov"])
        for point in line["flow"]:
            for name in ("e_plaquette", "e_clover", "q"):
                assert float(at[f"flow_{name}"].sel(flow_time=point["t"])) == point[name]
        for point in line["flow_slices"]:
            for name in ("e_plaquette", "e_clover", "q"):
                values = at[f"flow_slice_{name}"].sel(flow_time=point["t"]).values
                assert values.tolist() == point[name]
        [pion] = line["correlators"]
        assert at.correlators.sel(correlator=pion["name"]).values.tolist() == pion["re"]
        [condensate] = line["condensates"]
        light = at.sel(condensate="light")
        assert float(light.condensates) == condensate["re"]
        for name in ("error", "even", "odd", "sources"):
            assert float(light[f"condensate_{name}"]) == condensate[name]
        assert light.condensate_values.values.tolist() == condensate["values"]
        assert np.isnan(light.condensate_mass)
        [derivative] = line["mu_derivatives"]
        for trace in ("first", "second", "product"):
            values = at.mu_traces.sel(mu_derivative="light", trace=trace).values
            assert [[z.real, z.imag] for z in values] == derivative[trace]["values"]
        [meson] = line["mesons"]
        for one in meson["correlators"]:
            momentum = "{},{},{}".format(*one["momentum"])
            labels = {"meson": "light", "channel": one["channel"], "momentum": momentum}
            values = at.mesons.sel(labels).values
            assert values.real.tolist() == one["re"] and values.imag.tolist() == one["im"]
        own = at.sel(meson="light")
        assert own.pcac.values.tolist() == meson["pcac"] and float(own.pcac_mean) == meson["pcac_mean"]
        [soft] = line["reweighting"]
        own = at.sel(reweighting="soft")
        assert [float(own.ln_weight), float(own.ln_weight_error)] == [soft["ln_w"], soft["error"]]
        assert at.wilson_loops.values.tolist() == line["wilson_loops"]
    assert found.wilson_loops.sel(R=1, T=1).values == pytest.approx(found.plaquette_time.values, abs=1e-14)
    assert found.wilson_loops.dims == ("trajectory", "R", "T")
    for name in list(found.data_vars) + list(found.coords):
        assert found[name].attrs["units"] and found[name].attrs["long_name"], name


def test_domain_walls_have_their_midpoint(walls):
    found = he.open_ensemble(walls).measurements
    for line in raw(walls):
        at = found.sel(trajectory=line["trajectory"])
        assert [one["name"] for one in line["correlators"]] == list(found.correlator)
        for one in line["correlators"]:
            own = at.sel(correlator=one["name"])
            assert own.midpoint.values.tolist() == one["midpoint"]
            assert own.m_res.values.tolist() == one["m_res"]
            assert float(own.m_res_mean) == one["m_res_mean"]
    assert found.condensate_mass.values.ravel() == pytest.approx(0.3)
    assert np.all(np.isnan(found.condensate_error))  # of one source there is no scatter


def test_another_tuning_leaves_gaps(tuned):
    ensemble = he.open_ensemble(tuned)
    history = ensemble.history
    assert history.tuning.values.tolist() == [0, 0, 2, 2]
    assert list(history.level) == [0, 1] and list(history.term) == ["light", "gauge"]
    assert np.isnan(history.force_of_level.sel(level=1)).values.tolist() == [False, False, True, True]
    assert not np.any(np.isnan(history.force_of_level.sel(level=0)))
    assert list(ensemble.inputs) == [0, 2]
    assert "tau = 0.5" in ensemble.inputs[2] and "tau" not in ensemble.inputs[0]
    assert [job["after"] for job in ensemble.jobs] == [0, 2] and ensemble.jobs[1]["retuned"]
    found = ensemble.measurements
    assert found.flow_time.values == pytest.approx([0, 0.1, 0.2, 0.3])
    assert np.isnan(found.flow_q.isel(flow_time=3)).values.tolist() == [True, True, False, False]
    assert np.isnan(found.plaquette).values.tolist() == [False, False, True, True]
    assert np.isnan(found.polyakov).values.tolist() == [True, True, False, False]


def plaquette(u):
    """The mean of (1/3) Re tr P of links [t, z, y, x, mu, row, column]; mu lies on axis 3 - mu."""
    total = 0.0
    for mu in range(4):
        for nu in range(mu):
            a, b = u[..., mu, :, :], u[..., nu, :, :]
            c, d = np.roll(b, -1, axis=3 - mu), np.roll(a, -1, axis=3 - nu)
            total += np.einsum("...ij,...jk,...lk,...il->...", a, c, d.conj(), b.conj()).real.mean()
    return total / 18


def checksum(u):
    """The sum of SplitMix64's finaliser over all reals, as docs/files.md of hmc says."""
    reals = np.ascontiguousarray(u).view(np.float64).ravel() + 0.0  # -0 + 0 is +0
    place = np.arange(1, reals.size + 1, dtype=np.uint64)
    z = reals.view(np.uint64) + place * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return f"{int(np.sum(z ^ (z >> np.uint64(31)), dtype=np.uint64)):016x}"


def test_links_have_their_plaquette_and_checksum(small):
    ensemble = he.open_ensemble(small)
    assert list(ensemble.configurations) == [20, 40, 60, 80]
    assert len(ensemble.configurations) == 4 and 30 not in ensemble.configurations
    for trajectory, configuration in ensemble.configurations.items():
        links = configuration.links()
        assert links.shape == (8, 4, 4, 4, 4, 3, 3) and links.dtype == np.complex128
        assert plaquette(links) == pytest.approx(configuration.plaquette, abs=1e-12)
        assert checksum(links) == configuration.links_checksum
        row = ensemble.history.sel(trajectory=trajectory)
        assert configuration.plaquette == pytest.approx(float(row.plaquette), abs=1e-14)
        assert configuration.trajectory == trajectory and configuration.extents == (4, 4, 4, 8)
        assert configuration.input == ensemble.inputs[0]
        assert configuration.program == ensemble.jobs[0]["program"]
    np.testing.assert_array_equal(configuration.links(t=slice(2, 4), x=slice(0, 1)), links[2:4, :, :, :1])
    with pytest.raises(KeyError, match="no configuration of trajectory 30; <Configurations of 4"):
        ensemble.configurations[30]


def test_a_checkpoint_is_a_configuration_and_a_history_is_none(small):
    checkpoint = he.Configuration.read(small / "checkpoint" / "ckpt_000080.h5")
    assert checkpoint.links_checksum == he.open_ensemble(small).configurations[80].links_checksum
    with pytest.raises(ValueError, match="no configuration"):
        he.Configuration.read(small / "history.h5")


def test_datasets_tell_where_they_are_from(small, tmp_path):
    ensemble = he.open_ensemble(small)
    assert repr(ensemble).endswith("small: 80 trajectories on 4x4x4x8>")
    for found in (ensemble.history, ensemble.measurements):
        assert found.attrs["extents"] == (4, 4, 4, 8) and found.attrs["program"].startswith("hmc ")
        assert found.attrs["input"] == ensemble.inputs[0]
    assert he.__version__ != "unknown" or not he.__file__.endswith("site-packages/hmc_ensembles/__init__.py")
    times = ensemble.measurements.flow_time.values
    assert all(float(f"{t:.12g}") == t for t in times)
    with pytest.raises(FileNotFoundError, match="it holds the ensembles small"):
        he.open_ensemble(small.parent)
    (tmp_path / "other.nersc").write_text("BEGIN_HEADER\n")
    with pytest.raises(ValueError, match="hmc convert"):
        he.Configuration.read(tmp_path / "other.nersc")


def test_complex_variables_are_split(small):
    found = he.open_ensemble(small).measurements
    split = he.split_complex(found)
    assert not any(np.iscomplexobj(split[name]) for name in split)
    complex_ones = [name for name in found if np.iscomplexobj(found[name])]
    for name in complex_ones:
        np.testing.assert_array_equal(split[f"{name}_re"] + 1j * split[f"{name}_im"], found[name])
    pytest.importorskip("netCDF4")


def test_scales_are_those_of_the_program(small):
    found = he.open_ensemble(small).measurements
    assert np.count_nonzero(np.isfinite(found.w0)) > 70
    for trajectory in found.trajectory:
        at = found.sel(trajectory=trajectory)
        for name, scale in (("t0", he.t0), ("w0", he.w0)):
            own = scale(at.flow_time, at.flow_e_clover)
            assert own == pytest.approx(float(at[name]), abs=1e-12, nan_ok=True)


def test_what_hmc_measure_prints_is_read(small, hmc, tmp_path):
    configuration = small / "cfg" / "cfg_000040.h5"
    printed = hmc(tmp_path, "measure", "--json", "--input", small / "run.toml", configuration)
    (tmp_path / "m.jsonl").write_text(printed)
    found = he.read_measurements(tmp_path / "m.jsonl", sealed=False)
    expected = he.open_ensemble(small).measurements.sel(trajectory=[40])
    xr.testing.assert_identical(found.assign_attrs(expected.attrs), expected)


def test_a_damaged_line_is_left_out(small, tmp_path):
    folder = shutil.copytree(small, tmp_path / "small")
    for name in ("history.csv", "measurements.jsonl"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        place = next(n for n, line in enumerate(lines) if re.match(r'(\{"trajectory":)?7,', line))
        lines[place] = lines[place].replace("0.3", "0.4", 1)
        (folder / name).write_text("".join(lines))
    (folder / "jobs.jsonl").write_text("{}\n{\n")
    ensemble = he.open_ensemble(folder)
    with pytest.warns(he.EnsembleWarning, match=r"history.csv: .*line 8: altered"):
        assert 7 not in ensemble.history.trajectory
    with pytest.warns(he.EnsembleWarning, match=r"measurements.jsonl: .*line 7: altered"):
        assert ensemble.measurements.sizes["trajectory"] == 79
    with pytest.warns(he.EnsembleWarning, match="line 2 is left out"):
        assert ensemble.jobs == [{}]
