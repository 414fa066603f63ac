# cython: language_level=3, boundscheck=False, wraparound=False
"""`AvroPlan`: a column of flat Avro data as Arrow's buffers, without a Python object per record.

Used by the Spark source. A row that the plan refuses is null and listed, for a slower reader to
accept or to explain: the plan accepts nothing that this reader would refuse or read otherwise.
Every length is checked against the bytes that are left; memory grows with the data, never with a
length that the data claims.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from aiokwire.records._columns cimport ArrowBuffer, Growable
from aiokwire.records._varint cimport load_int32

from typing import NamedTuple

cdef extern from *:
    """
    #ifdef _MSC_VER
        #include <intrin.h>
        #define __builtin_popcount(x) ((int)__popcnt(x))
    #endif
    """
    int __builtin_popcount(unsigned int) noexcept nogil

cdef enum:
    BOOLEAN = 0
    INT = 1
    LONG = 2
    MILLIS = 3          # milliseconds in, microseconds out
    FLOAT = 4
    DOUBLE = 5
    STRING = 6
    BYTES = 7
    FIXED = 8
    ENUM = 9
    DECIMAL = 10        # bytes in, 128 bits out
    FIXED_DECIMAL = 11

_KINDS = {
    "boolean": BOOLEAN, "int": INT, "long": LONG, "millis": MILLIS, "float": FLOAT, "double": DOUBLE, "string": STRING,
    "bytes": BYTES, "fixed": FIXED, "enum": ENUM, "decimal": DECIMAL, "fixed-decimal": FIXED_DECIMAL,
}

# What a field of a row comes out as.
cdef enum:
    VALUE = 0
    NULL_VALUE = 1
    REFUSED = 2

cdef enum:
    FRAME = 5  # a zero byte and a schema's id

cdef int64_t MOST_MILLIS = 9223372036854775  # that microseconds can express in 64 bits

cdef struct Field:
    int kind
    int branches            # of its union; 0: not a union
    int null_branch         # -1: none
    int64_t size            # of a fixed
    uint64_t limit_high     # a decimal's absolute value is below it
    uint64_t limit_low
    const uint8_t** symbols
    int64_t* symbol_sizes
    int64_t symbol_count

cdef struct Target:
    Growable validity
    Growable offsets        # of bytes columns only
    Growable data

# One column of bytes, as Arrow keeps it.
cdef struct Source:
    const int32_t* offsets
    const uint8_t* data
    int64_t data_size
    const uint8_t* validity  # NULL: all rows are there
    int64_t start
    int64_t rows


class AvroField(NamedTuple):
    kind: str
    branches: int = 0
    null_branch: int = -1
    size: int = 0
    limit: int = 0
    symbols: tuple = ()


class AvroRows(NamedTuple):
    validity: object
    nulls: int
    columns: list
    refused: list


cdef inline int _long(const uint8_t** at, const uint8_t* end, int64_t* value) noexcept nogil:
    """Unlike Kafka's varints, refused where a bit would be lost."""
    cdef const uint8_t* p = at[0]
    cdef uint64_t raw = 0
    cdef int shift = 0
    while True:
        if p >= end or (shift == 63 and p[0] > 1):
            return 1
        raw |= <uint64_t>(p[0] & 0x7F) << shift
        if p[0] < 0x80:
            break
        p += 1
        shift += 7
    at[0] = p + 1
    value[0] = <int64_t>((raw >> 1) ^ (~(raw & 1) + 1))
    return 0


cdef inline int _span(const uint8_t** at, const uint8_t* end, const uint8_t** p, int64_t* size) noexcept nogil:
    """A length and as many bytes."""
    if _long(at, end, size) or size[0] < 0 or size[0] > end - at[0]:
        return 1
    p[0] = at[0]
    at[0] += size[0]
    return 0


cdef inline bint _continues(uint8_t byte) noexcept nogil:
    return byte & 0xC0 == 0x80


