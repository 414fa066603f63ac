"""`aiokwire topics list`."""

from __future__ import annotations

import click

from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.running import run


@click.command("list")
@bootstrap_option
@click.option("--internal", is_flag=True, help="Include internal topics.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(bootstrap: str, internal: bool, as_json: bool) -> None:
    """List the topics."""

    async def list_() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **CONNECT) as admin:
            topics = await admin.list_topics(internal=internal)
        if as_json:
            for topic in topics:
                print_json({"name": topic.name, "partitions": topic.partitions, "internal": topic.is_internal})
        else:
            print_table(f"Topics on {bootstrap}", ["topic", "partitions"], [[t.name, t.partitions] for t in topics])
        return 0

    run(list_)
