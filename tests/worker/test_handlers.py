"""A handler receives what its annotations ask for; a mistake is found when it is added."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from aiokwire import ConsumerRecord, DeserializationError, DeserializedRecord, Headers, Record
from aiokwire.errors import ConfigurationError
from aiokwire.worker import Context, Handler, HandlerRegistry, Key
from aiokwire.worker.signatures import Deserializers, arguments_of

if TYPE_CHECKING:
    from decimal import Decimal as Hidden

RECORD = Record("orders", 1, 42, 1000, b"7", b'{"number": 7}', (("trace", b"x"),))
CONTEXT: Any = object()


@dataclasses.dataclass
class Order:
    number: int


class Calls:
    """Keeps the arguments of each call."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []

    async def method(self, order: Order, context: Context) -> None:
        self.arguments = [order, context]

    async def __call__(self, key: Annotated[int, Key], /, *, headers: Headers) -> None:
        self.arguments = [key, headers]


async def test_arguments_are_filled_by_their_annotations() -> None:
    received: list[Any] = []

    async def paid(
        order: Order, context: Context, headers: Headers, key: Annotated[str, Key], *, record: ConsumerRecord[str, Any]
    ) -> None:
        received.extend([order, context, headers, key, record])

    await Handler(paid, "orders")(RECORD, CONTEXT)
    assert received[:4] == [Order(7), CONTEXT, (("trace", b"x"),), "7"]
    assert received[4] == DeserializedRecord(RECORD, "7", {"number": 7})


@pytest.mark.parametrize("annotation", [ConsumerRecord, Record, ConsumerRecord[bytes, bytes]])
async def test_a_record_without_types_has_bytes(annotation: Any) -> None:
    received: list[Any] = []

    async def paid(record: Any) -> None:
        received.append(record)

    paid.__annotations__["record"] = annotation
    await Handler(paid, "orders")(RECORD, CONTEXT)
    assert (received[0].key, received[0].value, received[0].offset) == (RECORD.key, RECORD.value, 42)


async def test_methods_and_callable_objects_are_handlers() -> None:
    calls = Calls()
    bound, called = Handler(calls.method, "orders"), Handler(calls, "orders")
    assert (bound.name, called.name) == ("Calls.method", "Calls")
    await bound(RECORD, CONTEXT)
    assert calls.arguments == [Order(7), CONTEXT]
    await called(RECORD, CONTEXT)
    assert calls.arguments == [7, (("trace", b"x"),)]


async def test_functions_with_bound_arguments_are_handlers() -> None:
    received: list[Any] = []

    async def paid(table: list[Any], order: Order, *, unit: str = "EUR", context: Context) -> None:
        table.extend([order, unit, context])

    handler = Handler(functools.partial(functools.partial(paid, received), unit="USD"), "orders")
    assert handler.name == "paid"
    await handler(RECORD, CONTEXT)
    assert received == [Order(7), "USD", CONTEXT]


async def test_a_handler_may_ignore_its_record() -> None:
    calls = []

    async def tick() -> None:
        calls.append(1)

    await Handler(tick, "orders")(RECORD, CONTEXT)
    assert calls == [1]


async def test_a_decorated_function_keeps_its_arguments() -> None:
    received: list[Any] = []

    async def paid(order: Order) -> None:
        received.append(order)

    @functools.wraps(paid)
    async def traced(*arguments: Any, **named: Any) -> None:
        await paid(*arguments, **named)

    await Handler(traced, "orders")(RECORD, CONTEXT)
    assert received == [Order(7)]


async def test_a_value_that_cannot_be_decoded_is_refused_with_its_place_and_its_bytes() -> None:
    async def paid(order: Order) -> None:
        raise AssertionError("it is not called")

    with pytest.raises(DeserializationError) as failure:
        await Handler(paid, "orders")(Record("orders", 1, 42, value=b'{"number": "x"}'), CONTEXT)
    assert str(failure.value) == (
        "orders[1] at offset 42: handler paid cannot decode the value: Mismatch: number: must be an integer, "
        "not a string"
    )
    assert failure.value.record.value == b'{"number": "x"}'
    assert isinstance(failure.value.__cause__, ValueError)


