"""The committed offsets of a group: fetches and commits them, each call under one deadline.

Used by the consumer, for its start positions and for `commit`. Independent of membership.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from aiokwire.backoff import Backoff, Deadline
from aiokwire.cluster import Client, Coordinator, CoordinatorKind
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, RequestTimedOut, error_for
from aiokwire.group import offset_requests as requests
from aiokwire.group.coordinator_client import MOVED
from aiokwire.protocol import Request, Response
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

ResponseT = TypeVar("ResponseT", bound=Response)

# The error code of each partition, or of the group (None).
Codes = dict[TopicPartition | None, int]


class GroupOffsets:
    """The committed offsets of one group."""

    def __init__(self, client: Client, group_id: str) -> None:
        self.group_id = group_id
        self._client = client
        self._coordinator = Coordinator(CoordinatorKind.GROUP, group_id)

    async def fetch(
        self, partitions: Iterable[TopicPartition], *, stable: bool, timeout: float, whole: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets; None for a partition without one.

        `stable`: wait for open transactions that may change an offset (KIP-447; brokers since 2.5).
        Retries retriable errors for `timeout` seconds. Not `whole`: return as soon as a response
        contains any offset.

        Raises: BrokerError: the coordinator refuses, or has not succeeded within `timeout`;
        RequestTimedOut.
        """
        missing = set(partitions)
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        deadline = Deadline(timeout, f"reading the offsets of group {self.group_id!r}")
        backoff, last = self._client.new_backoff(), None
        while missing:
            question = requests.Question(self.group_id, sorted(missing), self._ids(missing), stable=stable)
            response = await self._request(question.request, question.version, deadline, last)
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
                last = await self._before_retry(codes or _left_out(missing), "OffsetFetch", deadline, backoff)
        return found

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata, *, timeout: float
    ) -> None:
        """Commit offsets. The caller waits for one commit before the next: a retry would undo a
        later commit.

        Retries retriable errors for `timeout` seconds. After an error or a cancellation some
        partitions may be committed and others not.

        Raises: BrokerError: the coordinator refuses, or has not succeeded within `timeout`;
        RequestTimedOut.
        """
        left = dict(offsets)
        deadline = Deadline(timeout, f"committing offsets of group {self.group_id!r}")
        backoff, last = self._client.new_backoff(), None
        while left:
            ids = self._ids(left)
            request, version = requests.commit_request(group, left, ids)
            response = await self._request(request, version, deadline, last)
            codes: Codes = {}
            for answer in requests.read_commit(response, ids):
                if answer.code:
                    codes[answer.partition] = answer.code
                else:
                    left.pop(answer.partition, None)
            if left:
                last = await self._before_retry(codes or _left_out(left), "OffsetCommit", deadline, backoff)

    async def _request(
        self, request: Request[ResponseT], version: requests.Chooser, deadline: Deadline, last: BrokerError | None
    ) -> ResponseT:
        try:
            return await self._client.request(
                request, to=self._coordinator, timeout=deadline.remaining, version=version
            )
        except RequestTimedOut as error:
            raise (last or error) from None  # the broker's last error, if there is one

    async def _before_retry(self, codes: Codes, request: str, deadline: Deadline, backoff: Backoff) -> BrokerError:
        """Pause before a retry. Return the first error.

        Raises: BrokerError: one is not retriable.
        """
        errors = [self._error(tp, code, request, deadline.what) for tp, code in codes.items()]
        for error in errors:
            if not error.retriable:
                raise error
            if error.code in MOVED:
                self._client.coordinators.forget(self._coordinator.kind, self._coordinator.key)
            elif error.code.refresh_metadata:
                self._client.metadata.request_update(str(error))
        await self._client.pause(min(backoff.next(), deadline.remaining))
        return errors[0]

    def _error(self, tp: TopicPartition | None, code: int, request: str, what: str) -> BrokerError:
        if tp is None:
            return error_for(code, what, request=request)
        return error_for(code, f"{what}, {tp}", topic=tp.topic, partition=tp.partition, request=request)

    def _ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes | None]:
        cluster = self._client.cluster
        return {topic: cluster.topic_id(topic) for topic in {tp.topic for tp in partitions}}


def _left_out(partitions: Iterable[TopicPartition]) -> Codes:
    """Return the error of a partition that is missing in the response: it is unknown."""
    return {min(partitions): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
