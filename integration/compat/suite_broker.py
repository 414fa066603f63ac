"""The brokers of aiokafka's suite: a listener for each protocol, a user "test" whose password is
"test", and ACLs that apply to resources that have some, as in the containers of aiokafka."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aiokwire.security import Secret
from integration.kafka.secure import Access, SecureKafka
from integration.secure_embedded import SecureEmbedded

USER: Final = "test"
# Of the client's key, in the suite.
KEY_PASSWORD: Final = Secret("abcdefgh")
_SUPER_USERS: Final = "User:admin;User:alice;User:broker;User:ANONYMOUS"
_SETTINGS: Final = {
    "num.partitions": 2,
    "auto.create.topics.enable": "true",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": _SUPER_USERS,
}


class SuiteEmbedded(SecureEmbedded):
    """The embedded broker for the suite."""

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        options["users"][USER] = USER
        options["configs"] |= _SETTINGS
        return options


class SuiteKafka(SecureKafka):
    """Kafka 4.3.1 for the suite."""

    def _settings(self) -> Mapping[str, object]:
        settings = {**super()._settings(), **_SETTINGS}
        name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
        settings[name] = str(settings[name]).replace(";", f' user_{USER}="{USER}";')
        return settings


def ssl_folder(access: Access) -> Path:
    """Return a directory with certificates under the names of the suite."""
    home = access.certificates.home / "suite"
    home.mkdir()
    (home / "ca.crt").write_text(access.certificates.text("ca.pem"))
    (home / "client.crt").write_text(access.certificates.text("alice.crt"))
    (home / "client.key").write_text(access.certificates.alice.encrypted_key_pem(KEY_PASSWORD))
    return home


def described(access: Access) -> str:
    """Return what the plugin needs to know, as JSON."""
    kerberos = access.kerberos
    return json.dumps(
        {
            "ports": access.ports,
            "ssl_folder": str(ssl_folder(access)),
            "lacks_kerberos": access.lacks_kerberos,
            "keytab": "" if kerberos is None else str(kerberos.keytab("alice")),
            "cache": "" if kerberos is None else str(kerberos.cache),
        }
    )
