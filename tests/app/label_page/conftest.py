"""A session of a few rows, and its application."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix
from labelweave.app.label_page import LabelSession

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
NAMES = ["fruit", "sea", EVIL]


@pytest.fixture
def make_session(tmp_path):
    """Make sessions of 30 rows on one file of answers; those of the first rows are known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    signs = np.where(X[:, :3] > 0, 1, -1)
    observed = np.zeros(signs.shape, bool)
    observed[:8] = True
    Y = LabelMatrix(sp.csr_array((signs > 0) & observed), sp.csr_array(observed), NAMES)
    made = []

    def make(**settings):
        settings = {"text_of": lambda row: f"row number {row} {EVIL}"} | settings
        made.append(LabelSession(X, settings.pop("Y", Y), tmp_path / "answers.csv", **settings).start())
        return made[-1]

    yield make
    for session in made:
        session.close()
