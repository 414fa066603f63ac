"""`aiokwire users`: list, add and remove users that log in with SCRAM."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from aiokwire._text import printable
from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import Decorator, json_option
from aiokwire.cli.output import print_errors, print_json, print_table
from aiokwire.cli.running import result_of, run

if TYPE_CHECKING:
    from aiokwire.admin import ScramMechanism
    from aiokwire.security import Secret

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD_VARIABLE: Final = "AIOKWIRE_USER_PASSWORD"

mechanism_option: Decorator = click.option(
    "--mechanism",
    "-m",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    help="SCRAM-SHA-256 or SCRAM-SHA-512 (default: both); repeatable.",
)


@click.group("users", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """List, add and remove users that log in with SCRAM."""


@command.command("list")
@click.argument("names", nargs=-1)
@bootstrap_option
@json_option
def list_users(*, names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """List the users (default: all) and their mechanisms."""

    async def main() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            users = await admin.describe_user_scram_credentials(names or None)
        rows = [
            {"user": user, "mechanism": one.mechanism.mechanism_name, "iterations": one.iterations}
            for user, infos in users.succeeded.items()
            for one in infos
        ]
        if as_json:
            for row in rows:
                print_json(row)
        else:
            print_table(f"Users on {bootstrap}", ["user", "mechanism", "iterations"], [list(r.values()) for r in rows])
        return print_errors(list(users.errors.values()))

    run(main)


@command.command("add")
@click.argument("name")
@bootstrap_option
@mechanism_option
@click.option(
    "--password-file",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help=f"Read the password from a file, - for standard input (default: ${PASSWORD_VARIABLE}, or a prompt).",
)
@click.option(
    "--iterations", type=click.IntRange(4096, 16384), default=4096, show_default=True, help="Number of hash iterations."
)
def add(*, name: str, bootstrap: str, mechanisms: tuple[str, ...], password_file: Path | None, iterations: int) -> None:
    """Add a user, or change its password. The broker receives a salted hash only."""
    password = _password(name, password_file)

    async def main() -> int:
        from aiokwire import Admin
        from aiokwire.admin import ScramCredentialUpsertion

        wanted = [ScramCredentialUpsertion(name, password, one, iterations) for one in _mechanisms(mechanisms)]
        async with Admin(bootstrap, **connect_options()) as admin:
            results = await admin.alter_user_scram_credentials(wanted)
        for user in results.succeeded:
            click.echo(f"added {printable(user)} ({', '.join(one.mechanism.mechanism_name for one in wanted)})")
        return print_errors(list(results.errors.values()))

    run(main)


def _password(name: str, file: Path | None) -> Secret:
    """Return the password from a file, the environment or a prompt.

    Raises: BadParameter: the file cannot be read, or is empty.
    """
    from aiokwire.security import Secret

    if file is not None:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{file} cannot be read: {error}") from None
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise click.BadParameter(f"{file} is empty")
        return Secret(text)
    given = os.environ.get(PASSWORD_VARIABLE)
    return Secret(given or click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=True, err=True))


def _mechanisms(names: tuple[str, ...]) -> list[ScramMechanism]:
    from aiokwire.admin import ScramMechanism

    return [ScramMechanism[name.replace("-", "_")] for name in dict.fromkeys(names or MECHANISMS)]


@command.command("remove")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@mechanism_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def remove(*, names: tuple[str, ...], bootstrap: str, mechanisms: tuple[str, ...], yes: bool) -> None:
    """Remove users, or some mechanisms. Open connections stay open until they log in again."""
    if not yes:
        what = f"{', '.join(mechanisms)} of " if mechanisms else ""
        click.confirm(f"remove {what}{', '.join(names)}?", abort=True, err=True)

    async def existing() -> list[tuple[str, ScramMechanism]]:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            users = await admin.describe_user_scram_credentials(names)
        chosen = _mechanisms(mechanisms)
        print_errors(list(users.errors.values()))
        return [
            (user, one.mechanism) for user, infos in users.succeeded.items() for one in infos if one.mechanism in chosen
        ]

    found = result_of(existing)

    async def main() -> int:
        from aiokwire import Admin
        from aiokwire.admin import ScramCredentialDeletion

        async with Admin(bootstrap, **connect_options()) as admin:
            results = await admin.alter_user_scram_credentials(
                [ScramCredentialDeletion(user, mechanism) for user, mechanism in found]
            )
        for user in results.succeeded:
            click.echo(f"removed {printable(user)}")
        failed = print_errors(list(results.errors.values()))
        return failed or (1 if len({user for user, _ in found}) < len(set(names)) else 0)

    run(main)
