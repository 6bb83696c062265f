"""Model files without pickle: one safetensors file, memory-mapped, with a checksum.

A class registered with :func:`storable` is saved and loaded as a whole: :func:`save_object`,
:func:`load_object`.  They build on :func:`write_model_file` and :func:`read_model_file`, for plain data and
arrays, and on :func:`encode` and :func:`decode`, which convert nested state to these.  Any file that is not
exactly as it was saved is refused with a :class:`ModelFileError`.
"""

from labelweave.model_files.model_file import ModelContent as ModelContent
from labelweave.model_files.model_file import load_object as load_object
from labelweave.model_files.model_file import read_model_file as read_model_file
from labelweave.model_files.model_file import save_model as save_model
from labelweave.model_files.model_file import save_object as save_object
from labelweave.model_files.model_file import write_model_file as write_model_file
from labelweave.model_files.safe_file import ModelFileError as ModelFileError
from labelweave.model_files.state import decode as decode
from labelweave.model_files.state import encode as encode
from labelweave.model_files.storable import Storable as Storable
from labelweave.model_files.storable import StoredParameters as StoredParameters
from labelweave.model_files.storable import storable as storable
