"""What was fetched and waits: turns, positions, bytes, and what readers must not see."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.consumer.fetch_buffer import FetchBuffer, Lease
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import KafkaError
from aiokwire.records import BatchBuilder, Columns, RecordBatch, Visible, read_batches, select_visible
from aiokwire.types import Compression, OffsetReset, TopicPartition


def encoded(base: int, count: int, *, producer: int = -1, control: int | None = None) -> bytes:
    builder = BatchBuilder(2, 1 << 20)
    for index in range(count):
        if control is None:
            builder.append(index, None, b"%d" % (base + index))
        else:
            builder.append(index, bytes([0, 0, 0, control]), bytes(6))
    return bytes(
        builder.seal(
            base_offset=base,
            leader_epoch=4,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 and control is None else -1,
            transactional=producer >= 0,
            control=control is not None,
        )
    )


def batches(*parts: bytes) -> list[RecordBatch]:
    return read_batches(b"".join(parts), "t", 0)


def state(partition: int = 0, offset: int = 0) -> PartitionState:
    made = PartitionState(TopicPartition("t", partition))
    made.request_reset(OffsetReset.EARLIEST, "subscribed")
    made.move_to(offset)
    return made


class Told:
    """A buffer and whom it told of room."""

    def __init__(self) -> None:
        async def nothing() -> None:
            raise StopAsyncIteration

        self.room: list[PartitionState] = []
        self.added: list[Chunk] = []
        self.buffer = FetchBuffer(Feed(nothing), ConsumerHooks(None), self.room.append, self.added.append)

    def add(self, to: PartitionState, *parts: bytes) -> None:
        found = batches(*parts)
        lease = Lease(self.buffer, sum(map(len, parts)))
        self.buffer.add(to, select_visible(found, to.cursor.fetch_offset, None), lease)
        lease.release()


def load(chunk: Chunk | None) -> Chunk:
    assert chunk is not None
    if not chunk.loaded:
        chunk.load(chunk.batch.records(chunk.start))
    return chunk


def drain(buffer: FetchBuffer) -> list[tuple[int, int]]:
    """Partition and offset of every record, in the order of hand-over."""
    seen = []
    while (chunk := buffer.current()) is not None:
        seen += [(record.partition, record.offset) for record in load(chunk).take(10**9)]
        buffer.finish(chunk)
    return seen


# --- what readers see -------------------------------------------------------------------------------------------------


def shown(visible: Visible) -> list[int]:
    return [record.offset for one, _ in visible.batches for record in one.records(visible.begin)]


def test_batches_before_the_position_are_left_out() -> None:
    visible = select_visible(batches(encoded(0, 5), encoded(5, 5)), 7, None)
    assert shown(visible) == [7, 8, 9]
    assert visible.end == 10
    assert visible.epoch == 4


def test_control_batches_are_left_out_and_the_position_goes_past_them() -> None:
    visible = select_visible(batches(encoded(0, 2, producer=9), encoded(2, 1, producer=9, control=1)), 0, None)
    assert shown(visible) == [0, 1]
    assert [end for _, end in visible.batches] == [3]
    assert visible.end == 3


def test_a_fetch_of_control_batches_alone_moves_the_position() -> None:
    visible = select_visible(batches(encoded(4, 1, producer=9, control=1)), 4, None)
    assert visible.batches == []
    assert (visible.begin, visible.end) == (5, 5)


LOG = [
    encoded(0, 2, producer=1),
    encoded(2, 2, producer=2),
    encoded(4, 1, producer=1, control=0),  # 1 aborts
    encoded(5, 1, producer=3),
    encoded(6, 1, producer=2, control=1),  # 2 commits
    encoded(7, 2, producer=1),
    encoded(9, 1, producer=1, control=0),  # 1 aborts again
    encoded(10, 1, producer=1),
    encoded(11, 1, producer=1, control=1),  # 1 commits
    encoded(12, 1),
]


@pytest.mark.parametrize("aborted", list(itertools.permutations([(1, 0), (1, 7)])))
def test_aborted_records_are_left_out_whatever_the_order_of_the_list(aborted: Sequence[tuple[int, int]]) -> None:
    visible = select_visible(batches(*LOG), 0, aborted)
    assert shown(visible) == [2, 3, 5, 10, 12]
    assert visible.end == 13


def test_uncommitted_readers_see_aborted_records_and_no_markers() -> None:
    assert shown(select_visible(batches(*LOG), 0, None)) == [0, 1, 2, 3, 5, 7, 8, 10, 12]


# --- turns, positions, bytes ------------------------------------------------------------------------------------------


def test_partitions_take_turns_by_batch_and_each_keeps_its_order() -> None:
    told = Told()
    told.add(state(0), encoded(0, 2), encoded(2, 1))
    other = state(1)
    lease = Lease(told.buffer, 1)
    told.buffer.add(other, select_visible(read_batches(encoded(0, 1), "t", 1), 0, None), lease)
    lease.release()
    assert drain(told.buffer) == [(0, 0), (0, 1), (1, 0), (0, 2)]


def test_the_position_moves_with_every_record_and_ends_behind_what_is_hidden() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 2, producer=9), encoded(2, 1, producer=9, control=1))
    chunk = load(told.buffer.current())
    assert one.position == 0
    chunk.take_one()
    assert one.position == 1
    chunk.take_one()
    assert one.position == 3
    told.buffer.finish(chunk)
    assert one.position == 3


def test_a_response_counts_until_its_last_batch_is_gone() -> None:
    told = Told()
    told.add(state(), encoded(0, 1), encoded(1, 1))
    whole = told.buffer.held
    assert whole > 0
    told.buffer.finish(load(told.buffer.current()))
    assert told.buffer.held == whole
    told.buffer.finish(load(told.buffer.current()))
    assert told.buffer.held == 0


def test_dropping_frees_everything_and_keeps_the_position_at_the_next_record() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 3), encoded(3, 3))
    load(told.buffer.current()).take(2)
    told.buffer.drop(one)
    assert told.buffer.held == one.buffered == 0
    assert one.position == one.cursor.fetch_offset == 2
    assert told.buffer.current() is None


def test_a_dropped_chunk_hands_nothing_over() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 3))
    chunk = load(told.buffer.current())
    told.buffer.drop(one)
    assert chunk.dropped
    assert chunk.take(10) == []
    with pytest.raises(IndexError):
        chunk.take_one()
    told.buffer.finish(chunk)  # a reader that still held it
    assert one.position == 0


def test_paused_partitions_are_passed_over_and_come_back() -> None:
    told = Told()
    one, two = state(0), state(1)
    told.add(one, encoded(0, 1))
    lease = Lease(told.buffer, 1)
    told.buffer.add(two, select_visible(read_batches(encoded(0, 1), "t", 1), 0, None), lease)
    lease.release()
    one.pause()
    assert drain(told.buffer) == [(1, 0)]
    assert told.buffer.held > 0
    one.resume()
    assert drain(told.buffer) == [(0, 0)]
    assert told.buffer.held == 0


def test_only_the_wanted_partitions_are_given() -> None:
    told = Told()
    told.add(state(0), encoded(0, 1))
    assert told.buffer.current((TopicPartition("t", 5),)) is None
    assert told.buffer.current((TopicPartition("t", 0),)) is not None


def test_finishing_tells_of_room() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 1))
    told.buffer.finish(load(told.buffer.current()))
    assert told.room == [one]


def test_an_error_is_told_after_the_records_before_it() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 1))
    one.fail(KafkaError("no"))
    told.buffer.report(one)
    assert told.buffer.failed() is None
    told.buffer.finish(load(told.buffer.current()))
    assert told.buffer.failed() is one
    assert told.buffer.failed() is None, "it is told once"


def test_an_error_that_a_seek_settled_is_not_told() -> None:
    told = Told()
    one = state()
    one.fail(KafkaError("no"))
    told.buffer.report(one)
    one.move_to(3)
    assert told.buffer.failed() is None


def test_cutting_keeps_what_comes_before() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 3), encoded(3, 3))
    chunk = told.buffer.current()
    assert chunk is not None
    chunk.load(chunk.batch.records(0)[:2])
    told.buffer.cut(chunk, 2)
    assert drain(told.buffer) == [(0, 0), (0, 1)]
    assert one.position == one.cursor.fetch_offset == 2
    assert told.buffer.held == 0


def test_shedding_drops_what_is_paused_or_not_wanted() -> None:
    told = Told()
    one = state()
    told.add(one, encoded(0, 2))
    assert not told.buffer.shed([one], None)
    one.pause()
    before = one.attempt.generation
    assert told.buffer.shed([one], None)
    assert one.attempt.generation > before
    assert one.position == 0
    assert told.buffer.held == 0


def test_a_feed_hands_over_without_suspending() -> None:
    async def advance() -> Any:
        raise AssertionError("there are records at hand")

    feed = Feed(advance)
    feed.bind(lambda: 0.0)
    chunk = Chunk(None, None, 0, 2, 0, None)
    chunk.load(["a", "b"])
    feed.current = chunk

    async def two() -> list[Any]:
        return [await anext(feed), await anext(feed)]

    coroutine = two()
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert ended.value.value == ["a", "b"]


def test_a_step_that_is_never_awaited_takes_nothing() -> None:
    async def advance() -> Any:
        raise AssertionError("there are records at hand")

    feed = Feed(advance)
    feed.bind(lambda: 0.0)
    chunk = Chunk(None, None, 0, 2, 0, None)
    chunk.load(["a", "b"])
    feed.current = chunk
    anext(feed)
    assert chunk.remaining == 2


def test_a_feed_lets_the_loop_have_its_turn_after_many_records_and_after_some_time() -> None:
    now = 0.0

    async def advance() -> Any:
        return "from the slow way"

    feed = Feed(advance)
    feed.bind(lambda: now)
    chunk = Chunk(None, None, 0, 10_000, 0, None)
    chunk.load(list(range(10_000)))
    feed.current = chunk

    def fast() -> int:
        taken = 0
        while True:
            try:
                next(feed.__anext__().__await__())
            except StopIteration as step:
                if step.value == "from the slow way":
                    return taken
                taken += 1

    assert 500 <= fast() <= 2000
    feed.rested()
    now = 1.0
    assert fast() <= 32


async def test_awaits_that_were_made_ahead_lose_nothing_and_take_nothing_twice() -> None:
    async def advance() -> Any:
        await anyio.lowlevel.checkpoint()
        return "from the slow way"

    feed = Feed(advance)
    feed.bind(asyncio.get_running_loop().time)
    chunk = Chunk(None, None, 0, 2, 0, None)
    chunk.load(["first", "second"])
    feed.current = chunk
    ahead = [feed.__anext__() for _ in range(3)]
    assert [await each for each in reversed(ahead)] == ["first", "second", "from the slow way"]
    chunk.load(["third"])
    pending = feed.__anext__()
    assert await feed.__anext__() == "third"
    assert await pending == "from the slow way"
    chunk.load(["fourth"])
    promised = feed.__anext__().__await__()
    assert chunk.take_one() == "fourth"
    with pytest.raises(RuntimeError, match="another reader"):
        next(promised)


def test_a_chunk_is_decoded_at_once_only_when_its_batch_is_short_and_not_compressed() -> None:
    short = Chunk(state(), batches(encoded(0, 3))[0], 1, 3, 100, None)
    assert short.is_short(3, 1000)
    assert short.decode(3, 1000) == 2
    assert [record.offset for record in short.take(9)] == [1, 2]
    long = Chunk(state(), batches(encoded(0, 4))[0], 0, 4, 100, None)
    assert not long.is_short(3, 1000)
    assert long.decode(3, 1000) == -1
    assert not long.loaded
    builder = BatchBuilder(2, 1 << 20)
    builder.append(0, None, bytes(1000))
    packed = Chunk(state(), batches(bytes(builder.seal(compression=Compression.GZIP)))[0], 0, 1, 100, None)
    assert packed.decode(3, 1000) == -1


def test_columns_get_no_record_behind_the_end_of_a_chunk_that_was_cut_short() -> None:
    chunk = Chunk(state(), batches(encoded(0, 5))[0], 1, 5, 100, None)
    chunk.extend(3)
    columns = Columns()
    chunk.add_to(columns)
    assert len(columns) == 2
