"""The memory held within a memory budget."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.foundation.arrays import Workers
from labelweave.problems import Resources
from labelweave.problems.make_gram_margins import plan_gram

PLENTY = 1e12


def _plan(n, budget=PLENTY, dtype=np.float32, *, is_diagonal=True, factorization="auto"):
    return plan_gram(n, Resources(Workers(), dtype, budget, factorization), is_diagonal, 1500)


def test_independent_labels_get_a_cholesky_factor_if_it_fits():
    table = 4.0 * 3000**2
    assert _plan(3000, 2 * table).factorization == "cholesky"
    assert _plan(3000, 2 * table - 1).factorization == "incomplete_cholesky"
    assert _plan(3000, table, np.float64).factorization == "incomplete_cholesky"


def test_related_labels_get_all_eigenvalues_of_few_rows():
    assert _plan(2000, is_diagonal=False).factorization == "eigenvalues"
    assert _plan(5000, is_diagonal=False).factorization == "incomplete_cholesky"
    assert _plan(5000, is_diagonal=False, factorization="eigenvalues").factorization == "eigenvalues"


@pytest.mark.parametrize("factorization", ["cholesky", "eigenvalues", "incomplete_cholesky"])
def test_what_is_asked_for_is_done(factorization):
    plan = _plan(100, factorization=factorization)
    assert plan.factorization == factorization
    assert plan.is_stored


@given(
    st.integers(1, 10**6),
    st.floats(1.0, 1e11),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.sampled_from(["auto", "cholesky", "eigenvalues", "incomplete_cholesky"]),
)
def test_a_plan_keeps_within_the_budget_or_names_a_budget_that_is_enough(
    n, budget, dtype, is_diagonal, factorization
):
    size = np.dtype(dtype).itemsize
    try:
        plan = _plan(n, budget, dtype, is_diagonal=is_diagonal, factorization=factorization)
    except ValueError as error:
        enough = 1e6 * float(re.search(r"at least ([\d.e+]+) MB", str(error))[1])
        assert enough > budget
        # printed with six digits
        _plan(n, enough * (1 + 1e-5), dtype, is_diagonal=is_diagonal, factorization=factorization)
        return
    table = float(n) ** 2 * size if plan.is_stored else plan.panel_bytes
    factor = {"cholesky": float(n) ** 2 * size, "eigenvalues": float(n) ** 2 * 8}
    assert table + factor.get(plan.factorization, plan.rank * n * size) <= budget
    assert plan.rank >= 1


def test_a_larger_budget_never_takes_a_rank_away():
    ranks = [_plan(20_000, budget, factorization="incomplete_cholesky").rank for budget in
             (2e6, 1e7, 1e8, 1e9, 1e10)]  # fmt: skip
    assert ranks == sorted(ranks)


def test_a_budget_that_is_too_small_is_said_with_its_size():
    with pytest.raises(ValueError, match=r"memory_budget is 0\.001 MB, too small.*5000 rows; pass at least"):
        _plan(5000, 1e3)
    with pytest.raises(ValueError, match=r"solver='cholesky' of 5000 rows; pass at least 200 MB"):
        _plan(5000, 1e6, factorization="cholesky")
