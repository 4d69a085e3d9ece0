"""Open and analyse ensembles of gauge fields made by `hmc`.

`open_ensemble(folder)` gives histories and measurements as xarray datasets and configurations as numpy
arrays; of an ensemble with streams, all of them together. `autocorrelation` and `derived` give means with
errors by the Gamma method, `thermalisation` proposes a cut, `t0` and `w0` are scales of the gradient flow.
Everything is in lattice units.
"""

from importlib.metadata import PackageNotFoundError, version

from .configurations import Configuration, Configurations
from .ensemble import Ensemble, Streams, open_ensemble
from .gamma import Result, autocorrelation, derived, to_obs
from .measurements import read_measurements, split_complex
from .mser import thermalisation
from .records import EnsembleWarning
from .scales import t0, w0

try:
    __version__ = version("hmc-ensembles")
except PackageNotFoundError:  # from a source folder on the path
    __version__ = "unknown"

__all__ = [
    "Configuration",
    "Configurations",
    "Ensemble",
    "EnsembleWarning",
    "Result",
    "Streams",
    "autocorrelation",
    "derived",
    "open_ensemble",
    "read_measurements",
    "split_complex",
    "t0",
    "thermalisation",
    "to_obs",
    "w0",
]
