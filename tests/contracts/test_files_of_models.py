"""Model files hold every setting and fitted attribute, and threads change no bit of it.

The models are the kept ones of ``scripts/make_model_fixtures.py``, and some more.
"""

import make_model_fixtures
import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import fitted, grouped, mark
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import labelweave as lw
from drawn import draw_classes, draw_labels
from labelweave.features import LinearKernel, RBFKernel

X, Y = draw_labels(40, 4, 4, above=0.5)
GAPS = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
ROWS, CLASSES = draw_classes(40)
NAMED = pd.DataFrame(Y, columns=list("abcd"))
TREE = lw.Taxonomy.from_nested({"x": ["a", "b"], "y": ["c", "d"]})
GRAPH = lw.Taxonomy([("x", "a"), ("x", "b"), ("y", "b"), ("y", "c"), ("y", "d")])  # b has two parents
GRAM = rbf_kernel(X)
TIES = np.eye(4) + 1.0
MEAN = lw.LabelMean(np.ones((4, 2)), np.arange(8.0).reshape(4, 2) / 10, np.ones(4))
WORDS = pd.DataFrame(np.random.default_rng(2).normal(size=(5, 3)), index=list("abcde"))  # the last of no row
FOUR = np.array(list("abcd"))[np.arange(40) % 4]
COSTS = pd.Series([1.0, 5.0, 0.2, 1.0], list("dbca"))


def logistic(**parameters):
    return grouped(lw.KernelLogisticClassifier, max_learning_iter=2, **parameters)


def margins(**parameters):
    return lw.MaxMarginClassifier(kernel="rbf", **parameters)


def graph(*given, **parameters):
    kind = given[0] if given else parameters.pop("graph", lw.GraphGrowth(max_rounds=2))
    return lw.LabelGraphClassifier(kind, **{"alpha": 0.05, "tol": 0.05} | parameters)


def kept():
    """Return the models with kept files in tests/model_files."""
    given, every = make_model_fixtures.DATA, make_model_fixtures.cases()
    rows = {kind: make_model_fixtures.rows(kind, given["X"], given["near"]) for _, kind, _ in every.values()}
    return {
        name: (model, rows[kind][: make_model_fixtures.FITTED], y) for name, (model, kind, y) in every.items()
    }


