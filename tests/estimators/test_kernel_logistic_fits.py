"""Fits of KernelLogisticClassifier: searches in stages, costs, flat classes, widths, and own losses."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from attacks.small_fits import grouped
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, ndtr
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from drawn import draw_classes, draw_classes_and_labels, draw_labels, draw_scores
from labelweave import HyperparameterSearch, KernelLogisticClassifier, config_context
from labelweave.estimators.held_out import drawn_blocks
from labelweave.estimators.kernel_logistic import fit as likelihood_fit
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.model_files import storable
from labelweave.problems.hyperparameters import search
from labelweave.problems.hyperparameters.search import learn
from labelweave.problems.losses import EntryLoss
from labelweave.problems.losses.entry_losses import LogisticEntryLoss, SquaredHingeEntryLoss
from labelweave.solvers import Status
from watching import Count

data = partial(draw_classes_and_labels, n=40, n_classes=4)


def test_callbacks_follow_search_and_fit():
    X, y, _ = data()
    watch = Count()
    model = (
        KernelLogisticClassifier(tol=1e-3, hyperparameters=HyperparameterSearch(max_learning_iter=6))
        .set_callbacks(watch)
        .fit(X, y)
    )
    assert watch.names.count("cross-validation") == 6
    assert watch.names.count("duality gap") == 30
    assert watch.names.index("duality gap") == 6
    assert model.converged_


def test_a_callback_ends_the_search():
    X, y, _ = data()
    watch = Count(2, "cross-validation")
    model = grouped(KernelLogisticClassifier, max_learning_iter=6).set_callbacks(watch)
    with pytest.warns(ConvergenceWarning, match="search for hyperparameters was interrupted") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.learning_status_ == "interrupted"
    assert len(model.learning_trace_) == 2
    assert model.converged_


def ill_posed(name):
    """Make rows of three classes, most of them with something that fits may fail at."""
    random, y = np.random.default_rng(0), np.arange(60) % 3
    near = random.standard_normal((60, 2)) + y[:, None]
    return {
        "iris": iris_by_two_features,
        "twice": lambda: (np.repeat(near[:5], 12, axis=0), y),
        "constant": lambda: (np.ones((60, 2)), y),
        "huge": lambda: (1e8 * near, y),
        "tiny": lambda: (1e-8 * near, y),
        "far": lambda: (near + 1e6, y),
        "collinear": lambda: (np.column_stack([near[:, 0], near[:, 0] + 1e-9 * near[:, 1]]), y),
        "apart": lambda: (y[:, None] + 1e-3 * near, y),
        "outlier": lambda: (np.vstack([near[1:], [[1e6, 1e6]]]), y),
        "rare": lambda: (near, np.where(np.arange(60) < 57, y % 2, 2)),
    }[name]()


def iris_by_two_features():
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)[:75]
    return StandardScaler().fit_transform(X[rows, :2]), y[rows]


@pytest.mark.filterwarnings("ignore:The matrix of RBFKernel")
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(
    "name",
    ["iris", "twice", "constant", "huge", "tiny", "far", "collinear", "apart", "outlier", "rare"],
)
def test_a_search_ends_no_worse_than_it_starts_and_at_a_fit_that_is_certified(name, kernel):
    X, y = ill_posed(name)
    model = KernelLogisticClassifier(kernel).fit(X, y)
    first = next(record.value for record in model.learning_trace_ if np.isfinite(record.value))
    assert model.cross_validation_loss_ <= first
    assert model.duality_gap_ <= model.tol
    assert np.isfinite(model.decision_function(X)).all()
    if name in ("iris", "huge", "tiny", "apart"):
        assert model.score(X, y) > 0.6


def test_units_of_features_do_not_decide_what_a_linear_kernel_learns():
    losses = [
        KernelLogisticClassifier("linear").fit(*ill_posed(of)).cross_validation_loss_
        for of in ("huge", "tiny")
    ]
    assert losses[0] == pytest.approx(losses[1], abs=0.01)


def test_where_the_last_fit_fails_the_best_fit_that_does_not_is_kept(monkeypatch):
    X, y, _ = data()
    usual = KernelLogisticClassifier().fit(X, y)
    asked, fit = [], likelihood_fit.LikelihoodFit.fit

    def failing(task, stage, theta, start):
        asked.append(theta)
        fitted = fit(task, stage, theta, start)
        if len(asked) < 3:
            worse = replace(fitted.result, status=Status.STALLED)
            worse.trace[-1] = worse.trace[-1]._replace(gap=5e6)
            return replace(fitted, result=worse)
        return fitted

    monkeypatch.setattr(likelihood_fit.LikelihoodFit, "fit", failing)
    model = KernelLogisticClassifier().fit(X, y)
    values = sorted(record.value for record in model.learning_trace_ if np.isfinite(record.value))
    assert values[0] == usual.cross_validation_loss_
    assert model.cross_validation_loss_ == values[2]
    assert model.converged_
    np.testing.assert_allclose(list(model.hyperparameters_.values()), np.exp(asked[2]))
    assert not np.array_equal(asked[2], asked[0])


def test_many_rows_are_searched_twice(monkeypatch):
    """First some of them, then all from there; threads do not matter."""
    X, y, _ = data(n=60)
    at_once = grouped(KernelLogisticClassifier, tie="scale").fit(X, y)
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    models = [grouped(KernelLogisticClassifier, tie="scale", n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    assert models[0].hyperparameters_ == models[1].hyperparameters_
    assert models[0].learning_trace_[0].value != at_once.learning_trace_[0].value
    assert models[0].cross_validation_loss_ == pytest.approx(at_once.cross_validation_loss_, rel=0.02)


def test_the_trace_holds_the_optimum_between():
    X, y, _ = data()
    model = KernelLogisticClassifier(hyperparameters="fixed", tol=1e-8).fit(X, y)
    primal, dual = (np.array([getattr(r, name) for r in model.trace_]) for name in ("primal", "dual"))
    assert (primal >= dual[-1]).all()
    assert primal[-1] - dual[-1] <= 1e-8 * max(1, primal[-1])
    assert model.kernel_products_ > 0


def test_memory_budget_streams_the_kernel():
    X, y, _ = data(n=300)
    options = {"hyperparameters": "fixed", "tol": 1e-8}
    with config_context(memory_budget=0.35):
        small = KernelLogisticClassifier(**options).fit(X, y)
    large = KernelLogisticClassifier(**options).fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("solver", ["symmetrized_gradients", "exact"])
def test_solvers_agree(solver):
    X, y, _ = data(n=60)
    fixed = {"hyperparameters": "fixed", "tol": 1e-10}
    models = [KernelLogisticClassifier(solver=name, **fixed).fit(X, y) for name in ("auto", solver)]
    assert models[1].predict_proba(X) == pytest.approx(models[0].predict_proba(X), abs=1e-4)


@pytest.mark.parametrize("solver", ["symmetrized_gradients", "exact"])
def test_solvers_learn_the_same(solver):
    """Scale and width of a kernel lie on a ridge, so the reached loss is compared."""
    X, y, _ = data(n=60)
    models = [KernelLogisticClassifier(solver=name).fit(X, y) for name in ("auto", solver)]
    losses = [model.cross_validation_loss_ for model in models]
    assert losses[1] == pytest.approx(losses[0], rel=2e-3)


@pytest.mark.parametrize(("rows", "sizes"), [(None, [4, 3, 3]), (3, [3, 3, 3]), (2, [2, 2, 2])])
def test_blocks_are_disjoint(rows, sizes):
    candidates = np.arange(5, 25, 2)
    blocks = drawn_blocks(candidates, rows, 3, 0)
    assert [len(block) for block in blocks] == sizes
    together = np.concatenate(blocks)
    assert len(np.unique(together)) == len(together)
    assert np.isin(together, candidates).all()
    assert all((np.diff(block) > 0).all() for block in blocks)


def test_a_single_block():
    candidates = np.arange(10)
    for rows in (None, 10, 30):
        (block,) = drawn_blocks(candidates, rows, 1, 0)
        np.testing.assert_array_equal(block, candidates)
    first, other = (drawn_blocks(candidates, 4, 1, seed)[0] for seed in (0, 1))
    assert first.tolist() != other.tolist()
    assert drawn_blocks(candidates, 4, 2, 0)[0].tolist() == first.tolist()


def _of_the_best_score():
    X, scores = draw_scores(60, 3, 4, np.random.default_rng(0), noise=0)
    return X, scores.argmax(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "first", "expected"),
    [
        (3, 10, [(1, 10, 3), (3, 60, 3), (3, 60, 9)]),  # a tied search on a part of one block
        (3, 20, [(1, 20, 3), (3, 60, 3), (3, 60, 9)]),
        (6, 15, [(1, 10, 3), (6, 60, 3), (6, 60, 9)]),  # a block has fewer rows than the first stage
        (3, 30, [(3, 60, 3), (3, 60, 9)]),  # too few rows for a first stage
        (1, 20, [(1, 20, 3), (1, 60, 3), (1, 60, 9)]),
    ],
)
def test_stages(blocks, first, expected, monkeypatch):
    """Every stage has a number of blocks, of rows in all, and of hyperparameters."""
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", first)
    met = []

    def noted(criterion, start, *others, **retreat):
        rows = sum(len(part.data.weights) for part in criterion.parts)
        met.append((len(criterion.parts), rows, len(start) + 1))
        return learn(criterion, start, *others, **retreat)

    monkeypatch.setattr(search, "learn", noted)
    X, y = _of_the_best_score()
    grouped(KernelLogisticClassifier, tie="class", learning_blocks=blocks).fit(X, y)
    assert list(dict.fromkeys(met)) == expected


def test_the_trace_has_every_stage(monkeypatch, reloaded):
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    X, y = _of_the_best_score()
    model = grouped(KernelLogisticClassifier, tie="class").fit(X, y)
    trace = model.learning_trace_
    stages = [record.stage for record in trace]
    assert stages == sorted(stages)
    assert set(stages) == {1, 2, 3}
    assert [record.evaluation for record in trace] == list(range(1, len(trace) + 1))
    assert (np.diff([record.time for record in trace]) > 0).all()
    assert model.cross_validation_loss_ == min(record.value for record in trace if record.stage == 3)
    assert reloaded(model).learning_trace_ == trace


@pytest.mark.parametrize("limit", [1, 4, 9])
def test_the_limit_of_evaluations_is_that_of_all_stages(monkeypatch, limit):
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    X, y = _of_the_best_score()
    model = grouped(KernelLogisticClassifier, tie="class", max_learning_iter=limit).fit(X, y)
    assert len(model.learning_trace_) <= limit
    assert len(model.learning_trace_) == limit or model.learning_status_ != "iteration_limit"


TREE = {"x": ["a", "b"], "y": ["c", "d", "e"]}
FIXED = {"hyperparameters": "fixed", "tol": 1e-9}


_classes = partial(draw_classes, n=80, d=3, n_classes=5)


def test_flat_classes_share_scales_by_subtree():
    """F2 of section 6.1 of the paper: one scale per subtree, and only the classes' own functions."""
    X, y = _classes()
    model = grouped(
        KernelLogisticClassifier,
        taxonomy=TREE,
        label_covariance="identity",
        tie=("subtree", "shared"),
        max_learning_iter=15,
    ).fit(X, y)
    assert list(model.hyperparameters_) == ["scale[x]", "scale[y]", "gamma"]
    (term,) = model.prior_.terms
    scales = [model.hyperparameters_[f"scale[{node}]"] for node in "xxyyy"]
    np.testing.assert_allclose(term.covariance.to_dense(), np.diag(scales))
    flat = KernelLogisticClassifier(taxonomy=TREE, label_covariance="identity", **FIXED).fit(X, y)
    plain = KernelLogisticClassifier(**FIXED).fit(X, y)
    np.testing.assert_allclose(flat.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_a_flat_model_with_a_tree_knows_inner_nodes_and_costs_of_mistakes():
    X, y = _classes()
    y = np.where(np.arange(len(y)) % 7 == 0, np.where(np.isin(y, ["a", "b"]), "x", "y"), y)
    model = KernelLogisticClassifier(
        taxonomy=TREE, label_covariance="identity", decision="least_expected_loss", **FIXED
    ).fit(X, y)
    assert list(model.classes_) == list("abcde")
    assert set(model.predict(X)) <= set("abcde")
    flat = KernelLogisticClassifier(taxonomy=TREE, **FIXED).fit(X, y)
    assert np.abs(flat.predict_proba(X) - model.predict_proba(X)).max() > 1e-3


def _few_that_matter(n, seed=0, features=8):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    return X, (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n) > 0).astype(int)


