"""Requests of `Admin` about topics, to the controller, by the call's deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import anyio

from aiokwire.admin.calls import fetch_metadata, milliseconds, request_controller
from aiokwire.admin.results import Results
from aiokwire.admin.topics import (
    CreatedTopic,
    NewTopic,
    create_request,
    delete_request,
    grow_request,
    read_created,
    read_deleted,
    read_described,
    read_grown,
)
from aiokwire.backoff import Backoff, Deadline
from aiokwire.cluster import Client
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, KafkaError, UnsupportedVersion
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages.create_partitions import CreatePartitionsResponse
from aiokwire.protocol.messages.create_topics import CreateTopicsResponse
from aiokwire.protocol.messages.delete_topics import DeleteTopicsResponse

ResponseT = TypeVar("ResponseT", bound=Response)
T = TypeVar("T")


async def create(
    client: Client, topics: Sequence[NewTopic], deadline: Deadline, *, validate_only: bool
) -> Results[str, CreatedTopic]:
    """Create topics and wait until they are usable."""

    def build(names: Sequence[str]) -> Request[CreateTopicsResponse]:
        wanted = [topic for topic in topics if topic.name in names]
        return create_request(wanted, timeout_ms=milliseconds(deadline), validate_only=validate_only)

    results = await _mutate(client, [topic.name for topic in topics], build, read_created, deadline)
    if not validate_only and results.succeeded:
        await _wait_usable(client, results.succeeded, deadline)
    return results


async def _wait_usable(client: Client, names: Iterable[str], deadline: Deadline) -> None:
    """Wait until the metadata names a leader for every partition."""
    wanted = list(names)
    backoff = Backoff(0.02, 0.5, rng=client.rng)
    while True:
        described = read_described(await fetch_metadata(client, wanted, deadline), wanted)
        if not described.errors and all(
            partition.leader is not None for topic in described.succeeded.values() for partition in topic.partitions
        ):
            return
        error: BrokerError | None = next(iter(described.errors.values()), None)
        deadline.check(error)
        await anyio.sleep(min(backoff.next(), deadline.remaining))


async def delete(client: Client, names: Sequence[str], deadline: Deadline) -> Results[str, None]:
    """Delete topics."""

    async def send(by_state: bool) -> Results[str, None]:
        def build(names: Sequence[str]) -> Request[DeleteTopicsResponse]:
            return delete_request(names, timeout_ms=milliseconds(deadline), by_state=by_state)

        return await _mutate(client, names, build, read_deleted, deadline)

    try:
        results = await send(by_state=True)
    except UnsupportedVersion:
        results = await send(by_state=False)
    client.metadata.request_update("topics were deleted")
    return results


async def add_partitions(
    client: Client, counts: Mapping[str, int], deadline: Deadline, *, validate_only: bool
) -> Results[str, int]:
    """Raise the partition counts of topics.

    Raises: InvalidArgument: a count is not a positive int.
    """
    for name, count in counts.items():
        if type(count) is not int or count < 1:
            raise InvalidArgument(f"{name}: the number of partitions must be at least 1, not {count!r}")

    def build(names: Sequence[str]) -> Request[CreatePartitionsResponse]:
        wanted = {name: counts[name] for name in names}
        return grow_request(wanted, timeout_ms=milliseconds(deadline), validate_only=validate_only)

    results = await _mutate(client, list(counts), build, lambda response: read_grown(response, counts), deadline)
    client.metadata.request_update("partitions were added")
    return results


async def _mutate(
    client: Client,
    names: Sequence[str],
    build: Callable[[Sequence[str]], Request[ResponseT]],
    read: Callable[[ResponseT], Results[str, T]],
    deadline: Deadline,
) -> Results[str, T]:
    """Request changes of topics; retry those that a quota rejects in time (KIP-599)."""
    succeeded: dict[str, T] = {}
    errors: dict[str, BrokerError] = {}
    backoff, throttle, left = client.new_backoff(), 0.0, names

    def take(response: ResponseT) -> Results[str, T]:
        nonlocal throttle
        throttle = getattr(response, "throttle_time_ms", 0) / 1000
        return read(response)

    while True:
        try:
            results = await request_controller(client, partial(build, left), take, deadline)
        except KafkaError as error:
            if not succeeded:
                raise
            for name in left:
                errors[name].args = (f"{errors[name]}; the retry failed: {error}",)
            return Results(succeeded, errors)
        errors = {name: error for name, error in errors.items() if name not in left} | dict(results.errors)
        succeeded |= results.succeeded
        left = [name for name, error in results.errors.items() if error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        pause = max(throttle, backoff.next())
        if left and pause >= deadline.remaining:
            for name in left:
                errors[name].args = (f"{errors[name]}; the quota allows it in {pause:.1f} s, after the timeout",)
            left = []
        if not left:
            return Results(succeeded, errors)
        await anyio.sleep(pause)
