"""Thresholds tuned on synthetic texts, compared with scikit-learn's tuning inside one-vs-rest.

"tuned" holds out a fifth of the training rows and costs less than one more fit.  Oracles choose on the test
rows, a quarter as many as training rows.  Times are CPU seconds, with one thread.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.frame import RESULTS, command, save, timed
from labelweave import MaxMarginClassifier, TunedThresholdClassifier, metrics
from labelweave.datasets import make_text_like
from labelweave.postprocessing import choose_thresholds

_LABELS = 100
_ONE_VS_REST = OneVsRestClassifier(LinearSVC(random_state=0))
_PROGRAMS: dict[str, Any] = {
    "one against the rest": _ONE_VS_REST,
    "TunedThresholdClassifier": TunedThresholdClassifier(_ONE_VS_REST),
    "TunedThresholdClassifier, one threshold": TunedThresholdClassifier(_ONE_VS_REST, scope="global"),
    "TunedThresholdClassifier, 5 folds": TunedThresholdClassifier(_ONE_VS_REST, cv=5),
    "MaxMarginClassifier": MaxMarginClassifier(),
    "TunedThresholdClassifier, MaxMarginClassifier": TunedThresholdClassifier(MaxMarginClassifier()),
    "scikit-learn's TunedThresholdClassifierCV": OneVsRestClassifier(
        TunedThresholdClassifierCV(LinearSVC(random_state=0), scoring="f1")
    ),
}


@command(text_rows=20_000, out=RESULTS / "decisions.json")
def main(arguments: Any) -> None:
    n = arguments.text_rows
    made = make_text_like(n + n // 4, 5_000, _LABELS, words_per_row=9, random_state=0)
    X, Y, X_test, Y_test = made.X[:n], made.Y.positives[:n], made.X[n:], made.Y.positives[n:]
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for title, program in _PROGRAMS.items():
        fitted, seconds = timed(program.fit, X, Y)
        predicted = fitted.predict(X_test)
        if "CV" in title:  # one-vs-rest uses decision_function, without thresholds
            predicted = np.column_stack([one.predict(X_test) for one in fitted.estimators_])
        found[title] = {"seconds": seconds, "micro_f1": metrics.f1_score(Y_test, predicted)}
        if title in ("one against the rest", "MaxMarginClassifier"):
            found[title]["oracle"] = choose_thresholds(Y_test, fitted.decision_function(X_test)).value
        print(title, {name: round(value, 4) for name, value in found[title].items()}, flush=True)
    save(arguments.out, {"threads": 1, "rows": n, "labels": _LABELS, "programs": found})
