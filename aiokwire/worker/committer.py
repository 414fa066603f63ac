"""Commits what is finished: periodically, when partitions are revoked, and at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Protocol

import anyio

from aiokwire.cluster import failure_level
from aiokwire.consumer import Consumer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, BrokerError, ClosedError, CommitFailed, FencedError, KafkaError
from aiokwire.types import OffsetAndMetadata, TopicPartition
from aiokwire.worker.completed_offsets import Progress
from aiokwire.worker.offset_metadata import encode_ranges
from aiokwire.worker.work_queue import WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")

Fatal = Callable[[BaseException], None]


class Committer(Protocol):
    """The interface of the worker's committers, one for each guarantee."""

    async def run(self) -> None:
        """Commit periodically until cancelled."""

    async def commit(self, partitions: Collection[TopicPartition], timeout: float) -> None:
        """Commit what is finished of these partitions now, within `timeout` seconds; failures are
        logged."""

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Leave out lost partitions, and what was sent for them."""


class Finished:
    """The finished and uncommitted records of the partitions, as offsets with metadata."""

    def __init__(self, consumer: Consumer[bytes, bytes], queue: WorkQueue, metadata_limit: int) -> None:
        self._consumer = consumer
        self._queue = queue
        self._metadata_limit = metadata_limit

    def uncommitted(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Progress]:
        """Return the progress of each partition that has changed since its last commit."""
        positions = self._consumer.positions()
        found = {}
        for tp in partitions:
            partition = self._queue.partitions.get(tp)
            if partition is None:
                continue
            position = positions.get(tp)
            # Beyond transaction markers, unless records before it wait to be admitted.
            if position is not None and not partition.is_closing and not partition.held:
                partition.completed.reach(position.offset)
            progress = partition.completed.committable()
            if progress is not None and progress != partition.committed:
                found[tp] = progress
        return found

    def offsets(self, progress: dict[TopicPartition, Progress]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what to commit."""
        return {
            tp: OffsetAndMetadata(
                each.offset, encode_ranges(each.offset, each.ranges, self._metadata_limit), each.leader_epoch
            )
            for tp, each in progress.items()
        }

    def committed(
        self, progress: dict[TopicPartition, Progress], offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Note what was stored: `offsets` are those of `progress`."""
        for tp, each in progress.items():
            self._queue.note_committed(tp, each, offsets[tp])

    def shorten(self, group: str) -> bool:
        """Halve the metadata, which the broker rejected as too large; False if there was none."""
        if not self._metadata_limit:
            return False
        self._metadata_limit = self._metadata_limit // 2 if self._metadata_limit > 64 else 0
        logger.warning(
            "group %r: the broker refused the metadata of a commit as too large: using at most %d bytes from now on. "
            "Records that finished beyond it are handled again after a restart; raise offset.metadata.max.bytes of "
            "the broker, or set offset_metadata_max_bytes",
            group,
            self._metadata_limit,
        )
        return True


class OffsetCommitter:
    """Commits by the consumer: at-least-once, and the positions of at-most-once."""

    def __init__(
        self, consumer: Consumer[bytes, bytes], finished: Finished, queue: WorkQueue, interval: float, on_fatal: Fatal
    ) -> None:
        self._consumer = consumer
        self._finished = finished
        self._queue = queue
        self._interval = interval
        self._on_fatal = on_fatal
        self._turn = anyio.Lock()

    async def run(self) -> None:
        """See `Committer`."""
        while True:
            await anyio.sleep(self._interval)
            if self._finished.uncommitted(self._queue.partitions):
                await self.commit(self._queue.partitions, self._consumer.config.default_api_timeout)

    async def commit(self, partitions: Collection[TopicPartition], timeout: float) -> None:
        """See `Committer`."""
        with anyio.move_on_after(timeout):
            async with self._turn:
                progress = self._finished.uncommitted(partitions)
                if progress:
                    await self._commit(progress, timeout)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """See `Committer`; the consumer refuses to commit them."""

    async def _commit(self, progress: dict[TopicPartition, Progress], timeout: float) -> None:
        group = self._consumer.config.group_id or ""
        while True:
            offsets = self._finished.offsets(progress)
            try:
                await self._consumer.commit(offsets, timeout=timeout)
            except CommitFailed as error:
                logger.info("group %r: %s", group, error)  # the new owner continues at the last commit
            except (AuthorizationError, FencedError) as error:
                self._on_fatal(error)
            except ClosedError:
                pass  # the worker has stopped
            except KafkaError as error:
                is_too_large = isinstance(error, BrokerError) and error.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
                if is_too_large and self._finished.shorten(group):
                    continue
                level = failure_level(error, logging.WARNING)
                logger.log(level, "group %r: a commit failed, the next one covers it: %s", group, error)
            else:
                self._finished.committed(progress, offsets)
            return


class EarlyCommitter(OffsetCommitter):
    """Commits records before they are handled: at-most-once. There is nothing to commit later."""

    async def run(self) -> None:
        """See `Committer`."""

    async def commit(self, partitions: Collection[TopicPartition], timeout: float) -> None:
        """See `Committer`."""

    async def claim(self, offsets: dict[TopicPartition, OffsetAndMetadata], timeout: float) -> bool:
        """Commit the offsets after records that are about to be handled; return whether they are
        committed."""
        try:
            await self._consumer.commit(offsets, timeout=timeout)
        except (AuthorizationError, FencedError) as error:
            self._on_fatal(error)
        except KafkaError as error:
            logger.warning("%s; the records are delivered again", error)
        else:
            return True
        return False
