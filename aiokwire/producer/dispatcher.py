"""Between the accumulator and the senders: which batch goes to which broker, and when.

    accumulator --on_open, on_sealed, on_urgent, on_unknown--> dispatcher --pump--> senders --> batch_results

Everything here runs on the loop and at once; timers and the end of a turn are the only delays.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator

import anyio
import anyio.lowlevel

from aiokwire.cluster import Client
from aiokwire.errors import BufferFullError, ClosedError, InvalidArgument, KafkaError
from aiokwire.events import Events
from aiokwire.producer import planning
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import DONE, SPLIT, Batch, Delivery, WaitingRecord, pending_in
from aiokwire.producer._partition import Partition, Topic
from aiokwire.producer.batch_results import BatchResults
from aiokwire.producer.buffer_pool import Record, WaitingLine
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.duplicate_check import DuplicateCheck
from aiokwire.producer.events import ProducerEvent, ProducerFailed, ProducerIdChanged, Watch, report_failed
from aiokwire.producer.hooks import HookCaller
from aiokwire.producer.idempotence import Idempotence
from aiokwire.producer.partitioner import compiled_partitioner, custom_partitioner, plan_sticky
from aiokwire.producer.producer_ids import ProducerIds
from aiokwire.producer.sender import Sender
from aiokwire.producer.slices import Slices
from aiokwire.producer.topics import Topics
from aiokwire.producer.transactions.driver import Transactions
from aiokwire.producer.transactions.shared import TransactionTicket
from aiokwire.producer.withdrawal import PARKED_GRACE, Withdrawal, limit_of

logger = logging.getLogger("aiokwire.producer")


class Dispatcher:
    """The producer's switchboard: accumulator, line, senders and timers, on one client."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        rng: random.Random,
        hooks: HookCaller | None = None,
        joins: TransactionTicket | None = None,
        events: Events[ProducerEvent] | None = None,
    ) -> None:
        self.rng = rng
        self.hooks = hooks
        self.events = Events[ProducerEvent]() if events is None else events
        self.watch = Watch(self, self.events)
        self._client = client
        self._config = config
        self._partitioner = custom_partitioner(config.partitioner)
        self.accumulator = Accumulator(
            self,
            limit=config.buffer_memory,
            batch_size=max(config.batch_size, 1),
            max_record=config.max_request_size,
            delivery_timeout=config.delivery_timeout,
            partitioning=compiled_partitioner(config.partitioner),
        )
        self.line = WaitingLine(self.accumulator, config.delivery_timeout, self.soon, self._wake_at)
        self.transactions = Transactions(client, config, self, joins) if config.transactional_id is not None else None
        self.idempotence: Idempotence
        if self.transactions is not None:
            self.idempotence = self.transactions.identity
        else:
            self.idempotence = Idempotence(wanted=config.wants_idempotence, insisted=bool(config.enable_idempotence))
        self.idempotence.on_change = self._on_identity
        self.topics = Topics(
            client,
            config,
            self.accumulator,
            on_ready=self._on_ready,
            on_unknown=self._on_unknown_topic,
            events=self.events,
        )
        self.batch_results = BatchResults(
            self.accumulator,
            self.idempotence,
            config,
            rng,
            requeue=self._requeue,
            refresh=self.topics.refresh,
            on_leader=self.topics.on_leader,
            throttled_until=client.throttled_until,
            transactions=self.transactions,
            hooks=hooks,
            events=self.events,
            duplicate_check=DuplicateCheck(client, config.default_api_timeout) if joins is not None else None,
        )
        self.withdrawal = Withdrawal(self.accumulator, self.topics, self.batch_results, self.line, self.now)
        self._ids = ProducerIds(client, config, self.idempotence, self.withdrawal, self.soon)
        self._senders: dict[int, Sender] = {}
        # When the open batch of a partition was opened, oldest first. No batches: a finished one must not stay alive
        # behind one that lingers.
        self._opened: dict[Partition, float] = {}
        self._urgent: dict[Partition, None] = {}  # their open batch is awaited
        self._due: dict[Partition, Batch] = {}  # open batches that need not linger: they grow until they can leave
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pump_scheduled = False
        self._turn_is_full = False  # enough was sent in this turn of the loop
        self.slices = Slices(self._call_soon)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0  # the loop's time for which it is set
        self._ended = False

    # --- the life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, on the running loop; the client has been started."""
        self._loop = asyncio.get_running_loop()
        self.accumulator.open(self._loop)
        self.topics.follow()
        self._client.spawn(self._watch, name="producer: the client's end")
        if self.idempotence.enabled:
            self.want_producer_id()

    async def _watch(self) -> None:
        """Notice that the client has ended by a failure: nobody may wait for what will never come."""
        try:
            await anyio.sleep_forever()
        finally:
            if not self._ended:
                reason = "this producer ended, because its client did"
                self.end()
                self.stop(reason)
                error = ClosedError(reason)
                self.withdrawal.fail_all(error)
                self.events.publish(ProducerFailed(error))
                self.events.close()

    def stop(self, reason: str, *, report: bool = True) -> list[Record]:
        """Accept nothing more, nor what waits for room; returns the records of those that nobody awaits, which are
        logged unless `report` is False."""
        self.accumulator.close(reason)
        return self.line.dismiss(ClosedError(reason), report=report)

    def end(self) -> None:
        """No timer and no listener is left behind."""
        self._ended = True
        self.topics.unfollow()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The producer's loop."""
        if self._loop is None:
            raise ClosedError("this producer was not started")
        return self._loop

    def now(self) -> float:
        """The loop's clock."""
        return self.loop.time()

    # --- events of the accumulator ----------------------------------------------------------------------------------

    def on_open(self, partition: Partition) -> None:
        """A batch takes its first record."""
        batch = partition.open
        assert batch is not None
        self._opened.pop(partition, None)
        self._opened[partition] = batch.created
        self.topics.keep(batch)
        if self._config.linger_ms == 0:
            self.soon()
        self._wake_at(batch.created + self._config.linger)

    def on_sealed(self, partition: Partition) -> None:
        """A batch is full."""
        if self.hooks is not None:
            self.hooks.sealed(partition.queue[-1])
        self._mark_ready(partition)
        self.soon()

    def on_urgent(self, partition: Partition) -> None:
        """The first record of the open batch that somebody awaits."""
        self._urgent[partition] = None
        self.soon()

    def on_unknown(self, topic: Topic) -> None:
        """The first record of a topic."""
        self._client.spawn(self.topics.resolve, topic, name=f"producer: partitions of {topic.name}")
        self._wake_at(self.now() + self._config.delivery_timeout + PARKED_GRACE)

    def on_refused(self, batch: Batch) -> None:
        """A record that had been accepted before its topic was known cannot be placed."""
        if self.hooks is not None:
            self.hooks.failed(batch)
        report_failed(self.events, batch)

    def on_cancel(self, batch: Batch, index: int) -> bool:
        """A record that was not sent yet is to be taken back; whether it was."""
        partition = self.topics.partition_of(batch)
        if partition is not None and partition.open is batch:
            self._seal(partition)
        return self.withdrawal.cancel(partition, batch, index)

    def _on_unknown_topic(self, parked: Batch, error: KafkaError) -> None:
        self.batch_results.give_up(None, parked, error)
        self.line.serve()

    def choose_sticky(self, topic: Topic) -> int:
        """The next partition for records without a key."""
        backlogs = [p.backlog if p.leader >= 0 else None for p in topic.partitions[: topic.count]]
        return plan_sticky(backlogs, topic.sticky, self.rng)

    def choose_partition(self, topic: Topic, key: bytes | None, value: bytes | None) -> int:
        """What the user's own partitioner says."""
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

    async def wait_for_room(self, record: Record) -> Delivery:
        """Accept a record of a bulk call that has to wait: for the loop's turn, or for room."""
        if self.accumulator.turn_due:  # the loop's turn first
            await anyio.lowlevel.checkpoint()
            taken = self.accumulator.append(*record)
            if taken is not None:
                return taken
        return await self.line.join(record)

    def full(self, record: Record) -> BufferFullError:
        """The error of `submit_nowait` when there is no room."""
        return self.line.full(record)

    # --- who goes ---------------------------------------------------------------------------------------------------

    def soon(self) -> None:
        """Look at everything at the end of this turn of the loop."""
        if not self._pump_scheduled:
            self._pump_scheduled = True
            self.loop.call_soon(self._pump_scheduled_now)

    def _pump_scheduled_now(self) -> None:
        self._pump_scheduled = False
        self._turn_is_full = False
        self.pump()

    def _call_soon(self, callback: Callable[[], None]) -> None:
        self.loop.call_soon(callback)

    def end_turn(self) -> None:
        """A large request was sent: the next one leaves in the loop's next turn."""
        self._turn_is_full = True
        self.soon()

    def pump(self) -> None:
        """Let the senders send, and seal what is due as far as it can leave."""
        if self._urgent:
            self._seal_urgent()
        self._end_lingers(self.now(), everything=len(self.line) > 0)
        self._pump_senders()
        while self._due and self._seal_due():
            self._pump_senders()
        if self.events.wanted:
            self.watch.look()

    def _pump_senders(self) -> None:
        for sender in self._senders.values():
            if self._turn_is_full:
                return
            if sender.ready:
                sender.pump()

    def on_encoded(self, batch: Batch) -> None:
        """A batch has its final bytes: compressed ones need less room."""
        self.accumulator.release_plain(batch)
        if len(self.line):
            self.line.serve()

    def after_answer(self) -> None:
        """Room came back, and a sender has a free place."""
        self.line.serve()
        self.pump()

    def _seal_urgent(self) -> None:
        for partition in list(self._urgent):
            batch = partition.open
            if batch is None or not batch.urgent:
                del self._urgent[partition]
            elif partition.leader >= 0 and planning.goes_at_once(
                partition,
                requests_in_flight=self._sender(partition.leader).in_flight,
                idempotent=self.idempotence.enabled,
            ):
                del self._urgent[partition]
                self._seal(partition)

    def _end_lingers(self, now: float, *, everything: bool = False) -> None:
        """Which open batches have waited long enough."""
        opened = self._opened
        linger = self._config.linger
        while opened:
            partition, created = next(iter(opened.items()))
            batch = partition.open
            if batch is not None and batch.created == created:
                if not everything and not planning.lingered(created, now, linger):
                    return
                self._due[partition] = batch
            del opened[partition]

    def _seal_due(self) -> bool:
        """Seal the open batches that are due and could leave at once; the others may as well grow. Says whether any."""
        sealed = False
        for partition, batch in list(self._due.items()):
            if partition.open is not batch:
                del self._due[partition]
            elif partition.leader < 0 or planning.leaves_at_once(
                partition,
                free=self._sender(partition.leader).free,
                idempotent=self.idempotence.enabled,
            ):
                del self._due[partition]
                self._seal(partition)
                sealed = True
        return sealed

    def seal_everything(self) -> None:
        """A flush: no batch lingers, and none grows."""
        self._end_lingers(0.0, everything=True)
        due, self._due = self._due, {}
        for partition, batch in due.items():
            if partition.open is batch:
                self._seal(partition)
        self.pump()

    async def flush(self) -> None:
        """Seal everything, and wait until all that is there now is done."""
        self.seal_everything()
        await self.line.served()
        pending = list(self.accumulator.live)
        self.seal_everything()
        while pending:
            batch = pending.pop()
            await self._settled(batch)
            following = batch.successors()
            if following:  # split, or its partition became known: those must not linger either
                pending += following
                self.seal_everything()

    async def _settled(self, batch: Batch) -> None:
        if batch.state in (DONE, SPLIT):
            return
        waiter = self.loop.create_future()
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

    def _seal(self, partition: Partition) -> None:
        self.accumulator.seal(partition)
        if self.hooks is not None:
            self.hooks.sealed(partition.queue[-1])
        self._mark_ready(partition)

    def _mark_ready(self, partition: Partition) -> None:
        if self._ended:
            return
        if partition.leader >= 0:
            self._sender(partition.leader).ready.setdefault(partition)
        else:
            self.topics.refresh(partition.topic, f"{partition.topic}[{partition.index}] has no leader")

    def _on_ready(self, partition: Partition) -> None:
        self._mark_ready(partition)
        self.soon()

    def _requeue(self, partition: Partition, when: float) -> None:
        self._mark_ready(partition)
        if when > 0:
            self._wake_at(when)
        else:
            self.soon()

    def _sender(self, node_id: int) -> Sender:
        sender = self._senders.get(node_id)
        if sender is None:
            sender = self._senders[node_id] = Sender(node_id, self, self._config)
            self._client.spawn(sender.run, name=f"producer: sender to node {node_id}")
        return sender

    # --- for transactions -------------------------------------------------------------------------------------------

    @property
    def max_produce_version(self) -> int | None:
        """The newest version of Produce that may be used; None: any."""
        return None if self.transactions is None else self.transactions.max_produce_version

    @property
    def flying(self) -> bool:
        """Whether a batch is on its way to a broker."""
        return any(partition.in_flight for partition in self._partitions())

    @property
    def sequences_broken(self) -> bool:
        """Whether a partition can go on only under another epoch."""
        return any(partition.needs_epoch for partition in self._partitions())

    def _partitions(self) -> Iterator[Partition]:
        for topic in self.accumulator.topics.values():
            yield from topic.partitions

    # --- time -------------------------------------------------------------------------------------------------------

    def _wake_at(self, when: float) -> None:
        """One timer for lingers, retries and deadlines: it fires at the earliest, and looks at everything."""
        if self._timer is not None:
            if when >= self._timer_at:
                return
            self._timer.cancel()
        # Kept beside the handle: uvloop gives one without `when()` for a moment that has passed.
        self._timer_at = when
        self._timer = self.loop.call_at(when, self._on_timer)

    pump_at = _wake_at

    def _on_timer(self) -> None:
        self._timer = None
        now = self.now()
        self.withdrawal.expire(now)
        self.pump()
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        """For the next thing that time alone brings about."""
        moments = [limit_of(batch) for batch in self.accumulator.live]
        moments += [created + self._config.linger for partition, created in self._opened.items() if partition.open]
        for sender in self._senders.values():
            moments += [partition.retry_at for partition in sender.ready if partition.retry_at > now]
        if moments:
            self._wake_at(max(min(moments), now))

    def on_unreachable(self, node_id: int, partitions: list[Partition], error: KafkaError) -> None:
        """No connection to a node: its batches wait, and know why."""
        for partition in partitions:
            for batch in (*partition.queue, *([] if partition.open is None else [partition.open])):
                batch.last_error = error.with_traceback(None)
            self.topics.refresh(partition.topic, f"node {node_id} cannot be reached: {error}")

    # --- the producer id --------------------------------------------------------------------------------------------

    def want_producer_id(self) -> None:
        """Somebody needs a producer id that is not there: ask for one, once at a time."""
        if self.transactions is None:  # else it has its id from its coordinator
            self._ids.want()

    def _on_identity(self, producer_id: int, epoch: int) -> None:
        if self.events.wanted:
            self.events.publish(ProducerIdChanged(producer_id, epoch))
