# cython: language_level=3, boundscheck=False, wraparound=False
"""`ArrowRows`: records in Arrow's buffers, read there, encoded without a Python object per row.

Made by `arrow_rows.rows_of`, which knows pyarrow; `encode` gives whole batches, the accumulator
reads row by row into open batches. Each offset of Arrow is checked against its buffer's size.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from aiokwire.records._builder cimport BatchBuilder
from aiokwire.records._hash cimport murmur2_of
from aiokwire.records._varint cimport put_varint

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, RecordRejected
from aiokwire.types import Compression

cdef enum:
    LONGEST_VARINT = 10

cdef int64_t LATEST = 1 << 62  # as the producer's own timestamps


cdef class _Held:
    """A buffer that stays where it is."""
    cdef Py_buffer view
    cdef bint open

    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.open = True

    def __dealloc__(self):
        if self.open:
            PyBuffer_Release(&self.view)


cdef inline bint _is_null(const uint8_t* validity, int64_t at) noexcept nogil:
    return validity != NULL and not validity[at >> 3] >> (at & 7) & 1


cdef inline int _span(const BytesIn* column, int64_t row, int64_t* start, int64_t* stop) noexcept nogil:
    """Where a row's bytes lie: 1 when it is null, -1 when they lie outside of the data."""
    cdef int64_t at = column.first + row
    cdef int32_t[2] narrow
    cdef int64_t[2] wide
    if column.offsets == NULL or _is_null(column.validity, at):
        return 1
    if column.large:
        memcpy(wide, column.offsets + 8 * at, 16)
        start[0] = wide[0]
        stop[0] = wide[1]
    else:
        memcpy(narrow, column.offsets + 4 * at, 8)
        start[0] = narrow[0]
        stop[0] = narrow[1]
    return 0 if 0 <= start[0] <= stop[0] <= column.data_size else -1


cdef inline bint _number(const NumbersIn* column, int64_t row, int64_t* found) noexcept nogil:
    cdef int64_t at = column.first + row
    cdef int32_t narrow
    if column.data == NULL or _is_null(column.validity, at):
        return False
    if column.wide:
        memcpy(found, column.data + 8 * at, 8)
    else:
        memcpy(&narrow, column.data + 4 * at, 4)
        found[0] = narrow
    return True


cdef _check_partitions(int32_t partitions, int32_t first_partition):
    if partitions < 1 or not 0 <= first_partition < partitions:
        raise InvalidArgument(f"partitions must be at least 1, first_partition one of them: not {partitions}, "
                              f"{first_partition}")


