"""`python -m tests.mistakes` writes docs/mistakes.md: a hundred mistakes and their messages.

Each mistake is code as a user writes it. `tests/test_mistakes.py` compares the page with the
messages raised now, so a changed message shows up in review.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import socket
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import aiokwire
from aiokwire.broker import Broker

PAGE: Final = Path(__file__).parents[1] / "docs" / "mistakes.md"

# Sections of statements. They run in a coroutine with `broker`, an embedded broker with the topic "orders" of two
# partitions, and its `address`; `producer`, `consumer`, `member` and `admin` are started clients.
BUILDING: Final = """
Producer("localhost:9092", linger=5)
Producer("localhost:9092", **{"linger.ms": 5})
Producer("localhost:9092", retries=3)
Producer("localhost:9092", max_poll_records=100)
Producer("localhost:9092", security_protocol="SASL_SSL")
Producer("localhost:9092", ssl_cafile="ca.pem")
Producer("localhost:9092", security_protocol="TLS")
Producer("localhost:9092", sasl_plain_username="alice", sasl_plain_password="wonder")
Producer("localhost:9092", security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_plain_username="alice")
Producer("localhost:9092", security_protocol="SSL", ssl_truststore_type="JKS", ssl_truststore_location="trust.jks")
Producer("localhost:9092", loop=asyncio.get_running_loop())
Producer("localhost:9092", value_serialiser=json.dumps)
Producer({"bootstrap.servers": "localhost:9092"})
Producer(bootstrap_servers=9092)
Producer("localhost:port")
Producer("localhost:99999")
Producer("")
Producer("kafka://localhost:9092")
Producer(["localhost:9092", 9093])
Producer("localhost:9092", linger_ms="five")
Producer("localhost:9092", linger_ms=-1)
Producer("localhost:9092", acks=2)
Producer("localhost:9092", acks="quorum")
Producer("localhost:9092", acks=1, enable_idempotence=True)
Producer("localhost:9092", enable_idempotence="maybe")
Producer("localhost:9092", compression_type="lz5")
Producer("localhost:9092", compression_type="snappy", compression_level=3)
Producer("localhost:9092", batch_size="16k")
Producer("localhost:9092", buffer_memory=1000)
Producer("localhost:9092", delivery_timeout_ms=5, linger_ms=10)
Producer("localhost:9092", transactional_id="")
Producer("localhost:9092", transactional_id="billing", acks=1)
Producer("localhost:9092", max_in_flight_requests_per_connection=10, enable_idempotence=True)
Producer("localhost:9092", partitioner="sticky")
Producer("localhost:9092", value_serializer="json")
Producer("localhost:9092", config=aiokwire.ProducerConfig(), linger_ms=5)
Producer("localhost:9092", config=aiokwire.ConsumerConfig())
Consumer("localhost:9092", "orders")
Consumer("orders", "localhost:9092")
Consumer(["orders", "payments"], bootstrap_servers="localhost:9092")
Consumer({"bootstrap.servers": "localhost:9092", "group.id": "billing"})
Consumer("orders", topics=["payments"], bootstrap_servers="localhost:9092")
Consumer("orders payments", bootstrap_servers="localhost:9092")
Consumer("", bootstrap_servers="localhost:9092")
Consumer("orders", linger_ms=5)
Consumer("orders", auto_offset_reset="beginning")
Consumer("orders", auto_offset_reset=datetime.datetime(2026, 1, 31))
Consumer("orders", group_id="")
Consumer("orders", group_id=7)
Consumer("orders", group_instance_id="worker-1")
Consumer("orders", isolation_level="serializable")
Consumer("orders", enable_auto_commit="no")
Consumer("orders", group_id="g", partition_assignment_strategy="sticky-range")
Consumer("orders", group_id="g", partition_assignment_strategy=["range", "range"])
Consumer("orders", group_id="g", heartbeat_interval_ms=45000)
Consumer("orders", group_id="g", group_protocol="kip-848")
Consumer("orders", fetch_max_bytes=200 * 1024 * 1024)
Consumer("orders", value_deserializer="utf-8")
Consumer("orders", listener=print)
Consumer("orders", listener=aiokwire.RebalanceListener())
Consumer(re.compile("orders-.*"), bootstrap_servers="localhost:9092")
Consumer("orders", partitions=[TopicPartition("orders", 0)])
Consumer(partitions=["orders"])
Consumer(partitions=[TopicPartition("orders", -1)])
Admin("localhost:9092", group_id="ops")
Broker(log_segment_byte=1)
Broker(log_segment_bytes="big")
Broker(listen="localhost")
Broker(topics={"orders": 0})
Broker(topics={"or/ders": 1})
"""

LIFE: Final = """
await Producer(address).send("orders", b"paid")
Producer(address).submit_nowait("orders", b"paid")
await Consumer("orders", bootstrap_servers=address).getone()
await Admin(address).list_topics()
await Producer("127.0.0.1:1", bootstrap_timeout_ms=200).start()
await Producer("no-such-host.invalid:9092", bootstrap_timeout_ms=200).start()
await closed.send("orders", b"paid")
await closed.start()
with Producer(address): pass
for record in Consumer("orders", bootstrap_servers=address): pass
"""

PRODUCING: Final = """
await producer.send("orders", "paid")
await producer.send("orders", {"paid": True})
await producer.send("orders", b"paid", key="42")
await producer.send("orders", b"paid", key=42)
await producer.send(b"orders", b"paid")
await producer.send("or ders", b"paid")
await producer.send("", b"paid")
await producer.send("orders", b"paid", partition=7)
await producer.send("orders", b"paid", partition="0")
await producer.send("orders", b"paid", partition=-1)
await producer.send("orders", b"paid", timestamp=datetime.datetime(2026, 1, 31))
await producer.send("orders", b"paid", timestamp=1769860800.5)
await producer.send("orders", b"paid", headers={"trace": b"1"})
await producer.send("orders", b"paid", headers=[("trace", "1")])
await producer.send("orders", b"paid", headers=[("trace",)])
await producer.send("orders", b"paid", headers=iter([("trace", b"1")]))
await producer.send("orders", bytes(2_000_000))
await producer.send("no-such-topic", b"paid")
await producer.send_many("orders", b"paid")
await producer.send_many("orders", [("42", b"paid")])
await producer.send_many("orders", 3)
producer.transaction()
"""

CONSUMING: Final = """
await consumer.getone(timeout=0.01)
await consumer.getmany(TopicPartition("orders", 0))
await consumer.getmany(max_records=0)
await consumer.getmany(partitions=[TopicPartition("orders", 9)])
consumer.seek(TopicPartition("orders", 0), -5)
consumer.seek(TopicPartition("payments", 0), 5)
consumer.seek("orders", 5)
await consumer.commit()
await consumer.committed([TopicPartition("orders", 0)])
consumer.pause(TopicPartition("payments", 0))
await consumer.position(TopicPartition("payments", 0))
await consumer.offsets_for_times({TopicPartition("orders", 0): "yesterday"})
await consumer.subscribe()
await consumer.subscribe("orders", re.compile("pay.*"))
await consumer.assign([("orders", "0")])
consumer.streams(0)
await consumer.partitions_for_topic("no-such-topic", timeout=0.2)
await member.commit({TopicPartition("payments", 0): 5})
await member.commit({TopicPartition("orders", 0): -5})
await member.commit({"orders": 5})
await member.commit({TopicPartition("orders", 0): None})
"""

WORKING: Final = """
Worker("localhost:9092")
Worker("localhost:9092", group_id="billing", concurrency=0)
Worker("localhost:9092", group_id="billing", order="topic")
Worker("localhost:9092", group_id="billing", retry=3)
Worker("localhost:9092", group_id="billing", delivery="at-most-once", retry=RetryPolicy(attempts=3))
Worker("localhost:9092", group_id="billing", transactional_id="billing-1")
Worker("localhost:9092", group_id="billing", enable_auto_commit=True)
Worker("localhost:9092", group_id="billing", value_deserializer=json.loads)
Worker("localhost:9092", group_id="billing", dead_letter_topic="{topic}")
RetryPolicy(attempts=0)
RetryPolicy(then="drop")
Retry(after=-1)
worker.handler(bill)
worker.handler("orders")(print)
worker.handler("orders")(lambda order: None)
worker.handler()(bill)
worker.handler("or/ders")(bill)
worker.handler("orders", timeout=0)(bill)
worker.handler("orders")(untyped)
worker.handler("orders")(odd)
worker.handler("payments")(bill); worker.handler("payments")(refund)
worker.every(60)(bill)
worker.every(0)(tick)
worker.every(60, jitter=5)(tick)
worker.every(60, runs_on="leader")(tick)
worker.add_periodic(tick, "1 min")
await Worker(address, group_id="billing").start()
await Worker(address, group_id="billing").wait()
"""

ADMINISTRATING: Final = """
await admin.create_topic("orders")
await admin.create_topic("or/ders")
await admin.create_topic("payments", partitions=0)
await admin.create_topic("payments", replication_factor=3)
await admin.create_topic("payments", configs={"retention": 5})
await admin.create_topic("payments", configs={"retention.ms": "a week"})
(await admin.delete_topics(["no-such-topic"])).check()
(await admin.describe_topics(["no-such-topic"])).check()
await admin.describe_topics("orders")
await broker.start()
await Broker(listen=address).start()
"""

SECTIONS: Final = {
    "Building a client": BUILDING,
    "Starting, stopping and using it": LIFE,
    "Producing": PRODUCING,
    "Consuming": CONSUMING,
    "Handling": WORKING,
    "Administrating": ADMINISTRATING,
}


async def raised_by(statement: str, names: dict[str, Any]) -> BaseException | None:
    """Run one statement in its own coroutine and return the exception it raises."""
    source = "async def mistake():\n" + textwrap.indent(statement, "    ")
    scope = {**names}
    exec(compile(source, "<mistake>", "exec"), scope)
    try:
        await asyncio.wait_for(scope["mistake"](), 15)  # noqa: TID251 - a mistake that hangs must end
    except BaseException as error:
        return error
    return None


def in_print(text: str, address: str) -> str:
    """Return a message as one table cell, without the parts that differ between runs."""
    text = text.replace(address, "127.0.0.1:9092")
    text = re.sub(r"0x[0-9a-f]+", "0x...", text)
    text = re.sub(r"\d+\.\d{3} s\b", "N s", text)
    text = re.sub(r"asked for [\d.]+ s", "asked for N s", text)
    text = re.sub(r"\(\d+ attempts?\)", "(N attempts)", text)
    text = re.sub(r"tried \d+ times in [\d.]+ s", "tried N times in N s", text)
    return " ".join(text.split()).replace("|", "\\|")


@contextmanager
def own_names() -> Iterator[None]:
    """Resolve `no-such-host.invalid` without the network, whose resolver may take seconds."""
    loop_class = type(asyncio.get_running_loop())
    by_system = loop_class.getaddrinfo

    async def getaddrinfo(loop: Any, host: str, *args: Any, **options: Any) -> Any:
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return await by_system(loop, host, *args, **options)

    with mock.patch.object(loop_class, "getaddrinfo", getaddrinfo):
        yield


def _handlers() -> dict[str, Any]:
    """Return functions that are handlers, or nearly."""

    async def bill(order: str) -> None: ...

    async def refund(order: str) -> None: ...

    async def untyped(order): ...  # type: ignore[no-untyped-def]  # the mistake

    async def odd(order: socket.socket) -> None: ...

    async def tick() -> None: ...

    return {"bill": bill, "refund": refund, "untyped": untyped, "odd": odd, "tick": tick}


async def table() -> list[tuple[str, str, BaseException | None, str]]:
    """Return section, code, exception and printed message of each mistake."""
    found = []
    options: dict[str, Any] = {"delivery_timeout_ms": 1000, "unknown_topic_timeout_ms": 300}
    async with (
        Broker(topics={"orders": 2}, auto_create_topics=False) as broker,
        aiokwire.Producer(broker.bootstrap_servers, **options) as producer,
        aiokwire.Consumer("orders", bootstrap_servers=broker.bootstrap_servers) as consumer,
        aiokwire.Consumer("orders", bootstrap_servers=broker.bootstrap_servers, group_id="billing") as member,
        aiokwire.Admin(broker.bootstrap_servers) as admin,
    ):
        await member.assigned(timeout=10)
        address = broker.bootstrap_servers
        closed = aiokwire.Producer(address)
        await closed.start()
        await closed.close()
        names = {
            **{name: getattr(aiokwire, name) for name in dir(aiokwire)},
            "aiokwire": aiokwire, "asyncio": asyncio, "datetime": datetime, "json": json, "re": re,
            "Broker": Broker, "broker": broker, "address": address, "producer": producer, "consumer": consumer,
            "member": member, "admin": admin, "closed": closed,
            "worker": aiokwire.Worker(address, group_id="billing"), **_handlers(),
        }  # fmt: skip
        with own_names():
            for section, statements in SECTIONS.items():
                for statement in statements.strip().splitlines():
                    error = await raised_by(statement, names)
                    found.append((section, statement, error, in_print(str(error), address)))
    return found


def page(rows: list[tuple[str, str, BaseException | None, str]]) -> str:
    """Return the page as Markdown."""
    lines = [
        "# Mistakes and their messages",
        "",
        "Written by `python -m tests.mistakes` and compared by a test. `broker` is an embedded broker at",
        '`address` with the topic "orders" of two partitions; `consumer` reads it alone, `member` in the',
        'group "billing"; `closed` is a closed producer. `worker` has no handlers; `bill` and `refund` are',
        "handlers, `untyped` has no annotation, `odd` one that JSON does not have; `tick` has no argument.",
    ]
    section = ""
    for heading, statement, error, text in rows:
        if heading != section:
            section = heading
            lines += ["", f"## {heading}", "", "| mistake | error | message |", "|---|---|---|"]
        code = statement.replace("|", "\\|")
        lines.append(f"| `{code}` | {type(error).__name__} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(asyncio.run(table())))
