"""What both protocols of groups act with: deadlines, the log, configs, ids, and the topics that can be assigned."""

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
    """Handed in by the coordinator."""

    timers: Timers
    # Appends records of a group to `__consumer_offsets`; raises StorageError, and then nothing was appended.
    append: Callable[[str, Records], None]
    configs: BrokerConfigs
    rng: random.Random
    topics: TopicRegistry

    def new_id(self) -> str:
        """A random part of a member id."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
