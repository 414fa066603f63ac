"""Client quotas: the use that a user, client id or address is allowed, and the throttling above it.

Bytes per second (KIP-13), request time (KIP-124), mutations of topics (KIP-599) and connections by
address (KIP-612). `QuotaTable` has the limits, by the entities of KIP-546; `ClientQuotas` counts.
The response to a throttled request has a throttle time; its connection is then muted (KIP-219).
"""

from __future__ import annotations

import ipaddress
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

from aiokwire.broker.security.store import SecurityStore
from aiokwire.clock import precise_seconds
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError

_SHORTEST: Final = 0.001  # seconds; a rate over less is not defined


class Counter(Protocol):
    """The use of one quota by one user, client id or address."""

    def is_idle(self, now: float) -> bool:
        """Whether it has the state of a new counter."""
        ...


class SampledRate:
    """A rate over the last windows (Java: `Rate` of a `SampledStat`)."""

    __slots__ = ("_samples", "_size", "_windows")

    def __init__(self, windows: int, size: float) -> None:
        """`windows`: how many are kept, the current one included; `size`: of each, in seconds."""
        self._windows = windows
        self._size = size
        self._samples: deque[list[float]] = deque()  # start and sum of each window, oldest first

    def record(self, value: float, now: float) -> None:
        """Add a value to the current window."""
        if not self._samples or now - self._samples[-1][0] >= self._size:
            self._samples.append([now, 0.0])
        self._samples[-1][1] += value

    def throttle(self, limit: float, now: float) -> float:
        """Return the seconds until the rate is down to `limit` per second; 0 if it is not above."""
        period = self._period(now)
        rate = sum(total for _, total in self._samples) / period
        return (rate - limit) / limit * period if rate > limit else 0.0

    def _period(self, now: float) -> float:
        """Return the seconds that the rate covers: windows that are not over yet count whole."""
        while self._samples and now - self._samples[0][0] >= self._windows * self._size:
            self._samples.popleft()
        elapsed = now - self._samples[0][0] if self._samples else 0.0
        missing = self._windows - 1 - int(elapsed / self._size)
        return max(elapsed + max(missing, 0) * self._size, _SHORTEST)

    def is_idle(self, now: float) -> bool:
        return not self._samples or now - self._samples[-1][0] >= self._windows * self._size


class TokenBucket:
    """Tokens that accrue up to a burst; one use may exceed them (Java: `TokenBucket`)."""

    __slots__ = ("_full_at", "_period", "_tokens", "_updated")

    def __init__(self, period: float) -> None:
        """`period`: the seconds in which a burst accrues. The bucket starts full."""
        self._period = period
        self._tokens: float | None = None
        self._updated = 0.0
        self._full_at = 0.0

    def tokens(self, limit: float, now: float) -> float:
        """Return the tokens left; fewer than 0 if more were taken than there were."""
        burst = limit * self._period
        if self._tokens is None:
            self._tokens = burst
        self._tokens = min(burst, self._tokens + max(0.0, now - self._updated) * limit)
        self._updated = now
        return self._tokens

    def take(self, count: float, limit: float, now: float) -> None:
        """Take tokens, whether or not there are enough."""
        self._tokens = self.tokens(limit, now) - count
        self._full_at = now + self._period - self._tokens / limit

    def throttle(self, limit: float, now: float) -> float:
        """Return the seconds until the tokens taken in excess have accrued; 0 if there are none."""
        return max(0.0, -self.tokens(limit, now) / limit)

    def is_idle(self, now: float) -> bool:
        return now >= self._full_at


SECTION: Final = "quotas"
USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_OF_CLIENTS: Final = {PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE}
_KEYS: Final[dict[frozenset[str], set[str]]] = {
    frozenset({USER}): _OF_CLIENTS,
    frozenset({CLIENT_ID}): _OF_CLIENTS,
    frozenset({USER, CLIENT_ID}): _OF_CLIENTS,
    frozenset({IP}): {CONNECTION_CREATION_RATE},
}
_WHOLE: Final = {PRODUCER_BYTE_RATE: 2**63 - 1, CONSUMER_BYTE_RATE: 2**63 - 1, CONNECTION_CREATION_RATE: 2**31 - 1}
_LONGEST: Final = 2**31 - 1  # milliseconds: the largest throttle time that a response can hold
_COUNTERS: Final = 1024  # that are kept before idle ones are dropped

