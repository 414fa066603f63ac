"""A round is committed completely or not at all, wherever its driver is killed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aiokwire.spark.archive import manifest as m
from aiokwire.spark.archive.commit import commit, recover
from aiokwire.spark.archive.layout import is_data, temporary
from aiokwire.spark.archive.manifest import ArchiveDamaged, DataFile, Manifest
from aiokwire.spark.archive.tasks import Written
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.source.planning import Range

FOLDER = "topic=orders/date=2026-01-01/partition=0"


class _KilledError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class _Mortal(Store):
    """A store whose process dies before a step."""

    left: list[int] = dataclasses.field(default_factory=lambda: [10**9])

    def _step(self) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise _KilledError

    def writing(self, path: str) -> Any:
        self._step()
        return super().writing(path)

    def move(self, source: str, target: str) -> None:
        self._step()
        super().move(source, target)

    def delete(self, path: str) -> None:
        self._step()
        super().delete(path)

    def settle(self, folder: str) -> None:
        self._step()
        super().settle(folder)


def file_of(first: int, last: int) -> DataFile:
    return DataFile("orders", 0, first, last, f"{FOLDER}/orders-0-{first}-{last}.parquet", last - first + 1, 1, 0, 0, 0)


def write(store: Store, file: DataFile, attempt: str = "a") -> Written:
    """Write a file whose content is its offsets."""
    hidden = temporary(file.path, attempt)
    with store.writing(hidden) as sink:
        sink.write(",".join(map(str, range(file.first, file.last + 1))).encode())
    return Written(hidden, file)


def seen(path: Path) -> list[int]:
    """Return the offsets in a plain read of the directory."""
    found: list[int] = []
    for file in path.rglob("*"):
        if file.is_file() and is_data(str(file.relative_to(path))):
            found += map(int, file.read_text().split(","))
    return sorted(found)


def rounds() -> Iterator[tuple[Manifest, list[DataFile]]]:
    """Return two rounds, and a compaction of their files."""
    for number, start in ((1, 0), (2, 10)):
        files = [file_of(start, start + 4), file_of(start + 5, start + 9)]
        yield Manifest(number, (Range("orders", 0, start, start + 10),), ()), files
    old = [file_of(0, 4), file_of(5, 9), file_of(10, 14), file_of(15, 19)]
    removes = tuple(file.path for file in old)
    yield Manifest(3, (Range("orders", 0, 0, 20),), (), replaces=True, removes=removes), [file_of(0, 19)]


def run(store: Store) -> None:
    """Recover what an earlier run has left, and commit the remaining rounds."""
    done = recover(store).number
    for manifest, files in rounds():
        if manifest.number > done:
            commit(store, manifest, [write(store, file) for file in files])
    recover(store)


def test_readers_of_manifests_and_of_directories_see_the_committed_rounds(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    for manifest, files in rounds():
        commit(store, manifest, [write(store, file) for file in files])
        found = m.read_archive(store)
        assert found.number == manifest.number
        assert sorted(each.path for each in found.files) == [
            str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.parquet"))
        ]
    assert seen(tmp_path) == list(range(20))


def test_a_kill_before_any_step_neither_loses_nor_duplicates_records(tmp_path: Path) -> None:
    for step in range(1000):
        place = tmp_path / str(step)
        mortal = _Mortal(Store.at(place).system, str(place), True, [step])
        try:
            run(mortal)
            break
        except _KilledError:
            found = seen(place)
            assert len(set(found)) == len(found), f"duplicates when killed before step {step}"
        run(Store.at(place))
        assert seen(place) == list(range(20)), f"killed before step {step}"
        archive = m.read_archive(str(place))
        assert [(each.first, each.last) for each in archive.files] == [(0, 19)]
        assert archive.ranges == (Range("orders", 0, 0, 20),)
        assert sorted(each.name for each in (place / m.FOLDER).iterdir()) == [f"{3:020}.json"]
        assert not [each for each in place.rglob(".*") if each.is_file()]
    assert step > 20


def test_uncommitted_files_are_removed(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    manifest, files = next(rounds())
    commit(store, manifest, [write(store, file) for file in files])
    left = write(store, file_of(10, 14), "killed")
    assert store.exists(left.temporary)
    assert recover(store).ends == m.read_archive(store).ends
    assert not store.exists(left.temporary)
    assert seen(tmp_path) == list(range(10))


def test_an_error_names_the_missing_file_of_a_commit(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    manifest, files = next(rounds())
    written = [write(store, file) for file in files]
    store.delete(written[1].temporary)
    with pytest.raises(ArchiveDamaged, match=r"which .* renames to .*, is missing"):
        commit(store, manifest, written)
    with pytest.raises(ArchiveDamaged, match=r"which .* renames to .*, is missing"):
        recover(store)
