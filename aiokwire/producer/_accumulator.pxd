# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport Batch, Delivery
from aiokwire.producer._partition cimport Partition, Topic
from aiokwire.records._builder cimport BatchBuilder
from aiokwire.records._rows cimport ArrowRows, Row

# How a record is given to the producer.
cdef enum:
    MODE_NOWAIT = 0     # accept or refuse it
    MODE_SUBMIT = 1     # it may wait for the next turn of the loop
    MODE_SEND = 2       # its caller awaits the acknowledgement: its batch need not linger


cdef class Accumulator:
    cdef readonly dict topics
    cdef readonly dict live             # keys: the batches that are not done, in order
    cdef object events
    cdef object loop
    cdef object closed                  # why no record is accepted
    cdef list spare                     # builders for reuse
    cdef Py_ssize_t kept                # bytes of memory of these builders, and of those that batches reuse
    cdef str last_name                  # the topic of the previous record, and its state: most calls repeat it
    cdef Topic last_state
    cdef readonly Py_ssize_t used
    cdef readonly Py_ssize_t limit
    cdef Py_ssize_t batch_size
    cdef readonly Py_ssize_t max_record
    cdef Py_ssize_t since_turn          # bytes accepted since the loop turned
    cdef Py_ssize_t since_clocks        # bytes accepted since the clocks were read
    cdef double delivery_timeout
    cdef readonly double now            # the loop's clock, read once per turn and per 128 KiB
    cdef int64_t wall
    cdef int64_t opened                 # the number of batches so far
    cdef unsigned long thread
    cdef public bint blocked            # other records wait for room: do not overtake them
    cdef readonly bint turn_due         # the loop should turn before the next `submit`
    cdef bint fresh                     # the clocks were read and the caller was checked in this turn of the loop
    cdef int partitioning               # how a partition is chosen
    cdef object __weakref__

    cdef _wake_up(self, bint granted=*)
    cdef _read_clocks(self)
    cdef _tick(self)
    cpdef object append(self, topic, value, key, partition, timestamp, headers, int mode, bint granted=*)
    cdef _submit_later(self, tuple record)
    cdef int _place(self, Topic state, Delivery delivery, Py_ssize_t need, bytes value, bytes key, int32_t index, int64_t stamp, tuple headers, int mode) except -1
    cdef int32_t _choose(self, Topic state, Row* row, Py_ssize_t need) except -1
    cdef Batch _append(self, Partition target, Row* row, list headers)
    cdef _move_on(self, Topic state)
    cdef Batch _new_batch(self, str topic, int32_t partition)
    cdef Batch _open(self, Partition target)
    cdef _withdraw(self, Partition target)
    cdef _take_back(self, Batch batch, BatchBuilder builder)
    cdef Topic _look_up(self, str name)
    cdef _park(self, Topic state, Delivery delivery, Py_ssize_t need, tuple record)
    cdef _unpark(self, Topic state)
    cdef Batch _failed(self, str topic, int32_t partition, key, error)
    cdef Batch _cancelled(self, Batch batch, error)
    cdef list _divide(self, Batch batch, Partition target, list parts, list children)
    cdef bint _take_row(self, Topic state, ArrowRows rows, int64_t index, Runs taken) except -1


cdef class Runs:
    cdef list firsts            # the delivery of the first row of each run
    cdef list counts            # the rows of each run; `sizes` counts those of a partition's newest run
    cdef int32_t* newest        # by partition: its newest run
    cdef int32_t* sizes
    cdef int32_t partitions
    cdef int32_t first          # the number of this call's first run

    cdef int32_t run_of(self, Batch batch, int32_t partition, int64_t timestamp) except -1
    cdef add_to(self, list runs)
