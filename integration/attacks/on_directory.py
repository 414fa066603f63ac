"""Attacks by what the data directory of a broker process holds."""

from __future__ import annotations

import stat

from aiokwire import Admin
from aiokwire.admin import NewTopic
from aiokwire.protocol.messages import consumer_group_heartbeat, metadata
from integration.attacks.figures import Figure, faults
from integration.attacks.on_broker import PATTERN
from integration.attacks.target import Attack, Target
from integration.kafka.server import ServerFailed
from tests.broker.raw import batch, produce_one

PRECIOUS = b"x" * 300


def _join(member_id: str, pattern: str) -> consumer_group_heartbeat.ConsumerGroupHeartbeatRequest:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=1000,
        subscribed_topic_regex=pattern,
        topic_partitions=[],
    )


async def stored_patterns(target: Target) -> list[Figure]:
    """V1b: a pattern that no topic matches; then the topic, a kill, and another member."""
    async with target.connected() as (client,):
        joined = await client.ask(_join("m", PATTERN), 1)
        async with Admin(**target.broker.client_options) as admin:
            (await admin.create_topics([NewTopic("a" * 248 + "-", 1)])).check()
        again = await client.ask(_join("m", PATTERN), 1)
    first = [target.meter.cpu(0.3), *target.restart()]
    async with target.connected() as (client,):
        innocent = await client.ask(_join("n", "x.*"), 1)
    errors = [answer for answer in (joined, again, innocent) if answer.error_code]
    return [*first, target.meter.cpu(0.1), faults("errors", len(errors)), *target.victim.waits()]


async def file_modes(target: Target) -> list[Figure]:
    """V14: what other users may do with the broker's files."""
    paths = [target.broker.data_dir, *target.broker.data_dir.rglob("*")]
    open_to_others = [path for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]
    return [faults("readable by others", len(open_to_others)), *target.victim.waits()]


async def links(target: Target) -> list[Figure]:
    """V15: symbolic links in place of segments and of the temporary files of the data directory."""
    data = target.broker.data_dir
    async with target.connected() as (client,):
        await client.ask(metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")]), 4)
        await produce_one(client, "t", batch([b"value"]))
    waits = target.victim.waits()
    target.broker.stop()
    segments = [path for path in data.rglob("*") if path.is_file()]
    temporary = [path.with_name(f"{path.name}.tmp") for path in segments if path.parent == data]
    precious = data.parent / f"{data.name}.precious"
    precious.write_bytes(PRECIOUS)
    changed, refused = 0, 0
    try:
        for path in [*segments, *temporary]:
            kept = path.read_bytes() if path.exists() else None
            path.unlink(missing_ok=True)
            path.symlink_to(precious)
            refused += _is_refused(target)
            changed += precious.read_bytes() != PRECIOUS
            precious.write_bytes(PRECIOUS)
            path.unlink(missing_ok=True)
            if kept is not None:
                path.write_bytes(kept)
    finally:
        precious.unlink()
    tried = len(segments) + len(temporary)
    return [faults(f"files changed by {tried} links ({refused} starts refused)", changed), *waits]


def _is_refused(target: Target) -> bool:
    """Start and stop the broker; return whether it refuses to start."""
    try:
        target.broker.start()
    except ServerFailed:
        return True
    target.broker.stop()
    return False


ATTACKS: dict[str, Attack] = {"V1b": stored_patterns, "V14": file_modes, "V15": links}
