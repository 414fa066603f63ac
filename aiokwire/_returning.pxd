# cython: language_level=3
"""How a compiled awaitable returns its result to `await`.

CPython 3.11 asks the type's `am_send`, which returns the result itself. From 3.12 on `await` calls `tp_iternext` of
anything but a coroutine or a generator, and expects a StopIteration with the result. A new one for each await, with
a traceback entry of the compiled code, costs half a microsecond: several times what `submit` or a step of
`async for` costs. `finish_with` raises the same one again unless it was kept, or has a context, a cause or notes.
"""

from cpython.object cimport PyObject

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030C0000

    static PyObject *spare_stop = NULL;

    static inline int is_reusable(PyObject *stop) {
        PyBaseExceptionObject *found = (PyBaseExceptionObject *)stop;
        return Py_REFCNT(stop) == 1 && found->traceback == NULL && found->context == NULL && found->cause == NULL
            && found->dict == NULL && found->notes == NULL;
    }

    static inline PyObject *finish_with(PyObject *result) {
        PyObject *stop = spare_stop;
        if (stop != NULL && is_reusable(stop)) {
            Py_INCREF(stop);  /* before code that may run now: it finds it in use */
        } else {
            stop = PyObject_CallNoArgs(PyExc_StopIteration);
            if (stop == NULL) return NULL;
            Py_XSETREF(spare_stop, Py_NewRef(stop));
        }
        Py_XSETREF(((PyStopIterationObject *)stop)->value, Py_NewRef(result));
        PyErr_SetRaisedException(stop);
        return NULL;
    }

    static inline void forget_result(PyObject *result) {
        PyObject *stop = spare_stop;
        if (stop == NULL || ((PyStopIterationObject *)stop)->value != result) return;
        if (is_reusable(stop)) {
            ((PyStopIterationObject *)stop)->value = Py_NewRef(Py_None);
            Py_DECREF(result);
        } else {
            spare_stop = NULL;
            Py_DECREF(stop);
        }
    }

    #else

    static inline PyObject *finish_with(PyObject *result) {
        PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, result);
        if (stop != NULL) {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
        return NULL;
    }

    static inline void forget_result(PyObject *result) {}

    #endif

    #define NEEDS_STOP (PY_VERSION_HEX >= 0x030C0000)
    """
    bint NEEDS_STOP
    # Raise the StopIteration that carries the result; always NULL.
    PyObject* finish_with(PyObject* result)
    # Drop the reference to a result that was returned.
    void forget_result(PyObject* result)
