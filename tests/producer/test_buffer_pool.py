"""The records that wait for a full buffer: order, room, deadlines."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.errors import BufferFullError, ClosedError, InvalidArgument
from aiokwire.producer._accumulator import NOWAIT, SUBMIT, Accumulator
from aiokwire.producer._delivery import Delivery
from aiokwire.producer.buffer_pool import Record, WaitingLine
from tests.producer.test_accumulator import made


def record(value: Any) -> Record:
    return ("t", value, None, None, None, None, SUBMIT)


def full_buffer(max_wait: float = 10.0) -> tuple[Accumulator, WaitingLine]:
    accumulator, _ = made(limit=10_000, count=1)
    while accumulator.append("t", b"x" * 900, None, None, None, None, NOWAIT) is not None:
        pass
    return accumulator, WaitingLine(accumulator, max_wait, lambda: None)


def free_everything(accumulator: Accumulator) -> None:
    for partition in accumulator.topics["t"].partitions:
        accumulator.seal(partition)
        while partition.queue:
            batch = partition.take_next()
            batch.complete(0, -1)
            accumulator.finish(batch)
            accumulator.release(batch)


async def join(line: WaitingLine, value: Any, served: list[Any]) -> None:
    try:
        await line.join(record(value))
        served.append(value)
    except Exception as error:
        served.append(error)


async def waiting(line: WaitingLine, count: int) -> None:
    while len(line) < count:
        await anyio.lowlevel.checkpoint()


async def test_waiting_records_are_accepted_in_order_as_long_as_there_is_room() -> None:
    accumulator, line = full_buffer()
    served: list[Any] = []
    values = [b"%02d" % number + b"x" * 2000 for number in range(6)]
    async with anyio.create_task_group() as group:
        for value in values:
            group.start_soon(join, line, value, served)
        await waiting(line, 6)
        free_everything(accumulator)
        line.serve()
        assert len(line) == 2
        assert accumulator.blocked
        assert accumulator.append("t", b"tiny", None, None, None, None, NOWAIT) is None, "no record overtakes"
        free_everything(accumulator)
        line.serve()
    assert served == values
    assert not accumulator.blocked


async def test_a_waiting_record_that_becomes_invalid_does_not_block_the_next_one() -> None:
    accumulator, line = full_buffer()
    served: list[Any] = []
    async with anyio.create_task_group() as group:
        for place in (9, 0):  # the first names a partition that does not exist

            async def one(place: int = place) -> None:
                try:
                    served.append(await line.join(("t", b"x" * 2000, None, place, None, None, SUBMIT)))
                except InvalidArgument as error:
                    served.append(error)

            group.start_soon(one)
        await waiting(line, 2)
        free_everything(accumulator)
        line.serve()
    assert sorted(type(each).__name__ for each in served) == ["Delivery", "InvalidArgument"]
    assert len(line) == 0
    assert accumulator.used < 3000


async def test_a_cancelled_wait_lets_a_smaller_record_in() -> None:
    accumulator, line = full_buffer()
    served: list[Any] = []
    room = accumulator.limit - accumulator.used
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def first() -> None:
            with scope:
                await line.join(record(b"x" * 5000))

        group.start_soon(first)
        await waiting(line, 1)
        group.start_soon(join, line, b"x" * (room - 200), served)
        await waiting(line, 2)
        scope.cancel()
    assert served == [b"x" * (room - 200)]
    assert len(line) == 0


async def test_a_wait_that_expires_names_the_sizes() -> None:
    _, line = full_buffer(max_wait=0.02)
    with pytest.raises(BufferFullError, match=r"within 0\.020 s") as caught:
        await line.join(record(b"x" * 5000))
    assert (caught.value.limit, caught.value.needed >= 5000) == (10_000, True)
    assert len(line) == 0


async def test_a_dismissed_line_is_empty() -> None:
    _, line = full_buffer()
    served: list[Any] = []
    async with anyio.create_task_group() as group:
        group.start_soon(join, line, b"x" * 5000, served)
        await waiting(line, 1)
        line.dismiss(ClosedError("over"))
    assert isinstance(served[0], ClosedError)


async def test_a_wait_for_room_returns_the_delivery() -> None:
    accumulator, line = full_buffer()
    given: list[Delivery] = []

    async def one() -> None:
        given.append(await line.join(record(b"x" * 2000)))

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        await waiting(line, 1)
        free_everything(accumulator)
        line.serve()
    assert given[0].partition == 0


async def test_records_that_are_not_awaited_are_logged_when_they_expire(caplog: pytest.LogCaptureFixture) -> None:
    _, line = full_buffer(max_wait=0.02)
    for _ in range(3):
        line.enter(record(b"x" * 5000))
    while len(line):
        await anyio.lowlevel.checkpoint()
    (message,) = [each.getMessage() for each in caplog.records]
    assert message.startswith("3 record(s) for t were not sent, and their submit() was not awaited: no room")


async def test_a_place_keeps_its_order_when_the_one_before_is_never_awaited() -> None:
    accumulator, line = full_buffer()
    line.enter(record(b"0" * 2000))
    second = line.enter(record(b"1" * 2000))
    free_everything(accumulator)
    line.serve()
    delivery = await second
    assert (delivery.partition, len(line)) == (0, 0)
    assert accumulator.topics["t"].partitions[0].open is not None
