"""`aiokwire outbox`: sends the rows of an outbox table to Kafka, until SIGTERM."""

from __future__ import annotations

import contextlib

import anyio
import click

from aiokwire.cli.connection import bootstrap_option, connect_options
from aiokwire.cli.metrics_server import serve_metrics
from aiokwire.cli.running import run
from aiokwire.errors import ConfigurationError


@click.command("outbox")
@click.argument("database", metavar="URL", envvar="AIOKWIRE_OUTBOX_DATABASE")
@bootstrap_option
@click.option("--table", default="aiokwire_outbox", show_default=True, help="Name of the table.")
@click.option("--schema", help="Schema of the table (PostgreSQL).")
@click.option(
    "--retention",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="Time to keep sent rows; 0 deletes them at once.",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics to Prometheus at this address.")
def command(
    *, database: str, bootstrap: str, table: str, schema: str | None, retention: float, metrics: str | None
) -> None:
    """Send the rows of an outbox to Kafka, until Ctrl-C.

    URL is a SQLAlchemy URL with an asyncio driver, such as postgresql+asyncpg://user@host/name. If
    it contains a password, set AIOKWIRE_OUTBOX_DATABASE instead. Only one of several processes
    sends; another one takes over when it ends.
    """
    try:
        from sqlalchemy.exc import ArgumentError

        from aiokwire.outbox import Outbox, OutboxRelay
    except ImportError as error:
        raise click.UsageError(str(error)) from None

    async def relay() -> None:
        outbox = Outbox(table=table, schema=schema)
        try:
            made = OutboxRelay(outbox, database, bootstrap, retention_ms=retention * 1000, **connect_options())
        except (ArgumentError, ImportError) as error:
            raise ConfigurationError(f"cannot use the database: {error}") from None
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(made)
            if metrics is not None:
                url = await stack.enter_async_context(serve_metrics(metrics, made))
                print(f"serving metrics at {url}", flush=True)
            print(f"relaying {outbox.name} to {bootstrap}", flush=True)
            await anyio.sleep_forever()

    run(relay, until_stopped=True)