CASES = kept() | {
    "intercepts": (logistic(intercept_variance="learn"), ROWS, CLASSES),
    "several parents": (logistic(taxonomy=GRAPH), X, NAMED),
    "a covariance of a tree": (
        logistic(label_covariance=lw.LabelCovariance.from_taxonomy(TREE, list("abcd"))), ROWS, CLASSES,
    ),
    "a learned covariance": (logistic(label_covariance="learn"), ROWS, CLASSES),
    "pivots and levels": (logistic(kernel_rank=15, taxonomy=TREE, tie="level"), ROWS, CLASSES),
    "two classes tied": (logistic(label_covariance=1), ROWS, CLASSES < "c"),
    "numbers and None": (logistic(), ROWS, [None, 1, 2, 3] * 10),
    "labels": (logistic(), X, Y),
    "a kernel a label": (logistic(tie="class"), X, Y),
    "random numbers": (logistic(random_state=np.random.RandomState(3)), ROWS, CLASSES),
    **{
        f"margins, {kernel}, {type(rows).__name__}": (
            lw.MaxMarginClassifier(kernel=kernel, label_covariance=TIES), rows, GAPS,
        )
        for kernel in ("poly", "cosine", RBFKernel(0.2) + LinearKernel() * 0.5)
        for rows in (X, sp.csr_array(X))
    },
    "margins, sparse matrix": (lw.MaxMarginClassifier(kernel="precomputed"), sp.csr_array(GRAM), GAPS),
    "margins, costs by name": (margins(false_negative_cost=COSTS, flip_rates=(0.1, 0.0)), X, NAMED),
    "margins, costs of entries": (margins(false_negative_cost=1.0 + np.abs(X)), X, GAPS),
    "margins, weights of classes": (margins(class_weight={"a": 2.0}), ROWS, CLASSES),
    "margins, weights of labels": (margins(class_weight=[{1: 2.0}, {}, {0: 1.0}, {}]), X, Y),
    "margins, balanced": (margins(class_weight="balanced"), X, Y),
    "low rank, bound": (lw.LowRankClassifier(3, alpha=2.0, penalty="trace_bound"), X, GAPS),
    "zero_shot of vectors": (lw.ZeroShotClassifier(None, WORDS, cv=2), X, FOUR),
    "zero_shot of vectors, coupled": (
        lw.ZeroShotClassifier(
            None, WORDS, couple_attributes=True, cv=2, class_prior=[1, 1, 1, 1, 2], seen_penalty=0.7
        ),
        X, FOUR,
    ),
    "low rank, tree": (lw.LowRankClassifier(3, label_covariance=TREE), X, NAMED),
    **{
        f"low rank, {kernel}, {rank}, {precision}": (
            lw.LowRankClassifier(3, kernel=kernel, kernel_rank=rank, dtype=precision),
            GRAM if kernel == "precomputed" else X,
            GAPS,
        )
        for kernel in ("linear", "rbf", "precomputed")
        for rank in (None, 10)
        for precision in ("float64", "float32")
    },
    **{
        f"{type(made).__name__} around a mean": (made.set_params(label_mean=MEAN), X, Y)
        for made in (margins(label_covariance=TIES), logistic(), lw.LowRankClassifier(3, kernel="rbf"))
    },
    **{
        f"linear {type(made).__name__} around a mean": (made.set_params(label_mean=MEAN), X, Y)
        for made in (lw.MaxMarginClassifier(), logistic(kernel="linear"), lw.LowRankClassifier(3))
    },
    "graph of networkx": (graph(networkx.Graph([("a", "b")]), false_positive_cost=[1, 2, 3, 4]), X, NAMED),
    "calibrated in folds": (lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(), cv=5), ROWS, CLASSES),
    "a hierarchy inside": (
        lw.TunedThresholdClassifier(lw.HierarchicalClassifier(lw.LowRankClassifier(2), GRAPH.pairs()), cv=2),
        X, NAMED,
    ),
}  # fmt: skip


PLAIN = (bool, int, float, str, list, dict, type(None))
READ = (
    "taxonomy", "graph", "false_positive_cost", "false_negative_cost", "hyperparameters", "class_prior",
    "estimator", "steps", "categorical", "numeric", "text", "vectors", "members",
)  # fmt: skip
"""Parameters of which files hold what was read or made of them, or nothing."""
WITH_THREADS = ("auto_sparse",)  # whose descriptions of members are those of estimators with two threads
COMPOSED = ("zero_shot", "table_", "text", "auto_given")  # which hold converted input


@pytest.mark.parametrize("case", CASES)
def test_files_and_threads(case, reloaded):
    """A model read from its file, and one fitted by two threads, are the same to the last bit."""
    model, rows, y = CASES[case]
    whole = fitted(clone(model), rows, y)
    expected, predicted = mark(whole, rows), whole.predict(rows)
    others = [reloaded(whole)]
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, PLAIN) and name not in READ:
            assert others[0].get_params(deep=False)[name] == value
    if "n_jobs" in model.get_params() and case not in WITH_THREADS:
        others.append(fitted(clone(model).set_params(n_jobs=2), rows, y))
    for other in others:
        assert mark(other, rows) == expected
        assert type(other.predict(rows)) is type(predicted)
        assert [type(c) for c in other.classes_.tolist()] == [type(c) for c in whole.classes_.tolist()]
    is_drawn = isinstance(model.get_params().get("random_state"), np.random.RandomState)
    if not is_drawn and not case.startswith(COMPOSED):
        assert mark(fitted(clone(others[0]), rows, y), rows) == expected
