"""The block of a transaction, its offsets and its abort; `Producer.transaction` returns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from aiokwire.errors import InvalidArgument, KafkaError, TransactionAborted, TransactionStateError
from aiokwire.producer.transactions.driver import Transactions
from aiokwire.producer.transactions.open_transaction import OpenTransaction, TransactionOutcome
from aiokwire.producer.transactions.requests import checked_group, checked_offsets
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition, TransactionalReader

Positions = Mapping[TopicPartition, OffsetAndMetadata | None]


class InputOffsets:
    """The offsets of the records that a reader returns during a transaction."""

    def __init__(self, reader: TransactionalReader, since: Positions | None) -> None:
        """Raises: ConfigurationError: the reader has no group."""
        # As of now: a member that loses its partitions while it processes their records is refused by the group.
        self.group: GroupMetadata = reader.group_metadata()
        self._reader = reader
        self._held = dict(reader.positions())
        self._since = self._held if since is None else dict(since)

    def moved(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions that the transaction's work has moved, to be committed with it."""
        return {
            place: now
            for place, now in self._reader.positions().items()
            if now is not None and _offset(now) != _offset(self._since.get(place))
        }

    def lost(self) -> list[TopicPartition]:
        """The partitions that the reader has lost: its position in them is unknown."""
        return sorted(self._held.keys() - self._reader.positions().keys())

    def resume_reader(self, outcome: TransactionOutcome) -> None:
        """After the transaction: continue, rewind, or resume from the committed offsets."""
        if outcome is TransactionOutcome.COMMITTED:
            return
        if outcome is TransactionOutcome.UNKNOWN:
            self._reader.resume_from_committed({place: self._since.get(place) for place in self.moved()})
        else:
            places = {*self._since, *self._reader.positions()}
            self._reader.rewind({place: self._since.get(place) for place in places})


def _offset(place: OffsetAndMetadata | None) -> int | None:
    return None if place is None else place.offset


class Transaction:
    """One transaction: `async with producer.transaction() as tx`.

    Records that the producer accepts within the block are part of it. The end of the block commits;
    an exception or a cancellation aborts it, and leaves the block. `read_committed` readers see its
    records after the commit only.
    """

    def __init__(
        self, begin: Callable[[], Transactions], reader: TransactionalReader | None, since: Positions | None
    ) -> None:
        if since is not None and reader is None:
            raise InvalidArgument("since= contains positions of a consumer: pass the consumer, too")
        self._begin = begin
        self._driver: Transactions | None = None
        self._transaction: OpenTransaction | None = None
        self.aborted: bool = False  # by `abort`: the end of the block does nothing
        self._reader = reader
        self._since = since
        self._input_offsets: InputOffsets | None = None

    async def __aenter__(self) -> Transaction:
        if self._driver is not None:
            raise TransactionStateError("this transaction has already begun: call producer.transaction() for each one")
        driver = self._begin()
        input_offsets = None if self._reader is None else InputOffsets(self._reader, self._since)
        self._transaction = driver.begin()
        self._driver, self._input_offsets = driver, input_offsets
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        driver, transaction = self._began()
        if self.aborted:
            return
        try:
            if error is None:
                with suppress(TransactionAborted):  # the commit raises it
                    await self._send_input_offsets()
                await driver.commit(transaction)
        finally:
            try:
                await driver.abort(transaction)  # after an error or a cancellation
            finally:
                self._resume_reader()
        if isinstance(error, TransactionAborted):
            driver.check()  # a retry may be impossible after that error

    @property
    def failure(self) -> KafkaError | None:
        """Why it can only be aborted; None while it can be committed."""
        return None if self._transaction is None else self._transaction.error

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata | str
    ) -> None:
        """Commit a group's offsets with this transaction: each that of the next record to read.

        `group` is the consumer's group metadata, so that a member that lost its partitions is
        refused; or the group id, without this check.

        Raises: TransactionAborted: let this error leave the block, which aborts. FencedError,
        TransactionFailed: the producer must stop. TransactionStateError: the transaction has ended.
        InvalidArgument.
        """
        driver, transaction = self._began()
        await driver.send_offsets(transaction, checked_offsets(offsets), checked_group(group))

    async def abort(self) -> None:
        """Abort now; the block continues, but cannot send any more, and its end does nothing.

        Raises: FencedError, TransactionFailed: no response or a refusal; the producer must stop.
        """
        driver, transaction = self._began()
        self.aborted = True
        try:
            await driver.abort(transaction)
        finally:
            self._resume_reader()
        driver.check()

    async def _send_input_offsets(self) -> None:
        """Raises: as `send_offsets`."""
        if self._input_offsets is None:
            return
        driver, transaction = self._began()
        lost = self._input_offsets.lost()
        if lost:
            driver.give_up(transaction, TransactionAborted(f"the reader lost {', '.join(map(str, lost))} meanwhile"))
        else:
            await driver.send_offsets(transaction, self._input_offsets.moved(), self._input_offsets.group)

    def _resume_reader(self) -> None:
        if self._input_offsets is not None and self._transaction is not None:
            self._input_offsets.resume_reader(self._transaction.outcome)

    def _began(self) -> tuple[Transactions, OpenTransaction]:
        if self._driver is None or self._transaction is None:
            raise TransactionStateError("this transaction has not begun: use `async with producer.transaction() as tx`")
        return self._driver, self._transaction
