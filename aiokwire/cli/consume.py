"""`aiokwire consume TOPIC`: print records from where you say to where you say."""

from __future__ import annotations

import datetime
import math
import sys
from typing import Any

import click

from aiokwire.cli.formats import Format, compile_format, json_line
from aiokwire.cli.options import bootstrap_option, client_options
from aiokwire.cli.running import run
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition

# Records are handed over in chunks: one write for many lines.
CHUNK = 2000
TOPIC_WAIT = 3.0  # seconds for a topic to be found


def parse_start(text: str) -> str | int | datetime.datetime:
    """Where to begin: "beginning", "end", an offset, a negative count from the end, or a time (ISO 8601).

    Raises: click.BadParameter: for anything else.
    """
    if text in {"beginning", "end"}:
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise click.BadParameter(f"{text!r} is none of beginning, end, an offset, -N, or a time (ISO 8601)") from None


@click.command("consume")
@click.argument("topic")
@bootstrap_option
@click.option(
    "--from",
    "-o",
    "start",
    default="beginning",
    show_default=True,
    callback=lambda _ctx, _param, text: parse_start(text),
    metavar="WHERE",
    help="beginning, end, an offset, -N (the last N of each partition), or a time such as 2026-01-31T12:00.",
)
@click.option(
    "--partition", "-p", "partitions", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@click.option("--max", "-c", "maximum", type=click.IntRange(1), help="End after so many records.")
@click.option("--exit-at-end", "-e", is_flag=True, help="End when everything that was there at the start is read.")
@click.option(
    "--format", "-f", "form", default="%s\\n", show_default=True, help="%t %p %o %T %k %s %K %S %h, as kcat's."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as `produce --json` reads.")
@click.option("--group", "-g", help="Share TOPIC with the members of this group; from where it committed, or --from.")
@client_options
def command(
    *,
    topic: str,
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
    """Print the records of TOPIC."""
    if group is not None:
        _check_group(start, partitions, exit_at_end)

    async def consume() -> int:
        from aiokwire import Consumer

        write = json_line if as_json else compile_format(form)
        options = {"auto_offset_reset": "earliest", **settings}
        if group is not None:
            options = {"group_id": group, "enable_auto_commit": False, **_begin_of_group(start), **settings}
            async with Consumer(topic, bootstrap_servers=bootstrap, **options) as member:
                await _print(member, write, None, maximum, commit=not options["enable_auto_commit"])
            return 0
        async with Consumer(bootstrap_servers=bootstrap, **options) as consumer:
            assigned = await _assign(consumer, topic, partitions)
            ends = await consumer.end_offsets(assigned)
            await _seek(consumer, assigned, ends, start)
            await _print(consumer, write, ends if exit_at_end else None, maximum)
        return 0

    run(consume)


def _check_group(start: str | int | datetime.datetime, partitions: tuple[int, ...], exit_at_end: bool) -> None:
    """Raises: click.UsageError: an option that a group has no place for."""
    if partitions or exit_at_end or isinstance(start, int):
        raise click.UsageError(
            "--group decides about partitions and offsets: leave out --partition, --exit-at-end, -o N"
        )


def _begin_of_group(start: str | int | datetime.datetime) -> dict[str, Any]:
    """Where the group begins that has committed nothing."""
    return {"auto_offset_reset": {"beginning": "earliest", "end": "latest"}.get(str(start), start)}


async def _assign(consumer: Any, topic: str, partitions: tuple[int, ...]) -> list[TopicPartition]:
    existing = sorted(await consumer.partitions_for_topic(topic, timeout=TOPIC_WAIT))
    if missing := sorted(set(partitions) - set(existing)):
        raise InvalidArgument(f"topic {topic} has partitions 0 to {len(existing) - 1}, not {missing[0]}")
    assigned = [TopicPartition(topic, number) for number in partitions or existing]
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
    """`commit`: what was printed, each time."""
    remaining = math.inf if maximum is None else maximum
    while remaining > 0:
        if ends is not None and await _at_end(consumer, ends):
            return
        limit = CHUNK if remaining == math.inf else min(CHUNK, int(remaining))
        records = await consumer.getmany(max_records=limit, timeout=0.5)
        if ends is not None:
            records = [
                record for record in records if record.offset < ends[TopicPartition(record.topic, record.partition)]
            ]
        if records:
            sys.stdout.buffer.write(b"".join([write(record) for record in records]))
            sys.stdout.buffer.flush()
            remaining -= len(records)
            if commit:
                consumer.commit_nowait()
    if commit:
        await consumer.commit()


async def _at_end(consumer: Any, ends: dict[TopicPartition, int]) -> bool:
    for tp, end in ends.items():
        if await consumer.position(tp) < end:
            return False
    return True
