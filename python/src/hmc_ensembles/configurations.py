"""Configurations of links, read from HDF5 when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import h5py

_NAME = re.compile(r"cfg_(\d{6,})\.h5")
_LINKS = "gauge/U"
_ALL = slice(None)


@dataclass(frozen=True)
class Configuration:
    """The header of a file of links.

    `extents` are x, y, z, t. `trajectory` is None if the file does not say. `plaquette` is the mean of (1/3)
    Re tr P as the writer found it. `input` is the run's input (TOML), `links_checksum` 16 hexadecimal digits
    of the links alone.
    """

    path: Path
    extents: tuple[int, int, int, int]
    trajectory: int | None
    plaquette: float
    program: str
    input: str = field(repr=False)
    links_checksum: str

    @classmethod
    def read(cls, path):
        """Reads the header of a configuration or checkpoint of hmc; `hmc convert` makes one of other formats."""
        with open(path, "rb") as file:
            if file.read(8) != b"\x89HDF\r\n\x1a\n":
                raise ValueError(f"{path}: not an HDF5 file; make one of it by: hmc convert {path} OUT.h5")
        with h5py.File(path, "r") as file:
            if _LINKS not in file or "format_version" not in file.attrs:
                raise ValueError(f"{path}: an HDF5 file, but no configuration of hmc")
            attributes = dict(file.attrs)
        version = int(attributes["format_version"])
        if version != 1:
            raise ValueError(f"{path}: format_version {version}, this package reads 1")
        trajectory = attributes.get("trajectory")
        return cls(
            path=Path(path),
            extents=tuple(int(extent) for extent in attributes["extents"]),
            trajectory=None if trajectory is None else int(trajectory),
            plaquette=float(attributes["plaquette"]),
            program=attributes["program"],
            input=attributes["input"],
            links_checksum=attributes["links_checksum"],
        )

    def links(self, t=_ALL, z=_ALL, y=_ALL, x=_ALL):
        """Links U_mu(x) in SU(3) as complex128 of shape (t, z, y, x, 4, 3, 3): mu = x, y, z, t, row, column.

        U_mu(x) carries from x + mu to x; links are periodic and have no phases. A slice, `t=slice(0, 4)`,
        reads a part; the file has a chunk per time slice, and HDF5 checks the checksum of each that it reads.
        """
        with h5py.File(self.path, "r") as file:
            return file[_LINKS][t, z, y, x]


class Configurations(Mapping):
    """The configurations of a folder by trajectory: a file is opened when its trajectory is asked for."""

    def __init__(self, folder):
        names = ((_NAME.fullmatch(path.name), path) for path in Path(folder).glob("cfg_*.h5"))
        self._paths = dict(sorted((int(match[1]), path) for match, path in names if match))

    def __getitem__(self, trajectory):
        if trajectory not in self._paths:
            raise KeyError(f"there is no configuration of trajectory {trajectory}; {self!r}")
        return Configuration.read(self._paths[trajectory])

    def __contains__(self, trajectory):
        return trajectory in self._paths

    def __iter__(self):
        return iter(self._paths)

    def __len__(self):
        return len(self._paths)

    def __repr__(self):
        ends = f", {min(self)} to {max(self)}" if self else ""
        return f"<Configurations of {len(self)} trajectories{ends}>"
