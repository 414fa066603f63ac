"""Periodic work of a broker: flushes, retention, deletion, checkpoints, expiry, transaction ends.

One task looks for due chores every second; slow ones run in a thread. An error in a chore (a full
disk) is logged, and the chore is repeated when it is next due; it never ends the broker.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel

from aiokwire.broker.server import Listeners
from aiokwire.broker.state import BrokerState, run_work
from aiokwire.clock import background_pause, loop_time, wall_ms
from aiokwire.errors import StorageError

logger: logging.Logger = logging.getLogger(__name__)

BEAT = 1.0  # seconds
SLICE = 0.005  # seconds of work in one turn of the loop
EXPIRY_INTERVAL = 600.0  # Java: producer.id.expiration.check.interval.ms


class Maintenance:
    """Runs the chores of a broker."""

    def __init__(self, state: BrokerState, listeners: Listeners) -> None:
        self._state = state
        self._listeners = listeners
        configs = state.configs
        self._idle = configs.seconds("connections.max.idle.ms")
        self._chores: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (BEAT, self._flush),
            (configs.seconds("log.retention.check.interval.ms"), self._retain),
            (BEAT, self._delete_files),
            (configs.seconds("log.flush.offset.checkpoint.interval.ms"), self._checkpoint),
            (EXPIRY_INTERVAL, self._expire),
            (BEAT, self._finish_transactions),
            (
                configs.seconds("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
                self._abort_transactions,
            ),
            (
                configs.seconds("transaction.remove.expired.transaction.cleanup.interval.ms"),
                self._expire_transactional_ids,
            ),
            (configs.seconds("offsets.retention.check.interval.ms"), self._expire_offsets),
            (max(BEAT, min(self._idle / 4, 30.0)), self._reap),
            (configs.integer("delegation.token.expiry.check.interval.ms") / 1000, state.tokens.remove_expired),
            (BEAT, self._reap_overdue),
        ]

    async def run(self) -> None:
        """Run each chore when it is due, until cancelled."""
        due = [loop_time() + interval for interval, _ in self._chores]
        while True:
            await anyio.sleep(background_pause(BEAT))
            for index, (interval, chore) in enumerate(self._chores):
                if loop_time() >= due[index]:
                    await self._do(chore)
                    due[index] = loop_time() + interval

    async def do_all(self) -> None:
        """Run every chore now, due or not."""
        for _, chore in self._chores:
            await self._do(chore)

    async def _do(self, chore: Callable[[], Awaitable[None]]) -> None:
        try:
            await chore()
        except StorageError as error:
            logger.error("%s; retrying", error)
        except Exception:
            logger.exception("a maintenance task of the broker failed; retrying")

    async def _flush(self) -> None:
        for work in self._state.logs.flush_due(wall_ms()):
            await run_work(work)

    async def _delete_files(self) -> None:
        await run_work(self._state.logs.deletions_due(wall_ms()))

    async def _retain(self) -> None:
        since = loop_time()
        for work in self._state.logs.retention_due(wall_ms()):
            if work is not None:
                await run_work(work)
            elif loop_time() - since < SLICE:
                continue
            else:
                await anyio.lowlevel.checkpoint()
            since = loop_time()

    async def _checkpoint(self) -> None:
        await run_work(self._state.logs.prepare_checkpoint())

    async def _expire(self) -> None:
        self._state.logs.expire_producers(wall_ms())
        self._state.logs.release_idle()

    async def _finish_transactions(self) -> None:
        self._state.transactions.finish_prepared()

    async def _abort_transactions(self) -> None:
        self._state.transactions.abort_timed_out(loop_time())

    async def _expire_transactional_ids(self) -> None:
        self._state.transactions.expire(wall_ms())

    async def _expire_offsets(self) -> None:
        self._state.groups.expire(wall_ms())

    async def _reap(self) -> None:
        if self._idle > 0:
            self._listeners.close_idle(self._idle)

    async def _reap_overdue(self) -> None:
        self._listeners.close_overdue()
