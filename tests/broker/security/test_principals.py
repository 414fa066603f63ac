"""Principals from certificates: the distinguished name as Java writes it, and the mapping rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.security import ANONYMOUS, Principal
from aiokwire.broker.security.principals import PrincipalMapping, distinguished_name
from aiokwire.errors import ConfigurationError

ALICE = {
    "subject": (
        (("countryName", "NL"),),
        (("organizationName", "Example, Inc."),),
        (("organizationalUnitName", "data"),),
        (("commonName", "alice"),),
    )
}
NAME = r"CN=alice,OU=data,O=Example\, Inc.,C=NL"


def test_a_subject_is_written_from_its_most_specific_part_on() -> None:
    assert distinguished_name(ALICE) == NAME


def test_special_characters_are_escaped() -> None:
    subject = {"subject": ((("commonName", '#a"+<>;\\ '),), (("emailAddress", "a@b"),))}
    assert distinguished_name(subject) == r"1.2.840.113549.1.9.1=#1603614062,CN=\#a\"\+\<\>\;\\\ "


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", NAME),
        ("RULE:^CN=(.*?),.*$/$1/", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "ALICE@DATA"),
        ("RULE:^CN=carol.*$/x/, RULE:^.*,C=(.*)$/$1/L,DEFAULT", "nl"),
        ("RULE:^CN=bob$/bob/,DEFAULT", NAME),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules: str, name: str) -> None:
    assert PrincipalMapping(rules).principal_of(ALICE) == Principal("User", name)


def test_a_client_without_a_certificate_is_anonymous() -> None:
    assert PrincipalMapping().principal_of(None) is ANONYMOUS
    assert PrincipalMapping().principal_of({}) is ANONYMOUS


def test_a_subject_that_no_rule_matches_names_no_user() -> None:
    with pytest.raises(ValueError, match=r"no rule of ssl\.principal\.mapping\.rules applies"):
        PrincipalMapping("RULE:^CN=bob$/bob/").principal_of(ALICE)


@pytest.mark.parametrize("rules", ["RULE:x", "default", "RULE:(/x/", "RULE:a/b/X", "DEFAULT;DEFAULT"])
def test_a_bad_rule_is_a_configuration_error(rules: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)


@given(st.text())
def test_any_common_name_stays_one_attribute(name: str) -> None:
    written = distinguished_name({"subject": ((("commonName", name),),)})
    assert written.startswith("CN=")
    assert PrincipalMapping("DEFAULT").name_of(written) == written
