"""What a fetch response does to its partitions: one small method for each verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from aiokwire.cluster import Client
from aiokwire.consumer.config import ENVELOPE_BYTES, ConsumerConfig
from aiokwire.consumer.fetch_buffer import FetchBuffer, Lease
from aiokwire.consumer.fetch_plan import FetchPlan
from aiokwire.consumer.fetch_responses import Answer, Verdict, error_of, read_response
from aiokwire.consumer.offset_reset import error_without_policy
from aiokwire.consumer.positions import PartitionState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import CorruptRecord, RecordRejected
from aiokwire.protocol.messages import fetch
from aiokwire.records import read_batches, select_visible
from aiokwire.types import IsolationLevel, OffsetReset

logger = logging.getLogger(__name__)

# Repeated trouble of one partition is logged at these attempts, and then at every hundredth.
LOGGED_ATTEMPTS: Final = (1, 5, 20)


class Intake:
    """Takes responses in. Called by the lanes, between two awaits."""

    def __init__(self, client: Client, config: ConsumerConfig, buffer: FetchBuffer) -> None:
        self._client = client
        self._config = config
        self._isolation = config.isolation
        self._buffer = buffer
        self._addresses: dict[int, tuple[str | None, int]] = {}  # of new leaders, from the present response (KIP-951)
        self._served = 0  # counts answers with data: the order in which partitions are asked for
        self.on_reset = _nothing  # called when a partition needs its position looked up; set by the upkeep

    def take(self, response: fetch.FetchResponse, plan: FetchPlan, ids: Mapping[str, bytes], who: str) -> None:
        """Judge every partition of a response; what came for a position that was left meanwhile is dropped."""
        size = sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)
        lease = Lease(self._buffer, size)
        self._addresses = {node.node_id: (node.host, node.port) for node in response.node_endpoints}
        missing = {asked.state.tp: asked for asked in plan.asked}
        try:
            for answer in read_response(response, plan, ids):
                missing.pop(answer.asked.state.tp, None)
                if not answer.asked.is_stale:
                    self._judge(answer, lease, who)
        finally:
            lease.release()
        for asked in missing.values():
            if not asked.is_stale:
                self.back_off(asked.state, f"{who} left it out of its answer")

    def _judge(self, answer: Answer, lease: Lease, who: str) -> None:
        state = answer.asked.state
        if answer.verdict is Verdict.RECORDS:
            self._on_records(answer, lease)
        elif answer.verdict is Verdict.OUT_OF_RANGE:
            self._on_out_of_range(answer, who)
        elif answer.verdict is Verdict.MOVED:
            self._on_moved(answer, who)
        elif answer.verdict is Verdict.RETRY:
            self.back_off(state, str(error_of(answer, who)))
        else:
            state.fail(error_of(answer, who))
            self._buffer.report(state)

    def _on_records(self, answer: Answer, lease: Lease) -> None:
        asked, data = answer.asked, answer.data
        state = asked.state
        state.backoff = None
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        committed = self._isolation is IsolationLevel.READ_COMMITTED and data.last_stable_offset >= 0
        state.end_offset = data.last_stable_offset if committed else data.high_watermark
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
            state.fail(error)
            self._buffer.report(state)
            return
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        visible = select_visible(batches, asked.offset, aborted if committed else None)
        if visible.end <= asked.offset:
            self._ask_for_more(state, asked.limit)
            return
        if max(batch.size for batch in batches) <= self._config.max_partition_fetch_bytes:
            state.limit = 0
        self._served += 1
        state.served = self._served
        self._buffer.add(state, visible, lease)

    def _ask_for_more(self, state: PartitionState, limit: int) -> None:
        """Not one whole batch came: an old broker cuts at the limit, whatever the batch's size (before KIP-74)."""
        most = self._config.receive_message_max_bytes - ENVELOPE_BYTES
        if limit >= most:
            topic, partition = state.tp
            state.fail(
                RecordRejected(
                    f"{state.tp}: the batch at offset {state.fetch_offset} is larger than {limit} bytes; raise "
                    f"receive_message_max_bytes, or seek past it",
                    code=ErrorCode.MESSAGE_TOO_LARGE,
                    topic=topic,
                    partition=partition,
                    request="Fetch",
                )
            )
            self._buffer.report(state)
            return
        state.limit = min(2 * limit, most)

    def _on_out_of_range(self, answer: Answer, who: str) -> None:
        state = answer.asked.state
        reset = self._config.reset
        if reset is OffsetReset.NONE:
            state.fail(error_without_policy(state))
            self._buffer.report(state)
            return
        state.ask_for_reset(reset, f"offset {answer.asked.offset} is out of range at {who}")
        self.on_reset()

    def _on_moved(self, answer: Answer, who: str) -> None:
        state = answer.asked.state
        hint = answer.data.current_leader
        if hint is not None and hint.leader_id >= 0:
            host, port = self._addresses.get(hint.leader_id, (None, 0))
            self._client.metadata.update_leader(state.tp, hint.leader_id, hint.leader_epoch, host, port)
        error = error_of(answer, who)
        self._client.metadata.request_update(str(error))
        self.back_off(state, str(error))

    def back_off(self, state: PartitionState, reason: str) -> None:
        """Try a partition again after a while."""
        if state.backoff is None:
            state.backoff = self._client.new_backoff()
        delay = state.backoff.next()
        state.retry_at = asyncio.get_running_loop().time() + delay
        attempt = state.backoff.attempts
        level = logging.INFO if attempt in LOGGED_ATTEMPTS or attempt % 100 == 0 else logging.DEBUG
        logger.log(level, "%s: attempt %d, again in %.3f s: %s", state.tp, attempt, delay, reason)


def _nothing() -> None:
    """No upkeep is there yet."""
