"""`aiokwire topics`: list, create, describe and delete topics."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import json_option, pairs_option
from aiokwire.cli.output import print_errors, print_json, print_table
from aiokwire.cli.running import run
from aiokwire.errors import BrokerError

if TYPE_CHECKING:
    from aiokwire.admin import Admin, TopicDescription


@click.group("topics", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, create, describe and delete topics."""


@command.command("list")
@bootstrap_option
@click.option("--internal", is_flag=True, help="Include internal topics.")
@json_option
def list_topics(bootstrap: str, internal: bool, as_json: bool) -> None:
    """List the topics."""

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            topics = await admin.list_topics(internal=internal)
        if as_json:
            for topic in topics:
                print_json({"name": topic.name, "partitions": topic.partitions, "internal": topic.is_internal})
        else:
            print_table(f"Topics on {bootstrap}", ["topic", "partitions"], [[t.name, t.partitions] for t in topics])
        return 0

    run(main)


@command.command("create")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--partitions", "-p", type=click.IntRange(1), help="Number of partitions (default: the broker's).")
@click.option("--replication-factor", "-r", type=click.IntRange(1), help="Number of replicas (default: the broker's).")
@pairs_option("--set", "--config", "settings", help="Topic config by Kafka's name, such as retention.ms=60000")
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic exists.")
def create(
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

    async def main() -> int:
        from aiokwire import Admin, ErrorCode
        from aiokwire.admin import NewTopic

        wanted = [NewTopic(name, partitions or -1, replication_factor or -1, configs) for name in names]
        async with Admin(bootstrap, **connect_options()) as admin:
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
        return print_errors(failed)

    run(main)


@command.command("describe")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@json_option
def describe(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show partitions, leaders, offsets and changed configs of topics."""

    async def main() -> int:
        from aiokwire import Admin
        from aiokwire.admin import ConfigResource, ConfigSource, ResourceType

        async with Admin(bootstrap, **connect_options()) as admin:
            topics = (await admin.describe_topics(names)).check()
            resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in topics}
            settings = (await admin.describe_configs(resources.values())).check()
            plain: list[dict[str, Any]] = []
            for name, topic in topics.items():
                rows = await _partition_rows(admin, topic)
                changed = {
                    entry.name: entry.value
                    for entry in settings[resources[name]].values()
                    if entry.source is ConfigSource.DYNAMIC_TOPIC
                }
                if as_json:
                    topic_id = None if topic.topic_id is None else str(topic.topic_id)
                    print_json({"name": name, "topic_id": topic_id, "partitions": rows, "configs": changed})
                elif not sys.stdout.isatty():
                    plain += [{"topic": name, **row} for row in rows]
                else:
                    note = "".join(f", {key}={value}" for key, value in sorted(changed.items()))
                    print_table(f"{name}{note}", list(rows[0]), [list(row.values()) for row in rows])
            if plain:
                print_table("", list(plain[0]), [list(row.values()) for row in plain])
        return 0

    run(main)


async def _partition_rows(admin: Admin, topic: TopicDescription) -> list[dict[str, Any]]:
    from aiokwire import TopicPartition
    from aiokwire.cluster import EARLIEST, LATEST

    led = [TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader is not None]
    begins = await admin.list_offsets(dict.fromkeys(led, EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(led, LATEST))
    return [
        {
            "partition": each.partition,
            "leader": each.leader,
            "replicas": list(each.replicas),
            "in_sync": list(each.in_sync),
            "begin": begins[TopicPartition(topic.name, each.partition)].offset if each.leader is not None else None,
            "end": ends[TopicPartition(topic.name, each.partition)].offset if each.leader is not None else None,
        }
        for each in topic.partitions
    ]


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def delete(names: tuple[str, ...], bootstrap: str, yes: bool) -> None:
    """Delete topics with all their records."""
    if not yes:
        click.confirm(f"delete {', '.join(names)} with all records?", abort=True)

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            results = await admin.delete_topics(names)
        for name in results.succeeded:
            click.echo(f"deleted {name}")
        return print_errors(results.errors.values())

    run(main)
