"""The quotas of requests: what is counted for each API, and the throttle time in responses."""

from __future__ import annotations

from typing import Any

from aiokwire.broker.dispatch import APIS, Answer, Call
from aiokwire.broker.security import MutationQuota, Usage
from aiokwire.errors import UnsupportedVersion
from aiokwire.protocol import ApiKey, Buffer, Response, encode_response

_LOGIN = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})  # a client is not known yet
# Their handlers count by `mutation_quota`, and put the throttle time into the response.
MUTATIONS = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})


def count_request(call: Call, usage: Usage, response: Answer, size: int) -> int:
    """Count a request, whose response has `size` bytes; return the throttle time in ms."""
    if call.api in _LOGIN or (call.authenticator is not None and not call.authenticator.is_ready):
        return 0
    quotas, user, client_id = call.state.quotas, call.principal.name, call.client_id or ""
    throttle = quotas.count_time(user, client_id, usage)
    if call.api == ApiKey.PRODUCE:
        return max(throttle, quotas.count_produced(user, client_id, usage.request_bytes))
    if call.api == ApiKey.FETCH:
        return max(throttle, quotas.count_fetched(user, client_id, size))
    if call.api in MUTATIONS:
        return max(throttle, _reported(response))
    return throttle


def _reported(response: Any) -> int:
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    return throttle_ms


def encode_throttled(call: Call, response: Answer, throttle_ms: int) -> list[Buffer]:
    """Encode a response with its throttle time; return [] if its version has none."""
    if response is None or "throttle_time_ms" not in type(response).__slots__:
        return []
    try:
        return encode_response(_with_throttle(response, throttle_ms), call.version, call.correlation_id)
    except UnsupportedVersion:
        return []


def _with_throttle(response: Any, throttle_ms: int) -> Response:
    response.throttle_time_ms = throttle_ms
    changed: Response = response
    return changed


def mutation_quota(call: Call, strict_since: int) -> MutationQuota | None:
    """Return the quota for partitions that a request creates or deletes; None: no limit.

    `strict_since`: the version from which clients know THROTTLING_QUOTA_EXCEEDED (KIP-599).
    """
    quotas = call.state.quotas
    if not quotas.enabled:
        return None
    strict = call.version >= strict_since or _is_unadvertised(call)
    return quotas.new_mutation_quota(call.principal.name, call.client_id or "", strict=strict)


def throttle_of(quota: MutationQuota | None, call: Call) -> int:
    """Return the throttle time for the response, in milliseconds; the oldest versions have none."""
    return 0 if quota is None or _is_unadvertised(call) else quota.throttle_ms


def _is_unadvertised(call: Call) -> bool:
    return call.version < APIS[call.api].first
