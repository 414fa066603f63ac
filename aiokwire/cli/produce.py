"""`aiokwire produce TOPIC`: sends lines, whole files, or JSON lines as records."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import click

from aiokwire.cli.connection import bootstrap_option, connect_options
from aiokwire.cli.formats import unescape
from aiokwire.cli.options import client_options, parse_headers
from aiokwire.cli.running import run
from aiokwire.errors import InvalidArgument, RecordRejected, RequestTimedOut
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.hooks import Hooks
    from aiokwire.producer import Delivery, Producer

TOPIC_WAIT = 10.0  # seconds for a topic to be found or created
CHUNK = 1 << 20  # bytes read from the input at once
MAX_LINE = 64 << 20  # a line is one record: input with longer ones has no lines
_SHOWN = 80  # characters of an invalid line that its error shows
COUNT_EVERY = 20_000  # records between two checks of their outcomes


@dataclass(frozen=True)
class Message:
    """A record to send."""

    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int | None
    headers: list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Form:
    """The options that define how input becomes records."""

    json_lines: bool
    key: bytes | None
    key_separator: bytes | None
    partition: int | None
    headers: list[tuple[str, bytes | None]]

    def message(self, line: bytes, where: str) -> Message:
        """Parse a line.

        Raises: InvalidArgument: the message names the file and line.
        """
        if self.json_lines:
            return self._from_json(line, where)
        key = self.key
        if self.key_separator is not None:
            key, found, line = line.partition(self.key_separator)
            if not found:
                separator, text = _quoted(self.key_separator), _quoted(key)
                raise InvalidArgument(f"{where}: the line does not contain the key separator {separator}: {text}")
        return Message(line, key, self.partition, None, self.headers)

    def _from_json(self, line: bytes, where: str) -> Message:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"{where}: not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise InvalidArgument(f"{where}: expected a JSON object with value, key, headers, partition, timestamp")
        known = {"topic", "offset", "value", "value_base64", "key", "key_base64", "headers", "partition", "timestamp"}
        if unknown := sorted(set(fields) - known):
            raise InvalidArgument(f"{where}: unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")
        try:
            headers = [*self.headers, *_headers(fields.get("headers"))]
            partition = _number(fields, "partition")
            key = _field(fields, "key")
            return Message(
                _field(fields, "value"),
                self.key if key is None else key,
                partition if self.partition is None else self.partition,
                _number(fields, "timestamp"),
                headers,
            )
        except ValueError as error:
            raise InvalidArgument(f"{where}: {error}") from None


def _quoted(data: bytes) -> str:
    shown = data if len(data) <= _SHOWN else data[:_SHOWN] + b"..."
    try:
        return repr(shown.decode())
    except UnicodeDecodeError:
        return repr(shown)


def _headers(given: Any) -> list[tuple[str, bytes | None]]:
    """Parse an object, or a list of [name, value] and [name, null, base64]."""
    if given is None:
        return []
    entries = [[name, value] for name, value in given.items()] if isinstance(given, dict) else given
    if not isinstance(entries, list):
        raise ValueError(f"headers must be a JSON object or list, not {_shown(given)}")
    return [_header(entry) for entry in entries]


def _header(entry: Any) -> tuple[str, bytes | None]:
    match entry:
        case [str(name), value]:
            found = None if value is None else _bytes(value)
        case [str(name), None, str(coded)]:
            found = _from_base64(coded)
        case _:
            raise ValueError(f"a header must be [name, value] or [name, null, base64], not {_shown(entry)}")
    name.encode()  # a lone surrogate, which JSON can spell
    return name, found


def _number(fields: dict[str, Any], name: str) -> int | None:
    """Return a partition or timestamp; -1, which is printed for a missing timestamp, as None."""
    value = fields.get(name)
    if value is None or (value == -1 and name == "timestamp"):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LIMITS[name]:
        raise ValueError(f"{name} must be an integer of 0 or more, not {_shown(value)}")
    return value


_LIMITS = {"partition": 1 << 31, "timestamp": 1 << 63}


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _field(fields: dict[str, Any], name: str) -> bytes | None:
    if (coded := fields.get(f"{name}_base64")) is not None:
        return _from_base64(coded)
    value = fields.get(name)
    return None if value is None else _bytes(value)


def _from_base64(coded: Any) -> bytes:
    if not isinstance(coded, str):
        raise ValueError(f"expected base64, not {_shown(coded)}")
    return base64.b64decode(coded, validate=True)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()


def _parse_separator(_ctx: click.Context, _param: click.Parameter, text: str | None) -> bytes | None:
    if text == "":
        raise click.BadParameter("the separator must not be empty")
    return None if text is None else unescape(text)


@click.command("produce")
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@bootstrap_option
@click.option(
    "--json",
    "json_lines",
    is_flag=True,
    help="Each line is a JSON object with value, key, headers, partition and timestamp; "
    "value_base64 and key_base64 hold binary data.",
)
@click.option("--whole", is_flag=True, help="Send each file (or the whole standard input) as one record.")
@click.option("--key", "-k", help="Key of every record.")
@click.option(
    "--key-separator",
    "-K",
    callback=_parse_separator,
    help="Split each line into key and value at the first occurrence of this string.",
)
@click.option("--partition", "-p", type=click.IntRange(0), help="Send to this partition.")
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="NAME=VALUE", help="Header of every record; repeatable."
)
@click.option("--compression", "-z", default="none", show_default=True, help="none, gzip, snappy, lz4 or zstd.")
@click.option("--acks", default="all", show_default=True, help="0, 1 or all.")
@client_options
def command(
    *,
    topic: str,
    files: tuple[Path, ...],
    bootstrap: str,
    json_lines: bool,
    whole: bool,
    key: str | None,
    key_separator: bytes | None,
    partition: int | None,
    headers: tuple[str, ...],
    compression: str,
    acks: str,
    settings: dict[str, Any],
) -> None:
    """Send the lines of FILES or of standard input (no FILES, or -) to TOPIC.

    Ctrl-C stops reading, as does the first failed delivery; records that were read are delivered
    before the command ends.
    """
    if json_lines and (whole or key_separator is not None):
        raise click.UsageError("--json cannot be combined with --whole or --key-separator")
    if whole and key_separator is not None:
        raise click.UsageError("--whole cannot be combined with --key-separator")
    form = Form(json_lines, None if key is None else os.fsencode(key), key_separator, partition, parse_headers(headers))
    options = {"compression_type": compression, "acks": acks, **connect_options(), **settings}

    async def produce() -> int:
        from aiokwire import Producer

        shipment = Shipment(topic)
        try:
            async with Producer(bootstrap, hooks=_failures(shipment.reading.cancel), **options) as producer:
                await shipment.find_topic(producer)
                with shipment.reading:
                    await _send(files, whole, form, shipment, producer)
                await producer.flush()
        finally:
            shipment.report()
        return 1 if shipment.failed else 0

    run(produce)


async def _send(
    files: tuple[Path, ...], whole: bool, form: Form, shipment: Shipment, producer: Producer[bytes, bytes]
) -> None:
    with ExitStack() as stack:
        for name, source in _sources(files, stack):
            if whole:
                content = b"".join([chunk async for chunk in read_chunks(source)])
                await shipment.add(producer, form.message(content, name), name)
                continue
            number = 0
            async for lines in read_lines(source):
                for line in lines:
                    number += 1
                    where = f"{name}:{number}"
                    await shipment.add(producer, form.message(line, where), where)


def _failures(stop: Callable[[], None]) -> Hooks:
    """Return hooks that call `stop` when records could not be delivered."""
    from aiokwire.hooks import Hooks

    class Failures(Hooks):
        def on_delivery_failed(self, topic: str, partition: int, count: int, error: Exception) -> None:
            stop()

    return Failures()


class Shipment:
    """The submitted records and the counts of their outcomes."""

    def __init__(self, topic: str) -> None:
        self.delivered: int = 0
        self.failed: int = 0
        self.error: BaseException | None = None  # the first
        self.reading: anyio.CancelScope = anyio.CancelScope()
        self._topic = topic
        self._found = False
        self._waiting: list[Delivery] = []

    async def find_topic(self, producer: Producer[bytes, bytes]) -> None:
        """Wait for the topic before reading input.

        Raises: BrokerError: the broker rejects it; RequestTimedOut: it does not exist.
        """
        with anyio.move_on_after(TOPIC_WAIT):
            await producer.partitions_for(self._topic)
            self._found = True
            return
        raise RequestTimedOut(
            f"topic {self._topic!r} does not exist after {TOPIC_WAIT:.0f} s: create it with `aiokwire topics create "
            f"{self._topic}`, or let the broker create topics (auto.create.topics.enable)"
        )

    async def add(self, producer: Producer[bytes, bytes], message: Message, where: str) -> None:
        """Submit a record.

        Raises: InvalidArgument: the producer rejects it; the message names the file and line.
        """
        try:
            delivery = await producer.submit(
                self._topic,
                message.value,
                message.key,
                partition=message.partition,
                timestamp=message.timestamp,
                headers=message.headers or None,
            )
        except (InvalidArgument, RecordRejected) as error:
            raise InvalidArgument(f"{where}: {error}") from error
        self._waiting.append(delivery)
        if len(self._waiting) >= COUNT_EVERY:
            self.count()

    def count(self) -> None:
        """Count the outcomes of finished deliveries."""
        waiting = []
        for delivery in self._waiting:
            if not delivery.done():
                waiting.append(delivery)
            elif (error := delivery.exception()) is None:
                self.delivered += 1
            else:
                self.failed += 1
                self.error = self.error or error
        self._waiting = waiting

    def report(self) -> None:
        """Print the counts, also of an interrupted command; nothing if there was no topic."""
        if not self._found:
            return
        self.count()
        print(f"{_records(self.delivered)} sent to {self._topic}", file=sys.stderr)
        if self.failed:
            verb = "was" if self.failed == 1 else "were"
            print(f"error: {_records(self.failed)} {verb} not delivered: {self.error}", file=sys.stderr)


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


# --- input ------------------------------------------------------------------------------------------------------------


def _sources(files: tuple[Path, ...], stack: ExitStack) -> Iterator[tuple[str, BinaryIO]]:
    for path in files or (Path("-"),):
        if str(path) == "-":
            yield "standard input", sys.stdin.buffer
        else:
            yield str(path), stack.enter_context(path.open("rb"))


async def read_chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    """Yield chunks of `source`; pipes and terminals are awaited, others are read in a thread."""
    if not _can_be_awaited(source):
        while chunk := await run_in_thread(source.read, CHUNK):
            yield chunk
        return
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    try:
        while chunk := await reader.read(CHUNK):
            yield chunk
    finally:
        transport.close()


def _can_be_awaited(source: BinaryIO) -> bool:
    """Whether an event loop can wait for it: libuv aborts the process on files and on devices."""
    mode = os.fstat(source.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or source.isatty()


async def read_lines(source: BinaryIO) -> AsyncIterator[list[bytes]]:
    """Yield lines of `source` without their ends, in lists of the lines in a chunk.

    Raises: InvalidArgument: a line is longer than 64 MiB.
    """
    rest = b""
    async for chunk in read_chunks(source):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE:
            raise InvalidArgument(f"a line is longer than {MAX_LINE} bytes; --whole sends each file as one record")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]
