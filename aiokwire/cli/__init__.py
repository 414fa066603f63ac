"""The command line: a module for each verb, over the public API."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command in `sys.argv`, and exit with its status."""
    try:
        _run()
    except KeyboardInterrupt:  # before a verb handles it, as during the imports
        sys.exit(130)


def _run() -> None:
    from aiokwire.cli.standard import discard_stdout, open_standard_streams

    open_standard_streams()
    try:
        try:
            _call()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # `aiokwire topics list | head`: the reader has closed the pipe.
        discard_stdout()
    except OSError as error:
        if error.filename is None:
            raise
        discard_stdout()
        sys.exit(f"error: {error.filename}: {error.strerror}")


def _call() -> None:
    from aiokwire.cli.main import cli

    try:
        cli(prog_name="aiokwire")
    except ModuleNotFoundError as error:  # rich: only the demo requires it
        if error.name is None or error.name.partition(".")[0] != "rich":
            raise
        raise SystemExit("aiokwire: this command needs rich: pip install 'aiokwire[cli]'") from None
