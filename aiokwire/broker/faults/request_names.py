"""Which topics and partitions a request is about, for rules that name some (`rules.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from aiokwire.broker.dispatch import WHOLE_TOPIC, Call
from aiokwire.protocol import ZERO_UUID, ApiKey, Request

if TYPE_CHECKING:
    from aiokwire.protocol.messages import fetch

Name = tuple[str, int]

# What the definitions call the same things in different requests.
_LISTS_OF_TOPICS = ("topic_data", "topics", "topic_names", "v3_and_below_topics")
_LISTS_OF_LISTS = ("groups", "transactions")
_LISTS_OF_PARTITIONS = ("partition_data", "partitions", "partition_indexes")
_NAMES = ("name", "topic")
_INDICES = ("index", "partition", "partition_index")


def names_of(request: Request[Any], call: Call) -> list[Name]:
    """Topic and partition of everything that a request names, or that its fetch session does."""
    names = list(_walk(request, call))
    if call.api == ApiKey.METADATA and getattr(request, "topics", None) is None:
        return [(topic.name, WHOLE_TOPIC) for topic in call.state.topics]
    if call.api == ApiKey.FETCH:
        rows = call.node.sessions.rows_after(cast("fetch.FetchRequest", request))
        names += [(row.topic or _name_of_id(row.topic_id, call), row.index) for row in rows]
    return names


def _walk(holder: Any, call: Call) -> Iterator[Name]:
    for attribute in _LISTS_OF_LISTS:
        for inner in getattr(holder, attribute, None) or ():
            if not isinstance(inner, str):
                yield from _walk(inner, call)
    for attribute in _LISTS_OF_TOPICS:
        for topic in getattr(holder, attribute, None) or ():
            yield from _of_topic(topic, call)


def _of_topic(topic: Any, call: Call) -> Iterator[Name]:
    if isinstance(topic, str):
        yield topic, WHOLE_TOPIC
        return
    name = next((getattr(topic, one) for one in _NAMES if hasattr(topic, one)), "") or ""
    if not name:
        name = _name_of_id(getattr(topic, "topic_id", ZERO_UUID), call)
    partitions = next((getattr(topic, one) for one in _LISTS_OF_PARTITIONS if hasattr(topic, one)), None)
    if partitions is None:
        yield name, WHOLE_TOPIC
        return
    for partition in partitions:
        if isinstance(partition, int):
            yield name, partition
        else:
            yield name, next(getattr(partition, one) for one in _INDICES if hasattr(partition, one))


def _name_of_id(topic_id: bytes, call: Call) -> str:
    topic = call.state.topics.by_id(topic_id)
    return topic.name if topic is not None else ""
