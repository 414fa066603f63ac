"""Records of a chain never overlap and keep their order; other chains are not held up."""

from __future__ import annotations

import random
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.types import Order, TopicPartition
from aiokwire.worker.ordering import Line, Ordered, Ordering

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Item(Ordered):
    def __init__(self, tp: TopicPartition, key: bytes | None, number: int, line: Line) -> None:
        super().__init__(tp, key, line)
        self.number = number


def filled(order: Order, *records: tuple[TopicPartition, bytes | None], line: Line | None = None) -> Ordering[Item]:
    ordering = Ordering[Item](order)
    line = line or Line()
    for number, (tp, key) in enumerate(records):
        ordering.add(Item(tp, key, number, line))
    return ordering


def take_all(ordering: Ordering[Item]) -> list[Item]:
    taken = []
    while (item := ordering.take()) is not None:
        taken.append(item)
    return taken


@pytest.mark.parametrize(
    ("order", "runnable"),
    [(Order.PARTITION, [0, 2]), (Order.KEY, [0, 2, 3, 4, 5]), (Order.NONE, [0, 1, 2, 3, 4, 5])],
)
def test_one_record_of_each_chain_runs(order: Order, runnable: list[int]) -> None:
    records = [(ONE, b"a"), (ONE, b"a"), (TWO, b"a"), (ONE, b"b"), (ONE, None), (ONE, None)]
    assert [item.number for item in take_all(filled(order, *records))] == runnable


def test_the_next_record_of_a_key_runs_when_the_one_before_is_released() -> None:
    ordering = filled(Order.KEY, (ONE, b"a"), (ONE, b"a"), (ONE, b"a"))
    for number in range(3):
        (item,) = take_all(ordering)
        assert item.number == number
        ordering.release(item)
    assert not ordering.can_take


def test_a_retry_keeps_its_place_and_only_its_key_waits() -> None:
    ordering = filled(Order.KEY, (ONE, b"a"), (ONE, b"a"), (ONE, b"b"))
    first, other = take_all(ordering)
    ordering.put_off(first)
    ordering.release(other)
    assert ordering.take() is None
    ordering.put_back(first)
    assert take_all(ordering) == [first]
    ordering.release(first)
    assert [item.number for item in take_all(ordering)] == [1]


def test_a_handler_at_its_limit_does_not_hold_up_others() -> None:
    slow, fast = Line(limit=1), Line()
    ordering = Ordering[Item](Order.NONE)
    for number in range(3):
        ordering.add(Item(ONE, None, number, slow))
    for number in range(3, 6):
        ordering.add(Item(TWO, None, number, fast))
    taken = take_all(ordering)
    assert sorted(item.number for item in taken) == [0, 3, 4, 5]
    assert not ordering.can_take
    ordering.release(next(item for item in taken if item.number == 0))
    assert [item.number for item in take_all(ordering)] == [1]


def test_a_dropped_partition_yields_nothing_more_and_may_be_added_again() -> None:
    ordering = filled(Order.KEY, (ONE, b"a"), (ONE, b"a"), (ONE, b"b"), (TWO, b"a"))
    running = ordering.take()
    assert running is not None
    ordering.drop(ONE)
    assert [item.tp for item in take_all(ordering)] == [TWO]
    again = Item(ONE, b"a", 9, running.line)
    ordering.add(again)
    ordering.release(running)
    assert take_all(ordering) == [again]


@given(
    order=st.sampled_from(Order),
    records=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b", b"c", None])), max_size=60),
    limit=st.one_of(st.none(), st.integers(1, 4)),
    seed=st.integers(0, 1000),
)
def test_every_record_runs_once_and_in_order_within_its_chain(
    order: Order, records: list[tuple[int, bytes | None]], limit: int | None, seed: int
) -> None:
    rng = random.Random(seed)
    line = Line(limit)
    waiting = [Item(TopicPartition("t", tp), key, n, line) for n, (tp, key) in enumerate(records)]
    ordering = Ordering[Item](order)
    running: list[Item] = []
    put_off: list[Item] = []
    done: list[Item] = []
    while waiting or running or put_off or ordering.can_take:
        step = rng.randrange(5)
        if step == 0 and waiting:
            ordering.add(waiting.pop(0))
        elif step == 1 and (item := ordering.take()) is not None:
            assert all(chain_of(order, item) != chain_of(order, other) for other in running + put_off)
            running.append(item)
            assert limit is None or len(running) <= limit
        elif step == 2 and running:
            put_off.append(running.pop(rng.randrange(len(running))))
            ordering.put_off(put_off[-1])
        elif step == 3 and put_off:
            ordering.put_back(put_off.pop())
        elif step == 4 and running:
            done.append(running.pop(rng.randrange(len(running))))
            ordering.release(done[-1])
    assert sorted(item.number for item in done) == list(range(len(records)))
    for chain in {chain_of(order, item) for item in done}:
        numbers = [item.number for item in done if chain_of(order, item) == chain]
        assert numbers == sorted(numbers)


def chain_of(order: Order, item: Item) -> object:
    if order is Order.PARTITION:
        return item.tp
    return (item.tp, item.key) if order is Order.KEY and item.key is not None else item.number


def test_the_records_of_a_dropped_partition_are_freed() -> None:
    """Those that wait refer to each other, and the garbage collector may not track them yet."""
    ordering = filled(Order.KEY, (ONE, b"a"), (ONE, b"a"), (ONE, b"a"), (ONE, None))
    (running, single) = take_all(ordering)
    (waiting, last) = (weakref.ref(item) for item in (running.chains or {})[b"a"] or ())
    ordering.drop(ONE)
    assert (waiting(), last()) == (None, None)
    ordering.release(running)
    ordering.release(single)
    assert not ordering.can_take
