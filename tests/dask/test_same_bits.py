"""Models other than linear max-margin ones have the same bits for any number of workers, and resume."""

import pickle
from contextlib import ExitStack
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import mark
from distributed import Client, LocalCluster

import labelweave as lw
import partitioned
from labelweave.dask.rows import Sized, aligned, read_rows
from labelweave.features import FeatureMatrix
from labelweave.solvers.alternating_minimization import AlternatingMinimization
from labelweave.solvers.newton import NewtonConjugateGradient
from labelweave.solvers.passes import BlockFrankWolfe
from labelweave.solvers.pruned_ascent import PrunedAscent

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 8))
Y = (X @ RANDOM.normal(size=(8, 12)) > 0.5).astype(float)


def calibrated(**settings):
    return lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(**settings), cv=2)


MODELS = {
    "calibrated": (calibrated, {"C": 0.1}),
    "coupled": (lw.MaxMarginClassifier, {"C": 0.1, "label_covariance": 0.5 + 0.5 * np.eye(12), "tol": 0.05}),
    "kernel logistic": (lw.KernelLogisticClassifier, {"kernel_rank": 30, "hyperparameters": "fixed"}),
    "linear logistic": (lw.KernelLogisticClassifier, {"kernel": "linear", "hyperparameters": "fixed"}),
    "low rank": (lw.LowRankClassifier, {"kernel": "rbf", "kernel_rank": 30, "rank": 3}),
    "max margin": (lw.MaxMarginClassifier, {"kernel": "rbf", "kernel_rank": 30}),
    "label graph": (
        lw.LabelGraphClassifier,
        {"alpha": 1.0, "tol": 0.1, "graph": lw.GraphGrowth(max_rounds=1)},
    ),
    "label tree": (lw.LabelTreeClassifier, {"leaf_size": 3, "branching": 2}),
}


chunks = partial(partitioned.chunks, sizes=30)


@pytest.fixture(scope="module")
def clusters():
    with ExitStack() as opened:
        made = []
        for n_workers in (1, 3):
            parts = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
            cluster = opened.enter_context(LocalCluster(**parts))
            made.append(opened.enter_context(Client(cluster, set_as_default=False)))
        yield made


def on(client, model, rows):
    with client.as_current():
        return model.fit(rows, chunks(Y))


@pytest.mark.parametrize("name", MODELS)
def test_one_and_three_processes_give_the_same_bits(clusters, request, name):
    if name in ("label graph", "coupled"):
        request.getfixturevalue("apart")
    make, settings = MODELS[name]
    one, *others = (on(client, make(**settings), chunks(X)).decision_function(X) for client in clusters)
    assert all(np.array_equal(one, other) for other in others)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_are_read_to_even_addresses(kind):
    """NumPy multiplies arrays at unaligned addresses differently, and a message puts a partition at any."""
    message = np.empty(X.nbytes + 16, np.uint8)
    begin = -message.ctypes.data % 8 + 1
    odd = message[begin : begin + X.nbytes].view(np.float64)
    odd[:] = X.ravel()
    assert not odd.flags.aligned
    rows = odd.reshape(X.shape)
    if kind == "sparse":
        rows = sp.csr_array(X)
        rows.data = odd
    table = read_rows(lw.MaxMarginClassifier(), rows, Y, None, None).features.data
    assert (table if kind == "dense" else table.data).flags.aligned
    np.testing.assert_array_equal(table if kind == "dense" else table.toarray(), X)


def test_columns_of_frames_give_the_same_bits(clusters):
    rows = pd.DataFrame({"text": [f"a{a:.0f} b{b:.0f}" for a, b in X[:, :2]], "size": X[:, 2]})
    model = lw.TableModel(lw.MaxMarginClassifier(C=0.1), text="text", numeric="size")
    frame = dd.from_pandas(rows, npartitions=3)
    one, *others = (on(client, model, frame).decision_function(rows) for client in clusters)
    assert all(np.array_equal(one, other) for other in others)


KILLED = {
    "kernel logistic": (NewtonConjugateGradient, "round", 2, {}),
    "low rank": (AlternatingMinimization, "round", 3, {}),
    "label graph": (BlockFrankWolfe, "one_pass", 7, {"tol": 1e-2, "alpha": 0.2}),
    "label tree": (PrunedAscent, "round", 1, {}),
}
"""The solver, its method and the round before which the client is killed, and settings of more rounds."""


@pytest.mark.parametrize("name", KILLED)
def test_a_fit_whose_client_was_killed_goes_on(client, request, tmp_path, monkeypatch, name):
    if name == "label graph":
        request.getfixturevalue("apart")
    solver, method, at, more = KILLED[name]
    make, settings = MODELS[name]
    real, path, rounds = getattr(solver, method), tmp_path / "fit", []
    monkeypatch.setattr("labelweave.estimators.journal._SECONDS", 0.0)
    monkeypatch.setattr("labelweave.solvers.pruned_ascent._AT_ONCE", 4)

    def stop(own, problem, state, *others):
        if state.rounds == at:
            raise RuntimeError("killed")
        return real(own, problem, state, *others)

    def fit(**checkpoint):
        rounds.append(0)
        return make(**settings | more, **checkpoint).fit(chunks(X), chunks(Y))

    def count(*given):
        rounds[-1] += 1
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(solver, method, stop)
        with pytest.raises(RuntimeError, match="killed"):
            fit(checkpoint=path)
    assert path.exists()
    monkeypatch.setattr(solver, method, count)
    again, whole = fit(checkpoint=path), fit()
    assert mark(again, X) == mark(whole, X)
    assert 0 < rounds[1] < rounds[2]
    assert not path.exists()


def _misaligned(array):
    moved = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    moved[:] = array
    return moved


class Kept(Sized):
    def __init__(self, table):
        self.features = FeatureMatrix._unchecked(table)


def test_arrays_are_aligned_inside_of_what_workers_keep():
    table = np.arange(12.0).reshape(3, 4)
    moved = _misaligned(table)
    assert not moved.flags.aligned
    assert aligned(moved).flags.aligned
    assert aligned(table) is table
    kept = Kept(table)
    kept.__setstate__({"features": FeatureMatrix._unchecked(moved)})
    assert kept.features.data.flags.aligned
    np.testing.assert_array_equal(kept.features.data, table)


def test_sparse_parts_are_aligned():
    csr = sp.csr_array(np.eye(3))
    csr.data = _misaligned(csr.data)
    found = aligned(csr)
    assert found.data.flags.aligned
    np.testing.assert_array_equal(found.toarray(), np.eye(3))


def test_what_was_pickled_is_as_it_was():
    again = pickle.loads(pickle.dumps(Kept(np.eye(2))))
    np.testing.assert_array_equal(again.features.data, np.eye(2))
