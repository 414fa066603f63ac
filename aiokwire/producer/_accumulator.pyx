# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The producer's per-record path, compiled: from a topic, key and value to bytes in the open batch of a partition.

Used by `producer.py` for every record; the other modules of the package work per batch, with the objects from here.
Nothing here waits, and nothing here knows of brokers.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int32_t, int64_t, uint8_t

from aiokwire.producer._arguments cimport (
    OVERHEAD, bytes_of, check_topic_name, headers_of, partition_of, size_of, size_of_headers, timestamp_of, too_large,
)
from aiokwire.producer._delivery cimport BATCH_DONE, BATCH_SEALED, Batch, Delivery, _Ready
from aiokwire.producer._partition cimport Partition, Topic
from aiokwire.producer._partitioning cimport ASK_CUSTOM, HASH_MURMUR2_RANDOM, partition_by
from aiokwire.producer._runs cimport Runs
from aiokwire.records._builder cimport BatchBuilder
from aiokwire.records._hash cimport murmur2_of
from aiokwire.records._rows cimport ArrowRows, Row

import asyncio
import copy
import os
import weakref

from aiokwire.clock import wall_ms
from aiokwire.errors import ClosedError, InvalidArgument

# How a record comes in.
cdef enum:
    MODE_NOWAIT = 0     # take it or refuse it
    MODE_SUBMIT = 1     # may also be asked to let the loop turn first
    MODE_SEND = 2       # somebody awaits it: its batch need not wait out the linger

NOWAIT = MODE_NOWAIT
SUBMIT = MODE_SUBMIT
SEND = MODE_SEND

# The sticky partition changes after so many bytes (KIP-794): fine enough to spread, coarse enough to fill batches.
cdef Py_ssize_t STICKY_BYTES = 256 * 1024
# The clocks are read after so many bytes.
cdef Py_ssize_t CLOCK_BYTES = 128 * 1024
# `submit` lets the loop turn after so many bytes, so that sockets are served while a loop only submits.
cdef Py_ssize_t TURN_BYTES = 256 * 1024


