"""IncrementalAlterConfigs: v0-1

Sets, deletes, appends to and subtracts from configs of topics and of this broker.
"""

from __future__ import annotations

from aiokwire.broker.config_changes import Change
from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import alter_if_allowed
from aiokwire.protocol.messages import incremental_alter_configs as messages


async def handle(
    request: messages.IncrementalAlterConfigsRequest, call: Call
) -> messages.IncrementalAlterConfigsResponse:
    """Respond once the changes are stored."""
    results = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        changes = [Change(one.name, one.config_operation, one.value) for one in resource.configs]
        code, message = alter_if_allowed(call, kind, name, changes, replace=False, validate_only=request.validate_only)
        results.append(
            messages.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=kind, resource_name=name
            )
        )
    await call.state.topics.save()
    return messages.IncrementalAlterConfigsResponse(responses=results)
