# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Batches of accepted records and their deliveries, compiled.

The accumulator creates them, `batch_results.py` acknowledges or fails them, users await them.

The garbage collector does not track a `Delivery`: a million of them cost it nothing. This is safe
because its reference cycles end: it refers to its batch, the batch to its waiters, and a done batch
drops its waiters and the producer. Errors are raised as copies: a batch keeps no traceback.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t

from aiokwire._returning cimport NEEDS_STOP, finish_with, forget_result
from aiokwire.records._builder cimport BatchBuilder

import asyncio
import functools

from aiokwire.log_fields import get_logger
from aiokwire.errors import DeliveryFailed
from aiokwire.records import set_producer_state
from aiokwire.types import RecordMetadata

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    ctypedef PySendResult (*sendfunc)(PyObject*, PyObject*, PyObject**) except PYGEN_ERROR

    ctypedef struct PyAsyncMethods:
        sendfunc am_send

    ctypedef PyObject* (*nextfunc)(PyObject*) except? NULL
    ctypedef void (*destructor)(PyObject*) noexcept

    ctypedef struct SendingType "PyTypeObject":
        PyAsyncMethods* tp_as_async
        nextfunc tp_iternext
        destructor tp_dealloc

logger = get_logger("aiokwire.producer")

cdef object Future = asyncio.Future
cdef object new_tuple = tuple.__new__

IN_FLIGHT = BATCH_IN_FLIGHT
DONE = BATCH_DONE
SPLIT = BATCH_SPLIT


cdef object fresh_copy(object error):
    """A copy to raise: the error that a batch keeps must not collect its waiters' tracebacks."""
    kind = type(error)
    twin = kind.__new__(kind, *error.args)
    twin.__dict__.update(error.__dict__)
    twin.__cause__ = error.__cause__
    return twin


cdef int _wake(list waiters) except -1:
    if waiters is not None:
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
    return 0


