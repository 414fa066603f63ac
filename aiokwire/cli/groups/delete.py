"""`aiokwire groups delete NAME`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiokwire._text import printable
from aiokwire.cli.groups.partitions import parse_partitions
from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.running import run

if TYPE_CHECKING:
    from aiokwire.errors import BrokerError


@click.command("delete")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option(
    "--offsets",
    "-o",
    multiple=True,
    metavar="TOPIC[:PARTITION,...]",
    help="Delete only these committed offsets, not the groups.",
)
@click.option("--members", is_flag=True, help="Remove only the members; running ones rejoin.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def command(*, names: tuple[str, ...], bootstrap: str, offsets: tuple[str, ...], members: bool, yes: bool) -> None:
    """Delete groups without members, or offsets or members of groups."""
    if offsets and members:
        raise click.UsageError("give --offsets or --members, not both")
    chosen = parse_partitions(offsets)
    what = f"offsets of {', '.join(offsets)} in " if offsets else "all members of " if members else ""
    if not yes:
        click.confirm(f"delete {what}{', '.join(names)}?", abort=True)

    async def delete() -> int:
        from aiokwire import Admin, TopicPartition

        deleted: list[str] = []
        errors: list[BrokerError] = []
        async with Admin(bootstrap, **CONNECT) as admin:
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
        for error in errors:
            click.echo(f"error: {error}", err=True)
        return 1 if errors else 0

    run(delete)
