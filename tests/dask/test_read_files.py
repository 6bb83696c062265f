"""Data files as partitions, from Python."""

import numpy as np
import pandas as pd
import pytest

import dask
import labelweave as lw
from labelweave import MaxMarginClassifier
from labelweave.dask import read_files, score_table
from labelweave.datasets import make_text_like, write_svmlight, write_xmc

PARTS = [make_text_like(n, 150, 6, random_state=n) for n in (60, 40)]


@pytest.fixture
def folder(tmp_path):
    for number, part in enumerate(PARTS):
        write_xmc(part, tmp_path / f"part-{number}.txt")
    (tmp_path / "_SUCCESS").write_text("")
    return tmp_path


@pytest.mark.parametrize("kind", ["folder", "pattern", "files", "path"])
def test_files_are_partitions(client, folder, kind):
    files = [folder / "part-0.txt", folder / "part-1.txt"]
    data = {"folder": str(folder), "pattern": f"{folder}/part-*.txt", "files": files, "path": folder}[kind]
    rows, labels = read_files(data)
    model = MaxMarginClassifier(C=0.1).fit(rows, labels)
    X = np.concatenate([part.X.toarray() for part in PARTS])
    Y = np.concatenate([part.Y.positives.toarray() for part in PARTS])
    parts = ([dask.delayed(part.X) for part in PARTS], [dask.delayed(part.Y) for part in PARTS])
    assert np.array_equal(model.coef_, MaxMarginClassifier(C=0.1).fit(*parts).coef_)
    assert [part.shape for part in client.gather(client.compute(model.predict(rows)))] == [(60, 6), (40, 6)]
    assert score_table(model, rows, labels)["micro_f1"] == pytest.approx(
        lw.metrics.f1_score(Y, model.predict(X), average="micro")
    )


def test_other_formats_take_the_options_of_their_readers(client, tmp_path):
    write_svmlight(PARTS[0], tmp_path / "a.svm")
    rows, labels = read_files(tmp_path, n_features=160, n_labels=6)
    assert client.gather(client.compute(rows[0])).shape == (60, 160)
    assert client.gather(client.compute(labels[0])).n_labels == 6


def test_svmlight_files_count_features_alike(client, tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1 2:2\n")
    (tmp_path / "b.svm").write_text("1 0:1 2:2\n")
    X, _ = read_files(tmp_path, n_features=4, n_labels=2)
    found = [part.toarray()[0].tolist() for part in client.gather(client.compute(X))]
    assert found == [[0, 1, 2, 0], [1, 0, 2, 0]]
    with pytest.raises(ValueError, match=r"b.svm:1: found the feature '2'"):
        read_files(tmp_path, n_features=2)


BAD = {
    "nothing": (lambda folder: "nowhere/rows.txt", {}, "nowhere"),
    "an empty pattern": (lambda folder: f"{folder}/*.none", {}, "found no files"),
    "no files": (lambda folder: [], {}, "data is an empty list"),
    "a format that is none": (lambda folder: folder, {"format": "x"}, "format is 'x'"),
    "an option of others": (lambda folder: folder, {"labels": "tags"}, "'labels' is not an option"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_in_a_sentence(client, folder, case):
    of_folder, options, said = BAD[case]
    with pytest.raises((ValueError, OSError), match=said):
        read_files(of_folder(folder), **options)


def test_tables_are_read_by_dask(client, tmp_path):
    pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="is a table; read it with"):
        read_files(tmp_path)


def test_a_later_file_that_is_malformed_is_named_by_the_fit(client, folder):
    (folder / "part-1.txt").write_text("1 150 6\n0 3:x\n")
    rows, labels = read_files(folder)
    with pytest.raises(ValueError, match=r"Partition 1: .*part-1.txt:2"):
        MaxMarginClassifier().fit(rows, labels)
