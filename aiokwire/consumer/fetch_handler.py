"""Applies a fetch response to its partitions: one method for each verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from aiokwire.cluster import Client, retry_level
from aiokwire.consumer.config import ENVELOPE_BYTES, ConsumerConfig
from aiokwire.consumer.corruption import corrupt_record, offset_behind
from aiokwire.consumer.fetch_buffer import FetchBuffer, Lease
from aiokwire.consumer.fetch_plan import FetchPlan
from aiokwire.consumer.fetch_responses import Answer, Verdict, error_of, read_response
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.offset_reset import error_without_policy
from aiokwire.consumer.positions import SHUN_SECONDS, PartitionState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import CorruptRecord, KafkaError, RecordRejected
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol.messages import fetch
from aiokwire.records import read_batches, select_visible
from aiokwire.types import IsolationLevel, OffsetReset

logger: FieldLogger = get_logger(__name__)


class RespondingNode(NamedTuple):
    """The broker that sent a fetch response."""

    node_id: int
    who: str  # for messages
    is_full: bool = True  # the response must contain every requested partition, not only changed ones (`fetch_session`)


class FetchHandler:
    """Applies responses. Owned by `Fetcher`; its lanes call it on the loop between two awaits."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        buffer: FetchBuffer,
        hooks: ConsumerHooks,
        *,
        on_reset: Callable[[], None],
        on_source: Callable[[], None],
    ) -> None:
        """`on_reset`: a partition needs a position lookup; `on_source`: another node serves it."""
        self._client = client
        self._config = config
        self._log = logger.bound(client_id=config.client_id, group_id=config.group_id)
        self._isolation = config.isolation
        self._buffer = buffer
        self._hooks = hooks
        self._on_reset = on_reset
        self._on_source = on_source
        self._addresses: dict[int, tuple[str | None, int]] = {}  # of new leaders, from the current response (KIP-951)
        self.largest_batch: int = 0  # bytes
        self._served = 0  # counts responses with data: the order in which partitions are fetched

    def handle(
        self, response: fetch.FetchResponse, plan: FetchPlan, ids: Mapping[str, bytes], node: RespondingNode
    ) -> None:
        """Apply a response. Drop data of partitions whose position moved since the request."""
        size = sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)
        lease = Lease(self._buffer, size)
        self._addresses = {node.node_id: (node.host, node.port) for node in response.node_endpoints}
        missing = {asked.state.tp: asked for asked in plan.asked}
        try:
            for answer in read_response(response, plan, ids):
                missing.pop(answer.asked.state.tp, None)
                if not answer.asked.is_stale:
                    self._judge(answer, lease, node)
                    if self._hooks.reports_ends:
                        self._hooks.progress(answer.asked.state)
        finally:
            lease.release()
        for asked in missing.values():
            if node.is_full and not asked.is_stale:
                self.back_off(asked.state, f"{node.who} left it out of its response")

    def _judge(self, answer: Answer, lease: Lease, node: RespondingNode) -> None:
        state = answer.asked.state
        who = node.who
        if answer.verdict is Verdict.RECORDS:
            self._on_records(answer, lease, node)
        elif node.node_id != state.source.leader:
            self._on_refused_by_replica(answer, node)
        elif answer.verdict is Verdict.OUT_OF_RANGE:
            self._on_out_of_range(answer, who)
        elif answer.verdict is Verdict.MOVED:
            self._on_moved(answer, who)
        elif answer.verdict is Verdict.RETRY:
            self.back_off(state, error_of(answer, who))
        else:
            error: KafkaError = error_of(answer, who)
            if answer.verdict is Verdict.CORRUPT:
                offset = answer.asked.offset
                error = corrupt_record(state, f"the broker cannot read its log there: {error}", offset, offset + 1)
            self._buffer.fail(state, error)

    def _on_records(self, answer: Answer, lease: Lease, node: RespondingNode) -> None:
        asked, data = answer.asked, answer.data
        state = asked.state
        state.attempt.succeed()
        is_committed = self._isolation is IsolationLevel.READ_COMMITTED and data.last_stable_offset >= 0
        state.ends.apply(data.high_watermark, data.last_stable_offset, data.log_start_offset, is_committed=is_committed)
        if data.preferred_read_replica >= 0:
            self._on_preferred(state, data.preferred_read_replica)
        if not data.records:
            return
        try:
            batches = read_batches(
                data.records,
                *state.tp,
                check_crcs=self._config.check_crcs,
                max_decompressed=self._config.max_decompressed_bytes,
            )
        except CorruptRecord as error:
            if node.node_id != state.source.leader:
                self.leave_replica([state], node.node_id, str(error))
                return
            behind = offset_behind(data.records, asked.offset)
            self._buffer.fail(state, corrupt_record(state, error, asked.offset, behind))
            return
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        visible = select_visible(batches, asked.offset, aborted if is_committed else None)
        if visible.end <= asked.offset:
            self._ask_for_more(state, asked.limit)
            return
        largest = max(batch.size for batch in batches)
        if largest <= self._config.max_partition_fetch_bytes:
            state.attempt.set_limit(0)
        self.largest_batch = max(self.largest_batch, largest)
        self._served += 1
        state.attempt.mark_served(self._served)
        self._buffer.add(state, visible, lease)

    def _ask_for_more(self, state: PartitionState, limit: int) -> None:
        """Raise the limit if no whole batch came: brokers before KIP-74 cut batches at it."""
        most = self._config.receive_message_max_bytes - ENVELOPE_BYTES
        if limit < most:
            state.attempt.set_limit(min(2 * limit, most))
            return
        topic, partition = state.tp
        error = RecordRejected(
            f"{state.tp}: the batch at offset {state.cursor.fetch_offset} is larger than {limit} bytes; raise "
            f"receive_message_max_bytes, or seek past it",
            code=ErrorCode.MESSAGE_TOO_LARGE,
            topic=topic,
            partition=partition,
            request="Fetch",
        )
        self._buffer.fail(state, error)

    def _on_preferred(self, state: PartitionState, node_id: int) -> None:
        """Fetch from the replica that the leader prefers for this client (KIP-392)."""
        if node_id not in self._client.cluster.brokers:
            self._client.metadata.request_update(f"node {node_id}, the preferred replica of {state.tp}, is not known")
            return
        now = asyncio.get_running_loop().time()
        if state.source.can_prefer(node_id, now):
            state.source.prefer(node_id, now + self._config.metadata_max_age)
            text = "%s: fetching from node %d, which is closer than the leader"
            self._log.info(text, state.tp, node_id, extra={"node_id": node_id})
            self._on_source()

    def _on_refused_by_replica(self, answer: Answer, node: RespondingNode) -> None:
        """Ask the leader again: only the leader's response may cause an error or a reset."""
        reason = str(error_of(answer, node.who))
        if answer.verdict is Verdict.MOVED:
            self._client.metadata.request_update(reason)
        self.leave_replica([answer.asked.state], node.node_id, reason)

    def leave_replica(self, states: Iterable[PartitionState], node_id: int, reason: str) -> None:
        """Fetch partitions whose preferred replica is this node from their leaders again."""
        now = asyncio.get_running_loop().time()
        for state in states:
            if state.source.replica == node_id:
                state.source.shun_replicas(now + SHUN_SECONDS)
                text = "%s: reading from the leader again instead of node %d: %s"
                self._log.info(text, state.tp, node_id, reason, extra={"node_id": node_id})
                self._on_source()

    def _on_out_of_range(self, answer: Answer, who: str) -> None:
        state = answer.asked.state
        reset = self._config.reset
        if reset is OffsetReset.NONE:
            self._buffer.fail(state, error_without_policy(state))
            return
        state.request_reset(reset, f"offset {answer.asked.offset} is out of range at {who}")
        self._on_reset()

    def _on_moved(self, answer: Answer, who: str) -> None:
        state = answer.asked.state
        hint = answer.data.current_leader
        if hint is not None and hint.leader_id >= 0:
            host, port = self._addresses.get(hint.leader_id, (None, 0))
            self._client.metadata.update_leader(state.tp, hint.leader_id, hint.leader_epoch, host, port)
        error = error_of(answer, who)
        self._client.metadata.request_update(str(error))
        self.back_off(state, error)

    def back_off(self, state: PartitionState, reason: KafkaError | str) -> None:
        """Retry a partition after its backoff."""
        backoff = state.attempt.backoff or self._client.new_backoff()
        delay = state.attempt.retry_after(backoff, str(reason), asyncio.get_running_loop().time())
        text = "%s: attempt %d failed, retrying in %.3f s: %s"
        self._log.log(retry_level(reason, backoff), text, state.tp, backoff.attempts, delay, reason)
