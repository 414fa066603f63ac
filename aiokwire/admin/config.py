"""Options of an admin client."""

from __future__ import annotations

import dataclasses

from aiokwire.cluster import ClientConfig
from aiokwire.config import documents_options


@documents_options()
@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class AdminConfig(ClientConfig):
    """Every option of an admin client: those of `ClientConfig`."""
