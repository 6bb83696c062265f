"""Model files: a model's state in one safetensors file with a checksum.

``docs/model_file_format.md`` describes the bytes.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from sklearn.utils.validation import check_is_fitted

from labelweave.foundation.arguments import checked
from labelweave.model_files.container import map_container, write_container
from labelweave.model_files.packed_arrays import pack_arrays, unpack_arrays
from labelweave.model_files.safe_file import ModelFileError, naming_file
from labelweave.model_files.schema import unread_numbers
from labelweave.model_files.state import decode, encode, from_json, to_json
from labelweave.model_files.storable import checked_state, storable_name

_FIELDS = ["kind", "versions", "arrays", "state"]
_LIBRARIES = ("labelweave", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, eq=False)
class ModelContent:
    """The content of a model file.

    kind: the registered name of the estimator's class.
    state: plain data: None, bool, int, float, str, lists and dictionaries with str keys.
    arrays: NumPy arrays of bool, integers, floats or fixed-width text, and SciPy CSR and CSC arrays.
    versions: the library versions that wrote the file; filled in on reading.
    """

    kind: str
    state: dict[str, Any]
    arrays: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def write_model_file(
    path: str | os.PathLike[str], content: ModelContent, *, key: bytes | None = None
) -> None:
    """Write a model file atomically; the same content produces the same bytes.

    key: the signing key; None for no signature.
    Raises TypeError or ValueError if something cannot be stored, with its name and place, and OSError if the
    file cannot be written.
    """
    if not isinstance(content.kind, str) or not content.kind.isprintable() or not content.kind:
        raise ValueError(f"The kind of a model is {content.kind!r}; pass a printable name.")
    if not isinstance(content.state, dict):
        raise TypeError(f"The state of a model is a {type(content.state).__name__}; pass a dict.")
    layout, tensors = pack_arrays(content.arrays)
    texts = [content.kind, to_json(_versions()), to_json(layout), to_json(content.state)]
    write_container(path, dict(zip(_FIELDS, texts, strict=True)), tensors, key)


def read_model_file(
    path: str | os.PathLike[str], *, verify: bool = True, key: bytes | None = None, mmap: bool = True
) -> ModelContent:
    """Read a model file; see :func:`load_object`.

    Returns the written content; numeric arrays are read-only views of the memory-mapped file.
    Raises ModelFileError if the file is truncated, damaged, edited, of a newer format, or not a model.
    """
    with naming_file(path):
        fields, tensors = map_container(path, verify=verify, key=key, map_file=mmap)
        if list(fields) != _FIELDS:
            raise ModelFileError(f"its metadata are {', '.join(fields)} instead of {', '.join(_FIELDS)}.")
        versions, layout, state = (from_json(fields[name], name) for name in _FIELDS[1:])
        if not all(isinstance(value, dict) for value in (versions, layout, state)):
            raise ModelFileError("its metadata are not dictionaries.")
        return ModelContent(fields["kind"], state, unpack_arrays(layout, tensors), versions)


def save_object(
    path: str | os.PathLike[str], value: Any, *, key: bytes | None = None, name: str | None = None
) -> None:
    """Save an object of a registered class, for example a fitted estimator; see :func:`write_model_file`.

    name: its name in messages, by default its class.
    Raises ValueError if :func:`load_object` would refuse the object.
    """
    arrays: dict[str, Any] = {}
    kind = storable_name(value)
    state = encode(checked_state(value), arrays)
    try:
        decode({"__object__": kind, "state": state}, arrays)
    except ModelFileError as error:
        raise ValueError(f"The {name or type(value).__name__} cannot be saved: {error}") from error
    write_model_file(path, ModelContent(kind, state, arrays), key=key)


@checked
def save_model(self: Any, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
    """Write the fitted model to one file, without pickle; load it with :func:`labelweave.load`.

    Parameters
    ----------
    path : path-like
        The file, replaced only when the new one is complete.
    key : bytes or None, default=None
        A secret of 16 bytes or more to sign the file with (HMAC-SHA256), to pass to
        ``labelweave.load(path, key=key)``; None for a checksum only.

    Raises
    ------
    TypeError
        If the model has an estimator that is not from this library; the message names it.
    """
    check_is_fitted(self)
    save_object(path, self, key=key)


@checked
def load_object(
    path: str | os.PathLike[str], *, verify: bool = True, key: bytes | None = None, mmap: bool = True
) -> Any:
    """Load an object of a registered class.

    Parameters
    ----------
    path : str or path-like
        The file.
    verify : bool, default=True
        Whether to read the whole file once, compare its checksum and check that all numbers are finite.
    key : bytes or None, default=None
        The key that the file was saved with; the signature is checked even without ``verify``.
        None accepts files with any signature or none.
    mmap : bool, default=True
        Whether arrays are views of the memory-mapped file, loaded on use and shared between processes.
        False reads the whole file into memory, so that later changes of the file have no effect; a mapped
        file must not be shortened or changed in place.

    Returns
    -------
    object
        The object; its arrays are read-only.

    Raises
    ------
    ModelFileError
        If the file is refused, not signed with the key, or its class not registered.
    OSError
        If the file cannot be read.
    """
    content = read_model_file(path, verify=verify, key=key, mmap=mmap)
    with naming_file(path), nullcontext() if verify else unread_numbers():
        return decode({"__object__": content.kind, "state": content.state}, content.arrays)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            versions[library] = "unknown"
    return versions
