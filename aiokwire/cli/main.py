"""The root command and its verbs.

A verb's module is imported when it is called: `aiokwire broker` has to be ready within 250 ms.
"""

from __future__ import annotations

import logging

import click

from aiokwire._version import __version__
from aiokwire.cli.connection import bootstrap_for_verbs
from aiokwire.cli.lazy import LazyGroup

VERBS = {
    "broker": ("aiokwire.cli.broker", "Run a broker on this machine."),
    "topics": ("aiokwire.cli.topics", "List, create, describe and delete topics."),
    "groups": ("aiokwire.cli.groups", "List, describe, reset and delete consumer groups."),
    "produce": ("aiokwire.cli.produce", "Send lines, files or JSON lines to a topic."),
    "consume": ("aiokwire.cli.consume", "Print a topic's records."),
    "run": ("aiokwire.cli.run", "Run a worker, in one process or several."),
    "outbox": ("aiokwire.cli.outbox", "Send the rows of an outbox table."),
    "dlq": ("aiokwire.cli.dlq", "List, show, replay and drop dead letters."),
    "acls": ("aiokwire.cli.acls", "List, add and remove ACLs."),
    "users": ("aiokwire.cli.users", "List, add and remove users that log in with SCRAM."),
    "quotas": ("aiokwire.cli.quotas", "List, set and remove quotas of users, client ids and addresses."),
    "tokens": ("aiokwire.cli.tokens", "Create, list, renew and expire delegation tokens."),
    "exporter": ("aiokwire.cli.exporter", "Serve the lag of all groups to Prometheus."),
    "doctor": ("aiokwire.cli.doctor", "Find out why a client cannot connect."),
    "bench": ("aiokwire.cli.bench", "Measure throughput, CPU and latency against a broker."),
    "demo": ("aiokwire.cli.demo", "Stream real flights through a broker that is killed halfway."),
    "migrate": ("aiokwire.cli.migrate", "Rewrite programs that use aiokafka to aiokwire."),
    "spark": ("aiokwire.cli.spark", "Archive, replay, audit and query topics on Spark."),
}


@click.command(cls=LazyGroup, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_for_verbs
@click.version_option(__version__, prog_name="aiokwire")
@click.option(
    "--verbose", "-v", count=True, help="Log state changes (-v) or everything (-vv); give it before the command."
)
def cli(verbose: int) -> None:
    """Kafka clients and a broker, native to asyncio."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # It logs the beginning of an outage as a WARNING, and its end as INFO: show both.
    logging.getLogger("aiokwire.cluster.nodes").setLevel(min(level, logging.INFO))
