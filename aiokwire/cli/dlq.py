"""`aiokwire dlq`: list, show, replay and drop dead letters."""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.consume import matching_topics
from aiokwire.cli.formats import json_line
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.letters import Letter, LetterFilter, filter_options, letters, reader_of, text_of
from aiokwire.cli.options import Decorator, json_option
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.replaying import Replay, Target
from aiokwire.cli.running import result_of, run
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition
from aiokwire.worker import LetterHeader

if TYPE_CHECKING:
    from aiokwire.admin import Admin

ALL = r"^.+\.dlq"
GROUP = "aiokwire-dlq-replay"
SHOW_SECONDS = 5.0

group_option: Decorator = click.option(
    "--group",
    "-g",
    default=GROUP,
    show_default=True,
    metavar="NAME",
    help="Group that records which dead letters were replayed.",
)


@click.group("dlq", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, show, replay and drop dead letters: records that a worker could not process."""


def _filter(options: Mapping[str, Any]) -> LetterFilter:
    return LetterFilter(**{field.name: options[field.name] for field in dataclasses.fields(LetterFilter)})


# --- list -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Count:
    """The number of dead letters with the same topic, origin, exception and handler."""

    topic: str
    origin: str
    exception: str
    handler: str
    count: int = 0
    oldest: int = sys.maxsize
    newest: int = -1

    def add(self, letter: Letter) -> None:
        self.count += 1
        self.oldest = min(self.oldest, letter.record.timestamp)
        self.newest = max(self.newest, letter.record.timestamp)


@command.command("list")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@bootstrap_option
@filter_options
@json_option
def list_letters(*, topics: tuple[str, ...], bootstrap: str, as_json: bool, **options: Any) -> None:
    """Count dead letters by topic, origin, exception and handler.

    A TOPIC that begins with ^ is a regular expression; the default is all topics whose names end in
    ".dlq".
    """
    chosen = _filter(options)

    async def main() -> int:
        counts: dict[tuple[str, ...], Count] = {}
        async with reader_of(bootstrap) as consumer:
            async for chunk in letters(consumer, await _letter_topics(topics, bootstrap), chosen.partitions):
                for letter in filter(chosen.selects, chunk):
                    names = (letter.record.topic, letter.origin_topic, letter.exception, letter.handler)
                    counts.setdefault(names, Count(*names)).add(letter)
        _print_counts([counts[names] for names in sorted(counts)], bootstrap, as_json=as_json)
        return 0

    run(main)


async def _letter_topics(topics: tuple[str, ...], bootstrap: str) -> list[str]:
    """Return the given topics, or all that end in ".dlq", of which there may be none."""
    if topics:
        return await matching_topics(topics, bootstrap)
    try:
        return await matching_topics((ALL,), bootstrap)
    except InvalidArgument:
        return []


def _print_counts(counts: list[Count], bootstrap: str, *, as_json: bool) -> None:
    if as_json:
        for each in counts:
            print_json(dataclasses.asdict(each))
        return
    rows = [[each.topic, each.origin, each.exception, each.handler, each.count, _time(each.newest)] for each in counts]
    print_table(f"Dead letters on {bootstrap}", ["topic", "origin", "exception", "handler", "count", "newest"], rows)


def _time(timestamp: int) -> str:
    if timestamp < 0:
        return "-"
    moment = datetime.datetime.fromtimestamp(timestamp / 1000, datetime.UTC)
    return moment.astimezone().isoformat(" ", "seconds")


# --- show -------------------------------------------------------------------------------------------------------------


@command.command("show")
@click.argument("topic")
@click.argument("offset", type=click.IntRange(0))
@bootstrap_option
@click.option("--partition", "-p", type=click.IntRange(0), default=0, show_default=True, help="Partition of TOPIC.")
@json_option
def show(*, topic: str, offset: int, bootstrap: str, partition: int, as_json: bool) -> None:
    """Show the dead letter at an OFFSET of TOPIC with its headers."""

    async def main() -> int:
        letter = await _letter_at(bootstrap, TopicPartition(topic, partition), offset)
        if as_json:
            sys.stdout.write(json_line(letter.record).decode())
        else:
            for name, value in _lines(letter):
                click.echo(f"{name:<11} {printable(value)}".rstrip())
        return 0

    run(main)


async def _letter_at(bootstrap: str, tp: TopicPartition, offset: int) -> Letter:
    """Raises: InvalidArgument: the partition has no record at this offset."""
    async with reader_of(bootstrap) as consumer:
        async for chunk in letters(consumer, [tp.topic], (tp.partition,), {tp: offset}):
            if chunk[0].record.offset == offset:
                return chunk[0]
            break
        low, high = await consumer.beginning_offsets([tp]), await consumer.end_offsets([tp])
    raise InvalidArgument(f"{tp} has no record at offset {offset}; its log has offsets {low[tp]} to {high[tp] - 1}")


def _lines(letter: Letter) -> Iterator[tuple[str, object]]:
    record, origin, headers = letter.record, letter.origin, dict(letter.record.headers)
    shown = {name: text_of(headers.get(name)) for name in LetterHeader}
    yield "dead letter", f"{record.topic_partition} at offset {record.offset}, {_time(record.timestamp)}"
    if origin is not None:
        yield "origin", f"{origin.topic_partition} at offset {origin.offset}, {_time(origin.timestamp)}"
    yield "exception", f"{letter.exception}: {shown[LetterHeader.MESSAGE]}"
    yield "stage", shown[LetterHeader.STAGE]
    yield "handler", f"{letter.handler}, {shown[LetterHeader.ATTEMPTS]} attempt(s), group {shown[LetterHeader.GROUP]}"
    yield "key", text_of(record.key)
    yield "value", text_of(record.value)
    for name, value in record.headers:
        if name not in set(LetterHeader):
            yield "header", f"{name}={text_of(value)}"
    for number, line in enumerate(text_of(headers.get(LetterHeader.STACKTRACE)).splitlines()):
        yield "" if number else "stacktrace", line


# --- replay -----------------------------------------------------------------------------------------------------------


@command.command("replay")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@bootstrap_option
@filter_options
@click.option("--to", "target", metavar="TOPIC", help="Send to this topic (default: the origin of each record).")
@click.option("--keep-headers", is_flag=True, help="Keep the headers of the failure (default: remove them).")
@click.option("--max", "-c", "maximum", type=click.IntRange(1), help="Stop after this number of records.")
@group_option
@click.option("--dry-run", is_flag=True, help="Count the records without sending them.")
@json_option
def replay(
    *,
    topics: tuple[str, ...],
    bootstrap: str,
    target: str | None,
    keep_headers: bool,
    maximum: int | None,
    group: str,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Send dead letters to their origin or to another topic, each once.

    A repeated replay skips the dead letters that the same --group has already replayed.
    """
    replaying = Replay(_filter(options), Target(target, keep_headers), group, maximum)

    async def main() -> int:
        chosen = await matching_topics(topics, bootstrap)
        try:
            await (replaying.plan if dry_run else replaying.run)(bootstrap, chosen)
        finally:
            _print_replay(replaying, dry_run=dry_run, as_json=as_json)
        return 1 if replaying.without_origin else 0

    run(main)


def _print_replay(replaying: Replay, *, dry_run: bool, as_json: bool) -> None:
    rows = [[source, target, count] for (source, target), count in sorted(replaying.sent.items())]
    if as_json:
        for source, target, count in rows:
            print_json({"from": source, "to": target, "count": count, "dry_run": dry_run})
    else:
        print_table("Would replay" if dry_run else "Replayed", ["from", "to", "count"], rows)
    if replaying.done_before:
        click.echo(f"{replaying.done_before} skipped: already replayed", err=True)
    if replaying.without_origin:
        click.echo(
            f"error: {replaying.without_origin} record(s) lack the headers that name their origin: give --to TOPIC",
            err=True,
        )


# --- drop -------------------------------------------------------------------------------------------------------------


@command.command("drop")
@click.argument("topic")
@bootstrap_option
@click.option("--partition", "-p", "partitions", type=click.IntRange(0), multiple=True, help="Only in this partition.")
@click.option("--before", type=click.IntRange(0), metavar="OFFSET", help="Delete the records before this offset.")
@click.option("--replayed", is_flag=True, help="Delete the records before the first one that was not replayed.")
@click.option("--all", "everything", is_flag=True, help="Delete all records.")
@group_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def drop(
    *,
    topic: str,
    bootstrap: str,
    partitions: tuple[int, ...],
    before: int | None,
    replayed: bool,
    everything: bool,
    group: str,
    yes: bool,
) -> None:
    """Delete the dead letters of TOPIC up to an offset."""
    if (before is not None) + replayed + everything != 1:
        raise click.UsageError("give exactly one of --before, --replayed, --all")

    async def plan() -> dict[TopicPartition, tuple[int, int]]:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            logs = await _logs(admin, topic, partitions)
            wanted = dict.fromkeys(logs, before)
            if replayed:
                committed = await admin.list_group_offsets(group)
                wanted = {tp: committed[tp].offset if tp in committed else 0 for tp in logs}
        return {
            tp: (low, high if wanted[tp] is None else min(max(wanted[tp] or 0, low), high))
            for tp, (low, high) in logs.items()
        }

    async def apply() -> None:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            await admin.delete_records({tp: end for tp, (start, end) in changes.items() if end > start})

    changes = result_of(plan)
    rows = [[tp.topic, tp.partition, start, end] for tp, (start, end) in changes.items()]
    print_table("Offsets to delete", ["topic", "partition", "from", "before"], rows)
    if not yes:
        click.confirm(f"delete these records of {topic}?", abort=True, err=True)
    run(apply)


async def _logs(admin: Admin, topic: str, partitions: tuple[int, ...]) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first and the next offset of each partition.

    Raises: StaleMetadataError: the topic, InvalidArgument: a partition does not exist.
    """
    from aiokwire.cluster import EARLIEST, LATEST

    existing = [each.partition for each in (await admin.describe_topic(topic)).partitions]
    if missing := sorted(set(partitions) - set(existing)):
        raise InvalidArgument(f"topic {topic} has partitions 0 to {len(existing) - 1}, not {missing[0]}")
    found = [TopicPartition(topic, number) for number in partitions or sorted(existing)]
    low = await admin.list_offsets(dict.fromkeys(found, EARLIEST))
    high = await admin.list_offsets(dict.fromkeys(found, LATEST))
    return {tp: (low[tp].offset, high[tp].offset) for tp in found}
