"""Responses that carry an error and nothing else, in the field that their API has for errors.

For NOT_COORDINATOR (`dispatch`) and for rules (`faults/rules.py`). Produce, Fetch, ListOffsets, OffsetForLeaderEpoch
and Metadata are not here: their handlers return an error for each partition.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument
from aiokwire.protocol import ApiKey, Request, Response


def error_response(request: Request[Any], version: int, code: ErrorCode) -> Response:
    """Return the response to a request that failed with this code.

    Raises: InvalidArgument: the response has no error field that is known here.
    """
    messages = sys.modules[type(request).__module__]
    shape = _SHAPES.get(request.API)
    if shape is not None:
        return shape(messages, request, version, code)
    return _of_the_whole(request, code)


def _of_the_whole(request: Request[Any], code: ErrorCode) -> Response:
    response: Any = type(request).RESPONSE()
    if not hasattr(response, "error_code"):
        raise InvalidArgument(f"{type(response).__name__} has no error code of its own: use respond(...)")
    response.error_code = int(code)
    for name in ("producer_epoch", "node_id", "port"):  # what an error leaves out
        if hasattr(response, name):
            setattr(response, name, -1)
    answer: Response = response
    return answer


def _create_topics(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.CreateTopicsResponse(
        topics=[messages.CreatableTopicResult(name=one.name, error_code=code, configs=None) for one in request.topics]
    )
    return answer


def _delete_topics(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    named = [(one.name, one.topic_id) for one in request.topics] or [(name, bytes(16)) for name in request.topic_names]
    answer: Response = messages.DeleteTopicsResponse(
        responses=[
            messages.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code) for name, topic_id in named
        ]
    )
    return answer


def _create_partitions(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.CreatePartitionsResponse(
        results=[messages.CreatePartitionsTopicResult(name=one.name, error_code=code) for one in request.topics]
    )
    return answer


def _delete_records(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.DeleteRecordsResponse(
        topics=[
            messages.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    messages.DeleteRecordsPartitionResult(
                        partition_index=one.partition_index, low_watermark=-1, error_code=code
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    return answer


def _find_coordinator(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    if version < 4:
        return _of_the_whole(request, code)
    answer: Response = messages.FindCoordinatorResponse(
        coordinators=[
            messages.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None)
            for key in request.coordinator_keys
        ]
    )
    return answer


def _add_partitions_to_txn(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    def results(topics: Any) -> list[Any]:
        return [
            messages.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    messages.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]

    answer: Response
    if version < 4:
        answer = messages.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(request.v3_and_below_topics))
    else:
        answer = messages.AddPartitionsToTxnResponse(
            results_by_transaction=[
                messages.AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id, topic_results=results(one.topics)
                )
                for one in request.transactions
            ]
        )
    return answer


def _txn_offset_commit(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.TxnOffsetCommitResponse(
        topics=[
            messages.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    messages.TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    return answer


def _offset_commit(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.OffsetCommitResponse(
        topics=[
            messages.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    messages.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    return answer


def _offset_fetch(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    if version < 8:
        return _of_the_whole(request, code)
    answer: Response = messages.OffsetFetchResponse(
        groups=[
            messages.OffsetFetchResponseGroup(group_id=one.group_id, topics=[], error_code=code)
            for one in request.groups
        ]
    )
    return answer


def _join_group(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.JoinGroupResponse(
        error_code=code, generation_id=-1, protocol_name=None if version >= 7 else "", member_id=request.member_id
    )
    return answer


def _describe_groups(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.DescribeGroupsResponse(
        groups=[messages.DescribedGroup(error_code=code, group_id=group_id) for group_id in request.groups]
    )
    return answer


def _delete_groups(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.DeleteGroupsResponse(
        results=[messages.DeletableGroupResult(group_id=one, error_code=code) for one in request.groups_names]
    )
    return answer


def _consumer_group_describe(messages: Any, request: Any, version: int, code: ErrorCode) -> Response:
    answer: Response = messages.ConsumerGroupDescribeResponse(
        groups=[messages.DescribedGroup(error_code=code, group_id=group_id) for group_id in request.group_ids]
    )
    return answer


_Shape = Callable[[Any, Any, int, ErrorCode], Response]
_SHAPES: dict[ApiKey, _Shape] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _consumer_group_describe,
}
