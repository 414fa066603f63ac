# cython: language_level=3
from libc.stdint cimport int8_t, int32_t, int64_t

from aiokwire.records._cursor cimport Slot

cdef tuple read_headers(Slot* slot)


cdef class Record:
    cdef readonly str topic  # the objects first, see `_put_members`
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly tuple headers
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef int8_t timestamp_kind


cdef class DeserializedRecord:
    cdef readonly str topic  # the objects first, see `_put_members`
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef readonly int32_t serialized_key_size
    cdef readonly int32_t serialized_value_size
    cdef int8_t timestamp_kind
