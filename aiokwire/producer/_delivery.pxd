# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

from aiokwire.records._builder cimport BatchBuilder

# The states of a batch.
cdef enum:
    BATCH_OPEN = 0      # accepts records
    BATCH_SEALED = 1    # queued, for the first attempt or a retry
    BATCH_IN_FLIGHT = 2
    BATCH_DONE = 3
    BATCH_SPLIT = 4     # its records are in other batches


cdef class Batch:
    cdef readonly str topic
    cdef readonly object first_key
    cdef readonly object error          # why it failed; raised as a copy
    cdef readonly object last_error     # the last error of the broker or the connection
    cdef readonly object data           # the sealed bytes, kept until it is done: a retry sends the same
    cdef readonly list parked           # records whose partition is not known yet, instead of a builder
    cdef BatchBuilder builder
    cdef list waiters
    cdef list callbacks                 # of `Delivery.call_when_done`: (delivery, function, argument)
    cdef list children                  # after a split or unparking: (first index, Batch) in order
    cdef dict record_errors             # of single records (KIP-467): index -> error
    cdef object loop
    cdef object events                  # of the accumulator, until it is done
    cdef readonly double created
    cdef readonly double deadline
    cdef readonly double order          # its place among the partition's batches
    cdef double width                   # the distance to the next place: its halves divide it
    cdef readonly Py_ssize_t size       # bytes that it holds of the producer's buffer
    cdef Py_ssize_t lent                # bytes of memory that it has from the accumulator's pool
    cdef readonly int64_t base_offset
    cdef int64_t append_time
    cdef readonly int64_t producer_id
    cdef readonly int32_t partition
    cdef readonly int32_t count
    cdef readonly int32_t cancelled     # of a parked batch: cancelled records, which keep their index
    cdef readonly int32_t base_sequence
    cdef readonly int32_t attempts      # how often it was sent
    cdef readonly int producer_epoch
    cdef readonly int state
    cdef readonly bint urgent           # the caller of `send` awaits one of its records
    cdef bint observed                  # the failure of each record was reported to the application
    cdef set reported                   # the records whose failure was reported

    cdef _finish(self)
    cdef add_callback(self, tuple call)
    cdef _call_back(self)
    cdef _pass_on_callbacks(self)
    cdef bint _is_first_report(self)
    cdef object error_of(self, int32_t index, int32_t count=*)
    cpdef number(self, int64_t producer_id, int producer_epoch, int32_t base_sequence)
    cpdef set_last_error(self, error)
    cpdef add_waiter(self, waiter)


cdef class Delivery:
    cdef Batch batch
    cdef int64_t timestamp
    cdef int32_t index

    cdef void _follow(self)
    cdef Batch _done_batch(self)
    cdef object _outcome(self)
    cpdef call_when_done(self, function, argument)


cdef class _Ready:
    cdef Delivery delivery
    cdef bint turn                      # let the loop turn first
