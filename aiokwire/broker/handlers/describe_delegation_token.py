"""DescribeDelegationToken: v0-3

Lists the tokens that the client owns, requested or may renew, and those that ACLs allow it to see.

Version notes:
- v3: who requested a token (KIP-373)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._tokens import may_manage_tokens
from aiokwire.broker.security import AclOperation, DelegationToken, Principal, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import describe_delegation_token as messages


def handle(request: messages.DescribeDelegationTokenRequest, call: Call) -> messages.DescribeDelegationTokenResponse:
    """Respond at once."""
    if not may_manage_tokens(call):
        return messages.DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    try:
        tokens = call.state.tokens.tokens()
    except BrokerError as error:
        return messages.DescribeDelegationTokenResponse(error_code=error.code)
    owners = (
        None
        if request.owners is None
        else [Principal(one.principal_type, one.principal_name) for one in request.owners]
    )
    return messages.DescribeDelegationTokenResponse(
        tokens=[
            _described(token, call)
            for token in tokens
            if (owners is None or any(map(token.concerns, owners))) and _is_visible(token, call)
        ]
    )


def _is_visible(token: DelegationToken, call: Call) -> bool:
    if token.concerns(call.principal):
        return True
    if call.state.authorizer is None:  # Kafka shows every token then: each contains a password
        return False
    return call.is_allowed(
        AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, is_asked=False
    ) or call.is_allowed(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner), is_asked=False)


def _described(token: DelegationToken, call: Call) -> messages.DescribedDelegationToken:
    described = messages.DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        issue_timestamp=token.issued_at,
        expiry_timestamp=token.expires_at,
        max_timestamp=token.max_at,
        token_id=token.token_id,
        hmac=call.state.tokens.hmac_of(token.token_id),
        renewers=[
            messages.DescribedDelegationTokenRenewer(principal_type=one.type, principal_name=one.name)
            for one in token.renewers
        ],
    )
    if call.version >= 3:
        described.token_requester_principal_type, described.token_requester_principal_name = token.requester
    return described
