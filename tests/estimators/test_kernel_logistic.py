"""Special cases of KernelLogisticClassifier, and the effect of its hyperparameters."""

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.small_fits import grouped
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold

from labelweave import HyperparameterSearch, KernelLogisticClassifier, LabelCovariance, Taxonomy
from labelweave.features import LinearKernel, RBFKernel
from labelweave.postprocessing import best_parent, least_expected_loss, most_probable, rejected

TREE = {"x": ["a", "b"], "y": ["c", "d"]}


def data(n=60, n_classes=4, seed=0):
    X, codes = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        class_sep=0.7, random_state=seed,
    )  # fmt: skip
    return X, np.array(list("abcdefgh"))[codes]


def exact(kernel="rbf", tie=None, **options):
    """Return the model with fixed hyperparameters, fitted to the last digits."""
    kept = "fixed" if tie is None else HyperparameterSearch(max_learning_iter=1, tie=tie)
    options = {"hyperparameters": kept, "tol": 1e-13, "gamma": 0.2} | options
    return KernelLogisticClassifier(kernel, **options)


class TestAgainstLogisticRegression:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
    def test_linear_kernel(self, scale, n_classes):
        X, y = data(n_classes=n_classes)
        ours = exact("linear", scale=scale, intercept_variance=0.0).fit(X, y)
        theirs = LogisticRegression(C=scale, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
        assert ours.decision_function(X).shape == theirs.decision_function(X).shape

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_intercepts_are_a_constant_feature(self, n_classes):
        X, y = data(n_classes=n_classes)
        ours = exact("linear", scale=2.0, intercept_variance=18.0).fit(X, y)
        wider = np.hstack([X, np.full((len(X), 1), 3.0)])
        theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(wider, y)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(wider), atol=1e-6)


class TestReductions:
    @pytest.mark.parametrize("hyperparameters", ["fixed", "learn"])
    def test_precomputed_kernel(self, hyperparameters):
        X, y = data()
        K = rbf_kernel(X, gamma=0.2)
        named = exact(intercept_variance=0.5).fit(X, y)
        given = exact("precomputed", intercept_variance=0.5).fit(K, y)
        np.testing.assert_allclose(named.predict_proba(X[:9]), given.predict_proba(K[:9]), atol=1e-7)
        sparse = exact("precomputed", hyperparameters=hyperparameters).fit(sp.csr_array(K), y)
        dense = exact("precomputed", hyperparameters=hyperparameters).fit(K, y)
        np.testing.assert_array_equal(sparse.predict_proba(sp.csr_array(K)), dense.predict_proba(K))

    @pytest.mark.parametrize(
        ("options", "other", "atol"),
        [
            ({"taxonomy": Taxonomy([], nodes=list("abcd"))}, {}, 1e-7),  # leaves under no node are flat
            ({"taxonomy": {"root": list("abcd")}}, {}, 1e-6),
            # ties only determine what is learned: before that all are one model
            *(
                ({"taxonomy": TREE, "tie": tie}, {"taxonomy": TREE}, 1e-6)
                for tie in ("shared", "scale", "class", "level", "subtree", ("class", "level"))
            ),
        ],
        ids=str,
    )
    def test_priors_that_are_the_same(self, options, other, atol):
        X, y = data()
        found, expected = exact(**options).fit(X, y), exact(**other).fit(X, y)
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=atol)

    def test_taxonomy_is_its_covariance(self):
        X, y = data()
        tree = exact(taxonomy=TREE).fit(X, y)
        covariance = LabelCovariance.from_taxonomy(Taxonomy.from_any(TREE), list("abcd"))
        for given in (covariance, covariance.to_dense(), Taxonomy.from_any(TREE)):
            other = exact(label_covariance=given).fit(X, y)
            np.testing.assert_allclose(other.predict_proba(X), tree.predict_proba(X), atol=1e-6)

    @pytest.mark.parametrize("options", [{}, {"taxonomy": TREE, "tie": "level"}, {"tie": "class"}])
    def test_low_rank_of_all_rows_is_exact(self, options):
        X, y = data()
        low, whole = exact(kernel_rank=len(X), **options).fit(X, y), exact(**options).fit(X, y)
        np.testing.assert_allclose(low.predict_proba(X), whole.predict_proba(X), atol=1e-4)

    def test_low_rank_keeps_few_rows(self):
        X, y = data(n=200)
        low, whole = exact(kernel_rank=30, tol=1e-6).fit(X, y), exact(tol=1e-6).fit(X, y)
        assert len(low.support_) == 30
        assert np.mean(low.predict(X) == whole.predict(X)) > 0.8

    def test_single_precision_rows(self):
        X, y = data()
        single = exact(hyperparameters="learn").fit(X.astype(np.float32), y)
        double = exact(hyperparameters="learn").fit(X.astype(np.float32).astype(float), y)
        assert single.hyperparameters_ == pytest.approx(double.hyperparameters_, rel=1e-2)

    def test_a_two_class_tree_is_two_functions(self):
        X, y = data(n_classes=2)
        tree = exact(taxonomy=["a", "b"], scale=1.0).fit(X, y)
        flat = exact(scale=2.0, intercept_variance=2.0).fit(X, y)
        np.testing.assert_allclose(tree.predict_proba(X), flat.predict_proba(X), atol=1e-6)
        assert tree.decision_function(X).shape == (len(X),)
        np.testing.assert_array_equal(tree.predict(X), flat.predict(X))
        assert tree.predict_top(X, 1)[1].shape == (len(X), 1)
        with pytest.raises(ValueError, match="k is 2"):
            tree.predict_top(X, 2)