@cython.final
cdef class Batch:
    """Records of one partition that are sent together, and their result."""

    def __cinit__(self):
        self.base_offset = -1
        self.append_time = -1
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1
        self.width = 1.0

    @property
    def done(self):
        """Whether its records are acknowledged or failed."""
        return self.state == BATCH_DONE

    @property
    def remaining(self):
        """The number of its records that were not cancelled."""
        return self.count - self.cancelled

    @property
    def place(self):
        """Its topic and partition for messages; only the topic while the partition is not known."""
        return self.topic if self.partition < 0 else f"{self.topic}[{self.partition}]"

    @property
    def magic(self):
        """Its message format."""
        return self.builder.magic if self.builder is not None else 2

    def seal(self, compression, level, bint transactional=False):
        """Encode its final bytes; `data` keeps them for retries."""
        self.data = self.builder.seal(
            compression=compression, level=level, producer_id=self.producer_id, producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence, transactional=transactional,
        )
        return self.data

    cpdef number(self, int64_t producer_id, int producer_epoch, int32_t base_sequence):
        """Assign producer id, epoch and base sequence; patch them into sealed bytes."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        if self.data is not None:
            self.data = memoryview(bytearray(self.data))
            set_producer_state(self.data, producer_id, producer_epoch, base_sequence)

    def clear_sequence(self):
        """Allow it another sequence: the broker did not write it, and refuses it under this one."""
        self.base_sequence = -1

    cpdef set_last_error(self, error):
        """Keep its last attempt's error, without frames, which would keep their objects alive."""
        self.last_error = error.with_traceback(None)

    def complete(self, int64_t base_offset, int64_t append_time):
        """Acknowledge it. `append_time` is -1 unless the broker sets the timestamps."""
        self.base_offset = base_offset
        self.append_time = append_time
        self._finish()

    def fail(self, error, dict record_errors=None):
        """Give it up; `record_errors` has the errors of single records."""
        self.error = error.with_traceback(None)
        self.record_errors = record_errors
        self._finish()

    def split_into(self, list children):
        """Replace it by `children`: (index of the first record, batch) in order."""
        self.children = children
        self.state = BATCH_SPLIT
        _wake(self.waiters)
        self.waiters = None
        self._pass_on_callbacks()
        self.events = None
        self.parked = None
        self.builder = None
        self.data = None

    cdef _finish(self):
        cdef list waiters = self.waiters
        self.state = BATCH_DONE
        self.parked = None
        self.waiters = None
        _wake(waiters)
        self.loop = None
        self.events = None
        if self.callbacks is not None:
            self._call_back()

    cdef add_callback(self, tuple call):
        if self.callbacks is None:
            self.callbacks = [call]
        else:
            self.callbacks.append(call)

    cdef _call_back(self):
        cdef list callbacks = self.callbacks
        self.callbacks = None
        for delivery, function, argument in callbacks:
            try:
                function(delivery, argument)
            except Exception:
                logger.exception("a callback of %r raised", delivery)

    cdef _pass_on_callbacks(self):
        cdef list callbacks = self.callbacks
        self.callbacks = None
        if callbacks is not None:
            for delivery, function, argument in callbacks:
                (<Delivery>delivery).call_when_done(function, argument)

    cpdef add_waiter(self, waiter):
        """Wake `waiter`, a future, when this batch is done or split."""
        if self.waiters is None:
            self.waiters = [waiter]
        else:
            self.waiters.append(waiter)

    def discard_waiter(self, waiter):
        """Remove a waiter that was cancelled."""
        if self.waiters is not None and waiter in self.waiters:
            self.waiters.remove(waiter)

    def successors(self):
        """The batches that replaced it; none unless it was split."""
        return [child for _, child in self.children] if self.children is not None else []

    def mark_observed(self):
        """Keep its failure out of the log: it is reported in another way."""
        self.observed = True

    def drop_bytes(self):
        """Drop the bytes and return the builder, for reuse as soon as no view of them is left."""
        builder = self.builder
        self.builder = None
        self.data = None
        return builder

    cdef object error_of(self, int32_t index, int32_t count=1):
        """A record's error for its caller; the next ones up to `count` count as reported, too."""
        if self.error is None:
            return None
        if not self.observed:
            if self.reported is None:
                self.reported = set()
            self.reported.update(range(index, index + count))
            self.observed = len(self.reported) >= self.count - self.cancelled
        if self.record_errors is not None and index in self.record_errors:
            return self.record_errors[index]
        return self.error

    cdef bint _is_first_report(self):
        """Whether its error was not logged for this partition: many batches may share one error."""
        places = self.error.__dict__.setdefault("_logged", set())
        if (self.topic, self.partition) in places:
            return False
        places.add((self.topic, self.partition))
        return True

    def __del__(self):
        if self.error is not None and not self.observed and self.remaining and self._is_first_report():
            place = {"topic": self.topic, "partition": self.partition}
            key = "" if self.first_key is None else f", the first with key {self.first_key!r}"
            if self.reported is None and isinstance(self.error, DeliveryFailed):  # has the count and the place
                logger.error("%s (their deliveries were never awaited%s)", self.error, key, extra=place)
                return
            count = self.remaining
            left = f"{count}" if self.reported is None else f"{count - len(self.reported)} of {count}"
            logger.error(
                "%s record(s) for %s%s were not delivered, and their deliveries were never awaited: %s",
                left, self.place, key, self.error, extra=place,
            )


