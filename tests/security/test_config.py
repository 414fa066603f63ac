"""The options of TLS and SASL: aliases, what contradicts or is missing, and hidden secrets."""

from __future__ import annotations

import copy
import dataclasses
import functools
import logging
import pickle
import ssl
from typing import Any

import pytest

from aiokwire.cluster import ClientConfig
from aiokwire.config import from_options
from aiokwire.consumer import ConsumerConfig
from aiokwire.errors import ConfigurationError
from aiokwire.producer import ProducerConfig
from aiokwire.security import Secret, UserPassword

PASSWORD = "s3cr3t-wonder"
SCRAM: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "alice",
    "sasl_plain_password": PASSWORD,
}
OAUTH: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
OIDC: dict[str, Any] = {
    **OAUTH,
    "sasl_oauthbearer_token_endpoint_url": "https://login.example/token",
    "sasl_oauthbearer_client_credentials_client_id": "billing",
    "sasl_oauthbearer_client_credentials_client_secret": PASSWORD,
}


def token() -> str:
    return "token"


def password() -> str:
    return "from-the-vault"


async def async_password() -> Secret:
    return Secret("from-the-vault")


def config(**options: Any) -> ClientConfig:
    return from_options(ClientConfig, options)


def test_without_options_connections_are_neither_encrypted_nor_authenticated() -> None:
    plain = config()
    assert (plain.security_protocol, plain.uses_tls, plain.uses_sasl) == ("PLAINTEXT", False, False)


