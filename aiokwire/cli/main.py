"""The root command and its verbs.

A verb's module loads when it is called: `aiokwire broker` is to answer within 250 ms.
"""

from __future__ import annotations

import importlib
import logging

import click

from aiokwire._version import __version__

VERBS = {
    "broker": ("aiokwire.cli.broker", "Run a broker on this machine."),
    "topics": ("aiokwire.cli.topics", "List, create, describe and delete topics."),
    "groups": ("aiokwire.cli.groups", "List, describe, reset and delete consumer groups."),
    "produce": ("aiokwire.cli.produce", "Send lines, files or JSON lines to a topic."),
    "consume": ("aiokwire.cli.consume", "Print a topic's records."),
    "bench": ("aiokwire.cli.bench", "Measure throughput, CPU and latency against a broker."),
    "demo": ("aiokwire.cli.demo", "Stream real flights through a broker that is killed on the way."),
}


class LazyGroup(click.Group):
    """A group whose commands are modules, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The short helps stand in the table, so that `--help` loads no verb.
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="aiokwire")
@click.option("--verbose", "-v", count=True, help="Log more: -v for state changes, -vv for everything.")
def cli(verbose: int) -> None:
    """An asyncio-native Kafka: clients and a broker."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
