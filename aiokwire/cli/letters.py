"""Reads dead letters: what their headers name, which ones are selected, and where they are."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from aiokwire.cli.connection import connect_options
from aiokwire.cli.consume import assign_partitions, is_at_end
from aiokwire.cli.groups import parse_moment
from aiokwire.types import TopicPartition
from aiokwire.worker import LetterHeader, Origin, parsed_origin

if TYPE_CHECKING:
    from aiokwire import Consumer, Record

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

CHUNK = 500


class Letter(NamedTuple):
    """A dead letter and its headers; "-" for one that is missing: another program wrote it."""

    record: Record
    origin: Origin | None
    exception: str
    handler: str

    @classmethod
    def of(cls, record: Record) -> Letter:
        headers = dict(record.headers)
        exception, handler = (text_of(headers.get(name)) for name in (LetterHeader.EXCEPTION, LetterHeader.HANDLER))
        return cls(record, parsed_origin(headers), exception, handler)

    @property
    def origin_topic(self) -> str:
        return "-" if self.origin is None else self.origin.topic


def text_of(data: bytes | None) -> str:
    """Return text to show for bytes; "-" for null."""
    return "-" if data is None else data.decode(errors="backslashreplace")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LetterFilter:
    """The options that select dead letters; None and () select all."""

    origins: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    offsets: tuple[int, int | None] = (0, None)
    since: int | None = None
    until: int | None = None

    def selects(self, letter: Letter) -> bool:
        """Return whether a dead letter meets all conditions."""
        first, last = self.offsets
        record = letter.record
        return (
            first <= record.offset
            and (last is None or record.offset <= last)
            and (self.since is None or self.since <= record.timestamp)
            and (self.until is None or record.timestamp < self.until)
            and (not self.origins or letter.origin_topic in self.origins)
            and (not self.handlers or letter.handler in self.handlers)
            and (not self.exceptions or any(_is_class(letter.exception, name) for name in self.exceptions))
        )


def _is_class(qualified: str, name: str) -> bool:
    """Return whether a class has this name, with or without its module."""
    return qualified == name or qualified.endswith(f".{name}")


def parse_offsets(text: str | None) -> tuple[int, int | None]:
    """Parse `17`, `17:`, `:40` or `17:40`, both included.

    Raises: click.BadParameter: it is none of them.
    """
    if text is None:
        return 0, None
    first, colon, last = text.partition(":")
    last = last if colon else first
    if text == ":" or not all(part.isdecimal() or not part for part in (first, last)) or not text:
        raise click.BadParameter(f"{text!r} is not an offset, FROM:, :TO or FROM:TO")
    return int(first or 0), int(last) if last else None


def filter_options(function: CommandT) -> CommandT:
    """Add the options that select dead letters: the parameter `chosen`."""
    options = [
        click.option(
            "--origin", "origins", multiple=True, metavar="TOPIC",
            help="Only dead letters of records from this topic; repeatable.",
        ),
        click.option(
            "--exception", "exceptions", multiple=True, metavar="CLASS",
            help="Only dead letters with this exception class; repeatable.",
        ),
        click.option(
            "--handler", "handlers", multiple=True, metavar="NAME",
            help="Only dead letters of this handler; repeatable.",
        ),
        click.option(
            "--partition", "-p", "partitions", type=click.IntRange(0), multiple=True,
            help="Only this partition of the dead-letter topic; repeatable.",
        ),
        click.option(
            "--offsets", metavar="FROM:TO", callback=lambda _ctx, _param, text: parse_offsets(text),
            help="Only these offsets of the dead-letter topic, both ends included.",
        ),
        click.option("--since", metavar="TIME", callback=_moment, help="Only failures at or after TIME (ISO 8601)."),
        click.option("--until", metavar="TIME", callback=_moment, help="Only failures before TIME."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _moment(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_moment(text)


@asynccontextmanager
async def reader_of(bootstrap: str) -> AsyncIterator[Consumer[bytes, bytes]]:
    """Open a consumer of dead letters, without a group; hides those of aborted transactions."""
    from aiokwire import Consumer

    options: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    async with Consumer(bootstrap_servers=bootstrap, **options, **connect_options()) as consumer:
        yield consumer


async def letters(
    consumer: Consumer[bytes, bytes],
    topics: list[str],
    partitions: tuple[int, ...],
    starts: Mapping[TopicPartition, int] | None = None,
) -> AsyncIterator[list[Letter]]:
    """Yield the dead letters of topics up to their current ends, in chunks.

    `starts`: where to start, where that is later than the first record.
    """
    assigned = await assign_partitions(consumer, topics, partitions)
    begins, ends = await consumer.beginning_offsets(assigned), await consumer.end_offsets(assigned)
    for tp in assigned:
        consumer.seek(tp, min(max(begins[tp], (starts or {}).get(tp, 0)), ends[tp]))
    while not await is_at_end(consumer, ends):
        records = await consumer.getmany(max_records=CHUNK, timeout=0.5)
        found = list(_within(records, ends))
        if found:
            yield found


def _within(records: list[Any], ends: Mapping[TopicPartition, int]) -> Iterator[Letter]:
    for record in records:
        if record.offset < ends[TopicPartition(record.topic, record.partition)]:
            yield Letter.of(record)
