"""The fetch buffer: turns, positions, bytes, and records that readers must not see."""

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


class Recorder:
    """A buffer that records the partitions with room."""

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
    """Return partition and offset of every record, in the order of return."""
    seen = []
    while (chunk := buffer.current()) is not None:
        seen += [(record.partition, record.offset) for record in load(chunk).take(10**9)]
        buffer.finish(chunk)
    return seen


# --- visible records --------------------------------------------------------------------------------------------------


def shown(visible: Visible) -> list[int]:
    return [record.offset for one, _ in visible.batches for record in one.records(visible.begin)]


def test_batches_before_the_position_are_left_out() -> None:
    visible = select_visible(batches(encoded(0, 5), encoded(5, 5)), 7, None)
    assert shown(visible) == [7, 8, 9]
    assert visible.end == 10
    assert visible.epoch == 4


def test_control_batches_are_left_out_and_the_position_moves_past_them() -> None:
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
def test_aborted_records_are_left_out_in_any_order_of_the_list(aborted: Sequence[tuple[int, int]]) -> None:
    visible = select_visible(batches(*LOG), 0, aborted)
    assert shown(visible) == [2, 3, 5, 10, 12]
    assert visible.end == 13


def test_read_uncommitted_returns_aborted_records_without_markers() -> None:
    assert shown(select_visible(batches(*LOG), 0, None)) == [0, 1, 2, 3, 5, 7, 8, 10, 12]


# --- turns, positions, bytes ------------------------------------------------------------------------------------------


def test_partitions_take_turns_by_batch_and_each_keeps_its_order() -> None:
    recorder = Recorder()
    recorder.add(state(0), encoded(0, 2), encoded(2, 1))
    other = state(1)
    lease = Lease(recorder.buffer, 1)
    recorder.buffer.add(other, select_visible(read_batches(encoded(0, 1), "t", 1), 0, None), lease)
    lease.release()
    assert drain(recorder.buffer) == [(0, 0), (0, 1), (1, 0), (0, 2)]


def test_the_position_advances_with_every_record_and_past_hidden_ones() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 2, producer=9), encoded(2, 1, producer=9, control=1))
    chunk = load(recorder.buffer.current())
    assert one.position == 0
    chunk.take_one()
    assert one.position == 1
    chunk.take_one()
    assert one.position == 3
    recorder.buffer.finish(chunk)
    assert one.position == 3


def test_a_response_counts_as_held_until_its_last_batch_is_finished() -> None:
    recorder = Recorder()
    recorder.add(state(), encoded(0, 1), encoded(1, 1))
    whole = recorder.buffer.held
    assert whole > 0
    recorder.buffer.finish(load(recorder.buffer.current()))
    assert recorder.buffer.held == whole
    recorder.buffer.finish(load(recorder.buffer.current()))
    assert recorder.buffer.held == 0


def test_dropping_a_partition_frees_its_bytes_and_keeps_its_position() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 3), encoded(3, 3))
    load(recorder.buffer.current()).take(2)
    recorder.buffer.drop(one)
    assert recorder.buffer.held == one.buffered == 0
    assert one.position == one.cursor.fetch_offset == 2
    assert recorder.buffer.current() is None


def test_a_dropped_chunk_returns_no_records() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 3))
    chunk = load(recorder.buffer.current())
    recorder.buffer.drop(one)
    assert chunk.dropped
    assert chunk.take(10) == []
    with pytest.raises(IndexError):
        chunk.take_one()
    recorder.buffer.finish(chunk)  # by a reader that still has it
    assert one.position == 0


def test_paused_partitions_are_skipped_until_resumed() -> None:
    recorder = Recorder()
    one, two = state(0), state(1)
    recorder.add(one, encoded(0, 1))
    lease = Lease(recorder.buffer, 1)
    recorder.buffer.add(two, select_visible(read_batches(encoded(0, 1), "t", 1), 0, None), lease)
    lease.release()
    one.pause()
    assert drain(recorder.buffer) == [(1, 0)]
    assert recorder.buffer.held > 0
    one.resume()
    assert drain(recorder.buffer) == [(0, 0)]
    assert recorder.buffer.held == 0


