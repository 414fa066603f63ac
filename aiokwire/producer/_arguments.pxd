# cython: language_level=3
from libc.stdint cimport int32_t, int64_t

# What a record has at most beyond key, value and headers, with its batch's header: admission adds it to be safe.
cdef enum:
    OVERHEAD = 100

cdef object bytes_of(str argument, object given)
cdef tuple headers_of(object given)
cdef Py_ssize_t size_of(object given) except -1
cdef Py_ssize_t size_of_headers(tuple headers)
cdef int64_t timestamp_of(object given) except? -1
cdef int32_t partition_of(object given) except? -1
cdef object check_topic_name(str name)
cdef object too_large(object topic, object value, object key, Py_ssize_t size, Py_ssize_t limit)
