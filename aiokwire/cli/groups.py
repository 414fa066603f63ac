"""`aiokwire groups`: list, describe, reset and delete consumer groups."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import json_option, partitions_option
from aiokwire.cli.output import print_errors, print_json, print_table
from aiokwire.cli.running import result_of, run
from aiokwire.errors import InvalidArgument

if TYPE_CHECKING:
    from aiokwire import TopicPartition
    from aiokwire.admin import Admin, GroupDescription, OffsetChange, PartitionLag, ResetTo
    from aiokwire.errors import BrokerError

# The options of `reset` that choose the new offsets.
WAYS = ("to_earliest", "to_latest", "to_current", "to_time", "shift", "to_offset", "from_file")


@click.group("groups", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, describe, reset and delete consumer groups."""


@command.command("list")
@bootstrap_option
@click.option(
    "--state", "states", multiple=True, help="Show only groups in this state (Stable, Empty, ...); repeatable."
)
@click.option("--type", "types", multiple=True, help="Show only groups of this type (classic, consumer); repeatable.")
@json_option
def list_groups(*, bootstrap: str, states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> None:
    """List the groups."""

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            groups = await admin.list_groups(states=states, types=types)
        if as_json:
            for group in groups:
                print_json(dataclasses.asdict(group))
        else:
            rows = [[one.group_id, one.type, one.state, f"{one.coordinator}"] for one in groups]
            print_table(f"Groups on {bootstrap}", ["group", "type", "state", "coordinator"], rows)
        return 0

    run(main)


@command.command("describe")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@json_option
def describe(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show state, members, committed offsets and lag of groups."""

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            groups = await admin.describe_groups(names)
            for name in names:
                if name in groups.errors:
                    continue
                partitions = _partition_rows(groups[name], await admin.group_lag(name))
                if as_json:
                    print_json(_as_json(groups[name], partitions))
                else:
                    _print_group(groups[name], partitions)
        return print_errors(groups.errors.values())

    run(main)


def _partition_rows(group: GroupDescription, lags: Mapping[TopicPartition, PartitionLag]) -> list[dict[str, Any]]:
    """Return each partition's committed offset, lag and member."""
    owners = {tp: member for member in group.members for tp in member.assignment}
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "committed": None if lag.committed is None else lag.committed.offset,
            "end": lag.end,
            "lag": lag.lag,
            "member": owners[tp].member_id if tp in owners else None,
        }
        for tp, lag in lags.items()
    ]