async def test_null_needs_an_annotation_that_accepts_it() -> None:
    received: list[Any] = []
    deleted = Record("orders", 1, 42, key=b"7")

    async def paid(order: Order) -> None:
        raise AssertionError("it is not called")

    async def deleted_or_paid(order: Order | None, record: ConsumerRecord[int, Order]) -> None:
        received.extend([order, record.value, record.key])

    with pytest.raises(
        DeserializationError, match=r"value is null, but handler paid expects Order; annotate it as `Ord"
    ):
        await Handler(paid, "orders")(deleted, CONTEXT)
    await Handler(deleted_or_paid, "orders")(deleted, CONTEXT)
    assert received == [None, None, 7]


async def test_explicit_deserializers_replace_the_decoding_by_annotation() -> None:
    received: list[Any] = []

    async def value(data: bytes) -> list[bytes]:
        return [data]

    async def paid(order, record: ConsumerRecord, key: Annotated[int, Key]) -> None:  # type: ignore[no-untyped-def,type-arg]
        received.extend([order, record.value, record.key, key])

    handler = Handler(paid, "orders", key_deserializer=lambda data: data * 2, value_deserializer=value)
    await handler(RECORD, CONTEXT)
    assert received == [[RECORD.value], [RECORD.value], b"77", b"77"]
    received.clear()
    await handler(Record("orders", 1, 43), CONTEXT)
    assert received == [None] * 4


async def test_the_error_of_an_explicit_deserializer_names_the_handler() -> None:
    async def paid(order: Order) -> None:
        raise AssertionError("it is not called")

    async def value(data: bytes) -> Order:
        raise LookupError("schema 7 is unknown")

    with pytest.raises(
        DeserializationError, match="handler paid cannot decode the value: LookupError: schema 7 is unk"
    ):
        await Handler(paid, "orders", value_deserializer=value)(RECORD, CONTEXT)


async def test_errors_of_the_function_are_its_own() -> None:
    async def paid(order: Order) -> None:
        raise LookupError("no such customer")

    with pytest.raises(LookupError, match="no such customer"):
        await Handler(paid, "orders")(RECORD, CONTEXT)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def not_async(order: Order) -> None: ...


async def without_annotation(order) -> None: ...  # type: ignore[no-untyped-def]


async def with_a_default(order: Order, retries: int = 3) -> None: ...


async def with_two_values(order: Order, other: Order) -> None: ...


async def with_stars(*orders: Order) -> None: ...


async def with_an_opaque_type(order: re.Pattern[str]) -> None: ...


async def with_a_hidden_type(order: Hidden) -> None: ...


async def with_a_deserialized_record(record: DeserializedRecord[str, str]) -> None: ...


async def with_a_wrong_key(key: Annotated[set[int], Key]) -> None: ...


async def generator(order: Order):  # type: ignore[no-untyped-def]
    yield order


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (not_async, "handler not_async is not a coroutine function: declare it `async def`"),
        (generator, "handler generator is not a coroutine function"),
        (Order, "handler Order is not a coroutine function"),
        (without_annotation, "handler without_annotation: argument 'order' has no annotation: annotate it as"),
        (with_a_default, "argument 'retries' has a default, which would never be used: remove it, or bind"),
        (with_two_values, "argument 'other' would be a second value beside 'order': keep one"),
        (with_stars, "argument '*orders' is not filled: annotate arguments one by one"),
        (with_an_opaque_type, "argument 'order' cannot be filled: re.Pattern[str] cannot be decoded from JSON: use"),
        (with_a_hidden_type, "annotations cannot be evaluated: name 'Hidden' is not defined; define or import"),
        (with_a_deserialized_record, "argument 'record' is a DeserializedRecord, whose types are unknown at run time"),
        (with_a_wrong_key, "argument 'key' cannot be filled: set[int] cannot be decoded from JSON"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_when_it_is_added(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as failure:
        HandlerRegistry().add("orders", function)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be a number of calls, at least 1, not 0"),
        ({"concurrency": True}, "concurrency must be a number of calls"),
        ({"timeout": 0}, "timeout must be seconds above 0, or None, not 0"),
        ({"timeout": float("inf")}, "timeout must be seconds above 0"),
        ({"timeout": "30"}, "timeout must be seconds above 0"),
        ({"name": ""}, "name must not be empty"),
    ],
)
def test_a_bound_out_of_range_is_refused(options: Any, message: str) -> None:
    async def paid(order: Order) -> None: ...

    with pytest.raises(ConfigurationError, match=message):
        Handler(paid, "orders", **options)


