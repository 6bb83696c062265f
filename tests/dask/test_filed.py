"""Rows in files: of workers, mapped and removed with the fit, and data files as partitions."""

import pickle
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed.protocol import dask_serialize

import dask
import labelweave as lw
from drawn import draw_labels
from labelweave import MaxMarginClassifier
from labelweave.dask import filed, read_files, score_table
from labelweave.dask.chunks import Chunk, Partition
from labelweave.dask.filed import Filed
from labelweave.dask.fit import TravelingFit
from labelweave.dask.rows import ReadRows
from labelweave.datasets import make_text_like, write_svmlight, write_xmc
from labelweave.features import FeatureMatrix
from labelweave.problems import MarginData
from labelweave.problems.margin_dual import OrderedRows
from partitioned import chunks

SETTINGS = {"C": 0.1, "tol": 0.05}


table = partial(draw_labels, n=90, d=20, n_labels=5, noise=0, above=0.7, missing=0.0)


def test_rows_that_memory_does_not_hold_go_into_files(client, apart, monkeypatch):
    X, Y = map(chunks, table())
    held = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    made = []
    real = Filed.__init__
    monkeypatch.setattr(Filed, "__init__", lambda *given: made.append(real(*given)))
    monkeypatch.setattr("labelweave.dask.data._HELD_SHARE", 0.0)
    model = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    assert len(made) == 3
    monkeypatch.setattr("labelweave.dask.filed._FULL_SHARE", 0.0)
    model = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    assert len(made) == 9  # rows as they were read, too
    assert np.array_equal(model.coef_, held.coef_)


def spill_all(dask_worker):
    """Do what Dask does when memory is full; return the number of results it could not write."""
    data = dask_worker.data
    return sum(data.evict() < 0 for _ in range(len(data.fast)))


def files_left(dask_worker):
    return len(list(Path(dask_worker.local_directory).glob("labelweave-*.rows")))


def test_what_is_in_files_is_not_written_where_dask_spills(client, apart, monkeypatch):
    X, Y = map(chunks, table())
    held = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    monkeypatch.setattr("labelweave.dask.data._HELD_SHARE", 0.0)
    monkeypatch.setattr("labelweave.dask.filed._FULL_SHARE", 0.0)
    sizes, write, look = [], filed._written, TravelingFit._look

    def written(result, context=None):
        header, frames = write(result, context)
        sizes.append(len(frames[0]))
        return header, frames

    def spilling(fit):
        assert set(client.run(spill_all).values()) == {0}
        look(fit)

    for kind in (ReadRows, Partition):
        monkeypatch.setitem(dask_serialize._lookup, kind, written)
    monkeypatch.setattr(TravelingFit, "_look", spilling)
    model = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    assert np.array_equal(model.coef_, held.coef_)
    assert len(sizes) >= 3
    assert max(sizes) < 5000
    for _ in range(50):  # the scheduler tells workers what is no longer needed
        if set(client.run(files_left).values()) == {0} and not filed._WAITING:
            break
        time.sleep(0.1)
    assert set(client.run(files_left).values()) == {0}
    assert not filed._WAITING


def test_a_filed_partition_travels_and_leaves_nothing_behind():
    X, Y = table()
    rows = OrderedRows(
        MarginData(
            FeatureMatrix(X), lw.LabelMatrix.from_any(Y), lw.LabelCovariance.identity(5),
            upper=np.ones(len(X)), margins=np.ones((2, 5)), intercept=True,
        ),
        np.float32,
    )  # fmt: skip
    partition = Partition(0, Chunk(rows, is_filed=True))
    again = pickle.loads(pickle.dumps(partition))
    paths = [Path(one.files[0]._path) for one in (partition, again)]
    assert paths[0] != paths[1]
    assert np.array_equal(again.rows.squared_norms, rows.squared_norms)
    del partition, again
    assert not any(path.exists() for path in paths)


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


def test_tables_are_read_by_dask(client, tmp_path):
    pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="is a table; read it with"):
        read_files(tmp_path)


def test_a_later_file_that_is_malformed_is_named_by_the_fit(client, folder):
    (folder / "part-1.txt").write_text("1 150 6\n0 3:x\n")
    rows, labels = read_files(folder)
    with pytest.raises(ValueError, match=r"Partition 1: .*part-1.txt:2"):
        MaxMarginClassifier().fit(rows, labels)
