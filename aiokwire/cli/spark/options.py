"""Options that several Spark verbs share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from aiokwire.cli.options import pairs_option

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def spark_options(function: CommandT) -> CommandT:
    """`--master`, `--conf` and `--json`: the parameters `master`, `conf` and `as_json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="The summary as JSON, on the standard output."),
        pairs_option("--conf", help="A setting of Spark"),
        click.option("--master", metavar="URL", help="Where Spark runs; this machine (local[*]) unless set."),
    ):
        function = option(function)
    return function


# `--option name=value`, by the names of the source `aiokwire`: the parameter `options`.
source_options = pairs_option(
    "--option", "-o", "options", help="An option of the Spark source, such as kafka.client.rack=eu-1"
)

# `--set name=value`, what stands as `${name}` in a file: the parameter `parameters`.
parameter_options = pairs_option("--set", "parameters", help="A parameter of the file, which stands there as ${NAME}")


_SIZE = re.compile(r"(\d+)([kmg]?)(?:i?b)?")
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 1e-3, None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_size(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """`64m` to bytes.

    Raises: BadParameter: it is no size.
    """
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or int(match[1]) < 1:
        raise click.BadParameter(f"{text!r} is no size such as 64m")
    return int(match[1]) * _SIZES[match[2]]


def parse_seconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """`30s` to seconds.

    Raises: BadParameter: it is no time.
    """
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is no time such as 30s")
    return float(match[1]) * _SECONDS[match[2]]
