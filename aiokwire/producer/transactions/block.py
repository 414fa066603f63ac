"""What a program holds of a transaction: the block, its offsets, its abort. `Producer.transaction` gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from aiokwire.errors import ConfigurationError, InvalidArgument, KafkaError, TransactionAborted, TransactionStateError
from aiokwire.producer.transactions.driver import Transactions
from aiokwire.producer.transactions.input_offsets import InputOffsets, Positions
from aiokwire.producer.transactions.open_transaction import OpenTransaction
from aiokwire.producer.transactions.requests import checked_group, checked_offsets
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition, TransactionalReader


class Transaction:
    """One transaction: `async with producer.transaction() as tx`.

    Records that the producer takes within the block are part of it. Its end commits; an exception or a cancellation
    aborts, and goes on. Nothing of it is read by `read_committed` readers before the commit.
    """

    def __init__(
        self, begin: Callable[[], Transactions], reader: TransactionalReader | None, since: Positions | None
    ) -> None:
        if since is not None and reader is None:
            raise InvalidArgument("since: these are the positions of a reader, and none was given")
        self._begin = begin
        self._driver: Transactions | None = None
        self._transaction: OpenTransaction | None = None
        self.aborted = False  # by `abort`, so that the end of the block has nothing to do
        self._reader = reader
        self._since = since
        self._input_offsets: InputOffsets | None = None

    async def __aenter__(self) -> Transaction:
        if self._driver is not None:
            raise TransactionStateError("this transaction was begun before: call producer.transaction() for each")
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
                with suppress(TransactionAborted):  # then the commit fails, and says why
                    await self._send_input_offsets()
                await driver.commit(transaction)
        finally:
            try:
                await driver.abort(transaction)  # after an error, or when it was cancelled
            finally:
                self._resume_reader()
        if isinstance(error, TransactionAborted):
            driver.check()  # that error asks for a repetition, which may be impossible

    @property
    def failure(self) -> KafkaError | None:
        """Why it can only be aborted; None while nothing of it was lost."""
        return None if self._transaction is None else self._transaction.error

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata | str
    ) -> None:
        """Commit a group's offsets with this transaction: each the offset of the next record to read.

        `group` is the consumer's group metadata, so that a member that lost its partitions is refused; or the group's
        name, without that check.

        Raises: TransactionAborted: it cannot be; let this leave the block, which aborts. FencedError,
        TransactionFailed: the producer must stop. TransactionStateError: it has ended. InvalidArgument.
        """
        driver, transaction = self._began()
        await driver.send_offsets(transaction, checked_offsets(offsets), checked_group(group))

    async def abort(self) -> None:
        """Abort now; the block goes on, but nothing more can be sent in it, and its end does nothing.

        Raises: FencedError, TransactionFailed: the coordinator could not be told; the producer must stop.
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
        """Have the reader go on where it must."""
        if self._input_offsets is not None and self._transaction is not None:
            self._input_offsets.resume_reader(self._transaction.outcome)

    def _began(self) -> tuple[Transactions, OpenTransaction]:
        if self._driver is None or self._transaction is None:
            raise TransactionStateError("this transaction was not begun: use `async with producer.transaction() as tx`")
        return self._driver, self._transaction


def require_transactions(found: Transactions | None) -> Transactions:
    """Raises: ConfigurationError: the producer has no transactional id."""
    if found is None:
        raise ConfigurationError("transactions need a transactional_id: Producer(..., transactional_id='my-service-1')")
    return found
