"""Write small model files of every estimator with their predictions, to compare later commits with.

    python scripts/make_model_fixtures.py tests/model_files/kept

It writes one ``name.lw`` per model, ``expected.npz`` with outputs and attributes, and ``index.json`` with the
machine's arithmetic and the names.  ``tests/model_files/test_kept_files.py`` reads them.

Features are small integers, and the weights of models of ``_exact_cases`` are rounded to 12 binary digits
after the point before the model is saved: their scores are exact sums in any order of additions, so every
processor computes the same bits.  Other models use exponentials, or rows that are not integers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from attacks.small_fits import OfPair
from sklearn.exceptions import ConvergenceWarning

from labelweave import GraphGrowth, HyperparameterSearch, RankSearch
from labelweave.estimators.scorers import KernelExpansion, Scorer

ASKED: dict[str, dict[str, Any]] = {
    "decision_function": {},
    "predict": {},
    "predict_proba": {},
    "predict_log_proba": {},
    "predict_top": {"k": 1},
    "predict_or_reject": {"fraction": 0.3},
    "latent_mean_and_variance": {},
    "predict_map": {},
    "expected_attributes": {},
    "predict_attributes": {},
}
_ROUNDED = (
    "coef_",
    "intercept_",
    "clique_coef_",
    "clique_intercept_",
    "feature_factors_",
    "label_factors_",
    "thresholds_",
    "weights",
    "coefficients",
)  # fitted attributes, and fields of scorers and of their terms
_DIGITS = 2.0**12
FITTED = 24  # rows to fit, the first ones; those after them are predicted


def output(model: Any, name: str, X: Any) -> dict[str, np.ndarray]:
    """Call a method of a model; return the result as named arrays without objects."""
    result = getattr(model, name)(X, **ASKED[name])
    if not isinstance(result, tuple):
        return _flat(name, result)
    parts = (_flat(f"{name}.{number}", part) for number, part in enumerate(result))
    return {key: value for part in parts for key, value in part.items()}


def _flat(name: str, value: Any) -> dict[str, np.ndarray]:
    parts = {name: value}
    if hasattr(value, "columns"):
        parts = {f"{name}.frame": value, f"{name}.columns": value.columns, f"{name}.index": value.index}
    elif sp.issparse(value):
        parts = {f"{name}.{value.format}": value.toarray()}
    arrays = {key: np.asarray(part) for key, part in parts.items()}
    return {key: part.astype(str) if part.dtype == object else part for key, part in arrays.items()}


def attributes(model: Any) -> dict[str, str]:
    """Summarize public fitted attributes: type, shape and digest of arrays; lengths of traces."""
    found, values = {}, dict(vars(model))
    if "scorer_" in values:  # holds what were separate attributes in earlier versions
        scorer = values.pop("scorer_")
        values |= {name: getattr(scorer, name) for name in scorer.attributes() if hasattr(scorer, name)}
    for name, value in values.items():
        if name.startswith("_") or not name.endswith("_"):
            continue
        if name.endswith("trace_"):
            found[name] = str(len(value))
        elif isinstance(value, bool | int | float | str):
            found[name] = repr(value)
        elif isinstance(value, np.ndarray | np.generic) or sp.issparse(value):
            found |= {key: _digest(part) for key, part in _flat(name, value).items()}
    return found


def _digest(value: np.ndarray) -> str:
    return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"


def arithmetic() -> dict[str, str]:
    """List what determines the rounding of floats: processor, linear algebra and versions of libraries."""
    import llvmlite.binding
    import numba
    import scipy.linalg
    import sklearn
    from threadpoolctl import threadpool_info

    vectors = sorted(name for name, has in llvmlite.binding.get_host_cpu_features().items() if has)
    blas = {
        f"{library['internal_api']} {library['version']} {library.get('architecture')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    switches = (
        "NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_DISABLE_JIT", "LD_PRELOAD",
    )  # fmt: skip
    return {
        "processor": llvmlite.binding.get_host_cpu_name(),
        "vectors": hashlib.sha256(" ".join(vectors).encode()).hexdigest()[:16],
        "linear algebra": ", ".join(sorted(blas)),
        "versions": " ".join(library.__version__ for library in (np, scipy, sklearn, numba)),
        "switches": " ".join(f"{name}={os.environ[name]}" for name in switches if name in os.environ),
    }


def _data() -> dict[str, Any]:
    random = np.random.default_rng(15)
    X = random.integers(-3, 4, size=(32, 5)).astype(float)
    scores = X @ random.integers(-3, 4, size=(5, 4)) + random.normal(size=(32, 4))
    Y = (scores > 0).astype(int)
    missing = np.where(random.random(Y.shape) < 0.2, np.nan, Y)
    classes = np.array(list("abcd"))[scores.argmax(1)]
    targets = {"Y": Y, "missing": missing, "classes": classes}
    near = X + random.normal(size=X.shape)
    return {"X": X, "near": near} | {name: values[:FITTED] for name, values in targets.items()}


DATA = _data()
TREE = {"left": ["a", "b"], "right": ["c", "d"]}
LABELS = ["red", "green", "blue", "odd name é"]


def _labels(values: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(values, columns=LABELS)


def rows(kind: str, X: np.ndarray, near: np.ndarray) -> Any:
    """Return all rows in one form: integers X, those "near" integers, a "table", or one with "vectors"."""
    if kind == "frame":
        import pandas as pd

        names = [f"row {k}" for k in range(len(X))]
        return pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])], index=names)
    if kind == "table":
        return _table(len(X))
    if kind == "vectors":
        return _table(len(X)).assign(emb=list(near))
    kinds = {"X": X, "near": near, "float32": X.astype(np.float32), "sparse": sp.csr_array(X)}
    return X @ X[:FITTED].T if kind == "gram" else kinds[kind]


def _table(n_rows: int) -> Any:
    import pandas as pd

    words = ["rose red", "blue sea", "green leaf tree", "odd blue rose", "red leaf"]
    return pd.DataFrame(
        {
            "text": [f"{words[k % 5]} {words[k * 7 % 4]}" for k in range(n_rows)],
            "place": [("inside", "outside", "beach")[k % 3] for k in range(n_rows)],
            "size": [float(k % 4) for k in range(n_rows)],
            "tags": [
                ",".join(LABELS[j] for j in range(4) if (k + j) % 3 == 0 or j == k % 5) for k in range(n_rows)
            ],
        }
    )


_COLUMNS = [
    *("--text", "text", "--categorical", "place", "--numeric", "size"),
    *("--labels", "tags", "--label-separator", ","),
]
_TABLE_MODELS = {
    "table_margin": [],
    "table_words": ["--ngrams", "2", "--min-df", "2", "--kernel", "rbf"],
    "table_logistic": ["--model", "kernel-logistic", "--hyperparameters", "fixed"],
    "table_tuned_low_rank": ["--model", "low-rank", "--rank", "2", "--tune-threshold", "macro_f1"],
}


def _exact_cases() -> dict[str, tuple[Any, str, Any]]:
    """Return models, their rows and labels, whose scores are sums of few binary digits once rounded."""
    from labelweave import (
        BinaryRelevance,
        LabelCovariance,
        LabelGraphClassifier,
        LabelMatrix,
        MaxMarginClassifier,
        Taxonomy,
    )
    from labelweave import LowRankClassifier as LowRank
    from labelweave import TunedThresholdClassifier as Tuned
    from labelweave.features.kernels import LinearKernel, PolynomialKernel

    Y, missing, classes = DATA["Y"], DATA["missing"], DATA["classes"]
    sparse, dense_prior, margin, graph = (
        sp.csr_array(Y),
        0.5 + np.eye(4),
        MaxMarginClassifier,
        LabelGraphClassifier,
    )
    tree = Taxonomy.from_nested({"warm": ["red"], "cold": {"sea": ["green", "blue"]}, "other": [LABELS[3]]})
    tree_prior = LabelCovariance.from_taxonomy(tree, LABELS)
    factor_prior = LabelCovariance.from_signatures(np.array([[0, 1, 1, 0], [1, 0, 1, 0]]))
    held, powers = {"validation_fraction": 0.3}, {"kernel": PolynomialKernel(2, 1.0)}
    learn, power = {"alpha": 0.05, "tol": 1e-3}, PolynomialKernel(2, 1.0, 1.0)
    cliques = [("red", "blue"), ("blue", "green", LABELS[3])]
    return {
        "margin_linear": (margin(), "X", Y),
        "margin_missing": (margin(C=0.3, fit_intercept=False), "X", missing),
        "margin_costs": (margin(false_negative_cost=[1, 2, 3, 4], false_positive_cost=0.5), "X", Y),
        "margin_float32": (margin(dtype="float32", solver="coordinate_ascent"), "float32", Y),
        "margin_float64": (margin(dtype="float64", tol=1e-8), "X", Y),
        "margin_sparse": (margin(), "sparse", sparse),
        "margin_label_matrix": (margin(), "sparse", LabelMatrix.from_any(missing)),
        "margin_frames": (margin(), "frame", _labels(Y)),
        "margin_binary": (margin(), "X", Y[:, 0]),
        "margin_binary_text": (margin(), "X", np.where(Y[:, 1], "yes", "no")),
        "margin_multiclass": (margin(), "X", classes),
        "margin_multiclass_objects": (margin(), "X", classes.astype(object)),
        "margin_multiclass_numbers": (margin(), "X", Y.sum(1)),
        "margin_signs": (margin(), "X", 2 * Y - 1),
        "margin_dense_covariance": (margin(label_covariance=dense_prior), "X", Y),
        "margin_factor_covariance": (margin(label_covariance=factor_prior), "X", Y),
        "margin_taxonomy": (margin(label_covariance=tree), "X", _labels(Y)),
        "margin_taxonomy_covariance": (margin(label_covariance=tree_prior), "X", _labels(missing)),
        "margin_threshold_number": (margin(threshold=0.25), "X", Y),
        "margin_threshold_f1": (Tuned(margin(), scope="global", **held), "X", Y),
        "margin_threshold_macro_f1": (Tuned(margin(), "macro_f1", **held), "X", Y),
        "margin_polynomial": (margin(**powers), "X", Y),
        "margin_polynomial_working_set": (margin(**powers, solver="working_set"), "X", Y),
        "margin_precomputed": (margin(kernel="precomputed"), "gram", Y),
        "margin_precomputed_taxonomy": (
            margin(kernel="precomputed", label_covariance=tree),
            "gram",
            _labels(Y),
        ),
        "margin_kernel_sum": (margin(kernel=LinearKernel() + power), "X", Y),
        "margin_kernel_product": (margin(kernel=0.5 * LinearKernel() * power), "sparse", Y),
        "low_rank_squared": (LowRank(2), "X", Y),
        "low_rank_logistic": (LowRank(2, "log_loss", 0.1), "X", missing),
        "low_rank_squared_hinge": (LowRank(0.5, "squared_hinge", 0.1, penalty="ridge"), "sparse", sparse),
        "low_rank_ridge": (LowRank(2, penalty="ridge", fit_intercept=False), "X", Y),
        "low_rank_false_positive_cost": (LowRank(2, class_weight={0: 0.5}, fit_intercept=2.0), "X", Y),
        "low_rank_frames": (LowRank(2), "frame", _labels(missing)),
        "low_rank_binary": (LowRank(1), "X", Y[:, 0]),
        "low_rank_multiclass": (LowRank(2), "X", classes),
        "low_rank_threshold": (Tuned(LowRank(2), "macro_f1", **held), "X", Y),
        "low_rank_precomputed": (LowRank(2, kernel="precomputed"), "gram", Y),
        "low_rank_polynomial": (LowRank(2, **powers), "X", Y),
        "low_rank_float32": (LowRank(2, "log_loss", dtype="float32"), "X", Y),
        "graph_learned": (graph(GraphGrowth(max_rounds=3), **learn), "X", Y),
        "graph_learned_larger_cliques": (
            graph(GraphGrowth(max_rounds=3, clique_size=3, cliques_per_round=2), **learn),
            "X",
            Y,
        ),
        "graph_learned_refit": (graph(GraphGrowth(max_rounds=3, refit=True), **learn), "X", Y),
        "graph_learned_early": (
            graph(GraphGrowth(max_rounds=3, early_stopping=True, **held), **learn),
            "X",
            Y,
        ),
        "graph_learned_missing": (graph(GraphGrowth(max_rounds=3), **learn), "X", missing),
        "graph_chow_liu": (graph("chow-liu", 0.05), "sparse", sparse),
        "graph_full": (graph("full", 0.05), "X", Y),
        "graph_none": (graph("none", 0.05, false_negative_cost=[1, 2, 1, 2]), "X", Y),
        "graph_given": (graph(cliques, 0.05), "frame", _labels(missing)),
        "graph_searched": (
            graph("full", 0.05, exact_width=1, inference=50),
            "X",
            Y,
        ),
        "graph_own_features": (graph("chow-liu", 0.05, inputs=OfPair()), "X", Y),
        "graph_proximal": (graph("chow-liu", 0.5, solver="proximal"), "X", Y),
        "graph_multiclass": (graph("full", 0.05), "X", classes),
        "binary_relevance": (BinaryRelevance(), "X", missing),
        "binary_relevance_logistic": (BinaryRelevance("log_loss"), "sparse", Y),
    }


def _other_cases() -> dict[str, tuple[Any, str, Any]]:
    """Return the other models, with rows and labels: exponentials, probabilities and learned parameters."""
    from labelweave import BinaryRelevance, LabelGraphClassifier, MaxMarginClassifier
    from labelweave import LowRankClassifier as LowRank
    from labelweave import TunedThresholdClassifier as Tuned
    from labelweave.features.kernels import ConstantKernel, LaplacianKernel, LinearKernel, RBFKernel

    Y, missing, margin = DATA["Y"], DATA["missing"], MaxMarginClassifier
    learned = {"hyperparameters": HyperparameterSearch(3, max_learning_iter=2)}
    several = (2.0 * RBFKernel(0.1) + LinearKernel() + ConstantKernel(0.5)) * LaplacianKernel(0.05)
    dense_prior, held, rbf = 0.5 + np.eye(4), {"validation_fraction": 0.3}, {"kernel": "rbf"}
    chosen = {"cv": 3, "scoring": "precision_at_1", "rule": "one_standard_error"}
    return (
        {
            "margin_rbf": (margin(**rbf), "X", Y),
            "margin_rbf_sparse": (margin(**rbf, gamma=0.1), "sparse", sp.csr_array(Y)),
            "margin_rbf_covariance": (margin(**rbf, label_covariance=dense_prior), "X", _labels(missing)),
            "margin_rbf_threshold": (Tuned(margin(**rbf), scope="global", **held), "near", Y),
            "margin_rbf_block_ascent": (margin(**rbf, solver="block_ascent"), "near", DATA["classes"]),
            "margin_cosine": (margin(kernel="cosine"), "X", Y),
            "margin_laplacian": (margin(kernel="laplacian", gamma="auto"), "near", Y),
            "margin_kernel_object": (margin(kernel=several), "near", Y),
            "low_rank_rbf": (LowRank(2, **rbf), "X", missing),
            "low_rank_nystrom": (LowRank(2, "log_loss", 0.1, **rbf, kernel_rank=8), "near", Y),
            "low_rank_learned": (LowRank(2, **rbf, **learned, penalty="ridge"), "near", Y),
            "low_rank_cv": (LowRank(RankSearch((1, 2), [0.1, 1.0], cv=3)), "X", Y),
            "low_rank_cv_rbf": (LowRank(RankSearch((0.5, 1.0), 2, **chosen), **rbf), "X", missing),
            "binary_relevance_squared_hinge": (BinaryRelevance("squared_hinge"), "near", Y),
            "graph_real_rows": (LabelGraphClassifier(alpha=0.05), "near", Y),
            "graph_message_passing": (
                LabelGraphClassifier("full", 0.05, inference="message_passing"), "near", Y),
        }
        | _logistic_cases(learned, several)
        | _wrapped_cases()
    )  # fmt: skip


def _tied(tie: Any) -> dict[str, Any]:
    return {"hyperparameters": HyperparameterSearch(3, max_learning_iter=2, tie=tie)}


def _logistic_cases(learned: dict[str, Any], several: Any) -> dict[str, tuple[Any, str, Any]]:
    from labelweave import KernelLogisticClassifier as Logistic
    from labelweave import LabelCovariance, Taxonomy
    from labelweave import TunedThresholdClassifier as Tuned

    Y, classes, fixed = DATA["Y"], DATA["classes"], {"hyperparameters": "fixed"}
    few, blocks = (
        HyperparameterSearch(3, max_learning_iter=2, **more)
        for more in ({"learning_rows": 20}, {"learning_blocks": 2})
    )
    tree, dense_prior = Taxonomy.from_nested(TREE), 0.5 + np.eye(4)
    partly = np.where(np.arange(FITTED) % 7 == 0, "left", classes)
    unknown = np.where(np.arange(FITTED) % 5 == 0, None, classes)
    least, parent = {"decision": "least_expected_loss"}, {"decision": "best_parent"}
    models = {
        "flat": (Logistic(**fixed), "X", classes),
        "flat_learned": (Logistic(**learned), "near", classes),
        "flat_unknown": (Logistic(**fixed), "X", unknown),
        "linear": (Logistic("linear", **fixed, intercept_variance=0.0), "sparse", classes),
        "precomputed": (Logistic("precomputed", scale=0.1, **fixed), "gram", classes),
        "binary": (Logistic(**fixed), "X", Y[:, 0]),
        "tree": (Logistic(taxonomy=TREE, **fixed), "X", classes),
        "tree_level": (Logistic(taxonomy=tree, **_tied("level")), "near", partly),
        "tree_subtree": (Logistic(taxonomy=tree, **_tied("subtree")), "near", classes),
        "tree_class": (Logistic(taxonomy=tree, **_tied("class"), **least), "near", classes),
        "tree_parent": (Logistic(taxonomy=tree, **fixed, **parent), "X", classes),
        "class": (Logistic(**_tied("class")), "near", classes),
        "scale": (Logistic(**_tied("scale"), intercept_variance="learn"), "near", classes),
        "pair": (Logistic(**_tied(("shared", "class"))), "near", classes),
        "several_kernels": (Logistic(several, **learned), "near", classes),
        "covariance": (Logistic(label_covariance=dense_prior, **fixed), "X", classes),
        "coupling": (Logistic(label_covariance=2, **learned), "near", classes),
        "low_rank": (Logistic(kernel_rank=8, **fixed), "near", classes),
        "low_rank_tree": (Logistic(kernel_rank=8, taxonomy=tree, **fixed), "near", classes),
        "learning_rows": (Logistic(hyperparameters=few), "near", classes),
        "uncertain": (Logistic(uncertainty="laplace", kernel_rank=8, **fixed), "near", classes),
        "exact": (Logistic(solver="exact", **fixed), "X", classes),
        "labels": (Logistic(**fixed), "X", DATA["missing"]),
        "labels_learned": (Tuned(Logistic(**learned), "macro_f1", validation_fraction=0.3), "near", Y),
        "labels_named": (
            Logistic(label_covariance=LabelCovariance.from_labels(Y), **fixed),
            "frame",
            _labels(Y),
        ),
        "labels_coupling": (
            Logistic(label_covariance="learn", hyperparameters=blocks),
            "near",
            sp.csr_array(Y),
        ),
    }
    return {f"logistic_{name}": case for name, case in models.items()}


def _wrapped_cases() -> dict[str, tuple[Any, str, Any]]:
    from labelweave import (
        BinaryRelevance,
        KernelLogisticClassifier,
        LabelGraphClassifier,
        LowRankClassifier,
        MaxMarginClassifier,
        ZeroShotClassifier,
    )
    from labelweave import CalibratedLabelClassifier as Calibrated
    from labelweave import ConformalLabelClassifier as Conformal
    from labelweave import TunedThresholdClassifier as Tuned

    Y, missing, margin, low_rank = DATA["Y"], DATA["missing"], MaxMarginClassifier(), LowRankClassifier(2)
    logistic = KernelLogisticClassifier(hyperparameters="fixed")
    graph = LabelGraphClassifier("chow-liu", 0.05)
    signatures = _labels([[0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 1]]).set_axis(["fox", "hen", "cow"])
    coupled = {"class_prior": [1, 2, 3], "couple_attributes": True, "cv": 2}
    held, wide = {"validation_fraction": 0.4}, {"level": 0.5, "confidence": 0.5, "validation_fraction": 0.4}
    calibrated = Calibrated(margin, cv=3)
    return {
        "zero_shot": (ZeroShotClassifier(None, signatures, temperature=1.0), "X", _labels(missing)),
        "zero_shot_coupled": (ZeroShotClassifier(margin, signatures, **coupled), "X", _labels(Y)),
        "zero_shot_logistic": (ZeroShotClassifier(logistic, signatures, temperature=2.0), "X", _labels(Y)),
        "tuned": (Tuned(margin, "macro_f1", **held), "X", Y),
        "tuned_cv": (Tuned(low_rank, scope="global", cv=3), "X", sp.csr_array(Y)),
        "tuned_graph": (Tuned(graph, **held), "X", Y),
        "tuned_frames": (Tuned(logistic, "example_f1", **held), "frame", _labels(missing)),
        "calibrated_sigmoid": (Calibrated(margin, "sigmoid", cv=3), "X", Y),
        "calibrated_isotonic": (
            Calibrated(low_rank, "isotonic", decision="expected_f1", **held),
            "X",
            _labels(Y),
        ),
        "calibrated_logistic": (Calibrated(logistic, **held), "X", missing),
        "conformal": (Conformal(BinaryRelevance(), **wide), "X", Y),
        "conformal_calibrated": (Conformal(calibrated, "false_discoveries", **wide), "X", Y),
    }


def _composed_cases() -> dict[str, tuple[Any, str, Any]]:
    from sklearn.feature_selection import SelectKBest, f_classif
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from labelweave import AutoLabelClassifier as Auto
    from labelweave import CalibratedLabelClassifier as Calibrated
    from labelweave import ConformalLabelClassifier as Conformal
    from labelweave import HierarchicalClassifier as Hierarchical
    from labelweave import KernelLogisticClassifier, MaxMarginClassifier, TableModel
    from labelweave import TunedThresholdClassifier as Tuned

    Y, missing, margin = DATA["Y"], DATA["missing"], MaxMarginClassifier()
    table = _table(FITTED)
    tags = table["tags"].str.split(",")
    logistic, brief = KernelLogisticClassifier(hyperparameters="fixed"), {"time_budget": 1e-3}
    tree = {"warm": ["red"], "cold": {"sea": ["green", "blue"]}, "other": [LABELS[3]]}
    graph = [("red", "green"), ("red", "blue"), ("green", LABELS[3]), ("blue", LABELS[3])]
    return {
        "auto": (Auto(**brief), "near", Y),
        "auto_members": (Auto(members=["linear", "rbf", "rbf+forest"], **brief), "near", missing),
        "auto_sparse": (Auto(**brief, members=["max-margin", "rbf"]), "sparse", sp.csr_array(Y)),
        "auto_known_sets": (Auto("subset_accuracy", **brief), "frame", _labels(Y)),
        "auto_classes": (Auto(**brief), "near", DATA["classes"]),
        "auto_calibrated": (Calibrated(Auto(**brief), cv=3), "near", Y),
        "hierarchical_tree": (Hierarchical(margin, tree), "X", _labels(missing)),
        "hierarchical_graph": (Hierarchical(logistic, graph, "projection"), "near", _labels(Y)),
        "hierarchical_open": (Hierarchical(margin, graph, "none", incomplete=True), "X", _labels(Y)),
        "hierarchical_tuned": (Tuned(Hierarchical(margin, graph), cv=3), "X", _labels(Y)),
        "conformal_classes": (Conformal(logistic, level=0.3, cv=3), "near", DATA["classes"]),
        "pipeline": (
            make_pipeline(StandardScaler(), SelectKBest(f_classif, k=3), logistic), "near", DATA["classes"]),
        "table_model": (TableModel(margin, text="text", numeric="size"), "table", tags),
        "table_classes": (TableModel(logistic, text="text"), "table", table["place"]),
        "table_vectors": (TableModel(margin, text="text", vectors="emb"), "vectors", tags),
        "margin_scaled": (MaxMarginClassifier(kernel="rbf", scaling="auto"), "near", Y),
    }  # fmt: skip


def _text_cases() -> dict[str, tuple[Any, str, Any]]:
    """Return models of labels known by texts or by scores, trees over labels, and new scorers."""
    from labelweave import AutoLabelClassifier as Auto
    from labelweave import CalibratedLabelClassifier as Calibrated
    from labelweave import KernelLogisticClassifier as Logistic
    from labelweave import LabelGraphClassifier as Graph
    from labelweave import LabelMean, LabelText, LabelTextClassifier, Taxonomy, ZeroShotClassifier
    from labelweave import LabelTreeClassifier as Tree
    from labelweave import LowRankClassifier as LowRank
    from labelweave import MaxMarginClassifier as Margin

    Y, missing, classes = DATA["Y"], DATA["missing"], DATA["classes"]
    random = np.random.default_rng(4)
    words, vectors = random.normal(size=(5, 3)), random.normal(size=(5, 3))
    fixed, few = {"hyperparameters": "fixed"}, _labels(missing)[LABELS[:3]]
    mean = LabelMean(vectors[:4], words, [0.5, -0.5, 0.0, 1.0])
    tree = {"warm": ["red"], "cold": {"sea": ["green", "blue"]}, "other": [LABELS[3]]}
    signatures = _labels([[0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 1]]).set_axis(["fox", "hen", "cow"])

    def known(estimator: Any = None, names: Any = LABELS, **more: Any) -> Any:
        text = LabelText(names, vectors[: len(names)])
        return LabelTextClassifier(estimator, text, feature_names=words, **more)

    return {
        "text": (known(mean=0.5), "X", few),
        "text_classes": (known(names=list("abcde"), mean=0.5), "X", classes),
        "text_pair": (known(names=["no", "yes"], mean=0.5), "X", np.where(Y[:, 1], "yes", "no")),
        "text_margin": (known(Margin(), taxonomy=tree, mean=0.5), "X", few),
        "text_low_rank": (known(LowRank(3), mean=0.5), "X", few),
        "text_kernel": (known(Logistic(**fixed), mean=0.5), "near", few),
        "mean_margin": (Margin(label_mean=mean), "X", missing),
        "mean_margin_rbf": (Margin(kernel="rbf", label_mean=mean), "near", missing),
        "mean_logistic": (Logistic(label_mean=mean, **fixed), "near", Y),
        "mean_low_rank": (LowRank(2, label_mean=mean), "X", missing),
        "tree": (Tree(leaf_size=2, branching=2), "X", missing),
        "tree_taxonomy": (Tree(tree=Taxonomy.from_nested(tree)), "sparse", _labels(Y)),
        "tree_classes": (Tree(leaf_size=2, branching=2, n_trees=2), "X", classes),
        "tree_all": (Tree(leaf_size=2, branching=2, negatives="all"), "X", Y),
        "margin_pruned": (Margin(prune="certified"), "X", Y),
        "logistic_widths": (
            Logistic("ard", hyperparameters=HyperparameterSearch(max_learning_iter=2)), "near", Y
        ),
        "graph_kernel": (Graph("chow-liu", 0.05, kernel="rbf"), "near", Y),
        "graph_scores": (Graph("chow-liu", 0.05, kernel="rbf", inputs="scores"), "near", Y),
        "calibrated_classes": (Calibrated(Logistic(**fixed), cv=3), "near", classes),
        "zero_shot_now": (ZeroShotClassifier(None, signatures, temperature=1.0), "X", _labels(missing)),
        "auto_forest": (Auto(time_budget=1e-3, members=["forest"]), "near", Y),
        "auto_given": (Auto(time_budget=1e-3, members=["rbf", LowRank(2)]), "near", Y),
    }  # fmt: skip


def _rounded(value: Any, name: str = "") -> Any:
    if isinstance(value, np.ndarray) and name in _ROUNDED and value.dtype.kind == "f":
        return np.asarray(np.round(value * _DIGITS) / _DIGITS, value.dtype)
    if isinstance(value, tuple):
        return tuple(map(_rounded, value))
    if isinstance(value, (Scorer, KernelExpansion)):
        fields = {one.name: _rounded(getattr(value, one.name), one.name) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value


def cases() -> dict[str, tuple[Any, str, Any]]:
    """Return all models, the kinds of their rows and their labels."""
    return _exact_cases() | _other_cases() | _composed_cases() | _text_cases()


def _save_models(folder: Path) -> dict[str, tuple[str, bool]]:
    """Fit and save all models; return for each the kind of its rows and whether its scores are exact."""
    import labelweave

    exact, saved = _exact_cases(), {}
    for name, (model, kind, y) in cases().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows(kind, DATA["X"], DATA["near"])[:FITTED], y)
        if name in exact:
            for part in (model, getattr(model, "estimator_", model)):
                vars(part).update({key: _rounded(value, key) for key, value in vars(part).items()})
        labelweave.save(model, folder / f"{name}.lw")
        saved[name] = kind, name in exact
    for name, flags in _TABLE_MODELS.items():
        with tempfile.TemporaryDirectory() as empty:
            _table(FITTED).to_csv(Path(empty, "rows.csv"), index=False)
            words = ["fit", f"{empty}/rows.csv", "--out", f"{folder}/{name}.lw", "--quiet", *_COLUMNS, *flags]
            subprocess.run(
                [sys.executable, "-c", "from labelweave.app.cli import main; main()", *words], check=True
            )
        saved[name] = "table", False
    return saved


def main() -> int:
    """Fit, save, and store the predictions of the saved models."""
    import labelweave

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: DATA[name] for name in ("X", "near")}
    models: dict[str, Any] = {}
    for name, (kind, is_exact) in _save_models(folder).items():
        model = labelweave.load(folder / f"{name}.lw")
        tested = rows(kind, arrays["X"], arrays["near"])[FITTED:]
        asked = [method for method in ASKED if _answers(model, method, tested)]
        models[name] = {"class": type(model).__name__, "rows": kind, "exact": is_exact, "outputs": asked}
        models[name]["attributes"] = attributes(model)
        for method in asked:
            arrays |= {f"{name}/{key}": value for key, value in output(model, method, tested).items()}
    np.savez_compressed(folder / "expected.npz", **arrays)
    index = {"arithmetic": arithmetic(), "models": models}
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{len(models)} models, {len(arrays)} arrays")
    return 0


def _answers(model: Any, method: str, X: Any) -> bool:
    if not hasattr(model, method):
        return False
    try:
        output(model, method, X)
    except (ValueError, AttributeError) as error:  # a method for classes, and the model has label sets
        print(f"{type(model).__name__}.{method}: {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
