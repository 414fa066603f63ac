# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

# A column of bytes or text where Arrow has it.
cdef struct BytesIn:
    const uint8_t* validity     # NULL: no row is null
    const uint8_t* offsets      # NULL: all rows are null
    const uint8_t* data
    int64_t data_size
    int64_t first               # where its rows begin in the buffers
    int64_t rows
    bint large                  # offsets of 64 bits

# A column of whole numbers.
cdef struct NumbersIn:
    const uint8_t* validity
    const uint8_t* data         # NULL: there is no such column
    int64_t first
    bint wide                   # 64 bits, otherwise 32

# One row, as it lies in Arrow's buffers.
cdef struct Row:
    const char* key
    const char* value
    const uint8_t* headers      # encoded, their count in front
    Py_ssize_t key_size         # -1: null
    Py_ssize_t value_size
    Py_ssize_t headers_size     # 0: none
    int64_t timestamp           # -1: none given
    int32_t partition           # -1: none given


cdef class ArrowRows:
    cdef readonly int64_t count
    cdef list held              # the buffers' owners
    cdef BytesIn key
    cdef BytesIn value
    cdef BytesIn names
    cdef BytesIn contents
    cdef BytesIn lists          # of headers: offsets and validity alone
    cdef NumbersIn timestamp
    cdef NumbersIn partition
    cdef int64_t per_ms         # how many of the timestamp's units make a millisecond; below 0: milliseconds in a unit
    cdef uint8_t* scratch
    cdef Py_ssize_t scratch_size
    cdef int32_t* taken_by      # by row: the number of the run that took it

    cdef const uint8_t* _hold(self, object buffer, int64_t least, str name) except? NULL
    cdef _bind(self, BytesIn* column, object parts, int64_t rows, str name)
    cdef _bind_numbers(self, NumbersIn* column, object parts, str name)
    cdef int read(self, int64_t index, Row* row) except -1
    cdef int _read_headers(self, int64_t index, Row* row) except -1
    cdef int _grow(self, int64_t wanted) except -1
    cdef int32_t _place(self, int64_t index, Row* row, int32_t partitions, int32_t* turn) except -1
    cdef int mark(self, int64_t index, int32_t run) except -1
    cdef int64_t _in_ms(self, int64_t stamp, int64_t index) except? -1
    cdef object fault(self, int64_t index, str what)
