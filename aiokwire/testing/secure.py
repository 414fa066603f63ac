"""Brokers with TLS and logins, for tests of clients with security."""

from __future__ import annotations

from typing import Any

from aiokwire.broker import Broker, new_setup
from aiokwire.testing.threaded import ThreadedBroker


class SecureBroker(Broker):
    """A `Broker` with one SASL_SSL listener, certificates of its own and the user `admin`.

    `Producer(broker.bootstrap_servers, **broker.client_options)` logs in. Needs `aiokwire[tls]`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take the options of `Broker`; `users` are added to `admin`.

        Raises: ConfigurationError: as `Broker`, or the package `cryptography` is not installed.
        """
        self._setup = new_setup()
        users = {**self._setup.users, **options.pop("users", {})}
        super().__init__(*arguments, listeners=[self._setup.listener("127.0.0.1:0")], users=users, **options)

    @property
    def client_options(self) -> dict[str, Any]:
        """The options of a client that logs in as `admin`; they contain the password."""
        return self._setup.client_options


class ThreadedSecureBroker(ThreadedBroker):
    """A `SecureBroker` in a thread."""

    KIND: type[Broker] = SecureBroker

    @property
    def client_options(self) -> dict[str, Any]:
        """The options of a client that logs in as `admin`; they contain the password."""
        options: dict[str, Any] = self._broker.client_options  # type: ignore[attr-defined]  # of a SecureBroker
        return options
