"""The certificates of secure brokers and their clients, written once into a directory."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from aiokwire.security import Secret
from aiokwire.security.certificates import CertificateAuthority, Issued

PASSWORD = Secret("store-secret")


class Certificates:
    """An authority, and what it issued: PEM files, PEM key stores and PKCS12."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="aiokwire-certificates-"))
        self.authority = CertificateAuthority.create("aiokwire test CA")
        self.alice = self.authority.client("alice", organization="Test")
        self._write("ca.pem", self.authority.certificate_pem)
        self._write_trust_store()
        self._write_all("broker", self.authority.server(["localhost", "kafka.example"], name="broker"))
        self._write_all("alice", self.alice)
        self._write("alice.encrypted.key", self.alice.encrypted_key_pem(PASSWORD))
        self._write_all("expired", self.authority.expired_client("alice"))
        self._write_all("stranger", CertificateAuthority.create("another CA").client("stranger"))
        self._write("another-ca.pem", CertificateAuthority.create("another CA").certificate_pem)

    def path(self, name: str) -> str:
        """Return the path of a file, such as "ca.pem" or "alice.p12"."""
        return str(self.home / name)

    def text(self, name: str) -> str:
        """Return the content of a PEM file."""
        return (self.home / name).read_text()

    def close(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.home, ignore_errors=True)

    def _write(self, name: str, content: str | bytes) -> None:
        (self.home / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def _write_all(self, name: str, issued: Issued) -> None:
        self._write(f"{name}.crt", issued.certificate_pem)
        self._write(f"{name}.key", issued.key_pem)
        self._write(f"{name}.store.pem", issued.store_pem)
        self._write(f"{name}.p12", issued.pkcs12(PASSWORD))

    def _write_trust_store(self) -> None:
        entry = pkcs12.PKCS12Certificate(self.authority.certificate, b"ca")
        encryption = BestAvailableEncryption(PASSWORD.reveal().encode())
        self._write("trust.p12", pkcs12.serialize_java_truststore([entry], encryption))
