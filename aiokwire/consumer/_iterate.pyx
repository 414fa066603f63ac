# cython: language_level=3, boundscheck=False, wraparound=False
"""Handing records over: what runs once per record and must cost nothing.

A `Chunk` is one batch of one partition between its arrival and its hand-over; a `Feed` is what all readers of one
consumer draw from, `async for` included. Used by `fetch_buffer` (fills) and `reader` (drains).
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t

from aiokwire.records._batch cimport RecordBatch

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR

    ctypedef PySendResult (*sendfunc)(PyObject*, PyObject*, PyObject**) except PYGEN_ERROR

    ctypedef struct PyAsyncMethods:
        sendfunc am_send

    ctypedef struct SendingType "PyTypeObject":
        PyAsyncMethods* tp_as_async

# Records between two looks at the clock, records and bytes between two turns given to the event loop, and the
# longest time in seconds that a reader keeps the loop to itself. The socket is read in those turns: about as much
# as a socket buffer holds may be handed over in between, or the next response would come in too slowly.
cdef enum:
    LOOK = 16
    RUN = 1024
    RUN_BYTES = 262144

cdef double PATIENCE = 0.005


@cython.final
cdef class Chunk:
    """A batch whose records are handed over one by one, or as lists.

    Undecoded until `load`; `start` is the first offset wanted from it, `end` the position once all is handed over
    (behind whatever follows it that is not for the reader: control batches, aborted records).
    """

    def __init__(self, partition, batch, int64_t start, int64_t end, Py_ssize_t size, lease):
        self.partition = partition
        self.batch = batch
        self.start = start
        self.end = end
        self.size = size
        self.lease = lease
        self.loaded = False
        self.dropped = False
        self._index = 0
        self._stop = 0

    cpdef load(self, list records):
        """Take the decoded records, which must begin at or after `start`."""
        self._records = records
        self._index = 0
        self._stop = len(records)
        self.loaded = True

    cpdef bint is_short(self, int64_t records, Py_ssize_t size):
        """Whether it is decoded, or its batch needs no decompression and is not longer than that."""
        cdef RecordBatch batch
        if self.loaded:
            return True
        if type(self.batch) is not RecordBatch:
            return False
        batch = <RecordBatch>self.batch
        return batch.codec == 0 and not batch.exceeds(records, size)

    cpdef Py_ssize_t decode(self, int64_t records, Py_ssize_t size) except -2:
        """Decode the records of a batch for which `is_short` is true: their number; -1 for any other.

        Raises: CorruptRecord: the bytes are damaged.
        """
        if not self.is_short(records, size):
            return -1
        if not self.loaded:
            self.load((<RecordBatch>self.batch).records(self.start))
        return self._stop

    def add_to(self, columns):
        """Add the records not yet handed over to `Columns`, undecoded; none from `end` on where the chunk was cut short.

        Raises: CorruptRecord: the bytes are damaged.
        """
        cdef RecordBatch batch = self.batch
        batch.add_to(columns, self.position, self.end if self.end <= batch.last_offset else INT64_MAX)

    cpdef extend(self, int64_t end):
        """Let the position go on to `end` after this chunk: nothing for the reader lies in between."""
        self.end = end

    cpdef drop(self):
        """Forget the records: the position was moved away. Nothing more is handed over."""
        self.dropped = True
        self._records = None
        self._index = 0
        self._stop = 0

    @property
    def remaining(self):
        """Decoded records not yet handed over."""
        return self._stop - self._index

    @property
    def count(self):
        """Records in all: those decoded, or before `load` those of the batch."""
        return self._stop if self.loaded else self.batch.count

    @property
    def position(self):
        """The offset of the next record to hand over."""
        if not self.loaded or self.dropped:
            return self.start
        if self._index == 0:
            return self.start
        if self._index < self._stop:
            return self._records[self._index].offset
        return self.end

    @property
    def in_hand(self):
        """The offset of the record that was handed over last; -1 when none was, or the chunk was dropped."""
        if self._index == 0 or self._records is None:
            return -1
        return self._records[self._index - 1].offset

    cpdef object take_one(self):
        """The next record; only when `remaining` is positive."""
        if self._index >= self._stop:
            raise IndexError("no record is left in this chunk")
        record = self._records[self._index]
        self._index += 1
        return record

    cpdef list take(self, Py_ssize_t limit):
        """Up to `limit` records."""
        cdef Py_ssize_t index = self._index
        cdef Py_ssize_t stop = self._stop
        if limit < stop - index:
            stop = index + limit if limit > 0 else index
        self._index = stop
        if self._records is None:
            return []
        if index == 0 and stop == self._stop:
            return self._records
        return self._records[index:stop]

    def __repr__(self):
        return f"<Chunk {self.partition} {self.position}..{self.end}, {self.remaining} decoded>"


@cython.final
cdef class Feed:
    """Where readers take records from: the chunk now being handed over, and whether the loop is due a turn."""

    def __init__(self, advance):
        """`advance` is a coroutine function that gives the next record when there is none at hand."""
        self._advance = advance
        self._turn = Turn(self)
        self._look = LOOK

    def bind(self, time):
        """Use the loop's clock."""
        self._time = time
        self.rested()

    def rested(self):
        """The loop had its turn just now."""
        self._records = 0
        self._bytes = 0
        self._look = LOOK
        self.due = False
        self._last = self._time()

    cpdef spend(self, Py_ssize_t records, Py_ssize_t size):
        """Count what is handed over at once; look at the clock."""
        self._records += records
        self._bytes += size
        if self._records >= RUN or self._bytes >= RUN_BYTES or self._time() - self._last >= PATIENCE:
            self.due = True

    cdef bint has_one(self):
        """Whether a record is at hand, and may be handed over before the loop gets its turn."""
        return not self.due and self.current is not None and self.current._index < self.current._stop

    cdef object take(self):
        """The record at hand."""
        cdef Chunk chunk = self.current
        record = chunk._records[chunk._index]
        chunk._index += 1
        self._look -= 1
        if self._look <= 0:
            self._look = LOOK
            self.spend(LOOK, 0)
        return record

    def __aiter__(self):
        return self

    def __anext__(self):
        return self._turn


