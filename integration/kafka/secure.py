"""Kafka with TLS, SASL and ACLs, and its certificates, OpenID provider and KDC, on loopback.

The users are alice (may do everything) and bob (may do nothing); their passwords are NAME-secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import anyio

from aiokwire import Admin
from aiokwire.admin import ConfigResource, ResourceType
from aiokwire.errors import InvalidRequestError
from integration.kafka.fetch import MissingPrerequisite
from integration.kafka.secure_files import PASSWORD, Certificates
from integration.kafka.secure_kerberos import REALM, Kerberos
from integration.kafka.secure_oidc import OidcProvider
from integration.kafka.server import RealKafka, free_port

USERS = ("admin", "alice", "bob")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL", "PLAINTEXT")
_OLD = "0.10.2.2"
_APPLIED = 20.0  # seconds within which the broker applies a change of its configs

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


def password(user: str) -> str:
    """Return the password of a user, and the secret of an OAuth client."""
    return f"{user}-secret"


class Access:
    """The addresses of a secure broker's listeners, and what clients need to log in there."""

    def __init__(self) -> None:
        self.certificates = Certificates()
        self.oidc = OidcProvider({user: password(user) for user in USERS})
        self.kerberos: Kerberos | None = None
        self.lacks_kerberos = ""  # why GSSAPI is missing
        self.ports = {protocol: free_port() for protocol in PROTOCOLS}

    def address(self, protocol: str) -> str:
        """Return the address of a protocol's listener."""
        return f"localhost:{self.ports[protocol]}"

    def options(self, protocol: str, mechanism: str = "", user: str = "alice") -> dict[str, Any]:
        """Return the options of a client for a listener, with the credentials of a user."""
        options: dict[str, Any] = {"bootstrap_servers": self.address(protocol), "security_protocol": protocol}
        if protocol.endswith("SSL"):
            options["ssl_cafile"] = self.certificates.path("ca.pem")
        if protocol == "SSL":
            options["ssl_keystore_location"] = self.certificates.path(f"{user}.store.pem")
        return options | self._credentials(mechanism, user)

    def _credentials(self, mechanism: str, user: str) -> dict[str, Any]:
        if not mechanism:
            return {}
        options: dict[str, Any] = {"sasl_mechanism": mechanism}
        if mechanism == "GSSAPI":
            assert self.kerberos is not None
            return options | {
                "sasl_kerberos_keytab": str(self.kerberos.keytab(user)),
                "sasl_kerberos_principal": f"{user}@{REALM}",
            }
        if mechanism == "OAUTHBEARER":
            return options | {
                "sasl_oauthbearer_token_endpoint_url": self.oidc.token_url,
                "sasl_oauthbearer_scope": "kafka",
                "sasl_oauthbearer_client_credentials_client_id": user,
                "sasl_oauthbearer_client_credentials_client_secret": password(user),
            }
        return options | {"sasl_plain_username": user, "sasl_plain_password": password(user)}

    @property
    def kerberos_config(self) -> Path:
        """The realm's configuration: KRB5_CONFIG of its clients."""
        assert self.kerberos is not None
        return self.kerberos.config

    @property
    def kerberos_login(self) -> str | None:
        """The broker's login by its keytab, as a JAAS string; None without a KDC."""
        if self.kerberos is None:
            return None
        return f'{_KRB5} keyTab="{self.kerberos.keytab("broker")}" principal="kafka/localhost@{REALM}";'

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """All mechanisms; GSSAPI only if the KDC is running."""
        return MECHANISMS if self.kerberos is not None else MECHANISMS[:-1]

    def start_kerberos(self) -> None:
        """Start a KDC; `lacks_kerberos` is why there is none."""
        kerberos: Kerberos | None = None
        try:
            kerberos = Kerberos(free_port())
            kerberos.start()
        except MissingPrerequisite as missing:
            self.lacks_kerberos = str(missing)
            if kerberos is not None:
                kerberos.close()
        else:
            self.kerberos = kerberos

    def close(self) -> None:
        """Stop the provider and the KDC; delete the certificates."""
        if self.kerberos is not None:
            self.kerberos.close()
        self.oidc.close()
        self.certificates.close()


