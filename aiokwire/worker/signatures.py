"""Reads a handler's signature, and fills its arguments from a record."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NoReturn, cast, get_args, get_origin

from aiokwire.consumer import ConsumerRecord, DeserializationError
from aiokwire.errors import ConfigurationError
from aiokwire.parameters import parameters_of
from aiokwire.records import DeserializedRecord, Record
from aiokwire.types import Headers
from aiokwire.worker.context import Context
from aiokwire.worker.decoding import accepts_null, decoder_of

if TYPE_CHECKING:
    from aiokwire.worker.decoding import Decode

# Decodes a key or value; may be asynchronous, like a consumer's deserializers.
Deserializer = Callable[[bytes], Awaitable[Any] | Any]
RawRecord = ConsumerRecord[bytes, bytes]
# A record's key and value: bytes, or the results of explicit deserializers.
Parts = tuple[Any, Any]
Fill = Callable[[RawRecord, Parts, Context], Any]

POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_STARRED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_CHOICES: Final = "ConsumerRecord, Context, Headers, Annotated[T, Key] or the type of the decoded value"


class Key:
    """Marks the argument that receives the record's decoded key: `Annotated[str, Key]`."""


class Deserializers(NamedTuple):
    """Functions that replace the decoding by annotation; None: by annotation. Null stays null."""

    key: Deserializer | None = None
    value: Deserializer | None = None

    async def apply(self, record: RawRecord, handler: str) -> Parts:
        """Return the key and the value, decoded where there is a function.

        Raises: DeserializationError: a function raised.
        """
        key, value = record.key, record.value
        if self.key is not None and key is not None:
            key = await _result(self.key, key, record, handler, "key")
        if self.value is not None and value is not None:
            value = await _result(self.value, value, record, handler, "value")
        return key, value


async def _result(function: Deserializer, data: bytes, record: RawRecord, handler: str, part: str) -> Any:
    try:
        result = function(data)
        return await result if inspect.isawaitable(result) else result
    except Exception as error:  # whatever a deserializer raises
        raise _failure(record, handler, part, error) from error


class Arguments(NamedTuple):
    """The sources of a handler's arguments."""

    positional: tuple[Fill, ...]
    named: dict[str, Fill]


def arguments_of(function: Callable[..., Any], name: str, deserializers: Deserializers) -> Arguments:
    """Return how to fill the arguments of a handler's function.

    Args:
        function: a coroutine function, a method, a `functools.partial`, or a callable object.
        name: the handler's name, for errors.
        deserializers: replace the decoding by annotation.

    Raises: ConfigurationError: an argument has no annotation, one that cannot be decoded, or a
    default; there are two arguments for the value.
    """
    hints = hints_of(function, name)
    positional, named, values = [], {}, []
    for parameter in open_parameters(function, name):
        if parameter.default is not parameter.empty:
            refuse(name, parameter.name, "has a default, which would never be used: remove it, or bind the "
                    f"argument by functools.partial({name.rpartition('.')[2]}, {parameter.name}=...)")  # fmt: skip
        argument = Argument(name, parameter.name, hints.get(parameter.name, inspect.Parameter.empty), deserializers)
        if argument.is_value:
            values.append(parameter.name)
        if parameter.kind in POSITIONAL:
            positional.append(argument.fill())
        else:
            named[parameter.name] = argument.fill()
    if len(values) > 1:
        refuse(name, values[1], f"would be a second value beside {values[0]!r}: keep one, and annotate others as "
                "ConsumerRecord, Context, Headers or Annotated[T, Key]")  # fmt: skip
    return Arguments(tuple(positional), named)


def open_parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """Return the parameters that no `functools.partial` binds."""
    bound: set[str] = set()
    inner = function
    while isinstance(inner, functools.partial):
        bound |= inner.keywords.keys()
        inner = inner.func
    found = []
    for parameter in parameters_of(function).values():
        if parameter.kind in _STARRED:
            refuse(name, f"*{parameter.name}", f"is not filled: annotate arguments one by one as {_CHOICES}")
        if parameter.name not in bound:
            found.append(parameter)
    return found


def hints_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return the annotations of a handler's function."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigurationError(
            f"handler {name}: its annotations cannot be evaluated: {error}; define or import the name at the top of "
            "the module, outside functions and `if TYPE_CHECKING:`"
        ) from None


