#!/usr/bin/env python3
"""Makes a state for `hmc replay` out of raw arrays of another program. Needs Python 3.11, numpy and h5py.

Raw files are little-endian float64 in the order of the state's datasets (docs/files.md), of the whole lattice:

  links           [t][z][y][x][mu][row][column][re, im], mu = x, y, z, t, without boundary phases
  momenta         the same: P hermitian and traceless, H = sum tr P^2 + S, dU/dtau = i P U ("ours");
                  or antihermitian, H = sum |P_ij|^2 / 2 + S, dU/dtau = P U ("milc": i sqrt(2) P)
  pseudofermions  [t][z][y][x][spin][colour][re, im], zero on the other parity; without [spin] for staggered quarks, of
                  domain-wall quarks [t][z][y][x][s][spin][colour][re, im], but of the exact one-flavour action without [s]

With "milc" a time unit of the other program is sqrt(2) of ours: multiply its trajectory's length by that for `tau`.

Example, a trajectory of two terms of which the first has two pseudofermions:

  python3 tools/make_state.py --input run.toml --links links.f64 --momenta momenta.f64 --momenta-convention milc \\
      --pseudofermion light=phi0.f64 --pseudofermion light=phi1.f64 --pseudofermion strange=phi2.f64 state.h5
  hmc replay --json --out after.h5 state.h5
"""

import argparse
import os
import sys
import tomllib

import h5py
import numpy


def fields(path, shape):
    """The complex numbers of a raw file."""
    reals = numpy.fromfile(path, dtype="<f8")
    if reals.size == 2 * numpy.prod(shape):
        return reals.view("<c16").reshape(shape)
    sys.exit(f"{path}: {reals.size} reals, but {2 * numpy.prod(shape)} are expected for {list(shape)}")


def pseudofermion(path, sites):
    """By its size a colour vector, a Dirac field, or so many of them as a fifth dimension has slices."""
    spins = numpy.fromfile(path, dtype="<f8").size // (6 * numpy.prod(sites))
    shapes = {1: (3,), 4: (4, 3)}
    return fields(path, sites + shapes.get(spins, (max(spins // 4, 1), 4, 3)))


def put(file, name, values):
    chunk = (1,) + values.shape[1:]
    file.create_dataset(name, data=values, dtype="c16", chunks=chunk, fletcher32=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="the run's input (TOML)")
    parser.add_argument("--links", required=True, help="raw file")
    parser.add_argument("--momenta", required=True, help="raw file")
    parser.add_argument("--momenta-convention", choices=["ours", "milc"], default="ours")
    parser.add_argument(
        "--pseudofermion", action="append", default=[], metavar="TERM=FILE",
        help="raw file; those of one term in the order of their numbers",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the state where it exists")
    parser.add_argument("out", help="the state (HDF5)")
    given = parser.parse_args()
    if os.path.lexists(given.out) and not given.force:
        parser.error(f"{given.out}: exists already; --force overwrites it")

    with open(given.input, encoding="utf-8") as file:
        text = file.read()
    sites = tuple(reversed(tomllib.loads(text)["lattice"]["extents"]))
    momenta = fields(given.momenta, sites + (4, 3, 3))
    if given.momenta_convention == "milc":
        momenta = momenta / (1j * numpy.sqrt(2))
    with h5py.File(given.out, "w") as out:
        out.attrs["kind"] = "hmc state"
        out.attrs["version"] = numpy.uint64(1)
        out.attrs["input"] = text
        put(out, "gauge/U", fields(given.links, sites + (4, 3, 3)))
        put(out, "momenta/P", momenta)
        counts = {}
        for one in given.pseudofermion:
            term, separator, path = one.partition("=")
            if not separator:
                parser.error(f"--pseudofermion {one}: expected TERM=FILE")
            number = counts.setdefault(term, 0)
            put(out, f"pseudofermion/{term}/{number}", pseudofermion(path, sites))
            counts[term] += 1


if __name__ == "__main__":
    main()
