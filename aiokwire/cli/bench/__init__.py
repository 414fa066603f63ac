"""`aiokwire bench`: throughput, CPU and latency against any broker."""

from __future__ import annotations

import click

from aiokwire.cli.bench import consume, produce


@click.group("bench")
def command() -> None:
    """Measure throughput, CPU and latency against a broker."""


command.add_command(produce.command)
command.add_command(consume.command)
