# cython: language_level=3, boundscheck=False, wraparound=False
"""Message formats 0 and 1: messages one after the other, or a set inside a compressed message.

For `_batch` (reading) and `_builder` (writing). A message: offset int64, size int32, CRC-32 of what
follows, magic int8, attributes int8 (bits 0-2 codec, bit 3 log-append time), in format 1 the
timestamp int64, then key and value with int32 lengths. Inside of a compressed message, format 0
carries final offsets; format 1 relative ones, and the outer message has the last record's offset,
so that a broker need not recompress to assign offsets.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from aiokwire.records._cursor cimport (
    FAULT_BATCH_LENGTH,
    FAULT_CODEC,
    FAULT_CRC,
    FAULT_EMPTY_WRAPPER,
    FAULT_KEY,
    FAULT_UNKNOWN_MAGIC,
    FAULT_VALUE,
    FINE,
    Cursor,
    Slot,
    next_message,
)
from aiokwire.records._varint cimport add, load_int32, load_int64, store_int32, store_int64

from zlib import crc32

cdef extern from "Python.h":
    const int PyBUF_READ


cdef uint32_t _crc_of(const uint8_t* p, Py_ssize_t size) except? 0:
    return crc32(PyMemoryView_FromMemory(<char*>p, size, PyBUF_READ))


cdef inline int64_t _complete(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The bytes of the message at `p`; 0 when it is truncated, -1 when its size is impossible."""
    cdef int64_t size
    if end - p < 17:
        return 0
    size = load_int32(p + 8)
    if size < 14 or (p[16] == 1 and size < 22):
        return -1
    return 12 + size if size <= end - p - 12 else 0


cdef int scan_run(const uint8_t* p, const uint8_t* end, bint check_crcs, Run* run) except -1:
    """What starts at `p`, as far as whole and sound; a fault only if the first message has it."""
    cdef Cursor cursor
    cdef Slot slot
    cdef int64_t size
    cdef int fault
    memset(run, 0, sizeof(Run))
    size = _complete(p, end)
    if size <= 0:
        return FAULT_BATCH_LENGTH if size else FINE
    run.magic = p[16]
    if run.magic > 1:
        return FAULT_UNKNOWN_MAGIC
    run.codec = p[17] & 7
    run.log_append_time = run.magic == 1 and p[17] & 8
    if run.codec:
        return _scan_compressed(p, size, check_crcs, run)
    cursor.p = p
    cursor.magic = run.magic
    cursor.base_offset = 0
    cursor.log_append_time = False
    while size > 0 and cursor.p[16] == run.magic and (cursor.p[17] & 15) == (p[17] & 15):
        cursor.end = cursor.p + size
        if check_crcs and _crc_of(cursor.p + 16, size - 16) != <uint32_t>load_int32(cursor.p + 12):
            return FINE if run.count else FAULT_CRC
        fault = next_message(&cursor, &slot)
        if fault:
            return FINE if run.count else fault
        if not run.count:
            run.base_offset = slot.offset
            run.base_timestamp = run.max_timestamp = slot.timestamp
        run.last_offset = slot.offset
        if slot.timestamp > run.max_timestamp:
            run.max_timestamp = slot.timestamp
        run.count += 1
        run.size += size
        size = _complete(cursor.p, end)
        if run.log_append_time:
            break  # each message may have an append time of its own
    return FINE


cdef int _scan_compressed(const uint8_t* p, int64_t size, bint check_crcs, Run* run) except -1:
    cdef const uint8_t* end = p + size
    cdef const uint8_t* at = p + (26 if run.magic else 18)
    cdef int64_t length
    if run.codec > 3 + run.magic:  # zstd came after both formats, yet some brokers down-convert with it
        return FAULT_CODEC
    if check_crcs and _crc_of(p + 16, size - 16) != <uint32_t>load_int32(p + 12):
        return FAULT_CRC
    length = load_int32(at)
    at += 4
    if length < -1 or length > end - at - 4:
        return FAULT_KEY
    if length > 0:
        at += length
    length = load_int32(at)
    at += 4
    if length < 0 or length > end - at:
        return FAULT_VALUE
    run.size = size
    run.count = -1
    run.base_offset = run.last_offset = load_int64(p)
    run.base_timestamp = run.max_timestamp = load_int64(p + 18) if run.magic else -1
    run.value = at
    run.value_size = length
    return FINE


cdef int measure(const uint8_t* p, const uint8_t* end, int magic, Inside* inside) noexcept nogil:
    """Counts the messages of a decompressed set and checks that they fill it."""
    cdef Cursor cursor
    cdef Slot slot
    cdef int fault
    cursor.p = p
    cursor.end = end
    cursor.magic = magic
    cursor.base_offset = 0
    cursor.log_append_time = False
    inside.count = 0
    while cursor.p < end:
        fault = next_message(&cursor, &slot)
        if fault:
            return fault
        if not inside.count:
            inside.first_offset = slot.offset
        inside.last_offset = slot.offset
        inside.count += 1
    return FINE if inside.count else FAULT_EMPTY_WRAPPER


cdef int64_t message_size(int magic, int64_t key_size, int64_t value_size) noexcept nogil:
    return (34 if magic else 26) + (key_size if key_size > 0 else 0) + (value_size if value_size > 0 else 0)


cdef uint8_t* put_message(uint8_t* p, int magic, int64_t offset, int64_t timestamp, const char* key, int64_t key_size,
                          const char* value, int64_t value_size) noexcept nogil:
    """Writes a message without its checksum: `finish_messages` adds that."""
    store_int64(p, offset)
    store_int32(p + 8, message_size(magic, key_size, value_size) - 12)
    store_int32(p + 12, 0)
    p[16] = <uint8_t>magic
    p[17] = 0
    p += 18
    if magic:
        store_int64(p, timestamp)
        p += 8
    store_int32(p, key_size)
    p += 4
    if key_size > 0:
        memcpy(p, key, key_size)
        p += key_size
    store_int32(p, value_size)
    p += 4
    if value_size > 0:
        memcpy(p, value, value_size)
        p += value_size
    return p


cdef int finish_messages(uint8_t* p, const uint8_t* end, int64_t base_offset, bint log_append_time,
                         int64_t append_timestamp) except -1:
    """Makes offsets final, sets any append time, and computes each message's checksum."""
    cdef int64_t size
    while p < end:
        size = 12 + load_int32(p + 8)
        store_int64(p, add(load_int64(p), base_offset))
        if log_append_time and p[16] == 1:
            p[17] |= 8
            store_int64(p + 18, append_timestamp)
        store_int32(p + 12, _crc_of(p + 16, size - 16))
        p += size
    return 0


cdef bytes wrap(object compressed, int magic, int codec, int64_t offset, int64_t timestamp, bint log_append_time):
    """The compressed message that carries a set; `compressed` is bytes."""
    cdef bytes inner = compressed
    cdef Py_ssize_t size = message_size(magic, -1, PyBytes_GET_SIZE(inner))
    cdef bytes message = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(message)
    put_message(p, magic, offset, timestamp, NULL, -1, PyBytes_AS_STRING(inner), PyBytes_GET_SIZE(inner))
    p[17] = <uint8_t>(codec | (8 if magic and log_append_time else 0))
    store_int32(p + 12, _crc_of(p + 16, size - 16))
    return message
