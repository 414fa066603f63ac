"""Schemas that options name, read on the driver: the tasks may not have the files. Used by the data source."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.options import Decoding, Side
from aiokwire.spark.decode.registry import UnknownSchema, is_url, read_directory, registry_of


def with_schemas(decoding: Decoding) -> Decoding:
    """The same with the schemas themselves in place of files, directories and ids.

    Raises: ConfigurationError: one of them is not there; ConnectionFailed: the registry cannot be asked.
    """
    key, value = (_loaded(side, name) for name, side in decoding.sides)
    return dataclasses.replace(decoding, key=key, value=value)


def _loaded(side: Side, name: str) -> Side:
    if side.registry and not is_url(side.registry):
        schemas = read_directory(side.registry, f"{name}.schema.registry")
        side = dataclasses.replace(side, schemas=schemas)
    return dataclasses.replace(
        side,
        schema=_text(side, side.schema, f"{name}.schema"),
        writer_schema=_text(side, side.writer_schema, f"{name}.schema.writer"),
    )


def _text(side: Side, given: str, option: str) -> str:
    if given.startswith("@"):
        try:
            return Path(given[1:]).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{option}: cannot read the file {given[1:]!r}: {error}") from None
    registry = registry_of(side)
    if registry is None or not given.isdecimal():
        return given
    try:
        return registry.schema(int(given))
    except UnknownSchema as error:
        raise ConfigurationError(f"{option}: {error}") from None
