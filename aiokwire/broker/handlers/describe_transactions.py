"""DescribeTransactions: v0

The state of transactional ids.
"""

from __future__ import annotations

from itertools import groupby

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_transactions as messages


def handle(request: messages.DescribeTransactionsRequest, call: Call) -> messages.DescribeTransactionsResponse:
    """Respond at once."""
    return messages.DescribeTransactionsResponse(
        transaction_states=[_describe(call, transactional_id) for transactional_id in request.transactional_ids]
    )


def _describe(call: Call, transactional_id: str) -> messages.TransactionState:
    if not call.is_allowed(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return messages.TransactionState(error_code=code, transactional_id=transactional_id)
    if not transactional_id:
        return messages.TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    found = call.state.transactions.get(transactional_id)
    if found is None:
        return messages.TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
        )
    return messages.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[
            messages.TopicData(topic=topic, partitions=[tp.partition for tp in partitions])
            for topic, partitions in groupby(sorted(found.partitions), key=lambda tp: tp.topic)
            if call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic, is_asked=False)
        ],
    )
