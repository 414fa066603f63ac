# cython: language_level=3
"""Filled `Columns` handed to Arrow through its C data interface: one call instead of twenty.

Used by `arrow`. The tree: the record batch (a struct), its columns, of which the topic has a
dictionary and the headers are lists of structs. The memory stays with the `ArrowBuffer` objects,
which the holder keeps. https://arrow.apache.org/docs/format/CDataInterface.html
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from array import array
from itertools import accumulate

from aiokwire.records._columns cimport ArrowBuffer, Columns

cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept
    void* private_data

ctypedef const void* Address
ctypedef ArrowArray* Child

cdef enum:
    COLUMNS = 8
    NODES = 12  # the columns, the topic's dictionary, and a header's struct, name and value
    MOST_BUFFERS = 3
    CHILDREN = COLUMNS + 3

cdef const char* CAPSULE = "arrow_array"
cdef const char* NOTHING = ""  # an address for what has no bytes


@cython.no_gc  # in no cycle: what it holds is bytes
cdef class Holder:
    """The nodes below the record batch and what they point to; alive as long as one of them is."""

    cdef ArrowArray[NODES] nodes
    cdef Address[(NODES + 1) * MOST_BUFFERS] buffers
    cdef Child[CHILDREN] children
    cdef int used
    cdef int given  # of `buffers`
    cdef dict parts
    cdef object names
    cdef object name_offsets

    cdef int fill(self, ArrowArray* node, int64_t length, int64_t nulls, tuple buffers) except -1:
        """Sets a node up; its children, if any, are set by the caller."""
        cdef int index
        node.length = length
        node.null_count = nulls
        node.n_buffers = len(buffers)
        node.buffers = &self.buffers[self.given]
        node.release = _release
        node.private_data = <void*>self
        for index, buffer in enumerate(buffers):
            self.buffers[self.given + index] = _address(buffer)
        self.given += MOST_BUFFERS
        Py_INCREF(self)  # each node lets go of it on its own
        return 0

    cdef ArrowArray* add(self, int64_t length, int64_t nulls, tuple buffers) except NULL:
        cdef ArrowArray* node = &self.nodes[self.used]
        self.used += 1
        self.fill(node, length, nulls, buffers)
        return node

    cdef ArrowArray* add_bytes(self, int64_t length, tuple column) except NULL:
        validity, offsets, data, nulls = column
        return self.add(length, nulls, (validity, offsets, data))

    cdef ArrowArray* add_headers(self, int64_t rows) except NULL:
        cdef int64_t count = self.parts["header_count"]
        cdef ArrowArray* lists = self.add(rows, 0, (None, self.parts["header_offsets"]))
        cdef ArrowArray* pairs = self.add(count, 0, (None,))
        self.children[COLUMNS] = pairs
        self.children[COLUMNS + 1] = self.add_bytes(count, self.parts["header_key"])
        self.children[COLUMNS + 2] = self.add_bytes(count, self.parts["header_value"])
        pairs.n_children, pairs.children = 2, &self.children[COLUMNS + 1]
        lists.n_children, lists.children = 1, &self.children[COLUMNS]
        return lists

    cdef ArrowArray* add_column(self, str name, int64_t rows, int64_t topics) except NULL:
        cdef ArrowArray* node
        if name == "headers":
            return self.add_headers(rows)
        if name == "key" or name == "value":
            return self.add_bytes(rows, self.parts[name])
        node = self.add(rows, 0, (None, self.parts[name]))
        if name == "topic":
            node.dictionary = self.add(topics, 0, (None, self.name_offsets, self.names))
        return node


cdef Address _address(object buffer) except? NULL:
    if buffer is None:
        return NULL
    if isinstance(buffer, bytes):
        return PyBytes_AS_STRING(buffer)
    if (<ArrowBuffer?>buffer).memory.p == NULL:
        return NOTHING
    return (<ArrowBuffer>buffer).memory.p


cdef void _release(ArrowArray* array) noexcept with gil:
    """Called once by the consumer of the array, from any thread."""
    cdef int64_t index
    cdef Holder holder = <Holder>array.private_data
    for index in range(array.n_children):
        if array.children[index].release != NULL:
            array.children[index].release(array.children[index])
    if array.dictionary != NULL and array.dictionary.release != NULL:
        array.dictionary.release(array.dictionary)
    array.release = NULL
    Py_DECREF(holder)


cdef void _drop(object capsule) noexcept:
    cdef ArrowArray* root = <ArrowArray*>PyCapsule_GetPointer(capsule, CAPSULE)
    if root.release != NULL:
        root.release(root)
    free(root)


def export(Columns columns not None, names):
    cdef Holder holder = Holder.__new__(Holder)
    cdef ArrowArray* root
    cdef int64_t rows = columns.rows
    cdef int count = len(names)
    if count > COLUMNS:
        raise ValueError("a column is named twice")
    holder.parts = columns.buffers()
    encoded = [name.encode() for name in holder.parts["topics"]]
    holder.names = b"".join(encoded)
    holder.name_offsets = array("i", accumulate(map(len, encoded), initial=0)).tobytes()
    root = <ArrowArray*>calloc(1, sizeof(ArrowArray))
    if root == NULL:
        raise MemoryError
    capsule = PyCapsule_New(root, CAPSULE, _drop)
    holder.fill(root, rows, 0, (None,))
    for index, name in enumerate(names):
        # the root counts a child from when it is there: whatever raises, the capsule gives everything back
        holder.children[index] = holder.add_column(name, rows, len(encoded))
        root.n_children, root.children = index + 1, &holder.children[0]
    return capsule