def test_features_that_do_not_matter_get_wide_kernels(reloaded):
    X, y = _few_that_matter(250)
    wide = grouped(KernelLogisticClassifier, "ard", max_learning_iter=40).fit(X, y)
    one = KernelLogisticClassifier(hyperparameters=HyperparameterSearch(max_learning_iter=40)).fit(X, y)
    weights = np.array([wide.hyperparameters_[f"feature_weight[{f}]"] for f in range(8)])
    assert weights[:2].min() > weights[2:].max()
    assert np.median(weights[2:]) < 0.5
    X_test, y_test = _few_that_matter(600, seed=1)
    losses = [-np.log(m.predict_proba(X_test)[np.arange(600), y_test]).mean() for m in (wide, one)]
    assert losses[0] < 0.9 * losses[1]
    np.testing.assert_array_equal(reloaded(wide).predict_proba(X), wide.predict_proba(X))


def test_few_rows_leave_the_shared_width_as_it_is():
    X, y = _few_that_matter(12)
    model = grouped(KernelLogisticClassifier, "ard", max_learning_iter=40).fit(X, y)
    weights = np.array([model.hyperparameters_[f"feature_weight[{f}]"] for f in range(8)])
    assert np.abs(np.log(weights)).max() < 1.5  # with 250 rows it is 2.8


