"""One small problem for all wrappers."""

import pytest

from labelweave.datasets import make_text_like


@pytest.fixture(scope="session")
def rows():
    """Training rows with sparse labels, and test rows: X, Y, X_test, Y_test."""
    data = make_text_like(900, 400, 8, random_state=1)
    labels = data.Y.positives
    return data.X[:600], labels[:600], data.X[600:], labels[600:]
