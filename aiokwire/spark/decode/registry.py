"""Schemas by id: from a schema registry (its HTTP interface), or from a directory of them.

A schema never changes under its id, so that a process keeps those that it has asked for. Used on the driver and in the
tasks, where waiting is allowed: neither runs a loop meanwhile.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from aiokwire.errors import ConfigurationError, ConnectionFailed
from aiokwire.spark.decode.options import Side

TIMEOUT: Final = 10.0  # of a request, in seconds: Spark tries the task again
_ACCEPTED: Final = "application/vnd.schemaregistry.v1+json, application/json"
_kept: dict[tuple[str, int], str] = {}


class UnknownSchema(Exception):
    """No schema of this id, or none of Avro."""


class Registry(Protocol):
    """Where schemas are."""

    def schema(self, number: int) -> str:
        """The schema of an id, as JSON.

        Raises: UnknownSchema; ConnectionFailed: nobody can say.
        """


def registry_of(side: Side) -> Registry | None:
    """The registry that the options name."""
    if not side.registry:
        return None
    return HttpRegistry(side.registry) if is_url(side.registry) else Directory(side.schemas or {})


def is_url(registry: str) -> bool:
    """Whether it is asked by HTTP."""
    return registry.startswith(("http://", "https://"))


def read_directory(where: str, option: str) -> dict[int, str]:
    """The schemas in the files `<id>.avsc` or `<id>.json` of a directory.

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
    """What the driver has read."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self._schemas = schemas

    def schema(self, number: int) -> str:
        if number not in self._schemas:
            raise UnknownSchema(f"no file has the schema {number}")
        return self._schemas[number]


class HttpRegistry:
    """A registry's `/schemas/ids/<id>`; a name and password in the URL are sent as basic authentication."""

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
                said = error.read(200).decode(errors="replace")
            raise ConnectionFailed(f"the schema registry {self._url} answers {error.code}: {said}") from None
        except (OSError, ValueError) as error:
            raise ConnectionFailed(f"the schema registry {self._url} cannot be asked: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
            raise ConnectionFailed(f"{self._url} is no schema registry: {document!r:.99}")
        if document.get("schemaType", "AVRO") != "AVRO":
            raise UnknownSchema(f"the schema {number} is one of {document['schemaType']}, not of Avro")
        if document.get("references"):
            raise UnknownSchema(f"the schema {number} refers to other schemas, which is not understood")
        return str(document["schema"])
