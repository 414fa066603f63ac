"""A producer's parts, wired: accumulator, line, topics, scheduler, senders, results, transactions.

    accumulator --events--> core --> scheduler --pump--> senders --responses--> batch results

The parts do not know the core: each gets the collaborators and callbacks that it uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import anyio.lowlevel

from aiokwire.cluster import Client
from aiokwire.errors import BufferFullError, ClosedError, InvalidArgument, KafkaError
from aiokwire.events import Events
from aiokwire.metrics import Sample
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import DONE, SPLIT, Batch, Delivery, WaitingRecord, pending_in
from aiokwire.producer._partition import Partition, Topic
from aiokwire.producer.batch_failures import PARKED_GRACE, BatchFailures, any_batch, is_not_in_flight
from aiokwire.producer.batch_results import BatchResults
from aiokwire.producer.buffer_pool import Record, WaitingLine
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.events import (
    ProducerEvent,
    ProducerFailed,
    ProducerHealth,
    ProducerIdChanged,
    Watch,
    report_failed,
)
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.producer.idempotence import Idempotence, ProducerIdRequest
from aiokwire.producer.metrics import ProducerCounts, samples_of
from aiokwire.producer.partitioner import compiled_partitioner, custom_partitioner, plan_sticky
from aiokwire.producer.scheduler import BatchScheduler
from aiokwire.producer.sender import Sender, SenderParts, Slices
from aiokwire.producer.topics import Topics
from aiokwire.producer.transactions.driver import Transactions
from aiokwire.producer.transactions.shared import TransactionTicket


class ProducerCore:
    """Builds a producer's parts on a client, handles accumulator events, flushes; on its loop."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        hooks: ProducerHooks | None = None,
        joins: TransactionTicket | None = None,
        events: Events[ProducerEvent] | None = None,
    ) -> None:
        self.events: Events[ProducerEvent] = Events[ProducerEvent]() if events is None else events
        self._hooks = hooks
        self._client = client
        self._config = config
        self._partitioner = custom_partitioner(config.partitioner)
        self._ended = False
        self._counts = ProducerCounts()
        self._build_buffer()
        self._build_identity(joins)
        self._build_results(joins)
        self._build_senders()

    def _build_buffer(self) -> None:
        config = self._config
        self.accumulator: Accumulator = Accumulator(
            self,
            limit=config.buffer_memory,
            batch_size=max(config.batch_size, 1),
            max_record=config.max_request_size,
            delivery_timeout=config.delivery_timeout,
            partitioning=compiled_partitioner(config.partitioner),
        )
        self.line: WaitingLine = WaitingLine(self.accumulator, config.delivery_timeout, self._soon, self._wake_at)
        self.enter_line: Callable[[Record], WaitingRecord] = self.line.enter
        self.full: Callable[[Record], BufferFullError] = self.line.full
        self.topics: Topics = Topics(
            self._client,
            config,
            self.accumulator,
            on_ready=self._on_ready,
            on_unknown=self._on_unknown_topic,
            events=self.events,
        )
        self._watch = Watch(self.accumulator, self.line, self.now, self.events)

    def _build_identity(self, joins: TransactionTicket | None) -> None:
        config = self._config
        self.transactions: Transactions | None = None
        self.idempotence: Idempotence
        if config.transactional_id is None:
            self.idempotence = Idempotence(
                wanted=config.wants_idempotence,
                insisted=bool(config.enable_idempotence),
                on_change=self._on_identity,
            )
            return
        self.transactions = Transactions(
            self._client,
            config,
            self.accumulator,
            self.line,
            joins=joins,
            events=self.events,
            flush=self.flush,
            fail_unsent=lambda error: self.failures.fail_batches(is_not_in_flight, error),
            fail_all=self._fail_all,
            on_writable=self._soon,
            on_identity=self._on_identity,
        )
        self.idempotence = self.transactions.identity

    def _build_results(self, joins: TransactionTicket | None) -> None:
        config = self._config
        self.scheduler: BatchScheduler = BatchScheduler(
            self.accumulator,
            self.idempotence,
            config.linger,
            hooks=self._hooks,
            new_sender=self._new_sender,
            refresh=self.topics.refresh,
            expire=self._expire,
            watch=self._watch,
        )
        self.on_sealed: Callable[[Partition], None] = self.scheduler.on_sealed
        self.on_urgent: Callable[[Partition], None] = self.scheduler.on_urgent
        self._results = BatchResults(
            self._client,
            config,
            self.accumulator,
            self.topics,
            self.idempotence,
            requeue=self.scheduler.requeue,
            transactions=self.transactions,
            hooks=self._hooks,
            events=self.events,
            counts=self._counts,
            check_duplicates=joins is not None,
        )
        self.failures: BatchFailures = BatchFailures(self.accumulator, self.topics, self._results, self.line, self.now)

    def _build_senders(self) -> None:
        self._producer_ids = ProducerIdRequest(
            self._client,
            self._config,
            self.idempotence,
            on_obtained=self.scheduler.soon,
            on_retry=self.failures.set_last_error,
            on_refused=self._fail_all,
        )
        self._sender_parts = SenderParts(
            config=self._config,
            topics=self.topics,
            results=self._results,
            idempotence=self.idempotence,
            slices=Slices(),
            hooks=self._hooks,
            counts=self._counts,
            rng=self._client.rng,
            scheduler=self.scheduler,
            max_produce_version=lambda: None if self.transactions is None else self.transactions.max_produce_version,
            want_producer_id=self.want_producer_id,
            on_encoded=self._on_encoded,
            on_response=self._on_response,
            on_throttled=self._watch.throttled,
        )

    # --- start and end ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start on the running loop; the client has been started."""
        loop = asyncio.get_running_loop()
        self.scheduler.start(loop)
        self.accumulator.open(loop)
        self._client.metadata.add_listener(self.topics.on_cluster)
        self._client.spawn(self._watch_client, name="producer: the client's end")
        if self.idempotence.enabled:
            self.want_producer_id()

    async def _watch_client(self) -> None:
        """Fail all batches when the client ends by a failure."""
        try:
            await anyio.sleep_forever()
        finally:
            if not self._ended:
                reason = "this producer ended, because its client did"
                self.end()
                self.stop(reason)
                error = ClosedError(reason)
                self._fail_all(error)
                self.events.publish(ProducerFailed(error))
                self.events.close()

    def stop(self, reason: str, *, report: bool = True) -> list[Record]:
        """Accept no more records, and refuse those that wait for room; return the waiting records
        that are not awaited, after logging them unless `report` is False."""
        self.accumulator.close(reason)
        return self.line.dismiss(ClosedError(reason), report=report)

    def end(self) -> None:
        """Cancel the timers and remove the listeners: nothing refers to a closed producer."""
        self._ended = True
        self._client.metadata.remove_listener(self.topics.on_cluster)
        self.scheduler.end()

    def now(self) -> float:
        """The loop's clock."""
        return self.scheduler.loop.time()

    # --- events of the accumulator ----------------------------------------------------------------------------------

    def on_open(self, partition: Partition) -> None:
        """Keep the metadata of the topic, and begin the linger of a new batch."""
        assert partition.open is not None
        self._client.metadata.keep(partition.topic, partition.open.created)
        self.scheduler.on_open(partition)

    def on_unknown(self, topic: Topic) -> None:
        """Request the metadata of a topic that got its first record."""
        self._client.spawn(self.topics.resolve, topic, name=f"producer: partitions of {topic.name}")
        self.scheduler.wake_at(self.now() + self._config.delivery_timeout + PARKED_GRACE)

    def on_refused(self, batch: Batch) -> None:
        """A record that was accepted before its topic was known cannot be placed."""
        assert batch.error is not None
        self._counts.failed(batch, batch.error)
        if self._hooks is not None:
            self._hooks.failed(batch)
        report_failed(self.events, batch)

    def on_cancel(self, batch: Batch, index: int) -> bool:
        """Cancel a record that was not sent yet; return whether it was cancelled."""
        partition = self.topics.partition_of(batch)
        if partition is not None and partition.open is batch:
            self.scheduler.seal(partition)
        return self.failures.cancel(partition, batch, index)

    def choose_sticky(self, topic: Topic) -> int:
        """The next partition for records without a key."""
        following = topic.next_in_turn()  # `plan_sticky` chooses the same one, in a tenth of the time
        if following >= 0:
            return following
        backlogs = [p.backlog if p.leader >= 0 else None for p in topic.partitions[: topic.count]]
        return plan_sticky(backlogs, topic.sticky, self._client.rng)

    def choose_partition(self, topic: Topic, key: bytes | None, value: bytes | None) -> int:
        """The partition that a custom partitioner returns."""
        assert self._partitioner is not None
        chosen = self._partitioner(topic.name, key, value, range(topic.count))
        if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < topic.count:
            raise InvalidArgument(
                f"the partitioner returned {chosen!r} for topic {topic.name!r}, which has {topic.count} partitions"
            )
        return chosen

    async def wait_for_room(self, record: Record) -> Delivery:
        """Accept a record of a bulk call that has to wait: for the loop's turn, or for room."""
        if self.accumulator.turn_due:
            await anyio.lowlevel.checkpoint()
            taken = self.accumulator.append(*record)
            if taken is not None:
                return taken
        return await self.line.join(record)

    # --- all batches ------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Seal every batch; wait until all records accepted so far are acknowledged or failed."""
        self.scheduler.seal_everything()
        await self.line.served()
        pending = list(self.accumulator.live)
        self.scheduler.seal_everything()
        while pending:
            batch = pending.pop()
            await self._settled(batch)
            following = batch.successors()
            if following:  # after a split, or once its partition is known: these must not linger either
                pending += following
                self.scheduler.seal_everything()

    def health(self, *, running: bool) -> ProducerHealth:
        """Return the health, computed from the batches that are not done."""
        live = [batch for batch in self.accumulator.live if batch.remaining]
        return ProducerHealth(
            records=sum(batch.remaining for batch in live),
            waiting=len(self.line),
            memory_in_use=self.accumulator.used,
            oldest=max(0.0, self.now() - min(batch.created for batch in live)) if live else None,
            last_error=next((batch.last_error for batch in live if batch.last_error is not None), None),
            running=running,
        )

    def metrics(self) -> list[Sample]:
        """Return the metrics now; from any thread."""
        now = self.scheduler.loop.time() if self.scheduler.is_started else None
        own = samples_of(self._config.client_id, self._counts, self.accumulator, self.line, now)
        return own + self._client.metrics()

    async def _settled(self, batch: Batch) -> None:
        if batch.state in (DONE, SPLIT):
            return
        waiter = self.scheduler.loop.create_future()
        batch.add_waiter(waiter)
        try:
            await waiter
        finally:
            batch.discard_waiter(waiter)

    async def settle_runs(self, runs: list[tuple[Delivery, int]]) -> None:
        """Wait until the batches of all runs are done; their errors are not raised."""
        for delivery, count in runs:
            while (batch := pending_in(delivery, count)) is not None:
                await self._settled(batch)

    # --- callbacks of the parts -------------------------------------------------------------------------------------

    def _soon(self) -> None:
        self.scheduler.soon()

    def _wake_at(self, when: float) -> None:
        self.scheduler.wake_at(when)

    def _on_ready(self, partition: Partition) -> None:
        self.scheduler.on_ready(partition)

    def _expire(self, now: float) -> None:
        self.failures.expire(now)

    def _on_unknown_topic(self, parked: Batch, error: KafkaError) -> None:
        self._results.give_up(None, parked, error)
        self.line.serve()

    def _fail_all(self, error: KafkaError) -> None:
        self.failures.fail_batches(any_batch, error)

    def _new_sender(self, node_id: int) -> Sender:
        sender = Sender(node_id, self._sender_parts)
        self._client.spawn(sender.run, name=f"producer: sender to node {node_id}")
        return sender

    def _on_encoded(self, batch: Batch) -> None:
        """Free the room that a batch does not need after its compression."""
        self.accumulator.release_plain(batch)
        if len(self.line):
            self.line.serve()

    def _on_response(self) -> None:
        """Use the room in the buffer, and let the sender send another request."""
        self.line.serve()
        self.scheduler.pump()

    def want_producer_id(self) -> None:
        """Request a producer id unless a request is in flight or the coordinator assigns it."""
        if self.transactions is None:
            self._producer_ids.want()

    def _on_identity(self, producer_id: int, producer_epoch: int) -> None:
        if self.events.wanted:
            self.events.publish(ProducerIdChanged(producer_id, producer_epoch))
