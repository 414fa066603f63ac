"""No password or token is in a repr, a log line, an error, a hook's argument or a command's output.

Clients log in at an embedded broker, are rejected, or find a closed port; all texts are searched.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio

from aiokwire import Admin, Consumer, Hooks, Producer
from aiokwire.broker import Broker, Listener
from aiokwire.cluster import Client, ClientConfig
from aiokwire.errors import KafkaError
from aiokwire.security import Secret, new_login
from tests.ports import ReservedPort

SECRET = "s3cr3t-wonder"
WRONG = f"wrong-{SECRET}"
FORMS = (SECRET, base64.b64encode(SECRET.encode()).decode().rstrip("="), SECRET.encode().hex())
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
LIMITS: dict[str, Any] = {"bootstrap_timeout_ms": 3_000, "default_api_timeout_ms": 3_000}


def found_in(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


class Listening(Hooks):
    """Keeps the arguments of every hook as text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        return lambda *args, **named: self.texts.append(f"{name} {args!r} {named!r} {list(map(str, args))}")


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    options: Any = {"connection_failed_authentication_delay_ms": 0, "topics": {"orders": 1}}
    async with Broker(listeners=[Listener(protocol="SASL_PLAINTEXT")], users={"alice": SECRET}, **options) as running:
        yield running


@pytest.fixture
def closed_port() -> Iterator[str]:
    with ReservedPort() as port:
        yield f"127.0.0.1:{port.number}"


def login(address: str, mechanism: str, password: Any = SECRET) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
        **LIMITS,
    }


def texts_of(*objects: object) -> str:
    return "\n".join(f"{each!r} {each} {[*map(repr, getattr(each, '__dict__', {}).items())]}" for each in objects)


async def work(options: dict[str, Any], hooks: Hooks) -> str:
    """Produce and consume, and return the texts of every object."""
    async with (
        Producer(**options, hooks=hooks) as producer,
        Consumer("orders", **options, hooks=hooks, auto_offset_reset="earliest") as consumer,
        Admin(**options, hooks=hooks) as admin,
    ):
        await producer.send("orders", b"paid")
        await consumer.getone()
        await admin.describe_cluster()
        return texts_of(producer, consumer, admin, producer.config)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_login_shows_no_secret(mechanism: str, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    hooks = Listening()
    with caplog.at_level(logging.DEBUG):
        shown = await work(login(broker.bootstrap_servers, mechanism), hooks)
    assert hooks.texts
    assert caplog.text
    assert not found_in(
        "\n".join([shown, caplog.text, *hooks.texts, *(repr(each.__dict__) for each in caplog.records)])
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("port", ["refusing", "closed"])
async def test_a_failed_login_shows_no_secret(
    mechanism: str, port: str, broker: Broker, closed_port: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = broker.bootstrap_servers if port == "refusing" else closed_port
    hooks = Listening()
    with caplog.at_level(logging.DEBUG), pytest.raises(KafkaError) as raised:
        await work(login(address, mechanism, WRONG), hooks)
    error = raised.value
    text = "".join(traceback.format_exception(error))
    assert not found_in("\n".join([text, repr(error), repr(error.args), caplog.text, *hooks.texts]))


async def test_the_locals_of_a_traceback_show_no_secret(broker: Broker) -> None:
    """Error trackers send them, each as its `repr`."""
    for mechanism in MECHANISMS:
        with pytest.raises(KafkaError) as raised:
            async with Client(**login(broker.bootstrap_servers, mechanism, WRONG)):
                pass
        lines: list[str] = []
        error: BaseException | None = raised.value
        while error is not None:
            lines += traceback.TracebackException.from_exception(error, capture_locals=True).format()
            error = error.__cause__ or error.__context__
        ours = [frame for frame in lines if "test_secrets.py" not in frame]
        shown = [line for line in "".join(ours).splitlines() if found_in(line)]
        assert not shown, mechanism


async def test_what_a_provider_returns_is_hidden(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def vault() -> str:
        return SECRET

    async def wrong() -> tuple[str, Secret]:
        return "alice", Secret(WRONG)

    hooks = Listening()
    with caplog.at_level(logging.DEBUG):
        shown = await work(login(broker.bootstrap_servers, "PLAIN", vault), hooks)
        given = login(broker.bootstrap_servers, "SCRAM-SHA-256", None)
        options = {name: value for name, value in given.items() if not name.startswith("sasl_plain")}
        with pytest.raises(KafkaError) as raised:
            await work({**options, "sasl_credentials_provider": wrong}, hooks)
    assert not found_in(
        "\n".join([shown, caplog.text, *hooks.texts, "".join(traceback.format_exception(raised.value))])
    )


SECRETS: list[dict[str, Any]] = [
    login("localhost:1", "PLAIN"),
    {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": "https://login.example/token",
        "sasl_oauthbearer_client_credentials_client_id": "billing",
        "sasl_oauthbearer_client_credentials_client_secret": SECRET,
    },
    {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": lambda: SECRET,
    },
    {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "AWS_MSK_IAM",
        "sasl_aws_access_key_id": "AKIA",
        "sasl_aws_secret_access_key": SECRET,
        "sasl_aws_session_token": SECRET,
    },
    {
        "security_protocol": "SSL",
        "ssl_keystore_certificate_chain": "-----BEGIN CERTIFICATE-----",
        "ssl_keystore_key": SECRET,
        "ssl_key_password": SECRET,
        "ssl_truststore_location": "trust.p12",
        "ssl_truststore_password": SECRET,
    },
]


@pytest.mark.parametrize("options", SECRETS)
def test_no_text_of_a_config_or_a_login_shows_a_secret(options: dict[str, Any]) -> None:
    config = ClientConfig(**options)
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    shown = [texts_of(config), json.dumps(fields, default=str), str(fields), repr(dataclasses.replace(config))]
    if config.uses_tls:
        shown.append(texts_of(config.tls))
    if config.uses_sasl:
        shown.append(texts_of(new_login(config)))
    assert not found_in("\n".join(shown))


@pytest.mark.parametrize("arguments", [["topics", "list"], ["doctor"], ["consume", "orders", "-e"]])
@pytest.mark.parametrize("password", [SECRET, WRONG])
async def test_a_command_shows_no_secret(arguments: list[str], password: str, broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    file.write_text(
        f"bootstrap.servers={broker.bootstrap_servers}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={module} required username="alice" password="{password}";\n'
    )
    command = [sys.executable, "-m", "aiokwire", "-vv", *arguments, "--command-config", str(file)]
    result = await _run(command)
    assert (result.returncode == 0) == (password == SECRET), result.stderr
    assert result.stderr, "the log at DEBUG"
    assert not found_in(result.stdout + result.stderr)


async def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command; the broker of this loop serves it."""
    done = await anyio.run_process(command, check=False, env=dict(os.environ))
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())
