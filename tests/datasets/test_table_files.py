"""Typical tables: the content decides the format, not only the name; guesses are reported."""

import bz2
import gzip
import json
import lzma
import re
import warnings

import numpy as np
import pytest

from labelweave.datasets import (
    DataFileError,
    TableColumns,
    TableVectorizer,
    detect_format,
    iterate_table,
    read_any,
    read_table,
    read_table_columns,
)

pytest.importorskip("pyarrow")

ROWS = [{"text": "red ball", "tags": ["aa", "bb"]}, {"text": "blue", "tags": ["bb"]}]
LINES = "\n".join(map(json.dumps, ROWS))
TABLE = "text,tags\nred ball,aa|bb\nblue,bb\n"
CATS = [["red ball", {"cats": {"aa": 1, "bb": True}}], ["blue", {"cats": {"aa": 0.0, "bb": 1}}]]
INSIDE = {
    "lines.json": LINES,
    "lines.txt": LINES + "\n",
    "array.json": json.dumps(ROWS),
    "array.jsonl": json.dumps(ROWS),
    "marked.json": "\ufeff" + json.dumps(ROWS),
    "array.txt": "\n\n" + json.dumps(ROWS, indent=1),
    "pretty.json": json.dumps(ROWS, indent=4),
    "objects.json": "\n".join(json.dumps(row, indent=2) for row in ROWS),
    "wrapped.json": json.dumps({"data": ROWS}),
    "wrapped_pretty.json": json.dumps({"rows": ROWS}, indent=2),
    "objects_of_labels.jsonl": "\n".join(
        json.dumps({"text": row["text"], "tags": dict.fromkeys(row["tags"], 1) | {"cc": 0}}) for row in ROWS
    ),
    "comma.txt": TABLE,
    "tab.txt": TABLE.replace(",", "\t"),
    "bar.txt": TABLE.replace("|", "/").replace(",", "|").replace("/", ";"),
    "semicolon.data": TABLE.replace(",", ";"),
    "no_suffix": TABLE.replace(",", "\t"),
    "sep.txt": "sep=;\n" + TABLE.replace(",", ";"),
    "comma.tsv": TABLE,
    "tab.csv": TABLE.replace(",", "\t"),
    "lines.jl": LINES,
    "lines.log": LINES,
    "lines.csv": LINES,
    "comma.jsonl": TABLE,
    "comma.export": TABLE,
    "named.json": json.dumps({"version": "1.0", "data": ROWS}),
    "index.json": json.dumps({str(number): row for number, row in enumerate(ROWS)}),
    "columns.json": json.dumps({name: {"0": ROWS[0][name], "1": ROWS[1][name]} for name in ROWS[0]}),
    "lists.json": json.dumps({name: [row[name] for row in [*ROWS, ROWS[1]]] for name in ROWS[0]}),
    "split.json": json.dumps(
        {"columns": [*ROWS[0]], "index": [0, 1], "data": [[*row.values()] for row in ROWS]}
    ),
    "quoted.txt": '"text","tags"\n"red ball","aa|bb"\n"blue","bb"\n',
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("zipped", [False, True])
def test_tables_are_read_by_what_is_inside(tmp_path, name, zipped):
    path = tmp_path / (f"{name}.gz" if zipped else name)
    data = INSIDE[name].encode()
    path.write_bytes(gzip.compress(data, mtime=0) if zipped else data)
    assert detect_format(path) == "table"
    is_list = INSIDE[name].lstrip("\ufeff\n")[0] in "[{"
    separator = {} if is_list else {"label_separator": ";" if name == "bar.txt" else "|"}
    found = read_any(path, labels="tags", text="text", **separator)
    assert found.Y.words[:2] == ["aa", "bb"]
    np.testing.assert_array_equal(found.Y.to_dense()[:2, :2], [[1, 1], [0, 1]])
    assert list(found.feature_names) == ["text:ball", "text:blue", "text:red"]


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("a.json", '[{"text": "a",\n"tags": [}\n]', 2, "broken JSON"),
        ("a.json", '[{"text": "a"}\n{"text": "b"}]', 1, "broken JSON"),
        ("a.json", '[{"text": "a"}', 1, "broken JSON"),
        ("a.json", '[{"text": "a"},\n2]', 2, "a JSON list with a int"),
        ("a.json", '{"text": 1}\n[2]', 2, "a JSON list"),
        ("a.json", '{\n"text": 1, "text": 2}', 1, "the name 'text' twice"),
        ("a.json", "[]", None, "no rows"),
        ("a.txt", "hello, world\nno table\n", None, "neither name nor first line reveals; .* called .csv"),
        ("a.jsonl", '{"text": "a", "tags": {"x": 0.5}}\n', 1, "expected names, or 0 and 1 for each"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_its_line(tmp_path, name, text, line, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataFileError, match=words) as caught:
        read_any(tmp_path / name, labels="tags", text="text")
    assert caught.value.line == line or line is None


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (gzip.compress(b"text", mtime=0), "format gzip; expected a name with .gz, as the file is compressed"),
        (b"PAR1\x15\x04\x15", "format Parquet; expected a name with .parquet"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "format Arrow or Feather; expected text in UTF-8"),
        (b"\xff\xff\xff\xff\x80", "format Arrow or Feather"),
        (b"\x28\xb5\x2f\xfd\x04", "format zstd; expected text in UTF-8, such as CSV, or Parquet; unpack"),
        (bz2.compress(b"text"), "format bzip2"), (lzma.compress(b"text"), "format xz"),
        (b"PK\x03\x04\x14\0", "format zip or xlsx"), (b"\xd0\xcf\x11\xe0\xa1", "format xls"),
        (b"ORC\n\x06\x12", "format ORC"), (b"\x89HDF\r\n", "format HDF5"), (b"\x80\x04\x95", "format pickle"),
        (b"\n<!DOCTYPE html>\n", "format HTML"), (b"version https://git-lfs.github.com", "format Git LFS"),
    ],
)  # fmt: skip
def test_files_of_other_formats_are_named(tmp_path, head, said):
    (tmp_path / "a.csv").write_bytes(head)
    with pytest.raises(DataFileError, match=f"a.csv: found the {re.escape(said)}"):
        read_table(tmp_path / "a.csv", labels="tags", text="text")


