# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The producer's per-record path, compiled: from topic, key and value to bytes in an open batch.

`producer.py` calls it for every record; other modules work per batch. Nothing here waits or sends.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int32_t, int64_t, uint8_t

from aiokwire.producer._arguments cimport (
    OVERHEAD, bytes_of, check_topic_name, headers_of, partition_of, size_of, size_of_headers, timestamp_of, too_large,
)
from aiokwire.producer._delivery cimport Batch, Delivery, _Ready
from aiokwire.producer._partition cimport Partition, Topic
from aiokwire.producer._partitioning cimport ASK_CUSTOM, HASH_MURMUR2_RANDOM, partition_by
from aiokwire.records._builder cimport BatchBuilder, flat_headers
from aiokwire.records._hash cimport murmur2_of
from aiokwire.records._rows cimport ArrowRows, Row

import asyncio
import copy
import operator
import os
import weakref

from aiokwire.clock import wall_ms
from aiokwire.errors import ClosedError, InvalidArgument

NOWAIT = MODE_NOWAIT
SUBMIT = MODE_SUBMIT
SEND = MODE_SEND

# The sticky partition changes after this many bytes (KIP-794): few enough to spread, enough to fill batches.
cdef Py_ssize_t STICKY_BYTES = 256 * 1024
# The clocks are read after this many bytes.
cdef Py_ssize_t CLOCK_BYTES = 128 * 1024
# `submit` lets the loop turn after this many bytes, so that sockets are served while a program only submits.
cdef Py_ssize_t TURN_BYTES = 256 * 1024


