import csv
import datetime as dt
import decimal
import gzip
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import (
    DataFileError,
    TableColumns,
    TableVectorizer,
    iterate_table,
    read_table,
    read_table_columns,
)
from labelweave.datasets.table_files import escaped, raw_tables

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
FILES = settings(max_examples=40)

ROWS = [
    {"id": "r0", "title": "red apple, sweet", "kind": "a", "size": 1.5, "tags": ["x", "y"]},
    {"id": "r1", "title": "green\npear", "kind": "b", "size": 2, "tags": []},
    {"id": "r2", "title": 'a "red" pear', "kind": "a", "size": -1e3, "tags": None},
]
ROLES = {"labels": "tags", "text": "title", "categorical": "kind", "numeric": "size", "id": "id"}


def write(path, text):
    path.write_text(text, newline="")
    return path


def csv_file(path, delimiter=",", rows=ROWS):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["id", "title", "kind", "size", "tags"])
        for row in rows:
            tags = "?" if row["tags"] is None else "|".join(row["tags"])
            writer.writerow([row["id"], row["title"], row["kind"], row["size"], tags])
    return path


def json_file(path, rows=ROWS):
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def parquet_file(path, rows=ROWS):
    pd.DataFrame(rows).to_parquet(path)
    return path


def any_file(folder, kind):
    if kind == "csv":
        return csv_file(folder / "t.csv"), {"label_separator": "|"}
    if kind == "semicolon":
        return csv_file(folder / "s.csv", ";"), {"label_separator": "|"}
    if kind == "tsv":
        return csv_file(folder / "t.tsv", "\t"), {"label_separator": "|"}
    if kind == "csv.gz":
        path = csv_file(folder / "z.csv")
        (folder / "z.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        return folder / "z.csv.gz", {"label_separator": "|"}
    return (json_file(folder / "t.jsonl") if kind == "json" else parquet_file(folder / "t.parquet")), {}


@pytest.mark.parametrize("kind", ["csv", "semicolon", "tsv", "csv.gz", "json", "parquet"])
def test_all_kinds_of_files_give_the_same_rows(tmp_path, kind):
    path, options = any_file(tmp_path, kind)
    data = read_table(path, **ROLES, **options)
    nan = np.nan
    np.testing.assert_array_equal(data.Y.to_dense(), [[1, 1], [0, 0], [nan, nan]])
    assert list(data.label_names) == ["x", "y"]
    assert list(data.row_ids) == ["r0", "r1", "r2"]
    names = list(data.feature_names)
    assert names[:2] == ["title:apple", "title:green"]
    assert names[-3:] == ["kind=a", "kind=b", "size"]
    X = data.X.toarray()
    np.testing.assert_array_equal(X[:, names.index("kind=a")], [1, 0, 1])
    assert X[1, names.index("title:green")] > 0
    assert abs(X[:, -1].mean()) < 1e-12
    assert data.X.indices.dtype == np.int32
    raw = read_table_columns(path, TableColumns(**ROLES, **options))
    assert list(raw.X["size"]) == [1.5, 2, -1000]
    assert list(raw.X.columns) == ["title", "kind", "size"]


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 5])
def test_chunks_add_up_to_the_whole(tmp_path, kind, chunk_rows):
    path, options = any_file(tmp_path, kind)
    whole = read_table(path, **ROLES, **options)
    chunks = list(
        iterate_table(path, TableColumns(**ROLES, **options), chunk_rows, label_names=whole.label_names)
    )
    X = np.vstack([whole.vectorizer.transform(chunk.X).toarray() for chunk in chunks])
    np.testing.assert_allclose(X, whole.X.toarray(), rtol=1e-12)
    np.testing.assert_array_equal(np.vstack([chunk.Y.to_dense() for chunk in chunks]), whole.Y.to_dense())
    assert [row for chunk in chunks for row in chunk.X.index] == [0, 1, 2]


