"""Properties files, JAAS strings and placeholders, as the Java client reads them."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.cluster import ClientConfig
from aiokwire.errors import ConfigurationError
from aiokwire.security import Secret, parse_properties, resolve
from aiokwire.security.jaas import parse_jaas

PASSWORD = "s3cr3t-wonder"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
AWS = "software.amazon.msk.auth.iam.IAMLoginModule"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=1\nb:2\nc 3", {"a": "1", "b": "2", "c": "3"}),
        ("a = 1 \r\n\tb : 2\rc   3", {"a": "1 ", "b": "2", "c": "3"}),
        ("# a=1\n  ! b=2\n\n c=3", {"c": "3"}),
        ("a=one \\\n   two\\\n\tthree", {"a": "one twothree"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        (r"a\ b\=c\:d=1", {"a b=c:d": "1"}),
        (r"a=\t\n\r\f\"\q", {"a": '\t\n\r\f"q'}),
        (r"a=\u00e9\ud83d\ude00", {"a": "é😀"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, entries: dict[str, str]) -> None:
    assert parse_properties(text) == entries


def test_a_malformed_escape_is_reported_with_its_line() -> None:
    with pytest.raises(ConfigurationError, match="line 2 of the properties"):
        parse_properties("a=1\nb=\\u12")


def stored(name: str, value: str) -> str:
    """One entry as `java.util.Properties.store` writes it."""

    def escaped(text: str, blanks: str) -> str:
        short = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\f": r"\f"}
        units = [
            short.get(each, "\\" + each if each in blanks else each) if 0x20 <= ord(each) < 0x7F or each in short
            else "".join(f"\\u{unit:04x}" for unit in _utf16(each))
            for each in text
        ]  # fmt: skip
        return "".join(units)

    body = escaped(value, "=:#!\\")
    return f"{escaped(name, '=:#!' + chr(92) + ' ')}={chr(92) if body.startswith(' ') else ''}{body}"


def _utf16(character: str) -> list[int]:
    raw = character.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.dictionaries(texts.filter(bool), texts, max_size=5))
def test_what_java_stores_is_read_unchanged(entries: dict[str, str]) -> None:
    assert parse_properties("\n".join(stored(name, value) for name, value in entries.items())) == entries


@given(st.text(max_size=200))
def test_no_text_breaks_the_readers(text: str) -> None:
    for read in (parse_properties, parse_jaas):
        with contextlib.suppress(ConfigurationError):
            read(text)


# --- JAAS -------------------------------------------------------------------------------------------------------------


def jaas(text: str, **options: Any) -> ClientConfig:
    return ClientConfig(security_protocol="SASL_SSL", sasl_jaas_config=text, **options)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('M required a="1" b="2";', {"a": "1", "b": "2"}),
        ("M required a='1' b=2 ;", {"a": "1", "b": "2"}),
        ('M required\n  a="x\\"y\\\\z=;"\n;', {"a": 'x"y\\z=;'}),
        ('/* c */ M required // d\n a="1";', {"a": "1"}),
        ("M required keyTab=/etc/a.keytab;", {"keyTab": "/etc/a.keytab"}),
        ("M REQUIRED;", {}),
    ],
)
def test_a_jaas_string_is_read(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(text) == ("M", options)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_password_can_be_quoted(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'M required password="{quoted}";').options == {"password": password}


def test_the_modules_of_kafka_become_options() -> None:
    plain = jaas(f'{PLAIN} required username="alice" password="{PASSWORD}";')
    assert (plain.sasl_mechanism, plain.sasl_plain_username) == ("PLAIN", "alice")
    assert (plain.sasl_plain_password, plain.sasl_jaas_config) == (Secret(PASSWORD), None)
    scram = jaas(f'{SCRAM} required username="a" password="b" tokenauth="true";', sasl_mechanism="SCRAM-SHA-256")
    assert (scram.sasl_mechanism, scram.sasl_delegation_token) == ("SCRAM-SHA-256", True)
    oauth = jaas(
        f'{OAUTH} required clientId="billing" clientSecret="{PASSWORD}" scope="kafka" extension_logicalCluster="l";',
        sasl_oauthbearer_token_endpoint_url="https://login.example/token",
    )
    assert oauth.sasl_oauthbearer_client_credentials_client_secret == Secret(PASSWORD)
    assert (oauth.sasl_oauthbearer_scope, oauth.sasl_oauthbearer_extensions) == ("kafka", (("logicalCluster", "l"),))
    kerberos = jaas(
        f'{KRB5} required useKeyTab=true storeKey=true keyTab="/etc/a.keytab" principal="a@EXAMPLE" serviceName="kf";'
    )
    assert (kerberos.sasl_mechanism, kerberos.sasl_kerberos_keytab) == ("GSSAPI", "/etc/a.keytab")
    assert (kerberos.sasl_kerberos_principal, kerberos.sasl_kerberos_service_name) == ("a@EXAMPLE", "kf")
    aws = jaas(f'{AWS} required awsProfileName="prod";')
    assert (aws.sasl_mechanism, aws.sasl_aws_profile) == ("AWS_MSK_IAM", "prod")
    shaded = jaas(f'kafkashaded.{PLAIN} required username="a" password="b";')
    assert shaded.sasl_mechanism == "PLAIN"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (f'{PLAIN} required username="alice" password="{PASSWORD}"', {}, "does not end with a semicolon"),
        (f'{PLAIN} username="alice" password="{PASSWORD}";', {}, "lacks the word required"),
        (f'{PLAIN} required username "alice" password="{PASSWORD}";', {}, "not name=value"),
        (f'{PLAIN} required password="{PASSWORD};', {}, "cannot be read at character"),
        (f'{PLAIN} required password="{PASSWORD}";', {}, "lacks username= for PlainLoginModule"),
        (f'{PLAIN} required username="a" password="{PASSWORD}"; M required;', {}, "more than one login module"),
        (f'{SCRAM} required username="a" password="{PASSWORD}";', {}, "sasl_mechanism must be set to one of SCRAM"),
        (
            f'{PLAIN} required username="a" password="{PASSWORD}";',
            {"sasl_mechanism": "SCRAM-SHA-512"},
            "PlainLoginModule, which is for PLAIN, but sasl_mechanism is 'SCRAM-SHA-512'",
        ),
        (
            f'{PLAIN} required username="a" password="{PASSWORD}";',
            {"sasl_plain_password": "other"},
            "sasl_jaas_config and sasl_plain_password contradict each other",
        ),
        (f'io.example.VaultLoginModule required token="{PASSWORD}";', {}, "is Java code and cannot run here"),
        (f'{OAUTH} required oauth.client.id="a" oauth.client.secret="{PASSWORD}";', {}, "a callback handler in Java"),
        (f'{AWS} required awsRoleArn="arn:aws:iam::1:role/x";', {}, "put the role into a profile"),
    ],
)
def test_a_jaas_string_that_cannot_be_used_is_refused_with_advice(
    text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        jaas(text, **options)
    assert PASSWORD not in str(raised.value)


# --- placeholders -----------------------------------------------------------------------------------------------------


def test_placeholders_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password: from-a-file\n")
    secrets.chmod(0o600)
    (tmp_path / "token").write_text("from-a-directory\n")
    assert resolve("x-${env:KAFKA_PASSWORD}-y", option="o") == f"x-{PASSWORD}-y"
    assert resolve(f"${{file:{secrets}:password}}", option="o") == "from-a-file"
    assert resolve(f"${{dir:{tmp_path}:token}}", option="o") == "from-a-directory"
    assert resolve("$PATH ${} {env:X}", option="o") == "$PATH ${} {env:X}"
    found = jaas(f'{PLAIN} required username="alice" password="${{env:KAFKA_PASSWORD}}";')
    assert found.sasl_plain_password == Secret(PASSWORD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${env:NOT_SET_HERE}", "o refers to the environment variable NOT_SET_HERE, which is not set"),
        ("${file:/no/such/file:key}", "o: /no/such/file cannot be read: No such file or directory"),
        ("${file:/etc/hostname}", r"the forms are \$\{env:NAME\}"),
        ("${vault:secret/kafka:password}", "for other stores of secrets pass a function"),
    ],
)
def test_a_placeholder_that_cannot_be_replaced_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        resolve(text, option="o")


def test_a_missing_key_and_a_large_file_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("a=1")
    with pytest.raises(ConfigurationError, match="has no key 'b'"):
        resolve(f"${{file:{file}:b}}", option="o")
    file.write_bytes(b"a" * (1024 * 1024 + 1))
    with pytest.raises(ConfigurationError, match="larger than 1 MiB"):
        resolve(f"${{file:{file}:b}}", option="o")
    file.write_bytes(b"a=\xff")
    with pytest.raises(ConfigurationError, match="not text in UTF-8"):
        resolve(f"${{file:{file}:a}}", option="o")


def test_a_file_name_in_a_directory_cannot_leave_it(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("inside")
    assert resolve(f"${{dir:{tmp_path}:../../etc/passwd}}", option="o") == "inside"


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o644, True)])
def test_a_file_of_secrets_that_others_can_read_is_logged(
    mode: int, warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text(f"password={PASSWORD}")
    file.chmod(mode)
    with caplog.at_level(logging.WARNING):
        resolve(f"${{file:{file}:password}}", option="o")
    assert len(caplog.records) == warned
    if warned:
        assert f"can be read by other users (mode {mode:04o}); run: chmod 600 {file}" in caplog.text
        assert PASSWORD not in caplog.text