@pytest.mark.parametrize("topics", ["", "a b", [], ["orders", 5], 5, re.compile(rb"x")])
def test_an_invalid_topic_is_refused(topics: Any) -> None:
    async def paid(order: Order) -> None: ...

    with pytest.raises(ConfigurationError, match=r"handler paid: (name at least one topic|.* is not a topic)"):
        Handler(paid, topics)


# --- the registry -----------------------------------------------------------------------------------------------------


async def first(order: Order) -> None: ...


async def second(order: Order) -> None: ...


def test_a_topic_has_the_handler_that_names_it() -> None:
    registry = HandlerRegistry()
    one = registry.add(["orders", "returns"], first, concurrency=4, timeout=30)
    two = registry.add("invoices", second)
    assert registry.find("returns") is registry.find("orders") is one
    assert registry.find("invoices") is two
    assert (registry.topics, registry.pattern) == (("orders", "returns", "invoices"), None)
    assert (one.concurrency, one.timeout, len(registry), list(registry)) == (4, 30, 2, [one, two])
    assert repr(one) == "<Handler first of orders, returns>"


def test_a_pattern_selects_topics_by_their_whole_name() -> None:
    registry = HandlerRegistry()
    one = registry.add(re.compile("orders-.*", re.IGNORECASE), first)
    two = registry.add("invoices.v1", second)
    assert registry.find("ORDERS-de") is one
    assert registry.find("invoices.v1") is two
    assert registry.pattern is not None
    matched = [
        name for name in ("orders-x", "invoices.v1", "invoices-v1", "my-orders-x") if registry.pattern.fullmatch(name)
    ]
    assert matched == ["orders-x", "invoices.v1"]
    with pytest.raises(
        ConfigurationError, match=r"topic other has no handler; topics with one: /orders-\.\*/, invoices"
    ):
        registry.find("other")


@pytest.mark.parametrize(
    ("topics", "others"),
    [
        ("orders", "orders"),
        (["a", "orders"], ["orders", "b"]),
        ("orders", re.compile("ord.*")),
        (re.compile("ord.*"), "orders"),
        (re.compile("x"), re.compile("x")),
    ],
)
def test_two_handlers_for_a_topic_are_refused(topics: Any, others: Any) -> None:
    registry = HandlerRegistry()
    registry.add(topics, first)
    with pytest.raises(ConfigurationError, match=r"topic .* has two handlers, first and second: a record goes to one"):
        registry.add(others, second)
    assert len(registry) == 1


def test_a_topic_that_two_patterns_match_is_refused_when_it_is_found() -> None:
    registry = HandlerRegistry()
    registry.add(re.compile("orders-.*"), first)
    registry.add(re.compile(".*-de"), second)
    assert registry.find("orders-at").name == "first"
    with pytest.raises(ConfigurationError, match="topic orders-de has two handlers, first and second"):
        registry.find("orders-de")


def test_two_handlers_with_one_name_are_refused() -> None:
    registry = HandlerRegistry()
    registry.add("orders", first)
    with pytest.raises(ConfigurationError, match="two handlers are named first: give one of them another name="):
        registry.add("returns", first)
    assert registry.add("returns", first, name="returned").name == "returned"


def test_every_kind_of_parameter_is_filled_as_python_binds_it() -> None:
    async def paid(order: Order, /, context: Context, *, headers: Headers) -> None: ...

    arguments = arguments_of(paid, "paid", Deserializers())
    bound = inspect.signature(paid).bind(*arguments.positional, **arguments.named)
    assert list(bound.arguments) == ["order", "context", "headers"]
