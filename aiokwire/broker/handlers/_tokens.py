"""What the requests for delegation tokens share."""

from __future__ import annotations

from typing import Final

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import ANONYMOUS

USER: Final = "User"
NO_TIME: Final = -1  # the timestamp of a refusal


def may_manage_tokens(call: Call) -> bool:
    """Return whether a connection may create and change tokens: not without a login."""
    return call.principal != ANONYMOUS
