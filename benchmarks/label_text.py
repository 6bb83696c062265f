"""The value of label names as a prior: AUC over labels with 300, 1,000 and 3,000 training rows.

The bundled Debian tags, bibtex and delicious, of which only the labels' *names*, split into words, and the
names of the features are known. Rows are drawn from the training rows, 3,000 test rows are scored, and
nothing is chosen on them. All models are linear, with intercepts of variance 10 and a scale that
``LabelTextClassifier`` chooses on held-out training rows. Priors: "identity", independent labels and no mean;
"covariance", labels of similar texts covary; "mean", by the similarity of a row's words to a label's; "both",
the default of the class; "taxonomy", with the facets of the tags as a taxonomy too; "shuffled", both with the
names of labels permuted at random. Around other models: "margins", both around ``MaxMarginClassifier``; "low
rank", both around ``LowRankClassifier(50, "log_loss", 0.3)``, and "rank alone", that with neither.

Numbers are means over draws with standard errors: AUC over all labels that the test rows have, over those
without a positive training row, and micro- and macro-F1 of labels with a probability above 1/2. ``--sets
hidden`` hides a fifth of the labels from the training rows and measures their probabilities.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.preprocessing import normalize

import labelweave as lw
from benchmarks.frame import RESULTS, RecordedRuns, Run, command, groups, mean_and_error, several, timed
from benchmarks.problems import read_parts
from labelweave.datasets import load_debtags
from labelweave.metrics import average_auc, f1_score

_SIZES, _DRAWS = (300, 1000, 3000), 5
_TEST_ROWS, _HIDDEN = 3000, ", a fifth hidden"
_KINDS = (
    "identity", "covariance", "mean", "both", "taxonomy", "margins", "low rank", "rank alone", "shuffled",
)  # fmt: skip


class _Problem(NamedTuple):
    """Training and test rows; the names of features and labels; pairs of a taxonomy, if there is one."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any
    features: list[str]
    labels: list[str]
    parents: Any = None


def _debtags() -> _Problem:
    tags = load_debtags()
    names = [str(name) for name in tags.label_names]
    parts = tags.X, tags.Y, tags.X_test, tags.Y_test, [str(name) for name in tags.feature_names]
    return _Problem(*parts, names, [tuple(pair) for pair in tags.parents])


def _mulan(name: str) -> Callable[[], _Problem]:
    def load() -> _Problem:
        train, test = read_parts(name)
        X, X_test = (normalize(sp.csr_array(part.X)) for part in (train, test))
        names = [str(label).removeprefix("TAG_") for label in np.asarray(train.label_names)]
        features = [str(feature) for feature in np.asarray(train.feature_names)]
        return _Problem(X, train.Y.positives, X_test, test.Y.positives, features, names)

    return load


_PROBLEMS: dict[str, Callable[[], _Problem]] = {
    "debtags": _debtags,
    "bibtex": _mulan("bibtex"),
    "delicious": _mulan("delicious"),
}


def _model(problem: _Problem, kind: str, seed: int) -> Any:
    low_rank = lw.LowRankClassifier(50, "log_loss", 0.3, tol=1e-3)
    choices: dict[str, dict[str, Any]] = {
        "identity": {"mean": 0.0, "covariance": "none"},
        "covariance": {"mean": 0.0},
        "mean": {"covariance": "none"},
        "both": {},
        "margins": {"estimator": lw.MaxMarginClassifier(5.0, tol=1e-2)},
        "low rank": {"estimator": low_rank},
        "rank alone": {"estimator": low_rank, "mean": 0.0, "covariance": "none"},
        "taxonomy": {"taxonomy": problem.parents and lw.Taxonomy(problem.parents)},
    }
    if kind == "shuffled":
        dealt = np.random.default_rng(seed).permutation(problem.labels).tolist()
        choices[kind] = {"descriptions": lw.LabelText(problem.labels, lw.LabelText(dealt).embeddings)}
    return lw.LabelTextClassifier(feature_names=problem.features, **choices[kind])