@cython.final
cdef class Accumulator:
    """All open batches, and the bytes that the producer holds; calls the `Events` of the stub."""

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

    # --- open and closed ----------------------------------------------------------------------------------------------

    def open(self, loop):
        """Accept records, on this loop only."""
        self.loop = loop
        self.closed = None
        self.thread = PyThread_get_thread_ident()

    def close(self, reason):
        """Refuse records until `open`; `reason`: text of their ClosedError, or an error to copy."""
        self.closed = reason
        self.fresh = False

    cdef _wake_up(self, bint granted=False):
        """Read the clocks and check the caller, for the first record of a turn of the loop.

        `granted`: the record has waited for room since before the accumulator was closed.
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
        """Accept a record; return its `Delivery`, None if it must wait: room, others, the loop."""
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
        delivery = self.append(topic, value, key, partition, timestamp, headers, MODE_SUBMIT)
        if delivery is None:
            return self._submit_later(self.frozen((topic, value, key, partition, timestamp, headers, MODE_SUBMIT)))
        return ready_with(<Delivery>delivery, False)

    cdef _submit_later(self, tuple record):
        """Accept a record that only has to let the loop turn; queue one that needs room."""
        if self.turn_due and not self.blocked:
            topic, value, key, partition, timestamp, headers, _ = record
            delivery = self.append(topic, value, key, partition, timestamp, headers, MODE_NOWAIT)
            if delivery is not None:
                return ready_with(<Delivery>delivery, True)
        return self.events.enter_line(record)

    def submit_nowait(self, topic, value=None, key=None, *, partition=None, timestamp=None, headers=None):
        """`Producer.submit_nowait` without serializers."""
        delivery = self.append(topic, value, key, partition, timestamp, headers, MODE_NOWAIT)
        if delivery is None:
            raise self.events.full((topic, value, key, partition, timestamp, headers, MODE_NOWAIT))
        return delivery

    cdef int _place(self, Topic state, Delivery delivery, Py_ssize_t need, bytes value, bytes key, int32_t index,
                    int64_t stamp, tuple headers, int mode) except -1:
        """Choose a record's partition, and append it to the open batch there."""
        cdef Partition target
        cdef Batch batch
        cdef Row row
        row.timestamp = stamp
        row.headers = row.key = row.value = NULL
        row.headers_size = 0
        row.key_size = row.value_size = -1
        if key is not None:
            row.key = PyBytes_AS_STRING(key)
            row.key_size = PyBytes_GET_SIZE(key)
        if value is not None:
            row.value = PyBytes_AS_STRING(value)
            row.value_size = PyBytes_GET_SIZE(value)
        if index >= 0:
            if index >= state.count:
                raise InvalidArgument(no_partition(state, index))
        elif self.partitioning == ASK_CUSTOM:
            index = self.events.choose_partition(state, key, value)
        else:
            index = self._choose(state, &row, need)
        target = <Partition>state.partitions[index]
        if headers is not None and magic_of(target) < 2:
            raise InvalidArgument(no_headers(target))
        batch = self._append(target, &row, None if headers is None else flat_headers(headers))
        delivery.batch = batch
        delivery.index = batch.count
        if batch.count == 0:
            batch.first_key = key
        batch.count += 1
        if mode == MODE_SEND and not batch.urgent:
            batch.urgent = True
            self.events.on_urgent(target)
        return 0

    cdef inline int32_t _choose(self, Topic state, Row* row, Py_ssize_t need) except -1:
        """The partition that a compiled partitioner chooses."""
        cdef int32_t index = -1
        if self.partitioning:
            index = partition_by(self.partitioning, <const uint8_t*>row.key, row.key_size, state.count)
        elif row.key_size >= 0:
            index = (murmur2_of(<const uint8_t*>row.key, row.key_size) & 0x7FFFFFFF) % state.count
        if index >= 0:
            return index
        state.sticky_left -= need
        if state.sticky_left < 0 or state.sticky >= state.count:
            self._move_on(state)
        return state.sticky

    cdef inline Batch _append(self, Partition target, Row* row, list headers):
        """Append a record to its partition's open batch or, if full, the next; return the batch.

        The caller counts the record. It has `headers` or those of `row`, which are encoded.
        """
        cdef Batch batch = target.open
        cdef Py_ssize_t before
        if batch is None:
            batch = self._open(target)
        before = batch.builder.position
        try:
            if batch.builder.put(batch.builder.last_delta + 1, row.timestamp, row.key, row.key_size, row.value,
                                 row.value_size, headers, row.headers, row.headers_size) < 0:
                self.seal(target)
                self.events.on_sealed(target)
                batch = self._open(target)
                before = batch.builder.position
                batch.builder.put(0, row.timestamp, row.key, row.key_size, row.value, row.value_size, headers,
                                  row.headers, row.headers_size)
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
        return batch

    cdef _move_on(self, Topic state):
        """Choose the next sticky partition."""
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
        """Drop a batch whose first record could not be encoded."""
        cdef Batch batch = target.open
        target.open = None
        batch._finish()
        self.finish(batch)
        self.release(batch)

    def seal(self, Partition target):
        """Close the open batch of a partition to further records, and queue it for its broker."""
        cdef Batch batch = target.open
        cdef Topic state
        if batch is None:
            return
        target.open = None
        target.push(batch)
        state = <Topic>self.topics.get(target.topic)
        if state is not None and state.sticky == target.index:
            state.sticky_left = 0

    def frozen(self, tuple record):
        """Copy a record that has to wait, so that its caller may change the arguments meanwhile."""
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
        """Shorten the deadline of a record that has waited for room: its wait counts."""
        delivery.batch.deadline = min(delivery.batch.deadline, deadline)

    def need(self, value, key, headers):
        """The room that a record needs: an upper bound of its bytes."""
        cdef Py_ssize_t size = OVERHEAD + size_of(value) + size_of(key)
        return size if headers is None else size + size_of_headers(headers_of(headers))

    # --- room ---------------------------------------------------------------------------------------------------------

    def release(self, Batch batch):
        """Free the room of a batch that no socket writes; reuse its memory unless a view holds it.

        New memory for every batch would cost an eighth of the CPU time: the system clears pages.
        The memory kept stays within the producer's limit, also when many small batches have it.
        """
        cdef BatchBuilder builder = batch.drop_bytes()
        self.used -= batch.size
        batch.size = 0
        self._take_back(batch, builder)

    def release_plain(self, Batch batch):
        """Free what a compressed batch was made of: it then holds its compressed bytes only."""
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
        """Remove a batch that is done or split: no flush waits for it."""
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
        """Add a topic without requesting its metadata."""
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
        """Apply a topic's metadata: leaders (-1: none), message formats; place parked records."""
        cdef Partition target
        for index in range(len(leaders)):
            if index < len(state.partitions):
                target = <Partition>state.partitions[index]
                target.move(leaders[index], magics[index])
            else:
                state.partitions.append(Partition(state.name, index, leaders[index], magics[index]))
        for index in range(len(leaders), len(state.partitions)):
            target = <Partition>state.partitions[index]
            target.move(-1, target.magic)
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
            if entry is None:  # cancelled
                continue
            delivery, need, (value, key, partition, stamp, headers, mode) = entry
            try:
                self._place(state, delivery, need, value, key, -1 if partition is None else partition, stamp, headers,
                            mode)
            except Exception as error:
                # the caller has its delivery already: the error is the result
                delivery.batch = self._failed(state.name, -1, key, error)
                delivery.index = 0
                self.events.on_refused(delivery.batch)
                continue
            target = delivery.batch
            target.deadline = min(target.deadline, parked.deadline)
            if not targets or targets[len(targets) - 1][1] is not target:
                targets.append((0, target))
        self.finish(parked)
        parked.split_into(targets)

    cdef Batch _failed(self, str topic, int32_t partition, key, error):
        """A batch for the delivery of one record that failed alone."""
        cdef Batch batch = self._new_batch(topic, partition)
        batch.first_key = key
        batch.count = 1
        self.live.pop(batch, None)
        batch.fail(error)
        return batch

    def forget_topic(self, Topic state):
        """Drop a topic without metadata and return its parked batch, for the caller to fail."""
        parked = state.parked
        state.parked = None
        if not state.partitions and self.topics.get(state.name) is state:
            del self.topics[state.name]
            self.last_name = None
        return parked

    def split(self, Batch batch, Partition target, list records):
        """Divide a batch's decoded records into two batches, for the caller to queue (KIP-126)."""
        cdef Py_ssize_t half = (len(records) + 1) // 2
        return self._divide(batch, target, [(0, records[:half]), (half, records[half:])], [])

    def cancel(self, Batch batch, Partition target, list records, int32_t index, error):
        """Remove one decoded record; return the batches of those before and after it, in order."""
        cdef Batch gone = self._cancelled(batch, error)
        parts = [(start, part) for start, part in ((0, records[:index]), (index + 1, records[index + 1:])) if part]
        return self._divide(batch, target, parts, [(index, gone)])

    def cancel_parked(self, Batch batch, int32_t index, error):
        """Remove a record of a topic that is not known yet; return whether it was there."""
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
        cdef Batch gone = self._failed(batch.topic, batch.partition, None, error)
        gone.mark_observed()
        return gone

    cdef list _divide(self, Batch batch, Partition target, list parts, list children):
        """Encode each part of a batch's decoded records as a batch; `children` exist already."""
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
            if batch.last_error is not None:
                child.set_last_error(batch.last_error)
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
        children.sort(key=operator.itemgetter(0))
        batch.split_into(children)
        return made

    def rebuild(self, Batch batch, list records, int magic):
        """Encode a batch's decoded records again, in another message format."""
        cdef BatchBuilder builder = BatchBuilder(magic, self.batch_size)
        for record in records:
            builder.append_c(record.timestamp, record.key, record.value, record.headers or None)
        self.used += builder.position - batch.size
        batch.size = builder.position
        batch.builder = builder
        batch.data = None

    # --- in bulk ------------------------------------------------------------------------------------------------------

    def append_many(self, str topic, list records, Py_ssize_t start, list runs):
        """Accept `records[start:]`; return the index of the first that waits, or `len(records)`."""
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
        """Accept rows from `start` on; return the index of the first that waits, or `len(rows)`."""
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
        """Append a row to the open batch of its partition; False when there is no room for it."""
        cdef Row row
        cdef Batch batch
        cdef Partition target
        cdef Py_ssize_t need = OVERHEAD
        cdef int32_t at
        rows.read(index, &row)
        need += max(row.key_size, 0) + max(row.value_size, 0) + row.headers_size
        if self.used + need > self.limit:
            return False
        at = row.partition
        if at >= 0:
            if at >= state.count:
                raise rows.fault(index, no_partition(state, at))
        elif self.partitioning == ASK_CUSTOM:
            value, key, _, _, _ = rows.record(index)
            at = self.events.choose_partition(state, key, value)
        else:
            at = self._choose(state, &row, need)
        target = <Partition>state.partitions[at]
        if row.headers_size and magic_of(target) < 2:
            raise rows.fault(index, no_headers(target))
        if row.timestamp < 0:
            row.timestamp = self.wall
        batch = self._append(target, &row, None)
        rows.mark(index, taken.run_of(batch, at, row.timestamp))
        if batch.count == 0 and row.key_size >= 0:
            batch.first_key = PyBytes_FromStringAndSize(row.key, row.key_size)
        batch.count += 1
        return True


@cython.final
cdef class Runs:
    """The runs of one `append_rows`: a run counts rows of one batch, without an object per row."""

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
        """Count a row for the partition's open batch; return the number of its run."""
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


cdef inline _Ready ready_with(Delivery delivery, bint turn):
    cdef _Ready ready = _Ready.__new__(_Ready)
    ready.delivery = delivery
    ready.turn = turn
    return ready


cdef inline int magic_of(Partition target):
    """The oldest message format that the next record may need: of the open batch or the next."""
    return target.magic if target.open is None else min(target.magic, target.open.builder.magic)


cdef str no_partition(Topic state, int32_t index):
    return f"partition {index} of topic {state.name!r} does not exist: it has {state.count}"


cdef str no_headers(Partition target):
    return (
        f"headers: the broker that leads {target.topic}[{target.index}] stores message format {magic_of(target)}, "
        f"which has none"
    )


_alive = weakref.WeakSet()


def _after_fork():
    for accumulator in list(_alive):
        accumulator.close("this producer was created before a fork: create one in the child process")


os.register_at_fork(after_in_child=_after_fork)
