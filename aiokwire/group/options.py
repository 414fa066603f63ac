"""How a member takes part in its group; made by the consumer from its configuration. Times in seconds."""

from __future__ import annotations

import dataclasses

from aiokwire.group.strategy import Strategy


@dataclasses.dataclass(frozen=True, slots=True)
class MemberOptions:
    """See `ConsumerConfig` for what the options mean."""

    group_id: str
    strategy: Strategy
    instance_id: str | None = None
    rack_id: str | None = None
    remote_assignor: str | None = None  # of the coordinator, with the consumer protocol; None: whichever it prefers
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0  # also how long the group waits for this member in a rebalance
