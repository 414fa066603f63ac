"""Sends one request to each leader of many partitions and retries until each has a response.

Used by `list_offsets`, `fetch` and the admin client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster.nodes import MAIN
from aiokwire.errors import BrokerError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client
    from aiokwire.net import Connection

Q = TypeVar("Q")
A = TypeVar("A")


class Answers(NamedTuple, Generic[A]):
    """One leader's responses, by outcome."""

    found: dict[TopicPartition, A]
    again: dict[TopicPartition, BrokerError]  # ask again, after a metadata refresh if stale
    refused: dict[TopicPartition, BrokerError]


async def ask_leaders(
    client: Client,
    questions: Mapping[TopicPartition, Q],
    ask: Callable[[Connection, Mapping[TopicPartition, Q], float], Awaitable[Answers[A]]],
    deadline: Deadline,
    *,
    lane: str = MAIN,
) -> dict[TopicPartition, A]:
    """Return each partition's response. `ask` sends one request to a leader; timeout in seconds.

    Raises: KafkaError: a broker refuses a partition; RequestTimedOut: the deadline passed, with the
    last error.
    """
    search = _Search(client, dict(questions), ask, deadline, lane)
    if questions:
        await client.metadata.wait_for_topics({tp.topic for tp in questions}, deadline.remaining)
    while search.missing:
        await search.ask_all()
        if search.missing:
            deadline.check(search.last_error)
            await search.pause()
    return search.found


class _Search(Generic[Q, A]):
    """Retries until every partition has its response."""

    def __init__(
        self,
        client: Client,
        missing: dict[TopicPartition, Q],
        ask: Callable[[Connection, Mapping[TopicPartition, Q], float], Awaitable[Answers[A]]],
        deadline: Deadline,
        lane: str,
    ) -> None:
        self.missing = missing
        self.found: dict[TopicPartition, A] = {}
        self.last_error: KafkaError | None = None
        self._client = client
        self._question = ask
        self._deadline = deadline
        self._lane = lane
        self._refused: KafkaError | None = None
        self._backoff = client.new_backoff()

    async def ask_all(self) -> None:
        """Ask the leaders of the missing partitions concurrently."""
        cluster = self._client.cluster
        by_leader: dict[int, dict[TopicPartition, Q]] = {}
        for tp, question in self.missing.items():
            try:
                by_leader.setdefault(cluster.require_leader(tp), {})[tp] = question
            except KafkaError as error:
                self.last_error = error
        async with anyio.create_task_group() as group:
            for leader, questions in by_leader.items():
                group.start_soon(self._ask, leader, questions)
        if self._refused is not None:
            raise self._refused

    async def _ask(self, leader: int, questions: Mapping[TopicPartition, Q]) -> None:
        try:
            connection = await self._client.connection(leader, self._lane, timeout=self._deadline.remaining)
            attempt_timeout = min(self._deadline.remaining, self._client.config.request_timeout)
            answers = await self._question(connection, questions, attempt_timeout)
        except (ConnectionFailed, RequestTimedOut) as error:
            self.last_error = error
            return
        except KafkaError as error:
            self._refused = error
            return
        for tp, answer in answers.found.items():
            self.found[tp] = answer
            del self.missing[tp]
        for broker_error in answers.again.values():
            self.last_error = broker_error
        for broker_error in answers.refused.values():
            self._refused = broker_error

    async def pause(self) -> None:
        self._client.metadata.request_update(f"{self._deadline.what}: {self.last_error}")
        await anyio.sleep(min(self._backoff.next(), self._deadline.remaining))
