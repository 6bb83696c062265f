"""Malicious files are refused in one line, with file and line, in time and memory of their own size."""

import gzip
import json
import os
import time
import tracemalloc
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from labelweave.datasets import (
    DataFileError,
    read_hierarchical_arff,
    read_mulan,
    read_svmlight,
    read_table,
    read_xmc,
    table_files,
)
from labelweave.datasets import data_file as shared
from labelweave.datasets.arff_header import split_cells
from labelweave.datasets.data_file import finite_number, read_blocks
from labelweave.datasets.table_files import raw_tables

pd = pytest.importorskip("pandas")

ARFF = "@relation r\n@attribute f numeric\n@attribute y {0,1}\n@data\n"
DEEP = "[" * 100_000


def table(path):
    return read_table(path, labels="y", text="f")


def mulan(path):
    return read_mulan(path, n_labels=1)


@pytest.mark.parametrize(
    ("read", "name", "text", "line", "words"),
    [
        (table, "t.jsonl", f'{{"f": {DEEP}\n', 1, "nested too deep"),
        (table, "t.jsonl", f'{{"f": {"9" * 5000}, "y": "x"}}\n', 1, "more than 4300 digits"),
        (table, "t.jsonl", '{"f": "\\ud800", "y": "x"}\n', 1, "half of a surrogate pair"),
        (table, "t.jsonl", '{"f": "a", "f": "b", "y": "x"}\n', 1, "the name 'f' twice in an object"),
    ],
)
def test_one_line_names_the_place(tmp_path, read, name, text, line, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataFileError) as caught:
        read(path)
    said = str(caught.value)
    assert words in said
    assert caught.value.line == line
    assert "\n" not in said
    assert len(said) < 1000


def test_numbers_beyond_floats_are_refused_and_whole_surrogate_pairs_read(tmp_path):
    (tmp_path / "t.jsonl").write_text(f'{{"f": {"9" * 400}, "y": "x"}}\n')
    with pytest.raises(DataFileError, match="a finite number"):
        read_table(tmp_path / "t.jsonl", labels="y", numeric="f")
    (tmp_path / "t.jsonl").write_text('{"f": "good", "y": "\\ud83d\\ude00"}\n')
    assert list(table(tmp_path / "t.jsonl").label_names) == ["😀"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("read", [read_svmlight, read_xmc, mulan, read_hierarchical_arff, table])
def test_pipes_and_devices_are_refused_without_waiting(tmp_path, read):
    paths = [
        tmp_path / f"t{suffix}" for suffix in ((".csv", ".jsonl", ".parquet") if read is table else ("",))
    ]
    for path in paths:
        os.mkfifo(path)
    for path in paths if read is table else (*paths, "/dev/zero"):
        with pytest.raises(DataFileError, match="a pipe, a device or a socket"):
            read(path)


def test_lines_without_an_end_are_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "_LONGEST_LINE", 1 << 20)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"f,y\n" + bytes(1 << 26)))
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match=r"t.csv.gz:2: found a line of more than 1 MiB"):
            list(read_blocks(path, 1 << 18))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_rows_of_names_of_their_own_are_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({f"name{row}": 1}) + "\n" for row in range(40_000)))
    with pytest.raises(DataFileError, match=r"40000 names, of which a row has 1\.0 on average"):
        table(path)


def test_a_parquet_file_cannot_ask_for_far_more_cells_than_it_has_bytes(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"f": np.zeros(100_000, np.int8), "y": np.zeros(100_000, np.int8)}).to_parquet(path)
    assert next(raw_tables(path)).columns["f"][:2] == [0, 0]
    monkeypatch.setattr(table_files, "_FEW_CELLS", 1000)
    monkeypatch.setattr(table_files, "_MOST_REPEATED", 10)
    with pytest.raises(DataFileError, match="100000 rows in"):
        table(path)


def _seconds(work):
    def one():
        started = time.process_time()
        with suppress(ValueError):
            work()
        return time.process_time() - started

    return min(one() for _ in range(3))


LINES = {
    "blanks": lambda n: " " * n + "'",
    "blanks between quotation marks": lambda n: "'a'" + " " * n + "b",
    "open quotation mark": lambda n: "'" + "a" * n,
    "backslashes": lambda n: "'" + "\\" * n,
    "empty quotation marks": lambda n: "''" * n,
    "cells": lambda n: "'a'," * n + "'",
}


@pytest.mark.parametrize("kind", LINES)
def test_a_line_of_arff_takes_time_in_proportion(kind):
    small, middle, large = (
        _seconds(partial(split_cells, "f", 1, LINES[kind](n))) for n in (10**4, 10**5, 10**6)
    )
    assert middle < 40 * small + 0.05
    assert large < 40 * middle + 0.05  # the square would be a hundred


def test_a_number_takes_time_in_proportion_to_its_digits():
    times = [_seconds(partial(finite_number, "1" * n + "x")) for n in (10**4, 10**5, 10**6)]
    assert times[1] < 40 * times[0] + 0.05
    assert times[2] < 40 * times[1] + 0.05


def _arff_rows(n):
    return ARFF + "1.5,1\n" * n


def _arff_header(n):
    return "@relation r\n" + "".join(f"@attribute f{k} numeric\n" for k in range(n)) + "@data\n{0 1}\n"


def _arff_nominal(n):
    lists = "".join(f"@attribute f{k} {{a,b,c}}\n" for k in range(n // 100))
    return f"@relation r\n{lists}@attribute y {{0,1}}\n@data\n" + "{0 b}\n" * 100


SIZED = {
    "mulan rows": ("t.arff", _arff_rows, mulan),
    "mulan header": ("t.arff", _arff_header, mulan),
    "mulan repeated names": (
        "t.arff",
        lambda n: "@relation r\n" + "@attribute f numeric\n" * n + "@attribute y {0,1}\n@data\n{0 1}\n",
        mulan,
    ),
    "mulan nominal columns": ("t.arff", _arff_nominal, mulan),
    "hierarchical": (
        "t.arff",
        lambda n: (
            "@relation r\n@attribute f numeric\n@attribute c hierarchical 1,1/2\n@data\n" + "1,1/2\n" * n
        ),
        read_hierarchical_arff,
    ),
    "xmc": ("t.txt", lambda n: f"{n} 3 2\n" + "0,1 0:1 2:0.5\n" * n, read_xmc),
    "svmlight": ("t.svm", lambda n: "0,1 0:1 2:0.5\n" * n, read_svmlight),
    "csv": ("t.csv", lambda n: "f,y\n" + "some words,x\n" * n, table),
    "csv in quotation marks": ("t.csv", lambda n: "f,y\n" + '"some, words",x\n' * n, table),
    "csv columns": (
        "t.csv",
        lambda n: ",".join(f"c{k}" for k in range(n)) + ",f,y\n" + "1," * n + "a1,x\n",
        table,
    ),
    "json": ("t.jsonl", lambda n: '{"f": "some words", "y": ["x"]}\n' * n, table),
}


@pytest.mark.parametrize("kind", SIZED)
@pytest.mark.filterwarnings("ignore:.*attributes repeat names")
def test_readers_take_time_in_proportion_to_bytes(tmp_path, kind):
    name, make, read = SIZED[kind]
    times = []
    for n in (1000, 5000, 25_000):
        (tmp_path / name).write_text(make(n))
        times.append(_seconds(lambda: read(tmp_path / name)))
    assert times[1] < 15 * times[0] + 0.1
    assert times[2] < 15 * times[1] + 0.1  # the square would be twenty-five
