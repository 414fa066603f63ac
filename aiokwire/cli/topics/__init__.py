"""`aiokwire topics`: one verb per file."""

from __future__ import annotations

import click

from aiokwire.cli.topics import create, delete, describe
from aiokwire.cli.topics import list as list_


@click.group("topics")
def command() -> None:
    """List, create, describe and delete topics."""


command.add_command(list_.command)
command.add_command(create.command)
command.add_command(describe.command)
command.add_command(delete.command)
