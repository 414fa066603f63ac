"""Handlers and the topics that they process."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypedDict, TypeVar, Unpack, cast

from aiokwire.errors import ConfigurationError
from aiokwire.worker.batch_arguments import batch_arguments_of
from aiokwire.worker.batching import BatchBounds
from aiokwire.worker.circuit_breaker import CircuitBreaker
from aiokwire.worker.context import BatchContext, Context
from aiokwire.worker.outcomes import BatchError
from aiokwire.worker.rate_limit import RateLimit
from aiokwire.worker.signatures import Deserializer, Deserializers, Fill, Parts, RawRecord, arguments_of

if TYPE_CHECKING:
    from aiokwire.worker.outcomes import RetryPolicy

T = TypeVar("T")

HandlerFunction = Callable[..., Awaitable[object]]
Topics = str | re.Pattern[str] | Iterable[str | re.Pattern[str]]

# How long (seconds) the first record of a batch waits for more, without `max_wait`.
MAX_WAIT: Final = 0.1
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_BY_ANNOTATION: Final = Deserializers()
_INLINE_FLAGS: Final = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


class SingleOptions(TypedDict, total=False):
    """The keyword arguments of `Handler`."""

    name: str | None
    concurrency: int | None
    timeout: float | None
    retry: RetryPolicy | None
    rate_limit: RateLimit | None
    circuit_breaker: CircuitBreaker | None
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None


class HandlerOptions(SingleOptions, total=False):
    """The keyword arguments of `Handler` and of `BatchHandler`."""

    max_records: int | None
    max_wait: float | None


class Handler:
    """A function with the topics that it processes and the bounds of its calls.

    Args:
        function: the coroutine function; its annotations define its arguments.
        topics: names, and patterns for whole names.
        name: for logs, dead letters and metrics; default: the function's qualified name.
        concurrency: the calls that run at a time, within the worker's bound; None: only that.
        timeout: seconds for one attempt; None: without a limit.
        retry: the retry policy; None: the worker's.
        rate_limit: the calls that start per second, beside the worker's limit.
        circuit_breaker: when its calls pause, because what it depends on is down.
        key_deserializer, value_deserializer: replace the decoding by annotation; may be async.

    Raises: ConfigurationError: the function is not a coroutine function, or its arguments cannot be
    filled; a bound is out of its range.
    """

    __slots__ = (
        "_arguments",
        "_deserializers",
        "_function",
        "_only",
        "circuit_breaker",
        "concurrency",
        "name",
        "rate_limit",
        "retry",
        "timeout",
        "topics",
    )
    bounds: BatchBounds | None = None
    context_type: ClassVar[type[Context]] = Context

    def __init__(
        self,
        function: HandlerFunction,
        topics: Topics,
        *,
        name: str | None = None,
        concurrency: int | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        rate_limit: RateLimit | None = None,
        circuit_breaker: CircuitBreaker | None = None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> None:
        self.name: str = checked_name(function, name)
        self.topics: tuple[str | re.Pattern[str], ...] = _checked_topics(self.name, topics)
        self.concurrency: int | None = _checked_concurrency(self.name, concurrency)
        self.timeout: float | None = checked_timeout(self.name, timeout)
        self.retry: RetryPolicy | None = retry
        self.rate_limit: RateLimit | None = _checked_type(self.name, "rate_limit", rate_limit, RateLimit)
        self.circuit_breaker: CircuitBreaker | None = _checked_type(
            self.name, "circuit_breaker", circuit_breaker, CircuitBreaker
        )
        self._function = function
        self._deserializers = Deserializers(key_deserializer, value_deserializer)
        self._arguments = self._arguments_of(function)
        self._only = self._only_argument()

    def _only_argument(self) -> Fill | None:
        """Return how the only argument is filled, if no deserializer is called."""
        positional, named = self._arguments[:2]
        is_only = len(positional) == 1 and not named and self._deserializers == _BY_ANNOTATION
        return positional[0] if is_only else None

    def _arguments_of(self, function: HandlerFunction) -> Any:
        return arguments_of(function, self.name, self._deserializers)

    def __call__(self, record: RawRecord, context: Context) -> Awaitable[object]:
        """Decode the arguments and call the function; the result is to be awaited.

        Raises: DeserializationError: the key or value cannot be decoded; what the function raises.
        """
        if self._only is not None:
            return self._function(self._only(record, (record.key, record.value), context))
        if self._deserializers == _BY_ANNOTATION:
            return self._call(record, (record.key, record.value), context)
        return self._deserialize_and_call(record, context)

    async def _deserialize_and_call(self, record: RawRecord, context: Context) -> None:
        await self._call(record, await self._deserializers.apply(record, self.name), context)

    def _call(self, record: RawRecord, parts: Parts, context: Context) -> Awaitable[object]:
        positional, named = self._arguments
        if named:
            values = {name: fill(record, parts, context) for name, fill in named.items()}
            return self._function(*[fill(record, parts, context) for fill in positional], **values)
        if len(positional) == 1:
            return self._function(positional[0](record, parts, context))
        return self._function(*[fill(record, parts, context) for fill in positional])

    def __repr__(self) -> str:
        return f"<Handler {self.name} of {_names(self.topics)}>"


class BatchHandler(Handler):
    """A function that receives many records of one partition at once.

    Args:
        max_records: the most records of a batch.
        max_wait: how long (seconds) the first record of a batch that is not full waits for more;
            None: 0.1.
        options: as for `Handler`; `concurrency` and `timeout` are of batches.

    Raises: ConfigurationError: as `Handler`.
    """

    __slots__ = ("bounds",)
    context_type: ClassVar[type[Context]] = BatchContext

    def __init__(
        self,
        function: HandlerFunction,
        topics: Topics,
        *,
        max_records: int,
        max_wait: float | None = None,
        **options: Unpack[SingleOptions],
    ) -> None:
        super().__init__(function, topics, **options)
        self.bounds: BatchBounds | None = _checked_bounds(self.name, max_records, max_wait)

    def _arguments_of(self, function: HandlerFunction) -> Any:
        return batch_arguments_of(function, self.name, self._deserializers)

    async def __call__(self, records: Sequence[RawRecord], context: BatchContext) -> None:  # type: ignore[override]
        """Decode the arguments and await the function. Notes in `context.failures` which records
        failed, if not all of them did so by one error of the function.

        Raises: what the function raises, unless records could not be decoded.
        """
        decoded = await self._arguments.decode(records, context, self._deserializers, self.name)
        failures: dict[int, BaseException] = decoded.failures
        if decoded.records:
            try:
                await self._function(
                    *[fill(decoded, context) for fill in self._arguments.positional],
                    **{name: fill(decoded, context) for name, fill in self._arguments.named.items()},
                )
            except BatchError as error:
                failures |= error.by_offset(decoded.records)
            except Exception as error:
                if not failures:
                    raise
                failures |= dict.fromkeys((record.offset for record in decoded.records), error)
        if failures:
            context.note_failures(failures)


class HandlerRegistry:
    """The handlers of a worker; each topic has one."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []
        self._of_topic: dict[str, Handler] = {}
        self._names: set[str] = set()

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def add(self, topics: Topics, function: HandlerFunction, **options: Unpack[HandlerOptions]) -> Handler:
        """Add a handler; `options` are those of `Handler`, or with `max_records` of `BatchHandler`.

        Raises: ConfigurationError: as for `Handler`; one of the topics has a handler, or another
        handler has this name.
        """
        handler = new_handler(function, topics, **options)
        self._check_name(handler.name)
        for other in self._handlers:
            _check_disjoint(handler, other)
        self.reserve(handler.name)
        self._handlers.append(handler)
        return handler

    def reserve(self, name: str) -> None:
        """Refuse further handlers of this name.

        Raises: ConfigurationError: another handler has it.
        """
        self._check_name(name)
        self._names.add(name)

    def _check_name(self, name: str) -> None:
        if name in self._names:
            raise ConfigurationError(f"two handlers are named {name}: give one of them another name=")

    def include(self, other: HandlerRegistry) -> None:
        """Add the handlers of another registry to this one, which is empty."""
        self._handlers.extend(other)
        self._names |= other._names

    def find(self, topic: str) -> Handler:
        """Return the handler of a topic.

        Raises: ConfigurationError: the topic has no handler, or the patterns of two match it.
        """
        found = self._of_topic.get(topic)
        if found is None:
            found = self._of_topic[topic] = self._match(topic)
        return found

    def get(self, topic: str) -> Handler | None:
        """Return the handler of a topic; None if it has none."""
        return next((handler for handler in self._handlers if _matches(handler, topic)), None)

    def _match(self, topic: str) -> Handler:
        matching = [handler for handler in self._handlers if _matches(handler, topic)]
        if not matching:
            raise ConfigurationError(f"topic {topic} has no handler; topics with one: {_names(self._all_topics())}")
        if len(matching) > 1:
            _refuse_two(matching[0], matching[1], topic)
        return matching[0]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to subscribe to, if no handler has a pattern."""
        return tuple(topic for topic in self._all_topics() if isinstance(topic, str))

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The pattern to subscribe to, for the names as well; None if no handler has a pattern."""
        topics = self._all_topics()
        if all(isinstance(topic, str) for topic in topics):
            return None
        return re.compile("|".join(map(as_pattern, topics)))

    def _all_topics(self) -> list[str | re.Pattern[str]]:
        return [topic for handler in self._handlers for topic in handler.topics]


