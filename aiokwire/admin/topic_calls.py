"""Requests of `Admin` about topics, to the controller, by the call's deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
from aiokwire.errors import BrokerError, InvalidArgument, UnsupportedVersion


async def create(
    client: Client, topics: Sequence[NewTopic], deadline: Deadline, *, validate_only: bool
) -> Results[str, CreatedTopic]:
    """Create topics and wait until they are usable."""
    results = await request_controller(
        client,
        lambda: create_request(topics, timeout_ms=milliseconds(deadline), validate_only=validate_only),
        read_created,
        deadline,
    )
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
        return await request_controller(
            client,
            lambda: delete_request(names, timeout_ms=milliseconds(deadline), by_state=by_state),
            read_deleted,
            deadline,
        )

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
    results = await request_controller(
        client,
        lambda: grow_request(counts, timeout_ms=milliseconds(deadline), validate_only=validate_only),
        lambda response: read_grown(response, counts),
        deadline,
    )
    client.metadata.request_update("partitions were added")
    return results
