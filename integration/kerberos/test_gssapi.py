"""GSSAPI against a KDC: client and server of this package, and each mistake names its remedy."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from aiokafka.conn import SaslGSSAPIAuthenticator  # type: ignore[import-untyped]

from aiokwire import Producer
from aiokwire.broker import Broker, Listener
from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed, KafkaError
from aiokwire.security import SecurityConfig, new_login
from aiokwire.security.gssapi import GssapiClient, GssapiServer, KerberosOptions, require_gssapi
from integration.kafka import MissingPrerequisite
from integration.kafka.secure_kerberos import REALM, Kerberos
from integration.kafka.server import free_port
from tests.security.exchanges import exchange


class Realm(Kerberos):
    """The realm of secure Kafka; tickets of bob are valid for a second."""

    def start(self) -> None:
        super().start()
        self._administer("modprinc -maxlife 1second bob")


@pytest.fixture(scope="module")
def kdc() -> Iterator[Realm]:
    try:
        require_gssapi()
        found = Realm(free_port())
    except (MissingPrerequisite, ConfigurationError) as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))
    with closing(found):
        found.start()
        yield found


@pytest.fixture(autouse=True)
def _environment(kdc: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.cache}")
    kdc.cache.unlink(missing_ok=True)


def with_keytab(kdc: Realm, name: str = "alice", **more: str) -> KerberosOptions:
    return KerberosOptions(keytab=str(kdc.keytab(name)), principal=name, **more)


def server(kdc: Realm, name: str = "broker") -> GssapiServer:
    return GssapiServer(str(kdc.keytab(name)))


async def test_a_keytab_logs_in(kdc: Realm) -> None:
    broker = server(kdc)
    await exchange(GssapiClient("localhost", with_keytab(kdc)), broker)
    assert (broker.authorization_id, broker.principal) == ("alice", f"alice@{REALM}")
    assert not kdc.cache.exists(), "the ticket cache is left alone"


async def test_two_users_of_one_process_log_in_with_their_own_keytabs(kdc: Realm) -> None:
    for name in ("alice", "bob", "alice"):
        broker = server(kdc)
        await exchange(GssapiClient("localhost", with_keytab(kdc, name)), broker)
        assert broker.authorization_id == name


async def test_a_keytab_without_a_principal_uses_its_first(kdc: Realm) -> None:
    broker = server(kdc)
    await exchange(GssapiClient("localhost", KerberosOptions(keytab=str(kdc.keytab("bob")))), broker)
    assert broker.authorization_id == "bob"


@pytest.mark.parametrize("principal", ["", "alice", f"alice@{REALM}"])
async def test_a_ticket_of_kinit_logs_in(kdc: Realm, principal: str) -> None:
    kdc.log_in("alice")
    broker = server(kdc)
    await exchange(GssapiClient("localhost", KerberosOptions(principal=principal)), broker)
    assert broker.authorization_id == "alice"


async def test_the_options_of_a_client_log_in(kdc: Realm) -> None:
    config = SecurityConfig(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_domain_name="localhost",
        sasl_kerberos_keytab=str(kdc.keytab("alice")),
        sasl_kerberos_principal="alice",
    )
    broker = server(kdc)
    await exchange(await new_login(config).new_client("10.0.0.1"), broker)
    assert broker.authorization_id == "alice"


async def test_a_producer_logs_in_at_the_embedded_broker(kdc: Realm) -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule required"
    broker = Broker(
        listeners=[Listener(address="localhost:0", protocol="SASL_PLAINTEXT", mechanisms=["GSSAPI"])],
        sasl_jaas_config=f'{module} useKeyTab=true keyTab="{kdc.keytab("broker")}";',
        topics={"t": 1},
    )
    async with broker:
        producer = Producer(
            broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_keytab=str(kdc.keytab("alice")),
            sasl_kerberos_principal="alice",
        )
        async with producer:
            assert (await producer.send("t", b"x")).offset == 0


async def test_aiokafka_logs_in_as_its_principal_whatever_it_requests(kdc: Realm) -> None:
    """It sends the broker's principal as its authorization id."""
    kdc.log_in("alice")
    peer = SaslGSSAPIAuthenticator(loop=asyncio.get_running_loop(), principal="kafka@localhost")
    broker = server(kdc)
    challenge = None
    while (step := await peer.step(challenge)) is not None:
        challenge = await broker.evaluate_response(step[0])
    assert broker.authorization_id == "alice"


