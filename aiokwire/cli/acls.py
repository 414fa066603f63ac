"""`aiokwire acls`: list, add and remove ACLs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import json_option
from aiokwire.cli.output import print_errors, print_json, print_table
from aiokwire.cli.running import result_of, run

if TYPE_CHECKING:
    from aiokwire.admin import AclBinding, AclBindingFilter, AclOperation, AclResourceType, PatternType

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

OPERATIONS: Final = (
    "all", "read", "write", "create", "delete", "alter", "describe", "cluster_action", "describe_configs",
    "alter_configs", "idempotent_write", "create_tokens", "describe_tokens", "two_phase_commit",
)  # fmt: skip
# The options that name resources, and their types.
RESOURCES: Final = {
    "topic": "TOPIC", "group": "GROUP", "transactional_id": "TRANSACTIONAL_ID", "token": "DELEGATION_TOKEN",
    "user": "USER",
}  # fmt: skip
Resource = tuple["AclResourceType", str]


@click.group("acls", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, add and remove ACLs, which permit or deny operations on resources."""


def resource_options(function: CommandT) -> CommandT:
    """Add the options that name resources."""
    for option in (
        click.option("--prefixed", is_flag=True, help="Treat the names as prefixes."),
        click.option("--cluster", is_flag=True, help="The cluster as a resource."),
        click.option("--user", multiple=True, metavar="TYPE:NAME", help="User, as the owner of tokens; repeatable."),
        click.option("--token", multiple=True, metavar="ID", help="Delegation token; repeatable."),
        click.option("--transactional-id", multiple=True, metavar="ID", help="Transactional id; repeatable."),
        click.option("--group", "-g", multiple=True, metavar="NAME", help="Group, '*' for all; repeatable."),
        click.option("--topic", "-t", multiple=True, metavar="NAME", help="Topic, '*' for all; repeatable."),
    ):
        function = option(function)
    return function


def operation_option(help: str) -> Callable[[CommandT], CommandT]:
    """Return the repeatable option `--operation`."""
    kind = click.Choice(OPERATIONS, case_sensitive=False)
    return click.option("--operation", "-o", "operations", multiple=True, type=kind, help=f"{help}; repeatable.")


def filter_options(function: CommandT) -> CommandT:
    """Add the options that select ACLs."""
    for option in (
        click.option("--permission", type=click.Choice(["allow", "deny"]), help="Only ACLs that allow, or that deny."),
        click.option("--host", metavar="ADDRESS", help="Only ACLs for this host."),
        operation_option("Only ACLs for this operation"),
        click.option(
            "--principal",
            "principals",
            multiple=True,
            metavar="TYPE:NAME",
            help="Only ACLs of this principal; repeatable.",
        ),
        resource_options,
    ):
        function = option(function)
    return function


# --- list -------------------------------------------------------------------------------------------------------------


@command.command("list")
@bootstrap_option
@filter_options
@json_option
def list_acls(*, bootstrap: str, as_json: bool, **chosen: Any) -> None:
    """List ACLs. A topic or group also matches the prefixed and '*' ACLs that apply to it."""

    async def main() -> int:
        found = await _matching(bootstrap, _filters(chosen, matching=True))
        if as_json:
            for one in found:
                print_json(_as_json(one))
        else:
            _print(f"ACLs on {bootstrap}", found)
        return 0

    run(main)


async def _matching(bootstrap: str, filters: Iterable[AclBindingFilter]) -> list[AclBinding]:
    from aiokwire import Admin

    found: dict[AclBinding, None] = {}
    async with Admin(bootstrap, **connect_options()) as admin:
        for one in filters:
            found.update(dict.fromkeys(await admin.describe_acls(one)))
    return list(found)


def _filters(chosen: dict[str, Any], *, matching: bool) -> list[AclBindingFilter]:
    """Return a filter for each combination of resource, principal and operation.

    `matching`: of names, find also those ACLs whose prefix or '*' matches.
    """
    from aiokwire.admin import AclBindingFilter, AclOperation, AclPermissionType, AclResourceType, PatternType

    permission = AclPermissionType[(chosen["permission"] or "any").upper()]
    named = PatternType.MATCH if matching else PatternType.LITERAL
    pattern = PatternType.PREFIXED if chosen["prefixed"] else named
    resources: list[tuple[AclResourceType, str | None]] = [*_resources(chosen)]
    return [
        AclBindingFilter(
            principal,
            operation,
            kind,
            name,
            PatternType.ANY if name is None else pattern,
            chosen["host"],
            permission,
        )
        for kind, name in resources or [(AclResourceType.ANY, None)]
        for principal in chosen["principals"] or [None]
        for operation in _operations(chosen["operations"]) or [AclOperation.ANY]
    ]


def _resources(chosen: dict[str, Any]) -> list[Resource]:
    from aiokwire.admin import CLUSTER_NAME, AclResourceType

    found = [(AclResourceType[kind], name) for option, kind in RESOURCES.items() for name in chosen[option]]
    return found + ([(AclResourceType.CLUSTER, CLUSTER_NAME)] if chosen["cluster"] else [])


def _operations(names: Iterable[str]) -> list[AclOperation]:
    from aiokwire.admin import AclOperation

    return [AclOperation[name.upper()] for name in names]


def _as_json(one: AclBinding) -> dict[str, str]:
    return {
        "permission": one.permission.name.lower(),
        "principal": one.principal,
        "operation": one.operation.name.lower(),
        "resource_type": one.resource_type.name.lower(),
        "resource_name": one.resource_name,
        "pattern_type": one.pattern_type.name.lower(),
        "host": one.host,
    }


