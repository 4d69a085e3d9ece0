"""`history.csv` as a dataset: a row per trajectory of the chain."""

import re

import numpy as np
import xarray as xr

from .records import read_csv

# Columns of the whole trajectory: units and long_name.
_CHAIN = {
    "trajectory": ("1", "trajectories done, from 1"),
    "delta_h": ("1", "dH, H after molecular dynamics less H before"),
    "accepted": ("1", "1: accepted (always during thermalisation), 0: rejected"),
    "plaquette": ("1", "mean of (1/3) Re tr P after the Metropolis step"),
    "unitarity": ("1", "greatest violation of unitarity of a link, before the projection"),
    "seconds": ("s", "wall time of molecular dynamics and Metropolis step"),
    "tuning": ("1", "trajectory after which the tuning in force began"),
    "reversibility": ("1", "greatest element of U - U_back after molecular dynamics forward and back"),
    "reversibility_dh": ("1", "|dH| after molecular dynamics forward and back"),
    "accepted_cycles": ("1", "accepted cycles of stochastic molecular dynamics"),
    "verified": ("1", "1: walked twice with the same bits, 0: walked once"),
}
# Columns QUANTITY_L of a level L, and QUANTITY_of_T of a term T.
_PARTS = {
    "dS": ("1", "change of the action in molecular dynamics"),
    "force": ("1", "root mean square of |F| over links, averaged over kicks"),
    "force_max": ("1", "greatest |F| of a link"),
    "iterations": ("1", "iterations of solves"),
    "seconds": ("s", "wall time"),
}
_DIMENSIONS = {"level": ("1", "level of the integrator, 0 the outermost"), "term": ("1", "name of the term")}
_PART = re.compile(r"(dS|force|force_max|iterations|seconds)_(?:(?P<level>\d+)|of_(?P<term>.+))")
_COUNTS = ("trajectory", "accepted", "accepted_cycles", "tuning", "verified", "iterations")


def read_history(path):
    """The dataset of `history.csv`.

    All variables have the dimension `trajectory`. Columns of levels, `force_0`, are the variables
    `force_of_level`, `force_max_of_level`, `iterations_of_level` and `seconds_of_level` with the dimension
    `level` (0 is the outermost). Columns of terms, `force_of_light`, are `dS_of_term`, `force_of_term`, ..
    with the dimension `term`, a name. Counts are int64, reals float64. A variable with empty fields is
    float64, with NaN there.
    """
    names, rows = read_csv(path)
    columns = dict(zip(names, zip(*rows) if rows else [()] * len(names)))
    trajectory = _values("trajectory", columns.pop("trajectory"))
    variables, parts = {}, {}
    for name, fields in columns.items():
        part = _PART.fullmatch(name)
        if part is None:
            attributes = _attributes(_CHAIN.get(name, ("1", name)))
            variables[name] = ("trajectory", _values(name, fields), attributes)
        else:
            quantity, dimension = part[1], "term" if part["term"] else "level"
            label = part["term"] or int(part["level"])
            parts.setdefault(dimension, {}).setdefault(quantity, {})[label] = _values(quantity, fields)
    coordinates = {"trajectory": ("trajectory", trajectory, _attributes(_CHAIN["trajectory"]))}
    for dimension, quantities in parts.items():
        labels = list(dict.fromkeys(label for quantity in quantities.values() for label in quantity))
        if dimension == "level":
            labels.sort()
        coordinates[dimension] = (dimension, labels, _attributes(_DIMENSIONS[dimension]))
        for quantity, of_label in quantities.items():
            gap = np.full(len(trajectory), np.nan)
            values = np.stack([of_label.get(label, gap) for label in labels], axis=1)
            name = f"{quantity}_of_{dimension}"
            variables[name] = (("trajectory", dimension), values, _attributes(_PARTS[quantity]))
    return xr.Dataset(variables, coordinates)


def _attributes(pair):
    return {"units": pair[0], "long_name": pair[1]}


def _values(quantity, fields):
    """Texts as numbers: int64 if it is a count and all are there, else float64."""
    if quantity in _COUNTS and "" not in fields:
        return np.array(fields, dtype=np.int64)
    return np.array([float(field or "nan") for field in fields])