def test_kinds_of_columns_are_found(tmp_path):
    words = ["one", "two", "three", "four", "five", "six"]
    rows = [
        {"words": f"text {word}", "kind": "ab"[row % 2], "size": row, "none": None, "junk": 1, "tags": ["x"]}
        for row, word in enumerate(words)
    ]
    data = read_table(json_file(tmp_path / "t.jsonl", rows), labels="tags", drop="junk")
    vectorizer = data.vectorizer
    assert (vectorizer.text, vectorizer.categorical, vectorizer.numeric) == (("words",), ("kind",), ("size",))
    with pytest.raises(ValueError, match="No text, categorical, numeric or vectors column"):
        next(iterate_table(tmp_path / "t.jsonl", TableColumns(labels="tags")))
    with pytest.raises(ValueError, match="label_names"):
        next(iterate_table(tmp_path / "t.jsonl", TableColumns(labels="tags", text="words")))


def test_columns_of_zeros_and_ones(tmp_path):
    path = write(tmp_path / "t.csv", "f,a,b\n1,0,true\n2,,1\n3,?,0.0\n")
    data = read_table(path, labels=["a", "b"], numeric="f")
    np.testing.assert_array_equal(data.Y.to_dense(), [[0, 1], [np.nan, 1], [np.nan, 0]])
    again = read_table(path, data.vectorizer, labels=["b", "a"], label_names=["a", "b"])
    np.testing.assert_array_equal(again.Y.to_dense(), data.Y.to_dense())
    with pytest.raises(DataFileError, match="no label column 'c'"):
        read_table(path, data.vectorizer, labels=["a", "b"], label_names=["a", "c"])
    path = write(tmp_path / "bad.csv", "f,a\n1,0\n2,2\n")
    with pytest.raises(DataFileError, match=r"bad.csv:3: found '2' in column 'a' of row 1"):
        read_table(path, labels=["a"], numeric="f")


def test_later_files_use_the_training_labels_and_features(tmp_path):
    train = read_table(json_file(tmp_path / "train.jsonl"), **ROLES)
    later = [{"title": "red kiwi", "kind": "c", "size": 0, "tags": ["y", "new"]}]
    path = json_file(tmp_path / "later.jsonl", later)
    with pytest.raises(DataFileError, match=r"later.jsonl:1: found the unknown label 'new'"):
        read_table(path, train.vectorizer, labels="tags", label_names=train.label_names)
    data = read_table(
        path, train.vectorizer, labels="tags", label_names=train.label_names, unknown_labels="ignore"
    )
    assert data.Y.to_dense().tolist() == [[0, 1]]
    assert list(data.feature_names) == list(train.feature_names)
    bare = read_table(path, train.vectorizer, label_names=train.label_names)
    assert np.isnan(bare.Y.to_dense()).all()
    with pytest.raises(ValueError, match="cannot be combined with a vectorizer"):
        read_table(path, train.vectorizer, text="title")


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("t.csv", "", None, "an empty file"),
        ("t.csv", "f,y\n", None, "no rows"),
        ("t.csv", "f,f\n1,x\n", 1, "two columns named 'f'"),
        ("t.csv", "f,\n1,x\n", 1, "no name for column 2"),
        ("t.csv", "f,y\n1,x\n1\n", 3, "a row of 1 cells"),
        ("t.csv", "f,y\n1,x,2\n", 2, "a row of 3 cells"),
        ("t.csv", 'f,y\n1,"x\n2,y\n', 2, "broken record"),
        ("t.csv", 'f,y\n"1\n",x\nz,x\n', 4, "'z' in column 'f' of row 1"),
        ("t.csv", "f,y\ninf,x\n", 2, "'inf' in column 'f'"),
        ("t.csv", "g,y\n1,x\n", None, "no column 'f'"),
        ("t.csv", "f,y\n1,\n", None, "no label in column 'y'"),
        ("t.jsonl", '{"f": 1, "y": "x"}\n{"f": 1,\n', 2, "broken JSON"),
        ("t.jsonl", "[1]\n", 1, "a JSON list"),
        ("t.jsonl", '{"f": "z", "y": "x"}\n', 1, "'z' in column 'f'"),
        ("t.jsonl", '{"f": Infinity, "y": "x"}\n', 1, "'inf' in column 'f'"),
        ("t.jsonl", '{"f": [1], "y": "x"}\n', 1, "in column 'f'"),
        ("t.jsonl", '{"f": 1, "y": {"x": {}}}\n', 1, "'{\"x\": {}}' in column 'y'"),
        ("t.jsonl", '{"f": 1, "y": ["x", null]}\n', 1, "the label None"),
        ("t.parquet", "PAR1", None, "damaged Parquet"),
        ("t.parquet", "", None, "an empty file"),
    ],
)
def test_malformed_files_name_the_line(tmp_path, name, text, line, words):
    with pytest.raises(DataFileError, match=words) as caught:
        read_table(write(tmp_path / name, text), labels="y", numeric="f")
    assert caught.value.line == line


