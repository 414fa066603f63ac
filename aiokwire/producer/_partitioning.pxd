# cython: language_level=3
from libc.stdint cimport int32_t, uint8_t

# How a key is hashed; librdkafka's names.
cdef enum:
    HASH_MURMUR2_RANDOM = 0     # the default: as Java has it
    HASH_CONSISTENT = 1
    HASH_CONSISTENT_RANDOM = 2
    HASH_MURMUR2 = 3
    HASH_FNV1A = 4
    HASH_FNV1A_RANDOM = 5
    ASK_CUSTOM = 6              # a partitioner in Python

cdef int32_t partition_by(int how, const uint8_t* key, Py_ssize_t size, int32_t count) noexcept
