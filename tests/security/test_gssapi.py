"""GSSAPI without a KDC: errors with their remedy. integration/kerberos has logins with a KDC."""

from __future__ import annotations

import sys

import pytest

from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed
from aiokwire.security import new_login
from aiokwire.security.gssapi import explain
from tests.security.options import options


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Major (458752): No credentials were supplied, or are inaccessible, Minor (0): ", "run kinit"),
        ("No Kerberos credentials available (default cache: FILE:cache)", "run kinit"),
        ("Server krbtgt/X not found in Kerberos database", "sasl_kerberos_service_name"),
        ("Client 'x@R' not found in Kerberos database", "sasl_kerberos_principal"),
        ("Clock skew too great", "synchronize them"),
        ("Ticket not yet valid", "synchronize them"),
        ("Ticket expired", "the ticket has expired: run kinit"),
        ("Request ticket server kafka/localhost@R kvno 3 not found in keytab", "keytab"),
        ("Keytab FILE:/x is nonexistent or empty", "klist -k"),
    ],
)
def test_an_error_names_the_remedy(text: str, remedy: str) -> None:
    error = explain(RuntimeError(text))
    assert isinstance(error, AuthenticationFailed)
    assert str(error).startswith(f"Kerberos: {text.strip()}: ")
    assert remedy in str(error)


def test_an_unreachable_kdc_may_pass() -> None:
    error = explain(RuntimeError("Cannot contact any KDC for realm 'X'"))
    assert isinstance(error, ConnectionFailed)
    assert error.stage == "sasl"
    assert "/etc/krb5.conf" in str(error)


def test_the_general_part_of_a_text_is_left_out() -> None:
    error = RuntimeError(
        "Major (851968): Unspecified GSS failure. Minor code may provide more information, Minor (2529638919): "
        "Server http/localhost@R not found in Kerberos database"
    )
    assert str(explain(error)).startswith("Kerberos: Server http/localhost@R not found in Kerberos database: the realm")


def test_an_unknown_error_is_passed_on_in_one_line() -> None:
    assert str(explain(RuntimeError("Something\n  else"))) == "Kerberos: Something else"


def test_a_missing_package_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'aiokwire\[gssapi\]'"):
        new_login(options("GSSAPI"))
