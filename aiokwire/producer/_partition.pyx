# cython: language_level=3
"""What the producer knows of a topic and its partitions, compiled: the accumulator fills them, the senders empty them.

Only a `Partition` itself changes its queue and what is in flight, so that both stay in the order of `Batch.order`.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport BATCH_IN_FLIGHT, Batch

import collections


@cython.final
cdef class Partition:
    """The producer's side of one partition: its open batch, what waits, what is in flight."""

    def __init__(self, str topic, int32_t index, int32_t leader, int magic):
        self.topic = topic
        self.index = index
        self.leader = leader
        self.magic = magic
        self.queue = collections.deque()
        self.in_flight = []
        self.producer_id = -1
        self.producer_epoch = -1

    def __repr__(self):
        return f"<Partition {self.topic}[{self.index}] on node {self.leader}>"

    cpdef push(self, Batch batch):
        """Queue a batch that was just sealed, behind all others."""
        self.queue.append(batch)

    def take_next(self):
        """Remove the first batch from the queue and return it: it is in flight from here on."""
        cdef Batch batch = <Batch>self.queue.popleft()
        batch.state = BATCH_IN_FLIGHT
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def put_back(self, Batch batch):
        """Queue a batch before those that were accepted after it: a retry, or a part of a batch that was divided."""
        self.queue.insert(self._position_of(batch), batch)

    def discard(self, Batch batch):
        """Remove a batch from the queue, if it is there."""
        if batch in self.queue:
            self.queue.remove(batch)

    def arrived(self, Batch batch):
        """Remove a batch from those in flight; returns whether it was one of them."""
        if batch not in self.in_flight:
            return False
        self.in_flight.remove(batch)
        return True

    cdef Py_ssize_t _position_of(self, Batch batch) except -1:
        cdef Py_ssize_t position = 0
        for waiting in self.queue:
            if (<Batch>waiting).order > batch.order:
                break
            position += 1
        return position

    @property
    def backlog(self):
        """How many batches wait or are on their way, for the adaptive partitioner."""
        return len(self.queue) + len(self.in_flight)


@cython.final
cdef class Topic:
    """The producer's side of one topic; `count` is 0 until its metadata is there."""

    def __cinit__(self):
        self.partitions = []
        self.sticky = -1
