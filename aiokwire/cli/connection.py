"""Connection options of verbs: addresses, a file of Java's options, a profile, the environment.

One source of settings is used, the first of `--command-config`, `--profile` and the environment
(`ClientConfig.from_environment`). Passwords are not accepted on the command line, where every user
of the machine can read them.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from aiokwire.cluster import ClientConfig

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

# A command waits this long for a broker (milliseconds).
BOOTSTRAP_TIMEOUT_MS: Final = 2_000
# The values of a parent command, in click's shared `meta`.
_BOOTSTRAP: Final = "aiokwire.bootstrap"
_SETTINGS: Final = "aiokwire.connection"
# Options that commands set for their own clients.
_COMMAND_DEFAULTS: Final = frozenset({"bootstrap_timeout_ms"})
_VARIABLES: Final = ("AIOKWIRE_BOOTSTRAP", "AIOKWIRE_BOOTSTRAP_SERVERS")


def bootstrap_option(function: CommandT) -> CommandT:
    """Add `--bootstrap`, `--command-config` and `--profile` to a verb.

    The addresses come from the command line, a parent command, the file or profile, and the
    environment, in this order.
    """

    def choose(ctx: click.Context, param: click.Parameter, given: str) -> str:
        if ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE:
            return given
        of_settings = ctx.meta.get(_SETTINGS, {}).get("bootstrap_servers")
        return str(ctx.meta.get(_BOOTSTRAP) or of_settings or given)

    option = click.option(
        "--bootstrap",
        "-b",
        envvar=list(_VARIABLES),
        default="127.0.0.1:9092",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        callback=choose,
        help="One or more brokers, separated by commas.",
    )
    return option(settings_options(function))


def bootstrap_for_verbs(function: CommandT) -> CommandT:
    """Add the options of `bootstrap_option` to a group, for all of its verbs."""

    def keep(ctx: click.Context, _param: click.Parameter, given: str | None) -> None:
        if given is not None:
            ctx.meta[_BOOTSTRAP] = given

    option = click.option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        callback=keep,
        expose_value=False,
        help="One or more brokers, separated by commas, for the command that follows.",
    )
    return option(settings_options(function))


def settings_options(function: CommandT) -> CommandT:
    """Add `--command-config` and `--profile`, which `connect_options` reads."""
    profile = click.option(
        "--profile",
        metavar="NAME",
        callback=_keep(_profile),
        is_eager=True,
        expose_value=False,
        help="Brokers and login from ~/.config/aiokwire/profiles.toml.",
    )
    config = click.option(
        "--command-config",
        metavar="FILE",
        callback=_keep(_command_config),
        is_eager=True,
        expose_value=False,
        help="A properties file of the Java client: security.protocol, sasl.jaas.config, ...",
    )
    return config(profile(function))


def _keep(read: Callable[[str], ClientConfig]) -> Callable[..., None]:
    def callback(ctx: click.Context, _param: click.Parameter, given: str | None) -> None:
        if given is None:
            return
        if ctx.meta.get(f"{_SETTINGS}.of", given) != given:
            raise click.UsageError("give --command-config or --profile, not both, and only once")
        try:
            ctx.meta[_SETTINGS] = _changed(read(given))
        except ConfigurationError as error:
            raise click.BadParameter(str(error)) from None
        ctx.meta[f"{_SETTINGS}.of"] = given

    return callback


def connect_options() -> dict[str, Any]:
    """Return the options of a client from the file, the profile or the environment.

    Raises: click.UsageError: an environment variable does not name an option, or its file cannot be
    read.
    """
    ctx = click.get_current_context(silent=True)
    settings = ctx.meta.get(_SETTINGS) if ctx is not None else None
    if settings is None:
        try:
            settings = _environment()
        except ConfigurationError as error:
            raise click.UsageError(str(error)) from None
    options = {name: value for name, value in settings.items() if name != "bootstrap_servers"}
    return {"bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS, **options}


def overriding_options(bootstrap: str | None) -> dict[str, Any]:
    """Return the options that replace those of an existing client: addresses and login, as far as
    the command line, the file or the profile name them."""
    ctx = click.get_current_context()
    given = ctx.meta.get(_SETTINGS, {})
    options = {name: value for name, value in given.items() if name not in _COMMAND_DEFAULTS}
    servers = bootstrap or ctx.meta.get(_BOOTSTRAP) or named_bootstrap()
    return {**options, "bootstrap_servers": servers} if servers else options


def source_connection() -> dict[str, str]:
    """Return the same options with the names of the Spark source: `kafka.security.protocol`."""
    options = {name: value for name, value in connect_options().items() if name not in _COMMAND_DEFAULTS}
    return {f"kafka.{name.replace('_', '.')}": _text(value) for name, value in options.items()}


def named_bootstrap() -> str | None:
    """Return the addresses of the file or the profile, None if it has none."""
    ctx = click.get_current_context(silent=True)
    settings = ctx.meta.get(_SETTINGS, {}) if ctx is not None else {}
    return settings.get("bootstrap_servers")


def _text(value: object) -> str:
    from aiokwire.security import Secret

    match value:
        case Secret():
            return value.reveal()
        case tuple():
            return ",".join(each if isinstance(each, str) else "=".join(each) for each in value)
    return str(value)


def _changed(config: ClientConfig) -> dict[str, Any]:
    """Return the options of a config that differ from their defaults."""
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != field.default
    }


def _command_config(path: str) -> ClientConfig:
    from aiokwire import ClientConfig

    return ClientConfig.from_properties(Path(path))


def profiles_file() -> Path:
    """Return the path of the profiles: below $XDG_CONFIG_HOME, ~/.config by default."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "aiokwire" / "profiles.toml"


def _profile(name: str) -> ClientConfig:
    from aiokwire import ClientConfig

    path = profiles_file()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise ConfigurationError(
                    f"{path} can be read or changed by other users (mode {mode:04o}); run: chmod 600 {path}"
                )
            profiles = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    found = profiles.get(name)
    if not isinstance(found, dict):
        known = ", ".join(sorted(each for each, value in profiles.items() if isinstance(value, dict))) or "none"
        raise ConfigurationError(f"{path} has no profile [{name}]; profiles: {known}")
    return ClientConfig.from_dict(
        {key: ",".join(value) if isinstance(value, list) else value for key, value in found.items()}
    )


def _environment() -> dict[str, Any]:
    """Return the options set by environment variables: `ClientConfig.from_environment`."""
    if not any(name.startswith("AIOKWIRE_") and name != "AIOKWIRE_BOOTSTRAP" for name in os.environ):
        return {}
    from aiokwire import ClientConfig

    return _changed(ClientConfig.from_environment())


def default_options(config: ClientConfig) -> dict[str, Any]:
    """Return the environment's values of options that a client's code leaves at their defaults.

    Empty if a file or a profile is the source.

    Raises: ConfigurationError: as `ClientConfig.from_environment`.
    """
    return {} if _SETTINGS in click.get_current_context().meta else config.defaults_from_environment()
