"""Options of every client; producer, consumer and admin client inherit and extend them."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import os
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from aiokwire.backoff import Backoff
from aiokwire.cluster.dotted_options import read_properties, translated_options
from aiokwire.config import (
    INT32_MAX,
    documents_options,
    from_options,
    is_secret_option,
    require_bool,
    require_int,
    require_number,
    require_type,
)
from aiokwire.errors import ConfigurationError
from aiokwire.net import Address, ConnectionConfig, parse_addresses
from aiokwire.security import SecurityConfig, SecurityOptions, read_text

PREFIX: Final = "AIOKWIRE_"
CONFIG_FILE: Final = f"{PREFIX}CONFIG_FILE"
SECRETS_DIR: Final = f"{PREFIX}SECRETS_DIR"
_FILE: Final = "_file"
# Variables of the command line, and those that select the sources.
_OTHERS: Final = frozenset(
    {"bootstrap", "config_file", "outbox_database", "secrets_dir", "user_password", "user_password_file"}
)
# Options that cannot be text.
_IN_CODE: Final = frozenset({
    "key_deserializer", "key_serializer", "partitioner", "retry", "sasl_oauth_token_provider", "value_deserializer",
    "value_serializer",
})  # fmt: skip
_LISTS: Final = frozenset({"partition_assignment_strategy"})


def environment_options(
    config: type, environ: Mapping[str, str] | None = None, *, file: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Return the options of a config class from the environment, with our names.

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
    """Yield the files of a directory that are named like options; it may have others."""
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
    """Return the options of every kind of client: a service's clients may share its variables."""
    config = importlib.import_module("aiokwire").WorkerConfig  # a worker has the options of all others
    return {field.name for field in dataclasses.fields(config) if field.init}


REBOOTSTRAP = "rebootstrap"
NO_RECOVERY = "none"

# The options in milliseconds that must not be zero, and those that may.
_POSITIVE = (
    "request_timeout_ms",
    "default_api_timeout_ms",
    "socket_connection_setup_timeout_ms",
    "socket_connection_setup_timeout_max_ms",
    "connections_max_idle_ms",
    "metadata_max_age_ms",
    "metadata_max_idle_ms",
)
_NOT_NEGATIVE = (
    "bootstrap_timeout_ms",
    "retry_backoff_ms",
    "retry_backoff_max_ms",
    "reconnect_backoff_ms",
    "reconnect_backoff_max_ms",
    "metadata_min_interval_ms",
    "metadata_recovery_rebootstrap_trigger_ms",
)