def test_column_names_that_begin_as_another_format_are_text(tmp_path):
    for name in ("PAR1", "ARROW1", "ORC", "FEA1", "BZh9", "PK", "7z"):
        (tmp_path / "a.csv").write_text(f"{name},tags\na,b\n")
        assert len(read_table(tmp_path / "a.csv", labels="tags", categorical=name)) == 1


def test_pairs_of_spacy_name_labels_that_need_no_flag(tmp_path):
    for name, text in {
        "a.json": json.dumps(CATS),
        "b.jsonl": json.dumps({"text": "red", **CATS[1][1]}),
        "c.jsonl": "\n".join(map(json.dumps, CATS)),
    }.items():
        (tmp_path / name).write_text(text)
        data = read_table(tmp_path / name)
        assert data.Y.words == (["bb"] if name == "b.jsonl" else ["aa", "bb"])
    np.testing.assert_array_equal(read_table(tmp_path / "a.json").Y.to_dense(), [[1, 1], [0, 1]])


@pytest.mark.parametrize(
    "line",
    [
        "__label__aa __label__bb red ball",
        "__label__aa\t__label__bb\tred ball",
        "__label__aa,__label__bb red ball",
        "__label__aa, __label__bb, red ball",
        "__label__aa , __label__bb , red ball",
        "red ball __label__aa __label__bb",
        "  __label__aa red __label__bb ball ",
    ],
)
def test_lines_of_fasttext(tmp_path, line):
    path = tmp_path / "a.txt"
    path.write_text(f"__label__bb blue\n{line}\nnothing known\n\n")
    data = read_any(path)
    assert data.Y.words == ["aa", "bb"]
    np.testing.assert_array_equal(data.Y.to_dense(), [[0, 1], [1, 1], [0, 0]])
    assert "text:ball" in data.feature_names
    assert not any("label" in name for name in data.feature_names)
    blocks = iterate_table(path, TableColumns(labels="labels", text="text"), 1, label_names=["aa", "bb"])
    assert sum(len(block) for block in blocks) == 3


