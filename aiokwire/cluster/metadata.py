"""The client's metadata: topics to request, refreshes, and the callers that wait for them.

`Client` runs `Metadata.run` in its task group and sends the request (`ask`); other components read
`cluster`, request a refresh, or wait for one. `snapshot.Merge` and `schedule.RefreshSchedule` hold
the decisions.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

import anyio
import anyio.lowlevel

from aiokwire.backoff import Backoff, Deadline
from aiokwire.clock import loop_time
from aiokwire.cluster.config import ClientConfig
from aiokwire.cluster.nodes import failure_level
from aiokwire.cluster.schedule import RefreshSchedule
from aiokwire.cluster.snapshot import PERMANENT, SLICE, Broker, Cluster, LeaderHint, Merge, Topic, is_unsettled
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, KafkaError, RequestTimedOut, error_for
from aiokwire.hooks import Hooks
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol.messages import metadata
from aiokwire.types import TopicPartition

logger: FieldLogger = get_logger(__name__)

# A wait for an unknown topic that is shorter (seconds) is not logged: the caller reports the outcome.
WORTH_A_LINE: Final = 2.0

Ask = Callable[[Collection[str] | None], Awaitable[metadata.MetadataResponse]]
Listener = Callable[[Cluster], None]


class Metadata:
    """One client's metadata."""

    def __init__(self, config: ClientConfig, *, ask: Ask, backoff: Backoff, hooks: Hooks | None = None) -> None:
        self.cluster: Cluster = Cluster()
        self.last_error: KafkaError | None = None  # of the last refresh; None when it ended well
        self.updated_at: float | None = None  # the loop's clock, at the last successful response
        self._config = config
        self._log = logger.bound(client_id=config.client_id)
        self._ask = ask
        self._hooks = hooks
        self._schedule = RefreshSchedule(
            min_interval=config.metadata_min_interval,
            max_age=config.metadata_max_age,
            backoff=backoff,
        )
        self._wanted: dict[str, float] = {}  # topic to the time of the last call that named it
        self._pinned: frozenset[str] = frozenset()  # wanted until the next `pin`
        self._everything = False
        self._listeners: list[Listener] = []
        self._hints: dict[TopicPartition, LeaderHint] = {}  # received in this turn of the loop, or while accepting
        self._is_accepting = False  # a response is being merged
        self._asked = anyio.Event()  # set to make `run` check the schedule again
        self._sleeps_until = -math.inf  # when `run` checks it by itself
        self._changed = anyio.Event()  # set, and replaced, when a refresh ends or the snapshot changes
        self._failed: KafkaError | None = None  # why the client ended; raised by all waits

    # --- interest ----------------------------------------------------------------------------------------------------

    def want(self, topics: Iterable[str]) -> None:
        """Refresh these topics for `metadata_max_idle_ms` from now; request unknown ones."""
        now = loop_time()
        for topic in topics:
            self.keep(topic, now)

    def keep(self, topic: str, now: float) -> None:
        """Do the same for one topic at the caller's time: cheap enough to call for each batch."""
        if topic not in self._wanted:
            self._ask_for_new(topic)
        self._wanted[topic] = now

    def pin(self, topics: Collection[str]) -> None:
        """Until the next call, refresh exactly these topics, besides those wanted for a while."""
        before, self._pinned = self._pinned, frozenset(topics)
        for topic in self._pinned - before:
            self._ask_for_new(topic)
            if is_unsettled(self.cluster.topics.get(topic), awaited=True):
                self.request_update(f"topic {topic!r} is not there yet")

    def _ask_for_new(self, topic: str) -> None:
        if topic not in self.cluster.topics:
            self._schedule.request(f"topic {topic!r} is new here", loop_time(), urgent=True)
            self._look_sooner()

    def want_all(self, everything: bool = True) -> None:
        """Request every topic of the cluster, or stop doing so."""
        if everything and not self._everything:
            self.request_update("all topics are wanted")
        self._everything = everything

    def interest(self) -> Collection[str] | None:
        """Return topics to request, None for all; drop those unnamed for `metadata_max_idle_ms`."""
        if self._everything:
            return None
        oldest = loop_time() - self._config.metadata_max_idle
        for topic in [topic for topic, at in self._wanted.items() if at < oldest]:
            del self._wanted[topic]
        return sorted(self._pinned.union(self._wanted))

    # --- listeners ---------------------------------------------------------------------------------------------------

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` with each new snapshot, on the loop."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Stop calling `listener`."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    # --- asking and waiting ------------------------------------------------------------------------------------------

    def request_update(self, reason: str) -> int:
        """Request a refresh without waiting; return its number. Requests before that share it."""
        number = self._schedule.request(reason, loop_time())
        self._look_sooner()
        return number

    def _look_sooner(self) -> None:
        """Wake `run` unless it wakes in time: components keep requesting while brokers are down."""
        if self._schedule.due() < self._sleeps_until:
            self._asked.set()

    async def update(self, timeout: float | None = None) -> Cluster:
        """Return a snapshot from a response to a request that was sent after this call.

        Raises: AuthenticationFailed: TLS or SASL refused the connection to every broker;
        RequestTimedOut: no broker responded in time; the message has the last error.
        """
        deadline = self._deadline(timeout, "refreshing the metadata")
        number = self.request_update("a caller asked")
        while self._schedule.finished < number:
            await self._next_change(deadline)
            self._raise_refusal()
        return self.cluster

    async def wait_for_topics(
        self, topics: Collection[str], timeout: float | None = None, *, unknown_timeout: float | None = None
    ) -> Cluster:
        """Wait for a snapshot in which each of `topics` has its partitions.

        Waits `timeout` seconds, or `unknown_timeout` seconds while brokers respond that a topic
        does not exist.

        Raises: AuthorizationError, InvalidRequestError: a topic is forbidden or its name invalid,
        at once; StaleMetadataError: a topic does not exist, or has no partitions yet, when the time
        expires; RequestTimedOut, AuthenticationFailed: as `update`.
        """
        names = sorted(topics)
        deadline = self._deadline(timeout, f"waiting for metadata of {', '.join(names[:5])}")
        unknown = Deadline(unknown_timeout, "") if unknown_timeout is not None else deadline
        answered = -1
        is_logged = unknown_timeout is not None and unknown_timeout < WORTH_A_LINE
        while True:
            self.want(names)  # each time: waiting may take longer than `metadata_max_idle_ms`
            missing = self._missing(names)
            if missing is None:
                return self.cluster
            limit = deadline
            if self._is_unknown(missing):
                limit = min(deadline, unknown, key=lambda each: each.at)
                if not is_logged:
                    is_logged = True
                    self._log_unknown(missing, limit)
            if self._schedule.finished > answered:
                answered = self._schedule.finished
                self.request_update(f"topic {missing!r} is not there yet")
            try:
                await self._next_change(limit)
            except RequestTimedOut:
                raise self._not_there(missing, deadline) from None
            self._raise_refusal()

    def _missing(self, names: Collection[str]) -> str | None:
        """The first topic without partitions, if any.

        Raises: BrokerError: a permanent error of a topic.
        """
        found = [self.cluster.topics.get(name) for name in names]
        for topic in found:
            if topic is not None and topic.error_code in PERMANENT:
                what = f"topic {topic.name!r}"
                raise error_for(topic.error_code, what, topic=topic.name, request="MetadataRequest")
        missing = (name for name, topic in zip(names, found, strict=True) if topic is None or not topic.partitions)
        return next(missing, None)

    def _is_unknown(self, name: str) -> bool:
        topic = self.cluster.topics.get(name)
        return topic is not None and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _log_unknown(self, name: str, deadline: Deadline) -> None:
        """Log an unknown topic at once: its name may be misspelled."""
        text = "topic %r does not exist yet; waiting up to %.1f s for it"
        self._log.warning(text, name, deadline.remaining, extra={"topic": name})

    def _not_there(self, name: str, deadline: Deadline) -> KafkaError:
        topic = self.cluster.topics.get(name)
        if topic is None or not topic.error_code:
            return deadline.error(self.last_error)
        what = f"topic {name!r}: no partitions within {deadline.elapsed:.3f} s"
        if self._is_unknown(name):
            what = f"{self.explain_unknown(name)} (asked for {deadline.elapsed:.1f} s)"
        return error_for(topic.error_code, what, topic=name, request="MetadataRequest")

    def explain_unknown(self, name: str) -> str:
        """Return the message for an unknown topic: the cause, and what to do."""
        if self._config.allow_auto_create_topics:
            why = "and the broker does not create it (auto.create.topics.enable)"
        else:
            why = "and allow_auto_create_topics is off"
        return f"topic {name!r} does not exist, {why}: check its name, or create it"

    def _deadline(self, timeout: float | None, what: str) -> Deadline:
        return Deadline(self._config.default_api_timeout if timeout is None else timeout, what)

    async def _next_change(self, deadline: Deadline) -> None:
        """Wait for the end of a refresh or a new snapshot.

        Raises: RequestTimedOut: at the deadline; KafkaError: what ended the client.
        """
        if self._failed is not None:
            raise self._failed
        changed = self._changed
        with anyio.CancelScope(deadline=deadline.at):
            await changed.wait()
        if not changed.is_set():
            raise deadline.error(self.last_error)
        if self._failed is not None:
            raise self._failed

    def _raise_refusal(self) -> None:
        """Raises: AuthenticationFailed: by the last refresh; more waiting would not help."""
        if isinstance(self.last_error, AuthenticationFailed):
            raise AuthenticationFailed(str(self.last_error), address=self.last_error.address)

    # --- the work ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Refresh when it is due, until cancelled."""
        while True:
            self._asked = anyio.Event()
            due = self._schedule.due()
            if due > loop_time():
                self._sleeps_until = due
                with anyio.CancelScope(deadline=due):
                    await self._asked.wait()
                if self._schedule.due() > loop_time():
                    continue
            await self._refresh()

    async def _refresh(self) -> None:
        interest = self.interest()
        number = self._schedule.start()
        try:
            answer = await self._ask(interest)
            await self._accept(answer, interest, number)
        except KafkaError as error:  # also for an implausible response
            if self.last_error is None or type(error) is not type(self.last_error):
                level = failure_level(error, logging.WARNING)
                self._log.log(level, "the metadata could not be refreshed, retrying with backoff: %s", error)
            self.last_error = error.with_traceback(None)
            self._schedule.failed(loop_time())
            self._wake()

    async def accept_first(self, answer: metadata.MetadataResponse) -> None:
        """Accept the response that the client received while starting; counts as a refresh."""
        await self._accept(answer, self.interest(), self._schedule.start())

    async def _accept(self, answer: metadata.MetadataResponse, interest: Collection[str] | None, number: int) -> None:
        """Adopt a response, in slices if it is large; its topics are taken out of it."""
        self._is_accepting = True
        try:
            replaced = await self._adopt(answer, interest, number)
        finally:
            self._is_accepting = False
            self._apply_hints()
        while replaced:
            del replaced[-SLICE:]
            await anyio.lowlevel.checkpoint()

    async def _adopt(
        self, answer: metadata.MetadataResponse, interest: Collection[str] | None, number: int
    ) -> list[Topic]:
        """Replace the snapshot; return the topics of the last one."""
        now = loop_time()
        wanted = None if interest is None else {*interest, *self._wanted, *self._pinned}
        merging = Merge(self.cluster, answer, wanted=wanted, awaited=self._pinned, now=now)
        while not merging.advance():
            await anyio.lowlevel.checkpoint()
        new = merging.finish()
        self.last_error = None
        self.updated_at = now
        self._schedule.succeeded(number, now, changed=merging.is_changed)
        if merging.has_unsettled:
            self._schedule.request("a topic is not settled", now)
            self._look_sooner()
        self._replace(new)
        return merging.replaced

    def update_leader(
        self, tp: TopicPartition, leader_id: int, leader_epoch: int, host: str | None = None, port: int = 0
    ) -> None:
        """Note a new leader named in another response (KIP-951), perhaps with its address.

        The hints of one turn of the loop become one snapshot at its end: one response may move
        thousands of partitions.
        """
        if not self._hints:
            asyncio.get_running_loop().call_soon(self._apply_hints)
        before = self._hints.get(tp)
        if before is None or before.leader_epoch < leader_epoch:
            broker = None if host is None else Broker(leader_id, host, port)
            self._hints[tp] = LeaderHint(leader_id, leader_epoch, broker)

    def _apply_hints(self) -> None:
        if self._is_accepting or not self._hints:  # `_accept` applies them to its new snapshot
            return
        hints, self._hints = self._hints, {}
        if self._failed is not None:
            return
        moved = self.cluster.with_leaders(hints)
        if moved is not None:
            self._replace(moved)
        for tp, hint in hints.items():
            if hint.leader_id not in self.cluster.brokers:
                self.request_update(f"node {hint.leader_id} leads {tp} and is not known")
                return

    def fail(self, error: KafkaError) -> None:
        """Fail all waits: the client has ended."""
        self._failed = error
        self._wake()

    def revive(self) -> None:
        """Undo `fail`: the client may be started again."""
        self._failed = None

    def _replace(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._wake()
        if self._hooks is not None:
            try:
                self._hooks.on_metadata(cluster.version, len(cluster.brokers), len(cluster.topics))
            except Exception:
                self._log.exception("hook on_metadata of %r raised", self._hooks)
        for listener in list(self._listeners):
            listener(cluster)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
