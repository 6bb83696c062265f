"""No damaged sparse array ends the process; equivalent arrays have the same result."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.sparse_arrays import DAMAGED, SOUND
from attacks.trials import Ended, trials

from attacks import sparse_arrays


def test_no_function_breaks_on_hostile_arrays():
    assert sparse_arrays.attack(range(300)) == []


def test_failures_are_found(monkeypatch):
    careless = sparse_arrays.Target(lambda world: world.X, lambda world, X: float(X.data.sum().real))
    monkeypatch.setattr(sparse_arrays, "TARGETS", {"careless": careless})
    found = sparse_arrays.attack(range(60))
    assert any(what.endswith("accepted") for what in found)
    assert any("index" in what for what in found)


def test_every_form_differs_from_the_plain_array_or_is_damaged():
    random = np.random.default_rng(0)
    plain = sp.csr_array(np.eye(5) + np.eye(5, k=1))
    for form in (*SOUND.values(), *DAMAGED.values()):
        assert form(random, plain) is not plain
    assert plain.has_canonical_format
    assert (plain.toarray() == np.eye(5) + np.eye(5, k=1)).all()


@pytest.mark.slow
def test_the_command_counts_trials_in_processes_of_their_own():
    words = ["-m", "attacks.sparse_arrays", "--trials", "1000", "--workers", "2", "--seed", "500"]
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    assert "0 crashes or hangs" in done.stdout


@contextmanager
def _begun():
    def trial(seed):
        if seed == 3:
            os._exit(7)
        if seed == 4:
            time.sleep(60)
        return 2 * seed

    yield trial


def test_trials_go_on_after_those_that_end_the_process_or_hang():
    found = dict(trials(_begun, range(1, 7), patience=2.0))
    assert found == {
        1: 2,
        2: 4,
        3: Ended("the process died with code 7"),
        4: Ended("no answer"),
        5: 10,
        6: 12,
    }
    assert {seed for seed, said in found.items() if isinstance(said, Ended)} == {3, 4}
