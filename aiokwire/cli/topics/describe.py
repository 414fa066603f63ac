"""`aiokwire topics describe NAME`."""

from __future__ import annotations

import sys
from typing import Any

import click

from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.running import run


@click.command("describe")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show partitions, leaders, offsets and changed configs of topics."""

    async def describe() -> int:
        from aiokwire import Admin, TopicPartition
        from aiokwire.admin import ConfigResource, ConfigSource, ResourceType
        from aiokwire.cluster import EARLIEST, LATEST

        async with Admin(bootstrap, **CONNECT) as admin:
            topics = (await admin.describe_topics(names)).check()
            resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in topics}
            settings = (await admin.describe_configs(resources.values())).check()
            plain: list[dict[str, Any]] = []
            for name, topic in topics.items():
                led = [TopicPartition(name, p.partition) for p in topic.partitions if p.leader is not None]
                begins = await admin.list_offsets(dict.fromkeys(led, EARLIEST))
                ends = await admin.list_offsets(dict.fromkeys(led, LATEST))
                rows = [
                    {
                        "partition": p.partition,
                        "leader": p.leader,
                        "replicas": list(p.replicas),
                        "in_sync": list(p.in_sync),
                        "begin": begins[TopicPartition(name, p.partition)].offset if p.leader is not None else None,
                        "end": ends[TopicPartition(name, p.partition)].offset if p.leader is not None else None,
                    }
                    for p in topic.partitions
                ]
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

    run(describe)