class Argument:
    """One argument of a handler."""

    def __init__(self, handler: str, name: str, annotation: Any, deserializers: Deserializers) -> None:
        if annotation is DeserializedRecord:
            refuse(handler, name, "is a DeserializedRecord, whose types are unknown at run time: annotate it as "
                    "ConsumerRecord[K, V]")  # fmt: skip
        if is_arrow(annotation):
            refuse(handler, name, "is Arrow data, which has many records: pass max_records=")
        self._handler = handler
        self._name = name
        self._annotation = annotation
        self._deserializers = deserializers
        self._is_record = annotation is Record or (get_origin(annotation) or annotation) is ConsumerRecord
        self._is_key = get_origin(annotation) is Annotated and any(
            mark is Key or isinstance(mark, Key) for mark in get_args(annotation)[1:]
        )
        # Compared by `==`: Headers is an alias of a generic type.
        self.is_value: bool = not (self._is_record or self._is_key or annotation is Context or annotation == Headers)

    def fill(self) -> Fill:
        """Return the function that returns the argument for a record."""
        if self._annotation is Context:
            return lambda _record, _parts, context: context
        if self._annotation == Headers:
            return lambda record, _parts, _context: record.headers
        if self._is_record:
            return self._record()
        if self._is_key:
            decode_key = self._decode("key", self._deserializers.key, self._annotation)
            return lambda record, parts, _context: decode_key(record, parts[0])
        decode_value = self._decode("value", self._deserializers.value, self._annotation)
        if self._annotation is bytes:
            return lambda record, parts, _context: decode_value(record, None) if parts[1] is None else parts[1]
        return lambda record, parts, _context: decode_value(record, parts[1])

    def _record(self) -> Fill:
        kinds = get_args(self._annotation)
        if self._annotation is Record or (not kinds and self._deserializers == (None, None)):
            return lambda record, _parts, _context: record
        key_kind, value_kind = kinds or (bytes, bytes)
        # The attributes of a record are optional by their own annotations.
        key = self._decode("key", self._deserializers.key, typing.Optional[key_kind])  # noqa: UP045
        value = self._decode("value", self._deserializers.value, typing.Optional[value_kind])  # noqa: UP045
        return lambda record, parts, _context: DeserializedRecord(
            cast("Record", record), key(record, parts[0]), value(record, parts[1])
        )

    def _decode(self, part: str, given: Deserializer | None, annotation: Any) -> Callable[[RawRecord, Any], Any]:
        """Return the function that decodes a key or value, unless an explicit one did."""
        if given is not None:
            return lambda _record, decoded: decoded
        if annotation is inspect.Parameter.empty:
            refuse(self._handler, self._name, f"has no annotation: annotate it as {_CHOICES}")
        decode, takes_null, handler = self._by_annotation(annotation), accepts_null(annotation), self._handler

        def decode_part(record: RawRecord, data: bytes | None) -> Any:
            if data is None:
                return None if takes_null else _refuse_null(record, handler, part, annotation)
            if decode is None:
                return data
            try:
                return decode(data)
            except Exception as error:  # whatever a model's validator raises
                raise _failure(record, handler, part, error) from error

        return decode_part

    def _by_annotation(self, annotation: Any) -> Decode | None:
        try:
            return decoder_of(annotation)
        except ConfigurationError as error:
            refuse(self._handler, self._name, f"cannot be filled: {error}")


def is_arrow(annotation: Any) -> bool:
    """Return whether an annotation is pyarrow's Table or RecordBatch, without importing it."""
    return getattr(annotation, "__module__", "") == "pyarrow.lib" and annotation.__name__ in ("Table", "RecordBatch")


def _failure(record: RawRecord, handler: str, part: str, error: Exception) -> DeserializationError:
    """Return the error for a key or value that a deserializer rejected."""
    return DeserializationError(
        f"{record.topic}[{record.partition}] at offset {record.offset}: handler {handler} cannot decode the {part}: "
        f"{type(error).__name__}: {error}",
        record=cast("Record", record),
    )


def _refuse_null(record: RawRecord, handler: str, part: str, annotation: Any) -> NoReturn:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    raise DeserializationError(
        f"{record.topic}[{record.partition}] at offset {record.offset}: the {part} is null, but handler {handler} "
        f"expects {name}; annotate it as `{name} | None` to receive such records",
        record=cast("Record", record),
    )


def refuse(handler: str, argument: str, problem: str) -> NoReturn:
    """Raise the error for an argument that cannot be filled."""
    raise ConfigurationError(f"handler {handler}: argument {argument!r} {problem}")
