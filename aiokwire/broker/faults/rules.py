"""Rules for the next requests of an API, for tests of clients.

    broker.faults.on(ProduceRequest, topic="sales", times=2).error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.faults.on(ApiKey.FETCH, node=2).drop()

`Faults.on` returns an `On`, whose verbs make a rule. `dispatch` passes requests through
`Interceptor` only while there are rules or a journal. The first rule that matches is applied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import anyio

from aiokwire.broker.dispatch import (
    APIS,
    WHOLE_TOPIC,
    Answer,
    Call,
    CloseConnection,
    FallSilent,
    Handler,
    Result,
    error_response,
)
from aiokwire.broker.faults.journal import PATIENCE
from aiokwire.config import require_int, require_number
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.protocol import ZERO_UUID, ApiKey, Request, Response, request_type

if TYPE_CHECKING:
    from aiokwire.broker.faults.journal import Journal
    from aiokwire.protocol.messages import fetch

R = TypeVar("R", bound=Request[Any])
Name = tuple[str, int]
Work = Callable[[], Result]
Act = Callable[[Request[Any], Call, Work], Result]

# APIs whose handlers look up the error of each topic or partition, so that the others are served.
IN_PARTS = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.METADATA}
)
# Their codes that concern the whole request.
OF_THE_WHOLE = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.REBOOTSTRAP_REQUIRED,
    }
)


@dataclasses.dataclass(frozen=True)
class Match:
    """The conditions on a request."""

    api: ApiKey
    topic: str | None
    partition: int | None
    node: int | None
    client_id: str | None
    when: Callable[[Any], bool] | None

    def concerns(self, call: Call, request: Request[Any]) -> bool:
        """Return whether the request fits, apart from its topics."""
        return (
            call.api == self.api
            and (self.node is None or call.node.id == self.node)
            and (self.client_id is None or call.client_id == self.client_id)
            and (self.when is None or self.when(request))
        )

    @property
    def names_anything(self) -> bool:
        return self.topic is not None or self.partition is not None

    def covers(self, name: Name) -> bool:
        """Return whether the topic or partition fits."""
        topic, partition = name
        return (self.topic is None or topic == self.topic) and (
            self.partition is None or partition in (self.partition, WHOLE_TOPIC)
        )


class Terms(NamedTuple):
    """The requests that a rule applies to, and their number."""

    interceptor: Interceptor
    match: Match
    times: int | None  # None: without a limit
    nth: int


class Rule:
    """A fault for the requests that it matches; `hits` counts them."""

    def __init__(self, terms: Terms, act: Act | None = None) -> None:
        """`act` returns the result of a request; without it the request is handled as usual."""
        self._interceptor = terms.interceptor
        self.match: Match = terms.match
        self._left = terms.times
        self._to_pass = terms.nth - 1
        self._act = act
        self.hits: int = 0
        self._changed = anyio.Event()

    def remove(self) -> None:
        """End the rule; requests that it holds or delays are not affected."""
        self._interceptor.remove(self)

    async def hit(self, count: int = 1, *, timeout: float = PATIENCE) -> None:
        """Wait until the rule has been applied `count` times.

        Raises: TimeoutError: not within `timeout` seconds.
        """
        try:
            with anyio.fail_after(timeout):
                while self.hits < count:
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"{self!r} was not applied {count} time(s) within {timeout} s") from None

    # --- for Interceptor ----------------------------------------------------------------------------------------------

    def passes(self) -> bool:
        """Return whether a matching request comes before the first one that the rule is for."""
        if self._to_pass == 0:
            return False
        self._to_pass -= 1
        return True

    def applied(self) -> None:
        """Count one request; the rule ends with its last one."""
        self.hits += 1
        self._changed.set()
        self._changed = anyio.Event()
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.remove()

    def act(self, request: Request[Any], call: Call, work: Work) -> Result:
        """Apply the rule to a request; `work` handles the request."""
        return work() if self._act is None else self._act(request, call, work)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.match.api.name}, {self.hits} hit(s)>"


async def _result(work: Work) -> Answer:
    result = work()
    return result if result is None or isinstance(result, Response) else await result


async def _late_result(call: Call, work: Work) -> Answer:
    """Handle a request that waited."""
    if not call.node.running:
        raise CloseConnection("the node was stopped while the request waited")
    return await _result(work)


class ErrorRule(Rule):
    """Responds with an error."""

    def __init__(self, terms: Terms, code: ErrorCode) -> None:
        super().__init__(terms, lambda request, call, work: error_response(request, call.version, code))
        self.code = code
        self.in_parts: bool = terms.match.api in IN_PARTS and code not in OF_THE_WHOLE


class Observation(Rule, Generic[R]):
    """Records requests; every other rule still applies to them."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self.requests: list[R] = []
        """The requests seen, oldest first."""


