"""A loss whose rows are partitions is that of all rows in one place, in terms of the features."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import labelweave.dask.parts
from labelweave.dask.entries import EntriesApart
from labelweave.dask.parts import Parts
from labelweave.dask.waiting import LostRowsError
from labelweave.features.factor_maps import explicit_map
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.problems.label_entries import EntryWeights
from labelweave.problems.low_rank_factors import RowsLoss

ENDS, WIDTH, N_LABELS, RANK = (0, 7, 8, 20), 6, 5, 3
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(ENDS[-1], WIDTH))
SIGNS = RANDOM.choice([-1, 1], (ENDS[-1], N_LABELS))
OF_SIGN, OF_ENTRY = (RANDOM.random((1, N_LABELS)), np.ones((1, N_LABELS))), RANDOM.random(SIGNS.shape)
KNOWN = RANDOM.normal(size=(ENDS[-1], 2)), RANDOM.normal(size=(N_LABELS, 2))
WEIGHTS = RANDOM.choice([0.0, 0.5, 2.0], ENDS[-1])
FACTORS = RANDOM.normal(size=(WIDTH, RANK)), RANDOM.normal(size=(N_LABELS, RANK))
KINDS = {
    "quadratic": {"loss": "squared_error"},
    "background": {"loss": "squared_error", "negative_weight": 0.3},
    "dense": {"loss": "log_loss"},
    "sampled": {"loss": "squared_hinge", "observed": 0.3},
    "weighted": {"loss": "squared_error", "observed": 0.8, "factors": EntryWeights(*OF_SIGN, OF_ENTRY)},
    "shifted": {"loss": "squared_error", "known": KNOWN},
}


def mapped(features):
    return SimpleNamespace(map=explicit_map(features, np.float64, Workers(1)))


def both(client, *, observed=1.0, negative_weight=1.0, loss, **given):
    """The loss on partitions, and all its entries with the map that they are seen through."""
    seen = np.random.default_rng(1).random(SIGNS.shape) < observed
    labels = LabelMatrix.from_any(
        np.where(seen, (SIGNS + 1) / 2, np.nan) if observed < 1 else (SIGNS + 1) // 2
    )
    made = RowsLoss(labels, WEIGHTS, loss, negative_weight, np.float64, **given)
    pieces = [X[begin:end] for begin, end in pairwise(ENDS)]
    parts = Parts(client, client.map(mapped, pieces, pure=False), np.diff(ENDS).tolist())
    return EntriesApart(parts, made, WIDTH), made.entries(Workers(1)), mapped(X).map


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_those_of_all_rows(client, kind):
    apart, entries, through = both(client, **KINDS[kind])
    features, labels = FACTORS
    image = through.image(features)
    assert apart.is_quadratic == entries.is_quadratic
    assert apart.has_uniform_curvature == entries.has_uniform_curvature
    assert apart.shape == (WIDTH, N_LABELS)
    assert apart.transposed.shape == (N_LABELS, WIDTH)
    assert apart.values(features, labels).sum() == pytest.approx(entries.values(image, labels).sum())
    assert np.allclose(apart.transposed.values(labels, features), entries.transposed.values(labels, image))

    found, whole = apart.at(features, labels), entries.at(image, labels)
    assert np.allclose(found.gradients, through.gradient(whole.gradients))
    direction = np.random.default_rng(2).normal(size=features.shape)
    assert np.allclose(found.curve(direction), through.gradient(whole.curve(through.image(direction))))
    diagonals = [
        weights * one.spread(labels, Workers(1))
        for one, weights in ((apart, found.weights[:, None]), (entries, through.squares(whole.weights)))
    ]
    assert np.allclose(*diagonals)

    found, whole = apart.transposed.at(labels, features), entries.transposed.at(labels, image)
    assert np.allclose(found.values, whole.values)
    assert np.allclose(found.gradients, whole.gradients)
    direction = np.random.default_rng(3).normal(size=labels.shape)
    assert np.allclose(found.curve(direction), whole.curve(direction))
    seen = [
        np.multiply.outer(weights, one.transposed.gram(factor, Workers(1)))
        for one, weights, factor in ((apart, found.weights, features), (entries, whole.weights, image))
    ]
    assert np.allclose(*seen)
    spread = apart.transposed.spread(features, Workers(1))
    assert np.allclose(spread, np.diag(apart.transposed.gram(features, Workers(1))))

    found, whole = apart.gradient_operator(features, labels), entries.gradient_operator(image, labels)
    right, left = direction[:, :1], features[:, :1]
    assert np.allclose(found.matmul(right), through.gradient(whole.matmul(right)))
    assert np.allclose(found.adjoint(left), whole.adjoint(through.image(left)))
    assert found.conjugate(0.4) == pytest.approx(whole.conjugate(0.4))


def test_what_workers_lose_is_made_again(client, monkeypatch):
    apart, _, _ = both(client, **KINDS["dense"])
    features, labels = FACTORS
    known = apart.at(features, labels)
    expected = known.gradients, known.curve(features), apart.values(features, labels)
    real, calls = labelweave.dask.parts.gathered, []

    def lose(client, futures):
        calls.append(len(futures))
        if len(calls) % 2:
            raise LostRowsError("a worker died")
        return real(client, futures)

    monkeypatch.setattr(labelweave.dask.parts, "gathered", lose)
    again = apart.at(features, labels)
    found = again.gradients, again.curve(features), apart.values(features, labels)
    assert len(calls) == 6
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
