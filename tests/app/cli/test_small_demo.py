"""The demonstration on a handful of rows, with a quick model in place of the one call."""

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from labelweave import MaxMarginClassifier
from labelweave.app.cli import demo
from labelweave.app.cli.flags import DataFlags

NAMES = np.array(["game::cards", "game::chess", "net::chat", "net::mail", "net::web", "role::program"])


budgets = []


class OneCall(MaxMarginClassifier):
    """Says of itself what the automatic classifier says."""

    def __init__(self, time_budget=1.0, n_jobs=1):
        super().__init__(n_jobs=n_jobs)
        self.time_budget = time_budget
        budgets.append(time_budget)
        self.oof_score_, self.oof_standard_error_ = 0.5, 0.25
        self.members_ = [{"name": "margins", "weight": 1.0}, {"name": "trees", "weight": 0.0}]

    def fit(self, X, y, *, groups):
        np.testing.assert_array_equal(groups, _packages().source_ids)
        return super().fit(X, y)


def _packages():
    random = np.random.default_rng(0)
    X = sp.csr_array(random.random((40, 8)) * (random.random((40, 8)) < 0.6))
    Y = sp.csr_array((X.toarray()[:, :6] > 0.4).astype(np.int8))
    names = np.array(sorted(demo._PACKAGES))
    return SimpleNamespace(
        X=X, Y=Y, X_test=X[:10], Y_test=Y[:10], label_names=NAMES, source_ids=np.arange(40) // 3,
        parents=[(name.split("::")[0], name) for name in NAMES],
        names_untagged=names, descriptions_untagged=np.full(len(names), "a package of " + "words " * 20),
        X_untagged=sp.csr_array(np.vstack([np.zeros((1, 8)), random.random((len(names) - 1, 8))])),
    )  # fmt: skip


def test_models_are_compared_and_tags_proposed(monkeypatch, capsys):
    monkeypatch.setattr(demo, "load_debtags", _packages)
    monkeypatch.setattr(demo, "AutoLabelClassifier", OneCall)
    budgets.clear()
    demo.run(DataFlags(jobs=1, quiet=True))
    assert max(budgets) <= 10  # what takes longest of the demonstration
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Debian packages: 40 for training, 10 for testing."
    assert lines[1] == "8 features; 6 tags in 3 facets."
    assert [line.split()[0] for line in lines[3:6]] == ["one", "taxonomy", "independent"]
    assert lines[3].endswith("margins; expected micro-F1 0.5000 +- 0.2500")
    assert "duality gap" in lines[4]
    proposed = lines[lines.index("Proposed for packages without tags: at most five, with their scores.") :]
    assert sum(" - a package of" in line for line in proposed) == 10
    assert max(map(len, lines)) <= 80


def test_rows_are_taken_at_even_steps_and_tags_scored_by_frequency():
    bunch = _packages()
    X, Y, places = demo._chosen(bunch.X, bunch.Y, 4, bunch)
    assert list(places) == [0, 13, 26, 39]
    np.testing.assert_array_equal(X.toarray(), bunch.X.toarray()[[0, 13, 26, 39]])
    assert list(Y.names) == list(NAMES)
    scores = demo._frequency_scores(demo._chosen(bunch.X, bunch.Y, None, bunch)[1])
    frequencies = bunch.Y.toarray().mean(axis=0)
    assert (scores > 0).sum() == round(frequencies.sum())
    assert list(np.argsort(scores)) == list(np.argsort(frequencies))
