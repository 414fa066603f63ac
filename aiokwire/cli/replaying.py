"""Replays dead letters, each once: the records and the group's offset share a transaction.

The committed offset of a replay's group is that of the first dead letter that is not replayed; its
metadata holds the ranges that are replayed beyond, as a filter leaves gaps.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokwire.cli.connection import connect_options
from aiokwire.cli.letters import Letter, LetterFilter, letters, reader_of
from aiokwire.errors import InvalidArgument
from aiokwire.types import OffsetAndMetadata, TopicPartition
from aiokwire.worker import OffsetRange, decode_ranges, encode_ranges, without_error_headers

if TYPE_CHECKING:
    from aiokwire import Admin, Consumer, Producer


class ReplayedOffsets:
    """The replayed dead letters of one partition, noted in the order of their offsets."""

    def __init__(self, committed: OffsetAndMetadata | None) -> None:
        self.offset: int = 0 if committed is None else committed.offset  # everything below it is replayed
        self._earlier = [] if committed is None else decode_ranges(committed.offset, committed.metadata)
        self._ranges: list[OffsetRange] = []
        self._next = self.offset  # the offset after the last noted one
        self._follows = True  # the last noted one is replayed

    def is_replayed(self, offset: int) -> bool:
        """Return whether a dead letter was replayed by an earlier run."""
        place = bisect.bisect_right(self._earlier, offset, key=lambda each: each.start) - 1
        return offset < self.offset or (place >= 0 and offset < self._earlier[place].end)

    def note(self, offset: int, *, is_replayed: bool) -> None:
        """Note the next dead letter; skipped offsets before it count as replayed if it is."""
        if is_replayed and not self._follows:
            self._ranges.append(OffsetRange(offset, offset + 1))
        elif is_replayed and self._ranges:
            self._ranges[-1] = OffsetRange(self._ranges[-1].start, offset + 1)
        elif is_replayed:
            self.offset = offset + 1
        self._follows = is_replayed
        self._next = offset + 1

    def progress(self, tp: TopicPartition) -> OffsetAndMetadata:
        """Return the offset and the metadata to commit.

        Raises: InvalidArgument: the ranges do not fit into the metadata of a commit.
        """
        ranges = [*self._ranges]
        for each in self._earlier:
            rest = OffsetRange(max(each.start, self._next), each.end)
            if rest.start >= rest.end:
                continue
            if self._follows and rest.start == self._next and ranges:
                ranges[-1] = OffsetRange(ranges[-1].start, rest.end)
            else:
                ranges.append(rest)
        offset = self.offset
        if ranges and ranges[0].start == offset:
            offset = ranges.pop(0).end
        metadata = encode_ranges(offset, ranges)
        if decode_ranges(offset, metadata) != ranges:
            raise InvalidArgument(
                f"{tp}: the replayed dead letters are in {len(ranges)} separate ranges, more than a commit can hold; "
                "replay the records between them, drop the replayed ones, or use another --group, which replays all of "
                "them again"
            )
        return OffsetAndMetadata(offset, metadata)


class Target(NamedTuple):
    """The target of a replay; `topic` None: each record's origin."""

    topic: str | None
    keeps_headers: bool


