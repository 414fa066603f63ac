"""Leader epochs: where each starts and ends."""

from __future__ import annotations

from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.log.epochs import LeaderEpochs


def _epochs() -> tuple[LeaderEpochs, MemoryStorage]:
    storage = MemoryStorage()
    storage.make_directory("t-0")
    epochs = LeaderEpochs(storage, "t-0")
    for epoch, offset in [(0, 0), (2, 10), (2, 15), (1, 17), (5, 20)]:
        epochs.assign(epoch, offset)
    return epochs, storage


def test_an_epoch_ends_where_the_next_starts() -> None:
    epochs, _ = _epochs()
    assert epochs.latest == 5
    assert epochs.end_offset_for(0, 30) == (0, 10)
    assert epochs.end_offset_for(1, 30) == (0, 10)
    assert epochs.end_offset_for(2, 30) == (2, 20)
    assert epochs.end_offset_for(4, 30) == (2, 20)
    assert epochs.end_offset_for(5, 30) == (5, 30)
    assert epochs.end_offset_for(6, 30) == (-1, -1)
    assert epochs.end_offset_for(-1, 30) == (-1, -1)


def test_an_epoch_below_the_first_known_ends_where_that_starts() -> None:
    epochs = LeaderEpochs(MemoryStorage(), "t-0")
    epochs.assign(3, 7)
    assert epochs.end_offset_for(1, 30) == (1, 7)


def test_the_file_has_kafkas_lines_and_is_read_back() -> None:
    epochs, storage = _epochs()
    assert epochs.write_temporary()
    epochs.replace()
    assert storage.read("t-0/leader-epoch-checkpoint") == b"0\n3\n0 0\n2 10\n5 20\n"
    again = LeaderEpochs(storage, "t-0")
    again.load()
    assert again.entries == epochs.entries
    assert not again.write_temporary()


def test_a_corrupt_file_counts_as_missing() -> None:
    for content in (b"", b"0\n1\n0 x\n", b"garbage", b"\xff\xfe"):
        storage = MemoryStorage()
        storage.make_directory("t-0")
        storage.write("t-0/leader-epoch-checkpoint", content)
        epochs = LeaderEpochs(storage, "t-0")
        epochs.load()
        assert epochs.entries == []


def test_truncation_forgets_from_both_ends() -> None:
    epochs, _ = _epochs()
    epochs.truncate_from_end(20)
    assert epochs.entries == [(0, 0), (2, 10)]
    epochs.truncate_from_start(12)
    assert epochs.entries == [(2, 12)]
