"""Helpers of the requests for delegation tokens."""

from __future__ import annotations

from typing import Final

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import ANONYMOUS

USER: Final = "User"
NO_TIME: Final = -1  # the timestamp in an error response


def may_manage_tokens(call: Call) -> bool:
    """Return whether a connection may manage tokens: it needs a login, but not one by a token."""
    if call.authenticator is not None and call.authenticator.used_token:
        return False
    return call.principal != ANONYMOUS
