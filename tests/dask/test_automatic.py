"""AutoLabelClassifier on a cluster equals the ordinary one, and so do comparisons and grid searches."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster

import dask
import labelweave as lw
import partitioned
from labelweave import AutoLabelClassifier, CalibratedLabelClassifier
from labelweave.dask.rows import size_in_bytes

SIZES = (30, 0, 40, 20)


def table(n=90, d=8, n_labels=4):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    Y = (X @ random.normal(size=(d, n_labels)) + random.normal(size=(n, n_labels)) > 1).astype(float)
    X[3, 2] = np.nan
    return X, Y, random.uniform(0.5, 2, n)


chunks = partial(partitioned.chunks, sizes=SIZES)


def assert_same(found, own, X):
    np.testing.assert_array_equal(found.predict_proba(X), own.predict_proba(X))
    assert found.oof_score_ == own.oof_score_
    assert [one["words"] for one in found.members_] == [one["words"] for one in own.members_]


def test_the_bits_are_those_of_one_machine(client):
    X, Y, weights = table()
    Y[::5, 1] = np.nan
    given = {"members": ["linear", "rbf"], "random_state": 3}
    model = AutoLabelClassifier(**given).fit(chunks(X), chunks(Y), chunks(weights))
    own = lw.AutoLabelClassifier(**given).fit(X, Y, weights)
    assert_same(model, own, X)
    lazy = model.predict_proba(chunks(X))
    assert lazy.shape == (90, 4)
    np.testing.assert_allclose(lazy.compute(), own.predict_proba(X), rtol=1e-12)
    expected = np.mean((own.predict(X) == Y).all(axis=1, where=~np.isnan(Y)))
    assert model.score(chunks(X), chunks(Y)) == pytest.approx(expected)


def test_every_member_and_estimators(client):
    X, Y, _ = table()
    given = {
        "members": ["linear", "max-margin", "rbf", "forest", "rbf+forest", lw.MaxMarginClassifier()],
        "time_budget": 1,
    }
    model = AutoLabelClassifier(**given).fit(chunks(X), chunks(Y))
    assert_same(model, lw.AutoLabelClassifier(**given).fit(X, Y), X)


def test_classes_in_frames(client):
    X, Y, _ = table()
    X = pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
    y = pd.Series(np.array(["a", "b", "c"])[Y[:, :2].sum(axis=1).astype(int)])
    parts = [dd.from_pandas(one, npartitions=3) for one in (X, y)]
    model = AutoLabelClassifier(members=["linear"]).fit(*parts)
    assert_same(model, lw.AutoLabelClassifier(members=["linear"]).fit(X, y), X)
    assert set(model.predict(parts[0]).compute()) <= {"a", "b", "c"}
    assert list(model.feature_names_in_) == list(X.columns)


def test_decisions_go_around_it(client):
    X, Y, weights = table()
    X[3, 2] = 0.0
    Y[::5, 1] = np.nan
    given = {"members": ["linear"], "random_state": 3}
    model = CalibratedLabelClassifier(AutoLabelClassifier(**given), cv=2)
    model.fit(chunks(X), chunks(Y), chunks(weights))
    own = lw.CalibratedLabelClassifier(lw.AutoLabelClassifier(**given), cv=2).fit(X, Y, weights)
    np.testing.assert_allclose(model.predict_proba(X), own.predict_proba(X), rtol=1e-12)


def test_what_does_not_fit_into_workers_is_refused(client, monkeypatch):
    X, Y, _ = table()
    fit = AutoLabelClassifier(members=["linear"]).fit
    with pytest.warns(lw.UnobservedLabelWarning, match="Label 1"):
        fit(chunks(X), chunks(np.where(np.arange(4) == 1, np.nan, Y)))
    monkeypatch.setattr("labelweave.dask.automatic.megabytes_of_workers", lambda _: [0.01])
    with pytest.raises(ValueError, match=r"9 times that .* limited to 0 MB"):
        fit(chunks(X), chunks(Y))
    monkeypatch.setattr("labelweave.dask.automatic.megabytes_of_workers", lambda _: [0.5])
    few = sp.csr_array((90, 900), dtype=np.int8)  # of 0.65 MB where it is written out
    with pytest.raises(ValueError, match="16 tables of 1 MB"):
        fit([dask.delayed(X)], [dask.delayed(few)])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_keep_their_names(client, library):
    polars = pytest.importorskip("polars")
    X, Y, _ = table()
    frames = [polars.DataFrame(X, schema=list("abcdefgh")), polars.DataFrame(Y, schema=list("pqrs"))]
    frames = [frame if library == "polars" else frame.to_arrow() for frame in frames]
    rows, labels = ([dask.delayed(frame[a : a + 45]) for a in (0, 45)] for frame in frames)
    model = AutoLabelClassifier(members=["linear"]).fit(rows, labels)
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    assert model.classes_.tolist() == list("pqrs")
    moved = [rows[0], dask.delayed(frames[0][45:].select(list("hgfedcba")))]
    with pytest.raises(ValueError, match="A partition of X has other columns than the first"):
        model.fit(moved, labels)


@pytest.mark.parametrize("kind", [sp.coo_array, sp.lil_array, sp.dok_array])
def test_sparse_partitions_of_any_kind(client, kind):
    X, Y, _ = table()
    rows, labels = ([dask.delayed(part[a : a + 45]) for a in (0, 45)] for part in (sp.csr_array(X), Y))
    model = AutoLabelClassifier(members=["linear"]).fit(list(map(dask.delayed(kind), rows)), labels)
    assert_same(model, AutoLabelClassifier(members=["linear"]).fit(rows, labels), X)
    assert size_in_bytes(sp.coo_array(X)) >= X.size * 8


def test_dense_and_sparse_partitions_are_one_table(client):
    X, Y, _ = table()
    X[3, 2] = 0.0
    given = [
        [dask.delayed(part) for part in kind] for kind in ((X[:45], sp.csr_array(X[45:])), (Y[:45], Y[45:]))
    ]
    model = AutoLabelClassifier(members=["linear"]).fit(*given)
    assert_same(model, lw.AutoLabelClassifier(members=["linear"]).fit(sp.csr_array(X), Y), X)


def test_killed_workers_change_nothing():
    X, Y, _ = table(n=400)
    given = {"members": ["forest", "linear", "rbf+forest"], "time_budget": 4}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        client.as_current(),
    ):
        killed = []

        def kill_some():
            for _ in range(2):
                time.sleep(4)
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[-1], signal.SIGKILL)

        thread = threading.Thread(target=kill_some)
        thread.start()
        parts = [[dask.delayed(one[a : a + 100]) for a in range(0, 400, 100)] for one in (X, Y)]
        model = AutoLabelClassifier(**given).fit(*parts)
        thread.join()
    assert killed
    assert_same(model, lw.AutoLabelClassifier(**given).fit(X, Y), X)


def test_joblib_brings_comparisons_and_searches_to_a_cluster():
    # in a separate process: joblib makes a client inside of workers, which stays the default one
    subprocess.run([sys.executable, "-c", _JOBLIB], check=True, timeout=300)


_JOBLIB = """
import joblib
import numpy as np
from distributed import Client
from sklearn.model_selection import GridSearchCV

import labelweave as lw

random = np.random.default_rng(0)
X = random.normal(size=(90, 5))
Y = (X[:, :3] + random.normal(size=(90, 3)) > 0).astype(int)
models = {"weak": lw.MaxMarginClassifier(C=0.001), "strong": lw.MaxMarginClassifier()}

def found():
    search = GridSearchCV(lw.MaxMarginClassifier(), {"C": [0.01, 1.0]}, cv=2).fit(X, Y)
    return lw.compare(models, X, Y, cv=2).means(), search.cv_results_["mean_test_score"]

means, scores = found()
with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    with joblib.parallel_config("dask", client=client):
        others, again = found()
np.testing.assert_array_equal(scores, again)
for name in models:
    assert others[name]["micro_f1"] == means[name]["micro_f1"]
"""
