"""`measurements.jsonl` as a dataset: a line per measured trajectory."""

import numpy as np
import xarray as xr

from .records import read_json

# Dimensions after `trajectory`, units, long_name; hmc's docs/conventions.md has the definitions.
_VARIABLES = {
    "plaquette": ((), "1", "mean of (1/3) Re tr P over all planes"),
    "plaquette_space": ((), "1", "mean of (1/3) Re tr P over the planes without t"),
    "plaquette_time": ((), "1", "mean of (1/3) Re tr P over the planes with t"),
    "rectangle": ((), "1", "mean of (1/3) Re tr of 2x1 loops"),
    "polyakov": ((), "1", "Polyakov loop, mean of (1/3) tr over space (complex)"),
    "flow_e_plaquette": (("flow_time",), "a^-4", "E per site from plaquettes at flow time t"),
    "flow_e_clover": (("flow_time",), "a^-4", "E per site from the clover field strength at flow time t"),
    "flow_q": (("flow_time",), "1", "topological charge at flow time t"),
    "flow_slice_e_plaquette": (("flow_time", "slice"), "a^-4", "E per site of a time slice from plaquettes"),
    "flow_slice_e_clover": (("flow_time", "slice"), "a^-4", "E per site of a time slice from the clover field strength"),
    "flow_slice_q": (("flow_time", "slice"), "1", "topological charge of a time slice"),
    "t0": ((), "a^2", "t0 of this configuration; NaN if the flow ends before"),
    "w0": ((), "a", "w0 of this configuration; NaN if the flow ends before"),
    "correlators": (("correlator", "t"), "lattice units", "C(t) of pseudoscalars"),
    "midpoint": (("correlator", "t"), "lattice units", "C(t) of J5q at the midpoint of domain-wall quarks"),
    "m_res": (("correlator", "t"), "a^-1", "residual mass R(t), midpoint / correlators"),
    "m_res_mean": (("correlator",), "a^-1", "mean of R(t) over Lt/4 <= t <= 3 Lt/4"),
    "condensates": (("condensate",), "a^-3", "Re tr M^-1 / V by random sources"),
    "condensate_error": (("condensate",), "a^-3", "standard error of it by the scatter of sources"),
    "condensate_even": (("condensate",), "a^-3", "its part of even sites"),
    "condensate_odd": (("condensate",), "a^-3", "its part of odd sites"),
    "condensate_mass": (("condensate",), "a^-1", "mass of the quark; NaN for Wilson quarks"),
    "condensate_sources": (("condensate",), "1", "number of random sources"),
    "condensate_values": (("condensate", "source"), "a^-3", "of each source"),
    "condensate_pseudoscalar": (("condensate",), "a^-3", "Re tr i gamma_5 M^-1 / V of a twisted mass"),
    "condensate_pseudoscalar_error": (("condensate",), "a^-3", "standard error of it"),
    "condensate_twisted_mass": (("condensate",), "a^-1", "the twisted mass"),
    "mu_traces": (
        ("mu_derivative", "trace", "source"),
        "a^-3",
        "traces / V of M^-1 M' (first), M^-1 M'' (second), M^-1 M' M^-1 M' (product), M' = dM / d mu (complex)",
    ),
    "mu_mass": (("mu_derivative",), "a^-1", "mass of the quark; NaN for Wilson quarks"),
    "mesons": (("meson", "channel", "momentum", "t"), "lattice units", "C(t, p) of mesons (complex)"),
    "pcac": (("meson", "t"), "a^-1", "PCAC mass m(t), without Z_A / Z_P"),
    "pcac_mean": (("meson",), "a^-1", "mean of it over Lt/4 <= t <= 3 Lt/4"),
    "ln_weight": (("reweighting",), "1", "ln W of a reweighting factor"),
    "gap": (("spectrum",), "1/a", "least eigenvalue of |gamma_5 Mhat|"),
    "ln_weight_error": (("reweighting",), "1", "error of ln W by the scatter of sources"),
    "weight_sign": (("reweighting",), "1", "sign of W"),
    "wilson_loops": (("R", "T"), "1", "mean of (1/3) Re tr of R x T loops in space and time"),
}
_COMPLEX = ("polyakov", "mesons", "mu_traces")
_TRACES = ("first", "second", "product")
_DIMENSIONS = {
    "trajectory": ("1", "trajectories done, from 1"),
    "flow_time": ("a^2", "flow time t"),
    "slice": ("a", "time slice, from 0"),
    "correlator": ("1", "name of the correlator in the input"),
    "t": ("a", "time from the source on"),
    "condensate": ("1", "name of the condensate in the input"),
    "source": ("1", "number of the random source, from 0"),
    "mu_derivative": ("1", "name of the derivatives in the input"),
    "trace": ("1", "which trace"),
    "meson": ("1", "name of the meson in the input"),
    "channel": ("1", "operators at source and sink"),
    "momentum": ("1", "n of p_k = 2 pi n_k / L_k, as x,y,z"),
    "spectrum": ("1", "name of the spectrum in the input"),
    "reweighting": ("1", "name of the reweighting factor in the input"),
    "R": ("a", "side in space"),
    "T": ("a", "side in time"),
}
_NUMBERS = ("flow_time", "slice", "t", "source", "R", "T")
_CORRELATOR = {"re": "correlators", "midpoint": "midpoint", "m_res": "m_res"}
_CONDENSATE = {key: f"condensate_{key}" for key in ("error", "even", "odd", "mass", "sources")}
_CONDENSATE["re"] = "condensates"
_TWISTED = {key: f"condensate_{key}" for key in ("pseudoscalar", "pseudoscalar_error", "twisted_mass")}


