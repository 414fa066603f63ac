"""Options shared by several Spark verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aiokwire.cli.options import Decorator, pairs_option, parse_pairs, without_secrets
from aiokwire.units import parse_duration, parse_size

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
N = TypeVar("N", int, float)


def spark_options(function: CommandT) -> CommandT:
    """Add `--master`, `--conf` and `--json`: the parameters `master`, `conf` and `as_json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON to standard output."),
        pairs_option("--conf", help="A setting of Spark"),
        click.option("--master", metavar="URL", help="URL of the Spark master (default: local[*], this machine)."),
    ):
        function = option(function)
    return function


# `--option name=value`, by the names of the source `aiokwire`: the parameter `options`.
source_options: Decorator = pairs_option(
    "--option",
    "-o",
    "options",
    help="An option of the Spark source, such as kafka.client.rack=eu-1",
    parse=without_secrets(parse_pairs),
)

# `--set name=value` for `${name}` in a file: the parameter `parameters`.
parameter_options: Decorator = pairs_option(
    "--set", "parameters", help="Parameter of the file, written there as ${NAME}", parse=without_secrets(parse_pairs)
)


def size_option(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """Parse `64m` to bytes.

    Raises: BadParameter: it is not a size.
    """
    return _parsed(parse_size, text)


def duration_option(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """Parse `30s` to seconds.

    Raises: BadParameter: it is not a duration, or has no unit.
    """
    return _parsed(parse_duration, text)


def _parsed(parse: Callable[[str], N], text: str | None) -> N | None:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
