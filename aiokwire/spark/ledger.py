"""Which batches a sink has committed: offsets of a group of its own, written in the transaction of the batch itself.

    group <sink id>.batches         offset = number of the last microbatch, at partition 0 of a topic that it went to
    group <sink id>.run.<run id>    the same for one batch job: it is there, or not

A group without members expires (`offsets.retention.minutes`, a week unless the broker says otherwise).
"""

from __future__ import annotations

from collections.abc import Sequence

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client, Coordinator, CoordinatorKind
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import error_for
from aiokwire.net import ApiVersions
from aiokwire.protocol.messages import offset_fetch
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

# The last version that asks about one group; with null for all of its partitions since 2, stable offsets since 7.
ONE_GROUP = 7
STABLE = 7


class Ledger:
    """One group."""

    def __init__(self, group_id: str) -> None:
        self.group = GroupMetadata(group_id)

    def entry(self, batch_id: int, topics: Sequence[str], query_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is to be committed with a batch that went to these topics."""
        return {TopicPartition(topics[0], 0): OffsetAndMetadata(batch_id, metadata=query_id)}

    async def read(self, client: Client, timeout: float) -> int | None:
        """The last batch that was committed, None when there is none.

        Raises: KafkaError: the coordinator refuses, or does not answer within `timeout` seconds.
        """
        to = Coordinator(CoordinatorKind.GROUP, self.group.group_id)
        request = offset_fetch.OffsetFetchRequest(group_id=self.group.group_id, topics=None)
        what = f"reading the ledger of the sink, group {self.group.group_id!r}"
        deadline, backoff = Deadline(timeout, what), client.new_backoff()

        def version(versions: ApiVersions) -> int:
            picked = versions.pick(offset_fetch.OffsetFetchRequest, ONE_GROUP)
            request.require_stable = picked >= STABLE
            return picked

        while True:
            answer = await client.request(request, to=to, timeout=deadline.remaining, version=version)
            parts = [part for topic in answer.topics for part in topic.partitions]
            code = answer.error_code or next((part.error_code for part in parts if part.error_code), 0)
            if not code:
                return max((part.committed_offset for part in parts if part.committed_offset >= 0), default=None)
            error = error_for(code, what, request="OffsetFetch")
            if not error.retriable or deadline.expired:
                raise error
            if error.code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                client.coordinators.forget(to.kind, to.key)
            await client.pause(min(backoff.next(), deadline.remaining))
