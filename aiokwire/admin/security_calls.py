"""Requests of `Admin` about ACLs, users, quotas and delegation tokens, by the call's deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from aiokwire.admin import acls, quotas, tokens, users
from aiokwire.admin.acls import AclBinding, AclBindingFilter
from aiokwire.admin.calls import request_controller
from aiokwire.admin.quotas import ClientQuotaChanges, ClientQuotaEntity, QuotaName
from aiokwire.admin.results import Results
from aiokwire.admin.tokens import DelegationToken
from aiokwire.admin.users import ScramAlteration, ScramCredentialInfo
from aiokwire.backoff import Deadline
from aiokwire.cluster import ANY, CONTROLLER, Client
from aiokwire.errors import InvalidArgument
from aiokwire.protocol import Request
from aiokwire.protocol.messages import expire_delegation_token, renew_delegation_token

RequestT = TypeVar("RequestT", bound=Request[Any])


async def create_acls(client: Client, bindings: Iterable[AclBinding], deadline: Deadline) -> Results[AclBinding, None]:
    """Create ACLs."""
    wanted = list(dict.fromkeys(bindings))
    request = acls.create_request(wanted)
    return acls.read_created(await client.request(request, to=ANY, timeout=deadline.remaining), wanted)


async def describe_acls(client: Client, wanted: AclBindingFilter, deadline: Deadline) -> list[AclBinding]:
    """List the ACLs that match a filter."""
    request = acls.describe_request(wanted)
    return acls.read_described(await client.request(request, to=ANY, timeout=deadline.remaining))


async def delete_acls(
    client: Client, filters: Iterable[AclBindingFilter], deadline: Deadline
) -> Results[AclBindingFilter, list[AclBinding]]:
    """Delete the ACLs that match filters."""
    wanted = list(dict.fromkeys(filters))
    request = acls.delete_request(wanted)
    return acls.read_deleted(await client.request(request, to=ANY, timeout=deadline.remaining), wanted)


async def alter_users(client: Client, alterations: Iterable[ScramAlteration], deadline: Deadline) -> Results[str, None]:
    """Store and delete SCRAM credentials; a user fails if one of its alterations does.

    Raises: InvalidArgument: two alterations are for the same user and mechanism.
    """
    wanted = list(alterations)
    if len({(one.user, one.mechanism) for one in wanted}) != len(wanted):
        raise InvalidArgument("alterations must name each user and mechanism once: leave the duplicate out")
    results: Results[str, None] = Results({}, {})
    for part in users.rounds(wanted):
        request = await users.alter_request(part)
        done = await request_controller(client, partial(_same, request), users.read_altered, deadline)
        results.succeeded.update(done.succeeded)
        results.errors.update(done.errors)
    for user in results.errors:
        results.succeeded.pop(user, None)
    return results


def _same(request: RequestT) -> RequestT:
    return request


async def describe_users(
    client: Client, names: Sequence[str] | None, deadline: Deadline
) -> Results[str, tuple[ScramCredentialInfo, ...]]:
    """List the mechanisms of users; `names` None: of all users."""
    request = users.describe_request(names)
    return users.read_described(await client.request(request, to=ANY, timeout=deadline.remaining))


async def alter_quotas(
    client: Client, changes: ClientQuotaChanges, deadline: Deadline, *, validate_only: bool
) -> Results[ClientQuotaEntity, None]:
    """Set and remove quotas."""
    request = quotas.alter_request(changes, validate_only=validate_only)
    return quotas.read_altered(await client.request(request, to=ANY, timeout=deadline.remaining))


async def describe_quotas(
    client: Client, matches: Mapping[str, str | QuotaName | None], deadline: Deadline, *, strict: bool
) -> dict[ClientQuotaEntity, dict[str, float]]:
    """List the quotas of the entities that match."""
    request = quotas.describe_request(matches, strict=strict)
    return quotas.read_described(await client.request(request, to=ANY, timeout=deadline.remaining))


async def create_token(
    client: Client, owner: str | None, renewers: Sequence[str], max_lifetime_ms: int | None, deadline: Deadline
) -> DelegationToken:
    """Create a delegation token."""
    request = tokens.create_request(owner, renewers, -1 if max_lifetime_ms is None else max_lifetime_ms)
    return tokens.read_created(await client.request(request, to=CONTROLLER, timeout=deadline.remaining), renewers)


async def renew_token(client: Client, token: DelegationToken | bytes, period_ms: int | None, deadline: Deadline) -> int:
    """Renew a delegation token; return when it expires."""
    request = renew_delegation_token.RenewDelegationTokenRequest(
        hmac=tokens.hmac_of(token), renew_period_ms=-1 if period_ms is None else period_ms
    )
    return tokens.read_expiry(await client.request(request, to=CONTROLLER, timeout=deadline.remaining), "renew")


async def expire_token(
    client: Client, token: DelegationToken | bytes, period_ms: int | None, deadline: Deadline
) -> int:
    """Let a delegation token expire; return when."""
    request = expire_delegation_token.ExpireDelegationTokenRequest(
        hmac=tokens.hmac_of(token), expiry_time_period_ms=-1 if period_ms is None else period_ms
    )
    return tokens.read_expiry(await client.request(request, to=CONTROLLER, timeout=deadline.remaining), "expire")


async def describe_tokens(client: Client, owners: Iterable[str] | None, deadline: Deadline) -> list[DelegationToken]:
    """List the delegation tokens that this user may see."""
    request = tokens.describe_request(owners)
    return tokens.read_described(await client.request(request, to=ANY, timeout=deadline.remaining))