cdef bint _is_utf8(const uint8_t* p, int64_t size) noexcept nogil:
    """As Python's strict decoder has it: no surrogates, no longer forms than needed."""
    cdef const uint8_t* end = p + size
    cdef uint8_t seen = 0
    cdef int64_t i
    for i in range(size):
        seen |= p[i]
    if seen < 0x80:
        return True
    while p < end:
        if p[0] < 0x80:
            p += 1
        elif p[0] < 0xC2:
            return False
        elif p[0] < 0xE0:
            if end - p < 2 or not _continues(p[1]):
                return False
            p += 2
        elif p[0] < 0xF0:
            if end - p < 3 or not _continues(p[1]) or not _continues(p[2]):
                return False
            if (p[0] == 0xE0 and p[1] < 0xA0) or (p[0] == 0xED and p[1] > 0x9F):
                return False
            p += 3
        elif p[0] < 0xF5:
            if end - p < 4 or not _continues(p[1]) or not _continues(p[2]) or not _continues(p[3]):
                return False
            if (p[0] == 0xF0 and p[1] < 0x90) or (p[0] == 0xF4 and p[1] > 0x8F):
                return False
            p += 4
        else:
            return False
    return True


cdef inline int _decimal(Field* field, const uint8_t* p, int64_t size, uint64_t* out) noexcept nogil:
    """Two's complement, the most significant byte first; refused beyond the field's digits."""
    cdef uint8_t sign, fill
    cdef uint64_t high, low, most, least
    cdef int64_t i
    if size < 1:
        return 1
    sign = p[0] & 0x80
    fill = 0xFF if sign else 0
    while size > 16:
        if p[0] != fill or p[1] & 0x80 != sign:
            return 1
        p += 1
        size -= 1
    high = low = ~<uint64_t>0 if sign else 0
    for i in range(size):
        high = high << 8 | low >> 56
        low = low << 8 | p[i]
    most, least = high, low
    if sign:
        least = ~low + 1
        most = ~high + (least == 0)
    if most > field.limit_high or (most == field.limit_high and least >= field.limit_low):
        return 1
    out[0] = low
    out[1] = high
    return 0


cdef inline int _append(Target* target, int64_t row, const uint8_t* p, int64_t size) noexcept nogil:
    cdef Growable* data = &target.data
    cdef Py_ssize_t wanted = data.size + size
    cdef uint8_t* moved
    if wanted > INT32_MAX:
        return REFUSED
    if wanted > data.capacity:
        wanted = max(wanted, 2 * data.capacity)
        moved = <uint8_t*>realloc(data.p, wanted)
        if moved == NULL:
            return REFUSED
        data.p = moved
        data.capacity = wanted
    if size:
        memcpy(data.p + data.size, p, size)
        data.size += size
    (<int32_t*>target.offsets.p)[row + 1] = <int32_t>data.size
    return VALUE


cdef inline void _make_null(Field* field, Target* target, int64_t row) noexcept nogil:
    """Also takes back what the row has in this column."""
    cdef int32_t* offsets = <int32_t*>target.offsets.p
    target.validity.p[row >> 3] &= ~<uint8_t>(1 << (row & 7))
    if offsets != NULL:
        offsets[row + 1] = offsets[row]
        target.data.size = offsets[row]


cdef inline int _value(Field* field, Target* target, int64_t row, const uint8_t** at, const uint8_t* end) noexcept nogil:
    cdef const uint8_t* p
    cdef int64_t number
    cdef int kind = field.kind
    if kind == STRING or kind == BYTES:
        if _span(at, end, &p, &number) or (kind == STRING and not _is_utf8(p, number)):
            return REFUSED
        return _append(target, row, p, number)
    if kind == LONG or kind == INT or kind == MILLIS or kind == ENUM:
        if _long(at, end, &number):
            return REFUSED
        if kind == LONG:
            (<int64_t*>target.data.p)[row] = number
        elif kind == INT:
            if number != <int32_t>number:
                return REFUSED
            (<int32_t*>target.data.p)[row] = <int32_t>number
        elif kind == MILLIS:
            if number > MOST_MILLIS or number < -MOST_MILLIS:
                return REFUSED
            (<int64_t*>target.data.p)[row] = number * 1000
        else:
            if number < 0 or number >= field.symbol_count:
                return REFUSED
            return _append(target, row, field.symbols[number], field.symbol_sizes[number])
        return VALUE
    if kind == DECIMAL:
        if _span(at, end, &p, &number):
            return REFUSED
        return REFUSED if _decimal(field, p, number, <uint64_t*>target.data.p + 2 * row) else VALUE
    p = at[0]
    if end - p < field.size:
        return REFUSED
    at[0] += field.size
    if kind == BOOLEAN:
        if p[0] > 1:
            return REFUSED
        if p[0]:
            target.data.p[row >> 3] |= <uint8_t>(1 << (row & 7))
    elif kind == FLOAT:
        (<uint32_t*>target.data.p)[row] = _little(p)
    elif kind == DOUBLE:
        (<uint64_t*>target.data.p)[row] = _little(p) | <uint64_t>_little(p + 4) << 32
    elif kind == FIXED:
        return _append(target, row, p, field.size)
    elif _decimal(field, p, field.size, <uint64_t*>target.data.p + 2 * row):
        return REFUSED
    return VALUE


