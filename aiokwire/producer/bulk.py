"""Many records in one call: the records and results of `send_many`, `send_arrow`, `submit_arrow`.

Rows of Arrow data go into the same open batches as single records: same memory, same sequence.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.producer._accumulator import SUBMIT
from aiokwire.producer._delivery import Delivery, outcomes
from aiokwire.records import ArrowRows, rows_of
from aiokwire.types import Headers

if TYPE_CHECKING:
    import pyarrow as pa

    from aiokwire.producer.core import ProducerCore

# Records of an iterable that are accepted at a time.
CHUNK = 10_000

Runs = list[tuple[Delivery, int]]
Failure = tuple[int, int, KafkaError]


class ProducerRecord(NamedTuple):
    """One record for `send_many`, with more than a value."""

    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers | None = None


def chunks(records: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the records in lists of at most `CHUNK`."""
    iterator = iter(records)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


@dataclasses.dataclass(frozen=True, slots=True)
class SendManyResult:
    """The result of one `send_many`, `send_arrow` or `submit_arrow`."""

    topic: str
    delivered: int
    failed: int
    ranges: dict[int, list[tuple[int, int]]]
    """By partition: the offsets, first and last included, in order; none with acks=0."""
    errors: dict[int, KafkaError]
    """By partition: the error of the first record that failed."""
    failures: list[Failure]
    """The records that failed: (first, last, error), indexes of the records of the call, in order."""

    @property
    def count(self) -> int:
        """The number of records."""
        return self.delivered + self.failed

    def raise_for_errors(self) -> None:
        """Return if all records were delivered.

        Raises: KafkaError: the first error.
        """
        for error in self.errors.values():
            raise error


class _Summary:
    """Adds the counts and errors of batches to one `SendManyResult`."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}  # delivered records by partition
        self.delivered = self.failed = 0
        self.ranges: dict[int, list[tuple[int, int]]] = {}
        self.errors: dict[int, KafkaError] = {}
        self.failures: list[Failure] = []

    def add(self, partition: int, first: int, count: int, error: KafkaError | None, at: list[tuple[int, int]]) -> None:
        """Add a partition's records: from offset `first` (-1: unknown), or failed ones by index."""
        if error is None:
            self.delivered += count
            self.counts[partition] = self.counts.get(partition, 0) + count
            self.add_offsets(partition, first, first + count - 1)
            return
        self.failed += count
        self.errors.setdefault(partition, error)
        self.failures += [(start, end, error) for start, end in at]

    def add_offsets(self, partition: int, first: int, last: int) -> None:
        if first < 0:
            return
        known = self.ranges.setdefault(partition, [])
        if known and known[-1][1] + 1 == first:
            known[-1] = (known[-1][0], last)
        else:
            known.append((first, last))

    def add_result(self, result: SendManyResult) -> None:
        """Add a result whose records follow those so far."""
        for partition, ranges in result.ranges.items():
            for first, last in ranges:
                self.add_offsets(partition, first, last)
        for partition, error in result.errors.items():
            self.errors.setdefault(partition, error)
        place = self.delivered + self.failed
        self.failures += [(first + place, last + place, error) for first, last, error in result.failures]
        self.delivered += result.delivered
        self.failed += result.failed

    def result(self, topic: str) -> SendManyResult:
        return SendManyResult(
            topic, self.delivered, self.failed, self.ranges, self.errors, _merged_failures(self.failures)
        )


def _merged_failures(failures: list[Failure]) -> list[Failure]:
    """The failures in order; neighbours with the same error become one."""
    merged: list[Failure] = []
    for first, last, error in sorted(failures, key=lambda failure: failure[0]):
        if merged and merged[-1][1] + 1 == first and merged[-1][2] is error:
            merged[-1] = (merged[-1][0], last, error)
        else:
            merged.append((first, last, error))
    return merged


def _add_up(runs: Runs, rows: ArrowRows | None = None) -> _Summary:
    total = _Summary()
    place = 0
    for number, run in enumerate(runs):
        seen = 0
        for partition, first, count, error in outcomes([run]):
            at = [(place + seen, place + seen + count - 1)]
            if rows is not None and error is not None:
                at = rows.places(len(rows), number, seen, count)
            total.add(partition, first, count, error, at)
            seen += count
        place += seen
    return total


def summary(topic: str, runs: Runs) -> SendManyResult:
    """Return the result of all records; call it once their batches are done."""
    return _add_up(runs).result(topic)


class ArrowDelivery:
    """The result of one `submit_arrow`: await it for the `SendManyResult`."""

    def __init__(self, topic: str, rows: ArrowRows, runs: Runs, core: ProducerCore) -> None:
        self.topic = topic
        self.rows: int = len(rows)
        self._rows = rows
        self._runs = runs
        self._core = core
        self._result: SendManyResult | None = None
        self.counts: dict[int, int] = {}  # the delivered rows of each partition; known with the result

    def done(self) -> bool:
        """Whether each row was acknowledged or failed."""
        return self._result is not None or all(first.done() for first, _ in self._runs)

    def __await__(self) -> Generator[Any, None, SendManyResult]:
        return self._settled().__await__()

    async def _settled(self) -> SendManyResult:
        if self._result is None:
            await self._core.settle_runs(self._runs)
            total = _add_up(self._runs, self._rows)
            self.counts = total.counts
            self._result = total.result(self.topic)
        return self._result


async def submit_rows(core: ProducerCore, topic: str, batch: pa.RecordBatch) -> ArrowDelivery:
    """See `Producer.submit_arrow`."""
    rows = rows_of(batch)
    rows.check(core.accumulator.max_record, await core.topics.partitions_for(topic))
    runs: Runs = []
    done = 0
    while True:
        done = core.accumulator.append_rows(topic, rows, done, runs)
        if done == len(rows):
            break
        first = await core.wait_for_room((topic, *rows.record(done), SUBMIT))
        rows.mark_row(done, len(runs))
        runs.append((first, 1))
        done += 1
    rows.release()
    return ArrowDelivery(topic, rows, runs, core)


async def send_rows(
    core: ProducerCore, topic: str, data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]
) -> SendManyResult:
    """See `Producer.send_arrow`."""
    try:
        pending = [await submit_rows(core, topic, batch) for batch in record_batches(data)]
    finally:
        core.scheduler.seal_everything()
    total = _Summary()
    for delivery in pending:
        total.add_result(await delivery)
    return total.result(topic)


def record_batches(data: object) -> Iterable[pa.RecordBatch]:
    """Return the record batches of a table or an iterable, or the given one.

    Raises: InvalidArgument: the data is of another type.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data.to_batches()
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        return _checked(data)
    raise InvalidArgument(
        f"data must be a pyarrow Table, RecordBatch, or an iterable of those, not {type(data).__name__}"
    )


def _checked(data: Iterable[object]) -> Iterable[pa.RecordBatch]:
    import pyarrow as pa

    for batch in data:
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidArgument(f"data must yield pyarrow RecordBatches, not {type(batch).__name__}")
        yield batch
