"""The user data of sticky assignors, in Java's formats. Eager: the last assignment, and from
version 1 on the generation. Cooperative: the generation.
"""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.errors import ProtocolViolation
from aiokwire.group.subscription_format import NO_GENERATION, by_topic
from aiokwire.protocol import PlainReader, PlainWriter
from aiokwire.types import TopicPartition


class Memory(NamedTuple):
    """A member's last assignment and its generation (-1: unknown)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


def encode_memory(memory: Memory) -> bytes:
    """Encode the eager assignor's user data, version 1."""
    topics = by_topic(memory.partitions)
    out = PlainWriter()
    out.array_length(len(topics))
    for topic, numbers in topics.items():
        out.string(topic)
        out.int32s(numbers)
    out.int32(memory.generation)
    return out.getvalue()


def decode_memory(data: bytes) -> Memory:
    """Decode the eager assignor's user data, in either version; version 0 has no generation.

    Raises: ProtocolViolation: the bytes are not such data.
    """
    src = PlainReader(data)
    found: list[TopicPartition] = []
    for _ in range(src.array_length()):
        topic = src.string()
        found += (TopicPartition(topic, number) for number in src.int32s())
    try:
        generation = src.int32()
    except ProtocolViolation:
        generation = NO_GENERATION
    return Memory(tuple(found), generation)


def encode_generation(generation: int) -> bytes:
    """Encode the cooperative assignor's user data."""
    out = PlainWriter()
    out.int32(generation)
    return out.getvalue()


def decode_generation(data: bytes) -> int:
    """Decode the cooperative assignor's user data; other bytes mean no generation, as in Java."""
    try:
        return PlainReader(data).int32()
    except ProtocolViolation:
        return NO_GENERATION
