"""A trial that ends its process or never answers is told, and the next one goes on."""

import os
import time
from contextlib import contextmanager

from attacks.trials import Ended, trials


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
