"""The folder of an ensemble."""

import json
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import xarray as xr

from .configurations import Configurations
from .history import read_history
from .measurements import dataset, read_measurements
from .records import warn

_EXTENTS = re.compile(r"^\s*extents\s*=\s*\[" + r",".join([r"\s*(\d+)\s*"] * 4) + r"\]", re.MULTILINE)
_INPUT = re.compile(r"run(?:_(\d{6,}))?\.toml")


def open_ensemble(folder):
    """The `Ensemble` in a folder that hmc made, `ENSEMBLES/NAME`, or its `Streams`. A job may be working there."""
    folder = Path(folder)
    if (folder / "run.toml").exists():
        return Ensemble(folder)
    chains = {path.parent.name: Ensemble(path.parent) for path in sorted(folder.glob("*/run.toml"))}
    name = folder.resolve().name
    streams = {stream: chain for stream, chain in chains.items() if _is_stream(chain, name)}
    if not streams:
        inputs = [*folder.glob("*/run.toml"), *folder.glob("*/*/run.toml")]
        there = sorted({path.relative_to(folder).parts[0] for path in inputs})
        names = f"; it holds the ensembles {', '.join(there)}" if there else ""
        raise FileNotFoundError(f"{folder} is not the folder of an ensemble: it has no run.toml{names}")
    return Streams(streams)


def _is_stream(chain, ensemble):
    """Whether a chain is one of the streams of an ensemble: by its input, or moved there from its folder."""
    text = list(chain.inputs.values())[-1]
    keys = rf'^[^#\n]*\b(stream\s*=|name\s*=\s*"{re.escape(ensemble)}")'
    return re.search(keys, text, re.MULTILINE) is not None


class Ensemble:
    """A chain and what was measured along it.

    Each attribute is read when it is first asked for, and then kept: open the folder again to see a chain
    grow.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def __repr__(self):
        done = len(self.history.trajectory) if (self.folder / "history.csv").exists() else 0
        extents = "x".join(map(str, self.extents)) if self.extents else "unknown extents"
        return f"<Ensemble {self.folder}: {done} trajectories on {extents}>"

    @cached_property
    def extents(self):
        """x, y, z, t, as in the input; None if that has none."""
        found = _EXTENTS.search(list(self.inputs.values())[-1]) if self.inputs else None
        return tuple(map(int, found.groups())) if found else None

    @cached_property
    def attributes(self):
        """What the datasets tell of their origin: `ensemble`, `folder`, `extents`, `program`, `input` (TOML)."""
        known = {"ensemble": self.folder.resolve().name, "folder": str(self.folder), "extents": self.extents}
        known["program"] = self._program()
        known["input"] = list(self.inputs.values())[-1] if self.inputs else None
        return {name: value for name, value in known.items() if value is not None}

    def _program(self):
        """Name and version of the program of the newest job, if its line can be read."""
        path = self.folder / "jobs.jsonl"
        programs = re.findall(r'"program":\s*"([^"]*)"', path.read_text("utf-8")) if path.exists() else []
        return programs[-1] if programs else None

    @cached_property
    def history(self):
        """`history.csv`, an `xarray.Dataset` over `trajectory`; see `history.read_history`."""
        return read_history(self.folder / "history.csv").assign_attrs(self.attributes)

    @cached_property
    def measurements(self):
        """`measurements.jsonl`, an `xarray.Dataset` over `trajectory`; see `read_measurements`."""
        path = self.folder / "measurements.jsonl"
        found = read_measurements(path) if path.exists() else dataset([])
        return found.assign_attrs(self.attributes)

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


class Streams(Mapping):
    """Chains of one ensemble: a mapping from their names to an `Ensemble` each, and what they have in common.

    `history` and `measurements` have the dimension `stream` before all others, and the trajectories of all
    streams: a variable is NaN where a stream has not been. `autocorrelation` and `derived` take the variables
    as they are.
    """

    def __init__(self, ensembles):
        self._ensembles = dict(ensembles)

    def __getitem__(self, stream):
        return self._ensembles[stream]

    def __iter__(self):
        return iter(self._ensembles)

    def __len__(self):
        return len(self._ensembles)

    def __repr__(self):
        return f"<Streams {', '.join(self)}>"

    @cached_property
    def history(self):
        """The histories of all streams, an `xarray.Dataset` over `stream` and `trajectory`."""
        return self._merged([ensemble.history for ensemble in self.values()])

    @cached_property
    def measurements(self):
        """The measurements of all streams, an `xarray.Dataset` over `stream` and `trajectory`."""
        return self._merged([ensemble.measurements for ensemble in self.values()])

    def _merged(self, datasets):
        attributes = {"units": "1", "long_name": "name of the chain"}
        names = xr.DataArray(list(self), dims="stream", name="stream", attrs=attributes)
        # The folder and the input of each differ.
        options = {"data_vars": "all", "coords": "minimal", "compat": "override", "join": "outer"}
        merged = xr.concat(datasets, names, combine_attrs="drop_conflicts", **options)
        return merged.transpose("stream", "trajectory", ...)