@cython.final
@cython.no_gc
@cython.freelist(4096)
cdef class Delivery:
    """A record's result: await its `RecordMetadata`, call `done()`, `result()`, `exception()`."""

    @property
    def topic(self):
        """The record's topic."""
        return self.batch.topic

    @property
    def partition(self):
        """The record's partition; -1 while it is not known."""
        self._follow()
        return self.batch.partition

    cdef void _follow(self):
        """Find the batch that the record is in now."""
        cdef Batch child
        cdef Batch found
        cdef int32_t first
        while self.batch.children is not None:
            found = None
            first = 0
            for start, candidate in self.batch.children:
                if <int32_t>start > self.index:
                    break
                first = start
                found = <Batch>candidate
            self.index -= first
            self.batch = found

    cdef Batch _done_batch(self):
        self._follow()
        if self.batch.state != BATCH_DONE:
            raise asyncio.InvalidStateError("this delivery is not done yet: await it")
        return self.batch

    cdef object _outcome(self):
        """The metadata of a record whose batch is done; raises its error."""
        cdef Batch batch = self.batch
        if batch.error is not None:
            raise fresh_copy(batch.error_of(self.index))
        return new_tuple(RecordMetadata, (
            batch.topic,
            batch.partition,
            batch.base_offset + self.index if batch.base_offset >= 0 else -1,
            batch.append_time if batch.append_time >= 0 else self.timestamp,
        ))

    @property
    def timestamp_type(self):
        """1 if the broker set the timestamp (log-append time), else 0."""
        return 1 if self.batch.append_time >= 0 else 0

    def done(self):
        """Whether the record was acknowledged or failed."""
        self._follow()
        return self.batch.state == BATCH_DONE

    def result(self):
        """The record's metadata.

        Raises: KafkaError: why the record failed. asyncio.InvalidStateError: it is not done yet.
        """
        self._done_batch()
        return self._outcome()

    def exception(self):
        """Why the record failed, None when it was acknowledged.

        Raises: asyncio.InvalidStateError: it is not done yet.
        """
        error = self._done_batch().error_of(self.index)
        return None if error is None else fresh_copy(error)

    @property
    def error(self):
        """Why the record failed; None if it did not, or is not done. A failure is still logged."""
        self._follow()
        if self.batch.error is None:
            return None
        if self.batch.record_errors is not None and self.index in self.batch.record_errors:
            return self.batch.record_errors[self.index]
        return self.batch.error

    def add_done_callback(self, callback):
        """Call `callback(delivery)` on the event loop soon after the record was acknowledged or
        failed. Its exceptions go to the loop's exception handler, as those of a future's callback.
        """
        self._follow()
        if self.batch.state == BATCH_DONE:
            asyncio.get_running_loop().call_soon(callback, self)
            return
        waiter = Future(loop=self.batch.loop)
        waiter.add_done_callback(functools.partial(_call_back, self, callback))
        self.batch.add_waiter(waiter)

    cpdef call_when_done(self, function, argument):
        """Call `function(delivery, argument)` in the turn of the loop that acknowledges or fails the
        record, at once if it is done. Cheaper than `add_done_callback`, for libraries: it must be
        short, and must not raise.
        """
        self._follow()
        if self.batch.state == BATCH_DONE:
            function(self, argument)
        else:
            self.batch.add_callback((self, function, argument))

    def cancel(self):
        """Withdraw the record if it was not sent yet; return whether it was withdrawn.

        Awaiting the delivery then raises DeliveryFailed with the stage "cancelled". A record in a
        batch of more than 10,000 cannot be cancelled. All others keep their order.
        """
        self._follow()
        if self.batch.events is None or self.batch.state > BATCH_SEALED or self.batch.attempts:
            return False
        return self.batch.events.on_cancel(self.batch, self.index)

    def __await__(self):
        cdef _Wait wait = _Wait.__new__(_Wait)
        wait.delivery = self
        return wait

    def __repr__(self):
        self._follow()
        state = "done" if self.batch.state == BATCH_DONE else "pending"
        return f"<Delivery to {self.batch.place}, {state}>"


def _call_back(Delivery delivery, callback, waiter):
    """Call back when the delivery is done; wait again after its batch was split."""
    if delivery.done():
        callback(delivery)
    else:
        delivery.add_done_callback(callback)


