"""Rules that decide what happens to the next requests of an API, for tests of clients.

    broker.faults.on(produce.ProduceRequest, topic="orders", times=2).error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.faults.on(ApiKey.FETCH, node=2).drop()

`Faults.on` returns an `On`, whose verbs make a rule. `dispatch` passes requests through `Interceptor` while there are
rules or a journal, and not at all otherwise. The first rule that matches a request is applied to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from aiokwire.broker.dispatch import APIS, WHOLE_TOPIC, Answer, Call, CloseConnection, FallSilent, Handler, Result
from aiokwire.broker.error_responses import error_response
from aiokwire.broker.faults.request_names import Name, names_of
from aiokwire.config import require_int, require_number
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument
from aiokwire.protocol import ApiKey, Request, Response, request_type

if TYPE_CHECKING:
    from aiokwire.broker.faults.journal import Journal

R = TypeVar("R", bound=Request[Any])
Work = Callable[[], Result]

PATIENCE = 5.0  # seconds that a test waits for a request unless it says otherwise
# APIs whose handlers ask for the error of each topic or partition, so that the others are served.
IN_PARTS = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.METADATA}
)
# Their codes that concern the request as such.
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
    """Which requests a rule is for."""

    api: ApiKey
    topic: str | None
    partition: int | None
    node: int | None
    client_id: str | None
    when: Callable[[Any], bool] | None

    def concerns(self, call: Call, request: Request[Any]) -> bool:
        """Whether it is for this request, its topics left aside."""
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
        """Whether it is for this topic or partition."""
        topic, partition = name
        return (self.topic is None or topic == self.topic) and (
            self.partition is None or partition in (self.partition, WHOLE_TOPIC)
        )


class Rule:
    """What becomes of the requests that it matches; `hits` counts them."""

    def __init__(self, interceptor: Interceptor, match: Match, *, times: int | None, nth: int) -> None:
        self._interceptor = interceptor
        self.match = match
        self._left = times
        self._to_pass = nth - 1
        self.hits = 0
        self._changed = anyio.Event()

    def remove(self) -> None:
        """End it; requests that it holds or delays already stay so."""
        self._interceptor.remove(self)

    async def hit(self, count: int = 1, *, timeout: float = PATIENCE) -> None:
        """Wait until it was applied `count` times since it was made.

        Raises: TimeoutError: it was not, within `timeout` seconds.
        """
        try:
            with anyio.fail_after(timeout):
                while self.hits < count:
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"{self!r} was not applied {count} time(s) within {timeout} s") from None

    # --- for Interceptor ----------------------------------------------------------------------------------------------

    def passes(self) -> bool:
        """Whether a request that it matches comes before the one that it waits for."""
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
        """Do what the rule says; `work` handles the request."""
        return work()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.match.api.name}, {self.hits} hit(s)>"


async def _result(work: Work) -> Answer:
    result = work()
    return result if result is None or isinstance(result, Response) else await result


async def _late_result(call: Call, work: Work) -> Answer:
    """Handle a request that waited."""
    if not call.node.running:
        raise CloseConnection("its node was stopped meanwhile")
    return await _result(work)


class ErrorRule(Rule):
    """Answers an error."""

    def __init__(self, interceptor: Interceptor, match: Match, code: ErrorCode, *, times: int | None, nth: int) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self.code = code
        self.in_parts = match.api in IN_PARTS and code not in OF_THE_WHOLE

    def act(self, request: Request[Any], call: Call, work: Work) -> Result:
        return error_response(request, call.version, self.code)


class DelayRule(Rule):
    """Waits."""

    def __init__(
        self, interceptor: Interceptor, match: Match, seconds: float, *, handled: bool, times: int | None, nth: int
    ) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self._seconds = seconds
        self._handled = handled

    async def act(self, request: Request[Any], call: Call, work: Work) -> Answer:
        if self._handled:
            answer = await _result(work)
            await anyio.sleep(self._seconds)
            return answer
        await anyio.sleep(self._seconds)
        return await _late_result(call, work)


class DropRule(Rule):
    """Answers nothing."""

    def __init__(self, interceptor: Interceptor, match: Match, *, handled: bool, times: int | None, nth: int) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self._handled = handled

    async def act(self, request: Request[Any], call: Call, work: Work) -> Answer:
        if self._handled:
            await _result(work)
        raise FallSilent("a rule dropped the request")


class CloseRule(Rule):
    """Closes the connection."""

    def __init__(self, interceptor: Interceptor, match: Match, *, handled: bool, times: int | None, nth: int) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self._handled = handled

    async def act(self, request: Request[Any], call: Call, work: Work) -> Answer:
        if self._handled:
            await _result(work)
        raise CloseConnection(f"a rule on {self.match.api.name} says so")


class RespondRule(Rule):
    """Answers what the test says."""

    def __init__(
        self,
        interceptor: Interceptor,
        match: Match,
        response: Response | Callable[[Any], Response],
        *,
        times: int | None,
        nth: int,
    ) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self._response = response

    def act(self, request: Request[Any], call: Call, work: Work) -> Result:
        return self._response if isinstance(self._response, Response) else self._response(request)


class Observation(Rule, Generic[R]):
    """Looks on: every other rule applies all the same."""

    def __init__(self, interceptor: Interceptor, match: Match, *, times: int | None, nth: int) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self.requests: list[R] = []
        """The requests seen, the oldest first."""


class Hold(Rule):
    """Keeps requests until the test releases them; their connections wait."""

    def __init__(self, interceptor: Interceptor, match: Match, *, handled: bool, times: int | None, nth: int) -> None:
        super().__init__(interceptor, match, times=times, nth=nth)
        self._handled = handled
        self._released = anyio.Event()
        self._held = 0
        self._came = anyio.Event()

    async def arrived(self, count: int = 1, *, timeout: float = PATIENCE) -> None:
        """Wait until it holds a request, or has held `count`.

        Raises: TimeoutError: none came within `timeout` seconds.
        """
        try:
            with anyio.fail_after(timeout):
                while self._held < count:
                    await self._came.wait()
        except TimeoutError:
            raise TimeoutError(f"{self!r} did not hold {count} request(s) within {timeout} s") from None

    def release(self) -> None:
        """Let go of what it holds and hold nothing any more."""
        self.remove()
        self._interceptor.released(self)
        self._released.set()

    async def act(self, request: Request[Any], call: Call, work: Work) -> Answer:
        answer = await _result(work) if self._handled else None
        self._held += 1
        self._came.set()
        self._came = anyio.Event()
        await self._released.wait()
        return answer if self._handled else await _late_result(call, work)


class On(Generic[R]):
    """The requests that a rule will match; each verb makes the rule. Returned by `Faults.on`.

    With `handled=True` a verb handles the request first, and applies to its response.
    """

    def __init__(self, interceptor: Interceptor, match: Match, *, times: int | None, nth: int) -> None:
        self._interceptor = interceptor
        self._match = match
        self._times = times
        self._nth = nth

    def error(self, code: ErrorCode | int) -> Rule:
        """Answer with an error, in the place that the API has for it: partition, topic or request.

        Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and Metadata serve the partitions that are not meant. In other
        APIs the whole request gets the error.

        Raises: InvalidArgument: 0, or a number that no Kafka error has.
        """
        known = ErrorCode.of(code)
        if known != code or known is ErrorCode.NONE:
            raise InvalidArgument(f"{code!r} is no error code of Kafka's")
        return self._add(ErrorRule(self._interceptor, self._match, known, times=self._times, nth=self._nth))

    def delay(self, seconds: float, *, handled: bool = False) -> Rule:
        """Wait before the request is handled (or, with `handled`, before it is answered).

        The connection's later requests wait too, as they do in Kafka; other connections do not.
        """
        require_number("seconds", seconds, minimum=0)
        return self._add(
            DelayRule(self._interceptor, self._match, seconds, handled=handled, times=self._times, nth=self._nth)
        )

    def drop(self, *, handled: bool = False) -> Rule:
        """Swallow the request. Its connection stays open and is silent from then on, as that of a broker that hangs."""
        return self._add(DropRule(self._interceptor, self._match, handled=handled, times=self._times, nth=self._nth))

    def close(self) -> Rule:
        """Close the connection before the request is handled."""
        return self._add(CloseRule(self._interceptor, self._match, handled=False, times=self._times, nth=self._nth))

    def close_after(self) -> Rule:
        """Handle the request, then close the connection without an answer."""
        return self._add(CloseRule(self._interceptor, self._match, handled=True, times=self._times, nth=self._nth))

    def respond(self, response: Response | Callable[[R], Response]) -> Rule:
        """Answer this, or what the function makes of the request, without handling it.

        Raises: InvalidArgument: a response of another API.
        """
        api = self._match.api
        if isinstance(response, Response) and api != response.API:
            raise InvalidArgument(f"{type(response).__name__} does not answer {api.name}")
        return self._add(RespondRule(self._interceptor, self._match, response, times=self._times, nth=self._nth))

    def hold(self, *, handled: bool = False) -> Hold:
        """Keep the request until the rule's `release()`; its `arrived()` waits for it to come."""
        return self._add(Hold(self._interceptor, self._match, handled=handled, times=self._times, nth=self._nth))

    def observe(self) -> Observation[R]:
        """Note the requests in the rule's `requests`, and change nothing."""
        return self._add(Observation[R](self._interceptor, self._match, times=self._times, nth=self._nth))

    def _add(self, rule: AnyRule) -> AnyRule:
        self._interceptor.add(rule)
        return rule