def test_only_the_wanted_partitions_are_returned() -> None:
    recorder = Recorder()
    recorder.add(state(0), encoded(0, 1))
    assert recorder.buffer.current((TopicPartition("t", 5),)) is None
    assert recorder.buffer.current((TopicPartition("t", 0),)) is not None


def test_finishing_a_chunk_reports_room() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 1))
    recorder.buffer.finish(load(recorder.buffer.current()))
    assert recorder.room == [one]


def test_an_error_is_reported_after_the_records_before_it() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 1))
    recorder.buffer.fail(one, KafkaError("no"))
    assert recorder.buffer.failed() is None
    recorder.buffer.finish(load(recorder.buffer.current()))
    assert recorder.buffer.failed() is one
    assert recorder.buffer.failed() is None, "it is reported once"


def test_an_error_cleared_by_a_seek_is_not_reported() -> None:
    recorder = Recorder()
    one = state()
    recorder.buffer.fail(one, KafkaError("no"))
    one.move_to(3)
    assert recorder.buffer.failed() is None


def test_cutting_a_chunk_keeps_the_records_before_the_cut() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 3), encoded(3, 3))
    chunk = recorder.buffer.current()
    assert chunk is not None
    chunk.load(chunk.batch.records(0)[:2])
    recorder.buffer.cut(chunk, 2)
    assert drain(recorder.buffer) == [(0, 0), (0, 1)]
    assert one.position == one.cursor.fetch_offset == 2
    assert recorder.buffer.held == 0


def test_shedding_drops_paused_and_unwanted_partitions() -> None:
    recorder = Recorder()
    one = state()
    recorder.add(one, encoded(0, 2))
    assert not recorder.buffer.shed([one], None)
    one.pause()
    before = one.attempt.generation
    assert recorder.buffer.shed([one], None)
    assert one.attempt.generation > before
    assert one.position == 0
    assert recorder.buffer.held == 0


def test_a_feed_returns_records_without_suspending() -> None:
    async def advance() -> Any:
        raise AssertionError("there are buffered records")

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


def test_a_step_that_is_never_awaited_takes_no_record() -> None:
    async def advance() -> Any:
        raise AssertionError("there are buffered records")

    feed = Feed(advance)
    feed.bind(lambda: 0.0)
    chunk = Chunk(None, None, 0, 2, 0, None)
    chunk.load(["a", "b"])
    feed.current = chunk
    anext(feed)
    assert chunk.remaining == 2


def test_a_feed_yields_to_the_loop_after_many_records_or_some_time() -> None:
    now = 0.0

    async def advance() -> Any:
        return "from the slow path"

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
                if step.value == "from the slow path":
                    return taken
                taken += 1

    assert 500 <= fast() <= 2000
    feed.rested()
    now = 1.0
    assert fast() <= 32


async def test_steps_created_ahead_lose_and_duplicate_no_records() -> None:
    async def advance() -> Any:
        await anyio.lowlevel.checkpoint()
        return "from the slow path"

    feed = Feed(advance)
    feed.bind(asyncio.get_running_loop().time)
    chunk = Chunk(None, None, 0, 2, 0, None)
    chunk.load(["first", "second"])
    feed.current = chunk
    ahead = [feed.__anext__() for _ in range(3)]
    assert [await each for each in reversed(ahead)] == ["first", "second", "from the slow path"]
    chunk.load(["third"])
    pending = feed.__anext__()
    assert await feed.__anext__() == "third"
    assert await pending == "from the slow path"
    chunk.load(["fourth"])
    promised = feed.__anext__().__await__()
    assert chunk.take_one() == "fourth"
    with pytest.raises(RuntimeError, match="another reader"):
        next(promised)


def test_a_chunk_is_decoded_at_once_only_if_its_batch_is_short_and_uncompressed() -> None:
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


def test_columns_contain_no_record_beyond_the_end_of_a_cut_chunk() -> None:
    chunk = Chunk(state(), batches(encoded(0, 5))[0], 1, 5, 100, None)
    chunk.extend(3)
    columns = Columns()
    chunk.add_to(columns)
    assert len(columns) == 2
