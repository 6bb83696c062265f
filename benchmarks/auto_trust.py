"""Check whether the score that AutoLabelClassifier expects is reached on new rows.

Few rows are drawn repeatedly from large sets; the rest of the set measures the true quality.  None of these
sets is among those of ``auto_quality``.  An expected score is correct if it is within two standard errors,
the root of the sum of the squares of its own and that of the test rows.

With ``--sources`` Debian packages are drawn instead, by whole sources: 70, 50 and 30 % of the sources in
turn, one draw per seed; the sources are the groups of the fits.

    python -m benchmarks.auto_trust --draws 30
    python -m benchmarks.auto_trust --sources 3 4 5 6 7 8
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.auto_quality import FOLDER, dense, load
from benchmarks.frame import command, flag
from labelweave import AutoLabelClassifier, LabelMatrix, datasets
from labelweave.decisions.automatic.label_sets import value_of_sets

_TEST_ROWS = 3000
_FEWEST = 3  # training rows that have a label
_SHARES = 0.7, 0.5, 0.3


def many_rows() -> Iterator[tuple[str, Any, Any]]:
    """Return sets of many rows: features, and labels as a table of 0 and 1."""
    for name, n_labels in (("tmc2007", 22), ("delicious", 40)):
        X, Y, _, _ = load(name)
        table = Y.positives.toarray()
        yield name, X, table[:, np.argsort(-table.sum(axis=0), kind="stable")[:n_labels]].astype(int)
    data = datasets.read_hierarchical_arff(FOLDER.parent / "imclef07a" / "ImCLEF07A_Train.arff")
    yield "imclef07a", data.X, data.Y.positives.toarray().astype(int)
    random = np.random.default_rng(99)
    X, first, second = (random.normal(size=size) for size in ((20_000, 20), (20, 8), (8, 12)))
    scores = np.tanh(X @ first) @ second + 1.5 * random.normal(size=(len(X), 6)) @ random.normal(size=(6, 12))
    levels = np.diag(np.quantile(scores, np.linspace(0.6, 0.97, 12), axis=0))
    yield "synthetic", X, (scores > levels).astype(int)


def one_draw(X: Any, Y: Any, n: int, seed: int, members: Any) -> tuple[float, float, float]:
    """Fit to a draw of n rows; return the test score minus the expected one, and both standard errors."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    train, test = order[:n], order[n : n + _TEST_ROWS]
    counts = Y[train].sum(axis=0)
    Y = Y[:, (counts >= _FEWEST) & (counts < n)]
    model = AutoLabelClassifier(members=members, random_state=seed).fit(X[train], Y[train])
    sets = np.asarray(dense(model.predict(X[test])))
    value, error = value_of_sets(LabelMatrix.from_any(Y[test]), sets, model.metric)
    return value - model.oof_score_, model.oof_standard_error_, error


def draw_of_sources(seed: int) -> Iterator[tuple[str, float, float, float]]:
    """Fit to packages of some sources; return by metric the test score minus the expected one, and errors."""
    data = datasets.load_debtags()
    X, Y = (sp.vstack(parts, format="csr") for parts in ((data.X, data.X_test), (data.Y, data.Y_test)))
    sources = np.concatenate([data.source_ids, data.source_ids_test])
    drawn = np.random.default_rng(seed).permutation(np.unique(sources))
    is_train = np.isin(sources, drawn[: int(_SHARES[seed % 3] * len(drawn))])
    model = AutoLabelClassifier(time_budget=10.0)
    model.fit(X[is_train], LabelMatrix(Y[is_train]), groups=sources[is_train])
    groups, truth = np.unique(sources[~is_train], return_inverse=True)[1], LabelMatrix(Y[~is_train])
    for metric in ("micro_f1", "macro_f1", "example_f1", "subset_accuracy"):
        chosen = model.optimize_for(metric)
        sets = np.asarray(chosen.predict(X[~is_train]).toarray())
        value, error = value_of_sets(truth, sets, metric, None, groups)
        yield metric, value - chosen.oof_score_, chosen.oof_standard_error_, error


def _show(words: str, draws: Any) -> None:
    away, own, test = draws.T
    ratios = away / np.hypot(own, test)
    within, size = np.mean(np.abs(ratios) < 2), np.sqrt(np.mean(ratios**2))
    print(
        f"{words:22s} test value less stated one {away.mean():+.4f} +- {away.std():.4f}, stated error "
        f"{own.mean():.4f}, of the test rows {test.mean():.4f}; within two: {within:.0%}, "
        f"root mean square {size:.2f}",
        flush=True,
    )


@command(draws=30, rows=[120, 300], members=["rbf"], sources=flag([], type=int))
def main(options: Any) -> None:
    if options.sources:
        for seed in options.sources:
            for metric, *found in draw_of_sources(seed):
                _show(f"{seed}, {_SHARES[seed % 3]:.0%} of sources, {metric}", np.array([found]))
        return
    everything = []
    for name, X, Y in many_rows():
        for n in options.rows:
            draws = [one_draw(X, Y, n, seed, options.members) for seed in range(options.draws)]
            everything += draws
            _show(f"{name}, {n} rows", np.array(draws))
    _show("all", np.array(everything))
