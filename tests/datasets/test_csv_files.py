import gzip
import subprocess
import sys

import numpy as np
import pytest

from labelweave.datasets import DataFileError, TableColumns, read_table_columns

pd = pytest.importorskip("pandas")
FRAME = pd.DataFrame({"f": [1.5, 2.5, 3.5], "y": ["a", "b", "a"]})


def frame_of(path, **roles):
    return read_table_columns(path, TableColumns(labels="y", **roles)).X


@pytest.mark.parametrize("times", [1, 2])
def test_the_row_index_that_pandas_and_R_write_is_omitted(tmp_path, times):
    path, frame = tmp_path / "t.csv", FRAME
    for _ in range(times):
        frame.to_csv(path)
        frame = pd.read_csv(path)
    with pytest.warns(UserWarning, match="the columns 'Unnamed: 0.* look like identifiers"):
        assert list(frame_of(path)) == ["f"]
    assert frame_of(path, numeric="Unnamed: 0")["Unnamed: 0"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("chunk", ["f,y,,\n1.5,a,,\n2.5,b,, \n3.5,a,,\n", "f,,y\n1.5,,a\n2.5,,b\n3.5,,a\n"])
def test_columns_without_a_name_or_a_cell_are_omitted(tmp_path, chunk):
    path = tmp_path / "t.csv"
    path.write_text(chunk)
    assert frame_of(path)["f"].tolist() == FRAME["f"].tolist()
    path.write_text(chunk.replace("2.5,b,", "2.5,b,x").replace("2.5,,", "2.5,x,"))
    with pytest.raises(DataFileError, match=r"found no name for column [23].* 'x'"):
        frame_of(path)


@pytest.mark.parametrize("first", ["sep=;\n", '"SEP=;"\r\n'])
def test_a_first_line_may_name_the_delimiter(tmp_path, first):
    path = tmp_path / "t.csv"
    path.write_text(first + "f,g;y\n1,5;a\n2,5;b\n", newline="")
    assert frame_of(path)["f,g"].tolist() == [1.5, 2.5]
    path.write_text(first + "f;y\n1,5;a\nx;b\n", newline="")
    with pytest.raises(DataFileError, match=r"t.csv:4: found 'x'"):
        frame_of(path, numeric="f")
    path.write_text(first + "f;f;y\n", newline="")
    with pytest.raises(DataFileError, match=r"t.csv:2: found two columns named 'f'"):
        frame_of(path)
    path.write_text(first, newline="")
    with pytest.raises(DataFileError, match="no header"):
        frame_of(path)


def test_carriage_returns_alone_are_no_line_ends(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("f,y\r1,a\r2,b\r", newline="")
    with pytest.raises(DataFileError, match="found a line end CR alone; expected line ends LF or CRLF; save"):
        frame_of(path)


@pytest.mark.parametrize("quoted", ["", '"'])
def test_names_of_columns_among_the_rows_are_refused(tmp_path, quoted):
    path, rows = tmp_path / "t.csv", "1.5,a\n2.5,b\n" * 100
    path.write_text(f"f,y\n{rows}{quoted}f{quoted},y\n{rows}")
    with pytest.raises(DataFileError, match=r"t.csv:202: found the column names again; .* delete such lines"):
        frame_of(path)
    path.write_text(f"f,y\n{rows}f,a\n1.5,y\n")
    assert frame_of(path, categorical="f")["f"].tolist()[-2:] == ["f", "1.5"]


def test_a_process_may_end_while_a_file_is_read(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("f\n" + "\n".join(map(str, np.random.default_rng(0).random(300_000).tolist())))
    script = (
        "import sys; from labelweave.datasets.csv_files import CsvForm, usual_batches;"
        f"rows = usual_batches({str(path)!r}, CsvForm(',', 0), 1); next(rows); sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 2