def as_pattern(topic: str | re.Pattern[str]) -> str:
    """Return a part of an alternation, with the flags of its own."""
    if isinstance(topic, str):
        return re.escape(topic)
    flags = "".join(letter for letter, flag in _INLINE_FLAGS.items() if topic.flags & flag)
    return f"(?{flags}:{topic.pattern})"


def _matches(handler: Handler, topic: str) -> bool:
    return any(one == topic if isinstance(one, str) else one.fullmatch(topic) for one in handler.topics)


def _check_disjoint(new: Handler, other: Handler) -> None:
    for first, second in ((new, other), (other, new)):
        for topic in first.topics:
            if isinstance(topic, str) and _matches(second, topic):
                _refuse_two(other, new, topic)
            if topic in second.topics:
                _refuse_two(other, new, _names([topic]))


def _refuse_two(first: Handler, second: Handler, topic: str) -> NoReturn:
    raise ConfigurationError(
        f"topic {topic} has two handlers, {first.name} and {second.name}: a record goes to one handler; call both "
        "functions from one handler, or run a second worker with another group_id"
    )


def checked_name(function: object, name: str | None) -> str:
    """Return a handler's name, by default that of its function without those around it.

    Raises: ConfigurationError: it is not a coroutine function, or the name is empty.
    """
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    given = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    name = name if name is not None else given.rpartition("<locals>.")[2]
    call = getattr(type(inner), "__call__", None)  # noqa: B004 - how it is declared
    if not (inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(call)):
        raise ConfigurationError(
            f"handler {name} is not a coroutine function: declare it `async def`, and run blocking code in a thread "
            "inside it"
        )
    if not name:
        raise ConfigurationError("a handler's name must not be empty")
    return name