class TestLearning:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"intercept_variance": "learn"},
            {"tie": "scale"},
            {"tie": "class"},
            {"taxonomy": TREE, "tie": "level"},
            {"taxonomy": TREE, "tie": "subtree"},
            {"taxonomy": TREE, "tie": ["class", "shared"]},
            {"label_covariance": np.eye(4) + 1},
            {"label_covariance": 2},
            {"label_covariance": "learn"},
            {"kernel": RBFKernel() + LinearKernel()},
            {"kernel": "linear"},
            {"kernel_rank": 30},
        ],
        ids=str,
    )
    def test_lowers_the_cross_validation_loss(self, options):
        X, y = data()
        model = grouped(KernelLogisticClassifier, **options, max_learning_iter=4).fit(X, y)
        values = [record.value for record in model.learning_trace_]
        assert model.cross_validation_loss_ == min(values) < values[0]
        assert model.learning_status_ in ("converged", "iteration_limit")
        assert all(value > 0 for name, value in model.hyperparameters_.items() if "coupling" not in name)
        assert model.score(X, y) > 0.7

    def test_the_loss_is_that_of_held_out_rows(self):
        X, y = data()
        folds = list(KFold(4, shuffle=True, random_state=1).split(X))
        model = grouped(KernelLogisticClassifier, cv=folds, max_learning_iter=1).fit(X, y)
        total = 0.0
        for train, test in folds:
            start = exact(gamma=None, intercept_variance=1.0)
            start.gamma = 0.5 / X.var(axis=0).sum()
            part = start.fit(X[train], y[train])
            total -= part.predict_log_proba(X[test])[
                np.arange(len(test)), np.searchsorted(part.classes_, y[test])
            ].sum()
        assert model.learning_trace_[0].value == pytest.approx(total / len(X), rel=1e-5)

    def test_keeps_what_is_fixed(self):
        X, y = data()
        apart = exact(scale=3.0, tie="class").fit(X, y)
        assert apart.hyperparameters_ == pytest.approx(
            {f"scale[{c}]": 3.0 for c in "abcd"} | {f"gamma[{c}]": 0.2 for c in "abcd"}
        )
        model = exact(scale=3.0).fit(X, y)
        assert model.hyperparameters_ == pytest.approx({"scale": 3.0, "gamma": 0.2})
        assert model.learning_status_ == "fixed"
        assert model.learning_trace_ == []
        assert np.isnan(model.cross_validation_loss_)
        intercepts = exact(intercept_variance="learn").fit(X, y)
        assert intercepts.hyperparameters_["intercept_variance"] == pytest.approx(1.0)

    def test_the_paper_s_gamma(self):
        X, y = data()
        model = exact(gamma=None).fit(X, y)
        assert model.hyperparameters_["gamma"] == pytest.approx(0.5 / X.var(axis=0).sum())
        far = exact(gamma=None).fit(X + 1e6, y)
        assert far.hyperparameters_["gamma"] == pytest.approx(model.hyperparameters_["gamma"])
        sparse = exact(gamma=None).fit(sp.csr_array(X), y)
        assert sparse.hyperparameters_["gamma"] == pytest.approx(model.hyperparameters_["gamma"])
        assert exact(gamma=None).fit(0 * X + 0.1, y).hyperparameters_["gamma"] == 1.0

    @pytest.mark.parametrize("size", [1e-3, 1e5])
    def test_the_size_of_features_does_not_matter(self, size):
        """If the fits fail at the start, the search itself goes to smaller scales."""
        X, y = data()
        model = KernelLogisticClassifier("linear").fit(size * X, y)
        expected = KernelLogisticClassifier("linear").fit(X, y)
        assert model.cross_validation_loss_ == pytest.approx(expected.cross_validation_loss_, rel=5e-3)

    def test_learning_rows(self):
        X, y = data(n=80)
        part = grouped(KernelLogisticClassifier, learning_rows=40, max_learning_iter=3).fit(X, y)
        whole = KernelLogisticClassifier(hyperparameters=HyperparameterSearch(max_learning_iter=3)).fit(X, y)
        assert part.cross_validation_loss_ != whole.cross_validation_loss_
        assert len(part.dual_coef_) == len(X)
        more = grouped(KernelLogisticClassifier, learning_rows=200, max_learning_iter=3).fit(X, y)
        assert more.hyperparameters_ == whole.hyperparameters_

    def test_learning_blocks(self):
        X, y = data(n=80)
        one, blocks, again, most = (
            grouped(KernelLogisticClassifier, tie="class", max_learning_iter=6, **options).fit(X, y)
            for options in (
                {"learning_rows": 26},
                {"learning_rows": 26, "learning_blocks": 3},
                {"learning_rows": 26, "learning_blocks": 3},
                {"learning_blocks": 3},
            )
        )
        assert one.cross_validation_loss_ != blocks.cross_validation_loss_
        assert blocks.hyperparameters_ == again.hyperparameters_
        assert blocks.hyperparameters_ != most.hyperparameters_, "80 rows in three parts are 27, 27 and 26"
        assert len(blocks.dual_coef_) == len(most.dual_coef_) == 80

    def test_one_block_of_all_rows(self):
        X, y = data(n=40)
        usual, given = (
            grouped(KernelLogisticClassifier, max_learning_iter=3, **options).fit(X, y)
            for options in ({}, {"learning_rows": 50, "learning_blocks": 1})
        )
        assert usual.hyperparameters_ == given.hyperparameters_

    @pytest.mark.parametrize("form", ["classes", "labels", "tree", "splitter", "precomputed"])
    def test_blocks_of_every_form(self, form):
        X, y = data(n=60)
        options = {"tree": {"taxonomy": TREE, "tie": "level"}, "splitter": {"cv": PredefinedSplit(y == "a")}}
        model = grouped(
            KernelLogisticClassifier,
            "precomputed" if form == "precomputed" else "rbf",
            learning_blocks=2,
            max_learning_iter=3,
            **options.get(form, {}),
        )
        rows = rbf_kernel(X, gamma=0.1) if form == "precomputed" else X
        targets = y.astype(object)
        targets[::9] = None
        if form == "labels":
            targets = (y[:, None] == np.array(["a", "b", "c"])).astype(float)
            targets[::3, 1] = np.nan
        model.fit(rows, targets)
        assert model.learning_trace_[-1].value < model.learning_trace_[0].value
        assert len(model.hyperparameters_) == {"precomputed": 1, "tree": 4}.get(form, 2)

    @pytest.mark.parametrize("n", [2, 3, 4, 7])
    def test_few_rows(self, n):
        X, _ = data(n=8)
        for classes in (np.arange(n), np.arange(n) % 2):
            model = KernelLogisticClassifier().fit(X[:n], classes)
            np.testing.assert_allclose(model.predict_proba(X[:n]).sum(axis=1), 1)

    def test_folds_of_many_kinds(self):
        X, y = data()
        y = y.astype(object)
        y[::7] = None
        part = np.arange(len(X)) % 3
        masks = [(part != k, part == k) for k in range(3)]
        splits = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in masks]
        first, *others = (
            grouped(KernelLogisticClassifier, cv=cv, max_learning_iter=2).fit(X, y).hyperparameters_
            for cv in (PredefinedSplit(part), masks, splits)
        )
        assert all(other == first for other in others)
        for cv in (None, 3, StratifiedKFold(3), splits[:1]):
            assert grouped(KernelLogisticClassifier, cv=cv, max_learning_iter=2).fit(X, y).learning_trace_


