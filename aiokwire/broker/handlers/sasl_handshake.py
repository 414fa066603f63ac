"""SaslHandshake: v0-1

The client chooses a SASL mechanism; it begins a login, or a re-authentication (KIP-368).

Version notes:
- v0: tokens follow as frames without headers (KIP-43)
- v1: tokens follow in SaslAuthenticate requests (KIP-152)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import AnswerAndClose, Call
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed
from aiokwire.protocol.messages import sasl_handshake as messages


def handle(request: messages.SaslHandshakeRequest, call: Call) -> messages.SaslHandshakeResponse:
    """Respond at once."""
    authenticator = call.authenticator
    if authenticator is None or not authenticator.can_begin:
        return messages.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    mechanisms = list(authenticator.mechanisms)
    try:
        authenticator.begin(request.mechanism, reads_tokens=call.version == 0)
    except AuthenticationFailed as error:
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        response = messages.SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
        raise AnswerAndClose(str(error), response) from error
    return messages.SaslHandshakeResponse(mechanisms=mechanisms)
