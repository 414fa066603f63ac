"""AlterUserScramCredentials: v0

Stores and deletes the salted passwords of users (KIP-554). Errors concern one user each.
"""

from __future__ import annotations

from collections import Counter

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security.users import MECHANISMS
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import alter_user_scram_credentials as messages
from aiokwire.security import ScramCredential, credential_of

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
NO_CHANGE = (ErrorCode.NONE, None)

Change = messages.ScramCredentialUpsertion | messages.ScramCredentialDeletion
Fault = tuple[ErrorCode, str | None]


async def handle(
    request: messages.AlterUserScramCredentialsRequest, call: Call
) -> messages.AlterUserScramCredentialsResponse:
    """Respond once the changes are on the disk."""
    changes = _changes(request)
    counts = Counter((one.name, one.mechanism) for one in changes)
    twice = {key for key, count in counts.items() if count > 1}
    faults: dict[str, Fault] = {}
    for change in changes:
        if faults.get(change.name, NO_CHANGE) == NO_CHANGE:
            faults[change.name] = _fault(change, call, twice)
    refused = {name for name, fault in faults.items() if fault != NO_CHANGE}
    try:
        await call.state.users.alter(
            [_stored(one) for one in request.upsertions if one.name not in refused],
            [(one.name, MECHANISMS[one.mechanism]) for one in request.deletions if one.name not in refused],
        )
    except StorageError as error:
        faults = {name: (ErrorCode.KAFKA_STORAGE_ERROR, str(error)) for name in faults}
    return messages.AlterUserScramCredentialsResponse(
        results=[
            messages.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            for user, (code, message) in faults.items()
        ]
    )


def refuse(
    request: messages.AlterUserScramCredentialsRequest, version: int, code: ErrorCode
) -> messages.AlterUserScramCredentialsResponse:
    """Return an error for each user."""
    names = dict.fromkeys(one.name for one in _changes(request))
    return messages.AlterUserScramCredentialsResponse(
        results=[
            messages.AlterUserScramCredentialsResult(user=name, error_code=code, error_message=None) for name in names
        ]
    )


def _changes(request: messages.AlterUserScramCredentialsRequest) -> list[Change]:
    return [*request.upsertions, *request.deletions]


def _fault(change: Change, call: Call, twice: set[tuple[str, int]]) -> Fault:
    if (change.name, change.mechanism) in twice:
        return ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if change.mechanism not in MECHANISMS:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(change, messages.ScramCredentialDeletion):
        if MECHANISMS[change.mechanism] not in call.state.users.stored(change.name):
            return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        return NO_CHANGE
    if change.iterations < MIN_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if change.iterations > MAX_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    return NO_CHANGE


def _stored(one: messages.ScramCredentialUpsertion) -> tuple[str, str, ScramCredential]:
    mechanism = MECHANISMS[one.mechanism]
    return one.name, mechanism, credential_of(mechanism, one.salted_password, one.salt, one.iterations)
