"""Kafka's command-line tools, against the embedded broker and Kafka."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.interop.peers import OURS, Message, consume_all
from integration.kafka import JavaTools

Tools = Callable[[BrokerUnderTest], JavaTools]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_kafka_topics_creates_describes_grows_and_deletes(modern_broker: BrokerUnderTest, java: Tools) -> None:
    tools = java(modern_broker)
    name = f"java-{uuid.uuid4().hex[:10]}"
    tools.topics("--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=3600000")
    described = tools.topics("--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert "retention.ms=3600000" in described
    tools.topics("--alter", "--topic", name, "--partitions", "5")
    assert "PartitionCount: 5" in tools.topics("--describe", "--topic", name)
    assert name in tools.topics("--list").split()
    tools.topics("--delete", "--topic", name)
    assert name not in tools.topics("--list").split()


def test_the_console_consumer_prints_our_records(modern_broker: BrokerUnderTest, java: Tools) -> None:
    topic = modern_broker.create("console")
    sent: list[Message] = []
    for codec in CODECS:
        messages = [
            Message(b"key", f"plain {codec}".encode(), (("codec", codec.encode()), ("empty", b""))),
            Message(None, f"no key {codec}".encode()),
            Message(b"no value", None),
            Message(b"", b""),
            *(Message(f"k{number}".encode(), f"{codec} {number}".encode()) for number in range(50)),
        ]
        OURS.produce(modern_broker.bootstrap_servers, topic, 2, messages, codec)
        sent += messages
    shown = ("print.key=true", "print.headers=true", "print.offset=true", "print.timestamp=true", "null.literal=NULL")
    options = [word for setting in shown for word in ("--formatter-property", setting)]
    lines = java(modern_broker).console_consumer(topic, 2, len(sent), *options)
    assert lines == [printed(message, offset) for offset, message in enumerate(sent)]


def printed(message: Message, offset: int) -> str:
    """Return a record as the console consumer prints it with these properties."""
    headers = ",".join(f"{name}:{(value or b'').decode()}" for name, value in message.headers) or "NO_HEADERS"
    key = "NULL" if message.key is None else message.key.decode()
    value = "NULL" if message.value is None else message.value.decode()
    return "\t".join((f"CreateTime:{message.timestamp}", f"Offset:{offset}", headers, key, value))


def test_we_read_the_records_of_the_console_producer(modern_broker: BrokerUnderTest, java: Tools) -> None:
    topic = modern_broker.create("console")
    tools = java(modern_broker)
    expected: list[tuple[bytes | None, bytes | None]] = []
    for codec in ("none", "zstd"):
        rows = [(f"k{number}", f"{codec} {number}") for number in range(200)] + [
            ("only key", "NULL"),
            ("NULL", "no key"),
        ]
        parsing = ("--reader-property", "parse.key=true", "--reader-property", "null.marker=NULL")
        tools.console_producer(
            topic, (f"{key}\t{value}" for key, value in rows), "--compression-codec", codec, *parsing
        )
        expected += [
            (None if key == "NULL" else key.encode(), None if value == "NULL" else value.encode())
            for key, value in rows
        ]
    got = consume_all(modern_broker.bootstrap_servers, topic, PARTITIONS, len(expected))
    assert sorted(((message.key, message.value) for message in got), key=repr) == sorted(expected, key=repr)


def test_producer_performance_completes(modern_broker: BrokerUnderTest, java: Tools) -> None:
    topic = modern_broker.create("performance")
    count = 200_000
    figures = java(modern_broker).producer_performance(topic, count, 100, "acks=all", "batch.size=65536", "linger.ms=5")
    sent = re.match(r"(\d+) records sent, ([\d.]+) records/sec", figures)
    assert sent is not None, figures
    assert int(sent[1]) == count
    assert len(consume_all(modern_broker.bootstrap_servers, topic, PARTITIONS, count)) == count