async def test_the_client_refuses_a_changed_message(kdc: Realm) -> None:
    """Of the broker's two messages, one byte each."""
    for number in (1, 3):

        def network(at: int, message: bytes, changed: int = number) -> bytes:
            return message[:-1] + bytes([message[-1] ^ 1]) if at == changed and message else message

        with pytest.raises(AuthenticationFailed, match="Kerberos"):
            await exchange(GssapiClient("localhost", with_keytab(kdc)), server(kdc), network=network)


@pytest.mark.parametrize("message", [b"", b"x", b"\x60\x82" + b"x" * 300, b"x" * 70_000])
async def test_the_server_refuses_nonsense(kdc: Realm, message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        await server(kdc).evaluate_response(message)


async def first_step(options: KerberosOptions, host: str = "localhost") -> str:
    with pytest.raises(KafkaError) as caught:
        await GssapiClient(host, options).evaluate_challenge(b"")
    assert isinstance(caught.value, AuthenticationFailed)
    return str(caught.value)


async def test_no_ticket_names_kinit_and_the_keytab(kdc: Realm) -> None:
    assert "no ticket: run kinit, or set sasl_kerberos_keytab" in await first_step(KerberosOptions())
    assert "no ticket: run kinit" in await first_step(KerberosOptions(principal="alice"))


async def test_a_missing_keytab_names_it(kdc: Realm, tmp_path: Path) -> None:
    options = KerberosOptions(keytab=str(tmp_path / "none.keytab"), principal="alice")
    assert "none.keytab' cannot be read: check its path and permissions" in await first_step(options)


async def test_a_principal_that_the_keytab_does_not_have_is_named(kdc: Realm) -> None:
    options = KerberosOptions(keytab=str(kdc.keytab("alice")), principal="carol")
    text = await first_step(options)
    assert "sasl_kerberos_principal" in text or "klist -k" in text


async def test_an_unknown_broker_names_the_service_and_the_host(kdc: Realm) -> None:
    text = await first_step(with_keytab(kdc, service_name="unknown"))
    assert "check sasl_kerberos_service_name and the broker's host name" in text
    assert "sasl_kerberos_domain_name" in await first_step(with_keytab(kdc, domain_name="elsewhere.example"))


async def test_a_broker_with_another_key_is_refused(kdc: Realm) -> None:
    broker = server(kdc, "alice")
    with pytest.raises(AuthenticationFailed, match="keytab"):
        await exchange(GssapiClient("localhost", with_keytab(kdc)), broker)
    assert broker.authorization_id == ""


async def test_an_expired_ticket_names_kinit(kdc: Realm) -> None:
    kdc.log_in("bob")
    await anyio.sleep(2.5)
    assert "run kinit" in await first_step(KerberosOptions())


async def test_an_unreachable_kdc_may_pass(
    kdc: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port_factory: Callable[[], int]
) -> None:
    config = tmp_path / "krb5.conf"
    config.write_text(kdc.config.read_text().replace(f":{kdc.port}", f":{unused_tcp_port_factory()}"))
    monkeypatch.setenv("KRB5_CONFIG", str(config))
    keytab = shutil.copy(kdc.keytab("alice"), tmp_path / "copy.keytab")  # no ticket of it is in memory
    with pytest.raises(ConnectionFailed, match="no KDC can be reached"):
        await GssapiClient("localhost", KerberosOptions(keytab=str(keytab))).evaluate_challenge(b"")
