# cython: language_level=3, boundscheck=False, wraparound=False
"""Records in flight and their order: the code of a worker that runs several times per record.

`ordering` describes chains and lines. The garbage collector does not track a record until its
attempt raises or it waits for deliveries: there may be ten thousand, and to visit them again and
again costs a tenth of the worker's time. Until then its queue and its executor hold it; `release`
and `drop` end the cycles of references that it is part of.
"""

from collections import deque

from aiokwire.types import Order

cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object)
    void PyObject_GC_Track(object)
    void PyObject_GC_UnTrack(object)

cdef bytes _WHOLE_PARTITION = b""


cdef class Ordered:
    """See `ordering`."""

    cdef public object tp
    cdef public object key
    cdef public Line line
    cdef public bytes chain
    cdef public dict chains

    def __init__(self, tp, key, Line line not None):
        self.tp = tp
        self.key = key
        self.line = line
        self.chain = _WHOLE_PARTITION
        self.chains = None

    def track(self):
        """Have the garbage collector track it from now on."""
        if not PyObject_GC_IsTracked(self):
            PyObject_GC_Track(self)


cdef class InFlightRecord(Ordered):
    """See `work_queue`."""

    cdef public object record
    cdef public object partition
    cdef public Py_ssize_t size
    cdef public Py_ssize_t attempt

    def __init__(self, record, partition, Py_ssize_t size, Py_ssize_t attempt=1):
        self.tp = partition.tp
        self.key = record.key
        self.line = partition.handler_line
        self.chain = _WHOLE_PARTITION
        self.chains = None
        self.record = record
        self.partition = partition
        self.size = size
        self.attempt = attempt

    @property
    def count(self):
        return 1

    @property
    def offsets(self):
        return (self.record.offset,)

    @property
    def place(self):
        return f"{self.tp} at offset {self.record.offset}"


cdef class Line:
    """See `ordering`."""

    cdef public object limit
    cdef public object gates
    cdef public object ready
    cdef public Py_ssize_t running

    def __init__(self, limit=None, gates=()):
        self.limit = limit
        self.gates = gates
        self.ready = deque()
        self.running = 0

    cdef bint _has_room(self) except -1:
        return self.limit is None or self.running < self.limit

    @property
    def can_run(self):
        if not self.ready or not self._has_room():
            return False
        return not self.gates or self.is_admitted()

    def is_admitted(self):
        return all([gate.admits for gate in self.gates])


cdef class Ordering:
    """See `ordering`."""

    cdef object _lines
    cdef set _listed
    cdef dict _chains
    cdef bint _has_chains
    cdef bint _is_by_partition

    def __init__(self, order):
        self._has_chains = order is not Order.NONE
        self._is_by_partition = order is Order.PARTITION
        self._lines = deque()  # with runnable records, or at their limit; they take turns
        self._listed = set()
        self._chains = {}

    def __class_getitem__(cls, kind):
        return cls

    def add(self, Ordered item not None):
        """Admit a record behind all earlier ones of its chain."""
        self._add(item)

    cdef _add(self, Ordered item):
        cdef dict chains
        cdef bytes chain
        if not self._has_chains or (item.key is None and not self._is_by_partition):
            self._make_ready(item)
            return
        chains = self._chains.get(item.tp)
        if chains is None:
            chains = self._chains[item.tp] = {}
        chain = _WHOLE_PARTITION if self._is_by_partition else item.key
        item.chain, item.chains = chain, chains
        if chain not in chains:
            chains[chain] = None
            self._make_ready(item)
            return
        waiting = chains[chain]
        if waiting is None:
            chains[chain] = deque((item,))
        else:
            waiting.append(item)

    def add_records(self, records, partition, attempts=None):
        """Admit records of a partition; return the bytes of their keys and values.

        `attempts` returns the number of calls before a record came to a retry topic.
        """
        cdef InFlightRecord item
        cdef Py_ssize_t size, total = 0
        cdef Line line = partition.handler_line
        tp = partition.tp
        for record in records:
            key, value = record.key, record.value
            size = (0 if key is None else len(key)) + (0 if value is None else len(value))
            total += size
            item = InFlightRecord.__new__(InFlightRecord)
            PyObject_GC_UnTrack(item)
            item.tp = tp
            item.key = key
            item.line = line
            item.chain = _WHOLE_PARTITION
            item.record = record
            item.partition = partition
            item.size = size
            item.attempt = 1 if attempts is None else 1 + attempts(record)
            self._add(item)
        return total

    def offer(self, Ordered item not None):
        """Admit an item that may run now; it has no chain."""
        self._make_ready(item)

    def take(self):
        """Return a record that may run now, or None; `release` or `put_off` must follow."""
        cdef Line line
        lines = self._lines
        cdef Py_ssize_t count = len(lines)
        cdef Py_ssize_t number
        for number in range(count):
            line = lines[0]
            if not line.ready:
                lines.popleft()
                self._listed.remove(line)
                continue
            if len(lines) > 1:
                lines.rotate(-1)
            if line._has_room() and (not line.gates or line.is_admitted()):
                line.running += 1
                for gate in line.gates:
                    gate.enter()
                return line.ready.popleft()
        return None

    @property
    def can_take(self):
        """Whether `take` would return a record."""
        cdef Line line
        for line in self._lines:
            if line.can_run:
                return True
        return False

    def release(self, Ordered item not None):
        """Note that a record that ran is finished: the next one of its chain may run."""
        item.line.running -= 1
        cdef Ordered following
        cdef dict chains = item.chains
        if chains is None:
            return
        waiting = chains[item.chain]
        if waiting is None:
            del chains[item.chain]
            return
        following = waiting.popleft()
        if not waiting:
            chains[item.chain] = None
        if self._chains.get(item.tp) is chains:  # else it was dropped
            self._make_ready(following)

    def put_off(self, Ordered item not None):
        """Note that a record that ran waits for its next attempt, and its chain with it."""
        item.line.running -= 1

    def put_back(self, Ordered item not None):
        """Make a record that was put off runnable, before others of its handler."""
        item.line.ready.appendleft(item)
        self._list(item.line)

    def postpone(self, Ordered item not None):
        """Make a record that ran runnable again, behind others of its handler."""
        item.line.running -= 1
        self._make_ready(item)

    def drop(self, tp):
        """Forget the records of a partition that do not run; those that run are still released."""
        chains = self._chains.pop(tp, None)
        if chains is not None:
            for chain in chains:  # no cycle of references stays behind
                chains[chain] = None
        for line in self._lines:
            if any([item.tp == tp for item in line.ready]):
                line.ready = deque([item for item in line.ready if item.tp != tp])

    cdef _make_ready(self, Ordered item):
        item.line.ready.append(item)
        self._list(item.line)

    cdef _list(self, Line line):
        if line not in self._listed:
            self._listed.add(line)
            self._lines.append(line)
