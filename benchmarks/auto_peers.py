"""AutoLabelClassifier compared with single calls of other methods, on Mulan's sets and on rows that are
vectors.

Mulan's sets and debtags have their given splits, or ``--splits``.  Texts stay sparse for linear models; the
others get dense rows.  Vectors are made from bundled data, and ``--draws`` of ``--rows`` training rows are
fitted: Debian packages as 384 singular vectors of their words and dependencies (50 tags), their descriptions
as static vectors (256 numbers, 100 tags; needs ``labelweave[text]``), the bookmarks of delicious as 384
singular vectors of their words (500 tags), and drawn texts as 128 singular vectors (40 labels).  Singular
vectors are those of all rows, as an encoder is trained on other rows; test packages are of other sources.

Forests and the C of linear models are tuned by a grid on three folds; every other method has its defaults.
All get the best thresholds for micro-F1 on held-out training rows by TunedThresholdClassifier, as
AutoLabelClassifier has.  CatBoost, LightGBM and FLAML take part if they are installed; FLAML searches for two
minutes in all, an equal share for each label and fold.

    python -m benchmarks.auto_peers --sets scene yeast
    python -m benchmarks.auto_peers --sets flags emotions birds --splits 5
    python -m benchmarks.auto_peers --sets debtags bibtex tmc2007 --methods "LIBLINEAR, tuned"
    python -m benchmarks.auto_peers --sets packages bookmarks --rows 20000 --draws 1 --jobs 1
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC

import labelweave as lw
from benchmarks.auto_quality import dense, load, rank_measures, set_measures, splits
from benchmarks.frame import OUT, command, cost_of, flag, quiet, save, timed
from labelweave import metrics
from labelweave.datasets import load_debtags, make_text_like
from labelweave.labels.text import static_embeddings

Parts = tuple[Any, Any, Any, Any]  # X, Y, X_test, Y_test
OURS, FLAML = "AutoLabelClassifier", "FLAML, one against rest"
_SHOWN = (
    "MICRO_F1", "MACRO_F1", "HAMMING_LOSS_example_based", "AUPRC_MICRO", "LABEL_RANKING_LOSS", "ONE_ERROR",
)  # fmt: skip
_COSTS = ("log_loss", "seconds", "cpu_seconds", "row_milliseconds")


def _average_precision(model: Any, X: Any, y: Any) -> float:
    return rank_measures(y, _scores(model, X))["AUPRC_MICRO"]


def _forest() -> Any:
    grid = {"max_features": ["sqrt", 0.3], "min_samples_leaf": [1, 3]}
    return GridSearchCV(RandomForestClassifier(200, random_state=0), grid, scoring=_average_precision, cv=3)


def _chain() -> Any:
    chain = ClassifierChain(LogisticRegression(max_iter=2000), order="random", random_state=0)
    return make_pipeline(StandardScaler(with_mean=False), chain)


def _by_label() -> Any:
    found = GridSearchCV(LinearSVC(), {"C": [0.03, 0.1, 0.3, 1.0, 3.0]}, scoring="average_precision", cv=3)
    return make_pipeline(StandardScaler(with_mean=False), OneVsRestClassifier(found))


def _liblinear() -> Any:
    rows = make_pipeline(Normalizer(), OneVsRestClassifier(LinearSVC()))
    grid = {"onevsrestclassifier__estimator__C": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
    return GridSearchCV(rows, grid, scoring=_average_precision, cv=3)


def _best_c(model: Any, values: list[float]) -> Any:
    grid = {"estimator__C": values}
    return GridSearchCV(OneVsRestClassifier(model), grid, scoring="average_precision", cv=3)


def _network() -> Any:
    return make_pipeline(StandardScaler(), MLPClassifier((256, 128), alpha=1.0, max_iter=50, random_state=0))


def _catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        loss_function="MultiLogloss", thread_count=2, random_seed=0, verbose=0, allow_writing_files=False
    )


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return OneVsRestClassifier(LGBMClassifier(n_jobs=1, verbose=-1, random_state=0))


def _flaml(n_labels: int) -> Any:
    from flaml import AutoML

    search = AutoML(task="classification", time_budget=120.0 / n_labels / 6, n_jobs=2, verbose=0, seed=0)
    return OneVsRestClassifier(search)


PEERS: dict[str, Callable[[], Any]] = {
    "random forest, tuned": _forest,
    "histogram boosting, one against rest": lambda: OneVsRestClassifier(HistGradientBoostingClassifier()),
    "CatBoost, multi-label loss": _catboost,
    "chain of logistic regressions": _chain,
    "linear SVM, C tuned by label": _by_label,
    "LIBLINEAR, tuned": _liblinear,
    "KernelLogisticClassifier": lambda: lw.KernelLogisticClassifier(scaling="auto"),
}
OF_VECTORS: dict[str, Callable[[], Any]] = {
    "MaxMarginClassifier": lw.MaxMarginClassifier,
    "logistic regression": lambda: _best_c(LogisticRegression(max_iter=2000), [1.0, 10.0, 100.0]),
    "linear SVM": lambda: _best_c(LinearSVC(), [0.1, 1.0, 10.0]),
    "network of two layers": _network,
    "LightGBM": _lightgbm,
}
_TAKES_SPARSE = {"linear SVM, C tuned by label", "LIBLINEAR, tuned", "KernelLogisticClassifier", OURS}


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
    Y = data.Y.positives
    return _frequent(40, *_singular(data.X[:6000], data.X[6000:], 128), Y[:6000], Y[6000:])


VECTORS: dict[str, Callable[[], Parts]] = {
    "packages": lambda: _packages(50, lambda data: _singular(data.X, data.X_test, 384)),
    "descriptions": lambda: _packages(
        100, lambda data: (static_embeddings(data.descriptions), static_embeddings(data.descriptions_test))
    ),
    "bookmarks": _bookmarks,
    "drawn": _drawn,
}


def parts_of(name: str, options: Any) -> Iterator[Parts]:
    """Return the splits of a set, or the draws of vectors, with labels of 0 and 1."""
    if name in VECTORS:
        X, Y, X_test, Y_test = VECTORS[name]()
        for seed in range(options.draws):
            draw = np.random.default_rng(seed).permutation(len(X))[: options.rows]
            yield X[draw], Y[draw].astype(int), X_test, Y_test.astype(int)
        return
    for X, Y, X_test, Y_test in splits(name, 0 if name == "debtags" else options.splits):
        table, truth = (part.positives.toarray().astype(int) for part in (Y, Y_test))
        yield X, table, X_test, truth


def measure(parts: Parts, method: str, jobs: int) -> dict[str, float]:
    X, Y, X_test, truth = parts
    rows, test = (part if method in _TAKES_SPARSE else dense(part) for part in (X, X_test))
    model, seconds, spent = cost_of(_fitted, method, rows, Y, jobs)
    inner = model if method == OURS else model.estimator_
    scores, sets = _scores(inner, test), np.asarray(dense(model.predict(test)))
    has_probabilities = hasattr(inner, "predict_proba")
    loss = float(metrics.log_loss(truth, scores)) if has_probabilities else np.nan
    times = [timed(model.predict, test[[row]], clock=time.perf_counter)[1] for row in range(20)]
    found = rank_measures(truth, scores) | set_measures(truth, sets)
    costs = loss, seconds, spent, 1e3 * float(np.median(times))
    return {name: found[name] for name in _SHOWN} | dict(zip(_COSTS, costs, strict=True))


def _fitted(method: str, X: Any, Y: Any, jobs: int) -> Any:
    if method == OURS:
        return lw.AutoLabelClassifier(n_jobs=jobs).fit(X, Y)
    given = _flaml(Y.shape[1]) if method == FLAML else (PEERS | OF_VECTORS)[method]()
    if isinstance(given, GridSearchCV):  # once, not in every fold of the thresholds
        given = given.fit(X, Y).best_estimator_
    return lw.TunedThresholdClassifier(given, "micro_f1", cv=5).fit(X, Y)


def _scores(model: Any, X: Any) -> Any:
    if not hasattr(model, "predict_proba"):
        return model.decision_function(X)
    found = model.predict_proba(X)
    if isinstance(found, list):
        return np.stack([part[:, -1] * (part.shape[1] > 1) for part in found], axis=1)
    return np.asarray(found)


@command(
    sets=["flags", "emotions", "birds", "scene", "yeast"],
    splits=flag(0, "stratified 60/40 splits; 0 for the given one"),
    rows=flag(3000, "training vectors of a draw"),
    draws=flag(5, "of vectors"),
    methods=flag(help="by default the usual ones of a set", nargs="*", choices=[*PEERS, FLAML, *OF_VECTORS]),
    jobs=flag(2, "threads of AutoLabelClassifier"),
    out=OUT,
)
def main(options: Any) -> None:
    results: dict[str, Any] = {}
    for name in options.sets:
        print(f"{name}: {', '.join((*_SHOWN, *_COSTS))}")
        usual = [*OF_VECTORS] if name in VECTORS else [*PEERS, FLAML]
        for method in [OURS, *(usual if options.methods is None else options.methods)]:
            try:
                with quiet(Warning):  # of labels that a fold lacks
                    runs = [measure(parts, method, options.jobs) for parts in parts_of(name, options)]
            except ImportError as error:
                print(f"   {method:38s} left out: {error}", flush=True)
                continue
            found = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            results.setdefault(name, {})[method] = found
            print(f"   {method:38s} {'  '.join(f'{value:.4f}' for value in found.values())}", flush=True)
            save(options.out, results)
