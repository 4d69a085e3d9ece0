"""A reader of LIME, ILDG and SciDAC files, written from their descriptions alone; it shares no code with hmc.

LIME: the manual of c-lime 1.2. ILDG: hep-lat/0409055 and the binary file format 1.1. SciDAC: the manual of QIO 2.3, with
the checksum of its appendix. It believes nothing: what is wrong is a ValueError.
"""

import struct
import xml.etree.ElementTree as ElementTree
import zlib
from dataclasses import dataclass

import numpy as np

MAGIC = 0x456789AB
HEADER = struct.Struct(">IHHQ128s")


@dataclass(frozen=True)
class Record:
    """A record of a LIME file."""

    kind: str
    begins: bool
    ends: bool
    data: bytes


def lime_records(path):
    """All records of a file; the flags must make whole messages."""
    raw = path.read_bytes()
    records, place, inside = [], 0, False
    while place < len(raw):
        if len(raw) < place + HEADER.size:
            raise ValueError(f"a header is cut off at byte {place}")
        magic, version, flags, length, kind = HEADER.unpack_from(raw, place)
        if (magic, version) != (MAGIC, 1) or flags & 0x3FFF:
            raise ValueError(f"no LIME record of version 1 at byte {place}")
        begins, ends = bool(flags & 0x8000), bool(flags & 0x4000)
        if begins == inside:
            raise ValueError(f"the flags of a message are wrong at byte {place}")
        inside = not ends
        start = place + HEADER.size
        place = start + (length + 7) // 8 * 8
        if place > len(raw):
            raise ValueError(f"a record is cut off at byte {start}")
        if any(raw[start + length : place]):
            raise ValueError(f"the padding before byte {place} is not zero")
        records.append(Record(kind.split(b"\0")[0].decode("ascii"), begins, ends, raw[start : start + length]))
    if inside:
        raise ValueError("the last message has no end")
    return records


def elements(record):
    """The elements of an XML record by their names without namespace."""
    root = ElementTree.fromstring(record.data.rstrip(b"\0"))
    found = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in root}
    return root.tag.rpartition("}")[2], found


def scidac_checksum(data, site_bytes):
    """suma and sumb: xor of the sites' CRC-32, rotated left by the site's number mod 29 and mod 31."""
    sums = [0, 0]
    for site in range(len(data) // site_bytes):
        crc = zlib.crc32(data[site * site_bytes : (site + 1) * site_bytes])
        for k, period in enumerate((29, 31)):
            by = site % period
            sums[k] ^= (crc << by | crc >> (32 - by)) & 0xFFFFFFFF
    return sums


def read_gauge(path):
    """The links [t, z, y, x, mu, row, column] of an ILDG or SciDAC file, and what its records say."""
    by_kind = {}
    for record in lime_records(path):
        by_kind.setdefault(record.kind, record)
    kinds = ("ildg-format", "scidac-checksum", "scidac-private-file-xml", "scidac-private-record-xml")
    said = {kind: elements(by_kind[kind]) for kind in kinds if kind in by_kind}
    said["order"] = list(by_kind)
    if "ildg-format" in by_kind:
        root, form = said["ildg-format"]
        if (root, form["field"]) != ("ildgFormat", "su3gauge"):
            raise ValueError(f"{root} of {form['field']}")
        extents = [int(form[name]) for name in ("lx", "ly", "lz", "lt")]
        size, data = int(form["precision"]) // 8, by_kind["ildg-binary-data"].data
    else:
        data = by_kind["scidac-binary-data"].data
        size = {"F": 4, "D": 8}[said["scidac-private-record-xml"][1]["precision"]]
        extents = None
    if "scidac-private-file-xml" in by_kind:
        root, file = said["scidac-private-file-xml"]
        dims = [int(n) for n in file["dims"].split()]
        if root != "scidacFile" or int(file["spacetime"]) != 4 or int(file["volfmt"]) != 0:
            raise ValueError("no file of one volume in four dimensions")
        if extents not in (None, dims):
            raise ValueError(f"extents {extents} and {dims}")
        extents = dims
        root, private = said["scidac-private-record-xml"]
        expected = {"colors": 3, "typesize": 18 * size, "datacount": 4}
        if root != "scidacRecord" or any(int(private[name]) != value for name, value in expected.items()):
            raise ValueError(f"not four links of {size} bytes a real: {private}")
        if private["datatype"].partition("_")[2] != {4: "F3_ColorMatrix", 8: "D3_ColorMatrix"}[size]:
            raise ValueError(private["datatype"])
    if "scidac-record-xml" in by_kind and b"usqcdInfo" in by_kind["scidac-record-xml"].data:
        said["usqcdInfo"] = elements(by_kind["scidac-record-xml"])[1]
    if "ildg-data-lfn" in by_kind:
        said["lfn"] = by_kind["ildg-data-lfn"].data.rstrip(b"\0").decode("ascii")
    sums = [int(said["scidac-checksum"][1][name], 16) for name in ("suma", "sumb")]
    if sums != scidac_checksum(data, 72 * size):
        raise ValueError(f"checksums {sums[0]:x} {sums[1]:x} are others")
    links = np.frombuffer(data, f">c{2 * size}").reshape(*extents[::-1], 4, 3, 3)
    return links, said
