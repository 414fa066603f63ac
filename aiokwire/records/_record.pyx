# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=False
"""What a consumer hands out: `Record` with plain bytes, `DeserializedRecord` with any objects.

`Record` holds only bytes, strings and numbers, so no cycle can run through it and the garbage
collector need not know it: with a million of them alive that is most of the cost of a record.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp

from aiokwire.records._cursor cimport Slot, next_header

from aiokwire.types import TimestampType, TopicPartition

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void*)
    void PyType_Modified(PyTypeObject*)

cdef extern from "structmember.h":
    const int READONLY
    const int T_OBJECT_EX

    ctypedef struct PyMemberDef:
        const char* name
        int type
        Py_ssize_t offset
        int flags

    object PyDescr_NewMember(PyTypeObject*, PyMemberDef*)

    ctypedef struct Described "PyTypeObject":
        PyObject* tp_dict

FAULTS = (
    "",
    "the record's length does not fit the batch",
    "the record's timestamp is truncated",
    "the record's offset is malformed",
    "the key's length does not fit the record",
    "the value's length does not fit the record",
    "the headers do not fit the record",
    "bytes are left over behind the record",
    "a message of another format, or compressed twice, inside of a message set",
    "not enough memory",
    "the batch's length is impossible",
    "the message format is unknown",
    "the compression codec is unknown",
    "the checksum does not match: the bytes were corrupted in transit or on disk",
    "the number of records does not fit the bytes",
    "a compressed message holds no messages",
)

_KINDS = {-1: TimestampType.NONE, 0: TimestampType.CREATE_TIME, 1: TimestampType.LOG_APPEND_TIME}


# Names of headers repeat from record to record: a small table of the last ones, by length and last byte.
cdef list _names = [""] * 64


cdef str _name(const uint8_t* p, Py_ssize_t size):
    cdef Py_ssize_t known_size
    cdef const char* known
    cdef Py_ssize_t place
    cdef str name
    if not 0 < size <= 64:
        return PyUnicode_DecodeUTF8(<char*>p, size, "replace")
    place = (size + 7 * p[size - 1]) & 63
    name = <str>_names[place]
    known = PyUnicode_AsUTF8AndSize(name, &known_size)
    if known_size != size or memcmp(known, p, size):
        # Kafka does not check that names are UTF-8: a foreign one must not stop the reader
        name = PyUnicode_DecodeUTF8(<char*>p, size, "replace")
        _names[place] = name
    return name


cdef tuple read_headers(Slot* slot):
    """The headers of a slot that `next_slot` has found sound."""
    cdef const uint8_t* p = slot.headers
    cdef const uint8_t* key
    cdef const uint8_t* value
    cdef int64_t key_size, value_size
    cdef Py_ssize_t i, count = slot.header_count
    cdef tuple headers = PyTuple_New(count)
    cdef tuple pair
    for i in range(count):
        if next_header(&p, slot.end, &key, &key_size, &value, &value_size):
            raise ValueError(FAULTS[6])
        pair = (
            _name(key, key_size),
            None if value_size < 0 else PyBytes_FromStringAndSize(<char*>value, value_size),
        )
        PyObject_GC_UnTrack(<void*>pair)  # text and bytes: no cycle can run through it
        Py_INCREF(pair)
        PyTuple_SET_ITEM(headers, i, pair)
    PyObject_GC_UnTrack(<void*>headers)
    return headers


@cython.no_gc
@cython.freelist(1024)
cdef class Record:
    def __init__(self, str topic not None, int partition, int64_t offset, int64_t timestamp=-1, bytes key=None,
                 bytes value=None, headers=(), *, timestamp_type=TimestampType.CREATE_TIME, int leader_epoch=-1):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = tuple((str(name), None if content is None else bytes(content)) for name, content in headers)
        self.timestamp_kind = timestamp_type
        self.leader_epoch = leader_epoch

    @property
    def timestamp_type(self):
        return _KINDS[self.timestamp_kind]

    @property
    def topic_partition(self):
        return TopicPartition(self.topic, self.partition)

    @property
    def checksum(self):
        return None

    @property
    def serialized_key_size(self):
        return -1 if self.key is None else len(self.key)

    @property
    def serialized_value_size(self):
        return -1 if self.value is None else len(self.value)

    def __eq__(self, other):
        if type(other) is not Record:
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __hash__(self):
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self):
        return (
            f"Record(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self):
        return _restore, (Record, self.topic, self.partition, self.offset, self.timestamp, self.key, self.value,
                          self.headers, self.timestamp_type, self.leader_epoch)


@cython.freelist(256)
cdef class DeserializedRecord:
    def __init__(self, Record record not None, key, value):
        self.topic = record.topic
        self.partition = record.partition
        self.offset = record.offset
        self.timestamp = record.timestamp
        self.key = key
        self.value = value
        self.headers = record.headers
        self.serialized_key_size = -1 if record.key is None else len(record.key)
        self.serialized_value_size = -1 if record.value is None else len(record.value)
        self.timestamp_kind = record.timestamp_kind
        self.leader_epoch = record.leader_epoch

    def __class_getitem__(cls, parameters):
        return cls

    @property
    def timestamp_type(self):
        return _KINDS[self.timestamp_kind]

    @property
    def topic_partition(self):
        return TopicPartition(self.topic, self.partition)

    @property
    def checksum(self):
        return None

    def __eq__(self, other):
        if type(other) is not DeserializedRecord:
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __hash__(self):
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self):
        return (
            f"DeserializedRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self):
        return _restore_deserialized, (self.topic, self.partition, self.offset, self.timestamp, self.key, self.value,
                                       self.headers, self.timestamp_type, self.leader_epoch)


def _restore(cls, topic, partition, offset, timestamp, key, value, headers, timestamp_type, leader_epoch):
    return cls(topic, partition, offset, timestamp, key, value, headers, timestamp_type=timestamp_type,
               leader_epoch=leader_epoch)


def _restore_deserialized(topic, partition, offset, timestamp, key, value, headers, timestamp_type, leader_epoch):
    return DeserializedRecord(
        Record(topic, partition, offset, timestamp, None, None, headers, timestamp_type=timestamp_type,
               leader_epoch=leader_epoch), key, value)


# The interpreter has a short way to members of an object that are objects themselves (as to `__slots__`), but not to the
# properties that Cython makes of them. Reading a value is a third of what a loop over records costs. Cython lays
# members out in the order of their declaration, so the four are the first.
cdef PyMemberDef[4] _members


cdef int _put_members() except -1:
    cdef int i
    for i, name in enumerate((b"topic", b"key", b"value", b"headers")):
        _members[i].name = name  # a constant of this module, which stays
        _members[i].type = T_OBJECT_EX
        _members[i].offset = sizeof(PyObject) + i * sizeof(void*)
        _members[i].flags = READONLY
        for kind in (Record, DeserializedRecord):
            (<dict>(<Described*>kind).tp_dict)[name.decode()] = PyDescr_NewMember(<PyTypeObject*>kind, &_members[i])
            PyType_Modified(<PyTypeObject*>kind)
    return 0


_put_members()