@pytest.mark.parametrize(
    "text",
    [
        'text\ttags\n"red ball\taa\nblue\tbb\n',
        'text\ttags\n"red ball\taa\nblue"\tbb\n',
        'text\ttags\r\n"red" ball\taa\r\nblue\tbb\r\n',
        'text\ttags\nred ball\taa\n"blue\tbb\n',
        'text\ttags\n"red ball""\taa\n\nblue\tbb\n\n',
        '"text\ttags\nred ball\taa\nblue\tbb\n',
    ],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.csv", "a.tab"])
def test_lone_quotes_between_tabs_are_text(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, newline="")
    columns = TableColumns(labels="tags", text='"text' if text[0] == '"' else "text")
    line = 1 + text[: re.search(r'(?m:^|\t)"', text).start() + 1].count("\n")
    with pytest.warns(
        UserWarning, match=rf"{name}:{line}: a quotation mark begins a cell and does not close"
    ):
        data = read_table_columns(path, columns)
    assert len(data) == 2
    assert data.Y.words == ["aa", "bb"]
    assert sum(data.X.iloc[:, 0].str.count('"')) == text.count('"') - (text[0] == '"')


@pytest.mark.parametrize(
    ("text", "n_rows"),
    [
        ('text\ttags\n"red\nball"\taa\nblue\tbb\n', 2),
        ('text\ttags\n"red\tball"\taa\nblue\tbb\n', 2),
        ('text\ttags\n"red ""x"""\taa\n"blue"\t"bb"\n', 2),
        ('text\ttags\na 24" screen\taa\nblue\tbb\n', 2),
    ],
)
def test_quotes_that_enclose_cells_between_tabs_do_so_still(tmp_path, text, n_rows):
    (tmp_path / "a.tsv").write_text(text)
    data = read_table_columns(tmp_path / "a.tsv", TableColumns(labels="tags", text="text"))
    assert (len(data), data.Y.words) == (n_rows, ["aa", "bb"])
    assert not data.X["text"].str.startswith('"').any()


def test_a_quoted_cell_over_rows_is_warned_of_by_its_line(tmp_path):
    (tmp_path / "a.tsv").write_text('text\ttags\nred\taa\n"blue\tbb\tx\ngreen"\tcc\n')
    with pytest.warns(UserWarning, match=r"a.tsv:3: a quotation mark .* encloses tabs and line ends"):
        data = read_table_columns(tmp_path / "a.tsv", TableColumns(labels="tags", text="text"))
    assert len(data) == 2


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("lines", "cells"),
    [
        (["text", "red", "", "blue"], ["red", "", "blue"]),
        (["text", "", "", "blue", ""], ["", "", "blue"]),
        (["", "text", "red", "", "", "blue", "", ""], ["red", "", "", "blue"]),
        (["text", '""', "red"], ["", "red"]),
        (["text", "red"], ["red"]),
    ],
)
def test_blank_lines_of_one_column_are_rows(tmp_path, lines, cells, ending):
    (tmp_path / "a.csv").write_text(ending.join(lines) + ending, newline="")
    data = read_table_columns(tmp_path / "a.csv", TableColumns(text="text"))
    assert data.X["text"].tolist() == cells
    blocks = iterate_table(tmp_path / "a.csv", TableColumns(text="text"), 2)
    assert [cell for block in blocks for cell in block.X["text"]] == cells


HEADERLESS = {
    "a number": "red ball,17\nblue,3\ngreen,17\n",
    "a cell again": "red ball,aa\nblue,aa\ngreen,bb\n",
    "tabs": "so happy now\t17\tedg\nvery sad\t25\tedh\nhappy\t17,25\tedj\n",
    "semicolons": "red;aa\nblue;aa\n",
    "numbers": "5.1,3.5,1.4,aa\n4.9,3.0,1.4,aa\n4.7,3.2,1.3,bb\n",
    "a text": f"{'a long review of it ' * 4},aa\nblue,bb\ngreen,cc\n",
    "whole numbers": "5,17,aa\n4,3,aa\n7,1,bb\n",
    "a gap": "?,aa\n3,aa\n4,bb\n",
    "quoted": '"red ball","17"\n"blue","17"\n',
    "one more": "aa,x\nbb,x\naa,y\n",
    "texts": "I love this phone so much,a / b\nit broke after two days,c / a\nslow and far too big,b / d\n",
}
HEADED = {
    "words": "text,tags\nred,aa\nblue,bb\n",
    "years": "1990,1991,1992,tags\n5,6,7,aa\n6,6,8,bb\n",
    "places": "0,1,2,tags\n5,6,7,aa\n6,6,8,bb\n",
    "places from 1": "1,2,tags\n0.5,6,aa\n6,6,bb\n",
    "a word in it": "male,age\nmale,5\nfemale,6\n",
    "tens": "10,20,30,tags\n5,6,7,aa\n6,6,8,bb\n",
    "a number alone": "2020,tags\nred,aa\nblue,bb\n",
    "scikit-learn": "150,4,setosa\n5.1,3.5,0\n4.9,3.0,0\n",
    "questions": "text,How satisfied are you with the overall quality of this product and its delivery?\n"
    + "w,very satisfied\nv,satisfied with all of it\nu,not satisfied with much\n" * 9,
    "long names": "answer,the state of the product when it came\n"
    + "w,as good as new\nv,used by someone else\n" * 20,
}


