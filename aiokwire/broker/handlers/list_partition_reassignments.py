"""ListPartitionReassignments: v0

One broker has nothing to reassign: the list is empty. `kafka-topics --describe` requests it.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import list_partition_reassignments as messages


def handle(
    request: messages.ListPartitionReassignmentsRequest, call: Call
) -> messages.ListPartitionReassignmentsResponse:
    """Respond at once."""
    return messages.ListPartitionReassignmentsResponse(error_message=None)


def refuse(
    request: messages.ListPartitionReassignmentsRequest, version: int, code: ErrorCode
) -> messages.ListPartitionReassignmentsResponse:
    """Return an error for the request."""
    return messages.ListPartitionReassignmentsResponse(error_code=code, error_message=code.description)
