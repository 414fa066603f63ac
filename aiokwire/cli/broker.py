"""`aiokwire broker`: runs a broker until Ctrl-C, or until its standard input is closed."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from aiokwire.cli import broker_security
from aiokwire.cli.metrics_server import serve_metrics
from aiokwire.cli.options import pairs_option, parse_settings, parse_topic_partitions
from aiokwire.cli.running import run
from aiokwire.cli.standard import stdin_closed

if TYPE_CHECKING:
    from aiokwire.broker import Broker


_COMMANDLINE = click.core.ParameterSource.COMMANDLINE
_OWN_OPTIONS = frozenset(
    (
        "advertised",
        "apply_retention",
        "client_metrics",
        "cluster_id",
        "data_dir",
        "journal",
        "listen",
        "nodes",
        "rng",
        "storage",
        "topics",
        "users",
        "data_dir_mode",
    )
)


def _parse_configs(given: tuple[str, ...]) -> dict[str, Any]:
    configs = {name.replace(".", "_"): value for name, value in parse_settings(given).items()}
    for name in _OWN_OPTIONS & configs.keys():
        raise click.BadParameter(f"{name} is not a broker config; see --help for an option of that name")
    return configs


def _parse_topics(given: tuple[str, ...]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for text in given:
        name, partitions = parse_topic_partitions(text)
        if name in wanted:
            raise click.UsageError(f"--topic names {name} twice: give each topic once")
        wanted[name] = partitions
    return wanted


@click.command("broker")
@click.option(
    "--listen",
    default="127.0.0.1:9092",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on. Port 0 picks a free port; localhost means 127.0.0.1 and ::1.",
)
@click.option("--advertised", metavar="HOST:PORT", help="Address that clients connect to (default: that of --listen).")
@click.option(
    "--data-dir", type=click.Path(file_okay=False), help="Directory of the log (default: keep records in memory)."
)
@click.option("--topic", "topics", multiple=True, metavar="NAME:PARTITIONS", help="Create a topic; repeatable.")
@click.option(
    "--nodes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of nodes. The first uses the port of --listen, the others the ports after it.",
)
@pairs_option(
    "--set",
    "--config",
    "settings",
    help="Broker config by Kafka's name, such as log.retention.hours=24 (or with underscores)",
    parse=_parse_configs,
)
@click.option(
    "--apply-retention",
    is_flag=True,
    help="Apply retention to adopted topics whose configs are unknown (default: keep their records).",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Serve SASL_SSL: create certificates and the user admin, and print where client.properties is.",
)
@click.option(
    "--secure-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Directory of the files of --secure (default: security in --data-dir, or a temporary directory).",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics to Prometheus at this address.")
@click.option(
    "--client-metrics", is_flag=True, help="Receive metrics that clients push (KIP-714); --metrics serves them, too."
)
@click.option(
    "--journal", type=click.IntRange(0), default=0, help="Keep the last N requests in memory, for tests.", metavar="N"
)
@click.option("--ready-json", is_flag=True, help="Print one line of JSON when ready: addresses, ids, process id.")
@click.option("--exit-with-stdin", is_flag=True, help="Stop when standard input is closed.")
def command(
    *,
    topics: tuple[str, ...],
    settings: dict[str, Any],
    ready_json: bool,
    exit_with_stdin: bool,
    secure: bool,
    secure_dir: str | None,
    metrics: str | None,
    **options: Any,
) -> None:
    """Run a broker for any Kafka client, with a log on disk in Kafka's format.

    On SIGHUP, a broker with TLS reloads changed certificates.
    """
    options["topics"] = _parse_topics(topics)
    broker_security.check(settings, secure=secure, secure_dir=secure_dir)
    if "listeners" in settings and click.get_current_context().get_parameter_source("listen") is not _COMMANDLINE:
        del options["listen"]

    async def serve() -> None:
        if not secure:
            await _serve({**options, **settings}, None)
            return
        async with broker_security.secured(options, secure_dir) as (secured, properties):
            await _serve({**secured, **settings}, properties)

    async def _serve(chosen: dict[str, Any], properties: Path | None) -> None:
        from aiokwire.broker import Broker

        async with AsyncExitStack() as stack:
            broker = await stack.enter_async_context(Broker(**chosen))
            url = None if metrics is None else await stack.enter_async_context(serve_metrics(metrics, broker))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            if any(listener.uses_tls for listener in broker.listeners):
                await tasks.start(broker_security.reload_on_hangup, broker)
            describe = _ready_line if ready_json else _listening_lines
            print(describe(broker, properties, url), flush=True)
            await (stdin_closed() if exit_with_stdin else anyio.sleep_forever())
            tasks.cancel_scope.cancel()

    run(serve, until_stopped=True)


def _listening_lines(broker: Broker, properties: Path | None, metrics: str | None) -> str:
    bound = dict(entry.split("://") for entry in broker.state.configs.static["listeners"].split(","))
    lines = [_listening_line(broker, listener.name, bound) for listener in broker.listeners]
    if properties is not None:
        lines.append(f"clients log in as admin, with the options in {properties}")
    if metrics is not None:
        lines.append(f"serving metrics at {metrics}")
    return "\n".join(lines)


def _listening_line(broker: Broker, name: str, bound: dict[str, str]) -> str:
    clients, prefix = broker.address_of(name), "" if name == "PLAINTEXT" else f"{name}: "
    if clients.partition(",")[0] == bound[name]:
        return f"{prefix}listening on {clients}"
    return f"{prefix}listening on {bound[name]}, clients connect to {clients}"


def _ready_line(broker: Broker, properties: Path | None, metrics: str | None) -> str:
    ready = {
        "event": "ready",
        "bootstrap_servers": broker.bootstrap_servers,
        "port": broker.port,
        "nodes": [
            {"id": node_id, "address": address}
            for node_id, address in enumerate(broker.bootstrap_servers.split(","), broker.node_id)
        ],
        "cluster_id": broker.cluster_id,
        "pid": os.getpid(),
        **({} if properties is None else {"client_properties": str(properties)}),
        **({} if metrics is None else {"metrics": metrics}),
    }
    return json.dumps(ready)
