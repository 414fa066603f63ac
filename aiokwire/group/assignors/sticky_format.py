"""What sticky assignors keep in their members' user data, in the formats of Java's: the eager one the last assignment,
and since its second version the generation; the cooperative one the generation alone.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from aiokwire.errors import ProtocolViolation
from aiokwire.group.subscription_format import NO_GENERATION
from aiokwire.protocol import PlainReader, PlainWriter
from aiokwire.types import TopicPartition


class Memory(NamedTuple):
    """What a member had, and in which generation (-1: it does not know, or its client does not say)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


def encode_memory(memory: Memory) -> bytes:
    """The eager assignor's user data, version 1."""
    topics = [
        (topic, [tp.partition for tp in group])
        for topic, group in groupby(sorted(memory.partitions), key=lambda tp: tp.topic)
    ]
    out = PlainWriter()
    out.array_length(len(topics))
    for topic, numbers in topics:
        out.string(topic)
        out.int32s(numbers)
    out.int32(memory.generation)
    return out.getvalue()


def decode_memory(data: bytes) -> Memory:
    """The eager assignor's user data, in either version; the first has no generation.

    Raises: ProtocolViolation: the bytes are something else.
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
    """The cooperative assignor's user data."""
    out = PlainWriter()
    out.int32(generation)
    return out.getvalue()


def decode_generation(data: bytes) -> int:
    """The cooperative assignor's user data; what is something else tells no generation, as to Java."""
    try:
        return PlainReader(data).int32()
    except ProtocolViolation:
        return NO_GENERATION
