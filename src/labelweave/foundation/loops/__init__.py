"""Small compiled loops over arrays, without validation, choices or growing allocations.

All loops take plain arrays of a fixed type, release the interpreter lock
and are cached on disk.

Importing Numba takes half a second, so callers import loops inside functions.
"""

WIDTH = 16  # vector length of compiled code, to which rows are padded
