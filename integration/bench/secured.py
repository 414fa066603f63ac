"""Kafka with a PLAINTEXT, an SSL and a SASL_SSL listener, to compare clients over each of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import admin

from aiokwire.security import CertificateAuthority
from integration.kafka import RealKafka
from integration.kafka.server import free_port

USER, PASSWORD = "alice", "alice-secret"
PROTOCOLS = ("SSL", "SASL_SSL")


class SecuredKafka(RealKafka):
    """Kafka 4.3.1 at full speed with the three listeners and one SCRAM user."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        super().__init__("4.3.1", settings=settings, full_speed=True)
        self._ports = {protocol: free_port() for protocol in PROTOCOLS}

    @property
    def cafile(self) -> Path:
        """The authority's certificate."""
        return self._home / "ca.pem"

    def way(self, protocol: str) -> dict[str, Any]:
        """Return the fields of a `Job` for a listener; "": the PLAINTEXT one."""
        if not protocol:
            return {"bootstrap": self.bootstrap_servers}
        login = {"username": USER, "password": PASSWORD} if protocol == "SASL_SSL" else {}
        bootstrap = f"localhost:{self._ports[protocol]}"
        return {"bootstrap": bootstrap, "security": protocol, "cafile": str(self.cafile), **login}

    def start(self) -> None:
        super().start()
        types: Any = admin  # which does not list them for type checkers
        info = types.ScramCredentialInfo(types.ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = types.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        client = admin.AdminClient({"bootstrap.servers": self.bootstrap_servers})
        client.alter_user_scram_credentials([upsertion])[USER].result(30)

    def _kraft_settings(self) -> dict[str, object]:
        settings = super()._kraft_settings()
        authority = CertificateAuthority.create()
        self.cafile.write_text(authority.certificate_pem)
        store = self._home / "server.pem"
        store.write_text(authority.server().store_pem)
        names = [f"{protocol}://127.0.0.1:{port}" for protocol, port in self._ports.items()]
        advertised = [f"{protocol}://localhost:{port}" for protocol, port in self._ports.items()]
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return {
            **settings,
            "listeners": ",".join([str(settings["listeners"]), *names]),
            "advertised.listeners": ",".join([str(settings["advertised.listeners"]), *advertised]),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": store,
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{module} required;",
        }
