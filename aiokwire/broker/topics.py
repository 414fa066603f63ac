"""A topic: its name, id, configs and partitions. `topic_registry` has all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

from aiokwire.broker.adoption import INTERNAL
from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.log import LogConfig, PartitionLog
from aiokwire.types import Compression

MAX_NAME = 249  # Java: Topic.MAX_NAME_LENGTH, so that a directory name with the partition fits a file system
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_fault(name: str) -> str | None:
    """Why a topic may not have this name, None when it may."""
    if not name:
        return "a topic name must not be empty"
    if name in {".", ".."}:
        return f"a topic name must not be {name!r}"
    if len(name) > MAX_NAME:
        return f"a topic name of {len(name)} characters: at most {MAX_NAME} are allowed"
    if _LEGAL.fullmatch(name) is None:
        return f"topic name {name!r} is illegal: only ASCII letters and digits, '.', '_' and '-' are allowed"
    return None


class Partition:
    """One partition: its log, and who waits for records in it."""

    __slots__ = ("_waiters", "index", "leader", "leader_epoch", "log", "topic")

    def __init__(self, topic: Topic, index: int, log: PartitionLog, leader: int, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader = leader  # a node's id
        self.leader_epoch = leader_epoch  # goes up whenever the leader moves, and after an unclean stop
        self._waiters: dict[Callable[[int], None], None] = {}  # in the order they came

    def __repr__(self) -> str:
        return f"<Partition {self.topic.name}[{self.index}]>"

    @property
    def waited_for(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiters)

    def wait(self, waiter: Callable[[int], None]) -> None:
        """Call `waiter` with the number of bytes at each append, with -1 when anything else changes."""
        self._waiters[waiter] = None

    def forget(self, waiter: Callable[[int], None]) -> None:
        self._waiters.pop(waiter, None)

    def appended(self, size: int) -> None:
        """Tell who waits that `size` bytes came."""
        if self._waiters:
            for waiter in list(self._waiters):
                waiter(size)

    def changed(self) -> None:
        """Tell who waits to look again: deleted, truncated, or its start moved."""
        self.appended(-1)


class TopicRules(NamedTuple):
    """What a topic's configs say about the batches that it takes."""

    max_message_bytes: int
    compacted: bool
    log_append_time: bool  # the broker's clock gives the timestamps
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    min_insync_replicas: int
    compression: Compression | None  # None: as the producer likes
    compression_level: int | None

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """The rules of a topic with these configs in force."""
        codec = values["compression.type"].lower()
        level = values.get(f"compression.{codec}.level")
        return cls(
            max_message_bytes=int(values["max.message.bytes"]),
            compacted="compact" in values["cleanup.policy"],
            log_append_time=values["message.timestamp.type"] == "LogAppendTime",
            timestamp_before_max_ms=int(values["message.timestamp.before.max.ms"]),
            timestamp_after_max_ms=int(values["message.timestamp.after.max.ms"]),
            min_insync_replicas=int(values["min.insync.replicas"]),
            compression=None
            if codec == "producer"
            else Compression.NONE
            if codec == "uncompressed"
            else Compression.parse(codec),
            compression_level=int(level) if level is not None else None,
        )


class Topic:
    """A topic and its partitions."""

    __slots__ = ("configs", "deleted", "id", "log_config", "name", "partitions", "rules", "values")

    def __init__(self, name: str, topic_id: bytes, configs: Mapping[str, str]) -> None:
        self.name = name
        self.id = topic_id
        self.configs = dict(configs)  # its own overrides; `values` is what is in force
        self.partitions: list[Partition] = []
        self.deleted = False
        self.values: dict[str, str] = {}
        self.rules: TopicRules
        self.log_config = LogConfig()

    def __repr__(self) -> str:
        return f"<Topic {self.name} of {len(self.partitions)} partitions>"

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL

    def partition(self, index: int) -> Partition | None:
        """The partition of that number, None when there is none."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def apply(self, broker: BrokerConfigs) -> None:
        """Compute the configs in force anew and hand them to the logs."""
        self.values = broker.topic_values(self.configs)
        self.log_config = LogConfig().override(self.values)
        self.rules = TopicRules.of(self.values)
        for partition in self.partitions:
            partition.log.config = self.log_config
