"""`aiokwire groups list`."""

from __future__ import annotations

import dataclasses

import click

from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.running import run


@click.command("list")
@bootstrap_option
@click.option(
    "--state", "states", multiple=True, help="Show only groups in this state (Stable, Empty, ...); repeatable."
)
@click.option("--type", "types", multiple=True, help="Show only groups of this type (classic, consumer); repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(*, bootstrap: str, states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> None:
    """List the groups."""

    async def list_() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **CONNECT) as admin:
            groups = await admin.list_groups(states=states, types=types)
        if as_json:
            for group in groups:
                print_json(dataclasses.asdict(group))
        else:
            rows = [[one.group_id, one.type, one.state, f"{one.coordinator}"] for one in groups]
            print_table(f"Groups on {bootstrap}", ["group", "type", "state", "coordinator"], rows)
        return 0

    run(list_)
