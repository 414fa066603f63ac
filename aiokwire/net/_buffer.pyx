# cython: language_level=3
"""Room for a frame that the socket will fill. Used by `framing`."""

from cpython.bytearray cimport PyByteArray_FromStringAndSize


def unfilled(Py_ssize_t size):
    # `bytearray(size)` would write zeros over all of it first, and so touch each page of a response twice
    return PyByteArray_FromStringAndSize(NULL, size)
