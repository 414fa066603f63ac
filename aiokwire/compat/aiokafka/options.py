"""aiokafka's options as ours: one table for all clients, and one for each kind.

Options that are listed have the same name, unit and meaning. Two have no effect: `api_version`,
because the version of each request is negotiated with each broker (aiokafka ignores it since 0.13),
and `consumer_timeout_ms`, because a rebalance wakes the fetcher at once.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aiokwire.compat.aiokafka.errors import KafkaConfigurationError

INT32_MAX: Final = 2**31 - 1

# Our start tries each address once, as aiokafka's does; a program that repeats it decides how long.
_START_ONCE: Final[dict[str, Any]] = {"bootstrap_timeout_ms": 0}

_SAME: Final = ("client_id", "metadata_max_age_ms", "request_timeout_ms", "retry_backoff_ms")


def warn_of_deprecated(loop: object, api_version: object, stacklevel: int = 3) -> None:
    """Warn of arguments that aiokafka has deprecated."""
    if loop is not None:
        text = "the loop argument is deprecated: create the object where the loop runs"
        warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)
    if api_version is not None:
        text = "the api_version argument is deprecated and has no effect"
        warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def client_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return our options of any client for aiokafka's.

    Raises: ValueError: the security options contradict each other.
    """
    options = {name: given[name] for name in _SAME} | _START_ONCE
    options["bootstrap_servers"] = _with_ports(given["bootstrap_servers"])
    options["retry_backoff_max_ms"] = max(1_000, given["retry_backoff_ms"])
    options["default_api_timeout_ms"] = given["request_timeout_ms"]
    options["socket_connection_setup_timeout_ms"] = given["request_timeout_ms"]
    options["socket_connection_setup_timeout_max_ms"] = given["request_timeout_ms"]
    options["allow_auto_create_topics"] = True
    idle = given["connections_max_idle_ms"]
    options["connections_max_idle_ms"] = INT32_MAX if idle is None else idle
    return options | _security_options(given)


def _with_ports(servers: str | Sequence[str]) -> list[str]:
    names = servers.split(",") if isinstance(servers, str) else list(servers)
    return [name.strip() for name in names]


def _security_options(given: Mapping[str, Any]) -> dict[str, Any]:
    protocol = given["security_protocol"]
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise ValueError(
            f"`security_protocol` should be SSL or PLAINTEXT, with a login SASL_SSL or SASL_PLAINTEXT, not {protocol!r}"
        )
    if protocol in ("SSL", "SASL_SSL") and given["ssl_context"] is None:
        raise ValueError(
            f"`ssl_context` is mandatory if security_protocol=='{protocol}': see aiokafka.helpers.create_ssl_context"
        )
    options: dict[str, Any] = {"security_protocol": protocol}
    if protocol in ("SSL", "SASL_SSL"):
        options["ssl_context"] = given["ssl_context"]
    if protocol in ("SASL_SSL", "SASL_PLAINTEXT"):
        options |= _login_options(given)
    return options


def _login_options(given: Mapping[str, Any]) -> dict[str, Any]:
    mechanism = given["sasl_mechanism"]
    options: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        if given["sasl_plain_username"] is None or given["sasl_plain_password"] is None:
            raise ValueError(f"sasl_plain_username and sasl_plain_password required for {mechanism} sasl")
        return options | {name: given[name] for name in ("sasl_plain_username", "sasl_plain_password")}
    if mechanism == "OAUTHBEARER":
        return options | _oauth_options(given["sasl_oauth_token_provider"])
    if mechanism == "GSSAPI":
        names = ("sasl_kerberos_service_name", "sasl_kerberos_domain_name")
        return options | {name: given[name] for name in names}
    raise ValueError(
        f"sasl_mechanism must be PLAIN, GSSAPI, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, not {mechanism!r}"
    )


def _oauth_options(provider: Any) -> dict[str, Any]:
    from aiokwire.compat.aiokafka.abc import AbstractTokenProvider

    if not isinstance(provider, AbstractTokenProvider):
        raise ValueError("OAUTHBEARER needs a sasl_oauth_token_provider, an AbstractTokenProvider")
    options: dict[str, Any] = {"sasl_oauth_token_provider": provider.token}
    extensions = provider.extensions()
    return options | {"sasl_oauthbearer_extensions": dict(extensions)} if extensions else options


