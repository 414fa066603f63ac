"""Options from the environment, from a directory of secrets, and from the file that they name.

Used by `ClientConfig.from_environment` and by the command line. `AIOKWIRE_SASL_PASSWORD` is the
option `sasl_password`, `AIOKWIRE_SASL_PASSWORD_FILE` names a file that contains it.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from aiokwire.cluster.dotted_options import read_properties, translated_options
from aiokwire.config import is_secret_option
from aiokwire.errors import ConfigurationError
from aiokwire.security import read_text

PREFIX: Final = "AIOKWIRE_"
CONFIG_FILE: Final = f"{PREFIX}CONFIG_FILE"
SECRETS_DIR: Final = f"{PREFIX}SECRETS_DIR"
_FILE: Final = "_file"
# Variables of the command line, and what selects the sources.
_OTHERS: Final = frozenset(
    {"bootstrap", "config_file", "outbox_database", "secrets_dir", "user_password", "user_password_file"}
)
# Options that have no form in text.
_IN_CODE: Final = frozenset({
    "key_deserializer", "key_serializer", "partitioner", "retry", "sasl_oauth_token_provider", "value_deserializer",
    "value_serializer",
})  # fmt: skip
_LISTS: Final = frozenset({"partition_assignment_strategy"})


def environment_options(
    config: type, environ: Mapping[str, str] | None = None, *, file: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Return the options of a config class that the environment gives, with our names.

    A variable takes precedence over a file of `AIOKWIRE_SECRETS_DIR`, that over `file` or
    `AIOKWIRE_CONFIG_FILE`, a properties file. Empty variables, and options of other kinds of
    client, are left out.

    Raises: ConfigurationError: a variable is not an option (with advice), or a file cannot be read.
    """
    environ = os.environ if environ is None else environ
    path = file if file is not None else environ.get(CONFIG_FILE)
    options = translated_options(config, read_properties(Path(path))) if path else {}
    names = {field.name for field in dataclasses.fields(config) if field.init}
    known = names | _options_of_all()
    directory = environ.get(SECRETS_DIR)
    found = dict(_secrets(directory, known)) if directory else {}
    found.update(_variables(environ, known))
    return {**options, **{name: _parsed(name, value) for name, value in found.items() if name in names}}


def variables_of(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that are set."""
    return sorted(name for name, value in environ.items() if name.startswith(PREFIX) and value)


def _variables(environ: Mapping[str, str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    if environ.get(f"{PREFIX}BOOTSTRAP"):
        yield "bootstrap_servers", environ[f"{PREFIX}BOOTSTRAP"]
    for variable in variables_of(environ):
        name = variable.removeprefix(PREFIX).lower()
        if name in _OTHERS:
            continue
        if name in known and name not in _IN_CODE:
            if environ.get(f"{variable}_FILE"):
                raise ConfigurationError(f"{variable} and {variable}_FILE are both set: set one of them")
            yield name, environ[variable]
        elif name.endswith(_FILE) and name.removesuffix(_FILE) in known:
            name = name.removesuffix(_FILE)
            text = read_text(environ[variable], option=variable, is_secret=is_secret_option(name))
            yield name, text.rstrip("\r\n")
        else:
            raise ConfigurationError(_unknown(variable, name, known))


def _secrets(directory: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of a directory that are named as options; it may have others, too."""
    try:
        files = sorted(path for path in Path(directory).iterdir() if path.is_file())
    except OSError as error:
        raise ConfigurationError(f"{SECRETS_DIR}: {directory} cannot be read: {error.strerror}") from None
    for path in files:
        plain = path.name.lower().replace("-", "_").replace(".", "_")
        name = plain.removeprefix(PREFIX.lower())
        if name in known and name not in _IN_CODE:
            yield name, read_text(path, option=SECRETS_DIR).rstrip("\r\n")
        elif name != plain:
            raise ConfigurationError(f"{SECRETS_DIR}: {_unknown(str(path), name, known)}")


def _unknown(given: str, name: str, known: Collection[str]) -> str:
    if name in _IN_CODE:
        return f"{given}: {name} is not given as text; pass it as a keyword in your code"
    is_file = name.endswith(_FILE)
    nearest = difflib.get_close_matches(name.removesuffix(_FILE), known, n=1, cutoff=0.6)
    advice = (
        f"did you mean {PREFIX}{nearest[0].upper()}{_FILE.upper() if is_file else ''}?"
        if nearest
        else f"its name is {PREFIX} and an option of docs/options.md, such as {PREFIX}SASL_MECHANISM"
    )
    return f"{given} is not an option of aiokwire: {advice}"


def _parsed(name: str, text: str) -> Any:
    return [one.strip() for one in text.split(",")] if name in _LISTS and "," in text else text


def _options_of_all() -> set[str]:
    """Return the options of every kind of client: a service may share its variables among them."""
    config = importlib.import_module("aiokwire").WorkerConfig  # a worker has those of all others
    return {field.name for field in dataclasses.fields(config) if field.init}