@pytest.mark.parametrize("name", HEADERLESS)
def test_a_first_line_that_looks_like_a_row_is_pointed_out(tmp_path, name):
    text = HEADERLESS[name]
    path = tmp_path / ("a.tsv" if "\t" in text else "a.csv")
    path.write_text(text)
    first = next(iter(read_names(text)))
    with pytest.warns(UserWarning, match="looks like a cell; if the first line is a row, pass no_h"):
        TableColumns(labels=first).resolved(table_of(path))
    data = read_table_columns(path, TableColumns(labels="1", no_header=True))
    assert len(data) == text.count("\n")
    assert set(data.X.columns) <= {str(place + 1) for place in range(len(read_names(text)))}


@pytest.mark.parametrize("name", HEADED)
@pytest.mark.filterwarnings("error")
def test_names_of_columns_are_not_taken_for_a_row(tmp_path, name):
    (tmp_path / "a.csv").write_text(HEADED[name])
    first = next(iter(read_names(HEADED[name])))
    read_table_columns(tmp_path / "a.csv", TableColumns(labels=first, text=()))


def test_one_row_alone_is_a_row(tmp_path):
    rows = {
        "a.jsonl": '{"text": ["a", "b", "c"], "tags": ["x", "y", "z"]}\n',
        "a.txt": "__label__x,__label__y a\n",
    }
    for name, text in {
        **rows,
        "b.csv": "text,tags\na b,['x']\n",
        "c.json": '{"text": "a", "tags": ["x"]}',
    }.items():
        (tmp_path / name).write_text(text)
        column = "labels" if name == "a.txt" else "tags"
        assert len(read_table_columns(tmp_path / name, TableColumns(labels=column, text="text"))) == 1
    (tmp_path / "a.csv").write_text("red ball,aa\n")
    with pytest.raises(DataFileError, match=r"no rows; .* if the first line is one, pass no_header=True"):
        read_table_columns(tmp_path / "a.csv", TableColumns(labels="aa", text="red ball"))
    assert len(read_table_columns(tmp_path / "a.csv", TableColumns(labels="2", no_header=True))) == 1


def read_names(text):
    return [name.strip('"') for name in re.split("[,;\t]", text.split("\n")[0])]


def table_of(path):
    from labelweave.datasets.table_files import raw_tables

    return next(raw_tables(path))


def test_a_header_of_two_equal_cells_names_the_flag(tmp_path):
    (tmp_path / "a.csv").write_text("0,0,1\n1,2,3\n")
    with pytest.raises(DataFileError, match=r"two columns named '0'; .* no_header=True if it is a row"):
        read_table(tmp_path / "a.csv", labels="0")
    assert len(read_table(tmp_path / "a.csv", labels="3", numeric="1", no_header=True)) == 2


PAIRS = "doc,text,label\nd0,red ball,aa\nd1,blue,bb\nd0,red ball,bb\nd1,blue,bb\nd2,green,?\n"


