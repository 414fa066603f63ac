"""AlterConfigs: v0-2

Replaces all configs of a topic or of this broker: those that are not named are reset. Deprecated,
but still sent by clients other than Java's.
"""

from __future__ import annotations

from aiokwire.broker.config_changes import Change, Operation
from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import alter_if_allowed
from aiokwire.protocol.messages import alter_configs as messages


async def handle(request: messages.AlterConfigsRequest, call: Call) -> messages.AlterConfigsResponse:
    """Respond once the changes are stored."""
    results = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        changes = [Change(one.name, Operation.SET, one.value) for one in resource.configs]
        code, message = alter_if_allowed(call, kind, name, changes, replace=True, validate_only=request.validate_only)
        results.append(
            messages.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=kind, resource_name=name
            )
        )
    await call.state.topics.save()
    return messages.AlterConfigsResponse(responses=results)
