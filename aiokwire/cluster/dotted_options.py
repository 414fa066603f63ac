"""Options of the Java client and of librdkafka (`linger.ms`, `ssl.ca.location`) as options here.

Used by `ClientConfig.from_dict` and `from_properties`. Options that only Java's virtual machine
or a C library needs are left out, with one line in the log; other unknown options are errors.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from aiokwire.config import class_with_option, is_secret_option, unknown_option
from aiokwire.errors import ConfigurationError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security import parse_properties, read_text, resolve, warn_if_readable_by_others

logger: FieldLogger = get_logger(__name__)

# Names of librdkafka and of older versions, with the same meaning and unit.
RENAMED: Final[Mapping[str, str]] = {
    "metadata_broker_list": "bootstrap_servers",
    "socket_timeout_ms": "request_timeout_ms",
    "topic_metadata_refresh_interval_ms": "metadata_max_age_ms",
    "queue_buffering_max_ms": "linger_ms",
    "message_max_bytes": "max_request_size",
    "message_timeout_ms": "delivery_timeout_ms",
    "compression_codec": "compression_type",
    "request_required_acks": "acks",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "partitioner_class": "partitioner",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "ssl_ca_location": "ssl_truststore_location",
    "ssl_ca_pem": "ssl_truststore_certificates",
    "ssl_certificate_location": "ssl_certfile",
    "ssl_certificate_pem": "ssl_keystore_certificate_chain",
    "ssl_key_location": "ssl_keyfile",
    "ssl_key_pem": "ssl_keystore_key",
    "ssl_crl_location": "ssl_crlfile",
    "sasl_mechanisms": "sasl_mechanism",
    "sasl_oauthbearer_client_id": "sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_secret": "sasl_oauthbearer_client_credentials_client_secret",
    "sasl_oauthbearer_grant_type": "sasl_oauthbearer_grant",
    "sasl_oauthbearer_assertion_jwt_template_file": "sasl_oauthbearer_assertion_template_file",
    "sasl_oauthbearer_assertion_claim_jti": "sasl_oauthbearer_assertion_claim_jti_include",
}
_KIBIBYTES: Final = {"queue_buffering_max_kbytes": "buffer_memory", "queued_max_messages_kbytes": "fetch_memory"}

# Options without a counterpart here: Java's classes, settings of sockets and threads, per-connection choices.
WITHOUT_EFFECT: Final = frozenset({
    "api_version_request", "auto_include_jmx_reporter", "batch_num_messages", "broker_address_family",
    "broker_version_fallback", "client_dns_lookup", "config_providers", "debug",
    "exclude_internal_topics", "interceptor_classes", "key_deserializer", "key_serializer", "log_level",
    "max_block_ms", "message_send_max_retries", "metric_reporters", "metrics_num_samples", "metrics_recording_level",
    "metrics_sample_window_ms", "partitioner_adaptive_partitioning_enable", "partitioner_availability_timeout_ms",
    "queue_buffering_max_messages", "queued_min_messages", "receive_buffer_bytes", "retries",
    "sasl_kerberos_kinit_cmd", "sasl_kerberos_min_time_before_relogin", "sasl_kerberos_ticket_renew_jitter",
    "sasl_kerberos_ticket_renew_window_factor", "sasl_login_refresh_window_jitter",
    "sasl_oauthbearer_clock_skew_seconds",
    "sasl_oauthbearer_jwt_validator_class", "sasl_oauthbearer_method", "sasl_oauthbearer_scope_claim_name",
    "sasl_oauthbearer_sub_claim_name", "security_providers", "send_buffer_bytes", "socket_keepalive_enable",
    "socket_nagle_disable", "socket_receive_buffer_bytes", "socket_send_buffer_bytes",
    "ssl_keymanager_algorithm", "ssl_protocol", "ssl_provider", "ssl_secure_random_implementation",
    "ssl_trustmanager_algorithm", "statistics_interval_ms", "sticky_partitioning_linger_ms", "value_deserializer",
    "value_serializer",
})  # fmt: skip


def read_properties(path_or_text: str | os.PathLike[str]) -> dict[str, str]:
    """Return the entries of a properties file, or of its text (a str with a line end or "=").

    A file with secrets that other users can read is logged as a WARNING.

    Raises: ConfigurationError: the file cannot be read.
    """
    if isinstance(path_or_text, str) and ("\n" in path_or_text or "=" in path_or_text):
        return parse_properties(path_or_text)
    path = os.path.expanduser(os.fspath(path_or_text))
    entries = parse_properties(read_text(path, option="the properties file"))
    if any(value and "${" not in value and is_secret_option(name) for name, value in entries.items()):
        warn_if_readable_by_others(path, Path(path).stat().st_mode)
    return entries


def translated_options(config: type, given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return options of the config class for options with dots, or with our names.

    Placeholders such as `${env:NAME}` are replaced. Messages show the names with `prefix`.

    Raises: ConfigurationError: an option is unknown, or has no counterpart; the message has advice.
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"the options must be a dict, not a {type(given).__name__}")
    valid = {field.name: field for field in dataclasses.fields(config) if field.init}
    found: dict[str, Any] = {}
    ignored: list[str] = []
    for name, value in given.items():
        if not isinstance(name, str):
            raise ConfigurationError(f"the name of an option must be a string, not {name!r}")
        for ours, converted in _converted(_ours(name), _resolved(prefix + name, value), given).items():
            if ours in valid and not _is_java_class(ours, converted):
                _check_number(prefix + name, valid[ours], converted)
                _add(found, valid[ours], converted)
            elif (
                ours in WITHOUT_EFFECT
                or ours.startswith("config_providers_")
                or class_with_option(ours, config.__name__)
            ):
                ignored.append(prefix + name)
            else:
                raise ConfigurationError(_unknown(name, valid, config.__name__, prefix))
    if ignored:
        logger.info("%s: options without effect here: %s", config.__name__, ", ".join(sorted(ignored)))
    return found


def _ours(name: str) -> str:
    return name.strip().replace(".", "_").replace("-", "_").lower()


def _resolved(name: str, value: Any) -> Any:
    return resolve(value, option=name) if isinstance(value, str) and "${" in value else value


def _check_number(name: str, field: dataclasses.Field[Any], value: Any) -> None:
    """Name the option as it was given: the check of the config names aiokwire's option."""
    if isinstance(value, str) and value and str(field.type).removesuffix(" | None") in ("int", "float"):
        try:
            float(value)
        except ValueError:
            raise ConfigurationError(f"{name} must be a number, not {value!r}") from None