AnyRule = TypeVar("AnyRule", bound=Rule)


class PartitionErrors:
    """The errors that rules chose for topics and partitions of one request."""

    def __init__(self) -> None:
        self._errors: list[tuple[Match, ErrorCode]] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, rule: ErrorRule) -> None:
        self._errors.append((rule.match, rule.code))

    def code(self, topic: str, partition: int) -> ErrorCode:
        """The error for a partition; for WHOLE_TOPIC, that of the topic as a whole."""
        for match, code in self._errors:
            if match.covers((topic, partition)) and (partition != WHOLE_TOPIC or match.partition is None):
                return code
        return ErrorCode.NONE


class Interceptor:
    """Applies rules to requests and notes requests in the journal. Owned by a `Broker`, on its loop."""

    def __init__(self, journal: Journal | None, on_change: Callable[[], None]) -> None:
        """`on_change` is called after each change of `in_use`'s inputs."""
        self._rules: list[Rule] = []
        self._holds: list[Hold] = []  # that were not released, those that take no further request included
        self.journal = journal
        self._on_change = on_change

    @property
    def in_use(self) -> bool:
        """Whether requests must come by here."""
        return bool(self._rules) or self.journal is not None

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)
        if isinstance(rule, Hold):
            self._holds.append(rule)
        self._on_change()

    def remove(self, rule: Rule) -> None:
        """End a rule; nothing when it has ended."""
        if rule in self._rules:
            self._rules.remove(rule)
            self._on_change()

    def released(self, hold: Hold) -> None:
        """Forget a hold that holds nothing any more."""
        if hold in self._holds:
            self._holds.remove(hold)

    def clear(self) -> None:
        """End every rule and let go of what is held."""
        for hold in list(self._holds):
            hold.release()
        self._rules.clear()
        self._on_change()

    def work_of(self, call: Call, request: Request[Any], frame: bytearray, handler: Handler) -> Work:
        """What to do for a request, instead of handing it to its handler."""
        if self.journal is not None:
            self.journal.add(call, frame)
        rule = self._take(call, request)

        def work() -> Result:
            return handler(request, call)

        return work if rule is None else lambda: rule.act(request, call, work)

    def _take(self, call: Call, request: Request[Any]) -> Rule | None:
        """The rule for a request as a whole; errors for parts of it are left in `call.faults`."""
        errors = PartitionErrors()
        names: list[Name] | None = None
        free: list[Name] = []  # that no error is for yet; where all have one, nothing is left for another rule
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
        raise InvalidArgument(f"the embedded broker serves no {name}, so no rule can be about it")
    request_type(key)  # its messages load now, not within a request
    if partition is not None:
        require_int("partition", partition, minimum=0)
    return Match(key, topic, partition, node, client_id, when)
