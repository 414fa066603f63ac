# cython: language_level=3
"""Walks the records of one batch: `next_record` in format 2, `next_message` in formats 0 and 1.

No Python object is touched. Each call checks every length against the remaining bytes, so that a
walk is safe even over bytes that change meanwhile.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from aiokwire.records._varint cimport add, get_varint, get_varlong, load_int32, load_int64

# What `next_record` and `next_message` answer; `_record.FAULTS` has the words.
cdef enum:
    FINE = 0
    FAULT_LENGTH = 1
    FAULT_TIMESTAMP = 2
    FAULT_OFFSET = 3
    FAULT_KEY = 4
    FAULT_VALUE = 5
    FAULT_HEADERS = 6
    FAULT_TRAILING = 7
    FAULT_MAGIC = 8
    FAULT_MEMORY = 9
    FAULT_BATCH_LENGTH = 10
    FAULT_UNKNOWN_MAGIC = 11
    FAULT_CODEC = 12
    FAULT_CRC = 13
    FAULT_COUNT = 14
    FAULT_EMPTY_WRAPPER = 15

cdef struct Cursor:
    const uint8_t* p
    const uint8_t* end
    int magic
    int64_t base_offset     # added to each record's own (relative) offset
    int64_t base_timestamp
    bint log_append_time
    int64_t append_timestamp

cdef struct Slot:
    int64_t offset
    int64_t timestamp
    const uint8_t* key
    int64_t key_size        # -1 is null
    const uint8_t* value
    int64_t value_size      # -1 is null
    const uint8_t* headers
    const uint8_t* end      # of the headers
    int64_t header_count


cdef inline int next_header(const uint8_t** at, const uint8_t* end, const uint8_t** key, int64_t* key_size,
                            const uint8_t** value, int64_t* value_size) noexcept nogil:
    if get_varint(at, end, key_size) or key_size[0] < 0 or key_size[0] > end - at[0]:
        return FAULT_HEADERS
    key[0] = at[0]
    at[0] += key_size[0]
    if get_varint(at, end, value_size) or value_size[0] < -1 or value_size[0] > end - at[0]:
        return FAULT_HEADERS
    value[0] = at[0]
    if value_size[0] > 0:
        at[0] += value_size[0]
    return FINE


cdef inline int check_headers(Slot* slot) noexcept nogil:
    cdef const uint8_t* p = slot.headers
    cdef const uint8_t* ignored
    cdef int64_t size
    cdef int64_t left = slot.header_count
    if left > (slot.end - p) // 2:
        return FAULT_HEADERS
    while left > 0:
        if next_header(&p, slot.end, &ignored, &size, &ignored, &size):
            return FAULT_HEADERS
        left -= 1
    return FINE if p == slot.end else FAULT_TRAILING


cdef inline int next_record(Cursor* cursor, Slot* slot) noexcept nogil:
    cdef const uint8_t* p = cursor.p
    cdef const uint8_t* end
    cdef int64_t number
    if get_varint(&p, cursor.end, &number) or number < 6 or number > cursor.end - p:
        return FAULT_LENGTH
    end = p + number
    p += 1  # the record's attributes: none is defined
    if get_varlong(&p, end, &number):
        return FAULT_TIMESTAMP
    slot.timestamp = cursor.append_timestamp if cursor.log_append_time else add(cursor.base_timestamp, number)
    if get_varint(&p, end, &number):
        return FAULT_OFFSET
    slot.offset = add(cursor.base_offset, number)
    if get_varint(&p, end, &number) or number < -1 or number > end - p:
        return FAULT_KEY
    slot.key = p
    slot.key_size = number
    if number > 0:
        p += number
    if get_varint(&p, end, &number) or number < -1 or number > end - p:
        return FAULT_VALUE
    slot.value = p
    slot.value_size = number
    if number > 0:
        p += number
    if get_varint(&p, end, &number) or number < 0:
        return FAULT_HEADERS
    slot.headers = p
    slot.end = end
    slot.header_count = number
    cursor.p = end
    if number:
        return check_headers(slot)
    return FINE if p == end else FAULT_TRAILING


cdef inline int next_message(Cursor* cursor, Slot* slot) noexcept nogil:
    cdef const uint8_t* p = cursor.p
    cdef const uint8_t* end
    cdef int64_t number
    if cursor.end - p < 26:
        return FAULT_LENGTH
    slot.offset = add(cursor.base_offset, load_int64(p))
    number = load_int32(p + 8)
    p += 12
    if number < 14 or number > cursor.end - p:
        return FAULT_LENGTH
    end = p + number
    if p[4] != cursor.magic or p[5] & 7:  # a compressed message inside of a compressed one is none of Kafka's
        return FAULT_MAGIC
    p += 6
    slot.timestamp = -1
    if cursor.magic:
        if end - p < 16:
            return FAULT_TIMESTAMP
        slot.timestamp = cursor.append_timestamp if cursor.log_append_time else load_int64(p)
        p += 8
    number = load_int32(p)
    p += 4
    if number < -1 or number > end - p - 4:
        return FAULT_KEY
    slot.key = p
    slot.key_size = number
    if number > 0:
        p += number
    if end - p < 4:
        return FAULT_VALUE
    number = load_int32(p)
    p += 4
    if number < -1 or number > end - p:
        return FAULT_VALUE
    slot.value = p
    slot.value_size = number
    slot.headers = end
    slot.end = end
    slot.header_count = 0
    cursor.p = end
    return FINE


cdef inline int next_slot(Cursor* cursor, Slot* slot) noexcept nogil:
    if cursor.magic == 2:
        return next_record(cursor, slot)
    return next_message(cursor, slot)
