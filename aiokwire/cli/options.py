"""Options and values that several verbs share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def bootstrap_option(function: CommandT) -> CommandT:
    """`--bootstrap`, with its default from the environment."""
    return click.option(
        "--bootstrap",
        "-b",
        envvar="AIOKWIRE_BOOTSTRAP",
        default="127.0.0.1:9092",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="One or more brokers, separated by commas.",
    )(function)


def client_options(function: CommandT) -> CommandT:
    """`--set name=value`: any option of the client, by Kafka's name in snake_case."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=lambda _ctx, _param, given: parse_settings(given),
        help="An option of the client, by Kafka's name in snake_case; may be repeated.",
    )(function)


def parse_settings(given: tuple[str, ...]) -> dict[str, Any]:
    """`linger_ms=5` and the like to keyword options; values are JSON where they can be, else text."""
    settings: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        try:
            settings[name] = json.loads(text)
        except ValueError:
            settings[name] = text
    return settings


def parse_topic_partitions(text: str) -> tuple[str, int]:
    """`NAME:PARTITIONS` to its two parts."""
    name, colon, count = text.rpartition(":")
    if not colon:
        return text, 1
    if not name or not count.isdecimal() or int(count) < 1:
        raise click.BadParameter(f"{text!r} is not NAME:PARTITIONS")
    return name, int(count)


def parse_headers(given: tuple[str, ...]) -> list[tuple[str, bytes | None]]:
    """`name=value` to record headers; a name without "=" is a header with a null value."""
    headers: list[tuple[str, bytes | None]] = []
    for pair in given:
        name, equals, value = pair.partition("=")
        if not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        headers.append((name, value.encode() if equals else None))
    return headers
