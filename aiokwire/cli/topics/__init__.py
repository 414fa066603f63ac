"""`aiokwire topics`: one verb per file."""

from __future__ import annotations

import click

from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import bootstrap_for_verbs
from aiokwire.cli.topics.create import command as create
from aiokwire.cli.topics.delete import command as delete
from aiokwire.cli.topics.describe import command as describe
from aiokwire.cli.topics.list import command as list_


@click.group("topics", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, create, describe and delete topics."""


for verb in (list_, create, describe, delete):
    command.add_command(verb)
