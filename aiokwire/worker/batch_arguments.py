"""Fills the arguments of a batch handler: lists, Arrow data, the context."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast, get_args, get_origin

from aiokwire.consumer import DeserializationError
from aiokwire.records import records_to_arrow
from aiokwire.types import Headers
from aiokwire.worker.context import Context
from aiokwire.worker.signatures import (
    POSITIONAL,
    Argument,
    Deserializers,
    Fill,
    RawRecord,
    hints_of,
    is_arrow,
    open_parameters,
    refuse,
)

if TYPE_CHECKING:
    import inspect

    from aiokwire.records import Record

_CHOICES: Final = (
    "list[T] of decoded values, list[ConsumerRecord], list[Headers], list[Annotated[T, Key]], pyarrow.Table, "
    "pyarrow.RecordBatch or Context"
)


class Decoded(NamedTuple):
    """The decoded records of a batch."""

    records: Sequence[RawRecord]
    columns: list[list[Any]]
    """The decoded values of each record, for each list argument."""
    failures: dict[int, BaseException]
    """The errors of the others, by offset."""


BatchFill = Callable[[Decoded, Context], Any]


class BatchArguments(NamedTuple):
    """The sources of a batch handler's arguments."""

    positional: tuple[BatchFill, ...]
    named: dict[str, BatchFill]
    elements: tuple[Fill, ...]
    """What each list argument receives of a record."""

    async def decode(
        self, records: Sequence[RawRecord], context: Context, deserializers: Deserializers, handler: str
    ) -> Decoded:
        """Decode each record's values for the list arguments; note those that cannot be decoded."""
        if not self.elements:
            return Decoded(records, [], {})
        has_functions = deserializers != (None, None)
        kept: list[RawRecord] = []
        rows: list[list[Any]] = []
        failures: dict[int, BaseException] = {}
        for record in records:
            try:
                parts = await deserializers.apply(record, handler) if has_functions else (record.key, record.value)
                rows.append([fill(record, parts, context) for fill in self.elements])
            except DeserializationError as error:
                failures[record.offset] = error
            else:
                kept.append(record)
        return Decoded(kept, [list(column) for column in zip(*rows, strict=True)], failures)


def batch_arguments_of(function: Callable[..., Any], name: str, deserializers: Deserializers) -> BatchArguments:
    """Return how to fill the arguments of a function that receives batches.

    Arguments as for `signatures.arguments_of`.

    Raises: ConfigurationError: an argument cannot be filled, or none receives records.
    """
    hints = hints_of(function, name)
    positional: list[BatchFill] = []
    named: dict[str, BatchFill] = {}
    elements: list[Fill] = []
    values: list[str] = []
    for parameter in open_parameters(function, name):
        annotation = _annotation(name, parameter, hints)
        if annotation is Context:
            fill: BatchFill = lambda _decoded, context: context  # noqa: E731
        elif is_arrow(annotation):
            if deserializers != (None, None):
                refuse(name, parameter.name, "is Arrow data, which has raw bytes: remove the deserializers")
            fill = _arrow(annotation.__name__)
        else:
            element = Argument(name, parameter.name, _element(name, parameter.name, annotation), deserializers)
            if element.is_value:
                values.append(parameter.name)
            fill = _column(len(elements))
            elements.append(element.fill())
        if parameter.kind in POSITIONAL:
            positional.append(fill)
        else:
            named[parameter.name] = fill
    if len(values) > 1:
        refuse(name, values[1], f"would be a second list of values beside {values[0]!r}: keep one of them")
    return BatchArguments(tuple(positional), named, tuple(elements))


def _annotation(handler: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> Any:
    if parameter.default is not parameter.empty:
        refuse(handler, parameter.name, "has a default, which would never be used: remove it, or bind the argument by "
               "functools.partial")  # fmt: skip
    if parameter.name not in hints:
        refuse(handler, parameter.name, f"has no annotation: annotate it as {_CHOICES}")
    return hints[parameter.name]


def _element(handler: str, argument: str, annotation: Any) -> Any:
    """Return the annotation of one record's part, from that of the list."""
    kinds = get_args(annotation)
    is_list = get_origin(annotation) in (list, collections.abc.Sequence) and annotation != Headers
    return kinds[0] if is_list else _refuse_single(handler, argument)


def _refuse_single(handler: str, argument: str) -> NoReturn:
    refuse(handler, argument, f"is not a list, but max_records= makes it a handler of batches: annotate {_CHOICES}")


def _column(index: int) -> BatchFill:
    return lambda decoded, _context: decoded.columns[index]


def _arrow(kind: str) -> BatchFill:
    def fill(decoded: Decoded, _context: Context) -> Any:
        batch = records_to_arrow(cast("Sequence[Record]", decoded.records))
        if kind == "RecordBatch":
            return batch
        import pyarrow

        return pyarrow.Table.from_batches([batch])

    return fill