def _measured(model: Any, problem: _Problem, rows: Any, held: Any) -> dict[str, float]:
    Y, truth = problem.Y[rows], problem.Y_test[held]
    _, seconds = timed(model.fit, problem.X[rows], lw.LabelMatrix(Y, names=problem.labels))
    X, never = problem.X_test[held], np.asarray(Y.sum(axis=0)).ravel() == 0
    scores, predicted = model.decision_function(X), sp.csr_array(model.predict(X))
    known = np.asarray(truth.sum(axis=0)).ravel() > 0
    found = {"AUC": average_auc(truth[:, known], scores[:, known]), "seconds": seconds}
    if (known & never).any():
        found["AUC, no positive"] = average_auc(truth[:, known & never], scores[:, known & never])
    for average in ("micro", "macro"):
        found[f"{average}-F1"] = f1_score(truth, predicted, average=average)
    chosen = {name: getattr(model.prior_, name) for name in ("mean", "share", "tree_share", "scale")}
    return {name: float(value) for name, value in (found | chosen).items()}


def _run(problem: _Problem, case: Run) -> Run:
    n_rows, n_test = problem.X.shape[0], problem.X_test.shape[0]
    held = np.sort(np.random.default_rng(0).permutation(n_test)[:_TEST_ROWS])
    rng = np.random.default_rng(case["draw"])
    rows = np.sort(rng.permutation(n_rows)[: case["rows"]])
    if case["set"].endswith(_HIDDEN):
        return _hidden(problem, rows, held, rng)
    return _measured(_model(problem, case["model"], case["draw"]), problem, rows, held)


def _hidden(problem: _Problem, rows: Any, held: Any, rng: np.random.Generator) -> Run:
    """Measure the probabilities of labels without training rows."""
    hidden = np.sort(rng.permutation(len(problem.labels))[: len(problem.labels) // 5])
    Y, truth = problem.Y[rows].toarray().astype(float), problem.Y_test[held][:, hidden].toarray()
    Y[:, hidden] = np.nan
    model = lw.LabelTextClassifier(feature_names=problem.features)
    model.fit(problem.X[rows], lw.LabelMatrix.from_any(Y, names=problem.labels))
    shares = np.clip(model.predict_proba(problem.X_test[held])[:, hidden], 1e-12, 1.0 - 1e-12)
    spread = expit(logit(shares) / np.sqrt(1.0 + np.pi / 8.0))  # as for scores of variance 1 (MacKay)
    constant = np.full_like(shares, np.nanmean(Y))
    tables = {"log loss": shares, "log loss, variance 1": spread, "log loss, constant": constant}
    losses = {
        name: float(-np.log(np.where(truth, table, 1.0 - table)).mean()) for name, table in tables.items()
    }
    return losses | {"mean": float(shares.mean()), "true mean": float(truth.mean())}


def table(runs: list[Run]) -> str:
    """Write means over draws, and the difference in AUC from independent labels on the same draws."""
    lines, found = [], groups(runs, "set", "rows", "model")
    for (name, size, kind), own in found.items():
        words = [key for key, value in own[0].items() if isinstance(value, float)]
        values = {key: [run[key] for run in own if key in run] for key in words}
        plain = [run["AUC"] for run in found.get((name, size, "identity"), []) if "AUC" in run]
        if len(plain) == len(values.get("AUC", [])) > 1:
            values["AUC less identity's"] = np.subtract(values["AUC"], plain)
        cells = (f"{key} {mean_and_error(of)}" for key, of in values.items())
        lines.append(f"{name} {size:5d} {kind:10s} {'  '.join(cells)}")
    return "\n".join(lines)


@command(
    sets=several([*_PROBLEMS, "hidden"]),
    models=several(_KINDS),
    sizes=_SIZES,
    draws=_DRAWS,
    records=RESULTS / "label_text.json",
)
def main(chosen: Any) -> None:
    warnings.simplefilter("ignore")
    record, draws = RecordedRuns(chosen), range(chosen.draws)
    for name, load in _PROBLEMS.items() if record.measures else ():
        cases: list[Run] = []
        if name in chosen.sets:
            models = [kind for kind in chosen.models if kind != "taxonomy" or name == "debtags"]
            cases += record.missing(set=[name], rows=chosen.sizes, draw=draws, model=models)
        if "hidden" in chosen.sets:
            cases += record.missing(set=[name + _HIDDEN], rows=chosen.sizes[:1], draw=draws, model=["both"])
        problem = load() if cases else None
        for case in cases:
            print(record.add(case, _run(problem, case)), flush=True)
    record.show(table(record.runs))
