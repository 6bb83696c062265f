"""Malicious files with a valid checksum are refused."""

import json
import tracemalloc

import numpy as np
import pytest

from labelweave.model_files import ModelContent, ModelFileError, read_model_file, write_model_file


def refused(path, data):
    path.write_bytes(data)
    for verify in (True, False):
        tracemalloc.start()
        with pytest.raises(ModelFileError):
            read_model_file(path, verify=verify)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 5_000_000 + 30 * len(data)


def set_in(*path_and_value):
    """Make an edit that sets one value inside the header."""
    *path, last, value = path_and_value

    def edit(entries):
        for key in path:
            entries = entries[key]
        entries[last] = value

    return edit


def field(name, text):
    return set_in("__metadata__", name, text)


def nest(depth):
    return '{"a":' + "[" * depth + "]" * depth + "}"


HEADERS = {
    "out of range": set_in("coef_", "data_offsets", [0, 2**40]),
    "overlap": set_in("mask", "data_offsets", [0, 2]),
    "backwards": set_in("mask", "data_offsets", [2, 0]),
    "float offsets": set_in("mask", "data_offsets", [0.0, 2.0]),
    "negative": set_in("coef_", "shape", [-2, -3]),
    "overflow": set_in("coef_", "shape", [2**32, 2**32]),
    "overflow to the right size": set_in("coef_", "shape", [2**63, 2, 2, 6]),
    "empty but huge": set_in("coef_", "shape", [0, 2**62]),
    "huge": set_in("coef_", "shape", [10**12]),
    "longer than any integer": set_in("coef_", "shape", [10**3000]),
    "many dimensions": set_in("coef_", "shape", [1] * 100_000 + [6]),
    "true as a length": set_in("coef_", "shape", [True, 6]),
    "text shape": set_in("coef_", "shape", "23"),
    "no shape": lambda entries: entries["coef_"].pop("shape") and None,
    "other type": set_in("coef_", "dtype", "F8_E4M3"),
    "type is a list": set_in("coef_", "dtype", ["F32"]),
    "of another size": set_in("coef_", "dtype", "F64"),
    "not a tensor": set_in("coef_", 3),
    "unknown field": set_in("coef_", "more", 3),
    "metadata gone": lambda entries: entries.pop("__metadata__") and None,
    "metadata a list": set_in("__metadata__", ["format", "labelweave"]),
    "metadata not text": field("state", {"a": 1}),
    "more metadata": field("more", "text"),
    "missing metadata": lambda entries: entries["__metadata__"].pop("state") and None,
    "deep": lambda entries: b'{"a":' + b"[" * 10**6,
    "number of a million digits": lambda entries: b'{"a":' + b"1" * 10**6 + b"}",
    "a list": lambda entries: b"[]",
    "spaces": lambda entries: json.dumps(entries).encode(),
    "not ASCII": lambda entries: json.dumps(entries).encode().replace(b"Demo", b"D\xffmo"),
    "extra tensor": set_in("more", {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}),
}


@pytest.mark.parametrize("edit", HEADERS.values(), ids=HEADERS.keys())
def test_hostile_headers(small_file, forged, edit):
    refused(small_file, forged(small_file.read_bytes(), edit))


def test_repeated_keys(small_file, forged):
    def repeat(entries):
        text = json.dumps(entries, separators=(",", ":"))
        return (text[:-1] + ',"mask":' + json.dumps(entries["mask"], separators=(",", ":")) + "}").encode()

    refused(small_file, forged(small_file.read_bytes(), repeat))


@pytest.mark.parametrize("length", [0, 1, 100_000_001, 2**40, 2**63, 2**64 - 1])
def test_hostile_lengths(small_file, with_checksum, length):
    data = small_file.read_bytes()
    refused(small_file, with_checksum(length.to_bytes(8, "little") + data[8:]))


def test_other_padding(small_file, forged):
    refused(small_file, forged(small_file.read_bytes(), lambda entries: None, pad=False))


STATES = ["", "{", "null", "[]", "3", '"a"', "NaN", '{"a":NaN}', '{"a":1e999}', '{"a":1.50}']
STATES += ['{"a": 1}', '{"a":1,"a":1}']
STATES += ['{"__float__":"1.5"}', '{"__float__":[]}', '{"__float__":"nan","b":1}', '{"a":"é"}', '{"a":1} ']
STATES += [nest(101), nest(900), nest(10**6), '{"a":' + "9" * 5000 + "}", "[" * 10**6, '{"a":' * 10**5]


