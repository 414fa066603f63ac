"""Placeholders in option values, as Kafka's config providers replace them.

`${env:NAME}` (EnvVarConfigProvider), `${file:PATH:KEY}` with a properties file
(FileConfigProvider), `${dir:PATH:FILE}` (DirectoryConfigProvider).
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from aiokwire.errors import ConfigurationError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security.properties import parse_properties

logger: FieldLogger = get_logger(__name__)

MAX_FILE_BYTES: Final = 1024 * 1024
# The same form as in Kafka's `ConfigTransformer`; a provider's name begins with a letter.
_PLACEHOLDER: Final = re.compile(r"\$\{(?P<provider>[A-Za-z]\w*):(?:(?P<path>[^}:]*):)?(?P<key>[^}:]*)\}")


def resolve(text: str, *, option: str) -> str:
    """Replace the placeholders in an option's value.

    Raises: ConfigurationError: a variable, file or key does not exist, or the provider is unknown.
    """
    return _PLACEHOLDER.sub(lambda found: _value(found, option), text)


def _value(found: re.Match[str], option: str) -> str:
    provider, path, key = found.group("provider"), found.group("path") or "", found.group("key")
    if provider == "env":
        return _variable(key, option)
    if provider == "file" and path:
        values = parse_properties(read_text(path, option=option, is_secret=True))
        if key not in values:
            raise ConfigurationError(f"{option} refers to {found.group()}: {path} has no key {key!r}")
        return values[key]
    if provider in ("dir", "directory") and path:
        # Not checked for its mode: Kubernetes mounts secrets readable to every user of the container.
        return read_text(os.path.join(path, os.path.basename(key)), option=option).rstrip("\r\n")
    raise ConfigurationError(
        f"{option} refers to {found.group()}: the forms are ${{env:NAME}}, ${{file:PATH:KEY}} and ${{dir:PATH:FILE}}; "
        "for other stores of secrets pass a function, such as sasl_credentials_provider"
    )


def _variable(name: str, option: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigurationError(f"{option} refers to the environment variable {name}, which is not set")
    return value


def read_text(path: str | os.PathLike[str], *, option: str, is_secret: bool = False) -> str:
    """Return the text of a small file; a secret that other users can read is logged as a WARNING.

    Raises: ConfigurationError: it cannot be read, is not UTF-8, or is larger than 1 MiB.
    """
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigurationError(f"{option}: {path} is larger than 1 MiB")
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{option}: {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{option}: {path} is not text in UTF-8") from None
    if is_secret:
        warn_if_readable_by_others(path, mode)
    return text


def warn_if_readable_by_others(path: str | os.PathLike[str], mode: int) -> None:
    """Log a WARNING if other users of this machine can read a file with secrets."""
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        logger.warning(
            "%s contains secrets and can be read by other users (mode %04o); run: chmod 600 %s",
            path, stat.S_IMODE(mode), path,
        )  # fmt: skip
