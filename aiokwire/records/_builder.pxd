# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef list flat_headers(object headers)
cdef int64_t estimate_c(object key, object value, object headers, int magic) except -1


cdef class BatchBuilder:
    cdef uint8_t* buffer
    cdef Py_ssize_t position
    cdef Py_ssize_t capacity
    cdef Py_ssize_t limit
    cdef Py_ssize_t exports
    cdef readonly int32_t count
    cdef readonly int magic
    cdef readonly bint sealed
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef int64_t last_delta

    cdef int64_t append_c(self, int64_t timestamp, object key, object value, object headers) except -2
    cdef int64_t put(self, int64_t delta, int64_t timestamp, const char* key, Py_ssize_t key_size, const char* value,
                     Py_ssize_t value_size, list headers, const uint8_t* encoded, Py_ssize_t encoded_size) except -2
    cdef int64_t put_row(self, int64_t timestamp, const char* key, Py_ssize_t key_size, const char* value,
                         Py_ssize_t value_size, const uint8_t* headers, Py_ssize_t headers_size) except -2
    cdef int reserve(self, int64_t extra) except -1
    cdef void clear(self) noexcept
    cdef _put_header(self, uint8_t* p, Py_ssize_t size, int attributes, int64_t base_offset, int32_t leader_epoch,
                     int64_t producer_id, int producer_epoch, int32_t base_sequence)
    cdef _seal_compressed(self, int attributes, int codec, object level, int64_t base_offset, int32_t leader_epoch,
                          int64_t producer_id, int producer_epoch, int32_t base_sequence)
    cdef _seal_messages(self, int codec, object level, int64_t base_offset, object log_append_time)
