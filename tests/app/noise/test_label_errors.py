"""Wrong entries are found; invalid labels, scores and rates are refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.multioutput import MultiOutputClassifier

from labelweave import AutoLabelClassifier, LabelMatrix, LowRankClassifier
from labelweave.noise import FlipRates, find_label_errors
from refused import refusals

N, L = 400, 10

test_what_makes_no_sense_is_refused = refusals(__file__)


@pytest.fixture(scope="module")
def world():
    """Labels in groups of five, weak scores of each, and flipped entries."""
    rng = np.random.default_rng(0)
    themes = rng.random((N, 2)) < 0.3
    true = (rng.random((N, L)) < np.where(np.repeat(themes, 5, axis=1), 0.9, 0.02)).astype(float)
    scores = true + rng.normal(0, 0.6, (N, L))
    flips = rng.random((N, L)) < 0.08
    return scores, np.where(flips, 1 - true, true), flips


def suspicion(found, recorded):
    return np.abs(found.probabilities - recorded)


def test_flips_are_found_and_related_labels_help(world):
    scores, recorded, flips = world
    found = find_label_errors(None, recorded, scores=scores)
    alone = find_label_errors(None, recorded, scores=scores, related=False)
    known = find_label_errors(None, recorded, scores=scores, flip_rates=(0.08, 0.08))
    by_distance = average_precision_score(flips.ravel(), np.abs(scores - recorded).ravel())
    values = [
        average_precision_score(flips.ravel(), suspicion(one, recorded).ravel())
        for one in (found, alone, known)
    ]
    assert values[0] > values[1] + 0.1
    assert values[1] > by_distance - 0.02
    assert values[2] > values[1]
    assert found.expected == pytest.approx(flips.sum(), rel=0.35)
    assert len(found) == round(found.expected)
    assert (np.diff(found.probability) <= 0).all()
    assert flips[found.rows, found.labels].mean() > 0.6
    assert known.flip_rates.missed.tolist() == [0.08] * L


def test_reasons_are_labels_of_the_theme_and_add_up(world):
    scores, recorded, flips = world
    frame = pd.DataFrame(recorded, columns=[f"t{k // 5}-{k}" for k in range(L)])
    found = find_label_errors(None, frame, scores=scores)
    theme = [name.partition("-")[0] for name in frame.columns]
    places = [k for k in range(40) if found.reasons(k) and flips[found.rows[k], found.labels[k]]]
    firsts = [found.reasons(k)[0].name.partition("-")[0] == theme[found.labels[k]] for k in places]
    assert np.mean(firsts) > 0.8
    place, first = places[0], found.reasons(places[0])[0]
    assert (first.effect < 0) == found.recorded[place]
    assert first.name in found.words(place)
    record = found.records(1)[place]
    assert record["label"] == frame.columns[found.labels[place]]
    assert list(record["reasons"]) == [first.name]
    assert "entries of 400 rows, 10 labels" in repr(found)


def test_what_is_known_of_labels_is_asked_first(world):
    scores, recorded, flips = (table[:60] for table in world)
    values = []
    for related in (True, np.kron(np.eye(2), np.ones((5, 5))), np.eye(L)):
        found = find_label_errors(None, recorded, scores=scores, related=related)
        values.append(average_precision_score(flips.ravel(), suspicion(found, recorded).ravel()))
    assert values[1] > values[0] - 0.01
    assert values[2] == pytest.approx(values[0])


def test_forgotten_labels_leave_present_ones_alone(world):
    scores, recorded, _ = world
    found = find_label_errors(None, recorded, scores=scores, flip_rates=(None, 0.0)).ranked(50)
    assert not found.recorded.any()
    assert (found.flip_rates.false == 0).all()
    rates = FlipRates(np.full(L, 0.1), np.zeros(L))
    again = find_label_errors(None, recorded, scores=scores, flip_rates=rates)
    assert again.flip_rates.missed.tolist() == [0.1] * L


def test_corrected_labels_hide_or_flip(world):
    scores, recorded, _ = world
    found = find_label_errors(None, recorded, scores=scores)
    chosen = found.probability >= 0.8
    assert found.ranked(3).corrected(0.8).to_signs().tolist() == found.corrected(0.8).to_signs().tolist()
    places = found.rows[chosen], found.labels[chosen]
    hidden = found.corrected(0.8).to_dense()
    assert np.isnan(hidden).sum() == chosen.sum()
    assert np.isnan(hidden[places]).all()
    flipped = found.corrected(0.8, "flip").to_dense()
    assert (flipped != recorded).sum() == chosen.sum()
    assert (flipped[places] == 1 - recorded[places]).all()


def test_missing_entries_are_never_suspected(world):
    scores, recorded, _ = world
    hidden = np.random.default_rng(4).random(recorded.shape) < 0.3
    hidden[:, 3] = True
    given = np.where(hidden, np.nan, recorded)
    found = find_label_errors(None, given, scores=scores).ranked(10_000)
    assert len(found) == (~hidden).sum()
    assert not hidden[found.rows, found.labels].any()
    assert np.isfinite(found.probabilities).all()
    assert np.isnan(found.corrected().to_dense()).sum() >= hidden.sum()


@pytest.mark.parametrize("kind", ["sparse", "matrix", "tags", "frame"])
def test_any_kind_of_labels(world, kind):
    scores, recorded, _ = world
    scores, recorded = scores[:60], recorded[:60]
    tags = [[f"t{k}" for k in np.flatnonzero(row)] for row in recorded]
    given = {
        "sparse": sp.csr_array(recorded), "matrix": LabelMatrix.from_any(recorded),
        "tags": tags, "frame": pd.DataFrame(recorded),
    }[kind]  # fmt: skip
    plain = find_label_errors(None, recorded, scores=scores)
    assert find_label_errors(None, given, scores=scores).probabilities == pytest.approx(plain.probabilities)


def test_small_and_odd_tables():
    for recorded in (np.eye(2), np.ones((3, 1)), np.zeros((4, 2)), np.array([[1.0], [0.0]])):
        scores = np.random.default_rng(0).normal(size=recorded.shape)
        found = find_label_errors(None, recorded, scores=scores)
        assert np.isfinite(found.probabilities).all()
        assert len(found.ranked(99)) == recorded.size
        assert found.ranked(99).reasons(0) == []
    constant = find_label_errors(None, np.eye(4), scores=np.zeros((4, 4)))
    assert np.isfinite(constant.probabilities).all()


def test_classifiers_are_fitted_to_folds(world):
    scores, recorded, flips = world
    said = []
    for model in (LowRankClassifier(rank=4), MultiOutputClassifier(LogisticRegression())):
        found = find_label_errors(scores[:200], recorded[:200], scores=model, on_progress=said.append)
        assert flips[:200][found.rows, found.labels].mean() > 0.3
    assert "fitting LowRankClassifier, fold 1 of 5" in said
    assert said[-1] == "estimating with related labels"
    assert not hasattr(model, "estimators_")


def test_the_automatic_model_gives_its_own_out_of_fold_probabilities(world, monkeypatch):
    scores, recorded, flips = world
    fits = []
    usual = AutoLabelClassifier.fit
    monkeypatch.setattr(AutoLabelClassifier, "fit", lambda self, X, y: fits.append(1) or usual(self, X, y))
    found = find_label_errors(scores[:120], recorded[:120], scores=AutoLabelClassifier(members=["rbf"]))
    assert len(fits) == 1
    assert flips[:120][found.rows, found.labels].mean() > 0.3


def test_the_seed_is_that_of_the_automatic_model_too(world, monkeypatch):
    scores, recorded, _ = world
    seeds = []
    monkeypatch.setattr(
        AutoLabelClassifier, "fit", lambda self, X, y: seeds.append(self.random_state) or self
    )
    monkeypatch.setattr(
        AutoLabelClassifier, "_out_of_fold_probabilities", lambda self: np.full(recorded[:60].shape, 0.5)
    )
    find_label_errors(scores[:60], recorded[:60], related=False, random_state=7)
    assert seeds == [7]


def test_columns_of_scores_are_matched_by_name(world):
    scores, recorded, _ = world
    names = [f"label {k}" for k in range(L)]
    frame, table = (pd.DataFrame(given, columns=names) for given in (recorded, scores))
    found, turned = (
        find_label_errors(None, frame, scores=given, related=False) for given in (table, table[names[::-1]])
    )
    np.testing.assert_array_equal(turned.probabilities, found.probabilities)
