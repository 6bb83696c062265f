"""A file that is not, byte for byte, what was saved is refused in one sentence."""

import os
import pickle
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from labelweave.model_files import ModelContent, ModelFileError, read_model_file, write_model_file


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


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        read_model_file(tmp_path / "absent.lw")
    with pytest.raises(IsADirectoryError, match="directory"):
        read_model_file(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="regular file"):
        read_model_file(tmp_path / "pipe")
