#!/usr/bin/env bash
# The library for C, after `make capi` has built it.
#
#   tools/capi.sh install PREFIX   PREFIX/lib/libhmc.so, PREFIX/include/hmc.h, PREFIX/lib/pkgconfig/hmc.pc
#   tools/capi.sh check PREFIX     compiles and runs examples/c, and compares their numbers with those of the program
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

stop() {
    echo "capi: $1" >&2
    exit 1
}

install_to() {
    local prefix=$1 version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
    mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
    prefix=$(cd "$prefix" && pwd)
    install -m 755 "$target/release/libhmc.so" "$prefix/lib/libhmc.so.0"
    ln -sf libhmc.so.0 "$prefix/lib/libhmc.so"
    install -m 644 src/capi/hmc.h "$prefix/include/hmc.h"
    cat >"$prefix/lib/pkgconfig/hmc.pc" <<PC
prefix=$prefix

Name: hmc
Description: Configurations, quarks and measurements of lattice QCD
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lhmc
PC
    echo "capi: $prefix"
}

# What C and Python print, and what the program says of the same configuration.
compare() {
    python3 - "$1" <<'PYTHON'
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
c, python, ranks, info, pion, flow, staggered = (
    json.loads((folder / f"{name}.json").read_text())
    for name in ("c", "python", "ranks", "info", "pion", "flow", "staggered")
)

def same(what, found, expected):
    assert found == expected, f"{what}: {found} is not {expected}"
    print(f"capi: {what}: equal")

def near(what, found, expected, tolerance):
    error = max(abs(f - e) / abs(e) for f, e in zip(found, expected, strict=True))
    assert error < tolerance, f"{what}: {error:.1e}"
    print(f"capi: {what}: {error:.1e}")

def without_file(line):
    return {key: value for key, value in line.items() if key != "file"}

same("plaquette", [c["plaquette"], ranks["plaquette"]], [info["plaquette"]] * 2)
same("checksum", [c["links_checksum"], ranks["links_checksum"]], [info["links_checksum"]] * 2)
same("info from Python", without_file(python["info"]), without_file(info))
same("links through Python", python["again"]["links_checksum"], info["links_checksum"])
same("measured from C", c["measured"], without_file(pion))
same("measured from Python", python["measured"], without_file(flow))
same("measured on two ranks", ranks["measured"], without_file(staggered))
near("pion from C's propagator", c["pion"], pion["correlators"][0]["re"], 1e-11)
sites = info["extents"][0] * info["extents"][1] * info["extents"][2] * info["extents"][3]
near("gauge action", [c["action"]], [6.0 * 6 * sites * (1 - info["plaquette"])], 1e-12)
assert c["residual"] < 1e-10 and c["iterations"] > 0, c["residual"]
for name, quark in python["quarks"].items():
    assert quark["residual"] < 1e-8 and quark["adjoint"] < 1e-12, (name, quark)
    print(f"capi: {name}: |b - M x| / |b| = {quark['residual']:.1e} after {quark['iterations']} iterations")
assert [code for _, code, _ in python["refusals"]] == [2, 2, 2, 2, 2, 1], python["refusals"]
PYTHON
}

