"""Small compiled loops over arrays: no validation, no choices, no allocation that grows.

Everything here takes plain arrays of a fixed type, releases the interpreter lock
and is cached on disk.

Importing Numba takes half a second, so what calls a loop imports it inside the function that does.
"""

WIDTH = 16  # numbers that the vectors of compiled code hold, and to which rows are padded
