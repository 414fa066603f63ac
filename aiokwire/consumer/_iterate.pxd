# The index of what runs per record; see _iterate.pyx.

from libc.stdint cimport int64_t


cdef class Chunk:
    cdef readonly object partition  # its PartitionState
    cdef readonly object batch      # the undecoded RecordBatch
    cdef public object lease        # the share of the memory that it holds; written by the buffer
    cdef readonly int64_t start, end
    cdef readonly Py_ssize_t size
    cdef readonly bint loaded, dropped
    cdef list _records
    cdef Py_ssize_t _index, _stop

    cpdef load(self, list records)
    cpdef bint is_short(self, int64_t records, Py_ssize_t size)
    cpdef Py_ssize_t decode(self, int64_t records, Py_ssize_t size) except -2
    cpdef extend(self, int64_t end)
    cpdef drop(self)
    cpdef object take_one(self)
    cpdef list take(self, Py_ssize_t limit)


cdef class Feed:
    cdef public Chunk current       # written by the buffer; None while no chunk is being delivered
    cdef public bint due            # the loop should get a turn before the next record
    cdef object _advance
    cdef object _time
    cdef Turn _turn
    cdef double _last
    cdef int _look
    cdef Py_ssize_t _records, _bytes

    cpdef spend(self, Py_ssize_t records, Py_ssize_t size)
    cdef bint has_one(self)
    cdef object take(self)


cdef class Turn:
    cdef Feed _feed

    cdef object take(self)


cdef class Step:
    cdef object _waiting
