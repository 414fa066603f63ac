"""Replays of an archive to a topic: the records that readers see, and replays that resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from aiokwire import Consumer
from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive.layout import DAY
from aiokwire.spark.jobs.stopping import Stop, Stopped
from aiokwire.spark.pipelines import Selection, archive, replay
from aiokwire.types import TopicPartition
from tests.spark.archive.test_archive import NOON, fill
from tests.spark.conftest import Kafka

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("no_sessions")]

COUNT = 40
EXACTLY = "exactly-once"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, servers: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Archive a topic of two partitions in several days and rounds."""
    kafka, path = Kafka(servers), tmp_path_factory.mktemp("lake")
    topic = kafka.topic(2)
    fill(kafka, topic, range(COUNT))
    archive(topic, path, bootstrap=servers, spark=spark, round_records=15)
    return topic, path


def read(kafka: Kafka, topic: str) -> list[Any]:
    """Return the committed records, in the order of each partition."""

    async def main() -> list[Any]:
        options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        async with Consumer(topic, bootstrap_servers=kafka.servers, **options) as consumer:
            places = [TopicPartition(topic, number) for number in await consumer.partitions_for_topic(topic)]
            ends = await consumer.end_offsets(places)
            found: list[Any] = []
            while [place for place in places if await consumer.position(place) < ends[place]]:
                found += await consumer.getmany(timeout=0.05)
            return sorted(found, key=lambda record: (record.partition, record.offset))

    return kafka.run(main)


def number_of(record: Any) -> int:
    return int((record.timestamp - NOON) // (DAY // 2))


def test_replayed_records_equal_the_originals(spark: SparkSession, kafka: Kafka, lake: tuple[str, Path]) -> None:
    source, path = lake
    target = kafka.topic(2)
    done = replay(path, target, bootstrap=kafka.servers, spark=spark, round_records=7)
    assert (done.records, done.stopped) == (COUNT, False)
    before, after = read(kafka, source), read(kafka, target)
    for one, other in zip(before, after, strict=True):
        for name in ("partition", "key", "value", "timestamp", "headers"):
            assert getattr(one, name) == getattr(other, name)


def test_keys_choose_partitions_and_headers_name_the_original_coordinates(
    spark: SparkSession, kafka: Kafka, lake: tuple[str, Path], tmp_path: Path
) -> None:
    source, path = lake
    for delivery in ("at-least-once", EXACTLY):
        target = kafka.topic(3)
        done = replay(
            path,
            target,
            bootstrap=kafka.servers,
            rekey=True,
            coordinates=True,
            delivery=delivery,
            checkpoint=tmp_path / delivery,
            spark=spark,
        )
        assert done.records == COUNT
        records = read(kafka, target)
        assert sorted(map(number_of, records)) == list(range(COUNT))
        homes: dict[bytes, int] = {}
        for record in records:
            coordinates = dict(record.headers[-3:])
            number = number_of(record)
            assert coordinates == {
                "aiokwire.topic": source.encode(),
                "aiokwire.partition": b"%d" % (number % 2),
                "aiokwire.offset": b"%d" % (number // 2),
            }
            if record.key is not None:
                assert homes.setdefault(record.key, record.partition) == record.partition


def test_a_selection_by_time_and_offset_is_replayed(spark: SparkSession, kafka: Kafka, lake: tuple[str, Path]) -> None:
    source, path = lake
    target = kafka.topic(2)
    day = Selection(since=NOON + DAY, until=NOON + 2 * DAY)
    assert replay(path, target, bootstrap=kafka.servers, select=day, spark=spark).records == 2
    some = Selection.of(start=f'{{"{source}":{{"0":3,"1":20}}}}', end=f'{{"{source}":{{"0":5}}}}')
    assert replay(path, target, bootstrap=kafka.servers, select=some, spark=spark).records == 2
    assert sorted(map(number_of, read(kafka, target))) == [2, 3, 6, 8]


def test_a_pace_keeps_the_time_between_records(spark: SparkSession, kafka: Kafka, lake: tuple[str, Path]) -> None:
    _, path = lake
    target = kafka.topic(2)
    days = (COUNT - 1) / 2
    done = replay(path, target, bootstrap=kafka.servers, pace=days * DAY / 1000 / 1.5, spark=spark)
    assert done.records == COUNT
    assert done.seconds >= 1.5
    assert done.rounds >= 2
    for partition in (0, 1):
        numbers = [number_of(record) for record in read(kafka, target) if record.partition == partition]
        assert numbers == sorted(numbers)


class _After(Stop):
    """Requests a stop at the given check."""

    def __init__(self, checks: int) -> None:
        super().__init__()
        self._checks = checks

    def check(self) -> None:
        self._checks -= 1
        if self._checks < 0:
            self.request()
        super().check()


class _KilledError(BaseException):
    pass


class _Killed(_After):
    """Raises at the given check, without cleanup."""

    def check(self) -> None:
        try:
            super().check()
        except Stopped:
            raise _KilledError from None


@pytest.mark.parametrize("kind", [_After, _Killed])
def test_a_replay_stopped_at_any_point_resumes_without_loss_or_duplicates(
    kind: type[_After], spark: SparkSession, kafka: Kafka, lake: tuple[str, Path], tmp_path: Path
) -> None:
    _, path = lake
    target = kafka.topic(2)

    def run(stop: Stop) -> int:
        done = replay(
            path,
            target,
            bootstrap=kafka.servers,
            delivery=EXACTLY,
            checkpoint=tmp_path,
            round_records=10,
            spark=spark,
            stop=stop,
        )
        return done.records

    runs = written = 0
    while written < COUNT and runs < 30:
        runs += 1
        try:
            written += run(kind(3))
        except _KilledError:
            written = len(read(kafka, target))
    assert runs > 2
    assert sorted(map(number_of, read(kafka, target))) == list(range(COUNT))
    assert run(Stop()) == 0


def test_other_parquet_is_written_once_for_a_checkpoint(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    target = kafka.topic(2)
    path = tmp_path / "frame"
    spark.range(20).selectExpr("cast(id as string) value", "cast(id % 3 as string) key").write.parquet(str(path))
    assert replay(path, target, bootstrap=kafka.servers, spark=spark).records == 20
    for _ in range(2):
        exactly: dict[str, Any] = {"delivery": EXACTLY, "checkpoint": tmp_path / "checkpoint"}
        replay(path, target, bootstrap=kafka.servers, spark=spark, **exactly)
    assert sorted(int(record.value) for record in read(kafka, target)) == sorted([*range(20), *range(20)])
    with pytest.raises(ConfigurationError, match="is not an archive: it can only be replayed as a whole"):
        replay(path, target, bootstrap=kafka.servers, spark=spark, pace=1)


def test_archives_and_options_that_cannot_be_replayed_are_refused(
    spark: SparkSession, kafka: Kafka, lake: tuple[str, Path]
) -> None:
    _, path = lake
    target = kafka.topic(1)
    with pytest.raises(ConfigurationError, match=r"has 1 partition\(s\), and the archive's records have 2"):
        replay(path, target, bootstrap=kafka.servers, spark=spark)
    with pytest.raises(ConfigurationError, match="needs a checkpoint"):
        replay(path, target, bootstrap=kafka.servers, spark=spark, delivery=EXACTLY)
    with pytest.raises(ConfigurationError, match="pace must be above 0"):
        replay(path, target, bootstrap=kafka.servers, spark=spark, pace=0)
