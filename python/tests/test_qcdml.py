"""What `hmc qcdml` writes, parsed as XML: order and content of the elements of QCDml 2.0."""

import xml.etree.ElementTree as ElementTree

import pytest
from scidac_reader import lime_records, read_gauge

RUN = """
[run]
name = "pure"
seed = 5
trajectories = 2
save_format = "ildg"
lfn = "lfn://LDG/test/pure"
[lattice]
extents = [4, 4, 2, 6]
[parallel]
device = "cpu"
threads = 1
[gauge]
action = "symanzik"
beta = 4.0
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge"]
"""
TOLD = ("--uri", "mc://LDG/test/pure", "--collaboration", "A < B & C", "--project", "p", "--participant", "N. N.")
LICENCE = ("--institution", "U", "--license", "https://creativecommons.org/licenses/by/4.0/")


def cksum(data):
    """The CRC of POSIX's cksum."""
    table = []
    for byte in range(256):
        crc = byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
        table.append(crc)
    length = len(data).to_bytes((len(data).bit_length() + 7) // 8, "little")
    crc = 0
    for byte in data + length:
        crc = (crc << 8 & 0xFFFFFFFF) ^ table[crc >> 24 ^ byte]
    return crc ^ 0xFFFFFFFF


@pytest.fixture(scope="module")
def chain(hmc, tmp_path_factory):
    folder = tmp_path_factory.mktemp("qcdml")
    (folder / "run.toml").write_text(RUN)
    hmc(folder, "run.toml")
    hmc(folder, "qcdml", *TOLD, *LICENCE, "ensembles/pure")
    return folder / "ensembles" / "pure"


def root(path, name, space):
    found = ElementTree.parse(path).getroot()
    space = f"{{http://www.lqcd.org/ildg/QCDml/{space}}}"
    assert found.tag == space + name
    assert all(element.tag.startswith(space) for element in found.iter())
    for element in found.iter():
        element.tag = element.tag.removeprefix(space)
    return found


def names(element):
    return [child.tag for child in element]


def test_ensemble(chain):
    ensemble = root(chain / "qcdml" / "ensemble.xml", "markovChain", "ensemble2.0")
    assert names(ensemble) == ["markovChainURI", "management", "license", "physics", "algorithm"]
    assert ensemble.findtext("management/collaboration") == "A < B & C"
    assert [size.text for size in ensemble.find("physics/size")] == ["4", "4", "2", "6"]
    gluon = ensemble.find("physics/action/gluon/treelevelSymanzikGluonAction")
    assert names(gluon) == ["glossary", "gluonField", "beta", "normalisation", "c0", "c1", "c2", "c3"]
    c = [float(gluon.findtext(f"c{n}")) for n in range(4)]
    assert c == pytest.approx([5 / 3, -1 / 12, 0, 0], abs=1e-15)
    expected = ["name", "glossary", "reference", "exact", "reweightingNeeded", "parameters"]
    assert names(ensemble.find("algorithm")) == expected


@pytest.mark.parametrize("number", (1, 2))
def test_configuration(chain, number):
    name = f"cfg_{number:06}"
    found = root(chain / "qcdml" / f"{name}.xml", "gaugeConfiguration", "config2.0")
    expected = ["dataLFN", "management", "implementation", "algorithm", "precision", "markovSequence"]
    assert names(found) == expected
    path = chain / "ildg" / f"{name}.ildg"
    data = {record.kind: record.data for record in lime_records(path)}
    _, said = read_gauge(path)
    assert found.findtext("dataLFN") == said["lfn"] == f"lfn://LDG/test/pure/{name}.ildg"
    step = found.find("markovSequence/markovStep")
    assert step.findtext("update") == str(number)
    assert int(step.findtext("record/crcCheckSum")) == cksum(data["ildg-binary-data"])
    assert float(step.findtext("record/avePlaquette")) == float(said["usqcdInfo"]["plaq"])
