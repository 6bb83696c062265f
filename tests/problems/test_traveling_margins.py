"""What travels between partitions: blocks of labels, and sums whose bits their order alone decides."""

import numpy as np
import pytest

from labelweave.features import FeatureMatrix
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginData, traveling_margins
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.traveling_margins import (
    Piece,
    TravelingBlock,
    TravelingLabels,
    block_objectives,
    brought_together,
    end_of_round,
    in_tree_order,
    spread_by,
)
from labelweave.solvers.frame import relative_gap

N_LABELS, PIECES = 6, 4


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13])
def test_every_part_is_added_once(count):
    parts = [np.array([2.0**k]) for k in range(count)]
    assert in_tree_order(parts)[0] == 2.0**count - 1
    assert in_tree_order(iter(["a", "b", "c", "d", "e"])) == "abcde"


def problem(C, *, is_coupled, scale=1.0, n=400, d=20):
    """Return dense rows of one length, with noisy labels whose intercepts are far from 0."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, N_LABELS)) + 5 * random.normal(size=(n, N_LABELS))
    Y = (scores > np.linspace(-6, 9, N_LABELS)).astype(int)
    X *= scale / np.linalg.norm(X, axis=1, keepdims=True)
    R = 0.4 + 0.6 * np.eye(N_LABELS) if is_coupled else np.eye(N_LABELS)
    covariance = LabelCovariance.dense(R) if is_coupled else LabelCovariance.identity(N_LABELS)
    bounds, margins = np.full(n, 2.0 * C), np.ones((2, N_LABELS))
    return MarginData(FeatureMatrix(X), LabelMatrix.from_any(Y), covariance, bounds, margins, intercept=True)


def travel(data, tol, most):
    """Move all labels between four partitions; return the gap, the rounds, and the last states."""
    is_coupled, labels = not data.covariance.is_diagonal, np.arange(N_LABELS)
    covariance = data.covariance.to_dense() if is_coupled else None
    kind = TravelingLabels if is_coupled else TravelingBlock
    rows = np.array_split(np.random.default_rng(1).permutation(len(data.features)), 4)
    parts = [kind(OrderedRows(data.rows(np.sort(own)), np.float32), labels) for own in rows]
    on, states = parts[0].first_shared(), [part.first_rows() for part in parts]
    gap = np.inf
    for number in range(most):
        is_full = number < 2 or number % 3 == 0
        order = np.random.default_rng([2, number]).permutation(np.repeat(np.arange(4), PIECES))
        at, done = order.reshape(-1, 2) if is_coupled else order[:, None], [0] * 4
        for turn in at:
            came = []
            for place in turn:
                piece = Piece(done[place], PIECES, np.random.default_rng([number, place]))
                done[place] += 1
                moved, states[place] = parts[place].visit(on, states[place], piece, is_full=is_full)
                came.append(moved)
            on = brought_together(on, came) if is_coupled else came[0]
        held = on
        on = end_of_round(on, was_full=is_full, intercept=True, covariance=covariance)
        sums = in_tree_order([part.sums_in_use(state, on) for part, state in zip(parts, states, strict=True)])
        values = block_objectives(on, sums, on.moves.totals, intercept=True, covariance=covariance)
        gap = relative_gap(*values)
        if gap <= tol:
            break
    return gap, number + 1, held, (parts, states, covariance)


@pytest.mark.parametrize("is_coupled", [False, True])
@pytest.mark.parametrize(("C", "scale"), [(1.0, 1.0), (0.1, 1.0), (0.01, 1.0), (0.01, 10.0)])
def test_dense_rows_with_intercepts_come_to_the_tolerance(C, scale, is_coupled):
    gap, rounds, _, _ = travel(problem(C, is_coupled=is_coupled, scale=scale), 1e-2, 60)
    assert gap <= 1e-2, f"{gap} after {rounds} rounds"


@pytest.mark.parametrize("is_coupled", [False, True])
def test_what_travels_agrees_with_the_variables(is_coupled):
    data = problem(0.1, is_coupled=is_coupled)
    _, _, held, (parts, states, covariance) = travel(data, 0.0, 5)
    totals = sum(state.beta.sum(axis=1, dtype=np.float64) for state in states)
    products = sum(part.exact_product(state) for part, state in zip(parts, states, strict=True))
    assert np.allclose(held.moves.totals, totals, atol=1e-4)
    assert np.allclose(held.weights, spread_by(covariance, products), atol=1e-3)
    assert np.allclose(held.intercepts, spread_by(covariance, held.pulls), atol=1e-4)  # within a round too
    assert 0 < held.damping <= traveling_margins._MOST_DAMPING


def test_held_intercepts_alone_swing(monkeypatch):
    for name in ("_DAMPING", "_LEAST_RISEN", "_MOST_DAMPING"):
        monkeypatch.setattr(traveling_margins, name, 0.0)
    gap, _, held, _ = travel(problem(1.0, is_coupled=False), 1e-2, 60)
    assert held.damping == 0
    assert gap > 0.1
