"""JSON lines of which some rows lack a column, read at once and in blocks."""

import json

import numpy as np
import pandas as pd
import pytest

from labelweave.datasets import DataFileError, TableColumns, iterate_table, read_table
from labelweave.datasets.table_reading import columns_of_blocks


@pytest.fixture
def path(tmp_path):
    """Write rows that have numbers in the first half, a category in the last, and labels at times."""
    path = tmp_path / "t.jsonl"
    with path.open("w") as file:
        for row in range(24):
            cells = {"text": f"word{row % 3} and{row % 4}"}
            cells |= {"size": row % 5 + 0.5} if row < 12 else {"kind": "ab"[row % 2]}
            cells |= {"tag_a": row % 2} if row < 6 else {"tag_b": row % 3 // 2}
            file.write(json.dumps(cells) + "\n")
    return path


@pytest.mark.parametrize("rows", [4, 10, 100])
def test_columns_that_chunks_lack_have_missing_cells(path, rows):
    columns = TableColumns(labels=["tag_*"], text="text", categorical="kind", numeric="size")
    (whole,), parts = iterate_table(path, columns, 100), [*iterate_table(path, columns, rows)]
    pd.testing.assert_frame_equal(pd.concat([part.X for part in parts]), whole.X)
    labels = np.concatenate([part.Y.to_dense() for part in parts])
    np.testing.assert_array_equal(labels, whole.Y.to_dense())
    assert all(part.Y.names.tolist() == ["tag_a", "tag_b"] for part in parts)
    with pytest.raises(DataFileError, match="no column 'sizes'; expected one of its columns"):
        next(iterate_table(path, TableColumns(text="text", numeric="sizes"), rows))


@pytest.mark.parametrize("rows", [5, 10])
def test_kinds_of_columns_that_come_late_are_found(path, rows):
    columns = columns_of_blocks(path, TableColumns(labels=["tag_*"]), rows)
    assert columns.numeric == ("size",)
    assert columns.categorical[-1:] == ("kind",)
    assert columns.labels == ("tag_a", "tag_b")
    data = read_table(path, labels=["tag_*"], drop="size", block_rows=rows)
    assert "kind=b" in data.feature_names.tolist()
