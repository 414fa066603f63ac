"""Audits of topics through Spark: each kind of finding once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from aiokwire import Consumer, Producer
from aiokwire.cli.main import cli
from aiokwire.errors import ConfigurationError
from aiokwire.records import crc32c
from aiokwire.spark.archive.manifest import FOLDER, DataFile, Manifest, encode, name_of
from aiokwire.spark.audit.against import NOT_ARCHIVED, NOT_IN_TOPIC
from aiokwire.spark.audit.audit import source_options
from aiokwire.spark.audit.report import AuditReport, Finding
from aiokwire.spark.jobs.ranges import Scope, explicit
from aiokwire.spark.pipelines import audit, audit_as_json
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition
from tests.spark.conftest import Kafka, Reads

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("no_sessions")]


class Audits:
    """Audits on the tests' session."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._spark = spark
        self._servers = servers

    def __call__(self, topic: str, **options: Any) -> AuditReport:
        return audit(topic, bootstrap=self._servers, spark=self._spark, **options)


@pytest.fixture
def audits(spark: SparkSession, servers: str) -> Audits:
    return Audits(spark, servers)


def transactions(kafka: Kafka, topic: str) -> None:
    """Write five records and a commit, three and an abort, two and a commit: offsets 0 to 12."""

    async def main() -> None:
        async with Producer(kafka.servers, transactional_id=topic) as producer:
            for count, aborts in ((5, False), (3, True), (2, False)):
                async with producer.transaction() as transaction:
                    for number in range(count):
                        await producer.send(topic, b"v%d" % number, key=b"k%d" % (number % 2), partition=0)
                    if aborts:
                        await transaction.abort()

    kafka.run(main)


def test_control_and_aborted_records_are_counted_separately(kafka: Kafka, audits: Audits) -> None:
    topic = kafka.topic(2)
    transactions(kafka, topic)
    report = audits(topic, options={"maxRecordsPerPartition": "4"}, fail_on=("gaps", "aborted"))
    first, second = (each.tally for each in report.partitions)
    assert (first.records.count, first.aborted, first.control, first.commits, first.aborts) == (7, 3, 3, 2, 1)
    assert (first.start, first.end, first.missing.offsets, first.records.first, first.records.last) == (0, 13, 0, 0, 11)
    assert (second.records.count, second.end) == (0, 0)
    assert first.records.keys.counts == {b"k0": 4, b"k1": 3}
    assert [seen.transactional for seen in first.batches.producers.by_id.values()] == [True]
    assert [(one.finding, one.count) for one in report.wrong] == [(Finding.ABORTED, 3)]
    assert report.duplicates is not None
    assert (report.duplicates.records, report.duplicates.extra) == (7, 2), "v0 and v1 were committed twice"
    json.dumps(audit_as_json(report))


def test_an_open_transaction_is_excluded_and_reported(kafka: Kafka, audits: Audits) -> None:
    topic = kafka.topic()

    async def main() -> AuditReport:
        async with Producer(kafka.servers, transactional_id=topic) as producer, producer.transaction() as transaction:
            await producer.send(topic, b"open")
            report = audits(topic, duplicates=None)
            await transaction.abort()
        return report

    kafka.produce(topic, [b"plain"])
    report = kafka.run(main)
    [each] = report.partitions
    assert (each.tally.records.count, each.tally.end, each.stable, each.latest) == (1, 1, 1, 2)
    assert [(one.finding, one.count) for one in report.found] == [(Finding.OPEN, 1)]


def test_duplicates_are_found_across_partitions_and_by_header(kafka: Kafka, audits: Audits) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, [b"a", b"b", None], key=b"k", headers=[("id", b"1")])
    kafka.produce(topic, [b"b", b"c"], partition=1, key=b"k", headers=[("id", b"2")])
    kafka.produce(topic, [b"k"], partition=1)
    found = audits(topic).duplicates
    assert found is not None
    assert (found.records, found.extra, found.distinct, found.by_topic) == (6, 1, 1, {topic: 1})
    assert [(one.times, one.first, one.last) for one in found.shown] == [(2, (0, 1), (1, 0))]
    by_header = audits(topic, duplicates="header:id", fail_on=("duplicates",))
    assert by_header.failed
    assert by_header.duplicates is not None
    assert (by_header.duplicates.records, by_header.duplicates.extra, by_header.duplicates.distinct) == (5, 3, 2)


