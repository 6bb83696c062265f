"""Files that are signed, read into memory or damaged: the saved content, or a refusal in one sentence."""

import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import safetensors.numpy

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


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        read_model_file(path)
    text = str(caught.value)
    assert repr(str(path)) in text
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.slow
def test_every_flipped_bit_is_noticed(small_file):
    whole = small_file.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            refused(small_file, damaged)


def test_every_truncation_is_noticed(small_file):
    whole = small_file.read_bytes()
    for length in range(len(whole)):
        assert "checksum" not in refused(small_file, whole[:length])


@pytest.mark.parametrize("extra", [b"\0", b" ", b"{}", b"\0" * 64, b"x" * 5000])
def test_bytes_at_the_end_are_noticed(small_file, extra):
    assert "follow its end" in refused(small_file, small_file.read_bytes() + extra)


def test_random_damage_of_a_larger_file_is_noticed(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "model.lw"
    write_model_file(path, ModelContent("Demo", {"a": 1}, {"w": random.normal(size=(300, 1000))}))
    size = path.stat().st_size
    with open(path, "r+b") as file:
        for position in random.integers(size, size=40).tolist():
            file.seek(position)
            byte = file.read(1)[0]
            for other in (byte ^ (1 << int(random.integers(8))), byte):
                file.seek(position)
                file.write(bytes([other]))
                file.flush()
                if other != byte:
                    with pytest.raises(ModelFileError):
                        read_model_file(path)
    assert read_model_file(path).state == {"a": 1}


def test_without_verifying_the_structure_is_still_checked(small_file):
    whole = small_file.read_bytes()
    for position in range(len(whole)):
        small_file.write_bytes(whole[:position])
        with pytest.raises(ModelFileError):
            read_model_file(small_file, verify=False)
    damaged = bytearray(whole)
    damaged[-1] ^= 255  # a bool that is neither
    small_file.write_bytes(damaged)
    with pytest.raises(ModelFileError):
        read_model_file(small_file, verify=False)


def test_a_swap_of_two_files_parts_is_noticed(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0)):
        write_model_file(tmp_path / name, ModelContent("Demo", {}, {"w": np.full(8, value)}))
    a, b = (tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()
    assert "checksum" in refused(tmp_path / "a", a[:-64] + b[-64:])


def test_a_newer_format_is_named(small_file):
    data = small_file.read_bytes().replace(b'"format_version":"1"', b'"format_version":"7"')
    text = refused(small_file, data)
    assert "format version 7" in text
    assert "reads version 1" in text


@pytest.mark.parametrize("data", [b"", b"{", b"hello", b"\x80\x04N.", bytes(1000), b"\xff" * 1000])
def test_other_files_are_refused(tmp_path, data):
    assert "not a labelweave model" in refused(tmp_path / "other", data)


def test_pickles_and_archives_are_refused(tmp_path):
    refused(tmp_path / "other", pickle.dumps({"a": np.ones(3)}))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("data.pkl", "x")
    refused(tmp_path / "other", (tmp_path / "zip").read_bytes())


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "labelweave"}])
def test_other_safetensors_files_are_refused(tmp_path, metadata):
    data = safetensors.numpy.save({"layer.weight": np.ones((3, 4), np.float32)}, metadata)
    assert "it is a safetensors file, but not a labelweave model" in refused(tmp_path / "other", data)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="regular file"):
        read_model_file(tmp_path / "pipe")
