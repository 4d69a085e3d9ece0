"""Files that hmc writes, read by PyQUDA; files that PyQUDA writes, read by hmc.

PyQUDA's `pyquda_io` (pure Python, on mpi4py) shares no code with hmc. It runs in a process of its own, since it starts MPI.
"""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from hmc_ensembles import Configuration

FORMATS = ("nersc", "ildg", "milc", "openqcd")

SCRIPT = """
import sys
import numpy as np
from pyquda_comm import initGrid
from pyquda_io import chroma, ildg, milc, nersc, openqcd

lattice = [int(n) for n in sys.argv[1].split(",")]
initGrid("default", [1, 1, 1, 1], lattice, False)
modules = {"nersc": nersc, "ildg": ildg, "milc": milc, "openqcd": openqcd}
links = np.load("links.npy")  # [mu, t, z, y, x, row, column]
for name, module in modules.items():
    size, read = module.readGauge(f"of_hmc.{name}")
    assert list(size) == lattice, (name, size)
    np.save(f"read_{name}.npy", read)
    if hasattr(module, "writeGauge"):
        module.writeGauge(f"of_pyquda.{name}", lattice, links)
# The same ILDG file by its SciDAC records alone.
size, read = chroma.readQIOGauge("of_hmc.ildg")
assert list(size) == lattice, ("scidac", size)
np.save("read_scidac.npy", read)
"""


@pytest.fixture(scope="module")
def exchanged(hmc, small, tmp_path_factory):
    """A folder with the links of a configuration, files of both programs, and what PyQUDA read."""
    if importlib.util.find_spec("pyquda_io") is None:
        pytest.skip("PyQUDA's pyquda_io is not on the path (make python fetches it)")
    folder = tmp_path_factory.mktemp("interchange")
    path = sorted((small / "cfg").glob("cfg_*.h5"))[-1]
    configuration = Configuration.read(path)
    links = np.ascontiguousarray(np.moveaxis(configuration.links(), 4, 0))
    np.save(folder / "links.npy", links)
    for name in FORMATS:
        hmc(folder, "convert", path, f"of_hmc.{name}")
    extents = ",".join(str(n) for n in configuration.extents)
    subprocess.run([sys.executable, "-c", SCRIPT, extents], cwd=folder, check=True)
    return folder, path, links


@pytest.mark.parametrize("name", (*FORMATS, "scidac"))
def test_pyquda_reads_what_hmc_writes(exchanged, name):
    folder, _, links = exchanged
    read = np.load(folder / f"read_{name}.npy")
    if name == "milc":
        # Single precision, made unitary again by the reader.
        assert np.abs(read - links).max() < 2e-7
    else:
        assert np.array_equal(read, links)


@pytest.mark.parametrize("name", ("nersc", "milc", "openqcd"))
def test_hmc_reads_what_pyquda_writes(hmc, exchanged, name):
    folder, path, _ = exchanged
    file = f"of_pyquda.{name}"
    if name == "milc":
        info = json.loads(hmc(folder, "info", "--json", file))
        assert (info["format"], info["verified"]) == ("MILC", "checksum")
        assert abs(info["plaquette"] - Configuration.read(path).plaquette) < 1e-7
    else:
        assert hmc(folder, "compare", path, file) == "equal to the bit\n"