def test_an_audit_of_part_of_a_log_reports_the_groups_that_read_it(kafka: Kafka, audits: Audits) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"%d" % number for number in range(20)])

    async def main() -> None:
        async with Consumer(
            topic, bootstrap_servers=kafka.servers, group_id=topic, auto_offset_reset="earliest"
        ) as reader:
            await reader.getmany(max_records=15, timeout=10)
            await reader.commit()

    kafka.run(main)
    place = f'{{"{topic}":{{"0":%d}}}}'
    options = {"startingOffsets": place % 5, "endingOffsets": place % 9}
    report = audits(topic, options=options, groups=[topic], max_lag=4, fail_on=["lag"])
    [each] = report.partitions
    assert (each.tally.start, each.tally.end, each.tally.records.count) == (5, 9, 4)
    assert [(one.group, one.committed, one.end, one.lag) for one in report.lags] == [(topic, 15, 20, 5)]
    assert [one.text for one in report.wrong] == [f"group {topic} is 5 offsets behind"]


def test_options_are_resolved_to_offsets_once() -> None:
    given = source_options(["a", "b"], "host:1", {"startingTimestamp": "5", "KAFKA.isolation.level": "x", "o": "1"})
    assert given == {
        "startingTimestamp": "5", "o": "1", "kafka.bootstrap.servers": "host:1", "subscribe": "a,b",
        "kafka.isolation.level": "read_committed",
    }  # fmt: skip
    places = {TopicPartition("a", 0): 3}
    fixed = explicit(given, Scope(places, {TopicPartition("a", 0): 9}, places, places, places, {}))
    assert (fixed["startingOffsets"], fixed["endingOffsets"]) == ('{"a": {"0": 3}}', '{"a": {"0": 9}}')
    assert "startingTimestamp" not in fixed


def test_invalid_options_are_refused_before_any_job_starts(audits: Audits) -> None:
    with pytest.raises(ConfigurationError, match="an audit has no finding 'gap'"):
        audits("t", fail_on=["gap"])
    with pytest.raises(ConfigurationError, match="key,value or key or value or header:NAME"):
        audits("t", duplicates="offset")
    with pytest.raises(ConfigurationError, match="did you mean 'startingOffsets'"):
        audits("t", options={"startingOffset": "earliest"})
    with pytest.raises(ConfigurationError, match="is not an archive"):
        audits("t", against="nowhere")
    with pytest.raises(ConfigurationError, match="topic 'no-such-topic' does not exist"):
        audits("no-such-topic")


# --- against an archive -----------------------------------------------------------------------------------------------


