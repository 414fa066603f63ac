"""A choice is given as an enum member, its value or its name."""

from __future__ import annotations

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.types import Acks, Compression, IsolationLevel, OffsetReset, TopicPartition


@pytest.mark.parametrize("given", ["all", "ALL", "-1", -1, Acks.ALL])
def test_a_choice_is_accepted_as_member_value_or_name(given: object) -> None:
    assert Acks.parse(given) is Acks.ALL


def test_dashes_are_accepted_for_underscores() -> None:
    assert IsolationLevel.parse("read-committed") is IsolationLevel.READ_COMMITTED
    assert OffsetReset.parse("Earliest") is OffsetReset.EARLIEST


@pytest.mark.parametrize("given", ["brotli", 9, True, None, 1.0, b"gzip"])
def test_the_error_for_a_wrong_choice_names_the_valid_ones(given: object) -> None:
    with pytest.raises(ConfigurationError, match="none, gzip, snappy, lz4, zstd"):
        Compression.parse(given)


def test_a_topic_partition_prints_as_topic_and_number() -> None:
    assert str(TopicPartition("orders", 3)) == "orders[3]"
