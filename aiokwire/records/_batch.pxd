# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

from aiokwire.records._cursor cimport Cursor
from aiokwire.records._columns cimport Columns

cdef struct Piece:
    const uint8_t* start
    const uint8_t* end
    int64_t count
    int64_t first           # offset


cdef class RecordBatch:
    cdef object view                    # keeps the bytes alive and in place
    cdef const uint8_t* start
    cdef const uint8_t* payload_start   # compressed or not, as it lies in the batch
    cdef Py_ssize_t payload_size
    cdef bytes decompressed
    cdef Py_ssize_t limit
    cdef int codec
    cdef int64_t first                  # base offset; of a compressed message set known after decompression
    cdef int64_t counted                # likewise; -1 when unknown
    cdef int64_t shift
    cdef int64_t delta_base             # in format 2: what the records' own offsets are added to
    cdef bint is_part                   # of a batch that was split
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t size
    cdef readonly int magic
    cdef readonly int attributes
    cdef readonly int32_t leader_epoch
    cdef readonly int64_t last_offset
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly int producer_epoch
    cdef readonly int32_t base_sequence

    cdef int open(self, Cursor* cursor) except -1
    cdef bint exceeds(self, int64_t records, Py_ssize_t size) noexcept
    cdef int unpack(self, Py_ssize_t limit) except -1
    cdef RecordBatch part(self, Piece* piece, object view, const uint8_t* start)
    cdef object corrupt(self, int fault, int64_t offset)
    cdef int pour(self, Columns columns, int64_t from_offset, int64_t to_offset) except -1
