# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=True
"""Kafka's primitive types, written to and read from bytes. Used by generated messages and headers.

Two encodings share their method names: the plain one (fixed-width lengths, no tagged fields) and
the compact one of flexible versions (KIP-482: lengths as unsigned varints, plus one, and tagged
fields). They differ in two internal methods, which write or read a length, and in how they treat
tags; a message does not see which one it was given.

A reader checks every bound itself, before it allocates anything: lengths come from a peer.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from aiokwire.errors import InvalidArgument, ProtocolViolation

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    void PyObject_GC_UnTrack(void*)

cdef enum:
    INITIAL_CAPACITY = 256
    # Below this a copy costs less than another entry in a scatter write.
    OWN_CHUNK_SIZE = 1024
    MAX_STRING_SIZE = 0x7FFF
    MAX_SIZE = 0x7FFFFFFF
    MAX_VARINT_SIZE = 5
    UNLIMITED = 0x7FFFFFFF
    MAX_TAGS = 1000  # of one struct; Kafka's messages have five at the most
    SLICE = 0x3FFF  # elements (a bit mask), after which a long array lets other threads run
    LARGE_COPY = 0x100000  # bytes, from which a copy lets other threads run


@cython.auto_pickle(False)
cdef class Untracked:
    """The base of messages, which the garbage collector need not go through: none is in a cycle.

    A response may have a million structs: going through them takes longer than a turn of a loop may.
    """

    def __cinit__(self):
        PyObject_GC_UnTrack(<void*> self)


def untrack(value):
    """Take an object out of the garbage collector's lists, and return it.

    For what is in no cycle, such as tuples of numbers and text, where there are very many.
    """
    PyObject_GC_UnTrack(<void*> value)
    return value


def release(list items):
    """Empty a list whose items are in no other place, part by part: other threads run in between."""
    while items:
        del items[-SLICE:]
        let_others_run()


cdef class PlainWriter:
    """Grows one buffer; large byte fields stay where they are and become chunks of their own.

    With `framed` the first four bytes are reserved; `chunks` writes the size of the rest there.
    """

    cdef uint8_t* _data
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _position
    cdef bint _framed
    cdef Py_ssize_t _foreign_size
    cdef list _foreign  # (position in _data, chunk that belongs there)

    def __cinit__(self, bint framed=False):
        self._data = <uint8_t*> PyMem_Malloc(INITIAL_CAPACITY)
        if self._data == NULL:
            raise MemoryError
        self._capacity = INITIAL_CAPACITY
        self._framed = framed
        self._position = 4 if framed else 0
        self._foreign_size = 0
        self._foreign = None

    def __dealloc__(self):
        PyMem_Free(self._data)

    cdef uint8_t* _room(self, Py_ssize_t size) except NULL:
        """Where the next `size` bytes go."""
        cdef Py_ssize_t position = self._position
        cdef Py_ssize_t capacity = self._capacity
        cdef uint8_t* data
        if position + size > capacity:
            while position + size > capacity:
                capacity *= 2
            data = <uint8_t*> PyMem_Realloc(self._data, capacity)
            if data == NULL:
                raise MemoryError
            self._data = data
            self._capacity = capacity
        self._position = position + size
        return self._data + position

    cdef int _varint(self, uint32_t value) except -1:
        cdef uint8_t* out = self._room(MAX_VARINT_SIZE)
        cdef Py_ssize_t size = 0
        while value >= 0x80:
            out[size] = <uint8_t> (value | 0x80)
            value >>= 7
            size += 1
        out[size] = <uint8_t> value
        self._position += size + 1 - MAX_VARINT_SIZE
        return 0

    cdef int _short_length(self, Py_ssize_t length) except -1:
        """The length of a string; -1 is null."""
        return self._put16(<uint16_t> length)

    cdef int _long_length(self, Py_ssize_t length) except -1:
        """The length of bytes and arrays; -1 is null."""
        return self._put32(<uint32_t> length)

    cdef int _put16(self, uint16_t value) except -1:
        cdef uint8_t* out = self._room(2)
        out[0] = <uint8_t> (value >> 8)
        out[1] = <uint8_t> value
        return 0

    cdef int _put32(self, uint32_t value) except -1:
        cdef uint8_t* out = self._room(4)
        store32(out, value)
        return 0

    cdef int _put64(self, uint64_t value) except -1:
        cdef uint8_t* out = self._room(8)
        store32(out, <uint32_t> (value >> 32))
        store32(out + 4, <uint32_t> value)
        return 0

    cpdef int boolean(self, bint value) except -1:
        self._room(1)[0] = 1 if value else 0
        return 0

    cpdef int int8(self, int8_t value) except -1:
        self._room(1)[0] = <uint8_t> value
        return 0

    cpdef int int16(self, int16_t value) except -1:
        return self._put16(<uint16_t> value)

    cpdef int uint16(self, uint16_t value) except -1:
        return self._put16(value)

    cpdef int int32(self, int32_t value) except -1:
        return self._put32(<uint32_t> value)

    cpdef int uint32(self, uint32_t value) except -1:
        return self._put32(value)

    cpdef int int64(self, int64_t value) except -1:
        return self._put64(<uint64_t> value)

    cpdef int float64(self, double value) except -1:
        cdef uint64_t bits
        memcpy(&bits, &value, 8)
        return self._put64(bits)

    cpdef int uuid(self, bytes value) except -1:
        if value is None or len(value) != 16:
            raise InvalidArgument(f"a uuid is 16 raw bytes, not {value!r}")
        memcpy(self._room(16), <const char*> value, 16)
        return 0

    cdef const char* _utf8(self, str value, Py_ssize_t* size) except NULL:
        cdef const char* text
        try:
            text = PyUnicode_AsUTF8AndSize(value, size)
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"a string cannot be written as UTF-8: {error}") from None
        if size[0] > MAX_STRING_SIZE:
            raise InvalidArgument(f"a string of {size[0]} bytes exceeds the protocol's {MAX_STRING_SIZE}: {value[:40]!r}...")
        return text

    cpdef int string(self, str value) except -1:
        cdef Py_ssize_t size = 0
        cdef const char* text
        if value is None:
            raise InvalidArgument("a string that may not be null is None")
        text = self._utf8(value, &size)
        self._short_length(size)
        memcpy(self._room(size), text, size)
        return 0

    cpdef int plain_nullable_string(self, str value) except -1:
        """The client id of a request header, which keeps the plain encoding in every version."""
        cdef Py_ssize_t size = 0
        cdef const char* text
        if value is None:
            return self._put16(0xFFFF)
        text = self._utf8(value, &size)
        self._put16(<uint16_t> size)
        memcpy(self._room(size), text, size)
        return 0

    cpdef int nullable_string(self, str value) except -1:
        if value is None:
            return self._short_length(-1)
        return self.string(value)

    cpdef int bytes_(self, object value) except -1:
        if value is None:
            raise InvalidArgument("bytes that may not be null are None")
        return self.nullable_bytes(value)

    cpdef int nullable_bytes(self, object value) except -1:
        """Any contiguous buffer; a large one is not copied and must not change until written."""
        cdef Py_buffer view
        cdef Py_ssize_t size
        if value is None:
            return self._long_length(-1)
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        try:
            size = view.len
            if size > MAX_SIZE:
                raise InvalidArgument(f"{size} bytes exceed the protocol's {MAX_SIZE}")
            self._long_length(size)
            if size < OWN_CHUNK_SIZE:
                memcpy(self._room(size), view.buf, size)
                return 0
        finally:
            PyBuffer_Release(&view)
        if self._foreign is None:
            self._foreign = []
        self._foreign.append((self._position, value))
        self._foreign_size += size
        return 0

    cpdef int records(self, object value) except -1:
        return self.bytes_(value)

    cpdef int nullable_records(self, object value) except -1:
        return self.nullable_bytes(value)

    cpdef int array_length(self, Py_ssize_t length) except -1:
        return self._long_length(length)

    cpdef int nullable_array_length(self, Py_ssize_t length) except -1:
        """-1 is null."""
        return self._long_length(length)

    cpdef int present(self, bint value) except -1:
        """Stands before a struct that may be null."""
        self._room(1)[0] = 1 if value else 0xFF
        return 0

    cpdef int int8s(self, list values) except -1:
        self._long_length(len(values))
        for value in values:
            self.int8(value)
        return 0

    cpdef int int16s(self, list values) except -1:
        self._long_length(len(values))
        for value in values:
            self.int16(value)
        return 0

    cpdef int int32s(self, list values) except -1:
        self._long_length(len(values))
        for value in values:
            self.int32(value)
        return 0

    cpdef int int64s(self, list values) except -1:
        self._long_length(len(values))
        for value in values:
            self.int64(value)
        return 0

    cpdef int strings(self, list values) except -1:
        self._long_length(len(values))
        for value in values:
            self.string(value)
        return 0

    cpdef int uuids(self, list values) except -1:
        self._long_length(len(values))
        for value in values:
            self.uuid(value)
        return 0

    cpdef int nullable_int32s(self, list values) except -1:
        return self._long_length(-1) if values is None else self.int32s(values)

    cpdef int nullable_strings(self, list values) except -1:
        return self._long_length(-1) if values is None else self.strings(values)

    cpdef int nullable_uuids(self, list values) except -1:
        return self._long_length(-1) if values is None else self.uuids(values)

    cpdef int tags(self, tuple unknown, list known=None) except -1:
        """The tagged fields at the end of a struct: nothing at all in this encoding."""
        return 0

    cpdef CompactWriter nested(self):
        """A writer for the contents of one tagged field, to be handed to `tags`."""
        return CompactWriter()

    @property
    def size(self):
        """All bytes so far, those of referenced chunks included."""
        return self._position + self._foreign_size

    cpdef list chunks(self):
        """What was written, in order: bytes of this writer between the buffers it refers to."""
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t position
        cdef Py_ssize_t total = self._position + self._foreign_size
        cdef list parts
        if self._framed:
            if total - 4 > MAX_SIZE:
                raise InvalidArgument(f"a request of {total - 4} bytes exceeds the protocol's {MAX_SIZE}")
            store32(self._data, <uint32_t> (total - 4))
        if self._foreign is None:
            return [PyBytes_FromStringAndSize(<char*> self._data, self._position)]
        parts = []
        for cut, chunk in self._foreign:
            position = cut
            if position > start:
                parts.append(PyBytes_FromStringAndSize(<char*> self._data + start, position - start))
                start = position
            parts.append(chunk)
        if self._position > start:
            parts.append(PyBytes_FromStringAndSize(<char*> self._data + start, self._position - start))
        return parts

    def getvalue(self):
        """Everything as one bytes object."""
        return b"".join(self.chunks())


cdef class CompactWriter(PlainWriter):
    """The encoding of flexible versions."""

    cdef int _short_length(self, Py_ssize_t length) except -1:
        return self._varint(<uint32_t> (length + 1))

    cdef int _long_length(self, Py_ssize_t length) except -1:
        return self._varint(<uint32_t> (length + 1))

    cpdef int tags(self, tuple unknown, list known=None) except -1:
        """Known (tag, nested writer) and unknown (tag, bytes) fields, in ascending order."""
        cdef list fields
        if not unknown and not known:
            self._room(1)[0] = 0
            return 0
        fields = [(tag, writer.getvalue()) for tag, writer in known] if known else []
        fields.extend(unknown)
        fields.sort()
        self._varint(<uint32_t> len(fields))
        for tag, content in fields:
            self._varint(<uint32_t> tag)
            self._tag_content(content)
        return 0

    cdef int _tag_content(self, bytes content) except -1:
        cdef Py_ssize_t size = len(content)
        self._varint(<uint32_t> size)
        memcpy(self._room(size), <const char*> content, size)
        return 0


cdef class PlainReader:
    """Reads a contiguous buffer, which must not change meanwhile.

    Byte fields are copied, records are views of the buffer. Every read raises ProtocolViolation
    when the buffer cannot hold what it announces.
    """

    cdef object _view
    cdef const uint8_t* _data
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end
    cdef Py_ssize_t _elements  # of arrays and tags that may still be read

    def __init__(self, data, Py_ssize_t position=0):
        view = memoryview(data)
        if not view.c_contiguous:
            raise InvalidArgument("a reader needs a contiguous buffer")
        self._open(view if view.itemsize == 1 and view.ndim == 1 else view.cast("B"))
        if not 0 <= position <= self._end:
            raise ProtocolViolation(f"position {position} is beyond the end of a message of {self._end} bytes")
        self._position = position

    cdef int _open(self, object view) except -1:
        cdef Py_buffer buffer
        PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE)
        self._data = <const uint8_t*> buffer.buf
        self._end = buffer.len
        PyBuffer_Release(&buffer)
        self._view = view  # keeps the memory alive and in place
        self._elements = UNLIMITED
        return 0

    cpdef int limit_elements(self, Py_ssize_t limit) except -1:
        """Refuse the message once its arrays and tags announce more elements than this.

        Each becomes a Python object: a byte of an array may take a hundred bytes of memory.
        """
        self._elements = limit
        return 0

    cdef Py_ssize_t _array(self, Py_ssize_t length) except -2:
        """Count the elements of an array; -1 is null."""
        if length > self._elements:
            raise ProtocolViolation(
                f"the array of {length} elements before byte {self._position} has more than the "
                f"{self._elements} that the message may still have"
            )
        if length > 0:
            self._elements -= length
        return length

    cdef const uint8_t* _take(self, Py_ssize_t size) except NULL:
        cdef Py_ssize_t position = self._position
        if size > self._end - position:
            raise ProtocolViolation(f"{size} bytes wanted at byte {position}, but only {self._end - position} are left")
        self._position = position + size
        return self._data + position

    cdef uint32_t _varint(self) except? 0xFFFFFFFF:
        cdef uint32_t value = 0
        cdef uint32_t byte
        cdef int shift = 0
        while True:
            byte = self._take(1)[0]
            if shift == 28 and byte > 0x0F:
                raise ProtocolViolation(f"the varint that ends at byte {self._position} has more than 32 bits")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    cdef Py_ssize_t _short_length(self) except -2:
        """The length of a string; -1 is null."""
        return self._checked(<int16_t> load16(self._take(2)))

    cdef Py_ssize_t _long_length(self) except -2:
        """The length of bytes or an array; -1 is null. Each item takes at least one byte."""
        return self._checked(<int32_t> load32(self._take(4)))

    cdef Py_ssize_t _checked(self, Py_ssize_t length) except -2:
        if length < -1:
            raise ProtocolViolation(f"negative length {length} before byte {self._position}")
        if length > self._end - self._position:
            raise ProtocolViolation(
                f"length {length} before byte {self._position}, but only {self._end - self._position} bytes are left"
            )
        return length

    cdef Py_ssize_t _not_null(self, Py_ssize_t length) except -2:
        if length < 0:
            raise ProtocolViolation(f"null before byte {self._position} in a field that may not be null")
        return length

    cpdef bint boolean(self) except? -1:
        return self._take(1)[0] != 0

    cpdef int8_t int8(self) except? -1:
        return <int8_t> self._take(1)[0]

    cpdef int16_t int16(self) except? -1:
        return <int16_t> load16(self._take(2))

    cpdef uint16_t uint16(self) except? 0xFFFF:
        return load16(self._take(2))

    cpdef int32_t int32(self) except? -1:
        return <int32_t> load32(self._take(4))

    cpdef uint32_t uint32(self) except? 0xFFFFFFFF:
        return load32(self._take(4))

    cpdef int64_t int64(self) except? -1:
        return <int64_t> load64(self._take(8))

    cpdef double float64(self) except? -1:
        cdef uint64_t bits = load64(self._take(8))
        cdef double value
        memcpy(&value, &bits, 8)
        return value

    cpdef bytes uuid(self):
        return PyBytes_FromStringAndSize(<const char*> self._take(16), 16)

    cdef str _text(self, Py_ssize_t size):
        cdef const uint8_t* text = self._take(size)
        try:
            return PyUnicode_DecodeUTF8(<const char*> text, size, NULL)
        except UnicodeDecodeError as error:
            raise ProtocolViolation(f"the string before byte {self._position} is not UTF-8: {error}") from None

    cpdef str string(self):
        return self._text(self._not_null(self._short_length()))

    cpdef str nullable_string(self):
        cdef Py_ssize_t size = self._short_length()
        return None if size < 0 else self._text(size)

    cpdef str plain_nullable_string(self):
        """The client id of a request header, which keeps the plain encoding in every version."""
        cdef Py_ssize_t size = self._checked(<int16_t> load16(self._take(2)))
        return None if size < 0 else self._text(size)

    cdef bytes _copy(self, Py_ssize_t size):
        cdef const uint8_t* content = self._take(size)
        cdef bytes copy
        cdef char* target
        if size < LARGE_COPY:
            return PyBytes_FromStringAndSize(<const char*> content, size)
        copy = PyBytes_FromStringAndSize(NULL, size)
        target = copy
        with nogil:
            memcpy(target, content, size)
        return copy

    cpdef bytes bytes_(self):
        return self._copy(self._not_null(self._long_length()))

    cpdef bytes nullable_bytes(self):
        cdef Py_ssize_t size = self._long_length()
        return None if size < 0 else self._copy(size)

    cpdef object records(self):
        """A view of the buffer."""
        return self._view_of(self._not_null(self._long_length()))

    cpdef object nullable_records(self):
        cdef Py_ssize_t size = self._long_length()
        return None if size < 0 else self._view_of(size)

    cdef object _view_of(self, Py_ssize_t size):
        cdef Py_ssize_t start = self._position
        self._take(size)
        return self._view[start:start + size]

    cpdef Py_ssize_t array_length(self) except -2:
        return self._array(self._not_null(self._long_length()))

    cpdef Py_ssize_t nullable_array_length(self) except -2:
        """-1 is null."""
        return self._array(self._long_length())

    cpdef bint present(self) except? -1:
        """Stands before a struct that may be null."""
        return <int8_t> self._take(1)[0] >= 0

    cdef list _int8s(self, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        for index in range(length):
            if index & SLICE == SLICE:
                let_others_run()
            items.append(self.int8())
        PyObject_GC_UnTrack(<void*> items)
        return items

    cdef list _int16s(self, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        for index in range(length):
            if index & SLICE == SLICE:
                let_others_run()
            items.append(self.int16())
        PyObject_GC_UnTrack(<void*> items)
        return items

    cdef list _int32s(self, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        for index in range(length):
            if index & SLICE == SLICE:
                let_others_run()
            items.append(self.int32())
        PyObject_GC_UnTrack(<void*> items)
        return items

    cdef list _int64s(self, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        for index in range(length):
            if index & SLICE == SLICE:
                let_others_run()
            items.append(self.int64())
        PyObject_GC_UnTrack(<void*> items)
        return items

    cdef list _strings(self, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        for index in range(length):
            if index & SLICE == SLICE:
                let_others_run()
            items.append(self.string())
        PyObject_GC_UnTrack(<void*> items)
        return items

    cdef list _uuids(self, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        for index in range(length):
            if index & SLICE == SLICE:
                let_others_run()
            items.append(self.uuid())
        PyObject_GC_UnTrack(<void*> items)
        return items

    cdef list _structs(self, object kind, object version, Py_ssize_t length):
        cdef list items = []
        cdef Py_ssize_t index
        decode = kind.decode
        try:
            for index in range(length):
                items.append(decode(self, version))
        except ProtocolViolation:
            release(items)
            raise
        PyObject_GC_UnTrack(<void*> items)
        return items

    cpdef list structs(self, object kind, object version):
        """An array of structs, in no list of the garbage collector."""
        return self._structs(kind, version, self.array_length())

    cpdef list nullable_structs(self, object kind, object version):
        cdef Py_ssize_t length = self.nullable_array_length()
        return None if length < 0 else self._structs(kind, version, length)

    cpdef list int8s(self):
        return self._int8s(self.array_length())

    cpdef list int16s(self):
        return self._int16s(self.array_length())

    cpdef list int32s(self):
        return self._int32s(self.array_length())

    cpdef list int64s(self):
        return self._int64s(self.array_length())

    cpdef list strings(self):
        return self._strings(self.array_length())

    cpdef list uuids(self):
        return self._uuids(self.array_length())

    cpdef list nullable_int32s(self):
        cdef Py_ssize_t length = self._array(self._long_length())
        return None if length < 0 else self._int32s(length)

    cpdef list nullable_strings(self):
        cdef Py_ssize_t length = self._array(self._long_length())
        return None if length < 0 else self._strings(length)

    cpdef list nullable_uuids(self):
        cdef Py_ssize_t length = self._array(self._long_length())
        return None if length < 0 else self._uuids(length)

    cpdef tuple tags(self):
        """The tagged fields at the end of a struct, none of which it knows, as (tag, bytes)."""
        return ()

    cpdef object tagged(self):
        """The tagged fields at the end of a struct, as (tag, reader of its contents)."""
        return ()

    cpdef bytes rest(self):
        """Everything that is left."""
        cdef Py_ssize_t size = self._end - self._position
        return PyBytes_FromStringAndSize(<const char*> self._take(size), size)

    cpdef int end(self) except -1:
        """Checks that nothing is left."""
        if self._position != self._end:
            raise ProtocolViolation(f"{self._end - self._position} bytes follow the end of the message, at byte {self._position}")
        return 0

    @property
    def position(self):
        return self._position

    @property
    def remaining(self):
        return self._end - self._position


cdef class CompactReader(PlainReader):
    """The encoding of flexible versions."""

    cdef Py_ssize_t _short_length(self) except -2:
        cdef Py_ssize_t length = self._checked(<Py_ssize_t> self._varint() - 1)
        if length > MAX_STRING_SIZE:  # as Java's client
            raise ProtocolViolation(f"a string of {length} bytes before byte {self._position}, more than {MAX_STRING_SIZE}")
        return length

    cdef Py_ssize_t _long_length(self) except -2:
        return self._checked(<Py_ssize_t> self._varint() - 1)

    cpdef tuple tags(self):
        if self._end > self._position and self._data[self._position] == 0:
            self._position += 1
            return ()
        return tuple([(tag, field.rest()) for tag, field in self.tagged()])

    cpdef object tagged(self):
        cdef CompactReader field
        cdef Py_ssize_t count
        cdef Py_ssize_t size
        cdef int64_t previous = -1
        cdef int64_t tag
        cdef list fields
        if self._end > self._position and self._data[self._position] == 0:
            self._position += 1
            return ()
        count = self._array(self._checked(<Py_ssize_t> self._varint()))
        if count > MAX_TAGS:
            raise ProtocolViolation(f"{count} tagged fields before byte {self._position}, more than {MAX_TAGS}")
        fields = []
        for _ in range(count):
            tag = self._varint()
            if tag <= previous:
                raise ProtocolViolation(f"tag {tag} follows tag {previous} before byte {self._position}")
            previous = tag
            size = self._checked(<Py_ssize_t> self._varint())
            field = CompactReader.__new__(CompactReader)
            field._view = self._view
            field._data = self._data
            field._position = self._position
            field._end = self._position + size
            field._elements = self._elements
            self._take(size)
            fields.append((tag, field))
        return fields


cdef int let_others_run() except -1:
    """Release the interpreter's lock: compiled loops do not do it by themselves."""
    with nogil:
        pass
    return 0


cdef inline void store32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0] = <uint8_t> (value >> 24)
    out[1] = <uint8_t> (value >> 16)
    out[2] = <uint8_t> (value >> 8)
    out[3] = <uint8_t> value


cdef inline uint16_t load16(const uint8_t* data) noexcept nogil:
    return (<uint16_t> data[0] << 8) | data[1]


cdef inline uint32_t load32(const uint8_t* data) noexcept nogil:
    return (<uint32_t> data[0] << 24) | (<uint32_t> data[1] << 16) | (<uint32_t> data[2] << 8) | data[3]


cdef inline uint64_t load64(const uint8_t* data) noexcept nogil:
    return (<uint64_t> load32(data) << 32) | load32(data + 4)