@pytest.mark.parametrize(
    ("protocol", "tls", "sasl"), [("SSL", True, False), ("sasl_ssl", True, True), ("SASL_PLAINTEXT", False, True)]
)
def test_the_protocol_decides_what_connections_do(protocol: str, tls: bool, sasl: bool) -> None:
    options = {**SCRAM, "security_protocol": protocol} if sasl else {"security_protocol": protocol}
    found = config(**options)
    assert (found.security_protocol, found.uses_tls, found.uses_sasl) == (protocol.upper(), tls, sasl)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "TLS"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not 'TLS'"),
        ({"ssl_cafile": "ca.pem"}, r'ssl_cafile has no effect .* set security_protocol="SSL"'),
        ({"ssl_cafile": "ca.pem", "sasl_mechanism": "PLAIN"}, 'set security_protocol="SASL_SSL"'),
        ({"sasl_mechanism": "PLAIN"}, r'sasl_mechanism has no effect .* set security_protocol="SASL_SSL"'),
        ({"security_protocol": "SASL_SSL"}, "needs sasl_mechanism: one of PLAIN, SCRAM-SHA-256"),
        ({**SCRAM, "sasl_mechanism": "SCRAM"}, "sasl_mechanism must be one of .* not 'SCRAM'"),
        ({**SCRAM, "sasl_plain_password": None}, "needs sasl_plain_password: set sasl_plain_username and"),
        ({**SCRAM, "sasl_plain_password": ""}, "sasl_plain_password is empty: check where its value comes from"),
        ({**SCRAM, "sasl_plain_password": 7}, "sasl_plain_password must be a string, not a int"),
        ({**SCRAM, "sasl_oauth_token_provider": token}, "sasl_oauth_token_provider is for OAUTHBEARER"),
        ({**SCRAM, "sasl_password": "another"}, "sasl_password and sasl_plain_password are the same option"),
        ({**SCRAM, "sasl_credentials_provider": password}, "leave out sasl_plain_username"),
        ({**SCRAM, "sasl_kerberos_keytab": "a"}, "sasl_kerberos_keytab is for GSSAPI, but sasl_mechanism is 'SCRAM"),
        (OAUTH, "needs sasl_oauth_token_provider"),
        ({**OAUTH, "sasl_oauth_token_provider": "token"}, "must be a function, or an object with token"),
        ({**OIDC, "sasl_oauth_token_provider": token}, "two sources of the same"),
        ({**OIDC, "sasl_oauthbearer_client_credentials_client_secret": None}, "needs sasl_oauthbearer_client_cred"),
        ({**OIDC, "sasl_oauthbearer_token_endpoint_url": "http://login.example/token"}, "must begin with https"),
        ({**OIDC, "sasl_oauthbearer_token_endpoint_url": f"https://a:{PASSWORD}@login.example/"}, "must not contain"),
        ({**OIDC, "sasl_oauthbearer_grant": "password"}, "must be one of client_credentials, jwt-bearer"),
        ({**OIDC, "sasl_oauthbearer_grant": "jwt-bearer"}, "needs sasl_oauthbearer_assertion_file or"),
        ({**OIDC, "sasl_login_refresh_window_factor": 2}, "sasl_login_refresh_window_factor must be at most 1.0"),
        ({**OIDC, "sasl_oauthbearer_extensions": "a"}, 'must be "name=value,name=value" or a dict'),
        ({"security_protocol": "SSL", "ssl_context": "default"}, "ssl_context must be an ssl.SSLContext, not a str"),
        ({"security_protocol": "SSL", "ssl_keyfile": "key.pem"}, "ssl_keyfile needs ssl_certfile"),
        ({"security_protocol": "SSL", "ssl_truststore_type": "JKS"}, "keytool -importkeystore -srckeystore truststore"),
        ({"security_protocol": "SSL", "ssl_keystore_type": "DER"}, 'ssl_keystore_type must be "PEM" or "PKCS12"'),
        ({"security_protocol": "SSL", "ssl_check_hostname": "no"}, "ssl_check_hostname must be True or False"),
        ({"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "ldaps"}, 'must be "https", or ""'),
        ({"security_protocol": "SSL", "ssl_cafile": 5}, "ssl_truststore_location must be a string, not 5"),
        ({"security_protocol": "SSL", "ssl_enabled_protocols": 5}, "ssl_enabled_protocols must be names"),
        (
            {"security_protocol": "SSL", "ssl_cafile": "ca.pem", "ssl_truststore_certificates": "-----BEGIN"},
            "ssl_truststore_location and ssl_truststore_certificates are two sources",
        ),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "AWS_MSK_IAM"},
            'needs security_protocol="SASL_SSL"',
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM", "sasl_aws_access_key_id": "AK"},
            "sasl_aws_access_key_id needs sasl_aws_secret_access_key",
        ),
    ],
)
def test_the_error_names_what_to_set(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        config(**{name: value for name, value in options.items() if value is not None})
    assert PASSWORD not in str(raised.value)


def test_a_context_replaces_the_other_options() -> None:
    context = ssl.create_default_context()
    assert config(security_protocol="SSL", ssl_context=context).ssl_context is context
    with pytest.raises(ConfigurationError, match="ssl_context replaces all other ssl options: leave out ssl_trust"):
        config(security_protocol="SSL", ssl_context=context, ssl_cafile="ca.pem")


def test_other_spellings_become_one_option() -> None:
    found = config(
        security_protocol="SASL_SSL", sasl_mechanism="plain", sasl_username="alice", sasl_password="x",
        ssl_cafile="ca.pem", ssl_check_hostname=False, ssl_enabled_protocols="TLSv1.2, TLSv1.3",
    )  # fmt: skip
    assert found.sasl_mechanism == "PLAIN"
    assert (found.sasl_plain_username, found.sasl_plain_password) == ("alice", Secret("x"))
    assert (found.ssl_truststore_location, found.ssl_endpoint_identification_algorithm) == ("ca.pem", "")
    assert found.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert (found.sasl_username, found.sasl_password, found.ssl_cafile, found.ssl_check_hostname) == (None,) * 4


def test_extensions_may_be_a_text() -> None:
    found = config(**OIDC, sasl_oauthbearer_extensions="logicalCluster=lkc-1, identityPoolId=pool-2")
    pairs = (("logicalCluster", "lkc-1"), ("identityPoolId", "pool-2"))
    assert found.sasl_oauthbearer_extensions == pairs
    assert found == config(**OIDC, sasl_oauthbearer_extensions=dict(pairs)) == dataclasses.replace(found)
    assert hash(found) == hash(dataclasses.replace(found)), "Spark's tasks share clients by their config"


@pytest.mark.parametrize("make", [ClientConfig, ProducerConfig, ConsumerConfig])
def test_no_text_of_a_config_shows_a_secret(make: type[ClientConfig]) -> None:
    for options in (SCRAM, {**OIDC, "ssl_key_password": PASSWORD, "ssl_keystore_password": Secret(PASSWORD)}):
        found = make(**options)
        for text in (repr(found), str(found), f"{found}", f"{found!r}", str(dataclasses.asdict(found))):
            assert PASSWORD not in text
        assert "***" in repr(found)


def test_the_repr_shows_what_differs_from_the_defaults() -> None:
    found = config(**SCRAM, client_id="billing")
    assert repr(found) == (
        "ClientConfig(client_id='billing', security_protocol='SASL_SSL', sasl_mechanism='SCRAM-SHA-512', "
        "sasl_plain_username='alice', sasl_plain_password=***)"
    )
    provided = config(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_credentials_provider=functools.partial(dict, p=PASSWORD),
    )
    assert PASSWORD not in repr(provided)


@pytest.mark.parametrize("options", [SCRAM, OIDC])
def test_a_config_can_be_copied_pickled_and_replaced(options: dict[str, Any]) -> None:
    found = config(**options)
    for twin in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found)), dataclasses.replace(found)):
        assert twin == found
    assert dataclasses.replace(found, client_id="b").client_id == "b"