class SecureServer(Protocol):
    """A secure broker in another process, as scenarios need it."""

    access: Access
    version: str

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms of the SASL listeners."""

    def start(self) -> None:
        """Start it; return when it responds."""

    async def reload_certificates(self) -> None:
        """Let it use the current certificate and authorities for new connections."""

    def close(self) -> None:
        """Stop it and delete its data."""


class SecureKafka:
    """A release of Kafka with a listener for each protocol, and an interface as `RealKafka`.

    Kafka 4.3.1 has five mechanisms (GSSAPI only where a KDC is available), client certificates at
    the SSL listener, and ACLs. Kafka 0.10.2.2 has TLS and PLAIN. `reauth_ms` is
    `connections.max.reauth.ms`.
    """

    def __init__(self, version: str = "4.3.1", *, reauth_ms: int = 0) -> None:
        self.version = version
        self.access = Access()
        self._reauth_ms = reauth_ms
        self._server: RealKafka | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms of the SASL listeners."""
        if self.version == _OLD:
            return ("PLAIN",)
        return self.access.mechanisms

    @property
    def bootstrap_servers(self) -> str:
        """The address of the SASL_SSL listener."""
        return self.access.address("SASL_SSL")

    # processes

    def start(self) -> None:
        """Start the provider, the KDC and the broker; return when it responds.

        Raises:
            MissingPrerequisite: Java or the jars are missing.
            ServerFailed: the broker did not start.
        """
        try:
            self.access.oidc.start()
            if self.version != _OLD:
                self.access.start_kerberos()
            self._server = self._new_server()
            self._server.start()
        except BaseException:
            self.close()
            raise

    async def reload_certificates(self) -> None:
        """Let it use the current certificate and authorities for new connections (KIP-226).

        The files have other paths than before: Kafka need not read a file again whose path stays.
        The authorities come first: it checks that they have issued the certificate, and applies a
        change some time after its response.
        """
        files = self.access.certificates
        trust, own = files.copied("ca.pem"), files.copied("broker.store.pem")
        async with Admin(**self.access.options("SASL_PLAINTEXT", "PLAIN")) as admin:
            for name, path in (("truststore", trust), ("keystore", own)):
                changes = {f"listener.name.{one}.ssl.{name}.location": path for one in ("sasl_ssl", "ssl")}
                await _altered(admin, {ConfigResource(ResourceType.BROKER, "1"): changes})

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self._running.kill()

    def stop(self) -> int:
        """Stop the broker with SIGTERM; return its exit status."""
        return self._running.stop()

    def freeze(self) -> None:
        """Suspend the broker's process until `thaw()`."""
        self._running.freeze()

    def thaw(self) -> None:
        """Resume the broker's process."""
        self._running.thaw()

    def restart(self) -> None:
        """Start the broker again on the same ports and data."""
        self._running.restart()

    def close(self) -> None:
        """Stop everything and delete the data."""
        if self._server is not None:
            self._server.close()
        self.access.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _running(self) -> RealKafka:
        assert self._server is not None, "the broker was not started"
        return self._server

    # settings

    def _new_server(self) -> RealKafka:
        if self.version == _OLD:
            return RealKafka(
                _OLD,
                settings=self._old_settings(),
                port=self.access.ports["PLAINTEXT"],
                jvm_options=self._old_jvm_options(),
            )
        urls = f"{self.access.oidc.jwks_url},{self.access.oidc.token_url}"
        jvm_options = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"]
        if self.access.kerberos is not None:
            jvm_options.append(f"-Djava.security.krb5.conf={self.access.kerberos.config}")
        users = [
            f"{mechanism}=[name={user},password={password(user)}]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for user in USERS
        ]
        format_options = [part for user in users for part in ("--add-scram", user)]
        return RealKafka(
            self.version,
            settings=self._settings(),
            port=self.access.ports["PLAINTEXT"],
            jvm_options=jvm_options,
            format_options=format_options,
        )

    def _listeners(self, host: str) -> str:
        return ",".join(f"{protocol}://{host}:{port}" for protocol, port in self.access.ports.items())

    def _settings(self) -> Mapping[str, object]:
        controller = free_port()
        protocols = ",".join(f"{protocol}:{protocol}" for protocol in PROTOCOLS)
        return {
            "controller.quorum.voters": f"1@localhost:{controller}",
            "listeners": f"{self._listeners('127.0.0.1')},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": self._listeners("localhost"),
            "listener.security.protocol.map": f"{protocols},CONTROLLER:SSL",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.access.certificates.path("broker.store.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.access.certificates.path("ca.pem"),
            "ssl.client.auth": "none",
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": r"RULE:^.*CN=([^,]+).*$/$1/L,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:alice;User:broker",
            "allow.everyone.if.no.acl.found": "false",
            "connections.max.reauth.ms": self._reauth_ms,
            "delegation.token.secret.key": "token-secret",
            "sasl.kerberos.service.name": "kafka",
            **self._mechanisms_of("sasl_ssl"),
            **self._mechanisms_of("sasl_plaintext"),
        }

    def _mechanisms_of(self, listener: str) -> Mapping[str, object]:
        prefix = f"listener.name.{listener}"
        oauth = f"{prefix}.oauthbearer"
        settings: dict[str, object] = {
            f"{prefix}.sasl.enabled.mechanisms": ",".join(self.mechanisms),
            f"{prefix}.plain.sasl.jaas.config": _plain_jaas(),
            f"{prefix}.scram-sha-256.sasl.jaas.config": _SCRAM,
            f"{prefix}.scram-sha-512.sasl.jaas.config": _SCRAM,
            f"{oauth}.sasl.jaas.config": _OAUTH,
            f"{oauth}.sasl.server.callback.handler.class": _VALIDATOR,
            f"{oauth}.sasl.oauthbearer.jwks.endpoint.url": self.access.oidc.jwks_url,
            f"{oauth}.sasl.oauthbearer.expected.audience": "kafka",
            f"{oauth}.sasl.oauthbearer.expected.issuer": self.access.oidc.issuer,
        }
        if self.access.kerberos_login is not None:
            settings[f"{prefix}.gssapi.sasl.jaas.config"] = self.access.kerberos_login
        return settings

    def _old_settings(self) -> Mapping[str, object]:
        return {
            "listeners": self._listeners("127.0.0.1"),
            "advertised.listeners": self._listeners("localhost"),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": self.access.certificates.path("broker.p12"),
            "ssl.keystore.password": PASSWORD.reveal(),
            "ssl.key.password": PASSWORD.reveal(),
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": self.access.certificates.path("trust.p12"),
            "ssl.truststore.password": PASSWORD.reveal(),
            "ssl.client.auth": "none",
            "ssl.enabled.protocols": "TLSv1.2",
            "sasl.enabled.mechanisms": "PLAIN",
            "offsets.topic.replication.factor": 1,
        }

    def _old_jvm_options(self) -> list[str]:
        jaas = self.access.certificates.home / "jaas.conf"
        jaas.write_text(f"KafkaServer {{\n {_plain_jaas()}\n}};\n")
        return [f"-Djava.security.auth.login.config={jaas}", "-Dzookeeper.sasl.client=false"]


async def _altered(admin: Admin, changes: dict[ConfigResource, dict[str, str]]) -> None:
    """Alter configs; retry while the broker rejects them because of earlier ones."""
    end = anyio.current_time() + _APPLIED
    while True:
        try:
            (await admin.alter_configs(changes)).check()
        except InvalidRequestError:
            if anyio.current_time() > end:
                raise
            await anyio.sleep(0.1)
        else:
            return


def _plain_jaas() -> str:
    """Return the users of PLAIN."""
    users = " ".join(f'user_{user}="{password(user)}"' for user in USERS)
    return f'{_PLAIN} username="admin" password="{password("admin")}" {users};'