def _print(title: str, bindings: Iterable[AclBinding]) -> None:
    columns = ["permission", "principal", "operation", "resource", "name", "pattern", "host"]
    print_table(title, columns, [list(_as_json(one).values()) for one in bindings])


# --- add --------------------------------------------------------------------------------------------------------------


@command.command("add")
@bootstrap_option
@resource_options
@operation_option("Operation to allow or deny (default: all)")
@click.option(
    "--allow-principal",
    multiple=True,
    metavar="TYPE:NAME",
    help="Principal to allow; User:* is every user; repeatable.",
)
@click.option("--deny-principal", multiple=True, metavar="TYPE:NAME", help="Principal to deny; repeatable.")
@click.option("--allow-host", multiple=True, metavar="ADDRESS", help="Address to allow (default: all); repeatable.")
@click.option("--deny-host", multiple=True, metavar="ADDRESS", help="Address to deny (default: all); repeatable.")
@click.option(
    "--producer", is_flag=True, help="Allow or deny what a producer needs on the topics and transactional ids."
)
@click.option("--consumer", is_flag=True, help="Allow or deny what a consumer needs on the topics and groups.")
def add(*, bootstrap: str, **chosen: Any) -> None:
    """Add an ACL for each combination of principal, operation and resource."""
    bindings = _bindings(chosen)

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            results = await admin.create_acls(bindings)
        for one in results.succeeded:
            click.echo(f"added {printable(one)}")
        return print_errors(list(results.errors.values()))

    run(main)


def _bindings(chosen: dict[str, Any]) -> list[AclBinding]:
    from aiokwire.admin import AclBinding, AclPermissionType, PatternType

    parties = [
        (AclPermissionType[verb.upper()], principal, host)
        for verb in ("allow", "deny")
        for principal in chosen[f"{verb}_principal"]
        for host in chosen[f"{verb}_host"] or ["*"]
    ]
    if not parties:
        raise click.UsageError("give --allow-principal or --deny-principal, such as --allow-principal User:alice")
    pattern = PatternType.PREFIXED if chosen["prefixed"] else PatternType.LITERAL
    return [
        AclBinding(principal, operation, kind, name, _pattern_of(kind, pattern), host, permission)
        for (kind, name), operations in _granted(chosen).items()
        for operation in operations
        for permission, principal, host in parties
    ]


def _pattern_of(kind: AclResourceType, pattern: PatternType) -> PatternType:
    """Return the pattern for a resource: the cluster has one name, so a prefix is not possible."""
    from aiokwire.admin import AclResourceType, PatternType

    return PatternType.LITERAL if kind is AclResourceType.CLUSTER else pattern


def _granted(chosen: dict[str, Any]) -> dict[Resource, list[AclOperation]]:
    """Return the operations on each resource."""
    resources = _resources(chosen)
    if not resources:
        raise click.UsageError("name a resource: --topic, --group, --transactional-id, --cluster, --token or --user")
    if not (chosen["producer"] or chosen["consumer"]):
        return dict.fromkeys(resources, _operations(chosen["operations"] or ["all"]))
    if chosen["operations"]:
        raise click.UsageError("--producer and --consumer choose the operations: leave out --operation")
    granted: dict[Resource, list[AclOperation]] = {}
    for role in ("producer", "consumer"):
        if chosen[role]:
            for resource in resources:
                granted.setdefault(resource, []).extend(_needs(role, resource[0]))
    return {resource: list(dict.fromkeys(operations)) for resource, operations in granted.items()}


@functools.cache
def _needs(role: str, kind: AclResourceType) -> tuple[AclOperation, ...]:
    """Return what a producer or consumer does with a resource."""
    from aiokwire.admin import AclOperation, AclResourceType

    topic, group = AclResourceType.TOPIC, AclResourceType.GROUP
    writes = (AclOperation.WRITE, AclOperation.DESCRIBE)
    return {
        ("producer", topic): (*writes, AclOperation.CREATE),
        ("producer", AclResourceType.TRANSACTIONAL_ID): writes,
        ("producer", AclResourceType.CLUSTER): (AclOperation.IDEMPOTENT_WRITE,),
        ("consumer", topic): (AclOperation.READ, AclOperation.DESCRIBE),
        ("consumer", group): (AclOperation.READ,),
    }.get((role, kind), ())


# --- remove -----------------------------------------------------------------------------------------------------------


@command.command("remove")
@bootstrap_option
@filter_options
@click.option("--all", "everything", is_flag=True, help="Remove all ACLs.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def remove(*, bootstrap: str, everything: bool, yes: bool, **chosen: Any) -> None:
    """Remove matching ACLs. A name matches only ACLs of exactly that name, not '*'."""
    selects = any(value for name, value in chosen.items() if name != "prefixed")
    if selects is everything:
        raise click.UsageError("select the ACLs, such as --principal User:alice or --topic orders, or give --all")
    found = result_of(lambda: _matching(bootstrap, _filters(chosen, matching=False)))
    if not found:
        click.echo("no ACL matches", err=True)
        return
    if not yes:
        _print("", found)
        click.confirm(f"remove {len(found)} ACL(s)?", abort=True, err=True)
    run(lambda: _remove(bootstrap, found))


async def _remove(bootstrap: str, bindings: Iterable[AclBinding]) -> int:
    from aiokwire import Admin
    from aiokwire.admin import AclBindingFilter

    exact = [
        AclBindingFilter(
            one.principal,
            one.operation,
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            one.host,
            one.permission,
        )
        for one in bindings
    ]
    async with Admin(bootstrap, **connect_options()) as admin:
        results = await admin.delete_acls(exact)
    for deleted in results.succeeded.values():
        for one in deleted:
            click.echo(f"removed {printable(one)}")
    return print_errors(list(results.errors.values()))
