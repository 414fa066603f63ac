"""Partitions: Java's murmur2 vectors, kafka-python as oracle, the sticky plan as pure function."""

from __future__ import annotations

import collections
import random
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import ConfigurationError
from aiokwire.producer import RoundRobin, partition_for_key
from aiokwire.producer.partitioner import custom_partitioner, parse_partitioner, plan_sticky
from aiokwire.records import murmur2

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its resources in an old way
    from kafka.partitioner.default import (  # type: ignore[import-untyped]  # it has no types
        murmur2 as kafka_python_murmur2,
    )

# From the test of Kafka's own `Utils.murmur2`.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hash_"), JAVA.items())
def test_a_key_gets_the_same_partition_as_from_javas_client(key: bytes, hash_: int) -> None:
    assert murmur2(key) in (hash_, hash_ & 0xFFFFFFFF)
    assert partition_for_key(key, 1000) == (hash_ & 0x7FFFFFFF) % 1000


@given(st.binary(max_size=64), st.integers(1, 500))
def test_a_key_gets_the_same_partition_as_from_kafka_python(key: bytes, partitions: int) -> None:
    assert partition_for_key(key, partitions) == (kafka_python_murmur2(key) & 0x7FFFFFFF) % partitions


def test_quiet_partitions_take_turns() -> None:
    rng = random.Random(1)
    turns = []
    current = -1
    for _ in range(12):
        current = plan_sticky([0, 0, 0, 0], current, rng)
        turns.append(current)
    assert collections.Counter(turns) == {0: 3, 1: 3, 2: 3, 3: 3}


def test_a_partition_without_a_leader_is_left_out() -> None:
    rng = random.Random(1)
    chosen = {plan_sticky([0, None, 0], current, rng) for current in (0, 1, 2, -1) for _ in range(20)}
    assert chosen == {0, 2}


def test_when_no_partition_has_a_leader_any_may_be_chosen() -> None:
    rng = random.Random(1)
    assert {plan_sticky([None, None], -1, rng) for _ in range(50)} == {0, 1}


def test_a_partition_with_a_backlog_is_chosen_less_often() -> None:
    rng = random.Random(1)
    chosen = collections.Counter(plan_sticky([9, 0, 0], 1, rng) for _ in range(3000))
    assert chosen[0] < chosen[1] / 5
    assert 0.8 < chosen[1] / chosen[2] < 1.25


def test_round_robin_takes_each_topics_partitions_in_turn() -> None:
    partitioner = RoundRobin()
    assert [partitioner("a", b"k", None, range(3)) for _ in range(4)] == [0, 1, 2, 0]
    assert partitioner("b", b"k", None, range(3)) == 0


def test_an_unknown_partitioner_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ConfigurationError, match="default, adaptive, round_robin"):
        parse_partitioner("murmur")
    with pytest.raises(ConfigurationError, match="callable"):
        parse_partitioner(3)
    assert custom_partitioner(parse_partitioner("default")) is None
    assert isinstance(custom_partitioner(parse_partitioner("round-robin")), RoundRobin)