@pytest.mark.parametrize(
    ("text", "labels", "rows"),
    [
        (PAIRS, {"aa", "bb"}, [[1, 1], [0, 1], [np.nan, np.nan]]),
        (PAIRS.replace("d2,green,?", "d2,green,"), {"aa", "bb"}, [[1, 1], [0, 1], [0, 0]]),
        (PAIRS.replace("d0,red ball,bb", "d0,red ball,?"), {"aa", "bb"}, [[1, 0], [0, 1], [np.nan, np.nan]]),
        (PAIRS.replace("aa", "aa|bb"), {"aa", "bb"}, [[1, 1], [0, 1], [np.nan, np.nan]]),
        (PAIRS.replace("d0", "1").replace("d1", "2"), {"aa", "bb"}, [[1, 1], [0, 1], [np.nan, np.nan]]),
    ],
)
def test_pairs_of_row_and_label_are_one_row_a_name(tmp_path, text, labels, rows):
    (tmp_path / "a.csv").write_text(text)
    with pytest.warns(UserWarning, match="names in column 'doc' repeat"):
        data = read_table(tmp_path / "a.csv", labels="label", label_separator="|", text="text", id="doc")
    assert set(data.Y.words) == labels
    np.testing.assert_array_equal(data.Y.to_dense(), rows)
    assert list(data.row_ids) == list(dict.fromkeys(line.split(",")[0] for line in text.split("\n")[1:-1]))
    lines = [json.dumps(dict(zip(["doc", "text", "label"], line.split(","), strict=True)))
             for line in text.replace("?", "").split("\n")[1:-1]]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="labels are merged"):
        again = read_table(tmp_path / "a.jsonl", labels="label", label_separator="|", text="text", id="doc")
    assert len(again) == 3


def test_rows_of_one_name_with_other_features_stay_apart(tmp_path):
    (tmp_path / "a.csv").write_text(PAIRS.replace("d1,blue,bb\nd2", "d1,other,bb\nd2"))
    with pytest.warns(
        UserWarning,
        match=r"a.csv:5: found a cell that differs from the first row with the same name .* not merged",
    ):
        assert len(read_table(tmp_path / "a.csv", labels="label", text="text", id="doc")) == 5
    (tmp_path / "b.csv").write_text("doc,text,label\nd0,red,aa\nd1,blue,bb\n")
    assert len(read_table(tmp_path / "b.csv", labels="label", text="text", id="doc")) == 2


POSITIVE = "text,x,y,z\nred ball,1,,1\nblue,,1,0\ngreen,,,?\n"


def test_columns_of_1_and_blank_cells_are_counted(tmp_path):
    (tmp_path / "a.csv").write_text(POSITIVE)
    names = ["x", "y", "z"]
    said = (
        r"2 of 3 label columns hold 1 and missing cells only, such as 'x' \(1 and 2\).* empty_labels='none'"
    )
    with pytest.warns(UserWarning, match=said):
        data = read_table(tmp_path / "a.csv", labels=names, text="text")
    nan = np.nan
    np.testing.assert_array_equal(data.Y.to_dense(), [[1, nan, 1], [nan, 1, 0], [nan, nan, nan]])
    with pytest.warns(UserWarning, match="2 of 3"):
        read_table(tmp_path / "a.csv", labels=names, text="text", block_rows=1)
    kept = read_table(tmp_path / "a.csv", labels=names, text="text", empty_labels="unknown")
    np.testing.assert_array_equal(kept.Y.to_dense(), data.Y.to_dense())
    filled = read_table(tmp_path / "a.csv", labels=names, text="text", empty_labels="none")
    np.testing.assert_array_equal(filled.Y.to_dense(), [[1, 0, 1], [0, 1, 0], [0, 0, nan]])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['{"x": 1, "y": null}', '{"x": null, "y": 0}'], [[1, 0], [0, 0]]),
        (['{"x": true}', '{"x": null, "y": false}'], [[1, 0], [0, 0]]),
        (['{"x": "1", "y": " "}', '{"x": "", "y": 1}'], [[1, 0], [0, 1]]),
    ],
)
def test_blank_cells_of_json_are_0_where_asked(tmp_path, lines, expected):
    (tmp_path / "a.jsonl").write_text("\n".join(line.replace("{", '{"t": "a b", ') for line in lines))
    read = TableColumns(labels=["x", "y"], text="t", empty_labels="none")
    np.testing.assert_array_equal(read_table_columns(tmp_path / "a.jsonl", read).Y.to_dense(), expected)


