"""The folder of an ensemble."""

import json
import re
from functools import cached_property
from pathlib import Path

from .configurations import Configurations
from .history import read_history
from .measurements import dataset, read_measurements
from .records import warn

_INPUT = re.compile(r"run(?:_(\d{6,}))?\.toml")


def open_ensemble(folder):
    """The `Ensemble` in a folder that hmc made, `ENSEMBLES/NAME`. A job may be working there."""
    folder = Path(folder)
    if not (folder / "run.toml").exists():
        raise FileNotFoundError(f"{folder} is not the folder of an ensemble: it has no run.toml")
    return Ensemble(folder)


class Ensemble:
    """A chain and what was measured along it.

    Each attribute is read when it is first asked for, and then kept: open the folder again to see a chain
    grow.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def __repr__(self):
        return f"<Ensemble {self.folder}>"

    @cached_property
    def history(self):
        """`history.csv`, an `xarray.Dataset` over `trajectory`; see `history.read_history`."""
        return read_history(self.folder / "history.csv")

    @cached_property
    def measurements(self):
        """`measurements.jsonl`, an `xarray.Dataset` over `trajectory`; see `read_measurements`."""
        path = self.folder / "measurements.jsonl"
        return read_measurements(path) if path.exists() else dataset([])

    @cached_property
    def configurations(self):
        """The files `cfg/cfg_NNNNNN.h5`, a mapping from trajectory to `Configuration`."""
        return Configurations(self.folder / "cfg")

    @cached_property
    def jobs(self):
        """A dictionary per job that worked here: `host`, `since`, `after`, `program`, `device`, .."""
        path = self.folder / "jobs.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        jobs = []
        for number, line in enumerate(lines, 1):
            try:
                jobs.append(json.loads(line))
            except ValueError:
                warn(f"{path}: line {number} is left out: not JSON")
        return jobs

    @cached_property
    def inputs(self):
        """The inputs (TOML) that made parts of the chain, by the trajectories that were done before."""
        matches = ((_INPUT.fullmatch(path.name), path) for path in self.folder.glob("run*.toml"))
        return dict(sorted((int(match[1] or 0), path.read_text("utf-8")) for match, path in matches if match))
