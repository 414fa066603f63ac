"""`aiokwire groups`: one verb per file."""

from __future__ import annotations

import click

from aiokwire.cli.groups.delete import command as delete
from aiokwire.cli.groups.describe import command as describe
from aiokwire.cli.groups.list import command as list_
from aiokwire.cli.groups.reset import command as reset
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import bootstrap_for_verbs


@click.group("groups", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, describe, reset and delete consumer groups."""


for verb in (list_, describe, reset, delete):
    command.add_command(verb)
