"""Subscriptions by pattern: aiokafka's matches the beginning of a name, ours the whole name."""

from __future__ import annotations

import re
from typing import Any

from aiokwire.cluster import Cluster
from aiokwire.consumer import Consumer

# Flags at the beginning of an expression, which must stay there.
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")


def whole_names(pattern: str) -> re.Pattern[str]:
    """Return the pattern of all names that begin with a match of `pattern`.

    Raises: ValueError: it is not a regular expression.
    """
    try:
        compiled = re.compile(pattern)
        flags = _FLAGS.match(compiled.pattern)
        body = compiled.pattern[flags.end() :] if flags is not None else compiled.pattern
        return re.compile(f"(?:{body})[\\s\\S]*", compiled.flags)
    except (re.error, TypeError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


class TopicWatch:
    """Reads all topics that match a pattern, without a group."""

    def __init__(self, consumer: Consumer[Any, Any], pattern: re.Pattern[str], *, internal: bool) -> None:
        """`internal`: with the topics that belong to Kafka itself."""
        self._consumer = consumer
        self._internal = internal
        self._pattern = pattern
        self._topics: set[str] = set()

    def begin(self) -> None:
        """Follow the metadata of all topics."""
        metadata = self._consumer.client.metadata
        metadata.add_listener(self._follow)
        metadata.want_all()
        metadata.request_update("a subscription by pattern")

    async def start(self) -> None:
        """Begin, and read the topics that match now."""
        self.begin()
        self._follow(await self._consumer.client.metadata.update())

    def end(self) -> None:
        """Stop following."""
        metadata = self._consumer.client.metadata
        metadata.remove_listener(self._follow)
        metadata.want_all(False)

    def _follow(self, cluster: Cluster) -> None:
        found = {
            name
            for name, topic in cluster.topics.items()
            if topic.partitions and (self._internal or not topic.is_internal) and self._pattern.fullmatch(name)
        }
        if found and found != self._topics:
            self._topics = found
            self._consumer.subscribe_nowait(*sorted(found))
