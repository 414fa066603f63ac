# cython: language_level=3
"""The state of topics and partitions, compiled: the accumulator adds batches, senders send them.

Only a `Partition` changes its queue and batches in flight, so both keep the order of `Batch.order`.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from aiokwire.producer._delivery cimport BATCH_IN_FLIGHT, BATCH_SEALED, Batch

import collections


cpdef int32_t next_sequence(int32_t sequence, int32_t count):
    """The sequence after a batch: 2^31 - 1 is followed by 0."""
    return <int32_t>((<int64_t>sequence + count) & 0x7FFFFFFF)


@cython.final
cdef class Partition:
    """The state of one partition: its open, queued and in-flight batches, and their sequence."""

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

    cpdef move(self, int32_t leader, int magic):
        """Set the node that leads it (-1: none) and its message format."""
        self.leader = leader
        self.magic = magic

    def hold(self, double until):
        """Send none of its batches before this moment, on the loop's clock."""
        self.retry_at = until

    # --- batches ------------------------------------------------------------------------------------------------------

    cpdef push(self, Batch batch):
        """Queue a batch that was just sealed, behind all others."""
        batch.state = BATCH_SEALED
        self.queue.append(batch)

    def take_next(self):
        """Remove the first batch from the queue and return it: from here on it is in flight."""
        cdef Batch batch = <Batch>self.queue.popleft()
        batch.state = BATCH_IN_FLIGHT
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def put_back(self, Batch batch):
        """Queue a batch before those accepted after it: a retry, or a part of a divided batch."""
        batch.state = BATCH_SEALED
        self.queue.insert(self._position_of(batch), batch)

    def discard(self, Batch batch):
        """Remove a batch from the queue, if it is there."""
        if batch in self.queue:
            self.queue.remove(batch)

    def arrived(self, Batch batch):
        """Remove a batch from those in flight; return whether it was one of them."""
        if batch not in self.in_flight:
            return False
        self.in_flight.remove(batch)
        if batch.state == BATCH_IN_FLIGHT:
            batch.state = BATCH_SEALED
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
        """The number of its batches that are queued or in flight, for the adaptive partitioner."""
        return len(self.queue) + len(self.in_flight)

    # --- sequence -----------------------------------------------------------------------------------------------------

    def stamp(self, Batch batch, int64_t producer_id, int producer_epoch):
        """Number a batch before it is sent, unless it has a number of the current sequence."""
        if self.producer_id < 0:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.next_sequence = 0
        if not self._is_current(batch):
            batch.number(self.producer_id, self.producer_epoch, self.next_sequence)
            self.next_sequence = next_sequence(self.next_sequence, batch.count)

    cdef bint _is_current(self, Batch batch):
        return (
            batch.base_sequence >= 0
            and batch.producer_id == self.producer_id
            and batch.producer_epoch == self.producer_epoch
        )

    @property
    def in_doubt(self):
        """Whether its next batch was sent in this sequence, so the broker may have written it.

        If the broker refuses it for the gap before it, it refuses those behind: none is in doubt.
        """
        return bool(self.queue) and self._is_current(<Batch>self.queue[0])

    def break_sequence(self):
        """Require a new producer epoch before the next batch."""
        self.needs_epoch = True

    def skip(self, Batch batch):
        """Require one if the broker would wait for the numbers of a batch not sent (again)."""
        if batch.base_sequence >= 0 and batch.producer_epoch == self.producer_epoch:
            self.needs_epoch = True

    def restart_sequence(self):
        """Start at sequence 0 under the producer id and epoch of the next batch."""
        self.needs_epoch = False
        self.producer_id = -1


@cython.final
cdef class Topic:
    """The producer's state of one topic; `count` is 0 until its metadata is known."""

    def __cinit__(self):
        self.partitions = []
        self.sticky = -1

    def next_in_turn(self):
        """The partition after the sticky one that has a leader, while no batch waits; else -1."""
        cdef Partition partition
        cdef Py_ssize_t index
        cdef Py_ssize_t first = -1
        cdef Py_ssize_t following = -1
        if not 0 <= self.sticky < self.count or (<Partition>self.partitions[self.sticky]).leader < 0:
            return -1
        for index in range(self.count):
            partition = <Partition>self.partitions[index]
            if partition.leader < 0:
                continue
            if partition.in_flight or partition.queue:
                return -1
            if first < 0:
                first = index
            if following < 0 and index > self.sticky:
                following = index
        return first if following < 0 else following
