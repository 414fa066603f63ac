"""`aiokwire bench`: throughput, CPU and latency against any broker."""

from __future__ import annotations

import click

from aiokwire.cli.bench.consume import command as consume
from aiokwire.cli.bench.produce import command as produce
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import bootstrap_for_verbs


@click.group("bench", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """Measure throughput, CPU and latency against a broker."""


for verb in (produce, consume):
    command.add_command(verb)
