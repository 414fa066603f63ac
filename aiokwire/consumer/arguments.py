"""Checks the arguments of the consumer's methods before they have any effect."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from aiokwire.consumer.batches import ConsumerRecord
from aiokwire.errors import InvalidArgument
from aiokwire.types import OffsetAndMetadata, TopicPartition

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ADDRESS: Final = re.compile(r":\d+\s*(,|$)")

Moment = int | datetime.datetime
# The argument of `commit`: offsets by partition, or processed records.
Processed = (
    Mapping[TopicPartition, int | OffsetAndMetadata] | ConsumerRecord[Any, Any] | Iterable[ConsumerRecord[Any, Any]]
)


def checked_topics(topics: Iterable[object]) -> list[str]:
    """Return the names of topics.

    Raises: InvalidArgument: a name is invalid, or none is given.
    """
    names = [_checked_topic(topic) for topic in topics]
    if not names:
        raise InvalidArgument("name at least one topic")
    return names


def _checked_topic(topic: object) -> str:
    if isinstance(topic, Mapping):
        raise InvalidArgument(
            'a topic must be a str, not a dict: options are keyword arguments, Consumer("orders", '
            'bootstrap_servers="localhost:9092", group_id="billing")'
        )
    if isinstance(topic, (list, tuple, set, frozenset)):
        raise InvalidArgument(
            f"a topic must be a str, not {topic!r}: pass topics one by one, as in ({', '.join(map(repr, topic))})"
        )
    if not isinstance(topic, str):
        raise InvalidArgument(f"a topic must be a str, not {topic!r}")
    if _ADDRESS.search(topic):
        raise InvalidArgument(
            f"{topic!r} is an address, not a topic: pass it as bootstrap_servers={topic!r}; topics are positional"
        )
    if not _TOPIC.fullmatch(topic):
        raise InvalidArgument(f"topic {topic!r} is not a topic name: 1 to 249 of letters, digits, '.', '_' and '-'")
    return topic


def checked_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Return partitions, which may be given as plain pairs.

    Raises: InvalidArgument: an item is not a partition.
    """
    checked = []
    for given in partitions:
        if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and type(given[1]) is int):
            raise InvalidArgument(f"a partition must be a TopicPartition(topic, number), not {given!r}")
        if given[1] < 0:
            raise InvalidArgument(f"{given!r}: partitions are numbered from 0")
        checked.append(TopicPartition(*given))
    return checked


def milliseconds(moment: Moment) -> int:
    """Return a time in milliseconds since the epoch.

    Raises: InvalidArgument: it is not a time, or a datetime without a time zone.
    """
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise InvalidArgument(f"a datetime must have a time zone, not {moment!r}")
        return round(moment.timestamp() * 1000)
    if isinstance(moment, bool) or not isinstance(moment, int) or moment < 0:
        raise InvalidArgument(f"a time must be milliseconds since the epoch or an aware datetime, not {moment!r}")
    return moment


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Return offsets by partition, which may be given as plain numbers; None stays None.

    Raises: InvalidArgument: a key is not a partition, or a value is not an offset.
    """
    if not isinstance(offsets, Mapping):
        raise InvalidArgument(f"offsets must map TopicPartition to an offset, not {type(offsets).__name__}")
    checked: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for (tp,), given in ((checked_partitions([key]), given) for key, given in offsets.items()):
        offset = given if isinstance(given, OffsetAndMetadata) or given is None else OffsetAndMetadata(given)
        if offset is not None and (type(offset.offset) is not int or offset.offset < 0):
            raise InvalidArgument(f"offsets: {tp} must have an offset of 0 or more, not {given!r}")
        checked[tp] = offset
    return checked


def positions_after(records: Iterable[ConsumerRecord[Any, Any]]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offset to commit for each partition once all `records`, in any order, are
    processed: the one after its last record, with that record's leader epoch (KIP-320).

    Raises: InvalidArgument: an item is not a record.
    """
    latest: dict[TopicPartition, ConsumerRecord[Any, Any]] = {}
    for record in records:
        if not is_record(record):
            raise InvalidArgument(f"commit takes records, or offsets by TopicPartition, not {record!r}")
        tp = TopicPartition(record.topic, record.partition)
        if tp not in latest or latest[tp].offset < record.offset:
            latest[tp] = record
    return {tp: OffsetAndMetadata(record.offset + 1, "", record.leader_epoch) for tp, record in latest.items()}


def is_record(given: object) -> bool:
    """Return whether an object has the position of a record."""
    return all(hasattr(given, name) for name in ("topic", "partition", "offset", "leader_epoch"))


def checked_positions(given: Processed) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets for `commit`.

    Raises: InvalidArgument: as `checked_offsets` or `positions_after`, or for another type.
    """
    if isinstance(given, Mapping):
        checked = checked_offsets(given)
        missing = [str(tp) for tp, offset in checked.items() if offset is None]
        if missing:
            raise InvalidArgument(f"offsets: None cannot be committed ({', '.join(missing[:5])})")
        return cast("dict[TopicPartition, OffsetAndMetadata]", checked)
    if is_record(given):
        return positions_after([cast("ConsumerRecord[Any, Any]", given)])
    if isinstance(given, (str, bytes, TopicPartition)) or not isinstance(given, Iterable):
        raise InvalidArgument(f"commit takes records, or offsets by TopicPartition, not {type(given).__name__}")
    return positions_after(given)
