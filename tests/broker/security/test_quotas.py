"""Quotas without a broker: limits by precedence, rates, buckets, validation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.security import ClientQuotas, QuotaMatch, SecurityStore, entity_of
from aiokwire.broker.security.quotas import QuotaTable, SampledRate, TokenBucket
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError

PRODUCE = "producer_byte_rate"
# Kafka's documentation lists these in the order of precedence.
PLACES: list[list[tuple[str, str | None]]] = [
    [("user", "alice"), ("client-id", "app")],
    [("user", "alice"), ("client-id", None)],
    [("user", "alice")],
    [("user", None), ("client-id", "app")],
    [("user", None), ("client-id", None)],
    [("user", None)],
    [("client-id", "app")],
    [("client-id", None)],
]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def client_quotas(clock: Clock) -> ClientQuotas:
    return ClientQuotas(SecurityStore(MemoryStorage()), clock, windows=(11, 1), mutations=(11, 1))


@given(st.sets(st.integers(0, len(PLACES) - 1), min_size=1))
def test_the_most_specific_quota_applies(configured: set[int]) -> None:
    table = QuotaTable()
    for place in configured:
        table.alter(entity_of(PLACES[place]), {PRODUCE: float(place + 1)})
    limit = table.limit(PRODUCE, "alice", "app")
    assert limit is not None
    assert limit.value == min(configured) + 1


@pytest.mark.parametrize(
    ("entity", "user", "client_id"),
    [
        ([("user", None)], "alice", False),
        ([("client-id", None)], False, "app"),
        ([("user", None), ("client-id", None)], "alice", "app"),
    ],
)
def test_a_default_quota_is_counted_for_each_client_alone(
    entity: list[tuple[str, str | None]], user: str, client_id: str
) -> None:
    table = QuotaTable()
    table.alter(entity_of(entity), {PRODUCE: 5.0})
    assert table.limit(PRODUCE, "alice", "app") == (5.0, user, client_id)
    assert table.limit("consumer_byte_rate", "alice", "app") is None


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [("group", "g")],
        [("user", "")],
        [("user", "a"), ("user", "b")],
        [("user", "a"), ("ip", "127.0.0.1")],
        [("ip", "localhost")],
    ],
)
def test_an_entity_that_cannot_have_quotas_is_refused(parts: list[tuple[str, str | None]]) -> None:
    with pytest.raises(BrokerError) as caught:
        entity_of(parts)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ([("user", "a")], PRODUCE, 0.0),
        ([("user", "a")], PRODUCE, -1.0),
        ([("user", "a")], PRODUCE, 1.5),
        ([("user", "a")], PRODUCE, float("nan")),
        ([("user", "a")], PRODUCE, float("inf")),
        ([("user", "a")], PRODUCE, 1e19),
        ([("user", "a")], "connection_creation_rate", 1.0),
        ([("user", "a")], "speed", 1.0),
        ([("ip", None)], PRODUCE, 1.0),
        ([("ip", "::1")], "connection_creation_rate", float(2**31)),
    ],
)
def test_an_invalid_quota_changes_nothing(entity: list[tuple[str, str | None]], key: str, value: float) -> None:
    table = QuotaTable()
    with pytest.raises(BrokerError) as caught:
        table.alter(entity_of(entity), {"request_percentage": 5.0, key: value})
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert not table


def test_fractions_are_valid_for_percentages_and_mutations() -> None:
    table = QuotaTable()
    table.alter(entity_of([("user", "a")]), {"request_percentage": 0.5, "controller_mutation_rate": 0.1})
    assert list(table.describe({}, strict=False).values()) == [
        {"request_percentage": 0.5, "controller_mutation_rate": 0.1}
    ]


async def test_the_last_quota_of_an_entity_removes_it_and_turns_counting_off() -> None:
    quotas = client_quotas(Clock())
    entity = entity_of([("user", "a")])
    await quotas.alter([(entity, {PRODUCE: 5.0})])
    assert quotas.enabled
    await quotas.alter([(entity, {PRODUCE: None})])
    assert not quotas.enabled
    assert quotas.describe({}, strict=False) == {}


async def test_validation_alone_changes_nothing() -> None:
    quotas = client_quotas(Clock())
    await quotas.alter([(entity_of([("user", "a")]), {PRODUCE: 5.0})], validate_only=True)
    assert not quotas.enabled


def test_entities_are_described_by_name_default_or_type() -> None:
    table = QuotaTable()
    address: list[tuple[str, str | None]] = [("ip", "10.0.0.1")]
    for place, parts in enumerate([*PLACES, address]):
        key = "connection_creation_rate" if parts[0][0] == "ip" else PRODUCE
        table.alter(entity_of(parts), {key: float(place + 1)})

    def found(strict: bool, **matches: QuotaMatch) -> set[int]:
        described = table.describe({kind.replace("_", "-"): one for kind, one in matches.items()}, strict=strict)
        return {int(value) - 1 for quotas in described.values() for value in quotas.values()}

    anything = QuotaMatch(any_name=True)
    assert found(False) == set(range(9))
    assert found(True) == set()
    assert found(False, user=QuotaMatch("alice")) == {0, 1, 2}
    assert found(True, user=QuotaMatch("alice")) == {2}
    assert found(False, user=QuotaMatch(None)) == {3, 4, 5}
    assert found(True, user=anything) == {2, 5}
    assert found(False, user=anything, client_id=QuotaMatch("app")) == {0, 3}
    assert found(False, ip=anything) == {8}


async def test_quotas_outlive_a_restart() -> None:
    storage = MemoryStorage()
    first = ClientQuotas(SecurityStore(storage), Clock(), windows=(11, 1), mutations=(11, 1))
    assert await first.alter([(entity_of([("user", None), ("client-id", "app")]), {PRODUCE: 5.0})]) == [None]
    store = SecurityStore(storage)
    store.load()
    second = ClientQuotas(store, Clock(), windows=(11, 1), mutations=(11, 1))
    second.load()
    assert second.enabled
    assert second.describe({}, strict=False) == first.describe({}, strict=False)


@pytest.mark.parametrize("row", [{}, {"entity": [], "quotas": {}}, {"entity": {"ip": None}, "quotas": {}}])
async def test_corrupt_quotas_stop_the_start(row: dict[str, object]) -> None:
    store = SecurityStore(MemoryStorage())
    await store.replace("quotas", [row])
    with pytest.raises(StorageError, match="quotas in the data directory are corrupt"):
        ClientQuotas(store, Clock(), windows=(11, 1), mutations=(11, 1)).load()


# --- rates ------------------------------------------------------------------------------------------------------------


def test_a_burst_of_ten_windows_is_free_and_more_is_throttled_until_the_rate_is_down() -> None:
    rate = SampledRate(11, 1.0)
    rate.record(1000.0, 50.0)
    assert rate.throttle(100.0, 50.0) == 0.0
    rate.record(500.0, 50.0)
    assert rate.throttle(100.0, 50.0) == pytest.approx(5.0)


def test_use_is_forgotten_after_all_windows() -> None:
    rate = SampledRate(11, 1.0)
    rate.record(5000.0, 50.0)
    assert not rate.is_idle(60.9)
    assert rate.throttle(100.0, 60.9) > 0.0
    assert rate.is_idle(61.0)
    assert rate.throttle(100.0, 61.0) == 0.0


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 1000.0)), min_size=1, max_size=40))
def test_a_client_that_waits_out_its_throttle_stays_near_its_limit(uses: list[tuple[float, float]]) -> None:
    limit, largest = 100.0, 1000.0
    rate, now, began, total = SampledRate(11, 1.0), 7.0, 7.0, 0.0
    for pause, size in uses:
        now += pause
        rate.record(size, now)
        total += size
        now += rate.throttle(limit, now)
    # A burst of ten windows, and what one use exceeds.
    assert total <= limit * (now - began) + 10 * limit + largest + 1e-6 * total


def test_a_bucket_allows_a_burst_then_debts_until_they_have_accrued() -> None:
    bucket = TokenBucket(11.0)
    assert bucket.tokens(2.0, 50.0) == 22.0
    bucket.take(32.0, 2.0, 50.0)
    assert bucket.throttle(2.0, 50.0) == 5.0
    assert bucket.throttle(2.0, 55.0) == 0.0
    assert not bucket.is_idle(65.9)
    assert bucket.is_idle(66.0)
    assert bucket.tokens(2.0, 1000.0) == 22.0


async def test_clients_are_counted_apart_unless_they_share_a_quota() -> None:
    quotas = client_quotas(Clock())
    await quotas.alter([(entity_of([("user", "alice")]), {PRODUCE: 10.0})])
    assert quotas.count_produced("alice", "a", 100) == 0
    assert quotas.count_produced("alice", "b", 10) == 1000
    assert quotas.count_produced("bob", "a", 10_000) == 0
    await quotas.alter([(entity_of([("user", None), ("client-id", None)]), {PRODUCE: 10.0})])
    assert quotas.count_produced("bob", "a", 100) == 0
    assert quotas.count_produced("bob", "b", 100) == 0


async def test_many_client_ids_do_not_fill_the_memory() -> None:
    clock = Clock()
    quotas = client_quotas(clock)
    await quotas.alter([(entity_of([("client-id", None)]), {PRODUCE: 10.0})])
    for number in range(20_000):
        clock.now += 0.1
        quotas.count_produced("alice", f"client-{number}", 1)
    assert len(quotas._rates) <= 2048


async def test_a_strict_quota_refuses_once_the_bucket_is_overdrawn() -> None:
    clock = Clock()
    quotas = client_quotas(clock)
    await quotas.alter([(entity_of([("user", "alice")]), {"controller_mutation_rate": 1.0})])
    first = quotas.new_mutation_quota("alice", "a", strict=True)
    assert first is not None
    first.record(15)
    assert first.throttle_ms == 0
    with pytest.raises(BrokerError) as caught:
        first.record(1)
    assert caught.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert first.throttle_ms == 4000
    clock.now += 4.0
    again = quotas.new_mutation_quota("alice", "a", strict=True)
    assert again is not None
    again.record(1)


async def test_a_permissive_quota_only_throttles() -> None:
    quotas = client_quotas(Clock())
    await quotas.alter([(entity_of([("user", "alice")]), {"controller_mutation_rate": 1.0})])
    quota = quotas.new_mutation_quota("alice", "a", strict=False)
    assert quota is not None
    for _ in itertools.repeat(None, 3):
        quota.record(5)
    assert quota.throttle_ms == 4000


async def test_a_quota_of_an_address_replaces_the_default_of_all() -> None:
    quotas = client_quotas(Clock())
    await quotas.alter([(entity_of([("ip", None)]), {"connection_creation_rate": 1.0})])
    await quotas.alter([(entity_of([("ip", "10.0.0.1")]), {"connection_creation_rate": 100.0})])
    assert [quotas.count_connection("10.0.0.2") for _ in range(11)] == [0] * 10 + [1000]
    assert [quotas.count_connection("10.0.0.1") for _ in range(11)] == [0] * 11
