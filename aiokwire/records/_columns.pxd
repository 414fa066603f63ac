# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

from aiokwire.records._cursor cimport Cursor, Slot

cdef struct Growable:
    uint8_t* p
    Py_ssize_t size
    Py_ssize_t capacity

# A nullable column of bytes, as Arrow keeps it.
cdef struct BytesColumn:
    Growable offsets
    Growable data
    Growable validity
    Py_ssize_t nulls


# The buffers of columns by what they hold; a bytes column has three, one behind the other.
cdef enum:
    OFFSET = 0
    TIMESTAMP = 1
    TIMESTAMP_TYPE = 2
    PARTITION = 3
    TOPIC = 4
    HEADER_OFFSETS = 5
    KEY = 6
    VALUE = 9
    HEADER_KEY = 12
    HEADER_VALUE = 15
    ROLES = 18
    SPARE_EACH = 3


cdef class Spare:
    cdef Growable[18][3] blocks
    cdef int[18] kept

    cdef void take(self, int role, Growable* g) noexcept
    cdef void give(self, int role, Growable* g) noexcept
    cdef void take_column(self, int role, BytesColumn* column) noexcept


cdef class ArrowBuffer:
    cdef Growable memory
    cdef Spare spare  # where the memory goes; None: to the system
    cdef int role


cdef class Columns:
    cdef Growable offset
    cdef Growable timestamp
    cdef Growable timestamp_type
    cdef Growable partition
    cdef Growable topic
    cdef Growable header_offsets
    cdef BytesColumn key
    cdef BytesColumn value
    cdef BytesColumn header_key
    cdef BytesColumn header_value
    cdef Py_ssize_t rows
    cdef Py_ssize_t header_rows
    cdef bint keys  # what is wanted; the others are null
    cdef bint values
    cdef bint headers
    cdef readonly bint microseconds
    cdef Py_ssize_t strange_row  # -1: all times are in range
    cdef int64_t strange_time
    cdef list topics
    cdef dict taken
    cdef Spare spare

    cdef Py_ssize_t data_size(self) noexcept
    cdef int fill(self, Cursor* cursor, int64_t count, int64_t from_offset, int64_t to_offset, int64_t payload_size,
                  str topic, int partition, int timestamp_kind, int64_t* at_offset) except -1
    cdef int _add_all(self, list records, Py_ssize_t header_count) except -1
    cdef void _go_back(self, Py_ssize_t rows, Py_ssize_t header_rows, BytesColumn* key, BytesColumn* value,
                       BytesColumn* header_key, BytesColumn* header_value) noexcept
    cdef void _finish_rows(self, Py_ssize_t first, Py_ssize_t row) noexcept nogil
    cdef void _restore(self, BytesColumn* column, BytesColumn* before) noexcept
    cdef int _reserve_all(self, Py_ssize_t count, int64_t payload_size) noexcept nogil
    cdef int _fill(self, Cursor* cursor, int64_t count, int64_t from_offset, int64_t to_offset, int64_t payload_size,
                   int32_t topic_index, int partition, int timestamp_kind, int64_t* at_offset) noexcept nogil
    cdef int _size_of_type(self) noexcept nogil
    cdef void _change_times(self, Py_ssize_t row, Py_ssize_t end) noexcept nogil
    cdef int _fill_headers(self, Slot* slot) noexcept nogil
    cdef int _add_text(self, const uint8_t* p, int64_t size) noexcept nogil
