"""Each mistake in the options of TLS and SASL raises one error with its cause and its remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import pytest

from aiokwire import Admin, AuthenticationFailed, ConfigurationError, ConnectionFailed, KafkaError
from integration.conftest import require_kerberos
from integration.kafka.secure import Access, SecureServer, password
from integration.scenarios.common import PATIENCE

BOTH = ("embedded", "kafka-4.3.1")
KAFKA = ("kafka-4.3.1",)
OLD = ("kafka-0.10.2.2",)
EMBEDDED = ("embedded",)

Options = dict[str, Any]


class Mistake(NamedTuple):
    """The options of a client, and what the error's text must contain."""

    options: Callable[[Access], Options]
    error: type[KafkaError]
    cause: str
    remedy: str
    brokers: tuple[str, ...] = BOTH


def at(access: Access, protocol: str) -> Options:
    return {"bootstrap_servers": access.address(protocol)}


def plain(access: Access) -> Options:
    return access.options("SASL_SSL", "PLAIN")


def scram(access: Access) -> Options:
    return access.options("SASL_SSL", "SCRAM-SHA-256")


def trusting(access: Access, protocol: str, security_protocol: str) -> Options:
    """A client that trusts the broker, without a certificate or a login."""
    ca = access.certificates.path("ca.pem")
    return {**at(access, protocol), "security_protocol": security_protocol, "ssl_cafile": ca}


def with_key(access: Access, key: str) -> Options:
    """A client with alice's certificate and a key."""
    files = access.certificates
    own = {"ssl_certfile": files.path("alice.crt"), "ssl_keyfile": files.path(key)}
    return trusting(access, "SSL", "SSL") | own


def with_token(access: Access, **claims: Any) -> Options:
    """A client whose provider returns a token with these claims."""
    login = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": lambda: access.oidc.token("alice", **claims)}
    return trusting(access, "SASL_SSL", "SASL_SSL") | login


def without(options: Options, *names: str) -> Options:
    return {name: value for name, value in options.items() if name not in names}


class Unknown:
    """The client of a mechanism that no broker has."""

    mechanism = "X-CUSTOM"
    is_complete = False

    async def evaluate_challenge(self, _challenge: bytes) -> bytes:
        return b"x"


