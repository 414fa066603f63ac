"""Options of the Java client, librdkafka and confluent-kafka as configs of this package."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from aiokwire.admin import Admin, AdminConfig
from aiokwire.consumer import Consumer, ConsumerConfig
from aiokwire.errors import ConfigurationError
from aiokwire.producer import Producer, ProducerConfig
from aiokwire.security import Secret
from aiokwire.types import Acks, Compression

PASSWORD = "s3cr3t-wonder"
JAVA = f"""
# client.properties, as the operator hands it out
bootstrap.servers=b-1.example:9093,\\
    b-2.example:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="alice" \\
  password="{PASSWORD}";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/kafka/ca.pem
ssl.endpoint.identification.algorithm=
key.serializer=org.apache.kafka.common.serialization.StringSerializer
value.serializer=org.apache.kafka.common.serialization.StringSerializer
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
group.id=billing
acks=-1
linger.ms=20
compression.type=zstd
retries=2147483647
"""


def test_a_properties_file_of_java_becomes_a_config(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "client.properties"
    file.write_text(JAVA)
    file.chmod(0o600)
    with caplog.at_level(logging.INFO):
        found = ProducerConfig.from_properties(file, client_id="mine")
    assert [address.host for address in found.addresses] == ["b-1.example", "b-2.example"]
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (found.sasl_plain_username, found.sasl_plain_password) == ("alice", Secret(PASSWORD))
    assert (found.ssl_truststore_type, found.ssl_endpoint_identification_algorithm) == ("PEM", "")
    assert (found.acks, found.linger_ms, found.compression_type) == (Acks.ALL, 20, Compression.ZSTD)
    assert found.client_id == "mine"
    (line,) = [record.message for record in caplog.records if "without effect" in record.message]
    assert line == (
        "ProducerConfig: options without effect here: group.id, key.deserializer, key.serializer, retries, "
        "value.serializer"
    )
    assert PASSWORD not in caplog.text
    assert ConsumerConfig.from_properties(JAVA).group_id == "billing"
    assert AdminConfig.from_properties(str(file)) == AdminConfig.from_properties(JAVA)


def test_a_properties_file_with_secrets_that_others_can_read_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(JAVA)
    file.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        AdminConfig.from_properties(file)
    assert "contains secrets and can be read by other users (mode 0644)" in caplog.text
    caplog.clear()
    file.write_text("bootstrap.servers=a:1\nssl.truststore.location=/a\nsecurity.protocol=SSL\nssl.key.password=")
    AdminConfig.from_properties(file)
    assert not caplog.records


def test_a_missing_properties_file_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"the properties file: /no/such.properties cannot be read"):
        AdminConfig.from_properties("/no/such.properties")


def test_a_dictionary_of_confluent_kafka_becomes_a_config() -> None:
    found = ConsumerConfig.from_dict(
        {
            "bootstrap.servers": "a:9093",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "KEY",
            "sasl.password": PASSWORD,
            "ssl.ca.location": "/etc/ca.pem",
            "ssl.certificate.location": "/etc/client.pem",
            "ssl.key.location": "/etc/client.key",
            "ssl.key.password": PASSWORD,
            "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256",
            "ssl.endpoint.identification.algorithm": "none",
            "enable.ssl.certificate.verification": True,
            "group.id": "billing",
            "auto.offset.reset": "smallest",
            "enable.auto.commit": "false",
            "session.timeout.ms": 45000,
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            "fetch.wait.max.ms": 100,
            "queued.max.messages.kbytes": 1024,
            "linger.ms": 5,
            "socket.keepalive.enable": True,
        }
    )
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert (found.sasl_plain_username, found.sasl_plain_password) == ("KEY", Secret(PASSWORD))
    assert (found.ssl_truststore_location, found.ssl_certfile, found.ssl_keyfile) == (
        "/etc/ca.pem", "/etc/client.pem", "/etc/client.key",
    )  # fmt: skip
    assert found.ssl_key_password == Secret(PASSWORD)
    assert found.ssl_cipher_suites == ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256")
    assert found.ssl_endpoint_identification_algorithm == ""
    assert (found.group_id, found.auto_offset_reset, found.enable_auto_commit) == ("billing", "earliest", False)
    assert found.partition_assignment_strategy == "cooperative-sticky"
    assert (found.fetch_max_wait_ms, found.fetch_memory) == (100, 1024 * 1024)


OIDC = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    "sasl.oauthbearer.client.id": "billing",
    "sasl.oauthbearer.client.secret": PASSWORD,
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
}


def test_the_oidc_options_of_librdkafka_and_java_become_ours() -> None:
    found = AdminConfig.from_dict(OIDC)
    assert found.sasl_oauthbearer_client_credentials_client_id == "billing"
    assert found.sasl_oauthbearer_client_credentials_client_secret == Secret(PASSWORD)
    assert (found.sasl_oauthbearer_scope, found.sasl_oauthbearer_extensions) == (
        "kafka",
        (("logicalCluster", "lkc-1"),),
    )
    package = "org.apache.kafka.common.security.oauthbearer"
    java = AdminConfig.from_dict(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.jwt.retriever.class": f"{package}.JwtBearerJwtRetriever",
            "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
            "sasl.oauthbearer.assertion.private.key.file": "/etc/key.pem",
            "sasl.oauthbearer.assertion.claim.iss": "billing",
            "sasl.oauthbearer.assertion.claim.exp.seconds": "600",
        }
    )
    assert (java.sasl_oauthbearer_grant, java.sasl_oauthbearer_assertion_claim_iss) == ("jwt-bearer", "billing")
    assert java.sasl_oauthbearer_assertion_claim_exp_seconds == 600


async def test_the_oauth_callback_of_confluent_kafka_becomes_a_provider() -> None:
    def callback(argument: str) -> tuple[str, float]:
        return f"token of {argument}", 1_700_000_000.5

    async def async_callback(argument: str) -> tuple[str, float, str]:
        return f"token of {argument}", 1_700_000_000.5, "alice"

    for each in (callback, async_callback):
        found = AdminConfig.from_dict(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": each,
                "sasl.oauthbearer.config": "pool",
            }
        )
        provider: Any = found.sasl_oauth_token_provider
        given = provider()
        assert (await given if each is async_callback else given) == ("token of pool", 1_700_000_000.5)


def test_the_options_of_amazons_library_become_ours() -> None:
    found = AdminConfig.from_properties(
        "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n"
        "sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;\n"
        "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler\n"
    )
    assert found.sasl_mechanism == "AWS_MSK_IAM"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sasl.user": "a"}, "AdminConfig|did you mean"),
        ({"enable.ssl.certificate.verification": "false"}, "certificates are always verified"),
        ({"sasl.login.callback.handler.class": "io.strimzi.Handler"}, "Java classes cannot run here"),
        ({"oauth_cb": "module.function"}, "oauth_cb must be a function"),
        ({"sasl.oauthbearer.jwt.retriever.class": "org.example.Mine"}, "use sasl_oauth_token_provider"),
        ({"bootstrap.servers": "a", "metadata.broker.list": "b"}, "bootstrap_servers has two values"),
        ({"client.id": "${env:NOT_SET_HERE}"}, "client.id refers to the environment variable NOT_SET_HERE"),
        ({"request.timeout.ms": "5 s"}, "request.timeout.ms must be a number, not '5 s'"),
        ({7: "a"}, "the name of an option must be a string, not 7"),
        ({"error_cb": print}, "errors are raised where you await"),
        ({"queued.max.messages.kbytes": "many"}, "must be a number, not 'many'"),
    ],
)
def test_an_option_without_a_counterpart_is_refused_with_advice(options: dict[Any, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        AdminConfig.from_dict(options)


def test_only_a_mapping_is_accepted() -> None:
    with pytest.raises(ConfigurationError, match="the options must be a dict, not a list"):
        AdminConfig.from_dict([("a", 1)])  # type: ignore[arg-type]


def test_a_placeholder_in_any_option_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    found = AdminConfig.from_dict({**OIDC, "sasl.oauthbearer.client.secret": "${env:KAFKA_PASSWORD}"})
    assert found.sasl_oauthbearer_client_credentials_client_secret == Secret(PASSWORD)


async def test_clients_are_created_from_the_dictionaries_of_other_clients() -> None:
    common = {"bootstrap.servers": "localhost:1", "client.id": "mine"}
    assert Producer.from_dict({**common, "linger.ms": "7"}).config.linger_ms == 7
    assert Admin.from_dict(common).config.client_id == "mine"
    consumer = Consumer.from_dict({**common, "group.id": "billing"}, "orders", "payments")
    assert consumer.subscription == frozenset({"orders", "payments"})


def test_a_number_that_is_none_is_named_as_it_was_given() -> None:
    with pytest.raises(ConfigurationError, match=r"^fetch\.max\.bytes must be a number, not 'much'$"):
        ConsumerConfig.from_dict({"fetch.max.bytes": "much"})
