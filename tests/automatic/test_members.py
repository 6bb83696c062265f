"""Members score rows by fits to other rows, and forests agree with scikit-learn's."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from labelweave.decisions.automatic.combination import (
    Combination,
    cross_fitted,
    member_weights,
    weights_by_label,
)
from labelweave.decisions.automatic.members import (
    KernelRidge,
    Members,
    TrainingTable,
    likely_penalties,
    lowest,
    margin_machines,
    margin_settings,
    max_margin_pays,
    tree_targets,
)
from labelweave.decisions.automatic.members import grow as grow_trees
from labelweave.decisions.automatic.plan import Plan, Shape, make_plan
from labelweave.decisions.automatic.scorers import CombinedScorer, ForestScorer
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.forest import BinnedRows, Forest
from labelweave.labels import LabelMatrix
from labelweave.postprocessing import calibrate_labels

PENALTIES = np.logspace(-3, 2, 11)
NAMES = ("linear", "max-margin", "rbf", "forest", "rbf+forest")


def table(n=90, missing=0.0, seed=0, noise=False, n_labels=3, pivots=2000):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)) / 2
    signal = (
        random.normal(size=(n, n_labels))
        if noise
        else X[:, :n_labels] + 0.1 * random.normal(size=(n, n_labels))
    )
    targets = (signal > 0.1).astype(float)
    targets[random.random(targets.shape) < missing] = np.nan
    return TrainingTable(FeatureMatrix(X), targets, np.ones(n), np.arange(n) % 3, 20, pivots, 0)


def members_of(one):
    return Members(one, lambda name: None)


def grow(one):
    return members_of(one)._forests[-1]


PARTS = ("roots", "feature", "threshold", "children", "missing_left")


def test_trees_grown_apart_or_by_threads_are_those_grown_together():
    one = table(missing=0.1)
    rows, targets = BinnedRows.of_rows(one.features.data), tree_targets(one, 0)
    whole = grow_trees(one, rows, targets, 0, 0, 7)
    apart = [grow_trees(replace(one, n_jobs=2), rows, targets, 0, *part) for part in ((0, 3), (3, 4))]
    for name in PARTS:
        assert_array_equal(getattr(Forest.joined(apart), name), getattr(whole, name), strict=True)
    assert grow(one).n_trees == 21  # seven per fold


def test_a_tree_is_that_of_scikit_learn():
    """Of one feature, with a bin per value, for rows drawn in the same way."""
    random = np.random.default_rng(0)
    values, weights = random.integers(0, 50, (300, 1)).astype(float), random.uniform(0.5, 2, 300)
    targets = (random.random((300, 3)) < 0.2 + 0.01 * values).astype(np.float32)
    tree = BinnedRows.of_rows(values).grown(targets, weights, 3)
    draws = np.random.RandomState(3).randint(0, 300, 300)
    drawn = weights * np.bincount(draws, minlength=300)
    peer = DecisionTreeRegressor(random_state=0).fit(values, targets, drawn).tree_
    assert tree.n_leaves == peer.n_leaves
    pairs = [(0, 0)]  # of nodes here and there
    while pairs:
        here, there = pairs.pop()
        assert (tree.feature[here] < 0) == (peer.children_left[there] < 0)
        if tree.feature[here] >= 0:
            assert tree.threshold[here] == peer.threshold[there]
            others = peer.children_left[there], peer.children_right[there]
            pairs += zip(tree.children[here], others, strict=True)


def test_features_with_a_usual_bin_grow_the_same_trees_from_their_other_rows():
    random = np.random.default_rng(0)
    data = random.integers(-3, 4, (300, 40)) * (random.random((300, 40)) < 0.05)
    rows, every = BinnedRows.of_rows(sp.csr_array(data, dtype=float)), np.full(40, -1, np.int16)
    assert (rows.others[0] >= 0).all()
    targets, weights = random.integers(-8, 9, (300, 3)).astype(np.float32), random.integers(0, 3, 300)
    grown = (
        one.grown(targets, weights, 0) for one in (rows, rows._replace(others=(every, *rows.others[1:])))
    )
    listed, plain = grown  # sums of integers are exact
    for name in PARTS:
        assert_array_equal(getattr(listed, name), getattr(plain, name))


def test_bins_divide_the_values_of_a_feature_in_order():
    random = np.random.default_rng(0)
    data = random.normal(size=(500, 3))
    data[:, 1] = np.round(data[:, 1])
    for rows in (BinnedRows.of_rows(data), BinnedRows.of_rows(sp.csr_array(data))):
        assert rows.codes.max() == 63
        assert len(np.unique(rows.codes[1])) == len(np.unique(data[:, 1]))
        for feature, codes in enumerate(rows.codes):
            column = data[:, feature].astype(np.float32)
            assert (rows.least[feature, codes] <= column).all()
            assert (rows.most[feature, codes] >= column).all()
            assert (rows.most[feature, : codes.max()] < rows.least[feature, 1 : codes.max() + 1]).all()


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_scores_of_a_fold_do_not_depend_on_its_labels(name, missing):
    """Labels of the first fold are inverted; its scores, at a fixed width and penalty, do not change."""
    one = table(missing=missing)
    turned = one.targets.copy()
    turned[one.folds == 0] = 1 - turned[one.folds == 0]
    other = TrainingTable(**vars(one) | {"targets": turned})
    first, second = members_of(one), members_of(other)
    second.__dict__["_width"] = first._width
    found, again = first.make(name), second.make(name)
    if name == "forest":
        assert_array_equal(found.scores[one.folds == 0], again.scores[one.folds == 0])
    else:  # the penalty is chosen on all folds
        kernel = first._width
        rows, held = np.flatnonzero(one.folds != 0), one.features.rows(np.flatnonzero(one.folds == 0))
        ours, theirs = (KernelRidge(kernel, t.rows(rows)).scores(held, [0.1]) for t in (one, other))
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_labels_that_no_feature_tells_of_have_out_of_fold_scores_of_chance(name):
    losses = [
        (one := table(150, seed=seed, noise=True)).loss(members_of(one).make(name).scores)
        for seed in range(2)
    ]
    assert min(losses) > 0.97


def test_in_sample_proximity_would_leak():
    """What the test above would find if scores of rows seen by the trees were used."""
    one = table(150, noise=True)
    forest = grow(one)
    seen = ForestScorer.of_rows(forest, one.features.data, one.targets, one.weights).scores(one.features)
    assert one.loss(expit(seen)) < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_scorer_is_of_a_fit_to_all_rows(name):
    one = table()
    member = members_of(one).make(name)
    curves = one.curves(member.scores)
    out_of_fold = one.loss(curves.probabilities(member.scores))
    assert out_of_fold < 0.75
    assert one.loss(curves.probabilities(member.scorer.scores(one.features))) < out_of_fold


def test_a_column_factor_of_full_rank_serves_as_the_kernel_matrix():
    whole, part = table(n=60), table(n=60, pivots=59)
    kernel, rows = RBFKernel(0.05), np.arange(60)
    exact, factored = (KernelRidge(kernel, t.rows(rows)) for t in (whole, part))
    new = FeatureMatrix(np.random.default_rng(5).normal(size=(7, 4)) / 2)
    assert_allclose(factored.scores(new, PENALTIES), exact.scores(new, PENALTIES), atol=2e-3)
    assert_allclose(
        factored.scorer(0.1).scores(new), KernelRidge(kernel, part).scorer(0.1).scores(new), rtol=1e-12
    )


def test_trees_of_a_fold_have_not_seen_its_labels():
    one = table()
    turned = one.targets.copy()
    turned[one.folds == 1] = 1 - turned[one.folds == 1]
    ours, theirs = (members_of(t)._forests for t in (one, replace(one, targets=turned)))
    assert_array_equal(ours[1].threshold, theirs[1].threshold, strict=True)
    assert not np.array_equal(ours[-1].threshold, theirs[-1].threshold)
    assert_array_equal(ours[-1].threshold, np.concatenate([one.threshold for one in ours[:-1]]))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_penalties_are_those_around_the_best(missing):
    one = table(missing=missing)
    near = likely_penalties(one, 0, RBFKernel(0.5), None)
    train, held = (one.rows(rows) for rows in one.split(0))
    tables = KernelRidge(RBFKernel(0.5), train).scores(held.features, PENALTIES)
    best = PENALTIES[np.argmin([held.squared_error(scores) for scores in tables])]
    assert best in near
    assert len(near) == 5


def test_the_lowest_place_is_found_from_the_middle():
    for place in range(9):
        asked = []
        assert lowest(lambda at, place=place, asked=asked: asked.append(at) or abs(at - place), 9) == place
        assert len(asked) <= 2 * abs(place - 4) + 4


@pytest.mark.parametrize("is_linear", [True, False])
def test_a_costly_max_margin_member_is_kept_where_a_sample_gains_by_it(is_linear):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 60 if is_linear else 3))
    targets = (X @ random.normal(size=(X.shape[1], 2)) > 0 if is_linear else X[:, :2] ** 2 > 0.5).astype(
        float
    )
    one = TrainingTable(FeatureMatrix(X), targets, np.ones(400), np.arange(400) % 3, 20, 300, 0)
    costly = Shape(10_000, 60, 1000, 60.0)
    assert max_margin_pays(one, costly) == is_linear
    assert max_margin_pays(one, Shape(20_000, 1000, 3000, 10.0))  # sparse: nothing is tried


def test_leaves_hold_the_shares_of_observed_labels():
    one = table(n=40, missing=0.4)
    forest = grow(one)
    scores = ForestScorer.of_rows(forest, one.features.data, one.targets, one.weights).scores(one.features)
    leaves = forest.leaves(one.features.data)
    expected = np.zeros_like(scores)
    for tree in leaves.T:
        for leaf in np.unique(tree):
            rows = tree == leaf
            for label in range(3):
                known = one.targets[rows, label][~np.isnan(one.targets[rows, label])]
                usual = np.nanmean(one.targets[:, label])
                expected[rows, label] += (known.mean() if len(known) else usual) / forest.n_trees
    assert_allclose(expit(scores), np.clip(expected, 1e-3, 0.999), atol=1e-6)


def test_many_labels_are_projected_for_trees():
    assert grow(table(n=60, n_labels=4)).n_trees == 21
    random = np.random.default_rng(0)
    wide = TrainingTable(**vars(table(n=60)) | {"targets": (random.random((60, 80)) < 0.2).astype(float)})
    assert grow(wide).n_leaves > 20
    rows = wide.split(0)[0]  # fewer than labels
    left, sizes, _ = np.linalg.svd(wide.targets[rows] - wide.targets[rows].mean(axis=0))
    ours, best = tree_targets(wide, 0)[rows], left[:, :16] * sizes[:16]
    assert_allclose(ours @ ours.T, best @ best.T, atol=1e-5)


def test_weights_are_those_of_the_least_log_loss():
    one = table(n=60)
    random = np.random.default_rng(1)
    signs = 2 * one.targets - 1
    good, other = signs + random.normal(size=(60, 3)), signs + 2 * random.normal(size=(60, 3))
    weights = member_weights(one, [good, other, -good])
    assert weights[0] > weights[1] > 0
    assert weights[2] == 0
    rows = np.stack([good.ravel(), other.ravel()], axis=1)
    exact = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(rows, one.targets.ravel())
    assert_allclose(weights[:2], exact.coef_[0], rtol=1e-3)
    assert member_weights(one, [good, good]).sum() > 0.5
    assert one.log_loss(weights[0] * good + weights[1] * other) < min(one.log_loss(good), one.log_loss(other))


def test_labels_of_no_doubt_do_not_keep_weights_where_the_search_begins():
    one = table(n=60)
    random = np.random.default_rng(1)
    odds = [2 * one.targets - 1 + size * random.normal(size=(60, 3)) for size in (1, 2)]
    absent = np.zeros((60, 10_000))
    wide = TrainingTable(**vars(one) | {"targets": np.hstack([one.targets, absent])})
    weights = member_weights(wide, [np.hstack([part, absent - 99]) for part in odds])
    assert_allclose(weights, member_weights(one, odds), rtol=1e-3)


def test_flip_rates_beyond_the_flips_there_are_let_neither_curves_nor_weights_run_away():
    one, random = table(n=200), np.random.default_rng(1)
    corrected = TrainingTable(**vars(one) | {"targets": np.where(one.targets == 1, 1.4, -0.2)})
    scores = one.targets + 0.6 * random.normal(size=(200, 3))
    odds = [
        found.slopes * scores + found.intercepts for found in (corrected.curves(scores), one.curves(scores))
    ]
    assert_allclose(odds[0], odds[1], rtol=1e-12)
    assert_allclose(member_weights(corrected, odds[1:]), member_weights(one, odds[1:]))
    weak = TrainingTable(**vars(one) | {"targets": np.where(one.targets == 1, 1.02, -0.01)})
    curve = calibrate_labels(weak.labels, 0.5 * scores, "sigmoid", sample_weight=weak.weights)
    assert_array_equal(weak.curves(0.5 * scores).slopes, curve.slopes)


def test_what_is_learned_of_other_folds_does_not_depend_on_the_labels_of_one():
    one = table(n=60)
    random = np.random.default_rng(2)
    scores = [one.targets + random.normal(size=(60, 3)) for _ in range(2)]
    turned = one.targets.copy()
    here = one.folds == 0
    turned[here] = 1 - turned[here]
    other = TrainingTable(**vars(one) | {"targets": turned})
    first, second = cross_fitted(one, scores), cross_fitted(other, scores)
    assert_array_equal(first[here], second[here])
    assert (first[~here] != second[~here]).any()
    assert one.loss(first) > one.loss(Combination.learned(one, [part.copy() for part in scores])[0]
                                      .probabilities(scores))  # fmt: skip


def test_a_member_that_says_the_opposite_still_leaves_one():
    one = table(n=10)
    wrong = 1 - 2 * one.targets
    weights = member_weights(one, [wrong, 2 * wrong])
    assert_array_equal(weights, [1, 0])


def test_plans_fit_the_time_there_is():
    shape = Shape(2000, 300, 20, 300.0)
    whole = make_plan(shape, None, None)
    assert whole.members == ("rbf", "forest", "rbf+forest", "max-margin")
    budgets = [whole.seconds * share for share in (1.0, 0.5, 0.2, 0.15)]
    plans = [make_plan(shape, None, budget) for budget in budgets]
    assert [plan.seconds <= budget for plan, budget in zip(plans, budgets, strict=True)] == [True] * 4
    assert plans[0] == whole
    assert make_plan(replace(shape, has_rare=True), None, None).seconds > whole.seconds
    assert all(one.seconds >= two.seconds for one, two in pairwise(plans))
    assert isinstance(make_plan(shape, None, 1e-6), Plan)
    assert make_plan(Shape(200_000, 5000, 50, 5000.0), None, 1e6).members == ("linear", "rbf")
    assert make_plan(Shape(200_000, 500, 50, 500.0), None, None).seconds <= 300


def test_plans_count_what_missing_labels_cost():
    rows, seen = FeatureMatrix(np.zeros((50, 3))), np.full((50, 4), 1.0)
    assert Shape.of_data(rows, LabelMatrix.from_any(seen)) == Shape(50, 3, 4, 3.0)
    seen[:20] = np.nan
    assert Shape.of_data(rows, LabelMatrix.from_any(seen)).missing == pytest.approx(0.4)
    for n in (1000, 5000):
        whole, partly = (Shape(n, 6, 20, 6.0, missing).of_ridge(2000) for missing in (0.0, 0.5))
        assert 1.1 * whole < partly < 10 * whole


def test_combined_scores_are_weighted_sums():
    one = table(n=40)
    members = [members_of(one).make(name).scorer for name in ("linear", "rbf")]
    both = CombinedScorer(np.zeros(3), tuple(members), np.array([0.25, 0.5]))
    expected = 0.25 * members[0].scores(one.features) + 0.5 * members[1].scores(one.features)
    assert_allclose(both.scores(one.features), expected, rtol=1e-13)
    assert both.takes(4)
    assert not both.takes(5)


@pytest.mark.parametrize("is_clear", [True, False])
def test_rare_labels_have_members_of_their_own_where_they_gain_clearly(is_clear):
    """One member predicts frequent labels and the other rare ones, or the first predicts all of them."""
    random, base = np.random.default_rng(0), np.array([0.0] * 3 + [-7.0] * 3)
    one = base + 2 * random.normal(size=(4000, 6))
    targets = (random.random(one.shape) < expit(one)).astype(float)
    other = base + random.normal(size=one.shape)
    if is_clear:
        one, other = (np.hstack([x[:, :3], y[:, 3:]]) for x, y in ((one, other), (other, one)))
    changed = {"targets": targets, "weights": np.ones(4000), "folds": np.arange(4000) % 3}
    some = TrainingTable(**vars(table(n=60)) | changed)
    weights, pooled = weights_by_label(some, [one, other]), member_weights(some, [one, other])
    assert (weights[:, :3] == pooled[:, None]).all()
    assert (weights[:, 3:] != pooled[:, None]).any() == is_clear
    assert (weights[1, 3:] > weights[0, 3:]).all() == is_clear


def test_classes_are_balanced_where_labels_are_rare():
    one = table(400, n_labels=1)
    assert {weight for _, weight in margin_settings(one)} == {None}
    rare = replace(one, targets=(np.arange(400) < 3).astype(float)[:, None])
    assert {weight for _, weight in margin_settings(rare)} == {None, "balanced"}
    assert len(margin_machines(rare)) == len(margin_settings(rare))
    assert Shape.of_data(rare.features, rare.labels).has_rare
