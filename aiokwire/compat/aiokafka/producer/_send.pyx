# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""`AIOKafkaProducer.send` of a started producer, compiled.

    Send (the method) -> Sending (its coroutine) -> SendFuture (what awaiting that returns)

A record that needs no wait costs these objects beside what `Producer.submit` costs. All others take
the way of `AIOKafkaProducer.send` in Python. A `SendFuture` creates a real `asyncio.Future` when
something needs one: a callback, a wait before the record is acknowledged, a failure.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

from aiokwire._returning cimport NEEDS_STOP, finish_with
from aiokwire.producer._accumulator cimport MODE_SUBMIT, Accumulator
from aiokwire.producer._delivery cimport BATCH_DONE, Batch, Delivery

import asyncio
import warnings

from aiokwire.compat.aiokafka.producer.results import refusal, settle_failure
from aiokwire.compat.aiokafka.structs import RecordMetadata
from aiokwire.errors import KafkaError
from aiokwire.types import TopicPartition

cdef extern from "Python.h":
    void PyObject_GC_Track(PyObject*)
    void PyObject_GC_UnTrack(PyObject*)

    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    PySendResult PyIter_Send(object, object, PyObject**) except PYGEN_ERROR

    ctypedef PySendResult (*sendfunc)(PyObject*, PyObject*, PyObject**) except PYGEN_ERROR

    ctypedef struct PyAsyncMethods:
        sendfunc am_send

    ctypedef PyObject* (*nextfunc)(PyObject*) except? NULL

    ctypedef object (*allocfunc)(SendingType*, Py_ssize_t)
    ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*) except NULL

    ctypedef struct SendingType "PyTypeObject":
        PyAsyncMethods* tp_as_async
        nextfunc tp_iternext
        allocfunc tp_alloc
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags

    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    Py_ssize_t PyVectorcall_NARGS(size_t)

# The partition of the previous result: most results repeat it.
cdef object last_place = TopicPartition("", -1)
cdef object last_topic = ""
cdef int last_partition = -1


cdef object metadata_of(Delivery delivery):
    """The metadata of a record that was acknowledged."""
    global last_place, last_topic, last_partition
    cdef Batch batch = delivery.batch
    if batch.topic is not last_topic or batch.partition != last_partition:
        last_place = TopicPartition(batch.topic, batch.partition)
        last_topic = batch.topic
        last_partition = batch.partition
    # The fields are set in place: a second tuple for the constructor would cost more than all else here.
    cdef object found = (<SendingType*>RecordMetadata).tp_alloc(<SendingType*>RecordMetadata, 7)
    set_item(found, 0, batch.topic)
    set_item(found, 1, batch.partition)
    set_item(found, 2, last_place)
    set_item(found, 3, batch.base_offset + delivery.index if batch.base_offset >= 0 else -1)
    set_item(found, 4, batch.append_time if batch.append_time >= 0 else delivery.timestamp)
    set_item(found, 5, 1 if batch.append_time >= 0 else 0)
    set_item(found, 6, None)
    return found


cdef inline void set_item(object found, Py_ssize_t index, object value):
    Py_INCREF(value)  # the tuple takes a reference
    PyTuple_SET_ITEM(found, index, value)


cdef inline bint is_done(Delivery delivery):
    delivery._follow()
    return delivery.batch.state == BATCH_DONE


def settle(Delivery delivery, future):
    """Give a record's outcome to its future."""
    delivery._follow()
    if delivery.batch.error is not None:
        settle_failure(delivery, future)
    elif not future.done():  # cancelled
        future.set_result(metadata_of(delivery))


def settle_without_answer(Delivery delivery, future):
    """Give a record's outcome to its future; with acks=0 the result is None."""
    delivery._follow()
    if delivery.batch.error is not None:
        settle_failure(delivery, future)
    elif not future.done():
        future.set_result(None)


