"""Helpers of aiokafka that applications import."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any, TypeVar

import anyio

from aiokwire.compat.aiokafka.structs import OffsetAndMetadata
from aiokwire.types import TopicPartition

__all__ = ["INTEGER_MAX_VALUE", "INTEGER_MIN_VALUE", "NO_EXTENSIONS", "create_future", "create_task"]

T = TypeVar("T")

INTEGER_MAX_VALUE = 2**31 - 1
INTEGER_MIN_VALUE = -(2**31)
NO_EXTENSIONS = bool(os.environ.get("AIOKAFKA_NO_EXTENSIONS"))

Offsets = Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata]


def create_task(coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Run a coroutine in a task of the running loop; the caller keeps and ends it."""
    return get_running_loop().create_task(coro)


def create_future(loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[Any]:
    """Return a future of a loop, by default of the running one."""
    return (get_running_loop() if loop is None else loop).create_future()


async def wait_for(fut: Awaitable[T], timeout: float | None = None) -> T:
    """Await something for at most `timeout` seconds.

    Raises: TimeoutError: it took longer.
    """
    with anyio.fail_after(timeout):
        return await fut


def get_running_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop.

    Raises: RuntimeError: no loop is running.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "no event loop is running: create the object in a coroutine, or pass the loop on which it will be started"
        ) from None


def parse_kafka_version(api_version: str) -> tuple[int, int, int]:
    """Return the three numbers of a broker's version, from 0.9 up to 2.x.

    Raises: ValueError: it is something else.
    """
    try:
        numbers = [int(part) for part in api_version.split(".")]
    except ValueError:
        raise ValueError(f"{api_version!r} is not a version of Kafka such as '2.3.1'") from None
    if not 2 <= len(numbers) <= 3 or not (0, 9) <= tuple(numbers) < (3, 0):
        raise ValueError(f"{api_version!r} is not a version of Kafka from 0.9 to 2.x")
    major, minor, patch = (*numbers, 0)[:3]
    return major, minor, patch


def commit_structure_validate(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit, each with its metadata.

    Raises: ValueError: empty, not a dict, or not an offset; TypeError: a key is not a
    TopicPartition, or metadata is not a str.
    """
    if not offsets or not isinstance(offsets, dict):
        raise ValueError(f"offsets must be a dict of TopicPartition to offsets, not {offsets!r}")
    return {_checked_partition(tp): _checked_offset(offset) for tp, offset in offsets.items()}


def _checked_partition(tp: object) -> TopicPartition:
    if not isinstance(tp, TopicPartition):
        raise TypeError(f"offsets: Key should be TopicPartition instance, not {tp!r}")
    return tp


def _checked_offset(given: Any) -> OffsetAndMetadata:
    if isinstance(given, int):
        return OffsetAndMetadata(given, "")
    try:
        offset, metadata = given
    except (TypeError, ValueError):
        raise ValueError(f"offsets: {given!r} is neither an offset nor (offset, metadata)") from None
    if not isinstance(metadata, str):
        raise TypeError(f"offsets: Metadata should be a string, not {metadata!r}")
    return OffsetAndMetadata(offset, metadata)
