"""The parts of one producer, wired: accumulator, line, topics, scheduler, senders, results, transactions.

    accumulator --events--> core --> scheduler --pump--> senders --responses--> batch results

The parts do not know the core: each gets the collaborators and callbacks that it uses.
"""

from __future__ import annotations

import asyncio
import random

import anyio
import anyio.lowlevel

from aiokwire.cluster import Client
from aiokwire.errors import BufferFullError, ClosedError, InvalidArgument, KafkaError
from aiokwire.events import Events
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import DONE, SPLIT, Batch, Delivery, WaitingRecord, pending_in
from aiokwire.producer._partition import Partition, Topic
from aiokwire.producer.batch_failures import PARKED_GRACE, BatchFailures, any_batch, is_not_in_flight
from aiokwire.producer.batch_results import BatchResults
from aiokwire.producer.buffer_pool import Record, WaitingLine
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.duplicate_check import DuplicateCheck
from aiokwire.producer.events import ProducerEvent, ProducerFailed, ProducerIdChanged, Watch, report_failed
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.producer.idempotence import Idempotence, ProducerIdRequest
from aiokwire.producer.partitioner import compiled_partitioner, custom_partitioner, plan_sticky
from aiokwire.producer.scheduler import BatchScheduler
from aiokwire.producer.sender import Sender, SenderParts
from aiokwire.producer.slices import Slices
from aiokwire.producer.topics import Topics
from aiokwire.producer.transactions.driver import Transactions
from aiokwire.producer.transactions.shared import TransactionTicket


