"""Client quotas of users, client ids and addresses (KIP-546). Values and messages for `Admin`."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Final

from aiokwire.admin.calls import with_message
from aiokwire.admin.results import Results
from aiokwire.errors import InvalidArgument, error_for
from aiokwire.protocol.messages import alter_client_quotas, describe_client_quotas


class QuotaName(enum.Enum):
    """Stands for more than one name of a user, client id or address."""

    DEFAULT = "default"  # all that have no quota of their own
    ANY = "any"  # in a description: every name, and the default

    def __repr__(self) -> str:
        return self.name


_EXACT, _DEFAULT, _SPECIFIED = range(3)  # match types on the wire
_FIELDS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}  # by type on the wire
_COMBINATIONS: Final = ({"user"}, {"client-id"}, {"user", "client-id"}, {"ip"})


@dataclasses.dataclass(frozen=True, slots=True)
class ClientQuotaEntity:
    """The entity of a quota: user, client id, both, or ip; each a name or `QuotaName.DEFAULT`."""

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None

    def __post_init__(self) -> None:
        if {kind for kind, _ in self.parts()} not in _COMBINATIONS:
            raise InvalidArgument(f"a quota must be for a user, a client_id, both, or an ip, not for {self}")
        if any(name in {"", QuotaName.ANY} for _, name in self.parts()):
            raise InvalidArgument(f"{self}: a name must not be empty; DEFAULT stands for all that have no own quota")

    def parts(self) -> list[tuple[str, str | QuotaName]]:
        """Return type and name of each part, by the types on the wire."""
        given = [(kind, getattr(self, field)) for kind, field in _FIELDS.items()]
        return [(kind, name) for kind, name in given if name is not None]

    def __str__(self) -> str:
        return ", ".join(f"{kind} {name!r}" for kind, name in self.parts()) or "nothing"


ClientQuotaChanges = Mapping[ClientQuotaEntity, Mapping[str, float | None]]


def alter_request(changes: ClientQuotaChanges, *, validate_only: bool) -> alter_client_quotas.AlterClientQuotasRequest:
    """Build the request; None removes a quota."""
    return alter_client_quotas.AlterClientQuotasRequest(
        entries=[
            alter_client_quotas.AlterClientQuotasRequestEntryData(
                entity=[
                    alter_client_quotas.EntityData(
                        entity_type=kind, entity_name=name if isinstance(name, str) else None
                    )
                    for kind, name in entity.parts()
                ],
                ops=[
                    alter_client_quotas.OpData(key=key, value=float(value or 0.0), remove=value is None)
                    for key, value in quotas.items()
                ],
            )
            for entity, quotas in changes.items()
        ],
        validate_only=validate_only,
    )


def read_altered(response: alter_client_quotas.AlterClientQuotasResponse) -> Results[ClientQuotaEntity, None]:
    results: Results[ClientQuotaEntity, None] = Results({}, {})
    for entry in response.entries:
        entity = _entity(entry.entity)
        if entry.error_code:
            context = with_message(f"cannot alter the quotas of {entity}", entry.error_message)
            results.errors[entity] = error_for(entry.error_code, context)
        else:
            results.succeeded[entity] = None
    return results


def describe_request(
    matches: Mapping[str, str | QuotaName | None], *, strict: bool
) -> describe_client_quotas.DescribeClientQuotasRequest:
    """Build the request; `matches` has a name, DEFAULT or ANY for each type of an entity."""
    return describe_client_quotas.DescribeClientQuotasRequest(
        components=[
            describe_client_quotas.ComponentData(
                entity_type=kind,
                match_type=_SPECIFIED if name is QuotaName.ANY else _DEFAULT if name is QuotaName.DEFAULT else _EXACT,
                match=name if isinstance(name, str) else None,
            )
            for kind, name in matches.items()
            if name is not None
        ],
        strict=strict,
    )


def read_described(
    response: describe_client_quotas.DescribeClientQuotasResponse,
) -> dict[ClientQuotaEntity, dict[str, float]]:
    """Raises: BrokerError: the broker refuses the request."""
    if response.error_code:
        raise error_for(response.error_code, with_message("cannot describe the quotas", response.error_message))
    found = {
        _entity(entry.entity): {one.key: one.value for one in sorted(entry.values, key=lambda one: one.key)}
        for entry in response.entries or []
        if all(part.entity_type in _FIELDS for part in entry.entity)  # a newer broker may have more
    }
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def _entity(
    parts: Sequence[alter_client_quotas.EntityData] | Sequence[describe_client_quotas.EntityData],
) -> ClientQuotaEntity:
    names = {
        _FIELDS[part.entity_type]: QuotaName.DEFAULT if part.entity_name is None else part.entity_name for part in parts
    }
    return ClientQuotaEntity(**names)
