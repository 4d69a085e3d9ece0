"""Files that have a record per trajectory and line, with the CRC-32 of the line at its end.

A line whose checksum is wrong is reported by an `EnsembleWarning` and left out. So are both lines of a
trajectory that occurs twice with different numbers. A last line without its line break is left out without a
warning: a job may be writing it.
"""

import json
import warnings
import zlib
from pathlib import Path

_MOST_FAULTS = 10


class EnsembleWarning(UserWarning):
    """Data of an ensemble are not as they should be, or allow no reliable answer."""


def warn(message):
    """An `EnsembleWarning` of `message`."""
    warnings.warn(message, EnsembleWarning, stacklevel=3)


def read_csv(path):
    """`history.csv`: the names of the columns, and a list of texts per trajectory; without the checksum."""
    head, _, body = Path(path).read_bytes().partition(b"\n")
    names = head.decode().split(",")
    if names.pop() != "crc32":
        raise ValueError(f"{path}: the first line should have the names of columns, crc32 the last")

    def unseal(sealed):
        line, _, crc = sealed.rpartition(b",")
        if crc != b"%d" % zlib.crc32(line):
            raise ValueError("altered, or not written by hmc")
        fields = line.decode().split(",")
        if len(fields) != len(names):
            raise ValueError(f"not of {len(names)} columns")
        return int(fields[0]), fields

    return names, _records(path, body, 2, unseal)


def read_json(path, sealed=True):
    """`measurements.jsonl`: a dictionary per trajectory, without the checksum.

    With `sealed=False` lines have no checksums: what `hmc measure --json` prints.
    """

    def unseal(line):
        if sealed:
            line, _, crc = line.rpartition(b',"crc32":')
            line += b"}"
            if crc != b"%d}" % zlib.crc32(line):
                raise ValueError("altered, or not written by hmc")
        record = json.loads(line)
        if not isinstance(record, dict) or not isinstance(record.get("trajectory"), int):
            raise ValueError("has no trajectory")
        return record["trajectory"], record

    return _records(path, Path(path).read_bytes(), 1, unseal)


def _records(path, body, first, unseal):
    """The records of the lines of `body` in the order of trajectories; `first` numbers the first line.

    `unseal(line)` gives a trajectory and its record, or raises a ValueError.
    """
    found, faults, contested = {}, [], set()
    for number, line in enumerate(body.split(b"\n")[:-1], first):
        try:
            trajectory, record = unseal(line)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if trajectory not in found:
            found[trajectory] = record
        elif found[trajectory] == record:
            faults.append(f"line {number}: trajectory {trajectory} again")
        else:
            faults.append(f"line {number}: trajectory {trajectory} again, with other numbers: none is kept")
            contested.add(trajectory)
    if faults:
        more = len(faults) - _MOST_FAULTS
        some = "; ".join(faults[:_MOST_FAULTS] + ([f"and {more} more"] if more > 0 else []))
        warn(f"{path}: lines are left out: {some}")
    return [found[trajectory] for trajectory in sorted(found) if trajectory not in contested]
