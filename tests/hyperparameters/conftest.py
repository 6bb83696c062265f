"""Workers for criteria of cross-validation."""

import pytest

from labelweave.foundation.arrays import Workers


@pytest.fixture(scope="module")
def workers():
    workers = Workers(1)
    with workers.running():
        yield workers
