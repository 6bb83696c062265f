"""Max-margin models with sparse weights: the certificate is that of the remaining weights, however pruned."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave import MaxMarginClassifier
from labelweave.datasets import make_text_like
from labelweave.estimators import sparse_scorer
from labelweave.estimators.sparse_scorer import SparseScorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import Workers
from labelweave.model_files import ModelFileError
from labelweave.model_files.storable import made_of_state
from labelweave.problems import MarginBlocks, MarginData
from labelweave.solvers import pruned_ascent
from small_models import within

TEXTS = make_text_like(300, 400, 40, labels_per_row=3, random_state=0)
X, Y = TEXTS.X, TEXTS.Y


def _gap(model, X, Y, C=1.0, margins=None):
    """Measure the primal value of the model's own weights, row by row; the dual value is the trace's."""
    signs = Y.to_signs()
    scores = X @ model.coef_.toarray().T + model.intercept_
    primal = 2 * C * (np.maximum(0, 1 - signs * scores) * (signs != 0)).sum()
    primal += ((model.coef_.toarray() ** 2).sum() + (model.intercept_**2).sum()) / 2
    return primal, (primal - model.trace_[-1].dual) / primal


@pytest.fixture(scope="module")
def pruned():
    return MaxMarginClassifier(prune="certified", tol=0.05).fit(X, Y)


def test_the_gap_is_that_of_the_weights_that_are_kept(pruned):
    primal, gap = _gap(pruned, X, Y)
    np.testing.assert_allclose(pruned.trace_[-1].primal, primal, rtol=1e-9)
    np.testing.assert_allclose(pruned.duality_gap_, gap, rtol=1e-6)
    assert pruned.converged_
    cost = pruned.pruning_
    assert cost["gap_before"] < cost["gap"] == pruned.duality_gap_ <= cost["largest_gap"] <= 0.05
    assert cost["weights"] == pruned.coef_.nnz < 0.7 * cost["weights_before"]
    assert cost["largest_gap"] > 0.8 * 0.05  # nearly all that the gap allows is used


def test_the_dual_value_is_a_lower_bound_of_the_dense_optimum(pruned):
    dense = MaxMarginClassifier(tol=1e-4).fit(X, Y)
    assert pruned.trace_[-1].dual <= dense.trace_[-1].primal <= pruned.trace_[-1].primal


@pytest.mark.parametrize(("least", "status"), [(0.02, "converged"), (0.2, "settled")])
def test_a_number_drops_what_is_smaller_and_says_the_gap(least, status):
    model = MaxMarginClassifier(prune=least, tol=1e-2).fit(X, Y)
    assert np.abs(model.coef_.data).min() > 0.995 * least
    np.testing.assert_allclose(model.duality_gap_, _gap(model, X, Y)[1], rtol=1e-6)
    assert model.pruning_["gap_before"] <= 1e-2
    assert model.converged_ == (model.duality_gap_ <= 1e-2) == (status == "converged")
    assert model.status_ == status


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_weights_beyond_the_memory_budget_are_kept_sparse(tol):
    model = within(0.1, MaxMarginClassifier(tol=tol), X, Y)
    assert sp.issparse(model.coef_)
    assert model.duality_gap_ <= tol
    np.testing.assert_allclose(model.duality_gap_, _gap(model, X, Y)[1], rtol=1e-4)
    dense = MaxMarginClassifier(tol=tol).fit(X, Y)
    assert not sp.issparse(dense.coef_)
    assert not hasattr(dense, "pruning_")


@pytest.mark.parametrize("settings", [({"prune": "certified"}, "auto"), ({}, 1e-3)], ids=str)
def test_weights_that_lose_too_much_in_two_bytes_are_kept_in_eight(settings):
    """With a large C the rounding of weights costs more than the tolerance allows."""
    table = sp.random_array((60, 40), density=0.3, format="csr", rng=np.random.default_rng(0))
    labels = np.random.default_rng(0).random((60, 20)) < 0.2
    settings, budget = settings
    model = within(budget, MaxMarginClassifier(C=1e4, tol=1e-3, max_iter=2000, **settings), table, labels)
    assert model.converged_
    assert model.pruning_["largest_gap"] <= 1e-3
    assert model.scorer_.values.dtype == np.float64


def test_unobserved_labels_and_weights():
    table = Y.to_dense()
    table[np.random.default_rng(0).random(table.shape) < 0.3] = np.nan
    model = MaxMarginClassifier(prune="certified", tol=0.05, class_weight="balanced").fit(X, table)
    assert model.duality_gap_ <= 0.05
    plain = MaxMarginClassifier(prune="certified", tol=0.05).fit(X, table)
    primal, _ = _gap(plain, X, lw.LabelMatrix.from_any(table))
    np.testing.assert_allclose(plain.trace_[-1].primal, primal, rtol=1e-9)


def test_later_fits_begin_anew(pruned):
    model = MaxMarginClassifier(prune="certified", tol=0.05, warm_start=True)
    model.fit(X, Y).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), pruned.decision_function(X))
    model = MaxMarginClassifier(prune="certified", tol=0.05)
    model.partial_fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:])
    np.testing.assert_array_equal(model.decision_function(X), pruned.decision_function(X))


class _Stop(Exception):
    pass


def test_a_stopped_fit_goes_on_from_its_checkpoint(pruned, tmp_path, monkeypatch):
    monkeypatch.setattr(pruned_ascent, "_AT_ONCE", 1)
    monkeypatch.setattr("labelweave.estimators.journal._SECONDS", 0.0)
    model = MaxMarginClassifier(prune="certified", tol=0.05, checkpoint=tmp_path / "c")
    fitted, asked = pruned_ascent.PrunedAscent._fitted, []

    def stops(solver, problem, number):
        asked.append(number)
        if len(asked) == 3:
            raise _Stop
        return fitted(solver, problem, number)

    monkeypatch.setattr(pruned_ascent.PrunedAscent, "_fitted", stops)
    with pytest.raises(_Stop):
        model.fit(X, Y)
    model.fit(X, Y)
    assert asked == [0, 1, 2, 2]
    np.testing.assert_array_equal(model.decision_function(X), pruned.decision_function(X))


def test_an_interrupt_leaves_the_blocks_that_are_done(monkeypatch):
    monkeypatch.setattr(pruned_ascent, "_AT_ONCE", 1)
    fitted = pruned_ascent.PrunedAscent._fitted

    def interrupts(solver, problem, number):
        if number == 1:
            raise KeyboardInterrupt
        return fitted(solver, problem, number)

    monkeypatch.setattr(pruned_ascent.PrunedAscent, "_fitted", interrupts)
    model = MaxMarginClassifier(prune="certified", tol=0.05)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.status_ == "interrupted"
    assert (np.diff(model.coef_.indptr) > 0).sum() == 16
    np.testing.assert_allclose(model.duality_gap_, _gap(model, X, Y)[1], rtol=1e-6)


def test_kernels_that_are_explicit_and_scaled_rows():
    model = MaxMarginClassifier(kernel="cosine", prune="certified", tol=0.05, scaling="unit").fit(3 * X, Y)
    assert model.duality_gap_ <= 0.05
    assert model.decision_function(X.toarray()[:3]).shape == (3, 40)


def test_more_labels_than_two_bytes_number():
    n_labels, random = 70_000, np.random.default_rng(0)
    positives = sp.csr_array((np.ones(n_labels, int), (random.integers(4, size=n_labels), range(n_labels))))
    data = MarginData(
        FeatureMatrix(sp.csr_array(random.random((4, 3)))), lw.LabelMatrix(positives),
        lw.LabelCovariance.identity(n_labels), np.full(4, 2.0), np.ones((2, n_labels)), True,
    )  # fmt: skip
    blocks = MarginBlocks(data, np.float32, Workers())
    last = pruned_ascent.PrunedAscent(0.1, 100)._fitted(blocks, blocks.n_blocks - 1)
    weights = blocks.solution([last])
    assert weights.labels.dtype == np.int32
    assert set(weights.labels) == set(last.labels)
    assert weights.labels.max() == n_labels - 1


def test_labels_of_different_variances_are_those_of_the_dense_model():
    R = np.diag(np.linspace(0.5, 2, 40))
    model = MaxMarginClassifier(prune="certified", tol=1e-3, label_covariance=R).fit(X, Y)
    dense = MaxMarginClassifier(tol=1e-3, label_covariance=R).fit(X, Y)
    assert model.trace_[-1].dual <= dense.trace_[-1].primal
    assert dense.trace_[-1].dual <= model.trace_[-1].primal
    table = model.coef_.toarray()
    primal = 2 * np.maximum(0, 1 - Y.to_signs() * (X @ table.T + model.intercept_)).sum()
    primal += ((table**2).sum(axis=1) + model.intercept_**2) @ (1 / np.diag(R)) / 2
    np.testing.assert_allclose(model.trace_[-1].primal, primal, rtol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"gaps": np.array([1, 6, 2], np.uint8)},
        {"gaps": np.array([2, 0, 2], np.uint8)},
        {"gaps": np.array([1, 1, 2, 1], np.uint8)},
        {"gaps": np.array([1, 1, 2])},
        {"labels": np.array([0, 1, 1], np.uint16)},
        {"indptr": np.array([0, 2, 1])},
        {"indptr": np.array([1, 2, 3])},
        {"values": np.array([1, 2], np.int16)},
        {"scales": np.array([1, np.nan])},
    ],
)
def test_files_whose_weights_are_elsewhere_are_refused(change):
    gaps, values = np.array([1, 1, 2], np.uint8), np.array([1, 2, 3], np.int16)
    whole = SparseScorer(np.zeros(2), np.array([0, 2, 3]), gaps, values, np.ones(2)).to_state()
    made_of_state("SparseScorer", SparseScorer, whole)
    with pytest.raises(ModelFileError):
        made_of_state("SparseScorer", SparseScorer, {**whole, **change})


def _scorer(n_labels=11, d=7, seed=0):
    random = np.random.default_rng(seed)
    table = random.integers(-9, 9, (n_labels, d)) * (random.random((n_labels, d)) < 0.4)
    turned = sp.csc_array(table.astype(np.int16))
    scales = random.uniform(0.1, 2, n_labels)
    parts = turned.indptr.astype(np.int64), turned.indices.astype(np.uint16), turned.data
    scorer = SparseScorer.of_labels(random.normal(size=n_labels), *parts, scales)
    return scorer, table * scales[:, None]


@pytest.mark.parametrize(("at_once", "full_share"), [(4, 0.25), (4, 1.0), (2**15, 0.25), (2**15, 1.0)])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_scores_and_best_labels_are_those_of_dense_weights(at_once, full_share, is_sparse, monkeypatch):
    monkeypatch.setattr(sparse_scorer, "_FULL_SHARE", full_share)
    monkeypatch.setattr(sparse_scorer, "_LABELS_AT_ONCE", at_once)
    scorer, weights = _scorer()
    X = np.random.default_rng(1).normal(size=(300, 7)) * (np.random.default_rng(2).random((300, 7)) < 0.5)
    features = FeatureMatrix(sp.csr_array(X) if is_sparse else X)
    scores = scorer.scores(features)
    np.testing.assert_allclose(scores, X @ weights.T + scorer.intercept_, atol=1e-12)
    np.testing.assert_allclose(scorer.coef_.toarray(), weights)
    for k in (1, 3, 11):
        best, found = scorer.top(features, k)
        np.testing.assert_array_equal(best, np.argsort(-scores, axis=1, kind="stable")[:, :k])
        np.testing.assert_array_equal(found, np.take_along_axis(scores, best, axis=1))


def test_ties_go_to_the_lower_number_in_all_parts(monkeypatch):
    monkeypatch.setattr(sparse_scorer, "_LABELS_AT_ONCE", 2)
    parts = np.zeros(3, np.int64), np.empty(0, np.uint16), np.empty(0, np.int16), np.ones(5)
    best, scores = SparseScorer(np.array([1.0, 2, 2, 1, 2]), *parts).top(FeatureMatrix(np.eye(2)), 4)
    np.testing.assert_array_equal(best, [[1, 2, 4, 0]] * 2)
    np.testing.assert_array_equal(scores, [[2.0, 2, 2, 1]] * 2)


def test_places_of_weights_may_pass_31_bits(monkeypatch):
    # the weights of one feature are at places beyond 2^31 of arrays that are views of one number
    monkeypatch.setattr(sparse_scorer, "_FULL_SHARE", np.inf)
    n, far = 3, 2**31 + 5
    indptr = np.array([0, far, far + n], np.int64)
    gaps = np.lib.stride_tricks.as_strided(np.full(1, 1, np.uint8), (far + n,), (0,))
    values = np.lib.stride_tricks.as_strided(np.full(1, 4, np.int16), (far + n,), (0,))
    scorer = SparseScorer(np.ones(n), indptr, gaps, values, np.ones(n))
    row = FeatureMatrix(sp.csr_array(np.array([[0, 0.5]])))
    np.testing.assert_array_equal(scorer.scores(row), [[3.0, 3, 3]])
