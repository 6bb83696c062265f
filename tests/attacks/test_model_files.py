"""Edited model files are refused in one sentence, or predict finite scores of the right shape."""

import os
import signal
from collections import Counter

import numpy as np
import pytest

from attacks import edits, model_files

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's /proc")


@pytest.mark.parametrize(
    "files", [range(300), pytest.param(range(300, 12_000), marks=pytest.mark.search)], ids=len
)
def test_no_edited_file_does_harm(files):
    outcome = model_files.attack(files)
    assert outcome.found == []
    assert outcome.counts["files"] == len(files)
    assert outcome.counts["refused"] > len(files) / 2
    assert outcome.counts["accepted"] > len(files) / 10


def test_a_file_taken_apart_is_put_together_again():
    for data in model_files.base_files().values():
        assert edits.Parts.of(data).to_bytes() == data


def test_the_same_seed_gives_the_same_file():
    assert model_files.make_file(5) == model_files.make_file(5)
    assert model_files.make_file(5) != model_files.make_file(6)


class _Bad:
    n_features_in_ = 2
    classes_ = np.arange(3)

    def __init__(self, scores):
        self.scores = scores

    def decision_function(self, X):
        return self.scores

    def predict(self, X):
        return self.scores


@pytest.mark.parametrize(
    ("scores", "found"),
    [(np.zeros((3, 3)), 0), (np.full((3, 3), np.nan), 1), (np.zeros((3, 4)), 1), (np.zeros((2, 3)), 2)],
)
def test_violations_are_found(scores, found):
    assert len(list(model_files.violations(_Bad(scores)))) == found


def test_errors_of_models_checkpoints_and_predictions_are_found(monkeypatch, tmp_path):
    def harmful(name, path):
        raise IndexError("out of range")

    monkeypatch.setattr(model_files, "opened", harmful)
    outcome = model_files.Outcome()
    monkeypatch.setattr(model_files, "_CHECKPOINTS", 1.0)
    model_files.attack_one(1, tmp_path / "edited.lw", outcome)
    assert [what.split(": ")[0].split(",")[0] for _, what in outcome.found] == ["checkpoint"]
    monkeypatch.setattr(model_files, "_CHECKPOINTS", 0.0)
    model_files.attack_one(1, tmp_path / "edited.lw", outcome)
    monkeypatch.setattr(model_files, "opened", lambda name, path: _Bad("no scores"))
    model_files.attack_one(1, tmp_path / "edited.lw", outcome)
    assert outcome.counts == {"files": 3, "bare": 2, "late": 1}


def test_a_run_goes_on_where_it_was_stopped(monkeypatch, tmp_path):
    shards = []

    def noted(seeds):
        shards.append(seeds)
        return model_files.Outcome(Counter(files=len(seeds)), [(seeds.start, "one: late")])

    monkeypatch.setattr(model_files, "attack", noted)
    monkeypatch.setattr(model_files, "_SHARD", 4)
    for end in (8, 10):
        outcome = model_files.attack_on(range(end), tmp_path / "counts.json", lambda done, found: None)
    assert shards == [range(4), range(4, 8), range(8, 10)]
    assert outcome.counts["files"] == 10
    assert [seed for seed, _ in outcome.found] == [0, 4, 8]


def _attack_with(monkeypatch, harm):
    def harmful(seed, path, outcome):
        outcome.counts["files"] += 1
        if seed == 3:
            harm(outcome)

    monkeypatch.setattr(model_files, "attack_one", harmful)
    return model_files.attack(range(6))


def test_crashes_and_hangs_are_counted(monkeypatch):
    monkeypatch.setattr(model_files, "_SECONDS", 0.2)
    monkeypatch.setattr(model_files, "_WAIT", 2.0)
    crash = _attack_with(monkeypatch, lambda outcome: os.kill(os.getpid(), signal.SIGKILL))
    assert [(seed, what.split(": ")[1]) for seed, what in crash.found] == [(3, "crash")]
    for harm in (lambda outcome: os.read(os.pipe()[0], 1), lambda outcome: sum(range(10**11))):
        hang = _attack_with(monkeypatch, harm)
        assert [(seed, what.split(": ")[1]) for seed, what in hang.found] == [(3, "hang")]
        assert crash.counts["files"] == hang.counts["files"] == 6