MISTAKES = {
    # the protocol of the port
    "plaintext at a TLS port": Mistake(
        lambda it: at(it, "SASL_SSL"), ConnectionFailed, "TLS", "set security_protocol=SSL or SASL_SSL"
    ),
    "plaintext at a port for client certificates": Mistake(
        lambda it: at(it, "SSL"), ConnectionFailed, "TLS", "set security_protocol=SSL or SASL_SSL"
    ),
    "no login at a SASL_PLAINTEXT port": Mistake(
        lambda it: at(it, "SASL_PLAINTEXT"),
        ConnectionFailed,
        "the port may require a login",
        r"set security_protocol=SASL_PLAINTEXT and sasl_mechanism",
    ),
    "no login at a SASL_SSL port": Mistake(
        lambda it: trusting(it, "SASL_SSL", "SSL"),
        ConnectionFailed,
        "the port may require a login",
        r"set security_protocol=SASL_SSL and sasl_mechanism",
    ),
    "TLS at a plaintext port": Mistake(
        lambda it: trusting(it, "PLAINTEXT", "SSL"),
        ConnectionFailed,
        "the port may expect plaintext",
        "set security_protocol=PLAINTEXT or SASL_PLAINTEXT",
    ),
    "TLS at a SASL_PLAINTEXT port": Mistake(
        lambda it: plain(it) | at(it, "SASL_PLAINTEXT"),
        ConnectionFailed,
        "the port may expect plaintext",
        "set security_protocol=PLAINTEXT or SASL_PLAINTEXT",
    ),
    "a login without TLS at a SASL_SSL port": Mistake(
        lambda it: it.options("SASL_PLAINTEXT", "PLAIN") | at(it, "SASL_SSL"),
        ConnectionFailed,
        "TLS",
        "set security_protocol=SSL or SASL_SSL",
    ),
    "a login at a plaintext port": Mistake(
        lambda it: it.options("SASL_PLAINTEXT", "PLAIN") | at(it, "PLAINTEXT"),
        AuthenticationFailed,
        "this port expects no SASL login",
        "set security_protocol to PLAINTEXT or SSL",
    ),
    "a login at a port for client certificates": Mistake(
        lambda it: plain(it) | at(it, "SSL") | {"ssl_keystore_location": it.certificates.path("alice.store.pem")},
        AuthenticationFailed,
        "this port expects no SASL login",
        "use the port of a SASL listener",
    ),
    # certificates of brokers
    "no truststore": Mistake(
        lambda it: without(plain(it), "ssl_cafile"),
        AuthenticationFailed,
        r"signed by an authority CN=aiokwire test CA that is not trusted",
        "set ssl_cafile",
    ),
    "another authority": Mistake(
        lambda it: plain(it) | {"ssl_cafile": it.certificates.path("another-ca.pem")},
        AuthenticationFailed,
        r"\(CN=broker\) is signed by an authority CN=aiokwire test CA that is not trusted",
        "set ssl_cafile",
    ),
    "another host name": Mistake(
        lambda it: plain(it) | {"bootstrap_servers": f"127.0.0.1:{it.ports['SASL_SSL']}"},
        AuthenticationFailed,
        r"is not for 127\.0\.0\.1; it is for localhost, kafka\.example",
        "connect by one of its names",
    ),
    "no common cipher suite": Mistake(
        lambda it: plain(it) | {"ssl_cipher_suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
        KafkaError,
        "cipher suite in common",
        r"ssl_cipher_suites|the broker's log has the reason",
    ),
    # certificates of clients
    "no client certificate": Mistake(
        lambda it: trusting(it, "SSL", "SSL"),
        AuthenticationFailed,
        r"requires? (?:one|a client certificate)",
        "set ssl_keystore_location",
    ),
    "no client certificate with TLS 1.2": Mistake(
        lambda it: trusting(it, "SSL", "SSL") | {"ssl_enabled_protocols": "TLSv1.2"},
        AuthenticationFailed,
        r"requires? (?:one|a client certificate)",
        "set ssl_keystore_location",
    ),
    "a client certificate of another authority": Mistake(
        lambda it: it.options("SSL") | {"ssl_keystore_location": it.certificates.path("stranger.store.pem")},
        AuthenticationFailed,
        "does not accept the client's certificate",
        "its truststore must contain the authority of the client's certificate",
        KAFKA,
    ),
    "a client certificate of another authority at the embedded broker": Mistake(
        lambda it: it.options("SSL") | {"ssl_keystore_location": it.certificates.path("stranger.store.pem")},
        AuthenticationFailed,
        "does not trust the authority that signed the client's certificate",
        "its truststore must contain",
        EMBEDDED,
    ),
    "an expired client certificate": Mistake(
        lambda it: it.options("SSL") | {"ssl_keystore_location": it.certificates.path("expired.store.pem")},
        ConfigurationError,
        r"CN=alice in ssl_keystore_location=.*expired\.store\.pem expired on .* GMT",
        "renew it",
    ),
    "the key of another certificate": Mistake(
        lambda it: with_key(it, "broker.key"),
        ConfigurationError,
        r"ssl_keyfile=.*broker\.key does not belong to the certificate of CN=alice",
        "must be the first one of the chain",
    ),
    "an encrypted key without a password": Mistake(
        lambda it: with_key(it, "alice.encrypted.key"), ConfigurationError, "is encrypted", "set ssl_key_password"
    ),
    "a wrong password of a key": Mistake(
        lambda it: with_key(it, "alice.encrypted.key") | {"ssl_key_password": "wrong-secret"},
        ConfigurationError,
        "the password of the private key in ssl_keyfile=.* is wrong",
        "ssl_key_password",
    ),
    "a wrong password of a key store": Mistake(
        lambda it: (
            it.options("SSL")
            | {"ssl_keystore_location": it.certificates.path("alice.p12"), "ssl_keystore_password": "wrong-secret"}
        ),
        ConfigurationError,
        r"alice\.p12: the password",
        "ssl_keystore_password is wrong",
    ),
    "a JKS key store": Mistake(
        lambda it: it.options("SSL") | {"ssl_keystore_type": "JKS"},
        ConfigurationError,
        "JKS files can be read by Java only",
        "keytool -importkeystore",
    ),
    "a missing file": Mistake(
        lambda it: plain(it) | {"ssl_cafile": "/nonexistent/ca.pem"},
        ConfigurationError,
        "/nonexistent/ca.pem: No such file",
        "check the path",
    ),
    # logins
    "a wrong password of PLAIN": Mistake(
        lambda it: plain(it) | {"sasl_plain_password": "wrong-secret"},
        AuthenticationFailed,
        "the login by PLAIN failed: Authentication failed: Invalid username or password",
        "check sasl_plain_username and sasl_plain_password",
    ),
    "a wrong password of SCRAM": Mistake(
        lambda it: scram(it) | {"sasl_plain_password": "wrong-secret"},
        AuthenticationFailed,
        "invalid credentials with SASL mechanism SCRAM-SHA-256",
        "check sasl_plain_username and sasl_plain_password",
    ),
    "an unknown user": Mistake(
        lambda it: scram(it) | {"sasl_plain_username": "carol"},
        AuthenticationFailed,
        "invalid credentials with SASL mechanism SCRAM-SHA-256",
        "that the user has SCRAM-SHA-256 credentials",
    ),
    "a wrong password at a release without SaslAuthenticate": Mistake(
        lambda it: plain(it) | {"sasl_plain_password": "wrong-secret"},
        AuthenticationFailed,
        "it closed the connection during the login by PLAIN",
        "check sasl_plain_username and sasl_plain_password",
        OLD,
    ),
    "a mechanism that the broker does not offer": Mistake(
        lambda it: (
            trusting(it, "SASL_SSL", "SASL_SSL")
            | {"sasl_mechanism": "X-CUSTOM", "sasl_client_factory": lambda _host: Unknown()}
        ),
        AuthenticationFailed,
        "it does not offer X-CUSTOM, but .*PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        "set sasl_mechanism to one of them",
    ),
    "no password": Mistake(
        lambda it: without(plain(it), "sasl_plain_password"),
        ConfigurationError,
        "needs sasl_plain_password",
        "set sasl_plain_username and sasl_plain_password",
    ),
    "no mechanism": Mistake(
        lambda it: without(plain(it), "sasl_mechanism"), ConfigurationError, "needs sasl_mechanism", "one of PLAIN"
    ),
    "a login without its protocol": Mistake(
        lambda it: without(plain(it), "security_protocol", "ssl_cafile"),
        ConfigurationError,
        "has no effect with security_protocol='PLAINTEXT'",
        'set security_protocol="SASL_SSL"',
    ),
    "an unknown protocol": Mistake(
        lambda it: plain(it) | {"security_protocol": "TLS"},
        ConfigurationError,
        "not 'TLS'",
        "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
    ),
    "a JAAS string that is cut": Mistake(
        lambda it: (
            trusting(it, "SASL_SSL", "SASL_SSL")
            | {"sasl_mechanism": "PLAIN", "sasl_jaas_config": "PlainLoginModule required username"}
        ),
        ConfigurationError,
        "does not end with a semicolon",
        'it must be: LoginModule required name="value" ...;',
    ),
    # tokens
    "a wrong client secret": Mistake(
        lambda it: (
            it.options("SASL_SSL", "OAUTHBEARER")
            | {"sasl_oauthbearer_client_credentials_client_secret": "wrong-secret"}
        ),
        AuthenticationFailed,
        r"/token responded with status 401 \(invalid_client: the client id or the secret is wrong\)",
        "check the client id and the client secret",
    ),
    "a wrong path of the token endpoint": Mistake(
        lambda it: (
            it.options("SASL_SSL", "OAUTHBEARER") | {"sasl_oauthbearer_token_endpoint_url": f"{it.oidc.issuer}/tokens"}
        ),
        AuthenticationFailed,
        "/tokens responded with status 404",
        "check the path of sasl_oauthbearer_token_endpoint_url",
    ),
    "a token endpoint that is down": Mistake(
        lambda it: (
            it.options("SASL_SSL", "OAUTHBEARER") | {"sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/token"}
        ),
        ConnectionFailed,
        "no OAuth token after .* attempts",
        r"http://127\.0\.0\.1:1/token: .*refused",
    ),
    "a token endpoint without TLS": Mistake(
        lambda it: (
            it.options("SASL_SSL", "OAUTHBEARER")
            | {"sasl_oauthbearer_token_endpoint_url": "http://login.example/token"}
        ),
        ConfigurationError,
        "http would send the client secret unencrypted",
        "must begin with https://",
    ),
    "an expired token": Mistake(
        lambda it: with_token(it, lifetime=-60.0, scope="kafka"),
        AuthenticationFailed,
        r"the OAuth token expired \d+ s before it arrived",
        "the clock of this host .* or the token provider returns an old token",
    ),
    "a token for another audience": Mistake(
        lambda it: with_token(it, audience="another", scope="kafka"),
        AuthenticationFailed,
        "the broker rejected the OAuth token: status 'invalid_token'",
        "check the token's issuer, audience",
    ),
    # Kerberos
    "a wrong service name": Mistake(
        lambda it: it.options("SASL_SSL", "GSSAPI") | {"sasl_kerberos_service_name": "kafkaa"},
        AuthenticationFailed,
        "Server kafkaa/localhost@AIOKWIRE.TEST not found",
        "check sasl_kerberos_service_name",
    ),
    "a missing keytab": Mistake(
        lambda it: it.options("SASL_SSL", "GSSAPI") | {"sasl_kerberos_keytab": "/nonexistent.keytab"},
        AuthenticationFailed,
        "sasl_kerberos_keytab '/nonexistent.keytab'",
        "check its path",
    ),
    "no ticket": Mistake(
        lambda it: without(it.options("SASL_SSL", "GSSAPI"), "sasl_kerberos_keytab", "sasl_kerberos_principal"),
        AuthenticationFailed,
        "Kerberos: .*[Nn]o .*credentials",
        "run kinit, or set sasl_kerberos_keytab",
    ),
}
CASES = [(broker, name) for name, mistake in MISTAKES.items() for broker in mistake.brokers]


@pytest.mark.parametrize(("broker_name", "name"), CASES, ids=[f"{broker}-{name}" for broker, name in CASES])
async def test_a_mistake_gives_one_error_with_its_cause_and_remedy(
    secure_brokers: Callable[[str], SecureServer],
    broker_name: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker, mistake = secure_brokers(broker_name), MISTAKES[name]
    if "Kerberos" in mistake.cause or "kerberos" in mistake.remedy:
        require_kerberos(broker)
        monkeypatch.setenv("KRB5_CONFIG", str(broker.access.kerberos_config))
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{broker.access.certificates.path('no-tickets')}")
    options: Options = {"bootstrap_timeout_ms": 500} | mistake.options(broker.access)
    with anyio.fail_after(PATIENCE), pytest.raises(mistake.error) as caught:
        async with Admin(**options) as admin:
            await admin.list_topics(timeout=PATIENCE)
    text = str(caught.value)
    assert re.search(mistake.cause, text), text
    assert re.search(mistake.remedy, text), text
    assert "\n" not in text
    assert "wrong-secret" not in text
    assert password("alice") not in text
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("aiokwire")]
    assert len(logged) <= 1, logged
