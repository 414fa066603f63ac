# cython: language_level=3
"""What the producer knows of a topic and its partitions, compiled: the accumulator fills them, the senders empty them."""

cimport cython
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport Batch

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
