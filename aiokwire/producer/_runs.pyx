# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Which batches take the rows of one call, compiled; counted without an object per row. For the accumulator."""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport Batch, Delivery


@cython.final
cdef class Runs:
    """A run is what one batch takes of the rows of a call."""

    def __cinit__(self, int32_t partitions, int32_t first):
        self.firsts = []
        self.counts = []
        self.first = first
        self.partitions = partitions
        self.newest = <int32_t*>PyMem_Calloc(partitions, sizeof(int32_t))
        self.sizes = <int32_t*>PyMem_Calloc(partitions, sizeof(int32_t))
        if self.newest == NULL or self.sizes == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.newest)
        PyMem_Free(self.sizes)

    cdef int32_t run_of(self, Batch batch, int32_t partition, int64_t timestamp) except -1:
        """The run of the partition's open batch, which takes one more row."""
        cdef Delivery first
        if self.sizes[partition]:
            first = <Delivery>self.firsts[self.newest[partition]]
            if first.batch is batch:
                self.sizes[partition] += 1
                return self.first + self.newest[partition]
            self.counts[self.newest[partition]] = self.sizes[partition]
        first = Delivery.__new__(Delivery)
        first.batch = batch
        first.index = batch.count
        first.timestamp = timestamp
        self.newest[partition] = <int32_t>len(self.firsts)
        self.sizes[partition] = 1
        self.firsts.append(first)
        self.counts.append(0)
        return self.first + self.newest[partition]

    cdef add_to(self, list runs):
        cdef int32_t partition
        for partition in range(self.partitions):
            if self.sizes[partition]:
                self.counts[self.newest[partition]] = self.sizes[partition]
        runs.extend(zip(self.firsts, self.counts))
