"""The options that begin with `kafka.`: the Java client's names and values, as options of aiokwire.

Used by `options`. A job written for spark-sql-kafka can keep them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from aiokwire.cluster import ClientConfig
from aiokwire.errors import ConfigurationError

ConfigT = TypeVar("ConfigT", bound=ClientConfig)

PREFIX: Final = "kafka."

# Options that spark-sql-kafka refuses too, with the reason.
_REFUSED: Final = {
    "key.deserializer": "keys are bytes: decode them with the option key.format or in the query",
    "value.deserializer": "values are bytes: decode them with the option value.format or in the query",
    "key.serializer": "the column key holds bytes or a string",
    "value.serializer": "the column value holds bytes or a string",
    "auto.offset.reset": "set startingOffsets to choose where to start, and onDataLoss for data that is lost",
    "enable.auto.commit": "Spark's checkpoint has the offsets; commitGroup commits them after each batch",
    "interceptor.classes": "Java classes cannot run here",
    "on.deserialization.error": "keys and values are bytes: the option mode is for those that cannot be decoded",
    "transactional.id": "exactly-once delivery generates its own: see delivery and sink.id",
}
_TOKENS: Final = (
    "set kafka.sasl.oauthbearer.token.endpoint.url, with a client id and secret or a signed assertion; in AWS set "
    "kafka.sasl.mechanism=AWS_MSK_IAM"
)
# Python objects, with what to set in their place: Spark's options are text.
_OBJECTS: Final = {
    "oauth.cb": _TOKENS,
    "sasl.oauth.token.provider": _TOKENS,
    "sasl.credentials.provider": "set kafka.sasl.jaas.config, in which ${file:PATH:KEY} is replaced",
    "sasl.client.factory": "mechanisms of your own are for programs without Spark",
    "ssl.context": "set kafka.ssl.truststore.location and kafka.ssl.keystore.location",
}
_TEXT_OF_OBJECT: Final = re.compile(r"<.+ at 0x[0-9a-f]+>", re.DOTALL)


def client_options(options: Mapping[str, str], config: type[ConfigT], defaults: Mapping[str, Any]) -> ConfigT:
    """Return the config of a client from the `kafka.` options among `options` (lower-case names).

    Raises: ConfigurationError: an option is unknown or refused, or its value is invalid.
    """
    given: dict[str, Any] = {}
    for name, text in sorted(options.items()):
        if not name.startswith(PREFIX):
            continue
        java = name.removeprefix(PREFIX)
        _refuse(name, java.replace("_", "."), text)
        given[java] = text.strip()
    if "bootstrap.servers" not in given:
        raise ConfigurationError("kafka.bootstrap.servers must be set: host:port of one broker or more")
    named = {java.replace(".", "_") for java in given}
    others = {name: value for name, value in defaults.items() if name not in named}
    return config.from_dict(given, prefix=PREFIX, **others)


def _refuse(name: str, java: str, text: str) -> None:
    if java in _REFUSED:
        raise ConfigurationError(f"{name} cannot be set: {_REFUSED[java]}")
    if java in _OBJECTS:
        raise ConfigurationError(
            f"{name} cannot be set: it is a Python object, and Spark passes options as text: {_OBJECTS[java]}"
        )
    if _TEXT_OF_OBJECT.fullmatch(text.strip()):
        raise ConfigurationError(
            f"{name} was given a Python object, of which Spark passes only the text: give a string; "
            "${file:PATH:KEY} and ${env:NAME} are replaced"
        )


def parse_bool(name: str, text: str) -> bool:
    """Parse `true` or `false`, in any case.

    Raises: ConfigurationError: the text is neither.
    """
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ConfigurationError(f"{name} must be true or false, not {text!r}")
    return lowered == "true"