@storable("tests.ProbitLoss", {})
class ProbitLoss(EntryLoss):
    """Minus the logarithm of the normal distribution function."""

    def value(self, signs, scores):
        return -log_ndtr(signs * scores)

    def gradient(self, signs, scores):
        return -signs * self._hazard(signs * scores)

    @staticmethod
    def _hazard(margins):
        return np.exp(-(margins**2) / 2 - log_ndtr(margins)) / margins.dtype.type(np.sqrt(2 * np.pi))

    def curvature(self, signs, scores):
        hazard = self._hazard(signs * scores)
        return hazard * (hazard + signs * scores)

    def conjugate(self, signs, gradients):
        """Compute the requested values, with gradients of 0: the loss can approach 0 arbitrarily."""
        assert not gradients.any()
        return gradients


class GenericLogistic(LogisticEntryLoss):
    log_odds = EntryLoss.log_odds


def problem(labels=3):
    return draw_labels(d=3, n_labels=labels, above=0, missing=0.0)


def fixed(**parameters):
    return KernelLogisticClassifier(hyperparameters="fixed", gamma=0.3, tol=1e-8, **parameters)


def test_a_probit_model_is_the_minimum_that_an_independent_solver_finds():
    X, Y = problem()
    Y[3, 1] = np.nan
    weights = np.linspace(0.5, 2.0, len(X))
    model = fixed(loss=ProbitLoss(), scale=2.0).fit(X, Y, weights)
    gram = 2.0 * np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(2)) + 1.0  # of the kernel and the intercepts
    for label in range(3):
        seen = ~np.isnan(Y[:, label])
        signs, root = 2 * Y[seen, label] - 1, np.linalg.cholesky(gram + 1e-10 * np.eye(len(X)))

        def objective(point, seen=seen, signs=signs, root=root):
            return weights[seen] @ -log_ndtr(signs * (root @ point)[seen]) + point @ point / 2

        best = minimize(objective, np.zeros(len(X)), method="L-BFGS-B", tol=1e-12)
        probabilities = ndtr(root @ best.x)
        np.testing.assert_allclose(model.predict_proba(X)[:, label], probabilities, atol=2e-3)
    odds = model.decision_function(X)
    np.testing.assert_allclose(expit(odds), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), odds > 0)


