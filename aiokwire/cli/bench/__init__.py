"""`aiokwire bench`: throughput, CPU and latency against any broker."""

from __future__ import annotations

import click

from aiokwire.cli.bench.consume import command as consume
from aiokwire.cli.bench.produce import command as produce


@click.group("bench")
def command() -> None:
    """Measure throughput, CPU and latency against a broker."""


for verb in (produce, consume):
    command.add_command(verb)
