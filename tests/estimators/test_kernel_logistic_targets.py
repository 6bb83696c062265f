"""Targets of every type for KernelLogisticClassifier: classes, partial classes, many labels, missing ones."""

import numpy as np
import pandas as pd
import pytest
from attacks.small_fits import grouped
from scipy.special import log_softmax

from drawn import draw_classes_and_labels as data
from labelweave import HyperparameterSearch, KernelLogisticClassifier, Taxonomy
from labelweave.metrics import log_loss

TREE = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c", "d"], "z": ["e"]})


def exact(**options):
    return KernelLogisticClassifier(**{"hyperparameters": "fixed", "tol": 1e-13, "gamma": 0.2} | options)


def assert_same(model, other, X, atol=1e-7):
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=atol)


class TestClasses:
    def test_one_row_a_class(self):
        X, _, _ = data(n=6)
        model = exact(scale=1e4).fit(X, np.arange(6))
        np.testing.assert_array_equal(model.predict(X), np.arange(6))
        assert KernelLogisticClassifier().fit(X, np.arange(6)).predict_proba(X).shape == (6, 6)

    def test_rows_of_unknown_class_are_omitted_of_searches(self):
        X, y, _ = data()
        away = np.arange(len(X)) % 5 == 0
        options = {"hyperparameters": HyperparameterSearch(max_learning_iter=3)}
        model = exact(**options).fit(X, np.where(away, None, y.astype(object)))
        other = exact(**options).fit(X[~away], y[~away])
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=2e-4)
        assert model.hyperparameters_ == pytest.approx(other.hyperparameters_, rel=1e-3)


class TestTaxonomies:
    def test_numbers_name_nodes(self):
        X, y, _ = data()
        tree = Taxonomy.from_nested({"x": ["0", "1"], "y": ["2", "3"], "z": ["4"]})
        codes = np.searchsorted(list("abcde"), y)
        text = exact(taxonomy=tree).fit(X, codes.astype(str))
        for numbers in (codes, codes.astype(float), codes.astype(object)):
            model = exact(taxonomy=tree, decision="best_parent").fit(X, numbers)
            np.testing.assert_allclose(model.predict_proba(X), text.predict_proba(X), atol=1e-7)
            assert type(model.predict(X).tolist()[0]) is type(numbers.tolist()[0])
        some = np.where(codes == 4, np.nan, codes.astype(float))
        assert exact(taxonomy=tree).fit(X, some).classes_.tolist() == [0.0, 1.0, 2.0, 3.0]

    def test_an_inner_node_of_one_leaf_is_that_leaf(self):
        X, y, _ = data()
        partial = np.where(y == "e", "z", y)
        assert_same(exact(taxonomy=TREE).fit(X, partial), exact(taxonomy=TREE).fit(X, y), X)

    def test_the_root_says_nothing(self):
        X, y, _ = data()
        tree = Taxonomy.from_nested({"root": {"x": ["a", "b"], "y": ["c", "d"], "z": ["e"]}})
        away = np.arange(len(X)) % 4 == 0
        known = exact(taxonomy=tree).fit(X, np.where(away, None, y.astype(object)))
        named = exact(taxonomy=tree).fit(X, np.where(away, "root", y))
        assert_same(named, known, X, atol=1e-5)
        learned = [
            grouped(KernelLogisticClassifier, taxonomy=tree, max_learning_iter=2).fit(
                X, np.where(away, name, y.astype(object))
            )
            for name in ("root", None)
        ]
        assert learned[0].hyperparameters_ == learned[1].hyperparameters_

    def test_partial_rows_raise_the_likelihood_of_what_is_known(self):
        """The optimum of the marginal likelihood is better than without the partial rows, on all rows."""
        X, y, _ = data()
        coarse = np.arange(len(X)) % 2 == 0
        parents = np.array(TREE.parents_of(y.tolist()), dtype=object)
        partial = np.where(coarse, parents, y)
        options = {"taxonomy": TREE, "scale": 1.0}
        em = exact(**options).fit(X, partial)
        without = exact(**options).fit(X, np.where(coarse, None, y.astype(object)))
        assert penalized(em, X, partial) < penalized(without, X, partial) - 1e-3
        assert (em.status_, em.converged_) == ("settled", False)  # which is not convex
        assert em.duality_gap_ <= em.tol
        assert without.converged_

    def test_partial_rows_help(self):
        X, y, _ = data(n=300)
        train, test = slice(0, 150), slice(150, None)
        coarse = np.arange(150) % 10 != 0
        parents = np.array(TREE.parents_of(y[train].tolist()), dtype=object)
        options = {"taxonomy": TREE, "tol": 1e-4}
        em = exact(**options).fit(X[train], np.where(coarse, parents, y[train]))
        without = exact(**options).fit(X[train], np.where(coarse, None, y[train].astype(object)))
        assert em.score(X[test], y[test]) > without.score(X[test], y[test])

    def test_leaves_that_nobody_named(self):
        """A row at an inner node makes classes of all leaves below it."""
        X, y, _ = data()
        known = np.isin(y, ["a", "c"])
        partial = np.where(known, y, np.array(TREE.parents_of(y.tolist())))
        model = exact(taxonomy=TREE, decision="least_expected_loss").fit(X, partial)
        assert model.classes_.tolist() == list("abcde")
        assert set(model.predict(X)) <= set("abcde")

    def test_nothing_but_inner_nodes(self):
        X, y, _ = data()
        parents = np.array(TREE.parents_of(y.tolist()))
        model = KernelLogisticClassifier(taxonomy=TREE).fit(X, parents)
        P = model.predict_proba(X)
        np.testing.assert_allclose(P[:, 0], P[:, 1], atol=1e-6)
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert np.mean(np.array(list("xxyyz"))[P.argmax(axis=1)] == parents) > 0.7

    def test_labels_of_a_tree(self):
        X, y, _ = data()
        nodes = list("xyzabcde")
        Y = TREE.under(nodes, y.tolist()).toarray().T
        model = exact(taxonomy=TREE).fit(X, pd.DataFrame(Y, columns=nodes))
        assert list(model.predict(X).columns) == nodes
        assert model.predict_proba(X).shape == (len(X), 8)


