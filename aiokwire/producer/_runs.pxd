# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport Batch


cdef class Runs:
    cdef list firsts            # the delivery of the first row of each run
    cdef list counts            # how many rows; of a partition's newest run it stands in `sizes`
    cdef int32_t* newest        # by partition: its newest run
    cdef int32_t* sizes
    cdef int32_t partitions
    cdef int32_t first          # the number of this call's first run

    cdef int32_t run_of(self, Batch batch, int32_t partition, int64_t timestamp) except -1
    cdef add_to(self, list runs)
