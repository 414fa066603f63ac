"""Options and parsers shared by several verbs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import click

from aiokwire.config import is_secret_option

ValuesT = TypeVar("ValuesT", bound=Mapping[str, Any])
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def parse_pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Parse pairs such as `linger_ms=5`.

    Raises: click.BadParameter: an argument is not a pair.
    """
    found = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        found[name] = text
    return found


def parse_settings(given: tuple[str, ...]) -> dict[str, Any]:
    """Parse pairs to keyword arguments: values are JSON, else text; `linger.ms` is `linger_ms`."""
    return {name.replace(".", "_"): _json_or_text(text) for name, text in parse_pairs(given).items()}


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class Decorator(Protocol):
    """Adds an option to a command."""

    def __call__(self, command: CommandT, /) -> CommandT: ...


def pairs_option(
    *names: str, help: str, parse: Callable[[tuple[str, ...]], Mapping[str, Any]] = parse_pairs
) -> Callable[[CommandT], CommandT]:
    """Return a repeatable option of NAME=VALUE; `names` as for `click.option`."""
    return click.option(
        *names,
        multiple=True,
        metavar="NAME=VALUE",
        callback=lambda _ctx, _param, given: parse(given),
        help=f"{help}; repeatable.",
    )


def without_secrets(parse: Callable[[tuple[str, ...]], ValuesT]) -> Callable[[tuple[str, ...]], ValuesT]:
    """Return `parse` with a check: a password on the command line is visible to other users.

    The returned function raises click.BadParameter if an option holds a secret.
    """

    def checked(given: tuple[str, ...]) -> ValuesT:
        for name in parse_pairs(given):
            if is_secret_option(name):
                raise click.BadParameter(
                    f"{name} on the command line can be read by other users: put it into a file for --command-config, "
                    "into a profile for --profile, or into the environment (AIOKWIRE_SASL_PASSWORD_FILE)"
                )
        return parse(given)

    return checked


def _settings_option(example: str) -> Callable[[CommandT], CommandT]:
    """Return `--set name=value`: the parameter `settings`."""
    return pairs_option(
        "--set",
        "settings",
        help=f"Client option by Kafka's name, such as {example}",
        parse=without_secrets(parse_settings),
    )


def partitions_option(*names: str, help: str) -> Callable[[CommandT], CommandT]:
    """Return a repeatable option of topics, or of some of their partitions; see `groups`."""
    return click.option(*names, multiple=True, metavar="TOPIC[:PARTITION,...]", help=help)


json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
client_options: Decorator = _settings_option("linger.ms=5")
consumer_options: Decorator = _settings_option("fetch.max.wait.ms=100")


def parse_topic_partitions(text: str) -> tuple[str, int]:
    """Parse `NAME:PARTITIONS`."""
    name, colon, count = text.rpartition(":")
    if not colon:
        return text, 1
    if not name or not count.isdecimal() or int(count) < 1:
        raise click.BadParameter(f"{text!r} is not NAME:PARTITIONS")
    return name, int(count)


def parse_headers(given: tuple[str, ...]) -> list[tuple[str, bytes | None]]:
    """Parse `name=value` to record headers; a name without "=" is a header with a null value."""
    headers: list[tuple[str, bytes | None]] = []
    for pair in given:
        name, equals, value = pair.partition("=")
        if not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise click.BadParameter(f"the name of header {pair!r} is not UTF-8") from None
        headers.append((name, os.fsencode(value) if equals else None))
    return headers