# Type and name of each part, by type; None as a name: the default of all that have no quota of their own.
Entity = tuple[tuple[str, str | None], ...]
Absent = Literal[False]  # instead of the name of a part that an entity does not have
Part = str | None | Absent
CounterT = TypeVar("CounterT", bound=Counter)


class QuotaMatch(NamedTuple):
    """A filter for one type of an entity: a name, the default (None), or either."""

    name: str | None = None
    any_name: bool = False


class Limit(NamedTuple):
    """A limit, and the entities that share it."""

    value: float
    user: Part
    client_id: Part


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Return the entity with these parts.

    Raises: BrokerError: a type is unknown or repeated, a name is empty or not an address, or types
    cannot be combined.
    """
    listed = sorted(parts, key=lambda part: part[0])
    types = [kind for kind, _ in listed]
    if len(set(types)) != len(types) or frozenset(types) not in _KEYS:
        raise _invalid(f"a quota is for a user, a client-id, both, or an ip, not for {', '.join(types) or 'nothing'}")
    for kind, name in listed:
        if name == "":
            raise _invalid(f"the name of a {kind} must not be empty; null is the default")
    return tuple((kind, _address(name) if kind == IP and name is not None else name) for kind, name in listed)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise _invalid(f"{text!r} is not an IP address") from None


def _invalid(message: str) -> BrokerError:
    return BrokerError(message, code=ErrorCode.INVALID_REQUEST)


def _check_quota(entity: Entity, key: str, value: float) -> None:
    """Raises: BrokerError: entities of this kind have no such quota, or the value is invalid."""
    if key not in _KEYS[frozenset(kind for kind, _ in entity)]:
        raise _invalid(f"{key!r} is not a quota of {' and '.join(kind for kind, _ in entity)}")
    if not value > 0 or math.isinf(value):
        raise _invalid(f"{key} must be greater than 0, not {value}")
    most = _WHOLE.get(key)
    if most is not None and (value != int(value) or value > most):
        raise _invalid(f"{key} must be a whole number up to {most}, not {value}")


class QuotaTable:
    """The quotas of all entities."""

    def __init__(self, quotas: Mapping[Entity, dict[str, float]] | None = None) -> None:
        self._quotas = dict(quotas or {})
        self._limits: dict[str, dict[tuple[Part, Part], float]] = {}  # by key, then by user and client id
        self._addresses: dict[str | None, float] = {}  # connections per second
        self._index()

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def copy(self) -> QuotaTable:
        """Return a table with the same quotas."""
        return QuotaTable(self._quotas)

    def load(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace all quotas by those of `rows`."""
        self._quotas = {tuple(sorted(row["entity"].items())): dict(row["quotas"]) for row in rows}
        self._index()

    def rows(self) -> list[dict[str, Any]]:
        """Return the quotas in the form that `load` accepts."""
        return [{"entity": dict(entity), "quotas": quotas} for entity, quotas in self._quotas.items()]

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """Set quotas of an entity; None removes one.

        Raises: BrokerError: a value is invalid; then none is changed.
        """
        for key, value in changes.items():
            if value is not None:
                _check_quota(entity, key, value)
        merged: dict[str, float | None] = {**self._quotas.get(entity, {}), **changes}
        quotas = {key: value for key, value in merged.items() if value is not None}
        if quotas:
            self._quotas[entity] = quotas
        else:
            self._quotas.pop(entity, None)
        self._index()

    def _index(self) -> None:
        self._limits, self._addresses = {}, {}
        for entity, quotas in self._quotas.items():
            parts: dict[str, Part] = dict(entity)
            if IP in parts:
                self._addresses[parts[IP] or None] = quotas[CONNECTION_CREATION_RATE]
                continue
            place = (parts.get(USER, False), parts.get(CLIENT_ID, False))
            for key, value in quotas.items():
                self._limits.setdefault(key, {})[place] = value

    def describe(self, matches: Mapping[str, QuotaMatch], *, strict: bool) -> dict[Entity, dict[str, float]]:
        """Return the entities that have all parts in `matches`; `strict`: and no others."""
        return {
            entity: quotas
            for entity, quotas in sorted(self._quotas.items(), key=_sortable)
            if _matches(dict(entity), matches) and (not strict or len(entity) == len(matches))
        }

    def has(self, key: str) -> bool:
        """Whether any client has this quota."""
        return key in self._limits

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the most specific limit of a client, in Kafka's order of precedence."""
        places = self._limits.get(key)
        if places is None:
            return None
        users: tuple[Part, ...] = (user, None, False)
        for one in users:
            for other in (client_id, None, False):
                value = places.get((one, other))
                if value is not None:
                    return Limit(value, False if one is False else user, False if other is False else client_id)
        return None

    def connection_limit(self, address: str) -> float | None:
        """Return the connections per second that an address may open."""
        found = self._addresses.get(address)
        return self._addresses.get(None) if found is None else found


