import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client():
    """A cluster of threads in this process."""
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0", set_as_default=False
    ) as made:
        yield made


@pytest.fixture
def apart(monkeypatch):
    """Partitions stay apart, however small they are; few stops, so that tests are quick."""
    monkeypatch.setattr("labelweave.dask.data.ENTRIES_TOGETHER", 0)
    monkeypatch.setattr("labelweave.dask.data._FEWEST_STOPS", 4)
