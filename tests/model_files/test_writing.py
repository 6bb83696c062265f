"""Writing is complete or leaves no trace, gives the same bytes, and stays small in memory."""

import os
import stat
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.model_files import ModelContent, decode, encode, read_model_file, write_model_file


def write(path, state=None, **arrays):
    write_model_file(path, ModelContent("Demo", state or {}, arrays))


def test_same_content_gives_same_bytes(tmp_path):
    a, b = np.arange(6.0).reshape(2, 3), np.array(["x", "yz"])
    write(tmp_path / "1", {"k": [1]}, a=a, b=b)
    write(tmp_path / "2", {"k": [1]}, b=b, a=a.astype(">f8"))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_refused_content_leaves_no_file(tmp_path):
    with pytest.raises(TypeError):
        write(tmp_path / "m", {"a": object()})
    assert os.listdir(tmp_path) == []


def test_a_loaded_model_outlives_its_file(small_file):
    arrays = read_model_file(small_file).arrays
    before = arrays["coef_"].copy()
    write(small_file, coef_=arrays["coef_"] * 2)
    np.testing.assert_array_equal(arrays["coef_"], before)
    small_file.unlink()
    np.testing.assert_array_equal(arrays["coef_"], before)


def test_a_model_can_be_saved_over_the_file_it_is_mapped_from(small_file):
    content = read_model_file(small_file)
    before = small_file.read_bytes()
    write_model_file(small_file, content)
    assert small_file.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_permissions_are_those_of_other_files(tmp_path):
    (tmp_path / "other").touch()
    write(tmp_path / "m")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "other").stat().st_mode
    (tmp_path / "m").chmod(0o600)
    write(tmp_path / "m")
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "m")
    write(tmp_path / "link", {"a": 1})
    assert (tmp_path / "link").is_symlink()
    assert read_model_file(tmp_path / "m").state == {"a": 1}


def test_paths_that_cannot_be_written(tmp_path):
    with pytest.raises(IsADirectoryError, match="pass the name of a file"):
        write(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        write(tmp_path / "absent" / "m")


@pytest.mark.parametrize("order", ["C", "F"])
def test_writing_does_not_copy_a_large_array(tmp_path, order):
    large = np.ones((4000, 1500), order=order)  # 48 MB
    tracemalloc.start()
    write(tmp_path / "m", a=large, b=large[::2], c=large.astype(np.float32).T)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24e6 + 10e6  # the float32 copy made here, and one block


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_reading_does_not_fill_memory(tmp_path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    write(tmp_path / "m", a=np.ones((2000, 4000)))  # 64 MB
    before = resident()
    content = read_model_file(tmp_path / "m")
    assert resident() - before < 16e6
    assert content.arrays["a"].sum() == 8e6


class Odd:
    pass


REFUSED_STATES = [
    ({"a": (1, 2)}, r"state\['a'\] is of type tuple"),
    ({"a": [0, np.float64(1)]}, r"state\['a'\]\[1\] is of type float64"),
    ({"a": {1: 2}}, r"state\['a'\] has the key 1 of type int"),
    ({"a": np.ones(2)}, "encode"),
    ({"a": {1, 2}}, "of type set"),
    ({"a": b"x"}, "of type bytes"),
    ({"a": 1j}, "of type complex"),
]


@pytest.mark.parametrize(("state", "message"), REFUSED_STATES)
def test_states_that_are_not_plain(tmp_path, state, message):
    with pytest.raises(TypeError, match=message):
        write(tmp_path / "m", state)


def test_states_too_deep_or_too_large(tmp_path):
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        write(tmp_path / "m", {"a": loop})
    with pytest.raises(ValueError, match="contains itself"):
        encode({"a": loop}, {})
    with pytest.raises(ValueError, match="5001 bits"):
        write(tmp_path / "m", {"a": 1 << 5000})
    with pytest.raises(ValueError, match="Store long lists"):
        write(tmp_path / "m", {"a": "x" * 100_000_001})


def test_the_deepest_state_that_encode_takes_can_be_read(tmp_path, same):
    state = float("inf")
    for _ in range(14):
        state = {"__dict__": (state,), "__float__": 1}
    write(tmp_path / "m", {"all": encode(state, {})})
    assert same(state, decode(read_model_file(tmp_path / "m").state["all"], {}))


@pytest.mark.parametrize("state", [{"a": Odd()}, {"a": [np.datetime64("2020-01-01")]}, {"b": {2: 1}}])
def test_encode_names_the_place_of_what_it_refuses(state):
    with pytest.raises(TypeError, match=r"at '[ab](\.0)?'"):
        encode(state, {})


REFUSED_ARRAYS = [
    (np.array([None, "a"], dtype=object), ValueError, "dtype object"),
    (np.ones(2, complex), ValueError, "dtype complex128"),
    (np.array(["2020-01-01"], "M8[D]"), ValueError, "datetime64"),
    (np.array([b"a"]), ValueError, r"dtype \|S1"),
    (np.zeros(2, [("a", "f8")]), ValueError, "dtype"),
    (np.ma.masked_array([1, 2], [True, False]), TypeError, "MaskedArray"),
    ([1, 2], TypeError, "type list"),
    (sp.coo_array(np.eye(2)), TypeError, "coo_array"),
    (sp.csr_array(np.ones(3)), ValueError, "1 dimension"),
    (sp.csr_array(np.eye(2) * 1j), ValueError, "complex128"),
]


@pytest.mark.parametrize(("array", "error", "message"), REFUSED_ARRAYS)
def test_arrays_that_cannot_be_stored_are_named(tmp_path, array, error, message):
    with pytest.raises(error, match=f"'bad'.*{message}"):
        write(tmp_path / "m", good=np.ones(2), bad=array)


def test_a_broken_sparse_array_is_refused(tmp_path):
    matrix = sp.csr_array(np.eye(2))
    matrix.indices = np.array([0, 5], np.int32)
    with pytest.raises(ValueError, match="'bad'"):
        write(tmp_path / "m", bad=matrix)


NAMES = ("", "a:b", "__metadata__", "\ud800", 3)


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        *((ModelContent("Demo", {}, {name: np.ones(2)}), ValueError, "array name") for name in NAMES),
        *((ModelContent(kind, {}), ValueError, "kind") for kind in ("", "a\nb", None)),
        (ModelContent("Demo", []), TypeError, "list"),
    ],
)
def test_contents_that_cannot_be_stored(tmp_path, content, error, said):
    with pytest.raises(error, match=said):
        write_model_file(tmp_path / "m", content)


def test_text_that_would_not_be_loaded_is_not_saved(tmp_path):
    padded = np.broadcast_to(np.array("x" * 1000), (3_000_000,))
    with pytest.raises(ValueError, match="Shorten"):
        write(tmp_path / "m", a=padded)
