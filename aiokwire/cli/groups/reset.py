"""`aiokwire groups reset NAME`."""

from __future__ import annotations

import csv
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aiokwire.cli.groups.partitions import parse_partitions
from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.output import print_table
from aiokwire.cli.running import run

if TYPE_CHECKING:
    from aiokwire import TopicPartition
    from aiokwire.admin import OffsetChange, ResetTo

WAYS = ("to_earliest", "to_latest", "to_current", "to_time", "shift", "to_offset", "from_file")


@click.command("reset")
@click.argument("name")
@bootstrap_option
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITION,...]",
    help="Topic or partitions (default: all that the group has committed).",
)
@click.option("--to-earliest", is_flag=True, help="To the log start offset.")
@click.option("--to-latest", is_flag=True, help="To the end of the log.")
@click.option("--to-current", is_flag=True, help="Keep the offset, moved into the range of the log.")
@click.option(
    "--to-time", metavar="TIME", help="To the first record at or after TIME: ISO 8601, or ms since the epoch."
)
@click.option("--shift", type=int, metavar="N", help="Move by N records; backward if negative.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To offset N.")
@click.option(
    "--from-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read offsets from a file with lines of topic,partition,offset.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@click.option("--csv", "as_csv", is_flag=True, help="Print lines of topic,partition,offset for --from-file.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def command(
    *, name: str, bootstrap: str, topics: tuple[str, ...], dry_run: bool, as_csv: bool, yes: bool, **ways: Any
) -> None:
    """Move a group without members to other offsets."""
    given = [way for way in WAYS if ways[way] is not None and ways[way] is not False]  # 0 is an offset
    if len(given) != 1:
        raise click.UsageError(f"give one of {', '.join('--' + way.replace('_', '-') for way in WAYS)}")
    wanted = parse_partitions(topics)
    to = _reset_to(given[0], ways[given[0]], wanted)

    async def reset() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **CONNECT) as admin:
            partitions = wanted or None
            changes = await admin.reset_group_offsets(name, to, partitions, validate_only=True)
            _print(name, changes, as_csv=as_csv)
            if dry_run:
                return 0
            if not yes:
                click.confirm(f"reset {len(changes)} partition(s) of group {name}?", abort=True, err=True)
            await admin.alter_group_offsets(name, {tp: change.after for tp, change in changes.items()})
        return 0

    run(reset)


def _reset_to(way: str, value: Any, partitions: list[str | TopicPartition]) -> ResetTo:
    from aiokwire.admin import ResetTo

    if way == "to_time":
        return ResetTo.time(_milliseconds(value))
    if way == "shift":
        return ResetTo.shift(value)
    if way == "to_offset":
        return ResetTo.offset(value)
    if way == "from_file":
        if partitions:
            raise click.UsageError("--from-file says which partitions: leave out --topic")
        return ResetTo.to_offsets(_read(value))
    return {"to_earliest": ResetTo.earliest, "to_latest": ResetTo.latest, "to_current": ResetTo.current}[way]()


def _milliseconds(text: str) -> int:
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time: {error}") from error
    return round(moment.astimezone(datetime.UTC).timestamp() * 1000)


def _read(path: Path) -> dict[TopicPartition, int]:
    """Raises: BadParameter: with the line that cannot be read."""
    from aiokwire import TopicPartition

    offsets = {}
    with path.open(newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row:
                continue
            try:
                topic, partition, offset = row
                offsets[TopicPartition(topic, int(partition))] = int(offset)
            except ValueError as error:
                raise click.BadParameter(
                    f"{path}, line {number}: {','.join(row)!r} is not topic,partition,offset"
                ) from error
    return offsets


def _print(name: str, changes: dict[TopicPartition, OffsetChange], *, as_csv: bool) -> None:
    if as_csv:
        for tp, change in changes.items():
            print(f"{tp.topic},{tp.partition},{change.after}")
        return
    rows = [
        [tp.topic, tp.partition, "-" if change.before is None else change.before.offset, change.after]
        for tp, change in changes.items()
    ]
    print_table(f"Group {name}", ["topic", "partition", "before", "after"], rows)