class Hold(Rule):
    """Holds requests until the test releases them; their connections wait."""

    def __init__(self, terms: Terms, *, handled: bool) -> None:
        super().__init__(terms, self._hold)
        self._handled = handled
        self._released = anyio.Event()
        self._held = 0
        self._arrival = anyio.Event()

    async def arrived(self, count: int = 1, *, timeout: float = PATIENCE) -> None:
        """Wait until the rule has held `count` requests.

        Raises: TimeoutError: not within `timeout` seconds.
        """
        try:
            with anyio.fail_after(timeout):
                while self._held < count:
                    await self._arrival.wait()
        except TimeoutError:
            raise TimeoutError(f"{self!r} did not hold {count} request(s) within {timeout} s") from None

    def release(self) -> None:
        """Release the held requests and end the rule."""
        self.remove()
        self._interceptor.released(self)
        self._released.set()

    async def _hold(self, request: Request[Any], call: Call, work: Work) -> Answer:
        answer = await _result(work) if self._handled else None
        self._held += 1
        self._arrival.set()
        self._arrival = anyio.Event()
        await self._released.wait()
        return answer if self._handled else await _late_result(call, work)


class On(Generic[R]):
    """Requests selected by `Faults.on`; each verb makes a rule for them.

    With `handled=True` a verb handles the request first and applies to its response.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def error(self, code: ErrorCode | int) -> Rule:
        """Respond with an error, in the place that the API has for it: partition, topic or request.

        Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and Metadata serve the partitions that are
        not selected. In other APIs the whole request gets the error.

        Raises: InvalidArgument: 0, or a number that no Kafka error has.
        """
        known = ErrorCode.of(code)
        if known != code or known is ErrorCode.NONE:
            raise InvalidArgument(f"{code!r} is not an error code of Kafka")
        return self._add(ErrorRule(self._terms, known))

    def delay(self, seconds: float, *, handled: bool = False) -> Rule:
        """Wait before the request is handled (or, with `handled`, before its response is sent).

        The connection's later requests wait too, as they do in Kafka; other connections do not.
        """
        require_number("seconds", seconds, minimum=0)

        async def act(request: Request[Any], call: Call, work: Work) -> Answer:
            answer = await _result(work) if handled else None
            await anyio.sleep(seconds)
            return answer if handled else await _late_result(call, work)

        return self._add(Rule(self._terms, act))

    def drop(self, *, handled: bool = False) -> Rule:
        """Do not respond. The connection stays open and silent, as if the broker hung."""
        return self._fail(FallSilent, "a rule dropped the request", handled=handled)

    def close(self) -> Rule:
        """Close the connection before the request is handled."""
        return self._fail(
            CloseConnection, f"a rule on {self._terms.match.api.name} closed the connection", handled=False
        )

    def close_after(self) -> Rule:
        """Handle the request, then close the connection without a response."""
        return self._fail(
            CloseConnection, f"a rule on {self._terms.match.api.name} closed the connection", handled=True
        )

    def _fail(self, kind: type[KafkaError], why: str, *, handled: bool) -> Rule:
        async def act(request: Request[Any], call: Call, work: Work) -> Answer:
            if handled:
                await _result(work)
            raise kind(why)

        return self._add(Rule(self._terms, act))

    def respond(self, response: Response | Callable[[R], Response]) -> Rule:
        """Send this response, or what the function returns for the request, without handling it.

        Raises: InvalidArgument: a response of another API.
        """
        if not isinstance(response, Response):
            return self._add(Rule(self._terms, lambda request, call, work: response(cast("R", request))))
        api = self._terms.match.api
        if api != response.API:
            raise InvalidArgument(f"{type(response).__name__} is not a response to {api.name}")
        return self._add(Rule(self._terms, lambda request, call, work: response))

    def hold(self, *, handled: bool = False) -> Hold:
        """Hold the request until the rule's `release()`; its `arrived()` waits for the request."""
        return self._add(Hold(self._terms, handled=handled))

    def observe(self) -> Observation[R]:
        """Append the requests to the rule's `requests`, and change nothing."""
        return self._add(Observation[R](self._terms))

    def _add(self, rule: AnyRule) -> AnyRule:
        self._terms.interceptor.add(rule)
        return rule


AnyRule = TypeVar("AnyRule", bound=Rule)


class PartitionErrors:
    """The errors that rules set for topics and partitions of one request."""

    def __init__(self) -> None:
        self._errors: list[tuple[Match, ErrorCode]] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, rule: ErrorRule) -> None:
        self._errors.append((rule.match, rule.code))

    def code(self, topic: str, partition: int) -> ErrorCode:
        """Return the error of a partition, or of the whole topic for WHOLE_TOPIC."""
        for match, code in self._errors:
            if match.covers((topic, partition)) and (partition != WHOLE_TOPIC or match.partition is None):
                return code
        return ErrorCode.NONE


