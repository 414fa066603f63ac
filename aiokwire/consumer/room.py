"""Passes on what the reader reports to those who fetch.

These are not methods of the consumer, because its background tasks hold them: a consumer that its program has dropped
can be collected, and warns then that it was not closed.
"""

from __future__ import annotations

from aiokwire.consumer.fetch_buffer import FetchBuffer
from aiokwire.consumer.fetcher import Fetcher
from aiokwire.consumer.position_updater import PositionUpdater
from aiokwire.consumer.positions import PartitionState


class Room:
    """The reader's listener."""

    _buffer: FetchBuffer
    _fetcher: Fetcher
    _updater: PositionUpdater

    def connect(self, buffer: FetchBuffer, fetcher: Fetcher, updater: PositionUpdater) -> None:
        """Set what is made after the reader."""
        self._buffer = buffer
        self._fetcher = fetcher
        self._updater = updater

    def on_room(self, state: PartitionState) -> None:
        """A partition has fewer bytes than before."""
        self._fetcher.wake(state)
        if not state.is_fetchable:
            self._updater.wake()

    def on_wait(self) -> None:
        """A reader is about to wait: when memory is held, it may be what keeps its records away."""
        if self._buffer.held:
            self._fetcher.wake_all()
