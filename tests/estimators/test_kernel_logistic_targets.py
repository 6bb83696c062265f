"""Targets of every form for KernelLogisticClassifier: classes, partial classes, many labels, missing ones."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from labelweave import KernelLogisticClassifier, Taxonomy
from labelweave.metrics import log_loss

TREE = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c", "d"], "z": ["e"]})


def data(n=50, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    scores = 2 * X @ random.normal(size=(4, 5)) + random.normal(size=(n, 5))
    return X, np.array(list("abcde"))[scores.argmax(axis=1)], (scores > 0.5).astype(float)


def exact(**options):
    return KernelLogisticClassifier(**{"hyperparameters": "fixed", "tol": 1e-13, "gamma": 0.2} | options)


def assert_same(model, other, X, atol=1e-7):
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=atol)


class TestClasses:
    @pytest.mark.parametrize(
        "names",
        [
            np.array([3, -1, 7, 10, 2]),
            np.array([3.0, -1.0, 7.0, 10.0, 2.0]),
            np.array(["a", "b", "c", "d", "e"]),
            np.array(["a", "b", "c", "d", "e"], dtype=object),
            np.array([3, -1, 7, 10, 2], dtype=object),
            np.array([False, True, False, True, True]),
            np.array([3, 1, 7, 10, 2], dtype=np.uint8),
        ],
        ids=lambda names: str(names.dtype) + str(names[0]),
    )
    def test_types(self, names):
        X, y, _ = data()
        y = names[np.searchsorted(list("abcde"), y)]
        model = exact().fit(X, y)
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        predicted = model.predict(X)
        assert type(predicted.tolist()[0]) is type(y.tolist()[0])
        assert set(predicted) <= set(y)
        assert np.mean(predicted == y) > 0.5
        assert model.predict_proba(X).shape == (len(X), len(model.classes_))
        assert_same(exact().fit(X, list(y)), model, X)
        assert_same(exact().fit(X, pd.Series(y)), model, X)

    def test_two_classes(self):
        X, y, _ = data()
        model = exact().fit(X, y == "a")
        P = model.predict_proba(X)
        assert model.decision_function(X).shape == (len(X),)
        assert P.shape == (len(X), 2)
        np.testing.assert_allclose(np.log(P[:, 1] / P[:, 0]), model.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), P[:, 1] > P[:, 0])

    def test_a_column_of_classes(self):
        X, y, _ = data()
        with pytest.warns(UserWarning, match="column-vector"):
            model = exact().fit(X, y[:, None])
        assert_same(model, exact().fit(X, y), X)

    def test_one_row_a_class(self):
        X, _, _ = data(n=6)
        model = exact(scale=1e4).fit(X, np.arange(6))
        np.testing.assert_array_equal(model.predict(X), np.arange(6))
        assert KernelLogisticClassifier().fit(X, np.arange(6)).predict_proba(X).shape == (6, 6)

    @pytest.mark.parametrize("kind", ["none", "nan", "NA", "nullable", "category"])
    @pytest.mark.parametrize("options", [{}, {"hyperparameters": "learn", "max_learning_iter": 3}])
    @pytest.mark.parametrize("n_classes", [2, 5])
    def test_unobserved_rows_are_left_out(self, n_classes, options, kind):
        X, y, _ = data()
        codes = np.searchsorted(list("abcde"), y) % n_classes
        away = np.arange(len(X)) % 5 == 0
        hidden = {
            "none": lambda: [None if gone else code for gone, code in zip(away, codes, strict=True)],
            "nan": lambda: np.where(away, np.nan, codes),
            "NA": lambda: np.where(away, pd.NA, codes.astype(object)),
            "nullable": lambda: pd.Series(codes, dtype="Int64").mask(away),
            "category": lambda: pd.Series(codes).astype(object).mask(away).astype("category"),
        }[kind]()
        model = exact(**options).fit(X, hidden)
        other = exact(**options).fit(X[~away], codes[~away])
        np.testing.assert_array_equal(model.classes_, np.arange(n_classes))
        np.testing.assert_allclose(
            model.predict_proba(X), other.predict_proba(X), atol=2e-4 if options else 1e-7
        )
        assert model.hyperparameters_ == pytest.approx(other.hyperparameters_, rel=1e-3)

    def test_weights_of_zero_leave_rows_out(self):
        X, y, _ = data()
        away = np.arange(len(X)) % 5 == 0
        model = exact(gamma=0.1).fit(X, y, sample_weight=1.0 - away)
        assert_same(model, exact(gamma=0.1).fit(X[~away], y[~away]), X)


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
        assert exact(taxonomy=tree, tie="level").fit(X, some).classes_.tolist() == [0.0, 1.0, 2.0, 3.0]

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
            KernelLogisticClassifier(taxonomy=tree, max_learning_iter=2).fit(
                X, np.where(away, name, y.astype(object))
            )
            for name in ("root", None)
        ]
        assert learned[0].hyperparameters_ == learned[1].hyperparameters_

    def test_partial_rows_raise_the_likelihood_of_what_is_known(self):
        """The optimum of the marginal likelihood beats the one without the partial rows, on all rows."""
        X, y, _ = data()
        coarse = np.arange(len(X)) % 2 == 0
        parents = np.array(TREE.parents_of(y.tolist()), dtype=object)
        partial = np.where(coarse, parents, y)
        options = {"taxonomy": TREE, "scale": 1.0}
        em = exact(**options).fit(X, partial)
        without = exact(**options).fit(X, np.where(coarse, None, y.astype(object)))
        assert penalised(em, X, partial) < penalised(without, X, partial) - 1e-3
        assert em.converged_

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


def penalised(model, X, partial):
    """Write out the objective: the marginal likelihood of what is known, and the norm."""
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
    def test_missing_entries_are_left_out(self):
        X, _, Y = data()
        Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
        model = exact().fit(X, Y)
        assert model.predict_proba(X).shape == Y.shape
        for label, column in enumerate(Y.T):
            seen = ~np.isnan(column)
            alone = exact().fit(X[seen], column[seen])
            np.testing.assert_allclose(
                model.predict_proba(X)[:, label], alone.predict_proba(X)[:, 1], atol=1e-6
            )

    def test_learning_with_missing_entries(self):
        X, _, Y = data()
        Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
        Y[::6] = np.nan
        for options in ({}, {"tie": "class"}, {"coupling": 2}):
            model = KernelLogisticClassifier(max_learning_iter=3, **options).fit(X, Y)
            values = [record.value for record in model.learning_trace_]
            assert values[-1] < values[0]

    def test_scales_are_named_by_labels(self):
        X, _, Y = data()
        frame = pd.DataFrame(Y, columns=["mild", "hot", "sweet", "sour", "salty"])
        assert list(exact().fit(X, frame).hyperparameters_) == ["scale", "gamma"]
        assert "scale[mild]" in exact(tie="class").fit(X, frame).hyperparameters_

    def test_one_label(self):
        X, _, Y = data()
        model = exact().fit(X, Y[:, :1])
        classes = exact().fit(X, Y[:, 0])
        assert model.predict_proba(X).shape == (len(X), 1)
        np.testing.assert_allclose(model.predict_proba(X)[:, 0], classes.predict_proba(X)[:, 1])
        assert model.predict(X).shape == (len(X), 1)

    def test_a_label_that_is_never_there(self):
        X, _, Y = data()
        Y[:, 2] = 0
        model = KernelLogisticClassifier(max_learning_iter=3).fit(X, Y)
        assert model.predict_proba(X)[:, 2].max() < 0.2

    def test_coupled_labels_are_learned(self):
        """Copies of labels are found by a coupling, which lowers the loss of rarely observed ones."""
        X, _, Y = data(n=120)
        Y = np.hstack([Y[:, :2], Y[:, :2]])
        hidden = Y.copy()
        hidden[30:, 2:] = np.nan
        coupled = KernelLogisticClassifier(coupling=2, max_learning_iter=15).fit(X, hidden)
        flat = KernelLogisticClassifier(max_learning_iter=15).fit(X, hidden)
        losses = [log_loss(Y[30:, 2:], model.predict_proba(X[30:])[:, 2:]) for model in (coupled, flat)]
        assert losses[0] < losses[1]
        B = np.array([v for name, v in coupled.hyperparameters_.items() if "coupling" in name]).reshape(4, 2)
        R = B @ B.T
        assert R[0, 2] / np.sqrt(R[0, 0] * R[2, 2]) > 0.7

    def test_top_labels(self):
        X, _, Y = data()
        model = exact().fit(X, Y)
        labels, scores = model.predict_top(X, 2)
        np.testing.assert_array_equal(scores[:, 0], model.decision_function(X).max(axis=1))
        np.testing.assert_array_equal(labels[:, 0], model.decision_function(X).argmax(axis=1))
