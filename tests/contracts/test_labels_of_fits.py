"""How every model reads labels and weights of any type: missing, repeated, named, one."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from attacks.small_fits import EVERY, NEEDS_NAMES
from sklearn.utils.class_weight import compute_sample_weight

import labelweave as lw
from attacks import small_fits
from labelweave import LabelCovariance, LabelMatrix
from labelweave.labels.flip_rates import corrected_targets
from small_models import (
    assert_same_scores,
    data,
    exact,
    fit,
    is_coupled,
    is_tuned,
    kinds,
    labels,
    learns,
    model,
    scores,
    takes,
    weighs_entries,
    with_one_optimum,
)

NAMES = list("abcde")
ONE_CLASS = (*small_fits.ONE_CLASS, "zero-shot")  # whose data have one class per row


SHRINKS = "low rank", "low rank, logistic", "low rank, pivots", "low rank, related"
"""Kinds that shrink a row to nothing, at the usual penalty."""
RANKS = ("tuned, top", "calibrated, sets")  # the best labels of a row, whichever are known


GRAPHS = "graph, given", "graph, proximal", "graph, scores", "graph, own features", "graph, label sets"
CHOOSES_BY_ROUNDING = ("margins, learned", *GRAPHS, "automatic", "zero-shot")
"""Kinds that choose otherwise where products of sparse rows round otherwise than those of dense ones."""


def has_labels(name):
    return name not in ONE_CLASS


def is_fixed(name):
    """Return whether a kind has one problem, independent of folds, draws and starts."""
    return with_one_optimum(name) and not learns(name) and name != "tree"


def repeats(name):
    return is_fixed(name) and not name.startswith(
        "graph"
    )  # whose gap is too wide to compare, see test_label_graph


def table(name):
    """Return rows and labels of a kind, all known, as an array."""
    X, Y = data(name)
    return X, np.nan_to_num(np.asarray(Y)).astype(int)


@kinds(has_labels)
def test_labels_in_any_form_are_the_same_and_come_back_in_it(name, reloaded):
    X, Y = table(name)
    whole = fit(name, X, labels(name, Y))
    expected, sets = scores(whole, X), np.asarray(whole.predict(X))
    rows = pd.DataFrame(X, index=[f"row {row}" for row in range(len(X))])
    tags = [[NAMES[label] for label in np.flatnonzero(row)] for row in Y]
    named = (
        pd.DataFrame(Y, columns=NAMES), pl.DataFrame(Y, schema=NAMES), pa.table(list(Y.T), NAMES),
        LabelMatrix(sp.csr_array(Y), None, NAMES), tags, pd.Series(tags), pl.Series(tags), pa.array(tags),
    )  # fmt: skip
    plain = () if name in NEEDS_NAMES else (Y, sp.csr_array(Y), 2 * Y - 1, Y > 0, Y.astype(float), Y.tolist())
    for form in (*named, *plain):
        found = fit(name, X, form)
        names = NAMES if any(form is one for one in named) else list(range(5))
        np.testing.assert_array_equal(scores(found, X), expected)
        assert_in_form(found, rows, form, names, sets)
        assert_in_form(reloaded(found), rows, form, names, sets)


def assert_in_form(found, rows, form, names, sets):
    """Check that label sets have the type of the training labels, with their names."""
    assert found.classes_.tolist() == names
    assert found.label_names_.tolist() == list(map(str, names))
    predicted = found.predict(rows.to_numpy())
    if isinstance(form, (pd.DataFrame, pd.Series)):
        assert list(found.predict(rows).index) == list(rows.index)
        assert found.predict(rows.to_numpy().tolist()).equals(predicted)
    if isinstance(form, (LabelMatrix, sp.csr_array)):
        assert sp.issparse(predicted)
        predicted = predicted.toarray()
    else:
        assert type(predicted) is (np.ndarray if isinstance(form, list) else type(form))
    if isinstance(predicted, (pd.DataFrame, pl.DataFrame, pa.Table)):
        assert list(getattr(predicted, "column_names", predicted.columns)) == names
        predicted = np.column_stack([np.asarray(predicted[name]) for name in names])
    elif isinstance(predicted, (pd.Series, pl.Series, pa.Array)) or predicted.dtype == object:
        found_tags = list(map(list, getattr(predicted, "to_pylist", lambda: predicted)()))
        assert found_tags == [[names[label] for label in np.flatnonzero(row)] for row in sets]
        return
    sets = 2 * sets - 1 if isinstance(form, np.ndarray) and form.min() < 0 else sets
    np.testing.assert_array_equal(predicted, sets)


@kinds(has_labels)
def test_what_is_hidden_by_a_mask_does_not_matter(name):
    X, Y = table(name)
    hidden = np.random.default_rng(1).random(Y.shape) < 0.3
    expected = scores(fit(name, X, labels(name, np.where(hidden, np.nan, Y))), X)
    for under in (Y, np.where(hidden, 1 - Y, Y)):
        masked = LabelMatrix(sp.csr_array(under), None, NAMES).masked(sp.csr_array(~hidden))
        np.testing.assert_array_equal(scores(fit(name, X, masked), X), expected)


@kinds(has_labels)
def test_a_mask_that_hides_nothing_is_none(name):
    X, Y = table(name)
    whole = LabelMatrix(sp.csr_array(Y), sp.csr_array(np.ones_like(Y)), NAMES)
    expected = scores(fit(name, X, labels(name, Y)), X)
    atol = 0 if name.startswith("margins") else 1e-9
    np.testing.assert_allclose(scores(fit(name, X, whole), X), expected, rtol=0, atol=atol)


@kinds(lambda name: has_labels(name) and with_one_optimum(name))
def test_rows_of_which_nothing_is_known_are_as_good_as_absent(name):
    X, Y = table(name)
    Y = Y.astype(float)
    part = fit(name, X[:45], labels(name, Y[:45]), **exact(name))
    Y[45:] = np.nan
    whole = fit(name, X, labels(name, Y), **exact(name))
    assert_same_scores(name, whole, X, scores(part, X))


def assert_same_objective(name, one, other):
    if name.startswith("margins"):
        assert one.trace_[-1].primal == pytest.approx(other.trace_[-1].primal, rel=1e-6)


@kinds(with_one_optimum)
def test_rows_without_weight_are_as_good_as_absent(name):
    X, Y = data(name)
    part = fit(name, X[:45], Y[:45], **exact(name))
    whole = fit(name, X, Y, np.r_[np.ones(45), np.zeros(15)], **exact(name))
    assert_same_scores(name, whole, X, scores(part, X))


@kinds(repeats)
def test_weights_of_rows_are_repetitions(name):
    X, Y = data(name)
    counts = np.random.default_rng(5).integers(1, 4, len(X))
    kept = np.repeat(np.arange(len(X)), counts)
    weighted = fit(name, X, Y, counts.astype(float), **exact(name))
    repeated = fit(name, X[kept], Y.iloc[kept] if hasattr(Y, "iloc") else Y[kept], **exact(name))
    assert_same_scores(name, weighted, X, scores(repeated, X))
    assert_same_objective(name, weighted, repeated)


@kinds(lambda name: weighs_entries(name) and has_labels(name) and is_fixed(name))
def test_an_entry_without_weight_is_unobserved(name):
    X, Y = table(name)
    hidden = np.random.default_rng(2).random(Y.shape) < 0.2
    whole = fit(name, X, np.where(hidden, np.nan, Y), **exact(name))
    stored = sp.csr_array((np.zeros(hidden.sum()), np.nonzero(hidden)), shape=Y.shape)
    for weights in (np.where(hidden, 0.0, 1.0), stored):
        found = fit(name, X, Y, None, weights, **exact(name))
        assert_same_scores(name, found, X, scores(whole, X))
        assert_same_objective(name, found, whole)


def weighs_entries_apart(name):
    return weighs_entries(name) and has_labels(name) and repeats(name)


@kinds(weighs_entries_apart)
def test_an_entry_of_weight_two_is_there_twice(name):
    X, Y = table(name)
    weights = np.random.default_rng(3).integers(0, 3, Y.shape).astype(float)
    once, twice = np.where(weights > 0, Y, np.nan), np.where(weights > 1, Y, np.nan)
    expected = scores(fit(name, np.vstack([X, X]), np.vstack([once, twice]), **exact(name)), X)
    stored = sp.coo_array((weights.ravel(), np.indices(Y.shape).reshape(2, -1)), shape=Y.shape)
    for given in (weights, stored):
        assert_same_scores(name, fit(name, X, Y, None, given, **exact(name)), X, expected)


@kinds(weighs_entries_apart)
def test_weights_of_rows_are_weights_of_all_their_entries(name):
    X, Y = table(name)
    of_rows = np.random.default_rng(3).uniform(0.5, 2.0, len(X))
    expected = scores(fit(name, X, Y, of_rows, **exact(name)), X)
    found = fit(name, X, Y, None, np.repeat(of_rows[:, None], 5, axis=1), **exact(name))
    assert_same_scores(name, found, X, expected)


@kinds(repeats)
def test_the_order_of_rows_and_of_labels_does_not_matter(name):
    X, Y = data(name)
    rows, whole = np.random.default_rng(1).permutation(60), fit(name, X, Y, **exact(name))
    if has_labels(name) and not is_coupled(name) and name not in NEEDS_NAMES:
        order = [2, 0, 3, 4, 1]
        found = fit(name, X[rows], Y[rows][:, order], **exact(name))
        assert_same_scores(name, found, X, scores(whole, X)[:, order])
    else:
        found = fit(name, X[rows], Y.iloc[rows] if hasattr(Y, "iloc") else Y[rows], **exact(name))
        assert_same_scores(name, found, X, scores(whole, X))


def is_distributed(name):
    """Return whether a kind fits every label separately."""
    return repeats(name) and has_labels(name) and not is_coupled(name) and not name.startswith("low rank")


@kinds(is_distributed)
def test_a_label_is_fitted_to_the_rows_in_which_it_is_observed(name):
    X, Y = data(name)
    whole = scores(fit(name, X, Y, **exact(name)), X)
    for label in (0, 3):
        seen = ~np.isnan(Y[:, label])
        alone = fit(name, X[seen], Y[seen][:, [label]], **exact(name))
        assert_same_scores(name, alone, X, whole[:, [label]])


def weighs_labels(name):
    """Return whether labels of kinds have weights by value; rows of trees and thresholds have one weight."""
    given = takes("class_weight")(name) and weighs_entries(name) and has_labels(name)
    return given and not is_tuned(name) and not name.startswith("tree")


def weighs_mistakes(name):
    """Return whether costs of kinds multiply losses; for margins they are the required margins."""
    is_closed = EVERY[name].get_params().get("penalty") == "ridge"  # a form without entry weights
    return weighs_labels(name) and not name.startswith("margins") and not is_closed


def _weighing(name, missed, false):
    if takes("false_negative_cost")(name):
        return {"false_negative_cost": missed, "false_positive_cost": false}
    return {"class_weight": [{0: no, 1: yes} for yes, no in zip(missed, false, strict=True)]}


@kinds(weighs_mistakes)
def test_costs_of_mistakes_are_weights_of_entries(name):
    X, Y = table(name)
    missed, false = [1, 2, 1, 3, 1], [1, 1, 0.5, 1, 4.0]
    found = fit(name, X, Y, **_weighing(name, missed, false))
    same = fit(name, X, Y, None, np.where(Y == 1, missed, false))
    np.testing.assert_allclose(scores(found, X), scores(same, X), rtol=0, atol=1e-6)
    half = fit(name, X, Y, None, np.where(Y == 1, 2, 4), **_weighing(name, [0.5] * 5, [0.25] * 5))
    np.testing.assert_allclose(scores(half, X), scores(fit(name, X, Y), X), rtol=0, atol=1e-6)


@kinds(lambda name: takes("flip_rates")(name) and has_labels(name) and name != "graph, label sets")
def test_flip_rates_are_corrected_targets(name, reloaded):
    X, Y = table(name)
    missed, false = np.full(5, 0.2), np.full(5, 0.1)
    found = fit(name, X, Y, flip_rates=(missed, false))
    same = fit(name, X, corrected_targets(LabelMatrix.from_any(Y), missed, false))
    np.testing.assert_array_equal(scores(found, X), scores(same, X))
    np.testing.assert_array_equal(reloaded(found).flip_rates, (missed, false))


def balanced(table, weights):
    """Return the weight of every entry as in scikit-learn, label by label."""
    found = np.ones(table.shape)
    for label, column in enumerate(table.T):
        for value in (0, 1):
            own, others = (weights[column == one].sum() for one in (value, 1 - value))
            found[column == value, label] = (own + others) / (2 * own)
    return found


@kinds(weighs_labels)
@pytest.mark.parametrize(
    "each", ["balanced", {1: 3.0}, {0: 0.5, 1: 2.0}, [{1: 2.0}, {}, {0: 3.0, 1: 1.0}, {}, {}]]
)
def test_weights_of_labels_are_weights_of_entries(name, each):
    X, Y = data(name)
    of_rows, own = np.arange(len(X)) % 3 + 1.0, np.random.default_rng(4).uniform(0.5, 2.0, Y.shape)
    if each == "balanced":
        given, weights = (of_rows,), balanced(Y, of_rows)
    else:
        both = [
            (one.get(0, 1.0), one.get(1, 1.0)) for one in (each if isinstance(each, list) else [each] * 5)
        ]
        given, weights = (of_rows, own), own * np.where(Y == 1, *np.array(both).T[::-1])
    found = scores(fit(name, X, Y, *given, class_weight=each), X)
    np.testing.assert_allclose(found, scores(fit(name, X, Y, of_rows, weights), X), rtol=0, atol=2e-3)


@kinds(lambda name: weighs_entries(name) and has_labels(name))
def test_what_is_given_a_label_goes_by_its_name(name, tmp_path):
    (X, Y), order = table(name), list("cadeb")
    frame, numbers = pd.DataFrame(Y, columns=NAMES), pd.Series([1.0, 4.0, 0.2, 1.0, 2.0], NAMES)
    entries = pd.DataFrame(np.random.default_rng(1).uniform(0.5, 2.0, Y.shape), columns=NAMES)
    costs = [one for one in ("false_negative_cost", "false_positive_cost") if takes(one)(name)]
    by_name, by_place = dict.fromkeys(costs, numbers[order]), dict.fromkeys(costs, numbers.to_numpy())
    if takes("flip_rates")(name):
        by_name["flip_rates"] = numbers[order] / 20, 0.0
        by_place["flip_rates"] = numbers.to_numpy() / 20, 0.0
    whole = fit(name, X, frame, None, entries[order], **by_name)
    expected = scores(fit(name, X, frame, None, entries.to_numpy(), **by_place), X)
    np.testing.assert_array_equal(scores(whole, X), expected)
    whole.save(tmp_path / "m.lw")
    for one in costs:
        np.testing.assert_array_equal(getattr(lw.load(tmp_path / "m.lw"), one), numbers)
    with pytest.raises(ValueError, match=r"entry_weight has 'fog', .* lacks the label 'b'"):
        model(name).fit(X, frame, entry_weight=entries.rename(columns={"b": "fog"}))


def covaries(name):
    return takes("label_covariance")(name) and has_labels(name) and repeats(name) and not is_coupled(name)


@kinds(lambda name: covaries(name) and "pruned" not in name)
def test_covariances_go_by_the_names_of_labels(name):
    (X, Y), order, root = table(name), [2, 0, 3, 4, 1], np.random.default_rng(2).normal(size=(5, 2))
    frame, dense = pd.DataFrame(Y, columns=NAMES), root @ root.T + 0.1 * np.eye(5)
    names = [NAMES[label] for label in order]
    for pair in (
        [LabelCovariance.dense(dense[np.ix_(o, o)], n) for o, n in ((range(5), NAMES), (order, names))],
        [LabelCovariance.low_rank(root[list(o)], 0.1, n) for o, n in ((range(5), NAMES), (order, names))],
    ):
        one, other = (fit(name, X, frame, label_covariance=R, **exact(name)) for R in pair)
        assert_same_scores(name, other, X, scores(one, X))


def is_smooth(name):
    """Return whether targets between 0 and 1 have the losses of both values, not of the more likely one."""
    return name.startswith("log_loss") or EVERY[name].get_params().get("loss") in (
        "squared_error",
        "log_loss",
    )


@kinds(
    lambda name: weighs_entries_apart(name) and name != "low rank, linear logistic"
)  # see test_soft_targets
def test_probable_labels_are_weighted_ones(name):
    X, _ = table(name)
    random = np.random.default_rng(5)
    P = 1 / (1 + np.exp(-X @ random.normal(size=(6, 5))))
    P[random.random(P.shape) < 0.3], P[0], P[random.random(P.shape) < 0.1] = 1.0, 0.5, np.nan
    own = random.integers(0, 3, P.shape).astype(float)
    found = fit(name, X, LabelMatrix.from_probabilities(P), None, own, **exact(name))
    there = np.where(np.isnan(P), np.nan, 1.0)
    if is_smooth(name):  # every row twice, with and without all labels
        given = np.vstack([X, X]), np.vstack([there, 1 - there])
        weights = np.nan_to_num(np.vstack([own * P, own * (1 - P)]), nan=1.0)
    else:
        given, weights = (X, there * (P > 0.5)), own * np.where(np.isnan(P), 1.0, np.abs(2 * P - 1))
    assert_same_scores(name, found, X, scores(fit(name, *given, None, weights, **exact(name)), X))


@kinds(lambda name: weighs_entries(name) and has_labels(name))
def test_weights_of_entries_are_checked(name):
    X, Y = table(name)
    weights, stored = np.ones(Y.shape), sp.csr_array(([-1.0], ([7], [2])), shape=Y.shape)
    with pytest.raises(ValueError, match=r"entry_weight has shape \(60, 4\), but there are 60 rows and 5"):
        model(name).fit(X, Y, entry_weight=weights[:, :4])
    for wrong, said in ((np.nan, "nan"), (-1.0, "-1"), (np.inf, "inf")):
        weights[7, 2] = wrong
        with pytest.raises(ValueError, match=f"entry_weight at row 7, label 2 is {said}"):
            model(name).fit(X, Y, entry_weight=weights)
    with pytest.raises(ValueError, match="entry_weight at row 7, label 2 is -1"):
        model(name).fit(X, Y, entry_weight=stored)


@kinds()
def test_weights_of_rows_are_checked(name):
    X, Y = data(name)
    for weights, said in (
        (np.zeros(60), "zero in every row"),
        (-np.ones(60), "sample_weight at row 0 is -1;"),
        (np.full(60, np.nan), "sample_weight at row 0 is nan;"),
        (np.ones(59), "sample_weight has shape"),
    ):
        with pytest.raises(ValueError, match=said):
            model(name).fit(X, Y, sample_weight=weights)


@kinds(lambda name: name not in CHOOSES_BY_ROUNDING)
def test_sparse_rows_are_dense_ones(name):
    X, Y = data(name)
    X = np.where(np.abs(X) < 0.4, 0, X)
    dense, sparse = fit(name, X, Y, **exact(name)), fit(name, sp.csr_array(X), Y, **exact(name))
    expected = scores(dense, X)
    for one, rows in ((dense, sp.csr_array(X)), (sparse, X), (sparse, sp.csr_matrix(X))):
        atol = 0.05 if name.startswith("graph") else 2e-3
        np.testing.assert_allclose(scores(one, rows), expected, rtol=1e-3, atol=atol)


@kinds(lambda name: has_labels(name) and not is_coupled(name))
def test_one_label(name):
    X, Y = table(name)
    for column in (labels(name, Y[:, :1]), *(() if name in NEEDS_NAMES else (sp.csr_array(Y[:, :1]),))):
        found = fit(name, X, column)
        assert found.predict(X).shape == scores(found, X).shape == (60, 1)


@kinds(lambda name: has_labels(name) and name != "tuned, top")
def test_labels_that_nobody_or_everybody_has(name):
    X, Y = table(name)
    Y[:, 1], Y[:, 3] = 0, 1
    found = fit(name, X, labels(name, Y))
    assert np.isfinite(scores(found, X)).all()
    assert not np.asarray(found.predict(X))[:, 1].any()
    assert np.asarray(found.predict(X))[:, 3].all()


@kinds(lambda name: has_labels(name) and not is_coupled(name) and name not in RANKS)
def test_a_label_that_nothing_tells_of_is_named_and_not_predicted(name, reloaded):
    X, Y = table(name)
    Y = Y.astype(float)
    Y[:, 2] = np.nan
    with pytest.warns(lw.UnobservedLabelWarning, match="Label (2|'c') has no observed entry in Y"):
        found = fit(name, X, labels(name, Y))
    assert np.isfinite(scores(found, X)).all()
    if name not in GRAPHS:  # whose scores of such a label are rounding, which may be positive
        assert not np.asarray(found.predict(X))[:, 2].any()
    assert found.unobserved_labels_.tolist() == [2]
    assert reloaded(found).unobserved_labels_.tolist() == [2]
    with pytest.raises(ValueError, match=r"Label (0|'a') has no observed entry in Y \(5 of 5 labels"):
        model(name).fit(X, labels(name, np.full(Y.shape, np.nan)))


@kinds(lambda name: has_labels(name) and is_fixed(name))
def test_one_row(name):
    X, Y = table(name)
    Y[0] = 1, 0, 0, 1, 0
    found = fit(name, X[:1], labels(name, Y[:1]))
    if name not in SHRINKS:
        np.testing.assert_array_equal(np.asarray(found.predict(X[:1])), Y[:1])
    assert np.isfinite(scores(found, X)).all()


def classes(X, n_classes):
    """Return a class per row, determined by the first feature."""
    return np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.3, 0.3] if n_classes == 3 else [0.0])]


def takes_classes(n_classes):
    def fits(name):
        of_labels = ("tuned, top", "calibrated, sets", "hierarchy")
        return not (name in of_labels or is_coupled(name) or (n_classes == 3 and is_tuned(name)))

    return kinds(fits)


def assert_of_classes(found, X, y, tmp_path):
    assert found.classes_.tolist() == sorted(set(y))
    found.save(tmp_path / "m.lw")
    again = lw.load(tmp_path / "m.lw")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    if found.predict(X).ndim == 1:
        assert type(found.predict(X).tolist()[0]) is type(y.tolist()[0])
        assert set(found.predict(X)) <= set(y)
        assert (found.predict(X) == y).mean() > 0.6


@takes_classes(2)
def test_two_classes_are_one_score(name, tmp_path):
    X, _ = data(name)
    y = classes(X, 2)
    found = fit(name, X, y)
    assert_of_classes(found, X, y, tmp_path)
    assert found.decision_function(X).shape == (60,)
    np.testing.assert_array_equal(
        found.predict(X), found.classes_[(found.decision_function(X) > 0).astype(int)]
    )
    if hasattr(found, "predict_proba"):
        np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1)
        assert found.predict_proba(X).shape == (60, 2)


@takes_classes(3)
def test_several_classes_have_a_score_each(name, tmp_path):
    X, _ = data(name)
    y = classes(X, 3)
    codes = np.unique(y, return_inverse=True)[1]
    numbers = (np.array([3, -1, 7], object)[codes], np.array([3.0, -1.0, 7.0])[codes])
    for kind in (y, y.astype(object), pd.Series(y), y.tolist(), *numbers):
        found = fit(name, X, kind)
        assert_of_classes(found, X, np.asarray(kind), tmp_path)
        assert found.decision_function(X).shape == (60, 3)


@kinds(lambda name: with_one_optimum(name) and not is_coupled(name))
def test_rows_of_unknown_class_are_as_good_as_absent(name):
    X, _ = data(name)
    for n_classes in (2, 3):
        y = classes(X, n_classes).astype(object)
        part = scores(fit(name, X[:45], y[:45].astype(str), **exact(name)), X)
        no_weight = fit(name, X, y.astype(str), np.r_[np.ones(45), np.zeros(15)], **exact(name))
        assert_same_scores(name, no_weight, X, part)
        for unknown in (None, np.nan, pd.NA):
            y[45:] = unknown
            assert_same_scores(name, fit(name, X, y, **exact(name)), X, part)
        assert_same_scores(name, fit(name, X, pd.Series(y, dtype="category"), **exact(name)), X, part)


def weighs_classes(name):
    """Return whether classes of kinds have weights; kernels of paths are fitted with a wide tolerance."""
    is_wide = name == "low rank, path of kernels"
    return takes("class_weight")(name) and not (is_tuned(name) or is_coupled(name) or is_wide)


@kinds(weighs_classes)
@pytest.mark.parametrize("each", ["balanced", {"ash": 0.5, "oak": 4.0}], ids=["balanced", "dict"])
def test_weights_of_classes_are_weights_of_rows(name, each):
    X, _ = data(name)
    fine = {} if learns(name) else exact(name)
    for n_classes in (2, 3):
        y = classes(X + np.random.default_rng(6).normal(size=X.shape), n_classes)
        given = each if each == "balanced" else {one: each.get(one, 1.0) for one in set(y)}
        by_hand = scores(fit(name, X, y, compute_sample_weight(given, y), **fine), X)
        found = scores(fit(name, X, y, class_weight=given, **fine), X)
        np.testing.assert_allclose(found, by_hand, rtol=0.01 * learns(name), atol=2e-3)
        assert np.abs(found - scores(fit(name, X, y), X)).max() > 1e-3


def spoiled(value):
    return lambda X, Y: (np.where(X[3, 1] == X, value, X), Y)


REFUSED = {
    "a feature that is missing": (spoiled(np.nan), "NaN at row 3, column 1"),
    "a feature that is infinite": (spoiled(np.inf), "infinity at row 3, column 1"),
    "a row too few": (lambda X, Y: (X[:-1], Y), "X has 59 rows but y has 60|inconsistent numbers of samples"),
    "no row": (lambda X, Y: (X[:0], Y[:0]), "0 sample|X has 0 rows"),
    "no label": (lambda X, Y: (X, Y[:, :0]), "Y has no labels"),
    "a label that is 7": (lambda X, Y: (X, Y + 7 * (Y[2, 1] == Y)), "row \\d+, label .* is [78]"),
    "a label that is a half": (lambda X, Y: (X, Y / 2), "0.5"),
    "sparse labels that are 2": (
        lambda X, Y: (X, sp.csr_array(2 * Y)),
        "Stored entries of a sparse Y must be 1|2",
    ),
    "labels that are words": (lambda X, Y: (X, np.full((60, 5), "a")), "Use 0/1"),
    "one class": (lambda X, Y: (X, np.zeros(60)), "one class only|at least 2 classes"),
    "no class": (lambda X, Y: (X, [None] * 60), "no observed"),
    "three dimensions": (lambda X, Y: (X, Y[:, :, None]), "dim 3"),
    "words for features": (lambda X, Y: (X.astype(str) + "a", Y), "a'|entries that are not numbers"),
}
# which count the rows of that fold
FIRST_IN_A_FOLD = ("tuned", "tuned for all labels", "tuned, top", "tuned, by label", "tuned, probabilities")
FIRST_IN_A_FOLD += ("conformal", "calibrated", "calibrated, steps", "calibrated, sets")


@kinds(has_labels)
def test_data_that_make_no_sense_are_refused_in_one_sentence(name):
    for change, said in REFUSED.values():
        if name == "automatic" and "NaN" in said:
            continue  # imputed by the means of features
        X, Y = change(*table(name))
        words = said.replace("row 3", r"row \d+") if name in FIRST_IN_A_FOLD else said
        with pytest.raises(ValueError, match=words) as refusal:
            model(name).fit(X, labels(name, Y) if isinstance(Y, np.ndarray) and Y.ndim == 2 else Y)
        assert "\n" not in str(refusal.value) or "sample" in str(refusal.value)
