"""Kafka's own consumers and group tools, in groups of the embedded broker, with both protocols."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration.embedded import EmbeddedProcess
from integration.interop.verifiable import VerifiableConsumer, until
from integration.kafka import JavaTools, dump_faults
from integration.kafka.metadata import create_by_asking

TOPIC, PARTITIONS, RECORDS = "in", 4, 400
PROTOCOLS = ("classic", "consumer")
_TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """A broker with a topic of four partitions, each with records."""
    settings: dict[str, object] = {
        "num_partitions": PARTITIONS,
        "offsets_topic_num_partitions": 2,
        "group_consumer_heartbeat_interval_ms": 500,
        "group_consumer_min_heartbeat_interval_ms": 500,
    }
    with closing(EmbeddedProcess(tmp_path / "data", settings=settings)) as started:
        (tmp_path / "data").mkdir()
        started.start()
        create_by_asking(started.bootstrap_servers, TOPIC, PARTITIONS)
        producer = Producer({"bootstrap.servers": started.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS):
            producer.produce(TOPIC, b"value %d" % number, partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        yield started


def groups(server: EmbeddedProcess, *arguments: str) -> str:
    """Run kafka-consumer-groups."""
    main = f"{_TOOLS}.consumer.group.ConsumerGroupCommand"
    done = (
        JavaTools(server.bootstrap_servers)
        .run(main, "--bootstrap-server", server.bootstrap_servers, *arguments)
        .checked()
    )
    assert "Error" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout


def rows(printed: str) -> list[list[str]]:
    """Return the lines of a table without its header."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    heads = next(index for index, line in enumerate(lines) if line[0] == "GROUP")
    return lines[heads + 1 :]


def consume(server: EmbeddedProcess, group: str, protocol: str, count: int) -> list[str]:
    """Read `count` records with the console consumer, as a member of a group."""
    main = f"{_TOOLS}.consumer.ConsoleConsumer"
    where = ("--bootstrap-server", server.bootstrap_servers, "--topic", TOPIC, "--group", group, "--from-beginning")
    what = ("--max-messages", str(count), "--timeout-ms", "30000", "--command-property", f"group.protocol={protocol}")
    return JavaTools(server.bootstrap_servers).run(main, *where, *what).checked().stdout.splitlines()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_console_consumer_resumes_at_the_committed_offsets(server: EmbeddedProcess, protocol: str) -> None:
    lines = consume(server, "console", protocol, 150)
    server.kill()
    server.start()
    lines += consume(server, "console", protocol, RECORDS - 150)
    assert sorted(lines) == sorted(f"value {number}" for number in range(RECORDS))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tool_describes_resets_and_deletes_a_group(server: EmbeddedProcess, protocol: str) -> None:
    assert len(consume(server, "g", protocol, RECORDS)) == RECORDS
    assert groups(server, "--list").split() == ["g"]
    state = groups(server, "--list", "--state", "--type")
    assert re.search(rf"^g\s+{protocol.title()}\s+Empty\s*$", state, re.MULTILINE), state
    assert "g" in groups(server, "--list", "--state", "Empty").split()
    assert "g" not in groups(server, "--list", "--state", "Stable").split()
    described = rows(groups(server, "--describe", "--group", "g"))
    assert sorted((row[1], row[2], row[3], row[4], row[5]) for row in described) == [
        (TOPIC, str(index), "100", "100", "0") for index in range(PARTITIONS)
    ]
    groups(server, "--reset-offsets", "--group", "g", "--topic", f"{TOPIC}:1", "--to-offset", "40", "--execute")
    described = rows(groups(server, "--describe", "--group", "g", "--offsets"))
    assert {row[2]: row[5] for row in described} == {"0": "0", "1": "60", "2": "0", "3": "0"}
    groups(server, "--delete-offsets", "--group", "g", "--topic", f"{TOPIC}:2")
    assert sorted(row[2] for row in rows(groups(server, "--describe", "--group", "g"))) == ["0", "1", "3"]
    assert "successful" in groups(server, "--delete", "--group", "g")
    assert groups(server, "--list").split() == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_members_share_the_partitions_and_take_over(server: EmbeddedProcess, protocol: str, static: bool) -> None:
    def start(name: str) -> VerifiableConsumer:
        options = ["--group-protocol", protocol]
        if static:
            options += ["--group-instance-id", name]
        if protocol == "classic":
            options += ["--session-timeout", "6000"]
        return VerifiableConsumer(server.bootstrap_servers, TOPIC, "v", *options)

    every = set(range(PARTITIONS))
    with ExitStack() as stack:
        first = start("a")
        stack.callback(first.kill)
        until(lambda: first.owned == every and first.consumed == RECORDS, "alone", first)
        second = start("b")
        stack.callback(second.kill)

        def shared() -> bool:
            return len(first.owned) == len(second.owned) == 2 and first.owned | second.owned == every

        until(shared, "together", first, second)
        members = rows(groups(server, "--describe", "--group", "v", "--members", "--verbose"))
        assert len(members) == 2
        state = groups(server, "--describe", "--group", "v", "--state")
        assert re.search(r"Stable\s+2\s*$", state.strip()), state
        busy = JavaTools(server.bootstrap_servers).run(
            f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
            "--bootstrap-server", server.bootstrap_servers, "--delete", "--group", "v",
        )  # fmt: skip
        assert "not empty" in busy.stdout + busy.stderr
        if static:
            mine = set(second.owned)
            second.stop()  # it rejoins before its session expires
            second = start("b")
            stack.callback(second.kill)
            until(lambda: second.owned == mine, "back again", second)
            assert first.owned == every - mine
        second.stop()
        if not static:
            until(lambda: first.owned == every, "alone again", first)
            first.stop()


