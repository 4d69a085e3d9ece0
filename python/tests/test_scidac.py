"""Files that hmc writes, read by a reader of LIME and SciDAC written from the descriptions of the formats."""

import json

import numpy as np
import pytest

from hmc_ensembles import Configuration
from scidac_reader import lime_records, read_gauge

LFN = "lfn://LDG/test/cfg_000001.ildg"


@pytest.fixture(scope="module")
def written(hmc, small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scidac")
    path = sorted((small / "cfg").glob("cfg_*.h5"))[-1]
    hmc(folder, "convert", "--lfn", LFN, path, "a.ildg")
    return folder, path


def mean_plaquette(links):
    """The mean of Re tr P / 3 of [t, z, y, x, mu, row, column]."""
    total = 0.0
    ahead = [np.roll(links, -1, axis=3 - mu) for mu in range(4)]
    for mu in range(4):
        for nu in range(mu + 1, 4):
            one = links[..., mu, :, :] @ ahead[mu][..., nu, :, :]
            other = links[..., nu, :, :] @ ahead[nu][..., mu, :, :]
            total += np.einsum("...ij,...ij->...", one, other.conj()).real.mean() / 18
    return total


def test_links_and_records(written):
    folder, path = written
    configuration = Configuration.read(path)
    links, said = read_gauge(folder / "a.ildg")
    assert np.array_equal(links, configuration.links())
    assert said["lfn"] == LFN
    assert abs(float(said["usqcdInfo"]["plaq"]) - mean_plaquette(links)) < 1e-13
    trace = np.trace(links, axis1=-2, axis2=-1).real.mean() / 3
    assert abs(float(said["usqcdInfo"]["linktr"]) - trace) < 1e-13
    assert said["usqcdInfo"]["info"].endswith(f", trajectory {configuration.trajectory}")
    assert [record.kind for record in lime_records(folder / "a.ildg") if record.begins] == [
        "scidac-private-file-xml",
        "scidac-private-record-xml",
    ]


def test_the_reader_sees_damage(written, tmp_path):
    raw = bytearray((written[0] / "a.ildg").read_bytes())
    # A bit of the links, of a flag, of the padding of a text.
    record = raw.index(b"scidac-file-xml") - 16
    for place in (len(raw) // 2, record + 6, raw.index(b"scidac-checksum") - 1 - 16):
        damaged = bytearray(raw)
        damaged[place] ^= 0x40
        (tmp_path / "b.ildg").write_bytes(damaged)
        with pytest.raises(ValueError):
            read_gauge(tmp_path / "b.ildg")


def test_hmc_reads_a_scidac_file_without_ildg_records(hmc, written):
    folder, path = written
    raw = (folder / "a.ildg").read_bytes()
    # The records of ILDG alone are left out; its data are SciDAC's.
    start, end = raw.index(b"ildg-format") - 16, raw.index(b"ildg-binary-data") - 16
    raw = raw[:start] + raw[end:]
    raw = raw.replace(b"ildg-binary-data\0\0", b"scidac-binary-data")
    (folder / "b.scidac").write_bytes(raw)
    links, said = read_gauge(folder / "b.scidac")
    assert np.array_equal(links, Configuration.read(path).links()) and "ildg-format" not in said["order"]
    assert hmc(folder, "compare", path, "b.scidac") == "equal to the bit\n"
    assert json.loads(hmc(folder, "info", "--json", "b.scidac"))["verified"] == "checksum"