def _add(found: dict[str, Any], field: dataclasses.Field[Any], value: Any) -> None:
    if value is None or (value == "" and field.default is None):  # an entry of a template that was left empty
        return
    if field.name in found and found[field.name] != value:
        raise ConfigurationError(f"{field.name} has two values under two names: set one of them")
    found[field.name] = value


def _unknown(name: str, valid: Collection[str], owner: str, prefix: str) -> str:
    if not prefix:
        return unknown_option(name, valid, owner)
    advice = unknown_option(name, (each.replace("_", ".") for each in valid), owner).partition("no option ")[2]
    return f"aiokwire has no option {prefix + name!r}{advice.removeprefix(repr(name))}".replace(
        "did you mean '", f"did you mean '{prefix}"
    )


def _has_no_effect(name: str, config: type) -> bool:
    """Whether an option belongs to Java alone, or to another kind of client."""
    is_java = name in WITHOUT_EFFECT or name.startswith("config_providers_")
    return is_java or class_with_option(name, config.__name__) is not None


def _is_java_class(name: str, value: Any) -> bool:
    return name.endswith("serializer") and isinstance(value, str)


# --- values -----------------------------------------------------------------------------------------------------------


def _converted(name: str, value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return our options for an option of another client; none if it only confirms a default."""
    if name == "oauth_cb":
        if not callable(value):
            raise ConfigurationError(f"oauth_cb must be a function that returns (token, expiry), not {value!r}")
        return {"sasl_oauth_token_provider": _ConfluentToken(value, given.get("sasl.oauthbearer.config", ""))}
    if name == "sasl_oauthbearer_config" and "oauth_cb" in given:
        return {}
    if name in _KIBIBYTES:
        return {_KIBIBYTES[name]: _kibibytes(name, value)}
    convert = _CONVERTERS.get(RENAMED.get(name, name))
    if convert is not None and isinstance(value, (str, bool)):
        return convert(str(value).strip())
    return {RENAMED.get(name, name): value}


def _kibibytes(name: str, value: Any) -> int:
    try:
        return int(value) * 1024
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name} must be a number, not {value!r}") from None


class _ConfluentToken:
    """A token provider that calls the `oauth_cb` of confluent-kafka: (token, expiry, ...)."""

    def __init__(self, callback: Callable[[str], Any], argument: str) -> None:
        self._callback = callback
        self._argument = argument

    def __call__(self) -> tuple[Any, float] | Awaitable[tuple[Any, float]]:
        found = self._callback(self._argument)
        return self._awaited(found) if inspect.isawaitable(found) else (found[0], float(found[1]))

    async def _awaited(self, pending: Awaitable[Any]) -> tuple[Any, float]:
        found = await pending
        return found[0], float(found[1])


def _choice(option: str, names: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    """Return the option with another spelling of its value; classes of Java by their last part."""
    simple = text.rpartition(".")[2]
    return {option: names.get(simple, names.get(simple.lower(), text))}


_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def _assignors(text: str) -> Mapping[str, Any]:
    names = [_ASSIGNORS.get(name.strip().rpartition(".")[2], name.strip()) for name in text.split(",")]
    return {"partition_assignment_strategy": names[0] if len(names) == 1 else names}


def _verification(text: str) -> Mapping[str, Any]:
    return {} if text.lower() == "true" else {"enable_ssl_certificate_verification": text}


def _authorities(text: str) -> Mapping[str, Any]:
    return {} if text == "probe" else {"ssl_truststore_location": text}  # librdkafka's word for the system's


def _class_of_kafka(option: str, text: str) -> Mapping[str, Any]:
    """Ignore the classes of Kafka and of Amazon's library; others must be replaced."""
    known = ("OAuthBearerLoginCallbackHandler", "IAMClientCallbackHandler")
    return {} if text.rpartition(".")[2] in known else {option: text}


_RETRIEVERS: Final = {"ClientCredentialsJwtRetriever": "client_credentials", "JwtBearerJwtRetriever": "jwt-bearer"}


def _retriever(text: str) -> Mapping[str, Any]:
    name = text.rpartition(".")[2]
    if name == "DefaultJwtRetriever":
        return {}
    if name not in _RETRIEVERS:
        raise ConfigurationError(
            f"sasl.oauthbearer.jwt.retriever.class={text}: Java classes cannot run here; use sasl_oauth_token_provider"
        )
    return {"sasl_oauthbearer_grant": _RETRIEVERS[name]}


_CONVERTERS: Final[Mapping[str, Callable[[str], Mapping[str, Any]]]] = {
    "auto_offset_reset": functools.partial(
        _choice,
        "auto_offset_reset",
        {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest"},
    ),
    "partitioner": functools.partial(
        _choice,
        "partitioner",
        {
            "RoundRobinPartitioner": "round_robin",
            "DefaultPartitioner": "default",
            "UniformStickyPartitioner": "default",
        },
    ),
    "sasl_oauthbearer_grant": functools.partial(
        _choice, "sasl_oauthbearer_grant", {"urn:ietf:params:oauth:grant-type:jwt-bearer": "jwt-bearer"}
    ),
    "partition_assignment_strategy": _assignors,
    "enable_ssl_certificate_verification": _verification,
    "ssl_truststore_location": _authorities,
    "sasl_login_callback_handler_class": functools.partial(_class_of_kafka, "sasl_login_callback_handler_class"),
    "sasl_client_callback_handler_class": functools.partial(_class_of_kafka, "sasl_client_callback_handler_class"),
    "sasl_oauthbearer_jwt_retriever_class": _retriever,
}
