# cython: language_level=3, boundscheck=False, wraparound=False
"""`murmur2` (which partition a key goes to) and `xxh32` (the checksum in an LZ4 frame's header)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t

from aiokwire.records._hash cimport murmur2_of


def murmur2(data):
    cdef bytes key = data if type(data) is bytes else bytes(memoryview(data))
    return murmur2_of(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))


cdef inline uint32_t _rotate(uint32_t value, int bits) noexcept nogil:
    return value << bits | value >> (32 - bits)


cdef inline uint32_t _word(const uint8_t* p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


def xxh32(const uint8_t[::1] data not None):
    cdef Py_ssize_t size = data.shape[0]
    if not size:
        return 0x02CC5D05
    cdef const uint8_t* p = &data[0]
    cdef const uint8_t* end = p + size
    cdef uint32_t p1 = 2654435761, p2 = 2246822519, p3 = 3266489917, p4 = 668265263, p5 = 374761393
    cdef uint32_t[4] lanes
    cdef uint32_t h
    cdef int i
    if size >= 16:
        lanes[0] = p1 + p2
        lanes[1] = p2
        lanes[2] = 0
        lanes[3] = <uint32_t>0 - p1
        while end - p >= 16:
            for i in range(4):
                lanes[i] = _rotate(lanes[i] + _word(p) * p2, 13) * p1
                p += 4
        h = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    else:
        h = p5
    h += <uint32_t>size
    while end - p >= 4:
        h = _rotate(h + _word(p) * p3, 17) * p4
        p += 4
    while p < end:
        h = _rotate(h + p[0] * p5, 11) * p1
        p += 1
    h = (h ^ h >> 15) * p2
    h = (h ^ h >> 13) * p3
    return h ^ h >> 16
