# cython: language_level=3, boundscheck=False, wraparound=False
"""librdkafka's partitioners, compiled: from key hash to partition. Used by the accumulator."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from aiokwire.records._hash cimport murmur2_of

BY_NAME = {
    "murmur2_random": HASH_MURMUR2_RANDOM,
    "consistent": HASH_CONSISTENT,
    "consistent_random": HASH_CONSISTENT_RANDOM,
    "murmur2": HASH_MURMUR2,
    "fnv1a": HASH_FNV1A,
    "fnv1a_random": HASH_FNV1A_RANDOM,
}
CUSTOM = ASK_CUSTOM

cdef uint32_t[256] CRC32


cdef void _fill_table() noexcept:
    cdef uint32_t value
    cdef int byte, bit
    for byte in range(256):
        value = <uint32_t>byte
        for bit in range(8):
            value = value >> 1 ^ (0xEDB88320U if value & 1 else 0U)
        CRC32[byte] = value


_fill_table()


cdef uint32_t _crc32(const uint8_t* data, Py_ssize_t size) noexcept:
    cdef uint32_t value = 0xFFFFFFFFU
    cdef Py_ssize_t at
    for at in range(size):
        value = CRC32[(value ^ data[at]) & 0xFF] ^ value >> 8
    return ~value


cdef uint32_t _fnv1a(const uint8_t* data, Py_ssize_t size) noexcept:
    """FNV-1a as a signed number without its sign: Sarama's."""
    cdef uint32_t value = 0x811C9DC5U
    cdef Py_ssize_t at
    for at in range(size):
        value = (value ^ data[at]) * 0x01000193U
    return 0U - value if value & 0x80000000U else value


cdef int32_t partition_by(int how, const uint8_t* key, Py_ssize_t size, int32_t count) noexcept:
    """The partition of a key; -1 where any will do. `size` is -1 for a record without a key."""
    cdef Py_ssize_t length = size if size > 0 else 0
    if size < 0 and how in (HASH_MURMUR2_RANDOM, HASH_FNV1A_RANDOM) or not length and how == HASH_CONSISTENT_RANDOM:
        return -1
    if how in (HASH_CONSISTENT, HASH_CONSISTENT_RANDOM):
        return <int32_t>(_crc32(key, length) % <uint32_t>count)
    if how in (HASH_FNV1A, HASH_FNV1A_RANDOM):
        return <int32_t>(_fnv1a(key, length) % <uint32_t>count)
    return (murmur2_of(key, length) & 0x7FFFFFFF) % count
