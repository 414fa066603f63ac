"""The archive that manifests describe, and the errors when they are inconsistent."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive import manifest as m
from aiokwire.spark.archive.manifest import Archive, ArchiveDamaged, DataFile, Manifest
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

ORDERS = TopicPartition("orders", 0)


def data(first: int, last: int, partition: int = 0) -> DataFile:
    path = f"topic=orders/date=2026-01-01/partition={partition}/orders-{partition}-{first}-{last}.parquet"
    return DataFile("orders", partition, first, last, path, last - first + 1, 100, 5, 6, 7)


def part(number: int, start: int, end: int, partition: int = 0, **more: object) -> Manifest:
    whole = Range("orders", partition, start, end)
    return dataclasses.replace(Manifest(number, (whole,), (data(start, end - 1, partition),)), **more)  # type: ignore[arg-type]  # any field


def test_a_manifest_is_read_as_it_was_written() -> None:
    given = part(
        3, 10, 20, replaces=True, topic_ids={"orders": "ab"}, layout={"hour": True}, written=1, moves={"a": "b"}
    )
    assert m.decode(m.encode(given), "x") == given
    plain = part(1, 0, 5)
    assert b"moves" not in m.encode(plain)
    assert m.decode(m.encode(plain), "x") == plain


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"format":"other","version":1}', b'{"format":"aiokwire-archive","version":99}']
)
def test_an_error_names_a_file_that_is_not_a_manifest(text: bytes) -> None:
    with pytest.raises(ArchiveDamaged, match=r"7\.json is not a manifest"):
        m.decode(text, "7.json")


def test_an_archive_is_the_sum_of_its_rounds() -> None:
    found = m.fold([part(2, 5, 9), part(1, 0, 5), part(3, 0, 4, partition=1)])
    assert found.number == 3
    assert found.ranges == (Range("orders", 0, 0, 9), Range("orders", 1, 0, 4))
    assert [(each.partition, each.first) for each in found.files] == [(0, 0), (0, 5), (1, 0)]
    assert found.ends == {ORDERS: 9, TopicPartition("orders", 1): 4}
    assert (found.records, found.bytes) == (13, 300)
    assert m.fold([]) == Archive()


def test_a_compaction_replaces_all_rounds_before_it() -> None:
    compacted = part(3, 0, 9, replaces=True)
    for leftover in ([], [part(1, 0, 5), part(2, 5, 9)], [part(2, 5, 9)]):
        found = m.fold([*leftover, compacted, part(4, 9, 12)])
        assert [(each.first, each.last) for each in found.files] == [(0, 8), (9, 11)]
        assert found.ends == {ORDERS: 12}


def test_an_error_names_the_missing_manifest() -> None:
    with pytest.raises(ArchiveDamaged, match=r"00001\.json is missing"):
        m.fold([part(2, 5, 9)])
    with pytest.raises(ArchiveDamaged, match=r"00002\.json is missing"):
        m.fold([part(1, 0, 5), part(3, 5, 9)])


def test_an_error_names_offsets_that_two_manifests_share() -> None:
    with pytest.raises(ArchiveDamaged, match=r"two manifests have offset 4 of orders\[0\]"):
        m.fold([part(1, 0, 5), part(2, 4, 9)])


def test_offsets_that_were_never_read_are_found() -> None:
    found = m.fold([part(1, 0, 5), part(2, 8, 9), part(3, 2, 4, partition=1)])
    assert m.missing(found) == [Range("orders", 0, 5, 8)]
    at = [offset for offset in range(12) if m.covers(found, ORDERS, offset)]
    assert at == [0, 1, 2, 3, 4, 8]
    assert not m.covers(found, TopicPartition("orders", 2), 0)


def test_an_archive_consists_of_its_committed_manifests(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    with pytest.raises(ConfigurationError, match="is not an archive"):
        m.read_archive(str(tmp_path))
    store.replace(m.name_of(1), m.encode(part(1, 0, 5)))
    store.replace(m.PENDING, m.encode(part(2, 5, 9)))
    assert m.read_archive(str(tmp_path)).ends == {ORDERS: 5}
    assert sorted(path.name for path in (tmp_path / m.FOLDER).iterdir()) == [".pending.json", f"{1:020}.json"]
    store.move(m.PENDING, m.name_of(2))
    assert m.read_archive(store).ends == {ORDERS: 9}


def test_a_locked_store_refuses_a_second_writer(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    lock = f"{m.FOLDER}/.lock"
    refused = pytest.raises(ConfigurationError, match="another process is writing")
    with store.alone(lock), refused, store.alone(lock):
        pass
    with store.alone(lock):
        pass


def test_an_error_names_an_unknown_file_system() -> None:
    with pytest.raises(ConfigurationError, match="pyarrow has no file system for 'nowhere://x'"):
        Store.at("nowhere://x")
