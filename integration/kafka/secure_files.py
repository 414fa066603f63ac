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
    """An authority and its certificates: PEM files, PEM key stores and PKCS12."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="aiokwire-certificates-"))
        self.authority = self._next = CertificateAuthority.create("aiokwire test CA")
        self._copies = 0
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

    def issue_client(self, name: str, user: str) -> None:
        """Write, or replace, the files of a client: `name.store.pem`, `name.crt` and so on."""
        self._write_all(name, self.authority.client(user))

    def trust_next_authority(self) -> None:
        """Create another authority, and trust it besides the current one in ca.pem."""
        self._next = CertificateAuthority.create("aiokwire renewed CA")
        self._write("ca.pem", self.authority.certificate_pem + self._next.certificate_pem)

    def renew_broker(self) -> None:
        """Replace the broker's certificate; the next authority issues it, and all later ones."""
        self.authority = self._next
        self._write_all("broker", self.authority.server(["localhost", "kafka.example"], name="broker"))

    def trust_present_authority(self) -> None:
        """Trust only the current authority in ca.pem."""
        self._write("ca.pem", self.authority.certificate_pem)

    def copied(self, name: str) -> str:
        """Return the path of a copy of a file, under its own name."""
        self._copies += 1
        copy = self.home / f"copy-{self._copies}-{name}"
        shutil.copy(self.home / name, copy)
        return str(copy)

    def close(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.home, ignore_errors=True)

    def _write(self, name: str, content: str | bytes) -> None:
        temporary = self.home / f"{name}.tmp"
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(self.home / name)

    def _write_all(self, name: str, issued: Issued) -> None:
        self._write(f"{name}.crt", issued.certificate_pem)
        self._write(f"{name}.key", issued.key_pem)
        self._write(f"{name}.store.pem", issued.store_pem)
        self._write(f"{name}.p12", issued.pkcs12(PASSWORD))

    def _write_trust_store(self) -> None:
        entry = pkcs12.PKCS12Certificate(self.authority.certificate, b"ca")
        encryption = BestAvailableEncryption(PASSWORD.reveal().encode())
        self._write("trust.p12", pkcs12.serialize_java_truststore([entry], encryption))
