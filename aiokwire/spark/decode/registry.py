"""Schemas that options name: by id from a schema registry (HTTP) or a directory, and from files.

A schema never changes under its id, so that a process caches it. Used on the driver and in the
tasks, where blocking is allowed: neither runs a loop meanwhile.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from aiokwire.errors import ConfigurationError, ConnectionFailed
from aiokwire.spark.decode.options import Decoding, Side

TIMEOUT: Final = 10.0  # of a request, in seconds: Spark retries the task
_ACCEPTED: Final = "application/vnd.schemaregistry.v1+json, application/json"
_kept: dict[tuple[str, int], str] = {}


class UnknownSchema(Exception):
    """The registry has no Avro schema of this id."""


class Registry(Protocol):
    """A source of schemas."""

    def schema(self, number: int) -> str:
        """Return the schema of an id, as JSON.

        Raises: UnknownSchema; ConnectionFailed: the registry does not respond.
        """


def registry_of(side: Side) -> Registry | None:
    """Return the registry that the options name."""
    if not side.registry:
        return None
    return HttpRegistry(side.registry) if is_url(side.registry) else Directory(side.schemas or {})


def is_url(registry: str) -> bool:
    """Whether the registry is an HTTP server."""
    return registry.startswith(("http://", "https://"))


def read_directory(where: str, option: str) -> dict[int, str]:
    """Read the schemas in the files `<id>.avsc` or `<id>.json` of a directory.

    Raises: ConfigurationError: it has none, or they cannot be read.
    """
    try:
        files = [file for file in Path(where).iterdir() if file.suffix in (".avsc", ".json") and file.stem.isdecimal()]
        found = {int(file.stem): file.read_text("utf-8") for file in files}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{option}: cannot read the schemas in {where!r}: {error}") from None
    if not found:
        raise ConfigurationError(f"{option}: {where!r} has no file <id>.avsc; a registry's URL begins with http")
    return found


class Directory:
    """The schemas that the driver has read from a directory."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self._schemas = schemas

    def schema(self, number: int) -> str:
        if number not in self._schemas:
            raise UnknownSchema(f"no file has the schema {number}")
        return self._schemas[number]


class HttpRegistry:
    """A registry's `/schemas/ids/<id>`; a user and password in the URL are sent as basic auth."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._headers = {"Accept": _ACCEPTED}
        if parts.username is not None:
            pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        host = parts.netloc.rpartition("@")[2]
        self._url = urllib.parse.urlunsplit(parts._replace(netloc=host, path=parts.path.rstrip("/"), query=""))

    def schema(self, number: int) -> str:
        place = self._url, number
        found = _kept.get(place)
        if found is None:
            found = _kept[place] = self._ask(number)
        return found

    def _ask(self, number: int) -> str:
        request = urllib.request.Request(f"{self._url}/schemas/ids/{number}", headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    raise UnknownSchema(f"{self._url} has no schema {number}") from None
                text = error.read(200).decode(errors="replace")
            raise ConnectionFailed(
                f"the schema registry {self._url} responds with status {error.code}: {text}"
            ) from None
        except (OSError, ValueError) as error:
            raise ConnectionFailed(f"the schema registry {self._url} does not respond: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
            raise ConnectionFailed(f"{self._url} is not a schema registry: {document!r:.99}")
        if document.get("schemaType", "AVRO") != "AVRO":
            raise UnknownSchema(f"the schema {number} is of type {document['schemaType']}, not Avro")
        if document.get("references"):
            raise UnknownSchema(f"the schema {number} refers to other schemas: references are not supported")
        return str(document["schema"])


# --- schemas in the options, read on the driver: the tasks may not have the files -------------------------------------


def with_schemas(decoding: Decoding) -> Decoding:
    """Replace the names of files and directories, and ids, by the schemas themselves.

    Raises: ConfigurationError: a schema is missing; ConnectionFailed: the registry does not
        respond.
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