@cython.final
@cython.freelist(1024)
cdef class _Wait:
    """The steps of `await delivery`: none when done, else one future per change of its batch."""

    cdef Delivery delivery
    cdef object waiter

    def __await__(self):
        return self

    def __iter__(self):
        return self

    cdef object step(self):
        """The future to wait for; None when the delivery is done."""
        cdef Delivery delivery = self.delivery
        cdef Batch batch
        if self.waiter is not None:
            self.waiter.result()  # raises when the wait was cancelled
            self.waiter = None
        delivery._follow()
        batch = delivery.batch
        if batch.state == BATCH_DONE:
            return None
        waiter = Future(loop=batch.loop)
        batch.add_waiter(waiter)
        waiter._asyncio_future_blocking = True
        self.waiter = waiter
        return waiter

    def __next__(self):
        waiter = self.step()
        if waiter is None:
            raise StopIteration(self.delivery._outcome())
        return waiter


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class _Ready:
    """The result of `submit` with room: awaiting it returns the delivery without suspending.

    `send`, `throw` and `close` make it a coroutine for `create_task`.
    """

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if self.turn:
            self.turn = False
            return None
        raise StopIteration(self.delivery)

    def send(self, value):
        return self.__next__()

    def throw(self, kind, value=None, traceback=None):
        raise thrown(kind, value, traceback)

    def close(self):
        pass


cdef object thrown(kind, value, traceback):
    """The exception that a coroutine's `throw` raises for these arguments."""
    if isinstance(kind, BaseException):
        return kind
    if value is None:
        value = kind()
    elif not isinstance(value, BaseException):
        value = kind(value)
    return value.with_traceback(traceback)


@cython.final
cdef class WaitingRecord:
    """The result of `submit` without room: a place in line; awaiting it returns the delivery."""

    cdef readonly tuple record          # the arguments of `Accumulator.append`
    cdef readonly Py_ssize_t need       # bytes of room
    cdef readonly double deadline       # of its delivery, on the loop's clock
    cdef readonly int64_t number        # rises from place to place
    cdef readonly bint awaited          # a task waits for it
    cdef object line
    cdef object loop
    cdef readonly Delivery delivery     # once it was accepted
    cdef readonly object error          # why it was refused
    cdef list waiters

    def __init__(self, line, loop, tuple record, Py_ssize_t need, double deadline, int64_t number, bint awaited):
        self.line = line
        self.loop = loop
        self.record = record
        self.need = need
        self.deadline = deadline
        self.number = number
        self.awaited = awaited

    @property
    def done(self):
        """Whether it was accepted or refused."""
        return self.delivery is not None or self.error is not None

    def accept(self, Delivery delivery):
        """Finish with the delivery of the record."""
        self.delivery = delivery
        self._wake_waiters()

    def refuse(self, error):
        """Finish with the error of the record."""
        self.error = error
        self._wake_waiters()

    def add_waiter(self, waiter):
        """Wake `waiter`, a future, when the record has left the line."""
        if self.waiters is None:
            self.waiters = []
        self.waiters.append(waiter)

    cdef _wake_waiters(self):
        cdef list waiters = self.waiters
        self.waiters = None
        self.line = None
        _wake(waiters)

    cdef object step(self):
        """The future to wait for; None when there is a delivery."""
        if self.error is not None:
            raise fresh_copy(self.error)
        if self.delivery is not None:
            return None
        if not self.awaited:
            self.awaited = True
            self.line.on_awaited(self)
        waiter = Future(loop=self.loop)
        self.add_waiter(waiter)
        waiter._asyncio_future_blocking = True
        return waiter

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        waiter = self.step()
        if waiter is None:
            raise StopIteration(self.delivery)
        return waiter

    def send(self, value):
        return self.__next__()

    def throw(self, kind, value=None, traceback=None):
        if self.line is not None:
            self.line.withdraw(self)
        raise thrown(kind, value, traceback)

    def close(self):
        pass


