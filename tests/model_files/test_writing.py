"""Written content is read back, and what could not be read back is refused."""

import mmap
import os
import stat
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open

from labelweave.model_files import ModelContent, decode, encode, read_model_file, write_model_file
from refused import refusals

test_what_makes_no_sense_is_refused = refusals(__file__)


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


def test_the_deepest_state_that_encode_takes_can_be_read(tmp_path, same):
    state = float("inf")
    for _ in range(14):
        state = {"__dict__": (state,), "__float__": 1}
    write(tmp_path / "m", {"all": encode(state, {})})
    assert same(state, decode(read_model_file(tmp_path / "m").state["all"], {}))


MARKERS = ["__array__", "__tuple__", "__scalar__", "__object__", "__dict__", "__float__", "value", "state"]
TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers(-(2**130), 2**130) | st.floats() | TEXT
NUMBERS = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.unsigned_integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64))
)
DTYPES = NUMBERS | hnp.unicode_string_dtypes(endianness="?", max_len=5)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
DENSE = hnp.arrays(DTYPES, SHAPES) | hnp.arrays(DTYPES, SHAPES).map(np.asfortranarray)
SPARSE_CLASSES = [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix]


@st.composite
def sparse_arrays(draw):
    shape = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    matrix = draw(st.sampled_from(SPARSE_CLASSES))(draw(hnp.arrays(np.float32, shape)))
    index = draw(st.sampled_from([np.int32, np.int64]))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


ARRAYS = DENSE | sparse_arrays()
SCALARS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, 1)).map(lambda array: array[0])
KEYS = TEXT | st.sampled_from(MARKERS)


def nested(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    )


STATES = st.dictionaries(KEYS, nested(PLAIN), max_size=4)
RICH = st.recursive(
    PLAIN | ARRAYS | SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.text(st.characters(exclude_characters=":", exclude_categories=["Cs"]), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.lw"


def test_a_part_of_a_table_keeps_the_order_of_its_numbers(path):
    """Products with it then have the same bits: scikit-learn's ``components_`` are such parts."""
    part = np.asfortranarray(np.arange(12.0).reshape(4, 3))[:2]
    write_model_file(path, ModelContent("Demo", {}, {"part": part, "row": part[:1]}))
    again = read_model_file(path).arrays
    np.testing.assert_array_equal(again["part"], part)
    assert again["part"].flags.fnc
    np.testing.assert_array_equal(again["row"], part[:1])


@settings(max_examples=150)
@given(state=STATES, arrays=st.dictionaries(NAMES, ARRAYS, max_size=3))
def test_content_comes_back(path, same, state, arrays):
    write_model_file(path, ModelContent("Demo", state, arrays))
    content = read_model_file(path)
    assert content.kind == "Demo"
    assert same(state, content.state)
    assert set(arrays) == set(content.arrays)
    assert all(same(arrays[name], content.arrays[name]) for name in arrays)


@pytest.mark.slow
@settings(max_examples=150)
@given(state=st.dictionaries(KEYS, RICH, max_size=4))
def test_encoded_state_comes_back(path, same, state):
    arrays = {}
    write_model_file(path, ModelContent("Demo", {"all": encode(state, arrays)}, arrays))
    content = read_model_file(path)
    assert same(state, decode(content.state["all"], content.arrays))


@settings(max_examples=60)
@given(arrays=st.dictionaries(NAMES, hnp.arrays(NUMBERS, SHAPES), max_size=4))
def test_safetensors_reads_the_same_arrays(path, same, arrays):
    write_model_file(path, ModelContent("Demo", {}, arrays))
    loaded = safetensors.numpy.load_file(path)
    assert set(loaded) == set(arrays)
    assert all(same(arrays[name], loaded[name]) for name in arrays)


def test_safetensors_shows_the_metadata(small_file):
    with safe_open(small_file, framework="np") as file:
        metadata = file.metadata()
        assert set(file.keys()) >= {"coef_", "names:text", "names:offsets", "sparse:indptr"}
    assert metadata["format"] == "labelweave"
    assert metadata["kind"] == "Demo"
    assert metadata["state"] == '{"C":1.5,"coef_":{"__array__":"coef_"}}'


def test_versions_are_recorded(small_file):
    versions = read_model_file(small_file).versions
    assert versions["numpy"] == np.__version__
    assert "labelweave" in versions


def test_arrays_are_views_of_the_map(small_file):
    arrays = read_model_file(small_file).arrays
    for view in (arrays["coef_"], arrays["sparse"].data, arrays["sparse"].indices):
        assert isinstance(view.base, mmap.mmap)
        assert not view.flags.writeable
        assert view.flags.aligned
    with pytest.raises(ValueError, match="read-only"):
        arrays["coef_"][0, 0] = 1


def test_the_first_array_starts_at_a_cache_line(tmp_path):
    write_model_file(tmp_path / "m", ModelContent("Demo", {}, {"a": np.ones(3)}))
    assert read_model_file(tmp_path / "m").arrays["a"].ctypes.data % 64 == 0


def test_a_loaded_sparse_array_can_be_used(small_file):
    matrix = read_model_file(small_file).arrays["sparse"]
    np.testing.assert_array_equal(matrix @ np.ones((2, 1)), np.ones((2, 1)))
    np.testing.assert_array_equal(matrix[[1]].toarray(), [[0, 1]])


def test_64_bit_indices_stay(tmp_path):
    matrix = sp.csr_array(np.eye(3))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    write_model_file(tmp_path / "m", ModelContent("Demo", {}, {"a": matrix}))
    assert read_model_file(tmp_path / "m").arrays["a"].indices.dtype == np.int64


def test_spare_room_of_a_sparse_array_is_omitted(tmp_path):
    matrix = sp.csr_array(np.eye(3))
    matrix.data = np.append(matrix.data, 7.0)
    matrix.indices = np.append(matrix.indices, np.int32(9))
    write_model_file(tmp_path / "m", ModelContent("Demo", {}, {"a": matrix}))
    np.testing.assert_array_equal(read_model_file(tmp_path / "m").arrays["a"].toarray(), np.eye(3))


def test_many_label_names(tmp_path):
    names = np.array([f"étiquette {i}" for i in range(100_000)])
    write_model_file(tmp_path / "m", ModelContent("Demo", {}, {"names": names}))
    assert (tmp_path / "m").stat().st_size < 0.6 * names.nbytes
    loaded = read_model_file(tmp_path / "m").arrays["names"]
    assert loaded.dtype == names.dtype
    np.testing.assert_array_equal(loaded, names)


def test_an_array_found_twice_is_kept_once():
    shared = np.ones(3)
    arrays = {}
    plain = encode({"a": shared, "b": [shared], "c": np.ones(3)}, arrays)
    assert list(arrays) == ["a", "c"]
    assert plain["b"] == [{"__array__": "a"}]


def test_arrays_are_named_after_their_place():
    arrays = {}
    encode({"a": {"b": np.ones(1)}, "a.b": np.ones(1), ":": np.ones(1)}, arrays)
    assert list(arrays) == ["a.b", "a.b_2", "array"]
