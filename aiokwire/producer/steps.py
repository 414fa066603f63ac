"""The conversation with the coordinators: each request of a transaction, repeated until it has its effect.

`transaction.py` says when; `outcomes.py` what an answer means; `transaction_requests.py` has the bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from aiokwire.backoff import Backoff, Deadline
from aiokwire.cluster import Client, Coordinator, CoordinatorKind
from aiokwire.errors import ClosedError, KafkaError, ProtocolViolation, UnsupportedVersion, error_for
from aiokwire.producer import transaction_requests as requests
from aiokwire.producer.idempotence import TransactionalIdentity, require_producer_id
from aiokwire.producer.outcomes import Outcome, gravest, outcome_of_error
from aiokwire.protocol import Request, Response
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aiokwire.net import ApiVersions
    from aiokwire.producer.config import ProducerConfig

ResponseT = TypeVar("ResponseT", bound=Response)

# The first pause in seconds (unless retry_backoff_ms is shorter) before what the coordinator cannot do yet is asked
# again: it completes a transaction within milliseconds, and the next one waits for that.
FIRST_PAUSE = 0.005


class StepFailed(Exception):
    """A step of a transaction did not succeed: what follows from it, and why."""

    def __init__(self, outcome: Outcome, error: KafkaError) -> None:
        super().__init__(str(error))
        self.outcome = outcome
        self.error = error


class Steps:
    """Requests to the coordinators of one transactional id."""

    def __init__(
        self, client: Client, config: ProducerConfig, identity: TransactionalIdentity, rng: random.Random
    ) -> None:
        assert config.transactional_id is not None
        self.transactional_id = config.transactional_id
        self.second = False  # which protocol the cluster said it runs when it was asked last
        self._client = client
        self._config = config
        self._identity = identity
        self._rng = rng
        self._coordinator = Coordinator(CoordinatorKind.TRANSACTION, self.transactional_id)

    @property
    def who(self) -> str:
        """For messages."""
        return f"transactional id {self.transactional_id!r}"

    @property
    def _me(self) -> requests.Identity:
        return requests.Identity(self.transactional_id, self._identity.producer_id, self._identity.epoch)

    async def obtain_identity(self, deadline: Deadline) -> None:
        """InitProducerId: from the first time on with what we have, so that a newer instance is not fenced by us.

        Raises: StepFailed.
        """
        request, choose = requests.initialize(self._me, self._config.transaction_timeout_ms)

        def version(versions: ApiVersions) -> int:
            self.second = requests.uses_second(versions)
            return choose(versions)

        answer = await self._ask(request, version, self._coordinator, deadline, requests.code_of)
        try:
            require_producer_id(answer)
        except ProtocolViolation as error:
            raise StepFailed(Outcome.FATAL, error) from error
        self._identity.adopt(answer.producer_id, answer.producer_epoch)

    async def add_partitions(self, places: list[TopicPartition], deadline: Deadline, still: Callable[[], bool]) -> None:
        """AddPartitionsToTxn, which the second protocol does without; while `still()`.

        Raises: StepFailed.
        """
        request, version = requests.add_partitions(self._me, places)
        await self._ask(request, version, self._coordinator, deadline, requests.codes_of_partitions, still)

    async def add_offsets(self, group_id: str, deadline: Deadline) -> None:
        """AddOffsetsToTxn, which the second protocol does without.

        Raises: StepFailed.
        """
        request, version = requests.add_offsets(self._me, group_id)
        await self._ask(request, version, self._coordinator, deadline, requests.code_of)

    async def commit_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        deadline: Deadline,
        *,
        second: bool,
    ) -> None:
        """TxnOffsetCommit.

        Raises: StepFailed.
        """
        to = Coordinator(CoordinatorKind.GROUP, group.group_id)
        request, version = requests.commit_offsets(self._me, group, offsets, second=second)
        await self._ask(request, version, to, deadline, requests.codes_of_offsets)

    async def partitions(self, deadline: Deadline) -> set[TopicPartition] | None:
        """DescribeTransactions: what the open transaction was written to; None where the brokers cannot tell (before
        Kafka 3.0).

        Raises: StepFailed.
        """
        request, version = requests.describe(self._me)
        try:
            answer = await self._ask(request, version, self._coordinator, deadline, requests.codes_of_description)
        except StepFailed as failed:
            if isinstance(failed.error, UnsupportedVersion):
                return None
            raise
        return requests.partitions_of(answer)

    async def has_timed_out(self, deadline: Deadline) -> bool:
        """Whether the coordinator aborted our transaction because its time was over (KIP-588); then its identity is
        ours, and `obtain_identity` raises it, unless another instance did so meanwhile. False also where the brokers
        cannot tell (before Kafka 3.0).
        """
        request, version = requests.describe(self._me)
        while True:
            try:
                answer = await self._ask(request, version, self._coordinator, deadline, requests.codes_of_description)
            except StepFailed:
                return False
            if not requests.is_completing(answer) or deadline.expired:
                break
            await self._client.pause(min(self._config.retry_backoff_ms / 1000, deadline.remaining))
        found = requests.identity_after_timeout(self._me, answer, second=self.second)
        if found is not None:
            self._identity.adopt(found.producer_id, found.epoch)
        return found is not None

    async def tell_end(self, deadline: Deadline, *, commit: bool, second: bool) -> None:
        """EndTxn; the second protocol gives the next epoch with it.

        Raises: StepFailed.
        """
        request, choose = requests.end(self._me, commit=commit, second=second)

        def version(versions: ApiVersions) -> int:
            self.second = requests.uses_second(versions)
            return choose(versions)

        answer = await self._ask(request, version, self._coordinator, deadline, requests.code_of)
        if answer.producer_id >= 0:
            self._identity.adopt(answer.producer_id, answer.producer_epoch)

    async def _ask(
        self,
        request: Request[ResponseT],
        version: requests.Chooser,
        to: Coordinator,
        deadline: Deadline,
        codes_of: Callable[[ResponseT], Iterable[requests.Code]],
        still: Callable[[], bool] = lambda: True,
    ) -> ResponseT:
        """One request until it has its effect. It is repeated while `still()`.

        Raises: StepFailed: it will not have it.
        """
        initial, longest = self._config.retry_backoff_ms / 1000, self._config.retry_backoff_max_ms / 1000
        backoff = Backoff(min(initial, FIRST_PAUSE), longest, rng=self._rng)
        while True:
            try:
                answer = await self._client.request(request, to=to, timeout=deadline.remaining, version=version)
            except ClosedError as error:
                raise StepFailed(Outcome.FATAL, error) from error
            except KafkaError as error:
                raise StepFailed(outcome_of_error(request.API, error), error) from error
            outcome, code, about = gravest(request.API, codes_of(answer))
            if outcome is Outcome.DONE:
                return answer
            what = f"{self.who}: {type(request).__name__}{' for ' + about if about else ''}"
            said = error_for(code, what, request=type(request).__name__)
            if outcome > Outcome.COORDINATOR:
                raise StepFailed(outcome, said)
            if outcome is Outcome.COORDINATOR:
                self._client.coordinators.forget(to.kind, to.key)
            if deadline.expired or not still():
                late = deadline.error(said)
                raise StepFailed(outcome_of_error(request.API, late), late)
            await self._client.pause(min(backoff.next(), deadline.remaining))
