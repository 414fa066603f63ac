"""SaslAuthenticate: v0-2

One message of a SASL exchange (KIP-152).

Version notes:
- v1: the lifetime of the session, after which the client must authenticate again (KIP-368)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import AnswerAndClose, Call, MaybeAwaitable
from aiokwire.broker.security.authentication import Authenticator
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed
from aiokwire.protocol.messages import sasl_authenticate as messages

NOT_BEGUN = "SaslAuthenticate request received after successful authentication"  # Kafka's text


def handle(request: messages.SaslAuthenticateRequest, call: Call) -> MaybeAwaitable[messages.SaslAuthenticateResponse]:
    """Respond after the credentials are checked; those of a failed login after a pause."""
    if call.authenticator is None or not call.authenticator.in_exchange:
        return messages.SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=NOT_BEGUN)
    return _authenticate(request, call.authenticator)


async def _authenticate(
    request: messages.SaslAuthenticateRequest, authenticator: Authenticator
) -> messages.SaslAuthenticateResponse:
    try:
        challenge = await authenticator.evaluate(request.auth_bytes)
    except AuthenticationFailed as error:
        response = messages.SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error)
        )
        raise AnswerAndClose(authenticator.describe_failure(error), response) from error
    return messages.SaslAuthenticateResponse(
        error_message=None, auth_bytes=challenge, session_lifetime_ms=authenticator.session_lifetime_ms
    )
