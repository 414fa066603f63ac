"""The distribution of partitions to streams, and their locks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.processed import Held
from aiokwire.consumer.reader import Share
from aiokwire.consumer.streams import share_out
from aiokwire.types import OffsetAndMetadata, TopicPartition


def t(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("t", number) for number in numbers)


def test_partitions_are_distributed_evenly() -> None:
    assert share_out(t(0, 1, 2, 3, 4), [t(), t()]) == [t(0, 1, 2), t(3, 4)]
    assert share_out(t(0), [t(), t(), t()]) == [t(0), t(), t()]


def test_remaining_partitions_stay_with_their_stream() -> None:
    assert share_out(t(0, 1, 2, 3), [t(2, 3), t(0, 9)]) == [t(2, 3), t(0, 1)]
    assert share_out(t(0, 1, 2), [t(), t(0, 1, 2)]) == [t(2), t(0, 1)]


@given(
    st.frozensets(st.integers(0, 20)),
    st.integers(1, 5).flatmap(lambda count: st.lists(st.integers(-1, count - 1), min_size=21, max_size=21)),
)
def test_each_partition_is_in_exactly_one_share_and_few_move(numbers: frozenset[int], owners: list[int]) -> None:
    count = max(0, *owners) + 1
    before = [t(*(number for number, owner in enumerate(owners) if owner == index)) for index in range(count)]
    after = share_out(t(*numbers), before)
    assert sorted(tp for share in after for tp in share) == sorted(t(*numbers))
    sizes = [len(share) for share in after]
    assert max(sizes) - min(sizes) <= 1
    for old, new in zip(before, after, strict=True):
        assert len(new & old) >= min(len(new), len(old & t(*numbers))), (
            "it received another partition in place of its own"
        )


def test_a_record_being_processed_locks_its_partition_for_other_streams() -> None:
    locks: dict[TopicPartition, Share] = {}
    one, two = Share(locks), Share(locks)
    tp = TopicPartition("t", 0)
    one.partitions = t(0)
    held = Held(PartitionState(tp), OffsetAndMetadata(7))
    assert tp in one
    one.take(held)
    assert tp in one
    one.partitions, two.partitions = t(), t(0)
    assert tp not in one
    assert tp not in two
    assert one.put_back() is held
    assert tp in two
    assert one.put_back() is None
