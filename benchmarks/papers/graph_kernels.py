"""Kernels under a graph of labels: scene's given split, with and without the graph.

One constructor call learns the width of the RBF kernel and the penalty of its ridge regressions from the
left-out error of the training rows, and then a graph on their left-out scores.  "ridge alone" are the same
scores by their signs; "kernel features" is the graph on the kernel's own features (pivoted Cholesky) and
"linear" the one on the features.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.graph_kernels``.
"""

from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, several, timed
from benchmarks.problems import DEFAULT_DATA, read_parts
from benchmarks.recorded_runs import RecordedRuns
from labelweave import GraphGrowth, LabelGraphClassifier
from labelweave.features import FeatureMatrix
from labelweave.metrics import f1_score, hamming_loss, subset_accuracy

_GRAPH = {"graph": GraphGrowth(early_stopping=True, refit=True), "regularization": 1e-3}
_MODELS: dict[str, dict[str, Any]] = {
    "left-out scores": {"kernel": "rbf", "gamma": "learn", "inputs": "scores", **_GRAPH},
    "kernel features": {"kernel": "rbf", "gamma": "learn", **_GRAPH},
    "linear": _GRAPH,
}


def _scores(truth: Any, labels: Any) -> dict[str, float]:
    return {
        "Hamming": float(hamming_loss(truth, labels)),
        "macro F1": float(f1_score(truth, labels, average="macro")),
        "micro F1": float(f1_score(truth, labels, average="micro")),
        "subset": float(subset_accuracy(truth, labels)),
    }


def table(runs: list[dict[str, Any]]) -> str:
    lines = [
        f"{'':16s}{'Hamming':>10s}{'macro F1':>10s}{'micro F1':>10s}{'subset':>8s}{'seconds':>9s}  graph"
    ]
    for run in runs:
        scores = f"{run['Hamming']:10.4f}{run['macro F1']:10.3f}{run['micro F1']:10.3f}{run['subset']:8.3f}"
        cost = f"{run['seconds']:9.1f}  {run['graph']}" if "graph" in run else ""
        lines.append(f"{run['model']:16s}{scores}{cost}")
    return "\n".join(lines)


@command(data=DEFAULT_DATA, models=several(_MODELS), records=RESULTS / "papers" / "graph_kernels.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    for case in record.missing(model=arguments.models):
        name = case["model"]
        train, test = read_parts("scene", arguments.data)
        model, seconds = timed(LabelGraphClassifier(**_MODELS[name]).fit, train.X, train.Y)
        cost = {"seconds": seconds, "graph": repr(model.label_graph_)}
        record.add(case, _scores(test.Y, model.predict(test.X).toarray()) | cost)
        if name == "left-out scores":
            scores = model.inputs_.of(FeatureMatrix(test.X)).data
            record.add({"model": "ridge alone"}, _scores(test.Y, (scores > 0).astype(np.int8)))
    record.show(table(record.runs))
