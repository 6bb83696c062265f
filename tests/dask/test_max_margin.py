"""The classifier on Dask's collections equals the ordinary one, for data of any type."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

import dask
import labelweave as lw
from drawn import draw_labels
from labelweave import MaxMarginClassifier
from labelweave.dask import score_table
from labelweave.dask.chunks import Partition
from partitioned import chunks

TOL = 1e-2


table = partial(draw_labels, n=90, d=100, n_labels=5, kept=0.4, noise=0.5, above=0.7, missing=0.0)


def objective(model, X, Y, weights=1.0, C=1.0):
    """The objective, directly from its definition."""
    coefficients, intercepts = np.asarray(model.coef_), np.asarray(model.intercept_)
    signs = np.where(np.isnan(Y), 0, 2 * Y - 1)
    losses = np.maximum(0, 1 - signs * (X @ coefficients.T + intercepts)) * (signs != 0)
    return ((coefficients**2).sum() + (intercepts**2).sum()) / 2 + 2 * C * (weights * losses.T).sum()


@pytest.mark.parametrize("together", [True, False])
def test_the_optimum_is_that_of_one_machine(client, together, request):
    if not together:
        request.getfixturevalue("apart")
    X, Y = table()
    model = MaxMarginClassifier(C=0.1, tol=TOL).fit(chunks(X), chunks(Y))
    exact = lw.MaxMarginClassifier(C=0.1, tol=1e-6).fit(X, Y)
    assert model.converged_
    assert model.duality_gap_ <= TOL
    assert model.trace_[-1].primal == pytest.approx(objective(model, X, Y, C=0.1), rel=1e-9)
    least = objective(exact, X, Y, C=0.1)
    assert least * (1 - 1e-6) <= objective(model, X, Y, C=0.1) <= least * (1 + 2 * TOL)


@pytest.mark.parametrize("solver", ["auto", "coordinate_ascent"])
def test_rows_together_are_the_ordinary_algorithm(client, solver):
    X, Y = table()
    model = MaxMarginClassifier(C=0.1, solver=solver).fit(chunks(X, (90,)), chunks(Y, (90,)))
    local = lw.MaxMarginClassifier(C=0.1, solver=solver).fit(X, Y)
    assert np.array_equal(model.coef_, local.coef_)
    assert np.array_equal(model.intercept_, local.intercept_)
    assert model.n_iter_ == local.n_iter_
    assert model.duality_gap_ == local.duality_gap_


def test_the_seed_decides_and_nothing_else(client, apart):
    X, Y = (chunks(part) for part in table())
    first, second = (MaxMarginClassifier(C=0.1, tol=0.05).fit(X, Y) for _ in range(2))
    other = MaxMarginClassifier(C=0.1, tol=0.05, random_state=1).fit(X, Y)
    assert np.array_equal(first.coef_, second.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


def test_missing_labels_weights_and_variances(client, apart):
    X, Y = table()
    Y[::7, 1], Y[3, :] = np.nan, np.nan
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    variances = np.diag([1.0, 2.0, 0.5, 1.0, 1.5])
    settings = {
        "C": 0.1,
        "label_covariance": variances,
        "class_weight": "balanced",
        "false_negative_cost": 2.0,
    }
    model = MaxMarginClassifier(tol=TOL, **settings)
    model.fit(chunks(X), chunks(Y), sample_weight=chunks(weights))
    exact = lw.MaxMarginClassifier(tol=1e-6, **settings).fit(X, Y, sample_weight=weights)
    assert np.abs(model.coef_ - exact.coef_).max() < 0.1 * np.abs(exact.coef_).max()
    assert model.trace_[-1].primal == pytest.approx(exact.trace_[-1].primal, rel=2 * TOL)
    assert np.array_equal(model.label_covariance_.diagonal(), np.diag(variances))


def sparse_blocks(values, sizes):
    ends = np.cumsum(sizes)
    parts = [sp.csr_array(part) for part in np.split(values, ends[:-1])]
    meta = sp.csr_array((0, values.shape[1]))
    return parts, da.concatenate(
        [da.from_delayed(dask.delayed(part), (np.nan, values.shape[1]), meta=meta) for part in parts],
        allow_unknown_chunksizes=True,
    )


def test_sparse_blocks_of_unknown_sizes(client):
    X, Y = table()
    _, blocks = sparse_blocks(X, [30, 40, 20])
    _, labels = sparse_blocks(np.asarray(Y), [30, 40, 20])
    model = MaxMarginClassifier(C=0.1).fit(blocks, labels)
    whole = lw.MaxMarginClassifier(C=0.1).fit(sp.csr_array(X), sp.csr_array(Y))
    assert np.array_equal(model.coef_, whole.coef_)
    predicted = client.compute(model.predict(blocks).to_delayed().ravel()[0]).result()
    assert (predicted != whole.predict(sp.csr_array(X[:30]))).nnz == 0
    scores = client.compute(model.decision_function(blocks)).result()
    assert np.allclose(scores, model.decision_function(sp.csr_array(X)), rtol=1e-12)


def test_lists_of_partitions_and_of_pairs(client):
    X, Y = table()
    parts, _ = sparse_blocks(X, [30, 40, 20])
    labels = np.split(Y, [30, 70])
    delayed = dask.delayed
    one = MaxMarginClassifier(C=0.1).fit([delayed(part) for part in parts], [delayed(y) for y in labels])
    pairs = [delayed(pair) for pair in zip(parts, labels, strict=True)]
    two = MaxMarginClassifier(C=0.1).fit(pairs)
    three = MaxMarginClassifier(C=0.1).fit(client.scatter(parts), client.scatter(labels))
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.coef_, three.coef_)
    answers = one.predict([delayed(part) for part in parts])
    assert np.array_equal(np.concatenate(dask.compute(*answers)), one.predict(sp.csr_array(X)))


def test_small_and_odd_partitions(client, apart):
    X, Y = table()
    X[:, -1] = 0
    Y[:, 2] = 0  # a label without positives
    sizes = (1, 49, 0, 40)
    model = MaxMarginClassifier(C=0.1, tol=0.05).fit(chunks(X, sizes), chunks(Y, sizes))
    assert model.converged_
    assert client.compute(model.predict(chunks(X, sizes))).result().shape == Y.shape
    one = MaxMarginClassifier().fit(chunks(X[:1], (1,)), chunks(Y[:1, :1], (1,)))
    assert one.predict(X[:2]).shape == (2, 1)


def test_partitions_that_end_differently_are_brought_together(client):
    X, Y = table()
    model = MaxMarginClassifier(C=0.1).fit(chunks(X), chunks(Y, (45, 45)))
    assert model.converged_


def test_rows_may_be_lists(client):
    X, Y = table()
    model = MaxMarginClassifier().fit([dask.delayed(X.tolist())], [dask.delayed(Y)])
    whole = MaxMarginClassifier().fit([dask.delayed(X)], [dask.delayed(Y)])
    assert np.array_equal(model.coef_, whole.coef_)
    (found,) = dask.compute(*model.predict([dask.delayed(X.tolist())]))
    assert np.array_equal(found, whole.predict(X))
    with pytest.raises(ValueError, match=r"X has the shape \(90,\); pass a table"):
        model.predict(chunks(X[:, 0]))
    with pytest.raises(ValueError, match="k is 3; pass a list"):
        score_table(model, chunks(X), chunks(Y), k=3)


def test_without_a_client_it_says_so(monkeypatch):
    def get_client():
        raise ValueError("No global client found")

    X, Y = table()
    monkeypatch.setattr("labelweave.dask.client.get_client", get_client)
    with pytest.raises(ValueError, match="There is no Dask client"):
        MaxMarginClassifier().fit(chunks(X), chunks(Y))


def test_many_chunks_are_visited_by_few_tasks(client, monkeypatch):
    X, Y = (chunks(part, (9,) * 10) for part in table())
    monkeypatch.setattr("labelweave.dask.data._BYTES_A_ROW", 5e6)
    monkeypatch.setattr("labelweave.dask.data._FEWEST_VISITS", 4)
    settings = {"C": 0.1, "tol": TOL}
    visited, real = {}, Partition.visit

    def visit(part, *given, **more):
        visited[part.number] = len(part.chunks)
        return real(part, *given, **more)

    monkeypatch.setattr(Partition, "visit", visit)
    with lw.config_context(memory_budget=224.0):
        model = MaxMarginClassifier(**settings).fit(X, Y)
    assert visited == {0: 2, 1: 2, 2: 2, 3: 2, 4: 2}
    monkeypatch.setattr("labelweave.dask.data._HELD_SHARE", 0.0)
    with lw.config_context(memory_budget=224.0):
        filed = MaxMarginClassifier(**settings).fit(X, Y)
    exact = lw.MaxMarginClassifier(C=0.1, tol=1e-6).fit(*table())
    assert model.converged_
    assert model.trace_[-1].primal == pytest.approx(exact.trace_[-1].primal, rel=2 * TOL)
    assert np.array_equal(filed.coef_, model.coef_)


def test_more_rows_than_a_worker_holds_are_not_brought_together(client, monkeypatch):
    monkeypatch.setattr("labelweave.dask.data.megabytes_of_workers", lambda _: [0.01])
    X, Y = map(chunks, table())
    with pytest.raises(ValueError, match=r"memory_budget=2000 joins .* pass a memory_budget of a quarter"):
        MaxMarginClassifier().fit(X, Y)


def test_lists_of_labels_are_those_of_all_partitions(client):
    X, Y = table()
    names = np.array([f"label {number}" for number in range(Y.shape[1])])
    lists = [names[row > 0].tolist() for row in Y]
    lists[3], lists[60:] = None, [[] for _ in lists[60:]]  # an unobserved row; a partition without any
    whole = lw.MaxMarginClassifier(C=0.1, tol=1e-6).fit(X, lists)
    rows, parts = (
        [dask.delayed(part) for part in np.split(X, [30, 60])],
        (lists[:30], lists[30:60], lists[60:]),
    )
    given = [dask.delayed(part) for part in parts]
    model = MaxMarginClassifier(C=0.1, tol=1e-6).fit(rows, given)
    assert np.array_equal(model.classes_, whole.classes_)
    assert np.allclose(model.coef_, whole.coef_, atol=1e-5)
    predicted = model.predict(da.from_array(X, chunks=(30, X.shape[1]))).compute()
    assert predicted.tolist() == model.predict(X).tolist()
    assert model.score(rows, given) == pytest.approx(whole.score(X, lists), abs=0.02)
    unknown = [*given[:2], dask.delayed([None] * 30)]
    part = lw.MaxMarginClassifier(C=0.1, tol=1e-6).fit(X, lists[:60] + [None] * 30)
    assert np.allclose(MaxMarginClassifier(C=0.1, tol=1e-6).fit(rows, unknown).coef_, part.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="entry_weight has one column per label, but y is lists of labels"):
        model.fit(rows[:2], given[:2], entry_weight=[dask.delayed(np.ones((30, 5)))] * 2)