@cython.final
cdef class Accumulator:
    """All open batches, and the count of bytes that the producer holds.

    `events` receives, per batch, what the rest of the producer must know: `on_open(partition)`,
    `on_sealed(partition)`, `on_urgent(partition)`, `on_unknown(topic)`, `on_refused(batch)`. It chooses partitions:
    `choose_sticky(topic)` and, with a custom partitioner, `choose_partition(topic, key, value)`; and it has the line of
    records that wait for room: `enter_line(record)`.
    """

    cdef readonly dict topics
    cdef readonly dict live             # batches that are not done, in order; no values
    cdef object events
    cdef object loop
    cdef object closed                  # why nothing is accepted
    cdef list spare                     # builders to be used again
    cdef Py_ssize_t kept                # the bytes of memory that they have, those in use by batches again included
    cdef str last_name                  # the topic of the record before, and its state: most calls repeat it
    cdef Topic last_state
    cdef readonly Py_ssize_t used
    cdef readonly Py_ssize_t limit
    cdef Py_ssize_t batch_size
    cdef readonly Py_ssize_t max_record
    cdef Py_ssize_t since_turn          # bytes taken since the loop turned
    cdef Py_ssize_t since_clocks        # bytes taken since the clocks were read
    cdef double delivery_timeout
    cdef readonly double now            # the loop's clock, read once per turn and per 128 KiB
    cdef int64_t wall
    cdef int64_t opened                 # batches so far
    cdef unsigned long thread
    cdef public bint blocked            # others wait for room already: do not overtake them
    cdef readonly bint turn_due         # the loop should turn before `submit` goes on
    cdef bint fresh
    cdef int partitioning               # how a partition is chosen
    cdef object __weakref__

    def __init__(self, events, *, Py_ssize_t limit, Py_ssize_t batch_size, Py_ssize_t max_record,
                 double delivery_timeout, int partitioning=HASH_MURMUR2_RANDOM):
        self.events = events
        self.limit = limit
        self.batch_size = batch_size
        self.max_record = max_record
        self.delivery_timeout = delivery_timeout
        self.partitioning = partitioning
        self.topics = {}
        self.live = {}
        self.spare = []
        self.closed = "this producer was not started: use `async with`, or await start()"
        _alive.add(self)

    # --- the life -----------------------------------------------------------------------------------------------------

    def open(self, loop):
        """Accept records, on this loop only."""
        self.loop = loop
        self.closed = None
        self.thread = PyThread_get_thread_ident()

    def close(self, reason):
        """Accept nothing until `open`; `reason` is what callers are told: a text, or an error to be copied."""
        self.closed = reason
        self.fresh = False

    cdef _wake_up(self, bint granted=False):
        """The first record of a turn of the loop: look at the clocks, and who calls.

        `granted`: the record was given before the accumulator was closed, and has waited for room since.
        """
        if self.closed is not None and not granted:
            raise copy.copy(self.closed) if isinstance(self.closed, Exception) else ClosedError(self.closed)
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self.loop:
            raise ClosedError(
                "this producer belongs to another event loop: use a producer in the loop and thread that started it"
            )
        self._read_clocks()
        if self.closed is None:
            self.fresh = True
            self.loop.call_soon(self._turned)

    def _turned(self):
        self.fresh = False
        self.turn_due = False
        self.since_turn = 0

    cdef _read_clocks(self):
        self.now = self.loop.time()
        self.wall = wall_ms()
        self.since_clocks = 0

    cdef _tick(self):
        self.since_turn += self.since_clocks
        self._read_clocks()
        if self.since_turn > TURN_BYTES:
            self.turn_due = True

    # --- records ------------------------------------------------------------------------------------------------------

    cpdef object append(self, topic, value, key, partition, timestamp, headers, int mode, bint granted=False):
        """Take one record: its `Delivery`, or None when it has to wait (room, its turn in the queue, the loop's turn).

        Raises: InvalidArgument, RecordRejected: for this record; nothing was accepted. ClosedError.
        """
        cdef Topic state
        cdef Delivery delivery
        cdef Py_ssize_t need = OVERHEAD
        cdef int64_t stamp
        cdef int32_t index = -1
        if not self.fresh or PyThread_get_thread_ident() != self.thread:
            self._wake_up(granted)
        if value is not None:
            if not PyBytes_CheckExact(value):
                value = bytes_of("value", value)
            need += PyBytes_GET_SIZE(value)
        if key is not None:
            if not PyBytes_CheckExact(key):
                key = bytes_of("key", key)
            need += PyBytes_GET_SIZE(key)
        if headers is not None:
            headers = headers_of(headers) or None
            if headers is not None:
                need += size_of_headers(headers)
        if need - OVERHEAD > self.max_record:
            raise too_large(topic, value, key, need - OVERHEAD, self.max_record)
        if partition is not None:
            index = partition_of(partition)
        stamp = -1 if timestamp is None else timestamp_of(timestamp)
        if type(topic) is not str:
            raise InvalidArgument(f"topic must be a str, not {type(topic).__name__}")
        if not granted and (
            self.blocked or self.used + need > self.limit or (mode == MODE_SUBMIT and self.turn_due)
        ):
            return None
        if topic is self.last_name:
            state = self.last_state
        else:
            state = self._look_up(topic)
        if stamp < 0:
            stamp = self.wall
        delivery = Delivery.__new__(Delivery)
        delivery.timestamp = stamp
        if state.count == 0:
            self._park(state, delivery, need, (value, key, partition, stamp, headers, mode))
        else:
            self._place(state, delivery, need, value, key, index, stamp, headers, mode)
        return delivery

    def submit(self, topic, value=None, key=None, *, partition=None, timestamp=None, headers=None):
        """`Producer.submit` without serializers."""
        cdef _Ready ready
        delivery = self.append(topic, value, key, partition, timestamp, headers, MODE_SUBMIT)
        if delivery is None:
            return self._submit_later(self.frozen((topic, value, key, partition, timestamp, headers, MODE_SUBMIT)))
        ready = _Ready.__new__(_Ready)
        ready.delivery = <Delivery>delivery
        return ready

    cdef _submit_later(self, tuple record):
        """A record that finds no room joins the line; one that only has to let the loop turn is taken first."""
        cdef _Ready ready
        if self.turn_due and not self.blocked:
            topic, value, key, partition, timestamp, headers, _ = record
            delivery = self.append(topic, value, key, partition, timestamp, headers, MODE_NOWAIT)
            if delivery is not None:
                ready = _Ready.__new__(_Ready)
                ready.delivery = <Delivery>delivery
                ready.turn = True
                return ready
        return self.events.enter_line(record)

    def submit_nowait(self, topic, value=None, key=None, *, partition=None, timestamp=None, headers=None):
        """`Producer.submit_nowait` without serializers."""
        delivery = self.append(topic, value, key, partition, timestamp, headers, MODE_NOWAIT)
        if delivery is None:
            raise self.events.full((topic, value, key, partition, timestamp, headers, MODE_NOWAIT))
        return delivery

    cdef int _place(self, Topic state, Delivery delivery, Py_ssize_t need, bytes value, bytes key, int32_t index,
                    int64_t stamp, tuple headers, int mode) except -1:
        """Into the open batch of its partition."""
        cdef Partition target
        cdef Batch batch
        cdef Py_ssize_t before
        if index >= 0:
            if index >= state.count:
                raise InvalidArgument(f"partition {index} of topic {state.name!r} does not exist: it has {state.count}")
        elif self.partitioning:
            index = self._choose(state, key, value, need)
        elif key is not None:
            index = (murmur2_of(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & 0x7FFFFFFF) % state.count
        else:
            state.sticky_left -= need
            if state.sticky_left < 0 or state.sticky >= state.count:
                self._move_on(state)
            index = state.sticky
        target = <Partition>state.partitions[index]
        if headers is not None and target.magic < 2:
            raise InvalidArgument(
                f"headers: the broker that leads {state.name}[{index}] stores message format {target.magic}, which has none"
            )
        batch = target.open
        if batch is None:
            batch = self._open(target)
        before = batch.builder.position
        try:
            if batch.builder.append_c(stamp, key, value, headers) < 0:
                self.seal(target)
                self.events.on_sealed(target)
                batch = self._open(target)
                before = batch.builder.position
                batch.builder.append_c(stamp, key, value, headers)
        except Exception:
            if batch.count == 0:
                self._withdraw(target)
            raise
        before = batch.builder.position - before
        batch.size += before
        self.used += before
        self.since_clocks += before
        if self.since_clocks > CLOCK_BYTES:
            self._tick()
        if batch.count == 0:
            batch.first_key = key
        delivery.batch = batch
        delivery.index = batch.count
        batch.count += 1
        if mode == MODE_SEND and not batch.urgent:
            batch.urgent = True
            self.events.on_urgent(target)
        return 0

    cdef int32_t _choose(self, Topic state, bytes key, bytes value, Py_ssize_t need) except -1:
        """The partition that another partitioner than the default gives to a record."""
        cdef int32_t index
        if self.partitioning == ASK_CUSTOM:
            return self.events.choose_partition(state, key, value)
        if key is None:
            index = partition_by(self.partitioning, NULL, -1, state.count)
        else:
            index = partition_by(self.partitioning, <const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key),
                                 state.count)
        return index if index >= 0 else self._sticky(state, need)

    cdef int32_t _sticky(self, Topic state, Py_ssize_t need) except -1:
        state.sticky_left -= need
        if state.sticky_left < 0 or state.sticky >= state.count:
            self._move_on(state)
        return state.sticky

    cdef _move_on(self, Topic state):
        """The next sticky partition."""
        state.sticky_left = min(STICKY_BYTES, self.batch_size)
        state.sticky = self.events.choose_sticky(state)

    cdef Batch _new_batch(self, str topic, int32_t partition):
        cdef Batch batch = Batch.__new__(Batch)
        batch.topic = topic
        batch.partition = partition
        batch.loop = self.loop
        batch.events = self.events
        batch.created = self.now
        self.opened += 1
        batch.order = self.opened
        batch.deadline = self.now + self.delivery_timeout
        self.live[batch] = None
        return batch

    cdef Batch _open(self, Partition target):
        cdef Batch batch = self._new_batch(target.topic, target.index)
        cdef BatchBuilder builder
        if target.magic == 2 and self.spare:
            batch.builder = self.spare.pop()
            batch.lent = batch.builder.capacity
        else:
            batch.builder = BatchBuilder(target.magic, self.batch_size)
        batch.size = batch.builder.position
        self.used += batch.size
        target.open = batch
        self.events.on_open(target)
        return batch

    cdef _withdraw(self, Partition target):
        """The record that a batch was opened for could not be encoded."""
        cdef Batch batch = target.open
        target.open = None
        batch.state = BATCH_DONE
        self.finish(batch)
        self.release(batch)

    def seal(self, Partition target):
        """The open batch of a partition takes no more records and queues up for its broker."""
        cdef Batch batch = target.open
        cdef Topic state
        if batch is None:
            return
        target.open = None
        batch.state = BATCH_SEALED
        target.push(batch)
        state = <Topic>self.topics.get(target.topic)
        if state is not None and state.sticky == target.index:
            state.sticky_left = 0

    def frozen(self, tuple record):
        """A record that has to wait: what its caller does with its arguments meanwhile does not change it."""
        topic, value, key, partition, timestamp, headers, mode = record
        return (
            topic,
            None if value is None else bytes_of("value", value),
            None if key is None else bytes_of("key", key),
            partition,
            timestamp,
            None if headers is None else headers_of(headers),
            mode,
        )

    def deliver_by(self, Delivery delivery, double deadline):
        """A record was accepted that has waited for room: its time counts from before that."""
        delivery.batch.deadline = min(delivery.batch.deadline, deadline)

    def need(self, value, key, headers):
        """The room that a record must find: an upper bound of its bytes."""
        cdef Py_ssize_t size = OVERHEAD + size_of(value) + size_of(key)
        return size if headers is None else size + size_of_headers(headers_of(headers))

    # --- room ---------------------------------------------------------------------------------------------------------

    def release(self, Batch batch):
        """A batch's bytes are on no socket any more: their room is free, its memory used again when nobody views it.

        New memory for every batch would cost an eighth of the CPU time, for pages that the system clears. What is kept
        stays within the producer's limit also where it lies in many batches with little in each.
        """
        cdef BatchBuilder builder = batch.drop_bytes()
        self.used -= batch.size
        batch.size = 0
        self._take_back(batch, builder)

    def release_plain(self, Batch batch):
        """A batch was compressed: what its bytes were made of is free, and it holds no more than them from now on."""
        cdef BatchBuilder builder = batch.builder
        if builder is None or builder.magic != 2 or not PyBytes_CheckExact(batch.data):
            return
        self.used += PyBytes_GET_SIZE(batch.data) - batch.size
        batch.size = PyBytes_GET_SIZE(batch.data)
        batch.builder = None
        self._take_back(batch, builder)

    cdef _take_back(self, Batch batch, BatchBuilder builder):
        cdef Py_ssize_t kept = self.kept - batch.lent
        self.kept = kept
        batch.lent = 0
        if builder is None or builder.magic != 2 or kept + builder.capacity > self.limit:
            return
        try:
            builder.reset()
        except BufferError:  # a socket may still have to write it
            return
        self.spare.append(builder)
        self.kept = kept + builder.capacity

    def finish(self, Batch batch):
        """A batch is done or split: it is no longer waited for by a flush."""
        self.live.pop(batch, None)

    # --- topics -------------------------------------------------------------------------------------------------------

    cdef Topic _look_up(self, str name):
        cdef Topic state = self.topics.get(name)
        if state is None:
            check_topic_name(name)
            state = self.add_topic(name)
            self.events.on_unknown(state)
        self.last_name = name
        self.last_state = state
        return state

    def add_topic(self, str name):
        """Begin a topic without asking for its metadata."""
        cdef Topic state = Topic.__new__(Topic)
        state.name = name
        self.topics[name] = state
        self.last_name = None
        return state

    cdef _park(self, Topic state, Delivery delivery, Py_ssize_t need, tuple record):
        """Keep a record until its topic's partitions are known."""
        cdef Batch batch = state.parked
        if batch is None:
            batch = self._new_batch(state.name, -1)
            batch.parked = []
            batch.first_key = record[1]
            state.parked = batch
        delivery.batch = batch
        delivery.index = batch.count
        batch.count += 1
        batch.size += need
        self.used += need
        batch.parked.append((delivery, need, record))

    def set_partitions(self, Topic state, list leaders, list magics):
        """The topic's metadata: a leader's node id (-1: none) and message format per partition. Parked records move."""
        cdef Partition target
        for index in range(len(leaders)):
            if index < len(state.partitions):
                target = <Partition>state.partitions[index]
                target.leader = leaders[index]
                target.magic = magics[index]
            else:
                state.partitions.append(Partition(state.name, index, leaders[index], magics[index]))
        for index in range(len(leaders), len(state.partitions)):
            (<Partition>state.partitions[index]).leader = -1
        state.count = len(leaders)
        if state.parked is not None and state.count:
            self._unpark(state)

    cdef _unpark(self, Topic state):
        cdef Batch parked = state.parked
        cdef Batch target
        cdef Delivery delivery
        cdef list records = parked.parked
        cdef list targets = []
        state.parked = None
        self.release(parked)
        for entry in records:
            if entry is None:  # it was cancelled
                continue
            delivery, need, (value, key, partition, stamp, headers, mode) = entry
            try:
                self._place(state, delivery, need, value, key, -1 if partition is None else partition, stamp, headers,
                            mode)
            except Exception as error:
                # the caller has been given a delivery already: the error is its result
                delivery.batch = self._failed(state.name, key, error)
                delivery.index = 0
                continue
            target = delivery.batch
            target.deadline = min(target.deadline, parked.deadline)
            if not targets or targets[len(targets) - 1][1] is not target:
                targets.append((0, target))
        self.finish(parked)
        parked.split_into(targets)

    cdef Batch _failed(self, str topic, key, error):
        cdef Batch batch = self._new_batch(topic, -1)
        batch.first_key = key
        batch.count = 1
        self.live.pop(batch, None)
        batch.fail(error)
        self.events.on_refused(batch)
        return batch

    def forget_topic(self, Topic state):
        """Its metadata could not be had: give back the parked batch, to be failed; the next record asks anew."""
        parked = state.parked
        state.parked = None
        if not state.partitions and self.topics.get(state.name) is state:
            del self.topics[state.name]
            self.last_name = None
        return parked

    def split(self, Batch batch, Partition target, list records):
        """Put a batch's decoded records into two smaller ones, to be queued in order (KIP-126)."""
        cdef Py_ssize_t half = (len(records) + 1) // 2
        return self._divide(batch, target, [(0, records[:half]), (half, records[half:])], [])

    def cancel(self, Batch batch, Partition target, list records, int32_t index, error):
        """Take one of a batch's decoded records out: the batches of those before and behind it, in order."""
        cdef Batch gone = self._cancelled(batch, error)
        parts = [(start, part) for start, part in ((0, records[:index]), (index + 1, records[index + 1:])) if part]
        return self._divide(batch, target, parts, [(index, gone)])

    def cancel_parked(self, Batch batch, int32_t index, error):
        """The same where the topic is not known yet; whether it was there."""
        entry = batch.parked[index]
        if entry is None:
            return False
        (<Delivery>entry[0]).batch = self._cancelled(batch, error)
        (<Delivery>entry[0]).index = 0
        batch.parked[index] = None
        batch.cancelled += 1
        batch.size -= <Py_ssize_t>entry[1]
        self.used -= <Py_ssize_t>entry[1]
        return True

    cdef Batch _cancelled(self, Batch batch, error):
        """What a cancelled record's delivery is about."""
        cdef Batch gone = self._new_batch(batch.topic, batch.partition)
        gone.count = 1
        self.live.pop(gone, None)
        gone.fail(error)
        gone.mark_observed()
        return gone

    cdef list _divide(self, Batch batch, Partition target, list parts, list children):
        """Put decoded records into batches of their own; `children` has those that are made already."""
        cdef Batch child
        cdef list made = []
        self.release(batch)
        for start, part in parts:
            child = self._new_batch(batch.topic, batch.partition)
            child.width = batch.width / 2
            child.order = batch.order if start == 0 else batch.order + child.width
            child.created = batch.created
            child.deadline = batch.deadline
            child.urgent = batch.urgent
            child.last_error = batch.last_error
            child.state = BATCH_SEALED
            child.first_key = part[0].key
            child.builder = BatchBuilder(target.magic, self.batch_size)
            for record in part:
                child.builder.append_c(record.timestamp, record.key, record.value, record.headers or None)
            child.count = len(part)
            child.size = child.builder.position
            self.used += child.size
            made.append(child)
            children.append((start, child))
        self.finish(batch)
        children.sort(key=_by_first)
        batch.split_into(children)
        return made

    def rebuild(self, Batch batch, list records, int magic):
        """Encode a batch's decoded records anew, in another message format."""
        cdef BatchBuilder builder = BatchBuilder(magic, self.batch_size)
        for record in records:
            builder.append_c(record.timestamp, record.key, record.value, record.headers or None)
        self.used += builder.position - batch.size
        batch.size = builder.position
        batch.builder = builder
        batch.data = None

    # --- in bulk ------------------------------------------------------------------------------------------------------

    def append_many(self, str topic, list records, Py_ssize_t start, list runs):
        """Take records from `start` on; says where it had to stop, which is their number when all were taken.

        A record is a value, or a tuple (value, key, partition, timestamp, headers). `runs` grows by
        (delivery of the first, count) for records that follow each other in one batch. The topic must be known.
        """
        cdef Py_ssize_t i
        cdef Py_ssize_t stop = len(records)
        cdef Delivery first = None
        cdef Delivery delivery
        cdef int32_t count = 0
        for i in range(start, stop):
            record = records[i]
            if isinstance(record, tuple):
                value, key, partition, timestamp, headers = record
                taken = self.append(topic, value, key, partition, timestamp, headers, MODE_SUBMIT)
            else:
                taken = self.append(topic, record, None, None, None, None, MODE_SUBMIT)
            if taken is None:
                stop = i
                break
            delivery = <Delivery>taken
            if first is not None and delivery.batch is first.batch and delivery.index == first.index + count:
                count += 1
                continue
            if first is not None:
                runs.append((first, count))
            first = delivery
            count = 1
        if first is not None:
            runs.append((first, count))
        return stop

    # --- from Arrow ---------------------------------------------------------------------------------------------------

    def append_rows(self, str topic, ArrowRows rows, int64_t start, list runs):
        """Take rows from `start` on; says where it had to stop, which is their number when all were taken.

        `runs` grows by (delivery of the first, count) per batch that took rows of this call; `rows`, which were checked
        before, note which took which. A topic that is not known yet takes none: its first record is one for `append`.

        Raises: InvalidArgument: naming the row; those before it were accepted. ClosedError.
        """
        cdef Topic state
        cdef Runs taken
        cdef int64_t index = start
        if not self.fresh or PyThread_get_thread_ident() != self.thread:
            self._wake_up()
        state = self._look_up(topic)
        if not state.count:
            return start
        taken = Runs(state.count, len(runs))
        try:
            while index < rows.count and not self.blocked and not self.turn_due:
                if not self._take_row(state, rows, index, taken):
                    break
                index += 1
        finally:
            taken.add_to(runs)
        return index

    cdef bint _take_row(self, Topic state, ArrowRows rows, int64_t index, Runs taken) except -1:
        """One row into the open batch of its partition; False when there is no room for it."""
        cdef Row row
        cdef Partition target
        cdef Batch batch
        cdef Py_ssize_t before, need = OVERHEAD
        rows.read(index, &row)
        need += max(row.key_size, 0) + max(row.value_size, 0) + row.headers_size
        if self.used + need > self.limit:
            return False
        target = self._partition_of_row(state, rows, index, &row, need)
        if row.headers_size and target.magic < 2:
            raise rows.fault(index, f"headers: the broker that leads {state.name}[{target.index}] stores message "
                                    f"format {target.magic}, which has none")
        if row.timestamp < 0:
            row.timestamp = self.wall
        batch = target.open
        if batch is None:
            batch = self._open(target)
        before = batch.builder.position
        try:
            if batch.builder.put_row(row.timestamp, row.key, row.key_size, row.value, row.value_size, row.headers,
                                     row.headers_size) < 0:
                self.seal(target)
                self.events.on_sealed(target)
                batch = self._open(target)
                before = batch.builder.position
                batch.builder.put_row(row.timestamp, row.key, row.key_size, row.value, row.value_size, row.headers,
                                      row.headers_size)
        except Exception:
            if batch.count == 0:
                self._withdraw(target)
            raise
        before = batch.builder.position - before
        batch.size += before
        self.used += before
        self.since_clocks += before
        if self.since_clocks > CLOCK_BYTES:
            self._tick()
        if batch.count == 0 and row.key_size >= 0:
            batch.first_key = PyBytes_FromStringAndSize(row.key, row.key_size)
        rows.mark(index, taken.run_of(batch, target.index, row.timestamp))
        batch.count += 1
        return True

    cdef Partition _partition_of_row(self, Topic state, ArrowRows rows, int64_t index, Row* row, Py_ssize_t need):
        cdef int32_t at = row.partition
        if at >= 0:
            if at >= state.count:
                raise rows.fault(index, f"partition {at} of topic {state.name!r} does not exist: it has {state.count}")
        elif self.partitioning:
            if self.partitioning == ASK_CUSTOM:
                value, key, _, _, _ = rows.record(index)
                at = self.events.choose_partition(state, key, value)
            else:
                at = partition_by(self.partitioning, <const uint8_t*>row.key, row.key_size, state.count)
                if at < 0:
                    at = self._sticky(state, need)
        elif row.key_size >= 0:
            at = (murmur2_of(<const uint8_t*>row.key, row.key_size) & 0x7FFFFFFF) % state.count
        else:
            state.sticky_left -= need
            if state.sticky_left < 0 or state.sticky >= state.count:
                self._move_on(state)
            at = state.sticky
        return <Partition>state.partitions[at]


def _by_first(child):
    return child[0]


_alive = weakref.WeakSet()


def _after_fork():
    for accumulator in list(_alive):
        accumulator.close("this producer was made before a fork: make a new one in the child process")


os.register_at_fork(after_in_child=_after_fork)
