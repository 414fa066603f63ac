"""`aiokwire topics create NAME`."""

from __future__ import annotations

import click

from aiokwire.cli.options import CONNECT, bootstrap_option, pairs_option
from aiokwire.cli.running import run
from aiokwire.errors import BrokerError


@click.command("create")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--partitions", "-p", type=click.IntRange(1), help="Number of partitions (default: the broker's).")
@click.option("--replication-factor", "-r", type=click.IntRange(1), help="Number of replicas (default: the broker's).")
@pairs_option("--set", "--config", "settings", help="Topic config by Kafka's name, such as retention.ms=60000")
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic exists.")
def command(
    *,
    names: tuple[str, ...],
    bootstrap: str,
    partitions: int | None,
    replication_factor: int | None,
    settings: dict[str, str],
    if_not_exists: bool,
) -> None:
    """Create topics and wait until they are usable."""
    configs = {name.replace("_", "."): value for name, value in settings.items()}

    async def create() -> int:
        from aiokwire import Admin, ErrorCode
        from aiokwire.admin import NewTopic

        wanted = [NewTopic(name, partitions or -1, replication_factor or -1, configs) for name in names]
        async with Admin(bootstrap, **CONNECT) as admin:
            results = await admin.create_topics(wanted)
        failed: list[BrokerError] = []
        for name in names:
            error = results.errors.get(name)
            if error is None:
                print(f"created {name}")
            elif if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                print(f"{name} exists")
            else:
                failed.append(error)
        for error in failed:
            click.echo(f"error: {error}", err=True)
        return 1 if failed else 0

    run(create)