def test_replacing_a_password_replaces_it() -> None:
    changed = dataclasses.replace(config(**SCRAM), sasl_plain_password="new")
    assert changed.sasl_plain_password == Secret("new")


async def test_a_password_may_be_a_function_which_each_login_calls() -> None:
    for function in (password, async_password):
        found = config(**{**SCRAM, "sasl_plain_password": function})
        assert found.sasl_plain_password is None
        provider = found.sasl_credentials_provider
        assert provider is not None
        credentials = provider()
        given = await credentials if hasattr(credentials, "__await__") else credentials  # type: ignore[misc]
        assert given == UserPassword("alice", Secret("from-the-vault"))


def test_a_config_with_a_password_function_can_be_replaced_and_pickled() -> None:
    found = config(**{**SCRAM, "sasl_plain_password": password})
    renamed = dataclasses.replace(found, sasl_plain_username="bob")
    assert renamed.sasl_credentials_provider is not None
    assert renamed.sasl_credentials_provider() == UserPassword("bob", Secret("from-the-vault"))
    fixed = dataclasses.replace(found, sasl_plain_password="fixed")
    assert (fixed.sasl_credentials_provider, fixed.sasl_plain_password) == (None, Secret("fixed"))
    again = pickle.loads(pickle.dumps(found))
    assert again.sasl_credentials_provider() == UserPassword("alice", Secret("from-the-vault"))


@pytest.mark.parametrize(
    ("servers", "protocol", "mechanism", "warned"),
    [
        ("broker-1.example:9092", "SASL_PLAINTEXT", "PLAIN", True),
        ("127.0.0.1:9092,localhost,[::1]:9092", "SASL_PLAINTEXT", "PLAIN", False),
        ("broker-2.example:9092", "SASL_SSL", "PLAIN", False),
        ("broker-3.example:9092", "SASL_PLAINTEXT", "SCRAM-SHA-256", False),
    ],
)
def test_a_password_sent_unencrypted_to_another_machine_is_logged_once(
    servers: str, protocol: str, mechanism: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**SCRAM, "security_protocol": protocol, "sasl_mechanism": mechanism, "bootstrap_servers": servers}
    with caplog.at_level(logging.WARNING):
        dataclasses.replace(config(**options), client_id="again")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warned
    if warned:
        assert "PLAIN over SASL_PLAINTEXT sends the password unencrypted to broker-1.example" in caplog.text
        assert PASSWORD not in caplog.text