class Replay:
    """One run: selects dead letters that no run of its group has replayed, and sends them."""

    def __init__(self, chosen: LetterFilter, target: Target, group: str, maximum: int | None) -> None:
        self._chosen = chosen
        self._target = target
        self._group = group
        self._left = maximum
        self._partitions: dict[str, int] = {}  # of the topics that records are sent to
        self._replayed: dict[TopicPartition, ReplayedOffsets] = {}
        self.sent: Counter[tuple[str, str]] = Counter()  # from and to
        self.done_before: int = 0
        self.without_origin: int = 0

    async def plan(self, bootstrap: str, topics: list[str]) -> None:
        """Count the records that `run` would send."""
        await self._each(bootstrap, topics, None)

    async def run(self, bootstrap: str, topics: list[str]) -> None:
        """Send the selected dead letters; after an error, a further run sends the others.

        Raises: FencedError: another run of this group has started; KafkaError.
        """
        from aiokwire import Producer

        options = {"transactional_id": self._group, **connect_options()}
        # Started first: it ends an earlier run, and waits for that run's last transaction.
        async with Producer(bootstrap, **options) as producer:
            await self._each(bootstrap, topics, producer)

    async def _each(self, bootstrap: str, topics: list[str], producer: Producer[bytes, bytes] | None) -> None:
        from aiokwire import Admin

        if self._target.topic in topics:
            raise InvalidArgument(
                f"cannot replay to {self._target.topic}, one of the topics to read: choose another --to"
            )
        async with Admin(bootstrap, **connect_options()) as admin, reader_of(bootstrap) as consumer:
            for tp, committed in (await admin.list_group_offsets(self._group, require_stable=True)).items():
                self._replayed[tp] = ReplayedOffsets(committed)
            await self._read(consumer, topics, admin, producer)

    async def _read(
        self, consumer: Consumer[bytes, bytes], topics: list[str], admin: Admin, producer: Producer[bytes, bytes] | None
    ) -> None:
        starts = {tp: replayed.offset for tp, replayed in self._replayed.items()}
        async for chunk in letters(consumer, topics, self._chosen.partitions, starts):
            selected = self._select(chunk)
            await self._check_targets(selected, admin)
            if selected and producer is not None:
                await self._send(producer, selected)
            self.sent.update((letter.record.topic, self._topic_for(letter)) for letter in selected)
            if self._left == 0:
                return

    def _select(self, chunk: Iterable[Letter]) -> list[Letter]:
        """Return the dead letters to send now, and note each one."""
        selected = []
        for letter in chunk:
            offset, replayed = letter.record.offset, self._replayed_of(letter)
            was_replayed = replayed.is_replayed(offset)
            is_chosen = self._left != 0 and self._chosen.selects(letter)
            self.done_before += is_chosen and was_replayed
            is_sent = is_chosen and not was_replayed and self._has_target(letter)
            if is_sent:
                selected.append(letter)
                self._left = None if self._left is None else self._left - 1
            replayed.note(offset, is_replayed=was_replayed or is_sent)
        return selected

    def _replayed_of(self, letter: Letter) -> ReplayedOffsets:
        return self._replayed.setdefault(letter.record.topic_partition, ReplayedOffsets(None))

    def _has_target(self, letter: Letter) -> bool:
        if letter.origin is None and self._target.topic is None:
            self.without_origin += 1
            return False
        return True

    def _topic_for(self, letter: Letter) -> str:
        return self._target.topic or letter.origin_topic

    async def _check_targets(self, selected: Sequence[Letter], admin: Admin) -> None:
        """Raises: StaleMetadataError: a topic to send to does not exist."""
        unknown = {self._topic_for(letter) for letter in selected} - self._partitions.keys()
        if unknown:
            found = (await admin.describe_topics(unknown)).check()
            self._partitions |= {name: len(topic.partitions) for name, topic in found.items()}

    async def _send(self, producer: Producer[bytes, bytes], selected: Sequence[Letter]) -> None:
        """Send dead letters and commit their offsets, both or neither."""
        progress = self._progress({letter.record.topic_partition for letter in selected})
        async with producer.transaction() as transaction:
            for letter in selected:
                await producer.submit(**self._record_of(letter))
            await transaction.send_offsets(progress, self._group)

    def _progress(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return {tp: self._replayed[tp].progress(tp) for tp in partitions}

    def _record_of(self, letter: Letter) -> dict[str, Any]:
        """Return the arguments to send a dead letter: to its own partition if it returns to its
        origin, else by its key."""
        record, topic, origin = letter.record, self._topic_for(letter), letter.origin
        headers = record.headers if self._target.keeps_headers else without_error_headers(record.headers)
        is_return = origin is not None and topic == origin.topic and origin.partition < self._partitions[topic]
        return {
            "topic": topic,
            "value": record.value,
            "key": record.key,
            "headers": headers,
            "partition": origin.partition if is_return and origin is not None else None,
        }