def read_measurements(path, sealed=True):
    """The dataset of `measurements.jsonl`, or with `sealed=False` of what `hmc measure --json` printed.

    All variables have the dimension `trajectory`, and are there if they were measured:

    - `plaquette`, `plaquette_space`, `plaquette_time`, `rectangle`, `polyakov` (complex), `t0`, `w0`;
    - `flow_e_plaquette`, `flow_e_clover`, `flow_q`: (trajectory, flow_time);
    - `flow_slice_e_plaquette`, `flow_slice_e_clover`, `flow_slice_q`: (trajectory, flow_time, slice);
    - `correlators`, `midpoint`, `m_res`: (trajectory, correlator, t); `m_res_mean`: (trajectory, correlator);
    - `condensates`, `condensate_error`, ..: (trajectory, condensate); `condensate_values`: (.., source);
    - `mu_traces` (complex): (trajectory, mu_derivative, trace, source), traces `first`, `second`, `product`;
    - `mesons` (complex): (trajectory, meson, channel, momentum, t), a momentum as the text `"1,0,0"`;
    - `pcac`: (trajectory, meson, t); `pcac_mean`: (trajectory, meson);
    - `ln_weight`, `ln_weight_error`, `weight_sign`: (trajectory, reweighting); `gap`: (trajectory, spectrum);
    - `wilson_loops`: (trajectory, R, T), R and T from 1.

    Units are those of the lattice (attribute `units`). What a trajectory lacks is NaN.
    """
    return dataset(read_json(path, sealed))


def split_complex(dataset):
    """The dataset with two real variables, `X_re` and `X_im`, for each complex one: for files that have no complex
    numbers, as `split_complex(measurements).to_netcdf("measurements.nc")`.
    """
    found = dataset.drop_vars([name for name in dataset.data_vars if np.iscomplexobj(dataset[name])])
    for name in dataset.data_vars:
        if name not in found:
            for part, values in (("re", dataset[name].real), ("im", dataset[name].imag)):
                found[f"{name}_{part}"] = values.assign_attrs(dataset[name].attrs)
    return found


def dataset(records):
    """The dataset of objects as in `measurements.jsonl`, in the order of trajectories."""
    pieces = [(n, *piece) for n, record in enumerate(records) for piece in _pieces(record)]
    labels = _labels(pieces)
    places = {dimension: {label: n for n, label in enumerate(some)} for dimension, some in labels.items()}
    used = {variable for _, variable, _, _ in pieces}
    variables = {}
    for variable, (dimensions, units, long_name) in _VARIABLES.items():
        if variable in used:
            shape = [len(records)] + [len(labels[dimension]) for dimension in dimensions]
            gap = complex("nan+nanj") if variable in _COMPLEX else np.nan
            attributes = {"units": units, "long_name": long_name}
            variables[variable] = (("trajectory", *dimensions), np.full(shape, gap), attributes)
    for n, variable, own, values in pieces:
        dimensions, array, _ = variables[variable]
        where = [[places[dim][label] for label in some] for dim, some in zip(dimensions[1:], own)]
        array[np.ix_([n], *where)] = values

    labels["trajectory"] = np.array([record["trajectory"] for record in records], dtype=np.int64)
    coordinates = {}
    for dimension, (units, long_name) in _DIMENSIONS.items():
        if dimension in labels:
            coordinates[dimension] = (dimension, labels[dimension], {"units": units, "long_name": long_name})
    return xr.Dataset(variables, coordinates)


