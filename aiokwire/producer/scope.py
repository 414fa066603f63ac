"""What a program holds of a transaction: the block, its offsets, its abort. `Producer.transaction` gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiokwire.errors import ConfigurationError, TransactionAborted, TransactionStateError
from aiokwire.producer.transaction import Ongoing, Transactions
from aiokwire.producer.transaction_requests import checked_group, checked_offsets
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition


class Transaction:
    """One transaction: `async with producer.transaction() as tx`.

    Records that the producer takes within the block are part of it. Its end commits; an exception or a cancellation
    aborts, and goes on. Nothing of it is read by `read_committed` readers before the commit.
    """

    def __init__(self, begin: Callable[[], Transactions]) -> None:
        self._begin = begin
        self._driver: Transactions | None = None
        self._ongoing: Ongoing | None = None
        self._aborted = False  # by `abort`, so that the end of the block has nothing to do

    async def __aenter__(self) -> Transaction:
        if self._driver is not None:
            raise TransactionStateError("this transaction was begun before: call producer.transaction() for each")
        driver = self._begin()
        self._ongoing = driver.begin()
        self._driver = driver
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        driver, ongoing = self._began()
        if self._aborted:
            return
        if error is not None:
            await driver.abort(ongoing)
            if isinstance(error, TransactionAborted):
                driver.check()  # that error asks for a repetition, which may be impossible
            return
        try:
            await driver.commit(ongoing)
        finally:
            await driver.abort(ongoing)  # when it was cancelled

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata | str
    ) -> None:
        """Commit a group's offsets with this transaction: each the offset of the next record to read.

        `group` is the consumer's group metadata, so that a member that lost its partitions is refused; or the group's
        name, without that check.

        Raises: TransactionAborted: it cannot be; let this leave the block, which aborts. FencedError,
        TransactionFailed: the producer must stop. TransactionStateError: it has ended. InvalidArgument.
        """
        driver, ongoing = self._began()
        await driver.send_offsets(ongoing, checked_offsets(offsets), checked_group(group))

    async def abort(self) -> None:
        """Abort now; the block goes on, but nothing more can be sent in it, and its end does nothing.

        Raises: FencedError, TransactionFailed: the coordinator could not be told; the producer must stop.
        """
        driver, ongoing = self._began()
        self._aborted = True
        await driver.abort(ongoing)
        driver.check()

    def _began(self) -> tuple[Transactions, Ongoing]:
        if self._driver is None or self._ongoing is None:
            raise TransactionStateError("this transaction was not begun: use `async with producer.transaction() as tx`")
        return self._driver, self._ongoing


def require_transactions(found: Transactions | None) -> Transactions:
    """Raises: ConfigurationError: the producer has no transactional id."""
    if found is None:
        raise ConfigurationError("transactions need a transactional_id: Producer(..., transactional_id='my-service-1')")
    return found
