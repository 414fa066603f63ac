# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

from aiokwire.records._builder cimport BatchBuilder

# The states of a batch.
cdef enum:
    BATCH_OPEN = 0      # takes records
    BATCH_SEALED = 1    # waits for its turn, the first time or again
    BATCH_IN_FLIGHT = 2
    BATCH_DONE = 3
    BATCH_SPLIT = 4     # its records went on to other batches


cdef class Batch:
    cdef readonly str topic
    cdef readonly object first_key
    cdef readonly object error          # as kept; raised as a copy
    cdef public object last_error       # what the broker or connection said last
    cdef public object data             # the sealed bytes, kept until done: a retry sends the very same
    cdef readonly list parked           # records whose partition is not known yet, instead of a builder
    cdef BatchBuilder builder
    cdef list waiters
    cdef list children                  # after a split or unparking: (first index, Batch) in order
    cdef dict record_errors             # of single records (KIP-467): index -> error
    cdef object loop
    cdef object events                  # of the accumulator, until it is done
    cdef readonly double created
    cdef public double deadline
    cdef readonly double order          # its place among the partition's batches
    cdef double width                   # and how far to the next one: what is left to divide when it is split
    cdef readonly Py_ssize_t size       # bytes that it holds of the producer's buffer
    cdef Py_ssize_t lent                # bytes of memory that it has from the accumulator's pool
    cdef readonly int64_t base_offset
    cdef int64_t append_time
    cdef public int64_t producer_id
    cdef readonly int32_t partition
    cdef readonly int32_t count
    cdef public int32_t cancelled       # of a parked one: records that were taken back, whose places remain
    cdef public int32_t base_sequence
    cdef public int32_t attempts        # how often it was sent
    cdef public int producer_epoch
    cdef public int state
    cdef public bint urgent             # somebody awaits it
    cdef bint observed                  # somebody was told of each record's failure
    cdef set told                       # the records whose failure somebody was told

    cdef _finish(self)
    cdef _wake_waiters(self)
    cdef bint _is_news(self)
    cdef object error_of(self, int32_t index, int32_t count=*)


cdef class Delivery:
    cdef Batch batch
    cdef int64_t timestamp
    cdef int32_t index

    cdef void _follow(self)
    cdef object _outcome(self)


cdef class _Ready:
    cdef Delivery delivery
    cdef bint turn                      # the loop's turn comes first
