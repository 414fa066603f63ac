"""Options of a login for tests."""

from __future__ import annotations

from typing import Any

from aiokwire.security import SecurityConfig


def options(mechanism: str, **values: Any) -> SecurityConfig:
    """Return the options of a client that logs in over TLS."""
    return SecurityConfig(security_protocol="SASL_SSL", sasl_mechanism=mechanism, **values)
