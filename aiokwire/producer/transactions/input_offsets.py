"""The progress of a reader within a transaction: which offsets to commit with it, and where to go on after it."""

from __future__ import annotations

from collections.abc import Mapping

from aiokwire.producer.transactions.open_transaction import TransactionOutcome
from aiokwire.types import OffsetAndMetadata, TopicPartition, TransactionalReader

Positions = Mapping[TopicPartition, OffsetAndMetadata | None]


class InputOffsets:
    """What a reader hands over in the course of a transaction."""

    def __init__(self, reader: TransactionalReader, since: Positions | None) -> None:
        """Raises: ConfigurationError: the reader has no group."""
        # Of now: who loses the group's partitions while it works on their records is refused by the group.
        self.group = reader.group_metadata()
        self._reader = reader
        self._held = dict(reader.positions())
        self._since = self._held if since is None else dict(since)

    def moved(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions that moved."""
        return {
            place: now
            for place, now in self._reader.positions().items()
            if now is not None and _offset(now) != _offset(self._since.get(place))
        }

    def lost(self) -> list[TopicPartition]:
        """Partitions that were taken from the reader: how much of them it handed over is not known any more."""
        return sorted(self._held.keys() - self._reader.positions().keys())

    def resume_reader(self, outcome: TransactionOutcome) -> None:
        """Go on, go back, or go on where the group stands, after the transaction."""
        if outcome is TransactionOutcome.COMMITTED:
            return
        if outcome is TransactionOutcome.UNKNOWN:
            self._reader.resume_from_committed({place: self._since.get(place) for place in self.moved()})
        else:
            places = {*self._since, *self._reader.positions()}
            self._reader.rewind({place: self._since.get(place) for place in places})


def _offset(place: OffsetAndMetadata | None) -> int | None:
    return None if place is None else place.offset
