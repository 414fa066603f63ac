"""Recovery that cuts off acknowledged records logs the partition, the offsets and the cause."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from aiokwire.broker.log import LogManager, MemoryStorage

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
MakeBatch = Callable[..., bytearray]
OpenManager = Callable[..., LogManager]
FIRST = "orders-0/00000000000000000000.log"


def _killed(open_manager: OpenManager, make_batch: MakeBatch, count: int = 10, **config: int) -> MemoryStorage:
    """The files of a killed broker: batches of one record and 88 bytes each."""
    storage = MemoryStorage()
    manager = open_manager(storage, **config)
    log = manager.create("orders", 0, TOPIC_ID, NOW)
    for _ in range(count):
        log.append(make_batch(1, value=bytes(20)), now_ms=NOW)
    manager.checkpoint()  # its high watermark: these offsets were acknowledged
    manager.abandon()
    return storage


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.endswith("recovery")]


def _reopen(storage: MemoryStorage, open_manager: OpenManager, caplog: pytest.LogCaptureFixture, **config: int) -> int:
    with caplog.at_level(logging.INFO):
        log = open_manager(storage, **config).get("orders", 0)
    assert log is not None
    return log.end_offset


def test_a_wrong_crc_is_logged_with_the_offsets_that_are_lost(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch)
    size = len(storage.files[FIRST].data) // 10
    storage.files[FIRST].data[4 * size + 70] ^= 1
    assert _reopen(storage, open_manager, caplog) == 4
    (line,) = _lines(caplog)
    assert line.startswith(
        f"orders[0]: acknowledged records from offset 4 to 9 are lost: {FIRST}: the CRC of the batch"
    )
    assert (
        f"at offset 4, byte {4 * size}, is wrong. {6 * size} bytes were truncated, and the log ends at offset 4" in line
    )


def test_a_file_that_lacks_acknowledged_records_is_logged(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch)
    del storage.files[FIRST].data[len(storage.files[FIRST].data) // 10 * 7 :]
    assert _reopen(storage, open_manager, caplog) == 7
    (line,) = _lines(caplog)
    assert "offset 7 to 9 are lost: the files end before the checkpointed high watermark" in line


def test_a_batch_that_lost_its_end_to_a_power_failure_is_logged_as_lost(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch)
    del storage.files[FIRST].data[-5:]
    assert _reopen(storage, open_manager, caplog) == 9
    assert f"offset 9 to 9 are lost: {FIRST}: the batch at byte" in _lines(caplog)[0]


def test_zeros_at_the_end_are_named(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch)
    size = len(storage.files[FIRST].data) // 10
    storage.files[FIRST].data[8 * size :] = bytes(2 * size)
    assert _reopen(storage, open_manager, caplog) == 8
    assert f"offset 8 to 9 are lost: {FIRST}: zeros at byte {8 * size}" in _lines(caplog)[0]


def test_segments_deleted_after_a_corrupt_one_are_counted(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch, 20, segment_bytes=300)
    whole = sum(len(file.data) for path, file in storage.files.items() if path.endswith(".log"))
    size = whole // 20
    storage.files[FIRST].data[size + 70] ^= 1
    assert _reopen(storage, open_manager, caplog, segment_bytes=300) == 1
    (line,) = _lines(caplog)
    assert "offset 1 to 19 are lost" in line
    assert f"{19 * size} bytes were truncated" in line


def test_cutting_an_unfinished_append_is_not_a_loss(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch)
    batch = make_batch(1, value=bytes(20))
    batch[0:8] = (10).to_bytes(8, "big")
    storage.files[FIRST].data += batch[:-3]
    assert _reopen(storage, open_manager, caplog) == 10
    (record,) = [record for record in caplog.records if record.name.endswith("recovery")]
    assert record.levelno == logging.INFO
    assert "truncated the 85 bytes of an unfinished append" in record.getMessage()


def test_opening_a_valid_log_logs_nothing(
    open_manager: OpenManager, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = _killed(open_manager, make_batch, 20, segment_bytes=300)
    assert _reopen(storage, open_manager, caplog, segment_bytes=300) == 20
    assert _lines(caplog) == []
