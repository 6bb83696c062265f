"""Priors of labels whose parts have separate weights, scales or kernels, on few rows.

The training rows are drawn again for each seed; the test rows are Mulan's, which are used once.  Only the
labels of the remaining training rows are used, for the correlations ``corr``.

- enron, 200 rows: ``MaxMarginClassifier``, C by four folds of the drawn rows.  R is the identity, one of the
  sources (``corr``; ``tree``, the groups by prefixes of label names), the mean of all three, or their sum
  with weights that the objective learns (``weighted``).  ``logistic: ...`` is ``KernelLogisticClassifier``
  with the same R, whose hyperparameters are learned on five folds.
- other sets, 300 rows: ``KernelLogisticClassifier`` with RBF kernels, one scale and width (``shared``), or
  one for each label (``class``) or third of the labels by frequency (``groups``); R given, with these
  (``corr``, ``corr, scale``, ``corr, class``) or weighted; three learned factors with one width (``factors``)
  or one each (``factors, class``); a list of kernels (``rbf + linear``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, groups, several, standard_error
from benchmarks.papers.likelihood_runs import made
from benchmarks.problems import read_parts
from labelweave import LabelCovariance, MaxMarginClassifier
from labelweave.metrics import log_loss

_ROWS = {"enron": 200, "emotions": 300, "yeast": 300}
_PENALTIES = (0.1, 0.3, 1.0, 3.0)


def _drawn(name: str, seed: int) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """Return the drawn rows, the test rows, and the sources of a covariance."""
    train, test = read_parts(name)
    X, X_test = (part.X.toarray() if sp.issparse(part.X) else part.X for part in (train, test))
    Y, Y_test = train.Y.to_dense(), test.Y.to_dense()
    order = np.random.default_rng(seed).permutation(len(X))
    rows, others = order[: _ROWS[name]], order[_ROWS[name] :]
    if name == "enron":
        X, X_test = normalize(X), normalize(X_test)
    else:
        scaler = StandardScaler().fit(X[rows])
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    groups = np.array([str(label).split(".")[0] for label in train.Y.names])
    own = np.eye(Y.shape[1])
    sources = {"own": own, "corr": LabelCovariance.from_labels(Y[others]).to_dense()}
    sources["tree"] = 0.5 * own + 0.5 * (groups[:, None] == groups)
    return X[rows], Y[rows], X_test, Y_test, sources


def _methods(name: str, sources: dict[str, Any], Y: Any) -> dict[str, dict[str, Any]]:
    if name == "enron":
        whole = LabelCovariance.weighted(sources)
        one = {source: {"label_covariance": sources[source]} for source in ("corr", "tree")}
        sums = {"mean": {"label_covariance": whole.fixed}, "weighted": {"label_covariance": whole}}
        return {"independent": {}, **one, **sums}
    corr = sources["corr"]
    groups = np.searchsorted(np.quantile(Y.mean(axis=0), [1 / 3, 2 / 3]), Y.mean(axis=0)).tolist()
    return {
        "shared": {},
        "class": {"tie": "class"},
        "groups": {"tie": groups},
        "corr": {"label_covariance": corr},
        "corr, scale": {"label_covariance": corr, "tie": "scale"},
        "corr, class": {"label_covariance": corr, "tie": "class"},
        "weighted": {"label_covariance": LabelCovariance.weighted([np.eye(len(corr)), corr])},
        "factors": {"label_covariance": 3},
        "factors, class": {"label_covariance": 3, "tie": "class"},
        "rbf + linear": {"kernel": ["rbf", "linear"]},
    }


def _measure(name: str, seed: int, method: str) -> dict[str, Any]:
    X, Y, X_test, Y_test, sources = _drawn(name, seed)
    _, kind, plain = method.rpartition("logistic: ")
    given = _methods(name, sources, Y)[plain]
    if name == "enron" and not kind:
        C = _chosen_penalty(X, Y, given, seed)
        model: Any = MaxMarginClassifier(C, **given).fit(X, Y)
        scores, more = model.decision_function(X_test), {"C": C, "fits": model.n_iter_}
        weights = getattr(model.label_covariance_, "weights", None)
    else:
        model = made(0, intercept_variance="learn", **given).fit(X, Y)
        scores, weights = model.predict_proba(X_test) - 0.5, None
        more = {
            "log loss": float(log_loss(Y_test, scores + 0.5)),
            "cross-validated log loss": float(model.cross_validation_loss_),
        }
    if weights is not None:
        more["weights"] = [round(float(weight), 3) for weight in weights]
    return more | {
        "hamming": 100.0 * float(((scores > 0) != Y_test).mean()),
        "auc": _mean_auc(Y_test, scores),
    }


def _chosen_penalty(X: Any, Y: Any, given: dict[str, Any], seed: int) -> float:
    """Find the C of the least Hamming loss of out-of-fold rows."""
    losses = np.zeros(len(_PENALTIES))
    for kept, held in KFold(4, shuffle=True, random_state=seed).split(X):
        for place, C in enumerate(_PENALTIES):
            model = MaxMarginClassifier(C, tol=1e-2, **given).fit(X[kept], Y[kept])
            losses[place] += (model.predict(X[held]) != Y[held]).sum()
    return _PENALTIES[int(np.argmin(losses))]


def _mean_auc(Y: Any, scores: Any) -> float:
    both = np.flatnonzero((Y.min(axis=0) == 0) & (Y.max(axis=0) == 1))
    return 100.0 * float(np.mean([roc_auc_score(Y[:, label], scores[:, label]) for label in both]))


def _names(name: str) -> list[str]:
    sources = {source: np.eye(2) for source in ("own", "corr", "tree")}
    plain = list(_methods(name, sources, np.eye(2)))
    return [*plain, *(f"logistic: {method}" for method in plain)] if name == "enron" else plain


def table(runs: list[dict[str, Any]]) -> str:
    """Write the means over draws, and the difference in log loss (or AUC) from the first method."""
    lines = [f"{'':32s}{'Hamming %':>10s}{'macro AUC %':>12s}{'log loss':>10s}{'difference':>20s}"]
    found = groups(sorted(runs, key=lambda run: int(run["seed"])), "set", "method")
    for name in _ROWS:
        for method in _names(name):
            own, base = (found.get((name, one), []) for one in (method, _base(name, method)))
            if own and len(own) == len(base):
                lines.append(f"{name + ', ' + method:32s}{_figures(own, base)}")
    return "\n".join(lines)


def _figures(own: list[dict[str, Any]], base: list[dict[str, Any]]) -> str:
    measure = "log loss" if "log loss" in own[0] else "auc"
    change = np.array([one[measure] - other[measure] for one, other in zip(own, base, strict=True)])
    hamming, auc = (np.mean([run[what] for run in own]) for what in ("hamming", "auc"))
    loss = f"{np.mean([run[measure] for run in own]):10.4f}" if measure == "log loss" else " " * 10
    return f"{hamming:10.2f}{auc:12.2f}{loss}{change.mean():+12.4f} ± {standard_error(change):.4f}"


def _base(name: str, method: str) -> str:
    if name != "enron":
        return "shared"
    return "logistic: independent" if method.startswith("logistic") else "independent"


@command(
    sets=several(_ROWS, "data sets"),
    seeds=flag(5, "draws of training rows"),
    records=RESULTS / "papers" / "label_priors.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, rows=_ROWS)
    for name in arguments.sets:
        for case in record.missing(set=[name], seed=range(arguments.seeds), method=_names(name)):
            record.add(case, _measure(*case.values()))
    record.show(table(record.runs))