@cython.final
cdef class Send:
    """The method `send` of a started producer."""

    cdef vectorcallfunc vectorcall
    cdef object submit              # of our producer
    cdef Accumulator accumulator    # whose method `submit` is; None if the producer has hooks
    cdef object producer            # weak: the producer has this method as its attribute
    cdef object kind                # the producer's class
    cdef object function            # its `send` at the start; tools may replace it later
    cdef dict known                 # partitions by topic
    cdef object key_serializer
    cdef object value_serializer
    cdef object loop
    cdef bint answers               # False with acks=0
    cdef public bint ready          # records are accepted: a transactional producer is in a transaction
    cdef dict __dict__              # what `inspect` reads of a function

    def __init__(self, submit, producer, kind, dict known, key_serializer, value_serializer, loop, bint answers):
        owner = getattr(submit, "__self__", None)
        self.vectorcall = <vectorcallfunc>_call_send
        (<SendingType*>Send).tp_vectorcall_offset = <char*>&self.vectorcall - <char*><PyObject*>self
        (<SendingType*>Send).tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
        self.submit = submit
        self.accumulator = owner if isinstance(owner, Accumulator) else None
        self.producer = producer
        self.kind = kind
        self.function = kind.send
        self.known = known
        self.key_serializer = key_serializer
        self.value_serializer = value_serializer
        self.loop = loop
        self.answers = answers

    def __call__(self, topic, value=None, key=None, partition=None, timestamp_ms=None, headers=None):
        return self.begin(topic, value, key, partition, timestamp_ms, headers)

    cdef inline object begin(self, topic, value, key, partition, timestamp, headers):
        cdef Sending sending
        if self.kind.send is not self.function:
            return self.kind.send(self.producer(), topic, value, key, partition, timestamp, headers)
        sending = Sending.__new__(Sending)
        sending.method = self
        sending.topic = topic
        sending.value = value
        sending.key = key
        sending.partition = partition
        sending.timestamp = timestamp
        sending.headers = headers
        return sending

    def future(self, Delivery delivery):
        """Return the future of an accepted record."""
        return future_of(self, delivery)

    cdef object accept(self, Sending record):
        """The future of a record; None when it has to take the way in Python."""
        cdef object key = record.key
        cdef object value = record.value
        if not self.ready or self.accumulator is None or (value is None and key is None):
            return None
        partitions = self.known.get(record.topic)
        if partitions is None or (record.partition is not None and record.partition not in partitions):
            return None
        if self.key_serializer is not None:
            key = self.key_serializer(key)
        if self.value_serializer is not None:
            value = self.value_serializer(value)
        try:
            delivery = self.accumulator.append(
                record.topic, value, key, record.partition, record.timestamp, record.headers, MODE_SUBMIT
            )
        except KafkaError as error:
            raise refusal(error, key, value) from error
        if delivery is not None:
            return future_of(self, <Delivery>delivery)
        record.rest = self._wait(record.topic, value, key, record.partition, record.timestamp, record.headers)
        return None

    async def _wait(self, topic, value, key, partition, timestamp, headers):
        """Wait for room in the buffer, or let the loop turn."""
        try:
            return future_of(
                self, await self.submit(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
            )
        except KafkaError as error:
            raise refusal(error, key, value) from error


@cython.final
@cython.freelist(64)
cdef class Sending:
    """The coroutine of `send`: nothing happens before it is awaited."""

    cdef Send method
    cdef object topic
    cdef object value
    cdef object key
    cdef object partition
    cdef object timestamp
    cdef object headers
    cdef object rest                # the coroutine of a record that has to wait
    cdef bint begun

    __name__ = "send"
    __qualname__ = "AIOKafkaProducer.send"

    cdef object begin(self):
        """The future of the record; None when `rest` accepts it."""
        if self.begun:
            raise RuntimeError("cannot reuse already awaited coroutine")
        self.begun = True
        future = self.method.accept(self)
        if future is None and self.rest is None:
            self.rest = self.method.function(
                self.method.producer(), self.topic, self.value, self.key, self.partition, self.timestamp, self.headers
            )
        return future

    def __dealloc__(self):
        if not self.begun:
            warnings.warn("coroutine 'AIOKafkaProducer.send' was never awaited", RuntimeWarning)

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Resume, as a coroutine."""
        if self.rest is None:
            future = self.begin()
            if future is not None:
                raise StopIteration(future)
        return self.rest.send(value)

    def throw(self, kind, value=None, traceback=None):
        """Raise in the coroutine."""
        if self.rest is None:
            self.close()
            raise kind if value is None else value
        return self.rest.throw(kind) if value is None else self.rest.throw(kind, value, traceback)

    def close(self):
        """End the coroutine."""
        self.begun = True
        if self.rest is not None:
            self.rest.close()


cdef inline SendFuture future_of(Send method, Delivery delivery):
    cdef SendFuture future = SendFuture.__new__(SendFuture)
    # Without a real future it refers to nothing that refers to it: the garbage collector need not look.
    PyObject_GC_UnTrack(<PyObject*>future)
    future.method = method
    future.delivery = delivery
    return future


@cython.final
@cython.freelist(4096)
cdef class SendFuture:
    """The future of a record's `RecordMetadata`; `isinstance` takes it for an `asyncio.Future`."""

    cdef Send method
    cdef Delivery delivery
    cdef object real                # an asyncio.Future, once something needs it
    cdef object __weakref__

    _asyncio_future_blocking = False

    @property
    def __class__(self):
        return asyncio.Future

    cdef object made(self):
        """The real future."""
        if self.real is None:
            self.real = self.method.loop.create_future()
            PyObject_GC_Track(<PyObject*>self)
            self.delivery.call_when_done(settle if self.method.answers else settle_without_answer, self.real)
        return self.real

    cdef bint is_acknowledged(self):
        """Whether the result is known without a real future."""
        return self.real is None and is_done(self.delivery) and self.delivery.batch.error is None

    cdef object outcome(self):
        return metadata_of(self.delivery) if self.method.answers else None

    def done(self):
        """Whether the record is acknowledged or failed, or the future was cancelled."""
        return is_done(self.delivery) if self.real is None else self.real.done()

    def result(self):
        """Return the metadata, or raise the error."""
        return self.outcome() if self.is_acknowledged() else self.made().result()

    def exception(self):
        """Return why the record failed; None if it did not."""
        return None if self.is_acknowledged() else self.made().exception()

    def cancelled(self):
        """Whether the future was cancelled."""
        return self.real is not None and self.real.cancelled()

    def cancel(self, msg=None):
        """Cancel the future, not the record."""
        return False if self.done() else self.made().cancel(msg)

    def get_loop(self):
        """Return the producer's loop."""
        return self.method.loop

    def add_done_callback(self, function, *, context=None):
        """Call `function(future)` when it is done."""
        self.made().add_done_callback(Callback(self, function), context=context)

    def remove_done_callback(self, function):
        """Remove a callback; return the number of its entries."""
        return 0 if self.real is None else self.real.remove_done_callback(function)

    def __await__(self):
        return self if self.is_acknowledged() else self.made().__await__()

    def __iter__(self):
        return self.__await__()

    def __next__(self):
        raise StopIteration(self.outcome())

    def __getattr__(self, name):
        return getattr(self.made(), name)

    def __repr__(self):
        return f"<SendFuture {'pending' if not self.done() else 'cancelled' if self.cancelled() else 'finished'}>"


@cython.final
cdef class Callback:
    """A callback that receives the `SendFuture` instead of the real one, and is equal to its
    function."""

    cdef SendFuture future
    cdef object function

    def __init__(self, SendFuture future, function):
        self.future = future
        self.function = function

    def __call__(self, _real):
        self.function(self.future)

    def __eq__(self, other):
        return self.function == other

    def __hash__(self):
        return hash(self.function)


cdef PyObject* _call_send(PyObject* self, PyObject** given, size_t count, PyObject* names) except NULL:
    """Call `send` without a tuple and a dict of its arguments, if they are two or three."""
    cdef Py_ssize_t size = PyVectorcall_NARGS(count)
    cdef Send method = <Send>self
    cdef object result
    if names is NULL and 2 <= size <= 3:
        key = <object>given[2] if size == 3 else None
        result = method.begin(<object>given[0], <object>given[1], key, None, None, None)
    else:
        positional = tuple([<object>given[index] for index in range(size)])
        named = {}
        if names is not NULL:
            for index, name in enumerate(<tuple>names):
                named[name] = <object>given[size + index]
        result = method.__call__(*positional, **named)
    Py_INCREF(result)
    return <PyObject*>result


# The slots that `await` uses return the same as `__next__` for less: see _returning.pxd.

cdef PySendResult _send_sending(PyObject* self, PyObject* arg, PyObject** result) except PYGEN_ERROR:
    cdef Sending sending = <Sending>self
    if sending.rest is None:
        future = sending.begin()
        if future is not None:
            Py_INCREF(future)
            result[0] = <PyObject*>future
            return PYGEN_RETURN
    return PyIter_Send(sending.rest, <object>arg, result)


cdef PyObject* _next_sending(PyObject* self) except? NULL:
    cdef Sending sending = <Sending>self
    cdef PyObject* result
    if sending.rest is None:
        future = sending.begin()
        if future is not None:
            return finish_with(<PyObject*>future)
    if PyIter_Send(sending.rest, None, &result) == PYGEN_NEXT:
        return result
    future = <object>result
    Py_DECREF(future)
    return finish_with(<PyObject*>future)


cdef PySendResult _send_future(PyObject* self, PyObject* arg, PyObject** result) except PYGEN_ERROR:
    outcome = (<SendFuture>self).outcome()
    Py_INCREF(outcome)
    result[0] = <PyObject*>outcome
    return PYGEN_RETURN


cdef PyObject* _next_future(PyObject* self) except? NULL:
    outcome = (<SendFuture>self).outcome()
    return finish_with(<PyObject*>outcome)


(<SendingType*>Sending).tp_as_async.am_send = _send_sending
(<SendingType*>SendFuture).tp_as_async.am_send = _send_future
if NEEDS_STOP:
    (<SendingType*>Sending).tp_iternext = _next_sending
    (<SendingType*>SendFuture).tp_iternext = _next_future
