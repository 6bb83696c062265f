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
from benchmarks.frame import RESULTS, command, read_json, several, standard_error, timed, write_json
from benchmarks.machine import describe_machine
from benchmarks.problems import read_parts
from labelweave.datasets import load_debtags
from labelweave.metrics import average_auc, f1_score

_SIZES, _DRAWS = (300, 1000, 3000), 5
_TEST_ROWS = 3000
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


def _models(problem: _Problem, seed: int) -> dict[str, Any]:
    words: dict[str, Any] = {"feature_names": problem.features}
    dealt = dict(zip(problem.labels, np.random.default_rng(seed).permutation(problem.labels), strict=True))
    embedded = lw.LabelText(list(dealt.values())).embeddings
    low_rank = lw.LowRankClassifier(50, "log_loss", 0.3, tol=1e-3)
    made = {
        "identity": lw.LabelTextClassifier(mean=0.0, covariance="none", **words),
        "covariance": lw.LabelTextClassifier(mean=0.0, **words),
        "mean": lw.LabelTextClassifier(covariance="none", **words),
        "both": lw.LabelTextClassifier(**words),
        "margins": lw.LabelTextClassifier(lw.MaxMarginClassifier(5.0, tol=1e-2), **words),
        "low rank": lw.LabelTextClassifier(low_rank, **words),
        "rank alone": lw.LabelTextClassifier(low_rank, mean=0.0, covariance="none", **words),
        "shuffled": lw.LabelTextClassifier(descriptions=lw.LabelText(problem.labels, embedded), **words),
    }
    if problem.parents is not None:
        made["taxonomy"] = lw.LabelTextClassifier(taxonomy=lw.Taxonomy(problem.parents), **words)
    return made


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


def _summary(draws: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    table = {name: [draw.get(name, np.nan) for draw in draws] for name in draws[0]}
    errors = {name: np.nanstd(values, ddof=len(values) > 1) for name, values in table.items()}
    return {
        name: (float(np.nanmean(values)), float(errors[name] / np.sqrt(len(values))))
        for name, values in table.items()
    }


def _run(name: str, chosen: Any, results: dict[str, Any]) -> None:
    problem = _PROBLEMS[name]()
    n_rows, n_test = problem.X.shape[0], problem.X_test.shape[0]
    held = np.sort(np.random.default_rng(0).permutation(n_test)[:_TEST_ROWS])
    for size in chosen.sizes:
        draws: dict[str, list[dict[str, float]]] = {}
        for seed in range(chosen.draws):
            rows = np.sort(np.random.default_rng(seed).permutation(n_rows)[:size])
            for kind, model in _models(problem, seed).items():
                if kind in chosen.models:
                    draws.setdefault(kind, []).append(_measured(model, problem, rows, held))
        kept = results.setdefault(name, {}).setdefault(str(size), {})
        for kind, measured in draws.items():
            kept[kind] = {"summary": _summary(measured), "draws": measured, "measured": describe_machine()}
            _show(name, size, kind, kept[kind]["summary"])
        _compare(kept)
        write_json(chosen.out, results)


def _compare(kept: dict[str, Any]) -> None:
    """Record the difference in AUC of every prior from independent labels on the same draws."""
    plain = [draw["AUC"] for draw in kept.get("identity", {"draws": []})["draws"]]
    for found in kept.values():
        if len(found["draws"]) == len(plain) > 1:
            away = np.array([draw["AUC"] for draw in found["draws"]]) - plain
            found["AUC less identity's"] = float(away.mean()), float(standard_error(away))


def _hidden(name: str, chosen: Any, results: dict[str, Any]) -> None:
    """Measure the probabilities of labels without training rows."""
    problem, found = _PROBLEMS[name](), []
    held = np.sort(np.random.default_rng(0).permutation(problem.X_test.shape[0])[:_TEST_ROWS])
    for seed in range(chosen.draws):
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.permutation(problem.X.shape[0])[: chosen.sizes[0]])
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
        found.append(losses | {"mean": float(shares.mean()), "true mean": float(truth.mean())})
    summary = _summary(found)
    kept = results.setdefault(f"{name}, a fifth hidden", {})
    kept[str(chosen.sizes[0])] = summary | {"measured": describe_machine()}
    _show(f"{name}, hidden", chosen.sizes[0], "both", summary)
    write_json(chosen.out, results)


def _show(name: str, size: int, kind: str, summary: dict[str, Any]) -> None:
    numbers = "  ".join(f"{key} {value[0]:.4f} +- {value[1]:.4f}" for key, value in summary.items())
    print(f"{name} {size:5d} {kind:10s} {numbers}", flush=True)


@command(
    sets=several([*_PROBLEMS, "hidden"]),
    models=several(_KINDS),
    sizes=_SIZES,
    draws=_DRAWS,
    out=RESULTS / "label_text.json",
)
def main(chosen: Any) -> None:
    warnings.simplefilter("ignore")
    results: dict[str, Any] = read_json(chosen.out)
    for name in chosen.sets:
        if name == "hidden":
            for of in _PROBLEMS:
                _hidden(of, chosen, results)
        else:
            _run(name, chosen, results)
