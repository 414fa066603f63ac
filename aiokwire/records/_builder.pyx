# cython: language_level=3, boundscheck=False, wraparound=False
"""`BatchBuilder`: records in, one encoded batch or message set out.

For the producer's accumulator (calls `append_c` from compiled code) and the broker's conversion. In
format 2 the first 61 bytes stay free for the header: sealing uncompressed batches copies nothing.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from aiokwire.records._message_set cimport finish_messages, message_size, put_message, wrap
from aiokwire.records._varint cimport put_varint, store_int16, store_int32, store_int64, subtract, varint_size

from aiokwire.errors import InvalidArgument
from aiokwire.records.checksum import crc32c as _crc32c
from aiokwire.records.compression import check_level, compress
from aiokwire.types import Compression

cdef extern from "Python.h":
    const int PyBUF_READ

cdef enum:
    HEADER = 61
    # Between these a buffer grows in one step, beyond by doubling: the steps between would leave holes as large as the
    # batch itself, while memory that is not written to yet costs nothing.
    STEP_FROM = 65536
    STEP_TO = 1048576


cdef bytes _as_bytes(object content, str name):
    if isinstance(content, (bytes, bytearray)):
        return bytes(content)
    if isinstance(content, memoryview):
        return content.tobytes()
    raise InvalidArgument(f"{name} must be bytes, bytearray, memoryview or None, not {type(content).__name__}")


cdef list flat_headers(object headers):
    """[name, value, ...], checked: later changes of the caller's sequence do not matter."""
    cdef list flat = []
    cdef Py_ssize_t ignored
    if isinstance(headers, (str, bytes, dict)):
        raise InvalidArgument(f"headers must be a sequence of (str, bytes | None), not {type(headers).__name__}")
    try:
        pairs = tuple(headers)
    except TypeError:
        raise InvalidArgument(f"headers must be a sequence of (str, bytes | None), not {type(headers).__name__}") from None
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidArgument(f"a header must be a pair (str, bytes | None), not {pair!r}")
        name, value = pair
        if not isinstance(name, str):
            raise InvalidArgument(f"a header's name must be str, not {type(name).__name__}")
        try:
            PyUnicode_AsUTF8AndSize(name, &ignored)
        except UnicodeEncodeError:
            raise InvalidArgument(f"a header's name must be encodable as UTF-8: {name!r}") from None
        flat.append(name)
        if value is not None and type(value) is not bytes:
            value = _as_bytes(value, f"the value of header {name!r}")
        flat.append(value)
    return flat


cdef inline const char* _part(object part, Py_ssize_t* size) except NULL:
    if isinstance(part, str):
        return PyUnicode_AsUTF8AndSize(part, size)
    size[0] = PyBytes_GET_SIZE(part)
    return PyBytes_AS_STRING(part)


