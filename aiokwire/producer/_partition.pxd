# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport Batch


cdef class Partition:
    cdef readonly str topic
    cdef readonly Batch open
    cdef readonly object queue          # deque of sealed batches, in order; changed by the methods below only
    cdef readonly list in_flight        # batches in flight, in the order in which they were sent; likewise
    cdef readonly double retry_at       # no batch is sent before this moment, on the loop's clock
    cdef public int64_t producer_id     # of its sequence
    cdef readonly int32_t index
    cdef readonly int32_t leader        # node id, -1 when there is none
    cdef public int32_t next_sequence
    cdef public int producer_epoch
    cdef readonly int magic
    cdef readonly bint needs_epoch      # its sequence is broken: a new epoch before the next batch (KIP-360)

    cpdef push(self, Batch batch)
    cpdef move(self, int32_t leader, int magic)
    cdef Py_ssize_t _position_of(self, Batch batch) except -1
    cdef bint _is_current(self, Batch batch)


cdef class Topic:
    cdef readonly str name
    cdef readonly list partitions       # may be longer than count: deleted partitions that still have batches
    cdef readonly int32_t count
    cdef readonly Batch parked          # records that wait for the metadata
    cdef readonly int32_t sticky        # the partition of records without a key
    cdef Py_ssize_t sticky_left
