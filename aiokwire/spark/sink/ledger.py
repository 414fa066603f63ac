"""Which batches a sink has committed: in the metadata of an offset that the transaction of the batch itself commits.

    group <sink id>.batches         metadata "aiokwire batch=<number of the last microbatch> of=<id of the query>"
    group <sink id>.run.<run id>    the same for one batch job: it is there, or not

The entry stands at partition 0 of the topic that the option says, and its offset is where that partition ends with the
transaction: to tools that watch the lag of groups, the sink keeps up. Where rows say their topics, the entry stands at
the offsets' own topic, which is there wherever there are groups; tools for lag leave internal topics out as a rule.
Earlier versions committed the number of the batch as the offset, and the id of the query as metadata: such an entry is
read too, and the next batch replaces it.

A group without members expires (`offsets.retention.minutes`, a week unless the broker says otherwise).
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

# The last version that asks about one group, and the first that says that an offset is about to change: with an older
# one, a batch that was committed a moment ago would not be found.
ONE_GROUP: Final = 7
OFFSETS_TOPIC: Final = "__consumer_offsets"

_METADATA: Final = re.compile(r"aiokwire batch=(\d+) of=(.*)", re.DOTALL)

logger = logging.getLogger("aiokwire.spark")


class Entry(NamedTuple):
    """The last batch that was committed."""

    batch_id: int
    note: str
    """Which query or run wrote it."""


class Ledger:
    """One group."""

    def __init__(self, group_id: str, topic: str | None) -> None:
        self.group = GroupMetadata(group_id)
        self._home = TopicPartition(topic or OFFSETS_TOPIC, 0)

    async def entry(
        self, client: Client, entry: Entry, wrote: Collection[TopicPartition], timeout: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offset to commit with a batch, whose rows have been written to the partitions `wrote`."""
        end = await self._end(client, timeout)
        marker = self._home in wrote  # the one that ends the transaction takes an offset too
        return {
            self._home: OffsetAndMetadata(end + marker, metadata=f"aiokwire batch={entry.batch_id} of={entry.note}")
        }

    async def _end(self, client: Client, timeout: float) -> int:
        """Where the home partition ends. Only for those who look at lag, so that no batch fails without it."""
        if self._home.topic == OFFSETS_TOPIC:
            return 0  # each commit of any group moves it
        try:
            found = await list_offsets(client, {self._home: LATEST}, timeout=timeout)
        except KafkaError as error:
            logger.warning("group %r will seem to lag until the next batch: %s", self.group.group_id, error)
            return 0
        return found[self._home].offset

    async def read(self, client: Client, timeout: float) -> Entry | None:
        """The last batch that was committed, None when there is none.

        Raises: KafkaError: the coordinator refuses, is too old (before Kafka 2.5), or does not answer within `timeout`
        seconds.
        """
        deadline = Deadline(timeout, f"reading the ledger of the sink, group {self.group.group_id!r}")
        # By name first: a coordinator that lists a group's offsets may leave out one that is about to be the first.
        home = offset_fetch.OffsetFetchRequestTopic(name=self._home.topic, partition_indexes=[self._home.partition])
        found = await self._ask(client, [home], deadline)
        return found if found is not None else await self._ask(client, None, deadline)

    async def _ask(
        self, client: Client, topics: list[offset_fetch.OffsetFetchRequestTopic] | None, deadline: Deadline
    ) -> Entry | None:
        """What stands at these places, at any where `topics` is None: it was another one once.

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
            "delivery=exactly-once needs brokers from Kafka 2.5 on: older ones do not say that an offset is about to "
            "change (KIP-447), so that a batch which was just committed might be written again",
            request="OffsetFetch",
        )
    return picked
