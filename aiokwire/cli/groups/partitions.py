"""Topics and partitions on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from aiokwire import TopicPartition


def parse_partitions(given: Iterable[str]) -> list[str | TopicPartition]:
    """`TOPIC`, or `TOPIC:0,1,2` for some of its partitions. (No topic has a colon in its name.)"""
    from aiokwire import TopicPartition

    chosen: list[str | TopicPartition] = []
    for text in given:
        topic, colon, numbers = text.partition(":")
        parts = numbers.split(",") if colon else []
        if not topic or not all(part.isdecimal() for part in parts):
            raise click.BadParameter(f"{text!r} is not TOPIC or TOPIC:PARTITION,...")
        chosen += [TopicPartition(topic, int(part)) for part in parts] or [topic]
    return chosen
