"""The metrics of a member and its group, read from its status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiokwire.metrics import LONG, Labels, Metric, Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokwire.group.status import MemberStatus

REBALANCES: Final = Metric(
    "kafka.consumer.coordinator.rebalance.latency",
    "histogram",
    "s",
    "Durations of rebalances, until the assignment of this member is in force.",
    bounds=LONG,
)
LAST_REBALANCE: Final = Metric(
    "kafka.consumer.coordinator.last.rebalance.latency", "gauge", "s", "Duration of the last rebalance."
)
REBALANCING: Final = Metric(
    "kafka.consumer.coordinator.rebalancing", "gauge", "s", "Time since the current rebalance began; 0 without one."
)
HEARTBEATS: Final = Metric(
    "kafka.consumer.coordinator.heartbeat.response.time",
    "histogram",
    "s",
    "Time from a heartbeat to its response.",
)
LAST_HEARTBEAT: Final = Metric(
    "kafka.consumer.coordinator.last.heartbeat.seconds.ago", "gauge", "s", "Time since the last heartbeat's response."
)
LOOP_DELAY: Final = Metric(
    "kafka.consumer.event.loop.delay",
    "histogram",
    "s",
    "Delay of the event loop, measured once a second from a thread: how long a callback waits for its turn.",
)
MEMBER_METRICS: Final = (REBALANCES, LAST_REBALANCE, REBALANCING, HEARTBEATS, LAST_HEARTBEAT, LOOP_DELAY)


def member_samples(
    status: MemberStatus, labels: Labels, elapsed_since: Callable[[float | None], float | None]
) -> list[Sample]:
    """Return the metrics; from any thread. `elapsed_since`: the time since one of the loop's."""
    found = [
        REBALANCES.sample(status.rebalances.read(), labels),
        REBALANCING.sample(elapsed_since(status.rebalancing_since) or 0.0, labels),
        HEARTBEATS.sample(status.heartbeats.read(), labels),
        LOOP_DELAY.sample(status.loop_delays.read(), labels),
    ]
    if status.rebalance_took is not None:
        found.append(LAST_REBALANCE.sample(status.rebalance_took, labels))
    ago = elapsed_since(status.heartbeat_at)
    if ago is not None:
        found.append(LAST_HEARTBEAT.sample(ago, labels))
    return found
