# cython: language_level=3
"""Big-endian numbers and zigzag varints, inline, for every part of the kernel.

A reader takes the end of the readable bytes and returns 1 if they do not suffice or the number is
too long, so that no caller reads past the end.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef inline int32_t load_int32(const uint8_t* p) noexcept nogil:
    return <int32_t>(<uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | <uint32_t>p[3])


cdef inline int16_t load_int16(const uint8_t* p) noexcept nogil:
    return <int16_t>(<uint16_t>p[0] << 8 | <uint16_t>p[1])


cdef inline int64_t load_int64(const uint8_t* p) noexcept nogil:
    return <int64_t>(
        <uint64_t>p[0] << 56 | <uint64_t>p[1] << 48 | <uint64_t>p[2] << 40 | <uint64_t>p[3] << 32
        | <uint64_t>p[4] << 24 | <uint64_t>p[5] << 16 | <uint64_t>p[6] << 8 | <uint64_t>p[7]
    )


cdef inline void store_int16(uint8_t* p, int32_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 8)
    p[1] = <uint8_t>value


cdef inline void store_int32(uint8_t* p, int64_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 24)
    p[1] = <uint8_t>(value >> 16)
    p[2] = <uint8_t>(value >> 8)
    p[3] = <uint8_t>value


cdef inline void store_int64(uint8_t* p, int64_t value) noexcept nogil:
    store_int32(p, value >> 32)
    store_int32(p + 4, value)


cdef inline int64_t add(int64_t a, int64_t b) noexcept nogil:
    """The sum, wrapping as Java's does: hostile offsets must not be undefined behaviour."""
    return <int64_t>(<uint64_t>a + <uint64_t>b)


cdef inline int64_t subtract(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a - <uint64_t>b)


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    cdef int size = 1
    while rest >= 0x80:
        rest >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* p, int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    while rest >= 0x80:
        p[0] = <uint8_t>(rest | 0x80)
        p += 1
        rest >>= 7
    p[0] = <uint8_t>rest
    return p + 1


cdef inline int get_varlong(const uint8_t** at, const uint8_t* end, int64_t* value) noexcept nogil:
    cdef const uint8_t* p = at[0]
    cdef uint64_t raw
    cdef int shift
    cdef uint8_t byte
    if p >= end:
        return 1
    byte = p[0]
    p += 1
    raw = byte & 0x7F
    if byte >= 0x80:
        shift = 7
        while True:
            if p >= end or shift > 63:
                return 1
            byte = p[0]
            p += 1
            raw |= <uint64_t>(byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
    at[0] = p
    value[0] = <int64_t>((raw >> 1) ^ (~(raw & 1) + 1))
    return 0


cdef inline int get_varint(const uint8_t** at, const uint8_t* end, int64_t* value) noexcept nogil:
    """A number that must fit into 32 bits."""
    if get_varlong(at, end, value):
        return 1
    return value[0] != <int32_t>value[0]