def test_lists_of_words_are_texts_where_named(tmp_path):
    rows = [{"words": ["red", "ball", 3], "y": "aa"}, {"words": [], "y": "bb"}, {"words": None, "y": "bb"}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    data = read_table_columns(tmp_path / "a.json", TableColumns(labels="y", text="words"))
    assert data.X["words"].tolist() == ["red ball 3", "", ""]
    with pytest.raises(DataFileError, match="a list in column 'words'"):
        read_table_columns(tmp_path / "a.json", TableColumns(labels="y"))


@pytest.mark.parametrize("name", ["index", "patient_id", "customerId", "row no", "nr"])
def test_whole_numbers_called_like_names_of_rows_are_pointed_out(tmp_path, name):
    (tmp_path / "a.csv").write_text(f"{name},y\n5,aa\n5,bb\n7,aa\n")
    with pytest.warns(
        UserWarning, match=f"'{name}' holds integers and has a name that is usual for row names"
    ):
        assert read_table_columns(tmp_path / "a.csv", TableColumns(labels="y")).X.columns.tolist() == [name]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["3,5", "12,25", "7"], [3.5, 12.25, 7]),
        (["0,125", "0,5", ""], [0.125, 0.5, np.nan]),
        (["3,14159", "2,71828", "1,41421"], [3.14159, 2.71828, 1.41421]),
        (["-3,5", "12,25", "1,234"], [-3.5, 12.25, 1.234]),
        (["1,234", "12,345", "7"], [1234, 12345, 7]),
        (["1,234.5", "2.5", "7"], [1234.5, 2.5, 7]),
        (["3,5 %", "12,25 %", "7 %"], [3.5, 12.25, 7]),
    ],
)
def test_quoted_decimals_are_numbers(tmp_path, cells, numbers):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f'"{cell}",aa\n' for cell in cells))
    X = read_table_columns(tmp_path / "a.csv", TableColumns(labels="y")).X
    np.testing.assert_array_equal(X["x"], numbers)


def test_blocks_of_decimal_commas_mean_the_same(tmp_path):
    columns = TableColumns(labels=["y"], numeric="x")
    (tmp_path / "a.csv").write_text('x,y\n"3,5",1\n"1,234",0\n"1,234",1\n')
    read = iterate_table(tmp_path / "a.csv", columns, 1)
    assert [float(block.X["x"].iloc[0]) for block in read] == [3.5, 1.234, 1.234]
    (tmp_path / "a.csv").write_text('x,y\n"1,234",0\n"3,5",1\n')
    with pytest.raises(DataFileError, match="commas in column 'x'"):
        list(iterate_table(tmp_path / "a.csv", columns, 1))


DATES = [
    ["2024-01-31", "2024-02-29"],
    ["2024/01/31", "2024/02/29"],
    ["2024-01-31 06:30", "2024-02-29 18:00"],
    ["2024-01-31T06:30:00", "2024-02-29T18:00:59.5"],
    ["2024-01-31T06:30:00Z", "2024-02-29T18:00:00Z"],
    ["2024-01-31 06:30:00+00:00", "2024-02-29 18:00:00+00:00"],
    ["31.1.2024 06:30", "29.02.2024 18:00"],
    ["Jan 31, 2024 06:30", "February 29 2024 18:00"],
    ["31 January 2024 06:30", "29-Feb-2024 18:00"],
]


