"""`aiokwire produce TOPIC`: sends lines, whole files, or JSON lines as records."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import click

from aiokwire.cli.options import CONNECT, bootstrap_option, client_options, parse_headers
from aiokwire.cli.running import run
from aiokwire.errors import InvalidArgument, RequestTimedOut
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.producer import Delivery, Producer

TOPIC_WAIT = 10.0  # seconds for a topic to be found or created
CHUNK = 1 << 20  # bytes read from the input at once
MAX_LINE = 64 << 20  # a line is one record: input with longer ones has no lines
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
                raise InvalidArgument(f"{where}: no key separator {self.key_separator!r} in {line or key!r}")
        return Message(line, key, self.partition, None, self.headers)

    def _from_json(self, line: bytes, where: str) -> Message:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise InvalidArgument(f"{where}: not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise InvalidArgument(f"{where}: a JSON object with value, key, headers, partition, timestamp is expected")
        known = {"topic", "offset", "value", "value_base64", "key", "key_base64", "headers", "partition", "timestamp"}
        if unknown := sorted(set(fields) - known):
            raise InvalidArgument(f"{where}: unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")
        try:
            headers = [
                *self.headers,
                *((name, None if text is None else _bytes(text)) for name, text in _pairs(fields.get("headers"))),
            ]
            partition = self.partition if self.partition is not None else fields.get("partition")
            key = _field(fields, "key")
            return Message(
                _field(fields, "value"), self.key if key is None else key, partition, fields.get("timestamp"), headers
            )
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{where}: {error}") from None


def _pairs(headers: Any) -> list[tuple[str, Any]]:
    if headers is None:
        return []
    if isinstance(headers, dict):
        return list(headers.items())
    return [(name, value) for name, value in headers]


def _field(fields: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_base64" in fields:
        return base64.b64decode(fields[f"{name}_base64"], validate=True)
    value = fields.get(name)
    return None if value is None else _bytes(value)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()


@click.command("produce")
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@bootstrap_option
@click.option(
    "--json", "json_lines", is_flag=True, help="Each line is a JSON object: value, key, headers, partition, timestamp."
)
@click.option("--whole", is_flag=True, help="Send each file (or the whole standard input) as one record.")
@click.option("--key", "-k", help="Key of every record.")
@click.option("--key-separator", "-K", help="Split each line into key and value at this string.")
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
    key_separator: str | None,
    partition: int | None,
    headers: tuple[str, ...],
    compression: str,
    acks: str,
    settings: dict[str, Any],
) -> None:
    """Send the lines of FILES or of standard input to TOPIC.

    Ctrl-C stops reading; records that were read are delivered before the command ends.
    """
    if json_lines and (whole or key_separator is not None):
        raise click.UsageError("--json cannot be combined with --whole or --key-separator")
    if whole and key_separator is not None:
        raise click.UsageError("--whole cannot be combined with --key-separator")
    form = Form(
        json_lines,
        None if key is None else key.encode(),
        None if key_separator is None else key_separator.encode().decode("unicode_escape").encode(),
        partition,
        parse_headers(headers),
    )
    options = {"compression_type": compression, "acks": acks, **CONNECT, **settings}

    async def produce() -> int:
        from aiokwire import Producer

        async with Producer(bootstrap, **options) as producer:
            shipment = Shipment(producer, topic)
            await shipment.find_topic()
            with ExitStack() as stack:
                for name, source in _sources(files, stack):
                    if whole:
                        await shipment.add(form.message(await run_in_thread(source.read), name))
                        continue
                    number = 0
                    async for lines in read_lines(source):
                        for line in lines:
                            number += 1
                            await shipment.add(form.message(line, f"{name}:{number}"))
            await producer.flush()
            shipment.count()
        print(f"{shipment.delivered} records sent to {topic}", file=sys.stderr)
        if shipment.failed:
            print(f"error: {shipment.failed} records were not delivered: {shipment.error}", file=sys.stderr)
        return 1 if shipment.failed else 0

    run(produce)


class Shipment:
    """The submitted records and the counts of their outcomes."""

    def __init__(self, producer: Producer[bytes, bytes], topic: str) -> None:
        self.delivered = 0
        self.failed = 0
        self.error: BaseException | None = None  # the first
        self._producer = producer
        self._topic = topic
        self._waiting: list[Delivery] = []

    async def find_topic(self) -> None:
        """Wait for the topic before reading input.

        Raises: BrokerError: the broker refuses it; RequestTimedOut: it does not exist.
        """
        with anyio.move_on_after(TOPIC_WAIT):
            await self._producer.partitions_for(self._topic)
            return
        raise RequestTimedOut(
            f"no topic {self._topic!r} after {TOPIC_WAIT:.0f} s: create it, or check auto.create.topics.enable"
        )

    async def add(self, message: Message) -> None:
        """Submit a record."""
        self._waiting.append(
            await self._producer.submit(
                self._topic,
                message.value,
                message.key,
                partition=message.partition,
                timestamp=message.timestamp,
                headers=message.headers or None,
            )
        )
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


# --- input ------------------------------------------------------------------------------------------------------------


def _sources(files: tuple[Path, ...], stack: ExitStack) -> Iterator[tuple[str, BinaryIO]]:
    if not files:
        yield "standard input", sys.stdin.buffer
    for path in files:
        yield str(path), stack.enter_context(path.open("rb"))


async def read_chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    """Yield chunks of `source`; pipes and terminals are awaited, files are read in a thread."""
    if stat.S_ISREG(os.fstat(source.fileno()).st_mode):
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
