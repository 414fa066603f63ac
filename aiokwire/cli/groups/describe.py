"""`aiokwire groups describe NAME`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.running import run

if TYPE_CHECKING:
    from aiokwire import TopicPartition
    from aiokwire.admin import GroupDescription, PartitionLag


@click.command("describe")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show state, members, committed offsets and lag of groups."""

    async def describe() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **CONNECT) as admin:
            groups = await admin.describe_groups(names)
            for name in names:
                if name in groups.errors:
                    click.echo(f"error: {groups.errors[name]}", err=True)
                    continue
                partitions = _partitions(groups[name], await admin.group_lag(name))
                if as_json:
                    print_json(_as_json(groups[name], partitions))
                else:
                    _print(groups[name], partitions)
        return 1 if groups.errors else 0

    run(describe)


def _partitions(group: GroupDescription, lags: Mapping[TopicPartition, PartitionLag]) -> list[dict[str, Any]]:
    """What was committed in each partition, and who reads it."""
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


def _print(group: GroupDescription, partitions: list[dict[str, Any]]) -> None:
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
