"""Transactions of other clients on the embedded broker; Kafka's tools check its files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from integration.conftest import BrokerUnderTest
from integration.embedded import EmbeddedProcess
from integration.kafka import JavaTools, dump_faults
from integration.kafka.metadata import create_by_asking

Tools = Callable[[BrokerUnderTest], JavaTools]

IN, OUT = "in", "out"
_SECONDS = 30.0
_TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """A broker with two topics of one partition each."""
    settings: dict[str, object] = {
        "num_partitions": 1,
        "transaction_state_log_num_partitions": 2,
        "offsets_topic_num_partitions": 2,
        "log_segment_bytes": 1_048_576,
    }
    with closing(EmbeddedProcess(tmp_path / "data", settings=settings)) as started:
        (tmp_path / "data").mkdir()
        started.start()
        for topic in (IN, OUT):
            create_by_asking(started.bootstrap_servers, topic, 1)
        yield started


def librdkafka(server: EmbeddedProcess, name: str = "rd") -> Producer:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "transactional.id": name, "log_level": 0})
    producer.init_transactions(_SECONDS)
    return producer


def committed(server: EmbeddedProcess, topic: str, count: int) -> list[bytes]:
    """Read `count` values with a read_committed consumer of librdkafka."""
    options = {
        "bootstrap.servers": server.bootstrap_servers,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 0,
    }
    with closing(Consumer(options)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        while True:
            message = consumer.poll(_SECONDS)
            assert message is not None, f"{len(values)} of {count} records were read"
            if message.error() is not None:
                assert len(values) == count, "the end of the partition"
                return values
            values.append(message.value() or b"")


def test_librdkafka_commits_aborts_and_is_fenced(server: EmbeddedProcess) -> None:
    producer = librdkafka(server)
    for number in range(6):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(OUT, b"%d-%d" % (number, part), partition=0)
        if number % 2:
            producer.flush(_SECONDS)
            producer.abort_transaction(_SECONDS)
        else:
            producer.commit_transaction(_SECONDS)
    newer = librdkafka(server)
    producer.begin_transaction()
    with pytest.raises(KafkaException, match="fenced"):  # noqa: PT012 - the first of the two that notices
        producer.produce(OUT, b"zombie", partition=0)
        producer.commit_transaction(_SECONDS)
    newer.begin_transaction()
    newer.produce(OUT, b"end", partition=0)
    newer.commit_transaction(_SECONDS)
    kept = [b"%d-%d" % (number, part) for number in (0, 2, 4) for part in range(3)]
    assert committed(server, OUT, len(kept) + 1) == [*kept, b"end"]


def test_librdkafka_commits_offsets_in_its_transactions(server: EmbeddedProcess) -> None:
    producer = librdkafka(server)
    options = {"bootstrap.servers": server.bootstrap_servers, "group.id": "g", "log_level": 0}
    with closing(Consumer(options)) as consumer:
        for offset, commit in ((5, True), (8, False)):
            producer.begin_transaction()
            positions = [TopicPartition(IN, 0, offset)]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _SECONDS)
            (producer.commit_transaction if commit else producer.abort_transaction)(_SECONDS)
        (found,) = consumer.committed([TopicPartition(IN, 0)], timeout=_SECONDS)
        assert found.offset == 5


def test_aiokafka_commits_and_aborts(server: EmbeddedProcess) -> None:
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # it has no types
    from aiokafka import TopicPartition as Partition

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=server.bootstrap_servers, transactional_id="aio")
        await producer.start()
        try:
            for number in range(4):
                await producer.begin_transaction()
                await producer.send_and_wait(OUT, b"%d" % number, partition=0)
                await producer.send_offsets_to_transaction({Partition(IN, 0): number}, "aio-group")
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
        finally:
            await producer.stop()

    asyncio.run(run())
    assert committed(server, OUT, 2) == [b"0", b"2"]


def test_a_transaction_continues_after_the_broker_was_killed(server: EmbeddedProcess) -> None:
    producer = librdkafka(server)
    for number in range(3):
        producer.begin_transaction()
        producer.produce(OUT, b"before %d" % number, partition=0)
        producer.flush(_SECONDS)
        server.kill()
        server.start()
        producer.produce(OUT, b"after %d" % number, partition=0)
        producer.commit_transaction(_SECONDS)
    values = [b"%s %d" % (when, number) for number in range(3) for when in (b"before", b"after")]
    assert committed(server, OUT, len(values)) == values


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_javas_copier_copies_each_record_once_and_the_stored_state_is_valid(
    server: EmbeddedProcess, kill: bool
) -> None:
    """Newer clients (KIP-890) with random aborts, and offsets in the transaction.

    Every file is checked.
    """
    source = Producer({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    values = [b"%d" % number for number in range(400)]
    for value in values:
        source.produce(IN, value, partition=0)
    assert source.flush(_SECONDS) == 0
    tools = JavaTools(server.bootstrap_servers)
    named = ("--transactional-id", "copier", "--consumer-group", "copiers", "--broker-list", server.bootstrap_servers)
    topics = ("--input-topic", IN, "--input-partition", "0", "--output-topic", OUT)
    amount = ("--transaction-size", "20", "--max-messages", str(len(values)), "--enable-random-aborts")
    printed = tools.run(f"{_TOOLS}.TransactionalMessageCopier", *named, *topics, *amount).checked().stdout
    assert json.loads(printed.splitlines()[-1])["totalProcessed"] == len(values)
    assert committed(server, OUT, len(values)) == values
    # The copier may abort before it sends; this transaction surely leaves records and a marker.
    aborter = librdkafka(server, "aborter")
    aborter.begin_transaction()
    aborter.produce(OUT, b"aborted", partition=0)
    assert aborter.flush(_SECONDS) == 0
    aborter.abort_transaction(_SECONDS)
    if kill:
        server.kill()
    else:
        server.stop()
    for topic, decoder in (
        (OUT, "--verify-index-only"),
        ("__transaction_state", "--transaction-log-decoder"),
        ("__consumer_offsets", "--offsets-decoder"),
    ):
        dumped = tools.dump([path for path in server.files_of(topic) if path.stat().st_size], decoder)
        assert dump_faults(dumped) == []
        if topic == OUT and not kill:
            assert "version: 0 producerId: " in dumped, "the index of aborted transactions"
        if topic == "__transaction_state":
            assert '"transactionStatus":4,"transactionPartitions":[]' in dumped
            assert '"clientTransactionVersion":2' in dumped
        if topic == "__consumer_offsets":
            assert f'"offset":{len(values)}' in dumped


def test_kafka_transactions_finds_and_aborts_a_hanging_transaction(server: EmbeddedProcess) -> None:
    producer = librdkafka(server, "hanging")
    producer.begin_transaction()
    producer.produce(OUT, b"open", partition=0)
    producer.flush(_SECONDS)
    tools = JavaTools(server.bootstrap_servers)

    def ask(*arguments: str) -> str:
        main = f"{_TOOLS}.TransactionsCommand"
        return tools.run(main, "--bootstrap-server", server.bootstrap_servers, *arguments).checked().stdout

    assert "Ongoing" in ask("list")
    assert "out-0" in ask("describe", "--transactional-id", "hanging")
    assert ask("describe-producers", "--topic", OUT, "--partition", "0").splitlines()[1].split()[-1] == "0"
    ask("abort", "--topic", OUT, "--partition", "0", "--start-offset", "0")
    assert "None" in ask("describe-producers", "--topic", OUT, "--partition", "0")
    assert committed(server, OUT, 0) == []