def _as_json(group: GroupDescription, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    described = dataclasses.asdict(group)
    described["members"] = [dataclasses.asdict(member) for member in group.members]
    return {**described, "partitions": partitions}


def _print_group(group: GroupDescription, partitions: list[dict[str, Any]]) -> None:
    what = f"{group.group_id}: {group.state}, {group.type}"
    if group.assignor:
        what += f", {group.assignor}"
    columns = ["topic", "partition", "committed", "end", "lag", "member"]
    rows = [["-" if row[name] is None else row[name] for name in columns] for row in partitions]
    if not sys.stdout.isatty():
        print_table("", ["group", "state", *columns], [[group.group_id, group.state, *row] for row in rows])
        return
    print_table(f"{what}, coordinator {group.coordinator}", columns, rows)
    if group.members:
        members = [
            [one.member_id, one.group_instance_id or "-", one.client_id, one.host, len(one.assignment)]
            for one in group.members
        ]
        print_table("Members", ["member", "instance", "client", "host", "partitions"], members)


@command.command("reset")
@click.argument("name")
@bootstrap_option
@partitions_option("--topic", "-t", "topics", help="Topic or partitions (default: all that the group has committed).")
@click.option("--to-earliest", is_flag=True, help="Move to the start of the log.")
@click.option("--to-latest", is_flag=True, help="Move to the end of the log.")
@click.option(
    "--to-current",
    is_flag=True,
    help="Keep the committed offset; if it is outside the log, move it to the nearest end.",
)
@click.option(
    "--to-time",
    metavar="TIME",
    help="Move to the first record at or after TIME: ISO 8601, or milliseconds since the epoch.",
)
@click.option("--shift", type=int, metavar="N", help="Move by N offsets; backward if negative.")
@click.option(
    "--to-offset",
    type=click.IntRange(0),
    metavar="N",
    help="Move to offset N, or to the nearest end of the log if N is outside it.",
)
@click.option(
    "--from-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read offsets from a file with lines of topic,partition,offset.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@click.option("--csv", "as_csv", is_flag=True, help="Print lines of topic,partition,offset for --from-file.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def reset(
    *, name: str, bootstrap: str, topics: tuple[str, ...], dry_run: bool, as_csv: bool, yes: bool, **ways: Any
) -> None:
    """Change the committed offsets of a group that has no members."""
    given = [way for way in WAYS if ways[way] is not None and ways[way] is not False]  # 0 is an offset
    if len(given) != 1:
        raise click.UsageError(f"give exactly one of {', '.join('--' + way.replace('_', '-') for way in WAYS)}")
    wanted = parse_partitions(topics)
    to = _reset_to(given[0], ways[given[0]], wanted)

    async def plan() -> dict[TopicPartition, OffsetChange]:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            await _check_exist(admin, wanted or to.offsets)
            return await admin.reset_group_offsets(name, to, wanted or None, validate_only=True)

    async def apply() -> None:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            await admin.alter_group_offsets(name, {tp: change.after for tp, change in changes.items()})

    changes = result_of(plan)
    _warn_of_limits(to, changes)
    _print_changes(name, changes, as_csv=as_csv)
    if dry_run:
        return
    if not yes:
        click.confirm(f"reset {len(changes)} partition(s) of group {name}?", abort=True, err=True)
    run(apply)


async def _check_exist(admin: Admin, partitions: Iterable[str | TopicPartition]) -> None:
    """Raises: StaleMetadataError: a topic, InvalidArgument: a partition does not exist."""
    chosen = [one for one in partitions if not isinstance(one, str)]
    names = {one if isinstance(one, str) else one.topic for one in partitions}
    topics = (await admin.describe_topics(names)).check() if names else {}
    for topic, number in chosen:
        existing = {found.partition for found in topics[topic].partitions}
        if number not in existing:
            raise InvalidArgument(f"topic {topic} has partitions 0 to {max(existing)}, not {number}")


def _reset_to(way: str, value: Any, partitions: list[str | TopicPartition]) -> ResetTo:
    from aiokwire.admin import ResetTo

    if way == "to_time":
        return ResetTo.time(parse_moment(value))
    if way == "shift":
        return ResetTo.shift(value)
    if way == "to_offset":
        return ResetTo.offset(value)
    if way == "from_file":
        if partitions:
            raise click.UsageError("--from-file names the partitions: leave out --topic")
        return ResetTo.to_offsets(_read_offsets(value))
    return {"to_earliest": ResetTo.earliest, "to_latest": ResetTo.latest, "to_current": ResetTo.current}[way]()


def parse_moment(text: str) -> int:
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a time: use ISO 8601, such as 2026-01-31T12:00, or milliseconds since the epoch"
        ) from error
    return round(moment.astimezone(datetime.UTC).timestamp() * 1000)


def _read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Raises: BadParameter: a line is invalid; the message names it."""
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


def _warn_of_limits(to: ResetTo, changes: dict[TopicPartition, OffsetChange]) -> None:
    """Report the offsets that are outside the log, and the nearest end, to standard error."""
    for tp, change in changes.items():
        wanted = to.wanted(tp, change)
        if wanted != change.after:
            end = "end" if wanted > change.after else "start"
            click.echo(f"{tp}: offset {wanted} is outside the log, the {end} is {change.after}", err=True)


def _print_changes(name: str, changes: dict[TopicPartition, OffsetChange], *, as_csv: bool) -> None:
    if as_csv:
        for tp, change in changes.items():
            print(f"{tp.topic},{tp.partition},{change.after}")
        return
    rows = [
        [tp.topic, tp.partition, "-" if change.before is None else change.before.offset, change.after]
        for tp, change in changes.items()
    ]
    print_table(f"Group {name}", ["topic", "partition", "before", "after"], rows)


@command.command("delete", short_help="Delete groups, committed offsets or members.")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@partitions_option("--offsets", "-o", help="Delete only these committed offsets, not the groups.")
@click.option("--members", is_flag=True, help="Remove only the members; members that are running join again.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def delete(*, names: tuple[str, ...], bootstrap: str, offsets: tuple[str, ...], members: bool, yes: bool) -> None:
    """Delete groups that have no members; with --offsets or --members, only offsets or members."""
    if offsets and members:
        raise click.UsageError("use --offsets or --members, not both")
    chosen = parse_partitions(offsets)
    what = f"offsets of {', '.join(offsets)} in " if offsets else "all members of " if members else ""
    if not yes:
        click.confirm(f"delete {what}{', '.join(names)}?", abort=True)

    async def main() -> int:
        from aiokwire import Admin, TopicPartition

        deleted: list[str] = []
        errors: list[BrokerError] = []
        async with Admin(bootstrap, **connect_options()) as admin:
            if offsets:
                topics = (await admin.describe_topics({one for one in chosen if isinstance(one, str)})).check()
                places = [one for one in chosen if not isinstance(one, str)]
                places += [TopicPartition(name, p.partition) for name, t in topics.items() for p in t.partitions]
                for name in names:
                    forgotten = await admin.delete_group_offsets(name, places)
                    deleted += [f"the offset of {tp} in {name}" for tp in forgotten.succeeded]
                    errors += forgotten.errors.values()
            elif members:
                for name in names:
                    removed = await admin.remove_members(name)
                    deleted += [f"member {member} of {name}" for member in removed.succeeded]
                    errors += removed.errors.values()
            else:
                results = await admin.delete_groups(names)
                deleted += results.succeeded
                errors += results.errors.values()
        for one in deleted:
            click.echo(f"deleted {printable(one)}")
        return print_errors(errors)

    run(main)


def parse_partitions(given: Iterable[str]) -> list[str | TopicPartition]:
    """Parse `TOPIC`, or `TOPIC:0,1,2` for some of its partitions; names of topics have no colon."""
    from aiokwire import TopicPartition

    chosen: list[str | TopicPartition] = []
    for text in given:
        topic, colon, numbers = text.partition(":")
        parts = numbers.split(",") if colon else []
        if not topic or not all(part.isdecimal() for part in parts):
            raise click.BadParameter(f"{text!r} is not TOPIC or TOPIC:PARTITION,...")
        chosen += [TopicPartition(topic, int(part)) for part in parts] or [topic]
    return chosen
