"""The broker's periodic chores; an error in one does not end the broker."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.maintenance import Maintenance
from aiokwire.broker.server import Listeners
from aiokwire.errors import StorageError
from tests.broker.raw import RawClient, batch, produce_one


def _maintenance(broker: Broker) -> Maintenance:
    return Maintenance(broker.state, Listeners(broker.state))


async def _produce(broker: Broker, *values: bytes) -> None:
    client = await RawClient.connect(broker)
    for value in values:
        await produce_one(client, "t", batch([value]))
    await client.close()


async def test_old_segments_are_deleted_with_their_files(tmp_path: Path) -> None:
    async with Broker(
        tmp_path,
        topics={"t": 1},
        log_segment_bytes=1000,
        log_retention_bytes=1000,
        log_retention_ms=-1,
        log_segment_delete_delay_ms=0,
    ) as broker:
        await _produce(broker, *[b"x" * 500] * 10)
        log = broker.state.topics.require("t").partitions[0].log
        await _maintenance(broker).do_all()
        assert log.log_start_offset == 8
        files = [path.name async for path in anyio.Path(tmp_path / "t-0").iterdir()]
        assert not [name for name in files if name.endswith(".deleted")]
        assert sorted(name for name in files if name.endswith(".log")) == [f"{8:020}.log", f"{9:020}.log"]


async def test_flush_ms_and_checkpoints_reach_the_disk(tmp_path: Path) -> None:
    async with Broker(tmp_path, topics={"t": 1}, log_flush_interval_ms=0, log_retention_ms=-1) as broker:
        await _produce(broker, b"a", b"b")
        await _maintenance(broker).do_all()
        checkpoint = await anyio.Path(tmp_path / "recovery-point-offset-checkpoint").read_text()
        assert checkpoint == "0\n1\nt 0 2\n"


async def test_the_files_of_a_deleted_topic_are_deleted(tmp_path: Path) -> None:
    async with Broker(tmp_path, topics={"t": 2}, log_segment_delete_delay_ms=0) as broker:
        await _produce(broker, b"a")
        await broker.delete_topic("t")
        await _maintenance(broker).do_all()
        left = [path.name async for path in anyio.Path(tmp_path).iterdir() if await path.is_dir()]
        assert left == []


class Failing(MemoryStorage):
    """Fails the first flush of a log."""

    refusals = 0

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def sync(self, path: str) -> None:
        if path.endswith(".log") and self.refusals == 0:
            self.refusals += 1
            raise self.error
        super().sync(path)


@pytest.mark.parametrize("error", [StorageError("the medium is gone"), RuntimeError("the medium is gone")])
async def test_a_failed_chore_is_logged_and_retried(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    async with Broker(storage=Failing(error), topics={"t": 1}, log_flush_interval_ms=0, log_retention_ms=-1) as broker:
        await _produce(broker, b"a")
        maintenance = _maintenance(broker)
        await maintenance.do_all()
        log = broker.state.topics.require("t").partitions[0].log
        assert log.recovery_point == 0
        assert "the medium is gone" in caplog.text
        await maintenance.do_all()
        assert log.recovery_point == 1


class _Threads(MemoryStorage):
    """Records the threads that renamed a file."""

    def __init__(self) -> None:
        super().__init__()
        self.renaming: set[int] = set()

    def rename(self, source: str, target: str) -> None:
        if source.endswith((".log", ".index")):
            self.renaming.add(threading.get_ident())
        super().rename(source, target)


async def test_retention_renames_files_in_a_thread() -> None:
    storage = _Threads()
    async with Broker(
        storage=storage, topics={"t": 1}, log_segment_bytes=1000, log_retention_bytes=1000, log_retention_ms=-1
    ) as broker:
        await _produce(broker, *[b"x" * 500] * 10)
        await _maintenance(broker).do_all()
        assert broker.state.topics.require("t").partitions[0].log.log_start_offset == 8
    assert storage.renaming
    assert threading.get_ident() not in storage.renaming
