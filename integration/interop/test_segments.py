"""Kafka's DumpLogSegments checks the embedded broker's files, also after SIGKILL under load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.embedded import EmbeddedProcess
from integration.interop.peers import CONFLUENT, Message, sample
from integration.kafka import JavaTools, dump_faults
from integration.kafka.metadata import create_by_asking

Tools = Callable[[BrokerUnderTest], JavaTools]

TOPIC = "judged"
KILLED_AFTER = 150_000  # acknowledged records; with small segments that is a few rolls of each partition


@pytest.fixture
def small_segments(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """A broker that rolls its segments often, so that there are many indexes and snapshots."""
    with closing(EmbeddedProcess(tmp_path / "data", settings={"log_segment_bytes": 1_048_576})) as server:
        (tmp_path / "data").mkdir()
        server.start()
        create_by_asking(server.bootstrap_servers, TOPIC, PARTITIONS)
        yield server


class Load:
    """A librdkafka producer of numbers that keeps the offsets of acknowledged ones."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, "batch.num.messages": 500, "log_level": 0}
        )
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.many = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                value = b"%d" % number
                self._producer.produce(
                    TOPIC, value.ljust(60), partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged[message.partition(), message.offset()] = message.value()  # type: ignore[attr-defined]  # C type
            if len(self.acknowledged) >= KILLED_AFTER:
                self.many.set()


def dump(java: JavaTools, files: list[Path]) -> str:
    assert files
    printed = java.dump(files, "--verify-index-only", "--skip-record-metadata")
    assert dump_faults(printed) == []
    assert printed.count("Dumping ") == len(files)
    return printed


def test_the_files_of_a_stopped_broker_are_valid(small_segments: EmbeddedProcess, java: Tools) -> None:
    for codec in ("none", "gzip", "none", "snappy", "lz4", "none", "zstd"):
        for partition in range(PARTITIONS):
            CONFLUENT.produce(small_segments.bootstrap_servers, TOPIC, partition, sample(), codec)
    assert small_segments.stop() == 0
    files = small_segments.files_of(TOPIC)
    assert len([path for path in files if path.suffix == ".log"]) > 2 * PARTITIONS
    assert [path for path in files if path.suffix == ".index"]
    printed = dump(java(BrokerUnderTest("embedded", small_segments)), files)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec}" in printed


def test_the_check_detects_one_flipped_byte(small_segments: EmbeddedProcess, java: Tools) -> None:
    CONFLUENT.produce(small_segments.bootstrap_servers, TOPIC, 0, sample(), "none")
    assert small_segments.stop() == 0
    path = max(small_segments.data_dir.glob(f"{TOPIC}-0/*.log"))
    with path.open("r+b") as log:
        log.seek(100)
        byte = log.read(1)[0]
        log.seek(100)
        log.write(bytes([byte ^ 1]))
    assert dump_faults(java(BrokerUnderTest("embedded", small_segments)).dump([path], "--skip-record-metadata"))


def test_after_sigkill_under_load_every_acknowledged_record_is_stored_and_every_file_is_valid(
    small_segments: EmbeddedProcess, java: Tools
) -> None:
    load = Load(small_segments.bootstrap_servers)
    try:
        assert load.many.wait(60)
        small_segments.kill()
    finally:
        load.stop()
    # a power failure may leave the start of a batch at the end of a file, without the rest
    torn = max(small_segments.data_dir.glob(f"{TOPIC}-0/*.log"))
    with torn.open("r+b") as log:
        head = log.read(200)
        log.seek(0, 2)
        log.write(head)
    small_segments.restart()
    for partition in range(PARTITIONS):
        expected = {offset: value for (where, offset), value in load.acknowledged.items() if where == partition}
        count = max(expected) + 1
        got = CONFLUENT.consume(small_segments.bootstrap_servers, TOPIC, partition, count)
        lost = [offset for offset, value in expected.items() if got[offset].value != value]
        assert lost == []
    CONFLUENT.produce(small_segments.bootstrap_servers, TOPIC, 0, [Message(b"after", b"recovery")], "none")
    assert small_segments.stop() == 0
    dump(java(BrokerUnderTest("embedded", small_segments)), small_segments.files_of(TOPIC))
