"""CreateDelegationToken: v0-3

Version notes:
- v3: a token for another user; the response names the requester (KIP-373)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._tokens import USER, may_manage_tokens
from aiokwire.broker.security import AclOperation, Principal, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import create_delegation_token as messages


async def handle(request: messages.CreateDelegationTokenRequest, call: Call) -> messages.CreateDelegationTokenResponse:
    """Respond once the token is stored."""
    owner = call.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or USER, request.owner_principal_name)
    code = _fault(request, call, owner)
    if code is not ErrorCode.NONE:
        return _response(call, owner, code)
    renewers = [Principal(one.principal_type, one.principal_name) for one in request.renewers]
    tokens = call.state.tokens
    try:
        token = await tokens.create(call.principal, owner, renewers, request.max_lifetime_ms)
    except BrokerError as error:
        return _response(call, owner, error.code)
    except StorageError:
        return _response(call, owner, ErrorCode.KAFKA_STORAGE_ERROR)
    response = _response(call, owner, ErrorCode.NONE)
    response.issue_timestamp_ms = token.issued_at
    response.expiry_timestamp_ms = token.expires_at
    response.max_timestamp_ms = token.max_at
    response.token_id = token.token_id
    response.hmac = tokens.hmac_of(token.token_id)
    return response


def _fault(request: messages.CreateDelegationTokenRequest, call: Call, owner: Principal) -> ErrorCode:
    if not may_manage_tokens(call):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != call.principal and not call.is_allowed(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(one.principal_type != USER for one in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE


def _response(call: Call, owner: Principal, code: ErrorCode) -> messages.CreateDelegationTokenResponse:
    response = messages.CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if call.version >= 3:
        response.token_requester_principal_type, response.token_requester_principal_name = call.principal
    return response
