"""ElectLeaders: v0-2

Every partition has a leader while the broker runs: no election is needed.

Version notes:
- v0: preferred leaders only; v1: unclean elections, an error code of the whole response (KIP-460)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import elect_leaders as messages

PREFERRED, UNCLEAN = 0, 1


def handle(request: messages.ElectLeadersRequest, call: Call) -> messages.ElectLeadersResponse:
    """Respond at once."""
    is_known = request.election_type in {PREFERRED, UNCLEAN}
    if request.topic_partitions is None:  # all that need an election
        results = [messages.ReplicaElectionResult(topic=topic.name) for topic in call.state.topics]
    else:
        results = [
            messages.ReplicaElectionResult(
                topic=one.topic, partition_result=[_result(one.topic, index, request, call) for index in one.partitions]
            )
            for one in request.topic_partitions
        ]
    code = ErrorCode.NONE if is_known or call.version == 0 else ErrorCode.INVALID_REQUEST
    return messages.ElectLeadersResponse(error_code=code, replica_election_results=results)


def refuse(request: messages.ElectLeadersRequest, version: int, code: ErrorCode) -> messages.ElectLeadersResponse:
    """Return an error for the request and for each partition."""
    results = [
        messages.ReplicaElectionResult(
            topic=one.topic,
            partition_result=[
                messages.PartitionResult(partition_id=index, error_code=code, error_message=code.description)
                for index in one.partitions
            ],
        )
        for one in request.topic_partitions or ()
    ]
    return messages.ElectLeadersResponse(error_code=code if version else 0, replica_election_results=results)


def _result(topic: str, index: int, request: messages.ElectLeadersRequest, call: Call) -> messages.PartitionResult:
    if request.election_type not in {PREFERRED, UNCLEAN}:
        code, message = ErrorCode.INVALID_REQUEST, f"election type {request.election_type} is unknown"
    elif call.state.topics.partition(topic, index) is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic}[{index}] does not exist"
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, f"{topic}[{index}] has its leader"
    return messages.PartitionResult(partition_id=index, error_code=code, error_message=message)