class TestDecisions:
    def test_agree_with_inference(self):
        X, y = data()
        tree = Taxonomy.from_any(TREE)
        model = exact(taxonomy=TREE, scale=0.3).fit(X, y)
        P, classes = model.predict_proba(X), model.classes_
        expected = {
            "most_probable": most_probable(P),
            "least_expected_loss": least_expected_loss(P, tree.distances(classes)),
            "best_parent": best_parent(P, tree.parents_of(classes)),
        }
        chosen = {decision: model.set_params(decision=decision).predict(X) for decision in expected}
        for decision, numbers in expected.items():
            np.testing.assert_array_equal(chosen[decision], classes[numbers])
        assert (chosen["best_parent"] != chosen["most_probable"]).any()

    def test_two_classes(self):
        X, y = data(n_classes=2)
        for decision in ("least_expected_loss", "best_parent"):
            model = exact(taxonomy={"x": ["a"], "y": ["b", "c"]}, decision=decision).fit(X, y)
            np.testing.assert_array_equal(
                model.predict(X), model.classes_[most_probable(model.predict_proba(X))]
            )

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_reject(self, n_classes):
        X, y = data(n_classes=n_classes)
        model = exact().fit(X, y)
        for limit in ({"confidence": 0.8}, {"fraction": 0.25}):
            some = model.predict_or_reject(X, **limit)
            away = rejected(model.predict_proba(X), **limit)
            assert 0 < away.sum() < len(X)
            np.testing.assert_array_equal(np.equal(some, None), away)
            np.testing.assert_array_equal(some[~away], model.predict(X)[~away])
        with pytest.raises(ValueError, match="confidence"):
            model.predict_or_reject(X)
        many = exact().fit(X, y[:, None] == np.unique(y))
        with pytest.raises(ValueError, match="many labels per row"):
            many.predict_or_reject(X, fraction=0.5)

    def test_logarithms_of_tiny_probabilities(self):
        X = np.array([[-1.0], [1.0], [3.0]])
        model = exact("linear", scale=1e4).fit(X, [0, 1, 2])
        logs = model.predict_log_proba(1e4 * X)
        assert np.isfinite(logs).all()
        assert logs.min() < -800


class TestInsideScikitLearn:
    def test_classes_are_sorted_for_scorers(self):
        """Scorers of probabilities take columns in sorted order."""
        X, y = data()
        model = exact(taxonomy={"z": ["d", "a"], "w": ["c", "b"]}).fit(X, y)
        np.testing.assert_array_equal(model.classes_, list("abcd"))
        assert model.score(X, y) > 0.8
