import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client():
    """A cluster of threads in this process."""
    parts = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.Client(processes=False, set_as_default=False, **parts) as made:
        yield made


@pytest.fixture
def apart(monkeypatch):
    """Partitions stay apart, however small they are; few visits, so that tests are quick."""
    monkeypatch.setattr("labelweave.dask.data._BYTES_A_ROW", 1e12)
    monkeypatch.setattr("labelweave.dask.data._FEWEST_VISITS", 4)
