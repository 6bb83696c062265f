"""Data in files of the workers, for rows that exceed memory."""

from __future__ import annotations

import mmap
import pickle
import tempfile
import weakref
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from distributed import Worker, WorkerPlugin, get_worker
from distributed.protocol import dask_deserialize, dask_serialize

from labelweave.features import FeatureMatrix

_FULL_SHARE = 0.5  # of a worker's memory: above this usage, rows that are read go into files
_ALIGNMENT = 64  # bytes of a cache line

Kind = TypeVar("Kind")


class Filed:
    """A value in a file of its worker, written once; its arrays are memory-mapped.

    The file is deleted with this object.  A message to another worker contains the data of the file.
    """

    def __init__(self, value: Any) -> None:
        self.__setstate__(value)

    def __getstate__(self) -> Any:
        return self.value

    def __setstate__(self, value: Any) -> None:
        worker = _worker_of_task()
        folder = None if worker is None else str(worker.local_directory)
        if worker is not None and KeepsFiles.name not in worker.plugins:
            worker.loop.add_callback(worker.plugin_add, KeepsFiles(worker.data))
        handle, self._path = tempfile.mkstemp(".rows", "labelweave-", folder)
        weakref.finalize(self, Path(self._path).unlink, missing_ok=True)
        buffers: list[pickle.PickleBuffer] = []
        plain = pickle.dumps(value, 5, buffer_callback=buffers.append)
        parts = [memoryview(plain), *(buffer.raw() for buffer in buffers)]
        sizes = [-(-part.nbytes // _ALIGNMENT) * _ALIGNMENT for part in parts]
        begins = np.cumsum([0, *sizes[:-1]]).tolist()
        self._places = [(begin, begin + part.nbytes) for begin, part in zip(begins, parts, strict=True)]
        with open(handle, "wb") as file:
            for begin, part in zip(begins, parts, strict=True):
                file.seek(begin)
                file.write(part)

    @property
    def value(self) -> Any:
        """The value, with memory-mapped arrays; changes of them are not written."""
        with open(self._path, "rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        plain, *buffers = (mapped[begin:end] for begin, end in self._places)
        return pickle.loads(plain, buffers=buffers)


def _worker_of_task() -> Worker | None:
    """Return the worker that runs this task; None outside a task, as when a message is read."""
    try:
        return get_worker()
    except ValueError:
        return None


def key_of_task() -> Any:
    """Return Dask's key of the result of the running task; None outside a task."""
    worker = _worker_of_task()
    return None if worker is None else worker.get_current_task()


class FiledFeatures(FeatureMatrix):
    """Features in a file of the worker."""

    def __init__(self, features: FeatureMatrix) -> None:
        self.names, self._shape, self.filed = features.names, features.shape, Filed(features.data)

    @property
    def data(self) -> Any:
        """The features, memory-mapped."""
        return self.filed.value

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @classmethod
    def _unchecked(cls, data: Any, names: Any = None) -> FeatureMatrix:
        return FeatureMatrix._unchecked(data, names)


def in_memory_or_file(features: FeatureMatrix) -> FeatureMatrix:
    """Move features into a file if the worker's memory is nearly full."""
    worker = _worker_of_task()
    limit = None if worker is None else worker.memory_manager.memory_limit
    if worker is None or not limit or worker.monitor.get_process_memory() <= _FULL_SHARE * limit:
        return features
    return FiledFeatures(features)


# Dask frees memory by the size of the whole process: it writes the least recently used results,
# whatever their size, and reads them on use.  Of results with rows in files it
# writes only the rest, and the files wait here, by the key of the result and by path.

_WAITING: dict[Any, dict[str, Filed]] = {}
_KEEPERS: weakref.WeakSet[KeepsFiles] = weakref.WeakSet()


class KeepsFiles(WorkerPlugin):  # type: ignore[misc]
    """Deletes waiting files when their worker no longer needs the result.

    data: the worker's results; a process may have several workers.
    """

    name = "labelweave-files"

    def __init__(self, data: Any) -> None:
        self.data = data
        _KEEPERS.add(self)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Check whether the result was released."""
        if key in _WAITING and not any(key in keeper.data for keeper in _KEEPERS):
            _WAITING.pop(key, None)


class _WithoutFiles(pickle.Pickler):
    """Pickles the result of a task without the data in its files."""

    key: Any = None

    def reducer_override(self, part: Any) -> Any:
        return (_waiting, (self.key, part._path)) if isinstance(part, Filed) else NotImplemented


def _waiting(key: Any, path: str) -> Filed:
    try:
        return _WAITING[key][path]
    except KeyError:
        raise FileNotFoundError(f"{path}, with rows of {key}, does not belong to this process.") from None


def _written(result: Any, context: Any = None) -> tuple[dict[str, Any], Sequence[bytes]]:
    """Write a result to disk; messages, which have a context, and results without files as usual."""
    files: list[Filed] = result.files
    if context is not None or result.key is None or not files:
        raise NotImplementedError
    stream = BytesIO()
    pickler = _WithoutFiles(stream, 5)
    pickler.key = result.key
    pickler.dump(result)
    _WAITING.setdefault(result.key, {}).update((file._path, file) for file in files)
    return {}, [stream.getvalue()]


def _read(_: dict[str, Any], frames: Sequence[bytes]) -> Any:
    return pickle.loads(b"".join(frames))


def keeps_files(kind: type[Kind]) -> type[Kind]:
    """Let Dask spill results of this class without the data in their ``files``; ``key`` is the task's."""
    dask_serialize.register(kind)(_written)
    dask_deserialize.register(kind)(_read)
    return kind