def _checked_topics(handler: str, topics: Topics) -> tuple[str | re.Pattern[str], ...]:
    given: list[Any] = [topics]
    if isinstance(topics, Iterable) and not isinstance(topics, str):
        given = list(topics)
    if not given:
        raise ConfigurationError(f"handler {handler}: name at least one topic")
    for topic in given:
        if isinstance(topic, re.Pattern) and isinstance(topic.pattern, str):
            continue
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
            raise ConfigurationError(
                f"handler {handler}: {topic!r} is not a topic: a name has 1 to 249 of letters, digits, '.', '_' and "
                "'-'; a pattern is re.compile(...)"
            )
    return tuple(dict.fromkeys(given))


def _checked_concurrency(handler: str, given: object) -> int | None:
    if given is None or (type(given) is int and given >= 1):
        return given
    raise ConfigurationError(f"handler {handler}: concurrency must be a number of calls, at least 1, not {given!r}")


def _checked_type(handler: str, option: str, given: T | None, kind: type[T]) -> T | None:
    if given is None or isinstance(given, kind):
        return given
    raise ConfigurationError(f"handler {handler}: {option} must be a {kind.__name__}, not {given!r}")


def checked_timeout(handler: str, given: object) -> float | None:
    """Return the `timeout` of a handler, in seconds.

    Raises: ConfigurationError: it is not a number above 0.
    """
    if given is None or (type(given) in (int, float) and 0 < cast("float", given) < math.inf):
        return cast("float | None", given)
    raise ConfigurationError(f"handler {handler}: timeout must be seconds above 0, or None, not {given!r}")


def new_handler(
    function: HandlerFunction,
    topics: Topics,
    *,
    max_records: int | None = None,
    max_wait: float | None = None,
    **options: Unpack[SingleOptions],
) -> Handler:
    """Return a handler of records, or with `max_records` one of batches.

    Raises: ConfigurationError: as `Handler`.
    """
    if max_records is not None:
        return BatchHandler(function, topics, max_records=max_records, max_wait=max_wait, **options)
    handler = Handler(function, topics, **options)
    if max_wait is not None:
        raise ConfigurationError(f"handler {handler.name}: max_wait needs max_records=, which makes it receive batches")
    return handler


def _checked_bounds(handler: str, max_records: object, max_wait: object) -> BatchBounds:
    if type(max_records) is not int or max_records < 1:
        raise ConfigurationError(f"handler {handler}: max_records must be a number, at least 1, not {max_records!r}")
    if max_wait is None:
        return BatchBounds(max_records, MAX_WAIT)
    if type(max_wait) not in (int, float) or not 0 <= cast("float", max_wait) < math.inf:
        raise ConfigurationError(f"handler {handler}: max_wait must be seconds, at least 0, not {max_wait!r}")
    return BatchBounds(max_records, cast("float", max_wait))


def _names(topics: Iterable[str | re.Pattern[str]]) -> str:
    shown = [topic if isinstance(topic, str) else f"/{topic.pattern}/" for topic in topics]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "") or "none"
