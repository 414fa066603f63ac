"""Duplicates, gaps and epochs of idempotent producers; snapshots."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.log import ProducerStates
from aiokwire.broker.log.batches import Marker
from aiokwire.broker.log.producers import MAX_SEQUENCE, advance, retreat
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, CorruptRecord

NOW = 1_700_000_000_000


class Sent(NamedTuple):
    """A batch as a producer sends it: only the fields that the states read."""

    base_sequence: int
    size: int = 1
    producer_epoch: int = 0
    producer_id: int = 7
    is_transactional: bool = False
    is_control: bool = False
    max_timestamp: int = NOW

    @property
    def base_offset(self) -> int:
        return 0

    @property
    def last_offset(self) -> int:
        return self.size - 1


class Log:
    """Appends to the states only."""

    def __init__(self) -> None:
        self.states = ProducerStates("orders", 0)
        self.end = 0

    def append(self, batch: Sent) -> tuple[int, int] | None:
        """Base and last offset of the batch that this one repeats, None when it was new."""
        known = self.states.check(batch)
        if known is not None:
            return known.base_offset, known.last_offset
        self.states.note(batch, self.end, self.end + batch.size - 1)
        self.end += batch.size
        return None


def code_of(log: Log, batch: Sent) -> ErrorCode:
    with pytest.raises(BrokerError, match="producer 7") as caught:
        log.append(batch)
    return caught.value.code


def test_an_unknown_producer_starts_anywhere() -> None:
    assert Log().append(Sent(42)) is None


def test_the_last_five_batches_are_recognised() -> None:
    log = Log()
    for sequence in range(0, 12, 2):
        assert log.append(Sent(sequence, 2)) is None
    assert [log.append(Sent(sequence, 2)) for sequence in range(2, 12, 2)] == [
        (2, 3), (4, 5), (6, 7), (8, 9), (10, 11),
    ]  # fmt: skip
    assert code_of(log, Sent(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # forgotten


def test_a_batch_with_other_bounds_is_not_a_duplicate() -> None:
    log = Log()
    log.append(Sent(0, 3))
    assert code_of(log, Sent(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code_of(log, Sent(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(Sent(3)) is None


def test_a_new_epoch_starts_at_zero_and_fences_the_old() -> None:
    log = Log()
    log.append(Sent(0, 3))
    assert code_of(log, Sent(3, producer_epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(Sent(0, producer_epoch=1)) is None
    assert code_of(log, Sent(3, producer_epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.append(Sent(0, producer_epoch=1)) == (3, 3)


def test_sequences_wrap_after_the_greatest() -> None:
    log = Log()
    log.append(Sent(MAX_SEQUENCE - 1, 3))  # ..., MAX, 0
    assert log.append(Sent(MAX_SEQUENCE - 1, 3)) == (0, 2)
    assert log.append(Sent(1)) is None


def test_data_outside_of_an_open_transaction_is_refused() -> None:
    log = Log()
    log.append(Sent(0, is_transactional=True))
    assert log.states.first_unstable_offset == 0
    assert code_of(log, Sent(1)) is ErrorCode.INVALID_TXN_STATE


def test_a_marker_of_an_old_epoch_is_refused_and_a_newer_one_starts_afresh() -> None:
    log = Log()
    log.append(Sent(0, producer_epoch=4, is_transactional=True))
    marker = Sent(-1, producer_epoch=3, is_transactional=True, is_control=True)
    assert code_of(log, marker) is ErrorCode.INVALID_PRODUCER_EPOCH
    newer = marker._replace(producer_epoch=5)
    assert log.states.check(newer) is None
    aborted = log.states.complete(newer, Marker(False, 1), 1)
    assert aborted == (7, 0, 1, 2)
    assert code_of(log, Sent(1, producer_epoch=5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(Sent(0, producer_epoch=5)) is None


def test_a_coordinator_appends_without_sequences() -> None:
    states = ProducerStates("orders", 0)
    batch = Sent(-1, is_transactional=True)
    for offset in range(3):
        assert states.check(batch, from_client=False) is None
        states.note(batch, offset, offset)
    assert states.first_unstable_offset == 0
    with pytest.raises(BrokerError):
        states.check(batch._replace(producer_epoch=-1), from_client=False)


def test_idle_producers_expire_unless_they_have_a_transaction() -> None:
    log = Log()
    log.append(Sent(0, producer_id=1))
    log.append(Sent(0, producer_id=2, is_transactional=True))
    assert log.states.expire(NOW + 999, 1000) == 0
    assert log.states.expire(NOW + 1000, 1000) == 1
    assert list(log.states.states) == [2]


def test_a_snapshot_has_kafkas_bytes_and_keeps_the_last_batch_of_each() -> None:
    log = Log()
    log.append(Sent(0, 3))
    log.append(Sent(3, 2))
    log.append(Sent(0, producer_id=8, producer_epoch=2, is_transactional=True))
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 7, 0, 4, 4, 1, NOW, -1, -1)
    body += struct.pack(">qhiqiqiq", 8, 2, 0, 5, 0, NOW, -1, 5)
    assert log.states.pack() == struct.pack(">hI", 1, crc32c(body)) + body
    again = Log()
    again.states.unpack(log.states.pack())
    assert again.states.first_unstable_offset == 5
    assert again.append(Sent(3, 2)) == (3, 4)
    assert code_of(again, Sent(0, 3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert again.states.pack() == log.states.pack()


@given(st.data())
def test_a_corrupt_snapshot_is_refused(data: st.DataObject) -> None:
    log = Log()
    log.append(Sent(0, 3))
    content = bytearray(log.states.pack())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptRecord):
        ProducerStates("orders", 0).unpack(bytes(content))
    with pytest.raises(CorruptRecord):
        ProducerStates("orders", 0).unpack(log.states.pack()[:position])


@given(st.integers(0, MAX_SEQUENCE), st.integers(0, 1 << 20))
def test_retreat_undoes_advance(sequence: int, by: int) -> None:
    assert 0 <= advance(sequence, by) <= MAX_SEQUENCE
    assert retreat(advance(sequence, by), by) == sequence
