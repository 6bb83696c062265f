"""Rows in files of workers: mapped where they are visited, never written twice, and gone with the fit."""

import pickle
import time
from functools import partial
from pathlib import Path

import numpy as np
from distributed.protocol import dask_serialize

import labelweave as lw
from drawn import draw_labels
from labelweave import MaxMarginClassifier
from labelweave.dask import filed
from labelweave.dask.chunks import Chunk, Partition
from labelweave.dask.filed import Filed
from labelweave.dask.fit import TravellingFit
from labelweave.dask.rows import ReadRows
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
    """Do what Dask does where memory is full; say how many results it could not write."""
    data = dask_worker.data
    return sum(data.evict() < 0 for _ in range(len(data.fast)))


def files_left(dask_worker):
    return len(list(Path(dask_worker.local_directory).glob("labelweave-*.rows")))


def test_what_is_in_files_is_not_written_where_dask_spills(client, apart, monkeypatch):
    X, Y = map(chunks, table())
    held = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    monkeypatch.setattr("labelweave.dask.data._HELD_SHARE", 0.0)
    monkeypatch.setattr("labelweave.dask.filed._FULL_SHARE", 0.0)
    sizes, write, look = [], filed._written, TravellingFit._look

    def written(result, context=None):
        header, frames = write(result, context)
        sizes.append(len(frames[0]))
        return header, frames

    def spilling(fit):
        assert set(client.run(spill_all).values()) == {0}
        look(fit)

    for kind in (ReadRows, Partition):
        monkeypatch.setitem(dask_serialize._lookup, kind, written)
    monkeypatch.setattr(TravellingFit, "_look", spilling)
    model = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    assert np.array_equal(model.coef_, held.coef_)
    assert len(sizes) >= 3
    assert max(sizes) < 5000
    for _ in range(50):  # the scheduler tells workers what is not wanted any more
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
