"""The ledger: a sink's last committed batch, in the metadata of an offset of its transaction.

    group <sink id>.batches         metadata "aiokwire batch=<last microbatch> of=<query id>"
    group <sink id>.run.<run id>    the same for one batch job; exists once the job is committed

The entry is committed for partition 0 of the topic in the option, with the end of that partition
after the transaction as its offset: tools that show the lag of groups show none. If rows name their
topics, it is committed for the offsets topic, which exists wherever there are groups, and which
such tools usually leave out. Earlier versions committed the batch number as the offset and the
query id as metadata: such an entry is read, and replaced by the next batch.

A group without members expires (`offsets.retention.minutes`, a week by default).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Final, NamedTuple

from aiokwire.backoff import Deadline
from aiokwire.cluster import LATEST, Client, Coordinator, CoordinatorKind, list_offsets
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import KafkaError, UnsupportedVersion, error_for
from aiokwire.net import ApiVersions
from aiokwire.protocol.messages import offset_fetch
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

# The last OffsetFetch version for one group, and the first with RequireStable (KIP-447): an older one would miss a
# batch that has just been committed.
ONE_GROUP: Final = 7
OFFSETS_TOPIC: Final = "__consumer_offsets"

_METADATA: Final = re.compile(r"aiokwire batch=(\d+) of=(.*)", re.DOTALL)

logger: logging.Logger = logging.getLogger("aiokwire.spark")


class Entry(NamedTuple):
    """The last committed batch."""

    batch_id: int
    note: str
    """The query or run that wrote it."""


class Ledger:
    """The ledger of one sink."""

    def __init__(self, group_id: str, topic: str | None) -> None:
        self.group: GroupMetadata = GroupMetadata(group_id)
        self._home = TopicPartition(topic or OFFSETS_TOPIC, 0)

    async def entry(
        self, client: Client, entry: Entry, wrote: Collection[TopicPartition], timeout: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset to commit with a batch whose rows are in the partitions `wrote`."""
        end = await self._end(client, timeout)
        marker = self._home in wrote  # the transaction's control record takes an offset, too
        return {
            self._home: OffsetAndMetadata(end + marker, metadata=f"aiokwire batch={entry.batch_id} of={entry.note}")
        }

    async def _end(self, client: Client, timeout: float) -> int:
        """Return the end of the home partition; 0 on an error, since only lag depends on it."""
        if self._home.topic == OFFSETS_TOPIC:
            return 0  # its end moves with every commit of any group
        try:
            found = await list_offsets(client, {self._home: LATEST}, timeout=timeout)
        except KafkaError as error:
            logger.warning("group %r shows a false lag until the next batch: %s", self.group.group_id, error)
            return 0
        return found[self._home].offset

    async def read(self, client: Client, timeout: float) -> Entry | None:
        """Return the last committed batch, or None.

        Raises: KafkaError: the coordinator refuses, is older than Kafka 2.5, or does not respond
            within `timeout` seconds.
        """
        deadline = Deadline(timeout, f"reading the ledger of the sink, group {self.group.group_id!r}")
        # By name first: a coordinator that lists a group's offsets may leave out a pending first one.
        home = offset_fetch.OffsetFetchRequestTopic(name=self._home.topic, partition_indexes=[self._home.partition])
        found = await self._ask(client, [home], deadline)
        return found if found is not None else await self._ask(client, None, deadline)

    async def _ask(
        self, client: Client, topics: list[offset_fetch.OffsetFetchRequestTopic] | None, deadline: Deadline
    ) -> Entry | None:
        """Return the newest entry for these topics, or, with None, for any topic of the group.

        Raises: KafkaError.
        """
        to = Coordinator(CoordinatorKind.GROUP, self.group.group_id)
        request = offset_fetch.OffsetFetchRequest(group_id=self.group.group_id, topics=topics, require_stable=True)
        backoff = client.new_backoff()
        while True:
            answer = await client.request(request, to=to, timeout=deadline.remaining, version=_version)
            parts = [part for topic in answer.topics for part in topic.partitions]
            code = answer.error_code or next((part.error_code for part in parts if part.error_code), 0)
            if not code:
                known = [_entry(part) for part in parts if part.committed_offset >= 0]
                return max(known, default=None)
            error = error_for(code, deadline.what, request="OffsetFetch")
            if not error.retriable or deadline.expired:
                raise error
            if error.code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                client.coordinators.forget(to.kind, to.key)
            await client.pause(min(backoff.next(), deadline.remaining))


def _entry(part: offset_fetch.OffsetFetchResponsePartition) -> Entry:
    found = _METADATA.fullmatch(part.metadata or "")
    if found is None:  # of an earlier version
        return Entry(part.committed_offset, part.metadata or "")
    return Entry(int(found[1]), found[2])


def _version(versions: ApiVersions) -> int:
    picked = versions.pick(offset_fetch.OffsetFetchRequest, ONE_GROUP)
    if picked < ONE_GROUP:
        raise UnsupportedVersion(
            "delivery=exactly-once needs Kafka 2.5 or newer: older brokers return offsets while a transaction is "
            "changing them (KIP-447), so a batch that was just committed might be written again",
            request="OffsetFetch",
        )
    return picked
