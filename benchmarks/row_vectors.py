"""Models of rows that are vectors: AutoLabelClassifier compared with usual choices of scikit-learn and
LightGBM.

Vectors are made from bundled data: Debian packages as 384 singular vectors of their words and dependencies
(50 tags), their descriptions as static vectors (256 numbers, 100 tags; needs ``labelweave[text]``), the
bookmarks of delicious as 384 singular vectors of their words (500 tags), and drawn texts as 128 singular
vectors (40 labels).  Singular vectors are those of all rows, as an encoder is trained on other rows; test
packages are of other sources.  All methods get the best thresholds for micro-F1 on held-out training rows,
linear ones the best of three C on three folds.  LightGBM takes part if it is installed.

    python -m benchmarks.row_vectors
    python -m benchmarks.row_vectors --rows 20000 --draws 1 --sets packages bookmarks
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.auto_quality import load
from benchmarks.frame import OUT, command, flag, quiet, save, timed
from labelweave import AutoLabelClassifier, MaxMarginClassifier, TunedThresholdClassifier, metrics
from labelweave.datasets import load_debtags, make_text_like
from labelweave.labels.text import static_embeddings

_SHOWN = ("micro_f1", "macro_f1", "precision_at_1", "log_loss", "cpu_seconds", "row_milliseconds")
Parts = tuple[Any, Any, Any, Any]  # X, Y, X_test, Y_test


def _best_c(model: Any, values: list[float]) -> Any:
    grid = {"estimator__C": values}
    return GridSearchCV(OneVsRestClassifier(model), grid, scoring="average_precision", cv=3)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return OneVsRestClassifier(LGBMClassifier(n_jobs=1, verbose=-1, random_state=0))


METHODS: dict[str, Callable[[], Any]] = {
    "AutoLabelClassifier": lambda: AutoLabelClassifier(n_jobs=1),
    "MaxMarginClassifier": MaxMarginClassifier,
    "logistic regression": lambda: _best_c(LogisticRegression(max_iter=2000), [1.0, 10.0, 100.0]),
    "linear SVM": lambda: _best_c(LinearSVC(), [0.1, 1.0, 10.0]),
    "network of two layers": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((256, 128), alpha=1.0, max_iter=50, random_state=0)
    ),
    "LightGBM": _lightgbm,
}


def _packages(n_labels: int, embed: Callable[[Any], tuple[Any, Any]]) -> Parts:
    data = load_debtags()
    return _frequent(n_labels, *embed(data), data.Y, data.Y_test)


def _frequent(n_labels: int, X: Any, X_test: Any, Y: Any, Y_test: Any) -> Parts:
    Y, Y_test = sp.csc_array(Y), sp.csc_array(Y_test)
    kept = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels])
    return X, Y[:, kept].toarray(), X_test, Y_test[:, kept].toarray()


def _singular(X: Any, X_test: Any, size: int) -> tuple[Any, Any]:
    rows = TruncatedSVD(size, random_state=0).fit_transform(sp.vstack([X, X_test], format="csr"))
    return rows[: X.shape[0]], rows[X.shape[0] :]


def _bookmarks() -> Parts:
    X, Y, X_test, Y_test = load("delicious")
    vectors = _singular(sp.csr_array(X), sp.csr_array(X_test), 384)
    return _frequent(500, *vectors, Y.positives, Y_test.positives)


def _drawn() -> Parts:
    data = make_text_like(9000, 4000, 40)
    X, X_test = _singular(data.X[:6000], data.X[6000:], 128)
    Y = data.Y.positives.toarray()
    return X, Y[:6000], X_test, Y[6000:]


SETS: dict[str, Callable[[], Parts]] = {
    "packages": lambda: _packages(50, lambda data: _singular(data.X, data.X_test, 384)),
    "descriptions": lambda: _packages(
        100, lambda data: (static_embeddings(data.descriptions), static_embeddings(data.descriptions_test))
    ),
    "bookmarks": _bookmarks,
    "drawn": _drawn,
}


def measure(parts: Parts, method: str) -> dict[str, float]:
    X, Y, X_test, Y_test = parts
    given, begin = METHODS[method](), time.process_time()
    own = isinstance(given, AutoLabelClassifier)
    if isinstance(given, GridSearchCV):  # once, not in every fold of the thresholds
        given = given.fit(X, Y).best_estimator_
    model = given.fit(X, Y) if own else TunedThresholdClassifier(given, "micro_f1", cv=5).fit(X, Y)
    spent = time.process_time() - begin
    scores, sets = model.decision_function(X_test), model.predict(X_test)
    inner = model if own else model.estimator_
    has_probabilities = hasattr(inner, "predict_proba")
    loss = metrics.log_loss(Y_test, inner.predict_proba(X_test)) if has_probabilities else np.nan
    times = [timed(model.predict, row[None], clock=time.perf_counter)[1] for row in X_test[:20]]
    numbers = [metrics.f1_score(Y_test, sets, average=average) for average in ("micro", "macro")]
    numbers += [metrics.precision_at_k(Y_test, scores, 1), loss, spent, 1e3 * float(np.median(times))]
    return dict(zip(_SHOWN, map(float, numbers), strict=True))


@command(
    sets=flag([*SETS], nargs="*", choices=[*SETS]),
    methods=flag([*METHODS], nargs="*", choices=[*METHODS]),
    rows=flag(3000, "training rows of a draw"),
    draws=5,
    out=OUT,
)
def main(options: Any) -> None:
    results: dict[str, Any] = {}
    for name in options.sets:
        X, Y, X_test, Y_test = SETS[name]()
        print(f"{name}: {X.shape[1]} numbers, {Y.shape[1]} labels: {', '.join(_SHOWN)}", flush=True)
        for method in options.methods:
            runs = []
            for seed in range(options.draws):
                draw = np.random.default_rng(seed).permutation(len(X))[: options.rows]
                with quiet(Warning):  # of labels that a fold lacks
                    try:
                        runs.append(measure((X[draw], Y[draw], X_test, Y_test), method))
                    except ImportError as error:
                        print(f"   {method:24s} left out: {error}", flush=True)
                        break
            if runs:
                results[f"{name}, {method}"] = {
                    key: float(np.mean([run[key] for run in runs])) for key in _SHOWN
                }
                numbers = "  ".join(f"{results[f'{name}, {method}'][key]:9.4f}" for key in _SHOWN)
                print(f"   {method:24s} {numbers}", flush=True)
                save(options.out, results)