@pytest.mark.parametrize("state", STATES, ids=[text[:24] for text in STATES])
def test_hostile_states(small_file, forged, state):
    refused(small_file, forged(small_file.read_bytes(), field("state", state)))


def layout(**changes):
    entries = {
        "coef_": {"type": "dense"},
        "mask": {"type": "dense"},
        "names": {"type": "text", "shape": [2], "width": 2},
        "sparse": {"type": "csr_array", "shape": [2, 2]},
    }
    entries.update(changes)
    return json.dumps({k: v for k, v in entries.items() if v is not None}, separators=(",", ":"))


LAYOUTS = {
    "unknown type": layout(coef_={"type": "object"}),
    "type is a list": layout(coef_={"type": []}),
    "no type": layout(coef_={}),
    "not an entry": layout(coef_=3),
    "left out": layout(coef_=None),
    "not there": layout(more={"type": "dense"}),
    "text without parts": layout(coef_={"type": "text", "shape": [2], "width": 2}),
    "text of other length": layout(names={"type": "text", "shape": [3], "width": 2}),
    "text without shape": layout(names={"type": "text", "width": 2}),
    "text without width": layout(names={"type": "text", "shape": [2]}),
    "too narrow": layout(names={"type": "text", "shape": [2], "width": 1}),
    "too wide": layout(names={"type": "text", "shape": [2], "width": 2**40}),
    "wide and empty": layout(names={"type": "text", "shape": [0], "width": 2**40}),
    "negative width": layout(names={"type": "text", "shape": [2], "width": -2}),
    "width is text": layout(names={"type": "text", "shape": [2], "width": "22"}),
    "shape is text": layout(names={"type": "text", "shape": "22", "width": 2}),
    "huge text": layout(names={"type": "text", "shape": [2**40], "width": 2}),
    "huge and empty": layout(names={"type": "text", "shape": [0, 2**62], "width": 2}),
    "many dimensions": layout(names={"type": "text", "shape": [2] + [1] * 70, "width": 2}),
    "three dimensions": layout(sparse={"type": "csr_array", "shape": [2, 2, 1]}),
    "no dimension": layout(sparse={"type": "csr_array", "shape": []}),
    "columns out of range": layout(sparse={"type": "csr_array", "shape": [2, 1]}),
    "more rows": layout(sparse={"type": "csr_array", "shape": [3, 2]}),
    "huge": layout(sparse={"type": "csr_array", "shape": [2**62, 2**62]}),
    "huge columns": layout(sparse={"type": "csr_array", "shape": [2, 2**63]}),
    "negative rows": layout(sparse={"type": "csr_array", "shape": [-2, 2]}),
    "another class": layout(sparse={"type": "coo_array", "shape": [2, 2]}),
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_hostile_layouts(small_file, forged, text):
    refused(small_file, forged(small_file.read_bytes(), field("arrays", text)))


def test_the_plain_layout_is_accepted(small_file, forged):
    small_file.write_bytes(forged(small_file.read_bytes(), field("arrays", layout())))
    assert read_model_file(small_file).kind == "Demo"


PARTS = {
    "sparse:indices": [[0, 2], [0, -1], [-(2**31), 0]],
    "sparse:indptr": [[0, 3, 2], [1, 1, 2], [0, 1, 1], [0, -1, 2]],
    "names:offsets": [[0, 5, 4], [0, 1, 4], [1, 2, 4], [0, 2, 3], [0, 2, 2**62], [0, -(2**63), 4]],
    "names:text": [[0xFF, 0xFE, 98, 99]],
    "mask": [[1, 2]],
}
CASES = [(name, values) for name, all_values in PARTS.items() for values in all_values]


@pytest.mark.parametrize(("name", "values"), CASES)
def test_hostile_parts(small_file, with_checksum, name, values):
    data = bytearray(small_file.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:start])[name]
    dtype = {"I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "u1"}[entry["dtype"]]
    begin, end = entry["data_offsets"]
    data[start + begin : start + end] = np.array(values, dtype).tobytes()
    refused(small_file, with_checksum(data))


@pytest.mark.parametrize("name", ["b", "é", "a/b", "a b", "__dict__", "\n"])
def test_odd_but_allowed_array_names(tmp_path, name):
    write_model_file(tmp_path / "m", ModelContent("Demo", {}, {name: np.ones(2)}))
    assert list(read_model_file(tmp_path / "m").arrays) == [name]