cdef class ArrowRows:
    def __init__(self, int64_t count, *, key=None, value=None, headers=None, timestamp=None, partition=None,
                 int64_t per_ms=1):
        if count < 0 or not per_ms:
            raise InvalidArgument("count must be at least 0, per_ms not 0")
        self.count = count
        self.held = []
        self.per_ms = per_ms
        self._bind(&self.key, key, count, "key")
        self._bind(&self.value, value, count, "value")
        if headers is not None:
            lists, entries, names, contents = headers
            self._bind(&self.names, names, entries, "headers")
            self._bind(&self.contents, contents, entries, "headers")
            self._bind(&self.lists, (*lists[:3], None, lists[3]), count, "headers")
            self.lists.data_size = entries
        self._bind_numbers(&self.timestamp, timestamp, "timestamp")
        self._bind_numbers(&self.partition, partition, "partition")

    def __dealloc__(self):
        PyMem_Free(self.scratch)
        PyMem_Free(self.taken_by)

    def __len__(self):
        return self.count

    cdef const uint8_t* _hold(self, object buffer, int64_t least, str name) except? NULL:
        cdef _Held held
        if buffer is None:
            return NULL
        held = _Held(buffer)
        if held.view.len < least:
            raise InvalidArgument(f"{name}: a buffer of the Arrow array has {held.view.len} bytes, {least} are needed")
        self.held.append(held)
        return <const uint8_t*>held.view.buf if held.view.len else <const uint8_t*>b""

    cdef _bind(self, BytesIn* column, object parts, int64_t rows, str name):
        if parts is None or not rows:
            return
        validity, offsets, first, data, large = parts
        if first < 0:
            raise InvalidArgument(f"{name}: the Arrow array begins before its buffers")
        column.first = first
        column.rows = rows
        column.large = large
        column.validity = self._hold(validity, (first + rows + 7) // 8, name)
        column.data = self._hold(data, 0, name)
        column.data_size = 0 if data is None else (<_Held>self.held[len(self.held) - 1]).view.len
        column.offsets = self._hold(offsets, (first + rows + 1) * (8 if large else 4), name)

    cdef _bind_numbers(self, NumbersIn* column, object parts, str name):
        if parts is None or not self.count:
            return
        validity, first, data, wide = parts
        if first < 0:
            raise InvalidArgument(f"{name}: the Arrow array begins before its buffers")
        column.first = first
        column.wide = wide
        column.validity = self._hold(validity, (first + self.count + 7) // 8, name)
        column.data = self._hold(data, (first + self.count) * (8 if wide else 4), name)

    # --- rows ---------------------------------------------------------------------------------------------------------

    cdef object fault(self, int64_t index, str what):
        return InvalidArgument(f"row {index}: {what}")

    cdef int read(self, int64_t index, Row* row) except -1:
        """What a row holds; its headers stay valid until the next call."""
        cdef int64_t start = 0, stop = 0
        cdef int found
        found = _span(&self.key, index, &start, &stop)
        if found < 0:
            raise self.fault(index, "key: the Arrow array's offsets lie outside of its data")
        row.key = <const char*>self.key.data + start
        row.key_size = -1 if found else stop - start
        found = _span(&self.value, index, &start, &stop)
        if found < 0:
            raise self.fault(index, "value: the Arrow array's offsets lie outside of its data")
        row.value = <const char*>self.value.data + start
        row.value_size = -1 if found else stop - start
        row.headers_size = 0
        if self.lists.offsets != NULL:
            self._read_headers(index, row)
        row.timestamp = -1
        if self.timestamp.data != NULL and _number(&self.timestamp, index, &start):
            row.timestamp = self._in_ms(start, index)
        row.partition = -1
        if self.partition.data != NULL and _number(&self.partition, index, &start):
            if not 0 <= start <= INT32_MAX:
                raise self.fault(index, f"partition must be a number from 0, not {start}")
            row.partition = <int32_t>start
        return 0

    cdef int64_t _in_ms(self, int64_t stamp, int64_t index) except? -1:
        cdef int64_t ms
        if self.per_ms > 0:
            ms = stamp // self.per_ms
        else:
            ms = -1 if stamp < 0 or stamp > LATEST // -self.per_ms else stamp * -self.per_ms
        if not 0 <= ms <= LATEST:
            raise self.fault(index, "timestamp must be milliseconds from 0 on, since the year 1970")
        return ms

    cdef int _grow(self, int64_t wanted) except -1:
        cdef uint8_t* moved
        if wanted <= self.scratch_size:
            return 0
        moved = <uint8_t*>PyMem_Realloc(self.scratch, 2 * wanted)
        if moved == NULL:
            raise MemoryError
        self.scratch = moved
        self.scratch_size = 2 * wanted
        return 0

    cdef int _read_headers(self, int64_t index, Row* row) except -1:
        """Encodes a row's headers into the scratch memory."""
        cdef int64_t entry, first = 0, last = 0, start = 0, stop = 0, size = LONGEST_VARINT
        cdef int found = _span(&self.lists, index, &first, &last)
        cdef uint8_t* p
        if found < 0:
            raise self.fault(index, "headers: the Arrow array's offsets lie outside of its data")
        if found or first == last:
            return 0
        for entry in range(first, last):
            if _span(&self.names, entry, &start, &stop):
                raise self.fault(index, "headers: a header has no name")
            size += 2 * LONGEST_VARINT + stop - start
            found = _span(&self.contents, entry, &start, &stop)
            if found < 0:
                raise self.fault(index, "headers: the Arrow array's offsets lie outside of its data")
            size += 0 if found else stop - start
        self._grow(size)
        p = put_varint(self.scratch, last - first)
        for entry in range(first, last):
            _span(&self.names, entry, &start, &stop)
            p = put_varint(p, stop - start)
            memcpy(p, self.names.data + start, stop - start)
            p += stop - start
            if _span(&self.contents, entry, &start, &stop):
                p = put_varint(p, -1)
                continue
            p = put_varint(p, stop - start)
            memcpy(p, self.contents.data + start, stop - start)
            p += stop - start
        row.headers = self.scratch
        row.headers_size = p - self.scratch
        return 0

    def check(self, int64_t max_record, int32_t partitions):
        cdef Row row
        cdef int64_t index, size
        for index in range(self.count):
            self.read(index, &row)
            if row.partition >= partitions:
                raise self.fault(index, f"partition {row.partition} does not exist: there are {partitions}")
            size = max(row.key_size, 0) + max(row.value_size, 0) + row.headers_size
            if size > max_record:
                raise RecordRejected(
                    f"row {index} is too large: {size} bytes with key and headers; max_request_size allows {max_record}",
                    code=ErrorCode.MESSAGE_TOO_LARGE, request="Produce",
                )

    def record(self, int64_t index):
        """A row as objects: (value, key, partition, timestamp, headers)."""
        cdef Row row
        cdef int64_t entry, first = 0, last = 0, start = 0, stop = 0
        if not 0 <= index < self.count:
            raise IndexError(index)
        self.read(index, &row)
        headers = None
        if row.headers_size:
            headers = []
            _span(&self.lists, index, &first, &last)
            for entry in range(first, last):
                _span(&self.names, entry, &start, &stop)
                name = (<const char*>self.names.data)[start:stop].decode("utf-8", "replace")
                content = None
                if not _span(&self.contents, entry, &start, &stop):
                    content = PyBytes_FromStringAndSize(<const char*>self.contents.data + start, stop - start)
                headers.append((name, content))
        return (
            None if row.value_size < 0 else PyBytes_FromStringAndSize(row.value, row.value_size),
            None if row.key_size < 0 else PyBytes_FromStringAndSize(row.key, row.key_size),
            None if row.partition < 0 else row.partition,
            None if row.timestamp < 0 else row.timestamp,
            headers,
        )

    # --- batches ------------------------------------------------------------------------------------------------------

    def encode(self, int32_t partitions, int64_t now, *, int32_t first_partition=0, Py_ssize_t batch_size=1_000_012,
               compression=Compression.NONE, level=None):
        cdef Row row
        cdef BatchBuilder builder
        cdef int64_t index
        cdef int32_t at, turn = first_partition
        _check_partitions(partitions, first_partition)
        cdef list builders = [None] * partitions
        cdef dict batches = {}
        for index in range(self.count):
            self.read(index, &row)
            at = self._place(index, &row, partitions, &turn)
            builder = builders[at]
            if builder is None:
                builder = builders[at] = BatchBuilder(2, batch_size)
            if row.timestamp < 0:
                row.timestamp = now
            if builder.put_row(row.timestamp, row.key, row.key_size, row.value, row.value_size, row.headers,
                               row.headers_size) < 0:
                batches.setdefault(at, []).append(builder.seal(compression=compression, level=level))
                builder = builders[at] = BatchBuilder(2, batch_size)
                builder.put_row(row.timestamp, row.key, row.key_size, row.value, row.value_size, row.headers,
                                row.headers_size)
        for at in range(partitions):
            builder = builders[at]
            if builder is not None:
                batches.setdefault(at, []).append(builder.seal(compression=compression, level=level))
        return batches

    def choose(self, int32_t partitions, int32_t first_partition=0):
        cdef Row row
        cdef int64_t index
        cdef int32_t turn = first_partition
        _check_partitions(partitions, first_partition)
        chosen = bytearray(4 * self.count)
        cdef char* out = PyByteArray_AS_STRING(chosen)
        cdef int32_t at
        for index in range(self.count):
            self.read(index, &row)
            at = self._place(index, &row, partitions, &turn)
            memcpy(out + 4 * index, &at, 4)
        return chosen

    cdef int32_t _place(self, int64_t index, Row* row, int32_t partitions, int32_t* turn) except -1:
        """The partition of a row; a row without one takes that of `turn`, which advances."""
        cdef int32_t at = row.partition
        if at >= partitions:
            raise self.fault(index, f"partition {at} does not exist: there are {partitions}")
        if at >= 0:
            return at
        if row.key_size >= 0:
            return (murmur2_of(<const uint8_t*>row.key, row.key_size) & 0x7FFFFFFF) % partitions
        at = turn[0]
        turn[0] = at + 1 if at + 1 < partitions else 0
        return at

    # --- who took a row -----------------------------------------------------------------------------------------------

    cdef int mark(self, int64_t index, int32_t run) except -1:
        if self.taken_by == NULL:
            self.taken_by = <int32_t*>PyMem_Calloc(self.count, sizeof(int32_t))
            if self.taken_by == NULL:
                raise MemoryError
        self.taken_by[index] = run
        return 0

    def mark_row(self, int64_t index, int32_t run):
        """A run took the row; runs are numbered from 0."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        self.mark(index, run)

    def release(self):
        """Let go of Arrow's memory: all rows have been read."""
        self.held = []
        self.key.offsets = self.value.offsets = self.lists.offsets = NULL
        self.timestamp.data = self.partition.data = NULL

    def places(self, int64_t rows, int32_t run, int64_t start, int64_t count):
        """Which of the first `rows` rows a run took as its number `start` and the `count` - 1 after
        it: (first, last) each."""
        cdef int64_t index, seen = 0, first = -1
        found = []
        if self.taken_by == NULL or rows > self.count:
            return found
        for index in range(rows):
            if self.taken_by[index] == run and start <= seen < start + count:
                if first < 0:
                    first = index
            elif first >= 0:
                found.append((first, index - 1))
                first = -1
            seen += self.taken_by[index] == run
        if first >= 0:
            found.append((first, rows - 1))
        return found
