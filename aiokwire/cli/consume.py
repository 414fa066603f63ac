"""`aiokwire consume TOPIC...`: prints records of topics, continuously or up to the end."""

from __future__ import annotations

import datetime
import math
import re
import sys
from typing import Any

import click

from aiokwire.cli.connection import bootstrap_option, connect_options
from aiokwire.cli.formats import Format, compile_format, json_line
from aiokwire.cli.options import consumer_options
from aiokwire.cli.running import run
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition

# Records are printed in chunks: one write for many lines.
CHUNK = 2000
TOPIC_WAIT = 3.0  # seconds for a topic to be found


def parse_start(text: str) -> str | int | datetime.datetime:
    """Parse "beginning", "end", an offset, a negative count from the end, or a time (ISO 8601).

    Raises: click.BadParameter: it is none of them.
    """
    word = {"earliest": "beginning", "latest": "end"}.get(text, text)
    if word in {"beginning", "end"}:
        return word
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise click.BadParameter(f"{text!r} is not beginning, end, an offset, -N or a time (ISO 8601)") from None


@click.command("consume")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@bootstrap_option
@click.option(
    "--from",
    "-o",
    "start",
    default="beginning",
    show_default=True,
    callback=lambda _ctx, _param, text: parse_start(text),
    metavar="WHERE",
    help="beginning, end, an offset, -N (the last N of each partition), "
    "or a time such as 2026-01-31T12:00 (local time).",
)
@click.option(
    "--partition",
    "-p",
    "partitions",
    type=click.IntRange(0),
    multiple=True,
    help="Read only these partitions; repeatable.",
)
@click.option("--max", "-c", "maximum", type=click.IntRange(1), help="Stop after this number of records.")
@click.option(
    "--exit-at-end", "-e", is_flag=True, help="Stop at the ends that the topics had when the command started."
)
@click.option(
    "--format",
    "-f",
    "form",
    default="%s\\n",
    show_default=True,
    help="Output format: %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %s value, %K and %S their "
    "lengths, %h headers, %% a percent sign.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, in the form that `produce --json` reads."
)
@click.option(
    "--group",
    "-g",
    help="Join this group and commit printed records. Partitions without a committed offset start at --from.",
)
@consumer_options
def command(
    *,
    topics: tuple[str, ...],
    bootstrap: str,
    start: str | int | datetime.datetime,
    partitions: tuple[int, ...],
    maximum: int | None,
    exit_at_end: bool,
    form: str,
    as_json: bool,
    group: str | None,
    settings: dict[str, Any],
) -> None:
    """Print the records of topics.

    A TOPIC that begins with ^ is a regular expression for whole names, such as '^orders-.*'.
    """
    if group is not None:
        _check_group(start, partitions)

    async def consume() -> int:
        from aiokwire import Consumer

        write = json_line if as_json else compile_format(form)
        options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", **connect_options(), **settings}
        if group is not None:
            options |= {"group_id": group, "enable_auto_commit": False, **_start_of_group(start), **settings}
            async with Consumer(*await _names_or_pattern(topics, bootstrap), **options) as member:
                ends = await _ends_of_assigned(member) if exit_at_end else None
                await _print(member, write, ends, maximum, commit=not options["enable_auto_commit"])
            return 0
        async with Consumer(**options) as consumer:
            assigned = await assign_partitions(consumer, await matching_topics(topics, bootstrap), partitions)
            ends = await consumer.end_offsets(assigned)
            await _seek(consumer, assigned, ends, start)
            await _print(consumer, write, ends if exit_at_end else None, maximum)
        return 0

    run(consume, until_stopped=not exit_at_end and maximum is None)


def _check_group(start: str | int | datetime.datetime, partitions: tuple[int, ...]) -> None:
    """Raises: click.UsageError: an option does not apply to a group."""
    if partitions or isinstance(start, int):
        raise click.UsageError(
            "a group assigns partitions and keeps offsets: leave out --partition, "
            "and give --from as beginning, end or a time"
        )


def _start_of_group(start: str | int | datetime.datetime) -> dict[str, Any]:
    """Return the option for a group without committed offsets."""
    return {"auto_offset_reset": {"beginning": "earliest", "end": "latest"}.get(str(start), start)}


