"""What workers put into files of their own, where rows are more than memory."""

from __future__ import annotations

import mmap
import pickle
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from distributed import get_worker

from labelweave.features import FeatureMatrix

_FULL_SHARE = 0.5  # of a worker's memory that it uses: from there on rows that are read go into files
_ALIGNMENT = 64  # bytes of a cache line


class Filed:
    """A value in a file of its worker, written once; its arrays are read where they are touched.

    Dask writes what it spills anew each time that it was read: 4 GB on two workers took 140 s a round, most
    of it writing.  The file goes with this object.
    """

    def __init__(self, value: Any) -> None:
        self.__setstate__(value)

    def __getstate__(self) -> Any:
        return self.value

    def __setstate__(self, value: Any) -> None:
        handle, self._path = tempfile.mkstemp(".rows", "labelweave-", _folder_of_worker())
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
        """The value, whose arrays are the file's; changes of them are not written."""
        with open(self._path, "rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        plain, *buffers = (mapped[begin:end] for begin, end in self._places)
        return pickle.loads(plain, buffers=buffers)


def _folder_of_worker() -> str | None:
    try:
        return str(get_worker().local_directory)
    except ValueError:  # a message is read, not a task done
        return None


class FiledFeatures(FeatureMatrix):
    """Features in a file of the worker."""

    def __init__(self, features: FeatureMatrix) -> None:
        self.names, self._shape, self._filed = features.names, features.shape, Filed(features.data)

    @property
    def data(self) -> Any:
        """The features, read where they are touched."""
        return self._filed.value

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @classmethod
    def _unchecked(cls, data: Any, names: Any = None) -> FeatureMatrix:
        return FeatureMatrix._unchecked(data, names)


def in_memory_or_file(features: FeatureMatrix) -> FeatureMatrix:
    """Put features into a file, if the worker's memory fills up."""
    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return features
    limit = worker.memory_manager.memory_limit
    is_full = limit and worker.monitor.get_process_memory() > _FULL_SHARE * limit
    return FiledFeatures(features) if is_full else features