@documents_options()
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ClientConfig(SecurityConfig):
    """Options of every client: cluster, timeouts, retries; times in milliseconds, sizes in bytes.

    Numbers and booleans may be given as text, as environment variables contain them.

    Raises: ConfigurationError: an option is out of its range, or contradicts another one.
    """

    bootstrap_servers: str | Sequence[str] = "localhost:9092"
    """The first brokers to contact: "host:port,host:port" or a list of them. They name the other brokers."""
    client_id: str = "aiokwire"
    """The name of this client in the logs, metrics and quotas of brokers."""
    request_timeout_ms: float = 30_000
    """How long a broker may take to respond; after it the connection is closed. Time that the request itself asks the
    broker to wait is added."""
    bootstrap_timeout_ms: float = 30_000
    """How long `start()` retries while no broker responds: services start before their brokers. 0 tries once."""
    default_api_timeout_ms: float = 60_000
    """How long a call without a `timeout` may take, retries included."""
    retry_backoff_ms: float = 100
    """The pause before the first retry; it doubles, spread by a fifth, up to `retry_backoff_max_ms`."""
    retry_backoff_max_ms: float = 1_000
    """The longest pause between two retries."""
    reconnect_backoff_ms: float = 50
    """The pause before an unreachable broker is tried again; it grows to `reconnect_backoff_max_ms`: a
    client may reconnect that much later than the broker is back."""
    reconnect_backoff_max_ms: float = 1_000
    """The longest pause between two attempts to connect to one broker."""
    socket_connection_setup_timeout_ms: float = 10_000
    """How long a connection may take, from the lookup of the name to the end of the handshake; it doubles with each
    failure in a row, up to `socket_connection_setup_timeout_max_ms`."""
    socket_connection_setup_timeout_max_ms: float = 30_000
    """The longest time for one attempt to connect."""
    connections_max_idle_ms: float = 240_000
    """A connection without traffic for this long is closed. The default is below what load
    balancers allow."""
    metadata_max_age_ms: float = 300_000
    """The age at which metadata of the cluster is refreshed."""
    metadata_min_interval_ms: float = 100
    """The shortest time between two requested refreshes; it grows while they bring nothing new."""
    metadata_max_idle_ms: float = 300_000
    """A topic that was not used for this long is left out of refreshes."""
    metadata_recovery_strategy: str = REBOOTSTRAP
    """When no known broker responds, "rebootstrap" returns to `bootstrap_servers`; "none" does not."""
    metadata_recovery_rebootstrap_trigger_ms: float = 300_000
    """After this long without fresh metadata the client returns to `bootstrap_servers`, even if known brokers accept
    connections."""
    receive_message_max_bytes: int = 100 * 1024 * 1024
    """The largest response that is accepted."""
    allow_auto_create_topics: bool = False
    """Whether asking for an unknown topic may create it, where the broker allows that. Brokers before 0.11 decide
    alone."""
    enable_metrics_push: bool = True
    """Whether metrics are pushed to a broker that requests them (KIP-714; extra `telemetry`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bootstrap_servers, Mapping):
            raise ConfigurationError(
                'bootstrap_servers must be "host:port" or a list of them, not a dict: options are keyword arguments '
                'with underscores, bootstrap_servers="localhost:9092", client_id="billing"'
            )
        addresses = parse_addresses(self.bootstrap_servers)
        require_type("client_id", self.client_id, str, "a string")
        for name in _POSITIVE:
            require_number(name, getattr(self, name), minimum=1, maximum=INT32_MAX)
        for name in _NOT_NEGATIVE:
            require_number(name, getattr(self, name), minimum=0, maximum=INT32_MAX)
        require_int("receive_message_max_bytes", self.receive_message_max_bytes, minimum=1024, maximum=INT32_MAX)
        require_bool("allow_auto_create_topics", self.allow_auto_create_topics)
        require_bool("enable_metrics_push", self.enable_metrics_push)
        if self.metadata_recovery_strategy not in (REBOOTSTRAP, NO_RECOVERY):
            raise ConfigurationError(
                f"metadata_recovery_strategy must be {REBOOTSTRAP!r} or {NO_RECOVERY!r}, "
                f"not {self.metadata_recovery_strategy!r}"
            )

        if self.uses_sasl and not self.uses_tls:
            self._warn_of_clear_text([address.host for address in addresses])

    @classmethod
    def from_dict(cls, options: Mapping[str, Any], *, prefix: str = "", **others: Any) -> Self:
        """Create a config from options named as in Java, librdkafka (`linger.ms`) or here.

        `others` take precedence; they have our names. Placeholders (`${env:NAME}`,
        `${file:PATH:KEY}`, `${dir:PATH:FILE}`) are replaced. Options that belong to Java alone, or
        to another kind of client, are left out with one line in the log. Messages show the names
        with `prefix`.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        from aiokwire.cluster.dotted_options import translated_options  # most programs do not need it

        return from_options(cls, {**translated_options(cls, options, prefix), **others})

    @classmethod
    def from_properties(cls, path_or_text: str | os.PathLike[str], **others: Any) -> Self:
        """Create a config from a properties file of the Java client, or from its text.

        Otherwise as `from_dict`. A str with a line end or "=" is the text.

        Raises: ConfigurationError: as `from_dict`, or the file cannot be read.
        """
        from aiokwire.cluster.dotted_options import read_properties

        return cls.from_dict(read_properties(path_or_text), **others)

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, file: str | os.PathLike[str] | None = None, **others: Any
    ) -> Self:
        """Create a config from variables: `AIOKWIRE_LINGER_MS` is `linger_ms`.

        `AIOKWIRE_SASL_PASSWORD_FILE` names a file with the value, `AIOKWIRE_SECRETS_DIR` a
        directory with files named as options, `AIOKWIRE_CONFIG_FILE` or `file` a properties file.
        `others` precede variables, these the directory, the directory the file.

        Raises: ConfigurationError: a variable is not an option, a file cannot be read, or as
        `from_dict`; the message names the variables, not their values.
        """
        from aiokwire.cluster.config import environment_options, variables_of

        environ = os.environ if environ is None else environ
        options = environment_options(cls, environ, file=file)
        try:
            return from_options(cls, {**options, **others})
        except ConfigurationError as error:
            used = ", ".join(variables_of(environ))
            raise ConfigurationError(f"{error} (environment variables: {used or 'none'})") from None

    def defaults_from_environment(self) -> dict[str, Any]:
        """Return values from the environment for options that have their defaults here.

        Raises: ConfigurationError: a variable is not an option, or a file cannot be read.
        """
        from aiokwire.cluster.config import environment_options

        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        given = environment_options(type(self))
        return {name: value for name, value in given.items() if getattr(self, name) == defaults[name]}

    @property
    def addresses(self) -> list[Address]:
        """`bootstrap_servers`, parsed."""
        return parse_addresses(self.bootstrap_servers)

    @property
    def request_timeout(self) -> float:
        """In seconds."""
        return self.request_timeout_ms / 1000

    @property
    def metadata_max_age(self) -> float:
        """In seconds."""
        return self.metadata_max_age_ms / 1000

    @property
    def retry_backoff(self) -> float:
        """In seconds."""
        return self.retry_backoff_ms / 1000

    @property
    def bootstrap_timeout(self) -> float:
        """In seconds."""
        return self.bootstrap_timeout_ms / 1000

    @property
    def default_api_timeout(self) -> float:
        """In seconds."""
        return self.default_api_timeout_ms / 1000

    @property
    def metadata_min_interval(self) -> float:
        """In seconds."""
        return self.metadata_min_interval_ms / 1000

    @property
    def metadata_max_idle(self) -> float:
        """In seconds."""
        return self.metadata_max_idle_ms / 1000

    @property
    def metadata_recovery_rebootstrap_trigger(self) -> float:
        """In seconds."""
        return self.metadata_recovery_rebootstrap_trigger_ms / 1000

    @property
    def connections_max_idle(self) -> float:
        """In seconds."""
        return self.connections_max_idle_ms / 1000

    def connection_setup_timeout(self, failures: int) -> float:
        """Seconds for an attempt to connect after `failures` in a row (KIP-601)."""
        grown = self.socket_connection_setup_timeout_ms * 2.0 ** min(failures, 30)
        limit = max(self.socket_connection_setup_timeout_ms, self.socket_connection_setup_timeout_max_ms)
        return min(grown, limit) / 1000

    def new_backoff(self, rng: random.Random) -> Backoff:
        """Return the backoff between retries, from `retry_backoff_ms` to `retry_backoff_max_ms`."""
        return Backoff(self.retry_backoff_ms / 1000, self.retry_backoff_max_ms / 1000, rng=rng)

    def new_reconnect_backoff(self, rng: random.Random) -> Backoff:
        """Return the backoff between attempts to connect: `reconnect_backoff_ms` and `_max_ms`."""
        return Backoff(self.reconnect_backoff_ms / 1000, self.reconnect_backoff_max_ms / 1000, rng=rng)

    @property
    def connection(self) -> ConnectionConfig:
        """The options of one connection."""
        return ConnectionConfig(
            setup_timeout=self.connection_setup_timeout(failures=0),
            request_timeout=self.request_timeout,
            max_frame_size=self.receive_message_max_bytes,
        )


class ClientOptions(SecurityOptions, total=False):
    """Keyword options of every client for type checkers (PEP 692); defaults: see `ClientConfig`."""

    client_id: str
    request_timeout_ms: float
    bootstrap_timeout_ms: float
    default_api_timeout_ms: float
    retry_backoff_ms: float
    retry_backoff_max_ms: float
    reconnect_backoff_ms: float
    reconnect_backoff_max_ms: float
    socket_connection_setup_timeout_ms: float
    socket_connection_setup_timeout_max_ms: float
    connections_max_idle_ms: float
    metadata_max_age_ms: float
    metadata_min_interval_ms: float
    metadata_max_idle_ms: float
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: float
    receive_message_max_bytes: int
    allow_auto_create_topics: bool
    enable_metrics_push: bool