# --- the producer -----------------------------------------------------------------------------------------------------

# aiokafka's default: here it does not limit batches, which grow while requests are in flight.
DEFAULT_BATCH_SIZE: Final = 16_384
UNSET: Final[Any] = object()


def producer_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return our options of a producer for aiokafka's.

    Raises: ValueError: an option is out of its range, or contradicts another.
    """
    acks, compression = given["acks"], given["compression_type"]
    if acks is not UNSET and acks not in (0, 1, -1, "all"):
        raise ValueError(f"acks must be 0, 1, -1 or 'all', not {acks!r}")
    if compression not in ("gzip", "snappy", "lz4", "zstd", None):
        raise ValueError(f"compression_type must be gzip, snappy, lz4, zstd or None, not {compression!r}")
    idempotent = given["enable_idempotence"] or given["transactional_id"] is not None
    if idempotent and acks not in (UNSET, "all", -1):
        raise ValueError(f"enable_idempotence and transactional_id need acks='all', not {acks!r}")
    options = client_options(given)
    options["acks"] = acks if acks is not UNSET else "all" if idempotent else 1
    options["enable_idempotence"] = bool(idempotent)
    options["compression_type"] = compression or "none"
    options["linger_ms"] = linger = given["linger_ms"]
    options["max_request_size"] = given["max_request_size"]
    options["buffer_memory"] = max(32 * 1024 * 1024, given["max_request_size"] + 1024)
    options["delivery_timeout_ms"] = max(given["request_timeout_ms"], linger + 1)
    options["unknown_topic_timeout_ms"] = given["request_timeout_ms"]
    if given["max_batch_size"] != DEFAULT_BATCH_SIZE:
        options["batch_size"] = given["max_batch_size"]
    if given["transactional_id"] is not None:
        options["transactional_id"] = given["transactional_id"]
        options["transaction_timeout_ms"] = given["transaction_timeout_ms"]
    return options


# --- the consumer -----------------------------------------------------------------------------------------------------

_CONSUMER_SAME: Final = (
    "group_id",
    "group_instance_id",
    "fetch_max_wait_ms",
    "fetch_max_bytes",
    "fetch_min_bytes",
    "max_partition_fetch_bytes",
    "auto_offset_reset",
    "enable_auto_commit",
    "auto_commit_interval_ms",
    "check_crcs",
    "max_poll_interval_ms",
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "isolation_level",
)


def consumer_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return our options of a consumer for aiokafka's, without deserializers and assignors.

    Raises: ValueError: an option is out of its range, or contradicts another.
    """
    most = given["max_poll_records"]
    if most is not None and (not isinstance(most, int) or most < 1):
        raise ValueError(f"max_poll_records must be a positive int or None, not {most!r}")
    if given["isolation_level"] not in ("read_uncommitted", "read_committed"):
        raise ValueError(f"Incorrect isolation level {given['isolation_level']}: read_uncommitted or read_committed")
    options = client_options(given) | {name: given[name] for name in _CONSUMER_SAME}
    options["rebalance_timeout_ms"] = given["rebalance_timeout_ms"] or given["session_timeout_ms"]
    options["rebalance_listener_timeout_ms"] = INT32_MAX
    options["client_rack"] = given["client_rack"] or ""
    options["enable_auto_commit"] = bool(given["enable_auto_commit"])
    return options


class NullableDeserializer:
    """A deserializer that is also called with None, as aiokafka's are."""

    receives_null: Final = True

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, data: bytes | None) -> Any:
        return self._function(data)


def deserializer_of(function: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Return our deserializer for aiokafka's.

    Raises: KafkaConfigurationError: it is a coroutine function, which aiokafka does not await.
    """
    if function is None:
        return None
    if inspect.iscoroutinefunction(function):
        raise KafkaConfigurationError(
            "aiokafka's deserializers are plain functions; aiokwire.Consumer takes async ones"
        )
    return NullableDeserializer(function)