def penalized(model, X, partial):
    """Compute the objective: the marginal likelihood of the observed part, and the norm."""
    scores = np.log(model.predict_proba(X))
    logs = log_softmax(scores, axis=1)
    loss = 0.0
    for row, name in zip(logs, partial, strict=True):
        leaves = TREE.leaves_below(name)
        loss -= np.logaddexp.reduce(row[np.isin(model.classes_, leaves)])
    raw = model.decision_function(X)
    dual = np.zeros_like(raw)
    dual[model.support_] = model.dual_coef_
    return loss + 0.5 * np.sum(dual * raw)


class TestManyLabels:
    def test_learning_with_missing_entries(self):
        X, _, Y = data()
        Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
        Y[::6] = np.nan
        for options in ({}, {"tie": "class"}, {"label_covariance": 2}):
            model = grouped(KernelLogisticClassifier, max_learning_iter=3, **options).fit(X, Y)
            values = [record.value for record in model.learning_trace_]
            assert values[-1] < values[0]

    def test_scales_are_named_by_labels(self):
        X, _, Y = data()
        frame = pd.DataFrame(Y, columns=["mild", "hot", "sweet", "sour", "salty"])
        assert list(exact().fit(X, frame).hyperparameters_) == ["scale", "gamma"]
        search = HyperparameterSearch(max_learning_iter=1, tie="class")
        assert "scale[mild]" in exact(hyperparameters=search).fit(X, frame).hyperparameters_

    def test_coupled_labels_are_learned(self):
        """A learned covariance finds copies of labels, and lowers the loss of rarely observed ones."""
        X, _, Y = data(n=120)
        Y = np.hstack([Y[:, :2], Y[:, :2]])
        hidden = Y.copy()
        hidden[30:, 2:] = np.nan
        coupled = grouped(KernelLogisticClassifier, label_covariance=2, max_learning_iter=15).fit(X, hidden)
        flat = grouped(KernelLogisticClassifier, max_learning_iter=15).fit(X, hidden)
        losses = [log_loss(Y[30:, 2:], model.predict_proba(X[30:])[:, 2:]) for model in (coupled, flat)]
        assert losses[0] < losses[1]
        B = np.array([v for name, v in coupled.hyperparameters_.items() if "coupling" in name]).reshape(4, 2)
        R = B @ B.T
        assert R[0, 2] / np.sqrt(R[0, 0] * R[2, 2]) > 0.7
