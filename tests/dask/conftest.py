import contextlib

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client():
    """A cluster of threads in this process."""
    made = distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0", set_as_default=False
    )
    yield made
    with contextlib.suppress(RuntimeError):  # its loop may have ended before the tests did
        made.close()


@pytest.fixture
def apart(monkeypatch):
    """Partitions stay apart, however small they are; few visits, so that tests are quick."""
    monkeypatch.setattr("labelweave.dask.data._BYTES_A_ROW", 1e12)
    monkeypatch.setattr("labelweave.dask.data._FEWEST_VISITS", 4)