class Interceptor:
    """Applies rules to requests and adds them to the journal. Owned by a `Broker`, on its loop."""

    def __init__(self, journal: Journal | None, on_change: Callable[[], None]) -> None:
        """`on_change` is called whenever `in_use` may have changed."""
        self._rules: list[Rule] = []
        self._holds: list[Hold] = []  # not released, including those that take no further requests
        self.journal = journal
        self._on_change = on_change

    @property
    def in_use(self) -> bool:
        """Whether requests must pass through the interceptor."""
        return bool(self._rules) or self.journal is not None

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)
        if isinstance(rule, Hold):
            self._holds.append(rule)
        self._on_change()

    def remove(self, rule: Rule) -> None:
        """End a rule, unless it has ended."""
        if rule in self._rules:
            self._rules.remove(rule)
            self._on_change()

    def released(self, hold: Hold) -> None:
        """Remove a hold that was released."""
        if hold in self._holds:
            self._holds.remove(hold)

    def clear(self) -> None:
        """End every rule and release held requests."""
        for hold in list(self._holds):
            hold.release()
        self._rules.clear()
        self._on_change()

    def work_of(self, call: Call, request: Request[Any], frame: bytearray, handler: Handler) -> Work:
        """Return the function that handles a request, instead of its handler."""
        if self.journal is not None:
            self.journal.add(call, frame)
        rule = self._take(call, request)

        def work() -> Result:
            return handler(request, call)

        return work if rule is None else lambda: rule.act(request, call, work)

    def _take(self, call: Call, request: Request[Any]) -> Rule | None:
        """Return the rule for the whole request; `call.faults` gets errors for its parts."""
        errors = PartitionErrors()
        names: list[Name] | None = None
        free: list[Name] = []  # without an error so far; once all have one, no other rule applies
        for rule in list(self._rules):
            match = rule.match
            if not match.concerns(call, request):
                continue
            if names is None:
                names = free = list(names_of(request, call))
            observes = isinstance(rule, Observation)
            covered = [name for name in (names if observes else free) if match.covers(name)]
            in_parts = isinstance(rule, ErrorRule) and rule.in_parts
            if not covered and (in_parts or match.names_anything or (names and not free and not observes)):
                continue
            if rule.passes():
                continue
            rule.applied()
            if isinstance(rule, Observation):
                rule.requests.append(request)
            elif isinstance(rule, ErrorRule) and in_parts:
                errors.add(rule)
                call.faults = errors
                free = [name for name in free if name not in covered]
            else:
                return rule
        return None


def match_of(
    api: ApiKey | type[Request[Any]],
    *,
    topic: str | None,
    partition: int | None,
    node: int | None,
    client_id: str | None,
    when: Callable[[Any], bool] | None,
) -> Match:
    """Check the arguments of `Faults.on`.

    Raises: InvalidArgument: an API that the broker does not serve.
    """
    key = api if isinstance(api, ApiKey) else getattr(api, "API", None)
    if not isinstance(key, ApiKey) or int(key) not in APIS:
        name = key.name if isinstance(key, ApiKey) else repr(api)
        raise InvalidArgument(f"the embedded broker does not serve {name}: a rule cannot match it")
    request_type(key)  # its messages load here, not within a request
    if partition is not None:
        require_int("partition", partition, minimum=0)
    return Match(key, topic, partition, node, client_id, when)


# --- the topics and partitions of a request ---------------------------------------------------------------------------

# The names of the same fields in different requests.
_LISTS_OF_TOPICS = ("topic_data", "topics", "topic_names", "v3_and_below_topics")
_LISTS_OF_LISTS = ("groups", "transactions")
_LISTS_OF_PARTITIONS = ("partition_data", "partitions", "partition_indexes")
_NAMES = ("name", "topic")
_INDICES = ("index", "partition", "partition_index")


def names_of(request: Request[Any], call: Call) -> list[Name]:
    """Return the topics and partitions that a request or its fetch session names."""
    names = list(_walk(request, call))
    if call.api == ApiKey.METADATA and getattr(request, "topics", None) is None:
        return [(topic.name, WHOLE_TOPIC) for topic in call.state.topics]
    if call.api == ApiKey.FETCH:
        rows = call.node.sessions.rows_after(cast("fetch.FetchRequest", request))
        names += [(row.topic or _name_of_id(row.topic_id, call), row.index) for row in rows]
    return names


def _walk(holder: Any, call: Call) -> Iterator[Name]:
    for attribute in _LISTS_OF_LISTS:
        for inner in getattr(holder, attribute, None) or ():
            if not isinstance(inner, str):
                yield from _walk(inner, call)
    for attribute in _LISTS_OF_TOPICS:
        for topic in getattr(holder, attribute, None) or ():
            yield from _of_topic(topic, call)


def _of_topic(topic: Any, call: Call) -> Iterator[Name]:
    if isinstance(topic, str):
        yield topic, WHOLE_TOPIC
        return
    name = next((getattr(topic, one) for one in _NAMES if hasattr(topic, one)), "") or ""
    if not name:
        name = _name_of_id(getattr(topic, "topic_id", ZERO_UUID), call)
    partitions = next((getattr(topic, one) for one in _LISTS_OF_PARTITIONS if hasattr(topic, one)), None)
    if partitions is None:
        yield name, WHOLE_TOPIC
        return
    for partition in partitions:
        if isinstance(partition, int):
            yield name, partition
        else:
            yield name, next(getattr(partition, one) for one in _INDICES if hasattr(partition, one))


def _name_of_id(topic_id: bytes, call: Call) -> str:
    topic = call.state.topics.by_id(topic_id)
    return topic.name if topic is not None else ""
