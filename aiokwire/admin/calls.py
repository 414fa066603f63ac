"""Functions shared by all areas of the admin client: requests, calls per item, arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

import anyio

from aiokwire.admin.results import Results
from aiokwire.backoff import Deadline
from aiokwire.cluster import ANY, CONTROLLER, Client
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, UnsupportedVersion
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages import metadata

ResponseT = TypeVar("ResponseT", bound=Response)
T = TypeVar("T")

CONCURRENCY: Final = 16  # items that are requested at the same time
# Messages of brokers that add nothing to the code of the error: GROUP_ID_NOT_FOUND, TOPIC_ALREADY_EXISTS, ...
_REDUNDANT: Final = re.compile(r"(not found|already exists|does not exist|does not host this topic-partition)\.?$")


async def fetch_metadata(
    client: Client, names: Sequence[str] | None, deadline: Deadline, *, with_operations: bool = False
) -> metadata.MetadataResponse:
    """Fetch the metadata of topics; `names` None: of all topics.

    `with_operations`: and what the client may do with them. Raises: UnsupportedVersion: the broker
    is too old for that.
    """
    topics = None if names is None else [metadata.MetadataRequestTopic(name=name) for name in names]
    request = metadata.MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=with_operations
    )
    try:
        return await client.request(request, to=ANY, timeout=deadline.remaining)
    except UnsupportedVersion:
        if with_operations:
            raise
        # Before version 4 a request cannot forbid creation; in version 0 an empty list means all topics.
        request = metadata.MetadataRequest(topics=topics)
        version = None
        if names is None:
            request, version = metadata.MetadataRequest(topics=[]), 0
        return await client.request(request, to=ANY, timeout=deadline.remaining, version=version)


async def request_controller(
    client: Client,
    build: Callable[[], Request[ResponseT]],
    read: Callable[[ResponseT], Results[str, T]],
    deadline: Deadline,
) -> Results[str, T]:
    """Send a request to the controller; retry while the response is NOT_CONTROLLER."""
    backoff = client.new_backoff()
    while True:
        response = await client.request(build(), to=CONTROLLER, timeout=deadline.remaining)
        results = read(response)
        moved = [error for error in results.errors.values() if error.code is ErrorCode.NOT_CONTROLLER]
        if not moved or results.succeeded:
            return results
        deadline.check(moved[0])
        client.metadata.request_update(str(moved[0]))
        await anyio.sleep(min(backoff.next(), deadline.remaining))


async def for_each(ask: Callable[[T], Coroutine[Any, Any, None]], items: Iterable[T]) -> None:
    """Call `ask` with each item, `CONCURRENCY` at a time; raise the first error."""
    failures: list[Exception] = []
    limiter = anyio.CapacityLimiter(CONCURRENCY)

    async def call(item: T) -> None:
        async with limiter:
            if not failures:
                try:
                    await ask(item)
                except Exception as error:
                    failures.append(error)

    async with anyio.create_task_group() as tasks:
        for item in items:
            tasks.start_soon(call, item)
    if failures:
        raise failures[0]


async def results_of(names: Iterable[str], ask: Callable[[str], Coroutine[Any, Any, T]]) -> Results[str, T]:
    """Call `ask` with each name; a broker's refusal is the result of that name only."""
    wanted = checked_names(names)
    succeeded: dict[str, T] = {}
    errors: dict[str, BrokerError] = {}

    async def call(name: str) -> None:
        try:
            succeeded[name] = await ask(name)
        except BrokerError as error:
            errors[name] = error

    await for_each(call, wanted)
    return Results(
        {name: succeeded[name] for name in wanted if name in succeeded},
        {name: errors[name] for name in wanted if name in errors},
    )


def milliseconds(deadline: Deadline) -> int:
    """Return the remaining time in the unit of requests."""
    return round(deadline.remaining * 1000)


def checked_names(names: Iterable[str]) -> list[str]:
    """Return names without repetitions.

    Raises: InvalidArgument: `names` is a single str.
    """
    if isinstance(names, str):
        raise InvalidArgument(f"names must be a list of names, not a str: [{names!r}]")
    return list(dict.fromkeys(names))


def with_message(context: str, message: str | None) -> str:
    """Add the broker's message to the context of an error, unless it only repeats the code."""
    if not message or _REDUNDANT.search(message):
        return context
    return f"{context}: {message.rstrip('.')}"
