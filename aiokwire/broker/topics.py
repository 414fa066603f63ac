"""A topic: its name, id, configs and partitions. `topic_registry` keeps all topics."""

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
    """Return why a topic may not have this name, or None."""
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
    """One partition: its leader, its log, and the callbacks that wait for records."""

    __slots__ = ("_waiters", "index", "leader", "leader_epoch", "log", "topic")

    def __init__(self, topic: Topic, index: int, log: PartitionLog, leader: int, leader_epoch: int) -> None:
        self.topic: Topic = topic
        self.index: int = index
        self.log: PartitionLog = log
        self.leader: int = leader  # a node's id
        self.leader_epoch: int = leader_epoch  # rises whenever the leader moves, and after an unclean stop
        self._waiters: dict[Callable[[int], None], None] = {}  # in the order of their arrival

    def __repr__(self) -> str:
        return f"<Partition {self.topic.name}[{self.index}]>"

    @property
    def waited_for(self) -> bool:
        """Whether a callback waits."""
        return bool(self._waiters)

    def move_to(self, node_id: int) -> None:
        """Make a node the leader, with the next leader epoch."""
        self.leader = node_id
        self.leader_epoch += 1
        self.changed()

    def wait(self, waiter: Callable[[int], None]) -> None:
        """Call `waiter` with the byte count at each append, and with -1 at any other change."""
        self._waiters[waiter] = None

    def forget(self, waiter: Callable[[int], None]) -> None:
        self._waiters.pop(waiter, None)

    def appended(self, size: int) -> None:
        """Notify the waiting callbacks of `size` new bytes."""
        if self._waiters:
            for waiter in list(self._waiters):
                waiter(size)

    def changed(self) -> None:
        """Notify the waiting callbacks that the partition was deleted, truncated or moved."""
        self.appended(-1)


class TopicRules(NamedTuple):
    """The rules of a topic's configs for produced batches."""

    max_message_bytes: int
    compacted: bool
    log_append_time: bool  # timestamps are those of the broker's clock
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    min_insync_replicas: int
    compression: Compression | None  # None: the producer's
    compression_level: int | None

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Return the rules of a topic with these configs in force."""
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
        self.name: str = name
        self.id: bytes = topic_id
        self.configs: dict[str, str] = dict(configs)  # overrides; `values` are those in force
        self.partitions: list[Partition] = []
        self.deleted: bool = False
        self.values: dict[str, str] = {}
        self.rules: TopicRules
        self.log_config: LogConfig = LogConfig()

    def __repr__(self) -> str:
        return f"<Topic {self.name} of {len(self.partitions)} partitions>"

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL

    def partition(self, index: int) -> Partition | None:
        """Return the partition of that number, or None."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def set_deleted(self, is_deleted: bool) -> None:
        """Mark the topic as deleted and notify waiting callbacks, or restore it."""
        self.deleted = is_deleted
        for partition in self.partitions if is_deleted else ():
            partition.changed()

    def apply(self, broker: BrokerConfigs, overrides: Mapping[str, str] | None = None) -> None:
        """Set new overrides, if given; recompute the configs in force and pass them to the logs."""
        if overrides is not None:
            self.configs = dict(overrides)
        self.values = broker.topic_values(self.configs)
        self.log_config = LogConfig().override(self.values)
        self.rules = TopicRules.of(self.values)
        for partition in self.partitions:
            partition.log.configure(self.log_config)