async def _names_or_pattern(topics: tuple[str, ...], bootstrap: str) -> list[Any]:
    """Return a member's subscription: names, or one pattern, which new topics may match later."""
    if len(topics) == 1 and topics[0].startswith("^"):
        return [_pattern(topics[0])]
    return await matching_topics(topics, bootstrap)


async def matching_topics(topics: tuple[str, ...], bootstrap: str) -> list[str]:
    """Return the given names, and the names of topics that match a pattern.

    Raises: InvalidArgument: no topic matches a pattern.
    """
    if not any(topic.startswith("^") for topic in topics):
        return list(dict.fromkeys(topics))
    from aiokwire import Admin

    async with Admin(bootstrap, **connect_options()) as admin:
        existing = [topic.name for topic in await admin.list_topics()]
    found: dict[str, None] = {}
    for topic in topics:
        names = [name for name in existing if _pattern(topic).fullmatch(name)] if topic.startswith("^") else [topic]
        if not names:
            raise InvalidArgument(
                f"no topic matches {topic!r}, of {len(existing)} topics; `aiokwire topics list` shows them"
            )
        found |= dict.fromkeys(names)
    return list(found)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{text!r} is not a regular expression: {error}") from None


async def _ends_of_assigned(member: Any) -> dict[TopicPartition, int]:
    """Return the ends of the partitions that the group assigns to this member first."""
    ends: dict[TopicPartition, int] = await member.end_offsets(await member.assigned())
    return ends


async def assign_partitions(consumer: Any, topics: list[str], partitions: tuple[int, ...]) -> list[TopicPartition]:
    assigned: list[TopicPartition] = []
    for topic in topics:
        existing = sorted(await consumer.partitions_for_topic(topic, timeout=TOPIC_WAIT))
        if missing := sorted(set(partitions) - set(existing)):
            raise InvalidArgument(f"topic {topic} has partitions 0 to {len(existing) - 1}, not {missing[0]}")
        assigned += [TopicPartition(topic, number) for number in partitions or existing]
    await consumer.assign(assigned)
    return assigned


async def _seek(
    consumer: Any,
    assigned: list[TopicPartition],
    ends: dict[TopicPartition, int],
    start: str | int | datetime.datetime,
) -> None:
    if start == "beginning":
        await consumer.seek_to_beginning(*assigned)
    elif start == "end":
        await consumer.seek_to_end(*assigned)
    elif isinstance(start, int):
        begins = await consumer.beginning_offsets(assigned)
        for tp in assigned:
            consumer.seek(tp, max(begins[tp], ends[tp] + start) if start < 0 else start)
    elif isinstance(start, datetime.datetime):
        found = await consumer.offsets_for_times(dict.fromkeys(assigned, int(start.timestamp() * 1000)))
        for tp in assigned:
            consumer.seek(tp, found[tp].offset if found[tp] is not None else ends[tp])


async def _print(
    consumer: Any,
    write: Format,
    ends: dict[TopicPartition, int] | None,
    maximum: int | None,
    *,
    commit: bool = False,
) -> None:
    """Print records; with `commit`, commit after each chunk."""
    remaining = math.inf if maximum is None else maximum
    while remaining > 0:
        if ends is not None and await is_at_end(consumer, ends):
            break
        limit = CHUNK if remaining == math.inf else min(CHUNK, int(remaining))
        records = await consumer.getmany(max_records=limit, timeout=0.5)
        if ends is not None:
            records = [
                record
                for record in records
                if record.offset < ends.get(TopicPartition(record.topic, record.partition), math.inf)
            ]
        if records:
            sys.stdout.buffer.write(b"".join([write(record) for record in records]))
            sys.stdout.buffer.flush()
            remaining -= len(records)
            if commit:
                consumer.commit_nowait()
    if commit:
        await consumer.commit()


async def is_at_end(consumer: Any, ends: dict[TopicPartition, int]) -> bool:
    """Whether all assigned partitions are read to these ends; others belong to other members."""
    for tp, end in ends.items():
        if tp in consumer.assignment and await consumer.position(tp) < end:
            return False
    return True
