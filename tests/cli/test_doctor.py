"""`aiokwire doctor`: a line for each step, advice for each failure, and its exit status."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio
from click.testing import Result

from aiokwire.broker import Broker, Listener
from aiokwire.cli import probing
from aiokwire.cli.doctor import Report, examine
from aiokwire.cluster import ClientConfig
from tests.ports import ReservedPort
from tests.security import pki

Lines = Callable[..., Any]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Return what the doctor prints, each step as one line, and the count of failures."""

    async def examined(address: str, **options: Any) -> tuple[list[str], int]:
        report = Report()
        await examine(ClientConfig(bootstrap_servers=address, **options), report)
        printed = capsys.readouterr().out
        assert max(map(len, printed.splitlines())) <= 80
        return printed.replace("\n                    ", " ").splitlines(), report.failures

    return examined


@pytest.fixture
def unused() -> Iterator[str]:
    """The address of a port without a listener."""
    port = ReservedPort()
    yield f"127.0.0.1:{port.number}"
    port.release()


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    """The TLS of a server on loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.Files(tmp_path).store(pki.server()))
    return context


@asynccontextmanager
async def tls_port(context: ssl.SSLContext, port: int) -> AsyncIterator[str]:
    """A port with TLS in front of a plaintext broker."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, downstream = await asyncio.open_connection("127.0.0.1", port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forward, reader, downstream)
            tasks.start_soon(forward, upstream, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_healthy_broker_passes_every_step(lines: Lines) -> None:
    async with Broker() as broker:
        printed, failures = await lines(broker.bootstrap_servers)
    assert failures == 0
    steps = ["name", "port", "broker", "login", "metadata", "listener"]
    assert [line.split()[:2] for line in printed] == [["ok", step] for step in steps]
    assert "not required (no SASL)" in printed[3]
    assert "1 broker(s)" in printed[4]


async def test_a_port_without_a_listener_is_named(lines: Lines, unused: str) -> None:
    printed, failures = await lines(unused)
    assert failures == 1
    assert printed[-1].startswith("FAILED  port")
    assert "connection refused: no process listens there" in printed[-1]


async def test_a_name_that_does_not_resolve_is_named(lines: Lines) -> None:
    printed, failures = await lines("no-such-host.invalid:9092")
    assert failures == 1
    (line,) = printed
    assert line.startswith("FAILED  name")
    assert "check the spelling, and the DNS of this machine" in line


async def test_the_certificate_is_shown(lines: Lines, context: ssl.SSLContext, tmp_path: Path) -> None:
    async with Broker() as broker, tls_port(context, broker.port) as address:
        printed, failures = await lines(address, security_protocol="SSL", ssl_cafile=pki.Files(tmp_path).ca())
    tls = next(line for line in printed if " tls " in line)
    assert tls.startswith("ok")
    assert "TLSv1.3" in tls
    assert "127.0.0.1" in tls
    assert "valid until" in tls
    assert failures == 1, "the broker advertises its plaintext port"
    assert printed[-1].startswith("FAILED  listener")
    assert "advertised.listeners" in printed[-1]


async def test_a_certificate_of_an_unknown_authority_is_explained(
    lines: Lines, context: ssl.SSLContext, tmp_path: Path
) -> None:
    async with Broker() as broker, tls_port(context, broker.port) as address:
        printed, failures = await lines(address, security_protocol="SSL")
    assert failures == 1
    assert printed[-1].startswith("FAILED  tls")
    assert "not trusted" in printed[-1]
    assert "ssl_cafile" in printed[-1]


async def test_a_wrong_security_protocol_is_explained(lines: Lines, context: ssl.SSLContext) -> None:
    async with Broker() as broker:
        printed, failures = await lines(broker.bootstrap_servers, security_protocol="SSL")
        assert (failures, printed[-1][:11]) == (1, "FAILED  tls")
        assert "plaintext" in printed[-1]
        async with tls_port(context, broker.port) as address:
            printed, failures = await lines(address)
        assert (failures, printed[-1][:14]) == (1, "FAILED  broker")
        assert "SSL or SASL_SSL" in printed[-1] or "may expect TLS" in printed[-1]


async def test_a_missing_client_certificate_is_explained(lines: Lines, context: ssl.SSLContext, tmp_path: Path) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pki.Files(tmp_path).ca())
    async with Broker() as broker, tls_port(context, broker.port) as address:
        printed, failures = await lines(address, security_protocol="SSL", ssl_cafile=pki.Files(tmp_path).ca())
    assert failures == 1
    assert "set ssl_keystore_location, or ssl_certfile and ssl_keyfile" in printed[-1]


async def test_a_port_that_never_responds_is_named(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "STEP_SECONDS", 0.1)

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    silent = await asyncio.start_server(wait, "127.0.0.1", 0)
    printed, failures = await lines(f"127.0.0.1:{silent.sockets[0].getsockname()[1]}")
    silent.close()
    assert (failures, printed[-1][:14]) == (1, "FAILED  broker")
    assert "no response to ApiVersions" in printed[-1]


async def test_a_broker_without_sasl_is_explained(lines: Lines) -> None:
    async with Broker() as broker:
        printed, failures = await lines(
            broker.bootstrap_servers, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
            sasl_plain_username="alice", sasl_plain_password="wonder",
        )  # fmt: skip
    assert failures == 1
    assert printed[-1].startswith("FAILED")


@pytest_asyncio.fixture
async def secured() -> AsyncIterator[str]:
    """The address of a SASL listener with the user alice."""
    listener = Listener(protocol="SASL_PLAINTEXT", mechanisms=["SCRAM-SHA-256", "SCRAM-SHA-512"])
    async with Broker(listeners=[listener], users={"alice": "wonder"}) as broker:
        yield broker.bootstrap_servers


def login(mechanism: str = "SCRAM-SHA-512", password: str = "wonder") -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


async def test_a_login_is_shown_with_its_mechanism_and_user(lines: Lines, secured: str) -> None:
    printed, failures = await lines(secured, **login())
    assert failures == 0
    assert "ok      mechanisms  SCRAM-SHA-256, SCRAM-SHA-512" in printed
    assert "ok      login       SCRAM-SHA-512 as alice" in printed
    assert printed[-1].startswith("ok      listener")


async def test_a_login_that_is_missing_is_explained(lines: Lines, secured: str) -> None:
    printed, failures = await lines(secured)
    assert failures == 1
    assert "SASL_PLAINTEXT" in printed[-1], "the protocol to set"


async def test_a_wrong_password_and_a_mechanism_that_is_not_offered_are_explained(lines: Lines, secured: str) -> None:
    printed, failures = await lines(secured, **login(password="wrong"))
    assert (failures, printed[-1][:13]) == (1, "FAILED  login")
    assert "check sasl_plain_username and sasl_plain_password" in printed[-1]
    printed, failures = await lines(secured, **login("PLAIN"))
    assert (failures, printed[-1][:18]) == (1, "FAILED  mechanisms")
    assert "the broker offers SCRAM-SHA-256, SCRAM-SHA-512, not PLAIN" in printed[-1]


def test_the_exit_status_is_that_of_the_steps(run: Callable[..., Result], bootstrap: str, unused: str) -> None:
    healthy = run("doctor", bootstrap)
    assert (healthy.exit_code, healthy.stderr) == (0, "")
    assert healthy.stdout.count("ok ") == 6
    ill = run("doctor", unused)
    assert ill.exit_code == 1
    assert "Traceback" not in ill.output
    assert "FAILED" in ill.stdout
