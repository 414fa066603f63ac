"""Options of aiokafka, kafka-python, confluent-kafka and Java with another name here, or none.

`aiokwire.config` reads the table if an option is unknown: name in snake_case -> advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ONE_LOOP: Final = "the client belongs to the event loop on which it is started; leave it out"
_RETRIES: Final = (
    "sends are retried until delivery_timeout_ms has passed, requests until default_api_timeout_ms; set these instead"
)
_VERSIONS: Final = "versions are negotiated with each broker; leave it out"
_HOOKS: Final = "pass hooks=, an aiokwire.Hooks with the methods that you need"
_RECORDS: Final = "records arrive through `async for`, getone() and getmany(); delivery reports by awaiting send()"
_CALLBACKS: Final = (
    "Java classes cannot run here; use sasl_credentials_provider, sasl_oauth_token_provider or sasl_client_factory"
)
_LOGGING: Final = 'use logging.getLogger("aiokwire")'
_SOCKET: Final = "sockets keep the system's settings; leave it out"

ADVICE: Final[Mapping[str, str]] = {
    # time, retries, connections
    "retries": _RETRIES,
    "message_send_max_retries": _RETRIES,
    "retry_backoff": "use retry_backoff_ms",
    "message_timeout_ms": "use delivery_timeout_ms",
    "delivery_timeout": "use delivery_timeout_ms",
    "max_block_ms": "a send waits for room and for metadata within delivery_timeout_ms, and for an unknown topic "
    "within unknown_topic_timeout_ms",
    "api_version_auto_timeout_ms": "use socket_connection_setup_timeout_ms",
    "socket_timeout_ms": "use request_timeout_ms",
    "socket_connection_timeout_ms": "use socket_connection_setup_timeout_ms",
    "connections_max_idle": "use connections_max_idle_ms",
    "reconnect_backoff_max": "use reconnect_backoff_max_ms",
    "metadata_request_timeout_ms": "use request_timeout_ms",
    "topic_metadata_refresh_interval_ms": "use metadata_max_age_ms",
    "metadata_broker_list": "use bootstrap_servers",
    "brokers": "use bootstrap_servers",
    "bootstrap": "use bootstrap_servers",
    "servers": "use bootstrap_servers",
    "hosts": "use bootstrap_servers",
    "broker": "use bootstrap_servers",
    "max_in_flight": "use max_in_flight_requests_per_connection",
    "max_in_flight_requests": "use max_in_flight_requests_per_connection",
    "receive_buffer_bytes": _SOCKET,
    "send_buffer_bytes": _SOCKET,
    "socket_receive_buffer_bytes": _SOCKET,
    "socket_send_buffer_bytes": _SOCKET,
    "socket_keepalive_enable": _SOCKET,
    "socket_nagle_disable": _SOCKET,
    "socket_options": _SOCKET,
    "sock_chunk_bytes": _SOCKET,
    "sock_chunk_buffer_count": _SOCKET,
    "selector": _ONE_LOOP,
    "broker_address_family": "both families are tried; leave it out",
    "client_dns_lookup": "every address of a name is tried; leave it out",
    "log_level": _LOGGING,
    "debug": _LOGGING,
    "logger": _LOGGING,
    "loop": _ONE_LOOP,
    "api_version": _VERSIONS,
    "api_version_request": _VERSIONS,
    "broker_version_fallback": _VERSIONS,
    "metric_reporters": _HOOKS,
    "metrics_enabled": _HOOKS,
    "metrics_num_samples": _HOOKS,
    "metrics_sample_window_ms": _HOOKS,
    "statistics_interval_ms": _HOOKS,
    "stats_cb": _HOOKS,
    "interceptor_classes": _HOOKS,
    "error_cb": "errors are raised where you await, and logged; health() and events() report the rest",
    "throttle_cb": "events() reports throttling",
    # producer
    "queue_buffering_max_ms": "use linger_ms",
    "queue_buffering_max_kbytes": "use buffer_memory (bytes)",
    "queue_buffering_max_messages": "use buffer_memory (bytes)",
    "batch_num_messages": "use batch_size (bytes)",
    "max_batch_size": "use batch_size (bytes)",
    "message_max_bytes": "use max_request_size",
    "compression_codec": "use compression_type",
    "compression": "use compression_type",
    "request_required_acks": "use acks",
    "required_acks": "use acks",
    "idempotence": "use enable_idempotence",
    "request_timeout": "use request_timeout_ms",
    "transaction_id": "use transactional_id",
    "partitioner_class": 'use partitioner: a name such as "default", or a function (topic, key, value, partitions)',
    "sticky_partitioning_linger_ms": "records without a key fill one batch before the next; leave it out",
    "dr_cb": _RECORDS,
    "dr_msg_cb": _RECORDS,
    "on_delivery": _RECORDS,
    "delivery_report_only_error": _RECORDS,
    "enable_gapless_guarantee": "order within a partition always holds with idempotence; leave it out",
    # consumer
    "topics": 'topics are positional: Consumer("orders", "payments", bootstrap_servers=...)',
    "topic": 'topics are positional: Consumer("orders", bootstrap_servers=...)',
    "group": "use group_id",
    "consumer_group": "use group_id",
    "enable_auto_offset_store": 'enable_auto_commit="acked" commits only records that were passed to ack()',
    "auto_commit_enable": "use enable_auto_commit",
    "auto_commit_interval": "use auto_commit_interval_ms",
    "auto_offset": "use auto_offset_reset",
    "fetch_wait_max_ms": "use fetch_max_wait_ms",
    "fetch_message_max_bytes": "use max_partition_fetch_bytes",
    "queued_max_messages_kbytes": "use fetch_memory (bytes)",
    "queued_min_messages": "use fetch_memory (bytes)",
    "consumer_timeout_ms": "pass timeout= (seconds) to getone() or getmany()",
    "max_poll_interval": "use max_poll_interval_ms",
    "session_timeout": "use session_timeout_ms",
    "partition_assignors": "use partition_assignment_strategy",
    "rebalance_cb": "pass listener=, an aiokwire.RebalanceListener",
    "on_assign": "pass listener=, an aiokwire.RebalanceListener",
    "on_revoke": "pass listener=, an aiokwire.RebalanceListener",
    "offset_commit_cb": "await commit(): it returns or raises",
    "enable_partition_eof": "hooks and events() report PartitionEnd",
    "group_remote_assignor_name": "use group_remote_assignor",
    "legacy_iterator": "leave it out",
    "exclude_internal_topics": "patterns never match internal topics; leave it out",
    "default_offset_commit_callback": "await commit(): it returns or raises",
    "allow_auto_create": "use allow_auto_create_topics",
    "auto_create_topics": "use allow_auto_create_topics",
    # security
    "ssl": "use security_protocol",
    "ssl_password": "use ssl_key_password",
    "ssl_ciphers": "use ssl_cipher_suites",
    "ssl_ca_location": "use ssl_truststore_location",
    "ssl_ca_pem": "use ssl_truststore_certificates",
    "ssl_ca_certificate_stores": "without ssl_truststore_location the system's authorities are trusted; leave it out",
    "ssl_certificate_location": "use ssl_certfile",
    "ssl_certificate_pem": "use ssl_keystore_certificate_chain",
    "ssl_key_location": "use ssl_keyfile",
    "ssl_key_pem": "use ssl_keystore_key",
    "ssl_crl_location": "use ssl_crlfile",
    "ssl_protocol": "use ssl_enabled_protocols",
    "ssl_engine_factory_class": "Java classes cannot run here; pass ssl_context",
    "enable_ssl_certificate_verification": "certificates are always verified; use ssl_truststore_location for the "
    "authority that signed the brokers', or pass ssl_context",
    "sasl_mechanisms": "use sasl_mechanism",
    "sasl_kerberos_name": "use sasl_kerberos_service_name",
    "sasl_kerberos_kinit_cmd": "use sasl_kerberos_keytab",
    "sasl_login_callback_handler_class": _CALLBACKS,
    "sasl_client_callback_handler_class": _CALLBACKS,
    "sasl_login_class": _CALLBACKS,
    "sasl_oauthbearer_client_id": "use sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_secret": "use sasl_oauthbearer_client_credentials_client_secret",
    "sasl_oauthbearer_method": "use sasl_oauthbearer_token_endpoint_url, or sasl_oauth_token_provider",
    "sasl_oauthbearer_config": "use sasl_oauth_token_provider",
    "oauth_cb": "use sasl_oauth_token_provider",
}