cdef int64_t _headers_size(list headers) except -1:
    cdef int64_t total
    cdef Py_ssize_t size
    if headers is None:
        return 1
    total = varint_size(len(headers) // 2)
    for part in headers:
        if part is None:
            total += 1
            continue
        _part(part, &size)
        total += varint_size(size) + size
    return total


cdef uint8_t* _put_headers(uint8_t* p, list headers) except NULL:
    cdef Py_ssize_t size
    cdef const char* content
    if headers is None:
        p[0] = 0
        return p + 1
    p = put_varint(p, len(headers) // 2)
    for part in headers:
        if part is None:
            p = put_varint(p, -1)
            continue
        content = _part(part, &size)
        p = put_varint(p, size)
        memcpy(p, content, size)
        p += size
    return p


cdef int64_t _length(object content, str name) except -1:
    if content is None:
        return 0
    if isinstance(content, memoryview):
        return content.nbytes
    if isinstance(content, (bytes, bytearray)):
        return len(content)
    raise InvalidArgument(f"{name} must be bytes, bytearray, memoryview or None, not {type(content).__name__}")


cdef int64_t estimate_c(object key, object value, object headers, int magic) except -1:
    cdef int64_t size = _length(key, "key") + _length(value, "value")
    if magic < 2:
        return size + message_size(magic, 0, 0)
    # the header, then length, attributes, timestamp, offset, and the lengths of key and value
    size += HEADER + 5 + 1 + 10 + 5 + 5 + 5
    return size + _headers_size(flat_headers(headers) if headers else None)


def estimate_size(key, value, headers=(), magic=2):
    return estimate_c(key, value, headers, magic)


cdef class BatchBuilder:
    def __cinit__(self, int magic=2, Py_ssize_t size_limit=16384, Py_ssize_t initial=0):
        if not 0 <= magic <= 2:
            raise InvalidArgument(f"magic must be 0, 1 or 2, not {magic}")
        if size_limit < 1 or initial < 0:
            raise InvalidArgument("size_limit must be positive, initial not negative")
        self.magic = magic
        self.limit = size_limit
        self.capacity = max(HEADER + 64, initial if initial else min(size_limit, 4096))
        self.buffer = <uint8_t*>PyMem_Malloc(self.capacity)
        if self.buffer == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.buffer)

    cdef void clear(self) noexcept:
        self.position = HEADER if self.magic == 2 else 0
        self.count = 0
        self.sealed = False
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.last_delta = -1

    @property
    def size(self):
        return self.position

    @property
    def size_limit(self):
        return self.limit

    @property
    def allocated(self):
        return self.capacity

    cdef int reserve(self, int64_t extra) except -1:
        cdef int64_t wanted = self.position + extra
        cdef int64_t grown
        cdef uint8_t* moved
        if wanted <= self.capacity:
            return 0
        grown = 2 * <int64_t>self.capacity
        if STEP_FROM < grown < STEP_TO:
            grown = STEP_TO
        if grown > self.limit:
            grown = self.limit
        if grown < wanted:
            grown = wanted
        moved = <uint8_t*>PyMem_Realloc(self.buffer, grown)
        if moved == NULL:
            raise MemoryError
        self.buffer = moved
        self.capacity = grown
        return 0

    cdef int64_t put(self, int64_t delta, int64_t timestamp, const char* key, Py_ssize_t key_size, const char* value,
                     Py_ssize_t value_size, list headers, const uint8_t* encoded, Py_ssize_t encoded_size) except -2:
        """`encoded`: the headers as they are to stand there, instead of `headers`."""
        cdef int64_t since = 0 if not self.count else subtract(timestamp, self.base_timestamp)
        cdef int64_t body = 0
        cdef int64_t size
        cdef uint8_t* p
        if self.magic == 2:
            body = (
                1 + varint_size(since) + varint_size(delta) + varint_size(key_size) + varint_size(value_size)
                + (key_size if key_size > 0 else 0) + (value_size if value_size > 0 else 0)
                + (encoded_size if encoded_size else 1 if headers is None else _headers_size(headers))
            )
            size = body + varint_size(body)
        else:
            size = message_size(self.magic, key_size, value_size)
        if self.position + size > self.limit and self.count:
            return -1
        if self.position + size > INT32_MAX:
            raise InvalidArgument(f"a record of {size} bytes is larger than Kafka's formats allow (2 GiB)")
        self.reserve(size)
        p = self.buffer + self.position
        if self.magic == 2:
            p = put_varint(p, body)
            p[0] = 0
            p = put_varint(p + 1, since)
            p = put_varint(p, delta)
            p = put_varint(p, key_size)
            if key_size > 0:
                memcpy(p, key, key_size)
                p += key_size
            p = put_varint(p, value_size)
            if value_size > 0:
                memcpy(p, value, value_size)
                p += value_size
            if encoded_size:
                memcpy(p, encoded, encoded_size)
            elif headers is None:
                p[0] = 0
            else:
                _put_headers(p, headers)
        else:
            put_message(p, self.magic, delta, timestamp, key, key_size, value, value_size)
        self.position += size
        if not self.count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        self.last_delta = delta
        return delta

    cdef int64_t append_c(self, int64_t timestamp, object key, object value, object headers) except -2:
        cdef list flat = None
        cdef const char* key_bytes = NULL
        cdef const char* value_bytes = NULL
        cdef Py_ssize_t key_size = -1
        cdef Py_ssize_t value_size = -1
        if key is not None:
            if type(key) is not bytes:
                key = _as_bytes(key, "key")
            key_bytes = PyBytes_AS_STRING(key)
            key_size = PyBytes_GET_SIZE(key)
        if value is not None:
            if type(value) is not bytes:
                value = _as_bytes(value, "value")
            value_bytes = PyBytes_AS_STRING(value)
            value_size = PyBytes_GET_SIZE(value)
        if headers is not None and headers is not ():
            flat = flat_headers(headers)
            if not flat:
                flat = None
            elif self.magic < 2:
                raise InvalidArgument("headers need message format 2; this broker takes an older one")
        if self.sealed:  # asked last: converting an argument may have run foreign code
            raise InvalidArgument("the batch is sealed: reset it first")
        return self.put(self.last_delta + 1, timestamp, key_bytes, key_size, value_bytes, value_size, flat, NULL, 0)

    cdef int64_t put_row(self, int64_t timestamp, const char* key, Py_ssize_t key_size, const char* value,
                         Py_ssize_t value_size, const uint8_t* headers, Py_ssize_t headers_size) except -2:
        if self.sealed:
            raise InvalidArgument("the batch is sealed: reset it first")
        if headers_size and self.magic < 2:
            raise InvalidArgument("headers need message format 2; this broker takes an older one")
        return self.put(self.last_delta + 1, timestamp, key, key_size, value, value_size, None, headers, headers_size)

    def append(self, int64_t timestamp, key, value, headers=()):
        return self.append_c(timestamp, key, value, headers)

    def append_at(self, int32_t delta, int64_t timestamp, key, value, headers=()):
        if delta <= self.last_delta:
            raise InvalidArgument(f"offsets must rise: {delta} after {self.last_delta}")
        self.last_delta, before = delta - 1, self.last_delta
        try:
            result = self.append_c(timestamp, key, value, headers)
        except InvalidArgument:
            self.last_delta = before
            raise
        if result < 0:
            self.last_delta = before
        return result

    def seal(self, *, compression=Compression.NONE, level=None, int64_t producer_id=-1, int producer_epoch=-1,
             int32_t base_sequence=-1, bint transactional=False, bint control=False, int64_t base_offset=0,
             int32_t leader_epoch=-1, log_append_time=None):
        if self.sealed:
            raise InvalidArgument("the batch is sealed already")
        if not self.count:
            raise InvalidArgument("an empty batch cannot be sealed")
        cdef int codec = int(compression)
        check_level(codec, level)
        cdef int attributes = codec | (8 if log_append_time is not None else 0)
        self.sealed = True
        try:
            if self.magic < 2:
                return self._seal_messages(codec, level, base_offset, log_append_time)
            attributes |= (16 if transactional else 0) | (32 if control else 0)
            if log_append_time is not None:
                self.max_timestamp = log_append_time
            if not codec:
                self._put_header(self.buffer, self.position, attributes, base_offset, leader_epoch, producer_id,
                                 producer_epoch, base_sequence)
                return memoryview(self)
            return self._seal_compressed(attributes, codec, level, base_offset, leader_epoch, producer_id,
                                         producer_epoch, base_sequence)
        except BaseException:
            self.sealed = False  # nothing was changed: the caller may seal it with another codec
            raise

    cdef _put_header(self, uint8_t* p, Py_ssize_t size, int attributes, int64_t base_offset, int32_t leader_epoch,
                     int64_t producer_id, int producer_epoch, int32_t base_sequence):
        store_int64(p, base_offset)
        store_int32(p + 8, size - 12)
        store_int32(p + 12, leader_epoch)
        p[16] = 2
        store_int16(p + 21, attributes)
        store_int32(p + 23, self.last_delta)
        store_int64(p + 27, self.base_timestamp)
        store_int64(p + 35, self.max_timestamp)
        store_int64(p + 43, producer_id)
        store_int16(p + 51, producer_epoch)
        store_int32(p + 53, base_sequence)
        store_int32(p + 57, self.count)
        cdef uint32_t crc = _crc32c(PyMemoryView_FromMemory(<char*>p + 21, size - 21, PyBUF_READ))
        store_int32(p + 17, crc)

    cdef _seal_compressed(self, int attributes, int codec, object level, int64_t base_offset, int32_t leader_epoch,
                          int64_t producer_id, int producer_epoch, int32_t base_sequence):
        plain = PyMemoryView_FromMemory(<char*>self.buffer + HEADER, self.position - HEADER, PyBUF_READ)
        cdef bytes inner = compress(codec, plain, level)
        cdef Py_ssize_t size = HEADER + PyBytes_GET_SIZE(inner)
        cdef bytes sealed = PyBytes_FromStringAndSize(NULL, size)
        cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(sealed)
        memcpy(p + HEADER, PyBytes_AS_STRING(inner), PyBytes_GET_SIZE(inner))
        self._put_header(p, size, attributes, base_offset, leader_epoch, producer_id, producer_epoch, base_sequence)
        return sealed

    cdef _seal_messages(self, int codec, object level, int64_t base_offset, object log_append_time):
        cdef bint stamped = log_append_time is not None
        cdef int64_t append_timestamp = log_append_time if stamped else -1
        # inside of a compressed message format 1 keeps relative offsets
        finish_messages(self.buffer, self.buffer + self.position, 0 if codec and self.magic else base_offset,
                        stamped, append_timestamp)
        if not codec:
            return memoryview(self)
        plain = PyMemoryView_FromMemory(<char*>self.buffer, self.position, PyBUF_READ)
        inner = compress(codec, plain, level, magic=self.magic)
        return wrap(inner, self.magic, codec, base_offset + self.last_delta,
                    append_timestamp if stamped else self.max_timestamp, stamped)

    def reset(self):
        if self.exports:
            raise BufferError("the sealed batch is still in use")
        self.clear()

    def __getbuffer__(self, Py_buffer* view, int flags):
        if not self.sealed:
            raise BufferError("seal the batch first")
        PyBuffer_FillInfo(view, self, self.buffer, self.position, 0, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
