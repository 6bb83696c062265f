"""Micro-F1 on the given test rows of Mulan's sets with unscaled features and with the model's choice of
scaling.

Every model has its defaults except ``scaling``; no choice uses the test rows.
"""

from typing import Any

from sklearn.base import clone

from benchmarks.frame import command, quiet, without_name
from benchmarks.problems import read_parts
from labelweave import KernelLogisticClassifier, LabelGraphClassifier, LowRankClassifier, MaxMarginClassifier
from labelweave.metrics import f1_score

MODELS: dict[str, Any] = {
    "max-margin": MaxMarginClassifier(),
    "max-margin, RBF": MaxMarginClassifier(kernel="rbf"),
    "kernel logistic": KernelLogisticClassifier(),
    "low rank": LowRankClassifier(),
    "label graph": LabelGraphClassifier(),
}


@command(sets=without_name(["birds", "emotions", "flags", "scene", "yeast"]))
def main(given: Any) -> None:
    for name in given.sets:
        train, test = read_parts(name)
        for words, model in MODELS.items():
            cells = []
            for scaling in ("none", "auto"):
                fitted = clone(model).set_params(scaling=scaling)
                with quiet(Warning):  # for nearly constant kernels, and for gaps
                    fitted.fit(train.X, train.Y)
                kind = "" if fitted.scaling_ is None else f" ({fitted.scaling_.kind})"
                score = f1_score(test.Y, fitted.predict(test.X), average="micro")
                cells.append(f"{scaling}{kind} {score:.3f}")
            print(f"{name:9} {words:16} " + "   ".join(cells), flush=True)