# The slots that `await` uses return the same as `__next__` for less: see _returning.pxd.

cdef PyObject* _next_wait(PyObject* self) except? NULL:
    cdef _Wait wait = <_Wait>self
    waiter = wait.step()
    if waiter is not None:
        Py_INCREF(waiter)
        return <PyObject*>waiter
    outcome = wait.delivery._outcome()
    return finish_with(<PyObject*>outcome)


cdef PySendResult _send_wait(PyObject* self, PyObject* arg, PyObject** result) except PYGEN_ERROR:
    cdef _Wait wait = <_Wait>self
    waiter = wait.step()
    if waiter is not None:
        Py_INCREF(waiter)
        result[0] = <PyObject*>waiter
        return PYGEN_NEXT
    outcome = wait.delivery._outcome()
    Py_INCREF(outcome)
    result[0] = <PyObject*>outcome
    return PYGEN_RETURN


cdef PyObject* _next_ready(PyObject* self) except? NULL:
    if (<_Ready>self).turn:
        (<_Ready>self).turn = False
        Py_INCREF(None)
        return <PyObject*>None
    return finish_with(<PyObject*>(<_Ready>self).delivery)


cdef PySendResult _send_ready(PyObject* self, PyObject* arg, PyObject** result) except PYGEN_ERROR:
    if (<_Ready>self).turn:
        (<_Ready>self).turn = False
        Py_INCREF(None)
        result[0] = <PyObject*>None
        return PYGEN_NEXT
    delivery = (<_Ready>self).delivery
    Py_INCREF(delivery)
    result[0] = <PyObject*>delivery
    return PYGEN_RETURN


# A delivery keeps its batch alive: it must not stay in the StopIteration for the next await.
cdef destructor _dealloc_ready = (<SendingType*>_Ready).tp_dealloc


cdef void _dealloc_after_stop(PyObject* self) noexcept:
    forget_result(<PyObject*>(<_Ready>self).delivery)
    _dealloc_ready(self)


(<SendingType*>_Wait).tp_as_async.am_send = _send_wait
(<SendingType*>_Ready).tp_as_async.am_send = _send_ready
if NEEDS_STOP:
    (<SendingType*>_Wait).tp_iternext = _next_wait
    (<SendingType*>_Ready).tp_iternext = _next_ready
    (<SendingType*>_Ready).tp_dealloc = _dealloc_after_stop


cdef Delivery _later(Delivery first, int32_t steps):
    """The record `steps` places behind another one of its run."""
    cdef Delivery later = Delivery.__new__(Delivery)
    later.batch = first.batch
    later.index = first.index + steps
    later._follow()
    return later


def delivery_of(submitted):
    """The delivery of what `submit` returned; None while the record waits for room."""
    cdef _Ready ready
    if isinstance(submitted, WaitingRecord):
        return submitted.delivery
    ready = submitted
    return ready.delivery


def outcomes(list runs):
    """Results of runs whose batches are done, in order: (partition, first offset, count, error)."""
    cdef Delivery first
    cdef Delivery at
    cdef int32_t count
    cdef int32_t seen
    cdef int32_t part
    found = []
    for first, count in runs:
        seen = 0
        while seen < count:
            at = _later(first, seen)
            part = min(count - seen, at.batch.count - at.index) if at.batch.record_errors is None else 1
            offset = at.batch.base_offset
            error = at.batch.error_of(at.index, part)
            found.append((at.batch.partition, offset + at.index if offset >= 0 else -1, part, error))
            seen += part
    return found


def pending_in(Delivery first, int32_t count):
    """The first batch of a run that is not done; None when all are."""
    cdef Delivery at
    cdef int32_t seen = 0
    while seen < count:
        at = _later(first, seen)
        if at.batch.state != BATCH_DONE:
            return at.batch
        seen += at.batch.count - at.index
    return None
