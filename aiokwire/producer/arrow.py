"""Rows of Arrow arrays into the producer: `Producer.send_arrow` and `submit_arrow`, and what becomes of the rows.

They go into the same open batches as single records: under the same bound of memory, in the same sequence.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.producer._accumulator import SUBMIT
from aiokwire.producer._delivery import Delivery, outcomes
from aiokwire.producer.bulk import SendManyResult, extend_ranges
from aiokwire.records import ArrowRows, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from aiokwire.producer.config import ProducerConfig
    from aiokwire.producer.core import ProducerCore

Runs = list[tuple[Delivery, int]]
Failure = tuple[int, int, KafkaError]


class ArrowDelivery:
    """What becomes of the rows of one `submit_arrow`: await it for the `SendManyResult`."""

    def __init__(self, topic: str, rows: ArrowRows, runs: Runs, core: ProducerCore) -> None:
        self.topic = topic
        self.rows = len(rows)
        self._rows = rows
        self._runs = runs
        self._core = core
        self._result: SendManyResult | None = None
        self.counts: dict[int, int] = {}  # how many rows each partition has taken; known with the result

    def done(self) -> bool:
        """Whether each row was acknowledged or given up."""
        return self._result is not None or all(first.done() for first, _ in self._runs)

    def __await__(self) -> Generator[Any, None, SendManyResult]:
        return self._settled().__await__()

    async def _settled(self) -> SendManyResult:
        if self._result is None:
            await self._core.settle_runs(self._runs)
            self._result = summary_of_rows(self.topic, self._rows, self._runs, self.counts)
        return self._result


class RowSender:
    """Takes the rows of record batches, as fast as there is room."""

    def __init__(self, core: ProducerCore, config: ProducerConfig) -> None:
        self._core = core
        self._config = config

    async def submit(self, topic: str, batch: pa.RecordBatch) -> ArrowDelivery:
        """See `Producer.submit_arrow`."""
        rows = rows_of(batch)
        rows.check(self._config.max_request_size, await self._core.topics.partitions_for(topic))
        runs: Runs = []
        done = 0
        while True:
            done = self._core.accumulator.append_rows(topic, rows, done, runs)
            if done == len(rows):
                break
            value, key, partition, timestamp, headers = rows.record(done)
            record = (topic, value, key, partition, timestamp, headers, SUBMIT)
            first = await self._core.wait_for_room(record)
            rows.mark_row(done, len(runs))
            runs.append((first, 1))
            done += 1
        rows.release()
        return ArrowDelivery(topic, rows, runs, self._core)

    async def send(self, topic: str, data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> SendManyResult:
        """See `Producer.send_arrow`."""
        pending: list[ArrowDelivery] = []
        try:
            for batch in record_batches(data):
                delivery = await self.submit(topic, batch)
                pending.append(delivery)
        finally:
            self._core.scheduler.seal_everything()
        return joined(topic, [await each for each in pending])


def record_batches(data: object) -> Iterable[pa.RecordBatch]:
    """A table's record batches, one alone, or those that come.

    Raises: InvalidArgument: it is none of that.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data.to_batches()
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        return _checked(data)
    raise InvalidArgument(f"data must be a pyarrow Table, RecordBatch, or an iterable of those, not {_name(data)}")


def _checked(data: Iterable[object]) -> Iterable[pa.RecordBatch]:
    import pyarrow as pa

    for batch in data:
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidArgument(f"data must give pyarrow RecordBatches, not {_name(batch)}")
        yield batch


def _name(thing: object) -> str:
    return type(thing).__name__


def summary_of_rows(topic: str, rows: ArrowRows, runs: Runs, counts: dict[int, int]) -> SendManyResult:
    """The result of rows whose batches are done; `counts` grows by the delivered ones of each partition."""
    delivered = failed = 0
    ranges: dict[int, list[tuple[int, int]]] = {}
    errors: dict[int, KafkaError] = {}
    failures: list[Failure] = []
    for number, run in enumerate(runs):
        seen = 0
        for partition, first, count, error in outcomes([run]):
            if error is None:
                delivered += count
                counts[partition] = counts.get(partition, 0) + count
                extend_ranges(ranges, partition, first, count)
            else:
                failed += count
                errors.setdefault(partition, error)
                failures += [(start, end, error) for start, end in rows.places(len(rows), number, seen, count)]
            seen += count
    return SendManyResult(topic, delivered, failed, ranges, errors, in_order(failures))


def in_order(failures: list[Failure]) -> list[Failure]:
    """By place; neighbours with the same error are one."""
    merged: list[Failure] = []
    for first, last, error in sorted(failures, key=lambda failure: failure[0]):
        if merged and merged[-1][1] + 1 == first and merged[-1][2] is error:
            merged[-1] = (merged[-1][0], last, error)
        else:
            merged.append((first, last, error))
    return merged


def joined(topic: str, results: list[SendManyResult]) -> SendManyResult:
    """Several results, whose records follow each other, as one."""
    whole = SendManyResult(topic, 0, 0, {}, {}, [])
    delivered = failed = 0
    for result in results:
        for partition, ranges in result.ranges.items():
            for first, last in ranges:
                extend_ranges(whole.ranges, partition, first, last - first + 1)
        for partition, error in result.errors.items():
            whole.errors.setdefault(partition, error)
        place = delivered + failed
        whole.failures.extend((first + place, last + place, error) for first, last, error in result.failures)
        delivered += result.delivered
        failed += result.failed
    return SendManyResult(topic, delivered, failed, whole.ranges, whole.errors, in_order(whole.failures))