@pytest.mark.parametrize("cells", DATES)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "frame"])
def test_parts_of_dates_are_features(tmp_path, cells, name):
    import pandas as pd

    from labelweave import MaxMarginClassifier, TableModel

    rows = pd.DataFrame({"at": [*cells, None] * 10, "y": ["aa", "bb", "aa"] * 10})
    expected = {"year": 2024, "month": [1, 2], "day": [31, 29], "weekday": [2, 3],
                "hour": [6, 18] if ":" in cells[0] else 0}  # fmt: skip
    columns = [f"at ({part})" for part in expected]
    if name == "frame":
        rows = rows.assign(at=pd.to_datetime(rows["at"], format="mixed", dayfirst=True), y=rows["y"] == "aa")
        model = TableModel(MaxMarginClassifier(), missing_numeric="mean").fit(rows[["at"]], rows[["y"]])
        assert model.columns_.numeric == tuple(columns)
        assert len(model.predict(rows[["at"]].astype(object))) == 30
        return
    if name == "a.parquet":
        rows.assign(at=pd.to_datetime(rows["at"], format="mixed", dayfirst=True)).to_parquet(tmp_path / name)
    elif name == "a.jsonl":
        rows.to_json(tmp_path / name, orient="records", lines=True)
    else:
        rows.to_csv(tmp_path / name, index=False)
    X = read_table_columns(tmp_path / name, TableColumns(labels="y")).X
    assert X.columns.tolist() == columns
    for part, values in expected.items():
        assert np.array_equal(X[f"at ({part})"][:2], np.broadcast_to(values, 2))
        assert np.isnan(X[f"at ({part})"][2])
    blocks = iterate_table(tmp_path / name, TableColumns(numeric=columns), 7)
    assert sum(len(block) for block in blocks) == 30


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["31/01/2024", "01/02/2024"], "d/m"),
        (["01/02/2024", "3/31/2024"], "m/d"),
        (["1-2-2024", "31-1-2024"], "d/m"),
        (["12/31/2024 06:30", ""], "m/d"),
    ],
)
def test_a_column_shows_whether_the_day_or_the_month_comes_first(tmp_path, cells, order):
    import pandas as pd

    from labelweave import MaxMarginClassifier, TableModel

    days = [int(re.split("[-/]", cell or "0/0/0")[order == "m/d"]) for cell in cells]
    rows = pd.DataFrame({"at": cells * 6, "y": ["aa", "bb"] * 6})
    rows.to_csv(tmp_path / "a.csv", index=False)
    X = read_table_columns(tmp_path / "a.csv", TableColumns(labels="y")).X
    assert X.columns.tolist() == [
        f"at ({part}, {order})" for part in ("year", "month", "day", "weekday", "hour")
    ]
    np.testing.assert_array_equal(X[f"at (day, {order})"][:2], [day or np.nan for day in days])
    model = TableModel(MaxMarginClassifier()).fit(rows[["at"]], rows["y"])
    first = pd.DataFrame({"at": ["02/01/2024"]})  # which alone does not show it
    month = model.vectorizer_._table(first).numbers(f"at (month, {order})")
    assert month.tolist() == [1 if order == "d/m" else 2]
    (tmp_path / "a.csv").write_text("at,y\n01/02/2024,aa\n03/02/2024,bb\n")
    with pytest.warns(
        UserWarning, match=r"'01/02/2024', may begin with the day or the month .*\(month, d/m\)'"
    ):
        X = read_table_columns(tmp_path / "a.csv", TableColumns(labels="y")).X
    assert X.columns.tolist() == ["at"]


@pytest.mark.parametrize(("cells", "first"), [
    (["2024-01-31", "2024-02-31", "2023-02-29", ""], "2024-02-31"), (["31.1.2024", "31.2.2024"], "31.2.2024"),
])  # fmt: skip
def test_days_that_no_month_has_are_missing_and_told_once(tmp_path, cells, first):
    (tmp_path / "a.csv").write_text("at,y\n" + "".join(f"{cell},aa\n" for cell in cells))
    with pytest.warns(UserWarning, match="cells of column 'at' are no dates") as said:
        X = read_table(tmp_path / "a.csv", TableVectorizer(numeric="at (day)", missing_numeric="mean")).X
    count = f"{len(cells) // 2} of {len(cells)} cells of column 'at' are no dates and count as missing"
    assert [str(one.message) for one in said] == [f"{count}, such as {first!r}"]
    assert not X.toarray().any()  # the mean of one


@pytest.mark.parametrize("missing", ["NA", "NaT", "?", "null"])
def test_dates_may_be_missing_in_words(tmp_path, missing):
    cells = ["2024-01-31", missing, "2024-02-29"]
    (tmp_path / "a.csv").write_text("at,y\n" + "".join(f"{cell},aa\n" for cell in cells))
    X = read_table_columns(tmp_path / "a.csv", TableColumns(labels="y")).X
    np.testing.assert_array_equal(X["at (month)"], [1, np.nan, 2])


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-01", "x"],
        ["2024-01-31", "soon"],
        ["31/01/2024", "01/31/2024"],
        ["12:30", "12:40"],
        ["3/4", "4/5"],
        ["2024-31-01", "2024-01-31"],
    ],
)
def test_what_is_no_date_in_every_row_is_none(tmp_path, cells):
    (tmp_path / "a.csv").write_text("at,y\n" + "".join(f"{cell},aa\n" for cell in cells))
    assert read_table_columns(tmp_path / "a.csv", TableColumns(labels="y")).X.columns.tolist() == ["at"]


