"""What aiokafka's conftest does in its container, done by `Admin`: ACLs, users, Kerberos logins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import anyio
import pytest

from aiokwire import Admin
from aiokwire.admin import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AclResourceType,
    ScramCredentialUpsertion,
    ScramMechanism,
)

_SECONDS: Final = 30.0
_RESOURCES: Final = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "transactional_id": AclResourceType.TRANSACTIONAL_ID,
}


class Administration:
    """Calls `Admin` from tests whose loop is running: in another thread."""

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, call: Callable[[Admin], Awaitable[object]]) -> None:
        """Connect, and await one call."""

        async def connected() -> None:
            async with Admin(self._address) as admin:
                await call(admin)

        with ThreadPoolExecutor(1) as executor:
            executor.submit(anyio.run, connected).result(_SECONDS)


class AclManager(Administration):
    """ACLs of the tests; the arguments are those of Kafka's tool."""

    def add_acl(self, **given: Any) -> None:
        """Create an ACL."""
        binding = binding_of(given)

        async def create(admin: Admin) -> None:
            (await admin.create_acls([binding])).check()

        self.run(create)

    def list_acl(self, principal: str | None = None) -> None:
        """List the ACLs."""
        self.run(lambda admin: admin.describe_acls())

    def cleanup(self) -> None:
        """Delete all ACLs."""
        self.run(lambda admin: admin.delete_acls([AclBindingFilter()]))


def binding_of(given: dict[str, Any]) -> AclBinding:
    """Return the ACL for the arguments of Kafka's tool."""
    allowed, denied = given.get("allow_principal"), given.get("deny_principal")
    kind, name = AclResourceType.CLUSTER, CLUSTER_NAME
    for argument, resource in _RESOURCES.items():
        if argument in given:
            kind, name = resource, given[argument]
    return AclBinding(
        f"User:{allowed or denied}",
        AclOperation[given["operation"].upper()],
        kind,
        name,
        permission=AclPermissionType.ALLOW if allowed else AclPermissionType.DENY,
    )


class KafkaConfig(Administration):
    """Users of SCRAM."""

    def add_scram_user(self, name: str, password: str) -> None:
        """Create a user."""
        mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        wanted = [ScramCredentialUpsertion(name, password, mechanism) for mechanism in mechanisms]

        async def create(admin: Admin) -> None:
            (await admin.alter_user_scram_credentials(wanted)).check()

        self.run(create)


class KerberosUtils:
    """Tickets of a client."""

    def __init__(self, keytab: str, cache: str, missing: str) -> None:
        self._keytab = keytab
        self._cache = cache
        self._missing = missing

    def kinit(self, _principal: str) -> None:
        """Put a client's ticket into the cache."""
        if not self._keytab:
            pytest.skip(self._missing)
        import gssapi

        store: dict[bytes | str, bytes | str] = {"client_keytab": self._keytab, "ccache": f"FILE:{self._cache}"}
        assert gssapi.Credentials(usage="initiate", store=store).lifetime > 0

    def kdestroy(self) -> None:
        """Keep the ticket: it ends with the cache."""