@pytest.mark.parametrize("structure", [{}, {"label_covariance": np.eye(3) + 1}, {"label_covariance": 1}])
def test_the_logistic_loss_as_an_own_one_is_the_logistic_one(structure):
    X, Y = problem()
    Y[::4, 0] = np.nan
    learned = {"hyperparameters": HyperparameterSearch(max_learning_iter=4) if structure else "fixed"}
    own = KernelLogisticClassifier(loss=GenericLogistic(), **learned, **structure).fit(X, Y)
    known = KernelLogisticClassifier(**learned, **structure).fit(X, Y)
    np.testing.assert_allclose(own.predict_proba(X), known.predict_proba(X), atol=1e-9)


def test_a_learned_width_lowers_the_held_out_loss_of_an_own_loss():
    X, Y = problem()
    model = grouped(KernelLogisticClassifier, loss=ProbitLoss(), gamma=30.0, max_learning_iter=15).fit(X, Y)
    first = model.learning_trace_[0]
    assert model.cross_validation_loss_ < 0.9 * first.value
    assert model.hyperparameters_["gamma"] < 10.0


def test_hinges_have_probabilities_in_proportion_too():
    X, Y = problem()
    loss = SquaredHingeEntryLoss()
    model = fixed(loss=loss).fit(X, Y)
    shares = model.predict_proba(X)
    assert ((shares > 0) & (shares < 1)).all()
    assert (model.predict(X) == Y).mean() > 0.8


def test_targets_that_are_probabilities_weigh_the_likelier_value():
    X, Y = problem()
    q = np.where(Y > 0, 0.8, 0.1)
    graded = fixed(loss=ProbitLoss()).fit(X, LabelMatrix.from_probabilities(q))
    weighted = fixed(loss=ProbitLoss()).fit(X, Y, entry_weight=np.abs(2 * q - 1))
    np.testing.assert_allclose(graded.predict_proba(X), weighted.predict_proba(X), atol=1e-6)


def test_two_classes_and_model_files(reloaded):
    X, Y = problem(labels=1)
    names = np.where(Y[:, 0] > 0, "yes", "no")
    model = fixed(loss=ProbitLoss()).fit(X, names)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)
    assert (model.predict(X) == names).mean() > 0.8
    again = reloaded(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("y", [np.arange(60) % 3, ClassProbabilities(np.full((60, 3), 1 / 3))])
def test_one_class_a_row_has_the_softmax_loss(y):
    with pytest.raises(ValueError, match=r"loss=ProbitLoss\(\) is for labels, but y has one class per row"):
        fixed(loss=ProbitLoss()).fit(problem()[0], y)
