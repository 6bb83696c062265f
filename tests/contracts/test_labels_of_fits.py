"""What every model makes of labels and weights, in whatever form they come: missing, repeated, named, one."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import EVERY, NEEDS_NAMES

import labelweave as lw
from labelweave import LabelMatrix
from small_models import (
    assert_same_scores,
    data,
    exact,
    fit,
    is_coupled,
    kinds,
    labels,
    learns,
    model,
    scores,
    weighs_entries,
    with_one_optimum,
)

NAMES = list("abcde")
ONE_CLASS = ("logistic, tree", "zero-shot")  # whose data have one class a row


SHRINKS = ("low rank", "low rank, logistic", "low rank, pivots")  # a row to nothing, at the usual penalty
RANKS = ("tuned, top", "calibrated, sets")  # the best labels of a row, whatever is known of them


NEARLY_NOTHING = (
    "low rank, logistic", "low rank, linear logistic", "low rank, pivots", "low rank, path of kernels",
    "graph, given", "graph, proximal", "graph, scores",
)  # fmt: skip
"""Kinds whose scores of such a label are rounding, which may lie above their threshold."""


CHOOSES_BY_ROUNDING = (
    "margins, learned", "graph, given", "graph, proximal", "graph, scores", "automatic", "zero-shot",
)  # fmt: skip
"""Kinds that choose otherwise where products of sparse rows round otherwise than those of dense ones."""


def has_labels(name):
    return name not in ONE_CLASS


def is_fixed(name):
    """Say whether a kind has one problem, whatever folds, draws and starts there are."""
    return with_one_optimum(name) and not learns(name) and name != "tree"


def repeats(name):
    return is_fixed(name) and not name.startswith(
        "graph"
    )  # whose gap is too wide to tell, see test_label_graph


def table(name):
    """Give rows and labels of a kind, all known, as an array."""
    X, Y = data(name)
    return X, np.nan_to_num(np.asarray(Y)).astype(int)


@kinds(has_labels)
def test_labels_in_any_form_are_the_same_and_come_back_in_it(name, tmp_path):
    X, Y = table(name)
    whole = fit(name, X, labels(name, Y))
    expected, sets = scores(whole, X), np.asarray(whole.predict(X))
    rows = pd.DataFrame(X, index=[f"row {row}" for row in range(len(X))])
    tags = [[NAMES[label] for label in np.flatnonzero(row)] for row in Y]
    for form in (
        pd.DataFrame(Y, columns=NAMES),
        LabelMatrix(sp.csr_array(Y), None, NAMES),
        tags,
        *(() if name in NEEDS_NAMES else (Y, sp.csr_array(Y), 2 * Y - 1, Y > 0, Y.astype(float), Y.tolist())),
    ):
        found = fit(name, X, form)
        np.testing.assert_array_equal(scores(found, X), expected)
        assert_in_form(found, rows, form, sets)
        found.save(tmp_path / "m.lw")
        assert_in_form(lw.load(tmp_path / "m.lw"), rows, form, sets)


def assert_in_form(found, rows, form, sets):
    """Check that label sets come in the form of the training labels, with their names."""
    has_names = isinstance(form, (pd.DataFrame, LabelMatrix)) or (isinstance(form, list) and len(form[0]) < 5)
    assert found.classes_.tolist() == (NAMES if has_names else list(range(5)))
    assert found.label_names_.tolist() == list(map(str, found.classes_))
    predicted = found.predict(rows.to_numpy())
    if isinstance(form, pd.DataFrame):
        assert list(predicted.columns) == NAMES
        assert list(found.predict(rows).index) == list(rows.index)
    elif isinstance(form, list) and has_names:
        assert predicted.tolist() == [[NAMES[k] for k in np.flatnonzero(row)] for row in sets]
        return
    elif isinstance(form, (LabelMatrix, sp.csr_array)):
        assert sp.issparse(predicted)
        predicted = predicted.toarray()
    else:
        assert isinstance(predicted, np.ndarray)
        sets = 2 * sets - 1 if np.min(form) < 0 else sets
    np.testing.assert_array_equal(np.asarray(predicted), sets)


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
    np.testing.assert_allclose(scores(fit(name, X, whole), X), expected, rtol=0, atol=1e-9)


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
        (np.zeros(60), "zero|is 0 in every row"),
        (-np.ones(60), "[Nn]egative"),
        (np.full(60, np.nan), "NaN"),
        (np.ones(59), "sample_weight|59"),
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
def test_a_label_that_nothing_tells_of_is_named_and_not_predicted(name, tmp_path):
    X, Y = table(name)
    Y = Y.astype(float)
    Y[:, 2] = np.nan
    with pytest.warns(lw.UnobservedLabelWarning, match="Label (2|'c') has no observed entry in Y"):
        found = fit(name, X, labels(name, Y))
    assert np.isfinite(scores(found, X)).all()
    if name not in NEARLY_NOTHING:
        assert not np.asarray(found.predict(X))[:, 2].any()
    assert found.unobserved_labels_.tolist() == [2]
    found.save(tmp_path / "m.lw")
    assert lw.load(tmp_path / "m.lw").unobserved_labels_.tolist() == [2]
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
    """Give a class a row, told by the first feature."""
    return np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.3, 0.3] if n_classes == 3 else [0.0])]


def takes_classes(n_classes):
    def fits(name):
        is_tuned = EVERY[name].get_params().get("threshold") in ("f1", "macro_f1") or name.startswith("tuned")
        of_labels = ("tuned, top", "calibrated, sets", "hierarchy")
        return not (name in of_labels or is_coupled(name) or (n_classes == 3 and is_tuned))

    return kinds(fits)


def assert_of_classes(found, X, y, tmp_path):
    assert found.classes_.tolist() == sorted(set(y))
    found.save(tmp_path / "m.lw")
    again = lw.load(tmp_path / "m.lw")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    if found.predict(X).ndim == 1:
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


@takes_classes(3)
def test_several_classes_have_a_score_each(name, tmp_path):
    X, _ = data(name)
    y = classes(X, 3)
    for kind in (y, y.astype(object), pd.Series(y)):
        found = fit(name, X, kind)
        assert_of_classes(found, X, y, tmp_path)
        assert found.decision_function(X).shape == (60, 3)


@kinds(lambda name: with_one_optimum(name) and not is_coupled(name))
def test_rows_of_unknown_class_are_as_good_as_absent(name):
    X, _ = data(name)
    for n_classes in (2, 3):
        y = classes(X, n_classes).astype(object)
        part = fit(name, X[:45], y[:45].astype(str), **exact(name))
        for unknown in (None, np.nan):
            y[45:] = unknown
            assert_same_scores(name, fit(name, X, y, **exact(name)), X, scores(part, X))


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
    "sparse labels that are 2": (lambda X, Y: (X, sp.csr_array(2 * Y)), "stored entries are 1|2"),
    "labels that are words": (lambda X, Y: (X, np.full((60, 5), "a")), "Labels are 0/1"),
    "one class": (lambda X, Y: (X, np.zeros(60)), "one class only|at least 2 classes"),
    "no class": (lambda X, Y: (X, [None] * 60), "no class that is observed|no observed"),
    "three dimensions": (lambda X, Y: (X, Y[:, :, None]), "dim 3"),
    "words for features": (lambda X, Y: (X.astype(str) + "a", Y), "a'|entries that are no numbers"),
}
FIRST_IN_A_FOLD = ("tuned", "tuned for all labels", "tuned, top", "conformal")
FIRST_IN_A_FOLD += ("calibrated", "calibrated, steps", "calibrated, sets")  # which count rows of that fold


@kinds(has_labels)
def test_data_that_make_no_sense_are_refused_in_one_sentence(name):
    for change, said in REFUSED.values():
        if name == "automatic" and "NaN" in said:
            continue  # means of features serve
        X, Y = change(*table(name))
        words = said.replace("row 3", r"row \d+") if name in FIRST_IN_A_FOLD else said
        with pytest.raises(ValueError, match=words) as refusal:
            model(name).fit(X, labels(name, Y) if isinstance(Y, np.ndarray) and Y.ndim == 2 else Y)
        assert "\n" not in str(refusal.value) or "sample" in str(refusal.value)