# 300 rounds that make and free everything take no more memory than 30.
leaks() {
    HMC_LIBRARY=$1 python3 - "$2" <<'PYTHON'
import array, ctypes, os, resource, sys
from ctypes import byref, c_size_t, c_void_p

hmc = ctypes.CDLL(os.environ["HMC_LIBRARY"])
for name in ("hmc_close", "hmc_links_free", "hmc_quark_free", "hmc_free_text"):
    getattr(hmc, name).argtypes = [c_void_p]
quark = b'[fermion.q]\naction = "wilson"\nkappa = 0.1\n[quark]\nfermion = "q"\n'
sites = 8 * 4 * 4 * 8
room = array.array("d", bytes(8 * 24 * sites))
at = c_void_p(room.buffer_info()[0])

def round_of_all():
    session, links, made, text = (c_void_p() for _ in range(4))
    codes = [
        hmc.hmc_open(b"[parallel]\nthreads = 2\n", byref(session)),
        hmc.hmc_links_read(session, sys.argv[1].encode(), byref(links)),
        hmc.hmc_quark_new(links, quark, byref(made)),
        hmc.hmc_quark_solve(made, at, at, c_size_t(24 * sites), None),
        hmc.hmc_links_info(links, byref(text)),
    ]
    assert codes == [0] * 5, codes
    assert hmc.hmc_links_read(session, b"/nowhere", byref(c_void_p())) == 1
    hmc.hmc_free_text(text)
    hmc.hmc_close(session)
    hmc.hmc_links_free(links)
    hmc.hmc_quark_free(made)

def after(rounds):
    for _ in range(rounds):
        round_of_all()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

first, last = after(30), after(300)
print(f"capi: {first} kB after 30 rounds, {last} kB after 330")
assert last < first + 30000, "memory leaks: the links of a round are 590 kB"
PYTHON
}

check() {
    local prefix program work cfg quickstart=inputs/quickstart.toml
    prefix=$(cd "$1" && pwd)
    program=$(cd "$target/release" && pwd)/hmc
    work=$(mktemp -d)
    trap "rm -rf '$work'" EXIT
    export LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    local flags=(-I"$prefix/include" -L"$prefix/lib" -lhmc -lm)
    if command -v pkg-config >/dev/null; then
        read -ra flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs hmc) -lm"
    fi
    # No symbols but those of the header, and none missing.
    diff <(nm -D --defined-only "$prefix/lib/libhmc.so" | awk '{ print $3 }' | sort) \
        <(grep -o '^[a-z].*(' src/capi/hmc.h | grep -o 'hmc_[a-z_]*($' | tr -d '(' | sort) ||
        stop "symbols differ from the header"
    printf '#include <hmc.h>\nint main() { return hmc_error()[0]; }\n' >"$work/plain.cpp"
    c++ -std=c++11 -Wall -Wextra -Werror -pedantic "$work/plain.cpp" "${flags[@]}" -o "$work/plain" && "$work/plain"
    cc -std=c99 -O2 -Wall -Wextra -Werror -pedantic examples/c/quark.c "${flags[@]}" -o "$work/quark"

    (cd "$work" && "$program" "$OLDPWD/$quickstart" >/dev/null)
    cfg=$work/ensembles/quickstart/cfg/cfg_000020.h5
    "$program" info --json "$cfg" >"$work/info.json"
    local clover='[fermion.light]\naction = "wilson-clover"\nkappa = 0.12\nc_sw = 1.0\n'
    local hisq='[fermion.light]\naction = "hisq"\n' correlator='[measure.correlator.pion]\nfermion = "light"\n'
    measured() {
        printf "$2" >"$work/$1.toml"
        "$program" measure --json --input "$work/$1.toml" "$cfg" >"$work/$1.json"
    }
    measured pion "$clover${correlator}residual = 1e-12\n"
    measured flow '[measure.flow]\nt_max = 0.2\nevery = 5\n'
    measured staggered "$hisq${correlator}mass = 0.2\n"
    "$work/quark" "$cfg" "$work/copy.ildg" >"$work/c.json"
    "$program" compare "$cfg" "$work/copy.ildg" >/dev/null
    HMC_LIBRARY=$prefix/lib/libhmc.so python3 examples/c/quark.py "$cfg" >"$work/python.json"
    mpicc -std=c99 -O2 -Wall -Wextra -Werror examples/c/ranks.c "${flags[@]}" -o "$work/ranks"
    mpirun -n 2 "$work/ranks" "$cfg" "$work/ranks.ildg" >"$work/ranks.json"
    "$program" compare "$cfg" "$work/ranks.ildg" >/dev/null
    compare "$work"
    leaks "$prefix/lib/libhmc.so" "$cfg"
}

case "${1:-}" in
    install) install_to "${2:?a prefix}" ;;
    check) check "${2:?a prefix}" ;;
    *) stop "expected 'install PREFIX' or 'check PREFIX'" ;;
esac
