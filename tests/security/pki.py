"""One authority with certificates for the tests, issued once."""

from __future__ import annotations

import functools
from pathlib import Path

from aiokwire.security import Secret
from aiokwire.security.certificates import CertificateAuthority, Issued

PASSWORD = Secret("store-secret")


@functools.cache
def authority(name: str = "test CA") -> CertificateAuthority:
    """Return the authority of this name."""
    return CertificateAuthority.create(name)


@functools.cache
def server() -> Issued:
    """Return the certificate of the server on loopback."""
    return authority().server()


@functools.cache
def alice() -> Issued:
    """Return the certificate of a client."""
    return authority().client("alice", organization="Test")


class Files:
    """Writes PEM and PKCS12 files into a directory, and returns their paths."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, name: str, content: str | bytes) -> str:
        """Write a file and return its path."""
        path = self.directory / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def ca(self) -> str:
        """Write the authority's certificate."""
        return self.write("ca.pem", authority().certificate_pem)

    def store(self, issued: Issued, name: str = "store.pem") -> str:
        """Write a PEM key store: key and chain in one file."""
        return self.write(name, issued.store_pem)
