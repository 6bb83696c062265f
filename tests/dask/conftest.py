import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client():
    """A cluster of threads in this process, for fits that name no other."""
    parts = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.Client(processes=False, **parts) as made:
        yield made


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Silence messages on long tasks, such as first compilations: warnings are errors here."""
    monkeypatch.setattr("labelweave.dask.waiting.SILENCE", 300.0)


@pytest.fixture
def apart(monkeypatch):
    """Partitions stay separate, however small; few visits, so that tests are fast."""
    monkeypatch.setattr("labelweave.dask.data._BYTES_A_ROW", 1e12)
    monkeypatch.setattr("labelweave.dask.data._FEWEST_VISITS", 4)
