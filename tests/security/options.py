"""Options of a login for tests: Kafka's defaults with some of them replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

DEFAULTS: dict[str, Any] = {
    "sasl_mechanism": None,
    "sasl_plain_username": None,
    "sasl_plain_password": None,
    "sasl_credentials_provider": None,
    "sasl_delegation_token": False,
    "sasl_client_factory": None,
    "sasl_oauth_token_provider": None,
    "sasl_oauthbearer_extensions": None,
    "sasl_login_refresh_window_factor": 0.8,
    "sasl_login_refresh_buffer_seconds": 300,
    "sasl_login_refresh_min_period_seconds": 60,
}


def options(mechanism: str, **values: Any) -> SimpleNamespace:
    """Return options as `SecurityConfig` has them."""
    return SimpleNamespace(**DEFAULTS | {"sasl_mechanism": mechanism} | values)
