"""DescribeUserScramCredentials: v0

The mechanisms and iterations of users with passwords (KIP-554); never their keys.
"""

from __future__ import annotations

from collections import Counter

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security.users import MECHANISMS
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_user_scram_credentials as messages


def handle(
    request: messages.DescribeUserScramCredentialsRequest, call: Call
) -> messages.DescribeUserScramCredentialsResponse:
    """Respond at once."""
    counts = Counter(one.name for one in request.users or ())
    names = list(counts) or call.state.users.names()
    return messages.DescribeUserScramCredentialsResponse(
        error_message=None, results=[_result(name, counts[name], call) for name in names]
    )


def refuse(
    request: messages.DescribeUserScramCredentialsRequest, version: int, code: ErrorCode
) -> messages.DescribeUserScramCredentialsResponse:
    """Return an error for the request, and one for each user; Kafka leaves their names out."""
    result = messages.DescribeUserScramCredentialsResult(error_code=code, error_message=code.description)
    return messages.DescribeUserScramCredentialsResponse(
        error_code=code, error_message=code.description, results=[result for _ in request.users or ()]
    )


def _result(name: str, count: int, call: Call) -> messages.DescribeUserScramCredentialsResult:
    if count > 1:
        return messages.DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    credentials = call.state.users.credentials(name)
    if not credentials:
        return messages.DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return messages.DescribeUserScramCredentialsResult(
        user=name,
        error_message=None,
        credential_infos=[
            messages.CredentialInfo(mechanism=number, iterations=credentials[mechanism].iterations)
            for number, mechanism in MECHANISMS.items()
            if mechanism in credentials
        ],
    )