def test_the_consumer_benchmark_completes(server: EmbeddedProcess) -> None:
    for protocol in PROTOCOLS:
        options = ("--topic", TOPIC, "--group", f"perf-{protocol}", "--num-records", str(RECORDS))
        where = ("--bootstrap-server", server.bootstrap_servers, "--command-property", f"group.protocol={protocol}")
        done = JavaTools(server.bootstrap_servers).run(f"{_TOOLS}.ConsumerPerformance", *where, *options).checked()
        figures = done.stdout.strip().splitlines()[-1].split(",")
        assert int(figures[4]) == RECORDS


def test_javas_copier_commits_offsets_as_a_member_of_a_group(server: EmbeddedProcess) -> None:
    """The copier commits offsets in transactions, fenced by the group's generation (KIP-447)."""
    create_by_asking(server.bootstrap_servers, "out", PARTITIONS)
    named = ("--transactional-id", "tx", "--consumer-group", "g", "--group-mode", "--use-group-metadata")
    topics = ("--input-topic", TOPIC, "--input-partition", "-1", "--output-topic", "out")
    amount = ("--broker-list", server.bootstrap_servers, "--transaction-size", "20", "--max-messages", str(RECORDS))
    tool = f"{_TOOLS}.TransactionalMessageCopier"
    done = JavaTools(server.bootstrap_servers).run(tool, *named, *topics, *amount).checked()
    assert json.loads(done.stdout.splitlines()[-1])["totalProcessed"] == RECORDS
    assert [row[3] for row in rows(groups(server, "--describe", "--group", "g"))] == ["100"] * PARTITIONS


def test_an_empty_group_can_change_its_protocol(server: EmbeddedProcess) -> None:
    for protocol, count in (("classic", 100), ("consumer", 100), ("classic", 200)):
        assert len(consume(server, "both", protocol, count)) == count
    described = rows(groups(server, "--describe", "--group", "both"))
    assert [row[3] for row in described] == ["100"] * PARTITIONS


def test_kafkas_tool_reads_the_stored_records_of_groups(server: EmbeddedProcess) -> None:
    tools = JavaTools(server.bootstrap_servers)
    for protocol in PROTOCOLS:
        consumer = VerifiableConsumer(server.bootstrap_servers, TOPIC, protocol, "--group-protocol", protocol)
        try:
            until(lambda one=consumer: one.consumed == RECORDS, "consumed", consumer)  # type: ignore[misc]  # bound now
        finally:
            consumer.stop()
    server.stop()
    files = [path for path in server.files_of("__consumer_offsets") if path.stat().st_size]
    dumped = tools.dump(files, "--offsets-decoder")
    assert dump_faults(dumped) == []
    for kind in range(1, 9):
        # Kafka before 4.1 wrote type 4
        assert (f'"type":"{kind}"' in dumped) is (kind != 4), f"records of type {kind}"
    for content in ('"protocolType":"consumer"', '"subscribedTopicNames":["in"]', '"assignedPartitions":[{"topicId"'):
        assert content in dumped
