# cython: language_level=3, boundscheck=False, wraparound=False
"""Checks the arguments of a record, compiled: a wrong one is named before anything is accepted."""

from libc.stdint cimport int32_t, int64_t

from collections.abc import Mapping, Sequence

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, RecordRejected

cdef enum:
    HEADER_OVERHEAD = 10

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


cdef object bytes_of(str argument, object given):
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    raise InvalidArgument(
        f"{argument} must be bytes or None, not {type(given).__name__}: encode it, or give the producer a "
        f"{argument}_serializer"
    )


cdef tuple headers_of(object given):
    """Checked headers: (str, bytes or None) pairs. An iterator is refused: readable only once."""
    if not isinstance(given, (tuple, list)) and (
        isinstance(given, (str, bytes, bytearray, memoryview)) or not isinstance(given, Sequence)
    ):
        raise InvalidArgument(
            f"headers must be a list or tuple of (str, bytes) pairs, not {type(given).__name__}"
            f"{': pass list(headers.items())' if isinstance(given, Mapping) else ''}"
        )
    checked = []
    for header in given:
        if not isinstance(header, (tuple, list)) or len(header) != 2:
            raise InvalidArgument(f"headers: each must be a (str, bytes) pair, not {header!r}")
        name, content = header
        if not isinstance(name, str):
            raise InvalidArgument(f"headers: a name must be a str, not {type(name).__name__}")
        if content is not None and type(content) is not bytes:
            if not isinstance(content, (bytes, bytearray, memoryview)):
                raise InvalidArgument(f"headers: the value of {name!r} must be bytes or None, not {type(content).__name__}")
            content = bytes(content)
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidArgument(f"headers: the name {name!r} cannot be encoded as UTF-8") from None
        checked.append((name, content))
    return tuple(checked)


cdef Py_ssize_t size_of(object given) except -1:
    """The bytes of a key or value; those of a typed memoryview are not its items."""
    if given is None:
        return 0
    return given.nbytes if isinstance(given, memoryview) else len(given)


cdef Py_ssize_t size_of_headers(tuple headers):
    cdef Py_ssize_t size = 0
    for name, content in headers:
        # a character is up to four bytes
        size += HEADER_OVERHEAD + 4 * len(name) + (0 if content is None else len(content))
    return size


cdef int64_t timestamp_of(object given) except? -1:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0 or given > 2**62:
        raise InvalidArgument(f"timestamp must be milliseconds since the epoch as an int, not {given!r}")
    return given


cdef int32_t partition_of(object given) except? -1:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**31:
        raise InvalidArgument(f"partition must be an int from 0, not {given!r}")
    return given


cdef object check_topic_name(str name):
    if not 0 < len(name) <= 249 or name in (".", "..") or not _NAME.issuperset(name):
        raise InvalidArgument(f"topic {name!r} is not a topic name: 1 to 249 of letters, digits, '.', '_' and '-'")


cdef object too_large(object topic, object value, object key, Py_ssize_t size, Py_ssize_t limit):
    """The error for a record above `max_request_size`."""
    return RecordRejected(
        f"the record for {topic} is too large: value {size_of(value)} bytes, key {size_of(key)} "
        f"bytes, {size} with headers; max_request_size allows {limit}",
        code=ErrorCode.MESSAGE_TOO_LARGE, topic=topic if isinstance(topic, str) else None, request="Produce",
    )