cdef inline uint32_t _little(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline int _branch(int branches, int null_branch, const uint8_t** at, const uint8_t* end) noexcept nogil:
    """Which of a union's types follows: a value of its type, or null."""
    cdef int64_t number
    if not branches:
        return VALUE
    if _long(at, end, &number) or number < 0 or number >= branches:
        return REFUSED
    return NULL_VALUE if number == null_branch else VALUE


cdef inline int _field(Field* field, Target* target, int64_t row, const uint8_t** at, const uint8_t* end) noexcept nogil:
    cdef int found = _branch(field.branches, field.null_branch, at, end)
    if found == VALUE:
        found = _value(field, target, row, at, end)
        if found == VALUE:
            target.validity.p[row >> 3] |= <uint8_t>(1 << (row & 7))
            return found
    _make_null(field, target, row)
    return found


cdef int _width(int kind) noexcept nogil:
    """Bytes of a value; 0 where they differ, or are less than one."""
    if kind == INT or kind == FLOAT:
        return 4
    if kind == LONG or kind == MILLIS or kind == DOUBLE:
        return 8
    return 16 if kind == DECIMAL or kind == FIXED_DECIMAL else 0


cdef int _allocate(Growable* g, Py_ssize_t size) except -1:
    g.p = <uint8_t*>calloc(1, max(size, 8))
    if g.p == NULL:
        raise MemoryError
    g.size = g.capacity = size
    return 0


cdef ArrowBuffer _hand_over(Growable* g):
    cdef ArrowBuffer buffer = ArrowBuffer.__new__(ArrowBuffer)
    cdef uint8_t* shrunk
    if g.size and g.capacity > g.size + g.size // 8 + 4096:
        shrunk = <uint8_t*>realloc(g.p, g.size)
        if shrunk != NULL:
            g.p = shrunk
    buffer.memory = g[0]
    memset(g, 0, sizeof(Growable))
    return buffer


cdef int64_t _nulls(Growable* validity, int64_t rows) noexcept nogil:
    cdef int64_t i, there = 0
    for i in range(validity.size):
        there += __builtin_popcount(validity.p[i])
    return rows - there


@cython.final
cdef class _Targets:
    """The columns of one run while they are filled; frees what was not handed over."""

    cdef Target* columns
    cdef int count
    cdef Growable validity
    cdef Growable refused  # rows, as int32

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            free(self.columns[i].validity.p)
            free(self.columns[i].offsets.p)
            free(self.columns[i].data.p)
        free(self.columns)
        free(self.validity.p)
        free(self.refused.p)

    cdef int allocate(self, Field* fields, int count, int64_t rows) except -1:
        cdef int i, width
        self.columns = <Target*>calloc(count, sizeof(Target))
        if self.columns == NULL:
            raise MemoryError
        self.count = count
        _allocate(&self.validity, (rows + 7) // 8)
        for i in range(count):
            width = _width(fields[i].kind)
            _allocate(&self.columns[i].validity, (rows + 7) // 8)
            if width:
                _allocate(&self.columns[i].data, width * rows)
            elif fields[i].kind == BOOLEAN:
                _allocate(&self.columns[i].data, (rows + 7) // 8)
            else:
                _allocate(&self.columns[i].offsets, 4 * (rows + 1))
        return 0

    cdef int refuse(self, int64_t row) noexcept nogil:
        cdef uint8_t* moved
        if self.refused.size + 4 > self.refused.capacity:
            self.refused.capacity = max(64, 2 * self.refused.capacity)
            moved = <uint8_t*>realloc(self.refused.p, self.refused.capacity)
            if moved == NULL:
                return 1
            self.refused.p = moved
        (<int32_t*>(self.refused.p + self.refused.size))[0] = <int32_t>row
        self.refused.size += 4
        return 0

    cdef object hand_over(self, int64_t rows):
        cdef int i
        cdef int64_t nulls
        columns = []
        for i in range(self.count):
            nulls = _nulls(&self.columns[i].validity, rows)
            validity = _hand_over(&self.columns[i].validity) if nulls else None
            offsets = _hand_over(&self.columns[i].offsets) if self.columns[i].offsets.p != NULL else None
            columns.append((validity, offsets, _hand_over(&self.columns[i].data), nulls))
        nulls = _nulls(&self.validity, rows)
        refused = [(<int32_t*>self.refused.p)[i] for i in range(self.refused.size // 4)]
        return AvroRows(_hand_over(&self.validity) if nulls else None, nulls, columns, refused)


@cython.final
cdef class _Column:
    """Holds the buffers of a column while they are read."""

    cdef Py_buffer[3] views
    cdef int held
    cdef Source source

    def __cinit__(self, offsets, data, validity, int64_t start, int64_t rows):
        """Raises: ValueError: the buffers are too short for the rows."""
        self.source.offsets = <const int32_t*>self._hold(offsets)
        if start < 0 or rows < 0 or start + rows > INT32_MAX or self.views[0].len < 4 * (start + rows + 1):
            raise ValueError("the offsets end before the rows")
        if data is not None:
            self.source.data = <const uint8_t*>self._hold(data)
            self.source.data_size = self.views[self.held - 1].len
        if validity is not None:
            self.source.validity = <const uint8_t*>self._hold(validity)
            if self.views[self.held - 1].len * 8 < start + rows:
                raise ValueError("the validity ends before the rows")
        self.source.start = start
        self.source.rows = rows

    cdef const void* _hold(self, buffer) except? NULL:
        PyObject_GetBuffer(buffer, &self.views[self.held], PyBUF_SIMPLE)
        self.held += 1
        return self.views[self.held - 1].buf

    def __dealloc__(self):
        cdef int i
        for i in range(self.held):
            PyBuffer_Release(&self.views[i])


cdef inline bint _row(Source* source, int64_t row, const uint8_t** p, const uint8_t** end) noexcept nogil:
    """Whether there is a value, and where; one whose offsets are not within the data is empty."""
    cdef int64_t at = source.start + row
    cdef int64_t first, last
    if source.validity != NULL and not source.validity[at >> 3] >> (at & 7) & 1:
        return False
    first, last = source.offsets[at], source.offsets[at + 1]
    if first < 0 or last < first or last > source.data_size:
        first = last = 0
    p[0] = source.data + first
    end[0] = source.data + last
    return True


@cython.final
cdef class AvroPlan:
    cdef Field* fields
    cdef int count
    cdef int branches
    cdef int null_branch
    cdef object symbols  # keeps the memory that the fields point to

    def __cinit__(self, fields, *, int branches=0, int null_branch=-1):
        fields = list(fields)
        self.symbols = []
        self.branches = branches
        self.null_branch = null_branch
        self.fields = <Field*>calloc(max(len(fields), 1), sizeof(Field))
        if self.fields == NULL:
            raise MemoryError
        for field in fields:
            self._add(field)

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            free(self.fields[i].symbols)
            free(self.fields[i].symbol_sizes)
        free(self.fields)

    cdef int _add(self, field) except -1:
        cdef Field* made = &self.fields[self.count]
        self.count += 1
        made.kind = _KINDS[field.kind]
        made.branches = field.branches
        made.null_branch = field.null_branch
        made.size = {BOOLEAN: 1, FLOAT: 4, DOUBLE: 8}.get(made.kind, field.size)
        if made.size < 0:
            raise ValueError("a size is negative")
        made.limit_high = field.limit >> 64
        made.limit_low = field.limit & 0xFFFFFFFFFFFFFFFF
        if field.symbols:
            self._add_symbols(made, field.symbols)
        return 0

    cdef int _add_symbols(self, Field* made, symbols) except -1:
        made.symbols = <const uint8_t**>calloc(len(symbols), sizeof(void*))
        made.symbol_sizes = <int64_t*>calloc(len(symbols), sizeof(int64_t))
        if made.symbols == NULL or made.symbol_sizes == NULL:
            raise MemoryError
        for symbol in symbols:
            encoded = symbol.encode()
            self.symbols.append(encoded)
            made.symbols[made.symbol_count] = <const uint8_t*>PyBytes_AS_STRING(encoded)
            made.symbol_sizes[made.symbol_count] = PyBytes_GET_SIZE(encoded)
            made.symbol_count += 1
        return 0

    def decode(self, offsets, data, validity, int64_t start, int64_t rows, ids=None):
        cdef _Column column = _Column(offsets, data, validity, start, rows)
        cdef _Targets targets = _Targets.__new__(_Targets)
        cdef uint32_t* known = NULL
        cdef Py_ssize_t known_count = -1
        cdef int failed
        targets.allocate(self.fields, self.count, rows)
        if ids is not None:
            known_count = len(ids)
            known = <uint32_t*>malloc(max(known_count, 1) * sizeof(uint32_t))
            if known == NULL:
                raise MemoryError
            for index, number in enumerate(ids):
                known[<Py_ssize_t>index] = number & 0xFFFFFFFF
        with nogil:
            failed = self._decode(&column.source, targets, known, known_count)
            free(known)
        if failed:
            raise MemoryError
        return targets.hand_over(rows)

    cdef int _decode(self, Source* source, _Targets targets, const uint32_t* ids, Py_ssize_t id_count) noexcept nogil:
        cdef int64_t row
        cdef int i, found
        cdef const uint8_t* p
        cdef const uint8_t* end
        for row in range(source.rows):
            found = NULL_VALUE
            if _row(source, row, &p, &end):
                found = REFUSED
                if id_count < 0 or _is_known(&p, end, ids, id_count):
                    found = self._decode_row(targets, row, p, end)
            if found == VALUE:
                targets.validity.p[row >> 3] |= <uint8_t>(1 << (row & 7))
                continue
            for i in range(self.count):
                _make_null(&self.fields[i], &targets.columns[i], row)
            if found == REFUSED and targets.refuse(row):
                return 1
        return 0

    cdef int _decode_row(self, _Targets targets, int64_t row, const uint8_t* p, const uint8_t* end) noexcept nogil:
        cdef int i
        cdef int found = _branch(self.branches, self.null_branch, &p, end)
        if found == VALUE:
            for i in range(self.count):
                if _field(&self.fields[i], &targets.columns[i], row, &p, end) == REFUSED:
                    return REFUSED
        return found if p == end else REFUSED


cdef inline bint _is_known(const uint8_t** p, const uint8_t* end, const uint32_t* ids, Py_ssize_t count) noexcept nogil:
    """Whether the value begins with one of these ids, which are skipped then."""
    cdef uint32_t number
    cdef Py_ssize_t i
    if end - p[0] < FRAME or p[0][0]:
        return False
    number = <uint32_t>load_int32(p[0] + 1)
    for i in range(count):
        if ids[i] == number:
            p[0] += FRAME
            return True
    return False


def framed_ids(offsets, data, validity, int64_t start, int64_t rows):
    cdef _Column column = _Column(offsets, data, validity, start, rows)
    cdef const uint8_t* p
    cdef const uint8_t* end
    cdef int64_t row
    cdef uint32_t number
    cdef int64_t last = -1
    found = {}
    for row in range(rows):
        if _row(&column.source, row, &p, &end) and end - p >= FRAME and not p[0]:
            number = <uint32_t>load_int32(p + 1)
            if number != last:
                last = number
                found[number] = None
    return list(found)
