"""How verbs reach a cluster: files, profiles, the environment; no secrets as arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from aiokwire.cli.connection import connect_options, settings_options, source_connection
from aiokwire.cli.main import cli
from aiokwire.security import Secret

PASSWORD = "s3cr3t-wonder"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
JAVA = f"""
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={SCRAM} required username="alice" password="{PASSWORD}";
ssl.truststore.location=/etc/ca.pem
ssl.enabled.protocols=TLSv1.3
request.timeout.ms=7000
group.id=billing
"""
LOGIN = {"sasl_plain_username": "alice", "sasl_plain_password": Secret(PASSWORD)}

Options = Callable[..., dict[str, object]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of settings for this test only."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "aiokwire").mkdir()
    return tmp_path


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def found(*arguments: str, **variables: str) -> tuple[Result, dict[str, object]]:
    """Return what a verb with these arguments would connect with."""
    options: dict[str, object] = {}

    @click.command()
    @settings_options
    def verb() -> None:
        options.update(connect_options(), spark=source_connection())

    return CliRunner().invoke(verb, arguments, env=variables), options


def test_a_file_of_java_has_the_login(tmp_path: Path) -> None:
    result, options = found("--command-config", str(write(tmp_path / "client.properties", JAVA)))
    assert result.exit_code == 0, result.output
    spark = options.pop("spark")
    assert options == {
        "bootstrap_timeout_ms": 2000,
        "request_timeout_ms": 7000,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "ssl_truststore_location": "/etc/ca.pem",
        "ssl_enabled_protocols": ("TLSv1.3",),
        **LOGIN,
    }
    assert spark == {
        "kafka.request.timeout.ms": "7000",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.truststore.location": "/etc/ca.pem",
        "kafka.ssl.enabled.protocols": "TLSv1.3",
        "kafka.sasl.plain.username": "alice",
        "kafka.sasl.plain.password": PASSWORD,
    }


def test_a_profile_has_the_login(home: Path) -> None:
    write(
        home / "aiokwire/profiles.toml",
        '[prod]\nbootstrap_servers = ["a:1", "b:2"]\nsecurity_protocol = "SASL_SSL"\nsasl_mechanism = "PLAIN"\n'
        'sasl_plain_username = "alice"\nsasl_plain_password = "${env:PROD_PASSWORD}"\n',
    )
    result, options = found("--profile", "prod", PROD_PASSWORD=PASSWORD)
    assert result.exit_code == 0, result.output
    assert options["sasl_plain_password"] == Secret(PASSWORD)
    assert "bootstrap_servers" not in options, "it is the default of --bootstrap"


def test_the_environment_has_the_login(tmp_path: Path) -> None:
    variables = {
        "AIOKWIRE_SECURITY_PROTOCOL": "SASL_SSL",
        "AIOKWIRE_SASL_MECHANISM": "SCRAM-SHA-256",
        "AIOKWIRE_SASL_USERNAME": "alice",
        "AIOKWIRE_SSL_CAFILE": "/etc/ca.pem",
        "AIOKWIRE_SSL_CHECK_HOSTNAME": "false",
        "AIOKWIRE_SSL_KEYFILE": "",
    }
    file = write(tmp_path / "password", f"{PASSWORD}\n")
    for secret in ({"AIOKWIRE_SASL_PASSWORD": PASSWORD}, {"AIOKWIRE_SASL_PASSWORD_FILE": str(file)}):
        result, options = found(**variables, **secret)
        assert result.exit_code == 0, result.exception
        assert options.items() >= LOGIN.items()
        assert options["ssl_truststore_location"] == "/etc/ca.pem"
        assert options["ssl_endpoint_identification_algorithm"] == ""


def test_a_file_takes_the_place_of_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path / "client.properties", "client.id=from-the-file")
    result, options = found("--command-config", str(file), AIOKWIRE_SECURITY_PROTOCOL="SSL")
    assert result.exit_code == 0
    assert options.pop("spark") == {"kafka.client.id": "from-the-file"}
    assert options == {"bootstrap_timeout_ms": 2000, "client_id": "from-the-file"}


def test_verbs_use_the_addresses_of_a_file_or_a_profile(bootstrap: str, home: Path) -> None:
    file = write(home / "client.properties", f"bootstrap.servers={bootstrap}\n")
    write(home / "aiokwire/profiles.toml", f'[here]\nbootstrap_servers = "{bootstrap}"\n')
    wrong = {"AIOKWIRE_BOOTSTRAP": "127.0.0.1:1"}
    for arguments in (
        ("topics", "list", "--command-config", str(file)),
        ("--command-config", str(file), "topics", "list"),
        ("topics", "--profile", "here", "list"),
        ("--profile", "here", "topics", "list", "--profile", "here"),
    ):
        result = CliRunner().invoke(cli, arguments, env=wrong)
        assert result.exit_code == 0, (arguments, result.output)
        assert "orders" in result.stdout
    refused = CliRunner().invoke(cli, ["topics", "list", "--profile", "here", "-b", "127.0.0.1:1"])
    assert refused.exit_code == 1
    assert "127.0.0.1:1" in refused.stderr


def test_mistakes_are_reported_with_advice(home: Path) -> None:
    profiles = home / "aiokwire/profiles.toml"

    def failed(*arguments: str, **variables: str) -> str:
        result = CliRunner().invoke(cli, ["topics", "list", *arguments], env=variables)
        assert result.exit_code in (1, 2)
        assert PASSWORD not in result.output
        return " ".join(result.stderr.split())

    assert "profiles.toml cannot be read: No such file or directory" in failed("--profile", "prod")
    write(profiles, f'[prod]\nsasl_plain_password = "{PASSWORD}"\n', 0o644)
    assert "can be read or changed by other users (mode 0644); run: chmod 600" in failed("--profile", "prod")
    profiles.chmod(0o600)
    assert "has no profile [test]; profiles: prod" in failed("--profile", "test")
    assert 'set security_protocol="SASL_SSL"' in failed("--profile", "prod")
    write(profiles, "[prod\n")
    assert "is not TOML" in failed("--profile", "prod")
    assert "cannot be read: No such file" in failed("--command-config", "/no/such/file")
    file = write(home / "a.properties", f"sasl.pasword={PASSWORD}")
    assert "has no option 'sasl.pasword'; did you mean 'sasl_password'?" in failed("--command-config", str(file))
    write(profiles, "[prod]\n[other]\n")
    write(file, "client.id=a")
    assert "give --command-config or --profile, not both" in failed("--profile", "prod", "--command-config", str(file))
    assert "AIOKWIRE_SASL_MECHANISMUS is not an option" in failed(AIOKWIRE_SASL_MECHANISMUS="PLAIN")
    assert "AIOKWIRE_SASL_PASSWORD_FILE: /no/such cannot be read" in failed(AIOKWIRE_SASL_PASSWORD_FILE="/no/such")


@pytest.mark.parametrize("name", ["sasl_password", "sasl.plain.password", "sasl.jaas.config", "ssl.key.password"])
def test_a_password_on_the_command_line_is_refused(name: str) -> None:
    for verb in (("produce", "orders", "--set"), ("spark", "archive", "orders", "--to", "x", "--option")):
        prefix = "kafka." if verb[0] == "spark" else ""
        result = CliRunner().invoke(cli, [*verb, f"{prefix}{name}={PASSWORD}"])
        assert result.exit_code == 2
        message = " ".join(result.stderr.replace("\u2502", " ").split())
        assert "on the command line can be read by other users" in message
        assert PASSWORD not in result.output