class ProducerCore:
    """Builds the parts of a producer on one client, receives the accumulator's events, and flushes; on its loop."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        rng: random.Random,
        hooks: ProducerHooks | None = None,
        joins: TransactionTicket | None = None,
        events: Events[ProducerEvent] | None = None,
    ) -> None:
        self.events = Events[ProducerEvent]() if events is None else events
        self._rng = rng
        self._hooks = hooks
        self._client = client
        self._config = config
        self._partitioner = custom_partitioner(config.partitioner)
        self._ended = False
        self._build_buffer()
        self._build_identity(joins)
        self._build_results(joins)
        self._build_senders()

    def _build_buffer(self) -> None:
        config = self._config
        self.accumulator = Accumulator(
            self,
            limit=config.buffer_memory,
            batch_size=max(config.batch_size, 1),
            max_record=config.max_request_size,
            delivery_timeout=config.delivery_timeout,
            partitioning=compiled_partitioner(config.partitioner),
        )
        self.line = WaitingLine(self.accumulator, config.delivery_timeout, self._soon, self._wake_at)
        self.topics = Topics(
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
            self._rng,
            self.accumulator,
            self.line,
            joins=joins,
            events=self.events,
            flush=self.flush,
            fail_unsent=self._fail_unsent,
            fail_all=self._fail_all,
            on_writable=self._soon,
            on_identity=self._on_identity,
        )
        self.idempotence = self.transactions.identity

    def _build_results(self, joins: TransactionTicket | None) -> None:
        client, config = self._client, self._config
        self.scheduler = BatchScheduler(
            self.accumulator,
            self.line,
            self.idempotence,
            config.linger,
            hooks=self._hooks,
            new_sender=self._new_sender,
            refresh=self.topics.refresh,
            expire=self._expire,
            on_pumped=self._watch.look,
        )
        self._results = BatchResults(
            self.accumulator,
            self.idempotence,
            config,
            self._rng,
            requeue=self.scheduler.requeue,
            refresh=self.topics.refresh,
            on_leader=self.topics.on_leader,
            throttled_until=client.throttled_until,
            transactions=self.transactions,
            hooks=self._hooks,
            events=self.events,
            duplicate_check=DuplicateCheck(client, config.default_api_timeout) if joins is not None else None,
        )
        self.failures = BatchFailures(self.accumulator, self.topics, self._results, self.line, self.now)

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
            slices=Slices(self.scheduler.call_soon),
            hooks=self._hooks,
            rng=self._rng,
            now=self.now,
            pump=self.scheduler.pump,
            wake_at=self.scheduler.wake_at,
            end_turn=self.scheduler.end_turn,
            max_produce_version=self._max_produce_version,
            want_producer_id=self.want_producer_id,
            on_encoded=self._on_encoded,
            on_response=self._on_response,
            on_throttled=self._watch.throttled,
        )

    # --- the life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, on the running loop; the client has been started."""
        loop = asyncio.get_running_loop()
        self.scheduler.start(loop)
        self.accumulator.open(loop)
        self.topics.follow()
        self._client.spawn(self._watch_client, name="producer: the client's end")
        if self.idempotence.enabled:
            self.want_producer_id()

    async def _watch_client(self) -> None:
        """Fail everything when the client ends by a failure: nothing can be delivered any more."""
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
        """Accept nothing more, nor what waits for room; returns the records of those that nobody awaits, which are
        logged unless `report` is False."""
        self.accumulator.close(reason)
        return self.line.dismiss(ClosedError(reason), report=report)

    def end(self) -> None:
        """Leave no timer and no listener behind."""
        self._ended = True
        self.topics.unfollow()
        self.scheduler.end()

    def now(self) -> float:
        """The loop's clock."""
        return self.scheduler.now()

    # --- events of the accumulator ----------------------------------------------------------------------------------

    def on_open(self, partition: Partition) -> None:
        """A batch takes its first record."""
        assert partition.open is not None
        self.topics.keep(partition.open)
        self.scheduler.on_open(partition)

    def on_sealed(self, partition: Partition) -> None:
        """A batch is full."""
        self.scheduler.on_sealed(partition)

    def on_urgent(self, partition: Partition) -> None:
        """The first record of the open batch that somebody awaits."""
        self.scheduler.on_urgent(partition)

    def on_unknown(self, topic: Topic) -> None:
        """The first record of a topic."""
        self._client.spawn(self.topics.resolve, topic, name=f"producer: partitions of {topic.name}")
        self._wake_at(self.now() + self._config.delivery_timeout + PARKED_GRACE)

    def on_refused(self, batch: Batch) -> None:
        """A record that had been accepted before its topic was known cannot be placed."""
        if self._hooks is not None:
            self._hooks.failed(batch)
        report_failed(self.events, batch)

    def on_cancel(self, batch: Batch, index: int) -> bool:
        """Take a record back that was not sent yet; returns whether it was."""
        partition = self.topics.partition_of(batch)
        if partition is not None and partition.open is batch:
            self.scheduler.seal(partition)
        return self.failures.cancel(partition, batch, index)

    def choose_sticky(self, topic: Topic) -> int:
        """The next partition for records without a key."""
        backlogs = [p.backlog if p.leader >= 0 else None for p in topic.partitions[: topic.count]]
        return plan_sticky(backlogs, topic.sticky, self._rng)

    def choose_partition(self, topic: Topic, key: bytes | None, value: bytes | None) -> int:
        """The partition that the user's own partitioner returns."""
        assert self._partitioner is not None
        chosen = self._partitioner(topic.name, key, value, range(topic.count))
        if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < topic.count:
            raise InvalidArgument(
                f"the partitioner gave {chosen!r} for topic {topic.name!r}, which has {topic.count} partitions"
            )
        return chosen

    def enter_line(self, record: Record) -> WaitingRecord:
        """A record of `submit` has to wait for room."""
        return self.line.enter(record)

    def full(self, record: Record) -> BufferFullError:
        """The error of `submit_nowait` when there is no room."""
        return self.line.full(record)

    async def wait_for_room(self, record: Record) -> Delivery:
        """Accept a record of a bulk call that has to wait: for the loop's turn, or for room."""
        if self.accumulator.turn_due:  # the loop's turn first
            await anyio.lowlevel.checkpoint()
            taken = self.accumulator.append(*record)
            if taken is not None:
                return taken
        return await self.line.join(record)

    # --- all batches ------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Seal everything, and wait until all that is there now is done."""
        self.scheduler.seal_everything()
        await self.line.served()
        pending = list(self.accumulator.live)
        self.scheduler.seal_everything()
        while pending:
            batch = pending.pop()
            await self._settled(batch)
            following = batch.successors()
            if following:  # split, or its partition became known: those must not linger either
                pending += following
                self.scheduler.seal_everything()

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
        """Wait until every run's batches are done; their errors are not raised here."""
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

    def _on_unknown_topic(self, parked: Batch, error: KafkaError) -> None:
        self._results.give_up(None, parked, error)
        self.line.serve()

    def _fail_unsent(self, error: KafkaError) -> None:
        self.failures.fail_batches(is_not_in_flight, error)

    def _fail_all(self, error: KafkaError) -> None:
        self.failures.fail_batches(any_batch, error)

    def _expire(self, now: float) -> None:
        self.failures.expire(now)

    def _new_sender(self, node_id: int) -> Sender:
        sender = Sender(node_id, self._sender_parts)
        self._client.spawn(sender.run, name=f"producer: sender to node {node_id}")
        return sender

    def _on_encoded(self, batch: Batch) -> None:
        """A batch has its final bytes: compressed ones need less room."""
        self.accumulator.release_plain(batch)
        if len(self.line):
            self.line.serve()

    def _on_response(self) -> None:
        """Room came back, and a sender can send another request."""
        self.line.serve()
        self.scheduler.pump()

    def _max_produce_version(self) -> int | None:
        """The newest version of Produce that may be used; None: any."""
        return None if self.transactions is None else self.transactions.max_produce_version

    def want_producer_id(self) -> None:
        """Request a producer id, unless a request is under way or the coordinator of transactions gives it."""
        if self.transactions is None:
            self._producer_ids.want()

    def _on_identity(self, producer_id: int, producer_epoch: int) -> None:
        if self.events.wanted:
            self.events.publish(ProducerIdChanged(producer_id, producer_epoch))
