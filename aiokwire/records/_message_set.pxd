# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

# A message set entry that is read as one batch: a run of plain messages, or one compressed message.
cdef struct Run:
    int64_t size            # 0 when the first message is truncated
    int64_t count           # -1: unknown before decompression
    int64_t base_offset
    int64_t last_offset
    int64_t base_timestamp
    int64_t max_timestamp
    int magic
    int codec
    bint log_append_time
    const uint8_t* value    # of the compressed message
    int64_t value_size

# What is inside of a decompressed message set.
cdef struct Inside:
    int64_t count
    int64_t first_offset
    int64_t last_offset

cdef int scan_run(const uint8_t* p, const uint8_t* end, bint check_crcs, Run* run) except -1
cdef int measure(const uint8_t* p, const uint8_t* end, int magic, Inside* inside) noexcept nogil
cdef int64_t message_size(int magic, int64_t key_size, int64_t value_size) noexcept nogil
cdef uint8_t* put_message(uint8_t* p, int magic, int64_t offset, int64_t timestamp, const char* key, int64_t key_size,
                          const char* value, int64_t value_size) noexcept nogil
cdef int finish_messages(uint8_t* p, const uint8_t* end, int64_t base_offset, bint log_append_time,
                         int64_t append_timestamp) except -1
cdef bytes wrap(object compressed, int magic, int codec, int64_t offset, int64_t timestamp, bint log_append_time)
