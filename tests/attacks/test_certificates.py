"""Certificates hold on random small problems that an independent solver solves too."""

import numpy as np
import pytest

from attacks import certificates
from labelweave import LabelGraphClassifier


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 5))])
@pytest.mark.parametrize("name", certificates.ESTIMATORS)
def test_no_certificate_claims_what_is_false(name, part):
    assert certificates.attack(name, range(10_000 + 10 * part, 10_010 + 10 * part)) == []


def test_false_claims_are_found():
    fit = certificates.max_margin(certificates.Draw(3))
    assert list(certificates.violations(fit, 0.1)) == []
    worse = fit._replace(least_known=0.5 * fit.objective)
    assert len(list(certificates.violations(worse, 0.1))) == 2


@pytest.mark.slow
def test_the_gap_is_relative_to_objectives_below_one_too():
    X = np.random.default_rng(0).normal(size=(60, 8))
    Y = (X[:, :3] > 0).astype(int)
    model = LabelGraphClassifier(graph="full", alpha=1e-5, tol=1e-2, max_iter=3000).fit(X, Y)
    last = model.trace_[-1]
    assert last.primal < 1e-2
    assert model.converged_
    assert last.primal - last.dual <= 1e-2 * last.primal
