"""Kernels under a graph of labels: scene's given split, with and without the graph.

One constructor call learns the width of the RBF kernel and the penalty of its ridge regressions from the
left-out error of the training rows, and then a graph on their left-out scores.  "ridge alone" are the same
scores by their signs; "kernel features" is the graph on the kernel's own features (pivoted Cholesky) and
"linear" the one on the features.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.graph_kernels``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA
from labelweave import LabelGraphClassifier
from labelweave.datasets import read_mulan
from labelweave.features import FeatureMatrix
from labelweave.metrics import f1_score, hamming_loss, subset_accuracy

__all__ = ["main"]

_GRAPH = {"early_stopping": True, "refit": True, "regularization": 1e-3}
_MODELS: dict[str, dict[str, Any]] = {
    "left-out scores": {"kernel": "rbf", "gamma": "learn", "inputs": "scores", **_GRAPH},
    "kernel features": {"kernel": "rbf", "gamma": "learn", **_GRAPH},
    "linear": _GRAPH,
}


@needs_data
def main() -> None:
    """Fit, and print a line a model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--models", nargs="+", choices=list(_MODELS), default=list(_MODELS))
    arguments = parser.parse_args()
    files = arguments.data / "mulan" / "scene"
    train, test = (
        read_mulan(files / f"scene-{part}.arff", files / "scene.xml") for part in ("train", "test")
    )
    print(f"{'':16s}{'Hamming':>10s}{'macro F1':>10s}{'micro F1':>10s}{'subset':>8s}{'seconds':>9s}  graph")
    for name in arguments.models:
        begin = time.process_time()
        model = LabelGraphClassifier(**_MODELS[name]).fit(train.X, train.Y)
        seconds = time.process_time() - begin
        _show(name, test.Y, model.predict(test.X).toarray(), seconds, repr(model.label_graph_))
        if name == "left-out scores":
            scores = model.inputs_.of(FeatureMatrix(test.X)).data
            _show("ridge alone", test.Y, (scores > 0).astype(np.int8), 0.0, "")


def _show(name: str, truth: Any, labels: Any, seconds: float, graph: str) -> None:
    scores = [hamming_loss(truth, labels)]
    scores += [f1_score(truth, labels, average=average) for average in ("macro", "micro")]
    hamming, macro, micro = scores
    subset = subset_accuracy(truth, labels)
    print(
        f"{name:16s}{hamming:10.4f}{macro:10.3f}{micro:10.3f}{subset:8.3f}{seconds:9.1f}  {graph}", flush=True
    )


if __name__ == "__main__":
    main()
