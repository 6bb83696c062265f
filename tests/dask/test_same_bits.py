"""Models other than linear max-margin ones have the same bits for any number of workers, and go on."""

from contextlib import ExitStack
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import partitioned
from labelweave.dask import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    TableModel,
)
from labelweave.solvers.newton import NewtonConjugateGradient
from labelweave.solvers.pruned_ascent import PrunedAscent

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 8))
Y = (X @ RANDOM.normal(size=(8, 12)) > 0.5).astype(float)
MODELS = {
    "kernel logistic": (KernelLogisticClassifier, {"kernel_rank": 30, "hyperparameters": "fixed"}),
    "linear logistic": (KernelLogisticClassifier, {"kernel": "linear", "hyperparameters": "fixed"}),
    "low rank": (LowRankClassifier, {"kernel": "rbf", "kernel_rank": 30, "rank": 3}),
    "max margin": (MaxMarginClassifier, {"kernel": "rbf", "kernel_rank": 30}),
    "label graph": (LabelGraphClassifier, {"regularization": 1.0, "tol": 0.1, "max_rounds": 1}),
    "label tree": (LabelTreeClassifier, {"leaf_size": 3, "branching": 2}),
}


chunks = partial(partitioned.chunks, sizes=30)


@pytest.fixture(scope="module")
def clusters():
    """Clusters of one, two and four processes."""
    with ExitStack() as opened:
        made = []
        for n_workers in (1, 2, 4):
            parts = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
            cluster = opened.enter_context(LocalCluster(**parts))
            made.append(opened.enter_context(Client(cluster, set_as_default=False)))
        yield made


@pytest.mark.parametrize("name", MODELS)
def test_one_to_four_processes_give_the_same_bits(clusters, request, name):
    if name == "label graph":
        request.getfixturevalue("apart")
    make, settings = MODELS[name]
    one, *others = (
        make(client, **settings).fit(chunks(X), chunks(Y)).to_local().decision_function(X)
        for client in clusters
    )
    assert all(np.array_equal(one, other) for other in others)


def test_columns_of_frames_give_the_same_bits(clusters):
    rows = pd.DataFrame({"text": [f"a{a:.0f} b{b:.0f}" for a, b in X[:, :2]], "size": X[:, 2]})
    one, *others = (
        TableModel(MaxMarginClassifier(client, C=0.1), text="text", numeric="size")
        .fit(dd.from_pandas(rows, npartitions=3), chunks(Y))
        .to_local()
        .decision_function(rows)
        for client in clusters
    )
    assert all(np.array_equal(one, other) for other in others)


def test_a_kernel_model_whose_client_was_killed_goes_on(client, tmp_path, monkeypatch):
    (make, settings), path = MODELS["kernel logistic"], tmp_path / "fit"
    real = NewtonConjugateGradient.round
    monkeypatch.setattr("labelweave.estimators.journal._SECONDS", 0.0)

    def stop(own, problem, state):
        if state.rounds == 2:
            raise RuntimeError("killed")
        return real(own, problem, state)

    with monkeypatch.context() as patch:
        patch.setattr(NewtonConjugateGradient, "round", stop)
        with pytest.raises(RuntimeError, match="killed"):
            make(client, checkpoint=path, **settings).fit(chunks(X), chunks(Y))
    assert path.exists()
    again = make(client, checkpoint=path, **settings).fit(chunks(X), chunks(Y))
    whole = make(client, **settings).fit(chunks(X), chunks(Y))
    assert np.array_equal(again.to_local().decision_function(X), whole.to_local().decision_function(X))
    assert not path.exists()


def test_a_tree_whose_client_was_killed_goes_on(client, tmp_path, monkeypatch):
    monkeypatch.setattr("labelweave.estimators.journal._SECONDS", 0.0)
    monkeypatch.setattr("labelweave.solvers.pruned_ascent._AT_ONCE", 4)
    (make, settings), real, path = MODELS["label tree"], PrunedAscent.round, tmp_path / "fit"

    def stop(own, problem, state):
        if state.rounds == 1:
            raise RuntimeError("killed")
        return real(own, problem, state)

    with monkeypatch.context() as patch:
        patch.setattr(PrunedAscent, "round", stop)
        with pytest.raises(RuntimeError, match="killed"):
            make(client, checkpoint=path, **settings).fit(chunks(X), chunks(Y))
    again = make(client, checkpoint=path, **settings).fit(chunks(X), chunks(Y)).to_local()
    whole = make(client, **settings).fit(chunks(X), chunks(Y)).to_local()
    assert np.array_equal(again.decision_function(X), whole.decision_function(X))