def _sortable(item: tuple[Entity, object]) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in item[0]]


def _matches(parts: Mapping[str, str | None], matches: Mapping[str, QuotaMatch]) -> bool:
    return all(kind in parts and (match.any_name or parts[kind] == match.name) for kind, match in matches.items())


def _fault(table: QuotaTable, entity: Entity, changes: Mapping[str, float | None]) -> BrokerError | None:
    try:
        table.alter(entity, changes)
    except BrokerError as error:
        return error
    return None


class Usage:
    """The use of quotas by one request."""

    __slots__ = ("_seconds", "_since", "request_bytes")

    def __init__(self, request_bytes: int) -> None:
        """The time of its processing begins."""
        self.request_bytes: int = request_bytes
        self._since = precise_seconds()
        self._seconds: float | None = None

    def wait(self) -> None:
        """The request waits from here on, which is not processing."""
        self._seconds = precise_seconds() - self._since

    @property
    def seconds(self) -> float:
        return precise_seconds() - self._since if self._seconds is None else self._seconds


class MutationQuota:
    """The quota of one request that creates or deletes partitions (KIP-599)."""

    def __init__(self, bucket: TokenBucket, limit: float, clock: Callable[[], float], *, strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._clock = clock
        self._strict = strict  # reject; clients of older versions are only throttled
        self.throttle_ms: int = 0

    def record(self, partitions: int) -> None:
        """Count mutations.

        Raises: BrokerError: THROTTLING_QUOTA_EXCEEDED; they are not counted.
        """
        now = self._clock()
        if self._strict:
            self._update(now)
            if self.throttle_ms:
                raise BrokerError(
                    f"the quota of {self._limit:g} mutations per second is exceeded: "
                    f"try again in {self.throttle_ms} ms",
                    code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                )
        self._bucket.take(partitions, self._limit, now)
        if not self._strict:
            self._update(now)

    def _update(self, now: float) -> None:
        self.throttle_ms = _milliseconds(self._bucket.throttle(self._limit, now))


def _milliseconds(seconds: float) -> int:
    return min(math.ceil(seconds * 1000), _LONGEST)


class ClientQuotas:
    """The quotas of a broker's clients, and what each client has used."""

    def __init__(
        self, store: SecurityStore, clock: Callable[[], float], *, windows: tuple[int, int], mutations: tuple[int, int]
    ) -> None:
        """`windows`, `mutations`: number and size in seconds of the windows of rates, and of the
        windows that a burst of mutations may use up; `clock`: the event loop's."""
        self.enabled: bool = False  # whether there are any quotas
        self._table = QuotaTable()
        self._store = store
        self._clock = clock
        self._windows = windows
        self._burst = mutations[0] * mutations[1]
        self._rates: dict[tuple[str, Part, Part], SampledRate] = {}
        self._buckets: dict[tuple[str, Part, Part], TokenBucket] = {}

    def load(self) -> None:
        """Read the quotas from the store.

        Raises: StorageError: they are corrupt.
        """
        try:
            self._table.load(self._store.section(SECTION))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StorageError(f"the quotas in the data directory are corrupt: {error!r}") from error
        self.enabled = bool(self._table)

    async def alter(
        self, changes: Iterable[tuple[Entity, Mapping[str, float | None]]], *, validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Set quotas of entities, or remove them (None); return the error of each, if any.

        Raises: StorageError: the file cannot be written; nothing is changed.
        """
        async with self._store.turn(SECTION):
            table = self._table.copy()
            faults = [_fault(table, entity, quotas) for entity, quotas in changes]
            if validate_only or None not in faults:
                return faults
            await self._store.replace(SECTION, table.rows())
            self._table = table
            self.enabled = bool(table)
            return faults

    def describe(self, matches: Mapping[str, QuotaMatch], *, strict: bool) -> dict[Entity, dict[str, float]]:
        """Return the entities that have all parts in `matches`; `strict`: and no others."""
        return self._table.describe(matches, strict=strict)

    # --- counting -----------------------------------------------------------------------------------------------------

    def count_produced(self, user: str, client_id: str, size: int) -> int:
        """Count bytes of Produce requests; return the throttle time in milliseconds."""
        return _milliseconds(self._count(PRODUCER_BYTE_RATE, user, client_id, size))

    def count_fetched(self, user: str, client_id: str, size: int) -> int:
        """Count bytes of Fetch responses; return the throttle time in milliseconds."""
        return _milliseconds(self._count(CONSUMER_BYTE_RATE, user, client_id, size))

    def count_time(self, user: str, client_id: str, usage: Usage) -> int:
        """Count the time of a request; return the throttle time in milliseconds, up to a window."""
        if not self._table.has(REQUEST_PERCENTAGE):
            return 0
        percentage = usage.seconds * 100
        return _milliseconds(min(self._count(REQUEST_PERCENTAGE, user, client_id, percentage), self._windows[1]))

    def count_connection(self, address: str) -> int:
        """Count a new connection; return the milliseconds until it is closed, 0 to accept it."""
        limit = self._table.connection_limit(address)
        if limit is None:
            return 0
        counter = self._counter(self._rates, (CONNECTION_CREATION_RATE, address, False), self._new_rate)
        return _milliseconds(min(self._throttle(counter, limit, 1), self._windows[1]))

    def fetch_limit(self, user: str, client_id: str) -> int | None:
        """Return the bytes that a Fetch response may have without more than a period's throttle."""
        limit = self._table.limit(CONSUMER_BYTE_RATE, user, client_id)
        if limit is None:
            return None
        number, size = self._windows
        return int(limit.value * max(number - 1, 1) * size)

    def new_mutation_quota(self, user: str, client_id: str, *, strict: bool) -> MutationQuota | None:
        """Return the quota of a request that creates or deletes partitions; None: no limit."""
        limit = self._table.limit(CONTROLLER_MUTATION_RATE, user, client_id)
        if limit is None:
            return None
        place = (CONTROLLER_MUTATION_RATE, limit.user, limit.client_id)
        bucket = self._counter(self._buckets, place, lambda: TokenBucket(self._burst))
        return MutationQuota(bucket, limit.value, self._clock, strict=strict)

    def _count(self, key: str, user: str, client_id: str, value: float) -> float:
        limit = self._table.limit(key, user, client_id)
        if limit is None:
            return 0.0
        counter = self._counter(self._rates, (key, limit.user, limit.client_id), self._new_rate)
        return self._throttle(counter, limit.value, value)

    def _throttle(self, counter: SampledRate, limit: float, value: float) -> float:
        now = self._clock()
        counter.record(value, now)
        return counter.throttle(limit, now)

    def _new_rate(self) -> SampledRate:
        return SampledRate(*self._windows)

    def _counter(
        self,
        counters: dict[tuple[str, Part, Part], CounterT],
        place: tuple[str, Part, Part],
        new: Callable[[], CounterT],
    ) -> CounterT:
        counter = counters.get(place)
        if counter is None:
            if len(counters) % _COUNTERS == _COUNTERS - 1:  # client ids are the clients' choice: drop idle ones
                now = self._clock()
                for idle in [key for key, one in counters.items() if one.is_idle(now)]:
                    del counters[idle]
            counter = counters[place] = new()
        return counter