class Lake:
    """An archive of what the source reads, with its manifest."""

    def __init__(self, root: Path, read: Reads, topic: str) -> None:
        self._root = root
        self._read = read
        self._topic = topic
        self._schema = ""
        self.files: list[DataFile] = []

    def add(self, first: int, end: int, changes: Mapping[int, Mapping[str, Any]] | None = None, **options: Any) -> Path:
        """Add a file with these offsets of partition 0.

        `changes` replaces columns, or the offset, by offset.
        """
        place = f'{{"{self._topic}":{{"0":%d}}}}'
        columns = "key,value,offset,timestamp,timestampType,headers"
        edges = {"startingOffsets": place % first, "endingOffsets": place % end}
        rows = self._read(self._topic, **edges, columns=columns, **options)
        self._schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields)
        table = rows.toArrow()
        listed = table.to_pylist()
        for row in listed:
            row.update((changes or {}).get(row["offset"], {}))
        folder = f"topic={self._topic}/date=2026-11-21/partition=0"
        path = f"{folder}/part-{len(self.files)}.parquet"
        (self._root / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(table.schema.empty_table().from_pylist(listed, table.schema), self._root / path)
        data = (self._root / path).read_bytes()
        offsets = [row["offset"] for row in listed]
        times = [round(row["timestamp"].timestamp() * 1000) for row in listed]
        self.files.append(
            DataFile(
                self._topic, 0, offsets[0], offsets[-1], path, len(listed), len(data), min(times), max(times),
                crc32c(data),
            )
        )  # fmt: skip
        return self._root / path

    def commit(self, start: int, end: int, isolation: str = "read_committed") -> None:
        (self._root / FOLDER).mkdir()
        layout = {"schema": self._schema, "isolation": isolation}
        manifest = Manifest(1, (Range(self._topic, 0, start, end),), tuple(self.files), layout=layout)
        (self._root / name_of(1)).write_bytes(encode(manifest))


COMMITTED: dict[str, Any] = {"kafka__isolation__level": "read_committed"}


def test_an_archive_that_matches_its_topic_has_no_differences(
    kafka: Kafka, audits: Audits, read: Reads, tmp_path: Path
) -> None:
    topic = kafka.topic()
    transactions(kafka, topic)
    kafka.produce(topic, [None, b"", b"v"], headers=[("h", b"1"), ("null", None)])
    lake = Lake(tmp_path, read, topic)
    lake.add(0, 4, **COMMITTED)
    lake.add(4, 16, **COMMITTED)
    lake.commit(0, 16)
    report = audits(topic, against=tmp_path, duplicates=None)
    assert report.comparison is not None
    assert report.comparison.differences == ()
    assert report.comparison.compared == ((topic, 0, 0, 16),)
    assert not report.failed


def test_differences_are_reported_by_offset(kafka: Kafka, audits: Audits, read: Reads, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"%d" % number for number in range(60)], key=b"k", headers=[("h", b"1")])
    lake = Lake(tmp_path, read, topic)
    lake.add(0, 20, {3: {"value": b"x"}, 4: {"value": None}, 7: {"key": None, "headers": None}})
    lake.add(20, 30, {25: {"offset": 24}})
    lake.add(30, 40).unlink()
    with lake.add(40, 50).open("r+b") as file:
        file.write(b"PAR2")
    lake.add(50, 60, {59: {"offset": 99}})
    lake.commit(0, 100)
    report = audits(topic, against=tmp_path, duplicates=None)
    assert report.comparison is not None
    assert (report.comparison.compared, report.comparison.files) == (((topic, 0, 0, 60),), 5)
    found = [(one.kind.rpartition("/")[2], one.first, one.last) for one in report.comparison.differences]
    assert found == [
        ("part-1.parquet: its offsets do not increase", 20, 29),
        ("part-2.parquet: it is missing", 30, 39),
        ("part-3.parquet: its checksum is not that of its manifest", 40, 49),
        ("value differs", 3, 4),
        ("key and headers differ", 7, 7),
        (NOT_ARCHIVED, 20, 49),
        (NOT_ARCHIVED, 59, 59),
    ]
    assert report.failed


def test_aborted_records_and_offsets_outside_the_audit_are_not_compared(
    kafka: Kafka, audits: Audits, read: Reads, tmp_path: Path
) -> None:
    topic = kafka.topic()
    transactions(kafka, topic)
    lake = Lake(tmp_path, read, topic)
    lake.add(0, 13, {1: {"value": b"other"}})
    lake.commit(0, 13)
    options = {"startingOffsets": f'{{"{topic}":{{"0":3}}}}'}
    report = audits(topic, against=tmp_path, duplicates=None, options=options)
    assert report.comparison is not None
    assert report.comparison.compared == ((topic, 0, 3, 13),)
    assert [(one.kind, one.first, one.last) for one in report.comparison.differences] == [(NOT_IN_TOPIC, 6, 8)]


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_document_and_exits_with_the_verdict(
    kafka: Kafka, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)  # all tests share the session
    topic = kafka.topic()
    transactions(kafka, topic)
    command = ["spark", "audit", topic, "-b", kafka.servers, "--duplicates", "none"]
    document = tmp_path / "report.html"
    shown = CliRunner().invoke(cli, [*command, "--html", str(document)])
    assert shown.exit_code == 0, shown.output
    assert "passed; findings that do not fail it: " in shown.output
    assert f"{topic}[0]" in shown.output
    assert f"Audit of {topic}" in document.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    shown = CliRunner().invoke(cli, [*command, "--json", "--fail-on", "aborted,open"])
    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["found"][0]["finding"] == "aborted"
    shown = CliRunner().invoke(cli, [*command, "--fail-on", "aborts"])
    assert shown.exit_code == 1
    assert shown.stderr.endswith(f"choose from {', '.join(each.value for each in Finding)}\n")
