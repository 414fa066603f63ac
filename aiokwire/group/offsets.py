"""The offsets that a group committed, kept with its coordinator: read and written under one deadline.

Used by the consumer, for where to begin and for `commit`; membership is not its business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from aiokwire.backoff import Backoff, Deadline
from aiokwire.cluster import Client, Coordinator, CoordinatorKind
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, RequestTimedOut, error_for
from aiokwire.group import offset_requests as requests
from aiokwire.protocol import Request, Response
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

ResponseT = TypeVar("ResponseT", bound=Response)

# What a coordinator said that cannot be had now: about a partition, or about the group (None).
Codes = dict[TopicPartition | None, int]

_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupOffsets:
    """What one group has committed."""

    def __init__(self, client: Client, group_id: str) -> None:
        self.group_id = group_id
        self._client = client
        self._coordinator = Coordinator(CoordinatorKind.GROUP, group_id)

    async def fetch(
        self, partitions: Iterable[TopicPartition], *, stable: bool, timeout: float, whole: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What was committed; None where nothing was.

        `stable`: wait while a transaction is open that may change it (KIP-447; brokers since 2.5). What may succeed
        later is repeated until `timeout` seconds are over. Not `whole`: what an answer has is not held up by what it
        lacks.

        Raises: BrokerError: the coordinator refuses, or went on saying that it cannot now; RequestTimedOut.
        """
        missing = set(partitions)
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        deadline = Deadline(timeout, f"reading the offsets of group {self.group_id!r}")
        backoff, last = self._client.new_backoff(), None
        while missing:
            question = requests.Question(self.group_id, sorted(missing), self._ids(missing), stable=stable)
            response = await self._ask(question.request, question.version, deadline, last)
            codes: Codes = {None: code} if (code := question.code_of_group(response)) else {}
            for answer in () if codes else question.answers(response):
                if answer.code:
                    codes[answer.partition] = answer.code
                elif answer.partition in missing:
                    missing.discard(answer.partition)
                    found[answer.partition] = answer.offset
            if missing and found and not whole:
                break
            if missing:
                last = await self._again(codes or _left_out(missing), "OffsetFetch", deadline, backoff)
        return found

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata, *, timeout: float
    ) -> None:
        """Keep offsets. Whoever commits twice waits for the first: one that is repeated undoes a later one.

        What may succeed later is repeated until `timeout` seconds are over. After an error, or cancelled, some
        partitions may be committed and others not.

        Raises: BrokerError: the coordinator refuses, or went on saying that it cannot now; RequestTimedOut.
        """
        left = dict(offsets)
        deadline = Deadline(timeout, f"committing offsets of group {self.group_id!r}")
        backoff, last = self._client.new_backoff(), None
        while left:
            ids = self._ids(left)
            request, version = requests.commit_request(group, left, ids)
            response = await self._ask(request, version, deadline, last)
            codes: Codes = {}
            for answer in requests.read_commit(response, ids):
                if answer.code:
                    codes[answer.partition] = answer.code
                else:
                    left.pop(answer.partition, None)
            if left:
                last = await self._again(codes or _left_out(left), "OffsetCommit", deadline, backoff)

    async def _ask(
        self, request: Request[ResponseT], version: requests.Chooser, deadline: Deadline, last: BrokerError | None
    ) -> ResponseT:
        try:
            return await self._client.request(
                request, to=self._coordinator, timeout=deadline.remaining, version=version
            )
        except RequestTimedOut as error:
            raise (last or error) from None  # the broker's own word, where it gave one

    async def _again(self, codes: Codes, request: str, deadline: Deadline, backoff: Backoff) -> BrokerError:
        """Pause before what may succeed later is asked again; what the broker said.

        Raises: BrokerError: something will not.
        """
        errors = [self._error(place, code, request, deadline.what) for place, code in codes.items()]
        for error in errors:
            if not error.retriable:
                raise error
            if error.code in _MOVED:
                self._client.coordinators.forget(self._coordinator.kind, self._coordinator.key)
            elif error.code.refresh_metadata:
                self._client.metadata.request_update(str(error))
        await self._client.pause(min(backoff.next(), deadline.remaining))
        return errors[0]

    def _error(self, place: TopicPartition | None, code: int, request: str, what: str) -> BrokerError:
        if place is None:
            return error_for(code, what, request=request)
        return error_for(code, f"{what}, {place}", topic=place.topic, partition=place.partition, request=request)

    def _ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes | None]:
        cluster = self._client.cluster
        return {topic: cluster.topic_id(topic) for topic in {place.topic for place in partitions}}


def _left_out(partitions: Iterable[TopicPartition]) -> Codes:
    """A coordinator that leaves a partition out does not know it."""
    return {min(partitions): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