SECOND_LINES = {
    "units": ("size,weight,y", ["kg,m,"]),
    "types": ("size,weight,y", ["float,int,category"]),
    "two levels": ("a,b,y", ["p,q,aa"]),
    "questions": ("kind,mood,y", ["How old are you?,How do you do?,Which of these?"]),
    "questions and codes": ("kind,mood,y", ["How old?,How do you do?,Which?", "{Q1},{Q2},{Q3}"]),
}


@pytest.mark.parametrize("name", SECOND_LINES)
def test_a_second_line_of_a_header_is_pointed_out(tmp_path, name):
    header, more = SECOND_LINES[name]
    are_words = header.startswith("kind")
    cells = ["18-24,well", "25-34,ill", "25-34,well"] if are_words else ["1.5,3", "2.5,4", "2.5,5"]
    rows = [f"{cells[k % 3]},{('aa', 'bb')[k % 2]}" for k in range(24)]
    (tmp_path / "a.csv").write_text("\n".join([header, *more, *rows]) + "\n")
    first, *_ = more[0].split(",")
    said = f"the first row differs .* with '{re.escape(first)}' in column .*delete it from the file"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        TableColumns(labels="y").resolved(table_of(tmp_path / "a.csv"))
    assert re.search(said, str(seen[0].message))
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    TableColumns(labels="y").resolved(table_of(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_text("a,a,b\nx,y,z\n1,2,aa\n")
    with pytest.raises(
        DataFileError, match=r"two columns named 'a'; expected distinct column names in the first line"
    ):
        table_of(tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("named", [["doc", "text"], ["text"], ["doc"]])
def test_pairs_without_an_id_are_pointed_out(tmp_path, form, named):
    import pandas as pd

    pairs = [
        {"doc": doc, "text": f"word{doc} of {doc}", "tag": tag}
        for doc in range(20)
        for tag in "abc"[: 1 + doc % 3]
    ]
    frame = pd.DataFrame(pairs)[[*named, "tag"]]

    def read(frame, **roles):
        path = tmp_path / f"a.{form}"
        text = frame.to_csv(index=False) if form == "csv" else frame.to_json(orient="records", lines=True)
        path.write_text(text)
        return read_table(path, labels="tag", **roles)

    said = f"rows with the same '{named[0]}' differ only in column 'tag'; id='{named[0]}' merges"
    with pytest.warns(UserWarning, match=said):
        assert len(read(frame)) == len(pairs)
    if len(named) > 1:
        with pytest.warns(UserWarning, match="names in column 'doc' repeat"):
            assert len(read(frame, id="doc")) == 20
    with pytest.warns(UserWarning, match=said):
        read(frame.assign(more=range(len(pairs))), categorical=named)
    read(frame.assign(more=range(len(pairs))), drop=None if named == ["doc"] else "text", categorical="more")
    read(frame.sort_values(["tag"]), categorical=named[0])


def test_a_table_of_one_column_may_have_any_name(tmp_path):
    (tmp_path / "a.txt").write_text("text\nred ball\n\nblue\n")
    with pytest.raises(DataFileError, match="found a format that neither name nor first line"):
        read_any(tmp_path / "a.txt")
    assert len(read_table_columns(tmp_path / "a.txt", TableColumns(text="text"))) == 3


@pytest.mark.parametrize("line", ["red ball __label__aa", "red __label__aa ball"])
def test_labels_of_fasttext_may_stand_behind_all_texts(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"{line}\nblue __label__bb\n")
    assert read_any(tmp_path / "a.txt").Y.words == ["aa", "bb"]


def test_a_header_that_lists_labels_of_its_column_looks_like_a_row(tmp_path):
    (tmp_path / "a.csv").write_text("some red words,aa|bb\n" + "more blue words,bb|aa\nred,aa|cc\n" * 5)
    with pytest.warns(UserWarning, match=r"the name 'aa\|bb' of a column looks like a cell"):
        read_table(tmp_path / "a.csv", labels="aa|bb", label_separator="|")


def test_a_column_without_words_is_no_text(tmp_path):
    (tmp_path / "a.csv").write_text(
        "x,size,tags\n" + "".join(f"{sign},{k}.5,t\n" for k, sign in enumerate("abcdef"))
    )
    data = read_table(tmp_path / "a.csv", labels="tags")
    assert data.vectorizer.categorical == ("x",)
