"""The authority for development issues certificates that OpenSSL accepts and messages describe."""

from __future__ import annotations

import ssl
import time

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.security import read_der
from aiokwire.security.certificates import CertificateAuthority
from tests.security.pki import alice, authority, server


def test_a_certificate_is_described_by_its_owner_issuer_names_and_dates() -> None:
    found = read_der(server().certificate.public_bytes(Encoding.DER))
    assert found.subject == "CN=localhost"
    assert found.issuer == "CN=test CA"
    assert found.names == ("localhost", "127.0.0.1", "0:0:0:0:0:0:0:1")
    now = time.time()  # noqa: TID251 - the dates of certificates are of the wall clock
    assert found.not_before < now < now + 364 * 86400 < found.not_after < now + 366 * 86400
    assert found.expiry.endswith("GMT")
    client = read_der(alice().certificate.public_bytes(Encoding.DER))
    assert (client.subject, client.names) == ("CN=alice,O=Test", ())


def test_an_authority_is_loaded_again_from_its_texts() -> None:
    again = CertificateAuthority.load(authority().certificate_pem, authority().key_pem)
    again.server().certificate.verify_directly_issued_by(authority().certificate)
    with pytest.raises(ValueError, match="PEM"):
        CertificateAuthority.load("nonsense", authority().key_pem)


def test_expired_and_future_certificates_have_such_dates() -> None:
    now = time.time()  # noqa: TID251 - the dates of certificates are of the wall clock
    assert read_der(authority().expired_server().certificate.public_bytes(Encoding.DER)).not_after < now
    assert read_der(authority().future_server().certificate.public_bytes(Encoding.DER)).not_before > now


@given(st.binary(max_size=200))
def test_no_bytes_of_a_peer_are_more_than_an_ssl_error(der: bytes) -> None:
    with pytest.raises(ssl.SSLError):
        read_der(der)


@given(st.integers(0, 2_000), st.binary(min_size=1, max_size=4))
def test_a_changed_certificate_is_read_or_refused(place: int, noise: bytes) -> None:
    der = bytearray(server().certificate.public_bytes(Encoding.DER))
    place %= len(der)
    der[place : place + len(noise)] = noise
    try:
        found = read_der(bytes(der))
    except ssl.SSLError:
        return
    assert isinstance(found.subject, str)
