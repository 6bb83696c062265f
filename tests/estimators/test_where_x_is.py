"""Arrays of libraries other than NumPy in the estimators: X decides where a call makes its tables."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import clone, config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drawn import draw_classes, draw_labels
from labelweave import (
    AutoLabelClassifier,
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    HyperparameterSearch,
    KernelLogisticClassifier,
    LabelCovariance,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    load,
)
from labelweave import config_context as budget_of
from labelweave.features import ForestKernel, LinearKernel, RBFKernel
from labelweave.features.gram import StoredGram, StreamedGram
from labelweave.foundation.arrays import homes
from labelweave.labels import Taxonomy
from labelweave.problems.losses.entry_losses import LogisticEntryLoss

X, Y = draw_labels(60, 5, 3, noise=2.0)
CLASSES = np.unique(draw_classes(60, 5, 3, noise=2.0)[1], return_inverse=True)[1]
ROOT = np.random.default_rng(1).normal(size=(3, 2))
COVARIANCE = LabelCovariance.dense(ROOT @ ROOT.T + 0.5 * np.eye(3))
TREE = LabelCovariance.from_taxonomy(Taxonomy([("r", "0"), ("r", "s"), ("s", "1"), ("s", "2")]), list("012"))
MEAN = 0.1 * np.arange(15.0).reshape(3, 5)
KERNEL = RBFKernel(0.2)
GRAM = np.exp(-0.2 * np.square(X[:, None] - X).sum(axis=2))
ADMM = {"solver": "alternating_directions", "tol": 1e-4}
SHORT, APART = (HyperparameterSearch(cv=2, max_learning_iter=2, tie=tie) for tie in ("shared", "class"))
FIXED = {"hyperparameters": "fixed"}
MODELS = {
    "margins, linear": (MaxMarginClassifier(**ADMM), X, Y),
    "margins, linear, wide": (MaxMarginClassifier(**ADMM), np.hstack([X, GRAM]), Y),
    "margins, linear, coupled": (MaxMarginClassifier(label_covariance=COVARIANCE, **ADMM), X, Y),
    "margins, rbf": (MaxMarginClassifier(kernel="rbf", scaling="auto", **ADMM), X, Y),
    "margins, classes": (MaxMarginClassifier(kernel="poly", **ADMM), X, CLASSES),
    "margins, coupled": (
        MaxMarginClassifier(kernel=2 * KERNEL + KERNEL * KERNEL, label_covariance=COVARIANCE, **ADMM), X, Y
    ),
    "margins, tree": (MaxMarginClassifier(label_covariance=TREE, **ADMM), X, Y),
    "logistic, tree": (KernelLogisticClassifier(label_covariance=TREE, hyperparameters="fixed"), X, Y),
    "margins, mean": (MaxMarginClassifier(kernel="rbf", label_mean=MEAN, **ADMM), X, Y),
    "margins, sum": (MaxMarginClassifier(kernel=["rbf", "linear"], **ADMM), X, Y),
    "margins, precomputed": (MaxMarginClassifier(kernel="precomputed", **ADMM), GRAM, Y),
    "margins, factor": (MaxMarginClassifier(kernel="rbf", kernel_rank=20, **ADMM), X, Y),
    "logistic, learned": (KernelLogisticClassifier(hyperparameters=SHORT), X, CLASSES),
    "logistic, widths": (
        KernelLogisticClassifier("ard", intercept_variance="learn", hyperparameters=SHORT), X, Y
    ),
    "logistic, coupled": (KernelLogisticClassifier(label_covariance=COVARIANCE, **FIXED), X, CLASSES),
    "logistic, separate kernels": (KernelLogisticClassifier(hyperparameters=APART), X, Y),
    "logistic, precomputed": (KernelLogisticClassifier("precomputed", hyperparameters=SHORT), GRAM, CLASSES),
    "logistic, linear": (KernelLogisticClassifier("linear", hyperparameters="fixed"), X, CLASSES),
    "logistic, mean": (KernelLogisticClassifier("rbf", label_mean=MEAN, hyperparameters="fixed"), X, Y),
    "low rank": (LowRankClassifier(rank=2), X, Y),
    "low rank, logistic": (LowRankClassifier(rank=2, loss="log_loss", label_covariance=COVARIANCE), X, Y),
    "low rank, squared hinge": (LowRankClassifier(rank=2, loss="squared_hinge", penalty="ridge"), X, Y),
    "low rank, bound": (LowRankClassifier(rank=2, penalty="trace_bound"), X, Y),
    "low rank, bound, kernel": (LowRankClassifier(rank=5, penalty="trace_bound", kernel="rbf"), X, Y),
    "low rank, ridge": (LowRankClassifier(rank=2, penalty="ridge"), X, Y),
    "low rank, kernel": (LowRankClassifier(2, kernel="rbf", penalty="ridge", hyperparameters=SHORT), X, Y),
    "low rank, mean": (LowRankClassifier(rank=2, loss="log_loss", label_mean=MEAN), X, Y),
    "low rank, squared, mean": (LowRankClassifier(rank=2, label_mean=MEAN), X, Y),
    "margins, laplacian": (MaxMarginClassifier(kernel="laplacian", **ADMM), X, Y),
    "margins, cosine": (MaxMarginClassifier(kernel="cosine", **ADMM), X, Y),
    "margins, forest": (MaxMarginClassifier(kernel=ForestKernel(n_trees=20), **ADMM), X, Y),
    "logistic, laplacian": (KernelLogisticClassifier("laplacian", hyperparameters=SHORT), X, CLASSES),
    "low rank, factor": (LowRankClassifier(rank=2, kernel=KERNEL, kernel_rank=15), X, Y),
}  # fmt: skip
# NumPy's have interior points
ANOTHER_PATH = {f"margins, {name}" for name in ("linear", "linear, wide", "factor", "forest")}
ANOTHER_PATH |= {"low rank, bound, kernel"}


@pytest.fixture(params=["array_api_strict", "torch"])
def make(request, monkeypatch):
    """How to make arrays of a library, with dispatch on; strict ones on a device that NumPy cannot read."""
    library = pytest.importorskip(request.param)
    device = library.Device("device1") if request.param == "array_api_strict" else "cpu"
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which scikit-learn requires
    with config_context(array_api_dispatch=True):
        yield lambda values: library.asarray(values, device=device)


def _here(found, given):
    """Convert results to NumPy, which must be arrays of the library and device of the input."""
    assert type(found) is type(given)
    assert found.device == given.device
    return np.from_dlpack(found, device="cpu")


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_numpy(make, name):
    model, rows, y = MODELS[name]
    expected, found = clone(model).fit(rows, y), clone(model).fit(make(rows), make(y))
    assert found.status_ == expected.status_
    assert found.duality_gap_ <= model.tol or found.status_ == "settled"
    there, tol = make(rows), 0.05 if name in ANOTHER_PATH else 1e-5
    scores = expected.decision_function(rows)
    assert _here(found.decision_function(there), there) == pytest.approx(scores, abs=tol * abs(scores).max())
    np.testing.assert_array_equal(_here(found.predict(there), there), expected.predict(rows))
    if hasattr(found, "predict_proba"):
        chances = np.exp(_here(found.predict_log_proba(there), there))
        np.testing.assert_allclose(_here(found.predict_proba(there), there), chances, atol=1e-12)


def test_kernel_matrices_are_made_there(make, monkeypatch):
    made, begin = [], StoredGram.__init__

    def noting(self, table, *given):
        made.append(type(table))
        begin(self, table, *given)

    monkeypatch.setattr(StoredGram, "__init__", noting)
    for model in (MaxMarginClassifier(kernel="rbf"), KernelLogisticClassifier(hyperparameters="fixed")):
        model.fit(make(X), make(Y))
    assert made == 2 * [type(make(X))]


@pytest.mark.parametrize("name", ["margins, rbf", "margins, linear", "logistic, linear", "low rank, kernel"])
def test_files_are_the_same_on_both_sides(make, tmp_path, name):
    model, rows, y = MODELS[name]
    there = make(rows)
    for training in (rows, there):
        fitted = clone(model).fit(training, y)
        fitted.save(tmp_path / "m.lw")
        fitted.predict(there)  # keeps copies of arrays that are not written
        for again in (load(tmp_path / "m.lw"), pickle.loads(pickle.dumps(fitted))):
            np.testing.assert_array_equal(again.decision_function(rows), fitted.decision_function(rows))
            np.testing.assert_allclose(
                _here(again.decision_function(there), there), fitted.decision_function(rows), atol=1e-10
            )


def test_what_is_no_array_of_numbers_stays_as_it_is(make):
    X, y = draw_classes(60, 5, 3)
    model = MaxMarginClassifier(kernel="rbf").fit(make(X), y, sample_weight=make(np.ones(60)))
    assert set(model.predict(make(X))) <= set("abc")
    labels, scores = model.predict_top(make(X), 2)
    assert labels.shape == scores.shape == (60, 2)
    assert type(scores) is type(make(X))
    here = MaxMarginClassifier(kernel="rbf").fit(X, make(Y))
    assert isinstance(here.predict(X), np.ndarray)
    assert here.score(make(X), make(Y)) == here.score(X, Y)


def test_parts_of_a_fit_are_made_there_too(make):
    part = MaxMarginClassifier(kernel="rbf").partial_fit(make(X[:40]), make(Y[:40]))
    part.partial_fit(make(X[40:]), Y[40:])
    whole = MaxMarginClassifier(kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(part.decision_function(X), whole.decision_function(X), atol=0.1)
    tuned = TunedThresholdClassifier(MaxMarginClassifier(kernel="rbf"), cv=2).fit(make(X), make(Y))
    _here(tuned.predict(make(X)), make(X))


@pytest.mark.parametrize("model", [
    MaxMarginClassifier(kernel="rbf", label_covariance=COVARIANCE),
    KernelLogisticClassifier(hyperparameters="fixed"),
])  # fmt: skip
def test_matrices_that_do_not_fit_are_streamed(make, model):
    rows, y = draw_labels(200, 5, 3)
    expected = clone(model).fit(rows, y)
    with budget_of(memory_budget=0.3):
        found = clone(model).fit(make(rows), make(y))
    assert found.duality_gap_ <= model.tol
    scores = expected.decision_function(rows)
    np.testing.assert_allclose(found.decision_function(rows), scores, atol=0.1 * abs(scores).max())


WEIGHTS = np.random.default_rng(2).uniform(0.5, 2.0, 60)
MISSING = np.where(np.random.default_rng(3).random(Y.shape) < 0.2, np.nan, Y)
RBF = MaxMarginClassifier(kernel="rbf", **ADMM)
RIDGE, QUICK = AutoLabelClassifier(members=["linear", "rbf"]), {"time_budget": 1e-3}
AS_THERE = {
    "ridge": (RIDGE, X, Y, {}),
    "ridge, missing": (RIDGE, X, MISSING, {"sample_weight": WEIGHTS}),
    "ridge, some columns": (clone(RIDGE).set_params(**QUICK), *draw_labels(300, 5, 3), {}),
    "ridge, forests": (AutoLabelClassifier(members=["forest", "rbf+forest"], **QUICK), X, CLASSES, {}),
    "ridge, single precision": (RIDGE, X.astype(np.float32), Y, {}),
    "missing": (RBF, X, MISSING, {"sample_weight": WEIGHTS, "entry_weight": np.outer(WEIGHTS, [1, 2, 3])}),
    "binary": (LowRankClassifier(2), X, Y[:, 0], {}),
    "columns": (RBF, X, np.stack([CLASSES, CLASSES[::-1]], axis=1), {}),
    "balanced": (clone(RBF).set_params(class_weight="balanced"), X, CLASSES, {}),
    "flips": (KernelLogisticClassifier(hyperparameters="fixed", flip_rates=(0.1, 0.1)), X, Y, {}),
    "sum": (KernelLogisticClassifier(["rbf", "linear"], hyperparameters=SHORT), X, Y, {}),
    "covariance": (KernelLogisticClassifier(label_covariance="learn", hyperparameters=SHORT), X, Y, {}),
    "thresholds": (TunedThresholdClassifier(RBF, cv=2), X, Y, {"sample_weight": WEIGHTS}),
    "calibrated": (CalibratedLabelClassifier(RBF, cv=2), X, Y, {}),
    "conformal": (ConformalLabelClassifier(RBF, cv=2), X, Y, {}),
    "search": (GridSearchCV(RBF, {"C": [0.1, 1.0]}, cv=2), X, CLASSES, {}),
    "pipeline": (make_pipeline(StandardScaler(), RBF), X, Y, {}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:In Y column")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # scikit-learn's scaler
@pytest.mark.parametrize("name", AS_THERE)
def test_all_that_surrounds_a_model_goes_along(make, name):
    model, rows, y, weights = AS_THERE[name]
    expected = clone(model).fit(rows, y, **weights)
    there = make(rows)
    found = clone(model).fit(there, make(y), **{key: make(value) for key, value in weights.items()})
    np.testing.assert_array_equal(_here(found.predict(there), there), expected.predict(rows))
    scores = expected.decision_function(rows)
    assert _here(found.decision_function(there), there) == pytest.approx(scores, abs=1e-3 * abs(scores).max())


def test_an_automatic_model_is_the_same_file_on_both_sides(make, tmp_path):
    model = AutoLabelClassifier(members=["rbf", "max-margin", "rbf+forest"], **QUICK)
    model.fit(make(X), Y).save(tmp_path / "m.lw")
    chances = load(tmp_path / "m.lw").predict_proba(X)
    np.testing.assert_allclose(_here(model.predict_proba(make(X)), make(X)), chances, atol=1e-10)


def test_x_decides_where_results_are(make):
    there, here = RBF.fit(make(X), Y), clone(RBF).fit(X, make(Y))
    for fitted in (there, here):
        assert isinstance(fitted.predict(X), np.ndarray)
        np.testing.assert_array_equal(_here(fitted.predict(make(X)), make(X)), fitted.predict(X))


def test_the_gap_is_that_of_double_precision(make):
    single, model = X.astype(np.float32), clone(RBF).set_params(tol=1e-6)
    expected, found = clone(model).fit(single, Y), model.fit(make(single), make(Y))
    assert found.duality_gap_ <= 1e-6  # single precision rounds objectives by about a tenth of that
    assert found.duality_gap_ == pytest.approx(expected.duality_gap_, abs=1e-11)


def test_what_a_library_holds_for_its_next_arrays_is_free(monkeypatch):
    cuda = SimpleNamespace(
        mem_get_info=lambda device: (60e6, 140e6), memory_reserved=lambda device: 50e6,
        memory_allocated=lambda device: 10e6,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    pool = SimpleNamespace(free_bytes=lambda: 20e6)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=lambda: pool))
    assert homes._free_megabytes(SimpleNamespace(type="cuda")) == pytest.approx(80)
    assert homes._free_megabytes(SimpleNamespace(mem_info=(30e6, 140e6))) == pytest.approx(40)
    assert homes._free_megabytes("cpu") is None


@pytest.mark.parametrize(("megabytes", "kind"), [(0.3, StreamedGram), (30.0, StoredGram)])
def test_the_free_memory_of_a_device_is_the_budget(make, monkeypatch, megabytes, kind):
    made = []
    for form in (StreamedGram, StoredGram):
        begin = form.__init__
        monkeypatch.setattr(
            form,
            "__init__",
            lambda self, *given, begin=begin, **named: made.append(self) or begin(self, *given, **named),
        )
    monkeypatch.setattr(homes, "_free_megabytes", lambda device: megabytes)
    rows, y = draw_labels(200, 5, 3)
    model = MaxMarginClassifier(kernel="rbf").fit(make(rows), y)
    assert model.duality_gap_ <= model.tol
    assert (kind is StoredGram) == any(isinstance(gram, StoredGram) for gram in made)


class _Own(LinearKernel):
    """A kernel of a user."""


REFUSALS = [
    (
        MaxMarginClassifier(solver="block_ascent", kernel="rbf"),
        "solver='block_ascent' has no form .*; use 'auto'",
    ),
    (MaxMarginClassifier(prune="certified"), "prune='certified' has no form for arrays of .*use 'off'"),
    (
        MaxMarginClassifier(checkpoint="fit.lwc"),
        "checkpoint='fit.lwc' has no form for arrays of .*; use None",
    ),
    (TunedThresholdClassifier(MaxMarginClassifier(checkpoint="a.lwc")), "checkpoint='a.lwc' has no form"),
    (MaxMarginClassifier(kernel=KERNEL + KERNEL * _Own()), "_Own has no form .*; use a kernel of labelweave"),
    (MaxMarginClassifier(kernel=lambda a, b: a @ b.T), "CallableKernel has no form"),
    (
        KernelLogisticClassifier(solver="exact", hyperparameters=HyperparameterSearch(tie="class")),
        "solver='exact' has no form",
    ),
    (KernelLogisticClassifier(kernel_rank=10), "kernel_rank=10 has no form .*; use None"),
    (KernelLogisticClassifier(uncertainty="laplace"), "uncertainty='laplace' has no form"),
    (
        KernelLogisticClassifier(loss=LogisticEntryLoss()),
        "loss=LogisticEntryLoss has no form .*; use 'log_loss'",
    ),
    (LowRankClassifier(rank=2, loss=LogisticEntryLoss()), "loss=LogisticEntryLoss has no form"),
    (AutoLabelClassifier(members=[LabelTreeClassifier()]), "LabelTreeClassifier has no form"),
    (LabelTreeClassifier(), "LabelTreeClassifier has no form .*; pass X as a NumPy array, or use AutoLabel"),
    (TunedThresholdClassifier(LabelTreeClassifier()), "LabelTreeClassifier has no form for arrays of"),
]


@pytest.mark.parametrize(("model", "words"), REFUSALS)
def test_what_has_no_form_is_refused(make, model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(make(X), make(Y))


def test_without_dispatch_an_error_says_how_to_allow_it():
    strict = pytest.importorskip("array_api_strict")
    rows = strict.asarray(X, device=strict.Device("device1"))
    with pytest.raises(
        ValueError, match=r"within sklearn.config_context\(array_api_dispatch=True\), or pass"
    ):
        MaxMarginClassifier().fit(rows, Y)


def test_a_device_without_double_precision_is_refused(monkeypatch):
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    rows = strict.asarray(X, dtype=strict.float32, device=strict.Device("no_float64"))
    with (
        config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match="no float64 for certificates; pass X on one that has"),
    ):
        MaxMarginClassifier().fit(rows, Y)


def test_without_dispatch_the_device_of_y_is_said_too():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(ValueError, match=r"An array is on the device .*NumPy cannot read"):
        MaxMarginClassifier().fit(X, strict.asarray(Y, device=strict.Device("device1")))


def test_without_dispatch_arrays_of_a_cpu_are_read():
    torch = pytest.importorskip("torch")
    found = MaxMarginClassifier().fit(torch.asarray(X), torch.asarray(Y)).predict(torch.asarray(X))
    np.testing.assert_array_equal(found, MaxMarginClassifier().fit(X, Y).predict(X))


def test_types_that_numpy_lacks_are_refused(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        with pytest.raises(ValueError, match=r"cannot read an array of torch\.bfloat16.*float32 or float64"):
            MaxMarginClassifier().fit(torch.asarray(X, dtype=torch.bfloat16), Y)
        MaxMarginClassifier().fit(torch.asarray(X, requires_grad=True) * 1.0, Y)
