"""`aiokwire topics delete NAME`."""

from __future__ import annotations

import click

from aiokwire.cli.options import CONNECT, bootstrap_option
from aiokwire.cli.running import run


@click.command("delete")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def command(names: tuple[str, ...], bootstrap: str, yes: bool) -> None:
    """Delete topics with all their records."""
    if not yes:
        click.confirm(f"delete {', '.join(names)} with all records?", abort=True)

    async def delete() -> int:
        from aiokwire import Admin

        async with Admin(bootstrap, **CONNECT) as admin:
            results = await admin.delete_topics(names)
        for name in names:
            error = results.errors.get(name)
            click.echo(f"deleted {name}" if error is None else f"error: {error}", err=error is not None)
        return 1 if results.errors else 0

    run(delete)
