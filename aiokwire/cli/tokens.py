"""`aiokwire tokens`: create, list, renew and expire delegation tokens."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import json_option
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.running import run
from aiokwire.errors import InvalidArgument
from aiokwire.units import parse_duration

if TYPE_CHECKING:
    from aiokwire.admin import Admin, DelegationToken

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

# The options by which a client verifies brokers: a login with the token needs them, too.
_TRUST: Final = (
    "ssl_truststore_location",
    "ssl_truststore_certificates",
    "ssl_truststore_type",
    "ssl_endpoint_identification_algorithm",
)


def duration_option(name: str, help: str) -> Callable[[CommandT], CommandT]:
    """Return an option for a duration with a unit; its value is in milliseconds."""

    def convert(_ctx: click.Context, _param: click.Parameter, given: str | None) -> int | None:
        try:
            return None if given is None else round(parse_duration(given) * 1000)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return click.option(name, metavar="DURATION", callback=convert, help=help)


@click.group("tokens", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """Create, list, renew and expire delegation tokens."""


@command.command("create")
@bootstrap_option
@click.option("--owner", metavar="TYPE:NAME", help="Owner of the token (default: you).")
@click.option(
    "--renewer", "renewers", multiple=True, metavar="TYPE:NAME", help="Principal that may renew it; repeatable."
)
@duration_option("--max-lifetime", help="Maximum lifetime, including renewals, such as 7d (default: the broker's).")
@click.option(
    "--properties",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the login to this new file, for --command-config, instead of printing the HMAC.",
)
@json_option
def create(
    *,
    bootstrap: str,
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime: int | None,
    properties: Path | None,
    as_json: bool,
) -> None:
    """Create a token. Its HMAC is the password of a login: keep it secret."""

    async def main() -> int:
        from aiokwire import Admin

        options = connect_options()
        async with Admin(bootstrap, **options) as admin:
            token = await admin.create_delegation_token(owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime)
        row = _row(token)
        if properties is None:
            row["hmac"] = token.password.reveal()
        else:
            _write_properties(properties, bootstrap, options, token)
        if as_json:
            print_json(row)
        else:
            print_table("", list(row), [list(row.values())])
        return 0

    run(main)


def _write_properties(path: Path, bootstrap: str, options: Mapping[str, Any], token: DelegationToken) -> None:
    """Write a login with a token, to a file that only this user can read."""
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    mechanism = str(options.get("sasl_mechanism", ""))
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": options.get("security_protocol", "SASL_SSL"),
        "sasl.mechanism": mechanism if mechanism.startswith("SCRAM") else "SCRAM-SHA-512",
        "sasl.jaas.config": (
            f'{login} username="{token.token_id}" password="{token.password.reveal()}" tokenauth="true";'
        ),
        **{name.replace("_", "."): options[name] for name in _TRUST if name in options},
    }
    text = "".join(f"{name}={_escaped(str(value))}\n" for name, value in settings.items())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _escaped(value: str) -> str:
    """Escape a value for a properties file."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


@command.command("list")
@bootstrap_option
@click.option("--owner", "owners", multiple=True, metavar="TYPE:NAME", help="Only tokens of this user; repeatable.")
@json_option
def list_tokens(*, bootstrap: str, owners: tuple[str, ...], as_json: bool) -> None:
    """List the tokens that you own, requested or may renew.

    Their HMACs are not shown."""

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            rows = [_row(token) for token in await admin.describe_delegation_token(owners or None)]
        if as_json:
            for row in rows:
                print_json(row)
        else:
            columns = ["token", "owner", "requester", "renewers", "issued", "expires", "renewable until"]
            print_table(f"Delegation tokens on {bootstrap}", columns, [list(row.values()) for row in rows])
        return 0

    run(main)


def _row(token: DelegationToken) -> dict[str, str]:
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": ",".join(token.renewers),
        "issued": _time(token.issued_at),
        "expires": _time(token.expires_at),
        "max": _time(token.max_at),
    }


def _time(milliseconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


@command.command("renew")
@click.argument("token_id")
@bootstrap_option
@duration_option("--period", help="Time until the token expires, such as 12h (default: the broker's).")
def renew(*, token_id: str, bootstrap: str, period: int | None) -> None:
    """Renew a token, up to its maximum lifetime."""

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            token = await _find(admin, token_id)
            expires_at = await admin.renew_delegation_token(token, renew_period_ms=period)
        click.echo(f"renewed {printable(token_id)} until {_time(expires_at)}")
        return 0

    run(main)


@command.command("expire")
@click.argument("token_id")
@bootstrap_option
@duration_option("--period", help="Time until the token expires, such as 10m (default: now).")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def expire(*, token_id: str, bootstrap: str, period: int | None, yes: bool) -> None:
    """Expire a token, by default now. Open connections stay open until they log in again."""
    if not yes:
        click.confirm(f"expire token {token_id}?", abort=True, err=True)

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            token = await _find(admin, token_id)
            expires_at = await admin.expire_delegation_token(token, expiry_time_period_ms=period)
        when = "now" if expires_at < 0 else f"at {_time(expires_at)}"
        click.echo(f"{printable(token_id)} expires {when}")
        return 0

    run(main)


async def _find(admin: Admin, token_id: str) -> DelegationToken:
    """Return the token with an id: requests need its HMAC, which does not belong on a command line.

    Raises: InvalidArgument: the token does not exist, or this user may not see it.
    """
    for token in await admin.describe_delegation_token():
        if token.token_id == token_id:
            return token
    raise InvalidArgument(f"token {token_id!r} does not exist, or is not one that you own, requested or may renew")
