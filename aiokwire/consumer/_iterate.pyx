# cython: language_level=3, boundscheck=False, wraparound=False
"""The delivery of records: the code that runs once per record and must cost nothing.

A `Chunk` is one fetched batch of one partition until it is delivered; a `Feed` is the source of all
readers of one consumer, `async for` included. Filled by `fetch_buffer`, drained by `reader`.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t

from aiokwire._returning cimport NEEDS_STOP, finish_with
from aiokwire.records._batch cimport RecordBatch

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR

    ctypedef PySendResult (*sendfunc)(PyObject*, PyObject*, PyObject**) except PYGEN_ERROR

    ctypedef struct PyAsyncMethods:
        sendfunc am_send

    ctypedef PyObject* (*nextfunc)(PyObject*) except? NULL

    ctypedef struct SendingType "PyTypeObject":
        PyAsyncMethods* tp_as_async
        nextfunc tp_iternext

# Records between two readings of the clock, records and bytes between two turns of the event loop, and the longest
# time in seconds for which a reader occupies the loop. The socket is read in those turns: no more than a socket buffer
# holds may be delivered in between, or the next response would arrive too slowly.
cdef enum:
    LOOK = 16
    RUN = 1024
    RUN_BYTES = 262144

cdef double PATIENCE = 0.005


@cython.final
cdef class Chunk:
    """A batch whose records are delivered one by one, or as lists.

    Undecoded until `load`. `start` is the first wanted offset, `end` the position after its last
    record (and following batches not for the reader: control batches, aborted records).
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
        """Return whether it is decoded, or its batch is uncompressed and within the bounds."""
        cdef RecordBatch batch
        if self.loaded:
            return True
        if type(self.batch) is not RecordBatch:
            return False
        batch = <RecordBatch>self.batch
        return batch.codec == 0 and not batch.exceeds(records, size)

    cpdef Py_ssize_t decode(self, int64_t records, Py_ssize_t size) except -2:
        """Decode a batch that `is_short` and return its number of records; -1 for any other.

        Raises: CorruptRecord: the bytes are corrupt.
        """
        if not self.is_short(records, size):
            return -1
        if not self.loaded:
            self.load((<RecordBatch>self.batch).records(self.start))
        return self._stop

    def add_to(self, columns):
        """Add the undelivered records to `Columns`, undecoded; none from `end` on if it was cut.

        Raises: CorruptRecord: the bytes are corrupt.
        """
        cdef RecordBatch batch = self.batch
        batch.add_to(columns, self.position, self.end if self.end <= batch.last_offset else INT64_MAX)

    cpdef extend(self, int64_t end):
        """Set the position after this chunk to `end`: no record for the reader lies in between."""
        self.end = end

    cpdef drop(self):
        """Drop the records, because the position was moved. Nothing more is delivered."""
        self.dropped = True
        self._records = None
        self._index = 0
        self._stop = 0

    @property
    def remaining(self):
        """Decoded records that were not delivered."""
        return self._stop - self._index

    @property
    def count(self):
        """All records: the decoded ones, or before `load` those of the batch."""
        return self._stop if self.loaded else self.batch.count

    @property
    def position(self):
        """The offset of the next record to deliver."""
        if not self.loaded or self.dropped:
            return self.start
        if self._index == 0:
            return self.start
        if self._index < self._stop:
            return self._records[self._index].offset
        return self.end

    @property
    def last_taken(self):
        """The offset of the last delivered record; -1 if none was, or the chunk was dropped."""
        if self._index == 0 or self._records is None:
            return -1
        return self._records[self._index - 1].offset

    cpdef object take_one(self):
        """Return the next record; `remaining` must be positive."""
        if self._index >= self._stop:
            raise IndexError("no record is left in this chunk")
        record = self._records[self._index]
        self._index += 1
        return record

    cpdef list take(self, Py_ssize_t limit):
        """Return up to `limit` records."""
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
    """The source of all readers: the chunk being delivered, and whether the loop is due a turn."""

    def __init__(self, advance):
        """The coroutine function `advance` returns the next record when `current` has none."""
        self._advance = advance
        self._turn = Turn(self)
        self._look = LOOK

    def bind(self, time):
        """Use the loop's clock."""
        self._time = time
        self.rested()

    def rested(self):
        """Start a new turn: the loop just had one."""
        self._records = 0
        self._bytes = 0
        self._look = LOOK
        self.due = False
        self._last = self._time()

    cpdef spend(self, Py_ssize_t records, Py_ssize_t size):
        """Count records and bytes that are delivered together, and read the clock."""
        self._records += records
        self._bytes += size
        if self._records >= RUN or self._bytes >= RUN_BYTES or self._time() - self._last >= PATIENCE:
            self.due = True

    cdef bint has_one(self):
        """Return whether a record is available and may be delivered before the loop's turn."""
        return not self.due and self.current is not None and self.current._index < self.current._stop

    cdef object take(self):
        """Return the next record of the current chunk."""
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
    """The awaitable that every `__anext__` of a feed returns, always the same: creating an object
    for each record would cost more than the rest of the step.

    The record is taken when this is awaited, not returned: an unawaited `__anext__` loses none.
    """

    def __init__(self, Feed feed not None):
        self._feed = feed

    def __await__(self):
        cdef Step step
        if self._feed.has_one():
            return self  # nothing runs between this and the first step of the awaiting task
        step = Step.__new__(Step)
        step._waiting = self._feed._advance()
        return step

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.take())

    cdef object take(self):
        if not self._feed.has_one():
            raise RuntimeError("another reader took the record that was available for this await")
        return self._feed.take()


# The slots that `await` uses return the same as `__next__` for less: see _returning.pxd.

cdef PyObject* _next_turn(PyObject* turn) except? NULL:
    record = (<Turn>turn).take()
    return finish_with(<PyObject*>record)


cdef PySendResult _send_turn(PyObject* turn, PyObject* arg, PyObject** result) except PYGEN_ERROR:
    record = (<Turn>turn).take()
    Py_INCREF(record)
    result[0] = <PyObject*>record
    return PYGEN_RETURN


(<SendingType*>Turn).tp_as_async.am_send = _send_turn
if NEEDS_STOP:
    (<SendingType*>Turn).tp_iternext = _next_turn


@cython.final
@cython.freelist(16)
cdef class Step:
    """An await that waits for the feed to advance, because no record was available."""

    def __init__(self):
        raise TypeError("a step is created by its feed")

    def __iter__(self):
        return self

    def __next__(self):
        return self._waiting.send(None)

    def send(self, value):
        """Resume after the event loop's wait."""
        return self._waiting.send(value)

    def throw(self, kind, value=None, traceback=None):
        """Throw an exception, such as a cancellation, into the wait."""
        if value is None and traceback is None:
            return self._waiting.throw(kind)
        return self._waiting.throw(kind, value, traceback)

    def close(self):
        """End the wait."""
        self._waiting.close()
