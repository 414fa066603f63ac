"""Decides when batches are sealed and sent: lingers, awaited records, free brokers, one timer.

    accumulator --on_open, on_sealed, on_urgent--> scheduler --pump--> senders (one per broker)

The rules are in `planning.py`. Everything here runs on the loop without waiting; the timer and the
end of a turn are the only delays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokwire.clock import clock_of, loop_time
from aiokwire.errors import ClosedError
from aiokwire.loop_timer import LoopTimer
from aiokwire.producer import planning
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import Batch
from aiokwire.producer._partition import Partition
from aiokwire.producer.batch_failures import expires_at
from aiokwire.producer.events import Watch
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.producer.idempotence import Idempotence
from aiokwire.producer.sender import Sender


class BatchScheduler:
    """Seals batches and lets the senders send, for one producer; on its loop."""

    def __init__(
        self,
        accumulator: Accumulator,
        idempotence: Idempotence,
        linger: float,
        *,
        hooks: ProducerHooks | None,
        new_sender: Callable[[int], Sender],
        refresh: Callable[[str, str], None],
        expire: Callable[[float], None],
        watch: Watch,
    ) -> None:
        """`linger` in seconds. `new_sender(node_id)` starts a sender. `refresh(topic, reason)`: a
        partition has no leader; `expire(now)`: the timer fires; `watch` looks after each pump."""
        self._accumulator = accumulator
        self._idempotence = idempotence
        self._linger = linger
        self._hooks = hooks
        self._new_sender = new_sender
        self._refresh = refresh
        self._expire = expire
        self._watch = watch
        self._senders: dict[int, Sender] = {}
        # When the open batch of a partition was opened, oldest first. Not the batch: a finished one would stay alive
        # behind one that lingers.
        self._opened: dict[Partition, float] = {}
        self._urgent: dict[Partition, None] = {}  # their open batch is awaited
        self._due: dict[Partition, Batch] = {}  # open batches that have lingered: they grow until they can be sent
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock: Callable[[], float] = loop_time
        self._pump_scheduled = False
        self._turn_is_full = False  # enough was sent in this turn of the loop
        self._timer: LoopTimer | None = None
        self._ended = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start on this loop."""
        self._loop = loop
        self._clock = clock_of(loop)
        self._timer = LoopTimer(loop, self._on_timer)

    def end(self) -> None:
        """Cancel the timer; no further partition becomes ready."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_started(self) -> bool:
        return self._loop is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The producer's loop."""
        if self._loop is None:
            raise ClosedError("this producer was not started")
        return self._loop

    # --- events of the accumulator ----------------------------------------------------------------------------------

    def on_open(self, partition: Partition) -> None:
        """Set the timer for a batch that takes its first record."""
        batch = partition.open
        assert batch is not None
        self._opened.pop(partition, None)
        self._opened[partition] = batch.created
        if self._linger == 0:
            self.soon()
        if self._timer is not None:
            self._timer.set(batch.created + self._linger)

    def on_sealed(self, partition: Partition) -> None:
        """Queue a full batch for its leader."""
        self._queue_up(partition)
        self.soon()

    def on_urgent(self, partition: Partition) -> None:
        """Consider sealing an open batch early: a task awaits one of its records."""
        self._urgent[partition] = None
        self.soon()

    # --- pumping ----------------------------------------------------------------------------------------------------

    def soon(self) -> None:
        """Hand sealed batches to their senders at the end of this turn of the loop."""
        if not self._pump_scheduled:
            self._pump_scheduled = True
            self.loop.call_soon(self._pump_scheduled_now)

    def _pump_scheduled_now(self) -> None:
        self._pump_scheduled = False
        self._turn_is_full = False
        self.pump()

    def end_turn(self) -> None:
        """Let no sender send before the loop's next turn: a large request was sent."""
        self._turn_is_full = True
        self.soon()

    def pump(self) -> None:
        """Let the senders send, and seal the due batches that can be sent at once."""
        if self._urgent:
            self._seal_urgent()
        if self._opened:
            self._end_lingers(self._clock(), everything=self._accumulator.blocked)
        self._pump_senders()
        while self._due and self._seal_due():
            self._pump_senders()
        if self._watch.events.wanted:
            self._watch.look()

    def _pump_senders(self) -> None:
        for sender in self._senders.values():
            if self._turn_is_full:
                return
            if sender.ready:
                sender.pump()

    def _seal_urgent(self) -> None:
        for partition in list(self._urgent):
            batch = partition.open
            if batch is None or not batch.urgent:
                del self._urgent[partition]
            elif partition.leader >= 0 and planning.goes_at_once(
                partition,
                requests_in_flight=self._sender(partition.leader).in_flight,
                idempotent=self._idempotence.enabled,
            ):
                del self._urgent[partition]
                self.seal(partition)

    def _end_lingers(self, now: float, *, everything: bool = False) -> None:
        """Find the open batches that have lingered."""
        opened = self._opened
        linger = self._linger
        while opened:
            partition, created = next(iter(opened.items()))
            batch = partition.open
            if batch is not None and batch.created == created:
                if not everything and not planning.lingered(created, now, linger):
                    return
                self._due[partition] = batch
            del opened[partition]

    def _seal_due(self) -> bool:
        """Seal due batches that can be sent at once; others grow. Return whether there were any."""
        sealed = False
        for partition, batch in list(self._due.items()):
            if partition.open is not batch:
                del self._due[partition]
            elif partition.leader < 0 or planning.leaves_at_once(
                partition,
                free=self._sender(partition.leader).is_free,
                idempotent=self._idempotence.enabled,
            ):
                del self._due[partition]
                self.seal(partition)
                sealed = True
        return sealed

    def seal_everything(self) -> None:
        """Seal every open batch, for a flush."""
        self._end_lingers(0.0, everything=True)
        due, self._due = self._due, {}
        for partition, batch in due.items():
            if partition.open is batch:
                self.seal(partition)
        self.pump()

    def seal(self, partition: Partition) -> None:
        """Seal the open batch of a partition and queue it for its broker."""
        self._accumulator.seal(partition)
        self._queue_up(partition)

    def _queue_up(self, partition: Partition) -> None:
        if self._hooks is not None:
            self._hooks.sealed(partition.queue[-1])
        self._mark_ready(partition)

    # --- ready partitions -------------------------------------------------------------------------------------------

    def _mark_ready(self, partition: Partition) -> None:
        if self._ended:
            return
        if partition.leader >= 0:
            self._sender(partition.leader).ready.setdefault(partition)
        else:
            self._refresh(partition.topic, f"{partition.topic}[{partition.index}] has no leader")

    def on_ready(self, partition: Partition) -> None:
        """A partition with batches has another leader."""
        self._mark_ready(partition)
        self.soon()

    def requeue(self, partition: Partition, when: float) -> None:
        """Send the next batch of a partition at `when`, on the loop's clock; 0: now."""
        self._mark_ready(partition)
        if when > 0:
            self.wake_at(when)
        else:
            self.soon()

    def _sender(self, node_id: int) -> Sender:
        sender = self._senders.get(node_id)
        if sender is None:
            sender = self._senders[node_id] = self._new_sender(node_id)
        return sender

    # --- time -------------------------------------------------------------------------------------------------------

    def wake_at(self, when: float) -> None:
        """Pump at `when` at the latest: one timer serves lingers, retries and deadlines."""
        if self._timer is not None:
            self._timer.set(when)

    def _on_timer(self) -> None:
        now = self._clock()
        self._expire(now)
        self.pump()
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        """Set the timer for the next linger, deadline or retry."""
        moments = [expires_at(batch) for batch in self._accumulator.live]
        moments += [created + self._linger for partition, created in self._opened.items() if partition.open]
        for sender in self._senders.values():
            moments += [partition.retry_at for partition in sender.ready if partition.retry_at > now]
        if moments:
            self.wake_at(max(min(moments), now))
