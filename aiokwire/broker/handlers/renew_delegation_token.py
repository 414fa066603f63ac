"""RenewDelegationToken: v0-2

The owner and the renewers of a token may renew it, up to its maximum lifetime.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._tokens import NO_TIME, may_manage_tokens
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import renew_delegation_token as messages


async def handle(request: messages.RenewDelegationTokenRequest, call: Call) -> messages.RenewDelegationTokenResponse:
    """Respond once the change is stored."""
    if not may_manage_tokens(call):
        return _refusal(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    try:
        expires_at = await call.state.tokens.renew(bytes(request.hmac), call.principal, request.renew_period_ms)
    except BrokerError as error:
        return _refusal(error.code)
    except StorageError:
        return _refusal(ErrorCode.KAFKA_STORAGE_ERROR)
    return messages.RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at)


def _refusal(code: ErrorCode) -> messages.RenewDelegationTokenResponse:
    return messages.RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)
