# cython: language_level=3, boundscheck=False, wraparound=False
"""`RecordBatch`: a view of one batch inside of a fetch response or log segment, decoded when asked.

The consumer calls `read_batches`, the broker `scan_batches`. A batch in format 2 is a 61-byte
header and records; in formats 0 and 1 a run of plain messages, or one compressed message.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from aiokwire.records._columns cimport Columns
from aiokwire.records._cursor cimport (
    FAULT_BATCH_LENGTH,
    FAULT_CODEC,
    FAULT_COUNT,
    FAULT_CRC,
    FAULT_TRAILING,
    FAULT_UNKNOWN_MAGIC,
    FINE,
    Cursor,
    Slot,
    check_headers,
    next_slot,
)
from aiokwire.records._message_set cimport Inside, Run, measure, scan_run
from aiokwire.records._record cimport Record, read_headers
from aiokwire.records._varint cimport add, load_int16, load_int32, load_int64, subtract

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records._record import FAULTS
from aiokwire.records.checksum import crc32c as _crc32c
from aiokwire.records.compression import DEFAULT_LIMIT, decompress
from aiokwire.types import Compression, TimestampType

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX
    const int PyBUF_READ
    int PyList_SetSlice(object, Py_ssize_t, Py_ssize_t, PyObject*) except -1

cdef enum:
    HEADER = 61
    MOST_FAULTS = 100  # records that `inspect` names one by one
    SMALLEST_RECORD = 7

cdef object _CODECS = tuple(Compression)
cdef object _CREATE_TIME = TimestampType.CREATE_TIME
cdef object _LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME
cdef object _NO_TIME = TimestampType.NONE


@cython.final
@cython.no_gc  # in no cycle: what it holds are bytes
cdef class RecordBatch:
    def __init__(self):
        raise TypeError("batches come from read_batches and scan_batches")

    # --- the header ---------------------------------------------------------------------------------------------------

    @property
    def compression(self):
        return _CODECS[self.codec]

    @property
    def base_offset(self):
        if self.counted < 0:
            self.decompress()
        return self.first

    @property
    def next_offset(self):
        return add(self.last_offset, 1)

    @property
    def count(self):
        if self.counted < 0:
            self.decompress()
        return self.counted

    @property
    def timestamp_type(self):
        if self.attributes & 8:
            return _LOG_APPEND_TIME
        return _CREATE_TIME if self.magic else _NO_TIME

    @property
    def is_transactional(self):
        return self.magic == 2 and self.attributes & 16 != 0

    @property
    def is_control(self):
        return self.magic == 2 and self.attributes & 32 != 0

    @property
    def delete_horizon(self):
        return self.base_timestamp if self.magic == 2 and self.attributes & 64 else None

    @property
    def last_sequence(self):
        if self.base_sequence < 0:
            return -1
        # sequence numbers start again at 0 behind the largest int32
        return (<int64_t>self.base_sequence + subtract(self.last_offset, self.first)) & 0x7FFFFFFF

    @property
    def data(self):
        return self.view[self.position:self.position + self.size]

    def __repr__(self):
        return (
            f"RecordBatch(topic={self.topic!r}, partition={self.partition}, last_offset={self.last_offset}, "
            f"magic={self.magic}, count={self.counted}, size={self.size}, compression={self.compression.name.lower()})"
        )

    # --- checks -------------------------------------------------------------------------------------------------------

    cdef object corrupt(self, int fault, int64_t offset):
        return CorruptRecord(FAULTS[fault], topic=self.topic, partition=self.partition, offset=offset)

    def verify(self):
        cdef Run run
        cdef int fault = FINE
        if self.is_part:
            raise InvalidArgument("a part of a batch has no checksum: verify the whole batch")
        if self.magic == 2:
            if not _crc_fits(self.start, self.size):
                fault = FAULT_CRC
        else:
            fault = scan_run(self.start, self.start + self.size, True, &run)
            if not fault and run.size != self.size:
                fault = FAULT_CRC
        if fault:
            raise self.corrupt(fault, self.first)
        return True

    @property
    def needs_decompression(self):
        return self.codec != 0 and self.decompressed is None

    @property
    def decompressed_size(self):
        return 0 if self.decompressed is None else PyBytes_GET_SIZE(self.decompressed)

    def decompress(self):
        self.unpack(self.limit)

    def decompress_within(self, Py_ssize_t limit):
        try:
            self.unpack(min(limit, self.limit))
        except CorruptRecord:
            return False
        return True

    cdef int unpack(self, Py_ssize_t limit) except -1:
        cdef Inside inside
        cdef int fault
        if not self.codec or self.decompressed is not None:
            return 0
        packed = PyMemoryView_FromMemory(<char*>self.payload_start, self.payload_size, PyBUF_READ)
        try:
            plain = decompress(self.codec, packed, limit)
        except CorruptRecord as error:
            raise CorruptRecord(str(error), topic=self.topic, partition=self.partition, offset=self.first) from error
        if self.decompressed is not None:
            return 0  # another thread was sooner, and may be reading what it has
        if self.magic < 2:
            fault = measure(<const uint8_t*>PyBytes_AS_STRING(plain),
                            <const uint8_t*>PyBytes_AS_STRING(plain) + PyBytes_GET_SIZE(plain), self.magic, &inside)
            if fault:
                raise self.corrupt(fault, self.last_offset)
            if self.magic:
                self.shift = subtract(self.last_offset, inside.last_offset)
            self.first = add(inside.first_offset, self.shift)
            self.last_offset = add(inside.last_offset, self.shift)
            self.counted = inside.count
        self.decompressed = plain
        return 0

    # --- parts ---------------------------------------------------------------------------------------------------------

    def is_longer_than(self, int64_t records, Py_ssize_t size):
        return self.exceeds(records, size)

    cdef bint exceeds(self, int64_t records, Py_ssize_t size) noexcept:
        cdef Py_ssize_t length = self.payload_size
        if self.is_part:
            return False
        if self.codec and self.decompressed is not None:
            length = PyBytes_GET_SIZE(self.decompressed)
        return self.counted > records or (length > size and self.counted > 1)

    def split(self, int64_t records, Py_ssize_t size):
        cdef Cursor cursor
        cdef int64_t at = self.first
        cdef Py_ssize_t index, number = 0
        cdef Piece* pieces
        cdef int fault
        cdef list parts = []
        cdef RecordBatch part
        if records < 1 or size < 1:
            raise InvalidArgument("a part has at least one record and one byte")
        self.open(&cursor)
        pieces = <Piece*>malloc(<size_t>(self.counted // records + (cursor.end - cursor.p) // size + 2) * sizeof(Piece))
        if pieces == NULL:
            raise MemoryError
        try:
            with nogil:
                fault = _cut(&cursor, self.counted, records, size, pieces, &number, &at)
            if fault:
                raise self.corrupt(fault, at)
            view = self.view if self.decompressed is None else PyMemoryView_FromObject(self.decompressed)
            start = <const uint8_t*>PyMemoryView_GET_BUFFER(view).buf
            for index in range(number):
                part = self.part(&pieces[index], view, start)
                if index + 1 < number:
                    part.last_offset = subtract(pieces[index + 1].first, 1)
                parts.append(part)
        finally:
            free(pieces)
        return parts

    cdef RecordBatch part(self, Piece* piece, object view, const uint8_t* start):
        cdef RecordBatch part = RecordBatch.__new__(RecordBatch)
        part.is_part = True
        part.view = view
        part.payload_start = piece.start
        part.payload_size = part.size = piece.end - piece.start
        part.position = piece.start - start
        part.first = piece.first
        part.counted = piece.count
        part.delta_base = self.delta_base
        part.last_offset = self.last_offset
        part.shift = self.shift
        part.limit = self.limit
        part.topic = self.topic
        part.partition = self.partition
        part.magic = self.magic
        part.attributes = self.attributes & ~7
        part.leader_epoch = self.leader_epoch
        part.base_timestamp = self.base_timestamp
        part.max_timestamp = self.max_timestamp
        part.producer_id = self.producer_id
        part.producer_epoch = self.producer_epoch
        part.base_sequence = -1
        return part

    # --- the records --------------------------------------------------------------------------------------------------

    cdef int open(self, Cursor* cursor) except -1:
        """Sets the cursor to the first record; `self.counted` is the number of records."""
        if self.codec and self.decompressed is None:
            self.decompress()
        if self.decompressed is not None:
            cursor.p = <const uint8_t*>PyBytes_AS_STRING(self.decompressed)
            cursor.end = cursor.p + PyBytes_GET_SIZE(self.decompressed)
        else:
            cursor.p = self.payload_start
            cursor.end = cursor.p + self.payload_size
        cursor.magic = self.magic
        cursor.base_offset = self.delta_base if self.magic == 2 else self.shift
        cursor.base_timestamp = self.base_timestamp
        cursor.log_append_time = self.attributes & 8
        cursor.append_timestamp = self.max_timestamp
        if self.magic == 2 and self.counted > (cursor.end - cursor.p) // SMALLEST_RECORD:
            raise self.corrupt(FAULT_COUNT, self.first)
        return 0

    def records(self, int64_t from_offset=INT64_MIN):
        cdef Cursor cursor
        cdef Slot slot
        cdef Record record
        cdef Py_ssize_t i, kept = 0
        cdef int fault
        cdef signed char kind = self.timestamp_type
        self.open(&cursor)
        cdef list out = PyList_New(self.counted)
        slot.offset = self.first
        for i in range(self.counted):
            fault = next_slot(&cursor, &slot)
            if fault:
                raise self.corrupt(fault, slot.offset)
            if slot.offset < from_offset:
                continue
            record = Record.__new__(Record)
            record.topic = self.topic
            record.partition = self.partition
            record.offset = slot.offset
            record.timestamp = slot.timestamp
            record.timestamp_kind = kind
            record.leader_epoch = self.leader_epoch
            if slot.key_size >= 0:
                record.key = PyBytes_FromStringAndSize(<const char*>slot.key, slot.key_size)
            if slot.value_size >= 0:
                record.value = PyBytes_FromStringAndSize(<const char*>slot.value, slot.value_size)
            record.headers = read_headers(&slot) if slot.header_count else ()
            Py_INCREF(record)
            PyList_SET_ITEM(out, kept, record)
            kept += 1
        if cursor.p != cursor.end:
            raise self.corrupt(FAULT_TRAILING, slot.offset)
        if kept < self.counted:
            PyList_SetSlice(out, kept, self.counted, NULL)
        return out

    def values(self, int64_t from_offset=INT64_MIN):
        cdef Cursor cursor
        cdef Slot slot
        cdef Py_ssize_t i, kept = 0
        cdef int fault
        cdef object value
        self.open(&cursor)
        cdef list out = PyList_New(self.counted)
        slot.offset = self.first
        for i in range(self.counted):
            fault = next_slot(&cursor, &slot)
            if fault:
                raise self.corrupt(fault, slot.offset)
            if slot.offset < from_offset:
                continue
            if slot.value_size < 0:
                value = None
            else:
                value = PyBytes_FromStringAndSize(<const char*>slot.value, slot.value_size)
            Py_INCREF(value)
            PyList_SET_ITEM(out, kept, value)
            kept += 1
        if cursor.p != cursor.end:
            raise self.corrupt(FAULT_TRAILING, slot.offset)
        if kept < self.counted:
            PyList_SetSlice(out, kept, self.counted, NULL)
        return out

    def add_to(self, Columns columns not None, int64_t from_offset=INT64_MIN, int64_t to_offset=INT64_MAX):
        self.pour(columns, from_offset, to_offset)

    cdef int pour(self, Columns columns, int64_t from_offset, int64_t to_offset) except -1:
        cdef Cursor cursor
        cdef int64_t at
        cdef int fault
        self.open(&cursor)
        at = self.first
        fault = columns.fill(&cursor, self.counted, from_offset, to_offset, cursor.end - cursor.p, self.topic,
                             self.partition, 1 if self.attributes & 8 else 0 if self.magic else -1, &at)
        if fault:
            raise self.corrupt(fault, at)
        return 0

    def columns(self, int64_t from_offset=INT64_MIN):
        columns = Columns()
        self.add_to(columns, from_offset)
        return columns

    @property
    def control_type(self):
        cdef Cursor cursor
        cdef Slot slot
        cdef int fault
        if not self.is_control:
            return None
        self.open(&cursor)
        if not self.counted:
            return None  # compaction has emptied it
        slot.offset = self.first
        fault = next_slot(&cursor, &slot)
        if fault:
            raise self.corrupt(fault, slot.offset)
        if slot.key_size < 4:
            raise CorruptRecord("a control record has no type", topic=self.topic, partition=self.partition,
                                offset=slot.offset)
        return load_int16(slot.key + 2)

    # --- for the broker: what the records are, without decoding them --------------------------------------------------

    def inspect(self, int64_t earliest=INT64_MIN):
        cdef Cursor cursor
        cdef Survey survey
        cdef int fault
        self.open(&cursor)
        survey.earliest = earliest
        survey.at = self.first
        with nogil:  # the largest batch takes 0.1 s: let other threads run
            fault = _survey(&cursor, self.counted, &survey)
        if fault:
            raise self.corrupt(fault, survey.at)
        contiguous = survey.contiguous and survey.expected == add(self.last_offset, 1)
        keyless = [survey.keyless[i] for i in range(survey.keyless_count)]
        late = [survey.late[i] for i in range(survey.late_count)]
        return self.counted, contiguous, survey.max_timestamp, survey.max_offset, keyless, late

    def find_timestamp(self, int64_t timestamp):
        cdef Cursor cursor
        cdef Slot slot
        cdef int64_t i
        cdef int fault
        if self.magic == 2 and self.max_timestamp < timestamp:
            return None
        self.open(&cursor)
        slot.offset = self.first
        for i in range(self.counted):
            fault = next_slot(&cursor, &slot)
            if fault:
                raise self.corrupt(fault, slot.offset)
            if slot.timestamp >= timestamp:
                return slot.offset, slot.timestamp
        return None


cdef struct Survey:
    int64_t earliest            # timestamps before it are late
    int64_t at                  # the offset of the record that is looked at
    int64_t expected
    bint contiguous
    int64_t max_timestamp
    int64_t max_offset
    int keyless_count
    int late_count
    int64_t[MOST_FAULTS] keyless
    int64_t[MOST_FAULTS] late


cdef int _survey(Cursor* cursor, int64_t count, Survey* survey) noexcept nogil:
    """Walks all records; answers the fault, and in `survey.at` where it is."""
    cdef Slot slot
    cdef int64_t i = 0
    cdef int fault
    slot.offset = survey.expected = survey.at
    survey.contiguous = True
    survey.max_timestamp = survey.max_offset = -1
    survey.keyless_count = survey.late_count = 0
    while True:
        if cursor.magic == 2 and survey.contiguous:
            i = _skim(cursor, i, count, survey)
        if i == count:
            break
        slot.offset = survey.at = subtract(survey.expected, 1) if i else survey.at
        fault = next_slot(cursor, &slot)
        survey.at = slot.offset
        if fault:
            return fault
        if slot.offset != survey.expected:
            survey.contiguous = False
        survey.expected = add(slot.offset, 1)
        if slot.timestamp > survey.max_timestamp:
            survey.max_timestamp = slot.timestamp
            survey.max_offset = slot.offset
        if slot.key_size < 0 and survey.keyless_count < MOST_FAULTS:
            survey.keyless[survey.keyless_count] = i
            survey.keyless_count += 1
        if 0 <= slot.timestamp < survey.earliest and survey.late_count < MOST_FAULTS:
            survey.late[survey.late_count] = i
            survey.late_count += 1
        i += 1
    survey.at = subtract(survey.expected, 1)
    return FINE if cursor.p == cursor.end else FAULT_TRAILING


cdef inline const uint8_t* _raw_number(const uint8_t* p, uint32_t* raw) noexcept nogil:
    """Reads a varint of up to three readable bytes, still zigzag; NULL for a longer one."""
    cdef uint32_t found = p[0]
    if found >= 0x80:
        p += 1
        found = (found & 0x7F) | <uint32_t>p[0] << 7
        if found >= 1 << 14:
            p += 1
            found = (found & 0x3FFF) | <uint32_t>p[0] << 14
            if found >= 1 << 21:
                return NULL
    raw[0] = found
    return p + 1


cdef int64_t _skim(Cursor* cursor, int64_t i, int64_t count, Survey* survey) noexcept nogil:
    """Surveys usual records of format 2 from number `i` on; returns the number of the first other.

    The checks of `next_record`, for numbers of up to three bytes, in a third of the time: all is
    kept in registers and lengths stay zigzag (even, or 1 for null). What is near the end, unsound
    or not contiguous is left where it is.
    """
    cdef const uint8_t* at = cursor.p
    cdef const uint8_t* limit = cursor.end
    cdef const uint8_t* p
    cdef const uint8_t* end
    cdef Slot slot
    cdef uint32_t raw, key, passed
    cdef int64_t timestamp
    cdef int64_t delta = subtract(survey.expected, cursor.base_offset)
    cdef uint32_t mask = 0 if cursor.log_append_time else 0xFFFFFFFF
    cdef int64_t base = cursor.append_timestamp if cursor.log_append_time else cursor.base_timestamp
    cdef int64_t newest = survey.max_timestamp, newest_delta = -1
    cdef uint64_t earliest = <uint64_t>survey.earliest if survey.earliest > 0 else 0
    if not 0 <= delta < 1 << 20:
        return i
    while i < count and limit - at >= 16:  # the attributes and four numbers
        p = _raw_number(at, &raw)
        if p == NULL or raw < 12 or raw & 1 or <int64_t>(raw >> 1) > limit - p:
            break
        end = p + (raw >> 1)
        p = _raw_number(p + 1, &passed)
        if p == NULL:
            break
        p = _raw_number(p, &raw)
        if p == NULL or raw != <uint32_t>delta << 1:
            break
        p = _raw_number(p, &key)
        if p == NULL or (key & 1 and key != 1) or <int64_t>(key >> 1) + 4 > limit - p:
            break
        p = _raw_number(p + (key >> 1), &raw)
        if p == NULL or (raw & 1 and raw != 1):
            break
        if <int64_t>(raw >> 1) + 1 > end - p:  # the count of headers must follow
            break
        p += raw >> 1
        if p + 1 != end or p[0]:
            if p[0] & 0x81:
                break
            slot.header_count = p[0] >> 1
            slot.headers = p + 1
            slot.end = end
            if check_headers(&slot):
                break
        passed &= mask
        timestamp = add(base, <int32_t>((passed >> 1) ^ (~(passed & 1) + 1)))
        if timestamp > newest:
            newest = timestamp
            newest_delta = delta
        if key == 1 and survey.keyless_count < MOST_FAULTS:
            survey.keyless[survey.keyless_count] = i
            survey.keyless_count += 1
        if <uint64_t>timestamp < earliest and survey.late_count < MOST_FAULTS:
            survey.late[survey.late_count] = i
            survey.late_count += 1
        delta += 1
        at = end
        i += 1
    cursor.p = at
    survey.expected = add(cursor.base_offset, delta)
    if newest_delta >= 0:
        survey.max_timestamp = newest
        survey.max_offset = add(cursor.base_offset, newest_delta)
    return i


cdef bint _may_be_produced(RecordBatch batch):
    """Whether a client may send such a header."""
    return (
        not batch.attributes & 32
        and batch.counted > 0
        and 0 <= batch.first <= batch.last_offset
        and batch.last_offset - batch.first == batch.counted - 1
        and (batch.producer_id < 0 or batch.base_sequence >= 0)
        and (batch.producer_id >= 0 or not batch.attributes & 16)
    )


cdef int _cut(Cursor* cursor, int64_t count, int64_t records, Py_ssize_t size, Piece* pieces, Py_ssize_t* number,
              int64_t* at) noexcept nogil:
    """Walks all records; answers the fault, and in `at` where it is."""
    cdef Slot slot
    cdef Piece* piece = NULL
    cdef const uint8_t* start
    cdef int64_t index
    cdef int fault
    slot.offset = at[0]
    for index in range(count):
        start = cursor.p
        fault = next_slot(cursor, &slot)
        at[0] = slot.offset
        if fault:
            return fault
        if piece == NULL or piece.count == records or piece.end - piece.start >= size:
            piece = &pieces[number[0]]
            number[0] += 1
            piece.start = start
            piece.count = 0
            piece.first = slot.offset
        piece.count += 1
        piece.end = cursor.p
    return FINE if cursor.p == cursor.end else FAULT_TRAILING


cdef bint _crc_fits(const uint8_t* p, Py_ssize_t size) except -1:
    cdef uint32_t found = _crc32c(PyMemoryView_FromMemory(<char*>p + 21, size - 21, PyBUF_READ))
    return found == <uint32_t>load_int32(p + 17)


cdef int _open_batch(RecordBatch batch, const uint8_t* p, Py_ssize_t left, bint check_crcs) except -1:
    """Reads the header at `p`; answers a fault. A size of 0: the batch is truncated."""
    cdef Py_ssize_t size
    if left < 17:
        return FINE
    if p[16] < 2:
        return _open_messages(batch, p, left, check_crcs)
    if p[16] > 2:
        return FAULT_UNKNOWN_MAGIC
    size = 12 + <Py_ssize_t>load_int32(p + 8)
    if size < HEADER:
        return FAULT_BATCH_LENGTH
    if size > left:
        return FINE
    batch.size = size
    batch.start = p
    batch.magic = 2
    batch.attributes = load_int16(p + 21) & 0xFFFF
    batch.codec = batch.attributes & 7
    batch.first = batch.delta_base = load_int64(p)
    batch.last_offset = add(batch.first, load_int32(p + 23))
    batch.leader_epoch = load_int32(p + 12)
    batch.base_timestamp = load_int64(p + 27)
    batch.max_timestamp = load_int64(p + 35)
    batch.producer_id = load_int64(p + 43)
    batch.producer_epoch = load_int16(p + 51)
    batch.base_sequence = load_int32(p + 53)
    batch.counted = load_int32(p + 57)
    batch.payload_start = p + HEADER
    batch.payload_size = size - HEADER
    # the checksum first: corrupt bytes should be reported as such
    if check_crcs and not _crc_fits(p, size):
        return FAULT_CRC
    if batch.codec > 4:
        return FAULT_CODEC
    if batch.counted < 0 or load_int32(p + 23) < 0:
        return FAULT_COUNT
    return FINE


cdef int _open_messages(RecordBatch batch, const uint8_t* p, Py_ssize_t left, bint check_crcs) except -1:
    cdef Run run
    cdef int fault = scan_run(p, p + left, check_crcs, &run)
    if fault or not run.size:
        return fault
    batch.size = run.size
    batch.start = p
    batch.magic = run.magic
    batch.codec = run.codec
    batch.attributes = run.codec | (8 if run.log_append_time else 0)
    batch.first = run.base_offset
    batch.last_offset = run.last_offset
    batch.counted = run.count
    batch.base_timestamp = run.base_timestamp
    batch.max_timestamp = run.max_timestamp
    batch.leader_epoch = batch.producer_epoch = batch.base_sequence = -1
    batch.producer_id = -1
    if run.codec:
        batch.payload_start = run.value
        batch.payload_size = run.value_size
    else:
        batch.payload_start = p
        batch.payload_size = run.size
    return FINE


cdef list _read(object data, str topic, int partition, bint check_crcs, Py_ssize_t limit, bint stop_at_fault):
    cdef list batches = []
    cdef RecordBatch batch
    cdef const uint8_t* start
    cdef Py_ssize_t length, position = 0
    cdef int fault
    if data is None:
        return batches
    view = PyMemoryView_FromObject(data)
    if not view.c_contiguous:
        raise InvalidArgument("records must lie in one contiguous buffer")
    start = <const uint8_t*>PyMemoryView_GET_BUFFER(view).buf
    length = PyMemoryView_GET_BUFFER(view).len
    if view.itemsize != 1 or view.ndim != 1:
        view = view.cast("B")
    while position < length:
        batch = RecordBatch.__new__(RecordBatch)
        batch.view = view
        batch.topic = topic
        batch.partition = partition
        batch.limit = limit
        batch.position = position
        fault = _open_batch(batch, start + position, length - position, check_crcs)
        if fault:
            # return the batches before the corrupt one; the next read starts with it and raises
            if batches or stop_at_fault:
                break
            raise batch.corrupt(fault, load_int64(start + position))
        if not batch.size:
            break
        batches.append(batch)
        position += batch.size
    return batches


def read_batches(data, str topic not None, int partition, *, bint check_crcs=True, Py_ssize_t max_decompressed=DEFAULT_LIMIT):
    return _read(data, topic, partition, check_crcs, max_decompressed, False)


def fill_columns(Columns columns not None, list batches not None, Py_ssize_t start=0, int64_t from_offset=INT64_MIN,
                 int64_t to_offset=INT64_MAX, Py_ssize_t rows=PY_SSIZE_T_MAX, Py_ssize_t size=PY_SSIZE_T_MAX):
    cdef Py_ssize_t at
    for at in range(start, len(batches)):
        (<RecordBatch?>batches[at]).pour(columns, from_offset, to_offset)
        if columns.rows >= rows or columns.data_size() >= size:
            return at + 1
    return len(batches)


def scan_batches(data, *, bint check_crcs=False, bint stop_at_fault=False, Py_ssize_t max_decompressed=DEFAULT_LIMIT,
                 str topic not None="", int partition=-1):
    return _read(data, topic, partition, check_crcs, max_decompressed, stop_at_fault)


def take_sound(data, Py_ssize_t max_size, int64_t max_records, int64_t earliest, int64_t latest, *,
               bint needs_keys=False, bint has_own_time=False):
    cdef Cursor cursor
    cdef Survey survey
    cdef RecordBatch batch = RecordBatch.__new__(RecordBatch)
    view = PyMemoryView_FromObject(data)
    cdef Py_ssize_t size = PyMemoryView_GET_BUFFER(view).len
    if not view.c_contiguous or view.itemsize != 1 or view.ndim != 1 or not HEADER < size <= max_size:
        return None
    batch.view = view
    batch.topic = ""
    batch.partition = -1
    batch.limit = DEFAULT_LIMIT
    if (
        _open_batch(batch, <const uint8_t*>PyMemoryView_GET_BUFFER(view).buf, size, False)
        or batch.magic != 2
        or batch.size != size
        or batch.codec
        or batch.counted > min(max_records, batch.payload_size // SMALLEST_RECORD)
        or not _may_be_produced(batch)
        or (batch.attributes & 8 and not has_own_time)
        or not _crc_fits(batch.start, size)
    ):
        return None
    batch.open(&cursor)
    survey.earliest = earliest
    survey.at = batch.first
    if _survey(&cursor, batch.counted, &survey) or not survey.contiguous or (needs_keys and survey.keyless_count):
        return None
    if not has_own_time and (
        survey.late_count or survey.max_timestamp > latest or survey.max_timestamp != batch.max_timestamp
    ):
        return None
    return batch
