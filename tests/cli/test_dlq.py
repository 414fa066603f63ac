"""The verbs for dead letters, against a real broker process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from aiokwire import (
    Consumer,
    ConsumerRecord,
    Headers,
    OffsetAndMetadata,
    Producer,
    Record,
    TopicPartition,
    Worker,
)
from aiokwire.broker import Broker
from aiokwire.cli.letters import Letter, LetterFilter, parse_offsets
from aiokwire.cli.replaying import Replay, ReplayedOffsets, Target
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.protocol import ApiKey
from aiokwire.worker import DeadLetters

Run = Callable[..., Result]


class Lost(Exception):
    pass


@pytest.fixture
def letters(run: Run, bootstrap: str, topic: str) -> str:
    """Create six dead letters of a topic, of two exceptions and two handlers by turns."""
    name = f"{topic}.dlq"
    assert run("topics", "create", name, "--partitions", "1").exit_code == 0

    async def fill() -> None:
        async with Producer(bootstrap) as producer:
            dead_letters = DeadLetters(producer, group_id="billing")
            for number in range(6):
                record = Record(topic, number % 2, number, 1000, b"k", b"v%d" % number, (("trace", b"t"),))
                error = Lost("no\nreply") if number % 3 == 0 else ValueError("bad")
                await dead_letters.send(record, error, attempts=3, handler="paid" if number < 4 else "sent")

    asyncio.run(fill())
    return name


def values(run: Run, topic: str) -> list[str]:
    return sorted(run("consume", topic, "-e").stdout.split())


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_dead_letters_are_counted_by_origin_exception_and_handler(run: Run, letters: str, topic: str) -> None:
    found = [each for each in lines(run("dlq", "list", "--json")) if each["topic"] == letters]
    lost = f"{__name__}.Lost"
    assert [(each["origin"], each["exception"], each["handler"], each["count"]) for each in found] == [
        (topic, "ValueError", "paid", 2),
        (topic, "ValueError", "sent", 2),
        (topic, lost, "paid", 2),
    ]
    assert all(1000 < each["oldest"] <= each["newest"] for each in found)
    table = run("dlq", "list", letters, "--exception", "Lost").stdout.splitlines()
    assert table[0].split("\t") == ["topic", "origin", "exception", "handler", "count", "newest"]
    assert [line.split("\t")[:5] for line in table[1:]] == [[letters, topic, lost, "paid", "2"]]


def test_a_broker_without_dead_letters_has_an_empty_list(run: Run) -> None:
    listed = run("dlq", "list", "--origin", "missing")
    assert (listed.exit_code, listed.stdout) == (0, "topic\torigin\texception\thandler\tcount\tnewest\n")
    assert run("dlq", "list", "^missing$").exit_code == 1


def test_a_dead_letter_is_shown_with_its_headers(run: Run, letters: str, topic: str) -> None:
    shown = run("dlq", "show", letters, "3")
    assert shown.exit_code == 0, shown.output
    text = [line for line in shown.stdout.splitlines() if not line.startswith(("dead letter", "origin"))]
    assert text == [
        f"exception   {__name__}.Lost: no\\nreply",
        "stage       TASK_PUT",
        "handler     paid, 3 attempt(s), group billing",
        "key         k",
        "value       v3",
        "header      trace=t",
        f"stacktrace  {__name__}.Lost: no",
        "            reply",
    ]
    assert f"origin      {topic}[1] at offset 3, 1970-01-01" in shown.stdout
    assert max(map(len, text)) <= 80
    (as_json,) = lines(run("dlq", "show", letters, "3", "--json"))
    assert ["aiokwire.errors.handler", "paid"] in as_json["headers"]


def test_an_offset_without_a_record_is_an_error(run: Run, letters: str) -> None:
    missing = run("dlq", "show", letters, "6")
    assert (missing.exit_code, missing.stderr) == (
        1, f"error: {letters}[0] has no record at offset 6; its log has offsets 0 to 5\n",
    )  # fmt: skip
    assert run("dlq", "show", "missing.dlq", "0").exit_code == 1


def test_each_dead_letter_is_replayed_once_however_often_the_replay_is_repeated(
    run: Run, letters: str, topic: str
) -> None:
    group = f"g-{topic}"
    dry_run = lines(run("dlq", "replay", letters, "-g", group, "--dry-run", "--json"))
    assert dry_run == [{"from": letters, "to": topic, "count": 6, "dry_run": True}]
    assert values(run, topic) == []
    first = run("dlq", "replay", letters, "-g", group, "--exception", "Lost")
    assert (first.exit_code, first.stdout) == (0, f"from\tto\tcount\n{letters}\t{topic}\t2\n"), first.output
    assert values(run, topic) == ["v0", "v3"]
    again = run("dlq", "replay", letters, "-g", group, "--exception", "Lost", "--json")
    assert (again.stdout, again.stderr) == ("", "1 skipped: already replayed\n"), (
        "the first is below the committed offset"
    )
    assert lines(run("dlq", "replay", letters, "-g", group, "--offsets", ":4", "--json"))[0]["count"] == 3
    assert lines(run("dlq", "replay", letters, "-g", group, "--json"))[0]["count"] == 1
    assert run("dlq", "replay", letters, "-g", group, "--json").stdout == ""
    assert values(run, topic) == [f"v{number}" for number in range(6)]


def test_a_replay_returns_records_to_their_partition_without_the_headers_of_the_failure(
    run: Run, letters: str, topic: str
) -> None:
    assert run("dlq", "replay", letters, "-g", f"g-{topic}", "--handler", "sent").exit_code == 0
    replayed = lines(run("consume", topic, "-e", "--json"))
    assert [(each["partition"], each["value"], each["headers"]) for each in replayed] == [
        (0, "v4", [["trace", "t"]]),
        (1, "v5", [["trace", "t"]]),
    ]


def test_a_replay_may_go_elsewhere_and_keep_the_headers(run: Run, letters: str, topic: str) -> None:
    assert run("topics", "create", f"{topic}.repair", "-p", "1").exit_code == 0
    options = ("-g", f"g-{topic}", "--to", f"{topic}.repair", "--keep-headers", "--max", "2", "--json")
    assert lines(run("dlq", "replay", letters, *options))[0]["to"] == f"{topic}.repair"
    replayed = lines(run("consume", f"{topic}.repair", "-e", "--json"))
    assert [each["value"] for each in replayed] == ["v0", "v1"]
    assert ["__connect.errors.topic", topic] in replayed[0]["headers"]
    assert values(run, topic) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--offsets", "2:3"], 2),
        (["--offsets", "5"], 1),
        (["--since", "2020-01-01"], 6),
        (["--until", "2020-01-01"], 0),
        (["--origin", "other"], 0),
        (["--partition", "0"], 6),
        (["--exception", "ValueError", "--handler", "paid"], 2),
        (["--exception", "Error"], 0),
    ],
)
def test_a_replay_sends_what_its_filter_selects(run: Run, letters: str, options: list[str], expected: int) -> None:
    planned = lines(run("dlq", "replay", letters, "-g", "unused", "--dry-run", "--json", *options))
    assert sum(each["count"] for each in planned) == expected


def test_records_without_an_origin_need_a_topic_to_go_to(run: Run, letters: str, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text("foreign\n")
    assert run("produce", letters, source).exit_code == 0
    replayed = run("dlq", "replay", letters, "-g", f"g-{topic}", "--offsets", "5:")
    assert (replayed.exit_code, replayed.stderr) == (
        1, "error: 1 record(s) lack the headers that name their origin: give --to TOPIC\n",
    )  # fmt: skip
    assert values(run, topic) == ["v5"]


def test_a_replay_to_a_topic_that_does_not_exist_sends_nothing(run: Run, letters: str, topic: str) -> None:
    for target in (f"{topic}.missing", letters):
        failed = run("dlq", "replay", letters, "-g", f"g-{topic}", "--to", target)
        assert failed.exit_code == 1, failed.output
        assert failed.stderr.startswith("error: ")
    assert run("topics", "describe", f"{topic}.missing").exit_code == 1
    assert lines(run("dlq", "replay", letters, "-g", f"g-{topic}", "--json"))[0]["count"] == 6


def test_dead_letters_are_dropped_up_to_an_offset(run: Run, letters: str) -> None:
    assert run("dlq", "drop", letters, "--before", "2").exit_code == 1, "it asks"
    assert len(values(run, letters)) == 6
    dropped = run("dlq", "drop", letters, "--before", "2", "--yes")
    assert (dropped.exit_code, dropped.stdout) == (0, f"topic\tpartition\tfrom\tbefore\n{letters}\t0\t0\t2\n")
    assert len(values(run, letters)) == 4
    assert run("dlq", "drop", letters, "--before", "99", "-p", "0", "--yes").exit_code == 0
    assert values(run, letters) == []
    for wrong in (["--before", "1", "--all"], [], ["--all", "-p", "7", "--yes"]):
        assert run("dlq", "drop", letters, *wrong).exit_code in (1, 2)


def test_only_replayed_letters_are_dropped(run: Run, letters: str, topic: str) -> None:
    group = ("-g", f"g-{topic}")
    assert run("dlq", "drop", letters, "--replayed", *group, "--yes").exit_code == 0
    assert len(values(run, letters)) == 6
    assert run("dlq", "replay", letters, *group, "--offsets", "0:1").exit_code == 0
    assert run("dlq", "replay", letters, *group, "--offsets", "4").exit_code == 0
    assert run("dlq", "drop", letters, "--replayed", *group, "--yes").exit_code == 0
    assert len(values(run, letters)) == 4
    assert lines(run("dlq", "replay", letters, *group, "--json"))[0]["count"] == 3
    assert run("dlq", "drop", letters, "--all", "--yes").exit_code == 0
    assert values(run, letters) == []


async def test_a_replay_that_fails_leaves_nothing_and_can_be_repeated() -> None:
    async with Broker(topics={"orders": 1, "orders.dlq": 1}) as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            for number in range(3):
                record = Record("orders", 0, number, value=b"v%d" % number)
                await DeadLetters(producer).send(record, Lost(), attempts=1, handler="paid")
        broker.faults.on(ApiKey.TXN_OFFSET_COMMIT).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        target = Target(None, keeps_headers=False)
        failed = Replay(LetterFilter(), target, "g", None)
        with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
            await failed.run(broker.bootstrap_servers, ["orders.dlq"])
        assert not failed.sent
        for expected in (3, 0):
            replay = Replay(LetterFilter(), target, "g", None)
            await replay.run(broker.bootstrap_servers, ["orders.dlq"])
            assert replay.sent.total() == expected
        options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        async with Consumer("orders", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            read = [await consumer.getone(timeout=5) for _ in range(3)]
            assert [record.value for record in read] == [b"v0", b"v1", b"v2"]


async def test_a_record_is_handled_once_its_handler_is_repaired_and_its_dead_letter_replayed() -> None:
    handled: list[tuple[int, bytes, Headers]] = []
    arrived = anyio.Event()

    async def broken(number: int) -> None:
        raise AssertionError("it cannot be decoded")

    async def repaired(value: bytes, record: ConsumerRecord, headers: Headers) -> None:  # type: ignore[type-arg]
        handled.append((record.partition, value, headers))
        arrived.set()

    async with Broker(topics={"orders": 2, "orders.dlq": 1}) as broker:
        first = Worker(broker.bootstrap_servers, group_id="billing")
        first.add_handler(broken, "orders")
        async with first, Producer(broker.bootstrap_servers) as producer:
            await producer.send("orders", b"\xffseven", b"k", partition=1, headers=[("trace", b"t")])
            (letter,) = await broker.wait_for_records("orders.dlq", 1)
        assert dict(letter.headers)["__connect.errors.stage"] == b"VALUE_CONVERTER"
        second = Worker(broker.bootstrap_servers, group_id="billing")
        second.add_handler(repaired, "orders")
        async with second:
            replay = Replay(LetterFilter(handlers=("broken",)), Target(None, keeps_headers=False), "g", None)
            await replay.run(broker.bootstrap_servers, ["orders.dlq"])
            with anyio.fail_after(10):
                await arrived.wait()
    assert handled == [(1, b"\xffseven", (("trace", b"t"),))]


# --- the parts --------------------------------------------------------------------------------------------------------


@given(st.lists(st.sets(st.integers(0, 60)), max_size=4), st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_no_dead_letter_is_replayed_twice_or_left_out(runs: list[set[int]], gaps: set[int], ends_at: int) -> None:
    """Each run selects some offsets; the last one stops early, and a further one selects all."""
    tp = TopicPartition("t", 0)
    log = [offset for offset in range(61) if offset not in gaps]
    committed: OffsetAndMetadata | None = None
    sent: list[int] = []
    for number, chosen in enumerate([*runs, set(log)]):
        replayed = ReplayedOffsets(committed)
        for offset in [offset for offset in log if offset >= replayed.offset]:
            is_new = not replayed.is_replayed(offset) and offset in chosen
            if is_new:
                sent.append(offset)
            replayed.note(offset, is_replayed=is_new or replayed.is_replayed(offset))
            if number == len(runs) - 1 and offset >= ends_at:
                break
        committed = replayed.progress(tp)
    assert sorted(sent) == log
    assert committed is not None
    assert (committed.offset, committed.metadata) == (log[-1] + 1 if log else 0, "")


def test_progress_that_does_not_fit_into_a_commit_is_refused() -> None:
    replayed = ReplayedOffsets(None)
    for offset in range(50_000):
        replayed.note(offset, is_replayed=offset % 2 == 1)
    with pytest.raises(InvalidArgument, match=r"t\[0\]: the replayed dead letters are in 25000 separate ranges, more"):
        replayed.progress(TopicPartition("t", 0))


@pytest.mark.parametrize(
    ("text", "expected"), [(None, (0, None)), ("5", (5, 5)), ("5:", (5, None)), (":5", (0, 5)), ("2:5", (2, 5))]
)
def test_offsets_are_a_range(text: str | None, expected: object) -> None:
    assert parse_offsets(text) == expected


@pytest.mark.parametrize("text", ["", ":", "a", "1:b", "-1", "1:2:3"])
def test_an_invalid_range_of_offsets_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not an offset"):
        parse_offsets(text)


def test_a_record_of_another_program_has_no_origin() -> None:
    letter = Letter.of(Record("x.dlq", 0, 0, value=b"v"))
    assert (letter.origin, letter.origin_topic, letter.exception, letter.handler) == (None, "-", "-", "-")
    assert LetterFilter().selects(letter)
    assert not LetterFilter(exceptions=("ValueError",)).selects(letter)
