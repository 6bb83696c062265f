"""Searches in stages over several blocks of rows."""

import numpy as np
import pytest

from labelweave import KernelLogisticClassifier, load
from labelweave.estimators.folds import drawn_blocks
from labelweave.estimators.kernel_logistic import fit as likelihood_fit
from labelweave.problems.hyperparameters import search
from labelweave.problems.hyperparameters.search import learn


@pytest.mark.parametrize(("rows", "sizes"), [(None, [4, 3, 3]), (3, [3, 3, 3]), (2, [2, 2, 2])])
def test_blocks_are_disjoint(rows, sizes):
    candidates = np.arange(5, 25, 2)
    blocks = drawn_blocks(candidates, rows, 3, 0)
    assert [len(block) for block in blocks] == sizes
    together = np.concatenate(blocks)
    assert len(np.unique(together)) == len(together)
    assert np.isin(together, candidates).all()
    assert all((np.diff(block) > 0).all() for block in blocks)


def test_a_single_block():
    candidates = np.arange(10)
    for rows in (None, 10, 30):
        (block,) = drawn_blocks(candidates, rows, 1, 0)
        np.testing.assert_array_equal(block, candidates)
    first, other = (drawn_blocks(candidates, 4, 1, seed)[0] for seed in (0, 1))
    assert first.tolist() != other.tolist()
    assert drawn_blocks(candidates, 4, 2, 0)[0].tolist() == first.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "first", "expected"),
    [
        (3, 10, [(1, 10, 3), (3, 60, 3), (3, 60, 9)]),  # a tied search on a part of one block
        (3, 20, [(1, 20, 3), (3, 60, 3), (3, 60, 9)]),
        (6, 15, [(1, 10, 3), (6, 60, 3), (6, 60, 9)]),  # a block has fewer rows than the first stage
        (3, 30, [(3, 60, 3), (3, 60, 9)]),  # too few rows for a first stage
        (1, 20, [(1, 20, 3), (1, 60, 3), (1, 60, 9)]),
    ],
)
def test_stages(blocks, first, expected, monkeypatch):
    """Every stage has so many blocks of so many rows together, and so many hyper-parameters."""
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", first)
    met = []

    def noted(criterion, start, *others, **retreat):
        rows = sum(len(part.data.weights) for part in criterion.parts)
        met.append((len(criterion.parts), rows, len(start) + 1))
        return learn(criterion, start, *others, **retreat)

    monkeypatch.setattr(search, "learn", noted)
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = np.argmax(X @ random.normal(size=(3, 4)), axis=1)
    KernelLogisticClassifier(tie="class", learning_blocks=blocks).fit(X, y)
    assert list(dict.fromkeys(met)) == expected


def test_the_trace_has_every_stage(monkeypatch, tmp_path):
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = np.argmax(X @ random.normal(size=(3, 4)), axis=1)
    model = KernelLogisticClassifier(tie="class").fit(X, y)
    trace = model.learning_trace_
    stages = [record.stage for record in trace]
    assert stages == sorted(stages)
    assert set(stages) == {1, 2, 3}
    assert [record.evaluation for record in trace] == list(range(1, len(trace) + 1))
    assert (np.diff([record.time for record in trace]) > 0).all()
    assert model.cross_validation_loss_ == min(record.value for record in trace if record.stage == 3)
    model.save(tmp_path / "m.lw")
    assert load(tmp_path / "m.lw").learning_trace_ == trace


@pytest.mark.parametrize("limit", [1, 4, 9])
def test_the_limit_of_evaluations_is_that_of_all_stages(monkeypatch, limit):
    monkeypatch.setattr(likelihood_fit, "_FIRST_ROWS", 20)
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = np.argmax(X @ random.normal(size=(3, 4)), axis=1)
    model = KernelLogisticClassifier(tie="class", max_learning_iter=limit).fit(X, y)
    assert len(model.learning_trace_) <= limit
    assert len(model.learning_trace_) == limit or model.learning_status_ != "iteration_limit"
