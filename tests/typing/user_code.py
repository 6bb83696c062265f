"""Typical user code; ``test_user_code.py`` runs mypy --strict on it, and it is not executed."""

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
import numpy.typing as npt

import labelweave.kernels
from labelweave import (
    BinaryRelevance,
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    GraphGrowth,
    KernelLogisticClassifier,
    LabelCovariance,
    LabelGraphClassifier,
    LabelMatrix,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    RankSearch,
    Taxonomy,
    TunedThresholdClassifier,
    ZeroShotClassifier,
    datasets,
    decisions,
    metrics,
)
from labelweave.kernels import RBFKernel

Array = npt.NDArray[Any]

if TYPE_CHECKING:
    # the README's first lines
    data = datasets.load_debtags()
    Y = LabelMatrix.from_any(data.Y, data.label_names)
    model = MaxMarginClassifier(C=0.5, label_covariance=Taxonomy(data.parents), tol=1e-2)
    assert_type(model.fit(data.X, Y), MaxMarginClassifier)
    assert_type(model.duality_gap_, float)
    assert_type(model.converged_, bool)
    score = metrics.f1_score(data.Y_test, model.predict(data.X_test), average="micro")
    assert_type(score, float | npt.NDArray[np.float64])  # one per label with average=None
    assert_type(model.predict_top(data.X_untagged, k=5), tuple[Array, Array])
    assert_type(model.decision_function(data.X_test), Array)
    assert_type(model.label_names_, Array)
    assert_type(model.score(data.X_test, data.Y_test), float)
    model.save("debtags.lw")

    # classes in a taxonomy
    tree = Taxonomy.from_nested({"fruit": ["apple", "pear"], "animal": {"dog": ["poodle"], "cat": None}})
    X, y = np.eye(4), ["pear", "dog", None, "cat"]
    classes = KernelLogisticClassifier(taxonomy=tree).fit(X, y)
    assert_type(classes, KernelLogisticClassifier)
    assert_type(classes.predict_proba(X), Any)  # a list of tables where y has columns of classes
    MaxMarginClassifier(kernel=RBFKernel(0.1), n_jobs=2)
    assert_type(labelweave.kernels.RBFKernel(0.1), RBFKernel)

    # every constructor and fit has types
    assert_type(LowRankClassifier(rank=0.4, loss="log_loss").fit(X, X), LowRankClassifier)
    assert_type(LowRankClassifier(RankSearch([1, 2], cv=3)).fit(X, X), LowRankClassifier)
    graph = LabelGraphClassifier(GraphGrowth(early_stopping=True)).fit(X, X)
    assert_type(graph, LabelGraphClassifier)
    label_tree = LabelTreeClassifier(n_trees=2).fit(X, X)
    assert_type(label_tree, LabelTreeClassifier)
    assert_type(label_tree.predict_top(X, 3), tuple[Array, Array])
    assert_type(label_tree.predict_top(X, 3, exact=True).proven, Array)
    assert_type(ZeroShotClassifier(model, X).fit(X, X).predict_proba(X), Array)
    tuned = decisions.TunedThresholdClassifier(graph, "macro_f1").fit(X, X)
    assert_type(tuned, TunedThresholdClassifier)
    calibrated = CalibratedLabelClassifier(graph, cv=3).fit(X, X)
    assert_type(calibrated.predict_proba(X), Array)
    assert_type(ConformalLabelClassifier(graph, level=0.2).fit(X, X), ConformalLabelClassifier)
    assert_type(BinaryRelevance("log_loss").fit(X, X).decision_function(X), Array)
    LabelCovariance.from_labels(X).shrink(0.1)

    MaxMarginClassifier(C="much")  # type: ignore[arg-type]
    LowRankClassifier(pentalty="ridge")  # type: ignore[call-arg]