def test_decimal_commas_between_semicolons_are_numbers(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a;b;y\n1,5; -0,25 ;p,q\n2;,;q\n;1,000;p\n+3,75;x;q\n")
    columns = TableColumns(labels="y", label_separator=",", numeric="a", text="b")
    frame = read_table_columns(path, columns).X
    assert np.array_equal(frame["a"], [1.5, 2, np.nan, 3.75], equal_nan=True)
    assert frame["b"].tolist() == [" -0,25 ", ",", "1,000", "x"]
    (tmp_path / "c.csv").write_text(path.read_text().replace(",", ".").replace(";", ","))
    columns = TableColumns(labels="y", label_separator=".", numeric="a", text="b")
    assert np.array_equal(read_table_columns(tmp_path / "c.csv", columns).X["a"], frame["a"], equal_nan=True)
    path.write_text('a,y\n"1,5",q\n"2,5",p\n')
    assert read_table_columns(path, TableColumns(labels="y", numeric="a")).X["a"].tolist() == [1.5, 2.5]


def test_thousands_percent_and_currencies_are_numbers(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b,y\n"1,234.5",12.5%,q\n-17,?,p\n"$12,345,678", 3 % ,q\n,100%,p\n')
    frame = read_table_columns(path, TableColumns(labels="y", numeric=("a", "b"))).X
    assert np.array_equal(frame["a"], [1234.5, -17, 12345678, np.nan], equal_nan=True)
    assert np.array_equal(frame["b"], [12.5, np.nan, 3, 100], equal_nan=True)
    comma = write(tmp_path / "c.csv", "a;b;y\n1.234,5;12,5 %;q\n-17;?;p\n€12.345.678;3%;q\n;100%;p\n")
    same = read_table_columns(comma, TableColumns(labels="y", numeric=("a", "b"))).X
    assert same.equals(frame)
    guessed = read_table_columns(path, TableColumns(labels="y")).X
    assert list(guessed.dtypes.astype(str)) == ["float64", "float64"]


@pytest.mark.parametrize(
    ("cells", "values", "warning"),
    [
        ("1.234,5 2.500", [1234.5, 2500], None),
        ("2.500 3.100", [2500, 3100], "column 'x' precedes three digits"),
        ("2.5 1", [2.5, 1], None),
        ("1.5 2.125", [1.5, 2.125], None),
        ("0.125 1.125", [0.125, 1.125], None),
        ("0.125 1,5 2.500", [0.125, 1.5, 2500], "mix decimal points with decimal commas"),
    ],
)
def test_points_between_semicolons_mean_the_same_in_all_rows(tmp_path, recwarn, cells, values, warning):
    path = write(tmp_path / "t.csv", "x;y\n" + "".join(f"{cell};1\n" for cell in cells.split()))
    columns = TableColumns(labels=["y"], numeric="x")
    for chunk_rows in (1, len(values)):
        chunks = iterate_table(path, columns, chunk_rows)
        assert [number for chunk in chunks for number in chunk.X["x"]] == values
    assert [warning in str(said.message) for said in recwarn] == [True] * (2 if warning else 0)


def test_blocks_that_take_points_for_different_things_are_refused(tmp_path):
    path = write(tmp_path / "t.csv", "x;y\n1.125;1\n1.5;1\n")
    columns = TableColumns(labels=["y"], numeric="x")
    assert list(read_table_columns(path, columns).X["x"]) == [1.125, 1.5]
    with (
        pytest.warns(UserWarning, match="three digits"),
        pytest.raises(DataFileError, match="points before fractions in column 'x', read before as thousands"),
    ):
        list(iterate_table(path, columns, 1))


@pytest.mark.parametrize("block_rows", [None, 2])
@pytest.mark.parametrize(("shown", "value"), [("2.5", 2.5), ("1.234,5", 2500)])
def test_later_files_mean_by_points_what_the_training_file_did(tmp_path, block_rows, shown, value):
    path = write(tmp_path / "t.csv", f"x;y\n{shown};a\n3;b\n7;a\n")
    training = read_table(path, labels="y", numeric="x", block_rows=block_rows)
    later = write(tmp_path / "later.csv", "x;y\n2.500;a\n1.125;b\n1.125;b\n")
    vectorizer = training.vectorizer
    for known in (vectorizer, TableVectorizer.from_state(vectorizer.to_state())):
        X = read_table(later, known, labels="y", label_names=["a", "b"], block_rows=block_rows).X
        assert X.toarray()[0, 0] * vectorizer.scales_[0] + vectorizer.means_[0] == pytest.approx(value)
    assert vectorizer.decimal_marks_ == {"x": "." if value == 2.5 else ","}


def test_points_that_were_thousands_in_training_and_are_fractions_now_are_told(tmp_path):
    with pytest.warns(UserWarning, match="precedes three digits"):
        training = read_table(write(tmp_path / "t.csv", "x;y\n2.500;a\n3.125;b\n"), labels="y", numeric="x")
    later = write(tmp_path / "later.csv", "x;y\n2.5;a\n1.125;b\n")
    with pytest.warns(UserWarning, match="points before fractions, but before thousands in the training"):
        read_table(later, training.vectorizer, labels="y", label_names=["a", "b"])


def test_a_decimal_mark_that_no_number_shows_can_be_given(tmp_path):
    path = write(tmp_path / "t.csv", "x;y\n2.500;1.000\n1.125;-1.000\n")
    columns = TableColumns(labels=["y"], numeric="x", decimal_marks={"x": "."})
    data = read_table_columns(path, columns)
    assert data.X["x"].tolist() == [2.5, 1.125]
    assert data.Y.positives.toarray().tolist() == [[1], [0]]
    with pytest.raises(ValueError, match=r"decimal_marks has ';' for 'x'; it must be '.' or ','"):
        TableColumns(numeric="x", decimal_marks={"x": ";"})
    with pytest.raises(DataFileError, match="no column 'z'"):
        read_table(path, labels=["y"], numeric="x", decimal_marks={"z": "."})


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_columns_of_decimal_commas_are_numbers(tmp_path, kind):
    part, quote = {"csv": (",", '"'), "tsv": ("\t", "")}[kind]
    lines = [f"{quote}{number},{number % 7}5{quote}{part}{number % 2}" for number in range(30)]
    path = write(tmp_path / f"t.{kind}", "\n".join([f"x{part}y", *lines, ""]))
    data = read_table(path, labels=["y"])
    assert data.vectorizer.numeric == ("x",)
    assert data.vectorizer.means_[0] == pytest.approx(np.mean([n + (n % 7) / 10 + 0.05 for n in range(30)]))
    later = write(tmp_path / f"u.{kind}", f"x{part}y\n{quote}1,234{quote}{part}1\n")
    X = read_table(later, data.vectorizer, labels=["y"]).X.toarray() * data.vectorizer.scales_
    assert X[0, 0] + data.vectorizer.means_[0] == pytest.approx(1.234)


def test_columns_of_decimal_commas_that_are_taken_for_words_are_told(tmp_path):
    lines = [f'{{"x": "{number},5", "y": {number % 2}}}' for number in range(30)]
    path = write(tmp_path / "t.jsonl", "\n".join([*lines, ""]))
    with pytest.warns(UserWarning, match="'x' look like numbers with decimal commas and are read as words"):
        read_table(path, labels=["y"])


@pytest.mark.parametrize("cell", ["12,34", "0,125", "1,234,5", "3%4", "$", "%", "1.2.3", "1,2345"])
def test_what_is_nearly_a_number_is_refused_by_its_line(tmp_path, cell):
    path = write(tmp_path / "t.csv", f'a,y\n"1,000",q\n"{cell}",p\n')
    with pytest.raises(DataFileError, match=f"t.csv:3: found '{re.escape(cell)}' in column 'a'"):
        read_table_columns(path, TableColumns(labels="y", numeric="a"))


def test_a_missing_number_names_row_and_column_or_is_filled(tmp_path):
    path = write(tmp_path / "t.csv", "f,y\n1,x\n,x\n4,x\n")
    with pytest.raises(ValueError, match=r"t.csv:3: found no number in column 'f' of row 1"):
        read_table(path, labels="y", numeric="f")
    data = read_table(path, TableVectorizer(numeric="f", missing_numeric="mean"), labels="y")
    assert data.X.toarray()[1, 0] == 0


def test_an_open_end_of_a_csv_file_warns(tmp_path):
    path = write(tmp_path / "t.csv", "f,y\n1,x\n2,y")
    with pytest.warns(UserWarning, match=r"t.csv:3: the last row has no line end"):
        assert len(read_table(path, labels="y", numeric="f")) == 2


def test_long_cells_are_read_and_the_limit_is_put_back(tmp_path):
    before = csv.field_size_limit()
    path = write(tmp_path / "t.csv", f"t,y\n{'word ' * 40_000},x\n")
    assert len(read_table(path, labels="y", text="t")) == 1
    assert csv.field_size_limit() == before


def test_whole_numbers_are_labels_and_categories_without_a_point(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"f": [1.0, None], "y": [10.0, 20.5]}).to_parquet(path)
    data = read_table_columns(path, TableColumns(labels="y", categorical="f"))
    assert (list(data.label_names), data.X["f"].tolist()) == (["10", "20.5"], ["1", ""])


def test_kinds_that_parquet_has_beside_numbers_and_text(tmp_path):
    path = tmp_path / "t.parquet"
    price = [decimal.Decimal(k) / 4 for k in range(40)]
    frame = pd.DataFrame({"price": price, "y": ["a", "b"] * 20})
    frame.to_parquet(path)
    assert list(read_table_columns(path, TableColumns(labels="y")).X["price"]) == [k / 4 for k in range(40)]
    frame.assign(at=[dt.time(1)] * 40).to_parquet(path)
    with pytest.raises(
        DataFileError, match=r"found a time in column 'at' of row 0; .* name the column in drop"
    ):
        read_table_columns(path, TableColumns(labels="y"))


def test_binary_columns_of_parquet_are_text_or_refused_by_name(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"kind": [b"news", b"sport", None], "raw": [b"\xff"] * 3, "y": [b"a", b"b", b"a"]})
    frame.to_parquet(path)
    data = read_table_columns(path, TableColumns(labels="y", categorical="kind"))
    assert (list(data.label_names), data.X["kind"].tolist()) == (["a", "b"], ["news", "sport", ""])
    for columns in (TableColumns(labels="y"), TableColumns(labels="y", text="raw")):
        with pytest.raises(DataFileError, match="found a bytes in column 'raw' of row 0"):
            read_table_columns(path, columns)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("-1 1 0", "t.csv:(2|4): found (-1 beside 0|0 beside -1) in column 'y'"),
        ("0 1 -1", "t.csv:4: found -1 beside 0 in column 'y' of row 2"),
        ("-1 1 0.5", "t.csv:(2|4): found (-1 beside probabilities|probabilities beside -1) in column 'y'"),
    ],
)
def test_codings_of_labels_are_not_mixed_in_blocks_either(tmp_path, labels, words):
    path = write(tmp_path / "t.csv", "f,y\n" + "".join(f"{k},{y}\n" for k, y in enumerate(labels.split())))
    for rows in (None, 1, 2):
        with pytest.raises(DataFileError, match=words):
            read_table(path, labels=["y"], numeric="f", block_rows=rows)
    with pytest.raises(DataFileError, match=words):
        list(iterate_table(path, TableColumns(labels=["y"], numeric="f"), 1))


