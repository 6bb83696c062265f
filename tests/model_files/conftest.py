import hashlib
import json
import struct

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.model_files import ModelContent, write_model_file
from labelweave.model_files.container import CHECKSUM_PLACE


def _same(a, b):
    """Equal in value, type and layout, at any depth; floats by their bits, but NaN is NaN outside arrays."""
    if type(a) is not type(b):
        return False
    if sp.issparse(a):
        parts = ("data", "indices", "indptr")
        return a.shape == b.shape and all(_same(getattr(a, part), getattr(b, part)) for part in parts)
    if isinstance(a, np.floating) and np.isnan(a):
        return bool(np.isnan(b))  # as for Python's floats: one number in JSON has no spare bits
    if isinstance(a, np.ndarray | np.generic):
        little = a.dtype.newbyteorder("<")
        has_order = a.flags.fnc == b.flags.fnc or a.dtype.kind == "U"  # texts are in no product
        is_as_long = b.dtype == little and a.shape == b.shape and has_order
        return is_as_long and a.astype(little).tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return (a != a and b != b) or struct.pack("d", a) == struct.pack("d", b)
    return a == b


def _with_checksum(data):
    """Replace the checksum by a valid one, as an attacker would."""
    data = bytearray(data)
    data[CHECKSUM_PLACE] = b"0" * 64
    data[CHECKSUM_PLACE] = hashlib.sha256(data).hexdigest().encode()
    return bytes(data)


def _forged(data, edit, pad=True):
    """Edit the parsed header of a file and replace the checksum by a valid one."""
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    edited = edit(entries)
    text = edited if isinstance(edited, bytes) else json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64 if pad else 0)
    return _with_checksum(len(text).to_bytes(8, "little") + text + data[8 + length :])


@pytest.fixture(scope="session")
def same():
    return _same


@pytest.fixture(scope="session")
def with_checksum():
    return _with_checksum


@pytest.fixture(scope="session")
def forged():
    return _forged


@pytest.fixture(scope="session")
def small_content():
    arrays = {
        "coef_": np.arange(6, dtype=np.float32).reshape(2, 3),
        "mask": np.array([True, False]),
        "names": np.array(["ä", "bc"]),
        "sparse": sp.csr_array(np.eye(2)),
    }
    return ModelContent("Demo", {"C": 1.5, "coef_": {"__array__": "coef_"}}, arrays)


@pytest.fixture
def small_file(tmp_path, small_content):
    path = tmp_path / "small.lw"
    write_model_file(path, small_content)
    return path
