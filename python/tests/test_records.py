"""Files made by hand: what is wrong with them is reported and left out."""

import json
import zlib

import numpy as np
import pytest

import hmc_ensembles as he
from hmc_ensembles.history import read_history


def csv(*rows):
    sealed = [f"{row},{zlib.crc32(row.encode())}" for row in rows]
    return "\n".join(["trajectory,delta_h,iterations_0,crc32", *sealed, ""])


def sealed_json(**fields):
    line = json.dumps(fields, separators=(",", ":"))
    return f'{line[:-1]},"crc32":{zlib.crc32(line.encode())}}}\n'


@pytest.fixture
def history(tmp_path):
    def read(text):
        (tmp_path / "history.csv").write_text(text)
        return read_history(tmp_path / "history.csv")

    return read


@pytest.mark.filterwarnings("error")
def test_whole_rows_are_read_without_a_warning(history):
    found = history(csv("1,-0.25,10", "2,1e-3,12") + "3,0.5,1")  # the last row is being written
    assert found.trajectory.values.tolist() == [1, 2]
    assert found.delta_h.values.tolist() == [-0.25, 1e-3]
    assert found.iterations_of_level.values.tolist() == [[10], [12]]
    assert found.iterations_of_level.dtype == np.int64


@pytest.mark.filterwarnings("error")
def test_a_history_without_rows_is_empty(history):
    found = history(csv())
    assert found.sizes == {"trajectory": 0, "level": 1}


@pytest.mark.filterwarnings("error")
def test_an_empty_field_is_nan(history):
    found = history(csv("1,0.5,10", "2,0.5,"))
    np.testing.assert_array_equal(found.iterations_of_level.sel(level=0), [10, np.nan])


@pytest.mark.parametrize(
    ("text", "message", "kept"),
    [
        (csv("1,0.5,10", "2,0.5,9").replace("2,0.5", "2,0.6"), "line 3: altered", [1]),
        (csv("1,0.5,10", "2,0.5", "3,0.5,9"), "line 3: not of 3 columns", [1, 3]),
        (csv("1,0.5,10", "x,0.5,7"), "line 3: invalid literal", [1]),
        (csv("1,0.5,10", "1,0.5,10"), "line 3: trajectory 1 again$", [1]),
        (csv("1,0.5,10", "2,0.5,9", "1,0.5,11"), "line 4: trajectory 1 again, with other numbers", [2]),
        (csv(*["1,0.5"] * 12, "2,0.5,7"), "line 11: not of 3 columns; and 2 more", [2]),
    ],
)
def test_bad_rows_are_reported(history, text, message, kept):
    with pytest.warns(he.EnsembleWarning, match=message):
        assert history(text).trajectory.values.tolist() == kept


def test_a_history_needs_its_names(history):
    with pytest.raises(ValueError, match="names of columns"):
        history("trajectory,delta_h\n1,0.5\n")


def test_bad_measurements_are_reported(tmp_path):
    path = tmp_path / "measurements.jsonl"
    lines = [sealed_json(trajectory=n, plaquette=0.1 * n) for n in (2, 1, 3)]
    lines += [sealed_json(plaquette=0.5), "{}\n"]
    path.write_text("".join(lines).replace(":0.2,", ":0.21,"))
    with pytest.warns(he.EnsembleWarning, match="line 1: altered.*line 4: has no traj.*line 5: altered"):
        found = he.read_measurements(path)
    assert found.trajectory.values.tolist() == [1, 3]
    assert found.plaquette.values.tolist() == [0.1, 0.1 * 3]
    path.write_text('{"file":"a","trajectory":4,"plaquette":0.5}\n{"file":"b","trajectory":null}\n[1]\nx\n')
    with pytest.warns(he.EnsembleWarning, match="line 2: has no traj.*; line 3: has no.*; line 4: Expecting"):
        assert he.read_measurements(path, sealed=False).trajectory.values.tolist() == [4]


@pytest.mark.filterwarnings("error")
def test_a_chain_that_measures_nothing(tmp_path):
    (tmp_path / "run.toml").write_text("[run]\n")
    (tmp_path / "run_000012.toml").write_text("[run] # 12\n")
    (tmp_path / "run_000012.toml.superseded").write_text("")
    ensemble = he.open_ensemble(tmp_path)
    assert ensemble.measurements.sizes == {"trajectory": 0}
    assert ensemble.jobs == [] and len(ensemble.configurations) == 0
    assert ensemble.inputs == {0: "[run]\n", 12: "[run] # 12\n"}


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="it has no run"):
        he.open_ensemble(tmp_path)
