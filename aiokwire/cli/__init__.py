"""The command line: a module for each verb, over the public API."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command in `sys.argv`, and exit with its status."""
    try:
        from aiokwire.cli.main import cli
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich", "uvloop"}:
            raise
        raise SystemExit(f"aiokwire: the command line needs {error.name}: pip install 'aiokwire[cli]'") from None
    cli(prog_name="aiokwire")
