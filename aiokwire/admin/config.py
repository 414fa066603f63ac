"""Options of an admin client."""

from __future__ import annotations

import dataclasses

from aiokwire.cluster import ClientConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdminConfig(ClientConfig):
    """What `ClientConfig` takes; nothing more is needed."""
