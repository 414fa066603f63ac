"""`aiokwire quotas`: list, set and remove the quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import json_option, parse_pairs
from aiokwire.cli.output import print_errors, print_json, print_table
from aiokwire.cli.running import run
from aiokwire.units import parse_size

if TYPE_CHECKING:
    from aiokwire.admin import Admin, ClientQuotaEntity, QuotaName

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

# Kafka's names, and whether they are bytes.
QUOTAS: Final = {
    "producer_byte_rate": True,
    "consumer_byte_rate": True,
    "request_percentage": False,
    "controller_mutation_rate": False,
    "connection_creation_rate": False,
}
PARTS: Final = {"user": "users", "client_id": "clients", "ip": "addresses"}


@click.group("quotas", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, set and remove the quotas of users, client ids and addresses."""


def entity_options(function: CommandT) -> CommandT:
    """Add the options that name an entity."""
    for part, several in reversed(PARTS.items()):
        flag = part.replace("_", "-")
        function = click.option(
            f"--{flag}-defaults", is_flag=True, help=f"The default for {several} without their own quota."
        )(function)
        function = click.option(f"--{flag}", metavar="NAME", help=f"One of the {several}, by name or address.")(
            function
        )
    return function


def _entity_parts(chosen: dict[str, Any]) -> dict[str, str | QuotaName | None]:
    """Raises: UsageError: a name together with the defaults."""
    from aiokwire.admin import QuotaName

    found: dict[str, str | QuotaName | None] = {}
    for part in PARTS:
        if chosen[part] is not None and chosen[f"{part}_defaults"]:
            flag = part.replace("_", "-")
            raise click.UsageError(f"give --{flag} or --{flag}-defaults, not both")
        found[part] = QuotaName.DEFAULT if chosen[f"{part}_defaults"] else chosen[part]
    return found


def _entity(chosen: dict[str, Any]) -> ClientQuotaEntity:
    from aiokwire.admin import ClientQuotaEntity

    parts = _entity_parts(chosen)
    if all(name is None for name in parts.values()):
        raise click.UsageError("name the entity of the quota: --user, --client-id, both, or --ip")
    return ClientQuotaEntity(**parts)


@command.command("list")
@bootstrap_option
@entity_options
@json_option
def list_quotas(*, bootstrap: str, as_json: bool, **chosen: Any) -> None:
    """List all quotas, or those of one entity."""
    parts = _entity_parts(chosen)

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            found = await admin.describe_client_quotas(user=parts["user"], client_id=parts["client_id"], ip=parts["ip"])
        if as_json:
            for entity, quotas in found.items():
                print_json({**{part: _shown(getattr(entity, part), None) for part in PARTS}, "quotas": quotas})
        else:
            rows = [
                [*(_shown(getattr(entity, part), "-") for part in PARTS), key, f"{value:.15g}"]
                for entity, quotas in found.items()
                for key, value in quotas.items()
            ]
            print_table(f"Quotas on {bootstrap}", ["user", "client id", "ip", "quota", "value"], rows)
        return 0

    run(main)


def _shown(name: str | QuotaName | None, absent: str | None) -> str | None:
    if name is None:
        return absent
    return name if isinstance(name, str) else "<default>"


@command.command("set")
@click.argument("quotas", nargs=-1, required=True, metavar="NAME=VALUE...")
@bootstrap_option
@entity_options
def set_quotas(*, quotas: tuple[str, ...], bootstrap: str, **chosen: Any) -> None:
    """Set quotas of an entity, such as producer_byte_rate=1m.

    The quotas are producer_byte_rate and consumer_byte_rate (bytes per second), request_percentage
    (of one core), controller_mutation_rate (partitions per second) and connection_creation_rate
    (per second and ip)."""
    values: dict[str, float | None] = {name: _value(name, text) for name, text in parse_pairs(quotas).items()}
    run(lambda: _alter(bootstrap, _entity(chosen), values, "set"))


def _value(name: str, text: str) -> float:
    _check_name(name)
    try:
        return parse_size(text) if QUOTAS[name] else float(text)
    except ValueError as error:
        raise click.BadParameter(f"{name}: {error}") from None


def _check_name(name: str) -> None:
    if name not in QUOTAS:
        raise click.BadParameter(f"{name!r} is not a quota: {', '.join(QUOTAS)}")


async def _alter(bootstrap: str, entity: ClientQuotaEntity, values: dict[str, float | None], verb: str) -> int:
    from aiokwire import Admin

    async with Admin(bootstrap, **connect_options()) as admin:
        return await _send(admin, entity, values, verb)


async def _send(admin: Admin, entity: ClientQuotaEntity, values: dict[str, float | None], verb: str) -> int:
    results = await admin.alter_client_quotas({entity: values})
    if results.succeeded:
        click.echo(f"{verb} {', '.join(values)} of {printable(entity)}")
    return print_errors(list(results.errors.values()))


@command.command("remove")
@click.argument("names", nargs=-1)
@bootstrap_option
@entity_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def remove(*, names: tuple[str, ...], bootstrap: str, yes: bool, **chosen: Any) -> None:
    """Remove quotas of an entity (default: all of its quotas)."""
    entity = _entity(chosen)
    for name in names:
        _check_name(name)
    if not yes:
        click.confirm(f"remove {', '.join(names) or 'all quotas'} of {printable(entity)}?", abort=True, err=True)

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            found = await admin.describe_client_quotas(
                user=entity.user, client_id=entity.client_id, ip=entity.ip, strict=True
            )
            gone = {name: None for name in found.get(entity, {}) if not names or name in names}
            if not gone:
                click.echo(f"error: {printable(entity)} has no such quota", err=True)
                return 1
            return await _send(admin, entity, {**gone}, "removed")

    run(main)
