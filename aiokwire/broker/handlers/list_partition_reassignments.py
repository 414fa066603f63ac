"""ListPartitionReassignments: v0

One broker has nothing to reassign: the list is empty. `kafka-topics --describe` asks for it.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.protocol.messages import list_partition_reassignments as messages


def handle(
    request: messages.ListPartitionReassignmentsRequest, call: Call
) -> messages.ListPartitionReassignmentsResponse:
    """Respond at once."""
    return messages.ListPartitionReassignmentsResponse(error_message=None)
