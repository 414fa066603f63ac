"""The comparison with an archive and how differences are reported: the decisions, without Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.spark.archive.manifest import DataFile
from aiokwire.spark.audit.against import (
    NOT_ARCHIVED,
    NOT_IN_TOPIC,
    SEVERAL_TIMES,
    Difference,
    Differing,
    common,
    kind_of,
    stretches_of,
)
from aiokwire.spark.audit.archived import touches, whole_ranges
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_only_offsets_that_both_sides_should_have_are_compared() -> None:
    audited = {A: (5, 20), B: (0, 10), C: (0, 3)}
    archive = {A: (0, 15), C: (3, 9)}
    assert common(audited, archive) == {A: (5, 15)}


def test_an_archive_is_compared_from_its_first_to_its_last_offset() -> None:
    ranges = [Range("t", 0, 10, 20), Range("t", 0, 0, 5), Range("t", 1, 3, 4)]
    assert whole_ranges(ranges) == {A: (0, 20), B: (3, 4)}
    file = DataFile("t", 0, 10, 19, "x", 1, 1, 0, 0, 0)
    assert [touches(file, *edges) for edges in ((0, 10), (0, 11), (19, 30), (20, 30))] == [False, True, True, False]


@given(st.sets(st.tuples(st.sampled_from("tu"), st.integers(0, 1), st.integers(0, 40), st.sampled_from("xy"))))
def test_adjacent_offsets_with_the_same_difference_are_one_entry(offsets: set[tuple[str, int, int, str]]) -> None:
    found = stretches_of(Differing(*each) for each in offsets)
    shown = [(one.topic, one.partition, offset, one.kind) for one in found for offset in range(one.first, one.last + 1)]
    assert len(shown) == len(offsets)
    assert set(shown) == offsets
    ends = {(one.topic, one.partition, one.last + 1, one.kind) for one in found}
    assert not ends & offsets, "adjacent stretches are merged"
    assert all(one.count == one.last - one.first + 1 for one in found)


def test_a_difference_names_the_fields_that_differ() -> None:
    parts = ["key", "value", "headers"]
    same = {f"{side}_{name}": 1 for side in ("topic", "archive") for name in ("count", *parts)}
    for changes, kind in (
        ({"archive_count": None}, NOT_ARCHIVED),
        ({"topic_count": None}, NOT_IN_TOPIC),
        ({"archive_count": 2}, SEVERAL_TIMES),
        ({"topic_key": 2}, "key differs"),
        ({"topic_headers": None}, "headers differ"),
        ({"topic_key": 2, "archive_value": 3}, "key and value differ"),
    ):
        assert kind_of({**same, **changes}, parts) == kind
    assert str(Difference("t", 0, "key differs", 4, 4, 1)) == "offset 4: key differs"
    assert str(Difference("t", 0, "key differs", 4, 5, 2)) == "offsets 4 to 5: key differs"
