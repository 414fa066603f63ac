"""Sends a producer's requests to its transaction coordinator and group coordinators, with retries.

`driver.py` decides when, `errors.py` what an error code means; `requests.py` builds the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client, Coordinator, CoordinatorKind
from aiokwire.errors import (
    AuthenticationFailed,
    ClosedError,
    KafkaError,
    ProtocolViolation,
    UnsupportedVersion,
    error_for,
)
from aiokwire.producer.idempotence import TransactionalIdentity, require_producer_id
from aiokwire.producer.transactions import requests
from aiokwire.producer.transactions.errors import ErrorAction, action_for_error, most_severe
from aiokwire.protocol import Request, Response
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aiokwire.net import ApiVersions
    from aiokwire.producer.config import ProducerConfig

ResponseT = TypeVar("ResponseT", bound=Response)


class CoordinatorRequestFailed(Exception):
    """A request of a transaction failed: the driver's next action, and the error."""

    def __init__(self, action: ErrorAction, error: KafkaError) -> None:
        super().__init__(str(error))
        self.action = action
        self.error = error


class TransactionCoordinatorClient:
    """Requests to the coordinators of one transactional id. They raise CoordinatorRequestFailed."""

    def __init__(self, client: Client, config: ProducerConfig, identity: TransactionalIdentity) -> None:
        assert config.transactional_id is not None
        self.transactional_id: str = config.transactional_id
        self.who: str = f"transactional id {self.transactional_id!r}"  # for messages
        self.transaction_v2: bool = False  # whether the cluster runs transaction V2 (KIP-890), by its last response
        self._client = client
        self._config = config
        self._identity = identity
        self._coordinator = Coordinator(CoordinatorKind.TRANSACTION, self.transactional_id)

    @property
    def _me(self) -> requests.ProducerIdentity:
        return requests.ProducerIdentity(
            self.transactional_id, self._identity.producer_id, self._identity.producer_epoch
        )

    def adopt(self, producer_id: int, producer_epoch: int, *, transaction_v2: bool) -> None:
        """Use an identity that another producer has obtained."""
        self._identity.adopt(producer_id, producer_epoch)
        self.transaction_v2 = transaction_v2

    async def obtain_identity(self, deadline: Deadline) -> None:
        """InitProducerId: later ones with the current identity, which fences no newer instance."""
        request, choose = requests.initialize(self._me, self._config.transaction_timeout_ms)
        answer = await self._ask(request, self._noting_v2(choose), self._coordinator, deadline, requests.code_of)
        try:
            require_producer_id(answer)
        except ProtocolViolation as error:
            raise CoordinatorRequestFailed(ErrorAction.FATAL, error) from error
        self._identity.adopt(answer.producer_id, answer.producer_epoch)

    async def add_partitions(self, places: list[TopicPartition], deadline: Deadline, still: Callable[[], bool]) -> None:
        """AddPartitionsToTxn, which transaction V2 does not need; retried while `still()`."""
        request, version = requests.add_partitions(self._me, places)
        await self._ask(request, version, self._coordinator, deadline, requests.codes_of_partitions, still)

    async def add_offsets(self, group_id: str, deadline: Deadline) -> None:
        """AddOffsetsToTxn, which transaction V2 does not need."""
        request, version = requests.add_offsets(self._me, group_id)
        await self._ask(request, version, self._coordinator, deadline, requests.code_of)

    async def commit_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        deadline: Deadline,
        *,
        transaction_v2: bool,
    ) -> None:
        """Send TxnOffsetCommit: the group's offsets become part of the transaction."""
        to = Coordinator(CoordinatorKind.GROUP, group.group_id)
        request, version = requests.commit_offsets(self._me, group, offsets, transaction_v2=transaction_v2)
        await self._ask(request, version, to, deadline, requests.codes_of_offsets)

    async def partitions(self, deadline: Deadline) -> set[TopicPartition] | None:
        """DescribeTransactions: partitions that the transaction wrote to; None before Kafka 3.0."""
        request, version = requests.describe(self._me)
        try:
            answer = await self._ask(request, version, self._coordinator, deadline, requests.codes_of_description)
        except CoordinatorRequestFailed as failed:
            if isinstance(failed.error, UnsupportedVersion):
                return None
            raise
        return requests.partitions_of(answer)

    async def has_timed_out(self, deadline: Deadline) -> bool:
        """Whether the coordinator aborted it after its timeout (KIP-588); False before Kafka 3.0.

        If so, the producer adopts the coordinator's identity; `obtain_identity` raises its epoch.
        """
        request, version = requests.describe(self._me)
        while True:
            try:
                answer = await self._ask(request, version, self._coordinator, deadline, requests.codes_of_description)
            except CoordinatorRequestFailed:
                return False
            if not requests.is_completing(answer) or deadline.expired:
                break
            await self._client.pause(min(self._config.retry_backoff, deadline.remaining))
        found = requests.identity_after_timeout(self._me, answer, transaction_v2=self.transaction_v2)
        if found is not None:
            self._identity.adopt(found.producer_id, found.producer_epoch)
        return found is not None

    async def end_transaction(self, deadline: Deadline, *, commit: bool, transaction_v2: bool) -> None:
        """EndTxn; transaction V2 returns the next epoch with it."""
        request, choose = requests.end(self._me, commit=commit, transaction_v2=transaction_v2)
        answer = await self._ask(request, self._noting_v2(choose), self._coordinator, deadline, requests.code_of)
        if answer.producer_id >= 0:
            self._identity.adopt(answer.producer_id, answer.producer_epoch)

    def _noting_v2(self, choose: requests.Chooser) -> requests.Chooser:
        def version(versions: ApiVersions) -> int:
            self.transaction_v2 = requests.uses_transaction_v2(versions)
            return choose(versions)

        return version

    async def _ask(
        self,
        request: Request[ResponseT],
        version: requests.Chooser,
        to: Coordinator,
        deadline: Deadline,
        codes_of: Callable[[ResponseT], Iterable[requests.Code]],
        still: Callable[[], bool] = lambda: True,
    ) -> ResponseT:
        """Send a request until it succeeds, retried while `still()`.

        Raises: CoordinatorRequestFailed: it does not succeed.
        """
        backoff = self._config.new_retry_backoff(self._client.rng)
        while True:
            try:
                answer = await self._client.request(request, to=to, timeout=deadline.remaining, version=version)
            except ClosedError as error:
                raise CoordinatorRequestFailed(ErrorAction.FATAL, error) from error
            except AuthenticationFailed as error:  # the next connection uses corrected credentials
                if deadline.expired or not still():
                    raise CoordinatorRequestFailed(action_for_error(request.API, error), error) from error
                await self._client.pause(min(backoff.next(), deadline.remaining))
                continue
            except KafkaError as error:
                raise CoordinatorRequestFailed(action_for_error(request.API, error), error) from error
            action, code, about = most_severe(request.API, codes_of(answer))
            if action is ErrorAction.DONE:
                return answer
            what = f"{self.who}: {type(request).__name__}{' for ' + about if about else ''}"
            refusal = error_for(code, what, request=type(request).__name__)
            if action > ErrorAction.COORDINATOR:
                raise CoordinatorRequestFailed(action, refusal)
            if action is ErrorAction.COORDINATOR:
                self._client.coordinators.forget(to.kind, to.key)
            if deadline.expired or not still():
                late = deadline.error(refusal)
                raise CoordinatorRequestFailed(action_for_error(request.API, late), late)
            await self._client.pause(min(backoff.next(), deadline.remaining))
