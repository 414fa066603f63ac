"""How a consumer is, as users have it: a snapshot, and events. `Consumer` inherits it; nobody else does."""

from __future__ import annotations

from aiokwire.consumer.events import LIMIT, WITHOUT_ENDS, ConsumerEvent, Events, EventStream
from aiokwire.consumer.health import ConsumerHealth
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.reader import Reader
from aiokwire.consumer.stall_monitor import StallMonitor
from aiokwire.consumer.subscription import Subscription


class Monitoring:
    """Health and events."""

    _subscription: Subscription
    _reader: Reader
    _hooks: ConsumerHooks
    _events: Events[ConsumerEvent]
    _stall_monitor: StallMonitor

    def health(self) -> ConsumerHealth:
        """How the consumer is now: of each partition what it waits for, and since when; the group; the loop. Costs no
        request, and may be asked from start to end, on the consumer's loop."""
        return self._stall_monitor.health()

    def events(self, *, ends: bool = False, limit: int = LIMIT) -> EventStream[ConsumerEvent]:
        """What happens to the consumer from now on: partitions that stall and go on, resets, rebalances, coordinators
        lost and found, brokers that throttle, a blocked loop; with `ends`, partitions whose end was reached. Keeps
        `limit` events for a listener that is busy; the oldest are dropped, and counted."""
        stream = self._events.listen(limit=limit, without=() if ends else WITHOUT_ENDS)
        if ends:
            self._reader.buffer.on_progress = self._hooks.progress
            for state in self._subscription.states.values():
                self._hooks.progress(state)
        return stream
