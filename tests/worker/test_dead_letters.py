"""A dead letter is the record itself with its origin and its failure in headers."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from aiokwire import DeserializationError, Producer, Record
from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, ConfigurationError, RecordRejected
from aiokwire.protocol import ApiKey
from aiokwire.worker import DeadLetters
from aiokwire.worker.dead_letters import (
    MESSAGE_LIMIT,
    NAMES,
    STACKTRACE_LIMIT,
    LetterHeader,
    Origin,
    class_name,
    error_headers,
    origin_of,
    parsed_origin,
    without_error_headers,
)

RECORD = Record("orders", 3, 42, 1000, b"7", b"\xffraw", (("trace", b"x"), ("trace", None)))


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"orders": 4, "orders.dlq": 1}, auto_create_topics=False) as broker:
        yield broker


@pytest_asyncio.fixture
async def producer(broker: Broker) -> AsyncIterator[Producer[bytes, bytes]]:
    async with Producer(broker.bootstrap_servers) as producer:
        yield producer


def failed(error: BaseException) -> BaseException:
    """Return an error with a traceback."""
    try:
        raise error
    except BaseException as raised:
        return raised


def headers_of(record: Record, error: BaseException, group_id: str | None = None) -> dict[str, Any]:
    found = error_headers(record, error, attempts=3, handler="paid", group_id=group_id)
    return {name: (value or b"").decode() for name, value in found}


async def test_a_dead_letter_keeps_the_record_and_names_its_origin_and_failure(
    broker: Broker, producer: Producer[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    error = failed(ValueError("no\ncustomer"))
    with caplog.at_level(logging.WARNING, "aiokwire.worker"):
        metadata = await DeadLetters(producer, group_id="billing").send(RECORD, error, attempts=5, handler="paid")
    assert (metadata.topic, metadata.partition, metadata.offset) == ("orders.dlq", 0, 0)
    (letter,) = broker.records("orders.dlq")
    assert (letter.key, letter.value, letter.headers[:2]) == (RECORD.key, RECORD.value, RECORD.headers)
    assert dict(letter.headers[2:]) == {
        "__connect.errors.topic": b"orders",
        "__connect.errors.partition": b"3",
        "__connect.errors.offset": b"42",
        "__connect.errors.stage": b"TASK_PUT",
        "__connect.errors.exception.class.name": b"ValueError",
        "__connect.errors.exception.message": b"no\ncustomer",
        "__connect.errors.exception.stacktrace": "".join(traceback.format_exception(error)).encode(),
        "aiokwire.errors.timestamp": b"1000",
        "aiokwire.errors.handler": b"paid",
        "aiokwire.errors.attempts": b"5",
        "aiokwire.errors.group": b"billing",
    }
    assert letter.timestamp > 1000, "retention must not delete the dead letter of an old record at once"
    assert caplog.messages == [
        "orders[3] at offset 42: handler paid failed after 5 attempt(s), the record is now in orders.dlq[0] at "
        "offset 0: ValueError: no\\ncustomer"
    ]


async def test_a_tombstone_without_a_key_can_be_a_dead_letter(broker: Broker, producer: Producer[bytes, bytes]) -> None:
    await DeadLetters(producer).send(Record("orders", 0, 0), KeyError("x"), attempts=1, handler="paid")
    (letter,) = broker.records("orders.dlq")
    assert (letter.key, letter.value) == (None, None)
    assert "aiokwire.errors.group" not in dict(letter.headers)


async def test_the_topic_is_a_template(broker: Broker, producer: Producer[bytes, bytes]) -> None:
    await broker.create_topic("failed.billing.orders", 1)
    letters = DeadLetters(producer, "failed.{group}.{topic}", group_id="billing")
    assert letters.topic_for("orders") == "failed.billing.orders"
    assert [name for name in ("failed.billing.a", "failed.billing.", "orders") if letters.topics.fullmatch(name)] == [
        "failed.billing.a"
    ]
    await letters.send(RECORD, ValueError("x"), attempts=1, handler="paid")
    assert len(broker.records("failed.billing.orders")) == 1


@pytest.mark.parametrize("topic", ["", "{topic}", "a b", "{name}.dlq", "{topic", "{group}.dlq", None, "a/b"])
def test_what_cannot_be_a_topic_is_refused(topic: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a topic for dead letters|the worker has no group_id"):
        DeadLetters(Producer("localhost:1"), topic)


async def test_a_dead_letter_that_is_too_large_is_sent_without_its_stacktrace(
    broker: Broker, producer: Producer[bytes, bytes]
) -> None:
    refused = broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.MESSAGE_TOO_LARGE)
    await DeadLetters(producer).send(RECORD, failed(ValueError("long")), attempts=1, handler="paid")
    (letter,) = broker.records("orders.dlq")
    assert refused.hits == 1
    assert dict(letter.headers)["__connect.errors.exception.class.name"] == b"ValueError"
    assert (
        not {"__connect.errors.exception.stacktrace", "__connect.errors.exception.message"}
        & dict(letter.headers).keys()
    )


async def test_a_dead_letter_that_brokers_refuse_is_an_error(broker: Broker, producer: Producer[bytes, bytes]) -> None:
    letters = DeadLetters(producer)
    broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq", times=2).error(ErrorCode.MESSAGE_TOO_LARGE)
    with pytest.raises(RecordRejected):
        await letters.send(RECORD, ValueError("x"), attempts=1, handler="paid")
    broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.INVALID_TIMESTAMP)
    with pytest.raises(RecordRejected):
        await letters.send(RECORD, ValueError("x"), attempts=1, handler="paid")
    broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(AuthorizationError):
        await letters.send(RECORD, ValueError("x"), attempts=1, handler="paid")
    assert not broker.records("orders.dlq")


def test_the_headers_of_an_earlier_failure_are_replaced() -> None:
    first = Record(
        "orders", 3, 42, 1000, headers=error_headers(RECORD, ValueError("1"), attempts=1, handler="a", group_id="g")
    )
    second = error_headers(first, LookupError("2"), attempts=2, handler="b", group_id=None)
    names = [name for name, _ in second]
    absent = {LetterHeader.NOT_BEFORE, LetterHeader.ROUND, LetterHeader.GROUP}
    assert names == ["trace", "trace", *sorted(NAMES - absent, key=names.index)]
    assert dict(second)["aiokwire.errors.handler"] == b"b"
    assert without_error_headers(second) == list(RECORD.headers)


def test_long_messages_lose_their_end_and_long_stacktraces_their_start() -> None:
    def recurse(depth: int) -> None:
        if depth:
            return recurse_again(depth)
        raise ValueError("ü" * MESSAGE_LIMIT)

    def recurse_again(depth: int) -> None:
        recurse(depth - 1)

    with pytest.raises(ValueError, match="ü") as failure:
        recurse(150)
    found = error_headers(RECORD, failure.value, attempts=1, handler="paid", group_id=None)
    message, stacktrace = (
        dict(found)[f"__connect.errors.exception.{part}"] or b"" for part in ("message", "stacktrace")
    )
    assert MESSAGE_LIMIT - 4 <= len(message) <= MESSAGE_LIMIT
    assert message.decode().startswith("üü")
    assert message.endswith(b"...")
    assert STACKTRACE_LIMIT - 4 <= len(stacktrace) <= STACKTRACE_LIMIT
    assert stacktrace.startswith(b"...")
    assert stacktrace.decode().endswith("üü\n")


class Broken(Exception):
    def __str__(self) -> str:
        raise RuntimeError("again")


def test_errors_of_any_kind_have_a_class_and_a_message() -> None:
    assert headers_of(RECORD, Broken())["__connect.errors.exception.message"] == "<str() raised RuntimeError>"
    assert headers_of(RECORD, ValueError("\ud800"))["__connect.errors.exception.message"] == r"\ud800"
    assert class_name(Broken()) == f"{__name__}.Broken"
    assert class_name(DeserializationError("x", record=RECORD)) == "aiokwire.DeserializationError"
    stage = headers_of(RECORD, DeserializationError("x", record=RECORD))["__connect.errors.stage"]
    assert stage == "VALUE_CONVERTER"


def test_the_origin_of_a_retried_record_is_in_its_headers() -> None:
    headers = error_headers(RECORD, ValueError("x"), attempts=1, handler="paid", group_id=None)
    replayed = Record("orders", 1, 77, 5000, headers=headers)
    retried = Record("billing.orders.retry.5s", 0, 8, 5000, headers=[*headers, (LetterHeader.NOT_BEFORE, b"6000")])
    assert origin_of(RECORD) == Origin("orders", 3, 42, 1000)
    assert origin_of(replayed) == Origin("orders", 1, 77, 5000), "a replayed record has its own place"
    assert origin_of(retried) == Origin("orders", 3, 42, 1000)


@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        ({"topic": b"a", "partition": b"1", "offset": b"2"}, Origin("a", 1, 2, -1)),
        ({"topic": b"a", "partition": b"1"}, None),
        ({"topic": b"a", "partition": b"x", "offset": b"2"}, None),
        ({"topic": None, "partition": b"1", "offset": b"2"}, None),
        ({"topic": b"\xff", "partition": b"1", "offset": b"2"}, None),
        ({}, None),
    ],
)
def test_the_origin_is_read_from_headers_that_connect_wrote(headers: Any, origin: Origin | None) -> None:
    assert parsed_origin({f"__connect.errors.{name}": value for name, value in headers.items()}) == origin
