"""Delegation tokens (KIP-48, KIP-373): a user's rights for a limited time. Values for `Admin`."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable

from aiokwire.errors import InvalidArgument, error_for
from aiokwire.protocol.messages import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from aiokwire.security import Secret


@dataclasses.dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token; times are milliseconds since the epoch, principals are `Type:name`.

    A client logs in with it by a SCRAM mechanism: `token_id` is the user name, `password` the
    password, and `sasl_delegation_token=True`.
    """

    token_id: str
    hmac: bytes = dataclasses.field(repr=False)
    """The secret part; renewals and expiry name the token by it."""
    owner: str
    requester: str
    """The principal that created it, if the broker reports it (since 3.3)."""
    renewers: tuple[str, ...]
    issued_at: int
    expires_at: int
    max_at: int
    """The latest time to which it can be renewed."""

    @property
    def password(self) -> Secret:
        """The password of a login with the token."""
        return Secret(base64.b64encode(self.hmac).decode())


def _principal(text: str) -> tuple[str, str]:
    """Raises: InvalidArgument: it is not a type and a name."""
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise InvalidArgument(f"a principal must be a type and a name, such as 'User:alice', not {text!r}")
    return kind, name


def create_request(
    owner: str | None, renewers: Iterable[str], max_lifetime_ms: int
) -> create_delegation_token.CreateDelegationTokenRequest:
    request = create_delegation_token.CreateDelegationTokenRequest(
        renewers=[
            create_delegation_token.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in map(_principal, renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = _principal(owner)
    return request


def read_created(
    response: create_delegation_token.CreateDelegationTokenResponse, renewers: Iterable[str]
) -> DelegationToken:
    """Raises: BrokerError: the broker refuses the request."""
    if response.error_code:
        raise error_for(response.error_code, "cannot create a delegation token")
    return DelegationToken(
        response.token_id,
        bytes(response.hmac),
        _text(response.principal_type, response.principal_name),
        _text(response.token_requester_principal_type, response.token_requester_principal_name),
        tuple(renewers),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    )


def describe_request(owners: Iterable[str] | None) -> describe_delegation_token.DescribeDelegationTokenRequest:
    """Build the request; `owners` None: for the tokens of all owners."""
    if owners is None:
        return describe_delegation_token.DescribeDelegationTokenRequest(owners=None)
    return describe_delegation_token.DescribeDelegationTokenRequest(
        owners=[
            describe_delegation_token.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_principal, owners)
        ]
    )


def read_described(response: describe_delegation_token.DescribeDelegationTokenResponse) -> list[DelegationToken]:
    """Raises: BrokerError: the broker refuses the request."""
    if response.error_code:
        raise error_for(response.error_code, "cannot describe the delegation tokens")
    found = [
        DelegationToken(
            one.token_id,
            bytes(one.hmac),
            _text(one.principal_type, one.principal_name),
            _text(one.token_requester_principal_type, one.token_requester_principal_name),
            tuple(_text(renewer.principal_type, renewer.principal_name) for renewer in one.renewers),
            one.issue_timestamp,
            one.expiry_timestamp,
            one.max_timestamp,
        )
        for one in response.tokens
    ]
    return sorted(found, key=lambda token: (token.issued_at, token.token_id))


def read_expiry(
    response: renew_delegation_token.RenewDelegationTokenResponse
    | expire_delegation_token.ExpireDelegationTokenResponse,
    verb: str,
) -> int:
    """Raises: BrokerError: the broker refuses the request."""
    if response.error_code:
        raise error_for(response.error_code, f"cannot {verb} the delegation token")
    return response.expiry_timestamp_ms


def hmac_of(token: DelegationToken | bytes) -> bytes:
    """Return the HMAC by which requests name a token."""
    return token.hmac if isinstance(token, DelegationToken) else token


def _text(kind: str, name: str) -> str:
    return f"{kind}:{name}" if name else ""
