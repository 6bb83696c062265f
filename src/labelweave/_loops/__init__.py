"""Small compiled loops over arrays: no validation, no choices, no allocation that grows.

Everything here takes plain arrays of a fixed type, releases the interpreter lock
and is cached on disk.
"""
