"""Model files without pickle: one safetensors file, memory-mapped, with a checksum.

A class registered with :func:`storable` is saved and loaded as a whole: :func:`save_object`,
:func:`load_object`.  They build on :func:`write_model_file` and :func:`read_model_file`, for plain data and
arrays, and on :func:`encode` and :func:`decode`, which convert nested state to these.  Any file that is not
exactly as it was saved is refused with a :class:`ModelFileError`.
"""

from labelweave.model_files.model_file import (
    ModelContent,
    load_object,
    read_model_file,
    save_model,
    save_object,
    write_model_file,
)
from labelweave.model_files.safe_file import ModelFileError
from labelweave.model_files.state import decode, encode
from labelweave.model_files.storable import Storable, StoredParameters, storable

__all__ = [
    "ModelContent",
    "ModelFileError",
    "Storable",
    "StoredParameters",
    "decode",
    "encode",
    "load_object",
    "read_model_file",
    "save_model",
    "save_object",
    "storable",
    "write_model_file",
]
