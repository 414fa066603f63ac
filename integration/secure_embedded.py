"""The embedded broker with TLS, SASL and ACLs in its own process, as `SecureKafka`.

Started as `python -m integration.secure_embedded`, it reads its options as JSON from the standard
input, serves until that is closed, and prints a line when it is ready. It reads its certificates
again for each further line.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread

from integration.kafka.secure import PROTOCOLS, USERS, Access, password
from integration.kafka.server import ServerFailed

_STOP_SECONDS = 20.0


class SecureEmbedded:
    """The embedded broker with a listener for each protocol. Its data is in memory."""

    version = "embedded"

    def __init__(self, *, reauth_ms: int = 0) -> None:
        self.access = Access()
        self._reauth_ms = reauth_ms
        self._process: subprocess.Popen[str] | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms of the SASL listeners."""
        return self.access.mechanisms

    @property
    def bootstrap_servers(self) -> str:
        """The address of the SASL_SSL listener."""
        return self.access.address("SASL_SSL")

    def start(self) -> None:
        """Start the process; return when the broker is ready.

        Raises:
            ServerFailed: it ended before.
        """
        self.access.oidc.start()
        self.access.start_kerberos()
        command = [sys.executable, "-m", "integration.secure_embedded"]
        environment = dict(os.environ)
        if self.access.kerberos is not None:
            environment["KRB5_CONFIG"] = str(self.access.kerberos_config)
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(self._options()) + "\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "ready":
            raise ServerFailed(f"the secure embedded broker ended with status {process.wait(_STOP_SECONDS)}")

    async def reload_certificates(self) -> None:
        """Let it use the current certificate and authorities for new connections."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("reload\n")
        process.stdin.flush()
        answer = await anyio.to_thread.run_sync(process.stdout.readline)
        if answer.strip() != "reloaded":
            raise ServerFailed(f"the secure embedded broker answered {answer!r}")

    def close(self) -> None:
        """Stop the process and delete the certificates."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate(timeout=_STOP_SECONDS)
        self.access.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _options(self) -> dict[str, Any]:
        certificates = self.access.certificates
        return {
            "listeners": {protocol: f"127.0.0.1:{self.access.ports[protocol]}" for protocol in PROTOCOLS},
            "advertised": {protocol: self.access.address(protocol) for protocol in PROTOCOLS},
            "users": {user: password(user) for user in USERS},
            "certificate": certificates.path("broker.store.pem"),
            "authority": certificates.path("ca.pem"),
            "configs": {
                "num.partitions": 4,
                "ssl.principal.mapping.rules": r"RULE:^.*CN=([^,]+).*$/$1/L,DEFAULT",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:alice;User:broker",
                "connections.max.reauth.ms": self._reauth_ms,
                "delegation.token.secret.key": "token-secret",
                "sasl.enabled.mechanisms": ",".join(self.mechanisms),
                "sasl.oauthbearer.jwks.endpoint.url": self.access.oidc.jwks_url,
                "sasl.oauthbearer.expected.audience": "kafka",
                "sasl.oauthbearer.expected.issuer": self.access.oidc.issuer,
                **self._kerberos_configs(),
            },
        }

    def _kerberos_configs(self) -> dict[str, str]:
        login = self.access.kerberos_login
        return {} if login is None else {"sasl.jaas.config": login, "sasl.kerberos.service.name": "kafka"}


async def _serve(options: dict[str, Any]) -> None:
    from aiokwire.broker import Broker, Listener
    from aiokwire.security import Secret, TlsOptions

    tls = TlsOptions(keystore_location=options["certificate"], truststore_location=options["authority"])
    listeners = [
        Listener(
            protocol=protocol,
            address=address,
            advertised=options["advertised"][protocol],
            tls=tls if protocol.endswith("SSL") else None,
            client_auth="required" if protocol == "SSL" else "none",
        )
        for protocol, address in options["listeners"].items()
    ]
    users = {user: Secret(text) for user, text in options["users"].items()}
    configs = {name.replace(".", "_"): value for name, value in options["configs"].items()}
    async with Broker(listeners=listeners, users=users, **configs) as broker:
        print("ready", flush=True)
        while await anyio.to_thread.run_sync(sys.stdin.readline):
            await broker.reload_tls()
            print("reloaded", flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.stdin.readline())))
