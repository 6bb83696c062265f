"""A contract for every public name: how it is called, and valid values of its arguments.

A name that a package offers and that stands neither in ``CONTRACTS`` nor in ``WITHOUT`` fails a test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

import labelweave as lw
from attacks.sparse_arrays import World
from labelweave import datasets, display, extending, inference, kernels, metrics, noise, report, splits
from labelweave.problems.losses import ENTRY_LOSSES

_CLASSES = np.array(["a", "b", "c"])
_NODES = ["left", "a", "b", "c"]


class ContractWorld(World):
    """Valid data of all kinds, and what is made of it, kept by name."""

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
        """Give an estimator of the table, fitted; "... of probabilities" is one around such a model."""
        if name not in self._fitted:
            kind, _, of_probabilities = name.partition(" of ")
            inner = {_WRAPPERS[kind]: _PROBABLE} if of_probabilities else {}
            self._fitted[name] = ESTIMATORS[kind].fit(self, inner)
        return self._fitted[name]

    def path(self, name: str) -> Path:
        """Give a file of the world, written when it is first asked for."""
        path = self.folder / name
        if not path.exists():
            _FILES[name](self, path)
        return path


Values = Callable[[ContractWorld], list[Any]]
"""Valid values of an argument, the most usual one first."""


class Contract(NamedTuple):
    """How a public name is called, with valid values of all arguments that are tried.

    finite: whether its answer may have no NaN and no infinite number.
    """

    call: Callable[..., Any]
    arguments: dict[str, Values]
    finite: bool = True


def _of(*values: Any) -> Values:
    return lambda world: list(values)


def _rows(world: ContractWorld) -> list[Any]:
    X = world.X
    return [
        X,
        sp.csr_array(X),
        pd.DataFrame(X).rename(columns=str),
        X.astype(np.float32),
        X.tolist(),
        sp.coo_matrix(X),
    ]


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


def _known_targets(world: ContractWorld) -> list[Any]:
    return [values for k, values in enumerate(_targets(world)) if k not in (4, 8)]


def _named_targets(world: ContractWorld) -> list[Any]:
    return [values for k, values in enumerate(_targets(world)) if k in (2, 6)]


def _unnamed_targets(world: ContractWorld) -> list[Any]:
    return [values for k, values in enumerate(_targets(world)) if k not in (2, 6, 8)]


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
    return [
        table,
        sp.csr_array(table),
        table.tolist(),
        np.where(np.arange(len(table))[:, None] > 3, table, np.nan),
    ]


def _named(world: ContractWorld) -> list[Any]:
    return [None, world.names, np.array(world.names)]


def _get(name: str) -> Values:
    return lambda world: [getattr(world, name)]


def _paths(name: str) -> Values:
    return lambda world: [world.path(name), str(world.path(name))]


def _new_path(suffix: str) -> Values:
    return lambda world: [world.folder / f"new{suffix}", str(world.folder / f"new{suffix}")]


def _plain(function: Callable[..., Any], finite: bool = True, /, **arguments: Values) -> Contract:
    return Contract(lambda world, **given: function(**given), arguments, finite)


def _on(make: Callable[[ContractWorld], Any], method: str, /, **arguments: Values) -> Contract:
    return Contract(lambda world, **given: getattr(make(world), method)(**given), arguments)


# ---- estimators


class Estimator(NamedTuple):
    """A class, the parameters that make it quick, valid ones beside these, and what it is fitted to."""

    kind: Any
    quick: dict[str, Any]
    valid: dict[str, tuple[Any, ...]]
    X: Values = _rows
    y: Values = _targets
    weights: tuple[str, ...] = ("sample_weight",)

    def made(self, world: ContractWorld, given: dict[str, Any]) -> Any:
        """Make one; a function stands for what a world has."""
        parameters = self.quick | given
        return self.kind(
            **{k: v(world) if getattr(v, "of_world", False) else v for k, v in parameters.items()}
        )

    def fit(self, world: ContractWorld, given: dict[str, Any]) -> Any:
        """Make one and fit it to the usual rows."""
        return self.made(world, given).fit(self.X(world)[0], self.y(world)[0])


def _world(function: Callable[[ContractWorld], Any]) -> Any:
    function.of_world = True  # type: ignore[attr-defined]
    return function


_LINEAR = lw.MaxMarginClassifier(tol=0.1)
_LOGISTIC = lw.KernelLogisticClassifier("linear", hyperparameters="fixed", tol=0.1)
_KERNELS = ("linear", "rbf", "poly", kernels.LaplacianKernel())


def _embedded(texts: list[str]) -> Any:
    return np.arange(3.0) + np.array([[len(text)] for text in texts])


_TEXTS = lw.LabelText(list("pqrs"), np.eye(4)[:, :3] + 0.1)
_SCALINGS = ("none", "auto", "standard", "quantile", "unit")
_BOTH = ("sample_weight", "entry_weight")
ESTIMATORS = {
    "AutoLabelClassifier": Estimator(
        lw.AutoLabelClassifier, {"members": ["linear"]}, {"metric": ("micro_f1", "hamming_loss")}
    ),
    "MaxMarginClassifier": Estimator(
        lw.MaxMarginClassifier,
        {"tol": 0.1},
        {"kernel": _KERNELS, "scaling": _SCALINGS, "C": (1.0, 0.1, 10)},
        weights=_BOTH,
    ),
    "KernelLogisticClassifier": Estimator(
        lw.KernelLogisticClassifier,
        {"tol": 0.1, "hyperparameters": "fixed"},
        {"kernel": _KERNELS},
        y=_classes,
        weights=_BOTH,
    ),
    "LowRankClassifier": Estimator(
        lw.LowRankClassifier,
        {"max_iter": 5, "rank": 2},
        {"penalty": ("trace_norm", "ridge"), "rank": (2, 0.5)},
        weights=_BOTH,
    ),
    "LowRankClassifierCV": Estimator(
        lw.LowRankClassifierCV,
        {"max_iter": 3, "ranks": [2], "regularizations": [1.0], "cv": 2},
        {"ranks": ([2], [1, 2])},
        weights=_BOTH,
    ),
    "LabelGraphClassifier": Estimator(
        lw.LabelGraphClassifier,
        {"max_rounds": 1, "tol": 0.1, "max_iter": 5},
        {"graph": ("learn", "none", "full")},
        weights=_BOTH,
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
        {"estimator": _LINEAR, "signatures": _world(lambda world: world.G), "temperature": 1.0},
        {},
        y=_known_targets,
        weights=("groups",),
    ),
    "TableModel": Estimator(
        lw.TableModel,
        {"classifier": _LINEAR, "text": "words", "categorical": "kind", "numeric": "size"},
        {"text": ("words", None)},
        X=lambda world: [world.frame],
    ),
    "BinaryRelevance": Estimator(lw.BinaryRelevance, {"tol": 0.1}, {"loss": ("squared", "logistic")}),
}
_PROBABLE = lw.CalibratedLabelClassifier(_LINEAR, cv=2)
_WRAPPERS = {
    "TunedThresholdClassifier": "estimator",
    "HierarchicalClassifier": "estimator",
    "TableModel": "classifier",
}


def _constructor(estimator: Estimator) -> Contract:
    """Parameters are checked in ``fit``, as in all of scikit-learn."""

    def call(world: ContractWorld, **given: Any) -> Any:
        model = estimator.fit(world, given)
        return (
            model.predict_proba(estimator.X(world)[0])
            if not hasattr(model, "decision_function")
            else (model.decision_function(estimator.X(world)[0]))
        )

    arguments = {}
    for name, parameter in inspect.signature(estimator.kind).parameters.items():
        default = () if parameter.default is parameter.empty else (parameter.default,)
        quick = (estimator.quick[name],) if name in estimator.quick else default
        values = estimator.valid.get(name, quick)
        if name not in ("on_iteration", "callback", "callbacks"):
            arguments[name] = _of(*values)
    return Contract(call, arguments)


def _estimator_contracts() -> dict[str, Contract]:
    made: dict[str, Contract] = {}
    for name, estimator in ESTIMATORS.items():
        made[name] = _constructor(estimator)

        def make(world: ContractWorld, name: str = name) -> Any:
            return world.model(name)

        def answered(world: ContractWorld, method: str, e: Estimator = estimator, **given: Any) -> Any:
            model = getattr(e.made(world, {}), method)(**given)
            return model.predict(given["X"])

        for method in ("fit", "partial_fit"):
            if hasattr(estimator.kind, method) or (
                method == "partial_fit" and name in ("MaxMarginClassifier", "LowRankClassifier")
            ):
                taken = (
                    inspect.signature(getattr(estimator.kind, method)).parameters
                    if method == "fit"
                    else ("X", "y")
                )
                arguments = {"X": estimator.X, "y": estimator.y}
                arguments |= {w: _row_weights for w in ("sample_weight",) if w in taken}
                arguments |= (
                    {"entry_weight": lambda world: [world.W, None]}
                    if "entry_weight" in taken and name != "KernelLogisticClassifier"
                    else {}
                )
                arguments |= {"groups": _of(None)} if "groups" in taken else {}
                made[f"{name}.{method}"] = Contract(
                    lambda world, m=method, f=answered, **given: f(world, m, **given), arguments
                )
        few = _few_rows if estimator.X is _rows else estimator.X
        for method in (
            "predict",
            "decision_function",
            "predict_proba",
            "predict_log_proba",
            "expected_attributes",
            "predict_attributes",
        ):
            asked = f"{name} of probabilities" if name in _WRAPPERS and method == "predict_proba" else name
            made[f"{name}.{method}"] = _on(
                lambda world, asked=asked: world.model(asked), method, X=few
            )._replace(finite=method != "predict_log_proba")
        made[f"{name}.predict_top"] = _on(make, "predict_top", X=few, k=_of(2, 1, np.int64(3)))
        made[f"{name}.score"] = _on(make, "score", X=estimator.X, y=estimator.y, sample_weight=_row_weights)
        made[f"{name}.save"] = _on(make, "save", path=_new_path(".lw"), key=_of(None, b"k" * 32))
    made["KernelLogisticClassifier.predict_or_reject"] = _on(
        lambda world: world.model("KernelLogisticClassifier"),
        "predict_or_reject",
        X=_few_rows,
        fraction=_of(0.2),
        confidence=_of(None),
    )
    made["LabelGraphClassifier.predict_map"] = _on(
        lambda world: world.model("LabelGraphClassifier"),
        "predict_map",
        X=_rows,
        known=lambda world: [None, world.Y],
    )
    made["LabelTreeClassifier.shortlist_recall"] = _on(
        lambda world: world.model("LabelTreeClassifier"),
        "shortlist_recall",
        X=_rows,
        y=lambda world: [world.Y],
        k=_of(2, 1),
        beam=_of(1, 3),
        budget=_of(None, 2),
    )._replace(finite=False)
    made["AutoLabelClassifier.with_metric"] = Contract(
        lambda world, metric: world.model("AutoLabelClassifier").with_metric(metric).predict(world.X),
        {"metric": _of("micro_f1", "hamming_loss")},
    )
    made["MaxMarginClassifier.add_labels"] = Contract(_added, _ADDED)
    made["TableModel.of_fitted"] = Contract(
        lambda world, vectorizer, classifier, columns: lw.TableModel.of_fitted(
            vectorizer, classifier, columns
        ).predict(world.frame),
        {
            "vectorizer": lambda world: [world.model("TableModel").vectorizer_],
            "classifier": lambda world: [world.model("TableModel").classifier_],
            "columns": _of(None),
        },
    )
    return made


def _added(world: ContractWorld, **given: Any) -> Any:
    model = ESTIMATORS["MaxMarginClassifier"].fit(world, {})
    return model.add_labels(**given).decision_function(world.X)


_ADDED: dict[str, Values] = {
    "names": _of(["new"], np.array(["new"])),
    "label_covariance": _of(np.eye(5) + 0.5, lw.LabelCovariance.identity(5)),
    "label_mean": _of(None),
}


# ---- labels


def _some_labels(world: ContractWorld) -> list[Any]:
    return [np.array([0, 2]), [1], np.array([0]), [3, 0]]


def _label_contracts() -> dict[str, Contract]:
    covariance, graph, tree = lw.LabelCovariance, lw.CliqueGraph, lw.Taxonomy
    on_tree = lambda world: world.tree  # noqa: E731
    some_nodes = _of(["a", "c"], np.array(["a", "left"]), ("b",))
    return {
        "LabelMatrix": _plain(
            lw.LabelMatrix, positives=_known_targets_table, observed=_of(None), names=_named, doubts=_of(None)
        ),
        "LabelMatrix.from_probabilities": _plain(
            lw.LabelMatrix.from_probabilities,
            P=lambda world: [0.8 * world.Y, sp.csr_array(0.3 * world.Y), world.labels],
            names=_of(None),
        ),
        "ClassProbabilities": _plain(
            lw.ClassProbabilities, probabilities=_class_probabilities, classes=_of(None, list("pqr"))
        ),
        "ClassProbabilities.of_labels": _plain(
            lw.ClassProbabilities.of_labels,
            labels=lambda world: [lw.LabelMatrix.from_probabilities(world.Q)],
            classes=_of(["p", "q", "r"], np.array([3, 1, 2])),
        ),
        "LabelMatrix.stacked": Contract(
            lambda world, names: lw.LabelMatrix.stacked([world.labels, lw.LabelMatrix(world.Y, None, names)]),
            {"names": _of(None)},
        ),
        "LabelMatrix.from_any": _plain(lw.LabelMatrix.from_any, Y=_targets, names=_of(None)),
        "LabelMatrix.masked": _on(
            _get_labels,
            "masked",
            observed=lambda world: [world.Y, world.Y.astype(bool), sp.csr_array(world.Y)],
        ),
        "LabelMatrix.select_labels": _on(_get_labels, "select_labels", labels=_some_labels),
        "LabelMatrix.without_labels": _on(_get_labels, "without_labels", labels=_some_labels),
        "CliqueGraph": _plain(
            graph,
            n_labels=_of(4, np.int64(5)),
            cliques=_of([(0, 1), (1, 2, 3)], [], [[0, 3]]),
            label_names=_of(None),
            weights=_of(None),
            signs=_of(None),
        ),
        "CliqueGraph.complete": _plain(graph.complete, n_labels=_of(3, 1), label_names=_of(None)),
        "CliqueGraph.empty": _plain(graph.empty, n_labels=_of(3, 1), label_names=_of(None)),
        "CliqueGraph.from_edges": _plain(
            graph.from_edges, edges=_of([(0, 1), (1, 2)], [(0, 1)]), label_names=_of(None), n_labels=_of(3)
        ),
        "CliqueGraph.first": _on(lambda world: world.graph, "first", count=_of(1, 2, 0)),
        "LabelCovariance.dense": _shown(
            covariance.dense,
            matrix=lambda world: [world.covariance.to_dense(), np.eye(2), [[1.0]]],
            label_names=_of(None),
        ),
        "LabelCovariance.identity": _shown(covariance.identity, n_labels=_of(3, 1), label_names=_of(None)),
        "LabelCovariance.low_rank": _shown(
            covariance.low_rank,
            factor=lambda world: [world.F, sp.csr_array(world.F), world.F.tolist()],
            diagonal=_of(0.0, 1, [1.0] * 4),
            label_names=_named,
        ),
        "LabelCovariance.from_labels": _shown(
            covariance.from_labels, Y=_targets, centered=_of(True, False), prior_count=_of(5.0, 0)
        ),
        "LabelCovariance.from_signatures": _shown(
            covariance.from_signatures, signatures=_get("G"), class_prior=_of(None, [1, 1, 2, 1, 0])
        ),
        "LabelCovariance.from_taxonomy": _shown(
            covariance.from_taxonomy,
            taxonomy=_get("tree"),
            label_names=some_nodes,
            variances=_of(None, {"left": 2.0}),
            normalized=_of(True, False),
        ),
        "LabelMean": Contract(
            lambda world, **given: lw.LabelMean(**given).weights(),
            {
                "label_factors": lambda world: [np.ones((3, 2)), [[1, 2], [0, 1], [2, 2]]],
                "feature_factors": lambda world: [np.ones((world.X.shape[1], 2))],
                "intercepts": _of(None, [0.0, 1.0, 2.0]),
                "label_names": _of(None, list("abc")),
            },
        ),
        "LabelText": Contract(
            lambda world, **given: lw.LabelText(**given).covariance().to_dense(),
            {
                "descriptions": _of({"a": "first", "b": ""}, ["a", "b"]),
                "embedding": _of(np.eye(2), [[1, 0], [1, 1]], lambda texts: np.eye(2)),
            },
        ),
        "LabelText.covariance": Contract(
            lambda world, **given: _TEXTS.covariance(**given).to_dense(),
            {"share": _of(0.6, 0, 1), "width": _of(0.7, 2)},
        ),
        "LabelText.with_labels": Contract(
            lambda world, **given: _TEXTS.with_labels(**given).directions(),
            {"descriptions": _of(["new"], {"new": "text"}), "embedding": _of(np.ones((1, 3)))},
        ),
        "LabelText.mean": Contract(
            lambda world, **given: _TEXTS.mean(**given).scores(world.X),
            {
                "features": lambda world: [np.ones((world.X.shape[1], 3)) * np.arange(3.0)],
                "X": _get("X"),
                "strength": _of(1.0, 2),
                "level": _of(0.0, -1),
                "embedding": _of(None),
            },
        ),
        "LabelCovariance.scaled": Contract(
            lambda world, scale: world.covariance.scaled(scale).to_dense(), {"scale": _of(2.0, 1)}
        ),
        "LabelCovariance.shrink": Contract(
            lambda world, amount: world.covariance.shrink(amount).to_dense(), {"amount": _of(0.5, 0, 1)}
        ),
        "LabelCovariance.check_variances": _on(
            lambda world: world.covariance, "check_variances", label_names=_named
        ),
        "LabelCovariance.plot": _closed(lambda world: world.covariance, "plot"),
        "Taxonomy": _plain(
            tree, pairs=_of([("r", "a"), ("r", "b")], {("r", "a")}), nodes=_of((), ["c"]), root=_of(None)
        ),
        "Taxonomy.from_any": _plain(
            tree.from_any, source=lambda world: [[("r", "a")], {"r": ["a", "b"]}, world.tree, ["a/b", "a/c"]]
        ),
        "Taxonomy.from_nested": _plain(
            tree.from_nested, mapping=_of({"r": ["a", "b"]}, {"r": {"a": {}, "b": ["c"]}})
        ),
        "Taxonomy.from_networkx": _plain(
            tree.from_networkx, graph=lambda world: [world.tree.to_networkx()], root=_of(None)
        ),
        "Taxonomy.from_paths": _plain(
            tree.from_paths, paths=_of(["a/b", "a/c"], ["a"]), separator=_of("/", "."), ancestors=_of("add")
        ),
        "Taxonomy.children": _on(on_tree, "children", name=_of("left", "a")),
        "Taxonomy.ancestors": _on(on_tree, "ancestors", name=_of("left", "a")),
        "Taxonomy.descendants": _on(on_tree, "descendants", name=_of("left", "a")),
        "Taxonomy.require_tree": _on(on_tree, "require_tree", what=_of("A path")),
        "Taxonomy.path": _on(on_tree, "path", name=_of("left", "a")),
        "Taxonomy.leaves_below": _on(on_tree, "leaves_below", name=_of("left", "a")),
        "Taxonomy.common_ancestor": _on(on_tree, "common_ancestor", first=_of("a"), second=_of("b", "c")),
        "Taxonomy.depth": _on(on_tree, "depth", names=_of("a", ["a", "left"], np.array(["b"]))),
        "Taxonomy.is_leaf": _on(on_tree, "is_leaf", names=_of("a", ["a", "left"])),
        "Taxonomy.top": _on(on_tree, "top", names=_of("a", ["a", "left"])),
        "Taxonomy.distances": _on(on_tree, "distances", names=some_nodes, others=_of(None, ["b"])),
        "Taxonomy.groups": _on(
            on_tree, "groups", by=_of("shared", "class", "level", "subtree"), names=_of(None, ["a", "b"])
        ),
        "Taxonomy.membership": _on(on_tree, "membership", label_names=some_nodes),
        "Taxonomy.parents_of": _on(on_tree, "parents_of", names=some_nodes),
        "Taxonomy.pruned": _on(on_tree, "pruned", keep=_of((), ["a"])),
        "Taxonomy.restricted": _on(on_tree, "restricted", names=some_nodes),
        "Taxonomy.under": _on(on_tree, "under", target_names=some_nodes, leaf_names=_of(["a", "b", "c"])),
        "Taxonomy.at_or_above": _on(on_tree, "at_or_above", label_names=some_nodes),
        "Taxonomy.closed": _on(
            on_tree,
            "closed",
            labels=lambda world: [pd.DataFrame([[1, 0, None, 0], [0, 0, 0, 1]], columns=_NODES)],
            incomplete=_of(False, True),
        ),
        "Taxonomy.deepest": _on(
            on_tree,
            "deepest",
            labels=lambda world: [pd.DataFrame([[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]], columns=_NODES)],
        ),
    }


def _get_labels(world: ContractWorld) -> Any:
    return world.labels


def _known_targets_table(world: ContractWorld) -> list[Any]:
    return [sp.csr_array(world.Y), world.Y]


def _shown(function: Callable[..., Any], /, **arguments: Values) -> Contract:
    """Write out the covariance that is made."""
    return Contract(lambda world, **given: function(**given).to_dense(), arguments)


# ---- metrics, inference, splits


def _graph(world: ContractWorld) -> list[Any]:
    return [lw.Taxonomy([("p", "q"), ("p", "r"), ("q", "s"), ("r", "s")])]


def _hierarchy_contracts() -> dict[str, Contract]:
    """Metrics of label sets and scores in a hierarchy."""
    made: dict[str, Contract] = {}
    common: dict[str, Values] = {"Y_true": _named_targets, "taxonomy": _graph}
    weighted = common | {"sample_weight": _row_weights}
    sets = weighted | {"Y_pred": _decisions, "leave_out": _of((), ["p"])}
    scores = weighted | {"probabilities": _scores, "thresholds": _of(None, [0.1, 0.5])}
    for name in ("precision", "recall", "f1"):
        function = getattr(metrics, f"hierarchical_{name}_score")
        averages = {"average": _of("micro", "macro", "example"), "zero_division": _of(0.0, 1.0)}
        made[function.__name__] = _plain(function, **sets, **averages)
    costs = {"Y_pred": _decisions, "cost": _of("siblings", "one")}
    made["h_loss"] = _plain(metrics.h_loss, **weighted, **costs)
    made["information_content"] = _plain(metrics.information_content, labels=_named_targets, taxonomy=_graph)
    made["fmax_score"] = _plain(metrics.fmax_score, False, **scores, leave_out=_of((), ["p"]))
    bits = _of({"p": 0.0, "q": 1.0, "r": 2.0, "s": 0.5})
    made["smin_loss"] = _plain(metrics.smin_loss, False, **scores, information=bits)
    made["depth_table"] = _plain(
        metrics.depth_table,
        False,
        **weighted,
        scores=_scores,
        Y_pred=lambda world: [None, *_decisions(world)],
    )
    return made


def _metric_contracts() -> dict[str, Contract]:
    made: dict[str, Contract] = {}
    weight = {"sample_weight": _row_weights}
    for name in ("f1_score", "precision_score", "recall_score"):
        averages = _of("micro", "macro", "example", None)
        found = inspect.signature(getattr(metrics, name)).parameters["average"].annotation
        averages = _of("micro", "macro") if "micro" in found else averages
        made[name] = _plain(
            getattr(metrics, name),
            Y_true=_targets,
            Y_pred=_decisions,
            average=averages,
            zero_division=_of(0.0, 1.0),
            **weight,
        )
    for name in ("hamming_loss", "subset_accuracy"):
        made[name] = _plain(getattr(metrics, name), Y_true=_targets, Y_pred=_decisions, **weight)
    for name in ("ranking_loss", "coverage_error", "label_ranking_average_precision"):
        made[name] = _plain(getattr(metrics, name), Y_true=_targets, scores=_scores, **weight)
    made["average_precision_score"] = Contract(
        lambda world, **given: metrics.average_precision_score(**given),
        {"Y_true": _targets, "scores": _scores, "average": _of("micro", "macro", "weighted", None), **weight},
        finite=False,
    )
    for name in ("precision_at_k", "ndcg_at_k"):
        made[name] = _plain(
            getattr(metrics, name), Y_true=_targets, scores=_scores, k=_of(2, 1, np.int64(3)), **weight
        )
    made["average_auc"] = _plain(
        metrics.average_auc, False, Y_true=_targets, scores=_scores, average=_of("label", "example")
    )
    made["score_table"] = _plain(
        metrics.score_table, False, Y_true=_targets, scores=_scores, Y_pred=_decisions, k=_of((1, 3), [1])
    )
    made["propensities"] = _plain(metrics.propensities, Y_train=_targets, a=_of(0.55), b=_of(1.5))
    made["propensity_scored_precision_at_k"] = _plain(
        metrics.propensity_scored_precision_at_k,
        False,
        Y_true=_targets,
        scores=_scores,
        propensity=_of(np.full(4, 0.5), [1.0] * 4),
        k=_of(2),
    )
    made["expected_calibration_error"] = _plain(
        metrics.expected_calibration_error,
        Y_true=_targets,
        probabilities=_probabilities,
        n_bins=_of(15, 1),
        average=_of("micro", "macro", None),
        least=_of(0.0, 0.05),
    )
    classes = _of(_CLASSES, _CLASSES.tolist())
    for name in ("class_summary", "error_reject_curve", "log_loss", "mean_reciprocal_rank"):
        arguments = {
            "y_true": _classes,
            "probabilities": _class_probabilities,
            "classes": classes,
            "sample_weight": _row_weights,
        }
        if name in ("class_summary", "log_loss"):
            arguments["taxonomy"] = lambda world: [None, world.tree]
        if name == "class_summary":
            arguments["y_pred"] = lambda world: [None, world.classes]
        made[name] = _plain(getattr(metrics, name), **arguments)
    for name in ("parent_accuracy", "taxonomic_loss"):
        made[name] = _plain(
            getattr(metrics, name), y_true=_classes, y_pred=_classes, taxonomy=_get("tree"), **weight
        )
    made["harmonic_mean_accuracy"] = _plain(
        metrics.harmonic_mean_accuracy,
        False,
        y_true=_classes,
        y_pred=_classes,
        seen_classes=_of(["a"], ["a", "b"]),
    )
    made["get_scorer"] = Contract(
        lambda world, name: metrics.get_scorer(name)(
            world.model("CalibratedLabelClassifier"), world.X, world.Y
        ),
        {"name": _of("micro_f1", "neg_hamming_loss", "neg_ranking_loss")},
    )
    return made


def _inference_contracts() -> dict[str, Contract]:
    def mapped(method: str) -> Callable[..., Any]:
        return lambda world, **given: getattr(inference.MapInference(world.graph), method)(**given)

    return {
        "adaptive_scores": _plain(
            inference.adaptive_scores, probabilities=_class_probabilities, seed=_of(0, 3, np.int64(7))
        ),
        "best_parent": _plain(
            inference.best_parent,
            probabilities=_class_probabilities,
            parent_of_class=_of(["left", "left", "c"]),
        ),
        "calibrate_labels": Contract(
            lambda world, **given: inference.calibrate_labels(**given).probabilities(world.S),
            {
                "labels": _targets,
                "scores": _scores,
                "method": _of("sigmoid", "isotonic", "auto"),
                "pooling": _of(True, False),
                "min_positives": _of(500, 1),
                "sample_weight": _row_weights,
            },
        ),
        "calibrate_classes": Contract(
            lambda world, **given: inference.class_probabilities(
                inference.calibrate_classes(**given), world.Q
            ),
            {
                "labels": _one_hot,
                "scores": _get("Q"),
                "method": _of("sigmoid", "isotonic", "auto"),
                "pooling": _of(True, False),
                "min_positives": _of(500, 1),
                "sample_weight": _row_weights,
            },
        ),
        "class_probabilities": _plain(
            inference.class_probabilities,
            calibration=lambda world: [inference.calibrate_classes(_one_hot(world)[0], world.Q)],
            scores=_get("Q"),
        ),
        "choose_thresholds": _plain(
            lambda **given: inference.choose_thresholds(**given).value,
            labels=_targets,
            scores=_scores,
            objective=_of("micro_f1", "macro_f1"),
            scope=_of("label", "global"),
            target=_of(None),
            pooling=_of(0.0, 0.5, "auto"),
            sample_weight=_row_weights,
        ),
        "choose_top_k": _plain(
            inference.choose_top_k,
            labels=_targets,
            scores=_scores,
            objective=_of("micro_f1"),
            target=_of(None),
            sample_weight=_row_weights,
        ),
        "control_mistakes": _plain(
            inference.control_mistakes,
            False,
            labels=_targets,
            scores=_scores,
            control=_of("false_negatives", "false_discoveries"),
            level=_of(0.6),
            guarantee=_of("probability"),
            confidence=_of(0.5),
        ),
        "enforce_hierarchy": _plain(
            inference.enforce_hierarchy,
            scores=_get("S"),
            taxonomy=_graph,
            label_names=_get("names"),
            enforce=_of("max", "projection"),
            label_weight=_of(None, [1.0, 2.0, 0.5, 3.0]),
        ),
        "term_lists": _plain(
            inference.term_lists,
            labels=_targets,
            taxonomy=_graph,
            label_names=_get("names"),
            terms=_of("predicted", "closed", "specific"),
            probabilities=_probabilities,
        ),
        "h_loss_sets": _plain(
            inference.h_loss_sets, probabilities=_probabilities, taxonomy=_graph, label_names=_get("names")
        ),
        "expected_f1_sizes": _plain(
            inference.expected_f1_sizes, probabilities=_probabilities, empty_value=_of(0.0, 1.0)
        ),
        "favour_rare_labels": _plain(
            inference.favour_rare_labels,
            labels=lambda world: [np.tile(np.arange(world.S.shape[1]), (len(world.S), 1))],
            scores=_get("S"),
            propensity=lambda world: [np.linspace(0.2, 1.0, world.S.shape[1])],
            k=_of(1, 2),
            power=_of(0.5, 0.0, 1.0),
            sharpness=_of(3.0, 1.0),
        ),
        "least_expected_loss": _plain(
            inference.least_expected_loss,
            probabilities=_class_probabilities,
            losses=_of(1 - np.eye(3), np.ones((3, 3))),
        ),
        "most_probable": _plain(inference.most_probable, probabilities=_class_probabilities),
        "rejected": _plain(
            inference.rejected,
            probabilities=_class_probabilities,
            confidence=_of(None),
            fraction=_of(0.2, 0.0, 1.0),
        ),
        "scores_above_top_k": _plain(
            inference.scores_above_top_k, scores=_get("S"), k=lambda world: [2, np.full(len(world.S), 1)]
        ),
        "MapInference": Contract(
            lambda world, **given: inference.MapInference(**given).solve(
                world.S, np.zeros((len(world.S), given["graph"].table_starts[-1]))
            ),
            {
                "graph": _get("graph"),
                "method": _of("auto"),
                "exact_width": _of(12, 0),
                "max_nodes": _of(1000, 1),
                "max_iter": _of(100, 1),
            },
        ),
        "IsotonicCalibration.probabilities": _on(
            lambda world: inference.calibrate_labels(world.Y, world.S, "isotonic", min_positives=1),
            "probabilities",
            scores=_get("S"),
        ),
        "SoftmaxCalibration.probabilities": _on(
            lambda world: inference.calibrate_classes(_one_hot(world)[0], world.Q),
            "probabilities",
            scores=_get("Q"),
        ),
        "SigmoidCalibration.probabilities": _on(
            lambda world: inference.calibrate_labels(world.Y, world.S), "probabilities", scores=_get("S")
        ),
    }


def _split_contracts() -> dict[str, Contract]:
    def folds(kind: Any) -> Callable[..., Any]:
        return lambda world, **given: list(islice(kind(**given).split(world.X, world.Y), 3))

    k_fold, shuffled = splits.IterativeStratifiedKFold, splits.IterativeStratifiedShuffleSplit
    sizes = {
        "test_size": _of(None, 0.3, 3),
        "train_size": _of(None, 0.5),
        "random_state": _of(0, None),
        "order": _of(1, 2),
    }
    split = {"X": _rows, "y": _targets, "groups": _of(None)}
    return {
        "IterativeStratifiedKFold": Contract(
            folds(k_fold),
            {
                "n_splits": _of(2, 3),
                "shuffle": _of(True, False),
                "random_state": _of(None),
                "order": _of(1, 2),
            },
        ),
        "IterativeStratifiedShuffleSplit": Contract(folds(shuffled), {"n_splits": _of(2, 1)} | sizes),
        "IterativeStratifiedKFold.split": Contract(
            lambda world, **given: list(k_fold(2).split(**given)), split
        ),
        "IterativeStratifiedShuffleSplit.split": Contract(
            lambda world, **given: list(shuffled(2, random_state=0).split(**given)), split
        ),
        "stratified_train_test_split": Contract(
            lambda world, X, y, **given: len(splits.stratified_train_test_split(X, y, **given)),
            {"X": _rows, "y": _known_targets} | sizes | {"stratify": _of(None)},
        ),
    }


# ---- kernels, data sets, files


def _extending_contracts() -> dict[str, Contract]:
    """Checks give nothing: what they were given is right, or refused."""
    loss = ENTRY_LOSSES["logistic"]()
    return {
        "check_covariance": Contract(
            lambda world, **given: extending.check_covariance(**given),
            {"covariance": lambda world: [world.covariance, lw.LabelCovariance.identity(3)]},
        ),
        "check_kernel": Contract(
            lambda world, **given: extending.check_kernel(**given),
            {
                "kernel": _of(kernels.RBFKernel(0.5), kernels.LinearKernel()),
                "X": lambda world: [None, world.X, sp.csr_array(world.X)],
            },
        ),
        "check_loss": Contract(lambda world, **given: extending.check_loss(**given), {"loss": _of(loss)}),
    }


def _kernel_contracts() -> dict[str, Contract]:
    made: dict[str, Contract] = {}

    def fitted(make: Callable[..., Any]) -> Callable[..., Any]:
        def call(world: ContractWorld, **given: Any) -> Any:
            model = lw.MaxMarginClassifier(kernel=make(**given), tol=0.1).fit(world.X, world.Y)
            return model.decision_function(world.X)

        return call

    rbf, cosine = kernels.RBFKernel(0.5), kernels.CosineKernel()
    gamma, coefficient = _of("scale", 0.5, 1), _of(1.0, 0)
    found: dict[str, dict[str, Values]] = {
        "ARDKernel": {"gamma": _of(1.0, 0.5), "weights": _of(None)},
        "CallableKernel": {"function": _of(lambda left, right: np.asarray(left) @ np.asarray(right).T)},
        "ConstantKernel": {"value": _of(1.0, 2)},
        "CosineKernel": {},
        "ForestKernel": {"forest": _of(None), "n_trees": _of(5, 1), "random_state": _of(0, 7)},
        "LaplacianKernel": {"gamma": gamma},
        "LinearKernel": {},
        "PolynomialKernel": {"degree": _of(3, 1), "gamma": gamma, "coef0": coefficient},
        "ProductKernel": {"left": _of(rbf), "right": _of(cosine)},
        "RBFKernel": {"gamma": gamma},
        "ScaledKernel": {"kernel": _of(rbf), "scale": coefficient},
        "SumKernel": {"left": _of(rbf), "right": _of(cosine)},
        "make_kernel": {
            "kernel": _of("rbf", "linear", "poly", rbf),
            "gamma": gamma,
            "degree": _of(3),
            "coef0": coefficient,
        },
    }
    for name, arguments in found.items():
        made[name] = Contract(fitted(getattr(kernels, name)), arguments)
    made["ForestKernel.of"] = Contract(
        fitted(kernels.ForestKernel.of), {"forest": lambda world: [_forest(world)]}
    )
    log_parameters = {
        "ARDKernel": kernels.ARDKernel(1.0, np.ones(2)),
        "ConstantKernel": kernels.ConstantKernel(),
        "CosineKernel": cosine,
        "ForestKernel": kernels.ForestKernel(),
        "LaplacianKernel": kernels.LaplacianKernel(0.5),
        "LinearKernel": kernels.LinearKernel(),
        "PolynomialKernel": kernels.PolynomialKernel(2, 0.5),
        "ProductKernel": kernels.ProductKernel(rbf, rbf),
        "RBFKernel": rbf,
        "ScaledKernel": kernels.ScaledKernel(rbf),
        "SumKernel": kernels.SumKernel(rbf, rbf),
        "CallableKernel": kernels.CallableKernel(np.dot),
    }
    for name, kernel in log_parameters.items():
        made[f"{name}.with_log_parameters"] = Contract(
            lambda world, theta, k=kernel: k.with_log_parameters(theta).log_parameters(),
            {"theta": _of(kernel.log_parameters())},
        )
    return made


def _forest(world: ContractWorld) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(3, random_state=0).fit(world.X, world.Y)


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


def _dataset_contracts() -> dict[str, Contract]:
    columns = datasets.TableColumns(labels="tags", label_separator="|", text="words", numeric="size")
    roles = {
        "labels": _of("tags", ["p"], None),
        "label_separator": _of("|"),
        "text": _of("words"),
        "categorical": _of("kind", None),
        "numeric": _of("size"),
        "drop": _of(None),
        "id": _of(None),
        "empty_labels": _of("none", "unknown"),
    }
    vectorizer = {
        "text": _of("words"),
        "categorical": _of("kind"),
        "numeric": _of("size"),
        "min_df": _of(1, 0.1),
        "ngram_range": _of((1, 1), (1, 2)),
        "sublinear_tf": _of(False),
        "missing_numeric": _of("error", "mean"),
    }
    on_vectorizer = lambda world: datasets.TableVectorizer("words", "kind", "size").fit(world.frame)  # noqa: E731
    data = {"data": _get("data")}
    return {
        "LabeledData": _plain(
            datasets.LabeledData,
            X=lambda world: [world.X, sp.csr_array(world.X), world.X.astype(np.float32)],
            Y=lambda world: [world.labels],
            feature_names=_of(None, np.array(list("abcdef"))),
            row_ids=_of(None),
            parents=_of(None),
            vectorizer=_of(None),
            first_feature=_of(None, 0, 1),
        ),
        "TableColumns": Contract(
            lambda world, **given: (
                datasets.read_table_columns(world.path("t.csv"), datasets.TableColumns(**given)).Y
            ),
            roles,
        ),
        "TableVectorizer": Contract(
            lambda world, **given: datasets.TableVectorizer(**given).fit_transform(world.frame), vectorizer
        ),
        "TableVectorizer.set_params": Contract(
            lambda world, **given: on_vectorizer(world).set_params(**given).fit_transform(world.frame),
            vectorizer,
        ),
        "TableVectorizer.fit": Contract(
            lambda world, frame, y: (
                datasets.TableVectorizer("words", "kind", "size").fit(frame, y).transform(frame)
            ),
            {"frame": _get("frame"), "y": _of(None)},
        ),
        "TableVectorizer.fit_blocks": Contract(
            lambda world, frame: (
                datasets.TableVectorizer("words", "kind", "size").fit_blocks([frame, frame]).transform(frame)
            ),
            {"frame": _get("frame")},
        ),
        "TableVectorizer.transform": Contract(
            lambda world, frame: on_vectorizer(world).transform(frame), {"frame": _get("frame")}
        ),
        "TableVectorizer.get_feature_names_out": _on(
            on_vectorizer, "get_feature_names_out", input_features=_of(None)
        ),
        "detect_format": _plain(
            datasets.detect_format,
            path=lambda world: [world.path("t.csv"), world.path("t.arff"), world.path("t.txt")],
        ),
        "iterate_table": Contract(
            lambda world, **given: [part.Y for part in datasets.iterate_table(**given)],
            {
                "path": _paths("t.csv"),
                "columns": _of(columns),
                "chunk_rows": _of(5, 1),
                "label_names": _of(["x", "y"]),
                "unknown_labels": _of("error", "ignore"),
            },
        ),
        "read_table": _plain(
            datasets.read_table,
            path=_paths("t.csv"),
            vectorizer=_of(None),
            label_names=_of(None, ["x", "y"]),
            unknown_labels=_of("error", "ignore"),
            **{role: values for role, values in roles.items() if role != "labels"},
            labels=_of("tags"),
        ),
        "read_table_columns": _plain(
            datasets.read_table_columns,
            path=_paths("t.csv"),
            columns=_of(columns),
            label_names=_of(None, ["x", "y"]),
            unknown_labels=_of("error", "ignore"),
        ),
        "load_debtags": _plain(datasets.load_debtags, return_X_y=_of(True)),
        "make_clique_toy": _plain(
            lambda **given: datasets.make_clique_toy(**given)[0].X,
            n_rows=_of(20, 1),
            random_state=_of(0, None),
        ),
        "make_taxonomy": _plain(
            lambda **given: datasets.make_taxonomy(**given).X,
            n_rows=_of(20, 1),
            n_features=_of(3, 1),
            depth=_of(2, 1),
            branching=_of(2, 3),
            decay=_of(0.7, 1),
            noise=_of(1.0, 0),
            random_state=_of(0, None),
        ),
        "make_text_like": _plain(
            lambda **given: datasets.make_text_like(**given).X,
            n_rows=_of(20, 1),
            n_features=_of(30),
            n_labels=_of(4, 6),
            labels_per_row=_of(1.5),
            words_per_row=_of(5),
            random_state=_of(0, None),
        ),
        "read_any": _plain(
            datasets.read_any,
            path=lambda world: [world.path("t.svm"), world.path("t.arff"), world.path("h.arff")],
            format=_of("auto"),
        ),
        "read_mulan": _plain(
            datasets.read_mulan,
            arff=_paths("t.arff"),
            xml=_paths("t.xml"),
            n_labels=_of(None),
            labels=_of("end"),
            feature_names=_of(None),
        ),
        "read_hierarchical_arff": _plain(
            datasets.read_hierarchical_arff, path=_paths("h.arff"), feature_names=_of(None)
        ),
        "read_taxonomy": _plain(
            datasets.read_taxonomy, path=_paths("tree.csv"), relations=_of(("is_a",), ["is_a", "part_of"])
        ),
        "read_svmlight": _plain(
            datasets.read_svmlight,
            path=_paths("t.svm"),
            n_features=_of(None, 6),
            n_labels=_of(None, 4),
            zero_based=_of("auto", True),
        ),
        "read_xmc": _plain(
            datasets.read_xmc, path=_paths("t.txt"), dtype=_of(np.float64, np.float32, "float32")
        ),
        "write_svmlight": _plain(datasets.write_svmlight, **data, path=_new_path(".svm")),
        "write_xmc": _plain(datasets.write_xmc, **data, path=_new_path(".txt")),
        "write_mulan": _plain(datasets.write_mulan, **data, arff=_new_path(".arff"), xml=_new_path(".xml")),
        "write_hierarchical_arff": _plain(
            datasets.write_hierarchical_arff,
            data=lambda world: [datasets.make_taxonomy(8, 3)],
            path=_new_path(".arff"),
        ),
    }


# ---- pictures, reports, comparison


def _closed(make: Callable[[ContractWorld], Any], method: str, /, **arguments: Values) -> Contract:
    """Draw a picture, and let go of it."""

    def call(world: ContractWorld, **given: Any) -> None:
        import matplotlib.pyplot as plt

        try:
            getattr(make(world), method)(**given)
        finally:
            plt.close("all")

    return Contract(call, arguments)


def _display_contracts() -> dict[str, Contract]:
    made: dict[str, Contract] = {}
    rows = {"X": _rows, "y": _targets}
    model = lambda *names: lambda world: [world.model(name) for name in names]  # noqa: E731
    classes = {"X": _rows, "y": _classes}
    estimator: dict[str, dict[str, Values]] = {
        "CalibrationCurveDisplay": {"estimator": model("CalibratedLabelClassifier"), **rows},
        "CombinationDisplay": {"estimator": model("AutoLabelClassifier")},
        "DualProgressDisplay": {"estimator": model("MaxMarginClassifier")},
        "ErrorRejectDisplay": {
            "estimator": model("KernelLogisticClassifier"),
            **classes,
            "name": _of(None, "curve"),
        },
        "LabelCovarianceDisplay": {"estimator": lambda world: [_with_covariance(world)]},
        "LabelGraphDisplay": {"estimator": model("LabelGraphClassifier")},
        "LabelGraphPathDisplay": {"estimator": model("LabelGraphClassifier")},
        "LabelQualityDisplay": {"estimator": model("MaxMarginClassifier"), **rows, "frequency": _of(None)},
        "PredictionPathDisplay": {
            "estimator": model("KernelLogisticClassifier"),
            "X": lambda world: [world.X[:1], world.X[:1].tolist(), sp.csr_array(world.X[:1])],
            "taxonomy": _get("tree"),
        },
        "TaxonomyDisplay": {
            "estimator": model("KernelLogisticClassifier"),
            **classes,
            "taxonomy": _get("tree"),
        },
        "ThresholdCurveDisplay": {
            "estimator": model("MaxMarginClassifier"),
            **rows,
            "response_method": _of("auto"),
        },
    }
    for name, arguments in estimator.items():
        kind = getattr(display, name)
        made[f"{name}.from_estimator"] = _closed(lambda world, k=kind: k, "from_estimator", **arguments)

        def drawn(world: ContractWorld, k: Any = kind, a: dict[str, Values] = arguments) -> Any:
            return k.from_estimator(**{argument: values(world)[0] for argument, values in a.items()})

        made[f"{name}.plot"] = _closed(drawn, "plot", ax=_of(None))
    predictions: dict[str, dict[str, Values]] = {
        "CalibrationCurveDisplay": {
            "Y_true": _targets,
            "probabilities": _probabilities,
            "labels": _of(None),
            "n_bins": _of(10, 2),
            "label_names": _of(None),
        },
        "ErrorRejectDisplay": {
            "y_true": _classes,
            "probabilities": _class_probabilities,
            "classes": _of(_CLASSES),
            "sample_weight": _row_weights,
        },
        "LabelQualityDisplay": {
            "Y_true": _targets,
            "Y_pred": _decisions,
            "frequency": _of(None, [1, 2, 3, 4]),
            "label_names": _of(None),
        },
        "PredictionPathDisplay": {
            "taxonomy": _get("tree"),
            "y_pred": lambda world: [world.classes[:1], [str(world.classes[0])], str(world.classes[0])],
            "probabilities": _of([1 / len(_CLASSES)] * len(_CLASSES)),
            "label_names": _of(_CLASSES, _CLASSES.tolist()),
        },
        "TaxonomyDisplay": {"taxonomy": _get("tree"), "y_true": _classes, "y_pred": _classes},
        "ThresholdCurveDisplay": {
            "Y_true": _targets,
            "scores": _scores,
            "labels": _of(None),
            "thresholds": _of(None),
            "label_names": _of(None),
        },
    }
    for name, arguments in predictions.items():
        kind = getattr(display, name)
        made[f"{name}.from_predictions"] = _closed(lambda world, k=kind: k, "from_predictions", **arguments)
    made["DualProgressDisplay.from_traces"] = _closed(
        lambda world: display.DualProgressDisplay,
        "from_traces",
        traces=lambda world: [{"a": world.model("MaxMarginClassifier").trace_}],
    )
    made["LabelCovarianceDisplay.from_covariance"] = _closed(
        lambda world: display.LabelCovarianceDisplay,
        "from_covariance",
        covariance=_get("covariance"),
        label_names=_named,
        correlations=_of(True, False),
        centered=_of(None),
        order=_of("cluster", "given"),
    )
    made["LabelGraphDisplay.from_graph"] = _closed(
        lambda world: display.LabelGraphDisplay,
        "from_graph",
        graph=_get("graph"),
        label_names=_named,
        max_cliques=_of(50, 1),
    )
    return made


def _with_covariance(world: ContractWorld) -> Any:
    return lw.MaxMarginClassifier(label_covariance=world.covariance, tol=0.1).fit(world.X, world.Y)


def _noise_contracts() -> dict[str, Contract]:
    def errors(world: ContractWorld) -> Any:
        return noise.find_label_errors(None, world.Y, scores=world.S).ranked(4)

    def found(world: ContractWorld, **given: Any) -> Any:
        return noise.find_label_errors(**given).probabilities

    place = _of(0, 1)
    return {
        "find_label_errors": Contract(
            found,
            {
                "X": _rows,
                "y": _targets,
                "scores": _of(_LINEAR),
                "flip_rates": _of(None, (None, 0.0), (0.1, [0.1, 0.0, 0.2, 0.1])),
                "related": _of(True, False, np.eye(4) + 0.5),
                "random_state": _of(0, 7),
            },
        ),
        "combine_annotators": Contract(
            lambda world, **given: noise.combine_annotators(**given).prevalence,
            {
                "answers": lambda world: [[world.Y, 1 - world.Y], {"a": world.labels, "b": world.Y}],
                "smoothing": _of(5.0, 1),
                "max_iter": _of(500, 1),
            },
        ),
        "LabelErrors.ranked": Contract(
            lambda world, **given: errors(world).ranked(**given).probability, {"top": _of(3, 0)}
        ),
        "LabelErrors.words": _on(errors, "words", place=place),
        "LabelErrors.reasons": Contract(
            lambda world, **given: [one.effect for one in errors(world).reasons(**given)],
            {"place": place, "most": _of(3, 0)},
        ),
        "LabelErrors.records": Contract(
            lambda world, **given: [one["probability"] for one in errors(world).records(**given)],
            {"most_reasons": _of(3, 0)},
        ),
        "LabelErrors.corrected": Contract(
            lambda world, **given: errors(world).corrected(**given).to_signs(),
            {"least": _of(0.5, 1), "how": _of("hide", "flip")},
        ),
    }


def _whole_contracts() -> dict[str, Contract]:
    def compared(world: ContractWorld, **given: Any) -> Any:
        return lw.compare(**given).values["MaxMarginClassifier"]["hamming_loss"]

    def configured(world: ContractWorld, on_interrupt: Any) -> None:
        try:
            lw.set_config(on_interrupt=on_interrupt)
        finally:
            lw.set_config(on_interrupt="raise")

    def within(world: ContractWorld, on_interrupt: Any) -> None:
        with lw.config_context(on_interrupt=on_interrupt):
            pass

    words = _of("raise", "keep")
    fitted = lambda world: [world.model("MaxMarginClassifier")]  # noqa: E731
    return {
        "compare": Contract(
            compared,
            {
                "estimators": _of(_LINEAR, [_LINEAR]),
                "X": _rows,
                "y": _targets,
                "cv": _of(2),
                "reference": _of(None),
                "random_state": _of(0, None),
            },
        ),
        "next_queries": Contract(
            lambda world, **given: lw.next_queries(**given).gains,
            {
                "model": lambda world: [world.model("MaxMarginClassifier"), None],
                "X_pool": _rows,
                "n": _of(2),
                "known": _unnamed_targets,
                "strategy": _of("expected_error", "uncertainty", "random"),
                "cost": _of(None),
                "random_state": _of(0),
            },
        ),
        "config_context": Contract(within, {"on_interrupt": words}),
        "set_config": Contract(configured, {"on_interrupt": words}),
        "load": Contract(
            lambda world, **given: lw.load(**given).decision_function(world.X),
            {"path": _paths("m.lw"), "verify": _of(True, False), "key": _of(None), "mmap": _of(True, False)},
        ),
        "save": _plain(lw.save, model=fitted, path=_new_path(".lw"), key=_of(None, b"k" * 32)),
        "report.ReportOptions": Contract(
            lambda world, **given: report.write_report(
                fitted(world)[0],
                world.X,
                world.Y,
                world.folder / "r.html",
                options=report.ReportOptions(**given),
            ),
            {
                "title": _of("t"),
                "facts": _of({}),
                "weakest": _of(2),
                "examples": _of(1),
                "unknown_labels": _of("error", "ignore"),
            },
        ),
        "report.write_report": _plain(
            report.write_report,
            model=fitted,
            X=_rows,
            y=_unnamed_targets,
            path=_new_path(".html"),
            row_names=_of(None),
            options=_of(None),
        ),
    }


def _all() -> Iterator[tuple[str, Contract]]:
    from attacks.public_names import public_names

    known = public_names()
    yield from ((name, contract) for name, contract in _estimator_contracts().items() if name in known)
    yield from _label_contracts().items()
    for prefix, found in (
        ("metrics.", _metric_contracts() | _hierarchy_contracts()),
        ("inference.", _inference_contracts()),
        ("splits.", _split_contracts()),
        ("kernels.", _kernel_contracts()),
        ("extending.", _extending_contracts()),
        ("datasets.", _dataset_contracts()),
        ("display.", _display_contracts()),
        ("noise.", _noise_contracts()),
        ("", _whole_contracts()),
    ):
        yield from ((f"{prefix}{name}", contract) for name, contract in found.items())


CONTRACTS = dict(_all())
_RECORD = "a record that the library makes"
_BASE = "an abstract class"
_OPERATOR = "a part of the operator that solvers ask for, in inner loops, by places that they have made"
_CLUSTER = "takes collections of a cluster; tests/dask hands it those that make no sense"
_ON_CLUSTERS = (
    "AutoLabelClassifier",
    "CalibratedLabelClassifier",
    "ConformalLabelClassifier",
    "HierarchicalClassifier",
    "KernelLogisticClassifier",
    "LabelGraphClassifier",
    "LabelTreeClassifier",
    "LowRankClassifier",
    "MaxMarginClassifier",
    "TableModel",
    "TunedThresholdClassifier",
)
_WITH_PROBABILITIES = (
    "AutoLabelClassifier",
    "CalibratedLabelClassifier",
    "HierarchicalClassifier",
    "KernelLogisticClassifier",
    "TableModel",
    "TunedThresholdClassifier",
)
WITHOUT = {
    "UnobservedLabelWarning": "a warning",
    "dask.compare": _CLUSTER,
    "dask.read_files": _CLUSTER,
    **{f"dask.{model}": _CLUSTER for model in _ON_CLUSTERS},
    **{
        f"dask.{model}.{name}": _CLUSTER
        for model in _ON_CLUSTERS
        for name in ("decision_function", "fit", "predict", "predict_top", "score", "score_table")
    },
    **{f"dask.{model}.predict_proba": _CLUSTER for model in _WITH_PROBABILITIES},
    "datasets.DataFileError": "an error",
    "extending.ContractError": "an error",
    "extending.EntryLoss": _BASE,
    **{
        f"extending.EntryLoss.{name}": _BASE
        for name in ("conjugate", "curvature", "evaluate", "gradient", "log_odds", "value")
    },
    "metrics.get_scorer_names": "takes nothing",
    **{f"noise.{name}": _RECORD for name in ("CombinedAnswers", "FlipRates", "LabelErrors", "Reason")},
    "LabelCovariance": _BASE,
    "LabelCovariance.block": _OPERATOR,
    **{f"LabelMean.{name}": _OPERATOR for name in ("columns", "factors", "products", "scores")},
    "LabelText.columns": _OPERATOR,
    **{
        f"{name}.add_labels": "the same as MaxMarginClassifier.add_labels"
        for name in ("KernelLogisticClassifier", "LowRankClassifier", "LowRankClassifierCV")
    },
    "LabelTextClassifier.add_labels": "takes what LabelText.with_labels does",
    "LabelCovariance.columns": _OPERATOR,
    "kernels.Kernel": _BASE,
    "kernels.Kernel.with_log_parameters": _BASE,
    "inference.LabelCalibration": _BASE,
    "inference.LabelCalibration.probabilities": _BASE,
    **{
        f"inference.{name}": _RECORD
        for name in (
            "ConformalThreshold",
            "ExpectedF1Sizes",
            "IsotonicCalibration",
            "MapResult",
            "SigmoidCalibration",
            "SoftmaxCalibration",
            "ThresholdChoice",
            "TopKChoice",
        )
    },
    **{f"display.{name}": "made by its from_ methods" for name in display.__all__},
}
"""Public names without a contract, and why."""
