"""DescribeClientQuotas: v0-1

Lists the quotas of the entities that match every component of a filter.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import CLIENT_ID, IP, USER, QuotaMatch
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import describe_client_quotas as messages

EXACT, DEFAULT, SPECIFIED = range(3)  # match types


def handle(request: messages.DescribeClientQuotasRequest, call: Call) -> messages.DescribeClientQuotasResponse:
    """Respond at once."""
    try:
        matches = _matches(request.components)
    except BrokerError as error:
        return messages.DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    found = call.state.quotas.describe(matches, strict=request.strict)
    return messages.DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            messages.EntryData(
                entity=[messages.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[messages.ValueData(key=key, value=value) for key, value in sorted(quotas.items())],
            )
            for entity, quotas in found.items()
        ],
    )


def refuse(
    request: messages.DescribeClientQuotasRequest, version: int, code: ErrorCode
) -> messages.DescribeClientQuotasResponse:
    """Return an error instead of entries."""
    return messages.DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)


def _matches(components: list[messages.ComponentData]) -> dict[str, QuotaMatch]:
    matches: dict[str, QuotaMatch] = {}
    for one in components:
        if one.entity_type in matches:
            raise _invalid(f"{one.entity_type} is named twice in the filter")
        matches[one.entity_type] = _match(one)
    if IP in matches and len(matches) > 1:
        raise _invalid("an ip cannot be combined with a user or client-id in a filter")
    return matches


def _match(one: messages.ComponentData) -> QuotaMatch:
    if not one.entity_type:
        raise _invalid("the entity type of a filter must not be empty")
    if one.entity_type not in {USER, CLIENT_ID, IP}:
        raise BrokerError(
            f"{one.entity_type!r} is not an entity type of quotas: {USER}, {CLIENT_ID}, {IP}",
            code=ErrorCode.UNSUPPORTED_VERSION,
        )
    if one.match_type not in {EXACT, DEFAULT, SPECIFIED}:
        raise _invalid(f"{one.match_type} is not a match type: 0, 1 or 2")
    if (one.match is None) is (one.match_type == EXACT):
        raise _invalid("an exact match needs a name; other matches must not have one")
    return QuotaMatch(one.match, any_name=one.match_type == SPECIFIED)


def _invalid(message: str) -> BrokerError:
    return BrokerError(message, code=ErrorCode.INVALID_REQUEST)
