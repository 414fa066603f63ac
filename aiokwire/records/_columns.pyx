# cython: language_level=3, boundscheck=False, wraparound=False
"""`Columns`: records as Arrow's own buffers, copied once, straight from the batches' bytes.

`RecordBatch.columns` and `arrow.to_arrow` fill it; the filling runs without the interpreter's lock.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from aiokwire.records._cursor cimport FAULT_LENGTH, FAULT_MEMORY, FAULT_TRAILING, FINE, Cursor, Slot, next_header, next_slot
from aiokwire.records._record cimport Record

from aiokwire.errors import InvalidArgument

# What a spare block may hold: one batch of very large records must not stay for the rest of a process.
cdef Py_ssize_t LARGEST_SPARE = 32 << 20


cdef inline int _reserve(Growable* g, Py_ssize_t extra) noexcept nogil:
    cdef Py_ssize_t wanted = g.size + extra
    cdef uint8_t* moved
    if wanted <= g.capacity:
        return 0
    if wanted < 2 * g.capacity:
        wanted = 2 * g.capacity
    moved = <uint8_t*>realloc(g.p, wanted)
    if moved == NULL:
        return 1
    g.p = moved
    g.capacity = wanted
    return 0


cdef inline int _reserve_rows(BytesColumn* column, Py_ssize_t row, Py_ssize_t rows) noexcept nogil:
    if _reserve(&column.offsets, 4 * (rows + 1)) or _reserve(&column.validity, rows // 8 + 2):
        return 1
    if not row:
        (<int32_t*>column.offsets.p)[0] = 0
        column.offsets.size = 4
    return 0


cdef inline int _add(BytesColumn* column, Py_ssize_t row, const uint8_t* p, int64_t size) noexcept nogil:
    """One more row; its offset and validity bit have room already, and `_settle` counts them."""
    cdef uint8_t* bits = column.validity.p + row // 8
    cdef uint8_t mask = 1 << (row & 7)
    if not row & 7:
        bits[0] = 0
    if size < 0:
        bits[0] &= ~mask
        column.nulls += 1
    else:
        bits[0] |= mask
        if size:
            if column.data.size + size > INT32_MAX or _reserve(&column.data, size):
                return 1
            memcpy(column.data.p + column.data.size, p, size)
            column.data.size += size
    (<int32_t*>column.offsets.p)[row + 1] = <int32_t>column.data.size
    return 0


cdef inline int _add_bytes(BytesColumn* column, Py_ssize_t row, bytes content) except -1:
    if content is None:
        return _add(column, row, NULL, -1)
    return _add(column, row, <const uint8_t*>PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content))


cdef inline void _add_nulls(BytesColumn* column, Py_ssize_t row, Py_ssize_t end) noexcept nogil:
    """Rows from `row` to `end` of a column that is not wanted; `_add` has no place in it."""
    column.nulls += end - row
    _repeat_int32(column.offsets.p, row + 1, end + 1, <int32_t>column.data.size)
    memset(column.validity.p + row // 8, 0, (end + 7) // 8 - row // 8)


cdef inline void _settle(BytesColumn* column, Py_ssize_t rows) noexcept nogil:
    column.offsets.size = 4 * (rows + 1)
    column.validity.size = (rows + 7) // 8


cdef inline void _repeat_int32(uint8_t* p, Py_ssize_t row, Py_ssize_t end, int32_t number) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(row, end):
        (<int32_t*>p)[i] = number


cdef void _free(Growable* g, Spare spare, int role) noexcept:
    if spare is not None:
        spare.give(role, g)
    else:
        free(g.p)


cdef void _free_column(BytesColumn* column, Spare spare, int role) noexcept:
    _free(&column.offsets, spare, role)
    _free(&column.data, spare, role + 1)
    _free(&column.validity, spare, role + 2)


cdef inline bint _is_ascii(const uint8_t* p, int64_t size) noexcept nogil:
    cdef uint8_t seen = 0
    cdef int64_t i
    for i in range(size):
        seen |= p[i]
    return seen < 0x80


cdef class Spare:
    def __dealloc__(self):
        cdef int role, number
        for role in range(ROLES):
            for number in range(self.kept[role]):
                free(self.blocks[role][number].p)

    @property
    def size(self):
        cdef int role, number
        cdef Py_ssize_t size = 0
        for role in range(ROLES):
            for number in range(self.kept[role]):
                size += self.blocks[role][number].capacity
        return size

    cdef void take(self, int role, Growable* g) noexcept:
        if self.kept[role]:
            self.kept[role] -= 1
            g[0] = self.blocks[role][self.kept[role]]
            g.size = 0

    cdef void give(self, int role, Growable* g) noexcept:
        if g.p == NULL:
            return
        if self.kept[role] == SPARE_EACH or g.capacity > LARGEST_SPARE:
            free(g.p)
            return
        self.blocks[role][self.kept[role]] = g[0]
        self.kept[role] += 1

    cdef void take_column(self, int role, BytesColumn* column) noexcept:
        self.take(role, &column.offsets)
        self.take(role + 1, &column.data)
        self.take(role + 2, &column.validity)


@cython.no_gc
cdef class ArrowBuffer:
    """Owns the memory of one buffer."""

    def __dealloc__(self):
        _free(&self.memory, self.spare, self.role)

    def __len__(self):
        return self.memory.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory.p if self.memory.p != NULL else <void*>b"", self.memory.size, 1, flags)


cdef ArrowBuffer _hand_over(Growable* g, Spare spare, int role):
    cdef ArrowBuffer buffer = ArrowBuffer.__new__(ArrowBuffer)
    cdef uint8_t* shrunk
    if spare is None and g.size and g.capacity > g.size + g.size // 8 + 4096:
        shrunk = <uint8_t*>realloc(g.p, g.size)
        if shrunk != NULL:
            g.p = shrunk
    buffer.memory = g[0]
    buffer.spare = spare
    buffer.role = role
    memset(g, 0, sizeof(Growable))
    return buffer


cdef tuple _column(BytesColumn* column, Spare spare, int role):
    nulls = column.nulls
    offsets = _hand_over(&column.offsets, spare, role)
    data = _hand_over(&column.data, spare, role + 1)
    validity = _hand_over(&column.validity, spare, role + 2)
    return (validity if nulls else None, offsets, data, nulls)


cdef class Columns:
    def __cinit__(self, *, bint keys=True, bint values=True, bint headers=True, bint microseconds=False,
                  Spare spare=None):
        self.keys = keys
        self.values = values
        self.headers = headers
        self.microseconds = microseconds
        self.strange_row = -1
        self.topics = []
        self.taken = None
        self.spare = spare
        if spare is not None:
            spare.take(OFFSET, &self.offset)
            spare.take(TIMESTAMP, &self.timestamp)
            spare.take(TIMESTAMP_TYPE, &self.timestamp_type)
            spare.take(PARTITION, &self.partition)
            spare.take(TOPIC, &self.topic)
            spare.take(HEADER_OFFSETS, &self.header_offsets)
            spare.take_column(KEY, &self.key)
            spare.take_column(VALUE, &self.value)
            spare.take_column(HEADER_KEY, &self.header_key)
            spare.take_column(HEADER_VALUE, &self.header_value)

    def __dealloc__(self):
        _free(&self.offset, self.spare, OFFSET)
        _free(&self.timestamp, self.spare, TIMESTAMP)
        _free(&self.timestamp_type, self.spare, TIMESTAMP_TYPE)
        _free(&self.partition, self.spare, PARTITION)
        _free(&self.topic, self.spare, TOPIC)
        _free(&self.header_offsets, self.spare, HEADER_OFFSETS)
        _free_column(&self.key, self.spare, KEY)
        _free_column(&self.value, self.spare, VALUE)
        _free_column(&self.header_key, self.spare, HEADER_KEY)
        _free_column(&self.header_value, self.spare, HEADER_VALUE)

    def __len__(self):
        return self.rows

    @property
    def out_of_range(self):
        return None if self.strange_row < 0 else (self.strange_row, self.strange_time)

    @property
    def size(self):
        return self.data_size()

    cdef Py_ssize_t data_size(self) noexcept:
        """The bytes of keys, values and headers."""
        return self.key.data.size + self.value.data.size + self.header_key.data.size + self.header_value.data.size

    def buffers(self):
        cdef Spare spare = self.spare
        if self.taken is None:
            # an empty column still has one offset
            if _reserve_rows(&self.key, self.rows, 0) or _reserve_rows(&self.value, self.rows, 0):
                raise MemoryError
            if _reserve_rows(&self.header_key, self.header_rows, 0):
                raise MemoryError
            if _reserve_rows(&self.header_value, self.header_rows, 0) or _reserve(&self.header_offsets, 4):
                raise MemoryError
            if not self.rows:
                (<int32_t*>self.header_offsets.p)[0] = 0
                self.header_offsets.size = 4
            self.taken = {
                "topics": tuple(self.topics),
                "topic": _hand_over(&self.topic, spare, TOPIC),
                "partition": _hand_over(&self.partition, spare, PARTITION),
                "offset": _hand_over(&self.offset, spare, OFFSET),
                "timestamp": _hand_over(&self.timestamp, spare, TIMESTAMP),
                "timestamp_type": _hand_over(&self.timestamp_type, spare, TIMESTAMP_TYPE),
                "key": _column(&self.key, spare, KEY),
                "value": _column(&self.value, spare, VALUE),
                "header_offsets": _hand_over(&self.header_offsets, spare, HEADER_OFFSETS),
                "header_count": self.header_rows,
                "header_key": _column(&self.header_key, spare, HEADER_KEY),
                "header_value": _column(&self.header_value, spare, HEADER_VALUE),
            }
        return self.taken

    cdef int fill(self, Cursor* cursor, int64_t count, int64_t from_offset, int64_t to_offset, int64_t payload_size,
                  str topic, int partition, int timestamp_kind, int64_t* at_offset) except -1:
        """Adds a batch's rows, all or none; answers the fault, and in `at_offset` where it is."""
        if self.taken is not None:
            raise InvalidArgument("the columns were handed out already")
        if self.value.data.size + payload_size > INT32_MAX or self.key.data.size + payload_size > INT32_MAX:
            raise InvalidArgument("more than 2 GiB of records for one Arrow batch: convert fewer at a time")
        cdef int32_t topic_index
        if topic not in self.topics:
            self.topics.append(topic)
        topic_index = self.topics.index(topic)
        cdef Py_ssize_t rows = self.rows, header_rows = self.header_rows
        cdef BytesColumn key = self.key, value = self.value
        cdef BytesColumn header_key = self.header_key, header_value = self.header_value
        cdef int fault
        with nogil:
            fault = self._fill(cursor, count, from_offset, to_offset, payload_size, topic_index, partition,
                               timestamp_kind, at_offset)
        if fault:
            self._go_back(rows, header_rows, &key, &value, &header_key, &header_value)
        return fault

    def add_records(self, list records not None):
        if self.taken is not None:
            raise InvalidArgument("the columns were handed out already")
        cdef Py_ssize_t rows = self.rows, header_rows = self.header_rows
        cdef BytesColumn key = self.key, value = self.value
        cdef BytesColumn header_key = self.header_key, header_value = self.header_value
        cdef int64_t keys = self.key.data.size, values = self.value.data.size, headers = self.header_rows
        cdef Record record
        for record in records:
            keys += len(record.key) if record.key is not None else 0
            values += len(record.value) if record.value is not None else 0
            headers += len(record.headers)
        if keys > INT32_MAX or values > INT32_MAX or headers > INT32_MAX:
            raise InvalidArgument("more than 2 GiB of records for one Arrow batch: convert fewer at a time")
        if self._add_all(records, headers - header_rows):
            self._go_back(rows, header_rows, &key, &value, &header_key, &header_value)
            raise MemoryError

    cdef int _add_all(self, list records, Py_ssize_t header_count) except -1:
        """Adds delivered records, row by row; answers whether memory is short."""
        cdef Py_ssize_t row = self.rows, count = len(records)
        cdef Record record
        cdef int32_t topic_index = -1
        cdef str topic = None
        if self._reserve_all(count, 0):
            return 1
        if _reserve_rows(&self.header_key, self.header_rows, header_count):
            return 1
        if _reserve_rows(&self.header_value, self.header_rows, header_count):
            return 1
        for record in records:
            if record.topic is not topic:
                topic = record.topic
                if topic not in self.topics:
                    self.topics.append(topic)
                topic_index = self.topics.index(topic)
            if self.keys and _add_bytes(&self.key, row, record.key):
                return 1
            if self.values and _add_bytes(&self.value, row, record.value):
                return 1
            (<int64_t*>self.offset.p)[row] = record.offset
            (<int64_t*>self.timestamp.p)[row] = record.timestamp
            (<int32_t*>self.topic.p)[row] = topic_index
            (<int32_t*>self.partition.p)[row] = record.partition
            if self.microseconds:
                (<int32_t*>self.timestamp_type.p)[row] = record.timestamp_kind
            else:
                (<int8_t*>self.timestamp_type.p)[row] = record.timestamp_kind
            if self.headers:
                for name, content in record.headers:
                    if _add_bytes(&self.header_key, self.header_rows, (<str>name).encode("utf-8", "replace")):
                        return 1
                    if _add_bytes(&self.header_value, self.header_rows, content):
                        return 1
                    self.header_rows += 1
            row += 1
            (<int32_t*>self.header_offsets.p)[row] = <int32_t>self.header_rows
        if self.microseconds:
            self._change_times(self.rows, row)
        if self.header_rows:
            _settle(&self.header_key, self.header_rows)
            _settle(&self.header_value, self.header_rows)
        self._finish_rows(self.rows, row)
        return 0

    cdef void _go_back(self, Py_ssize_t rows, Py_ssize_t header_rows, BytesColumn* key, BytesColumn* value,
                       BytesColumn* header_key, BytesColumn* header_value) noexcept:
        self.rows = rows
        self.header_rows = header_rows
        self._restore(&self.key, key)
        self._restore(&self.value, value)
        self._restore(&self.header_key, header_key)
        self._restore(&self.header_value, header_value)
        self.header_offsets.size = 4 * (rows + 1) if rows else 0
        if self.strange_row >= rows:
            self.strange_row = -1

    cdef void _restore(self, BytesColumn* column, BytesColumn* before) noexcept:
        # memory may have moved: only sizes go back
        column.offsets.size = before.offsets.size
        column.data.size = before.data.size
        column.validity.size = before.validity.size
        column.nulls = before.nulls

    cdef int _reserve_all(self, Py_ssize_t count, int64_t payload_size) noexcept nogil:
        self.topic.size = 4 * self.rows
        self.partition.size = 4 * self.rows
        self.offset.size = 8 * self.rows
        self.timestamp.size = 8 * self.rows
        self.timestamp_type.size = self.rows * self._size_of_type()
        if _reserve(&self.topic, 4 * count) or _reserve(&self.partition, 4 * count) or _reserve(&self.offset, 8 * count):
            return 1
        if _reserve(&self.timestamp, 8 * count) or _reserve(&self.timestamp_type, count * self._size_of_type()):
            return 1
        if _reserve_rows(&self.key, self.rows, count) or _reserve_rows(&self.value, self.rows, count):
            return 1
        if _reserve(&self.header_offsets, 4 * (count + 1)):
            return 1
        if self.values and _reserve(&self.value.data, payload_size):
            return 1
        if not self.rows:
            (<int32_t*>self.header_offsets.p)[0] = 0
            self.header_offsets.size = 4
        return 0

    cdef int _fill(self, Cursor* cursor, int64_t count, int64_t from_offset, int64_t to_offset, int64_t payload_size,
                   int32_t topic_index, int partition, int timestamp_kind, int64_t* at_offset) noexcept nogil:
        cdef Slot slot
        cdef int fault
        cdef int64_t i
        cdef Py_ssize_t first = self.rows, row = first
        cdef bint keys = self.keys, values = self.values, headers = self.headers
        if self._reserve_all(count, payload_size):
            return FAULT_MEMORY
        cdef int64_t* offsets = <int64_t*>self.offset.p
        cdef int64_t* timestamps = <int64_t*>self.timestamp.p
        cdef int32_t* header_offsets = <int32_t*>self.header_offsets.p
        for i in range(count):
            fault = next_slot(cursor, &slot)
            if fault:
                return fault
            at_offset[0] = slot.offset
            if slot.offset < from_offset or slot.offset >= to_offset:
                continue
            if keys and _add(&self.key, row, slot.key, slot.key_size):
                return FAULT_MEMORY
            if values and _add(&self.value, row, slot.value, slot.value_size):
                return FAULT_MEMORY
            offsets[row] = slot.offset
            timestamps[row] = slot.timestamp
            row += 1
            if headers:
                if slot.header_count:
                    fault = self._fill_headers(&slot)
                    if fault:
                        return fault
                header_offsets[row] = <int32_t>self.header_rows
        if cursor.p != cursor.end:
            return FAULT_TRAILING
        # what all rows of a batch have in common is written apart, which the compiler does many at a time
        _repeat_int32(self.topic.p, first, row, topic_index)
        _repeat_int32(self.partition.p, first, row, partition)
        if self.microseconds:
            self._change_times(first, row)
            _repeat_int32(self.timestamp_type.p, first, row, timestamp_kind)
        else:
            memset(self.timestamp_type.p + first, timestamp_kind, row - first)
        if not headers:
            _repeat_int32(self.header_offsets.p, first + 1, row + 1, <int32_t>self.header_rows)
        self._finish_rows(first, row)
        return FINE

    cdef void _finish_rows(self, Py_ssize_t first, Py_ssize_t row) noexcept nogil:
        """The rows from `first` to `row` are written: sets the sizes, and nulls where nothing is wanted."""
        if not self.keys:
            _add_nulls(&self.key, first, row)
        if not self.values:
            _add_nulls(&self.value, first, row)
        _settle(&self.key, row)
        _settle(&self.value, row)
        self.rows = row
        self.topic.size = self.partition.size = self.header_offsets.size = 4 * row
        self.header_offsets.size += 4
        self.offset.size = self.timestamp.size = 8 * row
        self.timestamp_type.size = row * self._size_of_type()

    cdef inline int _size_of_type(self) noexcept nogil:
        """Spark's are integers of 32 bits."""
        return 4 if self.microseconds else 1

    cdef void _change_times(self, Py_ssize_t row, Py_ssize_t end) noexcept nogil:
        """Milliseconds become microseconds; the first that 64 bits cannot hold is remembered."""
        cdef int64_t* times = <int64_t*>self.timestamp.p
        cdef int64_t latest = INT64_MAX // 1000
        cdef Py_ssize_t i
        for i in range(row, end):
            if not -latest <= times[i] <= latest:
                if self.strange_row < 0:
                    self.strange_row, self.strange_time = i, times[i]
                times[i] = 0
            times[i] *= 1000

    cdef int _fill_headers(self, Slot* slot) noexcept nogil:
        cdef const uint8_t* p = slot.headers
        cdef const uint8_t* key
        cdef const uint8_t* value
        cdef int64_t key_size, value_size
        cdef int64_t i
        cdef int fault
        if self.header_rows + slot.header_count > INT32_MAX:
            return FAULT_MEMORY
        if _reserve_rows(&self.header_key, self.header_rows, slot.header_count):
            return FAULT_MEMORY
        if _reserve_rows(&self.header_value, self.header_rows, slot.header_count):
            return FAULT_MEMORY
        for i in range(slot.header_count):
            fault = next_header(&p, slot.end, &key, &key_size, &value, &value_size)
            if fault:
                return fault
            if _is_ascii(key, key_size):
                fault = _add(&self.header_key, self.header_rows, key, key_size)
            else:
                fault = self._add_text(key, key_size)
            if fault or _add(&self.header_value, self.header_rows, value, value_size):
                return FAULT_MEMORY
            self.header_rows += 1
        _settle(&self.header_key, self.header_rows)
        _settle(&self.header_value, self.header_rows)
        return FINE

    cdef int _add_text(self, const uint8_t* p, int64_t size) noexcept nogil:
        """A header's name that may not be UTF-8, which Arrow's strings must be."""
        with gil:
            try:
                text = (<bytes>(<const char*>p)[:size]).decode("utf-8", "replace").encode()
                return _add(&self.header_key, self.header_rows, <const uint8_t*><const char*>text, len(text))
            except MemoryError:
                return 1
