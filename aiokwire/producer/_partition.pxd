# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport Batch


cdef class Partition:
    cdef readonly str topic
    cdef readonly Batch open
    cdef readonly object queue          # deque of sealed batches, in order; changed by the methods below only
    cdef readonly list in_flight        # batches on their way, in the order in which they left; likewise
    cdef public double retry_at         # not before this moment
    cdef public int64_t producer_id     # under which its sequence runs
    cdef readonly int32_t index
    cdef public int32_t leader          # node id, -1 when there is none
    cdef public int32_t next_sequence
    cdef public int producer_epoch
    cdef public int magic
    cdef public bint needs_epoch        # its sequence is broken: a new epoch before the next batch (KIP-360)

    cpdef push(self, Batch batch)
    cdef Py_ssize_t _position_of(self, Batch batch) except -1


cdef class Topic:
    cdef readonly str name
    cdef readonly list partitions       # may be longer than count: partitions that are gone and still hold batches
    cdef readonly int32_t count
    cdef readonly Batch parked          # records that wait for the metadata
    cdef readonly int32_t sticky        # the partition that records without a key go to now
    cdef Py_ssize_t sticky_left
