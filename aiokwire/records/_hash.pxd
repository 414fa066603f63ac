# cython: language_level=3
"""The two hashes that Kafka's formats ask for and that no dependency offers."""

from libc.stdint cimport int32_t, uint8_t, uint32_t


cdef inline int32_t murmur2_of(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    """Murmur2 with Java's seed: the partition of a key is `(hash & 0x7fffffff) % partitions`."""
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = 0x9747B28CU ^ <uint32_t>size
    cdef uint32_t k
    cdef Py_ssize_t i = 0
    while i + 4 <= size:
        k = data[i] | <uint32_t>data[i + 1] << 8 | <uint32_t>data[i + 2] << 16 | <uint32_t>data[i + 3] << 24
        k *= m
        k ^= k >> 24
        h *= m
        h ^= k * m
        i += 4
    if size - i == 3:
        h ^= <uint32_t>data[i + 2] << 16
    if size - i >= 2:
        h ^= <uint32_t>data[i + 1] << 8
    if size - i >= 1:
        h ^= data[i]
        h *= m
    h ^= h >> 13
    h *= m
    h ^= h >> 15
    return <int32_t>h
