"""Allows or denies operations by ACLs (Java: `StandardAuthorizer`).

A super user may do everything. Otherwise an ACL that denies decides, then one that allows. A
resource without ACLs is denied, unless `allow.everyone.if.no.acl.found` is true.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from aiokwire._text import printable
from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.security.acls import WILDCARD, Acl, AclFilter, AclIndex
from aiokwire.broker.security.operations import AclOperation, PatternType, ResourceType
from aiokwire.broker.security.principals import Principal
from aiokwire.broker.security.store import SecurityStore
from aiokwire.errors import ConfigurationError, StorageError

logger: logging.Logger = logging.getLogger(__name__)

PER_WINDOW: Final = 10  # lines for one principal
WINDOW: Final = 60.0  # seconds
MOST_PRINCIPALS: Final = 1000  # that have their own count; the others share one
_OTHERS: Final = "other principals"


class AuditLog:
    """Logs decisions, with everything that came over the wire escaped."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # denied requests of the current window, by principal
        self._end: asyncio.TimerHandle | None = None  # of the window

    @property
    def logs_allowed(self) -> bool:
        """Whether allowed requests are logged."""
        return logger.isEnabledFor(logging.DEBUG)

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource: ResourceType, name: str, rule: str
    ) -> None:
        """Log a request that was allowed."""
        logger.debug("%s", _line(principal, "allowed", host, operation, resource, name, rule))

    def denied(
        self, principal: str, host: str, operation: AclOperation, resource: ResourceType, name: str, rule: str
    ) -> None:
        """Log a request that was denied; only count it if the principal's lines are used up."""
        if not logger.isEnabledFor(logging.INFO):
            return
        if principal not in self._counts and len(self._counts) >= MOST_PRINCIPALS:
            principal = _OTHERS
        count = self._counts[principal] = self._counts.get(principal, 0) + 1
        if self._end is None:
            self._end = asyncio.get_running_loop().call_later(WINDOW, self.flush)
        if count <= PER_WINDOW:
            logger.info("%s", _line(principal, "denied", host, operation, resource, name, rule))

    def flush(self) -> None:
        """End the window: log how many denied requests were left out."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        counts, self._counts = self._counts, {}
        for principal, count in counts.items():
            if count > PER_WINDOW:
                logger.info(
                    "%s was denied %d more times within %.0f s (not logged individually)",
                    printable(principal),
                    count - PER_WINDOW,
                    WINDOW,
                )


def _line(
    principal: str, result: str, host: str, operation: AclOperation, resource: ResourceType, name: str, rule: str
) -> str:
    return printable(f"{principal} was {result} {operation.name} on {resource.name} {name!r} from {host}: {rule}")


STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SECTION: Final = "acls"  # of the security store
REMEMBERED: Final = 10_000  # decisions
# Kafka, too, checks this name to find out whether everything is allowed.
_ANY_NAME: Final = "hardcode"


class Decision(NamedTuple):
    """Whether a request is allowed, and by which rule."""

    is_allowed: bool
    rule: str


_SUPER_USER: Final = Decision(True, "a super user")


def new_authorizer(configs: BrokerConfigs, store: SecurityStore) -> Authorizer | None:
    """Return the authorizer that the broker's configs select, or None.

    Raises: ConfigurationError: an unknown authorizer, or a malformed super user.
    """
    name = (configs.text("authorizer.class.name") or "").strip()
    if not name:
        return None
    if name != STANDARD:
        raise ConfigurationError(f"authorizer.class.name {name!r} is unknown: it must be {STANDARD} or empty")
    return Authorizer(
        store,
        super_users=_super_users(configs.text("super.users") or ""),
        allows_by_default=configs.boolean("allow.everyone.if.no.acl.found"),
    )


def _super_users(text: str) -> frozenset[str]:
    users = frozenset(user.strip() for user in text.split(";") if user.strip())
    for user in users:
        if ":" not in user:
            raise ConfigurationError(
                f"super.users names {user!r}: each must be a type, a colon and a name, such as User:admin, "
                "separated by semicolons"
            )
    return users


class Authorizer:
    """The ACLs of the broker and the decisions that follow from them."""

    def __init__(
        self, store: SecurityStore, *, super_users: frozenset[str] = frozenset(), allows_by_default: bool = False
    ) -> None:
        self._store = store
        self._super_users = super_users
        self._by_default = Decision(allows_by_default, "no ACL is about the resource")
        self._acls = AclIndex()
        self._known: dict[tuple[Principal, str, AclOperation, ResourceType, str], Decision] = {}
        self._known_any: dict[tuple[Principal, str, AclOperation, ResourceType], bool] = {}
        self.audit: AuditLog = AuditLog()

    # --- decisions ----------------------------------------------------------------------------------------------------

    def is_allowed(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourceType,
        name: str,
        *,
        is_asked: bool = True,
    ) -> bool:
        """Return whether a principal may do an operation with a resource.

        `is_asked` is false for a resource that the principal did not name: a denial is not logged.
        """
        decision = self._decision(principal, host, operation, resource, name)
        if decision.is_allowed:
            if self.audit.logs_allowed:
                self.audit.allowed(str(principal), host, operation, resource, name, decision.rule)
        elif is_asked:
            self.audit.denied(str(principal), host, operation, resource, name, decision.rule)
        return decision.is_allowed

    def _decision(
        self, principal: Principal, host: str, operation: AclOperation, resource: ResourceType, name: str
    ) -> Decision:
        key = (principal, host, operation, resource, name)
        found = self._known.get(key)
        if found is None:
            found = self._decide(str(principal), host, operation, resource, name)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = found
        return found

    def _decide(
        self, principal: str, host: str, operation: AclOperation, resource: ResourceType, name: str
    ) -> Decision:
        if principal in self._super_users:
            return _SUPER_USER
        has_acls, allowing = False, None
        for acl in self._acls.of_resource(resource, name):
            has_acls = True
            if acl.is_for(principal, host) and acl.covers(operation):
                if not acl.allows:
                    return Decision(False, str(acl))
                allowing = acl
        if allowing is not None:
            return Decision(True, str(allowing))
        return Decision(False, "no ACL allows it") if has_acls else self._by_default

    def is_allowed_any(self, principal: Principal, host: str, operation: AclOperation, resource: ResourceType) -> bool:
        """Return whether a principal may do an operation with at least one resource of a type."""
        key = (principal, host, operation, resource)
        found = self._known_any.get(key)
        if found is None:
            found = self._decide_any(principal, host, operation, resource)
            if len(self._known_any) >= REMEMBERED:
                self._known_any.clear()
            self._known_any[key] = found
        return found

    def _decide_any(self, principal: Principal, host: str, operation: AclOperation, resource: ResourceType) -> bool:
        if self._decision(principal, host, operation, resource, _ANY_NAME).is_allowed:
            return True
        about = [
            acl
            for acl in self._acls.of_type(resource)
            if acl.is_for(str(principal), host) and acl.operation in (operation, AclOperation.ALL)
        ]
        denied = {acl[1:3] for acl in about if not acl.allows}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(acl.allows and not _is_overruled(acl, denied) for acl in about)

    # --- changes ------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the ACLs from the store.

        Raises: StorageError: they are corrupt.
        """
        try:
            self._acls = AclIndex(map(Acl.from_row, self._store.section(SECTION)))
        except (KeyError, TypeError) as error:
            raise StorageError(f"an ACL in the data directory is corrupt: {error!r}") from error
        self._forget()

    def select(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter selects."""
        return self._acls.select(wanted)

    async def create(self, acls: Iterable[Acl]) -> None:
        """Store ACLs and put them in force; those that exist are unchanged.

        Raises: StorageError: none is in force.
        """
        async with self._store.turn(SECTION):
            added = [acl for acl in dict.fromkeys(acls) if acl not in self._acls]
            if added:
                await self._save([*self._acls, *added])
            for acl in added:
                self._acls.add(acl)
            self._forget()

    async def delete(self, acls: Iterable[Acl]) -> None:
        """Remove ACLs from the store, then from force.

        Raises: StorageError: all stay in force.
        """
        async with self._store.turn(SECTION):
            removed = {acl for acl in acls if acl in self._acls}
            if removed:
                await self._save([acl for acl in self._acls if acl not in removed])
            for acl in removed:
                self._acls.remove(acl)
            self._forget()

    async def _save(self, acls: Iterable[Acl]) -> None:
        await self._store.replace(SECTION, [acl.to_row() for acl in acls])

    def _forget(self) -> None:
        self._known.clear()
        self._known_any.clear()


def _is_overruled(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Return whether ACLs that deny cover every resource that `acl` allows."""
    if acl.name == WILDCARD and acl.pattern_type is PatternType.LITERAL:
        return False
    if acl.pattern_type is PatternType.LITERAL and (PatternType.LITERAL, acl.name) in denied:
        return True
    return any((PatternType.PREFIXED, acl.name[:length]) in denied for length in range(1, len(acl.name) + 1))
