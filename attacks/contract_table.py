"""A contract for every public name: how it is called, and valid values of its arguments.

Most contracts follow from the signature: an argument gets the usual values of its name, the choices of its
annotation, or its default.  ``ARGUMENTS`` has the exceptions, ``OBJECTS`` the objects on which methods are
called, ``ANSWERS`` the part of a result that is checked.  A test fails for a public name with an unknown
argument that is not in ``WITHOUT``.
"""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

import labelweave as lw
from attacks.own_solver import Fista
from attacks.public_names import public_names
from attacks.world import World
from labelweave import datasets, display, kernels, noise, postprocessing, report, splits
from labelweave.problems.losses import ENTRY_LOSSES

_CLASSES = np.array(["a", "b", "c"])
_NODES = ["left", "a", "b", "c"]


class ContractWorld(World):
    """Valid data of all kinds, and fitted models, cached by name."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(number)
        self.folder = folder
        random = np.random.default_rng([number, 1])
        self.names = list("pqrs")
        self.classes = _CLASSES[self.X[:, :3].argmax(1)]
        self.classes[:3] = _CLASSES
        self.Q = random.dirichlet(np.ones(3), len(self.X))
        self.weights = random.uniform(0.5, 2.0, len(self.X))
        self.tree = lw.Taxonomy([("left", "a"), ("left", "b")], nodes=["c"])
        self.graph = lw.CliqueGraph(4, [(0, 1), (1, 2, 3)], weights=None)
        self.covariance = lw.LabelCovariance.low_rank(self.F, 1.0, self.names)
        self.frame = pd.DataFrame(
            {"words": ["red apple", "green pear"] * 7, "kind": list("uv") * 7, "size": self.X[:, 0]}
        )
        self.labels = lw.LabelMatrix.from_any(self.Y, self.names)
        self.data = datasets.LabeledData(sp.csr_array(self.X), self.labels)

    def model(self, name: str) -> Any:
        """Return a fitted estimator of the table; "... of probabilities" wraps such a model."""
        if name not in self._fitted:
            kind, _, of_probabilities = name.partition(" of ")
            inner = {_WRAPPERS[kind]: _PROBABLE} if of_probabilities else {}
            self._fitted[name] = ESTIMATORS[kind].fit(self, inner)
        return self._fitted[name]

    def path(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            _FILES[name](self, path)
        return path


Values = Callable[[ContractWorld], list[Any]]
"""Valid values of an argument, the most usual one first."""


class Contract(NamedTuple):
    """How a public name is called, with valid values of all tested arguments.

    finite: whether its result may not contain NaN or infinite numbers.
    """

    call: Callable[..., Any]
    arguments: dict[str, Values]
    finite: bool = True


def _of(*values: Any) -> Values:
    return lambda world: list(values)


def _get(name: str) -> Values:
    return lambda world: [getattr(world, name)]


def _with(**arguments: Values | tuple[Any, ...] | None) -> dict[str, Any]:
    """Name valid values of arguments: a function of the world, or a tuple of those that need none."""
    return {name: _of(*one) if isinstance(one, tuple) else one for name, one in arguments.items()}


def _paths(name: str) -> Values:
    return lambda world: [world.path(name), str(world.path(name))]


def _new_path(suffix: str) -> Values:
    return lambda world: [world.folder / f"new{suffix}", str(world.folder / f"new{suffix}")]


def _models(*names: str) -> Values:
    return lambda world: [world.model(name) for name in names]


def _rows(world: ContractWorld) -> list[Any]:
    X = world.X
    frame = pd.DataFrame(X).rename(columns=str)
    return [X, sp.csr_array(X), frame, X.astype(np.float32), X.tolist(), sp.coo_matrix(X)]


def _few_rows(world: ContractWorld) -> list[Any]:
    return [*_rows(world), world.X[:1], np.asfortranarray(world.X), world.X[::-1]]


def _targets(world: ContractWorld) -> list[Any]:
    Y, missing = world.Y, world.Y.astype(float)
    missing[2, 1] = np.nan
    return [
        Y,
        sp.csr_array(Y),
        pd.DataFrame(Y, columns=world.names),
        Y.astype(bool),
        missing,
        2 * Y - 1,
        world.labels,
        Y.tolist(),
        [{"p", "q"}, ["r", "s"], None, *[("q",)] * (len(Y) - 3)],
    ]


def _targets_at(*places: int) -> Values:
    return lambda world: [values for k, values in enumerate(_targets(world)) if k in places]


_known_targets, _named_targets = _targets_at(0, 1, 2, 3, 5, 6, 7), _targets_at(2, 6)
_unnamed_targets = _targets_at(0, 1, 3, 4, 5, 7)


def _decisions(world: ContractWorld) -> list[Any]:
    Y = (world.S > 0).astype(int)
    return [Y, sp.csr_array(Y), Y.astype(bool), Y.tolist()]


def _scores(world: ContractWorld) -> list[Any]:
    return [world.S, world.S.astype(np.float32), world.S.tolist(), -world.S]


def _probabilities(world: ContractWorld) -> list[Any]:
    return [world.P, world.P.tolist(), (world.P > 0.5).astype(float)]


def _class_probabilities(world: ContractWorld) -> list[Any]:
    return [world.Q, world.Q.tolist(), np.eye(3)[[0] * len(world.Q)]]


def _row_weights(world: ContractWorld) -> list[Any]:
    return [world.weights, None, world.weights.tolist(), np.ones(len(world.X), int)]


def _classes(world: ContractWorld) -> list[Any]:
    return [world.classes, world.classes.tolist(), pd.Series(world.classes), world.classes.astype(object)]


def _one_hot(world: ContractWorld) -> list[Any]:
    table = (world.classes[:, None] == _CLASSES).astype(int)
    missing = np.where(np.arange(len(table))[:, None] > 3, table, np.nan)
    return [table, sp.csr_array(table), table.tolist(), missing]


def _some_labels(world: ContractWorld) -> list[Any]:
    return [np.array([0, 2]), [1], np.array([0]), [3, 0]]


def _label_graph(world: ContractWorld) -> list[Any]:
    return [lw.Taxonomy([("p", "q"), ("p", "r"), ("q", "s"), ("r", "s")])]


_SOME_NODES = _of(["a", "c"], np.array(["a", "left"]), ("b",))
_OF_CLASS = {"Taxonomy": _with(label_names=_SOME_NODES, names=_SOME_NODES, name=("left", "a"))}
USUAL: dict[str, Values] = _with(
    X=_rows,
    X_pool=_rows,
    Y=_targets,
    Y_train=_targets,
    Y_true=_targets,
    Y_pred=_decisions,
    y=_targets,
    y_true=_classes,
    y_pred=_classes,
    labels=_targets,
    scores=_scores,
    probabilities=_probabilities,
    sample_weight=_row_weights,
    entry_weight=lambda world: [world.W, None],
    data=_get("data"),
    graph=_get("graph"),
    taxonomy=_label_graph,
    frame=_get("frame"),
    k=(2, 1, np.int64(3)),
    names=lambda world: [None, world.names, np.array(world.names)],
    label_names=(None,),
    n_labels=(3, 1),
    random_state=(0, None),
    key=(None, b"k" * 32),
    order=(1, 2),
    min_positives=(500, 1),
    zero_division=(0.0, 1.0),
    gamma=("scale", 0.5, 1),
    degree=(3, 1),
    coef0=(1.0, 0),
    left=(kernels.RBFKernel(0.5),),
    right=(kernels.CosineKernel(),),
    leave_out=((), ["p"]),
    thresholds=(None, [0.1, 0.5]),
    label_separator=("|",),
    text=("words",),
    numeric=("size",),
    missing_numeric=("error", "mean"),
    encoder=(None, "static"),
    encoder_weight=(1.0, 0),
    no_header=(False,),
    min_df=(1, 0.1),
    ngram_range=((1, 1), (1, 2)),
    on_interrupt=("raise", "keep"),
    place=(0, 1),
    cv=(2,),
)
"""Valid values by the name of an argument, unless ``ARGUMENTS`` has others."""

# which affects only a picture or progress messages
_LEFT_ALONE = {
    *("on_iteration", "callback", "callbacks", "on_progress", "on_fit", "cmap", "colorbar", "limit"),
    *("against", "relative", "max_rejected", "max_labels", "legend", "n_named", "leaf_height", "max_levels"),
    *("measures", "counts", "block_rows", "decimal_marks", "panels"),
}


class Estimator(NamedTuple):
    """A class, parameters that make it fast, further valid parameters, and the data to fit."""

    kind: Any
    quick: dict[str, Any]
    valid: dict[str, tuple[Any, ...]]
    X: Values = _rows
    y: Values = _targets

    def made(self, given: dict[str, Any]) -> Any:
        return self.kind(**self.quick | given)

    def fit(self, world: ContractWorld, given: dict[str, Any]) -> Any:
        return self.made(given).fit(self.X(world)[0], self.y(world)[0])


_LINEAR = lw.MaxMarginClassifier(tol=0.1)
_LOGISTIC = lw.KernelLogisticClassifier("linear", hyperparameters="fixed", tol=0.1)
_KERNELS = ("linear", "rbf", "poly", kernels.LaplacianKernel())


def _embedded(texts: list[str]) -> Any:
    return np.arange(3.0) + np.array([[len(text)] for text in texts])


_TEXTS = lw.LabelText(list("pqrs"), np.eye(4)[:, :3] + 0.1)
_SCALINGS = ("none", "auto", "standard", "quantile", "unit")
ESTIMATORS = {
    "AutoLabelClassifier": Estimator(
        lw.AutoLabelClassifier, {"members": ["linear"]}, {"metric": ("micro_f1", "hamming_loss")}
    ),
    "MaxMarginClassifier": Estimator(
        lw.MaxMarginClassifier, {"tol": 0.1}, {"kernel": _KERNELS, "scaling": _SCALINGS, "C": (1.0, 0.1, 10)}
    ),
    "KernelLogisticClassifier": Estimator(
        lw.KernelLogisticClassifier,
        {"tol": 0.1, "hyperparameters": "fixed", "uncertainty": "laplace"},
        {"kernel": _KERNELS},
        y=_classes,
    ),
    "LowRankClassifier": Estimator(
        lw.LowRankClassifier,
        {"max_iter": 5, "rank": 2},
        {"penalty": ("trace_norm", "ridge"), "rank": (2, 0.5, lw.RankSearch([2], [1.0]))},
    ),
    "LabelGraphClassifier": Estimator(
        lw.LabelGraphClassifier,
        {"graph": lw.GraphGrowth(max_rounds=1), "tol": 0.1, "max_iter": 5},
        {"graph": ("none", "full")},
    ),
    "LabelTreeClassifier": Estimator(
        lw.LabelTreeClassifier,
        {"leaf_size": 2, "branching": 2, "tol": 0.1},
        {"negatives": ("reached", "all"), "prune": ("certified", "off", 0.1), "beam": (None, 2)},
    ),
    "TunedThresholdClassifier": Estimator(
        lw.TunedThresholdClassifier, {"estimator": _LINEAR, "cv": 2}, {"scope": ("label", "global", "top_k")}
    ),
    "CalibratedLabelClassifier": Estimator(
        lw.CalibratedLabelClassifier,
        {"estimator": _LINEAR, "cv": 2},
        {"method": ("auto", "sigmoid", "isotonic")},
    ),
    "ConformalLabelClassifier": Estimator(
        lw.ConformalLabelClassifier, {"estimator": _LINEAR, "level": 0.5, "confidence": 0.5}, {}
    ),
    "HierarchicalClassifier": Estimator(
        lw.HierarchicalClassifier,
        {"estimator": _LINEAR, "taxonomy": [("p", "q"), ("p", "r"), ("q", "s"), ("r", "s")]},
        {"enforce": ("max", "projection", "none"), "incomplete": (False, True)},
        y=_named_targets,
    ),
    "LabelTextClassifier": Estimator(
        lw.LabelTextClassifier,
        {"estimator": _LOGISTIC, "descriptions": _TEXTS, "covariance": "learn", "embedding": _embedded},
        {"covariance": ("learn", "none"), "mean": ("learn", 0.5)},
        y=_named_targets,
    ),
    "ZeroShotClassifier": Estimator(
        lw.ZeroShotClassifier,
        {"estimator": _LINEAR, "signatures": np.eye(5, 4, dtype=int), "temperature": 1.0},
        {},
        y=_known_targets,
    ),
    "TableModel": Estimator(
        lw.TableModel,
        {"classifier": _LINEAR, "text": "words", "categorical": "kind", "numeric": "size"},
        {"text": ("words", None)},
        X=_get("frame"),
    ),
    "BinaryRelevance": Estimator(lw.BinaryRelevance, {"tol": 0.1}, {"loss": ("squared_error", "log_loss")}),
}
_PROBABLE = lw.CalibratedLabelClassifier(_LINEAR, cv=2)
_WRAPPERS = {
    "TunedThresholdClassifier": "estimator",
    "HierarchicalClassifier": "estimator",
    "TableModel": "classifier",
}


def _fit_kernel(world: ContractWorld, kernel: Any) -> Any:
    return lw.MaxMarginClassifier(kernel=kernel, tol=0.1).fit(world.X, world.Y).decision_function(world.X)


def _written_mulan(world: ContractWorld, path: Path) -> None:
    datasets.write_mulan(world.data, path.with_suffix(".arff"), path.with_suffix(".xml"))


_FILES: dict[str, Callable[[ContractWorld, Path], Any]] = {
    "t.csv": lambda world, path: world.frame.assign(tags=["x|y", "y"] * 7, p=world.Y[:, 0]).to_csv(
        path, index=False
    ),
    "t.arff": _written_mulan,
    "t.xml": _written_mulan,
    "t.svm": lambda world, path: datasets.write_svmlight(world.data, path),
    "t.txt": lambda world, path: datasets.write_xmc(world.data, path),
    "tree.csv": lambda world, path: path.write_text("child,parent\na,left\na,right\n"),
    "h.arff": lambda world, path: datasets.write_hierarchical_arff(datasets.make_taxonomy(8, 3), path),
    "m.lw": lambda world, path: world.model("MaxMarginClassifier").save(path),
}
_COLUMNS = datasets.TableColumns(labels="tags", label_separator="|", text="words", numeric="size")


def _vectorizer() -> Any:
    return datasets.TableVectorizer("words", "kind", "size")


def _errors(world: ContractWorld) -> Any:
    return noise.find_label_errors(None, world.Y, scores=world.S).ranked(4)


def _class_calibration(world: ContractWorld) -> Any:
    return postprocessing.calibrate_classes(_one_hot(world)[0], world.Q)


_RBF, _COSINE = kernels.RBFKernel(0.5), kernels.CosineKernel()
_WITH_PARAMETERS = {
    "ARDKernel": kernels.ARDKernel(1.0, np.ones(2)),
    "ConstantKernel": kernels.ConstantKernel(),
    "CosineKernel": _COSINE,
    "ForestKernel": kernels.ForestKernel(),
    "LaplacianKernel": kernels.LaplacianKernel(0.5),
    "LinearKernel": kernels.LinearKernel(),
    "PolynomialKernel": kernels.PolynomialKernel(2, 0.5),
    "ProductKernel": kernels.ProductKernel(_RBF, _RBF),
    "RBFKernel": _RBF,
    "ScaledKernel": kernels.ScaledKernel(_RBF),
    "SumKernel": kernels.SumKernel(_RBF, _RBF),
    "CallableKernel": kernels.CallableKernel(np.dot),
}
OBJECTS: dict[str, Callable[[ContractWorld], Any]] = {
    "CliqueGraph": lambda world: world.graph,
    "LabelCovariance": lambda world: world.covariance,
    "LabelMatrix": lambda world: world.labels,
    "LabelText": lambda world: _TEXTS,
    "Taxonomy": lambda world: world.tree,
    "datasets.TableVectorizer": lambda world: _vectorizer().fit(world.frame),
    "postprocessing.IsotonicCalibration": lambda world: postprocessing.calibrate_labels(
        world.Y, world.S, "isotonic", min_positives=1
    ),
    "postprocessing.SigmoidCalibration": lambda world: postprocessing.calibrate_labels(world.Y, world.S),
    "postprocessing.SoftmaxCalibration": _class_calibration,
    "noise.LabelErrors": _errors,
    "splits.IterativeStratifiedKFold": lambda world: splits.IterativeStratifiedKFold(2),
    "splits.IterativeStratifiedShuffleSplit": lambda world: splits.IterativeStratifiedShuffleSplit(
        2, random_state=0
    ),
    **{f"kernels.{name}": lambda world, kernel=kernel: kernel for name, kernel in _WITH_PARAMETERS.items()},
}
"""What the methods of a class are called on, but for estimators and pictures."""


def _folds(world: ContractWorld, splitter: Any) -> Any:
    return list(islice(splitter.split(world.X, world.Y), 3))


def _as_features(world: ContractWorld, vectorizer: Any) -> Any:
    return vectorizer.fit_transform(world.frame)


ANSWERS: dict[str, Callable[[ContractWorld, Any], Any]] = {
    "AutoLabelClassifier.optimize_for": lambda world, found: found.predict(world.X),
    "LabelMean": lambda world, found: found.weights(),
    "LabelText": lambda world, found: found.covariance().to_dense(),
    "LabelText.mean": lambda world, found: found.scores(world.X),
    "LabelText.with_labels": lambda world, found: found.directions(),
    "TableModel.of_fitted": lambda world, found: found.predict(world.frame),
    "compare": lambda world, found: found.values["MaxMarginClassifier"]["hamming_loss"],
    "datasets.TableColumns": lambda world, found: datasets.read_table_columns(world.path("t.csv"), found).Y,
    "datasets.TableVectorizer": _as_features,
    "datasets.TableVectorizer.fit": _as_features,
    "datasets.TableVectorizer.fit_blocks": lambda world, found: found.transform(world.frame),
    "datasets.TableVectorizer.set_params": _as_features,
    "datasets.iterate_table": lambda world, found: [part.Y for part in found],
    "datasets.make_clique_toy": lambda world, found: found[0].X,
    "datasets.make_taxonomy": lambda world, found: found.X,
    "datasets.make_text_like": lambda world, found: found.X,
    "postprocessing.MapInference": lambda world, found: found.solve(
        world.S, np.zeros((len(world.S), world.graph.table_starts[-1]))
    ),
    "postprocessing.calibrate_classes": lambda world, found: postprocessing.class_probabilities(
        found, world.Q
    ),
    "postprocessing.calibrate_labels": lambda world, found: found.probabilities(world.S),
    "postprocessing.choose_thresholds": lambda world, found: found.value,
    "load": lambda world, found: found.decision_function(world.X),
    "metrics.get_scorer": lambda world, found: found(
        world.model("CalibratedLabelClassifier"), world.X, world.Y
    ),
    "suggest_queries": lambda world, found: found.gains,
    "noise.LabelErrors.corrected": lambda world, found: found.to_signs(),
    "noise.LabelErrors.ranked": lambda world, found: found.probability,
    "noise.LabelErrors.reasons": lambda world, found: [one.effect for one in found],
    "noise.LabelErrors.records": lambda world, found: [one["probability"] for one in found],
    "noise.combine_annotators": lambda world, found: found.prevalence,
    "noise.find_label_errors": lambda world, found: found.probabilities,
    "report.ReportOptions": lambda world, found: report.write_report(
        world.model("MaxMarginClassifier"), world.X, world.Y, world.folder / "r.html", options=found
    ),
    "splits.IterativeStratifiedKFold": _folds,
    "splits.IterativeStratifiedShuffleSplit": _folds,
    **{f"{name}.add_labels": lambda world, found: found.decision_function(world.X) for name in ESTIMATORS},
    **{f"kernels.{name}": _fit_kernel for name in (*_WITH_PARAMETERS, "make_kernel", "ForestKernel.of")},
    **{
        f"kernels.{name}.with_log_parameters": lambda world, found: found.log_parameters()
        for name in _WITH_PARAMETERS
    },
}
"""What is looked at of an answer that does not show its numbers by itself."""

_ROLES: dict[str, Values] = _with(
    text=("words",), categorical=("kind", None), numeric=("size",), drop=(None,), id=(None,)
)
_SIZES: dict[str, Values] = _with(test_size=(None, 0.3, 3), train_size=(None, 0.5))
_OF_CLASSES: dict[str, Values] = _with(
    probabilities=_class_probabilities, classes=(_CLASSES, _CLASSES.tolist())
)
_WITH_TREE: dict[str, Values] = _with(taxonomy=lambda world: [None, world.tree])
_IN_HIERARCHY: dict[str, Values] = _with(Y_true=_named_targets, probabilities=_scores)
_OF_NODES: dict[str, Values] = _with(labels=(pd.DataFrame([[1, 0, None, 0], [0, 0, 0, 1]], columns=_NODES),))
_FROM = "display.{}Display.from_{}".format
ARGUMENTS: dict[str, dict[str, Values | None]] = {
    # estimators
    "AutoLabelClassifier.optimize_for": _with(metric=("micro_f1", "hamming_loss")),
    "KernelLogisticClassifier.fit": _with(entry_weight=None),
    "KernelLogisticClassifier.predict_or_reject": _with(fraction=(0.2,)),
    "LabelGraphClassifier.predict_map": _with(X=_rows, known=lambda world: [None, world.Y]),
    "LabelTreeClassifier.shortlist_recall": _with(
        X=_rows, y=_get("Y"), k=(2, 1), beam=(1, 3), budget=(None, 2)
    ),
    "LabelTreeClassifier.predict_top": _with(exact=None, budget=None),
    "MaxMarginClassifier.add_labels": _with(
        names=(["new"], np.array(["new"])), label_covariance=(np.eye(5) + 0.5, lw.LabelCovariance.identity(5))
    ),
    "TableModel.of_fitted": _with(
        vectorizer=lambda world: [world.model("TableModel").vectorizer_],
        classifier=lambda world: [world.model("TableModel").classifier_],
    ),
    # labels
    "ClassProbabilities": _with(probabilities=_class_probabilities, classes=(None, list("pqr"))),
    "ClassProbabilities.of_labels": _with(
        labels=lambda world: [lw.LabelMatrix.from_probabilities(world.Q)],
        classes=(["p", "q", "r"], np.array([3, 1, 2])),
    ),
    "CliqueGraph": _with(n_labels=(4, np.int64(5)), cliques=([(0, 1), (1, 2, 3)], [], [[0, 3]])),
    "CliqueGraph.first": _with(count=(1, 2, 0)),
    "CliqueGraph.from_edges": _with(edges=([(0, 1), (1, 2)], [(0, 1)]), n_labels=(3,)),
    "LabelCovariance.check_variances": _with(label_names=USUAL["names"]),
    "LabelCovariance.dense": _with(matrix=lambda world: [world.covariance.to_dense(), np.eye(2), [[1.0]]]),
    "LabelCovariance.from_labels": _with(prior_count=(5.0, 0)),
    "LabelCovariance.from_signatures": _with(signatures=_get("G"), class_prior=(None, [1, 1, 2, 1, 0])),
    "LabelCovariance.from_taxonomy": _with(
        taxonomy=_get("tree"), label_names=_SOME_NODES, variances=(None, {"left": 2.0})
    ),
    "LabelCovariance.low_rank": _with(
        factor=lambda world: [world.F, sp.csr_array(world.F), world.F.tolist()],
        diagonal=(0.0, 1, [1.0] * 4),
        label_names=USUAL["names"],
    ),
    "LabelCovariance.scaled": _with(scale=(2.0, 1)),
    "LabelCovariance.shrink": _with(amount=(0.5, 0, 1)),
    "LabelCovariance.weighted": _with(
        parts=lambda world: [[world.covariance, np.eye(4)], {"a": world.covariance, "b": np.eye(4)}],
        weights=(None, [0.2, 0.8], np.array([1, 3])),
    ),
    "LabelMatrix": _with(positives=lambda world: [sp.csr_array(world.Y), world.Y]),
    "LabelMatrix.from_any": _with(names=(None,)),
    "LabelMatrix.from_probabilities": _with(
        P=lambda world: [0.8 * world.Y, sp.csr_array(0.3 * world.Y), world.labels], names=(None,)
    ),
    "LabelMatrix.masked": _with(
        observed=lambda world: [world.Y, world.Y.astype(bool), sp.csr_array(world.Y)]
    ),
    "LabelMatrix.select_labels": _with(labels=_some_labels),
    "LabelMatrix.stacked": _with(names=(None,)),
    "LabelMatrix.without_labels": _with(labels=_some_labels),
    "LabelMean": _with(
        label_factors=lambda world: [np.ones((3, 2)), [[1, 2], [0, 1], [2, 2]]],
        feature_factors=lambda world: [np.ones((world.X.shape[1], 2))],
        intercepts=(None, [0.0, 1.0, 2.0]),
        label_names=(None, list("abc")),
    ),
    "LabelText": _with(
        descriptions=({"a": "first", "b": ""}, ["a", "b"]),
        embedding=(np.eye(2), [[1, 0], [1, 1]], lambda texts: np.eye(2)),
    ),
    "LabelText.covariance": _with(share=(0.6, 0, 1), width=(0.7, 2)),
    "LabelText.mean": _with(
        features=lambda world: [np.ones((world.X.shape[1], 3)) * np.arange(3.0)],
        X=_get("X"),
        strength=(1.0, 2),
        level=(0.0, -1),
    ),
    "LabelText.with_labels": _with(descriptions=(["new"], {"new": "text"}), embedding=(np.ones((1, 3)),)),
    "Taxonomy": _with(pairs=([("r", "a"), ("r", "b")], {("r", "a")}), nodes=((), ["c"])),
    "Taxonomy.with_ancestors": _OF_NODES,
    "Taxonomy.matched": _OF_NODES | _with(outside=("raise", "drop", "root")),
    "Taxonomy.common_ancestor": _with(first=("a",), second=("b", "c")),
    "Taxonomy.deepest": _with(labels=(pd.DataFrame([[1, 1, 0, 0], [0, 0, 0, 1], [0] * 4], columns=_NODES),)),
    "Taxonomy.distances": _with(others=(None, ["b"])),
    "Taxonomy.from_any": _with(
        source=lambda world: [[("r", "a")], {"r": ["a", "b"]}, world.tree, ["a/b", "a/c"]]
    ),
    "Taxonomy.from_nested": _with(mapping=({"r": ["a", "b"]}, {"r": {"a": {}, "b": ["c"]}})),
    "Taxonomy.from_networkx": _with(graph=lambda world: [world.tree.to_networkx()]),
    "Taxonomy.from_paths": _with(paths=(["a/b", "a/c"], ["a"]), separator=("/", "."), ancestors=("add",)),
    "Taxonomy.groups": _with(names=(None, ["a", "b"])),
    "Taxonomy.pruned": _with(keep=((), ["a"])),
    "Taxonomy.require_tree": _with(what=("A path",)),
    "Taxonomy.under": _with(target_names=_SOME_NODES, leaf_names=(["a", "b", "c"],)),
    **{f"Taxonomy.{method}": _with(names=("a", ["a", "left"])) for method in ("depth", "is_leaf", "top")},
    "read_class_columns": _with(
        Y=lambda world: [np.c_[world.classes, world.classes], pd.DataFrame({"a": world.classes})],
        names=(None,),
    ),
    # metrics
    "metrics.average_auc": _with(sample_weight=None),
    "metrics.class_summary": _OF_CLASSES | _WITH_TREE | _with(y_pred=lambda world: [None, world.classes]),
    "metrics.column_accuracy_score": _with(
        y_true=lambda world: [np.c_[world.classes, world.classes]],
        y_pred=lambda world: [pd.DataFrame({"0": world.classes, "1": world.classes[::-1]})],
        sample_weight=None,
    ),
    "metrics.depth_table": _IN_HIERARCHY | _with(Y_pred=lambda world: [None, *_decisions(world)]),
    "metrics.error_reject_curve": _OF_CLASSES,
    "metrics.expected_calibration_error": _with(n_bins=(15, 1), least=(0.0, 0.05), sample_weight=None),
    "metrics.fmax_score": _IN_HIERARCHY,
    "metrics.get_scorer": _with(name=("micro_f1", "neg_hamming_loss", "neg_ranking_loss")),
    "metrics.h_loss": _IN_HIERARCHY,
    "metrics.harmonic_mean_accuracy": _with(seen_classes=(["a"], ["a", "b"]), sample_weight=None),
    "metrics.information_content": _with(labels=_named_targets),
    "metrics.log_loss": _OF_CLASSES | _WITH_TREE,
    "metrics.mean_reciprocal_rank": _OF_CLASSES,
    "metrics.parent_accuracy": _with(taxonomy=_get("tree")),
    "metrics.propensity_scored_precision_at_k": _with(
        propensity=(np.full(4, 0.5), [1.0] * 4), k=(2,), sample_weight=None
    ),
    "metrics.score_table": _with(k=((1, 3), [1]), sample_weight=None),
    "metrics.smin_loss": _IN_HIERARCHY | _with(information=({"p": 0.0, "q": 1.0, "r": 2.0, "s": 0.5},)),
    "metrics.taxonomic_loss": _with(taxonomy=_get("tree")),
    **{f"metrics.hierarchical_{name}_score": _IN_HIERARCHY for name in ("precision", "recall", "f1")},
    # decisions
    "postprocessing.MapInference": _with(
        method=("auto",), exact_width=(12, 0), max_nodes=(1000, 1), max_iter=(100, 1)
    ),
    "postprocessing.SoftmaxCalibration.probabilities": _with(scores=_get("Q")),
    "postprocessing.adaptive_scores": _with(probabilities=_class_probabilities, seed=(0, 3, np.int64(7))),
    "postprocessing.best_parent": _with(
        probabilities=_class_probabilities, parent_of_class=(["left", "left", "c"],)
    ),
    "postprocessing.calibrate_classes": _with(labels=_one_hot, scores=_get("Q")),
    "postprocessing.choose_thresholds": _with(
        objective=("micro_f1", "macro_f1"), shrinkage=(0.0, 0.5, "auto")
    ),
    "postprocessing.choose_top_k": _with(objective=("micro_f1",)),
    "postprocessing.class_probabilities": _with(
        calibration=lambda world: [_class_calibration(world)], scores=_get("Q")
    ),
    "postprocessing.control_mistakes": _with(level=(0.6,), guarantee=("probability",), confidence=(0.5,)),
    "postprocessing.enforce_hierarchy": _with(
        scores=_get("S"),
        label_names=_get("names"),
        enforce=("max", "projection"),
        label_weight=(None, [1.0, 2.0, 0.5, 3.0]),
    ),
    "postprocessing.expected_f1_sizes": _with(empty_value=(0.0, 1.0)),
    "postprocessing.favor_rare_labels": _with(
        labels=lambda world: [np.tile(np.arange(world.S.shape[1]), (len(world.S), 1))],
        scores=_get("S"),
        propensity=lambda world: [np.linspace(0.2, 1.0, world.S.shape[1])],
        k=(1, 2),
        power=(0.5, 0.0, 1.0),
        sharpness=(3.0, 1.0),
    ),
    "postprocessing.h_loss_sets": _with(label_names=_get("names")),
    "postprocessing.least_expected_loss": _with(
        probabilities=_class_probabilities, losses=(1 - np.eye(3), np.ones((3, 3)))
    ),
    "postprocessing.most_probable": _with(probabilities=_class_probabilities),
    "postprocessing.rejected": _with(probabilities=_class_probabilities, fraction=(0.2, 0.0, 1.0)),
    "postprocessing.scores_above_top_k": _with(
        scores=_get("S"), k=lambda world: [2, np.full(len(world.S), 1)]
    ),
    "postprocessing.term_lists": _with(label_names=_get("names")),
    "splits.IterativeStratifiedKFold": _with(n_splits=(2, 3), shuffle=(True, False), random_state=(None,)),
    "splits.IterativeStratifiedShuffleSplit": _SIZES | _with(n_splits=(2, 1)),
    "splits.stratified_train_test_split": _SIZES
    | _with(y=_known_targets, random_state=(0, None), order=(1, 2), stratify=(None,)),
    # kernels
    "testing.check_covariance": _with(
        covariance=lambda world: [world.covariance, lw.LabelCovariance.identity(3)]
    ),
    "testing.check_kernel": _with(
        kernel=(kernels.RBFKernel(0.5), kernels.LinearKernel()),
        X=lambda world: [None, world.X, sp.csr_array(world.X)],
    ),
    "testing.check_loss": _with(loss=(ENTRY_LOSSES["log_loss"](),)),
    "testing.check_solver": _with(solver=(Fista(),)),
    "kernels.ARDKernel": _with(gamma=(1.0, 0.5)),
    "kernels.CallableKernel": _with(function=(lambda left, right: np.asarray(left) @ np.asarray(right).T,)),
    "kernels.ConstantKernel": _with(value=(1.0, 2)),
    "kernels.ForestKernel": _with(n_trees=(5, 1), random_state=(0, 7)),
    "kernels.ForestKernel.of": _with(forest=lambda world: [_forest(world)]),
    "kernels.ScaledKernel": _with(kernel=(_RBF,), scale=(1.0, 0)),
    "kernels.make_kernel": _with(kernel=("rbf", "linear", "poly", _RBF)),
    **{
        f"kernels.{name}.with_log_parameters": _with(theta=(kernel.log_parameters(),))
        for name, kernel in _WITH_PARAMETERS.items()
    },
    # data sets
    "datasets.LabeledData": _with(
        X=lambda world: [world.X, sp.csr_array(world.X), world.X.astype(np.float32)],
        Y=_get("labels"),
        feature_names=(None, np.array(list("abcdef"))),
        first_feature=(None, 0, 1),
    ),
    "datasets.TableColumns": _ROLES | _with(labels=("tags", ["p"], None)),
    "datasets.TableVectorizer": _with(categorical=("kind",)),
    "datasets.TableVectorizer.fit": _with(y=(None,)),
    "datasets.TableVectorizer.set_params": {
        name: USUAL[name] for name in ("text", "numeric", "min_df", "ngram_range", "missing_numeric")
    }
    | _with(categorical=("kind",), sublinear_tf=(False,)),
    "datasets.detect_format": _with(
        path=lambda world: [world.path("t.csv"), world.path("t.arff"), world.path("t.txt")],
        labels=("tags", ["p"], None),
    ),
    "datasets.iterate_table": _with(
        path=_paths("t.csv"), columns=(_COLUMNS,), chunk_rows=(5, 1), label_names=(["x", "y"],)
    ),
    "datasets.load_debtags": _with(return_X_y=(True,)),
    "datasets.make_clique_toy": _with(n_rows=(20, 1)),
    "datasets.make_taxonomy": _with(
        n_rows=(20, 1), n_features=(3, 1), depth=(2, 1), branching=(2, 3), decay=(0.7, 1), noise=(1.0, 0)
    ),
    "datasets.make_text_like": _with(
        n_rows=(20, 1), n_features=(30,), n_labels=(4, 6), labels_per_row=(1.5,), words_per_row=(5,)
    ),
    "datasets.read_any": _with(
        path=lambda world: [world.path("t.svm"), world.path("t.arff"), world.path("h.arff")]
    ),
    "datasets.read_hierarchical_arff": _with(path=_paths("h.arff")),
    "datasets.read_mulan": _with(
        arff=_paths("t.arff"), xml=_paths("t.xml"), n_labels=(None,), labels=("end",)
    ),
    "datasets.read_svmlight": _with(
        path=_paths("t.svm"),
        n_features=(None, 6),
        n_labels=(None, 4),
        zero_based=("auto", True),
        label_names=(None, ["0", "1"]),
    ),
    "datasets.read_table": _ROLES
    | _with(
        path=_paths("t.csv"),
        label_names=(None, ["x", "y"]),
        labels=("tags",),
        label_separator=USUAL["label_separator"],
        empty_labels=("none", "unknown"),
    ),
    "datasets.read_table_columns": _with(
        path=_paths("t.csv"), columns=(_COLUMNS,), label_names=(None, ["x", "y"])
    ),
    "datasets.read_taxonomy": _with(path=_paths("tree.csv"), relations=(("is_a",),)),
    "datasets.read_xmc": _with(
        path=_paths("t.txt"),
        dtype=(np.float64, np.float32, "float32"),
        all_labels=(False, True),
        label_names=(None, ["0", "1"]),
    ),
    "datasets.write_hierarchical_arff": _with(
        data=lambda world: [datasets.make_taxonomy(8, 3)], path=_new_path(".arff")
    ),
    "datasets.write_mulan": _with(arff=_new_path(".arff"), xml=_new_path(".xml")),
    "datasets.write_svmlight": _with(path=_new_path(".svm")),
    "datasets.write_xmc": _with(path=_new_path(".txt")),
    # pictures
    _FROM("CalibrationCurve", "estimator"): _with(estimator=_models("CalibratedLabelClassifier")),
    _FROM("Combination", "estimator"): _with(estimator=_models("AutoLabelClassifier")),
    _FROM("DualProgress", "estimator"): _with(estimator=_models("MaxMarginClassifier")),
    _FROM("ErrorReject", "estimator"): _with(
        estimator=_models("KernelLogisticClassifier"), y=_classes, name=(None, "curve")
    ),
    _FROM("LabelCovariance", "estimator"): _with(estimator=lambda world: [_with_covariance(world)]),
    _FROM("LabelGraph", "estimator"): _with(estimator=_models("LabelGraphClassifier")),
    _FROM("LabelGraphPath", "estimator"): _with(estimator=_models("LabelGraphClassifier")),
    _FROM("LabelQuality", "estimator"): _with(estimator=_models("MaxMarginClassifier")),
    _FROM("PredictionPath", "estimator"): _with(
        estimator=_models("KernelLogisticClassifier"),
        X=lambda world: [world.X[:1], world.X[:1].tolist(), sp.csr_array(world.X[:1])],
        taxonomy=_get("tree"),
    ),
    _FROM("Taxonomy", "estimator"): _with(
        estimator=_models("KernelLogisticClassifier"), y=_classes, taxonomy=_get("tree")
    ),
    _FROM("ThresholdCurve", "estimator"): _with(
        estimator=_models("MaxMarginClassifier"), response_method=("auto",)
    ),
    _FROM("CalibrationCurve", "predictions"): _with(labels=(None,), n_bins=(10, 2), least=None),
    _FROM("DualProgress", "traces"): _with(
        traces=lambda world: [{"a": world.model("MaxMarginClassifier").trace_}]
    ),
    _FROM("ErrorReject", "predictions"): _OF_CLASSES | _with(name=None),
    _FROM("LabelCovariance", "covariance"): _with(
        covariance=_get("covariance"),
        label_names=USUAL["names"],
        centered=(None,),
        order=("cluster", "given"),
    ),
    _FROM("LabelGraph", "graph"): _with(label_names=USUAL["names"], max_cliques=(50, 1)),
    _FROM("LabelQuality", "predictions"): _with(frequency=(None, [1, 2, 3, 4])),
    _FROM("PredictionPath", "predictions"): _with(
        taxonomy=_get("tree"),
        y_pred=lambda world: [world.classes[:1], [str(world.classes[0])], str(world.classes[0])],
        probabilities=([1 / len(_CLASSES)] * len(_CLASSES),),
        label_names=(_CLASSES, _CLASSES.tolist()),
    ),
    _FROM("Taxonomy", "predictions"): _with(taxonomy=_get("tree")),
    _FROM("ThresholdCurve", "predictions"): _with(labels=(None,), thresholds=(None,)),
    # wrong labels
    "noise.LabelErrors.corrected": _with(least=(0.5, 1), how=("hide", "flip")),
    "noise.LabelErrors.ranked": _with(top=(3, 0)),
    "noise.LabelErrors.reasons": _with(most=(3, 0)),
    "noise.LabelErrors.records": _with(most_reasons=(3, 0)),
    "noise.combine_annotators": _with(
        answers=lambda world: [[world.Y, 1 - world.Y], {"a": world.labels, "b": world.Y}],
        smoothing=(5.0, 1),
        max_iter=(500, 1),
    ),
    "noise.find_label_errors": _with(
        scores=(_LINEAR,),
        flip_rates=(None, (None, 0.0), (0.1, [0.1, 0.0, 0.2, 0.1])),
        related=(True, False, np.eye(4) + 0.5),
        random_state=(0, 7),
    ),
    # complete models
    "compare": _with(estimators=(_LINEAR, [_LINEAR])),
    "load": _with(path=_paths("m.lw"), key=(None,)),
    "suggest_queries": _with(
        model=lambda world: [world.model("MaxMarginClassifier"), None],
        n=(2,),
        known=_unnamed_targets,
        strategy=("expected_error", "uncertainty", "random"),
        random_state=(0,),
    ),
    "report.ReportOptions": _with(title=("t",), facts=({},), weakest=(2,), examples=(1,)),
    "report.write_report": _with(
        model=_models("MaxMarginClassifier"), y=_unnamed_targets, path=_new_path(".html"), options=(None,)
    ),
    "save": _with(model=_models("MaxMarginClassifier"), path=_new_path(".lw")),
}
"""Valid values of the arguments of a name that have others than usual; None leaves an argument alone."""


def _forest(world: ContractWorld) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(3, random_state=0).fit(world.X, world.Y)


def _with_covariance(world: ContractWorld) -> Any:
    return lw.MaxMarginClassifier(label_covariance=world.covariance, tol=0.1).fit(world.X, world.Y)


CALLS: dict[str, Callable[..., Any]] = {
    "LabelMatrix.stacked": lambda world, names: lw.LabelMatrix.stacked(
        [world.labels, lw.LabelMatrix(world.Y, None, names)]
    ),
    "datasets.TableVectorizer.fit_blocks": lambda world, frame: _vectorizer().fit_blocks([frame, frame]),
    "datasets.TableVectorizer.transform": lambda world, frame: (
        _vectorizer().fit(world.frame).transform(frame)
    ),
    "splits.stratified_train_test_split": lambda world, X, y, **given: splits.stratified_train_test_split(
        X, y, **given
    ),
}
"""How names are called that take other things than valid values one by one."""

_NOT_FINITE = {
    *(f"{name}.predict_log_proba" for name in ESTIMATORS),
    "LabelTreeClassifier.shortlist_recall",
    "postprocessing.control_mistakes",
    "splits.stratified_train_test_split",  # what it was given
    *(
        f"metrics.{name}"
        for name in (
            "average_auc", "average_precision_score", "column_accuracy_score", "depth_table", "fmax_score",
            "harmonic_mean_accuracy",
            "propensity_scored_precision_at_k", "score_table", "smin_loss",
        )
    ),
}  # fmt: skip


# ---- from annotations


def arguments_of(name: str, function: Any, own: dict[str, Values]) -> dict[str, Values]:
    """Find valid values of all arguments.

    own: those of the arguments of a class of names.
    Raises LookupError if nothing is known about an argument.
    """
    told, found, taken = ARGUMENTS.get(name, {}), dict[str, Values](), inspect.signature(function).parameters
    of_others = [one for one in taken.values() if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    for argument, parameter in taken.items():
        if argument in told or parameter in of_others or argument in ("self", "cls", "world", *_LEFT_ALONE):
            continue
        values = own.get(argument) or USUAL.get(argument) or _of_annotation(function, parameter)
        is_array = parameter.annotation == "Array"  # which lists and similar objects are not
        found[argument] = (lambda world, values=values: values(world)[:1]) if is_array else values
    return found | {
        argument: values
        for argument, values in told.items()
        if values is not None and (of_others or argument in taken)
    }


def _of_annotation(function: Any, parameter: inspect.Parameter) -> Values:
    default = () if parameter.default is parameter.empty else (parameter.default,)
    if default in ((True,), (False,)):
        return _of(*default, not default[0])
    try:
        hint = eval(str(parameter.annotation), vars(sys.modules[function.__module__]))
    except NameError:  # imported only for type checkers
        hint = None
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    parts = typing.get_args(hint) if is_union else (hint,)
    choices = [one for part in parts if typing.get_origin(part) is Literal for one in typing.get_args(part)]
    choices += [None] if type(None) in parts else []
    values = [*default, *(one for one in choices if one not in default)]
    if not values:
        raise LookupError(f"Nothing is known of the argument {parameter.name}.")
    return _of(*values)


def _looked_at(name: str, world: ContractWorld, found: Any) -> Any:
    if name in ANSWERS:
        return ANSWERS[name](world, found)
    if isinstance(found, lw.LabelCovariance):
        return found.to_dense()
    return list(found) if isinstance(found, Iterator) else found


def _of_estimator(name: str, method: str, function: Any) -> Contract:
    estimator, full = ESTIMATORS[name], f"{name}.{method}"
    is_few = estimator.X is _rows and "y" not in inspect.signature(function).parameters
    own = {"X": _few_rows if is_few else estimator.X, "y": estimator.y, "path": _new_path(".lw")}

    def call(world: ContractWorld, **given: Any) -> Any:
        if method in ("fit", "partial_fit"):
            return getattr(estimator.made({}), method)(**given).predict(given["X"])
        if method == "add_labels":  # which changes the object
            return _looked_at(full, world, estimator.fit(world, {}).add_labels(**given))
        of_probabilities = name in _WRAPPERS and method == "predict_proba"
        model = world.model(f"{name} of probabilities" if of_probabilities else name)
        return _looked_at(full, world, getattr(model, method)(**given))

    return Contract(call, arguments_of(full, function, own))


def _of_constructor(estimator: Estimator) -> Contract:
    """Parameters are checked in ``fit``, as everywhere in scikit-learn."""

    def call(world: ContractWorld, **given: Any) -> Any:
        model, X = estimator.fit(world, given), estimator.X(world)[0]
        return model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)

    arguments = {}
    for name, parameter in inspect.signature(estimator.kind).parameters.items():
        default = () if parameter.default is parameter.empty else (parameter.default,)
        quick = (estimator.quick[name],) if name in estimator.quick else default
        if name not in _LEFT_ALONE:
            arguments[name] = _of(*estimator.valid.get(name, quick))
    return Contract(call, arguments)


def _drawn(name: str) -> Callable[[ContractWorld], Any]:
    """Draw a picture of a class, on which methods are called."""
    make = getattr(display, name.removeprefix("display.")).from_estimator
    arguments = arguments_of(f"{name}.from_estimator", make, {})
    return lambda world: make(**{argument: values(world)[0] for argument, values in arguments.items()})


def _contract(name: str, public: dict[str, Any]) -> Contract:
    outer, _, method = name.rpartition(".")
    owner = public.get(outer)
    if name in ESTIMATORS:
        return _of_constructor(ESTIMATORS[name])
    if outer in ESTIMATORS:
        return _of_estimator(outer, method, public[name])
    make: Callable[[ContractWorld], Any] = lambda world: public[name]  # noqa: E731
    if name in CALLS:
        make = lambda world: partial(CALLS[name], world)  # noqa: E731
    elif inspect.isclass(owner):
        is_bound = isinstance(inspect.getattr_static(owner, method), classmethod | staticmethod)
        of = OBJECTS.get(outer) or (_drawn(outer) if outer.startswith("display.") else None)
        if of is None and not is_bound:
            raise LookupError(f"Nothing is known of what {name} is called on.")
        make = lambda world: getattr(owner if is_bound else of(world), method)  # noqa: E731

    def call(world: ContractWorld, **given: Any) -> Any:
        try:
            return _looked_at(name, world, make(world)(**given))
        finally:
            plt.close("all")

    return Contract(call, arguments_of(name, CALLS.get(name, public[name]), _OF_CLASS.get(outer, {})))


_WITHOUT = {
    name: why
    for why, names in {
        "an abstract class": (
            *("kernels.Kernel.with_log_parameters", "postprocessing.LabelCalibration"),
            *("postprocessing.LabelCalibration.probabilities",),
            *map("testing.EntryLoss.{}".format, ("conjugate", "evaluate", "log_odds")),
        ),
        "takes nothing": ("metrics.get_scorer_names",),
        "a record that the library makes": (
            *map("noise.{}".format, ("CombinedAnswers", "FlipRates", "LabelErrors", "Reason")),
            *map("postprocessing.{}".format, ("ConformalThreshold", "ExpectedF1Sizes", "MapResult")),
            *map("postprocessing.{}".format, ("ThresholdChoice", "TopKChoice")),
            *map("postprocessing.{}Calibration".format, ("Isotonic", "Sigmoid", "Softmax")),
        ),
        "its values are checked by the classifier that takes it": [
            name + method
            for name in ("GraphGrowth", "HyperparameterSearch", "RankSearch")
            for method in ("", ".save", ".set_params")
        ],
        "a part of the operator that solvers ask for, in inner loops, by places that they have made": (
            *("LabelCovariance.block", "LabelCovariance.columns", "LabelText.columns"),
            *map("LabelMean.{}".format, ("columns", "factors", "products", "scores")),
        ),
        "the same as MaxMarginClassifier.add_labels": (
            "KernelLogisticClassifier.add_labels",
            "LowRankClassifier.add_labels",
        ),
        "takes what LabelText.with_labels does": ("LabelTextClassifier.add_labels",),
    }.items()
    for name in names
}


def _without(name: str, value: Any) -> str | None:
    """Return why a public name has no contract; None if it has one."""
    if name.startswith("dask."):
        return "takes collections of a cluster; tests/dask hands it those that make no sense"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "an error or a warning"
    is_abstract = getattr(value, "__isabstractmethod__", False) and name.rpartition(".")[0] not in OBJECTS
    if inspect.isabstract(value) or is_abstract:
        return "an abstract class"
    if name.startswith("display.") and inspect.isclass(value):
        return "made by its from_ methods"
    return _WITHOUT.get(name)


def _read() -> tuple[dict[str, Contract], dict[str, str]]:
    public, found = public_names(), dict[str, Contract]()
    without = {name: why for name, value in public.items() if (why := _without(name, value)) is not None}
    for name in public.keys() - without.keys():
        try:
            found[name] = _contract(name, public)._replace(finite=name not in _NOT_FINITE)
        except LookupError:
            continue  # a test reports that it is missing
    return {name: found[name] for name in public if name in found}, without


CONTRACTS, WITHOUT = _read()
"""Contracts by public name; and those without one, with why."""
