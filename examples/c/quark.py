"""A configuration from Python by ctypes: plaquette, links as an array, M x = b of all families, measurements.

    HMC_LIBRARY=target/release/libhmc.so python examples/c/quark.py CFG

One JSON object: `make capi` compares its numbers with those of the program. It needs no package; with numpy,
`numpy.frombuffer(u).view(complex).reshape(t, z, y, x, 4, 3, 3)` is the array of links.
"""

import array
import ctypes
import json
import os
import sys
from ctypes import byref, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p

hmc = ctypes.CDLL(os.environ.get("HMC_LIBRARY", "libhmc.so"))
hmc.hmc_error.restype = c_char_p
hmc.hmc_version.restype = c_char_p
for name in ("hmc_close", "hmc_links_free", "hmc_quark_free", "hmc_free_text"):
    getattr(hmc, name).restype = None
    getattr(hmc, name).argtypes = [c_void_p]


class Solved(ctypes.Structure):
    """`hmc_solved` of hmc.h."""

    _fields_ = [("residual", c_double), ("seconds", c_double), ("iterations", c_uint64), ("fallbacks", c_uint64)]


class HmcError(RuntimeError):
    """What `hmc_error` says; `code` is that of the function."""

    def __init__(self, code):
        super().__init__(hmc.hmc_error().decode())
        self.code = code


def call(name, *arguments):
    code = getattr(hmc, name)(*arguments)
    if code:
        raise HmcError(code)


def made(name, *arguments):
    """What a function makes, by the pointer that is its last argument."""
    pointer = c_void_p()
    call(name, *arguments, byref(pointer))
    return pointer


def text(name, *arguments):
    pointer = made(name, *arguments)
    found = ctypes.cast(pointer, c_char_p).value.decode()
    hmc.hmc_free_text(pointer)
    return found


def doubles(reals):
    """An array of doubles, and its address."""
    memory = array.array("d", bytes(8 * reals))
    return memory, c_void_p(memory.buffer_info()[0])


QUARKS = {
    "wilson": '[fermion.q]\naction = "wilson"\nkappa = 0.12\n[quark]\nfermion = "q"\nresidual = 1e-10\n',
    "clover": '[fermion.q]\naction = "wilson-clover"\nkappa = 0.12\nc_sw = 1.0\n[quark]\nfermion = "q"\nresidual = 1e-10\n',
    "domain-wall": '[fermion.q]\naction = "domain-wall"\nmass = 0.1\nn_s = 4\nm5 = 1.4\nweights = "shamir"\n'
    '[quark]\nfermion = "q"\nresidual = 1e-10\n',
    "hisq": '[fermion.q]\naction = "hisq"\n[quark]\nfermion = "q"\nmass = 0.1\nresidual = 1e-10\n',
    "asqtad": '[fermion.q]\naction = "asqtad"\nu0 = 0.9\n[quark]\nfermion = "q"\nmass = 0.1\nresidual = 1e-10\n',
}


def solve(links, toml, sites):
    """|b - M x| / |b| for b = 1 on the real parts, and |(M^dag y, x) - (y, M x)| for y = b."""
    quark = made("hmc_quark_new", links, toml.encode())
    components, slices = c_size_t(), c_size_t()
    call("hmc_quark_shape", quark, byref(components), byref(slices))
    reals = 2 * components.value * slices.value * sites
    (b, at_b), (x, at_x), (mx, at_mx), (mb, at_mb) = (doubles(reals) for _ in range(4))
    b[::2] = array.array("d", [1.0 + n % 7 for n in range(reals // 2)])
    solved = Solved()
    call("hmc_quark_solve", quark, at_b, at_x, c_size_t(reals), byref(solved))
    call("hmc_quark_apply", quark, c_int(0), at_x, at_mx, c_size_t(reals))
    call("hmc_quark_apply", quark, c_int(1), at_b, at_mb, c_size_t(reals))
    hmc.hmc_quark_free(quark)
    norm2 = sum(r * r for r in b)
    residual = (sum((r - s) ** 2 for r, s in zip(b, mx)) / norm2) ** 0.5
    adjoint = abs(sum(r * s for r, s in zip(mb, x)) - sum(r * s for r, s in zip(b, mx))) / norm2
    return {
        "components": components.value,
        "slices": slices.value,
        "residual": residual,
        "adjoint": adjoint,
        "iterations": solved.iterations,
    }


def main(path):
    session = made("hmc_open", b'[parallel]\ndevice = "cpu"\n')
    links = made("hmc_links_read", session, os.fsencode(path))
    extents = (c_size_t * 4)()
    call("hmc_links_extents", links, extents)
    sites = extents[0] * extents[1] * extents[2] * extents[3]
    u, at_u = doubles(72 * sites)
    call("hmc_links_get", links, at_u, c_size_t(72 * sites))
    again = made("hmc_links_new", session, extents, at_u, c_size_t(72 * sites))
    refusals = []
    for name, *arguments in [
        ("hmc_links_get", links, at_u, c_size_t(72 * sites - 1)),
        ("hmc_links_get", None, at_u, c_size_t(72 * sites)),
        ("hmc_links_get", links, None, c_size_t(72 * sites)),
        ("hmc_links_measure", links, b"[measure.flou]\n", byref(c_void_p())),
        ("hmc_links_new", session, (c_size_t * 4)(4, 4, 4, 5), at_u, c_size_t(72 * sites), byref(c_void_p())),
        ("hmc_links_read", session, b"/nowhere.h5", byref(c_void_p())),
    ]:
        try:
            call(name, *arguments)
        except HmcError as error:
            refusals.append([name, error.code, str(error)])
    found = {
        "version": hmc.hmc_version().decode(),
        "info": json.loads(text("hmc_links_info", links)),
        "again": json.loads(text("hmc_links_info", again)),
        "measured": json.loads(text("hmc_links_measure", links, b"[measure.flow]\nt_max = 0.2\nevery = 5\n")),
        "quarks": {name: solve(links, toml, sites) for name, toml in QUARKS.items()},
        "refusals": refusals,
        "warnings": text("hmc_warnings", session),
    }
    hmc.hmc_links_free(again)
    hmc.hmc_links_free(links)
    hmc.hmc_close(session)
    print(json.dumps(found))


main(sys.argv[1])