def test_a_column_of_missing_numbers_is_omitted(tmp_path):
    path = write(tmp_path / "t.csv", "b,f,y\nNA,1,p\n?,2,q\n")
    data = read_table(path, labels="y")
    assert list(data.feature_names) == ["f"]


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0", "Unnamed: 0.1"])
def test_the_row_index_of_pandas_is_no_feature(tmp_path, name):
    path = write(tmp_path / "t.csv", f"{name},f,y\n3,1,a\n7,2,b\n7,1,a\n")
    with pytest.warns(UserWarning, match=f"the columns '{name}' look like identifiers"):
        assert list(read_table_columns(path, TableColumns(labels="y")).X) == ["f"]


def test_blank_cells_of_labels_mean_none_or_unknown(tmp_path):
    (tmp_path / "t.csv").write_text("words,tags\nred,x\ngreen, \nblue,?\n")
    for meaning, seen in (("none", [[1], [0], [np.nan]]), ("unknown", [[1], [np.nan], [np.nan]])):
        data = read_table(tmp_path / "t.csv", labels="tags", text="words", empty_labels=meaning)
        np.testing.assert_array_equal(data.Y.to_dense(), seen)
    with pytest.raises(ValueError, match="empty_labels is 'blank'; it must be 'none' or 'unknown'"):
        TableColumns(labels="tags", empty_labels="blank")


