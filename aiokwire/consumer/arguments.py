"""What users hand to the consumer, checked before anything is done with it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

from aiokwire.errors import InvalidArgument
from aiokwire.types import OffsetAndMetadata, TopicPartition

Moment = int | datetime.datetime


def checked_topics(topics: Iterable[object]) -> list[str]:
    """Names of topics.

    Raises: InvalidArgument: one is no name, or there is none.
    """
    names = []
    for topic in topics:
        if not isinstance(topic, str) or not topic:
            raise InvalidArgument(f"a topic is a name, not {topic!r}")
        names.append(topic)
    if not names:
        raise InvalidArgument("name at least one topic")
    return names


def checked_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Partitions, also given as plain pairs.

    Raises: InvalidArgument: one is no partition.
    """
    checked = []
    for given in partitions:
        if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and type(given[1]) is int):
            raise InvalidArgument(f"a partition is a TopicPartition(topic, number), not {given!r}")
        if given[1] < 0:
            raise InvalidArgument(f"{given!r}: partitions are numbered from 0")
        checked.append(TopicPartition(*given))
    return checked


def milliseconds(moment: Moment) -> int:
    """A time in milliseconds since the epoch.

    Raises: InvalidArgument: it is none, or a datetime without its time zone.
    """
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise InvalidArgument(f"{moment!r}: a datetime must carry its time zone")
        return round(moment.timestamp() * 1000)
    if isinstance(moment, bool) or not isinstance(moment, int) or moment < 0:
        raise InvalidArgument(f"a time is milliseconds since the epoch or an aware datetime, not {moment!r}")
    return moment


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Offsets by partition, also given as plain numbers; None where there is none.

    Raises: InvalidArgument: naming what is wrong.
    """
    if not isinstance(offsets, Mapping):
        raise InvalidArgument(f"offsets must map TopicPartition to an offset, not {type(offsets).__name__}")
    checked: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for (tp,), given in ((checked_partitions([place]), given) for place, given in offsets.items()):
        offset = given if isinstance(given, OffsetAndMetadata) or given is None else OffsetAndMetadata(given)
        if offset is not None and (type(offset.offset) is not int or offset.offset < 0):
            raise InvalidArgument(f"offsets: {tp} must have an offset of 0 or more, not {given!r}")
        checked[tp] = offset
    return checked
