"""What is signed with a key, or read into memory, is what was saved, whoever changed the file."""

import os
import subprocess
import sys

import numpy as np
import pytest

from labelweave import BinaryRelevance, load
from labelweave.model_files import ModelContent, ModelFileError, read_model_file, write_model_file
from labelweave.model_files.container import SIGNATURE_PLACE

KEY = bytes(range(32))


@pytest.fixture
def signed(tmp_path, small_content):
    path = tmp_path / "signed.lw"
    write_model_file(path, small_content, key=KEY)
    return path


def test_a_signed_file_loads_with_its_key_and_without(signed, small_content, same):
    for key in (KEY, None):
        for mmap in (True, False):
            content = read_model_file(signed, key=key, mmap=mmap)
            assert same(dict(content.arrays), dict(small_content.arrays))
            assert same(content.state, small_content.state)


def test_the_same_content_and_key_give_the_same_bytes(signed, small_content, tmp_path):
    write_model_file(tmp_path / "again", small_content, key=KEY)
    assert signed.read_bytes() == (tmp_path / "again").read_bytes()
    write_model_file(tmp_path / "other", small_content, key=KEY[::-1])
    assert signed.read_bytes() != (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("mmap", [True, False])
def test_a_change_with_the_right_checksum_is_noticed(signed, with_checksum, verify, mmap):
    data = bytearray(signed.read_bytes())
    assert bytes(data[SIGNATURE_PLACE]).isalnum()
    data[-1] ^= 1
    forged = bytearray(data)
    forged[SIGNATURE_PLACE] = b"0" * 64
    forged = bytearray(with_checksum(forged))  # of all bytes, both seals taken as zeros
    forged[SIGNATURE_PLACE] = data[SIGNATURE_PLACE]
    signed.write_bytes(forged)
    read_model_file(signed)
    with pytest.raises(ModelFileError, match=r"its signature does not match the key"):
        read_model_file(signed, key=KEY, verify=verify, mmap=mmap)


def test_another_key_or_no_signature(signed, small_file):
    with pytest.raises(ModelFileError, match="signature does not match the key"):
        read_model_file(signed, key=KEY + b"1")
    with pytest.raises(ModelFileError, match="it is not signed"):
        read_model_file(small_file, key=KEY)


def test_every_changed_byte_of_a_signed_file_is_noticed(signed):
    whole = signed.read_bytes()
    for position in range(0, len(whole), 7):
        signed.write_bytes(whole[:position] + bytes([whole[position] ^ 32]) + whole[position + 1 :])
        with pytest.raises(ModelFileError):
            read_model_file(signed, key=KEY)


@pytest.mark.parametrize(
    ("key", "error"), [("text" * 8, TypeError), (b"short", ValueError), (b"", ValueError)]
)
def test_keys_that_are_none(tmp_path, small_file, key, error):
    with pytest.raises(error, match=r"^key "):
        write_model_file(tmp_path / "m", ModelContent("Demo", {}), key=key)
    with pytest.raises(error, match=r"^key "):
        read_model_file(small_file, key=key)


def test_a_model_is_signed_and_checked(tmp_path):
    model = BinaryRelevance().fit(np.eye(3), np.eye(3, dtype=int))
    model.save(tmp_path / "m.lw", key=KEY)
    again = load(tmp_path / "m.lw", key=KEY)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    with pytest.raises(ModelFileError, match="signature"):
        load(tmp_path / "m.lw", key=KEY[::-1])


def test_what_is_in_memory_is_read_only_and_begins_at_a_page(small_file):
    read, mapped = (read_model_file(small_file, mmap=mmap).arrays["coef_"] for mmap in (False, True))
    assert not read.flags.writeable
    assert (read.ctypes.data - mapped.ctypes.data) % 4096 == 0


_SHORTENED = """
import os, sys
import numpy as np
from labelweave.model_files import read_model_file
array = read_model_file("large.lw", mmap=sys.argv[1] == "mmap").arrays["a"]
os.truncate("large.lw", 4096)
assert array.sum() == 1e6
"""


@pytest.mark.skipif(os.name != "posix", reason="other systems do not shorten files that are mapped")
@pytest.mark.parametrize("how", ["mmap", "memory"])
def test_a_file_shortened_in_place_does_no_harm_to_what_is_in_memory(tmp_path, how):
    write_model_file(tmp_path / "large.lw", ModelContent("Demo", {}, {"a": np.ones(1_000_000)}))
    done = subprocess.run([sys.executable, "-c", _SHORTENED, how], cwd=tmp_path, check=False)
    assert (done.returncode == 0) == (how == "memory")  # a mapping ends the process, as documented


def test_a_file_shortened_while_it_is_read(small_file, monkeypatch):
    fstat, calls = os.fstat, []

    def shortening(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            os.truncate(small_file, 700)
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", shortening)
    with pytest.raises(ModelFileError, match="changed while it was read"):
        read_model_file(small_file, mmap=False)