def test_an_unknown_label_is_told_the_one_most_like_it(tmp_path):
    (tmp_path / "t.csv").write_text("words,tags\nred,pythn\n")
    with pytest.raises(DataFileError, match="a label of the model, such as 'python'"):
        read_table(tmp_path / "t.csv", labels="tags", text="words", label_names=["java", "python"])


@given(text=st.text(alphabet="'=+-@\ta1.", max_size=5))
def test_no_cell_is_a_formula_and_all_are_read_back(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    written = escaped(text)
    assert not written.startswith(("=", "+", "-", "@", "\t")) or float(text) == float(written)
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["x", "y"], [written, "1"]])
    assert next(raw_tables(path)).columns["x"] == [text]


@pytest.mark.parametrize("block_rows", [1, 7, 40, 1000])
@pytest.mark.parametrize("labels", ["tags", ["yes", "no"]])
def test_blocks_of_rows_give_the_same_features_and_labels(tmp_path, block_rows, labels):
    path, random = tmp_path / "d.jsonl", np.random.default_rng(0)
    rows = [
        {
            "id": f"row {row}",
            "text": " ".join(f"w{word}" for word in random.integers(0, 20, 4)),
            "tags": None if row % 9 == 4 else [f"t{tag}" for tag in random.integers(0, 5, row % 3)],
            "yes": int(row % 2),
            "no": None if row % 5 == 0 else 0,
            "cat": f"c{row % 3}",
            "num": row**2,
        }
        for row in range(40)
    ]
    rows[33]["late"] = "rare words"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    roles = {"labels": labels, "text": ["text", "late"], "categorical": "cat", "numeric": "num", "id": "id"}
    if isinstance(labels, list):  # may be patterns of names, which are looked for in the first block
        roles["text"] = "text"
    whole, blocks = read_table(path, **roles), read_table(path, block_rows=block_rows, **roles)
    for one, other in ((whole.X, blocks.X), (whole.Y.positives, blocks.Y.positives)):
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    np.testing.assert_array_equal(whole.Y.to_dense(), blocks.Y.to_dense())
    for name in ("feature_names", "row_ids", "label_names"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(blocks, name))
    again = read_table(path, whole.vectorizer, label_names=whole.label_names, block_rows=block_rows,
                       labels=labels)  # fmt: skip
    np.testing.assert_array_equal(again.X.toarray(), whole.X.toarray())


def test_a_column_that_no_block_has_is_refused(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "a b", "y": ["l"]}\n' * 5)
    with pytest.raises(DataFileError, match="no column 'other'"):
        read_table(path, block_rows=2, labels="y", text=["text", "other"])


def test_numbers_between_0_and_1_in_label_columns_are_probabilities(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("x,a,b\n1,0.8,1\n2,,0\n3,0,0.25\n")
    labels = read_table(path, labels=["a", "b"]).Y
    np.testing.assert_array_equal(labels.to_dense(), [[0.8, 1], [np.nan, 0], [0, 0.25]])
    blocks = read_table(path, labels=["a", "b"], block_rows=1).Y
    np.testing.assert_array_equal(blocks.to_dense(), labels.to_dense())
    path.write_text("x,a,b\n1,0.8,1\n2,-1,0\n")
    with pytest.raises(DataFileError, match="-1 beside probabilities"):
        read_table(path, labels=["a", "b"])
    path.write_text("x,a,b\n1,0.8,1\n2,1.5,0\n")
    with pytest.raises(DataFileError, match="probability"):
        read_table(path, labels=["a", "b"])
