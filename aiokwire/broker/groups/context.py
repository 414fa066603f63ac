"""The context of both group protocols: deadlines, the log, configs, member ids, and topics."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.groups.timers import Timers
from aiokwire.broker.topic_registry import TopicRegistry

logger = logging.getLogger(__name__)

Records = Sequence[tuple[bytes, bytes | None]]


class GroupContext(NamedTuple):
    """What the coordinator shares with both protocols."""

    timers: Timers
    # Appends records of a group to `__consumer_offsets`; raises StorageError if nothing was appended.
    append: Callable[[str, Records], None]
    configs: BrokerConfigs
    rng: random.Random
    topics: TopicRegistry

    def new_id(self) -> str:
        """Return a random part of a member id."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