def _labels(pieces):
    """All labels of each dimension after `trajectory`: numbers sorted, names in the order of the file."""
    labels = {}
    for _, variable, own, _ in pieces:
        for dimension, some in zip(_VARIABLES[variable][0], own):
            labels.setdefault(dimension, {}).update(dict.fromkeys(some))
    return {dim: sorted(some) if dim in _NUMBERS else list(some) for dim, some in labels.items()}


def _pieces(record):
    """What a line has: variable, labels in each of its dimensions, values in the shape of the labels."""
    for name in ("plaquette", "plaquette_space", "plaquette_time", "rectangle", "t0", "w0"):
        if name in record:
            yield name, (), _real(record[name])
    if "polyakov" in record:
        yield "polyakov", (), complex(*record["polyakov"])
    if "flow" in record:
        # Times are decimal; files of older versions have 0.15000000000000002.
        times = [round(point["t"], 12) for point in record["flow"]]
        for name in ("e_plaquette", "e_clover", "q"):
            yield f"flow_{name}", (times,), [point[name] for point in record["flow"]]
    if points := record.get("flow_slices"):
        times = [round(point["t"], 12) for point in points]
        for name in ("e_plaquette", "e_clover", "q"):
            values = [point[name] for point in points]
            yield f"flow_slice_{name}", (times, range(len(values[0]))), values
    for one in record.get("correlators", ()):
        for key, variable in _CORRELATOR.items():
            if key in one:
                yield variable, ([one["name"]], range(len(one[key]))), _real([one[key]])
        if "m_res_mean" in one:
            yield "m_res_mean", ([one["name"]],), _real(one["m_res_mean"])
    for one in record.get("condensates", ()):
        for key, variable in _CONDENSATE.items():
            yield variable, ([one["name"]],), _real(one[key])
        for key, variable in _TWISTED.items():
            if key in one:
                yield variable, ([one["name"]],), _real(one[key])
        values = one.get("values", ())
        yield "condensate_values", ([one["name"]], range(len(values))), _real([values])
    for one in record.get("mu_derivatives", ()):
        values = np.array([one[trace]["values"] for trace in _TRACES])
        labels = [one["name"]], _TRACES, range(values.shape[1])
        yield "mu_traces", labels, [values[..., 0] + 1j * values[..., 1]]
        yield "mu_mass", ([one["name"]],), _real(one["mass"])
    for meson in record.get("mesons", ()):
        for one in meson["correlators"]:
            momentum = ",".join(map(str, one["momentum"]))
            labels = [meson["name"]], [one["channel"]], [momentum], range(len(one["re"]))
            yield "mesons", labels, np.array(one["re"]) + 1j * np.array(one["im"])
        if "pcac" in meson:
            yield "pcac", ([meson["name"]], range(len(meson["pcac"]))), _real([meson["pcac"]])
            yield "pcac_mean", ([meson["name"]],), _real(meson["pcac_mean"])
    for one in record.get("reweighting", ()):
        yield "ln_weight", ([one["name"]],), _real(one["ln_w"])
        yield "ln_weight_error", ([one["name"]],), _real(one["error"])
        yield "weight_sign", ([one["name"]],), _real(one.get("sign", 1))
    for one in record.get("spectra", ()):
        yield "gap", ([one["name"]],), _real(one["least"])
    if "wilson_loops" in record:
        loops = np.array(record["wilson_loops"])
        yield "wilson_loops", (range(1, len(loops) + 1), range(1, loops.shape[1] + 1)), loops


def _real(values):
    """A number or numbers, NaN for null."""
    return np.array(values, dtype=float)
