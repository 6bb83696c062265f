"""Rank and penalty by cross-validation: scores, choice, path, refusals, and its parts separately."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import grouped
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from drawn import draw_labels
from labelweave import LabelMatrix, LowRankClassifier, RankSearch
from labelweave.estimators.low_rank import path, starts
from labelweave.estimators.low_rank import path as low_rank_path
from labelweave.estimators.low_rank import rank_choice as low_rank_cv
from labelweave.estimators.low_rank.path import HeldOutRows, ScoreSettings, held_out_score
from labelweave.estimators.low_rank.starts import Start, continued, first_label_factor
from labelweave.features.gram.sources import PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.metrics import average_auc, f1_score, precision_at_k
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES
from watching import Count

FOLDS = KFold(3, shuffle=True, random_state=1)
SMALL = {"ranks": [1, 2, 4], "alphas": [10.0, 1.0, 0.1], "cv": FOLDS}
TIGHT = {"path_tol": 1e-10, "tol": 1e-10, "max_iter": 500}


_drawn = partial(draw_labels, d=6, n_labels=7, rank=2, noise=0.3, above=0.5, missing=0.0)


def _fold_scores(score, X, Y, rank, alpha, **choice):
    """Score folds one by one, with models fitted separately."""
    found = []
    for train, test in FOLDS.split(X):
        model = LowRankClassifier(rank, alpha=alpha, tol=1e-10, max_iter=500, **choice)
        found.append(score(model.fit(X[train], Y[train]), X[test], Y[test]))
    return np.array(found)


def _minus_loss(model, X, Y):
    loss = ENTRY_LOSSES[model.loss]()
    scores, seen = model.decision_function(X) + loss.threshold, ~np.isnan(Y)
    return -loss.value(np.where(Y > 0, 1, -1), scores)[seen].mean()


def _micro_f1(model, X, Y):
    return f1_score(Y, model.predict(X))


def _column(model, rank, alpha):
    table = model.cv_results_
    row = np.flatnonzero((table["rank"] == rank) & (table["alpha"] == alpha))[0]
    return np.array([table[f"split{fold}_test_score"][row] for fold in range(3)])


SCORES = {
    "loss": _minus_loss,
    "precision_at_1": lambda model, X, Y: precision_at_k(Y, model.decision_function(X), 1),
    "precision_at_3": lambda model, X, Y: precision_at_k(Y, model.decision_function(X), 3),
    "precision_at_5": lambda model, X, Y: precision_at_k(Y, model.decision_function(X), 5),
    "average_auc": lambda model, X, Y: average_auc(Y, model.decision_function(X)),
    "micro_f1": _micro_f1,
}


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("scoring", [*SCORES, "callable"])
def test_scores_are_those_of_fits_alone(scoring, missing):
    """If the bound on the rank is inactive, the path and the single fits reach one optimum."""
    X, Y = _drawn(missing=missing)
    score = SCORES.get(scoring, _minus_loss)
    asked = score if scoring == "callable" else scoring
    model = grouped(LowRankClassifier, **{**SMALL, "ranks": [6]}, **TIGHT, scoring=asked).fit(X, Y)
    for alpha in (1.0, 10.0):
        expected = _fold_scores(score, X, Y, 6, alpha)
        np.testing.assert_allclose(_column(model, 6, alpha), expected, atol=1e-3)


@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_a_function_scores_the_rows_of_all_calls_and_of_frames():
    X, Y = _drawn()
    X, Y = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(Y).add_prefix("y")
    named, called = (
        grouped(LowRankClassifier, **SMALL, penalty="ridge", scoring=scoring)
        .partial_fit(X[:40], Y[:40])
        .partial_fit(X[40:], Y[40:])
        for scoring in ("average_auc", SCORES["average_auc"])
    )
    np.testing.assert_allclose(called.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"])
    assert called.feature_names_in_[0] == "x0"


def test_a_function_scores_rows_that_are_scaled_once():
    X, Y = _drawn()
    named, called = (
        grouped(LowRankClassifier, **SMALL, scaling="standard", penalty="ridge", scoring=scoring).fit(
            3 * X + 7, Y
        )
        for scoring in ("average_auc", SCORES["average_auc"])
    )
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(called.cv_results_[name], named.cv_results_[name])
    assert called.scaling_ is not None


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_exact_ridge_paths_score_every_rank(kernel):
    X, Y = _drawn()
    choice = {"penalty": "ridge", "kernel": kernel, "gamma": 0.2}
    model = grouped(LowRankClassifier, **SMALL, **choice, scoring="loss").fit(X, Y)
    for rank in SMALL["ranks"]:
        for alpha in SMALL["alphas"]:
            expected = _fold_scores(_minus_loss, X, Y, rank, alpha, **choice)
            np.testing.assert_allclose(_column(model, rank, alpha), expected, rtol=1e-6)
    assert (model.cv_results_["rounds"] == 3).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_other_losses(loss):
    X, Y = _drawn()
    model = grouped(LowRankClassifier, **{**SMALL, "ranks": [6]}, **TIGHT, loss=loss, scoring="loss").fit(
        X, Y
    )
    expected = _fold_scores(_minus_loss, X, Y, 6, 1.0, loss=loss)
    np.testing.assert_allclose(_column(model, 6, 1.0), expected, rtol=1e-3)


@pytest.mark.parametrize("choice", [{"kernel": "precomputed"}, {"kernel": "rbf", "kernel_rank": 15}])
def test_given_kernel_matrices_and_low_rank_kernels(choice):
    X, Y = _drawn()
    rows = X @ X.T if choice["kernel"] == "precomputed" else X
    model = grouped(LowRankClassifier, **SMALL, **choice).fit(rows, Y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert len(model.support_) == choice.get("kernel_rank", len(X))


@pytest.mark.parametrize("megabytes", [1e-6, 100.0])
def test_held_out_rows_are_mapped_within_the_memory_budget(monkeypatch, megabytes):
    monkeypatch.setattr(low_rank_cv, "_BLOCK_ENTRIES", 100)
    random = np.random.default_rng(0)
    K = random.normal(size=(20, 20))
    held, kept = np.arange(0, 20, 2), np.arange(1, 20, 2)
    data = SimpleNamespace(explicit=None, source=PrecomputedSource(K))
    settings = SimpleNamespace(memory_budget=megabytes, workers=Workers(1))
    fitted = SimpleNamespace(support=np.array([4, 0, 7]), feature_factor=random.normal(size=(3, 2)))
    blocks = low_rank_cv._KernelBlocks(data, settings)
    for _ in range(2):
        expected = K[np.ix_(held, kept[fitted.support])] @ fitted.feature_factor
        np.testing.assert_allclose(blocks.latent(fitted, held, kept), expected, rtol=1e-12)


def test_the_best_pair_is_fitted_to_all_rows():
    X, Y = _drawn()
    model = grouped(LowRankClassifier, **SMALL, **TIGHT).fit(X, Y)
    table = pd.DataFrame(model.cv_results_)
    best = table.loc[table["mean_test_score"].idxmax()]
    assert (model.best_rank_, model.best_alpha_) == (best["rank"], best["alpha"])
    assert model.best_score_ == best["mean_test_score"]
    assert model.n_splits_ == 3
    splits = table[[f"split{fold}_test_score" for fold in range(3)]].to_numpy()
    np.testing.assert_allclose(table["mean_test_score"], splits.mean(axis=1))
    np.testing.assert_allclose(table["std_test_score"], splits.std(axis=1))
    assert (model.rank_, model.alpha_) == (model.best_rank_, model.best_alpha_)
    alone = LowRankClassifier(model.best_rank_, alpha=model.best_alpha_, tol=1e-10, max_iter=500).fit(X, Y)
    assert model.objective_ <= alone.objective_ * (1 + 1e-6)
    assert isinstance(model, LowRankClassifier)


def test_one_standard_error_takes_a_simpler_model():
    X, Y = _drawn()
    best = LowRankClassifier(RankSearch([1, 2, 4, 6], 5, cv=FOLDS)).fit(X, Y)
    simple = clone(best).set_params(rank__rule="one_standard_error").fit(X, Y)
    assert simple.best_rank_ <= best.best_rank_
    table = pd.DataFrame(simple.cv_results_)
    top = table.loc[table["mean_test_score"].idxmax()]
    least = top["mean_test_score"] - top["std_test_score"] / np.sqrt(2)
    near = table[table["mean_test_score"] >= least]
    assert simple.best_rank_ == near["rank"].min()
    same = near[near["rank"] == simple.best_rank_]
    assert simple.best_alpha_ == same["alpha"].max()


@pytest.mark.parametrize(
    "choice", [{}, {"loss": "log_loss"}, {"kernel": "rbf"}, {"label_covariance": 50.0 * (np.eye(7) + 0.5)}]
)
def test_the_strongest_penalty_of_the_trace_norm_just_leaves_nothing(choice):
    X, Y = _drawn()
    model = grouped(LowRankClassifier, ranks=[6], alphas=3, cv=FOLDS, **choice).fit(X, Y)
    strongest = model.cv_results_["alpha"].max()
    ratio = model.cv_results_["alpha"][0] / model.cv_results_["alpha"][-1]
    assert ratio == pytest.approx(1e4)
    LowRank = LowRankClassifier(6, tol=1e-12, max_iter=300, **choice)
    sizes = []
    for factor in (2.0, 0.3):  # the grid is found from the rows of one fold, scaled up
        fitted = LowRank.set_params(alpha=factor * strongest).fit(X, Y)
        sizes.append(np.abs(fitted.decision_function(X) + fitted.thresholds_).max())
    assert sizes[0] < 1e-3 < sizes[1]


def test_ranks_are_shares_or_counts_and_lowered():
    X, Y = _drawn()
    model = LowRankClassifier(RankSearch([0.3, 1.0, 7, 200], [1.0], cv=3)).fit(X, Y)
    assert sorted(model.cv_results_["rank"]) == [2, 7]


def test_a_kernel_is_learned_first_whatever_the_penalty():
    X, Y = _drawn()
    choice = {"kernel": "rbf", "hyperparameters": "learn", "learning_rows": 50}
    model = grouped(LowRankClassifier, **SMALL, **choice).fit(X, Y)
    assert model.learning_status_ == "converged"
    assert model.kernel_.gamma == pytest.approx(model.hyperparameters_["gamma"])
    assert model.hyperparameters_["alpha"] == model.best_alpha_
    ridge = grouped(LowRankClassifier, ranks=[7], alphas=3, cv=3, penalty="ridge", **choice).fit(X, Y)
    assert len(ridge.cv_results_["alpha"]) == 4  # the one that was learned too


def test_rows_and_folds_without_observed_entries_count_nowhere():
    X, Y = _drawn(missing=0.2)
    gone = next(iter(FOLDS.split(X)))[1]
    Y[gone] = np.nan
    model = grouped(LowRankClassifier, **SMALL).fit(X, Y)
    assert np.isnan(model.cv_results_["split0_test_score"]).all()
    assert np.isfinite(model.best_score_)


def test_weights_count_in_fits_and_scores():
    X, Y = _drawn()
    weights = np.ones(len(X))
    weights[::4] = 0.0
    kept = weights > 0
    folds = [(np.flatnonzero(kept)[::2], np.flatnonzero(kept)[1::2])]
    whole = [(np.setdiff1d(np.arange(len(X)), folds[0][1]), folds[0][1])]
    position = np.cumsum(kept) - 1
    part = [(position[folds[0][0]], position[folds[0][1]])]
    choice = {"ranks": [4], "alphas": [1.0], "scoring": "loss", **TIGHT}
    weighted = grouped(LowRankClassifier, cv=whole, **choice).fit(X, Y, sample_weight=weights)
    fewer = grouped(LowRankClassifier, cv=part, **choice).fit(X[kept], Y[kept])
    assert weighted.best_score_ == pytest.approx(fewer.best_score_, rel=1e-4)


def test_files_hold_no_folds_and_no_function_that_scores(reloaded):
    X, Y = _drawn()
    model = grouped(LowRankClassifier, **SMALL, scoring=_minus_loss).fit(X, Y)
    again = reloaded(model)
    assert (again.rank.cv, again.rank.scoring) == (None, "loss")
    np.testing.assert_array_equal(again.cv_results_["rank"], model.cv_results_["rank"])


def test_an_interrupt_before_any_score_is_one(monkeypatch):
    X, Y = _drawn()

    def interrupted(*parts):
        raise KeyboardInterrupt

    monkeypatch.setattr(low_rank_path, "fit_factors", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grouped(LowRankClassifier, **SMALL).fit(X, Y)


def test_callbacks_see_every_fit_and_may_stop():

    X, Y = _drawn()
    patient, hasty = Count(), Count(3)
    grouped(LowRankClassifier, **{**SMALL, "cv": 3}).set_callbacks(patient).fit(X, Y)
    assert patient.names.count("fit to a fold") == 27
    assert patient.names.count("round") >= 1
    assert len(patient.names) <= patient.expected
    with pytest.warns(ConvergenceWarning):
        model = grouped(LowRankClassifier, **SMALL).set_callbacks(hasty).fit(X, Y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).sum() == 3


def test_starts_come_from_neighbors():
    first = np.arange(1.0, 13.0).reshape(4, 3)
    known = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1e-9], [0.0, 0.0]])
    np.testing.assert_array_equal(continued(known, first, 3)[:, 0], known[:, 0])
    np.testing.assert_array_equal(continued(known, first, 3)[:, 1:], first[:, 1:])
    np.testing.assert_array_equal(continued(known, first, 1), known[:, :1])


RANDOM = np.random.default_rng(0)
Y = (RANDOM.random((30, 6)) < 0.4).astype(float)
Y[RANDOM.random(Y.shape) < 0.2] = np.nan
Y[4] = np.nan
IMAGE, FACTOR = RANDOM.normal(size=(30, 3)), RANDOM.normal(size=(6, 3))
WEIGHTS = np.where(np.arange(30) < 10, 0.0, RANDOM.uniform(0.5, 2.0, 30))
ROWS = HeldOutRows(LabelMatrix.from_any(Y), WEIGHTS, IMAGE, FACTOR)
HELD_SCORES = IMAGE @ FACTOR.T


def _settings(threshold=0.5):
    return ScoreSettings("squared_error", 1.0, threshold, Workers())


def test_scores_are_those_of_the_metrics_in_blocks_of_any_size(monkeypatch):
    counted = np.flatnonzero((WEIGHTS > 0) & ~np.isnan(Y).all(axis=1))
    labels, weights = ROWS.labels[counted], WEIGHTS[counted]
    for at_once in (16_000_000, 24):
        monkeypatch.setattr(path, "_SCORES_AT_ONCE", at_once)
        for k in (1, 3, 5):
            expected = precision_at_k(labels, HELD_SCORES[counted], k, sample_weight=weights)
            assert held_out_score(f"precision_at_{k}", ROWS, _settings()) == pytest.approx(expected)
        predicted = (HELD_SCORES > 0.5).astype(int)
        expected = f1_score(ROWS.labels, predicted, sample_weight=WEIGHTS)
        assert held_out_score("micro_f1", ROWS, _settings()) == pytest.approx(expected)
    rows = np.flatnonzero(WEIGHTS)
    assert held_out_score("average_auc", ROWS, _settings()) == average_auc(
        ROWS.labels[rows], HELD_SCORES[rows]
    )


def test_the_loss_is_the_mean_over_observed_entries():
    is_seen = ~np.isnan(Y)
    losses = 0.5 * np.where(is_seen, (HELD_SCORES - np.nan_to_num(Y)) ** 2, 0.0)
    expected = -(WEIGHTS @ losses.sum(axis=1)) / (WEIGHTS @ is_seen.sum(axis=1))
    assert held_out_score("loss", ROWS, _settings()) == pytest.approx(expected)


def test_rows_without_an_observed_entry_have_no_score():
    empty = HeldOutRows(ROWS.labels[[4]], WEIGHTS[[10]], IMAGE[[4]], FACTOR)
    assert np.isnan(held_out_score("loss", empty, _settings()))
    full = HeldOutRows(LabelMatrix.from_any(np.eye(6)), np.ones(6), IMAGE[:6], FACTOR)
    assert list(full.observed_counts()) == [6] * 6


def test_a_start_spans_what_the_leading_singular_vectors_span():
    groups = np.arange(700) % 3
    table = sp.csr_array((groups[:, None] == np.arange(600)[None] % 3).astype(np.int8))
    labels = LabelMatrix(table, None)
    factor = first_label_factor(labels, 3, "svd", 0)
    sizes = np.sqrt(200 * np.array([234.0, 233.0, 233.0]))  # of blocks of ones
    np.testing.assert_allclose((factor**2).sum(axis=0), sizes, rtol=1e-6)  # vectors times roots of sizes
    gram = factor @ factor.T
    same = np.equal.outer(np.arange(600) % 3, np.arange(600) % 3)
    assert np.abs(gram[~same]).max() < 1e-6 * gram[same].min()


def test_columns_that_no_label_fills_are_small_random_numbers():
    labels = LabelMatrix.from_any(np.eye(2))
    factor = first_label_factor(labels, 4, "svd", 0)
    assert 0 < np.abs(factor[:, 2:]).max() < 0.01
    wide = first_label_factor(LabelMatrix.from_any(np.ones((2, 5))), 2, "svd", 0, np.array([1.0, 3.0]))
    assert (wide[:, 0] ** 2).sum() == pytest.approx(np.sqrt(5 * 4.0))
    random = first_label_factor(labels, 4, "random", 0)
    assert np.abs(random).min() > 0


def test_dependent_columns_become_zero():
    block = RANDOM.normal(size=(8, 2))
    found = starts._orthonormalized(np.column_stack([block, block[:, 0]]))
    np.testing.assert_allclose(np.sort(np.linalg.svd(found, compute_uv=False)), [0.0, 1.0, 1.0], atol=1e-7)


def test_starts_take_other_ranks_and_more_rows():
    known = np.array([[1.0, 1e-6], [2.0, 0.0]])
    first = np.full((2, 3), 9.0)
    np.testing.assert_array_equal(continued(known, first, 3), [[1.0, 9.0, 9.0], [2.0, 9.0, 9.0]])
    start = Start(known, np.array([[5.0, 6.0]]))
    spread = start.spread(np.array([1]), 3)
    np.testing.assert_array_equal(spread.features, [[0, 0], [5, 6], [0, 0]])
    assert Start(known).spread(np.array([1]), 3).features is None
    assert start.at_rank(3).labels.shape == (2, 3)
    assert Start(known).at_rank(1).features is None