@cython.final
cdef class Turn:
    """What every `__anext__` of a feed gives, always the same object: an object for each record would cost more than the rest
    of the step.

    The record is taken when this is awaited, not when it is given: one that is never awaited loses nothing.
    """

    def __init__(self, Feed feed not None):
        self._feed = feed

    def __await__(self):
        cdef Step step
        if self._feed.has_one():
            return self  # nothing runs between this and the first step of whoever awaits
        step = Step.__new__(Step)
        step._waiting = self._feed._advance()
        return step

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.take())

    cdef object take(self):
        if not self._feed.has_one():
            raise RuntimeError("a record was at hand for this await, but another reader took it first")
        return self._feed.take()


# Handed over through the type's send slot, a record costs no StopIteration. Where an interpreter does not use the slot,
# `__next__` does the same.
cdef PySendResult _send_turn(PyObject* turn, PyObject* arg, PyObject** result) except PYGEN_ERROR:
    record = (<Turn>turn).take()
    Py_INCREF(record)
    result[0] = <PyObject*>record
    return PYGEN_RETURN


(<SendingType*>Turn).tp_as_async.am_send = _send_turn


@cython.final
@cython.freelist(16)
cdef class Step:
    """An await for which no record was at hand: it waits for the feed to advance."""

    def __init__(self):
        raise TypeError("a step is made by its feed")

    def __iter__(self):
        return self

    def __next__(self):
        return self._waiting.send(None)

    def send(self, value):
        """Go on after what the event loop waited for."""
        return self._waiting.send(value)

    def throw(self, kind, value=None, traceback=None):
        """Pass an exception, such as a cancellation, on to what is waiting."""
        if value is None and traceback is None:
            return self._waiting.throw(kind)
        return self._waiting.throw(kind, value, traceback)

    def close(self):
        """Give up waiting."""
        self._waiting.close()
