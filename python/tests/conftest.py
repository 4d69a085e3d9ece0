"""Ensembles that hmc makes for the tests, if HMC_PROGRAM names it."""

import os
import subprocess
from pathlib import Path

import pytest

SMALL = Path(__file__).with_name("small.toml")

# The physics of a chain: two trajectories with two levels, then with one level, another tau and other measurements.
PHYSICS = """
[run]
name = "tuned"
seed = 2
trajectories = {}
[lattice]
extents = [4, 4, 4, 4]
[parallel]
device = "cpu"
threads = 1
[gauge]
action = "wilson"
beta = 5.0
[fermion.light]
action = "wilson"
kappa = 0.11
"""
TUNED = (
    PHYSICS.format(2)
    + """
[[hmc.level]]
integrator = "2mn"
steps = 4
terms = ["light"]
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge"]
[measure.loops]
[measure.flow]
step = 0.1
t_max = 0.2
"""
)
RETUNED = (
    PHYSICS.format(4)
    + """
[hmc]
tau = 0.5
[[hmc.level]]
integrator = "2mn"
steps = 8
terms = ["light", "gauge"]
[measure.polyakov]
[measure.flow]
step = 0.1
t_max = 0.3
"""
)
# Streams of one ensemble, the second shorter and with more measurements.
STREAM = """
[run]
name = "pure"
stream = "{}"
seed = {}
trajectories = {}
start = "cold"
[lattice]
extents = [4, 4, 4, 4]
[parallel]
device = "cpu"
threads = 1
[gauge]
action = "wilson"
beta = 5.5
[[hmc.level]]
integrator = "2mn"
steps = 4
terms = ["gauge"]
[measure.loops]
{}
"""
WALLS = """
[run]
name = "walls"
seed = 3
trajectories = 2
thermalisation = 2
[lattice]
extents = [4, 4, 4, 4]
[parallel]
device = "cpu"
threads = 1
[gauge]
action = "iwasaki"
beta = 2.2
[fermion.light]
action = "domain-wall"
weights = "shamir"
n_s = 4
m5 = 1.8
mass = 0.3
[[hmc.level]]
integrator = "2mn"
steps = 6
terms = ["light", "gauge"]
[measure.correlator.pion]
fermion = "light"
[measure.correlator.heavy]
fermion = "light"
mass = 0.6
[measure.condensate.light]
fermion = "light"
"""


@pytest.fixture(scope="session")
def hmc():
    """A function that runs hmc in a folder, with arguments, and gives what it prints."""
    program = os.environ.get("HMC_PROGRAM")
    if not program:
        pytest.skip("HMC_PROGRAM does not name the program hmc: no ensembles to read")
    program = Path(program).resolve()

    def run(folder, *arguments):
        done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def workplace(hmc, tmp_path_factory):
    """The folder with `ensembles/small`, that of the README."""
    folder = tmp_path_factory.mktemp("small")
    hmc(folder, SMALL)
    return folder


@pytest.fixture(scope="session")
def small(workplace):
    return workplace / "ensembles" / "small"


@pytest.fixture(scope="session")
def tuned(hmc, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    for text in (TUNED, RETUNED):
        (folder / "input.toml").write_text(text)
        hmc(folder, "input.toml")
    return folder / "ensembles" / "tuned"


@pytest.fixture(scope="session")
def streams(hmc, tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    for stream in (("a", 1, 60, ""), ("b", 2, 45, "[measure.polyakov]")):
        (folder / "input.toml").write_text(STREAM.format(*stream))
        hmc(folder, "input.toml")
    return folder / "ensembles" / "pure"


@pytest.fixture(scope="session")
def walls(hmc, tmp_path_factory):
    folder = tmp_path_factory.mktemp("walls")
    (folder / "input.toml").write_text(WALLS)
    hmc(folder, "input.toml")
    return folder / "ensembles" / "walls"
