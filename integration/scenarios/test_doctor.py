"""`aiokwire doctor` at each listener of the secure brokers, with right and with wrong settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import pytest

from aiokwire.cli.doctor import WIDTH, Report, examine
from aiokwire.cluster import ClientConfig
from integration.conftest import require_kerberos
from integration.kafka.secure import MECHANISMS, Access, SecureServer
from integration.scenarios.common import PATIENCE

Options = dict[str, Any]
WAYS = [("SSL", ""), ("PLAINTEXT", ""), ("SASL_PLAINTEXT", "SCRAM-SHA-256"), *(("SASL_SSL", one) for one in MECHANISMS)]


async def diagnosis(options: Options, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str]]:
    """Return status, step and text of each step that the doctor prints."""
    with anyio.fail_after(PATIENCE):
        await examine(ClientConfig(**options), Report())
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= WIDTH, printed
    steps = re.sub(r"\n {2,}", " ", printed).splitlines()
    return [(line[:7].strip(), line[8:19].strip(), line[20:]) for line in steps]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS, ids=["-".join(way).rstrip("-") for way in WAYS])
async def test_every_listener_is_healthy(
    secure_broker: SecureServer,
    protocol: str,
    mechanism: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if mechanism == "GSSAPI":
        require_kerberos(secure_broker)
        monkeypatch.setenv("KRB5_CONFIG", str(secure_broker.access.kerberos_config))
    found = await diagnosis(secure_broker.access.options(protocol, mechanism), capsys)
    assert {status for status, _, _ in found} == {"ok"}
    steps = ["name", "port", "tls", "broker", "mechanisms", "login", "metadata", "listener"]
    lacking = {"tls": not protocol.endswith("SSL"), "mechanisms": not mechanism}
    assert [step for _, step, _ in found] == [step for step in steps if not lacking.get(step)]


class Ill(NamedTuple):
    """Wrong options of a client, the step that fails, and what the line must contain."""

    options: Callable[[Access], Options]
    step: str
    advice: str


def trusting(access: Access, protocol: str, security_protocol: str) -> Options:
    """A client that trusts the broker, without a certificate or a login."""
    ca = access.certificates.path("ca.pem")
    return {"bootstrap_servers": access.address(protocol), "security_protocol": security_protocol, "ssl_cafile": ca}


def plain(access: Access, **changes: str) -> Options:
    return access.options("SASL_SSL", "PLAIN") | changes


ILL = {
    "plaintext at a TLS port": Ill(
        lambda it: {"bootstrap_servers": it.address("SASL_SSL")}, "broker", "SSL or SASL_SSL|expect TLS"
    ),
    "TLS at a plaintext port": Ill(lambda it: trusting(it, "PLAINTEXT", "SSL"), "tls", "PLAINTEXT"),
    "no client certificate": Ill(lambda it: trusting(it, "SSL", "SSL"), "broker", "set ssl_keystore_location"),
    "another authority": Ill(
        lambda it: plain(it, ssl_cafile=it.certificates.path("another-ca.pem")), "tls", "CN=aiokwire test CA that"
    ),
    "another host name": Ill(
        lambda it: plain(it, bootstrap_servers=f"127.0.0.1:{it.ports['SASL_SSL']}"), "tls", "it is for localhost"
    ),
    "a wrong password": Ill(
        lambda it: plain(it, sasl_plain_password="wrong-secret"), "login", "check sasl_plain_username"
    ),
    "a mechanism that the broker does not offer": Ill(
        lambda it: plain(it, sasl_mechanism="AWS_MSK_IAM", sasl_aws_region="eu-west-1"),
        "mechanisms",
        "set sasl_mechanism to one of them",
    ),
    "a login at a plaintext port": Ill(
        lambda it: it.options("SASL_PLAINTEXT", "PLAIN") | {"bootstrap_servers": it.address("PLAINTEXT")},
        "mechanisms",
        "use the port of a SASL listener",
    ),
    "no login at a SASL port": Ill(
        lambda it: trusting(it, "SASL_SSL", "SSL"), "metadata", "set security_protocol=SASL_SSL and sasl_mechanism"
    ),
    "a wrong client secret": Ill(
        lambda it: (
            it.options("SASL_SSL", "OAUTHBEARER")
            | {"sasl_oauthbearer_client_credentials_client_secret": "wrong-secret"}
        ),
        "login",
        "check the client id and the client secret",
    ),
}


@pytest.mark.parametrize("name", ILL)
async def test_the_first_wrong_setting_is_named_with_its_remedy(
    secure_broker: SecureServer, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ill = ILL[name]
    options = ill.options(secure_broker.access)
    if options.get("sasl_mechanism") == "AWS_MSK_IAM":
        del options["sasl_plain_username"], options["sasl_plain_password"]
    found = await diagnosis(options, capsys)
    (failed,) = [line for line in found if line[0] != "ok"]
    assert failed[:2] == ("FAILED", ill.step)
    assert re.search(ill.advice, failed[2]), failed
    assert found[-1] == failed, "the steps after a failure are left out"
    assert "wrong-secret" not in str(found)
